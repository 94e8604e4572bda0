"""What can be asked about overlap, and how data is filtered and cleaned by it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from dialoscope.errors import UsageError
from dialoscope.settings import BaseSettings, option

UNITS = ("dialogue", "turn", "sample")
WORDS = ("reference", "words", "blanks")


def threshold_text(threshold: float) -> str:
    """A threshold with all of its digits, so that two thresholds never share a name.

    >>> threshold_text(0.8), threshold_text(0.8000001), threshold_text(1.0)
    ('0.8', '0.8000001', '1')
    """
    return f"{Decimal(repr(float(threshold))):f}".removesuffix(".0")


@dataclass(frozen=True, kw_only=True)
class UnitSettings(BaseSettings):
    """How units are made of dialogues and cut into words; the settings below inherit these."""

    context_turns: int = option(1, "Turns of context in a sample.", least=1)
    words: str = option("reference", "How texts are cut into words.", choices=WORDS)


@dataclass(frozen=True, kw_only=True)
class OverlapSettings(UnitSettings):
    """How test units are compared with training units."""

    split: str | None = option(None, "Split to measure. Default: test.", group="Data")
    train_split: str | None = option(None, "Split to compare with. Default: train.", group="Data")
    limit: int | None = option(None, "Maximum dialogues of the measured split.", group="Data", least=1)
    unit: str | None = option(
        None, "What is compared. Default: sample; dialogue within one split or of single turns.", choices=UNITS
    )
    leak: float = option(0.8, "A unit over this ratio counts as leaked.", least=0, most=1)
    hypotheses: str | None = option(
        None, "A model's responses, one for each test sample: scores with and without the leak.", metavar="FILE"
    )
    references: str | None = option(None, "Score them against these, not the test responses.", metavar="FILE")
    metrics: tuple[str, ...] = option((), "Metrics for --hypotheses (see: dialoscope metrics list).")
    seed: int = option(0, "Random seed of the intervals.", group="Statistics", least=0)

    def check(self) -> None:
        """Scores need hypotheses."""
        for name in ("references", "metrics"):
            if getattr(self, name) and self.hypotheses is None:
                raise UsageError(f"{name} is for scoring a model's responses: give them with hypotheses.")


@dataclass(frozen=True, kw_only=True)
class FilterSettings(UnitSettings):
    """Which test items are dropped because training data nearly repeats them."""

    split: str | None = option(None, "Split to filter. Default: test.", group="Data")
    train_split: str | None = option(None, "Split to compare with. Default: train.", group="Data")
    limit: int | None = option(None, "Maximum dialogues of the filtered split.", group="Data", least=1)
    unit: str | None = option(
        None,
        "What is dropped. Default: dialogue; sample where each dialogue is one context and one response.",
        choices=("dialogue", "sample"),
    )
    threshold: float = option(0.8, "Items with a higher ratio are dropped.", least=0, most=1)


@dataclass(frozen=True, kw_only=True)
class PairsSettings(UnitSettings):
    """Which pairs of units are listed."""

    split: str | None = option(None, "Splits to compare. Default: all.", group="Data")
    limit: int | None = option(None, "Maximum dialogues of the corpus; --against is read whole.", group="Data", least=1)
    unit: str = option("dialogue", "What is compared.", choices=UNITS)
    threshold: float = option(0.75, "Pairs with this ratio or a higher one are listed.", above=0, most=1)
    distinct: bool = option(False, "List units with the same words once.")


@dataclass(frozen=True, kw_only=True)
class CleanSettings(BaseSettings):
    """How near-copies are dropped and the rest is split again."""

    split: str | None = option(None, "Splits to clean. Default: all.", group="Data")
    limit: int | None = option(None, "Maximum dialogues of the corpus.", group="Data", least=1)
    threshold: float = option(0.75, "No two dialogues with a higher ratio are kept.", above=0, most=1)
    test_size: int = option(1000, "Dialogues of the new test split.", least=0)
    validation_size: int = option(1000, "Dialogues of the new validation split.", least=0)
    context_turns: tuple[int, ...] = option((1, 3), "Turns of context in the samples that are written.", least=1)
    words: str = option("reference", "How texts are cut into words.", choices=WORDS)
    seed: int = option(0, "Random seed of the new split.", group="Statistics", least=0)
