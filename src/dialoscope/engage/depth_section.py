"""Remaining depth as a section of a page: the numbers, one conversation, and turns to look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dialoscope.engage.depth_result import ENDS, KINDS, Case, Conversation, DepthResult
from dialoscope.report import Block, Column, Section, Table
from dialoscope.report.cell import Cell
from dialoscope.report.charts import Axis, lines
from dialoscope.report.transcript import ShownTurn, Transcript

SCORE = Axis("expected to remain", ".2f", (0.0, 1.0))


def section_of(result: DepthResult) -> Section:
    """A result as a section of a page."""
    return Section(
        title="Remaining depth",
        anchor="depth",
        question="How much of a conversation remains?",
        blocks=list(_blocks(result)),
        lead=f"{result.verdict.text} {_lead(result)}{result.used}",
        verdict=result.card,
        origin=result.origin,
    )


def _lead(result: DepthResult) -> str:
    if result.reason is not None:
        return ""
    return "Remaining depth is a label to learn from, not engagement: agreement with people is another question. "


def _blocks(result: DepthResult) -> Iterator[Block]:
    if result.reason is not None:
        return
    yield depth_table(result)
    yield ends_table(result)
    if result.conversation is not None:
        yield _curve(result.conversation)
        yield _transcript(result.conversation)
    for kinds in list(result.cases.values())[:1]:
        yield case_table(kinds)


def depth_table(result: DepthResult) -> Table:
    """Predictors and baselines by error and correlations, as the paper's Tables 1 and 2."""
    columns = [
        Column("predictor"),
        Column("MSE × 100", ".2f", best="low"),
        Column("Pearson", ".3f"),
        Column("Spearman", ".3f"),
    ]
    numbers = ("mse", *KINDS) if result.reason is None else ()
    rows: list[list[Cell]] = [[name, *(result.score(name, number) for number in numbers)] for name in result.subjects]
    notes = [
        "Pooled over all turns; intervals resample dialogues.",
        "average: the mean length of training dialogues in place of a dialogue's own, so it only counts turns.",
        "lookup: the mean depth at which a turn's text stood in training.",
        *([result.shared_note] if result.shared_note else []),
    ]
    return Table(columns, rows, "Prediction of remaining depth", notes=notes, name="engage-depth")


def ends_table(result: DepthResult) -> Table:
    """Both correlations on the first and last turns alone, as the paper's Figure 3."""
    numbers = [(k, kind) for k in ENDS for kind in KINDS]
    columns = [Column("predictor"), *(Column(f"{kind.capitalize()}, k = {k}", ".3f") for k, kind in numbers)]
    rows: list[list[Cell]] = [
        [name, *(result.score(name, kind, f"first and last {k}") for k, kind in numbers)] for name in result.subjects
    ]
    return Table(columns, rows, "On the first and last k turns alone", name="engage-ends")


def case_table(cases: Mapping[str, Sequence[Case]]) -> Table:
    """The highest, the lowest and the most mistaken turns."""
    rows: list[list[Cell]] = [
        [kind, case.text, case.score, case.target] for kind, chosen in cases.items() for case in chosen
    ]
    columns = [Column("kind"), Column("turn"), Column("score", ".2f"), Column("remained", ".2f")]
    return Table(columns, rows, "Turns to look at", name="engage-turns")


def _curve(conversation: Conversation) -> Block:
    series = {"score": list(conversation.scores), "what remained": list(conversation.targets)}
    return lines(
        list(range(1, len(conversation.turns) + 1)),
        series,
        title=f"One conversation: {conversation.name}",
        description="Score of each turn, and the share of the conversation that remained after it.",
        x=Axis("turn"),
        y=SCORE,
        controls=["what remained"],
    )


def _transcript(conversation: Conversation) -> Block:
    turns = [
        ShownTurn("AB"[place % 2], text, value=score)
        for place, (text, score) in enumerate(zip(conversation.turns, conversation.scores, strict=True))
    ]
    return Transcript(turns, title="The conversation", shade="expected to remain, darker is more")
