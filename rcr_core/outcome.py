"""What a run comes to, as numbers: for the command line, for the page, and for a study."""

from __future__ import annotations

from rcr_core.cost import cost, full_scan
from rcr_core.policies import POLICIES
from rcr_core.settings import Settings
from rcr_core.trace import Trace


def run_numbers(trace: Trace) -> dict[str, object]:
    """The run in numbers. Reads: D-wide vectors per KV head and layer-step, an upper bound (see `cost`).

    Of an offloaded prefix, `reads_asked` and `reads_fetched` were counted while it was decoded.

    Raises `SettingsError` where the trace has settings or a policy that this release does not know.
    """
    meta = trace.meta
    settings = settings_of(trace)
    spent = cost(meta.policy, settings, meta.prefix_length, meta.head_dim, trace.refresh_rate)
    numbers: dict[str, object] = {
        "policy": meta.policy,
        "prompt_tokens": meta.prompt_length,
        "prefix_entries": meta.prefix_length,
        "kept_entries": meta.prefix_length if keeps_all(trace) else settings.select,
        "steps": trace.steps,
        "stop_reason": meta.stop_reason,
        "refresh_rate": trace.refresh_rate,
        "rho": settings.rho,
        "mean_drift": trace.mean_drift,
        "reads": spent.reads,
        "full_scan_reads": full_scan(settings, meta.prefix_length),
    }
    if trace.asked is not None:
        numbers |= {"reads_asked": trace.reads(trace.asked), "reads_fetched": trace.reads(trace.fetched)}
    if _has_tau(trace):
        numbers["tau_end"] = trace.tau_end
    return numbers


def settings_of(trace: Trace) -> Settings:
    """The settings of a trace; whatever was recorded beside them is left out."""
    known = {name: trace.meta.settings[name] for name in Settings().to_dict() if name in trace.meta.settings}
    return Settings.from_dict(known)


def keeps_all(trace: Trace) -> bool:
    """Whether every layer kept its whole prefix."""
    return trace.meta.policy == "full" or trace.meta.prefix_length <= settings_of(trace).select


def _has_tau(trace: Trace) -> bool:
    """Whether any layer compared its drift with a threshold."""
    policy = POLICIES.get(trace.meta.policy)
    return policy is not None and policy.thresholds and trace.steps > 1 and not keeps_all(trace)
