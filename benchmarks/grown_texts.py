"""DailyDialog's turns or dialogues, grown to any number: the texts of the overlap benchmarks.

The real ones come first. Then, up to the number asked for, come real ones in which every word was replaced with
probability 0.3 by a word drawn as often as the corpus has it: lengths and word frequencies stay real, and many pairs
lie on either side of a threshold. No new words come in, as they would in a larger real corpus, so that lists of texts
with a word in common grow as fast as the texts: for a join this is the hard case.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.corpus import load

REPLACED = 0.3
SEED = 13


def grown_texts(data: str, unit: str, size: int) -> pa.ChunkedArray:
    """So many utterances or dialogues."""
    real = _real(data, unit)
    chunks = [real.slice(0, size)]
    for changed in _changed(real):
        missing = size - sum(map(len, chunks))
        if missing <= 0:
            break
        chunks.append(changed.slice(0, missing))
    return pa.chunked_array(chunks)


def _real(data: str, unit: str) -> pa.Array:
    corpus = load(data)
    if unit == "utterance":
        return pa.concat_arrays([chunk.cast(pa.large_string()) for chunk in corpus.turn_column("text").chunks])
    return pa.array(["\n".join(dialogue.texts) for dialogue in corpus], pa.large_string())


def _changed(texts: pa.Array) -> Iterator[pa.Array]:
    """Changed copies of all texts, again and again."""
    rng = np.random.default_rng(SEED)
    lists = pc.utf8_split_whitespace(texts)
    encoded = lists.flatten().dictionary_encode()
    pool = encoded.indices.to_numpy()
    while True:
        drawn = pool[rng.integers(len(pool), size=len(pool))]
        numbers = np.where(rng.random(len(pool)) < REPLACED, drawn, pool)
        words = encoded.dictionary.take(pa.array(numbers))
        yield pc.binary_join(type(lists).from_arrays(lists.offsets, words), pa.scalar(" ", pa.large_string()))
