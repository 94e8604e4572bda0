"""Results in the forms that other tools read: model cards, the JSON of lm-evaluation-harness, MLflow."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dialoscope.corpus.text import printable
from dialoscope.errors import MissingExtraError, UsageError, unknown_name
from dialoscope.fingerprint import digest
from dialoscope.instruments import QUESTIONS
from dialoscope.record import Score, direction, version
from dialoscope.report.markup import markdown
from dialoscope.study.page import STATES
from dialoscope.study.results import StoredResult
from dialoscope.study.steps import Step

Z = 1.959964  # a symmetric 95 % interval reaches so many standard errors to each side
LONGEST_NAME, LONGEST_TAG = 250, 5000  # that MLflow keeps


@dataclass(frozen=True)
class Exported:
    """One score of one result."""

    result: StoredResult
    path: str
    score: Score
    value: float

    @property
    def subject(self) -> str:
        """The model, the control or the measure."""
        return self.path.partition("/")[0]

    @property
    def is_of_model(self) -> bool:
        """Whether it is the number of a model that was asked."""
        return asks_models(self.result) and self.subject in [name.replace("/", "_") for name in self.result.models]


def asks_models(result: StoredResult) -> bool:
    """Whether a result is about models, not about corpora alone."""
    return result.instrument in QUESTIONS and QUESTIONS[result.instrument].has_models


def exported(results: Sequence[StoredResult], model: str = "") -> list[Exported]:
    """Every score that has a value; with a model, its scores and those that are about no model."""
    found = [
        Exported(result, path, score, score.value)
        for result in results
        if result.instrument in QUESTIONS
        for path, score in result.scores.items()
        if score.value is not None
    ]
    if not model:
        return found
    known = {each.subject for each in found if each.is_of_model}
    if model.replace("/", "_") not in known:
        raise unknown_name("model", model, known)
    return [each for each in found if not asks_models(each.result) or each.subject == model.replace("/", "_")]


def to_lm_eval(results: Sequence[StoredResult], model: str = "", missing: Sequence[Step] = ()) -> dict[str, Any]:
    """The results JSON of lm-evaluation-harness: a task for each result, subject and part, a metric for each number."""
    rows: dict[str, dict[str, Any]] = {}
    higher: dict[str, dict[str, bool]] = {}
    samples: dict[str, dict[str, int]] = {}
    own: dict[str, dict[str, Any]] = {}
    for each in exported(results, model):
        subject, part, number = each.path.split("/")
        task, metric = "_".join(_word(text) for text in (each.result.name, subject, part)), _word(number)
        row = rows.setdefault(task, {"alias": task})
        if f"{metric},none" in row:
            raise UsageError(f"Two numbers would be called '{task}/{metric}': give the models or steps other names.")
        low, high = each.score.interval or (None, None)
        row[f"{metric},none"] = each.value
        row[f"{metric}_stderr,none"] = "N/A" if low is None or high is None else (high - low) / (2 * Z)
        if (end := direction(each.path)) != "neither":
            higher.setdefault(task, {})[metric] = end == "high"
        own.setdefault(task, {})[metric] = {"n": each.score.n, "interval": None if low is None else [low, high]}
        counts = [each.score.n, *samples.get(task, {}).values()]
        samples[task] = {"original": max(counts), "effective": min(counts)}
    return {
        "results": rows,
        "configs": {task: {"task": task} for task in rows},
        "versions": dict.fromkeys(rows, version()),
        "n-shot": dict.fromkeys(rows, 0),
        "higher_is_better": higher,
        "n-samples": samples,
        "config": {"model": "dialoscope", "model_args": "; ".join(each.signature for each in results)},
        "date": time.time(),
        "dialoscope": own,  # lm-eval has one n for a task, and no intervals
    }


def _word(text: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in text)


def not_measured(missing: Sequence[Step], model: str = "") -> str:
    """The steps that are not done, in one line, or nothing; of other models, nothing is said.

    Reasons are left out: they may hold paths of whoever ran the study, and a card is for everybody.
    """
    asked = [step for step in missing if step.instrument in QUESTIONS]
    asked += [
        step for step in missing if step.instrument == "model" and model in ("", step.name.removeprefix("model "))
    ]
    names = {step: f"{step.asked or step.instrument} on {step.corpus}" if step.corpus else step.name for step in asked}
    return "; ".join(f"{name} ({STATES[step.state]})" for step, name in names.items())


def to_model_card(results: Sequence[StoredResult], model: str = "", missing: Sequence[Step] = ()) -> str:
    """A model card's metadata block and section: the verdicts, and the numbers behind them with their intervals.

    The block has an entry for each model. `missing` are steps that are not done; the card says which they are.
    """
    numbers = exported(results, model)
    shown = [each for each in numbers if _is_headline(each)]
    lines = [*_index(shown, model), "## Evaluation by Dialoscope", ""]
    lines += [f"Not measured: {markdown(text)}.", ""] if (text := not_measured(missing, model)) else []
    lines += [f"- {markdown(text)}" for text in _verdicts(results, model)]
    lines += ["", "| instrument | corpus | subject | part | number | value | 95 % interval | n |",
              "|---|---|---|---|---|--:|--:|--:|"]  # fmt: skip
    for each in shown:
        low, high = each.score.interval or (None, None)
        interval = "" if low is None else f"{low:.4g} to {high:.4g}"
        cells = [each.result.instrument, each.result.corpus, *each.path.split("/")]
        lines.append(f"| {' | '.join(map(markdown, cells))} | {each.value:.4g} | {interval} | {each.score.n:,} |")
    used = {each.result.name: each.result for each in numbers}
    lines += ["", *(f"- {markdown(name)}: `{result.signature.replace('`', '')}`" for name, result in used.items()), ""]
    return "\n".join(lines)


def _is_headline(each: Exported) -> bool:
    """Whether a verdict is about the number, or holds another one against it; all, where there is no verdict."""
    named = {path for verdict in each.result.verdicts for path in (*verdict.scores, verdict.against)}
    return each.path in named or not named - {None}


def _verdicts(results: Sequence[StoredResult], model: str) -> Iterator[str]:
    for result in results:
        for verdict in result.verdicts:
            subject = verdict.scores[0].partition("/")[0] if verdict.scores else ""
            if not model or not asks_models(result) or subject == model.replace("/", "_"):
                yield f"{verdict.level.replace('_', ' ').capitalize()}: {verdict.text}"


def _index(shown: Sequence[Exported], model: str) -> list[str]:
    """The metadata block: an entry for each model, with its own numbers and those of the corpora."""
    names = dict.fromkeys(each.subject for each in shown if each.is_of_model)
    entries = [
        {"name": _line(model or name), "results": [_entry(each) for each in shown
                                                   if each.subject == name or not asks_models(each.result)]}
        for name in names
    ]  # fmt: skip
    # JSON is YAML; quotes of its own keep any name from being read as something else.
    return ["---", f"model-index: {json.dumps(entries, ensure_ascii=False)}", "---", ""] if entries else []


def _entry(each: Exported) -> dict[str, Any]:
    corpus, (_, part, number) = _line(each.result.corpus), each.path.split("/")
    return {
        "task": {"type": "text-generation", "name": _line(QUESTIONS[each.result.instrument].ask)},
        "dataset": {"name": corpus, "type": corpus},
        "metrics": [{"type": _word(f"{part}_{number}"), "name": _line(f"{part} {number}"), "value": each.value}],
    }


def _line(text: str) -> str:
    """Text without what YAML takes for the end of a line, or does not take at all."""
    return printable(" ".join(text.split()))


def _as_json(results: Sequence[StoredResult], model: str, missing: Sequence[Step]) -> str:
    return json.dumps(to_lm_eval(results, model, missing), indent=2) + "\n"


FORMS: Mapping[str, Callable[[Sequence[StoredResult], str, Sequence[Step]], str]] = {
    "lm-eval": _as_json,
    "model-card": to_model_card,
}


def to_mlflow(results: Sequence[StoredResult], model: str = "") -> dict[str, float]:
    """Every number under a name that MLflow takes; of a long one, a hash stands for what is cut off."""
    metrics: dict[str, float] = {}
    for each in exported(results, model):
        name = "".join(letter if letter.isalnum() or letter in "-_./ " else "_"
                       for letter in f"{each.result.name}/{each.path}")  # fmt: skip
        name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 9]}-{digest(name)[:8]}"
        if name in metrics:
            raise UsageError(f"Two numbers would be called '{name}': give the models or steps other names.")
        metrics[name] = each.value
    return metrics


def log_to_mlflow(
    results: Sequence[StoredResult], model: str = "", *, uri: str | None = None, experiment: str = "dialoscope"
) -> str:
    """Log every number, the signatures and the pages to MLflow; of one model, no pages. Returns the id of the run."""
    metrics = to_mlflow(results, model)
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
            for result in results:
                mlflow.set_tag(f"signature.{result.name}", result.signature[:LONGEST_TAG])
                for file in () if model else ("result.json", "report.html"):
                    mlflow.log_artifact(str(result.folder / file), result.name)
            return str(run.info.run_id)
    except mlflow.exceptions.MlflowException as error:
        message = " ".join(str(error).split())
        advice = "Give --uri of a tracking server; for a local one, sqlite:///mlflow.db, install the whole of mlflow."
        raise UsageError(f"MLflow would not take the results ({message}). {advice}") from error
