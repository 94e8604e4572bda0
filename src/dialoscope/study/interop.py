"""Results in the forms that other tools read: model cards, lm-eval JSON, MLflow."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from dialoscope.corpus.text import printable
from dialoscope.errors import MissingExtraError, UsageError, unknown_name
from dialoscope.instruments import naming_models
from dialoscope.record import version
from dialoscope.report.markup import markdown
from dialoscope.study.book import Step
from dialoscope.study.folders import Placed
from dialoscope.study.keys import digest
from dialoscope.study.numbers import Number, model_place, numbers_of
from dialoscope.study.page import SAID

Found = TypeVar("Found")
Z = 1.959964  # a 95 % interval is so many standard errors to each side, where it is symmetric
# Which end of a number is the good one, by a part of its path; of others nobody can say.
LOWER_IS_BETTER = frozenset(
    ("das_ratio", "das_ratio_of_means", "das_ratio_median", "distraction_percent", "perplexity", "influence_ratio",
     "changed_share", "mse", "share_over", "identical_share")
)  # fmt: skip
HIGHER_IS_BETTER = frozenset(
    ("f1", "easy", "medium", "hard", "pearson", "spearman", "kendall", "partial_given_length", "share_of_ceiling",
     "kept_words")
)  # fmt: skip
NEITHER = frozenset(
    ("history_percent", "first_percent", "last_percent", "distraction_fall", "history_fall", "change_with_das_ratio",
     "mean")
)  # fmt: skip
ASIDE = ("comparisons", "about", "selection")  # parts of a run's data that are not its numbers
HOLDERS = ("sets", "tasks", "groups")  # parts of a path that people need not read
LONGEST_NAME, LONGEST_TAG = 250, 5000  # that MLflow keeps
# Raters that show what numbers are worth, and are no models of a card: of engage, the network before it was trained.
CONTROLS = {"engage": ("untrained", "untrained layer")}
BESIDE = frozenset({"controls", "baselines", "metrics", "comparisons", "first_and_last", "heads"})  # not its headlines
# What a model card shows of each instrument: the last part of a path.
SHOWN = {
    "overlap": ("identical_share",),  # and the share over the run's own threshold
    "distract": ("das_ratio_of_means", "perplexity"),
    "probe": ("f1", "easy", "medium", "hard"),
    "engage": ("spearman", "pearson", "mse"),
}


@dataclass(frozen=True)
class Exported:
    """One number of one run, with the model it is of where there is one."""

    placed: Placed
    model: str
    rest: tuple[str, ...]  # the path without the model
    number: Number
    value: float


def exported(runs: Sequence[Placed], model: str = "") -> list[Exported]:
    """Every number that an instrument found, or those of one model and of none; counts and settings are no findings."""
    found = list(_exported(runs))
    known = {one.model for one in found} - {""}
    if model and model not in known:
        raise unknown_name("model", model, known)
    return [one for one in found if not model or one.model in ("", model)]


def _exported(runs: Sequence[Placed]) -> Iterator[Exported]:
    for placed in (one for one in runs if one.run.instrument in SHOWN):
        for number in numbers_of(placed.run.data):
            path, value = number.path, number.value
            if value is None:
                continue
            if not {path[-1], *path[-2:-1]} & (LOWER_IS_BETTER | HIGHER_IS_BETTER | NEITHER) or path[0] in ASIDE:
                continue
            yield Exported(placed, *_without_model(path), number, value)


def _without_model(path: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    place = model_place(path)
    if place is None or len(path) < place + 2:
        return "", path
    return path[place], (*path[: place - 1], *path[place + 1 :])


def _by_name(named: Iterable[tuple[str, Found]]) -> dict[str, Found]:
    """A dict in which nothing has taken the place of another."""
    found: dict[str, Found] = {}
    for name, value in named:
        if name in found:
            raise UsageError(f"Two numbers would be called {name!r}: give one of the models or runs another name.")
        found[name] = value
    return found


def _key(one: Exported) -> str:
    return "/".join(part.replace("/", "_") for part in (one.placed.name, one.model, *one.rest) if part)


def to_lm_eval(runs: Sequence[Placed], model: str = "") -> dict[str, Any]:
    """The results JSON of lm-evaluation-harness: a task for each run, model and part, a metric for each number."""
    results: dict[str, dict[str, Any]] = {}
    higher: dict[str, dict[str, bool]] = {}
    samples: dict[str, dict[str, int]] = {}
    made_of: dict[str, dict[str, Any]] = {}
    numbers = exported(runs, model)
    _by_name((f"{_task(one)}/{_word(one.rest[-1])}", one) for one in numbers)
    for one in numbers:
        task, metric = _task(one), _word(one.rest[-1])
        row = results.setdefault(task, {"alias": task})
        row[f"{metric},none"] = one.value
        row[f"{metric}_stderr,none"] = _standard_error(one.number)
        if (is_higher := _is_higher_better(one.rest)) is not None:
            higher.setdefault(task, {})[metric] = is_higher
        ends = None if one.number.interval is None else list(one.number.interval)
        made_of.setdefault(task, {})[metric] = {"n": one.number.n, "interval": ends}
        if one.number.n is not None:
            samples[task] = _samples(one.number.n, samples.get(task))
    tasks = list(results)
    return {
        "results": results,
        "configs": {task: {"task": task} for task in tasks},
        "versions": {task: version() for task in tasks},
        "n-shot": dict.fromkeys(tasks, 0),
        "higher_is_better": higher,
        "n-samples": samples,
        "config": {"model": "dialoscope", "model_args": "; ".join(_signature(one, model) for one in runs)},
        "date": time.time(),
        "dialoscope": made_of,  # lm-eval has one n for a task, and no intervals
    }


def _samples(count: int, others: Mapping[str, int] | None) -> dict[str, int]:
    """The most and the fewest that a task's numbers are of: perplexity is over contexts that others leave out."""
    if others is None:
        return {"original": count, "effective": count}
    return {"original": max(count, others["original"]), "effective": min(count, others["effective"])}


def _is_higher_better(path: tuple[str, ...]) -> bool | None:
    words = {path[-1], *path[-2:-1]}
    return False if words & LOWER_IS_BETTER else True if path[-1] in HIGHER_IS_BETTER else None


def _standard_error(number: Number) -> float | str:
    return "N/A" if number.interval is None else (number.interval[1] - number.interval[0]) / (2 * Z)


def _task(one: Exported) -> str:
    return "_".join(_word(part) for part in (one.placed.name, one.model, *one.rest[:-1]) if part)


def _word(text: str) -> str:
    return "".join(one if one.isalnum() or one in "-." else "_" for one in text)


def unmeasured(missing: Sequence[Step], model: str = "") -> str:
    """What studies did not come to or failed at, in a line, or nothing; of one model, not what befell the others.

    Reasons are left out: they may hold paths of whoever ran the study, and a card is for everybody.
    """
    told = [one for one in missing if one.instrument in SHOWN]
    told += [one for one in missing if one.instrument == "model" and model in ("", one.name.removeprefix("model "))]
    return "; ".join(f"{_step(one)} ({SAID[one.state]})" for one in told)


def _step(step: Step) -> str:
    return f"{step.asked or step.instrument} on {step.corpus}" if step.corpus else step.name


def to_model_card(runs: Sequence[Placed], model: str = "", missing: Sequence[Step] = ()) -> str:
    """A model card's metadata block and section: the headline numbers with their intervals.

    The block is of models: numbers of corpora alone have none. `missing` are steps that are not done (see
    `folders.missing_steps`), of which the card says that they are.
    """
    shown = [one for one in exported(runs, model) if _is_shown(one) and (not _is_control(one) or one.model == model)]
    lines = [*_index(shown, model), "## Evaluation by Dialoscope", ""]
    lines += [f"Not measured: {markdown(told)}.", ""] if (told := unmeasured(missing, model)) else []
    lines += ["| instrument | corpus | model | number | value | 95 % interval | n |", "|---|---|---|---|--:|--:|--:|"]
    lines += [_row(one) for one in shown]
    lines += ["", *(f"- {markdown(one.name)}: `{_signature(one, model).replace('`', '')}`" for one in runs), ""]
    return "\n".join(lines)


def _index(shown: Sequence[Exported], model: str) -> list[str]:
    """The metadata block: an entry for each model, with its own numbers and those of the corpora."""
    names = [model] if model else [one for one in dict.fromkeys(one.model for one in shown) if one]
    own = [one for one in shown if "ceilings" not in one.rest]  # people's, not a model's
    entries = [
        {"name": _line(name), "results": [_entry(one) for one in own if one.model in ("", name)]} for name in names
    ]
    # JSON is YAML; quotes of its own keep any name from being read as something else.
    return ["---", f"model-index: {json.dumps(entries, ensure_ascii=False)}", "---", ""] if entries else []


def _signature(placed: Placed, model: str) -> str:
    """Where the numbers come from; the card of one model keeps to itself which others were asked."""
    weights = placed.run.data.get("weights", {})
    if not model or not weights:
        return placed.run.origin.signature
    return naming_models(placed.run.origin, {name: own for name, own in weights.items() if name == model}).signature


def _entry(one: Exported) -> dict[str, Any]:
    corpus = _line(one.placed.corpus)
    return {
        "task": {"type": "text-generation", "name": _line(one.placed.run.section.question)},
        "dataset": {"name": corpus, "type": corpus},
        "metrics": [{"type": _word("_".join(one.rest)), "name": _line(_title(one)), "value": one.value}],
    }


def _line(text: str) -> str:
    """Text without what YAML takes for the end of a line, or does not take at all."""
    return printable(" ".join(text.split()))


def _is_shown(one: Exported) -> bool:
    path, words = one.number.path, SHOWN.get(one.placed.run.instrument, ())
    if one.placed.run.instrument == "overlap" and path[0] == "share_over":
        return float(path[-1]) == float(one.placed.run.data.get("threshold", 0.8))
    return path[-1] in words and not BESIDE & set(one.rest)


def _is_control(one: Exported) -> bool:
    return one.model in CONTROLS.get(one.placed.run.instrument, ())


def _title(one: Exported) -> str:
    return " ".join(part for part in one.rest if part not in HOLDERS)


def _row(one: Exported) -> str:
    number = one.number
    interval = "" if number.interval is None else f"{number.interval[0]:.4g} to {number.interval[1]:.4g}"
    cells = [one.placed.run.instrument, one.placed.corpus, one.model, _title(one)]
    count = "" if number.n is None else f"{number.n:,}"
    return f"| {' | '.join(map(markdown, cells))} | {one.value:.4g} | {interval} | {count} |"


FORMS: dict[str, Callable[[Sequence[Placed], str, Sequence[Step]], str]] = {
    "lm-eval": lambda runs, model, missing: json.dumps(to_lm_eval(runs, model), indent=2) + "\n",
    "model-card": to_model_card,
}


def to_mlflow(runs: Sequence[Placed], model: str = "") -> dict[str, float]:
    """Every number in one flat dict, under names that MLflow takes."""
    numbers = _by_name((_key(one), one.value) for one in exported(runs, model))
    return _by_name((_metric(key), value) for key, value in numbers.items())


def _metric(key: str) -> str:
    """A name that MLflow takes; of a long one, a hash stands for what is cut off, or two could become one."""
    name = "".join(one if one.isalnum() or one in "-_./ " else "_" for one in key)
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 9]}-{digest(key)[:8]}"


def log_to_mlflow(
    runs: Sequence[Placed], model: str = "", *, uri: str | None = None, experiment: str = "dialoscope"
) -> str:
    """Log every number, the signatures and the sections' pages to MLflow; the id of its run.

    Of one model only its numbers are logged: the pages are of all.
    """
    metrics = to_mlflow(runs, model)
    try:
        import mlflow
    except ImportError as error:
        raise MissingExtraError("Logging to MLflow", packages="mlflow-skinny") from error
    try:
        if uri is not None:
            mlflow.set_tracking_uri(uri)
        mlflow.set_experiment(experiment)
        with mlflow.start_run() as run:
            mlflow.log_metrics(metrics)
            for one in runs:
                mlflow.set_tag(f"signature.{one.name}", _signature(one, model)[:LONGEST_TAG])
                for file in () if model else ("result.json", "report.html"):
                    mlflow.log_artifact(str(one.folder / file), one.name)
            return str(run.info.run_id)
    except mlflow.exceptions.MlflowException as error:
        said = " ".join(str(error).split())
        advice = "Give --uri of a tracking server; for a local one, sqlite:///mlflow.db, install the whole of mlflow."
        raise UsageError(f"MLflow would not take the results ({said}). {advice}") from error
