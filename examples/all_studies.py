r"""Every study that needs a GPU, from published data to rows.

    python examples/all_studies.py gather data/ corpora/         # on any machine: Parquet files, DailyDialog cleaned
    python examples/all_studies.py run corpora/ --limit 3000     # all of them, or some: run corpora/ leak probes
    python examples/all_studies.py merge                         # rows into those that the tables are made of

`data/` holds a folder for each corpus as it is published, those without a training split too: they are dealt anew, a
tenth of their dialogues for validation, a tenth for the test. Studies run side by side, the commands of one after each
other; where a limit ends them, the same command goes on. Rows that the tables have are not made again: delete those
that should be.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import side_by_side

HERE = Path(__file__).parent
PUBLISHED = (
    "dailydialog",
    "empathetic_dialogues",
    "personachat",
    "wizard_of_wikipedia",
    "multiwoz21",
    "multiwoz22_text",
    "ubuntu_irc",
)
DEALT = ("personachat", "wizard_of_wikipedia", "chitchat")
SEEDS = "--seeds 0 1 2"
CLEANED = " ".join(f"overlap-{kind}-cleaned-{turns}" for turns in (1, 3) for kind in ("lstm", "transformer"))
ENGAGED = " ".join(f"{corpus}-h{n}" for corpus in ("dailydialog", "empathetic_dialogues", "mixture") for n in (0, 2, 3))
LEAK = "leak_study.py {corpora}/dailydialog.parquet --cleaned {corpora}/clean"
ENGAGE = "trained_engagement.py {corpora} --human {corpora}/human --encoder {encoder} --workers 4"
TRAINED = {  # three at a time: with more, captured graphs of long contexts push each other out of a card's memory
    "dailydialog": "trained_variants.py {corpora}/clean/corpus --name dailydialog --epochs 20 --workers 3",
    "ubuntu": "trained_variants.py {corpora}/ubuntu_irc.parquet --name ubuntu --epochs 20 --workers 3",
}
PROBES = "probed_presets.py {corpora}/%s --epochs 12 --workers 8"
STUDIES = {
    "leak": (
        f"{LEAK} --epochs 40 --variants overlap-lstm-original-1 overlap-transformer-original-1 --workers 2",
        f"{LEAK} --epochs 14 --variants {CLEANED} --workers 4",
    ),
    "engage": (f"{ENGAGE} {SEEDS} --variants {ENGAGED} depth", f"{ENGAGE} --variants ablations"),
    "probes": (
        f"{PROBES % 'multiwoz22_text.parquet'} --annotated {{corpora}}/multiwoz21.parquet --name multiwoz {SEEDS}",
        f"{PROBES % 'personachat.parquet'} --name personachat {SEEDS}",
    ),
    "presets": (f"{TRAINED['dailydialog']} --variants presets {SEEDS}",),
    "das": tuple(f"{TRAINED['dailydialog']} --variants {which}" for which in ("paper", f"control {SEEDS}", "sweep")),
    "das-ubuntu": tuple(f"{TRAINED['ubuntu']} --variants {which}" for which in ("paper", f"control {SEEDS}", "sweep")),
}


def gather(data: Path, corpora: Path) -> None:
    """Every corpus as one Parquet file, DailyDialog also cleaned, and what people rated."""
    from dialoscope.corpus import load, resplit, write

    corpora.mkdir(parents=True, exist_ok=True)
    for name in (*PUBLISHED, "chitchat"):
        with tempfile.TemporaryDirectory() as unpacked:
            for packed in (data / name).glob("*.zip"):
                zipfile.ZipFile(packed).extractall(unpacked)
            place = unpacked if any(Path(unpacked).iterdir()) else data / name
            found = load(place if name in PUBLISHED else name)
            if name in DEALT:
                found = resplit(found, validation=len(found) // 10, test=len(found) // 10, seed=0)
            write(found, corpora / f"{name}.parquet", to="parquet", overwrite=True)
        print(name, found.splits, flush=True)
    command = [sys.executable, "-m", "dialoscope", "overlap", "clean", str(data / "dailydialog"), "--threshold", "0.75"]
    shutil.rmtree(corpora / "clean", ignore_errors=True)
    sizes = ["--test", "1000", "--validation", "1000", "--seed", "0"]
    subprocess.run([*command, *sizes, "--out", str(corpora / "clean"), "--quiet"], check=True)
    shutil.copytree(data / "dailydialog_human", corpora / "human", dirs_exist_ok=True)


def run(arguments: argparse.Namespace) -> None:
    """Studies side by side, until they end or their time does."""
    if shutil.which("nvidia-cuda-mps-control"):  # several runs share a card well only so
        subprocess.run(["nvidia-cuda-mps-control", "-d"], capture_output=True)
    arguments.rows.mkdir(parents=True, exist_ok=True)
    end, begun = time.monotonic() + arguments.limit, list[subprocess.Popen[bytes]]()
    share = 0.6 / len(arguments.studies)

    def study(name: str) -> bool:
        """Whether no command of it failed; one that its time ended did not."""
        for number, command in enumerate(STUDIES[name]):
            script, *options = command.format(corpora=arguments.corpora, encoder=arguments.encoder).split()
            rows = arguments.rows / f"{Path(script).stem}-{name}-{number}.json"
            places = ["--device", arguments.device, "--work", str(arguments.work / name), "--out", str(rows)]
            whole = [sys.executable, str(HERE / script), *options, *places, "--share", str(share)]
            begun.append(subprocess.Popen(whole, start_new_session=True))
            try:
                code = begun[-1].wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                return True
            print(name, number, "ended" if not code else f"failed ({code})", flush=True)
            if code:
                return False
        return True

    with ThreadPoolExecutor(len(STUDIES)) as pool:
        studies = [pool.submit(study, name) for name in arguments.studies]
        try:
            while not all(one.done() for one in studies):
                time.sleep(min(arguments.tell, max(1.0, end - time.monotonic())))
                standing = _standing(arguments.work)
                print(f"{time.monotonic() - end + arguments.limit:.0f} s", *standing, sep="\n  ", flush=True)
        finally:  # their time is up, or somebody broke off
            for one in begun:
                with suppress(ProcessLookupError):
                    os.killpg(one.pid, signal.SIGKILL)
    if not all(one.result() for one in studies):
        sys.exit(1)


def _standing(work: Path) -> list[str]:
    """How far every run has come: the first columns of its log's last line."""
    found = []
    for log in sorted(work.glob("*/*/log.csv")):
        with suppress(OSError, IndexError):  # a run that has ended takes its log with it, one that begins has none yet
            found.append(f"{log.parent.name}: {','.join(log.read_text().split()[-1].split(',')[:4])}")
    return found


def merge(rows: Path) -> None:
    """Put rows into the files that tables are made of; a row made again takes the place of the older one."""
    for path in sorted(rows.glob("*.json")):
        table = HERE / f"{path.stem.split('-')[0]}.json"
        known = {_key(row): row for row in side_by_side.read(table)}
        new = {_key(row): row for row in side_by_side.read(path)}
        side_by_side.keep([*(known | new).values()], table)
        print(f"{table.name}: {len(new.keys() - known.keys())} new rows, {len(new.keys() & known.keys())} made again")


def _key(row: side_by_side.Row) -> tuple[str, str, int]:
    return row["corpus"], row["variant"], row["seed"]


def main() -> None:
    """Gather, run or merge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("gather")
    verb.add_argument("data", type=Path)
    verb.add_argument("corpora", type=Path)
    verb = verbs.add_parser("run")
    verb.add_argument("corpora", type=Path)
    verb.add_argument("studies", nargs="*", default=list(STUDIES), help=f"of {', '.join(STUDIES)}")
    verb.add_argument("--limit", type=float, default=1e6, help="seconds")
    verb.add_argument("--tell", type=float, default=60.0, help="seconds between lines that say how far runs are")
    verb.add_argument("--device", default="auto")
    verb.add_argument("--encoder", default="minilm", help="that engagement is tuned on")
    verb.add_argument("--work", type=Path, default=Path("out/runs"), help="where checkpoints go")
    verb.add_argument("--rows", type=Path, default=Path("out/rows"))
    verb = verbs.add_parser("merge")
    verb.add_argument("--rows", type=Path, default=Path("out/rows"))
    arguments = parser.parse_args()
    if arguments.verb == "gather":
        gather(arguments.data, arguments.corpora)
    elif arguments.verb == "merge":
        merge(arguments.rows)
    elif unknown := set(arguments.studies) - set(STUDIES):
        parser.error(f"'{sorted(unknown)[0]}' is no study; there are {', '.join(STUDIES)}")
    else:
        run(arguments)


if __name__ == "__main__":
    main()
