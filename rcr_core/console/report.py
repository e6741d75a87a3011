"""What a run comes to, as numbers for a machine and as the short table that a run ends with."""

from __future__ import annotations

from rcr_core.control import TAU_LIMITS
from rcr_core.cost import cost, full_scan
from rcr_core.policies import POLICIES
from rcr_core.settings import Settings
from rcr_core.trace import Trace


def run_numbers(trace: Trace) -> dict[str, object]:
    """The run in numbers. Reads: D-wide vectors per KV head and layer-step, an upper bound (see `cost`)."""
    meta = trace.meta
    settings = settings_of(trace)
    spent = cost(meta.policy, settings, meta.prefix_length, meta.head_dim, trace.refresh_rate)
    numbers: dict[str, object] = {
        "policy": meta.policy,
        "prompt_tokens": meta.prompt_length,
        "prefix_entries": meta.prefix_length,
        "kept_entries": meta.prefix_length if _keeps_all(trace) else settings.select,
        "steps": trace.steps,
        "stop_reason": meta.stop_reason,
        "refresh_rate": trace.refresh_rate,
        "rho": settings.rho,
        "mean_drift": trace.mean_drift,
        "reads": spent.reads,
        "full_scan_reads": full_scan(settings, meta.prefix_length),
    }
    if _has_tau(trace):
        numbers["tau_end"] = trace.tau_end
    return numbers


def run_table(trace: Trace) -> dict[str, str]:
    """The same for a person."""
    numbers = run_numbers(trace)
    kept = "all kept" if _keeps_all(trace) else f"of which {numbers['kept_entries']} are kept per KV head"
    target = f" (target {numbers['rho']:g})" if trace.meta.policy == "rcr" else ""
    scan = numbers["full_scan_reads"]
    most = f"at most {numbers['reads']:.1f} vectors per KV head and layer" if numbers["reads"] else "none"
    reads = f"{most} (full scan: {scan})"
    rows = {
        "policy": trace.meta.policy,
        "prompt tokens": f"{numbers['prompt_tokens']}",
        "prefix entries": f"{numbers['prefix_entries']}, {kept}",
        "steps": f"{numbers['steps']}",
        "stopped by": trace.meta.stop_reason or "still running",
        "refresh rate": f"{numbers['refresh_rate']:.3f} of layer-steps{target}",
        "mean drift": f"{numbers['mean_drift']:.4f}",
        "reads per step": reads,
    }
    if "tau_end" in numbers:
        bound = ", at its limit" if numbers["tau_end"] in TAU_LIMITS else ""
        rows["tau at the end"] = f"{numbers['tau_end']:.4g} (started at {settings_of(trace).tau0:g}{bound})"
    return rows


def settings_of(trace: Trace) -> Settings:
    """The settings of a trace; whatever was recorded beside them is left out."""
    known = {name: trace.meta.settings[name] for name in Settings().to_dict() if name in trace.meta.settings}
    return Settings.from_dict(known)


def aligned(rows: dict[str, str]) -> str:
    """One row a line, values aligned."""
    width = max(len(name) for name in rows) + 2
    return "\n".join(f"{name:{width}s}{value}" for name, value in rows.items())


def _has_tau(trace: Trace) -> bool:
    """Whether any layer compared its drift with a threshold."""
    policy = POLICIES.get(trace.meta.policy)
    return policy is not None and policy.thresholds and trace.steps > 1 and not _keeps_all(trace)


def _keeps_all(trace: Trace) -> bool:
    return trace.meta.policy == "full" or trace.meta.prefix_length <= settings_of(trace).select
