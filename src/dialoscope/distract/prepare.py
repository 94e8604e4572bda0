"""What the three questions do first: open the models, make the test sets or take written ones, and say which."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from dialoscope.corpus import Corpus
from dialoscope.distract.names import ORIGINAL, chosen_names
from dialoscope.distract.sets import DistractingSet, make_sets
from dialoscope.distract.settings import QuestionSettings
from dialoscope.distract.stored import read_sets
from dialoscope.errors import UsageError
from dialoscope.model.loading import check_model, open_models
from dialoscope.model.protocol import DialogueModel
from dialoscope.record import Origin

Sets = Sequence[DistractingSet]
Asked = TypeVar("Asked", bound=QuestionSettings)


@dataclass(frozen=True, eq=False)
class Prepared(Generic[Asked]):
    """Models and test sets, and the account of the dialogues behind them."""

    models: Mapping[str, DialogueModel]
    sets: Sets  # the original test set first, where it is among them
    settings: Asked  # with the turns of context that are used
    parts: Mapping[str, int]
    used: str
    skipped: Mapping[str, int]  # reason -> records that were left out on reading
    origin: Origin

    @property
    def distracting(self) -> list[DistractingSet]:
        """The sets with distractions."""
        return [each for each in self.sets if each.name != ORIGINAL]

    @property
    def about(self) -> dict[str, dict[str, Any]]:
        """How each set was made, and a fingerprint of its contexts."""
        shown = ("count", "sentences")
        return {
            each.name: {"fingerprint": each.fingerprint, **{key: each.about[key] for key in shown if key in each.about}}
            for each in self.sets
        }

    @property
    def contexts(self) -> dict[str, int]:
        """Contexts by set."""
        return {each.name: len(each) for each in self.sets}


def prepare(
    corpus: Corpus | Sets | None,
    against: Mapping[str, Corpus] | None,
    settings: Asked,
    models: Mapping[str, Any] | None,
) -> Prepared[Asked]:
    """Open the models and make the sets of a corpus; sets that were made or written before are taken as they are."""
    if against:
        raise UsageError("Questions about distractions compare with no other corpora: leave out against.")
    if not models:
        raise UsageError('Give at least one model: --model NAME=PATH, or models={"mine": "runs/mine"} in Python.')
    for path in models.values() if isinstance(models, Mapping) else ():
        if isinstance(path, str):
            check_model(path)
    sets = _made_before(corpus, settings)
    opened = open_models(models, settings, quiet=True)
    skipped: Mapping[str, int] = {}
    if isinstance(corpus, Corpus):
        settings = replace(settings, context_turns=settings.context_turns or trained_turns(opened))
        sets, skipped = make_sets(corpus, settings), corpus.skipped
    if not any(each.name != ORIGINAL for each in sets):
        raise UsageError("There is no distracting set among the sets: name one, such as random-0.7.")
    about = next((each.about for each in sets if each.about), {})
    dialogues = len({case.dialogue for each in sets for case in each.cases})
    return Prepared(
        opened,
        sets,
        settings,
        about.get("parts", {"test": dialogues}),
        about.get("used", f"Measured: the sets that were given, of {dialogues:,} dialogues."),
        skipped,
        origin_of(settings, about, opened, sets),
    )


def trained_turns(models: Mapping[str, DialogueModel]) -> int | None:
    """How much context the models were trained with; all read the same contexts, so models that say it must agree."""
    turns = {name: model.context_turns for name, model in models.items() if hasattr(model, "context_turns")}
    if len(set(turns.values())) > 1:
        each = ", ".join(f"{name} {'all' if count is None else count}" for name, count in turns.items())
        raise UsageError(f"The models were trained with different turns of context ({each}): give --context-turns.")
    return next(iter(turns.values()), None)


def origin_of(
    settings: QuestionSettings, about: Mapping[str, Any], models: Mapping[str, DialogueModel], sets: Sets
) -> Origin:
    """What has to be repeated to get the same numbers; written sets are known by their contents, not by their place."""
    changed = {key: value for key, value in settings.changed().items() if key not in ("seed", "sets_dir")}
    contents = hashlib.sha256("".join(each.fingerprint for each in sets).encode()).hexdigest()[:12]
    if about.get("context_turns") is not None:
        changed["context_turns"] = about["context_turns"]
    asked = ",".join(f"{name}={model.name}" for name, model in models.items())
    seed = about.get("seed", settings.seed)
    return Origin(str(about.get("corpus", "")), {**changed, "contexts": contents, "models": asked}, seed)


def _made_before(corpus: Corpus | Sets | None, settings: QuestionSettings) -> Sets:
    """Written sets, or those that were given in place of a corpus; none where a corpus was given."""
    if settings.sets_dir is not None:
        if corpus is not None:
            raise UsageError("Give a corpus to make sets of, or --sets-dir with written sets; not both.")
        return _wanted(read_sets(settings.sets_dir), settings)
    if corpus is None:
        raise UsageError("Give a corpus with the dialogues to measure, or --sets-dir with written sets.")
    if isinstance(corpus, Corpus):
        return []
    if isinstance(corpus, list | tuple) and all(isinstance(each, DistractingSet) for each in corpus):
        settings.check_unmade()
        return _wanted(corpus, settings)
    hint = "Load one with dialoscope.load, or give the list that make_sets returned."
    raise UsageError(f"Distractions are measured on a Corpus, found {type(corpus).__name__}. {hint}")


def _wanted(sets: Sets, settings: QuestionSettings) -> list[DistractingSet]:
    """The sets that the settings name; all of them by default."""
    if settings.sets == type(settings)().sets:
        return list(sets)
    wanted = {ORIGINAL, *chosen_names(settings.sets)}
    missing = sorted(wanted - {ORIGINAL} - {each.name for each in sets})
    if missing:
        raise UsageError(f"The written sets have no '{missing[0]}'; they are {', '.join(each.name for each in sets)}.")
    return [each for each in sets if each.name in wanted]
