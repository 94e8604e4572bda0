"""The questions in one visible table: what each one asks, and the function, the settings and the result it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from dialoscope.errors import UsageError, unknown_name
from dialoscope.report.result import Result
from dialoscope.report.run import RESULT, read_json
from dialoscope.settings import BaseSettings


@dataclass(frozen=True)
class Question:
    """What Dialoscope can be asked: the module that answers, its function, its settings and its result, by name."""

    ask: str
    module: str
    function: str
    settings_name: str
    result_name: str
    has_models: bool = False  # it takes `models=`

    @property
    def asks_dialogue_models(self) -> bool:
        """Whether it needs dialogue models; the questions of `engage` take predictors of their own."""
        return self.has_models and self.module != "engage"

    @property
    def measure(self) -> Callable[..., Any]:
        """`measure(corpus, *, against, settings, models, work, progress) -> Result`."""
        function: Callable[..., Any] = getattr(import_module(f"dialoscope.{self.module}"), self.function)
        return function

    @property
    def settings(self) -> type[BaseSettings]:
        """The class of its settings."""
        kind: type[BaseSettings] = getattr(import_module(f"dialoscope.{self.module}"), self.settings_name)
        return kind

    @property
    def result(self) -> type[Result]:
        """The class of its result."""
        kind: type[Result] = getattr(import_module(f"dialoscope.{self.module}"), self.result_name)
        return kind


QUESTIONS: dict[str, Question] = {
    "overlap": Question(
        "Is the test set in the training set?", "overlap", "measure", "OverlapSettings", "OverlapResult"
    ),
    "attention": Question(
        "Does the model attend to what matters?", "distract", "measure", "AttentionSettings", "AttentionResult", True
    ),
    "influence": Question(
        "Which turns change the response's probability?",
        "distract",
        "influence",
        "InfluenceSettings",
        "InfluenceResult",
        True,
    ),
    "behave": Question(
        "Do distractions change what the model says?", "distract", "behave", "BehaveSettings", "BehaveResult", True
    ),
    "probe": Question(
        "What does the encoding of a context know?", "probe", "measure", "ProbeSettings", "ProbeResult", True
    ),
    "depth": Question("How much of a conversation remains?", "engage", "depth", "DepthSettings", "DepthResult", True),
    "ratings": Question("Do scores agree with people?", "engage", "ratings", "RatingsSettings", "RatingsResult", True),
    "metrics": Question("How good are the responses?", "metrics", "measure", "MetricsSettings", "MetricsResult"),
}


# Results of commands that are no question of a study: instrument -> (module, class).
OTHER_RESULTS = {
    "corpus": ("report.corpus", "CorpusResult"),
    "perplexity": ("model.perplexity", "PerplexityResult"),
}
# Commands that make data and write a result.json as the record of it: instrument -> command.
MAKERS = {"overlap-clean": "overlap clean", "overlap-filter": "overlap filter"}


def load_result(folder: str | Path) -> Result:
    """Read the result of any question, of `perplexity` or of a corpus's description back from its folder."""
    folder = Path(folder).parent if Path(folder).name == RESULT else Path(folder)
    name = str(read_json(folder / RESULT).get("instrument"))
    check_is_result(name, folder)
    if name in QUESTIONS:
        return QUESTIONS[name].result.load(folder)
    if name not in OTHER_RESULTS:
        raise unknown_name(f"instrument in {folder / RESULT}", name, [*OTHER_RESULTS, *QUESTIONS])
    module, class_name = OTHER_RESULTS[name]
    kind: type[Result] = getattr(import_module(f"dialoscope.{module}"), class_name)
    return kind.load(folder)


def check_is_result(instrument: str, folder: Path) -> None:
    """Refuse the record of data that was made: it has a result.json, but no verdicts and nothing to load."""
    if instrument in MAKERS:
        advice = "Give the folder of a result, or measure the data with dialoscope overlap measure."
        raise UsageError(f"{folder} holds data made by '{MAKERS[instrument]}', not a result. {advice}")
