"""What a model says to every context of a split: one record for each response."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from dialoscope.corpus import Corpus, Sample
from dialoscope.corpus.split import split_to_read
from dialoscope.errors import UsageError
from dialoscope.files import whole_file
from dialoscope.metrics.pairs import Pairs
from dialoscope.model.answers import Asked, unread
from dialoscope.model.loading import open_models
from dialoscope.model.protocol import Decoding, DialogueModel
from dialoscope.model.settings import GenerateSettings
from dialoscope.progress import Progress
from dialoscope.settings import with_options


@dataclass(frozen=True, eq=False)
class Responses:
    """Records of what a model says, made one portion after the other as they are asked for.

    A record holds the dialogue's id, the context, the response as `hypothesis`, and the corpus's own as `reference`.
    """

    asked: Asked
    decoding: Decoding
    used: str = ""
    progress: Progress | None = None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        def write(some: Sequence[Sample]) -> list[str]:
            return self.asked.model.generate([sample.context for sample in some], decoding=self.decoding)

        for some, written in self.asked.answers(write, self.progress):
            for sample, response in zip(some, written, strict=True):
                texts = {"hypothesis": response, "reference": sample.response}
                yield {"dialogue": sample.dialogue, "context": list(sample.context), **texts}

    def __len__(self) -> int:
        return len(self.asked.samples)

    def pairs(self) -> Pairs:
        """The responses beside the corpus's own, ready for `dialoscope.metrics.measure`."""
        records = list(self)
        columns = [[record[name] for record in records] for name in ("hypothesis", "reference", "dialogue")]
        return Pairs(columns[0], columns[1], columns[2], name=self.asked.model.name)

    def save(self, path: str | Path, *, overwrite: bool = False) -> int:
        """Write the records as JSONL, whole or not at all, and return their number."""
        count = 0
        with whole_file(path, overwrite=overwrite) as unfinished, unfinished.open("wb") as file:
            for record in self:
                file.write(orjson.dumps(record) + b"\n")
                count += 1
        return count

    def to_dict(self) -> dict[str, Any]:
        """Whose responses were asked for, and what was left out and cut so far."""
        chosen = {"responses_of": self.asked.responses_of, "left_out": dict(self.asked.left_out)}
        return {**chosen, **unread(self.asked.account)}


def generate(
    corpus: Corpus,
    model: Any,
    *,
    settings: GenerateSettings | None = None,
    progress: Progress | None = None,
    quiet: bool = False,
    **options: Any,
) -> Responses:
    """Let a model answer every context of a split; the same settings give the same responses.

    `model` is a path, a hub name, a loaded model or a (model, tokenizer) pair. Responses are generated as they are
    read: iterate over them, `save` them, or give their `pairs()` to `dialoscope.metrics.measure`.

    >>> generate(load("concierge"), "run", split="test").save("said.jsonl")         # doctest: +SKIP
    """
    settings = with_options(settings, GenerateSettings, options)
    if not isinstance(corpus, Corpus):
        raise UsageError(f"generate takes a Corpus, found {type(corpus).__name__}. Load it with dialoscope.load.")
    chosen, _, used = split_to_read(corpus, split=settings.split, limit=settings.limit)
    opened = open_models({"model": model}, settings, quiet=quiet, **settings.reading)["model"]
    decoding = Decoding(
        settings.method,  # type: ignore[arg-type]
        beams=settings.beams,
        temperature=settings.temperature,
        top_k=settings.top_k,
        top_p=settings.top_p,
        max_tokens=settings.max_tokens,
        seed=settings.seed,
    )
    whose = {"context_turns": settings.context_turns, "responses": settings.responses}
    return Responses(Asked.of(opened, chosen, **whose), decoding, used, progress)  # type: ignore[arg-type]


def respond(
    model: DialogueModel,
    corpus: Corpus,
    *,
    decoding: Decoding | None = None,
    context_turns: int | None = None,
    responses: str | None = None,
    progress: Progress | None = None,
) -> Responses:
    """The responses of a loaded model to all of a corpus."""
    asked = Asked.of(model, corpus, context_turns=context_turns, responses=responses)
    return Responses(asked, decoding or Decoding(), progress=progress)
