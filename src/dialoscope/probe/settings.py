"""Settings of the probes: tasks, checkpoints and layers of models, the classifier and its controls."""

from __future__ import annotations

from dataclasses import dataclass

from dialoscope.errors import UsageError, unknown_name
from dialoscope.model.options import ModelOptions
from dialoscope.settings import BaseSettings, option

CLASSIFIERS = ("logistic", "mlp")
GROUPINGS = ("paper", "own")


@dataclass(frozen=True, kw_only=True)
class ProbeSettings(ModelOptions):
    """How the encodings of models are probed."""

    split: str | None = option(None, "Split that classifiers are scored on. Default: validation.", group="Data")
    train_split: str | None = option(None, "Split that classifiers learn from. Default: train.", group="Data")
    limit: int | None = option(None, "Score at most this many dialogues of the split.", group="Data", least=1)
    train_limit: int | None = option(None, "Learn from at most this many training dialogues.", group="Data", least=1)
    context_tokens: int = option(100, "Read the last tokens of each context, at most this many; 0: all.", least=0)
    checkpoints: tuple[str, ...] = option(
        (), "Checkpoints of runs of 'dialoscope train': all, untrained, best, last, epoch-003 or by:bleu_2.",
        group="Models",
    )  # fmt: skip
    layer: tuple[int, ...] = option((-1,), "Layers of Hugging Face models; -1 is the last.", group="Models")
    pooling: tuple[str, ...] = option(
        ("auto",), "How Hugging Face models pool tokens: auto, last, first, mean or query.", group="Models"
    )
    tasks: tuple[str, ...] = option(("all",), "Tasks to probe, by name or family (see: dialoscope probe tasks).")
    classifier: str = option("logistic", "Classifier; mlp has one hidden layer.", choices=CLASSIFIERS)
    scaled: bool = option(False, "Divide all encodings of a model by one number, so that they spread by 1.")
    topics_so_far: bool = option(False, "Count the topics of the context, not of the whole dialogue.")
    controls: bool = option(True, "Also measure a bag of words, untrained weights and shuffled labels.")
    groups: str = option(
        "paper", "Group tasks by difficulty as the paper does, or by this run's untrained scores.", choices=GROUPINGS
    )
    seed: int = option(
        0, "Random seed for splitting, shuffled labels, untrained weights and intervals.", group="Statistics", least=0
    )
    picture_by: str | None = option(
        None, "Task whose labels colour the pictures of encodings.", group="Reports", decides=False
    )

    def check(self) -> None:
        """Refuse unknown tasks, and groups by untrained scores that are not measured."""
        for name in ("tasks", "layer", "pooling"):
            if not getattr(self, name):
                raise UsageError(f"{name} is empty: name at least one.")
        if self.groups == "own" and not self.controls:
            raise UsageError("groups = own groups tasks by untrained scores, which are controls: leave controls on.")
        if self.tasks != ("all",) or self.picture_by is not None:
            from dialoscope.probe.tasks import chosen_tasks  # loads numpy, which --help does without

            chosen = chosen_tasks(self.tasks)
            if self.picture_by is not None and self.picture_by not in chosen:
                raise unknown_name("task to colour pictures by", self.picture_by, list(chosen))


@dataclass(frozen=True, kw_only=True)
class TiesSettings(BaseSettings):
    """How studies are drawn from judgements of pairs of responses."""

    draws: int = option(50_000, "Studies to draw.", least=1)
    size: int = option(200, "Judgements in each study.", least=1)
    seed: int = option(0, "Random seed for drawing studies and intervals.", group="Statistics", least=0)


@dataclass(frozen=True, kw_only=True)
class TasksSettings(BaseSettings):
    """On which dialogues labels are counted."""

    train_split: str | None = option(None, "Split whose labels are counted. Default: train.", group="Data")
    train_limit: int | None = option(None, "Read at most this many dialogues of the split.", group="Data", least=1)
