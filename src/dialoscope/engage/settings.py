"""What can be asked about remaining depth and ratings, and how predictors are trained and score."""

from __future__ import annotations

from dataclasses import dataclass

from dialoscope.errors import UsageError
from dialoscope.model.options import ModelOptions
from dialoscope.settings import option

POOLINGS = ("mean", "cls", "max", "min")
ACTIVATIONS = ("clamp", "sigmoid")
MIXINGS = ("proportional", "by-corpus")
OPTIMISERS = ("adamw", "sgd")
SCHEDULES = ("linear", "constant")
DTYPES = ("float32", "bfloat16")
RECIPE_NAMES = ("default", "paper")
SELECTIONS = ("valloss", "human")
ENCODER = "minilm"  # the usual one
# Settings of PredictorSettings that belong to the predictor itself, and those that change its recipe of training.
SHAPE = ("history", "flat", "pooling", "activation", "classes", "tokens")
RECIPE = (
    "optimiser", "rate", "head_rate", "schedule", "steps", "warmup", "batch_turns", "clip", "loss_scale", "mixing",
    "evaluate_every", "patience",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PredictorOptions(ModelOptions):
    """How predictors are run. Scores do not depend on what else is in a batch, so memory decides how large it is."""

    dtype: str = option("float32", "Number type of the encoder's passes.", group="Models", choices=DTYPES)
    batch_size: int | None = option(  # type: ignore[assignment]
        None, "Turns encoded together. Default: as many as fit.", group="Models", least=1, decides=False
    )


@dataclass(frozen=True, kw_only=True)
class DepthSettings(PredictorOptions):
    """How well remaining depth is predicted: by the given predictors, or by two that are fitted here."""

    split: str | None = option(None, "Split to measure. Default: test.", group="Data")
    train_split: str | None = option(None, "Split to learn from. Default: train.", group="Data")
    validation_split: str | None = option(
        None, "Split to choose by, without --model. Default: validation.", group="Data"
    )
    limit: int | None = option(None, "Measure at most this many dialogues of the split.", group="Data", least=1)
    train_limit: int | None = option(
        None, "Learn from, and choose by, at most this many dialogues.", group="Data", least=1
    )
    least_turns: int | None = option(None, "Leave out dialogues of fewer messages.", group="Data", least=1)
    most_turns: int | None = option(None, "Leave out dialogues of more messages.", group="Data", least=1)
    encoder: str = option(
        ENCODER, "Encoder of the predictors fitted here, without --model.", group="Models", metavar="PATH"
    )
    history: int = option(2, "Previous turns that they average a turn with.", group="Models", least=0)
    seed: int = option(0, "Random seed of the splits, the fit and the intervals.", group="Statistics", least=0)

    def check(self) -> None:
        """Limits of length go together."""
        check_lengths(self.least_turns, self.most_turns)


@dataclass(frozen=True, kw_only=True)
class RatingsSettings(PredictorOptions):
    """How far scores agree with people's ratings."""

    split: tuple[str, ...] = option((), "Read only these splits of rated corpora.", group="Data")
    limit: int | None = option(None, "Measure at most this many rated turns of each set.", group="Data", least=1)
    aspect: str | None = option(None, "What people rated. Default: engagement.", group="Data")
    metrics: tuple[str, ...] = option((), "Columns of a table that are other metrics.", group="Data")
    annotators: tuple[str, ...] = option((), "Columns of a table that are people. Default: all numbers.", group="Data")
    reported_half: bool = option(False, "Measure only the half that predictors are never selected on.", group="Data")
    single_turn: bool = option(False, "Read the rated turn alone.", group="Papers")
    reproduce_paper: bool = option(False, "Keep turns that a predictor was selected on, marked.", group="Papers")
    seed: int = option(0, "Random seed of the intervals.", group="Statistics", least=0)


@dataclass(frozen=True, kw_only=True)
class ScoreSettings(PredictorOptions):
    """Which dialogues get a score for every turn."""

    split: tuple[str, ...] = option((), "Score only these splits.", group="Data")
    limit: int | None = option(None, "Score at most this many dialogues.", group="Data", least=1)


@dataclass(frozen=True, kw_only=True)
class PredictorSettings(PredictorOptions):
    """What a predictor is made of, what it learns from, and how."""

    train_split: str | None = option(None, "Split to learn from. Default: train.", group="Data")
    validation_split: str | None = option(None, "Split to choose by. Default: validation.", group="Data")
    limit: int | None = option(
        None, "Learn from, and choose by, at most this many dialogues of each corpus.", group="Data", least=1
    )
    least_turns: int | None = option(None, "Leave out dialogues of fewer messages.", group="Data", least=1)
    most_turns: int | None = option(None, "Leave out dialogues of more messages.", group="Data", least=1)
    scores: str | None = option(
        None, "Learn the score of whole dialogues in this label: eval=1:5.", group="Data", metavar="LABEL=LOW:HIGH"
    )
    shuffled: bool = option(False, "Learn other turns' labels: a control.", group="Data")

    start: str | None = option(None, "Predictor to start from.", group="Predictor", metavar="PATH")
    encoder: str | None = option(
        None, f"Encoder: a folder or a hub name. Default: {ENCODER}.", group="Predictor", metavar="PATH"
    )
    history: int | None = option(
        None, "Previous turns that a turn is averaged with. Default: 0.", group="Predictor", least=0
    )
    flat: bool = option(False, "Read them with the turn as one text.", group="Predictor")
    pooling: str | None = option(
        None, "How a text's vectors become one. Default: mean.", group="Predictor", choices=POOLINGS
    )
    activation: str | None = option(
        None, "What limits a score to 0 … 1. Default: clamp.", group="Predictor", choices=ACTIVATIONS
    )
    classes: int | None = option(None, "Predict this many classes, not a number.", group="Predictor", least=2)
    tokens: int | None = option(None, "Maximum tokens of a text. Default: 128.", group="Predictor", least=3)

    frozen: bool = option(False, "Fit the linear layer alone, in seconds.", group="Training")
    recipe: str = option("default", "How the encoder is tuned; paper: appendix A.3.", group="Training",
                         choices=RECIPE_NAMES)  # fmt: skip
    steps: int | None = option(None, "Steps of training.", group="Training", least=1)
    rate: float | None = option(None, "Learning rate of the encoder.", group="Training", above=0)
    head_rate: float | None = option(None, "Learning rate of the linear layer.", group="Training", above=0)
    batch_turns: int | None = option(None, "Turns of a step, in whole dialogues.", group="Training", least=1)
    optimiser: str | None = option(None, "Optimiser.", group="Training", choices=OPTIMISERS)
    schedule: str | None = option(None, "Learning rate after the warm-up.", group="Training", choices=SCHEDULES)
    warmup: int | None = option(None, "Steps in which the learning rate rises.", group="Training", least=0)
    clip: float | None = option(None, "Largest norm of a gradient.", group="Training", above=0)
    loss_scale: float | None = option(None, "Factor of the squared error.", group="Training", above=0)
    mixing: str | None = option(None, "How several corpora are mixed.", group="Training", choices=MIXINGS)
    evaluate_every: int | None = option(None, "Steps between evaluations.", group="Training", least=1)
    patience: int | None = option(None, "Stop after this many evaluations without a gain.", group="Training", least=1)
    dtype: str | None = option(  # type: ignore[assignment]
        None, "Number type of the passes. Default: bfloat16 on a GPU that tunes.", group="Training", choices=DTYPES
    )
    select: str = option("valloss", "What the best step is chosen by.", group="Training", choices=SELECTIONS)
    human: str | None = option(
        None, "Rated turns to select by; half of them are never used.", group="Training", metavar="PATH"
    )
    reproduce_paper: bool = option(False, "Select by the whole rated set.", group="Papers")
    seed: int = option(0, "Random seed of the splits and of training.", group="Statistics", least=0)

    def check(self) -> None:
        """Refuse settings that would do nothing."""
        check_lengths(self.least_turns, self.most_turns)
        changed = self.changed()
        if self.start is not None and (others := [name for name in ("encoder", *SHAPE) if name in changed]):
            raise UsageError(f"start goes on with a predictor as it is: leave out {_options(others)}.")
        if self.frozen and (others := [name for name in TUNING if name in changed]):
            raise UsageError(f"frozen finds its optimum at once: leave out {_options(others)}.")
        if self.select == "human" and self.human is None:
            raise UsageError("select = human needs turns that people rated: give --human.")
        if self.reproduce_paper and self.select != "human":
            raise UsageError("reproduce_paper selects by the whole rated set: give --select human, or leave it out.")


TUNING = ("recipe", *RECIPE, "select", "human", "reproduce_paper")  # what a frozen encoder has no use for


def check_lengths(least: int | None, most: int | None) -> None:
    """Refuse limits that no dialogue can meet."""
    if least is not None and most is not None and least > most:
        raise UsageError(f"least_turns is at most most_turns; found {least} and {most}.")


def _options(names: list[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)
