"""Turns what the layers of a step saw into one record, with one copy from the device to the host.

All layers are reduced together: a step costs a few dozen small operations whatever the number of layers.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from rcr_core.cache import OffloadedStore
from rcr_core.engine.engine import ModelShape, Session
from rcr_core.engine.host_copy import to_host
from rcr_core.engine.maps import CellMeans, quantised
from rcr_core.policies import LayerView
from rcr_core.trace import StepRecord, VisualGeometry

TOP = 5  # likeliest next tokens
DIAGNOSTICS = ("map_full", "map_full_scale", "drift_exact", "recall", "top_position")


class Recorder:
    """Records the steps of one session. `record` may be called once per chosen token, in order.

    heads: also the attention of every KV head; name_of: the name of a token, for the likeliest ones.
    """

    def __init__(
        self,
        geometry: VisualGeometry,
        prompt: int,
        shape: ModelShape,
        select: int,
        device: torch.device,
        heads: bool = True,
        name_of: Callable[[int], str] | None = None,
    ):
        self.prompt = prompt
        self.layers = shape.layers
        self.heads = shape.kv_heads
        self.shows_heads = heads
        self.name_of = name_of
        self.select = select
        self.visual = geometry.position  # on the host
        self.position = torch.as_tensor(geometry.position, dtype=torch.long, device=device)  # (P,)
        self._pool = CellMeans(geometry, device)
        self._kinds: Tensor | None = None

    @torch.inference_mode()
    def record(self, session: Session, token: Tensor, text_of, began: float) -> StepRecord:
        """The record of the step whose logits chose `token`.

        `text_of` maps its id to the text that it completes; `began` is when the step began (`perf_counter`).
        """
        parts = self._choice(session.logits, token)
        # Layers may lie on several devices; a step is reduced on the one of its logits.
        views = {layer: view.on(self.position.device) for layer, view in session.policy.views.items()}
        if views:
            parts |= self._attention(views)
            if any(view.diagnosis is not None for view in views.values()):
                parts |= self._diagnostics(views, session.policy.sketches)
        host = to_host(parts)
        # Measured after the copy, which waits for everything that the step computes.
        seconds = time.perf_counter() - began
        number = int(host.pop("token")[0])
        return self._build(session, number, text_of(number), host, seconds)

    @staticmethod
    def _choice(logits: Tensor, token: Tensor) -> dict[str, Tensor]:
        """logits [1, V], token [1, 1]"""
        logprob = logits[0].log_softmax(-1)
        top = logprob.topk(min(TOP, logprob.shape[0]))
        return {
            "token": token.view(1).int(),
            "logprob": logprob[token.view(1)],
            "top_ids": top.indices.int(),
            "top_logprob": top.values,
        }

    def _attention(self, views: dict[int, LayerView]) -> dict[str, Tensor]:
        """Masses, maps and decisions of the managed layers (M of them)."""
        ordered = [views[layer] for layer in sorted(views)]
        prefix = ordered[0].prefix
        per_head, missed = self._spread(ordered, prefix)
        used = per_head.mean(1)
        rows = [used[:, : self.prompt], missed]
        if self.shows_heads:
            rows.append(per_head.flatten(0, 1)[:, : self.prompt])
        maps = torch.cat(rows)[:, self.position]  # (2M, P), and M * H rows more with heads
        mean, mean_scale = quantised(maps[: len(ordered)].mean(0, keepdim=True))
        pixels, scale = quantised(self._pool(maps))
        shared = {
            "mean": mean,
            "mean_scale": mean_scale,
            "pixels": pixels,
            "scale": scale,
            "missed": missed.sum(1),
            "mass": used @ self._kind_columns(used.shape[-1], prefix, used.device),
            "decision": torch.stack([one for v in ordered for one in (v.drift, v.tau, v.fire)]).float(),
        }
        chosen = [view.selected for view in ordered if view.selected is not None]
        if chosen:
            shared["selected"] = torch.stack(chosen).int()
        return shared

    def _spread(self, views: list[LayerView], prefix: int) -> tuple[Tensor, Tensor]:
        """Attention of each KV head on every entry [M, H, T + generated], missed mass on the prompt [M, T].

        Both are means over query heads, those of a KV head or all of them. Layers that evict nothing come
        first, if there are any: skipped layers, or all layers at prefill.
        """
        whole = [view for view in views if view.selected is None or not view.attended]
        evicting = views[len(whole) :]
        used, missed = [], []
        if whole:
            used.append(torch.stack([view.weights for view in whole]).mean(2))
            missed.append(used[0].new_zeros(len(whole), self.prompt))
        if evicting:
            weights = torch.stack([view.weights for view in evicting]).mean(2)  # (K, H, n)
            selected = torch.stack([view.selected for view in evicting])  # (K, H, S)
            kept = weights.new_zeros(*weights.shape[:2], prefix)
            kept.scatter_(2, selected, weights[..., : selected.shape[-1]])
            used.append(torch.cat((kept, weights[..., selected.shape[-1] :]), dim=-1))
            share = torch.stack([view.share[:, :prefix] for view in evicting]).scatter_(2, selected, 0.0)
            lost = share.mean(1) / evicting[0].weights.shape[1]
            # The last W prompt tokens are never evicted, so they miss nothing.
            missed.append(torch.nn.functional.pad(lost, (0, self.prompt - prefix)))
        return torch.cat(used), torch.cat(missed)

    def _kind_columns(self, width: int, prefix: int, device: torch.device) -> Tensor:
        """Which of selected-visual, selected-text, window, generated each entry is: [X, 4]."""
        if self._kinds is None or self._kinds.shape[0] < width:
            kinds = np.zeros((width + 256, 4), np.float32)
            kinds[:prefix, 1] = 1.0
            kinds[self.visual[self.visual < prefix]] = (1.0, 0.0, 0.0, 0.0)
            kinds[prefix : self.prompt, 2] = 1.0
            kinds[self.prompt :, 3] = 1.0
            self._kinds = torch.from_numpy(kinds).to(device)
        return self._kinds[:width]

    def _diagnostics(self, views: dict[int, LayerView], candidates: bool) -> dict[str, Tensor]:
        """Diagnostics of the managed layers; recall only of policies that have `candidates`."""
        found = [views[layer].diagnosis for layer in sorted(views)]
        maps = torch.stack([d.probability.mean(0)[: self.prompt][self.position] for d in found])
        pixels, scale = quantised(self._pool(maps))
        parts = {
            "map_full": pixels,
            "map_full_scale": scale,
            "drift_exact": torch.stack([d.drift_exact for d in found]),
            "top_position": torch.stack([d.top_position.flatten() for d in found]).int(),
        }
        if candidates:
            all_of_them = found[0].drift_exact.new_ones(())  # where nothing is evicted, nothing is missed
            parts["recall"] = torch.stack([all_of_them if d.recall is None else d.recall for d in found])
        return parts

    def _build(
        self, session: Session, token: int, text: str | None, host: dict, seconds: float
    ) -> StepRecord:
        views = session.policy.views
        managed = sorted(views)
        count = len(managed)
        pixels = host.get("pixels", np.zeros((0, self._pool.cells), np.uint8))
        scale = host.get("scale", np.zeros(0, np.float32))
        mean = host.get("mean", np.zeros((1, self.position.shape[0]), np.uint8))
        decision = host.get("decision", np.zeros(0, np.float32)).reshape(count, 3)  # drift, tau, fire
        optional = {name: self._rows(host[name], managed) for name in DIAGNOSTICS if name in host}
        optional |= self._reads(session)
        if self.shows_heads:
            shape = (count, self.heads)
            by_head = pixels[2 * count :].reshape(*shape, self._pool.cells)
            optional["map_head"] = self._rows(by_head, managed)
            optional["map_head_scale"] = self._rows(scale[2 * count :].reshape(shape), managed)
        return StepRecord(
            step=session.step,
            token=token,
            text=text,
            logprob=float(host["logprob"][0]),
            top_ids=host["top_ids"],
            top_logprob=host["top_logprob"],
            drift=self._rows(decision[:, 0].copy(), managed),
            tau=self._rows(decision[:, 1].copy(), managed),
            fire=self._rows(decision[:, 2].astype(np.uint8), managed),
            whole=self._whole(views),
            selected=self._selections(views, host),
            mass=self._rows(host.get("mass", np.zeros((0, 4), np.float32)), managed),
            map_mean=mean[0],
            map_mean_scale=float(host["mean_scale"][0]) if "mean_scale" in host else 0.0,
            map_layer=self._rows(pixels[:count], managed),
            map_layer_scale=self._rows(scale[:count], managed),
            missed_layer=self._rows(pixels[count : 2 * count], managed),
            missed_layer_scale=self._rows(scale[count : 2 * count], managed),
            missed=self._rows(host.get("missed", np.zeros(0, np.float32)), managed),
            seconds=seconds,
            top_text=tuple(map(self.name_of, host["top_ids"].tolist())) if self.name_of else (),
            **optional,
        )

    @staticmethod
    def _reads(session: Session) -> dict[str, np.ndarray]:
        """What the step asked of an offloaded prefix and what it read, by layer; the host knows both."""
        if session.policy.settings.offload == "none":
            return {}
        stores = [store if isinstance(store, OffloadedStore) else None for store in session.stores]
        return {
            name: np.array([getattr(store, name, 0) for store in stores], np.int32)
            for name in ("asked", "fetched")
        }

    def _rows(self, values: np.ndarray, managed: list[int]) -> np.ndarray:
        """Values of the managed layers among all layers; layers that are passed through stay zero."""
        if len(managed) == self.layers:
            return values
        spread = np.zeros((self.layers, *values.shape[1:]), values.dtype)
        spread[managed] = values
        return spread

    def _whole(self, views: dict[int, LayerView]) -> np.ndarray:
        selects = [layer in views and views[layer].selected is not None for layer in range(self.layers)]
        return np.asarray([not it for it in selects], np.uint8)

    def _selections(self, views: dict[int, LayerView], host: dict) -> np.ndarray:
        selected = np.zeros((self.layers, self.heads, self.select), np.int32)
        rows = [layer for layer in sorted(views) if views[layer].selected is not None]
        if rows:
            selected[rows] = host["selected"]
        return selected
