r"""The rows of every study that needs a GPU: packed here, made there by a queue, merged here.

    python examples/all_studies.py pack data/ out/pack --site out/site            # corpora, sources, one archive
    tar -xJf studies.tar.xz -C /tmp/studies && cd /tmp/studies                    # on the machine with the GPU
    PYTHONPATH=src:site python examples/all_studies.py run corpora --limit 1500   # a file for each row in out/rows
    python examples/all_studies.py merge out/rows                                 # rows into tables, tables into docs

`pack` reads the folders of published data, cleans DailyDialog, and joins consecutive messages of one speaker in Ubuntu
IRC. `--site` is a folder of packages that the other machine lacks (`pip install --no-deps --target out/site nltk`).
`run` makes the rows that neither the tables nor its folder of rows have, in the order of `QUEUE` (see row_queue.py);
numbers written into `out/rows/limit` and `out/rows/workers` replace those options while it runs. `merge` puts rows into
the tables. A row that was made again replaces the older one, unless it was made again as a check. Either way
`made_again.json` keeps the main numbers of both, and `again` prints how far two rows of one seed are apart.

The study of remaining depth needs two more archives, unpacked at the same place: `pack data/ out/pack --engagement`
writes its corpora and MiniLM in half precision; `run corpora --encoder encoder` reads them.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import row_queue
import side_by_side
import study_pack
import trained_variants
from row_queue import Job
from side_by_side import Row

HERE = Path(__file__).parent
ROOT = HERE.parent
AGAIN = "made_again.json"
PAIRED = ("dialogues",)  # rows of attention without their sums by dialogue are made again
SEEDS = (1, 2)

# --- The order of the rows --------------------------------------------------------------------------------------------

# Expected card seconds of 20 epochs of the cleaned DailyDialog, until the queue knows better.
CARD_SECONDS = {
    "static": 45.0,
    "static-ui": 50.0,
    "dynamic": 90.0,
    "dynamic-ui": 100.0,
    "non-hier": 120.0,
    "overlap-lstm": 60.0,
    "overlap-transformer": 150.0,
}
CORPORA = {"dailydialog": ("clean/corpus", 1.0), "ubuntu": ("ubuntu_irc.parquet", 0.6)}  # and samples beside the first
VARIANTS = trained_variants.GROUPS
FIRST = (  # of the 23: those with integration, static and dynamic, then the rest
    *(name for name in VARIANTS["paper"] if name.startswith("static-ui")),
    *(name for name in VARIANTS["paper"] if name.startswith("dynamic+") or name == "dynamic"),
    "dynamic+0.7-noloss",
)


def _trained(names: Iterable[str], seeds: Iterable[int], corpus: str = "dailydialog") -> Iterator[Job]:
    file, samples = CORPORA[corpus]
    for seed in seeds:
        for name in names:
            preset = trained_variants.Variant.parse(name).preset
            yield Job(
                "trained_variants", corpus, name, seed, ("{corpora}/" + file, "--epochs", "20"),
                kind=f"{corpus} {preset}", epochs=20, card_seconds=samples * CARD_SECONDS[preset], needs=PAIRED,
            )  # fmt: skip


def _leaks(kind: str, epochs: int, seeds: Iterable[int]) -> Iterator[Job]:
    options = "{corpora}/dailydialog.parquet", "--cleaned", "{corpora}/clean", "--epochs", str(epochs)
    for seed in seeds:
        for turns in (1,) if kind == "original" else (1, 3):
            for preset in trained_variants.LEAKED:
                seconds = epochs * (10.0 if preset == "overlap-lstm" else 14.0)
                yield Job(
                    "leak_study", "dailydialog", f"{preset}-{kind}-{turns}", seed, options,
                    kind=f"leak {kind} {preset}", epochs=epochs, card_seconds=seconds,
                    measuring_seconds=90.0, needs=("epochs",),
                )  # fmt: skip


def _engaged(names: Iterable[str]) -> Iterator[Job]:
    options = "{corpora}", "--human", "{corpora}/human", "--encoder", "{encoder}"
    for name in names:
        variant = f"mixture-h{2 if name == 'flat' else 0}-{name}"
        yield Job("trained_engagement", "engage", variant, 0, options, kind="engage", card_seconds=60.0)


QUEUE: tuple[Job, ...] = (
    *(replace(job, is_check=True) for job in _trained(["static+0.7"], [0])),
    *_trained(FIRST, [0]),
    *_trained(VARIANTS["paper"], [0]),
    *_trained(VARIANTS["control"], SEEDS),
    *_trained(VARIANTS["sweep"], [0]),
    *_trained((*trained_variants.DISTRACTED, *trained_variants.LEAKED), (0, *SEEDS)),
    *_trained(VARIANTS["paper"], [0], "ubuntu"),
    *_trained(VARIANTS["control"], (0, *SEEDS), "ubuntu"),
    *_leaks("original", 40, (0, *SEEDS)),
    *_leaks("cleaned", 14, (0, *SEEDS)),
    *_engaged(("max", "min", "human", "flat")),
)


# --- Run --------------------------------------------------------------------------------------------------------------


def run(arguments: argparse.Namespace) -> bool:
    """Make the rows that are missing."""
    if shutil.which("nvidia-cuda-mps-control"):  # several processes share a card well only so
        subprocess.run(["nvidia-cuda-mps-control", "-d"], capture_output=True)
    places = {"corpora": str(arguments.corpora), "encoder": arguments.encoder}
    jobs = [
        replace(job, options=tuple(option.format(**places) for option in job.options))
        for job in dict.fromkeys(QUEUE)
        if re.search(arguments.only, job.name)
    ]
    settings = row_queue.Settings(
        arguments.rows,
        arguments.work,
        limit=arguments.limit,
        workers=arguments.workers,
        device=arguments.device,
        options=tuple(arguments.options.split()),
    )
    return row_queue.Queue(jobs, settings, lambda line: print(line, flush=True)).run()


# --- Merge ------------------------------------------------------------------------------------------------------------

SHOWN = {  # of two rows of one seed
    "perplexity": ("perplexity", "value"),
    "BLEU-2": ("bleu-2", "value"),
    "perplexity with another's context": ("contexts", "other"),
    "ratio of means, random-0.7": ("sets", "random-0.7", "das_ratio_of_means"),
    "ratio of medians, random-0.7": ("sets", "random-0.7", "das_ratio_median"),
    "History %": ("original", "history_percent"),
}
TABLES = {  # marks of docs/results.md
    "presets": "trained_variants.py --table presets",
    "das": "trained_variants.py --table das",
    "das gains": "trained_variants.py --table gains",
    "das medians": "trained_variants.py --table medians",
    "das paired": "trained_variants.py --table paired",
    "made again": "all_studies.py again",
    "leak curves": "leak_study.py --table curves",
    "memorised": "leak_study.py --table memorised",
    "leak cleaned": "leak_study.py --table cleaned",
    "engage depth": "trained_engagement.py --table depth",
    "engage people": "trained_engagement.py --table people",
    "engage ablations": "trained_engagement.py --table ablations",
}


def merge(rows: Path, tables: Path, document: Path) -> None:
    """Put rows into the tables, say how rows made again differ, and write the tables into the document."""
    for path in sorted(rows.glob("*--*.json")):
        study, *_, last = path.stem.split("--")
        row = side_by_side.read_row(path)
        if last == "again":
            _keep_check(row, tables / f"{study}.json")
        else:
            _keep_row(row, tables / f"{study}.json")
    if document.exists():
        rebuild(document)


def _keep_row(row: Row, table: Path) -> None:
    known = {_key(older): older for older in side_by_side.read(table)}
    older = known.get(_key(row))
    name = " ".join(map(str, _key(row)))
    print(f"{table.name}: {name}, {'new' if older is None else 'made again: ' + _differences(older, row)}")
    if older is not None and older != row:
        _keep_pair(table, older, row)
    known[_key(row)] = row
    side_by_side.keep([*known.values()], table)


def _keep_check(row: Row, table: Path) -> None:
    """Two rows of one seed beside each other; the table keeps the first."""
    older = next(first for first in side_by_side.read(table) if _key(first) == _key(row))
    print(f"{table.name}: {' '.join(map(str, _key(row)))}, made as a check: {_differences(older, row)}")
    _keep_pair(table, older, row)


def _keep_pair(table: Path, older: Row, row: Row) -> None:
    """Keep the numbers of two rows of one seed, for the table of rows made twice."""
    pair = {"study": table.stem, "corpus": row["corpus"], "variant": row["variant"], "seed": row["seed"]}
    numbers = {"first": main_numbers(older), "again": main_numbers(row)}
    validation = [older.get("validation", []), row.get("validation", [])]  # perplexity after each epoch
    again = table.with_name(AGAIN)
    others = [other for other in side_by_side.read(again) if {key: other[key] for key in pair} != pair]
    side_by_side.keep([*others, {**pair, **numbers, "validation": validation}], again)


def _key(row: Row) -> tuple[str, str, int]:
    return row["corpus"], row["variant"], row["seed"]


def main_numbers(row: Row) -> dict[str, float]:
    """Pick the numbers by which two rows of one seed are compared."""
    numbers = {}
    for name, keys in SHOWN.items():
        value: Any = row
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            numbers[name] = float(value)
    return numbers


def _differences(older: Row, row: Row) -> str:
    before, now = main_numbers(older), main_numbers(row)
    return ", ".join(f"{name} {before[name]:.4g} -> {now[name]:.4g}" for name in now if name in before) or "no numbers"


def again_table(pairs: list[Row]) -> str:
    """Rows made twice from one seed: each number of the first, of the second, and the difference."""
    names = [name for name in SHOWN if any(name in pair["first"] for pair in pairs)]
    lines = [f"| corpus | variant | seed | {' | '.join(names)} |", "|---|---|--:|" + "--:|" * len(names)]
    for pair in pairs:
        cells = [pair["corpus"], pair["variant"], str(pair["seed"])]
        for name in names:
            first, again = pair["first"].get(name), pair["again"].get(name)
            is_known = first is not None and again is not None
            cells.append(f"{first:.2f}, {again:.2f} ({100 * (again / first - 1):+.1f} %)" if is_known else "–")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def rebuild(document: Path) -> None:
    """Write what the studies print between the marks of a document."""
    text = document.read_text(encoding="utf-8")
    for mark, command in TABLES.items():
        between_marks = re.compile(rf"(?<=<!-- {re.escape(mark)} -->\n).*?(?=<!-- end -->)", re.DOTALL)
        if between_marks.search(text):
            script, *options = command.split()
            whole = [sys.executable, str(HERE / script), *options]
            printed = subprocess.run(whole, check=True, capture_output=True, text=True).stdout
            text = between_marks.sub(printed.replace("\\", r"\\"), text, count=1)  # an empty place matches twice
    document.write_text(text, encoding="utf-8")


def main() -> None:
    """Pack, run, merge, or print the table of rows made twice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("pack", help="corpora and sources as one archive")
    verb.add_argument("data", type=Path, help="the folder of published data")
    verb.add_argument("out", type=Path)
    verb.add_argument("--site", type=Path, help="packages that the other machine lacks")
    verb.add_argument(
        "--engagement", action="store_true", help="only what the study of remaining depth needs beside it"
    )
    verb = verbs.add_parser("run", help="make the rows that are missing")
    verb.add_argument("corpora", type=Path)
    verb.add_argument("--limit", type=float, default=1e6, help="seconds")
    verb.add_argument("--workers", type=int, default=6, help="rows that train at the same time")
    verb.add_argument("--only", default="", help="a regular expression of names: study--corpus--variant--seed")
    verb.add_argument("--options", default="", help="added to every study's command: --padded")
    verb.add_argument("--device", default="cuda")
    verb.add_argument("--encoder", default="minilm", help="that engagement is tuned on")
    verb.add_argument("--work", type=Path, default=Path("out/runs"), help="where checkpoints go")
    verb.add_argument("--rows", type=Path, default=Path("out/rows"))
    verb = verbs.add_parser("merge", help="rows into tables, tables into docs/results.md")
    verb.add_argument("rows", type=Path)
    verbs.add_parser("again", help="rows made twice from one seed")
    arguments = parser.parse_args()
    if arguments.verb == "pack":
        if arguments.engagement:
            study_pack.pack_engagement(arguments.data, arguments.out)
        else:
            study_pack.pack(arguments.data, arguments.out, arguments.site)
    elif arguments.verb == "merge":
        merge(arguments.rows, HERE, ROOT / "docs" / "results.md")
    elif arguments.verb == "again":
        print(again_table(json.loads((HERE / AGAIN).read_text())))
    elif not run(arguments):
        sys.exit(1)


if __name__ == "__main__":
    main()
