"""`dialoscope metrics` as a user meets it: in a process of its own."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from dialoscope.metrics import METRICS, measure

File = Callable[[str, str | bytes], Path]

# Two of two words match, one of two, none of one; ten times over, so that there is something to draw from.
SAID = ["good morning", "no way", "what"] * 10
TARGETS = ["good morning", "no idea", "yes"] * 10
OTHER = ["good evening", "no idea", "yes"] * 10


def dialoscope(*arguments: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dialoscope", "metrics", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **(env or {})})


def as_json(*arguments: object, env: dict[str, str] | None = None) -> Any:
    done = dialoscope(*arguments, "--json", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def complaint(*arguments: object) -> str:
    """The one line on standard error of a command that ends with code 2 and prints nothing."""
    done = dialoscope(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    return done.stderr


def lines(texts: Sequence[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


def records(**columns: Sequence[Any]) -> str:
    return lines([json.dumps(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)])


@pytest.fixture
def said(file: File) -> Path:
    return file("said.txt", lines(SAID))


@pytest.fixture
def targets(file: File) -> Path:
    return file("targets.txt", lines(TARGETS))


@pytest.fixture
def other(file: File) -> Path:
    return file("other.txt", lines(OTHER))


def scores(*arguments: object, env: dict[str, str] | None = None) -> Any:
    """The scores of the measured system, by metric."""
    shown = as_json("measure", *arguments, env=env)["scores"]
    first = next(iter(shown)).split("/")[0]
    return {name.split("/")[2]: score for name, score in shown.items() if name.startswith(f"{first}/")}


def test_the_json_is_that_of_every_result(said: Path, targets: Path) -> None:
    shown = as_json("measure", said, targets, "--metrics", "bleu-2,distinct-2")
    assert (shown["schema_version"], shown["instrument"]) == (2, "metrics")
    assert list(shown["scores"]) == ["said.txt/all/bleu-2", "said.txt/all/distinct-2"]
    for one in shown["scores"].values():
        assert list(one) == ["value", "n", "interval", "reason"]
        assert [type(one[key]) for key in ("value", "n", "interval")] == [float, int, list]
    # Three of five words and one of two bigrams match; a response of one word has no bigram and is not counted.
    found = scores(said, targets, "--metrics", "bleu-2,distinct-2")
    assert found["bleu-2"]["value"] == pytest.approx(100 * math.sqrt(3 / 5 * 1 / 2))
    assert found["bleu-2"]["n"] == 30
    assert found["distinct-2"]["value"] == pytest.approx(2 / 20)
    assert found["distinct-2"]["n"] == 20


def test_command_and_python_give_the_same_result(said: Path, targets: Path, other: Path) -> None:
    options = ("--metrics", "bleu-1,length", "--resamples", 200, "--seed", 3)
    shown = as_json("measure", said, targets, "--against", f"b={other}", *options)
    python = measure(said, targets, against={"b": other}, metrics=["bleu-1", "length"], resamples=200, seed=3)
    assert shown == python.to_dict()


def test_unequal_counts_are_one_line_with_both_counts_and_code_2(said: Path, file: File) -> None:
    short = file("short.txt", lines(TARGETS[:7]))
    assert complaint("measure", said, short) == (
        f"dialoscope: {said} holds 30 responses and {short} holds 7: expected one reference for each hypothesis.\n"
    )


def test_another_system_is_compared_and_tested(said: Path, targets: Path, other: Path) -> None:
    arguments = (said, targets, "--against", f"theirs={other}", "--metrics", "bleu-1,length", "--resamples", 1000)
    shown = as_json("measure", *arguments)["scores"]
    assert shown["said.txt/all/bleu-1"]["value"] == pytest.approx(100 * 3 / 5)
    assert shown["theirs/all/bleu-1"]["value"] == pytest.approx(100 * 4 / 5)
    result = measure(said, targets, against={"theirs": other}, metrics=["bleu-1", "length"], resamples=1000)
    compared = result.comparisons["theirs"]
    assert compared["bleu-1"].difference.value == pytest.approx(-100 / 5)
    # All thirty differ by one matching word, ten for us and twenty for them: as lopsided as heads in thirty tosses.
    assert compared["bleu-1"].p_value == pytest.approx(2 * stats.binom.cdf(10, 30, 0.5), abs=0.04)
    assert compared["length"].p_value == 1
    people = dialoscope("measure", *arguments).stdout
    assert "p against" in people and f"{compared['bleu-1'].p_holm:.2g}" in people


def test_a_file_without_a_name_is_called_as_it_is(said: Path, targets: Path, other: Path) -> None:
    shown = as_json("measure", said, targets, "--against", other, "--metrics", "length")["scores"]
    assert list(shown) == ["said.txt/all/length", "other.txt/all/length"]
    assert "Two against" in complaint("measure", said, targets, "--against", other, "--against", other)


def test_jsonl_and_parquet_columns_are_read_and_named_in_the_origin(file: File, tmp_path: Path) -> None:
    ids = [place // 3 for place in range(30)]
    jsonl = file("said.jsonl", records(context=TARGETS, prediction=SAID, dialogue_id=ids))
    parquet = tmp_path / "targets.parquet"
    pq.write_table(pa.table({"reference": TARGETS, "response": OTHER, "dialogue_id": ids}), parquet)
    shown = as_json("measure", jsonl, parquet, "--metrics", "bleu-1")
    assert shown["scores"]["said.jsonl/all/bleu-1"]["value"] == pytest.approx(100 * 3 / 5)
    assert shown["origin"]["settings"]["columns"] == "prediction/reference/dialogue_id"
    assert "sacrebleu=" in shown["origin"]["settings"]["bleu-1"]
    assert shown["parts"] == {"all": 10}


def test_named_columns_win_over_known_names(file: File) -> None:
    path = file("both.jsonl", records(prediction=OTHER, mine=SAID, reference=OTHER, wanted=TARGETS))
    shown = as_json("measure", path, path, "--column", "mine", "--reference-column", "wanted", "--metrics", "bleu-1")
    assert shown["scores"]["both.jsonl/all/bleu-1"]["value"] == pytest.approx(100 * 3 / 5)
    assert shown["origin"]["settings"]["columns"] == "mine/wanted"


def test_the_seed_moves_the_interval_and_nothing_else(said: Path, targets: Path) -> None:
    arguments = (said, targets, "--metrics", "bleu-1", "--method", "percentile", "--resamples", 200)
    first, again, other = (as_json("measure", *arguments, "--seed", seed) for seed in (7, 7, 8))
    assert first == again
    one, another = (shown["scores"]["said.txt/all/bleu-1"] for shown in (first, other))
    assert one["value"] == another["value"]
    assert one["interval"] != another["interval"]
    assert (first["origin"]["seed"], other["origin"]["seed"]) == (7, 8)


def test_a_trailing_comma_and_blanks_between_names_do_no_harm(said: Path, targets: Path) -> None:
    assert list(scores(said, targets, "--metrics", "bleu-2, length,")) == ["bleu-2", "length"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--metrics", "blue-2"), "dialoscope: Unknown metric 'blue-2'. Did you mean 'bleu-2'?\n"),
        (("--metrics", ","), "dialoscope: metrics is empty: name at least one metric, or 'all'.\n"),
        (("--tokeniser", "13b"), "dialoscope: tokeniser is one of 13a, intl,"),
        (("--test", "bootstrapping"), "dialoscope: test is one of randomisation, bootstrap; found 'bootstrapping'.\n"),
        (("--method", "bcaa"), "dialoscope: method is one of jackknife, percentile, bca; found 'bcaa'.\n"),
    ],
)
def test_a_misspelt_choice_is_refused_before_anything_is_read(arguments: tuple[str, ...], message: str) -> None:
    assert complaint("measure", "none.txt", "none.txt", *arguments).startswith(message)


def test_two_files_are_needed() -> None:
    assert complaint("measure", "one.txt").startswith("dialoscope: Missing argument 'REFERENCES'")


def test_a_positive_log_likelihood_is_one_line_that_says_what_to_do(file: File, targets: Path) -> None:
    path = file("said.jsonl", records(response=SAID, log_likelihood=[3.5] * 30, tokens=[2] * 30))
    assert "If these are negative log-likelihoods (losses), change their sign." in complaint(
        "measure", path, targets, "--metrics", "perplexity"
    )


def test_a_missing_log_likelihood_is_skipped_and_counted(file: File, targets: Path) -> None:
    likelihoods = [None, *[-2 * math.log(4)] * 29]
    path = file("said.jsonl", records(response=SAID, log_likelihood=likelihoods, tokens=[2] * 30))
    shown = as_json("measure", path, targets, "--metrics", "perplexity")
    assert shown["scores"]["said.jsonl/all/perplexity"]["value"] == pytest.approx(4)
    assert shown["scores"]["said.jsonl/all/perplexity"]["n"] == 29
    assert shown["counts"]["skipped"] == {"perplexity: their log-likelihood or token count is missing": 1}


def test_people_see_the_unit_of_each_metric_and_the_next_command(said: Path, targets: Path, other: Path) -> None:
    done = dialoscope("measure", said, targets, "--metrics", "bleu-1,distinct-1,length")
    assert done.returncode == 0
    rows = {row.split()[1]: row.split() for row in done.stdout.splitlines() if row.startswith("│")}
    units = {name: rows[name][3] for name in ("bleu-1", "distinct-1", "length")}
    assert units == {"bleu-1": "percent", "distinct-1": "share", "length": "words"}
    last = done.stdout.splitlines()[-1]
    assert last == f"Next: dialoscope metrics measure {said} {targets} --against OTHER"


def test_a_folder_has_the_result_its_tables_and_a_page(said: Path, targets: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert dialoscope("measure", said, targets, "--metrics", "length", "--out", out).returncode == 0
    assert {"result.json", "report.html", "responses.parquet", "tables"} <= {file.name for file in out.iterdir()}
    assert "--overwrite" in complaint("measure", said, targets, "--out", out)


def test_the_list_says_what_each_metric_is() -> None:
    shown = as_json("list")["metrics"]
    assert {name: one["about"] for name, one in shown.items()} == {name: one.about for name, one in METRICS.items()}
    assert {name for name, one in shown.items() if one["group"] == "Papers"} >= {"bleu-2-probe", "sentence-bleu-4"}
    done = dialoscope("list")
    assert done.returncode == 0
    assert "bleu-2-probe-exchanged" in done.stdout
    assert "Papers" in done.stdout


@pytest.mark.parametrize(("has_punkt", "tokens"), [(True, "tok=nltk"), (False, "tok=nltk-without-punkt")])
def test_the_overlap_papers_bleu_says_when_nltk_has_no_sentence_model(
    said: Path, targets: Path, tmp_path: Path, has_punkt: bool, tokens: str
) -> None:
    model = tmp_path / "nltk_data" / "tokenizers" / "punkt_tab" / "english"
    model.mkdir(parents=True)
    for name in ("abbrev_types.txt", "collocations.tab", "ortho_context.tab", "sent_starters.txt"):
        (model / name).touch()
    arguments = (said, targets, "--metrics", "bleu-2-overlap", "--resamples", 100)
    if not has_punkt and _finds_punkt():
        pytest.skip("NLTK's sentence model is installed")
    env = {"NLTK_DATA": str(model.parents[2]) if has_punkt else str(tmp_path)}
    shown = as_json("measure", *arguments, env=env)
    assert tokens in shown["origin"]["settings"]["bleu-2-overlap"].split(",")
    assert ("does not find its sentence model" in dialoscope("measure", *arguments, env=env).stdout) == (not has_punkt)


def _finds_punkt() -> bool:
    from dialoscope.metrics.tokens import has_punkt

    return has_punkt()
