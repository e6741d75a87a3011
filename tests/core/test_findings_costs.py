"""Cost, contrast and references, against numbers worked out by hand."""

from __future__ import annotations

import sys

import pytest

from rcr_core.findings.contrast import contrast_table
from rcr_core.findings.costs import cost_table
from rcr_core.findings.human import references_table
from tests.core.findings_samples import SHAPE, column, evidence, made, mean, row_of


def test_cost_by_formula_and_realised():
    """The paper's example: a prefix of 1024, heads of 128, 32 kept of 128 candidates, rho 0.4."""
    table = cost_table(
        evidence(
            column("full", [1.0]),
            column("bacon", [0.3], refresh_rate=0.0),
            column("exact", [0.9], refresh_rate=1.0),
            column("threshold", [0.6], refresh_rate=0.9),
            column("rcr", [0.8], refresh_rate=0.48, exchanged=5.5),
            column("quest", [0.5], refresh_rate=1.0, exchanged=12.0),
            column("infinigen", [0.9], refresh_rate=1.0),
        )
    )
    rcr = row_of(table, "rcr")
    assert (rcr["resident"], rcr["detector"]) == (64, 64)  # Np / 16
    assert (rcr["rate"], rcr["rescored"], rcr["reads"]) == tuple(map(pytest.approx, (0.4, 51.2, 64)))
    assert (rcr["rate_realised"], rcr["rescored_realised"], rcr["reads_realised"]) == tuple(
        map(pytest.approx, (0.48, 61.44, 76.8))
    )
    assert rcr["exchanged"] == 5.5
    assert row_of(table, "exact")["reads"] == 1056
    assert (row_of(table, "quest")["resident"], row_of(table, "quest")["reads"]) == (128, 64)
    assert row_of(table, "infinigen")["resident"] == 256
    assert row_of(table, "threshold")["reads"] == pytest.approx(144)
    bacon = row_of(table, "bacon")
    assert (bacon["resident"], bacon["reads"], bacon["reads_realised"]) == (0, 0, 0)
    assert row_of(table, "full")["resident"] == 1024


def test_cost_in_bytes_of_the_whole_model():
    """Qwen2-VL-7B: 28 layers of 4 KV heads in bfloat16 read 1.8 MB a step at 64 vectors each."""
    shape = {**SHAPE, "layers": 28, "kv_heads": 4}
    rows = [made("full", 0, shape=shape), made("rcr", 0, shape=shape, refresh_rate=0.2)]
    table = cost_table(evidence(rows))
    rcr = row_of(table, "rcr")
    assert rcr["reads_mb"] == pytest.approx(1.835, abs=0.001)
    assert rcr["reads_realised_mb"] == pytest.approx(1.835 / 2, abs=0.001)
    assert rcr["resident_mb"] == pytest.approx(1.835, abs=0.001)  # a sketch of 64 key-equivalents
    # The full cache: keys and values, 2 x 1024 x 256 bytes x 28 x 4.
    assert row_of(table, "full")["resident_mb"] == pytest.approx(58.72, abs=0.01)


def test_layers_that_keep_their_whole_prefix_cost_nothing():
    """Half of the layers evict; the full cache is that of all of them."""
    shape = {**SHAPE, "layers": 28, "kv_heads": 4}
    half = [None, 0.4] * 14
    rows = [
        made("full", 0, shape=shape),
        made("rcr", 0, shape=shape, refresh_rate=0.2, refresh_by_layer=half),
    ]
    table = cost_table(evidence(rows))
    assert row_of(table, "rcr")["reads_mb"] == pytest.approx(1.835 / 2, abs=0.001)
    assert row_of(table, "full")["resident_mb"] == pytest.approx(58.72, abs=0.01)
    assert "14 layers that evict" in table.note
    assert "28 layers, 4 KV heads" in cost_table(evidence(rows[:1])).note


def test_cost_is_a_mean_over_prefixes_and_bytes_need_a_known_dtype():
    rows = [
        made("exact", at, shape={**SHAPE, "prefix_length": prefix}, refresh_rate=1.0, dtype="int3")
        for at, prefix in enumerate((100, 300))
    ]
    table = cost_table(evidence(rows))
    assert row_of(table, "exact")["reads"] == 232
    assert "reads_mb" not in [one.id for one in table.columns]


def sides(answers: tuple[str, ...], answer_steps: int = 2):
    captions = evidence(
        column("full", [1.0, 1.0], steps=100, diverges_at=-1),
        column("oracle", [0.4, 0.6], steps=80, diverges_at=3),
        column("bacon", [0.2, 0.4, 0.9], steps=60, diverges_at=2),
        column("exact", [0.8, 0.9], steps=95, diverges_at=7),
        column("rcr", [0.7, 0.9], steps=90, diverges_at=5),
    )
    short = evidence(
        *(
            [
                made(
                    name,
                    at,
                    data="questions",
                    fidelity=1.0,
                    diverges_at=-1,
                    steps=answer_steps,
                    accuracy=accuracy,
                )
                for at, accuracy in enumerate((1.0, 0.6))
            ]
            for name in answers
        )
    )
    return captions, short


def test_long_captions_against_short_answers():
    table = contrast_table(*sides(("full", "oracle", "rcr", "quest")))
    assert table.column("policy") == ("oracle", "rcr", "full")  # what both data sets have
    oracle = row_of(table, "oracle")
    assert mean(oracle["captions_fidelity"]) == pytest.approx(0.5)
    assert mean(oracle["answers_fidelity"]) == 1.0
    assert (oracle["captions_steps"], oracle["answers_steps"]) == (80, 2)
    assert (oracle["captions_same_words"], oracle["answers_same_words"]) == (0, 1)
    assert mean(oracle["answers_accuracy"]) == pytest.approx(0.8)
    assert "captions_accuracy" not in [one.id for one in table.columns]
    assert contrast_table(*sides(("full", "quest"))) is None


@pytest.mark.parametrize(("steps", "after"), [(1, 0), (2, 1), (3, 2), (12, 11)])
def test_answers_that_the_prefill_chose_say_nothing_about_one_selection(steps, after):
    table = contrast_table(*sides(("full", "oracle", "exact", "rcr"), steps))
    assert set(table.column("answers_after")) == {after}
    assert row_of(table, "oracle")["captions_after"] == 79
    empty = "equal scores say nothing about the selection" in table.note
    assert empty == (after <= 1)
    assert ("choosing anew is worth" in table.note) == (after > 1 and "exact" in table.column("policy"))


def referring(policy: str, texts: list[str], rouges: list[float]) -> list:
    references = (["a red ball on grass"], ["two dogs", "dogs at play"], ["The sea."])
    return [
        made(policy, at, text=text, reference_rouge=rouge, references=each)
        for at, (text, rouge, each) in enumerate(zip(texts, rouges, references, strict=False))
    ]


def test_rouge_and_cider_against_references():
    full = referring("full", ["A red ball on grass!", "two dogs", "the sea"], [1.0, 0.8, 1.0])
    bacon = referring("bacon", ["nothing", "nothing", "the sea"], [0.0, 0.2, 1.0])
    table = references_table(evidence(full, bacon))
    assert row_of(table, "full")["rouge"].mean == pytest.approx(2.8 / 3)
    assert row_of(table, "bacon")["over_full"].mean == pytest.approx(-1.6 / 3)
    assert row_of(table, "full")["over_full"] is None
    # An image's CIDEr-D is 10 x the mean over n = 1..4 of the cosine of its n-grams with the reference, here
    # 1 as long as the text has n-grams: "a red ball on grass" 10, "two dogs" 5 against its first reference,
    # "the sea" 5. With "dogs at play" it shares one word of 2 and 3. All weigh the same, because each word is
    # in the references of one image only: the cosine is 1 / sqrt(6), less by exp(-1 / 72) for a length that
    # differs by one bigram.
    shared = 10 * (1 / 6**0.5) / 4 * 2.718281828 ** (-1 / 72)
    full_score, bacon_score = row_of(table, "full")["cider"], row_of(table, "bacon")["cider"]
    assert full_score.mean == pytest.approx((10 + (5 + shared) / 2 + 5) / 3)
    assert bacon_score.mean == pytest.approx(5 / 3)
    assert "needs Java" in table.note


def test_cider_is_left_out_without_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "pycocoevalcap.cider.cider", None)  # as if it were not installed
    table = references_table(evidence(referring("full", ["a", "b"], [0.1, 0.4])))
    assert [one.id for one in table.columns] == ["policy", "images", "rouge"]
    assert "pycocoevalcap is not installed" in table.note


def test_one_image_and_no_references():
    table = references_table(evidence(referring("full", ["a red ball"], [0.4])))
    assert row_of(table, "full") == {"policy": "full", "images": 1, "rouge": 0.4}
    assert references_table(evidence(column("full", [1.0]))) is None
    answers = [made("full", 0, reference_rouge=0.5, references=["yes"] * 10, accuracy=1.0)]
    assert references_table(evidence(answers)) is None
    quick = references_table(evidence(referring("full", ["a", "b"], [0.1, 0.4])), cider=False)
    assert "CIDEr" not in quick.note
