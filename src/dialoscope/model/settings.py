"""What can be chosen about training a model, its perplexity, and its responses."""

from __future__ import annotations

from dataclasses import dataclass

from dialoscope.errors import UsageError, unknown_name
from dialoscope.model.options import ModelOptions
from dialoscope.model.presets import PRESETS
from dialoscope.settings import BaseSettings, option

TOKENS = ("words", "bpe")
BEST_BY = ("perplexity", "bleu-2")
METHODS = ("greedy", "beam", "sample")
JOININGS = ("auto", "chat", "plain")
SEPARATORS = ("auto", "newline", "eos")
BEAMS = 4  # of beam search, where no other number is given


@dataclass(frozen=True, kw_only=True)
class TrainSettings(BaseSettings):
    """Which model is trained, on what, and for how long."""

    train_split: str | None = option(None, "Split to train on. Default: train.", group="Data")
    validation_split: str | None = option(None, "Split to validate on. Default: validation.", group="Data")
    limit: int | None = option(None, "Maximum dialogues of the training split.", group="Data", least=1)
    context_turns: int | None = option(None, "Maximum turns of context. Default: all.", group="Data", least=1)
    preset: str = option(
        "static-ui", "Model of a paper (see: dialoscope presets).", group="Papers", choices=tuple(PRESETS)
    )
    set: tuple[str, ...] = option(
        (), "Change the preset's settings: 'layers=2 width=64'.", group="Papers", metavar="KEY=VALUE", is_repeated=True
    )
    tokens: str = option("words", "Whole words, or pieces that are learnt (bpe).", choices=TOKENS)
    epochs: int | None = option(None, "Maximum epochs. Default: the preset's.", least=1)
    batch_size: int | None = option(None, "Samples in a step. Default: the preset's.", least=1)
    best_by: str | None = option(
        None, "Measure that chooses the best checkpoint. Default: the preset's.", choices=BEST_BY
    )
    log_metrics: tuple[str, ...] = option((), "Further metrics for the log of each epoch, such as rouge-l.")
    device: str = option(
        "auto", "Where the model is trained: auto, cpu, cuda or cuda:N.", group="Models", decides=False
    )
    dtype: str | None = option(
        None, "bfloat16 is mixed precision. Default: the preset's.", group="Models", choices=("float32", "bfloat16")
    )
    seed: int = option(0, "Random seed of weights, batches and splits.", group="Statistics", least=0)

    def check(self) -> None:
        """Each change is KEY=VALUE."""
        from dialoscope.metrics.settings import NAMES

        for name in self.log_metrics:
            if name not in NAMES:
                raise unknown_name("metric", name, NAMES)
        for change in self.changes:
            name, sign, word = change.partition("=")
            if not sign or not name or not word:
                raise UsageError(f"set takes KEY=VALUE, such as layers=2, found '{change}'.")

    @property
    def changes(self) -> tuple[str, ...]:
        """Each change of a setting by itself; one text may hold several, separated by blanks."""
        return tuple(word for text in self.set for word in text.split())


@dataclass(frozen=True, kw_only=True)
class AskingSettings(ModelOptions):
    """What is common to all questions to models about a corpus: which responses, and how contexts are read."""

    split: str | None = option(None, "Split to read. Default: test.", group="Data")
    limit: int | None = option(None, "Maximum dialogues of the split.", group="Data", least=1)
    context_turns: int | None = option(
        None, "Maximum turns of context. Default: as the model was trained, or all.", group="Data", least=1
    )
    responses: str | None = option(
        None, "Whose responses: a speaker, or 'all'. Default: the assistant's for a chat model, where there is one.",
        group="Data",
    )  # fmt: skip
    window: int | None = option(
        None, "Tokens that a Hugging Face model reads at once. Default: its own limit.", group="Models", least=1
    )
    joining: str = option(
        "auto", "How a Hugging Face model's context is joined: by its chat template, or plainly.",
        group="Models", choices=JOININGS,
    )  # fmt: skip
    separator: str = option("auto", "What separates plainly joined turns.", group="Models", choices=SEPARATORS)

    @property
    def reading(self) -> dict[str, str | int | None]:
        """How Hugging Face models read contexts, as `open_models` takes it."""
        return {"window": self.window, "joining": self.joining, "separator": self.separator}


@dataclass(frozen=True, kw_only=True)
class PerplexitySettings(AskingSettings):
    """Whose responses a perplexity is about, and how models read them."""

    seed: int = option(0, "Random seed of the intervals.", group="Statistics", least=0)


@dataclass(frozen=True, kw_only=True)
class GenerateSettings(AskingSettings):
    """How responses are generated."""

    method: str = option("greedy", "How words are chosen.", choices=METHODS)
    beams: int = option(BEAMS, "Beams of beam search.", least=1)
    temperature: float = option(1.0, "Temperature of sampling.", above=0)
    top_k: int = option(0, "Sample from this many words; 0: all.", least=0)
    top_p: float = option(1.0, "Sample from the likeliest words of this total share.", least=0, most=1)
    max_tokens: int = option(40, "Maximum tokens of a response.", least=1)
    seed: int = option(0, "Random seed of sampling.", group="Statistics", least=0)

    def check(self) -> None:
        """Options of one method mean nothing to another."""
        if self.method != "sample" and (self.temperature, self.top_k, self.top_p, self.seed) != (1.0, 0, 1.0, 0):
            raise UsageError("temperature, top_k, top_p and seed are for sampling: give method sample with them.")
        if self.method != "beam" and self.beams != BEAMS:
            raise UsageError("beams is for beam search: give method beam with it.")
