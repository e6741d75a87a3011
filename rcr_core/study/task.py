"""The unit of a study: one image under one policy at one setting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rcr_core.findings import task_key
from rcr_core.findings.kinds import REFERENCE
from rcr_core.study.data import DataSet, Sample
from rcr_core.study.variants import Variant

Image = tuple[str, str, str, int]  # data set, sample, prompt, most new tokens: what one reference answers


@dataclass(frozen=True)
class Identity:
    """The model that a study runs on, as its workers have loaded it; `weights` is their fingerprint."""

    model: str
    dtype: str
    weights: str


@dataclass(frozen=True)
class Task:
    """One image under one policy. Tasks of one sample share a `place`, so that they can be kept together."""

    data: str
    sample: Sample
    variant: Variant
    place: int

    def key(self, identity: Identity) -> str:
        """The key of the row that it gives."""
        sample, variant = self.sample, self.variant
        return task_key(
            self.data,
            sample.id,
            sample.prompt,
            identity.model,
            identity.dtype,
            identity.weights,
            variant.policy,
            variant.settings.to_dict(),
            sample.max_new_tokens,
        )

    @property
    def image(self) -> Image:
        """What its uncompressed run has in common with it."""
        return self.data, self.sample.id, self.sample.prompt, self.sample.max_new_tokens

    @property
    def refers(self) -> bool:
        """Whether it is the uncompressed run that the others of its sample are held against."""
        return self.variant.policy == REFERENCE


@dataclass(frozen=True)
class Part:
    """Samples of a data set with what is run on each of them; the first variant is the reference."""

    data: DataSet
    variants: Sequence[Variant]
    count: int | None = None  # of the first samples; None is all

    def tasks(self, place: int) -> list[Task]:
        samples = list(self.data.samples)[: self.count]
        return [
            Task(self.data.name, sample, variant, place + at)
            for at, sample in enumerate(samples)
            for variant in self.variants
        ]


def plan(parts: Iterable[Part]) -> list[Task]:
    """The tasks of all parts, one part after the other, the reference of a sample before its other runs."""
    tasks: list[Task] = []
    for part in parts:
        tasks += part.tasks(tasks[-1].place + 1 if tasks else 0)
    return tasks
