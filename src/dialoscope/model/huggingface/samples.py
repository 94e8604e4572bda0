"""Contexts and responses as the token sequences a model reads, the oldest turns cut where its window is too short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from dialoscope.errors import UsageError
from dialoscope.model.huggingface.conversation import Conversation, Passage
from dialoscope.model.huggingface.tokens import NOBODY, Reader, Tokens
from dialoscope.model.protocol import Context, TooLong

ModelKind = Literal["causal", "encoder-decoder", "encoder"]
NO_LIMIT = 1_000_000  # tokenizers without a limit report a huge one


@dataclass(frozen=True, eq=False)
class Sample:
    """One context, and perhaps a response, as tokens."""

    source: list[int]  # what holds the context: a causal model's prompt, or an encoder's input
    owner: list[int]  # of each source token: its turn in the context as given, or NOBODY
    target: list[int]  # the response's own tokens and its end; of a context alone, nothing
    turns: int  # of the context as given
    cut: int  # oldest turns that did not fit

    def __len__(self) -> int:
        """Tokens of the context and the response."""
        return len(self.source) + len(self.target)

    def lengths(self) -> list[int]:
        """How many tokens each turn has, as read; 0 for one that was cut."""
        counts = [0] * self.turns
        for turn in self.owner:
            if turn != NOBODY:
                counts[turn] += 1
        return counts


@dataclass(frozen=True)
class Long:
    """A sample that does not fit whatever is cut."""

    part: str  # the one to blame: Query or response
    message: str


@dataclass(frozen=True, eq=False)
class Sampler:
    """Makes samples for one model."""

    kind: ModelKind
    conversation: Conversation
    reader: Reader
    window: int | None  # tokens a model can read at once; None: no limit
    ends: frozenset[int] = field(default_factory=frozenset)  # every token that ends a response
    end: int | None = None  # the one that a response is read with

    def prompts(self, contexts: Sequence[Context], *, room: int = 0) -> list[Sample]:
        """Contexts up to where a model would write, with room left for so many tokens."""
        return _all_fit(self._prompts(contexts, room))

    def pairs(self, contexts: Sequence[Context], responses: Sequence[str]) -> list[Sample]:
        """Contexts with the responses that follow them."""
        if len(contexts) != len(responses):
            raise UsageError(f"Every context needs one response: {len(contexts)} contexts, {len(responses)} responses.")
        if self.kind == "causal":
            read = self._read(contexts, responses)
            pairs = zip(read, responses, strict=True)
            return _all_fit([self._fit(context, response, tokens, 0) for (context, tokens), response in pairs])
        # An encoder-decoder reads the response apart from the context.
        said = [response.strip() for response in responses]
        tokens = self.reader.read([Passage(each, ((0, len(each)),)) for each in said])
        return _all_fit([self._answered(*each) for each in zip(self._prompts(contexts, 0), tokens, strict=True)])

    def _prompts(self, contexts: Sequence[Context], room: int) -> list[Sample | Long]:
        return [self._fit(context, None, tokens, room) for context, tokens in self._read(contexts, None)]

    def _read(self, contexts: Sequence[Context], responses: Sequence[str] | None) -> list[tuple[Context, Tokens]]:
        said = [None] * len(contexts) if responses is None else responses
        passages = [self.conversation.passage(*each) for each in zip(contexts, said, strict=True)]
        return list(zip(contexts, self.reader.read(passages), strict=True))

    def _fit(self, context: Context, response: str | None, tokens: Tokens, room: int) -> Sample | Long:
        """Cut the oldest turns until the rest fits; the Query and the response are never cut."""
        is_answered = response is not None
        sample, cut = self._sample(tokens, len(context), 0, is_answered=is_answered), 0
        while (over := len(sample) + room - (self.window or NO_LIMIT)) > 0:
            cut = _next_cut(sample, over)
            if cut == len(context):
                return self._too_long(sample, room)
            passage = self.conversation.passage(context[cut:], response)
            sample = self._sample(self.reader.read([passage])[0], len(context), cut, is_answered=is_answered)
        return sample

    def _sample(self, tokens: Tokens, turns: int, cut: int, *, is_answered: bool) -> Sample:
        before, after = self.reader.around if not self.conversation.is_chat else ([], [])
        after = [] if self.kind == "causal" else after
        response = turns - cut  # its place among the passage's utterances
        size = tokens.owner.index(response) if response in tokens.owner else len(tokens.ids)
        owner = [NOBODY if turn == NOBODY else turn + cut for turn in tokens.owner[:size]]
        source = [*before, *tokens.ids[:size], *after] or sorted(self.ends)[:1]
        owner = [*[NOBODY] * len(before), *owner, *[NOBODY] * (len(source) - len(before) - size)]
        return Sample(source, owner, self._ended(tokens.ids[size:]) if is_answered else [], turns, cut)

    def _ended(self, response: list[int]) -> list[int]:
        return response if self.end is None else [*response, self.end]

    def _answered(self, sample: Sample | Long, response: Tokens) -> Sample | Long:
        target = self._ended(response.ids)
        if self.window is not None and len(target) + 1 > self.window:
            return Long("response", f"A response of {len(target):,} tokens is longer than the model's {self._advice()}")
        return sample if isinstance(sample, Long) else replace(sample, target=target)

    def _too_long(self, sample: Sample, room: int) -> Long:
        """Which of the two parts that are never cut is the longer one, and what it would need."""
        query, response = sample.lengths()[-1], len(sample.target)
        part, size, other = ("response", response, "Query") if response > query else ("Query", query, "response")
        need = len(sample.source) + response + room
        with_what = f"the {other} and " if sample.target else f"{room:,} to write and " if room else ""
        about = f"A {part} of {size:,} tokens needs {need:,} with {with_what}what stands around it"
        return Long(part, f"{about}, but the model has a {self._advice()}")

    def _advice(self) -> str:
        return f"window of {self.window:,}: shorten it, leave it out, or give a larger window if the model allows."


def _all_fit(made: Sequence[Sample | Long]) -> list[Sample]:
    """The samples, if all fit; else which do not, before anything is computed."""
    long = {place: each for place, each in enumerate(made) if isinstance(each, Long)}
    if not long:
        return [each for each in made if isinstance(each, Sample)]
    more = f" {len(long) - 1:,} more of the samples are too long." if len(long) > 1 else ""
    raise TooLong(next(iter(long.values())).message + more, {place: each.part for place, each in long.items()})


def _next_cut(sample: Sample, over: int) -> int:
    """The fewest turns to cut for so many tokens to go, separators with them; all turns: the Query is too long."""
    places = [next((k for k, turn in enumerate(sample.owner) if turn >= first), 0) for first in range(sample.turns)]
    enough = [cut for cut in range(sample.cut + 1, sample.turns) if places[cut] - places[sample.cut] >= over]
    return next(iter(enough), max(sample.turns - 1, sample.cut + 1))


def window_of(config: Any, tokenizer: Any) -> int | None:
    """How many tokens a checkpoint was made to read at once, by its configuration and its tokenizer."""
    text = config.get_text_config(decoder=True) if hasattr(config, "get_text_config") else config
    known = [getattr(text, "max_position_embeddings", None), getattr(tokenizer, "model_max_length", None)]
    limits = [size for size in known if isinstance(size, int) and 0 < size < NO_LIMIT]
    return min(limits) if limits else None


def sampler(
    kind: ModelKind, conversation: Conversation, reader: Reader, *, window: int | None, eos: Sequence[int]
) -> Sampler:
    """A sampler that knows how responses end: by the template's end of turn, a newline, or the end token."""
    end = (
        reader.first_token(conversation.layout(("user",)).end)
        if kind != "encoder-decoder" or conversation.is_chat
        else None
    )
    if conversation.is_chat and end not in reader.control:
        end = None  # the template ends a turn with words or spaces: its end token then
    own = reader.tokenizer.eos_token_id
    end = end if end is not None else own if own is not None else next(iter(eos), None)
    ends = frozenset(each for each in (end, own, *eos) if each is not None)
    return Sampler(kind, conversation, reader, window, ends, end)
