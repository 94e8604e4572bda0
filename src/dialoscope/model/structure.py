"""What a sequence-to-sequence model is made of, and how it is trained: two frozen records that travel as JSON."""

from __future__ import annotations

import dataclasses
import itertools
import json
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, Union, get_args, get_origin, get_type_hints

from dialoscope.errors import UsageError, unknown_name

EncoderKind = Literal["lstm", "bilstm", "hierarchical", "transformer"]
AttentionKind = Literal["none", "token", "static", "dynamic"]
Scoring = Literal["dot", "additive"]
Norm = Literal["post", "pre"]
Optimiser = Literal["sgd", "adam"]
Precision = Literal["fp32", "bf16"]
LossOver = Literal["tokens", "responses"]


@dataclass(frozen=True)
class Checked:
    """A record whose values are checked when it is made: types by their annotations, then what `faults` says."""

    def __post_init__(self) -> None:
        for fault in itertools.chain(_type_faults(self), self.faults()):
            raise UsageError(fault)

    def faults(self) -> Iterator[str]:
        """What does not fit, each in one line."""
        yield from ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The record of a JSON object; an unknown name or a wrong value is an error."""
        for name in values:
            if name not in _types(cls):
                raise unknown_name("setting", name, _types(cls))
        return cls(**values)

    def override(self, values: Mapping[str, str]) -> Self:
        """The same with some values given as words on a command line: ``{"layers": "2", "integration": "true"}``."""
        return self.from_dict({**self.to_dict(), **{name: read_word(word) for name, word in values.items()}})


@dataclass(frozen=True)
class Structure(Checked):
    """The structure of a model; two models with the same settings have the same weights by name and shape."""

    encoder: EncoderKind = "lstm"
    attention: AttentionKind = "none"  # over tokens; or over utterances, asked by the Query or by the decoder
    scoring: Scoring = "dot"
    integration: bool = False  # an LSTM over the utterances starts the decoder (equation 6)
    layers: int = 2  # of the encoder, and as many of the decoder
    width: int = 256
    embedding: int = 256
    heads: int = 1  # of a transformer
    norm: Norm = "post"  # of a transformer: after each block (Vaswani et al.) or before it (Rush)
    dropout: float = 0.0
    vocabulary: int = 25_000
    shared_embedding: bool = True  # one table of word vectors for contexts and responses
    words_within: float | None = None  # word vectors start within ± this; None: normal, of a standard deviation of 1
    context_tokens: int | None = None  # only the last ones are read; None: all

    def faults(self) -> Iterator[str]:
        """Sizes out of range, and parts that exclude each other."""
        yield from _not_positive(self, "layers", "width", "embedding", "heads", "vocabulary", "context_tokens")
        yield from _not_positive(self, "words_within")
        if not 0 <= self.dropout < 1:
            yield f"dropout is {self.dropout}, expected a share from 0 to below 1"
        yield from self._transformer_faults() if self.encoder == "transformer" else self._recurrent_faults()

    @property
    def ignored(self) -> frozenset[str]:
        """Structure that change nothing in a model of this structure."""
        unused = {"words_within"} if self.encoder == "transformer" else {"heads", "norm"}
        return frozenset(unused | ({"scoring"} if self.attention == "none" else set()))

    def _recurrent_faults(self) -> Iterator[str]:
        if self.encoder == "hierarchical" and self.attention == "token":
            yield "a hierarchical encoder keeps utterances, not tokens: set attention to static, dynamic or none"
        if self.encoder == "hierarchical" and self.integration:
            yield "a hierarchical encoder already has an LSTM over utterances: set integration to false"
        if self.encoder == "bilstm" and self.integration:
            yield "integration needs states that read forward: set encoder to lstm"

    def _transformer_faults(self) -> Iterator[str]:
        if self.attention != "token" or self.scoring != "dot" or self.integration:
            yield "a transformer attends to tokens by dot product: set attention=token scoring=dot integration=false"
        if self.width % (2 * self.heads):
            yield f"width {self.width} is no multiple of twice the {self.heads} heads"
        if self.embedding != self.width:
            yield f"a transformer's embedding is as wide as its layers: embedding {self.embedding}, width {self.width}"


@dataclass(frozen=True)
class Recipe(Checked):
    """How a model is trained: what the training loop reads."""

    optimiser: Optimiser = "adam"
    learning_rate: float = 1e-3
    warmup: int = 0  # steps over which the rate rises to the learning rate
    halve_when_stalled: bool = False  # the rate, whenever validation perplexity stops falling
    epochs: int = 25  # at most
    batch_size: int = 64
    loss_over: LossOver = "tokens"  # what the loss is a mean over; a response's tokens are summed then
    clip: float | None = None  # of the gradient's norm
    patience: int | None = None  # epochs without a better validation perplexity before it ends; None: all epochs
    precision: Precision = "fp32"  # bf16: products under autocast; weights and optimiser stay in fp32

    def faults(self) -> Iterator[str]:
        """Amounts out of range."""
        yield from _not_positive(self, "learning_rate", "epochs", "batch_size", "clip", "patience")
        if self.warmup < 0:
            yield f"warmup is {self.warmup}, expected 0 or more steps"


def _not_positive(record: Checked, *names: str) -> Iterator[str]:
    for name in names:
        value = getattr(record, name)
        if value is not None and not value > 0:
            yield f"{name} is {value}, expected more than 0"


def _type_faults(record: Checked) -> Iterator[str]:
    for name, expected in _types(type(record)).items():
        value = getattr(record, name)
        if not _fits(value, expected):
            choices = get_args(expected) if get_origin(expected) is Literal else ()
            if isinstance(value, str) and choices:
                raise unknown_name(name, value, choices)
            yield f"{name} is {value!r}, expected {' or '.join(choices) if choices else _word(expected)}"


def _fits(value: Any, expected: Any) -> bool:
    if get_origin(expected) in (Union, types.UnionType):
        return any(_fits(value, one) for one in get_args(expected))
    if get_origin(expected) is Literal:
        return isinstance(value, str) and value in get_args(expected)
    if isinstance(value, bool) or expected is bool:
        return isinstance(value, bool) and expected is bool
    return isinstance(value, (int, float) if expected is float else expected)


def _word(expected: Any) -> str:
    return str(getattr(expected, "__name__", expected)).replace("NoneType", "nothing")


def _types(record: type[Checked]) -> dict[str, Any]:
    hints = get_type_hints(record)
    return {field.name: hints[field.name] for field in dataclasses.fields(record)}


def changed(settings: Structure, recipe: Recipe, values: Mapping[str, Any]) -> tuple[Structure, Recipe]:
    """Both with some values changed, each in the one that has it."""
    ours, theirs = settings.to_dict(), recipe.to_dict()
    for name in values:
        if name not in ours and name not in theirs:
            raise unknown_name("setting", name, [*ours, *theirs])
    new = [{**old, **{name: value for name, value in values.items() if name in old}} for old in (ours, theirs)]
    return settings.from_dict(new[0]), recipe.from_dict(new[1])


def read_word(word: str) -> Any:
    """The value that a word on a command line means."""
    try:
        return json.loads({"none": "null", "None": "null"}.get(word, word))
    except json.JSONDecodeError:
        return word
