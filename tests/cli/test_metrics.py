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

from dialoscope.metrics import DEFAULT_METRICS, METRICS

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


def test_the_json_is_that_of_the_promise(said: Path, targets: Path) -> None:
    shown = as_json(said, targets, "--metrics", "bleu-2,distinct-2")
    assert list(shown) == ["metrics"]
    assert list(shown["metrics"]) == ["bleu-2", "distinct-2"]
    for one in shown["metrics"].values():
        assert list(one) == ["value", "n", "interval", "signature"]
        assert [type(one[key]) for key in one] == [float, int, list, str]
    # Three of five words and one of two bigrams match; a response of one word has no bigram and is not counted.
    assert shown["metrics"]["bleu-2"]["value"] == pytest.approx(100 * math.sqrt(3 / 5 * 1 / 2))
    assert shown["metrics"]["bleu-2"]["n"] == 30
    assert shown["metrics"]["distinct-2"]["value"] == pytest.approx(2 / 20)
    assert shown["metrics"]["distinct-2"]["n"] == 20


def test_unequal_counts_are_one_line_with_both_counts_and_code_2(said: Path, file: File) -> None:
    short = file("short.txt", lines(TARGETS[:7]))
    assert complaint(said, short) == (
        f"dialoscope: {said} holds 30 responses and {short} holds 7: expected one reference for each hypothesis.\n"
    )


def test_another_system_is_scored_compared_and_tested(said: Path, targets: Path, other: Path) -> None:
    shown = as_json(said, targets, "--compare", other, "--metrics", "bleu-1,length", "--resamples", 1000)
    assert list(shown) == ["metrics", "comparisons"]
    compared = shown["comparisons"]["bleu-1"]
    assert shown["metrics"]["bleu-1"]["value"] == pytest.approx(100 * 3 / 5)
    assert compared["other"]["value"] == pytest.approx(100 * 4 / 5)
    assert compared["difference"]["value"] == pytest.approx(-100 / 5)
    assert compared["test"] == "randomisation"
    # All thirty differ by one matching word, ten for us and twenty for them: as lopsided as heads in thirty tosses.
    assert compared["p_value"] == pytest.approx(2 * stats.binom.cdf(10, 30, 0.5), abs=0.04)
    assert shown["comparisons"]["length"]["p_value"] == 1
    assert compared["p_holm"] == pytest.approx(2 * compared["p_value"])


def test_the_bootstrap_test_works_with_the_default_metrics(said: Path, targets: Path, other: Path) -> None:
    shown = as_json(said, targets, "--compare", other, "--test", "bootstrap", "--resamples", 200)
    tests = {name: one["test"] for name, one in shown["comparisons"].items()}
    assert tests == {name: "randomisation" if name.startswith("distinct") else "bootstrap" for name in DEFAULT_METRICS}
    assert shown["notes"] == ["distinct-1, distinct-2: cannot be bootstrapped, so compared by randomisation."]


def test_jsonl_and_parquet_columns_are_read_and_signed(file: File, tmp_path: Path) -> None:
    ids = [place // 3 for place in range(30)]
    jsonl = file("said.jsonl", records(context=TARGETS, prediction=SAID, dialogue_id=ids))
    parquet = tmp_path / "targets.parquet"
    pq.write_table(pa.table({"reference": TARGETS, "response": OTHER, "dialogue_id": ids}), parquet)
    shown = as_json(jsonl, parquet, "--metrics", "bleu-1")["metrics"]["bleu-1"]
    assert shown["value"] == pytest.approx(100 * 3 / 5)
    assert "|columns:prediction/reference/dialogue_id|" in shown["signature"]
    assert "|dialogues:10" in shown["signature"]


def test_named_columns_win_over_known_names(file: File) -> None:
    path = file("both.jsonl", records(prediction=OTHER, mine=SAID, reference=OTHER, wanted=TARGETS))
    shown = as_json(path, path, "--column", "mine", "--reference-column", "wanted", "--metrics", "bleu-1")
    assert shown["metrics"]["bleu-1"]["value"] == pytest.approx(100 * 3 / 5)
    assert "|columns:mine/wanted|" in shown["metrics"]["bleu-1"]["signature"]


def test_the_seed_moves_the_interval_and_nothing_else(said: Path, targets: Path) -> None:
    arguments = (said, targets, "--metrics", "bleu-1", "--interval", "percentile", "--resamples", 200)
    first, again, other = (as_json(*arguments, "--seed", seed)["metrics"]["bleu-1"] for seed in (7, 7, 8))
    assert first == again
    assert first["value"] == other["value"]
    assert first["interval"] != other["interval"]
    assert "|seed:7|" in first["signature"]
    assert "|seed:8|" in other["signature"]


def test_a_trailing_comma_and_blanks_between_names_do_no_harm(said: Path, targets: Path) -> None:
    assert list(as_json(said, targets, "--metrics", "bleu-2, length,")["metrics"]) == ["bleu-2", "length"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--metrics", "blue-2"), "dialoscope: Unknown metric 'blue-2'. Did you mean 'bleu-2'?\n"),
        (("--metrics", ","), "dialoscope: No metric is named. Known: bleu-1, bleu-2,"),
        (("--tokeniser", "13b"), "dialoscope: Unknown tokeniser '13b'. Did you mean '13a'?\n"),
        (("--test", "bootstrapping"), "dialoscope: Unknown test 'bootstrapping'. Did you mean 'bootstrap'?\n"),
        (("--interval", "bcaa"), "dialoscope: Unknown interval 'bcaa'. Did you mean 'bca'?\n"),
    ],
)
def test_a_misspelt_choice_is_refused_before_anything_is_read(arguments: tuple[str, ...], message: str) -> None:
    assert complaint("none.txt", "none.txt", *arguments).startswith(message)


def test_two_files_are_needed() -> None:
    assert complaint("one.txt").startswith("dialoscope: metrics needs two files, HYPOTHESES and REFERENCES.")


def test_a_positive_log_likelihood_is_one_line_that_says_what_to_do(file: File, targets: Path) -> None:
    path = file("said.jsonl", records(response=SAID, log_likelihood=[3.5] * 30, tokens=[2] * 30))
    assert "If these are negative log-likelihoods (losses), change their sign." in complaint(
        path, targets, "--metrics", "perplexity"
    )


def test_a_missing_log_likelihood_is_skipped_and_counted(file: File, targets: Path) -> None:
    likelihoods = [None, *[-2 * math.log(4)] * 29]
    path = file("said.jsonl", records(response=SAID, log_likelihood=likelihoods, tokens=[2] * 30))
    shown = as_json(path, targets, "--metrics", "perplexity")
    assert shown["metrics"]["perplexity"]["value"] == pytest.approx(4)
    assert shown["metrics"]["perplexity"]["n"] == 29
    assert shown["notes"][0].startswith("perplexity (said.jsonl/targets.txt): 1 of 30 pairs skipped: ")


def test_people_see_the_unit_of_each_metric(said: Path, targets: Path) -> None:
    done = dialoscope(said, targets, "--metrics", "bleu-1,distinct-1,length")
    assert done.returncode == 0
    rows = {row.split()[1]: row.split() for row in done.stdout.splitlines() if row.startswith("│")}
    units = {name: rows[name][3] for name in ("bleu-1", "distinct-1", "length")}
    assert units == {"bleu-1": "percent", "distinct-1": "share", "length": "words"}


def test_the_list_says_what_each_metric_is() -> None:
    shown = as_json("--list")["metrics"]
    assert shown == {name: {"unit": one.unit, "about": one.about} for name, one in METRICS.items()}
    done = dialoscope("--list")
    assert done.returncode == 0
    assert "bleu-2-probe-exchanged" in done.stdout


@pytest.mark.parametrize(("has_punkt", "tokens"), [(True, "tok:nltk"), (False, "tok:nltk-without-punkt")])
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
    shown = as_json(*arguments, env={"NLTK_DATA": str(model.parents[2]) if has_punkt else str(tmp_path)})
    assert f"|{tokens}|" in shown["metrics"]["bleu-2-overlap"]["signature"]
    assert ("notes" in shown) == (not has_punkt)


def _finds_punkt() -> bool:
    from dialoscope.metrics.tokens import has_punkt

    return has_punkt()
