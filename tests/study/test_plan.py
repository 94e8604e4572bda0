from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialoscope.errors import UsageError
from dialoscope.study.plan import plan_of, read_plan

CORPUS = {"corpora": {"chats": "concierge"}}
WITH_MODEL = {**CORPUS, "models": {"ours": "runs/ours"}}


def asked(table: dict[str, Any]) -> list[str]:
    return [task.question for task in plan_of(table).tasks if task.question != "corpus"]


@pytest.mark.parametrize(
    ("table", "questions"),
    [
        ({**CORPUS, "overlap": {}}, ["overlap"]),
        ({**WITH_MODEL, "probe": {}}, ["probe"]),
        ({**WITH_MODEL, "questions": ["overlap", "attention"]}, ["overlap", "attention"]),
        ({**WITH_MODEL, "questions": "overlap"}, ["overlap"]),
        ({**WITH_MODEL, "questions": ["attention"], "attention": {"limit": 5}}, ["attention"]),
    ],
)
def test_questions_are_those_named_or_those_with_a_table(table: dict[str, Any], questions: list[str]) -> None:
    assert asked(table) == questions


def test_a_question_may_be_asked_twice_under_names_of_its_own() -> None:
    plan = plan_of({**WITH_MODEL, "probe": [{"limit": 7, "name": "few"}, {}]})
    assert [(task.asked, task.settings.to_dict()["limit"]) for task in plan.tasks[1:]] == [
        ("few", 7),
        ("probe-2", None),
    ]


def test_names_are_taken_out_before_the_settings_are_made() -> None:
    table = {"corpora": {"a": "x", "b": "y", "bench": "z"}, "models": {"m": "p", "n": "q"}}
    plan = plan_of(
        {**table, "overlap": {"against": "bench", "leak": 0.7}, "attention": {"corpora": ["a"], "models": ["n"]}}
    )
    found = {(task.asked, task.corpus): (task.models, task.against) for task in plan.tasks if task.asked != "corpus"}
    assert found == {
        ("overlap", "a"): ((), ("bench",)), ("overlap", "b"): ((), ("bench",)), ("attention", "a"): (("n",), ()),
    }  # fmt: skip


def test_the_studys_seed_and_device_fill_what_a_table_leaves_out() -> None:
    tables = {"attention": [{}, {"seed": 1, "device": "cpu"}], "overlap": {}}
    plan = plan_of({**WITH_MODEL, "seed": 5, "device": "cuda:1", **tables})
    settings = [task.settings.to_dict() for task in plan.tasks[1:]]
    assert [(each["seed"], each.get("device")) for each in settings] == [(5, None), (5, "cuda:1"), (1, "cpu")]
    trained = plan_of({**CORPUS, "seed": 5, "models": {"a": {"preset": "lstm"}}, "attention": {}}).models["a"].training
    assert trained is not None
    assert trained.seed == 5


def test_paths_are_found_beside_the_toml_and_names_stay_names(file: Callable[[str, str], Path], tmp_path: Path) -> None:
    file("here/chats.jsonl", "")
    file("here/said.txt", "")
    file("here/test/x", "")  # a folder called as a split is
    file("here/ours/x", "")
    overlap = '[overlap]\nhypotheses = "said.txt"\nsplit = "test"\ncorpora = "mine"\n'
    text = '[corpora]\nmine = "chats.jsonl"\nbuilt = "concierge"\n[corpora.two]\ntrain = "chats.jsonl"\ntest = "test"\n'
    plan = read_plan(file("here/study.toml", text + '[models]\nours = "ours"\nhub = "org/ours"\n' + overlap))
    here = tmp_path / "here"
    assert plan.tasks[-1].settings.to_dict()["hypotheses"] == str(here / "said.txt")
    assert plan.tasks[-1].settings.to_dict()["split"] == "test"
    assert plan.corpora["mine"].path == (str(here / "chats.jsonl"),)
    assert plan.corpora["built"].path == ("concierge",)
    assert (plan.corpora["two"].train, plan.corpora["two"].test) == (
        (str(here / "chats.jsonl"),),
        (str(here / "test"),),
    )
    assert (plan.models["ours"].path, plan.models["hub"].path) == (str(here / "ours"), "org/ours")


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({}, "Give the study at least one corpus"),
        ({**CORPUS, "prob": {}}, "Unknown part of a study 'prob'. Did you mean 'probe'?"),
        ({**CORPUS, "questions": ["overlop"]}, "Unknown question 'overlop'. Did you mean 'overlap'?"),
        ({**CORPUS, "overlap": {"laek": 1}}, "Unknown option in [overlap] 'laek'. Did you mean 'leak'?"),
        ({**CORPUS, "overlap": {"leak": "much"}}, "[overlap] leak takes a number, found 'much'."),
        ({**CORPUS, "overlap": {"context_turns": True}}, "[overlap] context_turns takes a whole number"),
        ({**CORPUS, "overlap": {"leak": 1.8}}, "[overlap] leak takes a number from 0 to 1, found 1.8."),
        ({**CORPUS, "overlap": {"unit": "word"}}, "[overlap] unit is one of dialogue, turn, sample; found 'word'."),
        ({**CORPUS, "overlap": {"corpora": ["chat"]}}, "Unknown corpus in [overlap] 'chat'. Did you mean 'chats'?"),
        ({**CORPUS, "overlap": {"against": ["chat"]}}, "Unknown corpus in [overlap] 'chat'. Did you mean 'chats'?"),
        ({**CORPUS, "probe": {}}, "[probe] asks models, and the study names none: put some under [models]."),
        ({**CORPUS, "models": {"a": {}}}, "[models.a] takes a path, or a preset that is trained for this study"),
        ({**CORPUS, "models": {"a": {"path": 5}}}, "[models.a] path takes text, found 5."),
        ({**CORPUS, "models": {"a": {"preset": "lstm", "corpus": "x"}}}, "Unknown corpus in [models.a] 'x'"),
        ({"corpora": {"a": {"format": "messages"}}}, "[corpora.a] takes a path, or train and test; one of both."),
        ({"corpora": "chats"}, "[corpora]: expected names and paths, found 'chats'."),
        ({"corpora": {"": "x"}}, "[corpora]: expected a name for 'x', found none."),
        ({"corpora": {" ": {"path": "x"}}}, "[corpora]: expected a name for {'path': 'x'}, found none."),
        ({**CORPUS, "models": {"": "runs/ours"}}, "[models]: expected a name for 'runs/ours', found none."),
        ({**CORPUS, "seed": "7"}, "seed takes a whole number of 0 or more, found '7'."),
        ({**CORPUS, "seed": -1}, "seed takes a whole number of 0 or more, found -1."),
        ({**CORPUS, "title": 5}, "title takes text, found 5."),
        ({**WITH_MODEL, "probe": [{"name": "a"}, {"name": "a"}]}, "Two questions are called 'a'"),
        ({**CORPUS, "models": {"a": {"preset": "static-iu"}}}, "[models.a] preset is one of "),
        (
            {**CORPUS, "models": {"a": {"preset": "static-ui", "set": {"epoch": 3}}}},
            "[models.a] Unknown setting 'epoch'. Did you mean 'epochs'?",
        ),
        ({**CORPUS, "models": {"a": {"preset": "static-ui", "set": {"layers": 0}}}}, "[models.a] layers is 0"),
        ({"corpora": {"a": {"path": "x", "format": "mesages"}}}, "[corpora.a] format is one of "),
        ({**CORPUS, "questions": 5}, "questions: expected names, found 5."),
        ({**CORPUS, "questions": [5]}, "Unknown question '5'"),
        ({**CORPUS, "overlap": {"corpora": 5}}, "corpora in [overlap]: expected names, found 5."),
        ({**WITH_MODEL, "probe": {"models": 5}}, "models in [probe]: expected names, found 5."),
        (
            {**WITH_MODEL, "questions": ["overlap"], "probe": {}},
            "[probe] is not among the questions: name it there, or leave out its table.",
        ),
        (
            {**CORPUS, "models": {"a": {"path": "x", "insert": 0.7}}},
            "[models.a] insert is for a preset that is trained for this study, not for a path.",
        ),
        ({**CORPUS, "overlap": {"limit": -5}}, "[overlap] limit takes a whole number of 1 or more, found -5."),
        ({**CORPUS, "overlap": 5}, "[overlap]: expected a table, found 5."),
        *(
            ({**CORPUS, "models": {"a": {"preset": "lstm", name: -5}}}, f"[models.a] {name} takes ")
            for name in ("limit", "seed", "epochs", "batch_size")
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_table(table: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_of(table)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"), [("a = ", "expected the TOML of a study"), ('corpora = "x"', "expected names and paths")]
)
def test_a_bad_file_is_named(file: Callable[[str, str], Path], text: str, told: str) -> None:
    path = file("study.toml", text)
    with pytest.raises(UsageError, match=r"study\.toml: ") as caught:
        read_plan(path)
    assert told in str(caught.value)


def test_a_plan_is_kept_whole_with_paths_as_they_were_given(file: Callable[[str, str], Path]) -> None:
    text = '[corpora]\na = "chats/"\n[models.b]\npreset = "static-ui"\ninsert = 0.5\n[[probe]]\nlimit = 7\n'
    path = file("study.toml", text)
    kept = json.loads(json.dumps(read_plan(path).to_dict()))
    assert (kept["corpora"]["a"]["path"], kept["root"], kept["device"]) == (["chats/"], str(path.parent), "auto")
    assert (kept["models"]["b"]["insert"], kept["models"]["b"]["corpus"]) == (0.5, "a")
    _, task = kept["tasks"]
    assert (task["asked"], task["models"], task["corpus"], task["settings"]["limit"]) == ("probe", ["b"], "a", 7)


def test_a_missing_file_says_how_to_begin(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Try: dialoscope study init"):
        read_plan(tmp_path / "none.toml")
    with pytest.raises(UsageError, match=r"expected the TOML of a study, found: Is a directory\.$"):
        read_plan(tmp_path)


def test_questions_about_files_take_their_files_from_their_table(
    file: Callable[[str, str], Path], tmp_path: Path
) -> None:
    said = file("said.jsonl", "")
    text = '[corpora]\na = "x"\n[metrics]\nhypotheses = "said.jsonl"\nreferences = "refs.jsonl"\nmetrics = ["bleu-2"]\n'
    plan = read_plan(file("study.toml", text + '[ratings]\nrated = ["one", "two"]\n'))
    files = {task.name: task.files for task in plan.tasks[1:]}
    assert files == {
        "ratings": {"rated": ("one", "two")},
        "metrics": {"hypotheses": (str(said),), "references": ("refs.jsonl",)},
    }
    with pytest.raises(UsageError, match=r"\[metrics\] asks about files: give references\."):
        plan_of({**CORPUS, "metrics": {"hypotheses": "x"}})
    for metrics, told in [
        ({"hypotheses": ["a/x", "b/x"], "references": "r"}, "hypotheses: 2 files are called 'x'"),
        ({"hypotheses": "x", "references": ["r", "s"]}, "references takes one file, found 2"),
    ]:
        with pytest.raises(UsageError, match=rf"\[metrics\] {told}"):
            plan_of({**CORPUS, "metrics": metrics})


def test_written_sets_stand_in_place_of_a_corpus() -> None:
    models = {"models": {"m": "runs/ours"}}
    for question in ("influence", "behave"):
        (_, task) = plan_of({**CORPUS, **models, question: {"sets_dir": "sets"}}).tasks
        assert (task.name, task.corpus) == (question, "")
        with pytest.raises(UsageError, match="measures the sets of sets_dir, and no corpus: leave out corpora"):
            plan_of({**CORPUS, **models, question: {"sets_dir": "sets", "corpora": [*CORPUS["corpora"]]}})


def test_baselines_are_models_of_ratings_alone() -> None:
    models = {"models": {"words": "word_count", "m": "runs/ours"}}
    plan = plan_of({**CORPUS, **models, "attention": {}, "depth": {}, "ratings": {"rated": "x"}})
    assert {task.question: task.models for task in plan.tasks[1:]} == {
        "attention": ("m",), "depth": (), "ratings": ("words",),
    }  # fmt: skip
    plan = plan_of({**CORPUS, "ratings": {"rated": "x", "models": ["position"]}})
    assert plan.models["position"].path == "position"
    with pytest.raises(UsageError, match="Unknown model"):
        plan_of({**CORPUS, **models, "depth": {"models": ["position"]}})


def test_predictors_are_asked_by_the_questions_of_engage_and_models_by_the_others(tmp_path: Path) -> None:
    (tmp_path / "p" / "best").mkdir(parents=True)
    (tmp_path / "p" / "best" / "engage.json").write_text("{}")
    models = {"p": str(tmp_path / "p"), "m": "runs/ours"}
    plan = plan_of({**CORPUS, "models": models, "depth": {}, "attention": {}})
    assert {task.question: task.models for task in plan.tasks[1:]} == {"attention": ("m",), "depth": ("p",)}
