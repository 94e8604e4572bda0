"""The distract commands, in this process, for torch takes seconds to start."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dialoscope.cli import app
from dialoscope.distract import NINE
from dialoscope.errors import DialoscopeError

SMALL = ("--preset", "static-ui", "--set", "layers=1 width=16 embedding=16 vocabulary=200", "--context-turns", "2")
CHEAP = (*SMALL, "--set", "learning_rate=0.5", "--batch-size", "32", "--device", "cpu")


def dialoscope(*arguments: object) -> str:
    """What a command prints."""
    done = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def as_json(*arguments: object) -> Any:
    """What a command gives to machines."""
    return json.loads(dialoscope(*arguments, "--json"))


def refused(*arguments: object) -> str:
    """Why a command does nothing: `main` prints this line."""
    with pytest.raises(DialoscopeError) as caught:
        dialoscope(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from dialoscope.corpus import generate, write

    path = tmp_path_factory.mktemp("corpus") / "small.parquet"
    write(generate(dialogues=40, seed=1), path, to="parquet")
    return path


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    dialoscope("train", corpus, *CHEAP, "--epochs", "1", "--out", out, "--quiet")
    return out


def measured(*arguments: object) -> Any:
    return as_json("distract", "measure", *arguments, "--device", "cpu", "--limit", "2", "--context-turns", "4")


def contexts_of(corpus: Path) -> int:
    """Every turn of the two measured dialogues but the first has a context."""
    from dialoscope.corpus import load

    return sum(len(dialogue.turns) - 1 for dialogue in load(corpus).split("test")[:2])


def test_models_are_measured_on_all_nine_sets(run: Path, corpus: Path, tmp_path: Path) -> None:
    models = ("--model", f"old={run / 'untrained'}", "--model", f"new={run}")
    shown = measured(corpus, *models, "--out", tmp_path / "looked")
    found, contexts = shown["scores"], contexts_of(corpus)
    assert shown["instrument"] == "attention"
    old, new = (found[f"{model}/original/perplexity"]["value"] for model in ("old", "new"))
    assert old == pytest.approx(200, rel=0.1) and 1 < new < old  # an untrained model guesses among 200 words
    # Every context but the first of each dialogue has History, and the random sets leave some without a distraction.
    assert shown["counts"]["contexts"] == dict.fromkeys(("original", *NINE), contexts)
    for model in ("old", "new"):
        assert found[f"{model}/original/history_percent"]["n"] == contexts - 2
        for name in NINE:
            values = {key.split("/")[2]: score for key, score in found.items() if key.startswith(f"{model}/{name}/")}
            used = values["das_ratio"]["n"]
            assert (used == contexts - 2) == (name not in ("random-0.5", "random-0.7"))
            ratio = values["distraction_percent"]["value"] / values["history_percent"]["value"]
            assert values["das_ratio_of_means"]["value"] == pytest.approx(ratio)
            assert values["das_ratio"]["interval"] is None  # of two dialogues there is none
    assert {verdict["level"] for verdict in shown["verdicts"]} == {"cannot_tell"}
    kept = json.loads((tmp_path / "looked" / "result.json").read_text())
    assert {key: kept[key] for key in shown} == shown
    page = (tmp_path / "looked" / "report.html").read_text()
    assert "Compared with old" in page
    assert not (tmp_path / ".looked.work").exists()


def test_an_interrupted_run_resumes_with_the_same_folder(
    run: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dialoscope.model.seq2seq import Seq2SeqModel

    given = ("distract", "influence", corpus, "--model", run, "--sets", "rare-end", "--limit", "2", "--device", "cpu")
    whole = as_json(*given)
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["dialoscope.distract.influence"], "documented", interrupt)
        stopped = CliRunner().invoke(app, [*map(str, given), "--out", str(tmp_path / "mine")])
    assert stopped.exit_code == 130
    assert [path.name for path in tmp_path.iterdir()] == [".mine.work"]
    monkeypatch.setattr(Seq2SeqModel, "log_likelihood", interrupt)  # nothing is left to be asked
    assert as_json(*given, "--out", tmp_path / "mine") == whole
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def interrupt(*arguments: object) -> None:
    """What Ctrl-C does."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("question", ["measure", "influence", "behave"])
def test_command_and_python_say_the_same(question: str, run: Path, corpus: Path) -> None:
    import dialoscope.distract
    from dialoscope.corpus import load

    ask = getattr(dialoscope.distract, question)
    options = {"sets": ("random-1.0", "rare-end"), "limit": 2, "device": "cpu"}
    python = ask(load(corpus), models={"mine": str(run)}, **options).to_dict()
    given = ("--model", f"mine={run}", "--sets", "random-1.0,rare-end", "--limit", "2", "--device", "cpu")
    shown = as_json("distract", question, corpus, *given)
    assert {key: shown[key] for key in python if key != "origin"} == {
        key: python[key] for key in python if key != "origin"
    }
    assert shown["scores"]


def test_written_sets_give_the_same_numbers(run: Path, corpus: Path, tmp_path: Path) -> None:
    names = ("--sets", "random-0.7,rare-end")
    taken = ("--limit", "2", "--context-turns", "4", "--seed", "3")
    dialoscope("distract", "sets", corpus, "--out", tmp_path / "sets", *names, *taken)
    mine = as_json("distract", "measure", "--model", run, "--sets-dir", tmp_path / "sets", "--device", "cpu")
    made = measured(corpus, "--model", run, *names, "--seed", "3")
    for key in ("scores", "counts", "parts", "used", "verdicts"):
        assert mine[key] == made[key]
    assert mine["origin"]["settings"]["contexts"] == made["origin"]["settings"]["contexts"]
    few = as_json(
        "distract", "measure", "--model", run, "--sets-dir", tmp_path / "sets", "--sets", "rare-end", "--device", "cpu"
    )
    assert few["scores"] == {key: score for key, score in mine["scores"].items() if "/random-0.7/" not in key}


def test_people_see_a_finding_a_table_and_the_next_command(run: Path, corpus: Path) -> None:
    given = ("distract", "measure", corpus, "--model", run, "--limit", "2", "--sets", "given-end", "--device", "cpu")
    said = ("--sentences", "my cat is blue, too", "--sentences", "so is mine")
    shown = dialoscope(*given, *said, "--context-turns", "5")
    assert shown.startswith("Cannot tell: On given-end, run gives unrelated turns")
    assert '"so is mine"' in shown or '"my cat is blue, too"' in shown  # a comma divides no sentence
    assert "History % (original)" in shown
    again = "--limit 2 --sets given-end --sentences 'my cat is blue, too' --sentences 'so is mine' --context-turns 5"
    assert shown.splitlines()[-1] == f"Next: dialoscope distract influence {corpus} --model {run} {again}"


def test_models_are_measured_on_as_much_context_as_they_were_trained_with(run: Path, corpus: Path) -> None:
    given = (
        "distract",
        "measure",
        corpus,
        "--model",
        run,
        "--limit",
        "2",
        "--sets",
        "rare-end",
        "--device",
        "cpu",
    )
    found = as_json(*given)
    assert found["settings"]["context_turns"] == 2  # of SMALL
    assert found == as_json(*given, "--context-turns", "2")
    other = as_json(*given, "--context-turns", "4")
    assert other["settings"]["context_turns"] == 4
    assert other["scores"] != found["scores"]


def test_models_trained_with_different_contexts_need_to_be_told_which(run: Path, corpus: Path, tmp_path: Path) -> None:
    more = Path(shutil.copytree(run / "best", tmp_path / "more"))
    described = json.loads((more / "model.json").read_text())
    described["origin"]["context_turns"] = None
    (more / "model.json").write_text(json.dumps(described))
    models = ("--model", f"few={run}", "--model", f"more={more}")
    given = ("distract", "measure", corpus, *models, "--limit", "1", "--device", "cpu")
    said = "The models were trained with different turns of context (few 2, more all): give --context-turns."
    assert refused(*given) == said
    as_json(*given, "--context-turns", "3", "--sets", "rare-end")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "RUN"], "Give one corpus"),
        (["CORPUS"], "--model NAME=PATH"),
        (["CORPUS", "--model", "RUN", "--sets-dir", "x"], "not both"),
        (["CORPUS", "--model", "RUN", "--sets", "loud"], "random-0.7"),
        (["CORPUS", "--model", "RUN", "--sets", "given-end"], "--sentences"),
        (["CORPUS", "--model", "RUN", "--normalisation", "none"], "per_token"),
        (["CORPUS", "--model", "RUN", "--model", "RUN"], "Two models"),
        (["--model", "RUN", "--sets-dir", "nowhere"], "distract sets"),
        (["CORPUS", "--model", "RUN", "--layer", "3"], "1 layers"),
        (["CORPUS", "--model", "nowhere/at/all"], "nowhere"),
        (["CORPUS", "--model", "RUN", "--split", "dev"], "no validation split"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(arguments: list[str], words: str, run: Path, tmp_path: Path) -> None:
    from dialoscope.corpus import generate, write

    corpus = tmp_path / "chats.jsonl"
    write(generate(dialogues=4, seed=1).split("train"), corpus)
    names = {"RUN": run, "CORPUS": corpus}
    said = refused("distract", "measure", *(names.get(word, word) for word in arguments), "--device", "cpu")
    assert words in said


def test_written_sets_are_not_made_again(run: Path, corpus: Path, tmp_path: Path) -> None:
    dialoscope("distract", "sets", corpus, "--out", tmp_path / "sets", "--sets", "rare-end", "--limit", "1")
    given = ("distract", "influence", "--sets-dir", tmp_path / "sets", "--model", run)
    assert "leave out limit" in refused(*given, "--limit", "1")
    assert "no 'rare-begin'" in refused(*given, "--sets", "rare-begin")
    assert "--out" in refused("distract", "sets", corpus)


def test_a_model_without_attention_says_so(corpus: Path, tmp_path: Path) -> None:
    small = ("--set", "layers=1 width=8 embedding=8 vocabulary=50", "--batch-size", "64", "--epochs", "1")
    out = tmp_path / "run"
    dialoscope("train", corpus, "--preset", "lstm", *small, "--device", "cpu", "--out", out, "--limit", "3", "--quiet")
    given = (corpus, "--model", out, "--limit", "1", "--device", "cpu", "--sets", "rare-end")
    assert "no attention" in refused("distract", "measure", *given)
    behaves = as_json("distract", "behave", *given)["scores"]["run/rare-end/change_with_das_ratio"]
    assert (behaves["value"], behaves["reason"]) == (None, "the model gives no attention weights")


def test_a_full_folder_is_refused_before_the_work(run: Path, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    said = refused("distract", "measure", corpus, "--model", run, "--out", tmp_path)
    assert "--overwrite" in said


@pytest.mark.parametrize("name", ["measure", "influence", "behave", "sets"])
def test_help_names_every_setting_and_loads_no_models(name: str) -> None:
    shown = dialoscope("distract", name, "--help")
    for option in ("--sets", "--sentences", "--split", "--train-split", "--limit", "--seed", "--context-turns"):
        assert option in shown
    assert "Try: dialoscope distract" in " ".join(shown.split())
