"""Every policy on every family runs and reports."""

from __future__ import annotations

import numpy as np
import pytest

from rcr_core.captioning import CaptionRequest
from rcr_core.policies import POLICIES
from rcr_core.settings import Settings
from tests.core.runs import FAMILIES, endless, prompt_for

STEPS = 12


@pytest.mark.parametrize("diagnostics", [False, True])
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("family", [*FAMILIES, "bundled"])
def test_every_policy_runs_and_reports(load, family, name, diagnostics):
    captioner = endless(load(family))
    prompt = prompt_for(captioner.loaded)
    settings = Settings(select=8, window=8, candidates=16, page=4, channels=8, diagnostics=diagnostics)
    run = captioner.run(prompt, CaptionRequest(name, settings, max_new_tokens=STEPS))
    records = list(run)
    trace = run.trace()
    assert trace.steps == len(records)
    # A last character that is still incomplete shows in `decode` only.
    whole = captioner.loaded.tokenizer.decode(trace.tokens.tolist(), skip_special_tokens=True)
    assert trace.text.rstrip("\ufffd") == whole.rstrip("\ufffd")
    np.testing.assert_allclose(trace.mass.sum(-1), 1.0, atol=1e-5)
    assert (trace.drift >= 0).all()
    assert (trace.drift <= 1).all()
    assert (trace.drift_exact is not None) == diagnostics
    if name == "full":
        assert not trace.drift.any()
        assert (trace.selected_row[1:] == -1).all()
    if "hold" in POLICIES[name].edits and not POLICIES[name].thresholds:
        assert trace.fire[1:].all()
    if diagnostics:
        assert (trace.recall is None) == (name not in ("rcr", "threshold"))
        if trace.recall is not None:
            assert ((trace.recall[1:] > 0) & (trace.recall <= 1)[1:]).all()
        assert (trace.top_position < trace.meta.prefix_length).all()


@pytest.mark.parametrize("name", ["bacon", "rcr", "exact"])
def test_the_detectors_drift_is_exact_at_full_rank(load, name):
    captioner = endless(load("qwen2_vl"))
    settings = Settings(select=8, window=8, rank=16, diagnostics=True)
    run = captioner.run(prompt_for(captioner.loaded), CaptionRequest(name, settings, max_new_tokens=STEPS))
    list(run)
    trace = run.trace()
    assert trace.drift[1:].max() > 0.01
    np.testing.assert_allclose(trace.drift, trace.drift_exact, atol=1e-5)


def test_diagnostics_and_recording_do_not_change_the_text(load):
    captioner = endless(load("qwen3_vl"))
    prompt = prompt_for(captioner.loaded)
    tokens = []
    for diagnostics in (False, True):
        settings = Settings(select=8, window=8, diagnostics=diagnostics)
        run = captioner.run(prompt, CaptionRequest("rcr", settings, max_new_tokens=STEPS))
        tokens.append([record.token for record in run])
    assert tokens[0] == tokens[1]


def test_pictures_add_up_to_the_masses(load):
    """Two paths to one number: the map on patches and the mass on selected visual entries."""
    captioner = endless(load("bundled"))
    prompt = prompt_for(captioner.loaded)
    run = captioner.run(prompt, CaptionRequest("rcr", Settings(), max_new_tokens=STEPS))
    list(run)
    trace = run.trace()
    pixels = trace.map_layer[1:].astype(np.float64) / 255 * trace.map_layer_scale[1:, :, None]
    in_prefix = trace.patch_position < trace.meta.prefix_length
    np.testing.assert_allclose(pixels[..., in_prefix].sum(-1), trace.mass[1:, :, 0], atol=0.02)


def test_skipped_layers_keep_their_whole_prefix(load):
    captioner = endless(load("qwen3_vl"))
    settings = Settings(select=8, window=8, skip_layers=2, tau0=0.3)
    run = captioner.run(prompt_for(captioner.loaded), CaptionRequest("rcr", settings, max_new_tokens=STEPS))
    list(run)
    trace = run.trace()
    assert (trace.selected_row[:, :2] == -1).all()
    assert (trace.selected_row[:, 2:] >= 0).all()
    assert not trace.drift[:, :2].any()
    # Only layers that evict something decide, so only they count.
    assert trace.refresh_rate == pytest.approx(trace.fire[1:, 2:].mean())
    assert trace.tau_end == trace.tau[-1, -1]


def test_layers_with_a_binding_sliding_window_pass_through_and_are_reported(load):
    loaded = load("llava_next", sliding_window=16)
    captioner = endless(loaded)
    prompt = prompt_for(loaded)
    run = captioner.run(prompt, CaptionRequest("rcr", Settings(select=8, window=8), max_new_tokens=STEPS))
    list(run)
    trace = run.trace()
    assert trace.meta.managed == (False,) * 4
    assert not trace.fire.any()
    assert any("sliding window" in note for note in trace.meta.notes)
