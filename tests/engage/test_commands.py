"""The engage commands, in this process, for torch takes seconds to start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.engage.samples import ENDINGS, MIDDLES, OPENINGS
from tests.test_cli_model import as_json, dialoscope, refused
from typer.testing import CliRunner

from dialoscope.cli import app


def heard(text: str, *arguments: object) -> str:
    """What a command prints that reads this from standard input."""
    done = CliRunner().invoke(app, [*map(str, arguments)], input=text, catch_exceptions=False)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def test_every_turn_is_scored(model: Path, corpus: Path) -> None:
    found = as_json("engage", "score", corpus, "--model", model, "--limit", "3")
    assert found["model"].startswith("rdep-tiny@")
    first = found["dialogues"][0]["turns"]
    assert [one["turn"] for one in first] == list(range(1, len(first) + 1))
    assert all(0 <= one["score"] <= 1 for one in first)
    assert first[0]["score"] > first[-1]["score"]  # openings and endings are easily told apart


def test_messages_come_from_standard_input(model: Path) -> None:
    messages = [{"role": "user", "content": OPENINGS[0]}, {"role": "assistant", "content": ENDINGS[0]}]
    found = json.loads(
        heard(json.dumps({"messages": messages}) + "\n", "engage", "score", "-", "--model", model, "--json")
    )
    assert [one["speaker"] for one in found["dialogues"][0]["turns"]] == ["user", "assistant"]


def test_scores_go_to_parquet(model: Path, corpus: Path, tmp_path: Path) -> None:
    dialoscope("engage", "score", corpus, "--model", model, "--out", tmp_path / "scores.parquet")
    table = pq.read_table(tmp_path / "scores.parquet")
    assert table.column_names == ["dialogue", "split", "turn", "speaker", "text", "score"]
    assert "this file exists" in refused(
        "engage", "score", corpus, "--model", model, "--out", tmp_path / "scores.parquet"
    )


def test_remaining_depth_is_measured_beside_baselines(model: Path, corpus: Path, tmp_path: Path) -> None:
    found = as_json("engage", "depth", corpus, "--model", f"mine={model}", "--out", tmp_path / "depth")
    subjects = dict.fromkeys(name.partition("/")[0] for name in found["scores"])
    assert list(subjects) == ["mine", "untrained layer", "random", "average", "average_literal", "lookup"]
    assert found["scores"]["mine/test/spearman"]["value"] > 0.5
    assert (found["instrument"], found["parts"]) == ("depth", {"train": 40, "test": 10})
    (verdict,) = found["verdicts"]
    assert verdict["against"] == "average/test/mse"
    assert "counting turns" in verdict["text"]
    assert (tmp_path / "depth" / "report.html").is_file()


def test_what_a_predictor_learnt_from_is_not_measured(model: Path, corpus: Path) -> None:
    said = refused("engage", "depth", corpus, "--model", f"mine={model}", "--split", "train")
    assert said == "'mine' learnt from the very dialogues that it would predict: give another --split."


def test_test_dialogues_that_stand_in_training_are_told(model: Path, tmp_path: Path) -> None:
    from dialoscope.corpus import Corpus, Dialogue, Turn, write

    splits = {"train": ["a b/c", "d/e/f", "g/h"], "test": ["D ./ e /f", "a b/h", "i/j/k"]}
    made = [
        Dialogue(tuple(Turn("AB"[place % 2], turn) for place, turn in enumerate(text.split("/"))), f"{split}{n}", split)
        for split, some in splits.items()
        for n, text in enumerate(some)
    ]
    write(Corpus.of(made), tmp_path / "talks.parquet", to="parquet")
    given = ["engage", "depth", tmp_path / "talks.parquet", "--model", model, "--out", tmp_path / "out", "--json"]
    done = CliRunner().invoke(app, [*map(str, given)], catch_exceptions=False)
    assert json.loads(done.stdout)["counts"]["shared_with_training"] == 1
    line = "1 of 3 measured dialogues is in the training split as well, word for word"
    assert line in (tmp_path / "out" / "report.html").read_text()


def test_a_model_called_as_the_control_is_refused(model: Path, corpus: Path) -> None:
    said = refused("engage", "depth", corpus, "--model", f"untrained layer={model}")
    assert said == "'untrained layer' is the name of the control. Give your model another name, such as mine=PATH."


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
        "engage", "ratings", rated(tmp_path / "people.jsonl"), "--model", f"mine={model}", "--out", tmp_path / "out"
    )
    scores = found["scores"]
    numbers = {name.rpartition("/")[2] for name in scores if name.startswith("mine/people/")}
    assert numbers == {"pearson", "spearman", "kendall", "partial_given_length", "share_of_ceiling"}
    assert scores["mine/people/spearman"]["value"] > 0.5
    assert scores["annotators/people/spearman"]["n"] == found["parts"]["people"] == 24
    assert (found["instrument"], len(found["verdicts"])) == ("ratings", 1)
    assert (tmp_path / "out" / "rated.parquet").is_file()


def test_what_was_selected_on_is_not_reported(corpus: Path, bert: Path, tmp_path: Path) -> None:
    people = rated(tmp_path / "people.jsonl")
    out = tmp_path / "chosen"
    as_json(
        "engage", "train", corpus, "--encoder", bert, "--steps", "2", "--batch-turns", "16", "--select", "human",
        "--human", people, "--out", out,
    )  # fmt: skip
    half = as_json("engage", "ratings", people, "--model", out)
    whole = as_json("engage", "ratings", people, "--model", out, "--reproduce-paper")
    assert half["parts"]["people"] == whole["parts"]["people"] - whole["parts"]["people"] // 2
    assert list(half["counts"]["skipped"]) == ["used for the selection of chosen"]
    alone = tmp_path / "alone.jsonl"
    alone.write_text(
        "".join(json.dumps({**one, "context": []}) + "\n" for one in map(json.loads, people.read_text().splitlines()))
    )
    assert "used for the selection" in refused("engage", "ratings", alone, "--model", out)  # six replies, all seen
    shown = dialoscope("engage", "ratings", people, "--model", out, "--reproduce-paper")
    assert "chosen: selected on this set." in shown


def test_settings_of_a_predictor_that_is_gone_on_with_are_refused(model: Path, corpus: Path, tmp_path: Path) -> None:
    given = ["engage", "train", corpus, "--start", model, "--history", "3", "--out", tmp_path / "no"]
    assert "start goes on with a predictor as it is: leave out --history." in refused(*given)


def test_the_rated_turn_can_be_read_alone(model: Path, tmp_path: Path) -> None:
    people = rated(tmp_path / "people.jsonl")
    alone, whole = (
        as_json("engage", "ratings", people, "--model", f"mine={model}", *more)["scores"]
        for more in (["--single-turn"], [])
    )
    assert alone["mine/people/pearson"]["value"] != whole["mine/people/pearson"]["value"]
    assert alone["mine/people/spearman"]["value"] > 0.8  # what was said before tells nothing here
    assert "untrained layer/people/spearman" in alone


@pytest.fixture(scope="module")
def unsplit(corpus: Path, bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with talks without splits, and predictors that learnt from them with seeds 4 and 5."""
    from dialoscope.corpus import Corpus, load, write

    folder = tmp_path_factory.mktemp("unsplit")
    talks = [one._replace(split="all", turns=(one.turns[0]._replace(text=f"{one.id} hi"), *one.turns[1:]))
             for one in load(corpus)]  # fmt: skip
    write(Corpus.of(talks), folder / "talks.parquet", to="parquet")
    for seed in (4, 5):
        as_json(
            "engage", "train", folder / "talks.parquet", "--frozen", "--encoder", bert, "--seed", seed,
            "--out", folder / f"seed{seed}",
        )  # fmt: skip
    return folder


def measured(folder: Path, *models: object) -> list[Any]:
    named = [word for model in models for word in ("--model", model)]
    return ["engage", "depth", folder / "talks.parquet", *named]


@pytest.mark.parametrize("seed", [4, 5])
def test_a_corpus_without_splits_is_split_as_in_training(unsplit: Path, tmp_path: Path, seed: int) -> None:
    from dialoscope.corpus import load
    from dialoscope.corpus.split import split_evenly

    found = as_json(*measured(unsplit, unsplit / f"seed{seed}"), "--seed", seed, "--out", tmp_path / "depth")
    assert "split 80/10/10 with seed" in found["used"]
    ids = set(pq.read_table(tmp_path / "depth" / "turns.parquet")["dialogue"].to_pylist())
    parts = split_evenly(load(unsplit / "talks.parquet"), seed=seed)
    learnt = {dialogue.id for name in ("train", "validation") for dialogue in parts.split(name)}
    assert len(ids) == 6  # one in ten of 60
    assert ids.isdisjoint(learnt)
    assert ids == {dialogue.id for dialogue in parts.split("test")}


def test_a_predictor_of_another_seed_is_not_measured(unsplit: Path) -> None:
    said = refused(*measured(unsplit, f"a={unsplit / 'seed4'}", f"b={unsplit / 'seed5'}"), "--seed", "4")
    assert said == "'b' learnt from 'talks' as seed 5 splits it, not seed 4: give --seed 5."


def test_other_lengths_than_those_of_training_are_refused(unsplit: Path) -> None:
    said = refused(*measured(unsplit, f"a={unsplit / 'seed4'}"), "--seed", "4", "--most-turns", "5")
    assert "'a' learnt from other dialogues of 'talks'" in said and "--most-turns" in said


def test_a_limit_of_training_leaves_the_measured_dialogues_as_they_are(
    unsplit: Path, bert: Path, tmp_path: Path
) -> None:
    given = [
        "engage",
        "train",
        unsplit / "talks.parquet",
        "--frozen",
        "--encoder",
        bert,
        "--seed",
        "4",
        "--limit",
        "20",
    ]
    as_json(*given, "--out", tmp_path / "short")
    found = as_json(*measured(unsplit, f"a={unsplit / 'seed4'}", f"b={tmp_path / 'short'}"), "--seed", "4")
    assert found["parts"] == {"train": 48, "test": 6}
    few = as_json(*measured(unsplit, f"a={unsplit / 'seed4'}"), "--seed", "4", "--limit", "4")
    assert few["parts"] == {"train": 48, "test": 4}


def test_who_learnt_elsewhere_puts_no_condition(unsplit: Path, bert: Path, tmp_path: Path) -> None:
    from dialoscope.corpus import load, write

    write(load(unsplit / "talks.parquet"), tmp_path / "others.parquet", to="parquet")
    out = tmp_path / "elsewhere"
    as_json("engage", "train", tmp_path / "others.parquet", "--frozen", "--encoder", bert, "--seed", "9", "--out", out)
    found = as_json(*measured(unsplit, f"a={unsplit / 'seed4'}", f"b={out}"), "--seed", "4")
    assert found["parts"]["test"] == 6
    assert as_json(*measured(unsplit, f"b={out}"), "--limit", "2")["parts"]["test"] == 2


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
    first, second = as_json("engage", "rank", tmp_path / "asked.jsonl", "--model", model)["ranked"]
    assert first[0]["score"] == pytest.approx(second[0]["score"], abs=1e-6)


@pytest.mark.parametrize("prompts", [[], ["system"], ["developer"], ["System", "developer"]], ids=str)
def test_the_same_chat_has_the_same_score_wherever_it_is_read(model: Path, tmp_path: Path, prompts: list[str]) -> None:
    """The prompt is no turn: neither for `score` nor for `rank`."""
    talk = [(role, "be kind, tell me more") for role in prompts] + [("user", OPENINGS[0]), ("assistant", MIDDLES[0])]
    talk += [("tool", "near the river"), ("assistant", MIDDLES[1]), ("user", MIDDLES[2])]
    messages = [{"role": role, "content": text} for role, text in talk]
    answered = json.dumps({"messages": [*messages, {"role": "assistant", "content": ENDINGS[0]}]}) + "\n"
    turns = json.loads(heard(answered, "engage", "score", "-", "--model", model, "--json"))["dialogues"][0]["turns"]
    assert [one["speaker"] for one in turns] == ["user", "assistant", "user", "assistant"]
    for length in (len(prompts) + 1, len(messages)):
        said = messages[:length]
        last = messages[length] if length < len(messages) else {"role": "assistant", "content": ENDINGS[0]}
        scored = json.loads(
            heard(json.dumps({"messages": [*said, last]}) + "\n", "engage", "score", "-", "--model", model, "--json")
        )
        (tmp_path / "asked.jsonl").write_text(json.dumps({"messages": said, "candidates": [last["content"]]}) + "\n")
        ranked = as_json("engage", "rank", tmp_path / "asked.jsonl", "--model", model)["ranked"][0][0]
        assert ranked["score"] == pytest.approx(scored["dialogues"][0]["turns"][-1]["score"], abs=1e-6)


def test_words_of_users_neither_mark_up_nor_steer_the_terminal(model: Path, tmp_path: Path) -> None:
    asked = {"context": ["[/foo] [bold]x"], "candidates": ["\x1b[31mred \x1b]0;title\x07"]}
    (tmp_path / "asked.jsonl").write_text(json.dumps(asked) + "\n")
    shown = dialoscope("engage", "rank", tmp_path / "asked.jsonl", "--model", model)
    assert "[/foo] [bold]x" in shown
    assert "\x1b" not in shown and "\x07" not in shown


def test_candidates_are_ranked(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "asked.jsonl"
    file.write_text(json.dumps({"context": [MIDDLES[0]], "candidates": [ENDINGS[0], OPENINGS[0]]}) + "\n")
    found = as_json("engage", "rank", file, "--model", model)["ranked"][0]
    assert [one["candidate"] for one in found] == [OPENINGS[0], ENDINGS[0]]


@pytest.mark.parametrize(
    "line",
    ["{", '{"context": []}', '{"context": ["a"], "candidates": []}', "[1]", '{"context": [1], "candidates": ["a"]}'],
)
def test_bad_questions_are_one_line(model: Path, tmp_path: Path, line: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(line + "\n")
    assert "Line 1: expected" in refused("engage", "rank", file, "--model", model)


def test_half_a_character_does_not_end_a_conversation(model: Path) -> None:
    done = CliRunner().invoke(
        app, ["engage", "watch", "--model", str(model), "--json"], input=b"hi\n\xff\xfe well\nbye\n"
    )
    assert [json.loads(line)["turn"] for line in done.stdout.splitlines()] == [1, 2, 3]


def test_a_context_of_one_text_is_refused(model: Path, tmp_path: Path) -> None:
    (tmp_path / "asked.jsonl").write_text(json.dumps({"context": "hi there", "candidates": ["bye"]}) + "\n")
    assert 'expected {"context": ["…"]' in refused("engage", "rank", tmp_path / "asked.jsonl", "--model", model)


def test_a_layer_that_learnt_nothing_is_told(bert: Path, tmp_path: Path) -> None:
    from dialoscope.corpus import Corpus, Dialogue, Turn, write

    same = [
        Dialogue(tuple(Turn("AB"[place % 2], "yes") for place in range(4)), f"d{number}", split)
        for split, count in (("train", 30), ("validation", 6))
        for number in range(count)
    ]
    write(Corpus.of(same), tmp_path / "same.parquet", to="parquet")
    given = ["engage", "train", tmp_path / "same.parquet", "--frozen", "--encoder", bert, "--out", tmp_path / "m"]
    done = CliRunner().invoke(app, [*map(str, given)], catch_exceptions=False)
    assert "Hardly better than one score for all turns" in done.stderr
    assert "left_out" in done.stdout


def test_a_conversation_is_watched_line_by_line(model: Path) -> None:
    said = f"A: {OPENINGS[0]}\nB: {MIDDLES[0]}\nB: {MIDDLES[1]}\n\nA: {ENDINGS[0]}\n"
    found = [json.loads(line) for line in heard(said, "engage", "watch", "--model", model, "--json").splitlines()]
    assert [(one["turn"], one["speaker"]) for one in found] == [(1, "A"), (2, "B"), (2, "B"), (3, "A")]
    assert tuple(one["text"] for one in found[1:3]) == tuple(MIDDLES[:2])
    assert found[0]["score"] > found[-1]["score"]


def test_instructions_are_watched_and_not_scored(model: Path) -> None:
    said = f"system: be kind\nuser: {OPENINGS[0]}\ntool: near\nassistant: {MIDDLES[0]}\n"
    found = [json.loads(line) for line in heard(said, "engage", "watch", "--model", model, "--json").splitlines()]
    assert [(one["turn"], one["speaker"]) for one in found] == [
        (None, "system"), (1, "user"), (None, "tool"), (2, "assistant"),
    ]  # fmt: skip
    assert [one["score"] is None for one in found] == [True, False, True, False]
    assert found[2]["reason"] == "an instruction is no turn"
    shown = heard(said, "engage", "watch", "--model", model).splitlines()
    assert [" not scored: an instruction is no turn" in line for line in shown[:4]] == [True, False, True, False]
    assert shown[4:] == [f"Next: dialoscope engage score chats.jsonl --model {model}"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--frozen", "--steps", "5", "--recipe", "paper"], "leave out --recipe, --steps"),
        (["--frozen", "--select", "human"], "leave out --select"),
        (["--frozen", "--reproduce-paper"], "leave out --reproduce-paper"),
        (["--reproduce-paper"], "give --select human, or leave it out"),
        (["--work", "vectors"], "work keeps the vectors of a frozen encoder"),
        (["--frozen", "--resume"], "leave out --resume"),
        (["--recipe", "papers"], "recipe is one of default, paper; found 'papers'"),
        (["--pooling", "mena"], "pooling is one of mean, cls, max, min; found 'mena'"),
        (["--least-turns", "5", "--most-turns", "4"], "least_turns is at most most_turns"),
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
    assert "written by dialoscope engage train" in refused("engage", "score", corpus, "--model", tmp_path)
