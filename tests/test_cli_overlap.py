"""`dialoscope overlap` as a user meets it: in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

File = Callable[[str, str | bytes], Path]


def dialoscope(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dialoscope", "overlap", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def as_json(*arguments: object) -> Any:
    done = dialoscope(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def chat(*texts: str, name: str = "") -> str:
    messages = [{"role": "user" if place % 2 else "assistant", "content": text} for place, text in enumerate(texts)]
    return json.dumps({"id": name, "messages": messages} if name else {"messages": messages}) + "\n"


# Against training: the first is identical; the second shares its context and 3 of 4 words of its response, 6/8.
TRAIN = chat("how are you", "fine thanks and you", name="t1") + chat("where to", "over there now please", name="t2")
TEST = chat("How are you ?", "Fine , thanks and you !", name="e1") + chat("where to", "over there now quick", name="e2")


@pytest.fixture
def both(file: File) -> tuple[str, Path, str, Path]:
    return "--train", file("train.jsonl", TRAIN), "--test", file("test.jsonl", TEST)


def test_the_json_of_measure_is_that_of_the_promise(both: tuple[object, ...]) -> None:
    shown = as_json("measure", *both)
    histogram = shown.pop("histogram")
    assert shown.pop("signature").startswith("corpus:test@")
    assert shown.pop("intervals") == {"identical_share": None, "mean": None}
    intervals = shown.pop("share_over_intervals")
    assert (list(intervals), set(intervals.values())) == (list(shown["share_over"]), {None})
    reasons = shown.pop("reasons")
    assert list(reasons) == [*(f"share_over {name}" for name in intervals), "identical_share", "mean"]
    assert set(reasons.values()) == {"an interval needs at least 3 dialogues, found 2"}
    assert shown == {
        "unit": "sample",
        "is_within": False,
        "n_train": 2,
        "n_test": 2,
        "identical": 1,
        "identical_share": 0.5,
        "share_over": {"0.5": 1.0, "0.6": 1.0, "0.75": 0.5, "0.8": 0.5, "0.9": 0.5, "0.99": 0.5},
        "mean": 0.875,
        "threshold": 0.8,
    }
    assert (histogram["counts"][15], histogram["counts"][19], histogram["cumulative"][-1]) == (1, 1, 2)


def test_a_result_is_saved_and_shown_again_at_another_threshold(both: tuple[object, ...], tmp_path: Path) -> None:
    measured = as_json("measure", *both, "--out", tmp_path / "run")
    shown = as_json("show", tmp_path / "run", "--threshold", 0.7)
    assert shown["share_over"]["0.7"] == 1.0
    assert shown["matches"] == [
        {"id": "e1#2", "ratio": 1.0, "match_id": "t1#2", "match": 0},
        {"id": "e2#2", "ratio": 0.75, "match_id": "t2#2", "match": 1},
    ]
    assert shown["signature"] == measured["signature"]
    done = dialoscope("show", tmp_path / "run")
    assert (done.returncode, "e1#2" in done.stdout, "e2#2" in done.stdout) == (0, True, False)


def test_units_of_one_corpus_are_held_against_the_rest(file: File) -> None:
    path = file("all.jsonl", TRAIN + TEST)
    dialogues, turns = (as_json("measure", path, "--within", *more) for more in ((), ("--unit", "turn")))
    assert (dialogues["unit"], dialogues["is_within"], dialogues["n_test"]) == ("dialogue", True, 4)
    # {how are you fine thanks and} twice; {where to over there now please/quick}: 2·5/12.
    assert dialogues["mean"] == pytest.approx((1 + 1 + 10 / 12 + 10 / 12) / 4)
    assert (turns["unit"], turns["n_test"], turns["identical"]) == ("turn", 8, 6)


def test_a_model_is_scored_on_the_full_the_clean_and_the_leaked_part(
    both: tuple[object, ...], file: File, tmp_path: Path
) -> None:
    said = file("said.txt", "Fine , thanks and you !\nno idea\n")
    arguments = ("--hypotheses", said, "--metrics", "bleu-1,length", "--threshold", 0.8, "--out", tmp_path / "run")
    shown = as_json("measure", *both, *arguments)["contamination"]
    assert (shown["threshold"], shown["n"]) == (0.8, {"full": 2, "clean": 1, "leaked": 1})
    values = {part: score["value"] for part, score in shown["metrics"]["bleu-1"].items()}
    assert (values["clean"], values["leaked"]) == (0, pytest.approx(100))
    assert {part: score["value"] for part, score in shown["metrics"]["length"].items()} == {
        "full": 4,
        "clean": 2,
        "leaked": 6,
    }
    assert json.loads((tmp_path / "run" / "result.json").read_text())["data"]["contamination"] == shown


def test_people_see_the_scores_as_a_table(both: tuple[object, ...], file: File) -> None:
    done = dialoscope("measure", *both, "--hypotheses", file("said.txt", "a\nb\n"), "--metrics", "length")
    assert done.returncode == 0
    assert "leaked (1)" in done.stdout
    assert "length, leaked: no interval, for " in " ".join(done.stdout.split())


def test_leaked_items_are_filtered_and_nothing_is_lost(both: tuple[object, ...], tmp_path: Path) -> None:
    shown = as_json("filter", *both, "--threshold", 0.8, "--out", tmp_path / "out")
    counts = {key: shown[key] for key in ("unit", "threshold", "n_train", "n_test", "kept", "dropped")}
    assert counts == {"unit": "sample", "threshold": 0.8, "n_train": 2, "n_test": 2, "kept": 1, "dropped": 1}
    kept, dropped, ledger = (
        [json.loads(line) for line in (tmp_path / "out" / name).read_text().splitlines()]
        for name in ("kept.jsonl", "dropped.jsonl", "ledger.jsonl")
    )
    assert ([one["id"] for one in kept], [one["id"] for one in dropped]) == (["e2"], ["e1"])
    assert ledger == [{"unit": "sample", "id": "e1#2", "reason": "over the threshold", "partner": "t1#2", "ratio": 1.0}]


def test_a_column_of_texts_is_compared_across_formats(file: File, tmp_path: Path) -> None:
    train, more = file("a.csv", "text,n\na b c d,1\n"), file("b.jsonl", '{"text": "x y"}\n')
    test = file("c.jsonl", '{"text": "a b c e"}\n{"text": "x y"}\n')
    column = ("--column", "text")
    shown = as_json("measure", "--train", train, "--train", more, "--test", test, *column)
    assert (shown["unit"], shown["n_train"], shown["mean"], shown["identical"]) == ("text", 2, 0.875, 1)
    assert as_json("pairs", test, "--against", train, *column, "--threshold", 0.75)["pairs"] == 1
    filtered = as_json("filter", "--train", more, "--test", test, *column, "--out", tmp_path / "out")
    assert (filtered["kept"], filtered["dropped"]) == (1, 1)


def test_the_json_of_pairs_counts_them(both: tuple[object, ...], file: File, tmp_path: Path) -> None:
    shown = as_json("pairs", both[1], "--against", both[3], "--unit", "sample", "--out", tmp_path / "p.csv")
    examples = shown.pop("examples")
    assert shown == {"unit": "sample", "threshold": "0.75", "units": 2, "other_units": 2, "pairs": 2}
    assert [row["ratio"] for row in examples] == [1, 0.75]
    assert (tmp_path / "p.csv").read_text() == '"first","second","ratio"\n"t1#2","e1#2",1\n"t2#2","e2#2",0.75\n'


def test_pairs_replace_a_file_only_where_asked(both: tuple[object, ...], tmp_path: Path) -> None:
    arguments = ("pairs", both[1], "--unit", "turn", "--out", tmp_path / "p.csv")
    (tmp_path / "p.csv").write_text("mine")
    again = dialoscope(*arguments)
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "this file exists. Give a new name, or --overwrite to replace it." in again.stderr
    assert (tmp_path / "p.csv").read_text() == "mine"
    assert as_json(*arguments, "--overwrite")["pairs"] == 0


def test_a_split_of_the_training_files_is_what_is_compared(file: File) -> None:
    rows = [{"id": split, "split": split, "dialog": ["how are you", "fine " + split]} for split in ("train", "extra")]
    path = file("chats.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    shown = as_json("measure", "--train", path, "--train-split", "extra", "--test", path, "--split", "train")
    assert (shown["n_train"], shown["n_test"], shown["identical"]) == (1, 1, 0)


def splits_of(*rows: tuple[str, str]) -> str:
    """A dialogue `how are you – WORDS` in each of these splits."""
    lines = [{"id": split, "split": split, "dialog": ["how are you", words]} for split, words in rows]
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_sides_with_several_splits_are_train_and_test_by_default(file: File) -> None:
    path = file("chats.jsonl", splits_of(("train", "fine"), ("validation", "well"), ("test", "good")))
    shown = as_json("measure", "--train", path, "--test", path)
    assert (shown["n_train"], shown["n_test"], shown["identical"]) == (1, 1, 0)
    # Of several paths each is cut by itself; one that has a single split is read whole, whatever it is called.
    more = file("more.jsonl", splits_of(("extra", "good")))
    shown = as_json("measure", "--train", path, "--train", more, "--test", path)
    assert (shown["n_train"], shown["n_test"], shown["identical"]) == (2, 1, 1)


def test_what_is_skipped_and_what_is_not_read_is_told(file: File, tmp_path: Path) -> None:
    file("in/train.jsonl", TRAIN + '{"messages": 3}\n')
    file("in/test.jsonl", TEST)
    file("in/LICENSE", "free")
    folder = tmp_path / "in"
    unread = {str(folder / "LICENSE"): "not a data file"}
    skip = ("--on-error", "skip")
    for command, out in (("measure", "m"), ("filter", "f"), ("clean", "c"), ("pairs", "p.csv")):
        sizes = ("--test", 1, "--validation", 1) if command == "clean" else ()
        shown = as_json(command, folder, *skip, *sizes, "--out", tmp_path / out)
        assert (list(shown["skipped"].values()), shown["ignored"]) == ([1], unread), command
        if command != "pairs":
            kept = json.loads((tmp_path / out / "result.json").read_text())["data"]
            assert (kept["skipped"], kept["ignored"]) == (shown["skipped"], unread), command
    same = as_json("measure", "--train", folder, "--test", folder, *skip)
    assert list(same["skipped"].values()) == [1]
    for arguments in (("measure", folder, *skip), ("show", tmp_path / "m")):
        lines = dialoscope(*arguments).stdout.splitlines()
        assert any(line.startswith("skipped: 1 × expected") for line in lines)
        assert "not read as dialogues: LICENSE (not a data file)" in lines


@pytest.mark.parametrize("command", ["measure", "filter", "clean", "pairs"])
@pytest.mark.parametrize(("out", "how"), [("", "contains"), ("in", "is"), ("in/out.csv", "lies in")])
def test_an_input_is_never_replaced(command: str, out: str, how: str, file: File, tmp_path: Path) -> None:
    file("in/train.jsonl", TRAIN)
    file("in/test.jsonl", TEST)
    done = dialoscope(command, tmp_path / "in", "--out", tmp_path / out, "--overwrite")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f" {how} the input {tmp_path / 'in'}. Give a place outside of what is read." in done.stderr
    assert (tmp_path / "in" / "train.jsonl").read_text() == TRAIN


def test_a_file_of_hypotheses_is_never_replaced(both: tuple[object, ...], file: File) -> None:
    said = file("run/said.txt", "a\nb\n")
    done = dialoscope("measure", *both, "--hypotheses", said, "--out", said.parent, "--overwrite")
    assert (done.returncode, said.read_text()) == (2, "a\nb\n")
    assert " contains the input " in done.stderr


def test_people_see_the_closest_pairs_and_how_many_there_are(file: File) -> None:
    # 21 texts "a b c wN" share 3 of 4 words, 6/8; the last two are the same.
    texts = [f"a b c w{number}" for number in [*range(21), 20]]
    path = file("texts.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in texts))
    shown = as_json("pairs", path, "--column", "text")
    assert (shown["pairs"], len(shown["examples"])) == (22 * 21 // 2, 20)
    closest = {"first": f"{path}#21", "second": f"{path}#22", "ratio": 1.0}
    assert shown["examples"][0] == closest
    assert [row["ratio"] for row in shown["examples"][1:]] == [0.75] * 19
    printed = " ".join(dialoscope("pairs", path, "--column", "text").stdout.split())
    assert "(first 20 of 231, highest ratio first)" in printed


def test_a_run_is_shown_at_its_own_threshold_with_its_scores(
    both: tuple[object, ...], file: File, tmp_path: Path
) -> None:
    scored = ("--hypotheses", file("said.txt", "a\nb\n"), "--metrics", "length", "--threshold", 0.7)
    measured = as_json("measure", *both, *scored, "--out", tmp_path / "run")
    shown = as_json("show", tmp_path / "run")
    assert (shown["threshold"], len(shown["matches"])) == (0.7, 2)
    assert shown["contamination"] == measured["contamination"]
    own, other = (dialoscope("show", tmp_path / "run", *more).stdout for more in ((), ("--threshold", 0.8)))
    assert ("leaked (2)" in own, "leaked (2)" in other) == (True, True)
    note = "Scores are those at the run's threshold, 0.7; for 0.8, measure again."
    assert (note in own, note in other) == (False, True)


def test_clean_writes_a_folder_and_replaces_it_only_where_asked(file: File, tmp_path: Path) -> None:
    path = file("all.jsonl", "".join(chat(f"w{n} v{n}", f"x{n} y{n}") for n in range(10)) + chat("w0 v0", "x0 y0"))
    arguments = ("clean", path, "--test", 3, "--validation", 2, "--out", tmp_path / "out")
    shown = as_json(*arguments)
    counts = {"train": 5, "validation": 2, "test": 3}
    assert {key: shown[key] for key in ("units", "kept", "dropped", "passes", "pairs")} == {
        "units": 11,
        "kept": 10,
        "dropped": 1,
        "passes": 1,
        "pairs": {"1": counts, "3": counts},
    }
    again = dialoscope(*arguments)
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "this folder is not empty. Give a new one, or --overwrite to replace it." in again.stderr
    two = as_json(*arguments, "--overwrite", "--context-turns", 2, "--context-turns", 5)
    assert list(two["pairs"]) == ["2", "5"]
    assert sorted(path.name for path in (tmp_path / "out").glob("pairs-*")) == ["pairs-2", "pairs-5"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("measure",), "Give one corpus with splits, or both --train and --test."),
        (("measure", "x", "--train", "y"), "Give one corpus with splits, or both --train and --test."),
        (("measure", "--within"), "--within compares one corpus with itself"),
        (("measure", "x", "--within", "--train-split", "y"), "--within compares one corpus with itself"),
        (("measure", "x", "--within", "--hypotheses", "y"), "--hypotheses needs a test set"),
        (("measure", "x.csv", "--column", "text"), "A column of texts has no splits: give --train and --test"),
        (("measure", "concierge", "--unit", "trun"), "Unknown unit 'trun'. Did you mean 'turn'?"),
        (
            ("measure", "concierge", "--metrics", "blue-2", "--hypotheses", "y"),
            "Unknown metric 'blue-2'. Did you mean 'bleu-2'?",
        ),
        (("measure", "x", "--metrics", "bleu-2"), "--metrics is for scoring a model's responses: give them with --hyp"),
        (("measure", "x", "--references", "y"), "--references is for scoring a model's responses: give them with --h"),
        (("show", "nowhere"), "nowhere/result.json: expected a file of a Dialoscope run, found none."),
        (("pairs", "concierge", "--out", "p.txt"), "Give a file that ends in .parquet or .csv, not p.txt."),
        (("filter", "concierge", "--unit", "turn", "--out", "x"), "Unknown unit 'turn'. Known: dialogue, sample."),
        (("filter", "concierge"), "Missing option '--out'."),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(arguments: tuple[str, ...], message: str) -> None:
    done = dialoscope(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"dialoscope: {message}")


@pytest.mark.parametrize("command", ["measure", "show", "pairs", "filter", "clean"])
def test_help_ends_with_commands_that_can_be_pasted(command: str) -> None:
    done = dialoscope(command, "--help")
    assert done.returncode == 0
    assert "Try: dialoscope overlap" in done.stdout
