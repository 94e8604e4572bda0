"""A model asked about a whole corpus: how likely it holds the responses, and what it would have said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from turnwise.corpus import Corpus, Sample, samples
from turnwise.errors import CorpusError
from turnwise.metrics import Resampling, perplexity_score
from turnwise.model.protocol import Decoding, DialogueModel
from turnwise.record import Origin, Score

AT_ONCE = 1024  # samples handed to a model at a time: enough for it to sort them by length
Progress = Callable[[int, int], None]  # samples done, samples in all


@dataclass(frozen=True)
class PerplexityResult:
    """The perplexity of a corpus's responses under a model."""

    perplexity: Score
    model: str
    corpus: str
    dialogues: int
    tokens: int

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        named = {"model": self.model, "corpus": self.corpus, "dialogues": self.dialogues, "tokens": self.tokens}
        return {"perplexity": self.perplexity.to_dict(), **named}


def perplexity(
    model: DialogueModel,
    corpus: Corpus,
    *,
    context_turns: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> PerplexityResult:
    """Perplexity over all response tokens, with an interval over dialogues; n counts responses."""
    totals, tokens, dialogues = [], [], []
    for some in _portions(corpus, context_turns, progress):
        found = model.log_likelihood([one.context for one in some], [one.response for one in some])
        totals += [one.total for one in found]
        tokens += [one.tokens for one in found]
        dialogues += [one.dialogue for one in some]
    name = f"{corpus.name}@{corpus.fingerprint}"
    settings = {"metric": "perplexity", "model": model.name, "context-turns": context_turns}
    score = perplexity_score(
        totals, tokens, clusters=dialogues, resampling=Resampling(seed=seed), origin=Origin(name, settings, seed)
    )
    return PerplexityResult(score, model.name, name, len(set(dialogues)), sum(tokens))


def respond(
    model: DialogueModel,
    corpus: Corpus,
    *,
    decoding: Decoding | None = None,
    context_turns: int | None = None,
    progress: Progress | None = None,
) -> Iterator[dict[str, Any]]:
    """One record for each sample: dialogue, context, the model's response as `hypothesis`, the given `reference`."""
    for some in _portions(corpus, context_turns, progress):
        written = model.generate([one.context for one in some], decoding=decoding)
        for one, response in zip(some, written, strict=True):
            context = list(one.context)
            yield {"dialogue": one.dialogue, "context": context, "hypothesis": response, "reference": one.response}


def _portions(corpus: Corpus, context_turns: int | None, progress: Progress | None) -> Iterator[list[Sample]]:
    found = samples(corpus, context_turns=context_turns)
    if not len(found):
        raise CorpusError(f"{corpus.name}: expected dialogues of two turns or more, found none.")
    waiting, done = iter(found), 0
    while some := list(islice(waiting, AT_ONCE)):
        yield some
        done += len(some)
        if progress is not None:
            progress(done, len(found))
