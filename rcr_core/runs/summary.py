"""A run on one line of a list: how it stands, what it was asked, and what came of it."""

from __future__ import annotations

from rcr_core.errors import ScopeError
from rcr_core.outcome import run_numbers
from rcr_core.runs.fidelity import rouge_l
from rcr_core.runs.live import LiveRun
from rcr_core.runs.store import RunStore
from rcr_core.trace import Trace

_NUMBERS = {  # in a summary -> in the numbers of a run
    "refresh_rate": "refresh_rate",
    "mean_drift": "mean_drift",
    "tau_end": "tau_end",
    "reads": "reads",
    "full_scan_reads": "full_scan_reads",
    "reads_asked": "reads_asked",
    "reads_fetched": "reads_fetched",
    "prefix": "prefix_entries",
    "kept": "kept_entries",
}


def summary(run: LiveRun, owner: str, reference: LiveRun | None) -> dict[str, object]:
    """A run as plain JSON, for an owner; numbers that it does not have (yet) are None.

    `reference` is the run that its text is held against, see `reference_of`; its id is for those who see it.
    """
    standing = _standing(run)  # before the trace, which then is the whole of a run that is over
    trace = run.trace()
    mine = run.belongs_to(owner)
    named = reference is not None and (reference.public or reference.belongs_to(owner))
    graded = run.truth()
    return {
        **standing,
        **({"key": run.key} if mine else {}),
        "mine": mine,
        **_asked(trace),
        **_found(trace),
        "fidelity": _fidelity(run, trace, reference),
        "reference": reference.id if named else None,
        "truth": graded and {name: graded[name] for name in ("right", "total")},
    }


def reference_of(store: RunStore, run: LiveRun) -> LiveRun | None:
    """The newest finished `full` run of the same subject among those that the run's own owner sees.

    So a run is held against the same one whoever looks at it, and by whatever link.
    """
    if not run.subject or run.policy == "full":
        return None
    for other in store.list(run.owner):
        if other.policy == "full" and other.subject == run.subject and _is_whole(other):
            return other
    return None


def _is_whole(run: LiveRun) -> bool:
    """Whether a run came to the end of its text by itself."""
    return run.status == "done" and run.trace().meta.stop_reason in ("stop token", "length")


def _standing(run: LiveRun) -> dict[str, object]:
    error = run.error
    return {
        "id": run.id,
        "kind": run.kind,
        "label": run.label,
        "policy": run.policy,
        "status": run.status,
        "place": run.place,
        "error": error and {"message": error.message, "hint": error.hint},
        "created": run.created,
        "rate": run.rate,
        "public": run.public,
        "subject": run.subject,
        "bytes": run.bytes,
    }


def _asked(trace: Trace | None) -> dict[str, object]:
    if trace is None:
        return {"model": "", "settings": {}, "prompt": ""}
    return {"model": trace.meta.model, "settings": trace.meta.settings, "prompt": trace.meta.prompt}


def _found(trace: Trace | None) -> dict[str, object]:
    if trace is None:
        return {"steps": 0, "stop_reason": "", "text": "", **dict.fromkeys(_NUMBERS)}
    try:
        numbers = run_numbers(trace)
    except ScopeError:  # a file may name settings and policies that are not known here
        numbers = {}
    return {
        "steps": trace.steps,
        "stop_reason": trace.meta.stop_reason,
        "text": trace.text,
        **{name: numbers.get(source) for name, source in _NUMBERS.items()},
    }


def _fidelity(run: LiveRun, trace: Trace | None, reference: LiveRun | None) -> float | None:
    """Of whole texts only: against a whole one, part of a text says little."""
    if reference is None or trace is None or not _is_whole(run):
        return None
    return rouge_l(trace.text, reference.trace().text)
