"""Examples into batches: cut, padded, sorted into buckets of like length, and made ready in a thread.

A context longer than `context_tokens` loses its oldest tokens. Utterances that are cut away whole vanish, and those
that remain are counted from 0 again, so the first one may lack its beginning; `is_distraction` follows: a distraction
that vanished is no column any more, one that lost its beginning still is one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from queue import Full, Queue
from typing import TYPE_CHECKING, Any, TypeVar

import numba
import numpy as np

from dialoscope.errors import UsageError
from dialoscope.model.batch import Batch
from dialoscope.model.examples import Examples, Flags, Ids, Ints, Turns, ends_of
from dialoscope.model.vocabulary import END, PAD, START, TURN

if TYPE_CHECKING:
    import torch

NO_LIMIT = np.iinfo(np.int64).max
BATCHES_SORTED_TOGETHER = 64  # large enough for little padding, small enough for batches that differ every epoch
LIKE = 8  # contexts that differ by fewer tokens are alike, and sorted by their responses
Item = TypeVar("Item")


@dataclass(frozen=True)
class Shapes:
    """Widths that batches are padded up to, so that few different shapes occur: for compiled and captured graphs.

    A width over the largest one is padded up to a multiple of it.
    """

    tokens: tuple[int, ...] = (32, 64, 96, 128, 192, 256)
    utterances: tuple[int, ...] = (4, 8, 16, 32)
    steps: tuple[int, ...] = (16, 32, 64)

    def fit(self, widths: tuple[int, int, int], *, most_tokens: int | None = None) -> tuple[int, int, int]:
        """The smallest widths of these that hold a batch of tokens, at most so many, utterances and steps."""
        tokens, utterances, steps = widths
        wide = _fit(tokens, self.tokens)
        wide = wide if most_tokens is None else min(wide, most_tokens)
        return wide, _fit(utterances, self.utterances), _fit(steps, self.steps)


def _fit(width: int, choices: tuple[int, ...]) -> int:
    largest = max(choices)
    return min((one for one in choices if one >= width), default=-(-width // largest) * largest)


def shapes_for(device: torch.device) -> Shapes | None:
    """Few shapes for a GPU, where each is captured as a graph of its own; elsewhere padding is only work."""
    return Shapes() if device.type == "cuda" else None


# --- One batch --------------------------------------------------------------------------------------------------------


def collate(
    contexts: Sequence[Sequence[Sequence[int]]],
    responses: Sequence[Sequence[int]],
    *,
    is_distraction: Sequence[Sequence[bool]] | None = None,
    context_tokens: int | None = None,
    shapes: Shapes | None = None,
) -> Batch:
    """A batch from token ids: each context is its turns, without marks, which are put in here.

    >>> batch = collate([[[7, 8], [9]]], [[6]])
    >>> batch.context.tolist(), batch.end.tolist(), batch.response.tolist()
    ([[7, 8, 4, 9, 4]], [[2, 4]], [[2, 6, 3]])
    """
    if len(contexts) != len(responses) or not all(map(len, contexts)):
        raise UsageError(
            f"Expected {len(responses)} contexts of at least one turn each, found {[*map(len, contexts)]}."
        )
    counts = np.array([len(context) for context in contexts], dtype=np.int64)
    every = [turn for context in contexts for turn in context] + list(responses)
    turns = Turns(
        np.array([one for turn in every for one in (*turn, TURN)], dtype=np.int32),
        ends_of(np.array([len(turn) + 1 for turn in every], dtype=np.int64)),
        np.zeros(1, dtype=np.int64),
    )
    total, size = int(counts.sum()), len(contexts)
    flags = np.zeros(total, dtype=bool)
    if is_distraction is not None:
        flags[:] = [flag for row in is_distraction for flag in row]
    places = np.arange(total + size)
    examples = Examples(turns, places[:total], flags, ends_of(counts), places[total:], np.zeros(size, dtype=np.int64))
    return collate_examples(examples, np.arange(size), context_tokens=context_tokens, shapes=shapes)


def collate_examples(
    examples: Examples, rows: Ints, *, context_tokens: int | None = None, shapes: Shapes | None = None
) -> Batch:
    """The examples at these rows as one batch: compiled, and without the interpreter's lock."""
    import torch

    if context_tokens is not None and context_tokens < 1:
        raise UsageError(f"A context has at least one token, found context_tokens={context_tokens}.")
    parts = examples.turns.offsets, examples.context, examples.offsets, examples.response, rows
    length, utterances, steps = _measure(*parts, NO_LIMIT if context_tokens is None else context_tokens)
    widths = (int(length.max()), int(utterances.max()), int(steps.max()))
    if shapes is not None:
        widths = shapes.fit(widths, most_tokens=context_tokens)
    arrays = _fill(examples.turns.tokens, *parts, examples.is_distraction, length, utterances, *widths)
    context, utterance, end, flags, response = map(torch.from_numpy, arrays)
    lengths = map(torch.from_numpy, (length, utterances, steps))
    tokens, turns, targets = lengths
    real_places = torch.from_numpy(np.flatnonzero(np.arange(response.shape[1] - 1) < steps[:, None]))
    return Batch(
        context, tokens, utterance, end, turns, flags, response, targets, real_places, steps=tuple(steps.tolist())
    )


@numba.njit(cache=True, nogil=True)
def _measure(
    begins: Ints, context: Ints, offsets: Ints, response: Ints, rows: Ints, limit: int
) -> tuple[Ints, Ints, Ints]:
    """Tokens and utterances of each context that are within the limit, counted from the Query back, and steps."""
    length, utterances = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    steps = np.zeros(len(rows), dtype=np.int64)
    for row, example in enumerate(rows):
        for place in context[offsets[example] : offsets[example + 1]][::-1]:
            if length[row] >= limit:
                break
            length[row] = min(limit, length[row] + begins[place + 1] - begins[place])
            utterances[row] += 1
        steps[row] = begins[response[example] + 1] - begins[response[example]]
    return length, utterances, steps


@numba.njit(cache=True, nogil=True)
def _fill(
    tokens: Ids, begins: Ints, context: Ints, offsets: Ints, response: Ints, rows: Ints, distractions: Flags,
    length: Ints, utterances: Ints, width: int, most_utterances: int, most_steps: int,
) -> tuple[Ints, Ints, Ints, Flags, Ints]:  # fmt: skip
    """Context ids, the utterance of each, the last token and the flag of each utterance, and response ids."""
    size = len(rows)
    ids, utterance = np.full((size, width), PAD, dtype=np.int64), np.full((size, width), -1, dtype=np.int64)
    end = np.zeros((size, most_utterances), dtype=np.int64)
    flags = np.zeros((size, most_utterances), dtype=np.bool_)
    answer = np.full((size, most_steps + 1), PAD, dtype=np.int64)
    for row, example in enumerate(rows):
        column = length[row]  # from the Query's last token back to where the limit cuts
        for number in range(utterances[row]):
            at, one = offsets[example + 1] - 1 - number, utterances[row] - 1 - number
            place, end[row, one] = context[at], column - 1
            flags[row, one] = distractions[at]
            for token in range(begins[place + 1] - 1, max(begins[place], begins[place + 1] - column) - 1, -1):
                column -= 1
                ids[row, column], utterance[row, column] = tokens[token], one
        answer[row, 0] = START
        begin, stop = begins[response[example]], begins[response[example] + 1]
        for step in range(stop - begin - 1):
            answer[row, step + 1] = tokens[begin + step]
        answer[row, stop - begin] = END
    return ids, utterance, end, flags, answer


# --- All batches of an epoch ------------------------------------------------------------------------------------------


def batches(
    examples: Examples, *, batch_size: int, rng: np.random.Generator | None = None, context_tokens: int | None = None
) -> list[Ints]:
    """Which examples go into which batch: like lengths together. With `rng`, drawn anew; without, short ones first.

    Every example is in exactly one batch.
    """
    length = examples.lengths if context_tokens is None else np.minimum(examples.lengths, context_tokens)
    order = np.arange(len(examples)) if rng is None else rng.permutation(len(examples))
    together = len(examples) if rng is None else batch_size * BATCHES_SORTED_TOGETHER
    steps = examples.steps
    rows: list[Ints] = []
    for low in range(0, len(order), max(1, together)):
        some = order[low : low + together]
        some = some[np.lexsort((length[some], steps[some], length[some] // LIKE))]
        rows += [some[at : at + batch_size] for at in range(0, len(some), batch_size)]
    return rows if rng is None else [rows[place] for place in rng.permutation(len(rows))]


def collate_all(
    examples: Examples, rows: Iterable[Ints], *, device: torch.device, context_tokens: int | None = None
) -> Iterator[Batch]:
    """Batches on their device; for a GPU they come in few shapes, made in a thread while others are computed."""
    shapes = shapes_for(device)
    made = (collate_examples(examples, one, context_tokens=context_tokens, shapes=shapes) for one in rows)
    if device.type != "cuda":
        return (batch.to(device) for batch in made)
    return (batch.to(device) for batch in prefetch(_pinned(batch) for batch in made))


def _pinned(batch: Batch) -> Batch:
    return batch.each(lambda tensor: tensor.pin_memory())


def prefetch(items: Iterable[Item], *, depth: int = 4) -> Iterator[Item]:
    """The same items, made ahead in a thread; an error there is raised here, and leaving early ends the thread."""
    ready: Queue[tuple[str, Any]] = Queue(depth)
    is_left = threading.Event()

    def put(kind: str, item: Any = None) -> bool:
        while not is_left.is_set():
            try:
                ready.put((kind, item), timeout=0.1)
            except Full:
                continue
            return True
        return False

    def make() -> None:
        try:
            if all(put("item", item) for item in items):
                put("end")
        except BaseException as error:
            put("error", error)

    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    try:
        while (got := ready.get())[0] == "item":
            yield got[1]
        if got[0] == "error":
            raise got[1]
    finally:
        is_left.set()
        thread.join()
