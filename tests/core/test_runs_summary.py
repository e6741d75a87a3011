"""The line of a list that stands for a run: its numbers, and how much of the full run's text it keeps."""

from __future__ import annotations

import json

import pytest

from rcr_core.bundled.grading import mentions
from rcr_core.captioning import Captioner
from rcr_core.errors import PromptError
from rcr_core.outcome import run_numbers
from rcr_core.runs import RunStore
from rcr_core.runs.fidelity import rouge_l
from rcr_core.runs.summary import reference_of, summary
from tests.core.stores import ANNA, BEN, SCENE, ended, maker
from tests.core.trace_samples import small_meta, small_trace

KEYS = {
    *("id", "kind", "label", "policy", "status", "place", "steps", "stop_reason", "error", "created", "rate"),
    *("public", "mine", "subject", "model", "settings", "prompt", "text", "refresh_rate", "mean_drift"),
    *(
        "tau_end",
        "reads",
        "full_scan_reads",
        "reads_asked",
        "reads_fetched",
        "prefix",
        "kept",
        "fidelity",
        "reference",
        "truth",
        "bytes",
    ),
}


@pytest.fixture(scope="module")
def captioner(load):
    return Captioner(load("bundled"))


def trace_of(*words, policy="rcr", stop_reason="stop token", **meta):
    """Three tokens that say `words`."""
    return small_trace(
        meta=small_meta(token_text=words, policy=policy, stop_reason=stop_reason, settings={}, **meta)
    )


def refuse():
    raise PromptError("too long", "write less")


def test_a_file_as_a_line():
    """The trace made by hand: of the layer-steps of its managed layer, 1 of 2 refreshed, mean drift 3/8."""
    store = RunStore()
    settings = {"select": 2, "window": 2, "rho": 0.4}
    run = store.add(ANNA, small_trace(meta=small_meta(settings=settings)), label="mine.rcr")
    found = summary(run, ANNA, None)
    assert found.keys() == KEYS | {"key"}
    assert (found["mine"], found["key"], found["id"]) == (True, run.key, run.id)
    assert (found["steps"], found["stop_reason"], found["text"]) == (3, "length", "A 猫")
    assert (found["refresh_rate"], found["mean_drift"]) == (0.5, 0.375)
    assert found["tau_end"] == pytest.approx(0.04)
    # Candidates are 4 x 2 but at most the 6 of the prefix: (6 + 2) x 0.5; a scan reads 6 keys and 2 values.
    assert (found["reads"], found["full_scan_reads"], found["prefix"], found["kept"]) == (4, 8, 6, 2)
    assert (found["model"], found["prompt"], found["settings"]) == ("tiny", "Describe.", settings)
    assert found["fidelity"] is found["reference"] is found["truth"] is found["error"] is None
    json.dumps(found, allow_nan=False)


def test_somebody_else_is_not_told_the_key():
    store = RunStore()
    run = store.add(ANNA, small_trace(), label="")
    public = store.add("", small_trace(), label="", kind="example", public=True)
    for found in (summary(run, BEN, None), summary(public, "", None), summary(public, BEN, None)):
        assert found.keys() == KEYS and found["mine"] is False


def test_a_run_that_has_nothing_yet():
    store = RunStore()
    run = ended(store.start(ANNA, refuse, policy="rcr"))
    found = summary(run, ANNA, reference_of(store, run))
    assert found.keys() == KEYS | {"key"}
    assert found["error"] == {"message": "too long", "hint": "write less"}
    assert (found["status"], found["steps"], found["text"], found["refresh_rate"]) == ("error", 0, "", None)
    assert found["subject"] == ""
    store.close()


@pytest.mark.parametrize("changes", [{"policy": "unheard of"}, {"settings": {"select": -3}}])
def test_a_file_of_unknown_policy_or_settings_is_still_listed(changes):
    run = RunStore().add(ANNA, small_trace(meta=small_meta(**changes)), label="")
    found = summary(run, ANNA, None)
    assert found.keys() == KEYS | {"key"}
    assert found["text"] == "A 猫" and found["reads"] is None


@pytest.mark.parametrize(
    ("text", "reference", "expected"),
    [
        ("a red star", "a red star", 1.0),
        ("a red moon", "a blue moon", 2 / 3),
        ("One, two!", "one two three four", 2 / 3),  # precision 1, recall 1/2
        ("stars", "star", 0.0),  # no stemming
        ("", "a star", 0.0),
    ],
)
def test_rouge_l_by_hand(text, reference, expected):
    assert rouge_l(text, reference) == pytest.approx(expected)


def test_fidelity_is_against_the_full_run_of_the_same_subject():
    store = RunStore()
    run = store.add(ANNA, trace_of("a", " red", " moon"), label="")
    assert reference_of(store, run) is None
    store.add(ANNA, trace_of("a", " blue", " moon", policy="full", prompt="What is it?"), label="")
    store.add(ANNA, trace_of("a", " blue", " moon", policy="full", stop_reason="stopped"), label="")
    store.add(BEN, trace_of("a", " blue", " moon", policy="full"), label="")
    assert reference_of(store, run) is None
    full = store.add(ANNA, trace_of("a", " blue", " moon", policy="full"), label="")
    assert reference_of(store, run) is full
    assert reference_of(store, full) is None
    found = summary(run, ANNA, full)
    assert found["fidelity"] == pytest.approx(2 / 3) and found["reference"] == full.id
    without = ended(store.start(ANNA, refuse, policy="rcr"))
    assert reference_of(store, without) is None
    store.close()


def test_an_example_is_a_reference_for_everyone():
    store = RunStore()
    full = store.add("", trace_of("a", "", "", policy="full"), label="", kind="example", public=True)
    run = store.add(BEN, trace_of("b", "", ""), label="")
    assert reference_of(store, run) is full


def test_only_a_whole_text_is_held_against_another():
    """Half a caption would look as if the policy had lost the other half."""
    store = RunStore()
    full = store.add(ANNA, trace_of("a", " red", " moon", policy="full"), label="")
    for stop_reason, expected in (("stop token", 1.0), ("length", 1.0), ("stopped", None), ("error", None)):
        run = store.add(ANNA, trace_of("a", " red", " moon", stop_reason=stop_reason), label="")
        assert summary(run, ANNA, full)["fidelity"] == expected, stop_reason


def test_whoever_reads_a_run_by_its_link_is_told_its_fidelity_but_not_which_run_it_is_held_against():
    store = RunStore()
    full = store.add(ANNA, trace_of("a", " red", " moon", policy="full"), label="")
    run = store.add(ANNA, trace_of("a", " blue", " moon"), label="")
    for owner, named in ((ANNA, full.id), (BEN, None), ("", None)):
        found = summary(run, owner, reference_of(store, run))
        assert found["fidelity"] == pytest.approx(2 / 3) and found["reference"] == named
    store.add("", trace_of("a", " red", " moon", policy="full"), label="", public=True)
    store.drop(full.id, ANNA)
    example = reference_of(store, run)
    assert example.public and summary(run, BEN, example)["reference"] == example.id


def test_a_live_run_as_a_line(captioner):
    store = RunStore()
    full, run = (
        store.start(ANNA, maker(captioner, policy, max_new_tokens=60), policy=policy, scene=SCENE)
        for policy in ("full", "rcr")
    )
    assert run.wait(1, 30)
    early = summary(run, ANNA, reference_of(store, run))
    assert early.keys() == KEYS | {"key"}
    assert early["fidelity"] is None and early["truth"]["total"] == 10
    assert early["settings"]["max_new_tokens"] == 60 and early["prefix"] == 424 and early["kept"] == 32
    ended(full), ended(run)
    late = summary(run, ANNA, reference_of(store, run))
    assert 0 < late["fidelity"] < 1 and late["reference"] == full.id
    assert late["text"] == run.trace().text and late["steps"] == run.steps
    assert late["reads"] == run_numbers(run.trace())["reads"] == pytest.approx(160 * late["refresh_rate"])
    assert summary(full, ANNA, None)["truth"] == {"right": len(mentions(full.trace().text)), "total": 10}
    store.close()
