"""A corpus at a glance: how much of it there is, how long it is, what it carries, what it left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import PurePath
from typing import ClassVar

from dialoscope.corpus.dialogue import Corpus, Dialogue, Turn
from dialoscope.corpus.summary import CorpusSummary, summarise
from dialoscope.record import Origin, Scores
from dialoscope.report import charts
from dialoscope.report.cell import Cell
from dialoscope.report.charts import Axis
from dialoscope.report.result import Result, kept, skipped
from dialoscope.report.section import (
    Block,
    Chart,
    Column,
    Fact,
    Facts,
    Prose,
    Section,
    ShownTurn,
    Table,
    Transcript,
)
from dialoscope.report.verdict import Verdict
from dialoscope.settings import BaseSettings

MOST_BINS = 36
SHARE_SHOWN = 0.995  # of a histogram's counts; the long tail shares the last bin
EXAMPLE_TURNS = 12
EXAMPLE_CHARACTERS = 600  # of one turn
TAG_CHARACTERS = 40


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CorpusResult(Result):
    """What is in a corpus: the section with which every study's page begins. It holds counts, and judges nothing."""

    instrument: ClassVar[str] = "corpus"
    settings_class: ClassVar[type[BaseSettings]] = BaseSettings

    described: CorpusSummary
    examples: tuple[Transcript, ...] = ()

    @kept
    def scores(self) -> Scores:
        """No score: a corpus is described, not measured."""
        return {}

    @kept
    def verdicts(self) -> list[Verdict]:
        """No verdict."""
        return []

    def section(self) -> Section:
        """How much of everything there is, and two dialogues."""
        return section_of(self.described, examples=self.examples)

    def __repr__(self) -> str:
        return f"<CorpusResult {self.section().lead}>"


def describe(corpus: Corpus) -> CorpusResult:
    """Count what is in a corpus.

    >>> describe(corpus)                                                # doctest: +SKIP
    <CorpusResult 5,000 dialogues, 77,623 turns in 3 splits, read as concierge.>
    """
    return CorpusResult(
        settings=BaseSettings(),
        parts=dict(corpus.splits),
        used=f"All {len(corpus):,} dialogues were counted.",
        counts=skipped(corpus.skipped),
        origin=Origin(corpus=f"{corpus.name}@{corpus.fingerprint}"),
        described=summarise(corpus),
        examples=tuple(examples_of(corpus)),
    )


def section_of(summary: CorpusSummary, *, examples: Sequence[Transcript] = ()) -> Section:
    """A summary as a section of the page."""
    splits = f"{_count(summary.turns, 'turn')} in {_count(len(summary.splits), 'split')}"
    noun = "dialogue" if summary.dialogues == 1 else "dialogues"
    return Section(
        title=f"Corpus: {summary.name}",
        anchor="corpus",
        question="What is in the data?",
        blocks=[*_blocks(summary), *_introduced(examples)],
        lead=f"{summary.dialogues:,d} {noun}, {splits}, read as {summary.format}.",
        origin=Origin(corpus=f"{summary.name}@{summary.fingerprint}"),
    )


def _blocks(summary: CorpusSummary) -> Iterator[Block]:
    yield _facts(summary)
    yield _by_split(summary)
    yield from _lengths(summary)
    yield from _carried(summary)
    yield from _left_out(summary)


def _introduced(examples: Sequence[Transcript]) -> Iterator[Block]:
    if examples:
        yield Prose("The first dialogue of a split, as it was read.", "Examples")
    yield from examples


def _count(number: int, noun: str) -> str:
    return f"{number:,d} {noun}{'' if number == 1 else 's'}"


def _facts(summary: CorpusSummary) -> Facts:
    words = sum(split.words for split in summary.splits.values())
    per_dialogue = f"{summary.turns / summary.dialogues:.1f} per dialogue" if summary.dialogues else ""
    per_turn = f"{words / summary.turns:.1f} per turn" if summary.turns else ""
    return Facts(
        [
            Fact("Dialogues", summary.dialogues, f"in {_count(len(summary.splits), 'split')}"),
            Fact("Turns", summary.turns, per_dialogue),
            Fact("Speakers", summary.speakers, "different names"),
            Fact("Words", words, per_turn),
        ]
    )


def _by_split(summary: CorpusSummary) -> Table:
    columns = [
        Column("Split"),
        Column("Dialogues"),
        Column("Turns"),
        Column("Turns per dialogue", ".2f"),
        Column("Standard deviation", ".2f"),
        Column("Longest"),
        Column("Words"),
        Column("Words per turn", ".2f"),
    ]
    rows: list[list[Cell]] = [
        [name, each.dialogues, each.turns, each.turns_mean, each.turns_std, each.turns_max, each.words, each.words_mean]
        for name, each in summary.splits.items()
    ]
    notes = ["Words are stretches of text between blanks. The longest dialogue is counted in turns."]
    return Table(columns, rows, "Size by split", notes, name="splits")


def _lengths(summary: CorpusSummary) -> Iterator[Chart]:
    if summary.turn_lengths:
        yield _length_chart(summary.turn_lengths, "Turns per dialogue", "turns", "dialogues")
    if summary.word_lengths:
        yield _length_chart(summary.word_lengths, "Words per turn", "words", "turns")


def _length_chart(lengths: Mapping[int, int], title: str, unit: str, counted: str) -> Chart:
    edges, counts, is_open = length_bins(lengths)
    tail = f" The last bar holds all of {edges[-2] + 0.5:,.0f} {unit} or more." if is_open else ""
    most = max(lengths, key=lambda length: (lengths[length], -length))
    description = (
        f"Half of the {counted} have at most {_quantile(lengths, 0.5):,d} {unit}, most often {most:,d}; "
        f"the longest has {max(lengths):,d}.{tail}"
    )
    return charts.histogram(
        edges,
        {counted: counts},
        title=title,
        description=description,
        x=Axis(unit, ",d"),
        y=Axis(counted, ",d"),
        is_open=is_open,
        is_half=True,
    )


def length_bins(lengths: Mapping[int, int]) -> tuple[list[float], list[int], bool]:
    """Edges and counts of at most 37 bins of whole numbers, and whether the last bin is open.

    >>> length_bins({2: 5, 3: 1})
    ([1.5, 2.5, 3.5], [5, 1], False)
    """
    first, last = min(lengths), _quantile(lengths, SHARE_SHOWN)
    width = -(-(last - first + 1) // MOST_BINS)
    bins = -(-(last - first + 1) // width)
    end = first + bins * width
    counts = [0] * bins
    for length, count in lengths.items():
        if length < end:
            counts[(length - first) // width] += count
    rest = sum(count for length, count in lengths.items() if length >= end)
    starts = range(first, end + (width if rest else 0) + 1, width)
    return [start - 0.5 for start in starts], [*counts, rest] if rest else counts, bool(rest)


def _quantile(lengths: Mapping[int, int], share: float) -> int:
    """The smallest length that this share of the counts does not exceed."""
    needed, so_far = share * sum(lengths.values()), 0
    for length in sorted(lengths):
        so_far += lengths[length]
        if so_far >= needed:
            return length
    raise ValueError("expected at least one length")


def _carried(summary: CorpusSummary) -> Iterator[Block]:
    if summary.labels:
        rows = sorted(summary.labels.items(), key=lambda item: (-item[1], item[0]))
        notes = ["Counted are the dialogues or turns that carry the label."]
        yield Table(["Label", Column("Carried by")], rows, "Labels", notes, name="labels")


def _left_out(summary: CorpusSummary) -> Iterator[Block]:
    if summary.skipped:
        rows = sorted(summary.skipped.items(), key=lambda item: (-item[1], item[0]))
        yield Table(["Reason", Column("Records")], rows, "Records left out on reading", name="skipped")
    if summary.ignored:
        files = sorted(_within_their_folder(summary.ignored).items())
        yield Table(["File", "Why"], files, "Files not read", name="ignored")


def _within_their_folder(ignored: Mapping[str, str]) -> dict[str, str]:
    """Paths from the folder that all of them are in; where it is on somebody's disk is nobody's business."""
    folders = [PurePath(path).parts[:-1] for path in ignored]
    shared = len(list(takewhile(lambda parts: len(set(parts)) == 1, zip(*folders, strict=False))))
    return {"/".join(PurePath(path).parts[shared:]): why for path, why in ignored.items()}


def examples_of(corpus: Corpus) -> Iterator[Transcript]:
    """The first dialogue of the first and of the last split."""
    names = list(corpus.splits)
    for name in dict.fromkeys([*names[:1], *names[-1:]]):
        yield _example(corpus.split(name)[0])


def _example(dialogue: Dialogue) -> Transcript:
    turns = dialogue.turns[:EXAMPLE_TURNS]
    cut = f", the first {len(turns)} of {len(dialogue.turns):,d} turns" if len(turns) < len(dialogue.turns) else ""
    shown = [ShownTurn(turn.speaker, _cut(turn.text, EXAMPLE_CHARACTERS), tag=_tag(turn)) for turn in turns]
    return Transcript(shown, f"{dialogue.id}, {dialogue.split}{cut}")


def _tag(turn: Turn) -> str:
    """Labels of one word or number; nested ones would not fit beside the text."""
    words = [str(value) for value in turn.labels.values() if isinstance(value, str | int | float) and value != ""]
    return _cut(", ".join(words), TAG_CHARACTERS)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
