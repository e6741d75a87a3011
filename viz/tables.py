"""Tables of a run as CSV: its steps, its layer-steps, and every change of a selection.

Comma separated, with a heading row. Steps, layers and KV heads count from 0; step 0 is the prefill. A cell is
empty where a run has no such value. Numbers are written so that they read back as they stand in the trace.

A spreadsheet takes a cell that begins with =, +, - or @ for a formula. Text that begins so (after blanks and
apostrophes, if any), or with a tab or a carriage return, gets an apostrophe in front, and no other text does:
one apostrophe taken off such a cell gives the token's text back. Numbers stay as they are.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from rcr_core.trace import Trace, exchanges
from viz.layer_steps import MASS_KINDS, mean_mass, step_means, step_tau

_FORMULA = re.compile(r"[\s']*[=+\-@＝＋－＠]|'*[\t\r]")


def steps_table(trace: Trace) -> str:
    """A row per step.

    refresh_share and mean_drift are over the layers that decide at the step, tau is the threshold of the last
    of them, mass_* the attention by kind of entry (mean over the managed layers), seconds what the step took.
    """
    decided = trace.decided
    means = (step_means(trace.fire, decided), step_means(trace.drift, decided), step_tau(trace))
    mass = mean_mass(trace) if any(trace.meta.managed) else np.full((trace.steps, len(MASS_KINDS)), np.nan)
    timings = trace.meta.timings
    seconds = [timings["prefill"], *(timings["steps"] or [None] * trace.steps)]
    names = ("step", "token_id", "text", "logprob", "refresh_share", "mean_drift", "tau")
    kinds = [f"mass_{kind.replace(' ', '_')}" for kind in MASS_KINDS]
    rows = (
        [
            step,
            trace.tokens[step],
            plain(trace.meta.token_text[step]),
            trace.logprob[step],
            *(mean[step] for mean in means),
            *mass[step],
            seconds[step],
        ]
        for step in range(trace.steps)
    )
    return _csv([*names, *kinds, "seconds"], rows)


def layers_table(trace: Trace) -> str:
    """A row per layer-step.

    state is `decides`, `keeps all` (the whole prefix) or `passed through` (no policy selects there). tau is
    empty where the policy has none. changed_head_H counts the entries of KV head H that were not selected at
    the step before. missed, drift_exact and recall are there where the run recorded them.
    """
    heads = [f"changed_head_{head}" for head in range(trace.meta.kv_heads)]
    extra = [name for name in ("missed", "drift_exact", "recall") if getattr(trace, name) is not None]
    names = ["step", "layer", "state", "drift", "tau", "fire", *heads, *extra]
    return _csv(names, _layer_rows(trace, extra))


def _layer_rows(trace: Trace, extra: Sequence[str]) -> Iterable[list]:
    managed, blank = trace.meta.managed, [None] * trace.meta.kv_heads
    for step, exchange in enumerate(exchanges(trace)):
        if step == 0:
            continue
        changed = exchange.entered.sum(axis=2)
        for layer in range(trace.meta.layers):
            found = [getattr(trace, name)[step, layer] if managed[layer] else None for name in extra]
            if not (managed[layer] and exchange.compared[layer]):
                state = "keeps all" if managed[layer] else "passed through"
                yield [step, layer, state, None, None, None, *blank, *found]
                continue
            tau = trace.tau[step, layer]
            decision = [trace.drift[step, layer], tau if tau > 0 else None, trace.fire[step, layer]]
            yield [step, layer, "decides", *decision, *changed[layer], *found]


def selections_table(trace: Trace) -> str:
    """A row per step, layer and KV head where the selection changed.

    entered and left are prefix indices in ascending order, separated by blanks. The prefill's rows hold the
    first selection as a whole, so that the rows up to a step give the selection of that step.
    """
    rows = (
        [step, layer, head, _indices(exchange.entered[layer, head]), _indices(exchange.left[layer, head])]
        for step, exchange in enumerate(exchanges(trace))
        for layer, head in np.argwhere((exchange.entered | exchange.left).any(axis=2))
    )
    return _csv(["step", "layer", "kv_head", "entered", "left"], rows)


TABLES: dict[str, Callable[[Trace], str]] = {
    "steps": steps_table,
    "layers": layers_table,
    "selections": selections_table,
}


def plain(text: str | None) -> str | None:
    """Text that no spreadsheet takes for a formula, see above."""
    return f"'{text}" if text is not None and _FORMULA.match(text) else text


def _indices(chosen: np.ndarray) -> str:
    return " ".join(map(str, np.flatnonzero(chosen)))


def _csv(names: Sequence[str], rows: Iterable[Sequence]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(names)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _cell(value: object) -> object:
    """The shortest text that reads back as the same number; nothing for NaN."""
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else str(value)
    return value
