"""Training batches: scenes as the tensors that the model takes, made directly and fast.

The tests hold them against the real processor. A batch has one grid size, so every sample has the same number
of visual tokens; texts are padded on the right and carry no mask (causal attention never looks right).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rcr_core.bundled.captioner import OTHER_PROMPTS, PATCH, SYSTEM
from rcr_core.bundled.scenes import ATTRIBUTES, CAPTION_PROMPT, CELL, COLUMNS, ROWS, Scene, make_scene
from rcr_core.bundled.shapes import COLOURS, FILLS, SHAPES, SIZES

TRAINING_SEEDS = 1_000_000  # first seed of the training scenes; held-out scenes stay below
VOCABULARIES = {"size": tuple(SIZES), "fill": FILLS, "colour": tuple(COLOURS), "shape": SHAPES}
IGNORE = -100


def training_scenes(step: int, count: int, grid: int) -> list[Scene]:
    """The scenes of a training step; no two steps share one as long as a step takes at most 4,096."""
    first = TRAINING_SEEDS + step * 4096
    return [make_scene(first + index, grid) for index in range(count)]


def patches(scenes: list[Scene]) -> tuple[Tensor, Tensor]:
    """Pixels as the vision tower takes them: float32 [n*P, 3*16*16] in [-1, 1], and the grid [n, 3]."""
    pixels = np.stack([scene.pixels() for scene in scenes])  # (n, side, side, 3)
    n, side = pixels.shape[:2]
    cells = side // PATCH
    tiles = pixels.reshape(n, cells, PATCH, cells, PATCH, 3).transpose(0, 1, 3, 5, 2, 4)
    flat = torch.from_numpy(tiles.reshape(n * cells * cells, -1).astype(np.float32) / 127.5 - 1.0)
    return flat, torch.tensor([[1, cells, cells]] * n)


def token_labels(scenes: list[Scene]) -> dict[str, Tensor]:
    """What each visual token sees: int64 [n, P] per attribute, and `row`, `column`, `presence`.

    Attributes are IGNORE off the objects.
    """
    cells = scenes[0].grid * CELL // PATCH
    shape = (len(scenes), cells, cells)
    labels = {name: np.full(shape, IGNORE) for name in ATTRIBUTES}
    labels["presence"] = np.zeros(shape, dtype=np.int64)
    centres = (np.arange(cells) + 0.5) / cells * 5
    labels["row"] = np.broadcast_to(centres.astype(np.int64)[None, :, None], shape).copy()
    labels["column"] = np.broadcast_to(centres.astype(np.int64)[None, None, :], shape).copy()
    for index, scene in enumerate(scenes):
        for thing in scene.objects:
            left, top, right, bottom = thing.box
            area = (index, slice(top // PATCH, -(-bottom // PATCH)), slice(left // PATCH, -(-right // PATCH)))
            labels["presence"][area] = 1
            for name in ATTRIBUTES:
                labels[name][area] = VOCABULARIES[name].index(getattr(thing, name))
    return {name: torch.from_numpy(value).flatten(1) for name, value in labels.items()}


LABEL_SIZES = {
    **{name: len(words) for name, words in VOCABULARIES.items()},
    "presence": 2,
    "row": len(ROWS),
    "column": len(COLUMNS),
}


@dataclass(frozen=True)
class Batch:
    """Inputs of `model.model.forward`, and the token that each position should say next (IGNORE elsewhere).

    `input_ids`, `mm_token_type_ids`, `targets`: int64 [n, T]; `pixel_values` [n*P, 3*16*16]; `image_grid_thw`
    [n, 3].
    """

    inputs: dict[str, Tensor]
    targets: Tensor

    def to(self, device: torch.device) -> Batch:
        return Batch({name: value.to(device) for name, value in self.inputs.items()}, self.targets.to(device))


class BatchMaker:
    """Turns scenes into batches with one tokenizer."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.image_id = tokenizer.convert_tokens_to_ids("<|image_pad|>")
        self.pad_id = tokenizer.pad_token_id
        self._cache: dict[str, list[int]] = {}

    def captions(self, scenes: list[Scene], rng: np.random.Generator) -> Batch:
        """One caption per scene; two thirds of the prompts are the default one."""
        prompts = [CAPTION_PROMPT if rng.random() < 0.67 else str(rng.choice(OTHER_PROMPTS)) for _ in scenes]
        turns = [[(prompt, scene.caption)] for prompt, scene in zip(prompts, scenes, strict=True)]
        return self._batch(scenes, turns)

    def questions(self, scenes: list[Scene], rng: np.random.Generator, per_scene: int = 8) -> Batch:
        """Up to `per_scene` short questions about each scene, as turns of one conversation."""
        turns = []
        for scene in scenes:
            pool = scene.questions()
            presence = [question for question in pool if question.kind == "presence"]
            attribute = [question for question in pool if question.kind != "presence"]
            count = min(per_scene, len(attribute))
            picked = [attribute[i] for i in rng.permutation(len(attribute))[:count]]
            picked += [presence[i] for i in rng.permutation(len(presence))[: max(1, per_scene // 4)]]
            turns.append([(picked[i].text, picked[i].answer) for i in rng.permutation(len(picked))])
        return self._batch(scenes, turns)

    def _batch(self, scenes: list[Scene], turns: list[list[tuple[str, str]]]) -> Batch:
        pixel_values, grid = patches(scenes)
        visual = int(grid[0].prod())
        rows = [self._row(turn, visual) for turn in turns]
        width = max(len(tokens) for tokens, _ in rows)
        ids = np.full((len(rows), width), self.pad_id)
        targets = np.full((len(rows), width), IGNORE)
        for index, (tokens, answers) in enumerate(rows):
            ids[index, : len(tokens)] = tokens
            for start, stop in answers:
                targets[index, start - 1 : stop - 1] = tokens[start:stop]
        input_ids = torch.from_numpy(ids)
        inputs = {
            "input_ids": input_ids,
            "mm_token_type_ids": (input_ids == self.image_id).long(),
            "pixel_values": pixel_values,
            "image_grid_thw": grid,
        }
        return Batch(inputs, torch.from_numpy(targets))

    def _row(self, turns: list[tuple[str, str]], visual: int) -> tuple[list[int], list[tuple[int, int]]]:
        """Token ids of a conversation, and the spans that the assistant says."""
        tokens = list(self._encode(f"<|im_start|>system\n{SYSTEM}<|im_end|>\n"))
        answers = []
        for index, (prompt, answer) in enumerate(turns):
            tokens += self._encode("<|im_start|>user\n")
            if index == 0:
                tokens += (
                    self._encode("<|vision_start|>")
                    + [self.image_id] * visual
                    + self._encode("<|vision_end|>")
                )
            tokens += self._encode(f"{prompt}<|im_end|>\n<|im_start|>assistant\n")
            start = len(tokens)
            tokens += self.tokenizer(f"{answer}<|im_end|>").input_ids
            answers.append((start, len(tokens)))
            tokens += self._encode("\n")
        return tokens[:-1], answers

    def _encode(self, text: str) -> list[int]:
        if text not in self._cache:
            self._cache[text] = self.tokenizer(text).input_ids
        return self._cache[text]
