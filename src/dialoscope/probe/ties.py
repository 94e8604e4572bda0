"""How often people call two responses a tie, and how far a study of usual size can stray from that (Figure 1).

The paper shows two seeds of one model to three people each and finds a tie in about 35 % of judgements: what people
say of single responses does not tell two runs of one model apart, nor would it tell models apart.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dialoscope.errors import CorpusError, UsageError
from dialoscope.metrics import Resampling, krippendorff_alpha, mean_score, ratings_matrix
from dialoscope.probe.settings import TiesSettings
from dialoscope.record import Origin, Score
from dialoscope.settings import with_options

CHOICES = ("a", "b", "tie")
COLUMNS = ("item", "annotator", "choice")


@dataclass(frozen=True)
class Judgement:
    """One person's choice between two responses."""

    item: str
    annotator: str
    choice: str


@dataclass(frozen=True, eq=False)
class TieResult:
    """Shares over all judgements, their spread over studies of usual size, and how far people agree."""

    shares: Mapping[str, Score]  # a, b, tie
    by_annotator: Mapping[str, Score]  # their ties
    spread: tuple[float, float]  # 95 % of drawn studies have a share of ties within
    studies: np.ndarray[Any, Any]  # the share of ties in each drawn study
    size: int
    agreement: Score
    origin: Origin

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "shares": {name: score.to_dict() for name, score in self.shares.items()},
            "ties_by_annotator": {name: score.to_dict() for name, score in self.by_annotator.items()},
            "studies": {"count": len(self.studies), "size": self.size, "interval": list(self.spread)},
            "krippendorff_alpha": self.agreement.to_dict(),
        }


def read_judgements(path: str | Path) -> list[Judgement]:
    """A CSV with the columns item, annotator and choice (a, b or tie)."""
    path = Path(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            return list(_judgements(csv.DictReader(lines), path))
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path}: cannot be read: {error}.") from error


def _judgements(rows: csv.DictReader[str], path: Path) -> Iterator[Judgement]:
    missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        present = ", ".join(rows.fieldnames or ()) or "nothing"
        raise CorpusError(f"{path}:1: expected the columns {', '.join(COLUMNS)}, found {present}.")
    for row in rows:
        choice = (row["choice"] or "").strip().lower()
        if choice not in CHOICES:
            raise CorpusError(f"{path}:{rows.line_num}: expected a choice of a, b or tie, found {row['choice']!r}.")
        yield Judgement(row["item"], row["annotator"], choice)


def tie_study(judgements: Sequence[Judgement], *, settings: TiesSettings | None = None, **options: Any) -> TieResult:
    """Shares of a, b and tie with intervals over items, and the shares of ties in studies drawn from them."""
    settings = with_options(settings, TiesSettings, options)
    draws, size, seed = settings.draws, settings.size, settings.seed
    if not judgements:
        raise UsageError("Expected judgements of pairs of responses, found none.")
    choices = np.array([judgement.choice for judgement in judgements])
    items = [judgement.item for judgement in judgements]
    origin = Origin(settings={"study": "ties", "draws": draws, "size": size}, seed=seed)
    how = Resampling(seed=seed)

    def share(kept: np.ndarray[Any, Any], choice: str) -> Score:
        where = origin.having(choice=choice)
        kept_items = [item for item, is_in in zip(items, kept, strict=True) if is_in]
        return mean_score((choices == choice)[kept], clusters=kept_items, resampling=how, origin=where)

    everyone = np.ones(len(choices), dtype=bool)
    people = np.array([judgement.annotator for judgement in judgements])
    # With replacement: judgements stand for those of new studies. (The paper's sets of 200 from 2,000 hardly differ.)
    studies = np.random.default_rng(seed).binomial(size, float((choices == "tie").mean()), size=draws) / size
    low, high = np.quantile(studies, [0.025, 0.975]).tolist()
    return TieResult(
        {choice: share(everyone, choice) for choice in CHOICES},
        {str(name): share(people == name, "tie") for name in dict.fromkeys(people.tolist())},
        (low, high),
        studies,
        size,
        _agreement(judgements, how),
        origin,
    )


def _agreement(judgements: Sequence[Judgement], how: Resampling) -> Score:
    """Krippendorff's alpha over the three choices as names."""
    numbers = {choice: float(number) for number, choice in enumerate(CHOICES)}
    matrix = ratings_matrix((each.item, each.annotator, numbers[each.choice]) for each in judgements)
    return krippendorff_alpha(matrix, level="nominal", resampling=how)
