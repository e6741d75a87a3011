"""RCR follows its step equations layer by layer and step by step, and meets its limits exactly."""

import math

import numpy as np
import pytest
import torch

from rcr_core.cache.store import KVStore
from rcr_core.edits import Edit, Gate
from rcr_core.policies import make_policy
from rcr_core.settings import Settings
from tests.core.references import Case, RcrLayer, bacon, exact_selection, prompt_scores, top

SIZES = {"select": 5, "window": 6, "rank": 3, "candidates": 10}
PREFIX, STEPS = 34, 6
ALWAYS, NEVER = {"tau0": 1e-6, "gain": 0.0}, {"tau0": 1.0, "gain": 0.0}


class Run:
    """A policy and its stores over a few layers; every layer is one case."""

    def __init__(self, name: str, cases: list[Case], edits=(), observe=True, **changes):
        self.policy = make_policy(name, Settings(**{**SIZES, **changes}), Gate(edits), observe)
        self.cases, self.stores = cases, [KVStore(STEPS) for _ in cases]
        self.policy.begin_step(0)
        for layer, (case, store) in enumerate(zip(cases, self.stores, strict=True)):
            self.policy.prefill(layer, case.fill(store), store, case.scale)

    @property
    def selected(self) -> list[list[list[int]]]:
        return [store.selected.tolist() for store in self.stores]

    def step(self, at: int) -> list[torch.Tensor]:
        """Outputs of all layers for token `at` (of step at + 1)."""
        self.policy.begin_step(at + 1)
        outputs = []
        for layer, (case, store) in enumerate(zip(self.cases, self.stores, strict=True)):
            outputs.append(self.policy.decode(layer, case.feed(store, at), store, case.scale))
        self.policy.end_step()
        return outputs

    def steps(self) -> list[tuple[torch.Tensor, list]]:
        """Outputs and selections after every step."""
        return [(torch.stack(self.step(at)), self.selected) for at in range(STEPS)]


def cases(layers: int = 3) -> list[Case]:
    return [Case.random(seed, steps=STEPS) for seed in range(layers)]


def first_selections(layers: list[Case], how: str = "mean") -> list[list[list[int]]]:
    before, result = [], []
    for case in layers:
        base, evidence = prompt_scores(case, SIZES["window"], how)
        score = bacon(base, evidence, before, SIZES["select"], "paper")
        before.append(evidence)
        result.append([top(row, SIZES["select"]) for row in score])
    return result


def references(layers: list[Case], **changes) -> list[RcrLayer]:
    knobs = {"rank": 3, "candidates": 10, "gqa": "mean", **changes}
    pairs = zip(layers, first_selections(layers, knobs["gqa"]), strict=True)
    return [RcrLayer(case, selected, SIZES["window"], **knobs) for case, selected in pairs]


def compare(run: Run, wanted: list[RcrLayer], tau: float, gain: float, update="layer", verdicts=None):
    """Run all steps beside the references, which steer their own tau; returns every decision."""
    fires = []
    for at in range(STEPS):
        outputs, share = run.step(at), []
        for layer, reference in enumerate(wanted):
            drift, fire, output = reference.step(at, tau, (verdicts or {}).get((at + 1, layer)))
            view = run.policy.views[layer]
            assert view.drift.item() == pytest.approx(drift, abs=1e-5)
            assert view.tau.item() == pytest.approx(tau, rel=1e-6)
            assert bool(view.fire) == fire
            assert run.selected[layer] == reference.selected
            np.testing.assert_allclose(outputs[layer].numpy(), output, atol=1e-5)
            share.append(fire)
            if update == "layer":
                tau *= math.exp(gain * (fire - 0.4))
        if update == "step":
            tau *= math.exp(gain * (np.mean(share) - 0.4))
        fires += share
    return fires


@pytest.mark.parametrize("how", ["mean", "max"])
@pytest.mark.parametrize("update", ["layer", "step"])
@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("defer", [False, True])
@pytest.mark.parametrize("merge", ["masked", "branch"])
def test_every_decode_step_follows_the_step_equations(merge, defer, centre, update, how):
    knobs = {"defer": defer, "centre": centre, "gqa": how}
    run = Run("rcr", cases(), tau0=0.45, gain=0.3, merge=merge, update=update, **knobs)
    assert run.selected == first_selections(cases(), how)
    fires = compare(run, references(cases(), **knobs), 0.45, 0.3, update)
    assert 3 < sum(fires) < len(fires) - 3  # both kinds of decision were seen


def same_steps(one: list, other: list, exactly: bool):
    for (output, selected), (output_too, selected_too) in zip(one, other, strict=True):
        assert selected == selected_too
        torch.testing.assert_close(output, output_too, rtol=0, atol=0 if exactly else 1e-5)


@pytest.mark.parametrize("defer", [False, True])
def test_masked_merge_and_branch_decode_the_same_bits(defer):
    knobs = {"tau0": 0.45, "gain": 0.3, "defer": defer}
    same_steps(*(Run("rcr", cases(), merge=merge, **knobs).steps() for merge in ("masked", "branch")), True)


def test_observing_changes_nothing():
    knobs = {"tau0": 0.45, "gain": 0.3}
    seen = Run("rcr", cases(), diagnostics=True, **knobs).steps()
    same_steps(seen, Run("rcr", cases(), observe=False, **knobs).steps(), True)


@pytest.mark.parametrize("how", ["mean", "max"])
@pytest.mark.parametrize("merge", ["masked", "branch"])
def test_with_a_full_sketch_and_all_candidates_it_is_exact_reselection(merge, how):
    knobs = {"rank": 8, "candidates": PREFIX, "merge": merge, "gqa": how, **ALWAYS}
    steps = Run("rcr", cases(), **knobs).steps()
    same_steps(steps, Run("exact", cases(), gqa=how).steps(), False)
    for at, (_, selected) in enumerate(steps):
        assert selected == [exact_selection(case, at, 6, 5, how) for case in cases()]


@pytest.mark.parametrize("merge", ["masked", "branch"])
@pytest.mark.parametrize("name", ["rcr", "threshold"])
def test_a_threshold_that_nothing_exceeds_is_bacon(name, merge):
    run = Run(name, cases(), merge=merge, **NEVER)
    same_steps(run.steps(), Run("bacon", cases()).steps(), True)


def test_the_fixed_threshold_never_moves_whatever_the_gain():
    fires = compare(Run("threshold", cases(), tau0=0.65, gain=5.0), references(cases()), 0.65, 0.0)
    assert 0 < sum(fires) < len(fires)


@pytest.mark.parametrize("length", [5, 6, 11])
def test_a_prefix_that_fits_is_kept_whole_and_moves_no_threshold(length):
    run = Run("rcr", [Case.random(length=length, steps=STEPS)])
    for at in range(STEPS):
        assert run.step(at) == [None]
    assert run.stores[0].whole and run.policy.views[0].drift == 0
    assert run.policy.controller is None


@pytest.mark.parametrize("sharp", [0.0, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("name", ["rcr", "bacon", "exact", "quest"])
def test_drift_is_a_share(name, sharp):
    layers = [Case.random(seed, steps=STEPS, sharp=sharp) for seed in range(4)]
    run = Run(name, layers, page=4)
    for at in range(STEPS):
        run.step(at)
        assert all(0.0 <= run.policy.views[layer].drift.item() <= 1.0 for layer in range(4))


def test_edits_force_and_hold_a_refresh_and_the_controller_counts_them():
    edits = (Edit("refresh", 1), Edit("hold", 2, until=3), Edit("refresh", 3, layer=0), Edit("refresh", 6))
    verdicts = {(step, layer): step in (1, 6) for step in (1, 2, 3, 6) for layer in range(3)} | {(3, 0): True}
    for merge in ("masked", "branch"):
        run = Run("rcr", cases(), edits, tau0=0.45, gain=0.3, merge=merge)
        compare(run, references(cases()), 0.45, 0.3, verdicts=verdicts)


def test_an_edit_may_name_a_layer_beyond_the_first():
    run = Run("rcr", cases(), (Edit("refresh", 2, layer=2),), **NEVER)
    compare(run, references(cases()), 1.0, 0.0, verdicts={(2, 2): True})


def test_edits_of_tau_and_rho_steer_from_their_step_on():
    run = Run("rcr", cases(1), (Edit("tau", 3, value=0.9), Edit("rho", 4, value=0.0)), tau0=1.0, gain=0.1)
    taus = []
    for at in range(STEPS):
        run.step(at)
        taus.append(run.policy.views[0].tau.item())
    down = math.exp(-0.1 * 0.4)
    assert taus == pytest.approx([1.0, down, 0.9, 0.9 * down, 0.9 * down, 0.9 * down], rel=1e-6)


def test_a_pin_takes_the_weakest_slot_and_a_ban_leaves_its_own_to_the_best():
    scores, (reference,) = bacon(*prompt_scores(cases()[0], 6), [], 5, "paper"), references(cases(1))
    reference.step(0, 1e-6)
    kept = reference.selected  # of a refresh, no longer the best of the prefill
    pin = next(i for i in range(PREFIX) if i not in kept[0] and i not in kept[1])
    ban = max(kept[0], key=lambda i: scores[0][i])
    edits = (Edit("pin", 2, index=pin), Edit("ban", 4, index=ban), Edit("hold", 2, until=STEPS))
    seen = [selected[0] for _, selected in Run("rcr", cases(1), edits, **ALWAYS).steps()]
    assert seen[0] == kept != first_selections(cases(1))[0]
    for h in range(2):
        weakest = min(kept[h], key=lambda i: scores[h][i])
        pinned = sorted({*kept[h], pin} - {weakest})
        best = max((i for i in range(PREFIX) if i not in pinned and i != ban), key=lambda i: scores[h][i])
        banned = sorted({*pinned, best} - {ban}) if ban in pinned else pinned
        assert [step[h] for step in seen[1:]] == [pinned, pinned, banned, banned, banned]


def never_selected(steps: list) -> int:
    return next(i for i in range(PREFIX) if not any(i in row for _, selected in steps for row in selected[0]))


@pytest.mark.parametrize("merge", ["masked", "branch"])
def test_a_refresh_respects_pins_and_bans(merge):
    case, bias = cases(1)[0], np.zeros(PREFIX)
    free = Run("rcr", [case], **ALWAYS).steps()
    pin, ban = never_selected(free), free[2][1][0][0][0]
    run = Run("rcr", [case], (Edit("pin", 1, index=pin), Edit("ban", 1, index=ban)), merge=merge, **ALWAYS)
    bias[pin], bias[ban] = math.inf, -math.inf
    reference = references([case])[0]
    run.step(0)
    reference.selected = run.selected[0]
    for at in range(1, STEPS):
        (output,) = run.step(at)
        _, _, expected = reference.step(at, 1e-6, bias=bias)
        assert run.selected == [reference.selected]
        assert all(pin in row and ban not in row for row in run.selected[0])
        np.testing.assert_allclose(output.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("merge", ["masked", "branch"])
@pytest.mark.parametrize("limits", [ALWAYS, NEVER], ids=["always", "never"])
def test_a_pin_holds_from_its_step_on_though_refreshes_are_deferred(limits, merge):
    (case,) = cases(1)
    free = Run("rcr", [case], defer=True, **limits).steps()
    pin = never_selected(free)
    run = Run("rcr", [case], (Edit("pin", 3, index=pin),), defer=True, merge=merge, **limits)
    for _, selected in run.steps()[2:]:
        assert all(pin in row for row in selected[0])


def test_diagnostics_tell_exact_drift_recall_and_top_position():
    (case,) = cases(1)
    run = Run("rcr", [case], diagnostics=True, **ALWAYS)
    (sketched,), (exact,) = references([case]), references([case], rank=8)
    for at in range(STEPS):
        sketched.selected = exact.selected = run.selected[0]
        drift, truth = exact.step(at, 1.0)[0], exact_selection(case, at, 6, 5)
        pool = [sketched.candidates_of(h, at) for h in range(2)]
        run.step(at)
        diagnosis = run.policy.diagnosis[0]
        assert diagnosis.drift_exact.item() == pytest.approx(drift, abs=1e-5)
        hits = [i in pool[h] for h in range(2) for i in truth[h]]
        assert diagnosis.recall.item() == pytest.approx(np.mean(hits), abs=1e-6)
        logits = np.einsum("hgd,hxd->hgx", case.next_queries[at], case.keys[:, :PREFIX])
        assert diagnosis.top_position.tolist() == logits.argmax(-1).tolist()
