"""Dialogues as columns: `Turn` and `Dialogue` are views, `Corpus` is an Arrow table.

A million dialogues are four Arrow columns, not millions of Python objects; a `Dialogue` is made when
somebody looks at it and forgotten afterwards. Labels are free-form JSON, kept as the publisher wrote them
in per-turn and per-dialogue columns. Where several corpora annotate the same thing, the readers write it
under the same key, so that instruments need to know one form only:

=============  ========  ====================================================================
key            on        value
=============  ========  ====================================================================
``state``      turn      what the user has asked for so far: ``{domain: {slot: [value, …]}}``
``acts``       turn      ``[{"domain": …, "act": …, "slot": …, "values": […]}, …]``
``goal``       dialogue  domains the user came for: ``{domain: …}``
``persona``    dialogue  ``{speaker: [sentence, …]}``
``ratings``    either    per annotator, never averaged: ``{aspect: {annotator: score}}``
=============  ========  ====================================================================
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.errors import CorpusError, UsageError

Labels = Mapping[str, Any]

TURN = pa.struct([("speaker", pa.string()), ("text", pa.string()), ("labels", pa.string())])
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("split", pa.string()),
        ("labels", pa.string()),  # JSON, or null where there are none
        ("turns", pa.list_(TURN)),
    ]
)
ONE_ARRAY_BYTES = 1 << 30  # well under the two gigabytes that one Arrow string array can hold
SPLIT_ORDER = ("train", "validation", "test")  # corpus order; other splits follow as they come


class _NoLabels(dict[str, Any]):
    """An empty dict that stays empty: every turn without labels shares it."""

    def _refuse(self, *arguments: Any, **named: Any) -> Any:
        raise TypeError("labels are frozen; make a new turn with turn._replace(labels=…)")

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _refuse


NO_LABELS: Labels = _NoLabels()


class Turn(NamedTuple):
    """One speaker's message: a named tuple, because reading makes millions of them."""

    speaker: str
    text: str
    labels: Labels = NO_LABELS


class Dialogue(NamedTuple):
    """Turns in order, with an id, the split they belong to, and optional labels."""

    turns: tuple[Turn, ...]
    id: str = ""
    split: str = ""
    labels: Labels = NO_LABELS

    @property
    def texts(self) -> list[str]:
        """The turns' texts in order."""
        return [turn.text for turn in self.turns]


@dataclass(frozen=True, eq=False)
class Corpus:
    """Dialogues in named splits, backed by Arrow.

    >>> corpus = Corpus.of([Dialogue((Turn("A", "Hi."), Turn("B", "Hello.")), id="d1", split="train")])
    >>> len(corpus), corpus.splits, corpus[0].texts
    (1, {'train': 1}, ['Hi.', 'Hello.'])
    """

    table: pa.Table
    name: str = "corpus"
    format: str = "python"
    skipped: Mapping[str, int] = field(default_factory=dict)  # reason -> records left out on reading
    bad_records: int = 0  # how many of them were bad; others were sound, but no dialogues
    problems: tuple[str, ...] = ()  # the first of them, as `file:line: expected …, found …`
    ignored: Mapping[str, str] = field(default_factory=dict)  # file -> why it was not read

    @classmethod
    def of(cls, dialogues: Iterable[Dialogue], *, name: str = "corpus") -> Corpus:
        """Build a corpus from dialogues made in Python; those without a split belong to ``all``."""
        from dialoscope.corpus.columns import Columns, why_not_dialogue
        from dialoscope.corpus.streams import BadRecord

        columns = Columns()
        for number, dialogue in enumerate(dialogues, 1):
            try:
                if (problem := why_not_dialogue(dialogue)) is not None:
                    raise problem
                columns.add(dialogue, default_id=f"{name}-{number}", default_split="all")
            except BadRecord as bad:
                raise CorpusError(f"dialogue {number} ({dialogue.id or 'no id'}): {bad}") from bad
        return cls(columns.table(), name=name)

    @classmethod
    def of_texts(cls, train: Sequence[str], test: Sequence[str] | None = None, *, name: str = "texts") -> Corpus:
        """Build a corpus from plain texts: each text is a dialogue of one turn.

        >>> Corpus.of_texts(["a b c"], ["a b d"]).splits
        {'train': 1, 'test': 1}
        """
        sides = {"all": train} if test is None else {"train": train, "test": test}
        for side, texts in sides.items():
            if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
                raise UsageError(f"of_texts takes lists of texts, found something else in {side}.")
            if not len(texts):
                raise UsageError(f"of_texts takes lists of texts, found none in {side}.")
        return cls.of(
            (
                Dialogue((Turn("", text),), id=f"{split}-{number}", split=split)
                for split, texts in sides.items()
                for number, text in enumerate(texts, 1)
            ),
            name=name,
        )

    @classmethod
    def of_pairs(
        cls, train: Sequence[tuple[str, str]], test: Sequence[tuple[str, str]] | None = None, *, name: str = "pairs"
    ) -> Corpus:
        """Build a corpus from (context, response) pairs: each pair is a dialogue of two turns.

        >>> Corpus.of_pairs([("Hi.", "Hello.")])[0].texts
        ['Hi.', 'Hello.']
        """
        sides = {"all": train} if test is None else {"train": train, "test": test}
        for side, pairs in sides.items():
            if not len(pairs):
                raise UsageError(f"of_pairs takes lists of (context, response), found none in {side}.")
            for pair in pairs:
                is_pair = isinstance(pair, tuple | list) and len(pair) == 2
                if not is_pair or not all(isinstance(text, str) for text in pair):
                    raise UsageError(f"of_pairs takes lists of (context, response), found {pair!r:.40} in {side}.")
        return cls.of(
            (
                Dialogue((Turn("speaker 1", context), Turn("speaker 2", response)), id=f"{split}-{number}", split=split)
                for split, pairs in sides.items()
                for number, (context, response) in enumerate(pairs, 1)
            ),
            name=name,
        )

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[Dialogue]:
        for batch in self.table.to_batches(max_chunksize=1024):
            yield from map(_view, batch.to_pylist())

    @overload
    def __getitem__(self, index: int) -> Dialogue: ...

    @overload
    def __getitem__(self, index: slice) -> Corpus: ...

    def __getitem__(self, index: int | slice) -> Dialogue | Corpus:
        if isinstance(index, slice):
            return self.select(range(len(self))[index])
        if not -len(self) <= index < len(self):
            raise IndexError(f"dialogue {index} of {len(self)}")
        return _view(self.table.slice(index % len(self), 1).to_pylist()[0])

    @cached_property
    def splits(self) -> dict[str, int]:
        """Number of dialogues by split, in corpus order."""
        counts = pc.value_counts(self.table["split"]).to_pylist()
        by_name = {row["values"]: row["counts"] for row in counts}
        return {name: by_name[name] for name in sorted(by_name, key=split_rank)}

    def split(self, *names: str) -> Corpus:
        """Only these splits; one that is missing is an error that names those present."""
        for name in names:
            if name not in self.splits:
                present = ", ".join(self.splits) or "none, the corpus is empty"
                advice = (
                    " Name the split 'all' for all of it; 'dialoscope overlap clean' makes splits."
                    if present == "all"
                    else ""
                )
                raise UsageError(f"No split '{name}' in {self.name}. Splits present: {present}.{advice}")
        return replace(self, table=self.table.filter(pc.is_in(self.table["split"], pa.array(names))))

    def select(self, indices: Sequence[int] | np.ndarray[Any, Any]) -> Corpus:
        """The dialogues at these indices, in this order."""
        return replace(self, table=_taken(self.table, np.asarray(indices, dtype=np.int64)))

    @property
    def turns_per_dialogue(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Length of each dialogue in turns."""
        return np.asarray(pc.list_value_length(self.table["turns"]).to_numpy(), dtype=np.int64)

    def turn_column(self, name: str) -> pa.ChunkedArray:
        """All turns' `speaker`, `text` or `labels` as one flat column, dialogue after dialogue."""
        chunks = [chunk.flatten().field(name) for chunk in self.table["turns"].chunks]
        return pa.chunked_array(chunks, type=pa.string())

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of everything a reader sees: ids, splits, labels, speakers and texts, in order.

        It does not depend on how the table is cut into chunks, nor on the file format it came from.
        """
        digest = hashlib.sha256()
        for name in ("id", "split", "labels"):
            digest.update(_column_hash(self.table[name]))
        digest.update(hashlib.sha256(self.turns_per_dialogue.tobytes()).digest())
        for name in ("speaker", "text", "labels"):
            digest.update(_column_hash(self.turn_column(name)))
        return digest.hexdigest()[:12]

    def __repr__(self) -> str:
        splits = ", ".join(f"{name}: {count}" for name, count in self.splits.items())
        return f"<Corpus {self.name}: {len(self)} dialogues ({splits})>"


def _taken(table: pa.Table, places: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Table:
    """Rows of a table; one Arrow string array holds two gigabytes, so what is larger is taken batch by batch."""
    if table.nbytes < ONE_ARRAY_BYTES:
        return table.take(pa.array(places))
    batches = table.to_batches()
    ends = np.cumsum([batch.num_rows for batch in batches])
    of_batch = np.searchsorted(ends, places, side="right")
    order = np.argsort(of_batch, kind="stable")
    pieces = [
        batches[number].take(pa.array(places[of_batch == number] - (ends[number] - batches[number].num_rows)))
        for number in np.unique(of_batch)
    ]
    gathered = pa.Table.from_batches(pieces, schema=table.schema)
    if gathered.nbytes < ONE_ARRAY_BYTES or len(places) == 1:
        return gathered.take(pa.array(np.argsort(order)))
    half = len(places) // 2
    return pa.concat_tables([_taken(table, places[:half]), _taken(table, places[half:])])


def in_corpus_order(table: pa.Table) -> pa.Table:
    """Train, validation, test, then other splits as they come; the order within a split is kept."""
    found = pc.unique(table["split"]).to_pylist()
    names = sorted(found, key=split_rank)  # stable: other splits stay as they came
    if len(names) < 2:
        return table
    places = [pc.index_in(chunk, value_set=pa.array(names)).to_numpy() for chunk in table["split"].chunks]
    order = np.concatenate(places)
    if (order[1:] >= order[:-1]).all():
        return table
    return pa.concat_tables([table.filter(pc.equal(table["split"], name)) for name in names])


def split_rank(name: str) -> int:
    """Place of a split in corpus order."""
    return SPLIT_ORDER.index(name) if name in SPLIT_ORDER else len(SPLIT_ORDER)


def _view(row: dict[str, Any]) -> Dialogue:
    turns = tuple(Turn(turn["speaker"], turn["text"], _labels(turn["labels"])) for turn in row["turns"])
    return Dialogue(turns, row["id"], row["split"], _labels(row["labels"]))


def _labels(text: str | None) -> Labels:
    return orjson.loads(text) if text else NO_LABELS


def _column_hash(column: pa.ChunkedArray) -> bytes:
    """Hash strings by their bytes and their lengths, chunk by chunk, so that chunking leaves no trace."""
    text, lengths = hashlib.sha256(), hashlib.sha256()
    for chunk in column.chunks:
        sizes = pc.fill_null(pc.binary_length(chunk), -1)
        lengths.update(sizes.to_numpy(zero_copy_only=False).astype(np.int32).tobytes())
        # Nulls own no bytes in a filled array, so the data buffer between the first and last offset is the text.
        filled = pc.fill_null(chunk, "")
        offsets = np.frombuffer(filled.buffers()[1], dtype=np.int32)[filled.offset : filled.offset + len(filled) + 1]
        if len(filled) and filled.buffers()[2] is not None:
            text.update(memoryview(filled.buffers()[2])[offsets[0] : offsets[-1]])
    return text.digest() + lengths.digest()
