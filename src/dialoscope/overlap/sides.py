"""What is compared: dialogues, turns or samples of a corpus, with an id each, and one text or two (context, response).

Samples overlap by the smaller ratio of their two parts; dialogues and turns have one part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.corpus import Corpus, Samples, samples
from dialoscope.corpus.shared_ids import named_apart
from dialoscope.errors import unknown_name

Places = np.ndarray[Any, np.dtype[np.int64]]
Rows: TypeAlias = Corpus | Samples | pa.Table


@dataclass(frozen=True, eq=False)
class Side:
    """The units of one side of a comparison, and the rows of the data that they were made of."""

    name: str  # of the data, with its fingerprint
    unit: str  # dialogue, turn or sample
    ids: pa.ChunkedArray
    texts: tuple[pa.ChunkedArray, ...]  # one, or context and response
    dialogues: Places  # the place of the dialogue that each unit belongs to
    rows: Rows  # a row for each unit

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, places: Places) -> Corpus | pa.Table:
        """The rows of these units: dialogues as a corpus, turns and samples of longer dialogues as a table."""
        if isinstance(self.rows, Samples):
            chosen = (part[places] for part in (self.rows.dialogue, self.rows.start, self.rows.response))
            return Samples(self.rows.corpus, *chosen).to_table()
        return self.rows.select(places) if isinstance(self.rows, Corpus) else self.rows.take(pa.array(places))


def side_of(corpus: Corpus, *, unit: str, context_turns: int = 1) -> Side:
    """The units of a corpus; dialogues that share an id get names of their own."""
    if unit not in UNITS:
        raise unknown_name("unit", unit, UNITS)
    apart = named_apart(corpus)
    side = UNITS[unit](apart, context_turns)
    return side if apart is corpus else replace(side, name=_named(corpus))


def left_out(*corpora: Any) -> dict[str, int]:
    """What was not read of these corpora, by reason: records, and files that hold no dialogues."""
    account: Counter[str] = Counter()
    for corpus in corpora:
        account.update(corpus.skipped)
        account.update(f"a file was not read: {why}" for why in corpus.ignored.values())
    return dict(account)


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
