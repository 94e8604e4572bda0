"""The engage commands, in this process, for torch takes seconds to start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.engage.samples import ENDINGS, MIDDLES, OPENINGS
from tests.test_cli_model import as_json, refused, turnwise
from typer.testing import CliRunner

from turnwise.cli import app


def heard(text: str, *arguments: object) -> str:
    """What a command prints that reads this from standard input."""
    done = CliRunner().invoke(app, [*map(str, arguments)], input=text, catch_exceptions=False)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def test_every_turn_is_scored(model: Path, corpus: Path) -> None:
    found = as_json("engage", "score", model, corpus, "--limit", "3")
    assert found["model"].startswith("rdep-tiny@")
    first = found["dialogues"][0]["turns"]
    assert [one["turn"] for one in first] == list(range(1, len(first) + 1))
    assert all(0 <= one["score"] <= 1 for one in first)
    assert first[0]["score"] > first[-1]["score"]  # openings and endings are easily told apart


def test_messages_come_from_standard_input(model: Path) -> None:
    messages = [{"role": "user", "content": OPENINGS[0]}, {"role": "assistant", "content": ENDINGS[0]}]
    found = json.loads(heard(json.dumps({"messages": messages}) + "\n", "engage", "score", model, "-", "--json"))
    assert [one["speaker"] for one in found["dialogues"][0]["turns"]] == ["user", "assistant"]


def test_scores_go_to_parquet(model: Path, corpus: Path, tmp_path: Path) -> None:
    turnwise("engage", "score", model, corpus, "--out", tmp_path / "scores.parquet")
    table = pq.read_table(tmp_path / "scores.parquet")
    assert table.column_names == ["dialogue", "split", "turn", "speaker", "text", "score"]
    assert "this file exists" in refused("engage", "score", model, corpus, "--out", tmp_path / "scores.parquet")


def test_remaining_depth_is_measured_beside_baselines(model: Path, corpus: Path, tmp_path: Path) -> None:
    found = as_json("engage", "depth", f"mine={model}", "--corpus", corpus, "--out", tmp_path / "depth")
    assert list(found["baselines"]) == ["random", "average", "average_literal"]
    assert found["models"]["mine"]["spearman"]["value"] > 0.5
    assert (tmp_path / "depth" / "report.html").is_file()


def rated(path: Path) -> Path:
    """Ratings by two people: openings engage, endings do not."""
    lines = [
        {"context": [before], "response": text, "ann": stars, "bob": stars - k % 2}
        for stars, texts in ((5, OPENINGS), (2, ENDINGS))
        for k, before in enumerate(MIDDLES)
        for text in texts
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


def test_raters_are_held_against_people(model: Path, tmp_path: Path) -> None:
    found = as_json(
        "engage", "evaluate", f"mine={model}", "--human", rated(tmp_path / "people.jsonl"), "--out", tmp_path / "out"
    )
    one = next(iter(found["sets"].values()))
    assert {"n", "ceiling", "annotators", "models", "baselines"} <= one.keys()
    assert one["annotators"] == 2
    assert {"pearson", "spearman", "interval", "partial_given_length", "share_of_ceiling"} <= one["models"][
        "mine"
    ].keys()
    assert one["models"]["mine"]["spearman"] > 0.5
    assert (tmp_path / "out" / "items.parquet").is_file()


def test_what_was_selected_on_is_not_reported(corpus: Path, bert: Path, tmp_path: Path) -> None:
    people = rated(tmp_path / "people.jsonl")
    out = tmp_path / "chosen"
    as_json(
        "engage", "train", corpus, "--encoder", bert, "--steps", "2", "--batch-size", "16", "--select", "human",
        "--human", people, "--out", out,
    )  # fmt: skip
    found = next(iter(as_json("engage", "evaluate", out, "--human", people)["sets"].values()))
    whole = next(iter(as_json("engage", "evaluate", out, "--human", people, "--reproduce-paper")["sets"].values()))
    assert found["n"] == whole["n"] - whole["n"] // 2
    assert next(iter(whole["models"].values()))["mark"] == "selected on this set"


def test_settings_of_a_predictor_that_is_gone_on_with_are_refused(model: Path, corpus: Path, tmp_path: Path) -> None:
    given = ["engage", "train", corpus, "--from", model, "--history", "3", "--out", tmp_path / "no"]
    assert "--from goes on with a predictor as it is" in refused(*given)


def test_the_rated_turn_can_be_read_alone(model: Path, tmp_path: Path) -> None:
    people = rated(tmp_path / "people.jsonl")
    alone, whole = (
        next(iter(as_json("engage", "evaluate", f"mine={model}", "--human", people, *more)["sets"].values()))
        for more in (["--single-turn"], [])
    )
    assert alone["models"]["mine"]["signature"] != whole["models"]["mine"]["signature"]
    assert alone["models"]["mine"]["spearman"] > 0.8  # what was said before tells nothing here
    assert "untrained layer" in alone["baselines"]


def test_a_corpus_without_splits_is_dealt_as_in_training(bert: Path, corpus: Path, tmp_path: Path) -> None:
    from turnwise.corpus import Corpus, load, write

    whole = Corpus.of([one._replace(split="all") for one in load(corpus)])
    write(whole, tmp_path / "all.parquet", to="parquet")
    as_json(
        "engage",
        "train",
        tmp_path / "all.parquet",
        "--frozen",
        "--encoder",
        bert,
        "--out",
        tmp_path / "m",
        "--seed",
        "4",
    )
    found = as_json("engage", "depth", tmp_path / "m", "--corpus", tmp_path / "all.parquet")
    assert found["dialogues"] == len(whole) // 20
    held_out = as_json(
        "engage", "train", tmp_path / "all.parquet", "--frozen", "--encoder", bert, "--out", tmp_path / "m2"
    )
    assert held_out["history"] == 0


def test_messages_are_ranked_as_they_are_scored(model: Path, tmp_path: Path) -> None:
    """Two messages of one role are one turn, instructions are none, and content may come in parts."""
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "i see,"},
        {"role": "user", "content": [{"type": "text", "text": "tell me more"}]},
    ]
    lines = [
        {"messages": messages, "candidates": [ENDINGS[0]]},
        {"context": ["i see, tell me more"], "candidates": [ENDINGS[0]]},
    ]
    (tmp_path / "asked.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    first, second = as_json("engage", "rank", model, tmp_path / "asked.jsonl")["ranked"]
    assert first[0]["score"] == pytest.approx(second[0]["score"], abs=1e-6)


def test_words_of_users_neither_mark_up_nor_steer_the_terminal(model: Path, tmp_path: Path) -> None:
    asked = {"context": ["[/foo] [bold]x"], "candidates": ["\x1b[31mred \x1b]0;title\x07"]}
    (tmp_path / "asked.jsonl").write_text(json.dumps(asked) + "\n")
    shown = turnwise("engage", "rank", model, tmp_path / "asked.jsonl")
    assert "[/foo] [bold]x" in shown
    assert "\x1b" not in shown and "\x07" not in shown


def test_candidates_are_ranked(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "asked.jsonl"
    file.write_text(json.dumps({"context": [MIDDLES[0]], "candidates": [ENDINGS[0], OPENINGS[0]]}) + "\n")
    found = as_json("engage", "rank", model, file)["ranked"][0]
    assert [one["candidate"] for one in found] == [OPENINGS[0], ENDINGS[0]]


@pytest.mark.parametrize(
    "line",
    ["{", '{"context": []}', '{"context": ["a"], "candidates": []}', "[1]", '{"context": [1], "candidates": ["a"]}'],
)
def test_bad_questions_are_one_line(model: Path, tmp_path: Path, line: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(line + "\n")
    assert "Line 1: expected" in refused("engage", "rank", model, file)


def test_a_conversation_is_watched_line_by_line(model: Path) -> None:
    said = f"A: {OPENINGS[0]}\nB: {MIDDLES[0]}\nB: {MIDDLES[1]}\n\nA: {ENDINGS[0]}\n"
    found = [json.loads(line) for line in heard(said, "engage", "watch", model, "--json").splitlines()]
    assert [one["turn"] for one in found] == [1, 2, 2, 3]
    assert found[0]["score"] > found[-1]["score"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--frozen", "--steps", "5", "--recipe", "paper"], "leave out --recipe, --steps"),
        (["--cache", "vectors"], "--cache keeps the vectors of a frozen encoder"),
        (["--recipe", "papers"], "Did you mean 'paper'"),
        (["--pooling", "mena"], "Did you mean 'mean'"),
        (["--select", "human"], "give --human"),
        (["--scores", "eval"], "LABEL=LOWEST:HIGHEST"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    corpus: Path, bert: Path, tmp_path: Path, arguments: list[Any], message: str
) -> None:
    given = ["engage", "train", corpus, "--encoder", bert, *arguments, "--out", tmp_path / "no"]
    assert message in refused(*given)


def test_a_folder_that_is_no_predictor_is_refused(corpus: Path, tmp_path: Path) -> None:
    assert "written by turnwise engage train" in refused("engage", "score", tmp_path, corpus)
