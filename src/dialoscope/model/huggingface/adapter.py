"""The `DialogueModel` that a Hugging Face checkpoint becomes."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from dialoscope.errors import UsageError, unknown_name
from dialoscope.model.huggingface.attention import Rows, readings
from dialoscope.model.huggingface.batches import Network, in_batches
from dialoscope.model.huggingface.conversation import Joining, Separator, conversation
from dialoscope.model.huggingface.encoding import POOLINGS, encodings
from dialoscope.model.huggingface.generation import generations
from dialoscope.model.huggingface.likelihood import likelihoods
from dialoscope.model.huggingface.pretrained import check_causal, check_window, fingerprint
from dialoscope.model.huggingface.samples import ModelKind, Sample, Sampler, sampler, window_of
from dialoscope.model.huggingface.sharing import can_share, shared_likelihoods
from dialoscope.model.huggingface.tokens import Reader
from dialoscope.model.protocol import Account, Attention, Context, Decoding, Floats, Likelihood, Reading

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options:
    """How a checkpoint is read; part of what a score has to say of its origin."""

    batch_size: int = 16
    joining: Joining = "auto"
    separator: Separator = "auto"
    layer: int = -1
    pooling: str = "auto"
    window: int | None = None


@dataclass(frozen=True, eq=False)
class HuggingFaceModel:
    """A checkpoint with its tokenizer: reads contexts, scores responses, writes them."""

    checkpoint: str
    network: Network
    sampler: Sampler
    options: Options
    account: Account = field(default_factory=Account)

    @cached_property
    def name(self) -> str:
        """The checkpoint, and a fingerprint of its weights and of how it reads text."""
        tokenizer = self.sampler.reader.tokenizer
        return f"{self.checkpoint}@{fingerprint(self.network.model, tokenizer)}"

    @property
    def is_chat(self) -> bool:
        """Whether contexts are written by a chat template, so that the model answers as the assistant."""
        return self.sampler.conversation.is_chat

    @property
    def batch_size(self) -> int:
        """Contexts computed together."""
        return self.options.batch_size

    @property
    def settings(self) -> Mapping[str, Any]:
        """What, besides the weights, a number depends on."""
        joined = self.sampler.conversation
        return {
            "joining": "chat" if self.is_chat else f"plain:{joined.separator!r}",
            "layer": self.options.layer,
            "pooling": self.options.pooling,
            "window": self.sampler.window,
            "dtype": str(self.network.model.dtype).removeprefix("torch."),
        }

    def encode(self, contexts: Sequence[Context]) -> Floats:
        """Hidden states of one layer, pooled: (contexts, width)."""
        samples = self._noted(self.sampler.prompts(contexts))
        work = partial(encodings, self.network, layer=self.options.layer, pooling=self.options.pooling)
        vectors = in_batches(samples, self.options.batch_size, work)
        return np.stack(vectors) if vectors else np.zeros((0, self.network.model.config.hidden_size), np.float32)

    def attend(self, contexts: Sequence[Context], responses: Sequence[str], *, rows: Rows = "auto") -> list[Attention]:
        """Attention on each utterance, of every layer and head, the mean over the places that predict the response.

        Only utterances count, so shares are scaled to sum to 1 in every place. They are not a number where no place
        sees any utterance. rows: recompute those needed, or take all eager weights; the two agree.
        """
        self._must_write("attend")
        return [each.attention for each in self.read(contexts, responses, rows=rows)]

    def read(self, contexts: Sequence[Context], responses: Sequence[str], *, rows: Rows = "auto") -> list[Reading]:
        """Attention and likelihood in one pass; see `attend`."""
        self._must_write("read")
        samples = self._noted(self.sampler.pairs(contexts, responses))
        return in_batches(samples, self.options.batch_size, partial(readings, self.network, rows=rows))

    def log_likelihood(self, contexts: Sequence[Context], responses: Sequence[str]) -> list[Likelihood]:
        """How likely each response and its end are after its context."""
        self._must_write("log_likelihood")
        samples = self._noted(self.sampler.pairs(contexts, responses))
        return in_batches(samples, self.options.batch_size, partial(likelihoods, self.network))

    def log_likelihood_sharing(
        self, contexts: Sequence[Context], responses: Sequence[str], groups: Sequence[int]
    ) -> list[Likelihood]:
        """The same; what contexts begin with as the first of their group does is read once, if the network allows.

        It needs memory for the keys and values of two batches, as generation needs it for one.
        """
        if not self._can_share:
            return self.log_likelihood(contexts, responses)
        samples = self._noted(self.sampler.pairs(contexts, responses))
        return shared_likelihoods(self.network, samples, groups, self.options.batch_size)

    def unread_turns(self, contexts: Sequence[Context], responses: Sequence[str] | None) -> list[int]:
        """How many of each context's oldest turns do not fit into the window beside a response, given or to come."""
        if responses is not None:
            return [sample.cut for sample in self.sampler.pairs(contexts, responses)]
        room = self._room(Decoding().max_tokens)
        return [sample.cut for sample in self.sampler.prompts(contexts, room=room)]

    def generate(self, contexts: Sequence[Context], *, decoding: Decoding | None = None) -> list[str]:
        """A response to each context. A sample depends on the seed and its context; for another, change the seed."""
        self._must_write("generate")
        chosen = decoding or Decoding()
        samples = self._noted(self.sampler.prompts(contexts, room=self._room(chosen.max_tokens)))
        work = partial(generations, self.network, decoding=chosen, ends=sorted(self.sampler.ends))
        return [self._text(ids) for ids in in_batches(samples, self.options.batch_size, work)]

    @cached_property
    def _can_share(self) -> bool:
        return can_share(self.network)

    def _text(self, ids: Sequence[int]) -> str:
        tokenizer, joined = self.sampler.reader.tokenizer, self.sampler.conversation
        text = str(tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))
        if not joined.is_chat and joined.separator == "\n":
            text = text.partition("\n")[0]  # a token such as "\n\n" ends a turn too
        return text.strip()

    def _room(self, tokens: int) -> int:
        """What a response takes of the context's window; a decoder has a window of its own."""
        window = self.sampler.window
        if window is not None and tokens + len(self.network.opening) > window:
            raise UsageError(f"max_tokens={tokens} does not fit into the model's window of {window}.")
        return tokens if self.network.kind == "causal" else 0

    def _must_write(self, method: str) -> None:
        if self.network.kind == "encoder":
            raise UsageError(
                f"'{self.checkpoint}' is an encoder: it can encode, but not {method}. Use a model that writes."
            )

    def _noted(self, samples: list[Sample]) -> list[Sample]:
        """Count what was cut, and say so once."""
        cut = [each.cut for each in samples if each.cut]
        if cut and not self.account.contexts:
            said = "%s reads %s tokens: longer contexts lose their oldest turns, such as %d of the first %d."
            LOG.warning(said, self.checkpoint, self.sampler.window, len(cut), len(samples))
        self.account.contexts += len(cut)
        self.account.turns += sum(cut)
        return samples


def adapt(checkpoint: str, kind: ModelKind, model: Any, tokenizer: Any, options: Options) -> HuggingFaceModel:
    """Put a loaded network and its tokenizer together."""
    if options.pooling == "auto":
        options = Options(**{**asdict(options), "pooling": "last" if kind == "causal" else "mean"})
    if options.pooling not in POOLINGS:
        raise unknown_name("pooling", options.pooling, POOLINGS)
    if options.window is not None:
        check_window(model, options.window)
    if kind == "causal":
        check_causal(checkpoint, model)
    reader = Reader(tokenizer)
    joined = conversation(tokenizer, joining=options.joining, separator=options.separator, kind=kind)
    eos = _end_tokens(model)
    window = options.window or window_of(model.config, tokenizer)
    opening = _opening(model, reader) if kind == "encoder-decoder" else []
    # What is measured is the model and a `Decoding`, not the penalties that a checkpoint's own settings may bring.
    if kind != "encoder":
        model.generation_config = type(model.generation_config)()
    pad = next((each for each in (tokenizer.pad_token_id, tokenizer.eos_token_id) if each is not None), 0)
    chosen = sampler(kind, joined, reader, window=window, eos=eos)
    return HuggingFaceModel(checkpoint, Network(model, kind, pad, opening), chosen, options)


def _end_tokens(model: Any) -> list[int]:
    found = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    ends = [] if found is None else list(found) if isinstance(found, list | tuple) else [found]
    return [_token(each, "eos_token_id") for each in ends]


def _opening(model: Any, reader: Reader) -> list[int]:
    """What a decoder reads first: its start token, and what its tokenizer puts before a text."""
    start = model.generation_config.decoder_start_token_id
    start = model.config.decoder_start_token_id if start is None else start
    if start is None:
        start = reader.tokenizer.bos_token_id
    if start is None:
        raise UsageError("The checkpoint does not say what its decoder starts with (decoder_start_token_id).")
    return [_token(start, "decoder_start_token_id"), *reader.around[0]]


def _token(found: Any, name: str) -> int:
    if not isinstance(found, int):
        raise UsageError(f"The checkpoint's {name} must be the number of a token, found {found!r}: mend its settings.")
    return found
