"""Results of the overlap room on disk, whole or not at all: runs with their tables, corpora, ledgers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from dialoscope.corpus import Corpus
from dialoscope.corpus.write import write_messages
from dialoscope.errors import UsageError
from dialoscope.files import whole_file
from dialoscope.overlap.clean import Cleaned
from dialoscope.overlap.contamination import Contamination
from dialoscope.overlap.filter import Filtered
from dialoscope.overlap.ledger_report import cleaned_section, filtered_section
from dialoscope.overlap.measure import Measured
from dialoscope.overlap.report import section_of
from dialoscope.overlap.result import LEAK, OverlapResult, with_threshold
from dialoscope.record import Score
from dialoscope.report import Run, read_run, write_run

MATCHES = "matches.parquet"
TABLE_WRITERS = {".parquet": pq.write_table, ".csv": pc.write_csv}


def check_ending(path: Path | None) -> None:
    """A table is Parquet or CSV."""
    if path is not None and path.suffix not in TABLE_WRITERS:
        raise UsageError(f"Give a file that ends in {' or '.join(TABLE_WRITERS)}, not {path}.")


def write_table(table: pa.Table, path: Path, *, overwrite: bool = False) -> None:
    """A table as Parquet or CSV, by the ending of its name."""
    check_ending(path)
    with whole_file(path, overwrite=overwrite) as unfinished:
        TABLE_WRITERS[path.suffix](table, unfinished)


def measured_data(
    result: OverlapResult, *, threshold: float = LEAK, contamination: Contamination | None = None
) -> dict[str, Any]:
    """A measured overlap as JSON has it, with the scores on its parts where there are any."""
    data = {**result.to_dict(with_threshold(threshold)), "threshold": threshold}
    return data if contamination is None else {**data, "contamination": contamination.to_dict()}


def write_result(
    measured: Measured | OverlapResult,
    out: str | Path,
    *,
    threshold: float = LEAK,
    contamination: Contamination | None = None,
    left_out: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> Path:
    """A run's folder (see `dialoscope.report.run`) with `matches.parquet`: id, ratio and match of every unit.

    `left_out` is what was not read (see `sides.left_out`), and is kept beside the numbers.
    """
    measured = Measured(measured) if isinstance(measured, OverlapResult) else measured
    result = measured.result
    return write_run(
        out,
        instrument="overlap",
        data={**measured_data(result, threshold=threshold, contamination=contamination), **(left_out or {})},
        section=section_of(measured, threshold=threshold, contamination=contamination),
        origin=result.origin,
        overwrite=overwrite,
        fill=lambda folder: pq.write_table(result.table(), folder / MATCHES),
    )


def read_result(folder: str | Path) -> OverlapResult:
    """The result that `write_result` kept, to be thresholded again without a rerun."""
    run = _measured_run(folder)
    path = Path(folder) / MATCHES
    try:
        table = pq.read_table(path)
        ratio, match = (np.asarray(table[name].to_numpy()) for name in ("ratio", "match"))
        kept = {"n_train": int(run.data["n_train"]), "unit": run.data["unit"], "is_within": run.data["is_within"]}
        return OverlapResult(ratio, match, origin=run.origin, ids=table["id"], partners=table["match_id"], **kept)
    except (pa.ArrowException, KeyError, OSError) as error:
        found = " ".join(str(error).split())
        raise UsageError(f"{folder}: expected a whole overlap run, found {type(error).__name__}: {found}.") from error


def read_told(folder: str | Path) -> dict[str, Any]:
    """What a run keeps beside its ratios: its threshold, the scores on the parts, what was not read."""
    data = _measured_run(folder).data
    scores = data.get("contamination")
    # Runs of older versions kept their threshold only with the scores.
    threshold = data.get("threshold", (scores or {}).get("threshold", LEAK))
    more = {name: data[name] for name in ("contamination", "skipped", "ignored") if data.get(name)}
    return {"threshold": float(threshold), **more}


def kept_contamination(kept: Mapping[str, Any]) -> Contamination:
    """Scores on the parts of a test set, back from what `Contamination.to_dict` gave."""
    try:
        scores = {name: {part: _score(one) for part, one in by.items()} for name, by in kept["metrics"].items()}
        return Contamination(float(kept["threshold"]), dict(kept["n"]), scores, tuple(kept.get("notes", ())))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"Expected the scores of an overlap run, found {type(error).__name__}: {error}.") from error


def _score(kept: Mapping[str, Any]) -> Score:
    interval = kept.get("interval")
    return Score(**{**kept, "interval": tuple(interval) if interval else None})


def _measured_run(folder: str | Path) -> Run:
    run = read_run(folder)
    if run.instrument != "overlap" or not (Path(folder) / MATCHES).is_file():
        raise UsageError(f"{folder}: expected what 'dialoscope overlap measure … --out' wrote, found another run.")
    return run


def write_cleaned(
    cleaned: Cleaned, out: str | Path, *, left_out: Mapping[str, Any] | None = None, overwrite: bool = False
) -> Path:
    """Splits, dropped dialogues, samples, the ledger and a report in one folder.

    ::

        DIR/corpus/SPLIT.jsonl           the dialogues that were kept
        DIR/dropped.jsonl                those that were not
        DIR/pairs-K/SPLIT.parquet        samples with K turns of context, without exact duplicates
        DIR/ledger.jsonl                 each dropped dialogue and sample: its reason, partner, ratio and pass
        DIR/result.json, report.html, …  the counts, as every run has them
    """
    return write_run(
        out,
        instrument="overlap-clean",
        data={**cleaned.to_dict(), **(left_out or {})},
        section=cleaned_section(cleaned),
        origin=cleaned.origin,
        overwrite=overwrite,
        fill=lambda folder: _fill_cleaned(cleaned, folder),
    )


def _fill_cleaned(cleaned: Cleaned, folder: Path) -> None:
    (folder / "corpus").mkdir()
    for split in cleaned.corpus.splits:
        write_messages(cleaned.corpus.split(split), folder / "corpus" / f"{split}.jsonl")
    write_messages(cleaned.dropped, folder / "dropped.jsonl")
    for turns, tables in cleaned.pairs.items():
        (folder / f"pairs-{turns}").mkdir()
        for split, table in tables.items():
            pq.write_table(table, folder / f"pairs-{turns}" / f"{split}.parquet")
    _write_ledger(cleaned.ledger(), folder)


def write_filtered(
    filtered: Filtered, out: str | Path, *, left_out: Mapping[str, Any] | None = None, overwrite: bool = False
) -> Path:
    """What is left of a test set, what went, and the ledger in one folder.

    ::

        DIR/kept.jsonl, DIR/dropped.jsonl  dialogues, and files of pairs, as messages;
                                           samples out of dialogues, and texts, are .parquet
        DIR/ledger.jsonl                   each dropped item: its reason, partner and ratio
        DIR/result.json, report.html, …    the counts, as every run has them
    """
    return write_run(
        out,
        instrument="overlap-filter",
        data={**filtered.to_dict(), **(left_out or {})},
        section=filtered_section(filtered),
        origin=filtered.origin,
        overwrite=overwrite,
        fill=lambda folder: _fill_filtered(filtered, folder),
    )


def _fill_filtered(filtered: Filtered, folder: Path) -> None:
    for name, rows in (("kept", filtered.kept), ("dropped", filtered.dropped)):
        if isinstance(rows, Corpus):
            write_messages(rows, folder / f"{name}.jsonl")
        else:
            pq.write_table(rows, folder / f"{name}.parquet")
    _write_ledger(filtered.ledger(), folder)


def _write_ledger(rows: Iterable[dict[str, Any]], folder: Path) -> None:
    with (folder / "ledger.jsonl").open("wb") as file:
        file.writelines(orjson.dumps(row) + b"\n" for row in rows)
