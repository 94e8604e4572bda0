"""What the commands about studies can be told. Imported for `--help`, so nothing heavy is imported here."""

from __future__ import annotations

from dataclasses import dataclass

from dialoscope.settings import BaseSettings, option

FORMS = ("lm-eval", "model-card", "mlflow")


@dataclass(frozen=True, kw_only=True)
class StudySettings(BaseSettings):
    """A study without a TOML, and what a TOML may be changed in."""

    questions: tuple[str, ...] = option((), "Without a TOML: what to ask, such as overlap,attention.")
    against: str | None = option(None, "Folder of an earlier study to compare with.", group="Data", metavar="DIR")
    seed: int | None = option(None, "Random seed of every question.", least=0)
    device: str | None = option(None, "Where models run: auto, cpu, cuda or cuda:N.", group="Models")
    title: str | None = option(None, "Title of the page.", group="Reports")
    dry_run: bool = option(False, "Only count the steps and the dialogues.", group="Reports")


@dataclass(frozen=True, kw_only=True)
class GateSettings(BaseSettings):
    """Where the gates are."""

    gates: str = option("gates.toml", "A TOML of gates.", metavar="FILE")
    junit: str | None = option(None, "Also write JUnit XML.", group="Reports", metavar="FILE")


@dataclass(frozen=True, kw_only=True)
class ExportSettings(BaseSettings):
    """Which form, and which model."""

    to: str = option("model-card", "The form.", choices=FORMS, group="Reports")
    model: str = option("", "Only this model, and what is about no model.", group="Models")
    uri: str | None = option(None, "For mlflow: the tracking server.", group="Reports")


@dataclass(frozen=True, kw_only=True)
class DemoSettings(BaseSettings):
    """The size of the demonstration."""

    dialogues: int = option(5000, "Dialogues of the built-in corpus.", group="Data", least=50, most=1_000_000)
    seed: int = option(7, "Random seed of the built-in corpus.", group="Data", least=0)
