"""Checks: what must decode the same does, and no step with a masked merge waits for the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from rcr_core.bench.contests import Contest
from rcr_core.bench.section import Attempts, Column, Figures
from rcr_core.engine import Engine
from rcr_core.errors import ScopeError
from rcr_core.policies import POLICIES, make_policy
from rcr_core.settings import Settings

TOKENS = 16
STEPS = 3  # watched for a sync, after one that may still set something up
# The oracle is left out: it decodes as any one-shot policy does.
SELECTING = tuple(name for name in POLICIES if name not in ("full", "oracle"))
WAYS = {
    "none, branch": {"merge": "branch"},
    "masked": {"offload": "masked"},
    "conditional": {"offload": "conditional"},
}
COLUMNS = (
    Column("check", "check", "text"),
    Column("contest", "on", "text"),
    Column("found", "found", "text"),
    Column("passed", "passed", "text"),
)
# Operators whose result the host has to know before it can go on.
_SYNCS = ("_local_scalar_dense", "item", "is_nonzero", "nonzero", "masked_select", "_unique2", "equal")


def checks(
    grounds: dict[str, Callable[[], Contest]], attempts: Attempts, settings: Settings
) -> list[Figures]:
    """One row a check and contest; what makes each contest comes by a short name."""
    rows = []
    for name, build in grounds.items():
        contest = attempts.run(f"model and prompt ({name})", build)
        if contest is None:
            continue
        seconds = 0.0
        work = {"keep-all is generate": lambda contest=contest: _keeps_all(contest)}
        for policy in SELECTING:
            work[f"{policy}: offloaded or branching, the same"] = lambda contest=contest, policy=policy: (
                _same_however(contest, policy, settings)
            )
        for offload in ("none", "masked"):
            work[f"no sync in a masked step, offload {offload}"] = lambda contest=contest, offload=offload: (
                _no_sync(contest, offload, settings)
            )
        for what, check in work.items():
            found = attempts.run(f"{what} ({name})", check, seconds)
            if found is not None:
                seconds = attempts.seconds
                rows.append({"check": what, "contest": name, "found": found[1], "passed": found[0]})
    return [Figures("checks", "Checks", COLUMNS, rows)]


Found = tuple[bool, str]


def _keeps_all(contest: Contest) -> Found:
    """Stock greedy `generate` against a policy that evicts nothing."""
    out = contest.model.generate(
        **contest.inputs,
        attention_mask=torch.ones_like(contest.inputs["input_ids"]),
        do_sample=False,
        repetition_penalty=1.0,
        max_new_tokens=TOKENS,
        eos_token_id=None,
        output_logits=True,
        return_dict_in_generate=True,
    )
    stock = out.sequences[0, contest.length :].tolist(), torch.cat(out.logits).float()
    return _compared(stock, decoded(contest, "full", Settings()), contest.device)


def _same_however(contest: Contest, policy: str, settings: Settings) -> Found:
    """A policy with the prefix on the device and a masked merge, against all other ways to do it."""
    reference = decoded(contest, policy, settings)
    found = {
        way: _compared(reference, decoded(contest, policy, replace(settings, **changes)), contest.device)
        for way, changes in WAYS.items()
    }
    wrong = [f"{way}: {words}" for way, (same, words) in found.items() if not same]
    if wrong:
        return False, "; ".join(wrong)
    return True, max((words for _, words in found.values()), key=len)


def decoded(contest: Contest, policy: str, settings: Settings) -> tuple[list[int], Tensor]:
    """Tokens and logits [TOKENS, V] of a policy."""
    engine, logits = Engine(contest.model), []
    for session in engine.stream(contest.inputs, make_policy(policy, settings), TOKENS):
        logits.append(session.logits)
    return session.tokens, torch.cat(logits)


def _compared(one: tuple[list[int], Tensor], other: tuple[list[int], Tensor], device: torch.device) -> Found:
    """The same tokens everywhere, and on the CPU the same logits."""
    if one[0] != other[0]:
        first = next(at for at, (a, b) in enumerate(zip(one[0], other[0], strict=True)) if a != b)
        away = (one[1][first] - other[1][first]).abs().max().item()
        return False, f"another token {first}, logits {away:.2g} apart there"
    if torch.equal(one[1], other[1]):
        return True, "same tokens, logits bit for bit"
    away = (one[1] - other[1]).abs().max().item()
    return device.type != "cpu", f"same tokens, logits up to {away:.2g} apart"


def _no_sync(contest: Contest, offload: str, settings: Settings) -> Found:
    """Decode steps of every policy, watched for anything that waits for the host."""
    engine = Engine(contest.model)
    form = "by the driver" if contest.device.type == "cuda" else "CPU form: operators counted"
    for name in ("full", *SELECTING):
        policy = make_policy(name, replace(settings, merge="masked", offload=offload))
        session = engine.start(contest.inputs, policy, STEPS + 1)
        engine.step(session, engine.choose(session))
        for _ in range(STEPS):
            token = engine.choose(session)
            try:
                with no_sync(contest.device):
                    engine.step(session, token)
            except SyncError as error:
                return False, f"{name}: {error.message} ({form})"
    return True, f"none ({form})"


class SyncError(ScopeError):
    """Something waited for the host where nothing may."""


@contextmanager
def no_sync(device: torch.device) -> Iterator[None]:
    """Raises `SyncError` where anything inside waits for the host.

    CUDA says so itself; elsewhere the operators are looked at that have to.
    """
    if device.type != "cuda":
        spy = _Spy()
        with spy:
            yield
        if spy.seen:
            raise SyncError(", ".join(sorted(spy.seen)))
        return
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    except RuntimeError as error:
        if "synchroniz" not in str(error):
            raise
        raise SyncError(str(error).splitlines()[0]) from error
    finally:
        torch.cuda.set_sync_debug_mode(before)


class _Spy(TorchDispatchMode):
    """Notes the operators that wait for the host, boolean indices among them."""

    def __init__(self):
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.__name__.split(".")[0]
        if name in _SYNCS or name.startswith("index") and any(map(_is_mask, args[1:])):
            self.seen.add(name)
        return func(*args, **(kwargs or {}))


def _is_mask(part) -> bool:
    parts = part if isinstance(part, (list, tuple)) else [part]
    return any(isinstance(one, Tensor) and one.dtype == torch.bool for one in parts)
