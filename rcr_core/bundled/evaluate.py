"""Score the captioner on held-out scenes, uncompressed: `python -m rcr_core.bundled.evaluate`."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from transformers import AutoTokenizer, Qwen3VLForConditionalGeneration

from rcr_core.bundled.batches import BatchMaker, patches
from rcr_core.bundled.captioner import MODEL_FOLDER, SYSTEM
from rcr_core.bundled.grading import grade
from rcr_core.bundled.scenes import ATTRIBUTES, CAPTION_PROMPT, Scene, make_scene

BATCH = 50


def evaluate(folder: Path, count: int = 200, device: str = "cpu", grid: int = 5) -> dict[str, float]:
    """Shares in [0, 1] over the held-out scenes of seeds 0 to count - 1.

    Keys: one per attribute (share of all objects), `object` (all four right), `count` (captions with the
    right number of objects), `exact` (captions right word for word), `question`, and `question/KIND`.
    """
    model = Qwen3VLForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval().to(device)
    maker = BatchMaker(AutoTokenizer.from_pretrained(folder))
    scenes = [make_scene(seed, grid) for seed in range(count)]
    scores: dict[str, list[float]] = {}
    for first in range(0, count, BATCH):
        _score_captions(model, maker, scenes[first : first + BATCH], scores)
        _score_questions(model, maker, scenes[first : first + BATCH], scores)
    return {key: float(np.mean(values)) for key, values in scores.items()}


def _score_captions(model, maker: BatchMaker, scenes: list[Scene], scores: dict[str, list[float]]) -> None:
    texts = _answers(model, maker, scenes, [CAPTION_PROMPT] * len(scenes), 320)
    for scene, text in zip(scenes, texts, strict=True):
        result = grade(scene, text)
        for found in result.attributes:
            for name in ATTRIBUTES:
                scores.setdefault(name, []).append(found is not None and found[name])
            scores.setdefault("object", []).append(found is not None and all(found.values()))
        scores.setdefault("count", []).append(result.mentions == len(scene.objects))
        scores.setdefault("exact", []).append(result.exact)


def _score_questions(model, maker: BatchMaker, scenes: list[Scene], scores: dict[str, list[float]]) -> None:
    """One question of each kind per scene; questions of one token length are answered together."""
    asked = []
    for scene in scenes:
        pool = scene.questions()
        rng = np.random.default_rng([scene.seed, 2])
        for kind in dict.fromkeys(question.kind for question in pool):
            own = [question for question in pool if question.kind == kind]
            asked.append((scene, own[int(rng.integers(len(own)))]))
    by_length: dict[int, list] = {}
    for scene, question in asked:
        by_length.setdefault(len(maker.tokenizer(question.text).input_ids), []).append((scene, question))
    for group in by_length.values():
        answers = _answers(model, maker, [scene for scene, _ in group], [q.text for _, q in group], 4)
        for (_, question), answer in zip(group, answers, strict=True):
            scores.setdefault("question", []).append(answer.strip() == question.answer)
            scores.setdefault(f"question/{question.kind}", []).append(answer.strip() == question.answer)


@torch.no_grad()
def _answers(model, maker: BatchMaker, scenes: list[Scene], prompts: list[str], limit: int) -> list[str]:
    """Greedy answers; all prompts must have one token length."""
    pixel_values, grid = patches(scenes)
    visual = maker.image_id
    head = maker.tokenizer(
        f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n<|vision_start|>"
    ).input_ids
    rows = [
        head
        + [visual] * int(grid[0].prod())
        + maker.tokenizer(f"<|vision_end|>{prompt}<|im_end|>\n<|im_start|>assistant\n").input_ids
        for prompt in prompts
    ]
    ids = torch.tensor(rows, device=model.device)
    out = model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        mm_token_type_ids=(ids == visual).long(),
        pixel_values=pixel_values.to(model.device),
        image_grid_thw=grid.to(model.device),
        do_sample=False,
        max_new_tokens=limit,
    )
    return maker.tokenizer.batch_decode(out[:, ids.shape[1] :], skip_special_tokens=True)


def format_report(scores: dict[str, float]) -> str:
    return "\n".join(f"{name:20s} {100 * value:6.1f} %" for name, value in scores.items())


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Score the bundled captioner on held-out scenes.")
    parser.add_argument("--model", default=str(MODEL_FOLDER))
    parser.add_argument("--scenes", type=int, default=200)
    parser.add_argument("--grid", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args(argv)
    print(format_report(evaluate(Path(options.model), options.scenes, options.device, options.grid)))


if __name__ == "__main__":
    main()
