"""What can be asked about responses: which metrics, of which words, with which intervals and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dialoscope.errors import UsageError, unknown_name
from dialoscope.settings import BaseSettings, option

# Every metric by its group, as `metrics list` shows them. "Papers" holds readings that differ from paper to paper.
GROUPED: Mapping[str, tuple[str, ...]] = {
    "BLEU": ("bleu-1", "bleu-2", "bleu-3", "bleu-4"),
    "Overlap with the reference": ("rouge-1", "rouge-2", "rouge-l", "meteor", "meteor-stem"),
    "Embeddings": ("embedding-average", "embedding-extrema", "embedding-greedy"),
    "Diversity": ("distinct-1", "distinct-2", "distinct-responses", "repetition-2", "repetition-4"),
    "Likelihood and length": ("perplexity", "length", "length-ratio"),
    "Papers": (
        "sentence-bleu-1", "sentence-bleu-2", "sentence-bleu-3", "sentence-bleu-4",
        "bleu-2-overlap", "bleu-4-overlap", "bleu-2-probe", "bleu-2-probe-exchanged",
        "distinct-1-overlap", "distinct-2-overlap",
    ),
}  # fmt: skip
NAMES = tuple(name for names in GROUPED.values() for name in names)
DEFAULT_METRICS = ("bleu-1", "bleu-2", "bleu-3", "bleu-4", "distinct-1", "distinct-2", "length")  # need no extra
ALL = "all"
TOKENISER_NAMES = ("13a", "intl", "char", "zh", "whitespace", "nltk", "wordpunct")
METHODS = ("jackknife", "percentile", "bca")
TEST_NAMES = ("randomisation", "bootstrap")


@dataclass(frozen=True, kw_only=True)
class MetricsSettings(BaseSettings):
    """Which metrics score the responses, and how intervals and tests are made."""

    column: str | None = option(None, "Column of the responses.", group="Data")
    reference_column: str | None = option(None, "Column of the references.", group="Data")
    dialogue_column: str | None = option(
        None, "Column of dialogue ids: intervals draw whole dialogues, not single responses.", group="Data"
    )
    metrics: tuple[str, ...] = option(DEFAULT_METRICS, "Metrics, or 'all' (see: dialoscope metrics list).")
    tokeniser: str = option(
        "13a", "How texts are cut into words, where a metric leaves it open.", choices=TOKENISER_NAMES
    )
    lowercase: bool = option(False, "Compare without case, where a metric leaves it open.")
    method: str = option("jackknife", "How intervals are made.", group="Statistics", choices=METHODS)
    level: float = option(0.95, "Confidence level of the intervals.", group="Statistics", above=0, most=0.9999)
    test: str = option("randomisation", "Test between two systems.", group="Statistics", choices=TEST_NAMES)
    resamples: int = option(10_000, "Resamples of the bootstrap and of the test.", group="Statistics", least=100)
    seed: int = option(0, "Random seed of intervals and tests.", group="Statistics", least=0)

    def check(self) -> None:
        """Metrics are known, and there is at least one."""
        if not self.metrics:
            raise UsageError("metrics is empty: name at least one metric, or 'all'.")
        for name in self.metrics:
            if name not in (*NAMES, ALL):
                raise unknown_name("metric", name, (*NAMES, ALL))

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics by name, each once."""
        return NAMES if ALL in self.metrics else tuple(dict.fromkeys(self.metrics))
