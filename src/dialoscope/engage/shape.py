"""The shape of a predictor and the recipe of its training, as its folder keeps them.

People choose them through `PredictorSettings`; every row of the paper's Table 5 is one option there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from dialoscope.engage.settings import ACTIVATIONS, DTYPES, MIXINGS, OPTIMISERS, POOLINGS, SCHEDULES
from dialoscope.errors import UsageError, unknown_name


def _check(*found: bool | Exception) -> None:
    for one in found:
        if isinstance(one, Exception):
            raise one


@dataclass(frozen=True)
class Shape:
    """What a predictor is made of besides its encoder."""

    history: int = 0  # predecessors that a turn is averaged with
    is_flat: bool = False  # they are read with the turn as one text, cut from the left
    pooling: Literal["mean", "cls", "max", "min"] = "mean"
    activation: Literal["clamp", "sigmoid"] = "clamp"
    classes: int | None = None  # of equal width, instead of a number; the score is the expected middle of them
    tokens: int = 128  # of a text, at most

    def __post_init__(self) -> None:
        _check(
            self.pooling in POOLINGS or unknown_name("pooling", self.pooling, POOLINGS),
            self.activation in ACTIVATIONS or unknown_name("activation", self.activation, ACTIVATIONS),
            self.history >= 0 or UsageError(f"A history has 0 turns or more, found {self.history}."),
            self.tokens >= 3 or UsageError(f"A text has at least 3 tokens, found {self.tokens}."),
            self.classes is None or self.classes > 1 or UsageError(f"Give 2 classes or more, found {self.classes}."),
        )

    @property
    def outputs(self) -> int:
        """Numbers that the linear layer gives."""
        return self.classes or 1

    @property
    def averaged(self) -> int:
        """Predecessors whose scores are averaged with a turn's: none where they are part of its text."""
        return 0 if self.is_flat else self.history

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @property
    def words(self) -> str:
        """What a predictor's name is a fingerprint of, with its weights; names on record depend on this form."""
        return f"Settings({', '.join(f'{key}={value!r}' for key, value in asdict(self).items())})"

    def signed(self) -> dict[str, Any]:
        """For signatures: what is not as usual, and how far back it reads."""
        usual = Shape()
        changed = {one.name: getattr(self, one.name) for one in fields(self)}
        return {"history": self.history} | {key: one for key, one in changed.items() if one != getattr(usual, key)}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Shape:
        """Shape as JSON held them; what is unknown or of another type is refused."""
        return cls(**dict(_typed(cls(), given)))


@dataclass(frozen=True)
class Recipe:
    """How an encoder is tuned."""

    optimiser: Literal["adamw", "sgd"] = "adamw"
    rate: float = 3e-5
    head_rate: float | None = 1e-3  # of the linear layer, which starts from nothing; None: as the encoder's
    schedule: Literal["linear", "constant"] = "linear"  # after the warm-up
    steps: int = 2000
    warmup: int = 200
    batch_turns: int = 256  # whole dialogues, until they have so many
    clip: float = 1.0
    loss_scale: float = 1.0  # of the squared error; a clip and plain SGD notice
    mixing: Literal["proportional", "by-corpus"] = "proportional"  # by-corpus: a batch is of one corpus, each as often
    evaluate_every: int = 200
    dtype: Literal["float32", "bfloat16"] | None = None  # of the encoder's passes; None: bfloat16 on a GPU
    patience: int | None = None  # evaluations without a gain before it ends; None: all steps are taken

    def __post_init__(self) -> None:
        _check(
            self.optimiser in OPTIMISERS or unknown_name("optimiser", self.optimiser, OPTIMISERS),
            self.mixing in MIXINGS or unknown_name("mixing", self.mixing, MIXINGS),
            self.schedule in SCHEDULES or unknown_name("schedule", self.schedule, SCHEDULES),
            self.dtype is None or self.dtype in DTYPES or unknown_name("dtype", self.dtype, DTYPES),
            min(self.steps, self.batch_turns, self.evaluate_every) >= 1
            or UsageError("Steps, turns of a batch and steps between evaluations must be 1 or more."),
            self.patience is None or self.patience >= 1 or UsageError("Give a patience of 1 evaluation or more."),
            self.warmup >= 0 or UsageError(f"A warm-up has 0 steps or more, found {self.warmup}."),
            min(self.rate, self.clip, self.loss_scale, self.rate if self.head_rate is None else self.head_rate) > 0
            or UsageError("Learning rates, the clip and the scale of the loss must be above 0."),
        )

    def rate_at(self, step: int) -> float:
        """Share of the rate at a step, counted from 0: up during the warm-up, then level or down to nothing."""
        if step < self.warmup:
            return (step + 1) / self.warmup
        if self.schedule == "constant":
            return 1.0
        return max(0.0, (self.steps - step) / max(1, self.steps - self.warmup))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


# Appendix A.3; 5e-2 is the rate that served the validation loss best, 5e-5 the one that served DailyDialog-Human. The
# squared error times 100 and one corpus a step are in the authors' code only.
PAPER = Recipe(
    "sgd",
    rate=5e-2,
    head_rate=None,
    schedule="constant",
    steps=50_000,
    warmup=5_000,
    batch_turns=20,
    clip=0.1,
    loss_scale=100.0,
    mixing="by-corpus",
    evaluate_every=1_000,
)
PAPER_HUMAN_RATE = 5e-5
RECIPES: Mapping[str, Recipe] = {"default": Recipe(), "paper": PAPER}


def _typed(usual: Shape, given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    known = {one.name for one in fields(usual)}
    for key, value in given.items():
        if key not in known:
            raise unknown_name("setting", key, known)
        kinds = (int, type(None)) if key == "classes" else (type(getattr(usual, key)),)
        if type(value) not in kinds:
            raise UsageError(f"Setting '{key}' must be {kinds[0].__name__}, found {value!r}.")
        yield key, value
