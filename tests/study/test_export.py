from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dialoscope.cli import app
from dialoscope.engage.depth import measure_depth
from dialoscope.engage.evaluate import evaluate
from dialoscope.engage.examples import Examples, remaining_depth
from dialoscope.engage.human_sets import HumanSet
from dialoscope.engage.output import write_depth, write_evaluation
from dialoscope.engage.settings import Settings
from dialoscope.errors import UsageError
from dialoscope.record import Origin, Score
from dialoscope.report import Section, read_run, write_run
from dialoscope.study import Gate, Placed, Step, Study, pass_gates, read_runs
from dialoscope.study.book import Book, read_steps
from dialoscope.study.interop import log_to_mlflow, to_evaluate, to_lm_eval, to_mlflow, to_model_card


def run_of(study: Study, instrument: str) -> Path:
    return next(study.folder / one.run for one in study.steps if one.instrument == instrument)


def test_an_evaluate_dict_is_flat_and_holds_the_numbers_of_the_runs(study: Study) -> None:
    found = to_evaluate(read_runs([study.folder]))
    data = read_run(run_of(study, "distract")).data
    expected = data["models"]["one"]["sets"]["rare-end"]["das_ratio"]
    assert found["distract-small/one/sets/rare-end/das_ratio"] == expected
    assert {type(value) for value in found.values()} == {float}
    assert not [key for key in found if key.startswith("corpus")]


def test_lm_eval_results_have_its_parts_and_its_names(study: Study) -> None:
    found = to_lm_eval(read_runs([study.folder]))
    task = found["results"]["probe-small_two_tasks_UtteranceLoc"]
    row = read_run(run_of(study, "probe")).data["models"]["two"]["tasks"]["UtteranceLoc"]
    assert task["f1,none"] == row["f1"]
    low, high = row["interval"]
    assert task["f1_stderr,none"] == pytest.approx((high - low) / 3.919928)
    assert set(found) >= {"results", "configs", "versions", "n-shot", "higher_is_better", "n-samples", "config", "date"}
    assert set(found["results"]) == set(found["versions"]) == set(found["configs"])
    directions = found["higher_is_better"]["distract-small_one_sets_rare-end"]
    assert {key: directions[key] for key in ("das_ratio", "das_ratio_of_means", "perplexity")} == {
        "das_ratio": False, "das_ratio_of_means": False, "perplexity": False,
    }  # fmt: skip
    assert "samples" not in directions
    assert found["higher_is_better"]["overlap-small_share_over"]["0.8"] is False
    assert found["higher_is_better"]["probe-small_two_tasks_UtteranceLoc"]["f1"] is True
    assert json.loads(json.dumps(found)) == found


def test_a_model_card_is_one_to_the_hub(study: Study) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    card = hub.ModelCard(to_model_card(read_runs([study.folder]), "one"))
    results = {(one.dataset_name, one.metric_name): one.metric_value for one in card.data.eval_results}
    data = read_run(run_of(study, "distract")).data["models"]["one"]
    assert results["small", "rare-end das_ratio_of_means"] == data["sets"]["rare-end"]["das_ratio_of_means"]
    assert card.data.model_name == "one"
    assert "two" not in card.text
    assert card.text.count("models:one=static-ui@") == 2  # of distract and of probe
    assert card.text.count("\n| probe |") == 2 + 2  # tasks and their groups


def test_a_card_of_all_models_tells_them_apart(study: Study) -> None:
    head = to_model_card(read_runs([study.folder])).split("\n")[1]
    entries = json.loads(head.removeprefix("model-index: "))
    assert [one["name"] for one in entries] == ["one", "two"]
    values = [
        next(
            one["metrics"][0]["value"] for one in entry["results"] if one["metrics"][0]["name"] == "original perplexity"
        )
        for entry in entries
    ]
    models = read_run(run_of(study, "distract")).data["models"]
    assert values == [models[name]["original"]["perplexity"] for name in ("one", "two")]


MISSING = [
    Step("distract-small", "distract", "small", "failed", reason="/home/me: no model", asked="distract"),
    Step("deep-small", "probe", "small", "pending", asked="deep | probe"),
    Step("engage-small", "engage", "small", "skipped", reason="not installed", asked="engage"),
    Step("model two", "model", "", "failed", reason="gone"),
    Step("compared", "compare", "", "failed", reason="gone"),
]


def test_a_card_says_in_one_line_what_was_not_measured(study: Study) -> None:
    runs = read_runs([study.folder])
    told = "distract on small (failed); deep \\| probe on small (not yet run); engage on small (left out)"
    (line,) = (line for line in to_model_card(runs, missing=MISSING).split("\n") if line.startswith("Not measured"))
    assert line == f"Not measured: {told}; model two (failed)."
    (line,) = (line for line in to_model_card(runs, "one", MISSING).split("\n") if line.startswith("Not measured"))
    assert line == f"Not measured: {told}."
    assert "Not measured" not in to_model_card(runs)


@pytest.mark.parametrize("form", ["model-card", "evaluate", "lm-eval"])
def test_an_export_says_what_is_not_in_it_where_people_look(study: Study, tmp_path: Path, form: str) -> None:
    folder = shutil.copytree(study.folder, tmp_path / "s")
    whole = CliRunner().invoke(app, ["export", str(folder), "--to", form])
    assert (whole.exit_code, whole.stderr) == (0, "")
    book = Book(folder, read_steps(folder), "s", {})
    book.write(replace(book.steps["distract-small"], state="failed", run="", reason="no model"))
    done = CliRunner().invoke(app, ["export", str(folder), "--to", form])
    assert done.stderr == "dialoscope: Not measured, and so not exported: distract on small (failed).\n"
    assert (done.exit_code, "Not measured: distract on small" in done.stdout) == (0, form == "model-card")


# --- As on the page ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Guess:
    """A predictor and a rater that says how long turns are, and now and then something else."""

    noise: float
    name: str = "guess@1"
    settings: Settings = field(default_factory=Settings)

    def predict(self, dialogues: Sequence[Sequence[str]], *, progress: object = None) -> list[Any]:
        rng = np.random.default_rng(3)
        return [np.asarray([len(text) / 20 for text in one]) + rng.normal(0, self.noise, len(one)) for one in dialogues]

    def rate(self, dialogues: Sequence[Sequence[str]]) -> Any:
        return np.asarray([one[-1] for one in self.predict(dialogues)])


MODELS: dict[str, Any] = {"ours": Guess(0.1), "untrained": Guess(0.9)}


@pytest.fixture
def depth(tmp_path: Path) -> Path:
    talks = [["hello there", *["i see, tell me more"] * (place % 4), "bye"] for place in range(12)]
    given = Examples(
        "talks@1", [text for one in talks for text in one], np.cumsum([0, *map(len, talks)]),
        np.concatenate([remaining_depth(len(one)) for one in talks]), ids=tuple(map(str, range(12))),
    )  # fmt: skip
    return write_depth(measure_depth(MODELS, given, training=given), tmp_path / "depth")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    turns = [("Hi .", "word " * (place % 9 + 1)) for place in range(30)]
    noise = np.random.default_rng(5).normal(0, 1, (30, 3))
    ratings = np.asarray([[place % 9] * 3 for place in range(30)]) + noise
    other = np.where(np.arange(30) == 7, math.nan, noise[:, 0])  # scores all but one: its n is 29
    rated = HumanSet("rated", tuple(turns), ratings, tuple(map(str, range(30))), ("ann", "bob", "eve"), {"usr": other})
    return write_evaluation(evaluate({"ours": Guess(0.2)}, [rated]), tmp_path / "people")


def as_on_the_page(folders: list[Path]) -> None:
    """What the page shows with an interval is exported, but for comparisons; n and interval are the same in both."""
    runs = read_runs(folders)
    tables = [table for one in runs for table in one.run.section.tables if table.name != "compared"]
    scores = [cell for table in tables for row in table.rows for cell in row if isinstance(cell, Score)]
    page = {(one.value, one.n, one.interval) for one in scores}
    values = {value for value, _, _ in page}
    assert {one.value for one in scores if one.interval} <= set(to_evaluate(runs).values())
    found = to_lm_eval(runs)
    for task, by in found["dialoscope"].items():
        for metric, one in by.items():
            value = found["results"][task][f"{metric},none"]
            ends = None if one["interval"] is None else tuple(one["interval"])
            assert value not in values or (value, one["n"], ends) in page, (task, metric, one)
    written = {
        f"{value:.4g} | {'' if ends is None else f'{ends[0]:.4g} to {ends[1]:.4g}'} | {n:,} |"
        for value, n, ends in page
        if value is not None
    }
    rows = [line for line in to_model_card(runs).splitlines() if line.startswith("| ")][1:]
    bare = [line for line in rows if not any(line.endswith(f"| {end}") for end in written)]
    assert [line for line in bare if "identical" not in line] == []  # which the page has without n and interval
    assert len(rows) > len(bare)


def test_a_study_is_exported_as_it_is_on_the_page(study: Study) -> None:
    as_on_the_page([study.folder])


def test_remaining_depth_is_exported_as_it_is_on_the_page(depth: Path) -> None:
    as_on_the_page([depth])


def test_agreement_with_people_is_exported_as_it_is_on_the_page(people: Path) -> None:
    as_on_the_page([people])


def test_perplexity_is_of_more_contexts_than_the_ratio(study: Study) -> None:
    found = to_lm_eval(read_runs([study.folder]))["dialoscope"]["distract-small_one_sets_random-0.5"]
    assert found["perplexity"]["n"] > found["das_ratio"]["n"]


def test_the_share_of_leaked_samples_has_an_interval_everywhere(study: Study) -> None:
    runs = read_runs([study.folder])
    data = read_run(run_of(study, "overlap")).data
    low, high = data["share_over_intervals"]["0.8"]
    kept = {"n": data["n_test"], "interval": [low, high]}
    assert to_lm_eval(runs)["dialoscope"]["overlap-small_share_over"]["0.8"] == kept
    assert f"| share\\_over 0.8 | {data['share_over']['0.8']:.4g} | {low:.4g} to {high:.4g} | {data['n_test']} |" in (
        to_model_card(runs)
    )
    gates = [Gate("overlap", "share_over.0.8", max=limit, bound="high") for limit in (high, high - 0.001)]
    assert [one.is_open for one in pass_gates(gates, runs)] == [True, False]


# --- By hand ----------------------------------------------------------------------------------------------------------

OVERLAP = {"identical_share": 0.1, "share_over": {"0.5": 0.8, "0.8": 0.25}, "mean": 0.5, "threshold": 0.8, "n_test": 20}
REST = {"cut": 0, "without_history": 3}
DISTRACT = {
    "models": {
        "org/ours": {
            "original": {"perplexity": 20.0, "history_percent": 90.0, "intervals": {"perplexity": [18.0, 22.0]},
                         "counts": {"perplexity": 43, "history_percent": 40}, "samples": 40, **REST},
            "sets": {
                "rare-end": {"das_ratio_of_means": 0.9, "perplexity": None, "samples": 38,
                             "intervals": {"das_ratio_of_means": [0.8, 1.0]}, "counts": {"das_ratio_of_means": 38},
                             "heads": {"best": {"das_ratio_of_means": 0.5}}, **REST},
            },
        },
        "base": {"original": {"perplexity": 30.0, "counts": {"perplexity": 43}, "samples": 40}, "sets": {}},
    },
    "weights": {"org/ours": "static-ui@1", "base": "lstm@2"},
}  # fmt: skip
PROBE = {
    "models": {
        "base": {
            "tasks": {"A": {"f1": 0.75, "interval": [0.7, 0.8], "n": 12}},
            "groups": {"easy": 0.75},
            "group_intervals": {"easy": [0.7, 0.8]},
        }
    }
}
FLAT = {
    "overlap-chats/identical_share": 0.1,
    "overlap-chats/share_over/0.5": 0.8,
    "overlap-chats/share_over/0.8": 0.25,
    "overlap-chats/mean": 0.5,
    "distract-chats/org_ours/original/perplexity": 20.0,
    "distract-chats/org_ours/original/history_percent": 90.0,
    "distract-chats/org_ours/sets/rare-end/das_ratio_of_means": 0.9,
    "distract-chats/org_ours/sets/rare-end/heads/best/das_ratio_of_means": 0.5,
    "distract-chats/base/original/perplexity": 30.0,
    "probe-chats/base/tasks/A/f1": 0.75,
    "probe-chats/base/groups/easy": 0.75,
}
OF_BASE = {name: value for name, value in FLAT.items() if "org_ours" not in name}


def placed(folder: Path, instrument: str, data: dict[str, Any], corpus: str = "chats") -> Placed:
    section, origin = Section(instrument, instrument, "Is it?", []), Origin(f"{corpus}@1")
    place = write_run(folder / instrument, instrument=instrument, data=data, section=section, origin=origin)
    return Placed(f"{instrument}-chats", corpus, place, read_run(place))


@pytest.fixture
def runs(tmp_path: Path) -> list[Placed]:
    rooms: dict[str, dict[str, Any]] = {"overlap": OVERLAP, "distract": DISTRACT, "probe": PROBE}
    return [placed(tmp_path, name, data) for name, data in rooms.items()]


def test_an_evaluate_dict_has_every_finding_and_no_count(runs: list[Placed]) -> None:
    assert to_evaluate(runs) == FLAT
    assert to_evaluate(runs, "base") == OF_BASE


def test_what_distractions_change_is_exported_too(tmp_path: Path) -> None:
    names = ("influence_ratio", "distraction_fall", "history_fall", "changed_share", "kept_words",
             "change_with_das_ratio")  # fmt: skip
    more = {name: Score(0.5, 9, (0.4, 0.6)).to_dict() for name in names}
    runs = [placed(tmp_path, "distract", {"models": {"m": {"original": None, "sets": {"rare-end": more}}}})]
    assert to_lm_eval(runs)["dialoscope"] == {
        "distract-chats_m_sets_rare-end": {name: {"n": 9, "interval": [0.4, 0.6]} for name in names}
    }
    assert to_lm_eval(runs)["higher_is_better"] == {
        "distract-chats_m_sets_rare-end": {"influence_ratio": False, "changed_share": False, "kept_words": True}
    }


def test_models_held_against_people_are_told_apart(tmp_path: Path) -> None:
    raters = {
        "models": {"ours": {"spearman": 0.5}, "base": {"spearman": 0.4}},
        "baselines": {"words": {"pearson": 0.1}},
    }
    runs = [placed(tmp_path, "engage", {"sets": {"rated": raters}})]
    assert to_evaluate(runs, "ours") == {
        "engage-chats/ours/sets/rated/spearman": 0.5,
        "engage-chats/sets/rated/baselines/words/pearson": 0.1,
    }


def test_lm_eval_has_a_task_for_every_part_with_errors_and_counts(runs: list[Placed]) -> None:
    found = to_lm_eval(runs)
    assert found["results"]["distract-chats_org_ours_sets_rare-end"] == {
        "alias": "distract-chats_org_ours_sets_rare-end",
        "das_ratio_of_means,none": 0.9,
        "das_ratio_of_means_stderr,none": pytest.approx(0.0510213, rel=1e-5),  # (1.0 - 0.8) / 2 / 1.959964
    }
    assert found["results"]["overlap-chats_share_over"]["0.8_stderr,none"] == "N/A"
    assert found["results"]["probe-chats_base_groups"]["easy_stderr,none"] == pytest.approx(0.0255107, rel=1e-5)
    assert found["n-samples"] == {
        "overlap-chats": {"original": 20, "effective": 20},
        "overlap-chats_share_over": {"original": 20, "effective": 20},
        "distract-chats_org_ours_original": {"original": 43, "effective": 40},
        "distract-chats_org_ours_sets_rare-end": {"original": 38, "effective": 38},
        "distract-chats_base_original": {"original": 43, "effective": 43},
        "probe-chats_base_tasks_A": {"original": 12, "effective": 12},
        "probe-chats_base_groups": {"original": 12, "effective": 12},
    }
    assert found["dialoscope"]["distract-chats_org_ours_original"] == {
        "perplexity": {"n": 43, "interval": [18.0, 22.0]},
        "history_percent": {"n": 40, "interval": None},
    }
    assert len(found["results"]) == 8
    assert len(to_lm_eval(runs, "base")["results"]) == 5
    assert "static-ui@1" not in to_lm_eval(runs, "base")["config"]["model_args"]


def test_a_card_has_a_line_for_every_headline_number(runs: list[Placed]) -> None:
    lines = [one for one in to_model_card(runs).splitlines() if one.startswith("| ")][1:]
    assert lines == [
        "| overlap | chats |  | identical\\_share | 0.1 |  | 20 |",
        "| overlap | chats |  | share\\_over 0.8 | 0.25 |  | 20 |",
        "| distract | chats | org/ours | original perplexity | 20 | 18 to 22 | 43 |",
        "| distract | chats | org/ours | rare-end das\\_ratio\\_of\\_means | 0.9 | 0.8 to 1 | 38 |",
        "| distract | chats | base | original perplexity | 30 |  | 43 |",
        "| probe | chats | base | A f1 | 0.75 | 0.7 to 0.8 | 12 |",
        "| probe | chats | base | easy | 0.75 | 0.7 to 0.8 | 12 |",
    ]


def test_a_card_of_a_corpus_alone_names_no_model(tmp_path: Path) -> None:
    card = to_model_card([placed(tmp_path, "overlap", {**OVERLAP, "share_over": {"1.0": 0.0}, "threshold": 1.0})])
    assert card.startswith("## Evaluation by Dialoscope\n")
    assert "share\\_over 1.0" in card


def test_controls_baselines_and_other_peoples_metrics_are_no_models_of_a_card(depth: Path, people: Path) -> None:
    card = to_model_card(read_runs([depth, people]))
    (entry,) = json.loads(card.splitlines()[1].removeprefix("model-index: "))
    names = [one["metrics"][0]["name"] for one in entry["results"]]
    assert (entry["name"], names) == ("ours", ["mse", "pearson", "spearman", "rated pearson", "rated spearman"])
    rows = [line.split(" | ")[2:4] for line in card.splitlines() if line.startswith("| ")][1:]
    assert rows == [
        ["ours", "mse"], ["ours", "pearson"], ["ours", "spearman"], ["", "rated ceilings spearman"],
        ["", "rated ceilings pearson"], ["ours", "rated pearson"], ["ours", "rated spearman"],
    ]  # fmt: skip
    assert "untrained | spearman" in to_model_card(read_runs([depth]), "untrained")  # who is asked for by name


def test_nothing_in_a_name_is_read_as_markup(tmp_path: Path) -> None:
    from markdown_it import MarkdownIt

    name = "x\n\n<img src=x>\x85\u2028---\n\n# Approved `<b>` &lt; ~~no~~ $x$ \x7f"
    own = placed(tmp_path, "engage", {"models": {name: {"spearman": 0.5}}}, name)
    _, head, body = to_model_card([replace(own, name=name)]).split("---\n", 2)
    assert len(head.splitlines()) == 1
    assert all(one.isprintable() for one in head.rstrip("\n"))
    shown = MarkdownIt("commonmark").enable("table").render(body)
    assert [tag for tag in ("<img", "<b>", "<h1") if tag in shown] == []
    assert "\n" not in own.run.origin.signature
    assert len(own.run.origin.signature.splitlines()) == 1


@pytest.mark.parametrize("export", [to_evaluate, to_lm_eval, to_mlflow])
def test_names_that_would_become_one_are_refused(tmp_path: Path, export: Callable[..., object]) -> None:
    same = {"models": {"a/b": {"spearman": 0.1}, "a_b": {"spearman": 0.2}}}
    with pytest.raises(UsageError, match=r"^Two numbers would be called .*a_b.*: give one of the models") as caught:
        export([placed(tmp_path, "engage", same)])
    assert "\n" not in str(caught.value)


def test_names_that_are_too_long_for_mlflow_stay_apart(tmp_path: Path) -> None:
    long = {"models": {"m" * 300 + end: {"spearman": value} for end, value in (("a", 0.1), ("b", 0.2))}}
    found = to_mlflow([placed(tmp_path, "engage", long)])
    assert list(found.values()) == [0.1, 0.2]
    assert {len(name) for name in found} == {250}


@pytest.mark.parametrize("export", [to_evaluate, to_lm_eval, to_model_card, to_mlflow])
def test_a_model_that_nobody_asked_is_refused(runs: list[Placed], export: Callable[..., object]) -> None:
    with pytest.raises(UsageError, match=r"Unknown model 'bass'\. Did you mean 'base'\?"):
        export(runs, "bass")


@pytest.mark.parametrize(("model", "expected"), [("", FLAT), ("base", OF_BASE)])
def test_mlflow_gets_every_number(
    runs: list[Placed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, expected: dict[str, float]
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed: pip install mlflow-skinny")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    number = log_to_mlflow(runs, model, uri=(tmp_path / "tracked").as_uri())
    assert mlflow.get_run(number).data.metrics == pytest.approx(expected)
