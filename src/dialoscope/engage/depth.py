"""How well is the remaining depth predicted? Tables 1 and 2 of the paper, Figure 3, and the turns behind them.

Errors and correlations are pooled over all turns of all dialogues; intervals resample dialogues.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dialoscope.engage.baselines import DEPTH_BASELINES
from dialoscope.engage.examples import Examples
from dialoscope.engage.human_sets import item_key, normalised
from dialoscope.engage.protocol import Dialogue, Floats
from dialoscope.errors import UsageError
from dialoscope.metrics import Resampling, correlate, mean_score
from dialoscope.metrics.bootstrap import MANY_DIALOGUES
from dialoscope.record import Origin, Score

if TYPE_CHECKING:
    from dialoscope.engage.predictor import Predictor

LOG = logging.getLogger(__name__)
ENDS = (1, 2, 3)  # first and last turns that Figure 3 looks at
KINDS = ("pearson", "spearman")
SHOWN = 5  # turns of a kind
FEWER = 1_000  # resamples
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Depth:
    """One rater's prediction of every turn."""

    mse: Score  # × 100
    pearson: Score
    spearman: Score
    ends: Mapping[int, Mapping[str, Score]]  # both correlations on the first and last k turns, by k and kind
    scores: Floats

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        three = {"mse": self.mse, "pearson": self.pearson, "spearman": self.spearman}
        ends = {str(k): {kind: one.to_dict() for kind, one in some.items()} for k, some in self.ends.items()}
        return {key: one.to_dict() for key, one in three.items()} | {"first_and_last": ends}


@dataclass(frozen=True, eq=False)
class DepthResult:
    """All predictors and baselines on the same turns."""

    models: Mapping[str, Depth]
    baselines: Mapping[str, Depth]
    examples: Examples
    origin: Origin
    shared: int = 0  # dialogues that stand in the training split as well

    @property
    def told(self) -> str:
        """What to know of those that are shared."""
        count = f"{self.shared:,} of {len(self.examples):,} held-out dialogues {'is' if self.shared == 1 else 'are'}"
        return f"{count} in the training split as well, word for word: what learnt from it may score too high."

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "corpus": self.origin.corpus,
            "dialogues": len(self.examples),
            "turns": len(self.examples.texts),
            "left_out": self.examples.left_out,
            "shared": self.shared,
            "models": {name: one.to_dict() for name, one in self.models.items()},
            "baselines": {name: one.to_dict() for name, one in self.baselines.items()},
            "cases": {name: _cases_data(one, self.examples) for name, one in self.models.items()},
        }


def _cases_data(found: Depth, held_out: Examples) -> dict[str, Any]:
    return {kind: [asdict(one) for one in some] for kind, some in cases(found, held_out).items()}


def measure_depth(
    predictors: Mapping[str, Predictor],
    held_out: Examples,
    *,
    training: Examples,
    resampling: Resampling | None = None,
    progress: Progress | None = None,
) -> DepthResult:
    """Every predictor and the baselines on held-out dialogues; what baselines know is of the training split."""
    check_apart(predictors, held_out)
    how = resampling or resampling_of(held_out)
    origin = Origin(held_out.label, {"task": "remaining-depth"}, how.seed)
    dialogues = list(held_out.dialogues)
    models = {
        name: _measured(
            np.concatenate(one.predict(dialogues, progress=progress)),
            held_out,
            how,
            origin.having(model=one.name, **one.settings.signed()),
        )
        for name, one in predictors.items()
    }
    baselines = {
        name: _measured(scores, held_out, how, origin.having(model=name))
        for name, scores in _baselines(held_out, training).items()
    }
    found = DepthResult(models, baselines, held_out, origin, shared_dialogues(training, held_out))
    if found.shared:
        LOG.warning(found.told)
    return found


def resampling_of(held_out: Examples, *, seed: int = 0) -> Resampling:
    """The usual intervals; where metrics draw dialogues anew, because there are so many, they do so less often.

    With 10,000 draws a million turns would take hours, for every rater has eight correlations.
    """
    return Resampling(FEWER, seed=seed) if len(held_out) > MANY_DIALOGUES else Resampling(seed=seed)


def check_apart(predictors: Mapping[str, Predictor], held_out: Examples) -> None:
    """Refuse to measure a predictor on the very dialogues that it says it learnt from."""
    for name, one in predictors.items():
        learnt = getattr(one, "origin", {}).get("learnt", {})  # one made elsewhere may not know
        if any(held_out.dialogue_fingerprint in known.split("+") for known in learnt.values()):
            raise UsageError(f"'{name}' learnt from the very dialogues that it would predict: give another --split.")


def shared_dialogues(training: Examples, held_out: Examples) -> int:
    """How many held-out dialogues stand in training as well, whatever their case, spacing and punctuation."""
    known = set(map(_key, training.dialogues))
    return sum(_key(one) in known for one in held_out.dialogues)


def _key(dialogue: Dialogue) -> str:
    return item_key(map(normalised, dialogue))


def _baselines(held_out: Examples, training: Examples) -> dict[str, Floats]:
    guesses = {name: fitted(training) for name, fitted in DEPTH_BASELINES.items()}
    return {name: np.concatenate(list(map(guess, held_out.dialogues))) for name, guess in guesses.items()}


def _measured(scores: Floats, held_out: Examples, how: Resampling, origin: Origin) -> Depth:
    targets, clusters = held_out.targets, np.repeat(np.arange(len(held_out)), held_out.lengths)
    errors = 100 * np.square(scores.astype(np.float64) - targets)
    options: dict[str, Any] = {"resampling": how, "origin": origin}

    def correlations(at: Any) -> dict[str, Score]:
        return {kind: correlate(scores[at], targets[at], kind=kind, clusters=clusters[at], **options) for kind in KINDS}

    ends = {k: correlations(at) for k, at in _ends(held_out)}
    return Depth(
        mean_score(errors, clusters=clusters, **options), **correlations(slice(None)), ends=ends, scores=scores
    )


def _ends(held_out: Examples) -> Sequence[tuple[int, np.ndarray[Any, Any]]]:
    lengths, positions = np.repeat(held_out.lengths, held_out.lengths), held_out.positions
    return [(k, (positions <= k) | (positions > lengths - k)) for k in ENDS]


@dataclass(frozen=True)
class Case:
    """A turn worth looking at, as Figures 4 to 7 have them."""

    text: str
    before: str  # the turn before it
    score: float
    target: float


def cases(found: Depth, held_out: Examples, *, most: int = SHOWN) -> dict[str, list[Case]]:
    """The highest, the lowest and the most mistaken turns, each text once."""
    scores, targets = found.scores, held_out.targets
    orders = {"highest": -scores, "lowest": scores, "most mistaken": -np.abs(scores - targets)}
    return {kind: _distinct(np.argsort(key, kind="stable"), found, held_out, most) for kind, key in orders.items()}


def _distinct(order: np.ndarray[Any, Any], found: Depth, held_out: Examples, most: int) -> list[Case]:
    chosen: dict[str, Case] = {}
    positions = held_out.positions
    for place in order.tolist():
        text = held_out.texts[place]
        before = held_out.texts[place - 1] if positions[place] > 1 else ""
        case = Case(text, before, float(found.scores[place]), float(held_out.targets[place]))
        chosen.setdefault(text.lower(), case)
        if len(chosen) == most:
            break
    return list(chosen.values())
