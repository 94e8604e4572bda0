"""A model asked about a whole corpus: how likely it holds the responses, and what it would have said.

A chat model answers as the assistant, so of a corpus that has one it is asked about the assistant's responses only,
unless told otherwise. Samples that do not fit into a model's window are left out. Both are counted in the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, TypeVar

from dialoscope.corpus import Corpus, Sample, Samples, samples
from dialoscope.corpus.turns import said_by
from dialoscope.errors import CorpusError, ModelError
from dialoscope.model.protocol import Account, DialogueModel, TooLong
from dialoscope.progress import Progress

AT_ONCE = 1024  # samples handed to a model at a time: enough for it to sort them by length
ALL = "all"  # responses of every speaker
ENCODING = ("layer", "pooling")  # settings of a model that only its encodings depend on
Found = TypeVar("Found")


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


def _usual(model: DialogueModel, everything: Samples) -> str:
    is_chat = getattr(model, "is_chat", False)
    has_assistant = is_chat and said_by(everything.corpus, "assistant")[everything.response].any()
    return "assistant" if has_assistant else ALL


def settings_of(asked: Asked) -> dict[str, Any]:
    """What, besides corpus and seed, the answers depend on."""
    own = {key: value for key, value in getattr(asked.model, "settings", {}).items() if key not in ENCODING}
    whose = None if asked.responses_of == ALL else asked.responses_of
    return {"model": asked.model.name, **own, "responses": whose, "context-turns": asked.context_turns}


def _account(model: DialogueModel) -> Account | None:
    """A copy of what a model has counted so far, if it counts."""
    found = getattr(model, "account", None)
    return None if found is None else Account(*(int(getattr(found, each.name, 0)) for each in fields(Account)))
