"""Results in the forms that other tools read: `evaluate` dicts, model cards, lm-eval JSON, MLflow."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from turnwise.errors import MissingExtraError, UsageError, unknown_name
from turnwise.instruments import naming_models
from turnwise.record import version
from turnwise.study.folders import Placed
from turnwise.study.numbers import Number, numbers_of

Z = 1.959964  # a 95 % interval is so many standard errors to each side, where it is symmetric
# Which end of a number is the good one, by a part of its path; of others nobody can say.
LOWER_IS_BETTER = frozenset(
    ("das_ratio", "das_ratio_of_means", "das_ratio_median", "distraction_percent", "perplexity", "mse", "share_over",
     "identical_share")
)  # fmt: skip
NEITHER = frozenset({"history_percent", "first_percent", "last_percent", "mean"})
HIGHER_IS_BETTER = frozenset({"f1", "easy", "medium", "hard", "pearson", "spearman", "kendall", "share_of_ceiling"})
ASIDE = ("comparisons", "about", "selection")  # parts of a run's data that are not its numbers
LONGEST_NAME, LONGEST_TAG = 250, 5000  # that MLflow keeps
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


def exported(runs: Sequence[Placed]) -> Iterator[Exported]:
    """Every number that an instrument found; counts and settings are no findings."""
    for placed in (one for one in runs if one.run.instrument in SHOWN):
        models = placed.run.data.get("models")
        names = set(models) if isinstance(models, Mapping) else set()
        for number in numbers_of(placed.run.data):
            path = number.path
            if not {path[-1], *path[-2:-1]} & (LOWER_IS_BETTER | HIGHER_IS_BETTER | NEITHER) or path[0] in ASIDE:
                continue
            is_models = path[0] == "models" and len(path) > 2 and path[1] in names
            model, rest = (path[1], path[2:]) if is_models else ("", path)
            yield Exported(placed, model, rest, number)


def to_evaluate(runs: Sequence[Placed]) -> dict[str, float]:
    """A flat dict of floats, as `evaluate` metrics return and trackers log."""
    return {_key(one): one.number.value for one in exported(runs)}


def _key(one: Exported) -> str:
    return "/".join(part.replace("/", "_") for part in (one.placed.name, one.model, *one.rest) if part)


def to_lm_eval(runs: Sequence[Placed]) -> dict[str, Any]:
    """The results JSON of lm-evaluation-harness: a task for each run, model and part, a metric for each number."""
    results: dict[str, dict[str, Any]] = {}
    higher: dict[str, dict[str, bool]] = {}
    samples: dict[str, dict[str, int]] = {}
    for one in exported(runs):
        task = "_".join(_word(part) for part in (one.placed.name, one.model, *one.rest[:-1]) if part)
        metric = _word(one.rest[-1])
        row = results.setdefault(task, {"alias": task})
        row[f"{metric},none"] = one.number.value
        row[f"{metric}_stderr,none"] = _standard_error(one.number)
        if (is_higher := _is_higher_better(one.rest)) is not None:
            higher.setdefault(task, {})[metric] = is_higher
        if one.number.n is not None:
            samples[task] = {"original": one.number.n, "effective": one.number.n}
    tasks = list(results)
    return {
        "results": results,
        "configs": {task: {"task": task} for task in tasks},
        "versions": {task: version() for task in tasks},
        "n-shot": dict.fromkeys(tasks, 0),
        "higher_is_better": higher,
        "n-samples": samples,
        "config": {"model": "turnwise", "model_args": "; ".join(one.run.origin.signature for one in runs)},
        "date": time.time(),
    }


def _is_higher_better(path: tuple[str, ...]) -> bool | None:
    words = {path[-1], *path[-2:-1]}
    return False if words & LOWER_IS_BETTER else True if path[-1] in HIGHER_IS_BETTER else None


def _standard_error(number: Number) -> float | str:
    return "N/A" if number.interval is None else (number.interval[1] - number.interval[0]) / (2 * Z)


def _word(text: str) -> str:
    return "".join(one if one.isalnum() or one in "-." else "_" for one in text)


def to_model_card(runs: Sequence[Placed], model: str = "") -> str:
    """A model card's metadata block and section: the headline numbers with their intervals."""
    known = {one.model for one in exported(runs)} - {""}
    if model and model not in known:
        raise unknown_name("model", model, known)
    shown = [one for one in exported(runs) if _is_shown(one) and (not model or one.model in ("", model))]
    models = [model] if model else [one for one in dict.fromkeys(one.model for one in shown) if one] or ["model"]
    entries = [{"name": name, "results": [_entry(one) for one in shown if one.model in ("", name)]} for name in models]
    # JSON is YAML; quotes of its own keep any name from being read as something else.
    index = json.dumps(entries, ensure_ascii=False)
    lines = ["---", f"model-index: {index}", "---", "", "## Evaluation by Turnwise", ""]
    lines += ["| instrument | corpus | model | number | value | 95 % interval | n |", "|---|---|---|---|--:|--:|--:|"]
    lines += [_row(one) for one in shown]
    lines += ["", *(f"- {one.name}: `{_signature(one, model).replace('`', '')}`" for one in runs), ""]
    return "\n".join(lines)


def _signature(placed: Placed, model: str) -> str:
    """Where the numbers come from; the card of one model keeps to itself which others were asked."""
    weights = placed.run.data.get("weights", {})
    if not model or not weights:
        return placed.run.origin.signature
    return naming_models(placed.run.origin, {name: own for name, own in weights.items() if name == model}).signature


def _entry(one: Exported) -> dict[str, Any]:
    return {
        "task": {"type": "text-generation", "name": one.placed.run.section.question},
        "dataset": {"name": one.placed.corpus, "type": one.placed.corpus},
        "metrics": [{"type": _word("_".join(one.rest)), "name": _title(one), "value": one.number.value}],
    }


def _is_shown(one: Exported) -> bool:
    path, words = one.number.path, SHOWN.get(one.placed.run.instrument, ())
    if one.placed.run.instrument == "overlap" and path[0] == "share_over":
        return path[-1] == f"{one.placed.run.data.get('threshold', 0.8):g}"
    return path[-1] in words and not {"controls", "baselines", "comparisons", "first_and_last"} & set(path)


def _title(one: Exported) -> str:
    return " ".join([*one.rest[:-1], one.rest[-1]]).replace("sets ", "").replace("tasks ", "").replace("groups ", "")


def _row(one: Exported) -> str:
    number = one.number
    interval = "" if number.interval is None else f"{number.interval[0]:.4g} to {number.interval[1]:.4g}"
    cells = [one.placed.run.instrument, one.placed.corpus, one.model, _title(one)]
    count = "" if number.n is None else f"{number.n:,}"
    return f"| {' | '.join(map(_cell, cells))} | {number.value:.4g} | {interval} | {count} |"


def _cell(text: str) -> str:
    """Text that neither ends a cell nor is read as markup."""
    for letter in "\\`*_[]<>|":
        text = text.replace(letter, f"\\{letter}" if letter not in "<>" else {"<": "&lt;", ">": "&gt;"}[letter])
    return " ".join(text.split())


FORMS: dict[str, Callable[[Sequence[Placed]], str]] = {
    "evaluate": lambda runs: json.dumps(to_evaluate(runs), indent=2) + "\n",
    "lm-eval": lambda runs: json.dumps(to_lm_eval(runs), indent=2) + "\n",
    "model-card": to_model_card,
}


def log_to_mlflow(runs: Sequence[Placed], *, uri: str | None = None, experiment: str = "turnwise") -> str:
    """Log every number, the signatures and the sections' pages to MLflow; the id of its run."""
    try:
        import mlflow
    except ImportError as error:
        raise MissingExtraError("Logging to MLflow", "mlflow") from error
    try:
        if uri is not None:
            mlflow.set_tracking_uri(uri)
        mlflow.set_experiment(experiment)
        with mlflow.start_run() as run:
            mlflow.log_metrics({_metric(key): value for key, value in to_evaluate(runs).items()})
            for one in runs:
                mlflow.set_tag(f"signature.{one.name}", one.run.origin.signature[:LONGEST_TAG])
                mlflow.log_artifact(str(one.folder / "result.json"), one.name)
                mlflow.log_artifact(str(one.folder / "report.html"), one.name)
            return str(run.info.run_id)
    except mlflow.exceptions.MlflowException as error:
        said = " ".join(str(error).split())
        advice = "Give --uri of a tracking server; for a local one, sqlite:///mlflow.db, install the whole of mlflow."
        raise UsageError(f"MLflow would not take the results ({said}). {advice}") from error


def _metric(key: str) -> str:
    """A name that MLflow takes."""
    return "".join(one if one.isalnum() or one in "-_./ " else "_" for one in key)[:LONGEST_NAME]
