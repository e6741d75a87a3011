"""What a run comes to, as the short table that it ends with."""

from __future__ import annotations

from rcr_core.control import TAU_LIMITS
from rcr_core.outcome import keeps_all, run_numbers, settings_of
from rcr_core.trace import Trace


def run_table(trace: Trace) -> dict[str, str]:
    """The numbers of a run for a person."""
    numbers = run_numbers(trace)
    kept = "all kept" if keeps_all(trace) else f"of which {numbers['kept_entries']} are kept per KV head"
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
    if "reads_fetched" in numbers:
        asked, fetched = numbers["reads_asked"], numbers["reads_fetched"]
        rows["reads counted"] = f"{fetched:.1f} fetched from host memory, of {asked:.1f} asked for"
    if "tau_end" in numbers:
        bound = ", at its limit" if numbers["tau_end"] in TAU_LIMITS else ""
        rows["tau at the end"] = f"{numbers['tau_end']:.4g} (started at {settings_of(trace).tau0:g}{bound})"
    return rows


def aligned(rows: dict[str, str]) -> str:
    """One row a line, values aligned."""
    width = max(len(name) for name in rows) + 2
    return "\n".join(f"{name:{width}s}{value}" for name, value in rows.items())
