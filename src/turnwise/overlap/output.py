"""Results of the overlap room on disk: tables, and a cleaned corpus with its ledger. Whole or not at all."""

from __future__ import annotations

from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from turnwise.atomic import whole_file, whole_folder
from turnwise.corpus.write import write_messages
from turnwise.errors import UsageError
from turnwise.overlap.clean import Cleaned


def write_table(table: pa.Table, path: Path) -> None:
    """A table as Parquet or CSV, by the ending of its name."""
    writers = {".parquet": pq.write_table, ".csv": pc.write_csv}
    if path.suffix not in writers:
        raise UsageError(f"Give a file that ends in .parquet or .csv, not {path}.")
    with whole_file(path) as unfinished:
        writers[path.suffix](table, unfinished)


def write_cleaned(cleaned: Cleaned, out: Path) -> None:
    """Splits, dropped dialogues, samples and the ledger in one folder.

    ::

        DIR/corpus/SPLIT.jsonl           the dialogues that were kept
        DIR/dropped.jsonl                those that were not
        DIR/pairs-K/SPLIT.parquet        samples with K turns of context, without exact duplicates
        DIR/ledger.jsonl                 each dropped dialogue: its partner, their ratio, the pass
        DIR/result.json                  the counts
    """
    with whole_folder(out, overwrite=False) as folder:
        (folder / "corpus").mkdir()
        for split in cleaned.corpus.splits:
            write_messages(cleaned.corpus.split(split), folder / "corpus" / f"{split}.jsonl")
        if cleaned.dropped is not None:
            write_messages(cleaned.dropped, folder / "dropped.jsonl")
        for turns, tables in cleaned.pairs.items():
            (folder / f"pairs-{turns}").mkdir()
            for split, table in tables.items():
                pq.write_table(table, folder / f"pairs-{turns}" / f"{split}.parquet")
        ledger = (orjson.dumps(drop) + b"\n" for drop in cleaned.ledger)
        (folder / "ledger.jsonl").write_bytes(b"".join(ledger))
        (folder / "result.json").write_bytes(orjson.dumps(cleaned.to_dict(), option=orjson.OPT_INDENT_2))
