"""What every policy shares: selection at prefill, attention over live slots, the view of a step.

A policy sees queries, stores and nothing of the model family. One object serves one run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from rcr_core.attention_math import attend_slots, evicted_mass, logits_of, scaled_query, top_sorted
from rcr_core.cache.store import KVStore
from rcr_core.detector import Sketch
from rcr_core.edits import Gate
from rcr_core.policies.diagnostics import Diagnosis, diagnose, moved, nothing_evicted
from rcr_core.settings import Settings


@dataclass
class LayerView:
    """What one layer saw at one step, on the device; the recorder turns the views of a step into a record.

    weights float32 [H, G, n]: the attention as it was, over the live slots in their order (at prefill over
    the whole prompt); share float32 [H, Np + W + generated]: the best known attention on everything, summed
    over the query heads of a KV head (None where nothing is evicted); prefix: Np; selected int64 [H, S] after
    the decision, or None (whole prefix kept); drift, tau, fire: scalars; attended: False at prefill, where
    the whole prompt takes part whatever is selected.
    """

    weights: Tensor
    share: Tensor | None
    prefix: int
    selected: Tensor | None
    drift: Tensor
    tau: Tensor
    fire: Tensor
    attended: bool = True
    diagnosis: Diagnosis | None = None

    def on(self, device: torch.device) -> LayerView:
        """The view on a device: itself where it is there already."""
        return self if self.weights.device == device else replace(self, **moved(self, device))


class Policy:
    """Base of all policies.

    `prefill` is called once per managed layer, in order; `decode` once per layer and step.
    observe: also keep a `LayerView` per layer and step in `views`. It never changes what is decoded.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]
    sketches: ClassVar[bool] = False  # decides with the detector
    edits: ClassVar[tuple[str, ...]] = ("pin", "ban")  # the kinds of edits that it can follow
    thresholds: ClassVar[bool] = False  # compares drift with tau
    guesses: ClassVar[bool] = False  # wants the query guessed from the layer before
    rehearses: ClassVar[bool] = False  # wants the attention of an uncompressed run first

    def __init__(self, settings: Settings, gate: Gate | None = None, observe: bool = False):
        self.settings = settings
        self.gate = gate or Gate()
        self.observe = observe
        self.views: dict[int, LayerView] = {}
        self.diagnosis: dict[int, Diagnosis] = {}
        self.sketch: dict[int, Sketch] = {}
        self._prior: dict[int, Tensor] = {}  # prefill scores, kept only where pins or bans may re-rank them
        self._zero: dict[torch.device, Tensor] = {}

    # ---- prefill

    def prefill(self, layer: int, query: Tensor, store: KVStore, scale: float) -> None:
        """Score, select and compact one layer after its full attention. query [1, H*G, T, D]."""
        length = store.prompt_k.shape[2]
        window = min(self.settings.window, length)
        prefix = length - window
        if self.observe:
            self._view_prompt(layer, query, store, scale, prefix)
        if self.keeps_all(layer, prefix):
            store.keep_all(window)
            return
        score = self.score(layer, query, store, scale, window)
        if self.gate.edits:
            self._prior[layer] = score
        store.split(window)
        if self.sketches or self.observe:
            self.sketch[layer] = Sketch.of(store.prefix_k, self.settings.rank, self.settings.centre)
        self.prepare(layer, query, store)
        store.compact(top_sorted(score, self.settings.select), window)  # the prefix may leave the device
        if self.observe:
            self.views[layer].selected = store.selected

    def keeps_all(self, layer: int, prefix: int) -> bool:
        """Whether a layer keeps its whole prefix: a skipped layer, or no more entries than slots."""
        return layer < self.settings.skip_layers or prefix <= self.settings.select

    def score(self, layer: int, query: Tensor, store: KVStore, scale: float, window: int) -> Tensor:
        """Scores of the prefix at prefill, float32 [H, Np]."""
        raise NotImplementedError

    def prepare(self, layer: int, query: Tensor, store: KVStore) -> None:
        """Build what `decode` needs of a layer from `store.prefix_k`, which is put aside after that."""

    # ---- decode

    def decode(self, layer: int, query: Tensor, store: KVStore, scale: float) -> Tensor | None:
        """One decode step of one layer, before its attention.

        query [1, H*G, 1, D]; its key and value are already in the store. Returns the attention output [H, G,
        D], or None where the whole prefix is kept and stock attention does it.
        """
        scaled = scaled_query(query, store.keys.shape[1], scale)
        self.settle(layer, store)
        if self.gate.moved(layer) and not store.whole:
            store.write(self._with_pins(layer, store))
        if self.observe and self.settings.diagnostics:
            self.diagnosis[layer] = diagnose(scaled, store)
        if store.whole:
            if self.observe:
                weights = logits_of(scaled, store.live_keys()).softmax(-1)
                self.show(layer, store, weights, None, self.zero_on(scaled.device))
            return None
        return self.attend(layer, scaled, store)

    def attend(self, layer: int, query: Tensor, store: KVStore) -> Tensor:
        """Decide (one-shot: nothing), then attend over the live slots. query float32 [H, G, D], scaled."""
        logits = store.logits(query)  # (H, G, n)
        weights = logits.softmax(-1)
        if self.observe:
            share = self.share(layer, query, logits, store)
            self.show(layer, store, weights, share, self.drift_of(share, query, store))
        return attend_slots(weights, store.live_values())

    def settle(self, layer: int, store: KVStore) -> None:
        """Carry out what an earlier step decided for this one."""

    @property
    def decision_bytes(self) -> int:
        """Bytes that the policy keeps on the device to decide with, all layers together."""
        return sum(sketch.resident_bytes for sketch in self.sketch.values()) if self.sketches else 0

    def end_step(self) -> None:
        """Called after the last layer of a step."""

    def begin_step(self, step: int) -> None:
        """Called before the first layer of a step."""
        self.gate.begin_step(step)
        self.views.clear()
        self.diagnosis.clear()

    # ---- shared parts

    def hybrid(self, layer: int, query: Tensor, logits: Tensor, store: KVStore) -> Tensor:
        """Logits of everything: the sketch's for evicted entries, exact for kept ones, window and generated.

        logits [H, G, n] of the live slots -> float32 [H, G, Np + W + generated].
        """
        kept = store.selected.shape[1]
        estimate = self.sketch[layer].logits(query)
        estimate.scatter_(2, spread(store.selected, estimate), logits[..., :kept])
        return torch.cat((estimate, logits[..., kept:]), dim=-1)

    def share(self, layer: int, query: Tensor, logits: Tensor, store: KVStore) -> Tensor:
        """Estimated attention on everything, summed over query heads: float32 [H, Np + W + generated]."""
        return self.hybrid(layer, query, logits, store).softmax(-1).sum(1)

    @staticmethod
    def drift_of(share: Tensor, query: Tensor, store: KVStore) -> Tensor:
        """Drift of the present selection: scalar. share [H, Np + W + generated], query [H, G, D]."""
        return evicted_mass(share, store.selected, store.prefix, query.shape[1])

    def show(
        self,
        layer: int,
        store: KVStore,
        weights: Tensor,
        share: Tensor | None,
        drift: Tensor,
        tau: Tensor | None = None,
        fire: Tensor | None = None,
    ) -> None:
        """Keep a layer's view of this step; call it after the decision, `drift` being that of before."""
        zero = self.zero_on(drift.device)
        self.views[layer] = LayerView(
            weights=weights,
            share=share,
            prefix=store.prefix,
            selected=store.selected,
            drift=drift,
            tau=zero if tau is None else tau,
            fire=zero if fire is None else fire,
            diagnosis=self.diagnosis.get(layer),
        )

    def biased(self, layer: int, score: Tensor, store: KVStore) -> Tensor:
        """Scores [H, Np] after pins and bans."""
        bias = self.gate.bias(layer, store.prefix, score.device)
        return score if bias is None else score + bias

    def zero_on(self, device: torch.device) -> Tensor:
        """A zero on the device, made once."""
        if device not in self._zero:
            self._zero[device] = torch.zeros((), device=device)
        return self._zero[device]

    def _with_pins(self, layer: int, store: KVStore) -> Tensor:
        """The selection with pins in and bans out, int64 [H, S]; holes go to the best prefill scores."""
        score = self._prior[layer].clone()
        score = score / score.amax().clamp_min(1e-30)
        score.scatter_add_(1, store.selected, torch.full_like(store.selected, 2, dtype=score.dtype))
        return top_sorted(self.biased(layer, score, store), store.selected.shape[1])

    def _view_prompt(self, layer: int, query: Tensor, store: KVStore, scale: float, prefix: int) -> None:
        heads = store.prompt_k.shape[1]
        logits = logits_of(scaled_query(query[:, :, -1:].contiguous(), heads, scale), store.prompt_k[0])
        zero = self.zero_on(logits.device)
        found = nothing_evicted(logits, prefix) if self.settings.diagnostics else None
        self.views[layer] = LayerView(logits.softmax(-1), None, prefix, None, zero, zero, zero, False, found)


def spread(index: Tensor, like: Tensor) -> Tensor:
    """An index [H, X] for every query head of `like` [H, G, ...]: [H, G, X]."""
    return index.unsqueeze(1).expand(-1, like.shape[1], -1)
