"""`dialoscope corpus` as a user meets it: in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

File = Callable[[str, str | bytes], Path]
HI = json.dumps({"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]}) + "\n"


def dialoscope(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dialoscope", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120)


def as_json(*arguments: object) -> Any:
    done = dialoscope(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_show_tells_machines_the_size_of_a_corpus(file: File) -> None:
    shown = as_json("corpus", "show", file("train.jsonl", HI * 2))
    found = {key: shown[key] for key in ("dialogues", "turns", "splits", "speakers", "format", "skipped")}
    assert found == {
        "dialogues": 2,
        "turns": 4,
        "splits": {"train": 2},
        "speakers": 2,
        "format": "messages",
        "skipped": {},
    }
    assert len(shown["fingerprint"]) == 12


def test_show_tells_people_the_same(file: File) -> None:
    done = dialoscope("corpus", "show", file("train.jsonl", HI * 2))
    assert done.returncode == 0
    assert "train" in done.stdout
    assert "messages" in done.stdout


def test_bad_input_is_one_line_and_exit_code_2(file: File) -> None:
    path = file("a.jsonl", HI + "broken\n")
    done = dialoscope("corpus", "show", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"dialoscope: {path}:2: expected one JSON record on a line, found ")
    assert done.stderr.count("\n") == 1


def test_skipping_counts_bad_records_by_reason(file: File) -> None:
    path = file("a.jsonl", HI + "broken\n")
    assert as_json("corpus", "show", path, "--on-error", "skip")["skipped"] == {"expected one JSON record on a line": 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("corpus", "shwo"), "No such command 'shwo'. Did you mean 'show'?"),
        (("corpus", "show"), "Give one corpus, or both --train and --test."),
        (("corpus", "show", "x", "--fromat", "y"), "No such option: --fromat"),
        (("corpus", "show", "nowhere.jsonl"), "No corpus, file or folder 'nowhere.jsonl'"),
        (("corpus", "show", "concierge", "--split", "tset"), "No split 'tset' in concierge. Splits present: train"),
        (
            ("corpus", "show", "concierge", "--on-error", "skp"),
            "on_error is one of fail, skip; found 'skp'.",
        ),
        (
            ("corpus", "convert", "concierge", "--out", "out", "--to", "parqet"),
            "to is one of messages, parquet, text, hf; found 'parqet'.",
        ),
        (
            ("corpus", "generate", "--out", "out", "--dialogues", "0"),
            "dialogues takes a whole number from 1 to 10,000,000, found 0.",
        ),
        (("corpus", "convert", "concierge"), "Give a file or a folder with --out."),
        (("corpus", "show", "concierge", "--limit", "many"), "limit takes a whole number, found 'many'."),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = dialoscope(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"dialoscope: {message}")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_validate_lists_bad_records_and_oddities(file: File) -> None:
    done = dialoscope("corpus", "validate", file("a.jsonl", HI * 2 + '{"messages": []}\n'), "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["bad_records"]) == (2, 1)
    assert report["oddities"] == {"dialogues that repeat an earlier one word for word": 1}
    assert report["problems"][0].endswith("a.jsonl:3: expected at least one turn, found none")


def test_validate_is_content_with_a_sound_corpus(file: File) -> None:
    assert dialoscope("corpus", "validate", file("a.jsonl", HI)).returncode == 0


@pytest.mark.parametrize("to", ["messages", "parquet", "text"])
def test_convert_keeps_the_corpus(file: File, tmp_path: Path, to: str) -> None:
    before = as_json("corpus", "show", file("in/train.jsonl", HI * 2))
    written = as_json("corpus", "convert", tmp_path / "in", "--out", tmp_path / "out", "--to", to)
    after = as_json("corpus", "show", tmp_path / "out")
    assert before["fingerprint"] == written["fingerprint"] == after["fingerprint"]


def test_a_failed_conversion_leaves_nothing_behind(file: File, tmp_path: Path) -> None:
    path = file("in/a.jsonl", HI + "broken\n")
    assert dialoscope("corpus", "convert", path, "--out", tmp_path / "out").returncode == 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]


def test_convert_merges_turns_where_asked(file: File, tmp_path: Path) -> None:
    path = file("a.jsonl", json.dumps({"messages": [{"role": "user", "content": "Hi."}] * 3}))
    as_json("corpus", "convert", path, "--out", tmp_path / "b.jsonl", "--merge-turns")
    assert as_json("corpus", "show", tmp_path / "b.jsonl")["turns"] == 1


def test_generate_gives_the_same_corpus_for_the_same_seed(tmp_path: Path) -> None:
    one, same, other = (
        as_json("corpus", "generate", "--out", tmp_path / f"{n}.jsonl", "--dialogues", 50, "--seed", seed)[
            "fingerprint"
        ]
        for n, seed in enumerate((1, 1, 2))
    )
    assert one == same != other


def test_formats_are_listed_with_an_example() -> None:
    formats = as_json("corpus", "formats")
    assert {"messages", "sharegpt", "dailydialog", "fed", "opensubtitles", "hf"} <= set(formats)
    assert all(form["example"] for form in formats.values())


@pytest.mark.parametrize("command", ["show", "validate", "convert", "sample", "generate", "formats"])
def test_a_command_ends_with_the_next_one(file: File, tmp_path: Path, command: str) -> None:
    path = file("train.jsonl", HI * 2)
    words = {"convert": (path, "--out", "x.parquet"), "sample": (path, "--out", "y.jsonl"), "formats": ()}
    given = words.get(command, ("--dialogues", 20, "--out", "z.jsonl") if command == "generate" else (path,))
    done = dialoscope("corpus", command, *given, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("Next: dialoscope ")


def test_a_sample_is_drawn_at_random_by_the_seed(file: File, tmp_path: Path) -> None:
    path = file("a.jsonl", "".join(HI.replace("Hi.", f"Hi {n}.") for n in range(50)))
    first = as_json("corpus", "show", path, "--limit", 5)
    drawn, same, other = (
        as_json("corpus", "sample", path, "--dialogues", 5, "--seed", seed, "--out", tmp_path / f"{place}.jsonl")
        for place, seed in enumerate((1, 1, 2))
    )
    assert first["dialogues"] == drawn["dialogues"] == 5
    assert len({shown["fingerprint"] for shown in (first, drawn, other)}) == 3
    assert drawn["fingerprint"] == same["fingerprint"]


def test_two_files_are_one_corpus(file: File) -> None:
    train, test = file("a.jsonl", HI * 3), file("b.jsonl", HI)
    assert as_json("corpus", "show", "--train", train, "--test", test)["splits"] == {"train": 3, "test": 1}


def test_a_limit_cuts_each_split_and_a_split_is_chosen(file: File, tmp_path: Path) -> None:
    file("all/train.jsonl", HI * 3)
    file("all/test.jsonl", HI * 2)
    assert as_json("corpus", "show", tmp_path / "all", "--limit", 1)["splits"] == {"train": 1, "test": 1}
    assert as_json("corpus", "show", tmp_path / "all", "--split", "eval")["splits"] == {"test": 2}
