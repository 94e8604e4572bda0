"""Whatever is compared, as one kind of thing: units with an id each, and one text or two (context and response).

A corpus gives dialogues, turns or samples; a list of strings or a column of a data set gives texts; a list of
(context, response) tuples gives samples. Samples overlap by the least of their two parts, everything else has one part.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.corpus import Corpus, Samples, samples
from dialoscope.corpus.columns import batch_of
from dialoscope.corpus.hub import is_dataset
from dialoscope.corpus.load import from_dataset
from dialoscope.errors import CorpusError, UsageError, unknown_name

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
    dialogues: Places  # the place of the dialogue that each unit belongs to; a text is its own
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
    apart = named_apart(corpus)
    side = UNITS[unit](apart, context_turns)
    return side if apart is corpus else replace(side, name=_named(corpus))


def left_out(*given: object) -> dict[str, dict[str, Any]]:
    """What was not read of these corpora: records by reason, files with theirs; an entry only where there is any."""
    corpora = [one for one in given if isinstance(one, Corpus)]
    skipped: Counter[str] = Counter()
    for counts in {id(one.skipped): one.skipped for one in corpora}.values():  # splits of one corpus share theirs
        skipped.update(counts)
    ignored = {file: why for one in corpora for file, why in one.ignored.items()}
    return {name: found for name, found in (("skipped", dict(skipped)), ("ignored", ignored)) if found}


def check_same_form(one: str, parts: int, other: str, other_parts: int) -> None:
    """Units of one text and samples of two have no overlap with each other."""
    if parts != other_parts:
        raise UsageError(
            f"A {one} and a {other} cannot be compared: one has a context and a response, the other does not. "
            "Give both sides in the same form, or choose a unit of one text."
        )


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


# --- Dialogues that share an id ---------------------------------------------------------------------------------------


def named_apart(corpus: Corpus) -> Corpus:
    """The corpus with an id of its own for every dialogue: files joined into one often number theirs alike.

    Only ids that several dialogues share are changed: the split goes before them and, from its second dialogue of that
    name on, a number behind: `train/d1`, `test/d1`, `test/d1~2`.
    """
    ids = corpus.table["id"]
    if pc.count_distinct(ids).as_py() == len(ids):
        return corpus
    counts = pc.value_counts(ids)
    shared = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    is_shared = pc.is_in(ids, value_set=shared)
    rows = corpus.table.select(["split", "id"]).filter(is_shared)
    names = pa.array(qualified(rows["split"].to_pylist(), rows["id"].to_pylist()), pa.string())
    at = corpus.table.schema.get_field_index("id")
    apart = pc.replace_with_mask(ids, is_shared.combine_chunks(), names)
    return replace(corpus, table=corpus.table.set_column(at, "id", apart))


def qualified(splits: Sequence[str], ids: Sequence[str]) -> list[str]:
    """Names of dialogues that share their ids, in corpus order.

    >>> qualified(["train", "test", "test"], ["d1", "d1", "d1"])
    ['train/d1', 'test/d1', 'test/d1~2']
    """
    met: Counter[str] = Counter()
    names = []
    for name in (f"{split}/{one}" for split, one in zip(splits, ids, strict=True)):
        met[name] += 1
        names.append(name if met[name] == 1 else f"{name}~{met[name]}")
    return names


# --- Units of a corpus ------------------------------------------------------------------------------------------------


def _dialogues(corpus: Corpus, context_turns: int) -> Side:
    ids = corpus.table["id"]
    return Side(_named(corpus), "dialogue", ids, (unit_texts(corpus),), np.arange(len(corpus)), corpus)


def _turns(corpus: Corpus, context_turns: int) -> Side:
    sizes = corpus.turns_per_dialogue
    of = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(of)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
    texts = corpus.turn_column("text")
    ids = _numbered(_taken(corpus.table["id"], of), place)
    return Side(_named(corpus), "turn", ids, (texts,), of, pa.table({"id": ids, "text": texts}))


def _samples(corpus: Corpus, context_turns: int) -> Side:
    flat = samples(corpus, context_turns=context_turns)
    table = flat.to_table(separator="\n")  # which no token crosses
    ids = numbered_samples(flat, table["dialogue"])
    rows: Rows = corpus if is_of_pairs(corpus) else flat  # one sample a dialogue: the dialogue is its row
    return Side(_named(corpus), "sample", ids, (table["context"], table["response"]), flat.dialogue, rows)


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
    return Side(f"{name}@{_fingerprint(texts)}", "text", ids, (texts,), np.arange(len(ids)), rows)


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
    return Side(name, "sample", ids, (contexts, responses), np.arange(len(ids)), rows)


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
    checked_type(texts.type, where)
    for is_wrong, found in ((pc.is_null(texts), "none"), (pc.match_substring(texts, "\0"), "a NUL character")):
        rows = np.flatnonzero(pc.fill_null(is_wrong, False).to_numpy())
        if len(rows):
            raise CorpusError(f"{where}, row {rows[0] + 1}: expected a text, found {found}.")
    return texts


def checked_type(kind: pa.DataType, where: str) -> None:
    """A column of texts, or one line about what it holds."""
    if not is_text(kind):
        raise CorpusError(f"{where}: expected texts, found {kind}. Name another column.")


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _fingerprint(*columns: pa.ChunkedArray) -> str:
    """A short hash of texts, whatever their chunks."""
    digest = hashlib.sha256()
    for column in columns:
        lengths = pc.binary_length(column.cast(pa.large_string())).to_numpy()
        digest.update(lengths.astype(np.int64).tobytes())
        for chunk in column.chunks:
            digest.update("".join(chunk.to_pylist()).encode())
    return digest.hexdigest()[:12]
