"""Train the bundled captioner: `python -m rcr_core.bundled.train --out runs/captioner`.

Two phases. **Vision**: linear heads on the merger's output name what every visual token sees, until shapes
are read. **Captioner**: captions and short questions, each under a curriculum by grid size; a size is left
for the next when it is read. The learning rate is flat, then falls linearly to zero. Seeded and resumable:
the state file is replaced every few minutes, and the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from rcr_core.bundled.batches import (
    IGNORE,
    LABEL_SIZES,
    VOCABULARIES,
    BatchMaker,
    patches,
    token_labels,
    training_scenes,
)
from rcr_core.bundled.captioner import build_model, build_tokenizer, save_captioner
from rcr_core.bundled.checkpoint import load_state, save_state
from rcr_core.bundled.evaluate import evaluate, format_report
from rcr_core.bundled.optimizers import build_optimizers, schedule, set_rate

SAMPLES = {1: 48, 2: 24, 3: 16, 4: 12, 5: 9}  # scenes per batch, by grid size
VISION_GRIDS = (1, 2, 3, 4, 5)
VISION_ODDS = (0.05, 0.25, 0.3, 0.2, 0.2)
PASS_MARK = 0.85  # running accuracy of colours at which the curriculum goes up
ANSWER_MARK = 0.93  # the same for answers; half of their tokens are the easy end of the turn
QUESTION_SHARE = 0.4  # of the batches
SAVE_EVERY = 180.0  # seconds


@dataclass
class Progress:
    """Counters of a training; JSON in the state file."""

    phase: str = "vision"
    step: int = 0
    grid: int = 1  # of the captions
    question_grid: int = 1
    accuracy: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0


class Trainer:
    """Both phases over one model; `run()` goes from wherever the state file stands to the end."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.device = torch.device(options.device)
        self.tokenizer = build_tokenizer()
        self.maker = BatchMaker(self.tokenizer)
        self.model = build_model(self.tokenizer, options.seed).to(self.device)
        torch.manual_seed(options.seed + 1)
        width = self.model.config.text_config.hidden_size
        self.heads = nn.ModuleDict({name: nn.Linear(width, size) for name, size in LABEL_SIZES.items()}).to(
            self.device
        )
        self.progress = Progress()
        self.optimizers: dict[str, torch.optim.Optimizer] = {}
        self.state = Path(options.out) / "state.safetensors"
        self.state.parent.mkdir(parents=True, exist_ok=True)
        self.saved = self.told = time.monotonic()
        self.left = options.stop_after or -1  # steps that this call may still take; -1 for any number

    def run(self) -> bool:
        """Train to the end, or for `--stop-after` steps. Returns whether the end was reached."""
        if self.state.exists():
            self._resume()
        if self.progress.phase == "vision":
            self._phase("vision", self.options.vision_steps, self._vision_loss)
            if not self.left:
                return False
            self.progress = Progress(phase="captioner", seconds=self.progress.seconds)
            self.optimizers = {}
        self._phase("captioner", self.options.captioner_steps, self._caption_loss)
        if self.progress.step < self.options.captioner_steps:
            return False
        save_captioner(self.model, self.tokenizer, Path(self.options.out) / "model")
        return True

    def _resume(self) -> None:
        counters = load_state(self.state, {"model": self.model, "heads": self.heads}, {})
        self.progress = Progress(**counters)
        self._build_optimizers()
        load_state(self.state, {}, self.optimizers)
        print(f"resumed {self.progress.phase} at step {self.progress.step}", flush=True)

    def _build_optimizers(self) -> None:
        captions = self.progress.phase == "captioner"
        self.optimizers = build_optimizers(self.model, self.heads, captions)

    def _phase(self, name: str, steps: int, loss_of) -> None:
        if not self.optimizers:
            self._build_optimizers()
        self.model.train()
        begun = time.monotonic() - self.progress.seconds
        while self.progress.step < steps and self.left:
            set_rate(self.optimizers, self.options.lr * schedule(self.progress.step, steps))
            with torch.autocast(self.device.type, dtype=torch.bfloat16):
                loss = loss_of()
            loss.backward()
            parameters = [*self.model.parameters(), *self.heads.parameters()]
            nn.utils.clip_grad_norm_([p for p in parameters if p.grad is not None], 1.0)
            for optimizer in self.optimizers.values():
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            self.progress.step += 1
            self.left -= 1
            self.progress.seconds = time.monotonic() - begun
            self._report(name, steps, loss)
        self._save()

    def _report(self, name: str, steps: int, loss: torch.Tensor) -> None:
        now = time.monotonic()
        if now - self.told > 20:
            self.told = now
            at = self.progress
            scores = " ".join(f"{key} {value:.3f}" for key, value in sorted(at.accuracy.items()))
            stage = f"grid {at.grid}/{at.question_grid}"
            print(
                f"{name} {at.step}/{steps} {at.seconds:.0f}s {stage} loss {loss.item():.4f} {scores}",
                flush=True,
            )
        if now - self.saved > SAVE_EVERY:
            self._save()

    def _save(self) -> None:
        self.saved = time.monotonic()
        save_state(
            self.state, {"model": self.model, "heads": self.heads}, self.optimizers, vars(self.progress)
        )

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(
            [self.options.seed, self.progress.phase == "captioner", self.progress.step]
        )

    def _vision_loss(self) -> torch.Tensor:
        grid = int(self._rng().choice(VISION_GRIDS, p=VISION_ODDS))
        scenes = training_scenes(self.progress.step, self.options.samples or SAMPLES[grid], grid)
        pixel_values, grid_thw = patches(scenes)
        labels = token_labels(scenes)
        seen = self.model.model.visual(
            pixel_values.to(self.device), grid_thw=grid_thw.to(self.device)
        ).pooler_output
        loss = seen.new_zeros(())
        for name, head in self.heads.items():
            target = labels[name].flatten().to(self.device)
            logits = head(seen).float()
            loss = loss + functional.cross_entropy(logits, target, ignore_index=IGNORE)
            kept = target != IGNORE
            self._track(name, (logits.argmax(-1) == target)[kept].float().mean())
        return loss

    def _caption_loss(self) -> torch.Tensor:
        rng = self._rng()
        asks = rng.random() < QUESTION_SHARE
        grid = self.progress.question_grid if asks else self.progress.grid
        present = grid == 1 or rng.random() < 0.75
        if not present:
            grid = int(rng.integers(1, grid))
        count = self.options.samples or SAMPLES[grid]
        scenes = training_scenes(self.options.vision_steps + self.progress.step, count, grid)
        batch = (self.maker.questions if asks else self.maker.captions)(scenes, rng).to(self.device)
        hidden = self.model.model(**batch.inputs, use_cache=False).last_hidden_state
        asked = batch.targets != IGNORE
        logits, target = self.model.lm_head(hidden[asked]).float(), batch.targets[asked]
        right = logits.argmax(-1) == target
        if present:
            self._track("answer" if asks else "token", right.float().mean())
            for name, ids in {} if asks else self._attribute_ids().items():
                spoken = torch.isin(target, ids)
                if spoken.any():
                    self._track(name, right[spoken].float().mean())
            self._promote()
        return functional.cross_entropy(logits, target)

    def _attribute_ids(self) -> dict[str, torch.Tensor]:
        if not hasattr(self, "_ids"):
            encode = self.tokenizer
            self._ids = {
                name: torch.tensor([encode(" " + word).input_ids[0] for word in words], device=self.device)
                for name, words in VOCABULARIES.items()
            }
        return self._ids

    def _track(self, name: str, value: torch.Tensor) -> None:
        old = self.progress.accuracy.get(name)
        value = float(value)
        self.progress.accuracy[name] = value if old is None else 0.9 * old + 0.1 * value

    def _promote(self) -> None:
        """Go up a grid size where the present one is read: captions by colours, questions by answers."""
        progress = self.progress
        if progress.grid < 5 and progress.accuracy.get("colour", 0.0) > PASS_MARK:
            progress.grid += 1
            progress.accuracy = {key: value for key, value in progress.accuracy.items() if key == "answer"}
            print(f"step {progress.step}: captions go up to grid {progress.grid}", flush=True)
        if progress.question_grid < 5 and progress.accuracy.get("answer", 0.0) > ANSWER_MARK:
            progress.question_grid += 1
            progress.accuracy.pop("answer")
            print(f"step {progress.step}: questions go up to grid {progress.question_grid}", flush=True)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Train the bundled captioner.")
    parser.add_argument(
        "--out", default="runs/captioner", help="folder of the state file and of the finished model"
    )
    parser.add_argument("--vision-steps", type=int, default=2000)
    parser.add_argument("--captioner-steps", type=int, default=2100)
    parser.add_argument("--lr", type=float, default=1.5e-3)
    parser.add_argument("--samples", type=int, help="scenes per batch (default: by grid size)")
    parser.add_argument("--stop-after", type=int, help="stop after this many steps; call again to go on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--evaluate", type=int, default=200, help="held-out scenes to score at the end; 0 for none"
    )
    options = parser.parse_args(argv)
    trainer = Trainer(options)
    if trainer.run() and options.evaluate:
        print(format_report(evaluate(Path(options.out) / "model", options.evaluate, options.device)))


if __name__ == "__main__":
    main()
