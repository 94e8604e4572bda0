"""Dialogues into Arrow columns, a batch at a time."""

from __future__ import annotations

import json
import mmap

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.corpus.dialogue import SCHEMA, TURN, Dialogue, Labels, split_rank
from dialoscope.corpus.streams import BadRecord, why_not_text

BATCH_TURNS = 65_536  # what reading holds as Python objects at any time,
BATCH_CHARACTERS = 8 << 20  # and how much text and labels


class Columns:
    """Collects dialogues as Python lists and turns them into Arrow batches before they grow large."""

    def __init__(self) -> None:
        self.batches: dict[str, list[pa.RecordBatch]] = {}  # by split: sorting a whole corpus later would copy it
        self.rows = 0
        self._start()

    def _start(self) -> None:
        self.ids: list[str] = []
        self.splits: list[str] = []
        self.labels: list[str | None] = []
        self.offsets: list[int] = [0]
        self.speakers: list[str] = []
        self.texts: list[str] = []
        self.turn_labels: list[str | None] = []
        self.characters = 0

    def add(self, dialogue: Dialogue, *, default_id: str, default_split: str) -> None:
        """Append one dialogue, of which `why_not_dialogue` has nothing to say."""
        encoded = [encode_labels(turn.labels) for turn in dialogue.turns]
        labels = encode_labels(dialogue.labels)
        self.ids.append(dialogue.id or default_id)
        self.splits.append(dialogue.split or default_split)
        self.labels.append(labels)
        self.speakers.extend(turn.speaker for turn in dialogue.turns)
        self.texts.extend(turn.text for turn in dialogue.turns)
        self.turn_labels.extend(encoded)
        self.offsets.append(len(self.texts))
        self.rows += 1
        self.characters += sum(len(turn.text) for turn in dialogue.turns) + sum(len(text or "") for text in encoded)
        if len(self.texts) >= BATCH_TURNS or self.characters >= BATCH_CHARACTERS:
            self.flush()

    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Append dialogues that are columns already."""
        self.flush()
        self._keep(batch)
        self.rows += batch.num_rows

    def flush(self) -> None:
        """Turn what was collected into one Arrow batch."""
        if self.ids:
            self._keep(settled(self._batch()))
            self._start()

    def _keep(self, batch: pa.RecordBatch) -> None:
        splits = pc.unique(batch["split"]).to_pylist()
        for split in splits:
            part = batch if len(splits) == 1 else settled(batch.filter(pc.equal(batch["split"], split)))
            self.batches.setdefault(split, []).append(part)

    def _batch(self) -> pa.RecordBatch:
        strings = [pa.array(column, pa.string()) for column in (self.ids, self.splits, self.speakers, self.texts)]
        ids, splits, speakers, texts = strings
        labels, turn_labels = pa.array(self.labels, pa.string()), pa.array(self.turn_labels, pa.string())
        offsets = pa.array(self.offsets, pa.int32())
        return batch_of(ids, splits, offsets, speakers, texts, labels=labels, turn_labels=turn_labels)

    def table(self) -> pa.Table:
        """Everything collected so far, in corpus order."""
        self.flush()
        splits = sorted(self.batches, key=split_rank)
        return pa.Table.from_batches([batch for split in splits for batch in self.batches[split]], schema=SCHEMA)


def why_not_dialogue(dialogue: Dialogue) -> BadRecord | None:
    """What keeps a dialogue from being stored, or None."""
    if not dialogue.turns:
        return BadRecord("at least one turn", "none")
    texts = [part for turn in dialogue.turns for part in (turn.speaker, turn.text)]
    problem = why_not_text("\n".join([dialogue.id, dialogue.split, *texts]))
    return BadRecord("UTF-8 text", problem) if problem else None


def settled(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch in one stretch of memory of its own.

    Parsing frees most of what it allocates, and what it keeps lies scattered among the holes: left there, a large
    corpus would hold on to a fifth more memory than it needs. Anonymous memory maps are just as large as the batch.
    """
    measured = pa.MockOutputStream()
    _write_stream(measured, batch)
    memory = pa.py_buffer(mmap.mmap(-1, max(1, measured.size())))
    _write_stream(pa.FixedSizeBufferWriter(memory), batch)
    return pa.ipc.open_stream(memory).read_next_batch()


def _write_stream(sink: pa.NativeFile, batch: pa.RecordBatch) -> None:
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)


def batch_of(
    ids: pa.Array,
    splits: pa.Array,
    offsets: pa.Array,
    speakers: pa.Array,
    texts: pa.Array,
    *,
    labels: pa.Array | None = None,
    turn_labels: pa.Array | None = None,
) -> pa.RecordBatch:
    """Flat columns into one batch of dialogues: turns `offsets[i]` up to `offsets[i + 1]` belong to dialogue i."""
    labels = pa.nulls(len(ids), pa.string()) if labels is None else labels
    turn_labels = pa.nulls(len(texts), pa.string()) if turn_labels is None else turn_labels
    turns = pa.StructArray.from_arrays([speakers, texts, turn_labels], fields=list(TURN))
    return pa.RecordBatch.from_arrays([ids, splits, labels, pa.ListArray.from_arrays(offsets, turns)], schema=SCHEMA)


def encode_labels(labels: Labels) -> str | None:
    """Labels as JSON; none at all as null."""
    if not labels:
        return None
    try:
        return orjson.dumps(labels).decode()
    except TypeError:  # integers beyond 64 bits, which Python's own writer can
        try:
            text = json.dumps(labels, ensure_ascii=False)
            text.encode()
            return text
        except (TypeError, ValueError, RecursionError) as error:
            raise BadRecord("labels that JSON can hold", type(error).__name__) from error
