"""Samples of each split without exact duplicates, and which sample each duplicate repeats.

Two samples are the same where context and response are, in one spelling: lower case, single blanks. In corpus order
the first is kept: within a split, then validation and test against training, then test against validation.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.corpus import Corpus, samples
from dialoscope.corpus.dialogue import in_corpus_order
from dialoscope.overlap.sides import Places, numbered_samples

BETWEEN = "\0"  # of context and response in a key; no text holds it
# Blanks at an end, two in a row, or any other than a plain one, as Python's `str.split` knows them.
ODD_BLANKS = r"^ |  | $|[\t-\r\x1c-\x1f\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]"
NO_TEXTS = pa.array([], pa.large_string())


def without_duplicates(corpus: Corpus, *, context_turns: int) -> tuple[dict[str, pa.Table], pa.Table]:
    """Samples of each split, and the dropped ones: their id, split and partner, the sample that stayed."""
    flat = samples(replace(corpus, table=in_corpus_order(corpus.table)), context_turns=context_turns)
    table = flat.to_table()
    first = first_alike(table["context"], table["response"])
    is_new = first == np.arange(len(first))
    kept = table.filter(pa.array(is_new))
    tables = {split: kept.filter(pc.equal(kept["split"], split)) for split in corpus.splits}
    again = np.flatnonzero(~is_new)
    ids = numbered_samples(flat, table["dialogue"])
    names = {"id": ids.take(pa.array(again)), "split": table["split"].take(pa.array(again))}
    return tables, pa.table({**names, "partner": ids.take(pa.array(first[again]))})


def first_alike(contexts: pa.ChunkedArray, responses: pa.ChunkedArray) -> Places:
    """For each sample the place of the first with the same context and response."""
    between = pa.scalar(BETWEEN, pa.large_string())
    keys = pc.binary_join_element_wise(in_one_spelling(contexts), in_one_spelling(responses), between)
    codes = keys.dictionary_encode().indices.to_numpy()
    _, firsts = np.unique(codes, return_index=True)
    return np.asarray(firsts[codes], dtype=np.int64)


def in_one_spelling(texts: pa.ChunkedArray) -> pa.Array:
    r"""Lower case, single blanks, none at the ends.

    >>> in_one_spelling(pa.chunked_array([[" Thank  YOU.\n"]])).to_pylist()
    ['thank you.']
    """
    lowered = pc.utf8_lower(pa.concat_arrays(texts.cast(pa.large_string()).chunks or [NO_TEXTS]))
    is_odd = pc.match_substring_regex(lowered, ODD_BLANKS)  # few are, and cutting costs ten times as much as looking
    words = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(lowered.filter(is_odd)))
    mended = pc.binary_join(words, pa.scalar(" ", pa.large_string()))
    return pc.replace_with_mask(lowered, is_odd, mended)
