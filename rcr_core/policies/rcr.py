"""Rate-Controlled Refresh and its fixed-threshold sibling: drift says when, the detector says what."""

from __future__ import annotations

import torch
from torch import Tensor

from rcr_core.attention_math import attend_slots, logits_of
from rcr_core.cache.store import KeysAtHand, KVStore
from rcr_core.control import RateController
from rcr_core.policies.bacon import Bacon
from rcr_core.policies.base import spread


class RateControlled(Bacon):
    """RCR. BACON selects at prefill; a layer whose drift exceeds tau selects again before it attends.

    With `merge="masked"` candidates are computed in every layer and merged under the trigger, so no decode
    step waits for the host; with `merge="branch"` they are computed only where the trigger fired. Both decode
    the same. An offloaded prefix has its own word in this: `offload` is either masked or conditional.
    """

    name = "rcr"
    title = "RCR"
    summary = "re-selects where drift exceeds tau; tau is steered towards the target rate rho"
    sketches = True
    thresholds = True
    edits = ("pin", "ban", "refresh", "hold", "tau", "rho")

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.controller: RateController | None = None
        # With `defer`: selections that act on the next step.
        self._pending: dict[int, tuple[Tensor, KeysAtHand]] = {}

    @property
    def gain(self) -> float:
        return self.settings.gain

    def prepare(self, layer: int, query: Tensor, store: KVStore) -> None:
        if self.controller is None:
            settings = self.settings
            device = store.prefix_k.device
            self.controller = RateController(settings.tau0, settings.rho, self.gain, settings.update, device)

    def begin_step(self, step: int) -> None:
        super().begin_step(step)
        if self.controller is None:
            return
        if (tau := self.gate.value("tau")) is not None:
            self.controller.set_tau(tau)
        if (rho := self.gate.value("rho")) is not None:
            self.controller.set_rho(rho)

    def end_step(self) -> None:
        if self.controller is not None:
            self.controller.end_step()

    def settle(self, layer: int, store: KVStore) -> None:
        if layer in self._pending:
            store.write(*self._pending.pop(layer))

    def attend(self, layer: int, query: Tensor, store: KVStore) -> Tensor:
        held = store.selected
        logits = store.logits(query)  # (H, G, n)
        everything = self.hybrid(layer, query, logits, store)  # (H, G, Np + W + generated)
        probability = everything.softmax(-1)
        share = probability.sum(1)  # (H, X), the mean over query heads but for a factor
        likely = share if self.settings.gqa == "mean" else probability.amax(1)
        drift = self.drift_of(share, query, store)
        tau = self.controller.tau
        fire = self.gate.fire(layer, self.controller.exceeded(drift))
        if not self.settings.branches or bool(fire):
            share = self._refresh(layer, query, store, everything, likely, fire)
        elif layer in self.diagnosis:
            self._candidates(layer, store, likely)
        self.controller.observe(fire)
        logits[..., : held.shape[1]] = everything.gather(2, spread(store.selected, everything))
        weights = logits.softmax(-1)
        if self.observe:
            self.show(layer, store, weights, share, drift, tau, fire)
        return attend_slots(weights, store.live_values())

    def _candidates(self, layer: int, store: KVStore, likely: Tensor) -> Tensor:
        """The C most likely prefix entries by the hybrid estimate, kept ones included: int64 [H, C]."""
        count = min(self.settings.candidate_count, store.prefix)
        candidates = self.biased(layer, likely[:, : store.prefix], store).topk(count, dim=-1).indices
        if layer in self.diagnosis:
            self.diagnosis[layer].judge(candidates, store.selected.shape[1])
        return candidates

    def _refresh(
        self, layer: int, query: Tensor, store: KVStore, everything: Tensor, likely: Tensor, fire: Tensor
    ) -> Tensor:
        """Score the candidates exactly, keep the best S, merge under the trigger.

        Refines `everything` [H, G, X] in place where the trigger fired, and returns its share [H, X].
        """
        held = store.selected
        candidates = self._candidates(layer, store, likely)
        where = spread(candidates, everything)
        at_hand = KeysAtHand(store.candidate_keys(candidates), candidates)
        exact = logits_of(query, at_hand.keys)  # (H, G, C)
        everything.scatter_(2, where, torch.where(fire, exact, everything.gather(2, where)))
        refined = everything.softmax(-1)
        share = refined.sum(1)
        score = (share if self.settings.gqa == "mean" else refined.amax(1)).gather(1, candidates)  # (H, C)
        bias = self.gate.bias(layer, store.prefix, score.device)
        if bias is not None:
            score = score + bias[candidates]
        best = candidates.gather(1, score.topk(held.shape[1], dim=-1).indices)
        best = best.topk(held.shape[1], dim=-1, largest=False).values  # ascending; cheaper than a sort
        chosen = torch.where(fire, best, held)
        if self.settings.defer:
            self._pending[layer] = chosen, at_hand
        else:
            store.write(chosen, at_hand)
        return share


class FixedDrift(RateControlled):
    """RCR with a frozen threshold tau0."""

    name = "threshold"
    title = "Fixed threshold"
    summary = "re-selects where drift exceeds a fixed tau0"
    edits = ("pin", "ban", "refresh", "hold", "tau")

    @property
    def gain(self) -> float:
        return 0.0
