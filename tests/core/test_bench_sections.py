"""The sections of the bench on a model of two layers: what they say is counted again by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rcr_core.bench import Plan, random_contest, run_bench
from rcr_core.bench.bandwidth import gather_row, random_rows
from rcr_core.bench.checks import SELECTING, SyncError, checks, decoded, no_sync
from rcr_core.bench.contestants import GENERATE, Entrant, Generate
from rcr_core.bench.contests import SEVEN_B, SMALL, random_model, random_prompt
from rcr_core.bench.graph import same_tokens
from rcr_core.bench.memory import memory
from rcr_core.bench.reads import reads
from rcr_core.bench.section import Attempts, Budget
from rcr_core.bench.speed import Pace
from rcr_core.cache.offload import HostRows
from rcr_core.engine import Engine
from rcr_core.policies import POLICIES, make_policy
from rcr_core.settings import Settings

CPU = torch.device("cpu")
LAYERS, HEADS, DEPTH, PREFIX, WINDOW = 2, 2, 64, 128, 32
VECTOR = DEPTH * 4  # bytes
OFFLOADS = ("none", "masked", "conditional")


def small_plan(*sections, **changes):
    plan = replace(Plan.of(CPU), build=replace(SMALL, layers=LAYERS), checked=PREFIX, held=PREFIX)
    pace = Pace(1, 2, together=True)
    return replace(plan, prefixes=(PREFIX, 2 * PREFIX), pace=pace, sections=sections, **changes)


def unlimited():
    return Attempts(Budget(1e6))


@pytest.fixture(scope="module")
def contest():
    return random_contest(PREFIX, layers=LAYERS)


# ---- checks


def test_every_check_passes(contest):
    attempts = unlimited()
    (figures,) = checks({"random": lambda: contest}, attempts, Settings(select=16))
    assert not attempts.failed and not attempts.left_out
    assert len(figures.rows) == 1 + len(SELECTING) + 2
    assert all(row["passed"] is True for row in figures.rows), figures.rows
    words = [row["found"] for row in figures.rows]
    assert words.count("same tokens, logits bit for bit") == 1 + len(SELECTING)
    assert words[-2:] == ["none (CPU form: operators counted)"] * 2


def test_a_check_of_what_differs_does_not_pass(contest, monkeypatch):
    """Where uncompressed decoding is put in place of RCR's masked merge, RCR no longer decodes the same."""

    def wrong(contest, policy, settings):
        swapped = policy == "rcr" and settings.offload == "masked"
        return decoded(contest, "full" if swapped else policy, settings)

    monkeypatch.setattr("rcr_core.bench.checks.decoded", wrong)
    (figures,) = checks({"random": lambda: contest}, unlimited(), Settings(select=2, window=2))
    found = {row["check"].partition(":")[0]: row for row in figures.rows}
    assert found["rcr"]["passed"] is False and found["rcr"]["found"].startswith("masked: ")
    assert found["bacon"]["passed"] is True


@pytest.mark.parametrize(
    "sync", [lambda x: x.sum().item(), lambda x: x[x > 0], lambda x: x.nonzero(), lambda x: bool(x.all())]
)
def test_what_waits_for_the_host_is_seen(sync):
    for mode in (torch.no_grad, torch.inference_mode):
        with pytest.raises(SyncError), mode(), no_sync(CPU):
            sync(torch.ones(3))
    with no_sync(CPU):
        torch.ones(3)[torch.tensor([0, 2])].sum()


def test_so_is_a_refresh_that_branches(contest):
    engine = Engine(contest.model)
    session = engine.start(contest.inputs, make_policy("rcr", Settings(merge="branch")), 4)
    with pytest.raises(SyncError, match="is_nonzero"), no_sync(CPU):
        engine.step(session, engine.choose(session))


# ---- speed


def test_every_contestant_is_timed_at_every_prefix():
    (section,) = run_bench(small_plan("speed"))
    assert section.passed and not section.left_out
    steps, ratios = section.figures
    names = [GENERATE, *(name for name in POLICIES if name != "oracle"), "rcr, traced"]
    assert [row["contestant"] for row in steps.rows] == names
    for prefix in ("128", "256"):
        base = steps.rows[0][f"{prefix} seconds"]
        for row in steps.rows:
            assert row[f"{prefix} seconds"] > 0
            assert row[f"{prefix} ratio"] == pytest.approx(row[f"{prefix} seconds"] / base)
    assert ratios.rows == []  # they are of other contests


def test_a_contestant_at_a_time_where_memory_is_dear(contest):
    plan = small_plan("speed")
    said = []
    alone = replace(plan, prefixes=(PREFIX,), pace=replace(plan.pace, together=False))
    (section,) = run_bench(alone, said.append)
    assert len([words for words in said if words.startswith("speed: 128: ")]) == 11
    assert len(section.figures[0].rows) == 11


class Largest(TorchDispatchMode):
    """The most elements that any operator's result has."""

    def __init__(self):
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for one in result if isinstance(result, (list, tuple)) else [result]:
            if isinstance(one, torch.Tensor):
                self.numel = max(self.numel, one.numel())
        return result


def test_a_prefill_makes_neither_a_square_mask_nor_the_logits_of_all_positions(contest):
    long = random_prompt("long", contest.model, contest.tokenizer, 2016)
    assert long.length == 2048
    for enter in (partial(Generate, long), *map(_prefill(long), ("full", "rcr", "quest", "infinigen"))):
        with Largest() as largest:
            enter()
        # The feed-forward part is the widest; a word list of 640 and 2,048 positions are wider.
        assert largest.numel == 2048 * 608


def _prefill(contest):
    engine = Engine(contest.model)
    return lambda name: partial(Entrant(name).enter, engine, contest, 4)


# ---- memory


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "oracle"])
@pytest.mark.parametrize("offload", OFFLOADS)
def test_counted_bytes_are_those_of_the_formula(contest, name, offload):
    found = memory(contest, name, Settings(offload=offload))
    assert found.counted - found.beside == found.formula
    assert found.prefilled == found.decoded == found.counted  # slots are there before they are used


@pytest.mark.parametrize("offload", OFFLOADS)
def test_bytes_of_a_one_shot_policy_by_hand(contest, offload):
    found = memory(contest, "bacon", Settings(offload=offload), steps=8)
    slots = 2 * (32 + WINDOW + 8) * VECTOR * HEADS
    prefix, prompt = 2 * PREFIX * VECTOR * HEADS, 2 * (PREFIX + WINDOW) * VECTOR * HEADS
    aside = prefix if offload == "none" else 0
    assert found.decoded == LAYERS * (slots + aside)
    assert found.host == (0 if offload == "none" else LAYERS * prefix)
    assert found.peak == LAYERS * (slots + aside) + prompt
    assert found.resident == LAYERS * slots and found.beside == 0


def test_what_projects_is_told_apart(contest):
    assert memory(contest, "rcr", Settings(rank=8)).beside == LAYERS * HEADS * DEPTH * 8 * 4
    assert memory(contest, "infinigen", Settings(channels=32)).beside == LAYERS * HEADS * DEPTH * 32 * 4


# ---- offloading


def test_reads_are_counted_beside_the_formula(contest):
    settings = Settings(tau0=0.7, rho=0.5)
    masked = reads(contest, "rcr", replace(settings, offload="masked"))
    assert masked.asked == masked.fetched == masked.formula == 128 + 32
    some = reads(contest, "rcr", replace(settings, offload="conditional"))
    assert 0 < some.rate < 1 and some.rate == masked.rate
    assert some.asked == pytest.approx(some.formula) == pytest.approx(160 * some.rate)
    assert 0 < some.fetched < some.asked


def test_rows_are_drawn_by_head_and_in_runs():
    rows = random_rows(3, 100, 24, 8, seed=0).view(3, 3, 8)
    assert torch.equal(rows // 100, torch.arange(3).view(3, 1, 1).expand_as(rows))
    assert torch.equal(rows, rows[..., :1] + torch.arange(8))
    assert rows.unique().numel() == 72


def test_bandwidth_is_bytes_over_seconds():
    rows = torch.randn(2, 64, 16)
    found = gather_row(rows, HostRows(rows), [random_rows(2, 64, 10, 1, seed) for seed in range(3)])
    assert found["bytes"] == 2 * 10 * 16 * 4
    for where in ("host", "device"):
        assert found[f"{where} bandwidth"] * found[f"{where} seconds"] == pytest.approx(found["bytes"])


def test_the_section_has_a_row_for_every_reader_and_way():
    (section,) = run_bench(small_plan("offload"))
    assert section.passed and not section.left_out
    gathers, counted, steps = section.figures
    assert len(gathers.rows) == 4 and len(counted.rows) == 12
    assert "2 KV heads of 64" in gathers.note
    assert [row["policy"] for row in steps.rows][:2] == [GENERATE, "bacon"]
    assert all(row[f"{way} seconds"] > 0 for row in steps.rows[1:] for way in OFFLOADS)


# ---- static width


@pytest.mark.parametrize("policy", ["bacon", "snapkv", "threshold", "rcr", "quest", "arkvale"])
@pytest.mark.parametrize("changes", [{}, {"tau0": 0.7, "gain": 0.3}, {"update": "step", "gqa": "max"}])
def test_a_step_in_static_width_decodes_the_same(contest, policy, changes):
    assert same_tokens(contest, policy, Settings(select=16, window=8, **changes), replayed=False)


# ---- models


def test_a_random_model_is_made_in_its_own_dtype_and_runs():
    build = replace(SEVEN_B, layers=1, hidden=448, intermediate=64, heads=7, kv_heads=1)
    model, tokenizer = random_model(build, CPU)
    assert {weight.dtype for weight in model.parameters()} == {torch.bfloat16}
    assert model.model.language_model.layers[0].self_attn.q_proj.weight.shape == (7 * 128, 448)
    found = memory(random_prompt("bf16", model, tokenizer, PREFIX), "bacon", Settings(offload="masked"))
    assert found.decoded == found.formula == 2 * (32 + WINDOW + 8) * 128 * 2
