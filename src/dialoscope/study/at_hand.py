"""Corpora and models of a study, each had once, however many steps ask for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from dialoscope.corpus import Corpus
from dialoscope.errors import MissingExtraError, UsageError
from dialoscope.instruments import INSTRUMENTS, Progress
from dialoscope.study.models import Models, Source, check_turns, found_source, trained_folder, trained_source
from dialoscope.study.plan import Ask, ModelWish, Plan
from dialoscope.study.splits import dealt

Found = TypeVar("Found")


class Told(Protocol):
    """Who is told of what is got, and of models that cannot be had."""

    def begin(self, name: str) -> Progress | None:
        """Something is got; what is returned is told how far it is."""
        ...

    def got(self, name: str) -> None:
        """It is there."""
        ...

    def lost(self, model: str, error: Exception, seconds: float) -> None:
        """It cannot be had, and is a model."""
        ...

    def left_out(self, model: str, error: MissingExtraError) -> None:
        """Something has to be installed for a model, and a step goes on without it."""
        ...


class Nobody:
    """Nobody is told."""

    def begin(self, name: str) -> Progress | None:
        """Nothing."""
        return None

    def got(self, name: str) -> None:
        """Nothing."""

    def lost(self, model: str, error: Exception, seconds: float) -> None:
        """Nothing."""

    def left_out(self, model: str, error: MissingExtraError) -> None:
        """Nothing."""


class Untrained(Exception):
    """A model that would have to be trained first."""


class AtHand:
    """What was had so far, and what could not be had; with `trains`, missing models are trained."""

    def __init__(self, plan: Plan, folder: Path, corpora: dict[str, Corpus], told: Told, *, trains: bool) -> None:
        self.plan, self.folder, self.told, self.trains = plan, folder, told, trains
        self.corpora = corpora
        self.dealt: dict[str, Corpus] = {}
        self.sources: dict[str, Source] = {}
        self.broken: dict[str, Exception] = {}  # corpora and models that could not be had
        self._models: Models | None = None
        self._proved: set[str] = set()  # models that were loaded once

    def corpus(self, name: str) -> Corpus:
        """A corpus as it was read."""
        if name not in self.corpora:
            self.corpora[name] = self._had(f"corpus {name}", lambda progress: self.plan.load(name, progress=progress))
        return self.corpora[name]

    def given(self, ask: Ask, name: str) -> Corpus:
        """The corpus as the instrument is given it; models learn from the same splits."""
        corpus = self.corpus(name)
        return self._dealt(name) if INSTRUMENTS[ask.instrument].is_dealt else corpus

    def _dealt(self, name: str) -> Corpus:
        """A corpus of one split is dealt once for the whole study, or models would be asked what they learnt."""
        if name not in self.dealt:
            self.dealt[name] = dealt(self.corpus(name), self.plan.seed)
        return self.dealt[name]

    def dealt_names(self) -> list[str]:
        """Corpora of one split that were dealt."""
        return [name for name, one in self.dealt.items() if one is not self.corpora[name]]

    def look_for_models(self) -> None:
        """Look for all models that should be there: what is said of one must not hide the others."""
        for ask in self.plan.asks:
            self._look_for(ask)

    def _look_for(self, ask: Ask) -> None:
        for name in ask.models:
            if self.plan.models[name].path is not None:
                with suppress(Exception):  # kept among the broken
                    self._get(name)

    def _get(self, name: str) -> None:
        """Have a model, unless it was had before."""
        if name not in self.sources:
            self.sources[name] = self._had(f"model {name}", partial(self._source, name))

    def _check_together(self, ask: Ask) -> None:
        """Complain of models that cannot be asked together; those that cannot be had are not asked."""
        lost = {name for name, error in self.broken.items() if not isinstance(error, Untrained)}
        check_turns(ask, {name: self.plan.models[name] for name in ask.models if f"model {name}" not in lost})

    def available(self, ask: Ask) -> dict[str, Source]:
        """The models that can be had; a step goes on with those, and the others stand among the failures."""
        without: dict[str, MissingExtraError] = {}
        untrained: Untrained | None = None
        # Before others are trained for hours it should be known that one is not there, or that they do not go together.
        self._look_for(ask)
        self._check_together(ask)
        for name in ask.models:
            try:
                self._get(name)
            except MissingExtraError as error:
                without[name] = error
            except Untrained as error:
                untrained = error
            except Exception:
                continue
        if untrained is not None:
            raise untrained
        found = {name: self.sources[name] for name in ask.models if name in self.sources}
        if ask.models and not found:
            raise next(iter(without.values()), UsageError("None of its models can be loaded."))
        for name, missing in without.items():
            self.told.left_out(f"model {name}", missing)
        return found

    def loadable(self, ask: Ask, sources: Mapping[str, Source]) -> dict[str, Source]:
        """Those of the models that can be loaded: tried before the step, which one of them would take down with it."""
        models = self.loaded(sources)
        for name in sources:
            if name not in self._proved:
                try:
                    self._had(f"model {name}", lambda progress, name=name: models[name])  # type: ignore[misc]
                    self._proved.add(name)
                except Exception:  # kept among the broken
                    del self.sources[name]
        return self.available(ask)

    def loaded(self, sources: Mapping[str, Source]) -> Models:
        """One set of models for all steps that ask the same ones, so that they are loaded once."""
        if self._models is None or self._models.sources != sources:
            self._models = Models(sources)
        return self._models

    def _source(self, name: str, progress: Progress | None) -> Source:
        wish = self.plan.models[name]
        if wish.path is not None:
            return found_source(wish, device=self.plan.device)
        corpus = self._dealt(wish.corpus or next(iter(self.plan.corpora)))
        models = self.folder / "models"
        place = trained_folder(wish, name, corpus, models, device=self.plan.device) / "best"
        if not self.trains:
            return self._already_trained(wish, place)
        return trained_source(wish, name, corpus, models, device=self.plan.device, progress=progress)

    def _already_trained(self, wish: ModelWish, place: Path) -> Source:
        if not place.is_dir():
            raise Untrained
        return found_source(replace(wish, path=str(place), preset=None), device=self.plan.device)

    def _had(self, name: str, get: Callable[[Progress | None], Found]) -> Found:
        """Something that several steps need: tried once."""
        if name in self.broken:
            raise self.broken[name]
        begin = time.monotonic()
        try:
            found = get(self.told.begin(name))
        except Exception as error:
            self.broken[name] = error
            if name.startswith("model ") and not isinstance(error, MissingExtraError):
                self.told.lost(name, error, time.monotonic() - begin)
            raise
        self.told.got(name)
        return found
