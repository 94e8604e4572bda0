"""A question to models that answers at once, in the place of the real ones, and a study that takes seconds."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from dialoscope.corpus import Corpus
from dialoscope.corpus.split import split_for
from dialoscope.instruments import QUESTIONS, Question
from dialoscope.metrics import mean_score
from dialoscope.model.options import ModelOptions
from dialoscope.record import Origin, Scores, by_path, path
from dialoscope.report import Section
from dialoscope.report.items import Items
from dialoscope.report.result import Result, documented, kept, skipped
from dialoscope.report.verdict import Verdict, judge
from dialoscope.settings import option, with_options

SMALL = {
    "preset": "static-ui",
    "epochs": 1,
    "context_turns": 4,
    "limit": 20,
    "set": {"layers": 1, "width": 8, "embedding": 8, "vocabulary": 200, "batch_size": 32},
}


def small_table(**more: Any) -> dict[str, Any]:
    """A study that takes seconds, and what is other in it."""
    return {
        "corpora": {"small": "concierge"},
        "models": {"one": SMALL, "two": {**SMALL, "seed": 1}},
        "overlap": {},
        "attention": {"limit": 6},
        "probe": {"limit": 12},
        **more,
    }


@dataclass(frozen=True, kw_only=True)
class FakeSettings(ModelOptions):
    """What the fake question can be told."""

    split: str | None = option(None, "Split to measure.")
    limit: int | None = option(None, "Dialogues at most.", least=1)
    ratings: str | None = option(None, "A file that counts.", metavar="FILE")
    seed: int = option(0, "Random seed.", least=0)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FakeResult(Result):
    """A number of each model for each dialogue, from its name and the dialogue's."""

    instrument: ClassVar[str] = "attention"
    settings_class: ClassVar[type[FakeSettings]] = FakeSettings

    ids: tuple[str, ...]
    values: Mapping[str, tuple[float, ...]]

    @kept
    def scores(self) -> Scores:
        """The mean of each model."""
        return by_path(
            ((model, "random-0.7", "das_ratio"), mean_score(values, clusters=self.ids))
            for model, values in self.values.items()
        )

    def items(self) -> dict[str, Items]:
        """The number of each dialogue."""
        keys = [(each,) for each in self.ids]
        return {
            path(model, "random-0.7", "das_ratio"): Items.mean_of(keys, self.ids, np.asarray(values))
            for model, values in self.values.items()
        }

    @kept
    def verdicts(self) -> list[Verdict]:
        """Whether the mean of each model is over 0.4, as all are."""
        return [
            judge(score, name, text=f"{name.partition('/')[0]} has {score.value}.", concern_over=0.4)
            for name, score in self.scores().items()
        ]

    @property
    def table(self) -> pa.Table:
        """The dialogues."""
        return documented(pa.table({"id": list(self.ids)}), {"id": "a dialogue"})

    def section(self) -> Section:
        """A table of scores."""
        return Section(
            self.instrument.capitalize(), self.instrument, "?", [self.summary()], self.used, self.card, self.origin
        )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FakeProbe(FakeResult):
    """The same under another name."""

    instrument: ClassVar[str] = "probe"


def fake_measure(
    corpus: Corpus,
    *,
    against: Mapping[str, Corpus] | None = None,
    settings: FakeSettings | None = None,
    models: Mapping[str, Any] | None = None,
    work: Path | None = None,
    progress: Any = None,
    kind: type[FakeResult] = FakeResult,
    **options: Any,
) -> FakeResult:
    """A number from 0.5 to 1.5 for each model and dialogue."""
    settings = with_options(settings, FakeSettings, options)
    parts = split_for(corpus, alone="whole", split=settings.split, limit=settings.limit)
    ids = tuple(dialogue.id for dialogue in parts.measured)
    values = {
        model: tuple(0.5 + zlib.crc32(f"{model} {settings.seed} {each}".encode()) / 2**32 for each in ids)
        for model in models or {}
    }
    origin = Origin(f"{corpus.name}@{corpus.fingerprint}", settings.changed(), settings.seed)
    return kind(
        settings=settings, parts=parts.sizes, used=parts.used, counts=skipped(corpus.skipped), origin=origin, ids=ids,
        values=values,
    )  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ItemsResult(FakeResult):
    """A result of these items."""

    numbers: Mapping[str, Items]

    @kept
    def scores(self) -> Scores:
        """None."""
        return {}

    @kept
    def verdicts(self) -> list[Verdict]:
        """One that says nothing."""
        return [Verdict("cannot_tell", "Nothing.")]

    def items(self) -> dict[str, Items]:
        """The items."""
        return dict(self.numbers)


def items_result(folder: Path, numbers: Mapping[str, Items], *, origin: Origin | None = None, **options: Any) -> Path:
    """The folder of a result of these items."""
    result = ItemsResult(
        settings=FakeSettings(**options), parts={}, used="All.", counts=skipped(), ids=(), values={}, numbers=numbers,
        origin=origin or Origin("c@1"),
    )  # fmt: skip
    return result.save(folder)


class FakeQuestion(Question):
    """A question whose function and result are given."""

    answer: Any = staticmethod(fake_measure)
    kind: type[FakeResult] = FakeResult

    @property
    def measure(self) -> Any:
        """The function."""
        return lambda corpus, **options: self.answer(corpus, kind=self.kind, **options)

    @property
    def settings(self) -> Any:
        """The settings."""
        return FakeSettings

    @property
    def result(self) -> Any:
        """The result."""
        return self.kind


class ItemsQuestion(FakeQuestion):
    """A question whose results are items."""

    kind = ItemsResult


class FakeProbeQuestion(FakeQuestion):
    """The same, with a result of its own."""

    kind = FakeProbe


def install(patch: pytest.MonkeyPatch, **kinds: type[FakeQuestion]) -> None:
    """Put the fake questions in the place of attention and probe."""
    chosen: dict[str, type[FakeQuestion]] = {"attention": FakeQuestion, "probe": FakeProbeQuestion, **kinds}
    for name, kind in chosen.items():
        known = QUESTIONS[name]
        fake = kind(known.ask, known.module, known.function, known.settings_name, known.result_name, has_models=True)
        patch.setitem(QUESTIONS, name, fake)


def answer_with(patch: pytest.MonkeyPatch, name: str, answer: Any) -> None:
    """Let a question be answered by another function, with the settings and the result it has."""

    class Patched(FakeQuestion):
        @property
        def measure(self) -> Any:
            return answer

        @property
        def settings(self) -> Any:
            return known.settings

        @property
        def result(self) -> Any:
            return known.result

    known = QUESTIONS[name]
    fake = Patched(known.ask, known.module, known.function, known.settings_name, known.result_name, known.has_models)
    patch.setitem(QUESTIONS, name, fake)


def interrupt(patch: pytest.MonkeyPatch, name: str) -> None:
    """Let a question be interrupted by whoever waits for it."""

    def interrupted(corpus: Corpus, **options: Any) -> Any:
        raise KeyboardInterrupt

    answer_with(patch, name, interrupted)


def of_one_split(corpus: Corpus, dialogues: int) -> Corpus:
    """The first dialogues of a corpus, in one split."""
    return Corpus.of([dialogue._replace(split="all") for dialogue in corpus[:dialogues]], name="small")
