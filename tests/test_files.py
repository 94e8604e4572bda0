from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from dialoscope import files
from dialoscope.errors import OutputError
from dialoscope.files import MARK, contents, restore, whole_file, whole_folder

Whole = Callable[[str | Path], AbstractContextManager[Path]]


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    with whole_file(tmp_path / "deep" / "a.txt") as unfinished:
        unfinished.write_text("whole")
        assert not (tmp_path / "deep" / "a.txt").exists()
    assert (tmp_path / "deep" / "a.txt").read_text() == "whole"


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(RuntimeError), whole_file(tmp_path / "a.txt") as unfinished:
        unfinished.write_text("half")
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_a_folder_replaces_the_old_one_whole(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old.txt").write_text("old")
    with whole_folder(tmp_path / "out") as unfinished:
        (unfinished / "new.txt").write_text("new")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["new.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_failure_leaves_the_old_folder_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old.txt").write_text("old")
    with pytest.raises(RuntimeError), whole_folder(tmp_path / "out") as unfinished:
        (unfinished / "new.txt").write_text("new")
        raise RuntimeError
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["old.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_is_not_empty_is_kept_unless_it_may_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("mine")
    with pytest.raises(OutputError, match="not empty"), whole_folder(tmp_path, overwrite=False):
        pass
    assert (tmp_path / "a.txt").read_text() == "mine"


def test_a_folder_in_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="expected a file to write, found a folder"), whole_file(tmp_path):
        pass


def test_a_file_in_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(OutputError, match="expected a folder to write, found a file"), whole_folder(tmp_path / "a"):
        pass


def test_a_folder_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(OutputError, match="cannot make its folder"), whole_file(tmp_path / "a" / "b" / "c.txt"):
        pass


def test_results_are_as_readable_as_other_files(tmp_path: Path) -> None:
    with whole_file(tmp_path / "a.txt") as unfinished:
        unfinished.write_text("")
    (tmp_path / "b.txt").write_text("")
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "b.txt").stat().st_mode


@pytest.mark.parametrize(("mask", "file", "folder"), [(0o022, 0o644, 0o755), (0o027, 0o640, 0o750)])
def test_what_a_library_wrote_for_its_user_alone_is_read_by_whom_the_mask_allows(
    tmp_path: Path, mask: int, file: int, folder: int
) -> None:
    """Safetensors writes weights through a private temporary file."""
    (tmp_path / "theirs.txt").touch(0o600)
    usual = os.umask(mask)
    try:
        with whole_folder(tmp_path / "out") as unfinished:
            (unfinished / "deep").mkdir(0o700)
            for private in (unfinished / "weights", unfinished / "deep" / "weights"):
                private.touch(0o600)
            (unfinished / "link").symlink_to(tmp_path / "theirs.txt")
    finally:
        os.umask(usual)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "out", *(tmp_path / "out").rglob("*"))}
    assert modes == {"out": folder, "deep": folder, "weights": file, "link": 0o600}


SLOW_WRITER = """
import sys, time
from pathlib import Path
from dialoscope.files import whole_folder
with whole_folder(sys.argv[1]) as unfinished:
    for n in range(100_000):
        (unfinished / f"{n}.txt").write_text("x")
        if n == 50:
            print("half way", flush=True)
        time.sleep(0.001)
"""


def test_a_killed_writer_leaves_no_half_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SLOW_WRITER, str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "half way\n"
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
    time.sleep(0.01)
    assert not (tmp_path / "out").exists()


GENERATIONS = """
import sys
from dialoscope import files
if sys.argv[2] == "two renames":
    files._exchange = lambda new, place: False
for generation in range(int(sys.argv[3])):
    with files.whole_folder(sys.argv[1]) as unfinished:
        for n in range(5):
            (unfinished / f"{n}.txt").write_text(f"{sys.argv[4]} {generation}")
    if generation == 0:
        print("one is there", flush=True)
"""


def generations(out: Path, *, swap: str = "exchange", count: int, name: str) -> subprocess.Popen[str]:
    """A process that replaces a folder of five equal files again and again."""
    command = [sys.executable, "-c", GENERATIONS, str(out), swap, str(count), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def assert_whole(out: Path) -> None:
    assert sorted(path.name for path in out.iterdir()) == [f"{n}.txt" for n in range(5)]
    assert len({path.read_text() for path in out.iterdir()}) == 1


KILLED_AT_EVERY_STEP = """
import os, signal, sys
from pathlib import Path
from dialoscope.files import whole_folder

def write(generation):
    with whole_folder(sys.argv[1]) as unfinished:
        for n in range(5):
            (unfinished / f"{n}.txt").write_text(generation)

def killed_at(step):
    seen = 0
    def count(event, arguments):
        nonlocal seen
        seen += event.startswith(("os.", "shutil.", "tempfile.", "ctypes.", "open"))
        if seen > step:
            os.kill(os.getpid(), signal.SIGKILL)
    write("old")
    child = os.fork()
    if not child:
        sys.addaudithook(count)
        write("new")
        os._exit(0)
    return os.waitpid(child, 0)[1] != 0

step = 0
while killed_at(step):
    step += 1
    print(*sorted(path.name + "=" + path.read_text() for path in Path(sys.argv[1]).glob("*")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux swaps folders in one step")
def test_a_writer_killed_at_any_step_leaves_the_old_folder_or_the_new_one(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED_AT_EVERY_STEP, str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    old, new = (" ".join(f"{n}.txt={generation}" for n in range(5)) for generation in ("old", "new"))
    assert set(done.stdout.splitlines()) == {old, new}
    assert all(path.name == "out" or path.name.startswith(MARK) for path in tmp_path.iterdir())


@pytest.mark.parametrize("swap", ["exchange", "two renames"])
def test_writers_of_one_folder_do_not_trip_over_each_other(tmp_path: Path, swap: str) -> None:
    writers = [generations(tmp_path / "out", swap=swap, count=60, name=name) for name in "abc"]
    for writer in writers:
        assert writer.communicate(timeout=120)[1] == ""
        assert writer.returncode == 0
    assert_whole(tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux swaps folders in one step")
def test_while_a_folder_is_replaced_there_is_always_one(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "0.txt").write_text("old")
    looks = 0
    with generations(tmp_path / "out", count=100, name="x") as writer:
        while writer.poll() is None:
            assert (tmp_path / "out" / "0.txt").is_file()
            looks += 1
    assert looks > 100


def without_exchange(new: Path, place: Path) -> bool:
    return False


def test_without_an_exchange_two_renames_replace_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_exchange", without_exchange)
    test_a_folder_replaces_the_old_one_whole(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), OSError(errno.EIO, "Input/output error")])
def test_a_failure_between_two_renames_puts_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old.txt").write_text("old")
    move = files._move

    def fail_in_the_middle(folder: Path, place: Path) -> bool:
        if folder.name.startswith(MARK) and not place.exists():
            raise failure
        return move(folder, place)

    monkeypatch.setattr(files, "_exchange", without_exchange)
    monkeypatch.setattr(files, "_move", fail_in_the_middle)
    with pytest.raises((OutputError, KeyboardInterrupt)), whole_folder(tmp_path / "out"):
        pass
    assert contents(tmp_path) == {"out/old.txt"}


KILLED_BETWEEN_RENAMES = """
import os, signal, sys
from dialoscope import files

def killed(folder, place):
    os.kill(os.getpid(), signal.SIGKILL)

with files.whole_folder(sys.argv[1]) as unfinished:
    (unfinished / "a.txt").write_text("old")
files._exchange = lambda new, place: False
move = files._move
files._move = lambda folder, place: move(folder, place) if place.exists() else killed(folder, place)
with files.whole_folder(sys.argv[1]) as unfinished:
    (unfinished / "a.txt").write_text("new")
"""


@pytest.mark.parametrize("name", ["last", "x" * 250])
def test_what_a_writer_killed_between_two_renames_set_aside_is_put_back(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    command = [sys.executable, "-c", KILLED_BETWEEN_RENAMES, str(place)]
    assert subprocess.run(command, timeout=120).returncode == -signal.SIGKILL
    assert not place.exists()
    restore(tmp_path / "other")  # what was set aside is not taken for another folder
    assert not (tmp_path / "other").exists()
    restore(place)
    assert (place / "a.txt").read_text() == "old"
    restore(place)
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(MARK)] == [name]


def test_what_was_set_aside_goes_when_the_place_is_taken(tmp_path: Path) -> None:
    for name, text in (("out", "new"), (f"{files._aside(tmp_path / 'out')}1", "old")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(text)
    restore(tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "a.txt").read_text() == "new"


def test_of_several_set_aside_the_newest_is_put_back(tmp_path: Path) -> None:
    for number, seconds in ((1, 100), (2, 300), (3, 200)):
        folder = tmp_path / f"{files._aside(tmp_path / 'out')}{number}"
        folder.mkdir()
        (folder / "a.txt").write_text(str(number))
        os.utime(folder, (seconds, seconds))
    restore(tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").read_text() == "2"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_where_nothing_was_set_aside_nothing_is_restored(tmp_path: Path) -> None:
    restore(tmp_path / "deep" / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_came_up_meanwhile_is_kept_unless_it_may_be_replaced(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="not empty"), whole_folder(tmp_path / "out", overwrite=False) as unfinished:
        (unfinished / "new.txt").write_text("new")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "other.txt").write_text("other")
    assert contents(tmp_path) == {"out/other.txt"}


def test_a_check_can_refuse_before_and_after_the_block(tmp_path: Path) -> None:
    def refuse(path: Path) -> None:
        raise OutputError(f"{path}: not ours")

    with pytest.raises(OutputError, match="not ours"), whole_folder(tmp_path / "out", check=refuse) as unfinished:
        (unfinished / "new.txt").write_text("new")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "notes.txt").write_text("mine")
    assert contents(tmp_path) == {"out/notes.txt"}
    with pytest.raises(OutputError, match="not ours"), whole_folder(tmp_path / "out", check=refuse):
        raise AssertionError("the block must not begin")


def test_a_file_that_exists_is_kept_unless_it_may_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("mine")
    with pytest.raises(OutputError, match="this file exists"), whole_file(tmp_path / "a.txt", overwrite=False):
        pass
    assert (tmp_path / "a.txt").read_text() == "mine"


@pytest.mark.parametrize("name", [".", "..", "", "../here", "link"])
def test_the_folder_we_are_in_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "link").symlink_to(tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(OutputError, match="found the one we are in"), whole_folder(name):
        raise AssertionError("the block must not begin")
    assert contents(tmp_path) == {"here/link"}


def test_a_mounted_disk_is_refused() -> None:
    with pytest.raises(OutputError, match="found a mounted disk"), whole_folder("/proc"):
        raise AssertionError("the block must not begin")


@pytest.mark.parametrize("whole", [whole_file, whole_folder])
def test_a_device_is_no_place_to_write(whole: Whole) -> None:
    with pytest.raises(OutputError, match="found a device, pipe or socket"), whole("/dev/full"):
        raise AssertionError("the block must not begin")


@pytest.mark.parametrize("whole", [whole_file, whole_folder])
def test_links_in_a_circle_lead_nowhere(tmp_path: Path, whole: Whole) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "a")
    with pytest.raises(OutputError), whole(tmp_path / "a"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_link_to_a_result_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk")
    (tmp_path / "a.txt").symlink_to(tmp_path / "b.txt")
    with whole_folder(tmp_path / "out") as folder, whole_file(tmp_path / "a.txt") as file:
        (folder / "new.txt").write_text("new")
        file.write_text("new")
    assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "disk" / "new.txt").read_text() == (tmp_path / "b.txt").read_text() == "new"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("whole", [whole_file, whole_folder])
def test_what_the_disk_refuses_is_one_line(tmp_path: Path, whole: Whole, code: int) -> None:
    with pytest.raises(OutputError) as caught, whole(tmp_path / "out"):
        raise OSError(code, "two\nlines")
    assert str(caught.value).startswith(f"{tmp_path / 'out'}: cannot be written: {os.strerror(code)}.")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("whole", [whole_file, whole_folder])
def test_other_errors_inside_the_block_stay_what_they_are(tmp_path: Path, whole: Whole) -> None:
    with pytest.raises(FileNotFoundError), whole(tmp_path / "out"):
        (tmp_path / "nothing").read_text()
    with pytest.raises(BrokenPipeError), whole(tmp_path / "out"):
        raise BrokenPipeError


@pytest.mark.parametrize("whole", [whole_file, whole_folder])
def test_a_name_that_no_disk_takes_is_one_line(tmp_path: Path, whole: Whole) -> None:
    with pytest.raises(OutputError, match="cannot be written: File name too long"), whole(tmp_path / ("x" * 300)):
        pass


def test_everything_is_on_the_disk_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    sync, rename = os.fsync, Path.rename

    def fsync(handle: int) -> None:
        steps.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        sync(handle)

    def renamed(path: Path, target: Path) -> Path:
        steps.append("rename")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "rename", renamed)
    with whole_folder(tmp_path / "out") as unfinished:
        (unfinished / "tables").mkdir()
        (unfinished / "tables" / "a.csv").write_text("1")
    assert sorted(steps[:2]) == ["a.csv", "tables"]
    assert steps[2].startswith(MARK)
    assert steps[3:] == ["rename", tmp_path.name]


def test_a_files_bytes_are_on_the_disk_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda handle: seen.append((tmp_path / "a.txt").exists()))
    with whole_file(tmp_path / "a.txt") as unfinished:
        unfinished.write_text("whole")
    assert seen == [False, True]  # the file before, its folder after


def killed_half_way(out: Path) -> list[Path]:
    """What a writer leaves that is killed while it writes."""
    command = [sys.executable, "-c", SLOW_WRITER, str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "half way\n"
        writer.kill()
        writer.wait(timeout=60)
    return list(out.parent.glob(f"{MARK}*"))


@pytest.mark.parametrize("whole", [whole_file, whole_folder])
def test_the_next_writer_deletes_what_a_killed_one_left(tmp_path: Path, whole: Whole) -> None:
    (left,) = killed_half_way(tmp_path / "out")
    left.with_name(left.name + "-file.json").touch()
    with whole(tmp_path / "other") as unfinished:
        assert list(tmp_path.iterdir()) == [unfinished]
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_what_a_living_process_is_writing_is_never_deleted(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SLOW_WRITER, str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "half way\n"
        with whole_file(tmp_path / "a.txt"), whole_file(tmp_path / "b.txt"):
            assert len(list(tmp_path.glob(f"{MARK}*"))) == 3
        assert len(list(tmp_path.glob(f"{MARK}*"))) == 1
        writer.kill()


def test_what_another_machine_or_an_older_version_left_is_never_deleted(tmp_path: Path) -> None:
    (left,) = killed_half_way(tmp_path / "out")
    elsewhere = left.rename(left.with_name(left.name.replace(files._host(), "0" * 12)))
    (tmp_path / f"{MARK}abcdefgh").touch()
    with whole_folder(tmp_path / "out"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"out", elsewhere.name, f"{MARK}abcdefgh"}


def test_a_link_with_such_a_name_is_deleted_and_not_followed(tmp_path: Path) -> None:
    (left,) = killed_half_way(tmp_path / "out")
    kept = left.rename(tmp_path / "kept")
    left.symlink_to(kept)
    with whole_file(tmp_path / "a.txt"):
        pass
    assert any(kept.iterdir())
    assert not left.is_symlink()
