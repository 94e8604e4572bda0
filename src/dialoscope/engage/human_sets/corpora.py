"""Corpora whose turns carry ratings: FED, DailyDialog-Human, and others in the same form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dialoscope.corpus import Corpus, Turn, load
from dialoscope.corpus.split import named_splits
from dialoscope.corpus.streams import plain_name
from dialoscope.corpus.turns import conversation
from dialoscope.engage.human_sets.items import Rated, dialogues_of, present, set_of
from dialoscope.engage.human_sets.rated import HumanSet, Turns
from dialoscope.errors import UsageError, unknown_name

ENGAGING = ("Engaging", "engagement", "engagingness")  # what is looked for where no aspect is asked for
SCORED_FILE = "Eng_Scores_"  # of DailyDialog-Human: the same pairs with earlier metrics' scores
PAPER_ANNOTATORS = 5  # that the paper on remaining depth has for FED and DailyDialog-Human (section 4)


def from_corpus(
    path: Path, aspect: str | None, metrics: Sequence[str], name: str | None, splits: Sequence[str] = ()
) -> HumanSet:
    """The rated turns of a corpus on disk, or of some splits of it."""
    return rated_turns_of(load(path), path, aspect=aspect, metrics=metrics, name=name, splits=splits)


def rated_turns_of(
    corpus: Corpus,
    path: Path | str,
    *,
    aspect: str | None = None,
    metrics: Sequence[str] = (),
    name: str | None = None,
    splits: Sequence[str] = (),
) -> HumanSet:
    """The rated turns of a corpus; messages call it by its path or name."""
    corpus = named_splits(corpus, splits) if splits else corpus
    chosen = _aspect(corpus, aspect, path)
    found = list(_rated_turns(corpus, chosen, path, _scores_beside(corpus)))
    kept = [one for one in found if one.ratings]
    if not kept:
        raise UsageError(f"{path}: expected turns rated for '{chosen}', found none.")
    left_out = Counter(_without_rated_turns(corpus))
    left_out += Counter({f"no rating of '{chosen}'": len(found) - len(kept)})
    known = [metric for metric in dict.fromkeys(key for one in kept for key in one.scores)]
    for metric in metrics:
        if metric not in known:
            raise unknown_name("metric", metric, known) if known else _no_metrics(path, metric)
    built = set_of(name or _name(corpus), kept, list(metrics) or known)
    return replace(built, aspect=chosen, note=_note(corpus, built), left_out=dict(left_out))


def _aspect(corpus: Corpus, wanted: str | None, path: Path | str) -> str:
    """The aspect that was asked for, or engagingness under one of its names."""
    known: dict[str, None] = dict.fromkeys(
        aspect for dialogue in corpus for turn in dialogue.turns for aspect in _ratings(turn)
    )
    if not known:
        whole = sum("ratings" in dialogue.labels for dialogue in corpus)
        found = f"{whole} dialogues rated as a whole" if whole else "none"
        raise UsageError(f"{path}: expected turns with ratings, found {found}.")
    by_lower = {one.lower(): one for one in known}
    for name in (wanted,) if wanted else ENGAGING:
        if name.lower() in by_lower:
            return by_lower[name.lower()]
    if wanted:
        raise unknown_name("aspect", wanted, known)
    if len(known) == 1:
        return next(iter(known))
    raise UsageError(f"{path}: which aspect? Rated are {', '.join(known)}. Name one with --aspect.")


def _rated_turns(
    corpus: Corpus, aspect: str, path: Path | str, beside: Mapping[Turns, Mapping[str, float]]
) -> Iterator[Rated]:
    """Every rated turn with the turns before it; one without a rating of this aspect comes with none."""
    found: list[tuple[Turns, Turns, dict[str, float], dict[str, float]]] = []
    for dialogue in corpus:
        for place, turn in enumerate(dialogue.turns, 1):
            if not _ratings(turn):
                continue
            said, where = tuple(dialogue.texts[:place]), f"{path}: dialogue {dialogue.id}"
            ratings = present(_ratings(turn).get(aspect, {}), f"{where}: the rating by")
            scores = present(turn.labels.get("scores", beside.get(said, {})), f"{where}: the score by")
            found.append((said, tuple(conversation(dialogue, until=place).texts), ratings, scores))
    names = dialogues_of([said for said, *_ in found], whole=[tuple(one.texts) for one in corpus])
    for name, (_, turns, ratings, scores) in zip(names, found, strict=True):
        yield Rated(turns, name, ratings, scores)


def _ratings(turn: Turn) -> Mapping[str, Mapping[str, Any]]:
    """What people said of a turn, by aspect and annotator; labels of that name in another form are none."""
    found = turn.labels.get("ratings", {})
    return found if isinstance(found, dict) and all(isinstance(one, dict) for one in found.values()) else {}


def _without_rated_turns(corpus: Corpus) -> Iterator[str]:
    """Why dialogues bring no items, one by one."""
    for dialogue in corpus:
        if not any(map(_ratings, dialogue.turns)):
            yield "rated as a whole dialogue" if "ratings" in dialogue.labels else "no turn is rated"


def _scores_beside(corpus: Corpus) -> dict[Turns, Mapping[str, float]]:
    """Other metrics' scores of the same pairs, from the file that reading a folder sets aside."""
    files = [file for file in corpus.ignored if SCORED_FILE in plain_name(Path(file))]
    return {tuple(one.texts): one.turns[-1].labels.get("scores", {}) for file in files for one in load(file)}


def _name(corpus: Corpus) -> str:
    return corpus.format if corpus.format in ("fed", "dailydialog-human") else corpus.name


def _note(corpus: Corpus, rated: HumanSet) -> str:
    """What a reader of the ceiling should know."""
    each = rated.annotators_per_item
    notes = []
    if corpus.format in ("fed", "dailydialog-human") and each != PAPER_ANNOTATORS:
        notes.append(f"The file has {each:g} annotators per item; the paper says {PAPER_ANNOTATORS}.")
    if all(name.isdecimal() for name in rated.annotators):
        notes.append("Annotators are not named: the first, second, … rating of every item stands for one of them.")
    return " ".join(notes)


def _no_metrics(path: Path | str, metric: str) -> UsageError:
    return UsageError(f"{path}: no metric '{metric}': there are no other metrics' scores.")
