"""A model asked about a whole corpus: how likely it holds the responses, and what it would have said.

A chat model answers as the assistant, so of a corpus that has one it is asked about the assistant's responses only,
unless told otherwise. Samples that do not fit into a model's window are left out. Both are counted in the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any, TypeVar

from dialoscope.corpus import Corpus, Sample, Samples, samples
from dialoscope.corpus.turns import said_by
from dialoscope.errors import CorpusError, ModelError, UsageError
from dialoscope.metrics import Resampling, perplexity_score
from dialoscope.model.protocol import Account, Decoding, DialogueModel, TooLong
from dialoscope.record import Origin, Score

AT_ONCE = 1024  # samples handed to a model at a time: enough for it to sort them by length
ALL = "all"  # responses of every speaker
ENCODING = ("layer", "pooling")  # settings of a model that only its encodings depend on
Progress = Callable[[int, int], None]  # samples done, samples in all
Found = TypeVar("Found")


@dataclass(frozen=True)
class PerplexityResult:
    """The perplexity of a corpus's responses under a model."""

    perplexity: Score
    model: str
    corpus: str
    dialogues: int
    tokens: int
    responses_of: str = ALL
    left_out: Mapping[str, int] = field(default_factory=dict)  # reason -> responses
    account: Account | None = None  # what was cut from contexts, where the model keeps count

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        named = {"model": self.model, "corpus": self.corpus, "dialogues": self.dialogues, "tokens": self.tokens}
        chosen = {"responses_of": self.responses_of, "left_out": dict(self.left_out)}
        return {"perplexity": self.perplexity.to_dict(), **named, **chosen, **unread(self.account)}


def perplexity(
    model: DialogueModel,
    corpus: Corpus,
    *,
    context_turns: int | None = None,
    responses: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> PerplexityResult:
    """Perplexity over all response tokens, with an interval over dialogues; n counts responses.

    context_turns: None is what the model was trained with, if it says so, else all. responses: a speaker, whose
    responses are measured, or "all"; None is the assistant for a chat model and a corpus that has one, else all.
    """
    asked = Asked.of(model, corpus, context_turns=context_turns, responses=responses)
    totals, tokens, dialogues = [], [], []
    for some, found in asked.answers(_likelihoods(model), progress):
        totals += [one.total for one in found]
        tokens += [one.tokens for one in found]
        dialogues += [one.dialogue for one in some]
    if not totals:
        raise UsageError(f"{corpus.name}: every response was left out: {in_words(asked.left_out)}.")
    name = f"{corpus.name}@{corpus.fingerprint}"
    score = perplexity_score(
        totals, tokens, clusters=dialogues, resampling=Resampling(seed=seed),
        origin=Origin(name, _settings(asked), seed),
    )  # fmt: skip
    counts = len(set(dialogues)), sum(tokens)
    return PerplexityResult(score, model.name, name, *counts, asked.responses_of, dict(asked.left_out), asked.account)


def respond(
    model: DialogueModel,
    corpus: Corpus,
    *,
    decoding: Decoding | None = None,
    context_turns: int | None = None,
    responses: str | None = None,
    progress: Progress | None = None,
) -> Responses:
    """One record for each sample: dialogue, context, the model's response as `hypothesis`, the given `reference`.

    How much context and whose responses is said as in `perplexity`.
    """
    asked = Asked.of(model, corpus, context_turns=context_turns, responses=responses)
    return Responses(asked, decoding or Decoding(), progress)


@dataclass(frozen=True, eq=False)
class Asked:
    """The samples that a model is asked about, and a count of those that it is not."""

    model: DialogueModel
    samples: Samples
    responses_of: str
    context_turns: int | None
    left_out: Counter[str]
    before: Account | None

    @classmethod
    def of(cls, model: DialogueModel, corpus: Corpus, *, context_turns: int | None, responses: str | None) -> Asked:
        """Choose how much context and whose responses; those of others are left out, and counted."""
        turns = getattr(model, "context_turns", None) if context_turns is None else context_turns
        everything = samples(corpus, context_turns=turns)
        if not len(everything):
            raise CorpusError(f"{corpus.name}: expected dialogues of two turns or more, found none.")
        whose = responses or _usual(model, everything)
        chosen = everything if whose == ALL else samples(corpus, context_turns=turns, responses=whose)
        if not len(chosen):
            raise CorpusError(f"{corpus.name}: expected responses of '{whose}', found only turns that open a dialogue.")
        others = len(everything) - len(chosen)
        left_out = Counter({f"not said by {whose}": others} if others else {})
        return cls(model, chosen, whose, turns, left_out, _account(model))

    @property
    def account(self) -> Account | None:
        """What the model did not read since this began."""
        now = _account(self.model)
        if now is None or self.before is None:
            return now
        return Account(*(getattr(now, each.name) - getattr(self.before, each.name) for each in fields(Account)))

    def answers(
        self, ask: Callable[[Sequence[Sample]], list[Found]], progress: Progress | None
    ) -> Iterator[tuple[list[Sample], list[Found]]]:
        """Samples, some at a time, with what a model says to them."""
        waiting, done = iter(self.samples), 0
        while some := list(islice(waiting, AT_ONCE)):
            with enough_memory(self.model):
                found = self._answered(some, ask)
            yield found
            done += len(some)
            if progress is not None:
                progress(done, len(self.samples))

    def _answered(
        self, some: list[Sample], ask: Callable[[Sequence[Sample]], list[Found]]
    ) -> tuple[list[Sample], list[Found]]:
        try:
            return some, ask(some)
        except TooLong as error:
            self.left_out.update(f"{part} longer than the window" for part in error.parts.values())
            rest = [one for place, one in enumerate(some) if place not in error.parts]
            return rest, ask(rest)


@dataclass(frozen=True, eq=False)
class Responses:
    """Records of what a model says, made one portion after the other as they are asked for."""

    asked: Asked
    decoding: Decoding
    progress: Progress | None = None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        def write(some: Sequence[Sample]) -> list[str]:
            return self.asked.model.generate([one.context for one in some], decoding=self.decoding)

        for some, written in self.asked.answers(write, self.progress):
            for one, response in zip(some, written, strict=True):
                context = list(one.context)
                yield {"dialogue": one.dialogue, "context": context, "hypothesis": response, "reference": one.response}

    def to_dict(self) -> dict[str, Any]:
        """Whose responses were asked for, and what was left out and cut so far."""
        chosen = {"responses_of": self.asked.responses_of, "left_out": dict(self.asked.left_out)}
        return {**chosen, **unread(self.asked.account)}


def unread(account: Account | None) -> dict[str, Any]:
    """An account as JSON has it: `null` where a model keeps none."""
    if account is None:
        return {"cut": None, "unknown_share": None}
    share = account.unknown / account.words if account.words else None
    return {"cut": {"contexts": account.contexts, "turns": account.turns}, "unknown_share": share}


def in_words(left_out: Mapping[str, int]) -> str:
    """Reasons and counts as people read them."""
    return ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())


@contextmanager
def enough_memory(model: DialogueModel) -> Iterator[None]:
    """One line where memory runs out, in place of a trace through the GPU's libraries."""
    from dialoscope.model.learner import is_out_of_memory

    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        size = int(getattr(model, "batch_size", 0))
        advice = "fewer --context-turns" if size == 1 else f"a --batch-size below {size}" if size else "smaller batches"
        raise ModelError(f"Out of memory with {model.name}. Give {advice}, or --dtype bfloat16.") from error


def _likelihoods(model: DialogueModel) -> Callable[[Sequence[Sample]], list[Any]]:
    return lambda some: model.log_likelihood([one.context for one in some], [one.response for one in some])


def _usual(model: DialogueModel, everything: Samples) -> str:
    is_chat = getattr(model, "is_chat", False)
    has_assistant = is_chat and said_by(everything.corpus, "assistant")[everything.response].any()
    return "assistant" if has_assistant else ALL


def _settings(asked: Asked) -> dict[str, Any]:
    """What, besides corpus and seed, a perplexity depends on."""
    own = {key: value for key, value in getattr(asked.model, "settings", {}).items() if key not in ENCODING}
    whose = None if asked.responses_of == ALL else asked.responses_of
    named = {"metric": "perplexity", "model": asked.model.name}
    return {**named, **own, "responses": whose, "context-turns": asked.context_turns}


def _account(model: DialogueModel) -> Account | None:
    """A copy of what a model has counted so far, if it counts."""
    found = getattr(model, "account", None)
    return None if found is None else Account(*(int(getattr(found, each.name, 0)) for each in fields(Account)))
