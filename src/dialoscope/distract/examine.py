"""The whole examination in one call: make or take the sets, ask the models, and put the numbers together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dialoscope.corpus import Corpus
from dialoscope.distract.influence import (
    behaviour,
    influence,
    influence_portions,
    respond,
    response_portions,
    unread,
)
from dialoscope.distract.measure import Measured, Progress, Scoring, attention_portions, measure
from dialoscope.distract.portions import Portion
from dialoscope.distract.report import Picture, picture, picture_case
from dialoscope.distract.result import DistractResult, Extras, das_ratios, origin_of, summarise
from dialoscope.distract.sets import NINE, ORIGINAL, DistractingSet, Maker, chosen_names
from dialoscope.errors import UsageError
from dialoscope.metrics import Resampling
from dialoscope.model.protocol import DialogueModel
from dialoscope.record import Origin

USUAL_SPLIT = "test"


@dataclass(frozen=True)
class Wish:
    """What is measured besides attention, and how."""

    scoring: Scoring = field(default_factory=Scoring)
    has_influence: bool = False
    has_behaviour: bool = False
    resampling: Resampling = field(default_factory=Resampling)


def all_portions(one: DistractingSet, wish: Wish) -> Iterator[Portion]:
    """All that is done with a set, by one model."""
    yield from attention_portions(one.cases, wish.scoring)
    if wish.has_influence and one.name != ORIGINAL:
        yield from influence_portions(one.cases)
    if wish.has_behaviour:
        yield from response_portions(one.cases)


@dataclass
class Stages:
    """One bar for work that comes in stages, each of which counts from 0."""

    progress: Progress | None
    total: int
    done: int = 0

    def next(self) -> Progress:
        """What the next stage tells its progress to."""
        before = self.done

        def tell(done: int, _: int) -> None:
            self.done = before + done
            if self.progress is not None:
                self.progress(self.done, self.total)

        return tell


@dataclass(frozen=True, eq=False)
class Examined:
    """The result, the rows behind it, and contexts to look at."""

    result: DistractResult
    measured: Sequence[Measured]
    pictures: Sequence[Picture]


def make_sets(
    corpus: Corpus,
    *,
    names: Sequence[str] = NINE,
    seed: int = 0,
    split: str = USUAL_SPLIT,
    context_turns: int | None = None,
    is_last_only: bool = False,
    sentences: Sequence[str] = (),
    responses: str | None = None,
    limit: int | None = None,
) -> list[DistractingSet]:
    """The original test split and distracting sets of it; distractions come from the training split.

    A corpus without splits is measured whole, and one without a training split gives its other dialogues. With `limit`,
    only the first so many dialogues of the test split are measured, and distractions still come from all of training.
    """
    is_whole = set(corpus.splits) == {"all"} and split == USUAL_SPLIT
    test = corpus if is_whole else corpus.split(split)
    test = test if limit is None else test[:limit]
    training = corpus.split("train") if "train" in corpus.splits else corpus
    maker = Maker(test, training, seed, context_turns, is_last_only, sentences, responses)
    return [maker.original(), *(maker.make(name) for name in chosen_names(names))]


def examine(
    models: Mapping[str, DialogueModel],
    sets: Sequence[DistractingSet],
    *,
    wish: Wish | None = None,
    work: Path | None = None,
    progress: Progress | None = None,
) -> Examined:
    """Every model on every set; the first model is the one that the others are compared with."""
    wish = wish or Wish()
    if not models or not any(one.name != ORIGINAL for one in sets):
        raise UsageError("Give at least one model and one distracting set.")
    cases = sum(len(portion.cases) for one in sets for portion in all_portions(one, wish))
    stages = Stages(progress, len(models) * cases)
    measured = measure(models, sets, scoring=wish.scoring, work=work, progress=stages.next())
    origin = _origin(sets, wish)
    extras = {name: _extras(model, sets, measured, name, wish, origin, work, stages) for name, model in models.items()}
    settings = {name: dict(getattr(model, "settings", {})) for name, model in models.items()}
    about = {"settings": settings, "sets": {one.name: {"fingerprint": one.fingerprint, **one.about} for one in sets}}
    result = summarise(measured, origin=origin, resampling=wish.resampling, extras=extras, about=about)
    chosen = _picture_set(sets)
    case = picture_case(chosen.cases)
    pictures = [] if case is None else [picture(models, case, wish.scoring)]
    return Examined(result, measured, pictures)


def _origin(sets: Sequence[DistractingSet], wish: Wish) -> Origin:
    about = next((one.about for one in sets if one.about), {})
    chosen = {**wish.scoring.to_dict(), "context-turns": about.get("context_turns")}
    settings = {key: value for key, value in chosen.items() if value is not None}
    return Origin(str(about.get("corpus", "")), settings, about.get("seed"))


def _picture_set(sets: Sequence[DistractingSet]) -> DistractingSet:
    distracting = [one for one in sets if one.name != ORIGINAL]
    return next((one for one in distracting if one.name.startswith("random")), distracting[0])


def _extras(
    model: DialogueModel,
    sets: Sequence[DistractingSet],
    measured: Sequence[Measured],
    name: str,
    wish: Wish,
    origin: Origin,
    work: Path | None,
    stages: Stages,
) -> dict[str, Extras]:
    """Influence and behaviour on every distracting set, where they are wished for."""
    if not (wish.has_influence or wish.has_behaviour):
        return {}
    original = next((one for one in sets if one.name == ORIGINAL), None)
    if wish.has_behaviour and original is None:
        raise UsageError("What distractions change needs the original test set among the sets.")
    said: list[str | None] = []
    if wish.has_behaviour and original is not None:
        said = respond(model, original.cases, work=work, progress=stages.next())
    found = {}
    for one in sets:
        if one.name == ORIGINAL:
            continue
        extras, seen = Extras(), next(each for each in measured if (each.model, each.name) == (name, one.name))
        how: dict[str, Any] = {"origin": origin_of(origin, seen), "resampling": wish.resampling}
        if wish.has_influence:
            extras += influence(model, one.cases, work=work, progress=stages.next(), **how)
        if wish.has_behaviour:
            written = respond(model, one.cases, work=work, progress=stages.next())
            before = unread(model, one.cases)
            extras += behaviour(said, written, one.cases, unread=before, ratios=das_ratios(seen), **how)
        found[one.name] = extras
    return found
