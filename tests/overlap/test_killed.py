"""Interrupted at any moment, `clean` leaves nothing or a complete folder, and nothing that stops the next run."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dialoscope.corpus import generate, load, write
from dialoscope.files import MARK
from dialoscope.overlap import clean

Files = dict[str, bytes]
Moment = Callable[[Path], bool]  # looks at the folder that OUT stands in


def start(corpus: Path, out: Path, *more: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dialoscope", "overlap", "clean", corpus, "--out", out]
    options = ["--test-size", 10, "--validation-size", 10, "--json", *more]
    return subprocess.Popen([*map(str, [*command, *options])], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finished(process: subprocess.Popen[bytes]) -> None:
    _, complaint = process.communicate(timeout=300)
    assert (process.returncode, complaint) == (0, b"")


def files(folder: Path) -> Files:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def unfinished(parent: Path) -> list[Path]:
    return list(parent.glob(f"{MARK}*"))


def holds(count: int) -> Moment:
    """The moment when this many files of the new folder are there."""

    def is_now(parent: Path) -> bool:
        try:
            return any(len(list(folder.rglob("*.*"))) >= count for folder in unfinished(parent))
        except FileNotFoundError:  # while it was looked through, the folder took its place
            return True

    return is_now


def killed_at(moment: Moment, process: subprocess.Popen[bytes], parent: Path) -> None:
    while process.poll() is None and not moment(parent):
        time.sleep(0.0005)
    process.kill()
    process.communicate(timeout=60)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(generate(dialogues=120, seed=1), tmp_path_factory.mktemp("corpus") / "all.jsonl")[0]


def written(corpus: Path, out: Path, seed: int = 0) -> Files:
    """What an unbroken run writes; in this process, for another would take seconds to start."""
    cleaned = clean(load(corpus), validation_size=10, test_size=10, seed=seed)
    return files(cleaned.save(out))


@pytest.fixture(scope="module")
def whole(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Files:
    return written(corpus, tmp_path_factory.mktemp("whole") / "out")


def test_a_killed_run_leaves_nothing_or_everything_and_the_next_one_succeeds(
    corpus: Path, whole: Files, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    left = []
    for moment in (holds(5), holds(len(whole))):
        killed_at(moment, start(corpus, out, "--overwrite"), tmp_path)
        assert not out.exists() or files(out) == whole
        left += unfinished(tmp_path)  # the next run sweeps it
    assert left, "no run was killed while it was writing"
    finished(start(corpus, out, "--overwrite"))
    assert files(out) == whole


def test_a_killed_replacement_leaves_the_old_folder_or_the_new_one(corpus: Path, whole: Files, tmp_path: Path) -> None:
    out = tmp_path / "out"
    old = written(corpus, out, seed=7)
    assert old != whole
    for moment in (holds(len(whole)), lambda parent: files(out) == whole):
        killed_at(moment, start(corpus, out, "--overwrite"), tmp_path)
        assert files(out) in (old, whole)
