"""`dialoscope overlap` as a user meets it: in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dialoscope import overlap
from dialoscope.corpus import load
from dialoscope.errors import UsageError
from dialoscope.instruments import load_result
from dialoscope.study.page import joined_page
from dialoscope.study.results import read_results

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


def values(shown: Any, part: str = "test") -> dict[str, float]:
    """The scores of one part by the last part of their path."""
    scores = {tuple(name.split("/")): score["value"] for name, score in shown["scores"].items()}
    return {number: value for (subject, where, number), value in scores.items() if (subject, where) == ("ratio", part)}


def test_the_json_of_measure_is_that_of_python(both: tuple[Any, ...]) -> None:
    shown = as_json("measure", *both)
    python = overlap.measure(load(train=both[1], test=both[3])).to_dict()
    assert shown == json.loads(json.dumps(python))
    assert list(shown) == [
        "schema_version", "instrument", "origin", "settings", "parts", "used", "counts", "scores", "verdicts",
    ]  # fmt: skip
    assert (shown["schema_version"], shown["instrument"], shown["parts"]) == (2, "overlap", {"train": 2, "test": 2})
    assert values(shown) == {
        "share_over_0.5": 1.0,
        "share_over_0.6": 1.0,
        "share_over_0.75": 0.5,
        "share_over_0.8": 0.5,
        "share_over_0.9": 0.5,
        "share_over_0.99": 0.5,
        "identical_share": 0.5,
        "mean_ratio": 0.875,
    }
    score = shown["scores"]["ratio/test/identical_share"]
    assert score == {
        "value": 0.5, "n": 2, "interval": None, "reason": "an interval needs at least 3 dialogues, found 2",
    }  # fmt: skip


def test_people_see_the_finding_an_example_the_table_and_the_next_command(both: tuple[Any, ...]) -> None:
    printed = dialoscope("measure", *both, "--leak", 0.7).stdout
    assert printed.startswith("Cannot tell: 100.0% of the test samples nearly repeat a training sample.")
    assert "Measured: test, 2 dialogues. Compared with: train, 2 dialogues." in printed
    assert '"over there now quick"\n  repeats\n"over there now please"' in printed
    assert "over 0.7" in printed
    following = f"filter --train {both[1]} --test {both[3]} --threshold 0.7 --out filtered/"
    assert printed.endswith(f"Next: dialoscope overlap {following}\n")


def test_a_result_is_saved_and_shown_again_at_another_threshold(both: tuple[object, ...], tmp_path: Path) -> None:
    measured = as_json("measure", *both, "--out", tmp_path / "run")
    shown = as_json("show", tmp_path / "run", "--leak", 0.7)
    assert values(shown)["share_over_0.7"] == 1.0
    assert shown["origin"]["corpus"] == measured["origin"]["corpus"]
    own, other = (dialoscope("show", tmp_path / "run", *more).stdout for more in ((), ("--leak", 0.7)))
    assert ("e1#2" in own, "│ e2#2" in own, "│ e2#2" in other) == (True, False, True)
    assert own.endswith(f"Next: dialoscope report {tmp_path / 'run'}\n")


def test_single_prompts_are_not_measurable(file: File, both: tuple[object, ...]) -> None:
    prompts = ("--train", both[1], "--test", file("prompts.jsonl", chat("how are you") + chat("where to")))
    shown = as_json("measure", *prompts)
    assert set(values(shown).values()) == {None}
    assert [verdict["level"] for verdict in shown["verdicts"]] == ["not_measurable"]
    printed = dialoscope("measure", *prompts).stdout
    assert printed.startswith("Not measurable: No measured dialogue has a response; --unit turn compares every turn.")
    assert "0.00" not in printed
    assert "Skipped: 2 x a dialogue without a response" in printed
    assert printed.endswith("--unit turn\n")
    assert values(as_json("measure", *prompts, "--unit", "turn"))["identical_share"] == 1


def test_units_of_one_corpus_are_compared_with_the_rest(file: File) -> None:
    path = file("all.jsonl", TRAIN + TEST)
    dialogues, turns = (as_json("measure", path, *more) for more in ((), ("--unit", "turn")))
    (part,) = dialogues["parts"]  # pytest's folder is named after this test, and so is the split
    assert (dialogues["origin"]["settings"]["unit"], dialogues["parts"]) == ("dialogue", {part: 4})
    # {how are you fine thanks and} twice; {where to over there now please/quick}: 2·5/12.
    assert values(dialogues, part)["mean_ratio"] == pytest.approx((1 + 1 + 10 / 12 + 10 / 12) / 4)
    assert (turns["counts"]["units"][part], values(turns, part)["identical_share"]) == (8, 6 / 8)
    following = f"Next: dialoscope overlap clean {path} --test-size 1 --validation-size 1 --out cleaned/"
    assert following in dialoscope("measure", path).stdout


def test_benchmarks_are_measured_in_place_of_the_test_split(file: File, both: tuple[object, ...]) -> None:
    first, second = file("first.jsonl", TEST), file("second.jsonl", chat("who", "me"))
    shown = as_json("measure", both[1], "--against", first, "--against", f"own={second}")
    assert list(shown["parts"]) == ["train", "first.jsonl", "own"]
    assert [values(shown, part)["identical_share"] for part in ("first.jsonl", "own")] == [0.5, 0.0]


def test_a_model_is_scored_on_the_whole_the_clean_and_the_leaked_part(
    both: tuple[object, ...], file: File, tmp_path: Path
) -> None:
    said = file("said.txt", "Fine , thanks and you !\nno idea\n")
    arguments = ("--hypotheses", said, "--metrics", "bleu-1,length", "--out", tmp_path / "run")
    shown = as_json("measure", *both, *arguments)
    scores = {name.removeprefix("responses/"): score for name, score in shown["scores"].items() if "resp" in name}
    assert (scores["clean/bleu-1"]["value"], scores["leaked/bleu-1"]["value"]) == (0, pytest.approx(100))
    lengths = {part: scores[f"{part}/length"]["value"] for part in ("test", "clean", "leaked")}
    assert lengths == {"test": 4, "clean": 2, "leaked": 6}
    assert json.loads((tmp_path / "run" / "result.json").read_text())["scores"] == shown["scores"]
    again = as_json("show", tmp_path / "run", "--leak", 0.7)
    assert again["scores"]["responses/clean/bleu-1"]["reason"] == "no sample is at or under 0.7"


def test_leaked_items_are_filtered_and_nothing_is_lost(both: tuple[object, ...], tmp_path: Path) -> None:
    shown = as_json("filter", *both, "--threshold", 0.8, "--out", tmp_path / "out")
    counts = {key: shown["counts"][key] for key in ("measured", "reference", "kept", "dropped")}
    assert counts == {"measured": 2, "reference": 2, "kept": 1, "dropped": 1}
    assert (shown["instrument"], shown["origin"]["settings"]["unit"]) == ("overlap-filter", "sample")
    kept, dropped, ledger = (
        [json.loads(line) for line in (tmp_path / "out" / name).read_text().splitlines()]
        for name in ("kept.jsonl", "dropped.jsonl", "ledger.jsonl")
    )
    assert ([row["id"] for row in kept], [row["id"] for row in dropped]) == (["e2"], ["e1"])
    assert ledger == [{"unit": "sample", "id": "e1#2", "reason": "over the threshold", "partner": "t1#2", "ratio": 1.0}]
    printed = dialoscope("filter", *both, "--out", tmp_path / "again").stdout
    assert printed.startswith("1 of 2 samples kept, 1 dropped for an overlap over 0.8.\n")
    assert printed.endswith(f"Next: head {tmp_path / 'again' / 'ledger.jsonl'}\n")


@pytest.mark.parametrize(("command", "sizes"), [("filter", ""), ("clean", "--test-size 0 --validation-size 0")])
def test_made_data_is_not_taken_for_a_result(
    command: str, sizes: str, both: tuple[object, ...], tmp_path: Path
) -> None:
    made = tmp_path / "made"
    assert dialoscope(command, *both, *sizes.split(), "--out", made).returncode == 0
    told = f"{made} holds data made by 'overlap {command}', not a result."
    readers: list[Callable[[], object]] = [
        lambda: load_result(made), lambda: joined_page([made], "Page"), lambda: read_results([made]),
    ]  # fmt: skip
    for read in readers:
        with pytest.raises(UsageError) as caught:
            read()
        assert str(caught.value).startswith(told)


def test_a_column_of_texts_is_compared_across_formats(file: File, tmp_path: Path) -> None:
    train, more = file("a.csv", "text,n\na b c d,1\n"), file("b.jsonl", '{"text": "x y"}\n')
    test = file("c.jsonl", '{"text": "a b c e", "n": 1}\n{"text": "x y", "n": 2}\n')
    column = ("--column", "text")
    shown = as_json("measure", "--train", train, "--train", more, "--test", test, *column)
    assert shown["counts"]["units"] == {"test": 2, "reference": 2}
    assert (values(shown)["mean_ratio"], values(shown)["identical_share"]) == (0.875, 0.5)
    assert as_json("pairs", test, "--against", train, *column, "--threshold", 0.75)["counts"]["pairs"] == 1
    filtered = as_json("filter", "--train", more, "--test", test, *column, "--out", tmp_path / "out")
    assert (filtered["counts"]["kept"], filtered["counts"]["dropped"]) == (1, 1)
    assert pq.read_table(tmp_path / "out" / "kept.parquet").to_pylist() == [{"text": "a b c e", "n": 1}]
    assert pq.read_table(tmp_path / "out" / "dropped.parquet").to_pylist() == [{"text": "x y", "n": 2}]
    ledger = json.loads((tmp_path / "out" / "ledger.jsonl").read_text())
    assert (ledger["id"], ledger["partner"]) == (f"{test}#2", f"{more}#1")


def test_the_json_of_pairs_counts_them(both: tuple[object, ...], tmp_path: Path) -> None:
    shown = as_json("pairs", both[1], "--against", both[3], "--unit", "sample", "--out", tmp_path / "p.csv")
    assert shown["counts"] == {"skipped": {}, "pairs": 2, "units": 2, "other_units": 2}
    assert (tmp_path / "p.csv").read_text() == '"first","second","ratio"\n"t1#2","e1#2",1\n"t2#2","e2#2",0.75\n'


def test_pairs_replace_a_file_only_where_asked(both: tuple[object, ...], tmp_path: Path) -> None:
    arguments = ("pairs", both[1], "--unit", "turn", "--out", tmp_path / "p.csv")
    (tmp_path / "p.csv").write_text("mine")
    again = dialoscope(*arguments)
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "this file exists. Give a new name, or --overwrite to replace it." in again.stderr
    assert (tmp_path / "p.csv").read_text() == "mine"
    assert as_json(*arguments, "--overwrite")["counts"]["pairs"] == 0


def splits_of(*rows: tuple[str, str]) -> str:
    """A dialogue `how are you – WORDS` in each of these splits."""
    lines = [{"id": split, "split": split, "dialog": ["how are you", words]} for split, words in rows]
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_splits_are_named_by_options(file: File) -> None:
    path = file("chats.jsonl", splits_of(("train", "fine"), ("validation", "well"), ("test", "fine")))
    usual, other = (as_json("measure", path, *more) for more in ((), ("--split", "dev", "--train-split", "test")))
    assert (values(usual)["identical_share"], list(usual["parts"])) == (1, ["train", "test"])
    assert (values(other, "validation")["identical_share"], list(other["parts"])) == (0, ["test", "validation"])


def test_sides_with_several_splits_are_train_and_test(file: File) -> None:
    path = file("chats.jsonl", splits_of(("train", "fine"), ("validation", "well"), ("test", "good")))
    shown = as_json("measure", "--train", path, "--test", path)
    assert (shown["parts"], values(shown)["identical_share"]) == ({"train": 1, "test": 1}, 0)


def test_what_is_skipped_and_what_is_not_read_is_counted(file: File, tmp_path: Path) -> None:
    file("in/train.jsonl", TRAIN + '{"messages": 3}\n')
    file("in/test.jsonl", TEST)
    file("in/LICENSE", "free")
    for command, out in (("measure", "m"), ("filter", "f"), ("clean", "c"), ("pairs", "p.csv")):
        sizes = ("--test-size", 1, "--validation-size", 1) if command == "clean" else ()
        arguments = (command, tmp_path / "in", "--on-error", "skip", *sizes, "--out")
        skipped = as_json(*arguments, tmp_path / out)["counts"]["skipped"]
        assert list(skipped.values()) == [1, 1], command
        assert "a file was not read: not a data file" in skipped
        if command != "pairs":
            assert json.loads((tmp_path / out / "result.json").read_text())["counts"]["skipped"] == skipped
        printed = dialoscope(*arguments, tmp_path / f"again-{out}").stdout
        assert "Skipped: 1 x expected" in printed, command
        assert "Skipped: 1 x a file was not read: not a data file" in printed


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
    assert as_json("pairs", path, "--column", "text")["counts"]["pairs"] == 22 * 21 // 2
    printed = dialoscope("pairs", path, "--column", "text").stdout
    assert "231 pairs (first 20, highest ratio first)" in " ".join(printed.split())
    ratios = [line.split("│")[-2].strip() for line in printed.splitlines() if line.rstrip().endswith("│")]
    assert [ratio for ratio in ratios if ratio] == ["1.00", *["0.75"] * 19]
    following = f"Next: dialoscope overlap clean {path} --column text --threshold 0.75 --out cleaned/"
    assert printed.endswith(f"{following}\n")


def test_clean_writes_a_folder_and_replaces_it_only_where_asked(file: File, tmp_path: Path) -> None:
    path = file("all.jsonl", "".join(chat(f"w{n} v{n}", f"x{n} y{n}") for n in range(10)) + chat("w0 v0", "x0 y0"))
    arguments = ("clean", path, "--test-size", 3, "--validation-size", 2, "--out", tmp_path / "out")
    shown = as_json(*arguments)
    sizes = {"train": 5, "validation": 2, "test": 3}
    assert (shown["parts"], shown["counts"]["samples"]) == (sizes, {"1": sizes, "3": sizes})
    assert {key: shown["counts"][key] for key in ("dialogues", "kept", "dropped", "passes")} == {
        "dialogues": 11,
        "kept": 10,
        "dropped": 1,
        "passes": 1,
    }
    again = dialoscope(*arguments)
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "this folder is not empty. Give a new one, or --overwrite to replace it." in again.stderr
    two = as_json(*arguments, "--overwrite", "--context-turns", "2,5")
    assert list(two["counts"]["samples"]) == ["2", "5"]
    assert sorted(path.name for path in (tmp_path / "out").glob("pairs-*")) == ["pairs-2", "pairs-5"]
    printed = dialoscope(*arguments, "--overwrite").stdout
    assert printed.startswith("10 of 11 dialogues kept after 1 pass.\n")
    assert printed.endswith(f"Next: dialoscope overlap measure {tmp_path / 'out' / 'corpus'} --unit dialogue\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("measure",), "Give one corpus, or both --train and --test."),
        (("measure", "x", "--train", "y"), "Give one corpus, or both --train and --test."),
        (("measure", "concierge", "--unit", "trun"), "unit is one of dialogue, turn, sample; found 'trun'."),
        (("measure", "concierge", "--limit", "1.5"), "limit takes a whole number, found 1.5."),
        (("measure", "concierge", "--leak", "2"), "leak takes a number from 0 to 1, found 2.0."),
        (("measure", "concierge", "--split", "dev2"), "concierge has no dev2 split. Found: train, validation, test."),
        (
            ("measure", "concierge", "--metrics", "blue-2", "--hypotheses", "y"),
            "Unknown metric 'blue-2'. Did you mean 'bleu-2'?",
        ),
        (("measure", "x", "--metrics", "bleu-2"), "metrics is for scoring a model's responses: give them with hyp"),
        (("measure", "x.csv", "--column", "text", "--format", "csv"), "column reads plain tables, which need no form"),
        (("show",), "Missing argument 'RUN'."),
        (("show", "nowhere"), "nowhere/result.json: expected a file of a Dialoscope run, found none."),
        (("pairs", "concierge", "--out", "p.txt"), "Give a file that ends in .parquet or .csv, not p.txt."),
        (("pairs", "concierge", "--unit", "sample", "--distinct"), "Distinct pairs are of whole texts"),
        (("pairs", "concierge", "--threshold", "0"), "threshold takes a number above 0 and of 1 or less, found 0.0."),
        (("filter", "concierge", "--unit", "turn", "--out", "x"), "unit is one of dialogue, sample; found 'turn'."),
        (("filter", "concierge"), "Give a folder for the data with --out."),
        (("clean", "concierge"), "Give a folder for the data with --out."),
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
