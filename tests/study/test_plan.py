from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialoscope.cli.study import example
from dialoscope.errors import UsageError
from dialoscope.model.presets import PRESETS
from dialoscope.study import plan_of, read_plan
from dialoscope.study.demonstration import demo_plan
from dialoscope.study.plan import check_paths

CORPUS = {"corpora": {"chats": "concierge"}}
WITH_MODEL = {**CORPUS, "models": {"ours": "runs/ours"}}


@pytest.mark.parametrize(
    ("table", "instruments"),
    [
        (CORPUS, ["overlap", "engage"]),
        (WITH_MODEL, ["overlap", "distract", "probe", "engage"]),
        ({**WITH_MODEL, "probe": {}}, ["probe"]),
        ({**WITH_MODEL, "instruments": ["overlap", "distract"]}, ["overlap", "distract"]),
        ({**WITH_MODEL, "instruments": "overlap"}, ["overlap"]),
        ({**WITH_MODEL, "instruments": ["distract"], "distract": {"limit": 5}}, ["distract"]),
    ],
)
def test_instruments_are_those_named_or_told_or_else_all_that_can_be_run(
    table: dict[str, Any], instruments: list[str]
) -> None:
    assert [one.instrument for one in plan_of(table).asks] == instruments


def test_an_instrument_may_be_asked_twice_under_names_of_its_own() -> None:
    plan = plan_of({**WITH_MODEL, "probe": [{"classifier": "mlp", "name": "deep"}, {}]})
    assert [(one.name, one.wish.classifier) for one in plan.asks] == [("deep", "mlp"), ("probe-2", "logistic")]


def test_paths_are_found_beside_the_toml_and_names_stay_names(file: Callable[[str, str], Path], tmp_path: Path) -> None:
    file("here/chats.jsonl", "")
    file("here/rated/a.csv", "")
    file("here/minilm/config.json", "")
    asked = '[[engage]]\nencoder = "rated"\nhuman = ["rated"]\npredictor = "rated"\n[[engage]]\nencoder = "minilm"\n'
    path = file("here/study.toml", f'[corpora]\nmine = "chats.jsonl"\nbuilt = "concierge"\n{asked}')
    plan = read_plan(path)
    corpora, rated = plan.corpora, str(tmp_path / "here" / "rated")
    wish = plan.asks[0].wish
    assert (wish.encoder, wish.human, wish.predictor) == (rated, (rated,), rated)
    assert plan.asks[1].wish.encoder == "minilm"  # one that a package carries
    assert corpora["mine"].path == (str(tmp_path / "here" / "chats.jsonl"),)
    assert corpora["built"].path == ("concierge",)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({}, "Give the study at least one corpus"),
        ({**CORPUS, "prob": {}}, "Unknown part of a study 'prob'. Did you mean 'probe'?"),
        ({**CORPUS, "instruments": ["overlop"]}, "Unknown instrument 'overlop'. Did you mean 'overlap'?"),
        ({**CORPUS, "overlap": {"treshold": 1}}, "Unknown option in [overlap] 'treshold'. Did you mean 'threshold'?"),
        ({**CORPUS, "overlap": {"threshold": "much"}}, "[overlap] threshold: expected a number, found 'much'."),
        (
            {**CORPUS, "overlap": {"context_turns": True}},
            "[overlap] context_turns: expected a whole number, found True.",
        ),
        ({**CORPUS, "overlap": {"threshold": 1.8}}, "[overlap] threshold: expected a number from 0 to 1, found 1.8."),
        ({**CORPUS, "overlap": {"unit": "word"}}, "Unknown value for [overlap] unit 'word'"),
        ({**CORPUS, "overlap": {"corpora": ["chat"]}}, "Unknown corpus in [overlap] 'chat'. Did you mean 'chats'?"),
        ({**CORPUS, "probe": {}}, "[probe] asks models, and the study names none: put some under [models]."),
        (
            {**CORPUS, "models": {"a": {}}},
            "[models.a]: expected a path, or a preset to train on the spot",
        ),
        ({**CORPUS, "models": {"a": {"preset": "lstm", "corpus": "x"}}}, "Unknown corpus in [models.a] 'x'"),
        ({"corpora": {"a": {"format": "messages"}}}, "[corpora.a]: expected 'path', found none."),
        ({"corpora": "chats"}, "[corpora]: expected names and paths, found 'chats'."),
        ({"corpora": {"": "x"}}, "[corpora]: expected a name for 'x', found ''."),
        ({"corpora": {" ": {"path": "x"}}}, "[corpora]: expected a name for {'path': 'x'}, found ' '."),
        ({**CORPUS, "models": {"": "runs/ours"}}, "[models]: expected a name for 'runs/ours', found ''."),
        ({**CORPUS, "overlap": {"name": ""}}, "[overlap] name: expected a name, found ''."),
        ({**CORPUS, "seed": "7"}, "seed: expected a whole number, found '7'."),
        ({**WITH_MODEL, "probe": [{"name": "a"}, {"name": "a"}]}, "Two instruments are called 'a'"),
        (
            {**CORPUS, "models": {"a": {"preset": "static-iu"}}},
            "Unknown preset in [models.a] 'static-iu'. Did you mean 'static-ui'?",
        ),
        (
            {**CORPUS, "models": {"a": {"preset": "static-ui", "set": {"epoch": 3}}}},
            "[models.a] set: Unknown setting 'epoch'. Did you mean 'epochs'?",
        ),
        (
            {**CORPUS, "models": {"a": {"preset": "static-ui", "set": {"layers": 0}}}},
            "[models.a] set: ",
        ),
        (
            {**CORPUS, "models": {"a": {"path": "x", "dtype": "bfloat61"}}},
            "Unknown dtype in [models.a] 'bfloat61'. Did you mean 'bfloat16'?",
        ),
        (
            {"corpora": {"a": {"path": "x", "format": "mesages"}}},
            "Unknown format in [corpora.a] 'mesages'. Did you mean 'messages'?",
        ),
        (
            {**WITH_MODEL, "distract": {"sets": ["random-0.5", "rare-ned"]}},
            "Unknown set in [distract] 'rare-ned'. Did you mean 'rare-end'?",
        ),
        (
            {**WITH_MODEL, "probe": {"tasks": ["UterranceLoc"]}},
            "Unknown probe task 'UterranceLoc'. Did you mean 'UtteranceLoc'?",
        ),
        ({**CORPUS, "instruments": 5}, "instruments: expected names, found 5."),
        ({**CORPUS, "instruments": [5]}, "Unknown instrument '5'"),
        ({**CORPUS, "overlap": {"corpora": 5}}, "corpora in [overlap]: expected names, found 5."),
        ({**WITH_MODEL, "probe": {"models": 5}}, "models in [probe]: expected names, found 5."),
        ({**CORPUS, "engage": {"predictor": 5}}, "[engage] predictor: expected text, found 5."),
        (
            {**WITH_MODEL, "instruments": ["overlap"], "probe": {}},
            "[probe] is not among the instruments: name it there, or leave out its table.",
        ),
        (
            {**CORPUS, "models": {"a": {"path": "x", "insert": 0.7}}},
            "[models.a]: insert is for a preset that is trained on the spot, and path names a model that is there.",
        ),
        ({**CORPUS, "seed": -1}, "seed: expected 0 or more, found -1."),
        ({"corpora": {"a": {"path": "x", "limit": -5}}}, "[corpora.a] limit: expected 1 or more, found -5."),
        ({"corpora": {"a": {"path": "x", "limit": 5, "seed": -1}}}, "[corpora.a] seed: expected 0 or more, found -1."),
        *(
            ({**WITH_MODEL, "probe": {name: -5}}, f"[probe] {name}: expected 1 or more, found -5.")
            for name in ("limit", "train_limit")
        ),
        ({**WITH_MODEL, "distract": {"limit": 0}}, "[distract] limit: expected 1 or more, found 0."),
        ({**WITH_MODEL, "distract": {"context_turns": -1}}, "[distract] context_turns: expected 1 or more, found -1."),
        ({**WITH_MODEL, "probe": {"context_tokens": -1}}, "[probe] context_tokens: expected 0 or more, found -1."),
        ({**CORPUS, "engage": {"history": -1}}, "[engage] history: expected 0 or more, found -1."),
        *(
            ({**CORPUS, "models": {"a": {"preset": "lstm", name: -5}}}, f"[models.a] {name}: expected ")
            for name in ("train_limit", "validation_limit", "seed", "batch_size", "bleu_samples")
        ),
        (
            {**CORPUS, "overlap": {"tokeniser": "word"}},
            "Unknown tokeniser in [overlap] 'word'. Did you mean 'words'?",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(table: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_of(table)
    assert told in str(caught.value)


@pytest.mark.parametrize(("text", "told"), [("a = ", "expected TOML"), ('corpora = "x"', "expected names and paths")])
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
    assert (kept["models"]["b"]["insert"], kept["models"]["b"]["set"]) == (
        0.5,
        {"epochs": PRESETS["static-ui"].recipe.epochs},
    )
    (ask,) = kept["instruments"]
    assert (ask["name"], ask["models"], ask["corpora"], ask["options"]["limit"]) == ("probe", ["b"], ["a"], 7)


@pytest.mark.parametrize(
    ("options", "is_lost"),
    [
        ({"encoder": "minilm"}, False),
        ({"encoder": "org/encoder"}, False),  # a name on a hub
        ({"encoder": "./encoder"}, True),
        ({"predictor": "nopredictor"}, True),
        ({"human": ["nohuman/"]}, True),
    ],
)
def test_paths_of_an_instrument_at_which_nothing_is_are_told(options: dict[str, Any], is_lost: bool) -> None:
    (ask,) = plan_of({**CORPUS, "engage": options}).asks
    if not is_lost:
        check_paths(ask)
        return
    with pytest.raises(UsageError, match=rf"\[engage\] {next(iter(options))}: expected a file or folder"):
        check_paths(ask)


def test_a_missing_file_says_how_to_begin(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Try: dialoscope study init"):
        read_plan(tmp_path / "none.toml")
    with pytest.raises(UsageError, match=r"expected the TOML of a study, found: Is a directory\.$"):
        read_plan(tmp_path)


def test_the_example_and_the_demonstration_are_plans(file: Callable[[str, str], Path]) -> None:
    assert [one.instrument for one in read_plan(file("study.toml", example())).asks] == ["overlap", "distract", "probe"]
    demonstration = demo_plan()
    assert [one.instrument for one in demonstration.asks] == ["overlap", "distract", "probe", "engage"]
    assert demonstration.models["insert 0.7"].insert == 0.7
