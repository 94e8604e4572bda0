"""The questions in one visible table: what each one asks, and the function, the settings and the result it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from dialoscope.errors import unknown_name
from dialoscope.report.corpus import CorpusResult
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


def load_result(folder: str | Path) -> Result:
    """Read the result of any question, or the description of a corpus, back from its folder."""
    folder = Path(folder).parent if Path(folder).name == RESULT else Path(folder)
    name = str(read_json(folder / RESULT).get("instrument"))
    if name != CorpusResult.instrument and name not in QUESTIONS:
        raise unknown_name(f"instrument in {folder / RESULT}", name, [CorpusResult.instrument, *QUESTIONS])
    kind = CorpusResult if name == CorpusResult.instrument else QUESTIONS[name].result
    return kind.load(folder)
