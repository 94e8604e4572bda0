"""What can be asked with distracting test sets: how they are made, and what is measured on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dialoscope.distract.names import SetName, chosen_names
from dialoscope.errors import UsageError
from dialoscope.model.options import ModelOptions
from dialoscope.settings import BaseSettings, default_of, option, options_of

NORMALISATIONS = ("utterance", "per_token", "as_printed")


@dataclass(frozen=True, kw_only=True)
class SetsSettings(BaseSettings):
    """How distracting test sets are made."""

    split: str | None = option(None, "Split to measure. Default: test.", group="Data")
    train_split: str | None = option(None, "Split that distractions come from. Default: train.", group="Data")
    limit: int | None = option(None, "Measure at most this many dialogues of the split.", group="Data", least=1)
    sets: tuple[str, ...] = option(("all",), "Test sets: all, random, frequent, rare, given, or names: random-0.7.")
    sentences: tuple[str, ...] = option((), "Sentences to insert, for the sets called given.", is_repeated=True)
    context_turns: int | None = option(
        None, "Turns of context. Default: what the models were trained with, else all.", least=1
    )
    last_only: bool = option(False, "Measure only the last response of each dialogue.")
    responses: str | None = option(None, "Measure only responses of this speaker, such as assistant.")
    seed: int = option(0, "Random seed for choosing distractions.", least=0)

    def check(self) -> None:
        """Every set has a name that can be made, and sentences enough."""
        if not self.sets:
            raise UsageError("sets names at least one distracting set, such as random-0.7.")
        for name in map(SetName.parse, chosen_names(self.sets)):
            if name.source == "given" and len(self.sentences) < name.count:
                count = len(self.sentences)
                raise UsageError(f"The set '{name}' needs {name.count} sentences, found {count}: give --sentences.")


@dataclass(frozen=True, kw_only=True)
class QuestionSettings(SetsSettings, ModelOptions):
    """What every question about distracting sets takes: how sets are made, or where they lie, and the models."""

    sets_dir: str | None = option(
        None, "Take the test sets that 'dialoscope distract sets' wrote.", group="Data", metavar="DIR"
    )

    def check(self) -> None:
        """Written sets stay as they are."""
        if self.sets_dir is None:
            super().check()
        else:
            self.check_unmade()

    def check_unmade(self) -> None:
        """Refuse options that make sets, beside sets that are made already."""
        for name in options_of(SetsSettings):
            if name != "sets" and getattr(self, name) != default_of(SetsSettings, name):
                raise UsageError(f"Written sets stay as they are: of the options that make sets, leave out {name}.")
        chosen_names(self.sets)


@dataclass(frozen=True, kw_only=True)
class AttentionSettings(QuestionSettings):
    """How attention becomes scores: by which factor, and of which layer and head."""

    normalisation: str = option(
        "utterance", "Attention score: utterance (100 % is the average), by token, or as printed in the paper.",
        group="Papers", choices=NORMALISATIONS,
    )  # fmt: skip
    layer: int | None = option(None, "Layer of a transformer, from 0. Default: the mean over all.")
    head: int | None = option(None, "Head of a transformer, from 0. Default: the mean over all.")


@dataclass(frozen=True, kw_only=True)
class InfluenceSettings(QuestionSettings):
    """How much each turn changes the probability of the response."""


@dataclass(frozen=True, kw_only=True)
class BehaveSettings(AttentionSettings):
    """Whether distractions change what a model writes; words lost are also held against attention."""


@dataclass(frozen=True, kw_only=True)
class DistractionSettings(BaseSettings):
    """Training with inserted distractions, and the loss on attention to them."""

    insert: float | None = option(
        None, "Probability of inserting each of two distractions.", group="Distractions", least=0, most=1
    )
    attention_loss: bool | None = option(
        None, "With insert: lower the attention on distractions. Default: yes.", group="Distractions"
    )
    attention_weight: float | None = option(
        None, "Weight of that loss. Default: 1.", group="Distractions", least=0, metavar="X"
    )
    attention_reduction: str | None = option(
        None, "Mean over positions (the paper's) or sum. Default: mean.", group="Distractions", choices=("mean", "sum")
    )

    def check(self) -> None:
        """The attention loss needs distractions."""
        shape = (self.attention_weight, self.attention_reduction)
        if self.insert is None and (self.attention_loss, *shape) != (None, None, None):
            raise UsageError("The attention loss is about inserted distractions: give insert as well, such as 0.7.")
        if self.attention_loss is False and shape != (None, None):
            raise UsageError("Without attention_loss there is no attention_weight and no attention_reduction.")

    def for_training(self) -> dict[str, Any]:
        """The transform and the extra loss of `dialoscope.model.train`; nothing where nothing is inserted."""
        if not self.insert:
            return {}
        from dialoscope.distract.attention_loss import AttentionLoss
        from dialoscope.distract.distractions import InsertDistractions

        shape = {"weight": self.attention_weight, "reduction": self.attention_reduction}
        loss = AttentionLoss(**{name: value for name, value in shape.items() if value is not None})  # type: ignore[arg-type]
        return {
            "transform": InsertDistractions(self.insert),
            "extra_loss": None if self.attention_loss is False else loss,
        }
