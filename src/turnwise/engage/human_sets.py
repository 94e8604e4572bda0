"""Turns that people have rated: FED, DailyDialog-Human, or a table of one's own, ready to be held against raters."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from turnwise.corpus import Corpus, Turn, load
from turnwise.corpus.formats import detect
from turnwise.corpus.load import name_of
from turnwise.corpus.readers.tables import CONTEXT, RESPONSE, column_of, is_native, parquet_batches
from turnwise.corpus.readers.text import END, split_marked
from turnwise.corpus.streams import (
    BadRecord,
    Record,
    Source,
    csv_records,
    json_records,
    plain_name,
    shown,
    why_not_text,
)
from turnwise.corpus.turns import merged
from turnwise.errors import CorpusError, UsageError, unknown_name
from turnwise.metrics import ratings_matrix
from turnwise.metrics.pairs import DIALOGUE_COLUMNS

Turns = tuple[str, ...]
Numbers = npt.NDArray[np.float64]
Some = TypeVar("Some")

ENGAGING = ("Engaging", "engagement", "engagingness")  # what is looked for where no aspect is asked for
GAPS = ("", "na", "n/a", "nan", "none", "null")  # how tables write that somebody did not rate
CSV, JSON, PARQUET = (".csv", ".tsv", ".tab"), (".jsonl", ".ndjson", ".json"), (".parquet", ".pq")
NO_RATINGS = ("", "id", "split", "index", "unnamed: 0", *DIALOGUE_COLUMNS)  # columns that number or name the rows
SCORED_FILE = "Eng_Scores_"  # of DailyDialog-Human: the same pairs with earlier metrics' scores
MOST_NAMED = 10  # annotators that are listed by name
WORDS = re.compile(r"[^\W_]+")  # letters and digits
LONGEST_QUERY = 200  # words before a rated turn that the guard of selections looks through
PAPER_ANNOTATORS = 5  # that the paper on remaining depth has for FED and DailyDialog-Human (section 4)


@dataclass(frozen=True, eq=False)
class HumanSet:
    """Rated turns, each with the turns before it, and what every annotator said of it."""

    name: str
    dialogues: tuple[Turns, ...]  # the rated turn is the last; consecutive messages of one speaker are one turn
    ratings: Numbers  # (items, annotators), NaN where somebody did not rate
    clusters: tuple[str, ...]  # the dialogue each item comes from
    annotators: tuple[str, ...]
    metrics: Mapping[str, Numbers] = field(default_factory=dict)  # other metrics' scores, NaN where there is none
    aspect: str = ""
    note: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)  # reason -> items

    def __post_init__(self) -> None:
        n = len(self.dialogues)
        shapes = {"clusters": (len(self.clusters),), **{name: one.shape for name, one in self.metrics.items()}}
        if self.ratings.shape != (n, len(self.annotators)) or any(shape != (n,) for shape in shapes.values()):
            raise ValueError(f"{n} dialogues: expected as many rows of ratings, clusters and scores of each metric")

    def __len__(self) -> int:
        return len(self.dialogues)

    @cached_property
    def mean(self) -> Numbers:
        """The mean rating of each item, over those who rated it: (items,)."""
        return np.asarray(np.nanmean(self.ratings, axis=1))

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """A hash of each item's rated turn and its query, by which it is known wherever it stands (`pair_key`)."""
        return tuple(map(pair_key, self.dialogues))

    @cached_property
    def known_as(self) -> tuple[frozenset[str], ...]:
        """All keys under which each item may have been selected on (`keys_of`)."""
        return tuple(frozenset(keys_of(turns)) for turns in self.dialogues)

    @property
    def annotators_per_item(self) -> float:
        """How many people rated an item, on average."""
        return float(np.isfinite(self.ratings).sum(axis=1).mean()) if len(self) else 0.0

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of all that a number may depend on: turns, dialogues, ratings and other metrics' scores."""
        exact = tuple(map(item_key, self.dialogues))
        digest = hashlib.sha256(repr((exact, self.clusters, self.annotators, tuple(self.metrics))).encode())
        for numbers in (self.ratings, *self.metrics.values()):
            digest.update(np.ascontiguousarray(numbers).tobytes())
        return digest.hexdigest()[:12]

    def select(self, places: Sequence[int] | npt.NDArray[np.int64]) -> HumanSet:
        """The items at these places, in this order."""
        rows = np.asarray(places, dtype=np.int64)
        return replace(
            self,
            dialogues=tuple(self.dialogues[row] for row in rows),
            ratings=self.ratings[rows],
            clusters=tuple(self.clusters[row] for row in rows),
            metrics={name: values[rows] for name, values in self.metrics.items()},
        )


class Halves(NamedTuple):
    """A set cut in two: models may be chosen by one half, and are reported on the other."""

    selection: HumanSet
    reported: HumanSet


def item_key(turns: Iterable[str]) -> str:
    """The sha256 of some turns exactly as they stand, which tells ``["a", "b"]`` from ``["ab"]``."""
    digest = hashlib.sha256()
    for turn in turns:
        data = turn.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def normalised(text: str) -> str:
    """Letters and digits alone, casefolded, so that neither case, punctuation nor spacing tells two texts apart.

    >>> normalised("Do n't  YOU ?") == normalised("don’t you")
    True
    """
    return "".join(_words(text)) or text.strip()  # a turn of nothing but marks stays what it is


def _words(text: str) -> list[str]:
    return WORDS.findall(unicodedata.normalize("NFKC", text).casefold())


def pair_key(turns: Sequence[str]) -> str:
    """The key of a rated turn with the turn before it, both normalised: earlier context does not change it."""
    return item_key(map(normalised, turns[-2:]))


def keys_of(turns: Sequence[str]) -> Iterator[str]:
    """All keys under which a rated turn may have been used, here or in another copy of its set.

    Its `pair_key`; the keys that it has where its context is cut to its last words, however these are divided into
    turns; and the hash of the turns as they stand. A copy whose query lost words is not known by any of them.
    """
    yield pair_key(turns)
    yield item_key(turns)
    said = normalised(turns[-1])
    yield item_key([said])
    before = [word for turn in turns[:-1] for word in _words(turn)][-LONGEST_QUERY:]
    for place in range(len(before)):
        yield item_key(["".join(before[place:]), said])


def halves(rated: HumanSet) -> Halves:
    """The half that may be selected on and the half that is reported, always the same, whatever the items' order.

    Dialogues are sorted by the hash of their items' `keys` and cut in the middle, so that both halves are equally large
    to within one (the reported half is the larger). Only a dialogue on the cut can have items in both. The keys are of
    normalised pairs: case, punctuation, spacing and earlier context do not move an item to the other half.
    """
    members: dict[str, list[str]] = {}
    for dialogue, key in zip(rated.clusters, rated.keys, strict=True):
        members.setdefault(dialogue, []).append(key)
    # Of all items together: the least of their hashes would bring long dialogues to the front.
    ranks = {dialogue: item_key(sorted(keys)) for dialogue, keys in members.items()}

    def rank(place: int) -> tuple[str, str, str]:
        return ranks[rated.clusters[place]], rated.keys[place], item_key(rated.dialogues[place])

    order = sorted(range(len(rated)), key=rank)
    middle = len(order) // 2
    return Halves(rated.select(sorted(order[:middle])), rated.select(sorted(order[middle:])))


def read_human(
    path: str | Path,
    *,
    aspect: str | None = None,
    metrics: Sequence[str] = (),
    annotators: Sequence[str] = (),
    name: str | None = None,
) -> HumanSet:
    """Read rated turns: FED, DailyDialog-Human, any corpus with `ratings` on its turns, or a table.

    A table (CSV, TSV, JSONL or Parquet) has the columns ``context`` (a list of turns, or text with turns separated by
    line breaks or `` __eou__ ``), ``response`` (the rated turn), a column of numbers for each annotator, and
    ``dialogue_id`` where it is known. `metrics` are columns with other metrics' scores, `annotators` the columns of
    annotators: name them where other columns have numbers, too. The note says which were read. The folder of
    DailyDialog-Human brings its own metrics: the annotated pairs get the scores that stand in the other file.

    >>> read_human("fed_data.json", aspect="Engaging")                     # doctest: +SKIP
    >>> read_human("mine.csv", annotators=["ann", "bob"], metrics=["bleu"])  # doctest: +SKIP
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise UsageError(f"No file or folder '{path}' of turns that people rated.")
    if _is_table(path):
        if aspect is not None:
            raise UsageError(f"{path}: the columns of a table are annotators of one aspect. Leave out --aspect.")
        return _from_table(path, metrics, annotators, name or name_of([path]))
    if annotators:
        raise UsageError(f"{path}: annotators can be named for tables, whose columns they are. Leave them out.")
    return _from_corpus(path, aspect, metrics, name)


# --- Corpora whose turns carry ratings --------------------------------------------------------------------------------


class Rated(NamedTuple):
    """One item on its way into a set."""

    turns: Turns
    dialogue: str
    ratings: Mapping[str, float]  # by annotator
    scores: Mapping[str, float]  # by metric


def _from_corpus(path: Path, aspect: str | None, metrics: Sequence[str], name: str | None) -> HumanSet:
    corpus = load(path)
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
    built = _set_of(name or _name(corpus), kept, list(metrics) or known)
    return replace(built, aspect=chosen, note=_note(corpus, built), left_out=dict(left_out))


def _aspect(corpus: Corpus, wanted: str | None, path: Path) -> str:
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
    corpus: Corpus, aspect: str, path: Path, beside: Mapping[Turns, Mapping[str, float]]
) -> Iterator[Rated]:
    """Every rated turn with the turns before it; one without a rating of this aspect comes with none."""
    found: list[tuple[Turns, Turns, dict[str, float], dict[str, float]]] = []
    for dialogue in corpus:
        for place, turn in enumerate(dialogue.turns, 1):
            if not _ratings(turn):
                continue
            until = dialogue._replace(turns=dialogue.turns[:place])
            said, where = tuple(until.texts), f"{path}: dialogue {dialogue.id}"
            ratings = _present(_ratings(turn).get(aspect, {}), f"{where}: the rating by")
            scores = _present(turn.labels.get("scores", beside.get(said, {})), f"{where}: the score by")
            found.append((said, tuple(merged(until).texts), ratings, scores))
    names = dialogues_of([said for said, *_ in found], whole=[tuple(one.texts) for one in corpus])
    for name, (_, turns, ratings, scores) in zip(names, found, strict=True):
        yield Rated(turns, name, ratings, scores)


def _ratings(turn: Turn) -> Mapping[str, Mapping[str, Any]]:
    """What people said of a turn, by aspect and annotator; labels of that name in another form are none."""
    found = turn.labels.get("ratings", {})
    return found if isinstance(found, dict) and all(isinstance(one, dict) for one in found.values()) else {}


def dialogues_of(items: Sequence[Turns], *, whole: Iterable[Turns] = ()) -> list[str]:
    """Which dialogue each item comes from, where nobody says: the longest that begins with it or with its context.

    FED has several turns of a dialogue as items of their own, each with the turns before it.
    """
    names: dict[Turns, str] = {}
    for turns in sorted({*items, *whole}, key=lambda one: (-len(one), one)):
        own = names.get(turns) or names.get(turns[:-1]) or item_key(turns)[:12]
        for end in range(1, len(turns) + 1):
            names.setdefault(turns[:end], own)
    return [names[turns] for turns in items]


def _present(values: Mapping[str, Any], where: str) -> dict[str, float]:
    """Numbers by name, without the gaps."""
    read = {name: number(value, f"{where} '{name}'") for name, value in values.items()}
    return {name: value for name, value in read.items() if value is not None}


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


def _no_metrics(path: Path, metric: str) -> UsageError:
    return UsageError(f"{path}: no metric '{metric}': there are no other metrics' scores.")


# --- Tables -----------------------------------------------------------------------------------------------------------


def _is_table(path: Path) -> bool:
    """Whether a file is a table of contexts, responses and annotators, and no format of its own."""
    kind = Path(plain_name(path)).suffix.lower()
    if path.is_dir() or kind not in (*CSV, *JSON, *PARQUET):
        return False
    if kind in PARQUET:
        first = next(_checked(path, parquet_batches(Source(path))), None)
        return first is None or not is_native(first.schema)
    try:
        found = detect(Source(path))
    except BadRecord:  # a list of turns as the context is nothing that the corpus readers know
        return True
    return found in ("pairs", "json-pairs", "ubuntu", "text") or (kind in CSV and found != "dailydialog-human")


def _from_table(path: Path, metrics: Sequence[str], annotators: Sequence[str], name: str) -> HumanSet:
    rows = list(_checked(path, _rows(path)))
    if not rows:
        raise UsageError(f"{path}: expected rows with a context, a response and ratings, found none.")
    columns = list(dict.fromkeys(name for row in rows for name in row.value))
    texts = _needed(columns, CONTEXT, path), _needed(columns, RESPONSE, path)
    for metric in metrics:
        if metric not in columns:
            raise unknown_name("column", metric, columns)
    free = [one for one in columns if one not in (*texts, *metrics)]
    people = _named(rows, free, annotators, metrics, path) or _with_numbers(rows, free, path)
    items = list(_table_items(rows, columns, texts, people, metrics, path))
    kept = [one for one in items if one.ratings]
    left_out = {"no rating": len(items) - len(kept)} if len(kept) < len(items) else {}
    built = _set_of(name, kept, metrics)
    unread = [one for one in free if one not in people and one.lower() not in NO_RATINGS]
    return replace(built, note=" ".join(_table_notes(built, unread, bool(annotators))), left_out=left_out)


def _named(
    rows: Sequence[Record], free: Sequence[str], annotators: Sequence[str], metrics: Sequence[str], path: Path
) -> list[str]:
    """The annotators that were asked for, each of whom rated something."""
    for one in annotators:
        if one in metrics:
            raise UsageError(f"{path}: column '{one}' was given as an annotator and as a metric. Expected one of them.")
        if one not in free:
            raise unknown_name("annotator", one, free)
        if not _has_numbers(rows, one):
            raise UsageError(f"{path}: expected ratings by annotator '{one}', found no numbers in that column.")
    return list(dict.fromkeys(annotators))


def _with_numbers(rows: Sequence[Record], free: Sequence[str], path: Path) -> list[str]:
    """Columns of numbers that may be annotators, where none were named."""
    people = [one for one in free if one.lower() not in NO_RATINGS and _has_numbers(rows, one)]
    if not people:
        found = ", ".join(dict.fromkeys(name for row in rows for name in row.value))
        raise UsageError(f"{path}: expected a column of numbers for each annotator. Columns: {found}.")
    return people


def _table_notes(rated: HumanSet, unread: Sequence[str], is_named: bool) -> Iterator[str]:
    """Who was read as an annotator, whether they use one scale, and what was not read."""
    people = rated.annotators
    more = f" and {len(people) - MOST_NAMED} more" if len(people) > MOST_NAMED else ""
    yield f"Annotators read: {', '.join(people[:MOST_NAMED])}{more}."
    largest = np.nanmax(np.abs(rated.ratings), axis=0)  # (annotators,)
    least, most = int(largest.argmin()), int(largest.argmax())
    if largest[most] > 2 * largest[least]:
        low, high = np.nanmin(rated.ratings, axis=0), np.nanmax(rated.ratings, axis=0)
        shown = ", ".join(f"{people[one]} {low[one]:g} to {high[one]:g}" for one in (least, most))
        yield f"Their ranges differ ({shown}): where a column is no annotator, name the annotators or the metrics."
    if unread:
        yield f"Columns {'' if is_named else 'without numbers '}that were not read: {', '.join(unread)}."


def _needed(columns: Sequence[str], wanted: tuple[str, ...], path: Path) -> str:
    found = column_of(columns, wanted)
    if found is None:
        raise UsageError(f"{path}: no column '{wanted[0]}'. Columns: {', '.join(columns) or 'none'}.")
    return found


def _table_items(
    rows: Sequence[Record],
    columns: Sequence[str],
    texts: tuple[str, str],
    people: Sequence[str],
    metrics: Sequence[str],
    path: Path,
) -> Iterator[Rated]:
    turns = [_turns(row, *texts, f"{path}:{row.line}") for row in rows]
    names = _table_dialogues(rows, turns, column_of(columns, DIALOGUE_COLUMNS))
    for said, name, row in zip(turns, names, rows, strict=True):
        ratings, scores = (
            _present({one: row.value.get(one) for one in some}, f"{path}:{row.line}: column")
            for some in (people, metrics)
        )
        yield Rated(said, name, ratings, scores)


def _table_dialogues(rows: Sequence[Record], turns: Sequence[Turns], column: str | None) -> list[str]:
    """The dialogue of each row by its id; one without an id goes with rows of the same turns, or is by itself."""
    found = dialogues_of(turns)
    if column is None:
        return found
    given = [None if _is_gap(row.value.get(column)) else str(row.value[column]) for row in rows]
    ids: dict[str, str] = {}
    for text, name in zip(found, given, strict=True):
        if name is not None:
            ids.setdefault(text, name)
    return [ids.get(text, text) if name is None else name for text, name in zip(found, given, strict=True)]


def _turns(row: Record, context: str, response: str, where: str) -> Turns:
    before = row.value.get(context)
    if not isinstance(before, list):
        before = _split(_text(before, context, where, "text or a list of turns"))
    said = [_text(turn, context, where) for turn in before]
    return (*said, _text(row.value.get(response), response, where))


def _split(text: str) -> list[str]:
    """Turns of a context in one text: between `__eou__` marks, or line by line."""
    pieces = split_marked(text) if END in text else text.split("\n")
    return [piece.strip() for piece in pieces if piece.strip()]


def _text(value: Any, column: str, where: str, expected: str = "text") -> str:
    if not isinstance(value, str):
        raise UsageError(f"{where}: expected {expected} in '{column}', found {shown(str(value))}.")
    if problem := why_not_text(value):
        raise UsageError(f"{where}: expected UTF-8 text in '{column}', found {problem}.")
    return value


def _has_numbers(rows: Sequence[Record], column: str) -> bool:
    """Whether any value is a number: a column of nothing but words names something, and rates nothing."""
    values = [row.value.get(column) for row in rows]
    return any(_float(value) is not None for value in values if not _is_gap(value))


def _rows(path: Path) -> Iterator[Record | BadRecord]:
    source, kind = Source(path), Path(plain_name(path)).suffix.lower()
    if kind in CSV:
        yield from csv_records(source, delimiter="," if kind == ".csv" else "\t")
    elif kind in JSON:
        yield from json_records(source)
    else:
        rows = (row for batch in parquet_batches(source) for row in batch.to_pylist())
        yield from (Record(row, number) for number, row in enumerate(rows, 1))


def _checked(path: Path, items: Iterable[Some | BadRecord]) -> Iterator[Some]:
    """Sound records; the first bad one ends the reading, with its line."""
    try:
        for item in items:
            if isinstance(item, BadRecord):
                raise item
            if isinstance(item, Record) and not isinstance(item.value, dict):
                raise BadRecord("a row as a JSON object", shown(str(item.value)), item.line)
            yield item
    except BadRecord as bad:
        raise CorpusError(f"{path}:{bad.line}: {bad}." if bad.line else f"{path}: {bad}.") from bad
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror or error}.") from error


# --- Both -------------------------------------------------------------------------------------------------------------


def number(value: Any, where: str) -> float | None:
    """A rating or a score as a number, None for a gap; anything else is an error that says where it stands."""
    if _is_gap(value):
        return None
    found = _float(value)
    if found is None or not math.isfinite(found):
        raise UsageError(f"{where}: expected a number, found {shown(str(value))}.")
    return found


def _is_gap(value: Any) -> bool:
    """Whether somebody did not rate: nothing, a word that says so, or NaN."""
    if isinstance(value, str):
        return value.strip().lower() in GAPS
    return value is None or (isinstance(value, float) and math.isnan(value))


def _float(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _set_of(name: str, items: Sequence[Rated], metrics: Sequence[str]) -> HumanSet:
    triples = [(place, who, rating) for place, one in enumerate(items) for who, rating in one.ratings.items()]
    return HumanSet(
        name,
        tuple(one.turns for one in items),
        ratings_matrix(triples),
        tuple(one.dialogue for one in items),
        tuple(dict.fromkeys(who for _, who, _ in triples)),
        {metric: np.array([one.scores.get(metric, math.nan) for one in items]) for metric in metrics},
    )
