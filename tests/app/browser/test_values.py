"""What the page shows of a run is what the run recorded: values, masks, sentences, tables, and the pixels."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.app.browser import truths
from tests.app.browser.opening import go, hold, opened, owners_context, watching
from tests.app.browser.shapes import SLIDING_LAYER, WHOLE_LAYER, H, L, N, made_trace

RUNS = {"a": ("tiled", "rcr"), "b": ("tiled", "bacon")}
MAPS = ["attention", "missed", "full"]


@pytest.fixture(scope="module")
def traces():
    return {which: made_trace(*about) for which, about in RUNS.items()}


@pytest.fixture(scope="module")
def pair(store, traces):
    """The part of the address that names both runs."""
    return "&".join(f"{which}={hold(store, trace).id}" for which, trace in traces.items())


@pytest.fixture(scope="module")
def scope(chromium, address, pair):
    """A page with both runs open, which the tests of this file share."""
    with watching(chromium, address) as watched:
        yield opened(owners_context(watched, address), address, f"{pair}&s=1&f=0")


@pytest.fixture
def rng(request):
    return np.random.default_rng(list(request.node.name.encode()))


@pytest.mark.parametrize("map_name", MAPS)
def test_values_are_the_recorded_ones(scope, traces, rng, map_name):
    for _ in range(50):
        which, layer = rng.choice(["a", "b"]), rng.choice(["mean", *range(L)])
        layer = layer if layer == "mean" else int(layer)
        trace, step = traces[which], int(rng.integers(N))
        patch = int(rng.integers(len(trace.patch_position)))
        shown = scope.evaluate("(of) => rcrScope.value(...of)", [which, step, layer, patch, map_name])
        expected = truths.value(trace, step, layer, map_name)[patch]
        if layer == "mean" and map_name != "attention":  # a sum, which rounds by its order
            assert shown == pytest.approx(expected, rel=1e-5)
        else:
            assert shown == expected


def test_values_per_kv_head_are_the_recorded_ones(scope, traces, rng):
    for _ in range(50):
        which, step, layer, head = (
            rng.choice(["a", "b"]),
            *map(int, (rng.integers(N), rng.integers(L), rng.integers(H))),
        )
        patch = int(rng.integers(len(traces[which].patch_position)))
        shown = scope.evaluate(
            "(of) => rcrScope.value(...of)", [which, step, layer, patch, "attention", head]
        )
        assert shown == truths.value(traces[which], step, layer, head=head)[patch]


def test_masks_are_the_recorded_ones(scope, traces):
    masks = """([which, step, layer, head, count]) =>
      Array.from({ length: count }, (_, patch) => rcrScope.kept(which, step, layer, head, patch))"""
    for which, trace in traces.items():
        for step, layer in [(0, 2), (1, 3), (7, 3), (N - 1, L - 1), (5, WHOLE_LAYER), (5, SLIDING_LAYER)]:
            expected = truths.kept(trace, step, layer)
            count = expected.shape[1]
            for head in range(H):
                shown = scope.evaluate(masks, [which, step, layer, head, count])
                np.testing.assert_array_equal(shown, expected[head])
            shown = scope.evaluate(masks, [which, step, layer, "mean", count])
            np.testing.assert_array_equal(shown, expected.any(0))


def test_captions_show_refreshes_and_attention_on_the_image(scope, traces):
    words = scope.evaluate("""() => [...document.querySelectorAll(".scope-words")].map((box) =>
      [...box.querySelectorAll(".scope-word")].map(({ textContent, style }) =>
        [textContent, style.getPropertyValue("--image"), style.getPropertyValue("--fire")]))""")
    for shown, trace in zip(words, traces.values(), strict=True):
        texts = [text.replace("\n", "⏎") for text in trace.meta.token_text]
        assert [text for text, _, _ in shown] == texts
        for step, (_, image, fire) in enumerate(shown):
            assert float(image) == pytest.approx(truths.visual_share(trace, step), abs=0.00051)
            assert float(fire) == pytest.approx(truths.refresh_share(trace, step), abs=0.00051)


@pytest.mark.parametrize("layer", ["mean", 3, WHOLE_LAYER, SLIDING_LAYER])
def test_the_tables_are_the_recorded_numbers(scope, pair, traces, layer):
    go(scope, f"{pair}&s=1&f=0&l={layer}")
    scope.evaluate(
        """() => document.querySelectorAll(".scope-tables details").forEach((one) => (one.open = true))"""
    )
    scope.wait_for_function(f"document.querySelectorAll('.scope-table tbody tr').length === {2 * N}")
    shown = scope.evaluate("""() => [...document.querySelectorAll(".scope-table tbody")].map((body) =>
      [...body.rows].map((row) => [...row.cells].map((cell) => cell.textContent)))""")
    for rows, trace in zip(shown, traces.values(), strict=True):
        assert [row[2:] for row in rows] == [table_row(trace, step, layer) for step in range(N)]
        assert [row[0] for row in rows] == [str(step) for step in range(N)]


def table_row(trace, step, layer):
    """Drift, tau, refreshed, entries exchanged, layers refreshed, which."""
    layers = truths.deciding(trace, step)
    which = ", ".join(str(one) for one in layers if trace.fire[step, one])
    if layer != "mean":
        layers = layers[layers == layer]
    exchanged = sum(sum(truths.entries_exchanged(trace, step, one)) for one in layers)
    share = truths.percent(truths.refresh_share(trace, step))
    if not len(layers):
        return ["", "", "", str(exchanged), share, which]
    fired = trace.fire[step, layers]
    refreshed = f"{fired.sum()} of {len(layers)}" if layer == "mean" else "yes" if fired[0] else "no"
    drift, tau = (array[step, layers].mean(dtype=np.float64) for array in (trace.drift, trace.tau))
    return [truths.short(drift), truths.short(tau) if tau else "", refreshed, str(exchanged), share, which]


def test_the_reasons_give_the_recorded_numbers(scope, pair, traces, rng):
    trace, told = traces["a"], set()
    for _ in range(20):
        step, layer = int(rng.integers(1, N)), int(rng.integers(2, L))
        go(scope, f"{pair}&f=0&s={step}&l={layer}")
        sentence = scope.locator(".scope-why").first.text_content()
        fired = bool(trace.fire[step, layer])
        verb = "refreshed" if fired else "kept its selection"
        drift, tau = trace.drift[step, layer], trace.tau[step, layer]
        relation = f"drift {truths.short(drift)} {'>' if drift > tau else '≤'} tau {truths.short(tau)}"
        assert re.match(rf"Layer {layer} {verb}(, by an edit)?: {re.escape(relation)}", sentence), sentence
        assert ("by an edit" in sentence) == (fired != (drift > tau))
        if fired:
            check_exchanges(sentence, trace, step, layer, drift)
        told.add(fired)
    assert told == {True, False}


def check_exchanges(sentence, trace, step, layer, drift):
    counts = truths.entries_exchanged(trace, step, layer)
    if any(counts):
        found = re.findall(r"(\d+)(?: of \d+ entries exchanged)? in KV head (\d)", sentence)
        assert found == [(str(count), str(head)) for head, count in enumerate(counts)]
    else:
        assert "none of 10 entries exchanged" in sentence
    after = trace.missed[step, layer]
    verb = "fell" if after < drift else "went"
    ends = f"missed mass {verb} from {truths.percent(drift, 1)} to {truths.percent(after, 1)}."
    assert sentence.endswith(ends), (sentence, ends)


def test_the_reason_of_a_whole_step_counts_its_layers(scope, pair, traces):
    for step in (1, 7, N - 1):
        go(scope, f"{pair}&f=0&s={step}")
        layers, trace = truths.deciding(traces["a"], step), traces["a"]
        sentence = scope.locator(".scope-why").first.text_content()
        assert f"{trace.fire[step, layers].sum()} of {len(layers)} layers refreshed" in sentence
        drift, tau = (array[step, layers].mean(dtype=np.float64) for array in (trace.drift, trace.tau))
        assert f"mean drift {truths.short(drift)} against tau {truths.short(tau)}" in sentence


@pytest.mark.parametrize("layer", ["mean", 4])
def test_the_note_under_a_pane_is_of_the_chosen_layer(scope, pair, traces, layer):
    go(scope, f"{pair}&f=0&s=9&l={layer}")
    trace, managed = traces["a"], np.array(traces["a"].meta.managed)
    layers = np.flatnonzero(managed) if layer == "mean" else [layer]
    decide = [one for one in layers if one in truths.deciding(trace, 9)]
    drift, missed = (array[9, decide].mean(dtype=np.float64) for array in (trace.drift, trace.missed))
    on_image = trace.mass[9, layers, 0].mean(dtype=np.float64)
    note = scope.locator(".scope-pane-note").first.text_content()
    after = f"missed after the decision {truths.percent(missed, 1)}; "
    assert note.startswith(f"drift {truths.percent(drift, 1)}, {after}")
    assert f"{truths.percent(on_image)} on kept patches" in note
