"""What can be asked about overlap: how units are made, cut into words and judged."""

from __future__ import annotations

from dataclasses import dataclass

from dialoscope.errors import UsageError
from dialoscope.settings import BaseSettings, option

UNITS = ("dialogue", "turn", "sample")
WORDS = ("reference", "words", "blanks")


@dataclass(frozen=True, kw_only=True)
class OverlapSettings(BaseSettings):
    """How test units are compared with training units."""

    split: str | None = option(None, "Split to measure. Default: test.", group="Data")
    train_split: str | None = option(None, "Split to compare with. Default: train.", group="Data")
    limit: int | None = option(None, "Measure at most this many dialogues of the split.", group="Data", least=1)
    unit: str | None = option(None, "What is compared. Default: sample, or dialogue within one split.", choices=UNITS)
    context_turns: int = option(1, "Turns of context in a sample.", least=1)
    words: str = option("reference", "How texts are cut into words.", choices=WORDS)
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
