"""The decode step in static-width form, and on CUDA as a replayed graph, beside the eager step."""

from __future__ import annotations

from dataclasses import dataclass

from rcr_core.bench.contestants import GENERATE, Enters, Entrant
from rcr_core.bench.contests import Contest
from rcr_core.bench.fixed_width import FixedWidthDecode, ReplayedDecode
from rcr_core.bench.section import Attempts, Column, Figures
from rcr_core.bench.speed import Pace, turns
from rcr_core.engine import Engine
from rcr_core.policies import make_policy
from rcr_core.settings import Settings

SHOWN = ("bacon", "rcr", "quest")
TOKENS = 16
COLUMNS = (
    Column("policy", "policy", "text"),
    Column("form", "form of the step", "text"),
    Column("seconds", "ms", "ms"),
    Column("eager ratio", "to its eager step", "ratio"),
    Column("generate ratio", "to generate", "ratio"),
    Column("passed", "same tokens", "text"),
)


@dataclass(frozen=True)
class FixedWidthEntrant:
    """A policy in static-width form; replayed: as a CUDA graph."""

    policy: str
    settings: Settings
    replayed: bool

    def enter(self, engine: Engine, contest: Contest, room: int) -> FixedWidthDecode:
        form = ReplayedDecode if self.replayed else FixedWidthDecode
        return form(engine, contest, make_policy(self.policy, self.settings), room)


def graphs(
    contest: Contest, exact: Contest, attempts: Attempts, settings: Settings, pace: Pace
) -> list[Figures]:
    """One table: policies by the form of their step. Tokens are compared on `exact`, in float32."""
    forms = {"static width": False} | ({"replayed graph": True} if contest.device.type == "cuda" else {})
    everyone: dict[str, Enters] = {GENERATE: Entrant(GENERATE)}
    everyone |= {f"{policy}, eager": Entrant(policy, settings) for policy in SHOWN}
    for policy in SHOWN:
        for form, replayed in forms.items():
            everyone[f"{policy}, {form}"] = FixedWidthEntrant(policy, settings, replayed)
    seconds = turns(contest, everyone, attempts, pace, "steps", attempts.seconds)
    rows = []
    for name, found in seconds.items():
        policy, _, form = name.partition(", ")
        eager, stock = seconds.get(f"{policy}, eager"), seconds.get(GENERATE)
        row = {"policy": policy, "form": form, "seconds": found}
        row |= {"eager ratio": found / eager} if eager else {}
        row |= {"generate ratio": found / stock} if stock else {}
        if form in forms:
            row["passed"] = attempts.run(
                f"tokens of {name}",
                lambda policy=policy, form=form: same_tokens(exact, policy, settings, forms[form]),
            )
        rows.append(row)
    return [Figures("graph", f"Static width: {contest.title}", COLUMNS, rows)]


def same_tokens(contest: Contest, policy: str, settings: Settings, replayed: bool) -> bool:
    """Whether a policy in static-width form decodes what its normal step does."""
    engine = Engine(contest.model)
    *_, session = engine.stream(contest.inputs, make_policy(policy, settings), TOKENS)
    decode = FixedWidthEntrant(policy, settings, replayed).enter(engine, contest, TOKENS)
    found = list(decode.first)
    while len(found) < TOKENS:
        decode.advance()
        found.append(int(decode.token))
    return found == session.tokens
