"""Dialogues that share an id are told apart here, once for all questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.corpus.dialogue import Corpus


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
