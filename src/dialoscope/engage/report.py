"""The engagement section of the report: how well remaining depth is predicted, one conversation, and people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dialoscope.engage.depth import Case, Depth, DepthResult
from dialoscope.engage.evaluate import EngageEvaluation, RaterComparison, SetResult
from dialoscope.engage.protocol import Dialogue, Floats
from dialoscope.report import Block, Column, Section, Table, Verdict
from dialoscope.report.cell import Cell
from dialoscope.report.charts import Axis, interval_bars, lines
from dialoscope.report.section import Level
from dialoscope.report.transcript import ShownTurn, Transcript

TITLE, ANCHOR, QUESTION = "Engagement", "engage", "Is the user engaged, turn by turn?"
SCORE = Axis("expected to remain", ".2f", (0.0, 1.0))
FAIR = 0.2  # a correlation with remaining depth that is more than nothing; counting turns is better at it anyway
ALPHA = 0.05


@dataclass(frozen=True, eq=False)
class Conversation:
    """One conversation with its scores, to look at."""

    name: str
    turns: Dialogue
    scores: Floats
    targets: Floats


def depth_section(
    found: DepthResult,
    *,
    conversation: Conversation | None = None,
    cases: Mapping[str, Sequence[Case]] | None = None,
) -> Section:
    """Remaining depth on held-out dialogues, as a section."""
    name = next(iter(found.models), "")
    best = found.models.get(name)
    value = None if best is None else best.spearman.value
    return Section(
        title=TITLE,
        anchor=ANCHOR,
        question=QUESTION,
        blocks=list(_depth_blocks(found, conversation, cases or {})),
        lead=_lead(name, best, found),
        verdict=None
        if best is None or value is None
        else Verdict(
            f"is the rank correlation of {name}'s scores with how much of the talk remained; 1 is perfect",
            best.spearman,
            _level(value),
            ".2f",
        ),
        origin=found.origin,
    )


def _lead(name: str, best: Depth | None, found: DepthResult) -> str:
    average = found.baselines["average"]
    if best is None or best.spearman.value is None or average.spearman.value is None:
        return "Remaining depth was guessed by baselines alone."
    return (
        f"From the words of a turn, {name} predicts how much of {len(found.examples):,} held-out conversations remains "
        f"with a Spearman correlation of {best.spearman.value:.2f}. Counting turns, which knows nothing of what was "
        f"said, reaches {average.spearman.value:.2f}: depth is a label to learn from, and not the goal."
    )


def _level(value: float) -> Level:
    return "info" if value >= FAIR else "warn"


def _depth_blocks(
    found: DepthResult, conversation: Conversation | None, cases: Mapping[str, Sequence[Case]]
) -> Iterator[Block]:
    yield depth_table(found)
    yield ends_table(found)
    if conversation is not None:
        yield _curve(conversation)
        yield _transcript(conversation)
    if cases:
        yield case_table(cases)


def depth_table(found: DepthResult) -> Table:
    """Raters by error and correlations, as the paper's Tables 1 and 2."""
    columns = [
        Column("rater"),
        Column("MSE × 100", ".2f", best="low"),
        Column("Pearson", ".3f"),
        Column("Spearman", ".3f"),
    ]
    rows: list[list[Cell]] = [[name, one.mse, one.pearson, one.spearman] for name, one in _raters(found)]
    notes = [
        "Pooled over all turns; intervals resample dialogues.",
        "average: the mean length of training dialogues in place of a dialogue's own.",
        "lookup: the mean depth at which a turn's text stood in training.",
        *([found.told] if found.shared else []),
    ]
    return Table(columns, rows, "Prediction of remaining depth", notes=notes, name="engage-depth")


def ends_table(found: DepthResult) -> Table:
    """Both correlations on the first and last turns alone, as the paper's Figure 3."""
    ends = next(one for _, one in _raters(found)).ends
    names = [f"{kind.capitalize()}, k = {k}" for k, some in ends.items() for kind in some]
    rows: list[list[Cell]] = [
        [name, *(score for some in one.ends.values() for score in some.values())] for name, one in _raters(found)
    ]
    columns = [Column("rater"), *(Column(name, ".3f") for name in names)]
    return Table(columns, rows, "On the first and last k turns alone", name="engage-ends")


def _raters(found: DepthResult) -> Iterator[tuple[str, Depth]]:
    yield from found.models.items()
    yield from found.baselines.items()


def case_table(cases: Mapping[str, Sequence[Case]]) -> Table:
    """The highest, the lowest and the most mistaken turns."""
    rows: list[list[Cell]] = [[kind, one.text, one.score, one.target] for kind, some in cases.items() for one in some]
    columns = [Column("kind"), Column("turn"), Column("score", ".2f"), Column("remained", ".2f")]
    return Table(columns, rows, "Turns to look at", name="engage-turns")


def _curve(one: Conversation) -> Block:
    series = {"score": one.scores.tolist(), "what remained": one.targets.tolist()}
    return lines(
        list(range(1, len(one.turns) + 1)),
        series,
        title=f"One conversation: {one.name}",
        description="Score of each turn, and the share of the conversation that remained after it.",
        x=Axis("turn"),
        y=SCORE,
        controls=["what remained"],
    )


def _transcript(one: Conversation) -> Block:
    turns = [
        ShownTurn("AB"[place % 2], text, value=float(score))
        for place, (text, score) in enumerate(zip(one.turns, one.scores, strict=True))
    ]
    return Transcript(turns, title="What was said", shade="expected to remain, darker is more")


def people_section(found: EngageEvaluation) -> Section:
    """Agreement with people, as a section."""
    name, first = next(iter(found.sets.items()))
    model = next(iter(first.raters["models"]), None)
    score = None if model is None else first.raters["models"][model]["spearman"]
    return Section(
        title=TITLE,
        anchor=ANCHOR,
        question="Do scores agree with people?",
        blocks=[found.table(), *(_people_bars(name, one) for name, one in found.sets.items())],
        lead=" ".join([_people_lead(name, first), *_compared(first, model)]),
        verdict=None
        if score is None or score.value is None
        else Verdict(f"Spearman's correlation of {model} with people on {name}", score, _beats(first, model), ".2f"),
        origin=found.origin,
    )


def _beats(found: SetResult, model: str | None) -> Level:
    """Good is what is better than what needs no training for sure; worse for sure is bad."""
    tested = _against_baselines(found, model)
    difference = tested[0].spearman if tested else None
    if difference is None or difference.difference.value is None:
        return "warn"
    if difference.p_holm is None or difference.p_holm >= ALPHA:
        return "warn"
    return "good" if difference.difference.value > 0 else "bad"


def _against_baselines(found: SetResult, model: str | None) -> list[RaterComparison]:
    return [one for one in found.comparisons if one.first == model and one.second_kind == "baselines"]


def _compared(found: SetResult, model: str | None) -> Iterator[str]:
    """What the verdict rests on."""
    for one in _against_baselines(found, model)[:1]:
        value, ends = one.spearman.difference.value, one.spearman.difference.interval
        if value is None:
            return
        more = "" if ends is None else f" [{ends[0]:.2f}, {ends[1]:.2f}]"
        p = one.spearman.p_holm
        how = "" if p is None else f", {'p < 0.001' if p < 0.001 else f'p = {p:.3f}'} (paired bootstrap, Holm)"
        yield f"{model} minus {one.second}: {value:+.2f}{more}{how}."


def _people_lead(name: str, found: SetResult) -> str:
    ceiling = found.ceiling.value
    known = {rater: one["spearman"].value for rater, one in found.raters["baselines"].items()}
    best = max(known, key=lambda one: known[one] or -1.0, default=None)
    parts = [f"{len(found.rated):,} turns of {name}, rated by {found.rated.annotators_per_item:g} people each."]
    if ceiling is not None:
        parts.append(f"One annotator agrees with the others by {ceiling:.2f}.")
    if best is not None and known[best] is not None:
        parts.append(f"What needs no training: {best} reaches {known[best]:.2f}.")
    return " ".join(parts)


def _people_bars(name: str, found: SetResult) -> Block:
    values = {rater: one["spearman"] for kind in found.raters.values() for rater, one in kind.items()}
    marks = {} if found.ceiling.value is None else {"one annotator": found.ceiling.value}
    controls = [*found.raters["baselines"]]
    return interval_bars(
        values,
        title=f"Spearman's correlation with people, {name}",
        description=f"Raters on {name} with intervals over dialogues; baselines are grey.",
        x=Axis("Spearman", ".2f"),
        controls=controls,
        marks=marks,
    )
