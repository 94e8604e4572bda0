"""Whatever is compared, as one kind of thing: units with an id each, and one text or two (context and response).

A corpus gives dialogues, turns or samples; a list of strings or a column of a data set gives texts; a list of
(context, response) tuples gives samples. Samples overlap by the least of their two parts, everything else has one part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from turnwise.corpus import Corpus, Samples, samples
from turnwise.corpus.columns import batch_of
from turnwise.corpus.hub import is_dataset
from turnwise.corpus.load import from_dataset
from turnwise.errors import CorpusError, UsageError, unknown_name

if TYPE_CHECKING:
    import datasets

Places = np.ndarray[Any, np.dtype[np.int64]]
Rows: TypeAlias = Corpus | Samples | pa.Table


@dataclass(frozen=True, eq=False)
class Side:
    """Units ready to be compared, and what each of them was made of."""

    name: str  # of the data, with its fingerprint
    unit: str  # dialogue, turn, sample or text
    ids: pa.ChunkedArray
    texts: tuple[pa.ChunkedArray, ...]  # one, or context and response
    dialogues: pa.ChunkedArray  # which dialogue each unit belongs to; a text is its own
    rows: Rows  # a row for each unit

    def __len__(self) -> int:
        return len(self.ids)

    def taken(self, places: Places) -> Corpus | pa.Table:
        """The rows of these units: dialogues as a corpus, samples and texts as a table."""
        if isinstance(self.rows, Samples):
            chosen = (part[places] for part in (self.rows.dialogue, self.rows.start, self.rows.response))
            return Samples(self.rows.corpus, *chosen).to_table()
        return self.rows.select(places) if isinstance(self.rows, Corpus) else self.rows.take(pa.array(places))


Data: TypeAlias = "Corpus | Side | datasets.Dataset | Sequence[str] | Sequence[tuple[str, str]]"


def side_of(data: Data, *, unit: str, column: str | None = None, context_turns: int = 1) -> Side:
    """Units of whatever was given; lists and columns of text say themselves what their units are."""
    if unit not in UNITS:
        raise unknown_name("unit", unit, UNITS)
    if isinstance(data, Side):
        return data
    if is_dataset(data) and column is not None:
        return text_side(_dataset_column(data, column), name="dataset")
    if not isinstance(data, Corpus) and not is_dataset(data):
        return _listed(data)
    corpus = data if isinstance(data, Corpus) else corpus_of(data)
    return UNITS[unit](corpus, context_turns)


def corpus_of(data: Data, *, column: str | None = None) -> Corpus:
    """Dialogues of whatever was given: a text becomes a dialogue of one turn, a (context, response) one of two."""
    if isinstance(data, Corpus):
        return data
    if is_dataset(data) and column is None:
        try:
            return from_dataset(data)
        except CorpusError as error:
            raise CorpusError(f"{error}. To compare one column of texts, name it with column=.") from error
    return _as_dialogues(side_of(data, unit="sample", column=column))


def _as_dialogues(side: Side) -> Corpus:
    if isinstance(side.rows, Corpus):
        return side.rows
    width, count = len(side.texts), len(side)
    columns = [pa.concat_arrays(text.cast(pa.string()).chunks) for text in side.texts]
    order = np.arange(width * count).reshape(width, count).T.ravel()  # context, response, context, response, …
    texts = pa.concat_arrays(columns).take(pa.array(order))
    speakers = pa.array(np.tile([f"speaker {number}" for number in range(1, width + 1)], count), pa.string())
    ids = pa.concat_arrays(side.ids.cast(pa.string()).chunks)
    splits = pa.array(np.full(count, "all"), pa.string())
    offsets = pa.array(np.arange(count + 1) * width, pa.int32())
    batch = batch_of(ids, splits, offsets, speakers, texts)
    return Corpus(pa.Table.from_batches([batch]), name=side.name.partition("@")[0])


# --- Units of a corpus ------------------------------------------------------------------------------------------------


def _dialogues(corpus: Corpus, context_turns: int) -> Side:
    ids = corpus.table["id"]
    return Side(_named(corpus), "dialogue", ids, (unit_texts(corpus),), ids, corpus)


def _turns(corpus: Corpus, context_turns: int) -> Side:
    sizes = corpus.turns_per_dialogue
    of = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(of)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
    dialogues, texts = _taken(corpus.table["id"], of), corpus.turn_column("text")
    ids = _numbered(dialogues, place)
    return Side(_named(corpus), "turn", ids, (texts,), dialogues, pa.table({"id": ids, "text": texts}))


def _samples(corpus: Corpus, context_turns: int) -> Side:
    flat = samples(corpus, context_turns=context_turns)
    table = flat.to_table(separator="\n")  # which no token crosses
    ids = numbered_samples(flat, table["dialogue"])
    rows: Rows = corpus if is_of_pairs(corpus) else flat  # one sample a dialogue: the dialogue is its row
    return Side(_named(corpus), "sample", ids, (table["context"], table["response"]), table["dialogue"], rows)


UNITS: dict[str, Callable[[Corpus, int], Side]] = {"dialogue": _dialogues, "turn": _turns, "sample": _samples}


def is_of_pairs(corpus: Corpus) -> bool:
    """Whether every dialogue is one context and one response, as files of pairs have it."""
    return bool((corpus.turns_per_dialogue == 2).all())


def unit_texts(corpus: Corpus) -> pa.ChunkedArray:
    """Each dialogue as one text; a line break between turns keeps their tokens apart."""
    joined = []
    for turns in corpus.table["turns"].chunks:
        offsets = np.concatenate([[0], np.cumsum(pc.list_value_length(turns).to_numpy(zero_copy_only=False))])
        texts = turns.flatten().field("text").cast(pa.large_string())
        lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), texts)
        joined.append(pc.binary_join(lists, pa.scalar("\n", pa.large_string())))
    return pa.chunked_array(joined, pa.large_string())


def numbered_samples(flat: Samples, dialogues: pa.ChunkedArray) -> pa.ChunkedArray:
    """Names of samples: `dialogue#3` is the one whose response is the third turn."""
    sizes = flat.corpus.turns_per_dialogue
    firsts = np.cumsum(sizes) - sizes
    return _numbered(dialogues, flat.response - firsts[flat.dialogue] + 1)


def _named(corpus: Corpus) -> str:
    return f"{corpus.name}@{corpus.fingerprint}"


def _taken(column: pa.ChunkedArray, places: Places) -> pa.ChunkedArray:
    return column.cast(pa.large_string()).take(pa.array(places))


def _numbered(names: pa.ChunkedArray, numbers: Places) -> pa.ChunkedArray:
    """Names of parts: `dialogue#3` is the third turn of a dialogue."""
    written = pa.array(numbers).cast(pa.large_string())
    joined = pc.binary_join_element_wise(names.cast(pa.large_string()), written, pa.scalar("#", pa.large_string()))
    return joined if isinstance(joined, pa.ChunkedArray) else pa.chunked_array([joined])


# --- Lists and columns of text ----------------------------------------------------------------------------------------


def text_side(
    texts: pa.ChunkedArray, *, name: str, ids: pa.ChunkedArray | None = None, rows: pa.Table | None = None
) -> Side:
    """A column of text; its units are named by their row, from 1, unless they have ids."""
    if ids is None:
        ids = _row_numbers(len(texts))
    rows = pa.table({"id": ids, "text": texts}) if rows is None else rows
    return Side(f"{name}@{_fingerprint(texts)}", "text", ids, (texts,), ids, rows)


def _listed(data: Any) -> Side:
    """Strings, or (context, response) tuples."""
    if isinstance(data, pa.Array | pa.ChunkedArray):
        column = pa.chunked_array([data]) if isinstance(data, pa.Array) else data
        return text_side(checked_texts(column, "texts"), name="texts")
    if isinstance(data, str) or not isinstance(data, Sequence):
        raise UsageError(f"{EXPECTED}, found {type(data).__name__}.")
    if not data:
        raise UsageError(f"{EXPECTED}, found an empty list.")
    if isinstance(data[0], str):
        return text_side(_strings(data), name="texts")
    wrong = next((one for one in data if not isinstance(one, tuple | list) or len(one) != 2), None)
    if wrong is not None:
        raise UsageError(f"{EXPECTED}, found {wrong!r:.40}.")
    contexts, responses = (_strings([one[part] for one in data]) for part in (0, 1))
    ids = _row_numbers(len(data))
    rows = pa.table({"id": ids, "context": contexts, "response": responses})
    name = f"pairs@{_fingerprint(contexts, responses)}"
    return Side(name, "sample", ids, (contexts, responses), ids, rows)


EXPECTED = "Expected a corpus, a data set, a list of strings or a list of (context, response) tuples"


def _strings(values: Sequence[Any]) -> pa.ChunkedArray:
    wrong = next((value for value in values if not isinstance(value, str)), None)
    if wrong is not None or None in values:
        raise UsageError(f"{EXPECTED}, found {wrong!r:.40} among the texts.")
    try:
        return checked_texts(pa.chunked_array([pa.array(values, pa.large_string())]), "texts")
    except UnicodeEncodeError as error:
        raise UsageError(f"Expected texts that UTF-8 can write, found {error.object[error.start]!r}.") from error


def _row_numbers(count: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(np.arange(1, count + 1)).cast(pa.large_string())])


def _dataset_column(data: Any, column: str) -> pa.ChunkedArray:
    if isinstance(data, dict):
        raise UsageError(f"A column belongs to one split: give dataset['{next(iter(data))}'], not the whole dict.")
    if column not in data.column_names:
        raise UsageError(f"No column '{column}' in the data set. Columns: {', '.join(data.column_names)}.")
    return checked_texts(data.select_columns([column]).with_format("arrow")[:][column], f"column '{column}'")


def checked_texts(texts: pa.ChunkedArray, where: str) -> pa.ChunkedArray:
    """A column that holds a text in every row, or one line about the first row that does not."""
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        raise CorpusError(f"{where}: expected texts, found {texts.type}. Name another column.")
    for is_wrong, found in ((pc.is_null(texts), "none"), (pc.match_substring(texts, "\0"), "a NUL character")):
        rows = np.flatnonzero(pc.fill_null(is_wrong, False).to_numpy())
        if len(rows):
            raise CorpusError(f"{where}, row {rows[0] + 1}: expected a text, found {found}.")
    return texts


def _fingerprint(*columns: pa.ChunkedArray) -> str:
    """A short hash of texts, whatever their chunks."""
    digest = hashlib.sha256()
    for column in columns:
        lengths = pc.binary_length(column.cast(pa.large_string())).to_numpy()
        digest.update(lengths.astype(np.int64).tobytes())
        for chunk in column.chunks:
            digest.update("".join(chunk.to_pylist()).encode())
    return digest.hexdigest()[:12]
