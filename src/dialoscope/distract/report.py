"""The distract section of the report: who looks at what was put in, table by table, and one dialogue to see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dialoscope.distract.measure import Scoring, chosen_scores
from dialoscope.distract.result import DistractResult, Extras, ModelResult, SetResult
from dialoscope.distract.sets import Case
from dialoscope.model.protocol import DialogueModel, TooLong
from dialoscope.record import Score
from dialoscope.report import Block, Column, Prose, Section, ShownTurn, Table, Transcript, Verdict
from dialoscope.report.cell import Cell, p_cell
from dialoscope.report.charts import Axis, grouped_bars, heatmap
from dialoscope.report.section import Level

FULL = 2.0  # times the average attention that shade a turn fully
LONGEST = 12  # turns of a context that is shown
EVEN = 0.005  # a ratio this near 1 is written 1.00
DETAILS = {
    "das_ratio": "DAS ratio",
    "das_ratio_of_means": "ratio of means",
    "das_ratio_median": "median",
    "distraction_percent": "distraction %",
    "history_percent": "History %",
    "first_percent": "first %",
    "last_percent": "last %",
    "perplexity": "perplexity",
}


@dataclass(frozen=True, eq=False)
class Picture:
    """One context, and how much attention each model gave to each of its turns, 1 for the average."""

    case: Case
    scores: Mapping[str, Sequence[float | None]]  # model -> utterances


def picture(models: Mapping[str, DialogueModel], case: Case, scoring: Scoring) -> Picture:
    """Ask every model about one case; a model that it does not fit into has no picture."""
    found = {}
    for name, model in models.items():
        try:
            attention = model.attend([case.context], [case.response])[0]
        except TooLong:
            continue
        scores = np.exp(chosen_scores(attention, scoring))
        found[name] = [float(one) if np.isfinite(one) else None for one in scores]
    return Picture(case, found)


def picture_case(cases: Sequence[Case]) -> Case | None:
    """The first context of a middling length with all its distractions and at least two turns of History."""
    most = max((len(case.distractions) for case in cases), default=0)
    good = [
        case for case in cases if most and len(case.distractions) == most and 2 <= len(case.history) <= LONGEST - most
    ]
    return max(good[:200], key=lambda case: min(len(case.history), 4), default=None)


def section_of(result: DistractResult, *, pictures: Sequence[Picture] = ()) -> Section:
    """All models and sets, as a section."""
    name = _headline_set(result)
    scores = {model: one.sets[name]["das_ratio_of_means"] for model, one in result.models.items()}
    return Section(
        title="Distraction",
        anchor="distract",
        question="Does the model look at what matters?",
        blocks=[*_blocks(result), *(_transcript(*each) for one in pictures for each in _shown(one))],
        lead=_lead(name, scores, {model: _worse_sets(one) for model, one in result.models.items()}),
        verdict=_verdict(name, result.models),
        origin=result.origin,
    )


def _headline_set(result: DistractResult) -> str:
    names = result.set_names
    return next((name for name in ("random-1.0", "random-0.7", "random-0.5") if name in names), names[0])


def _lead(name: str, scores: Mapping[str, Score], worse: Mapping[str, Sequence[str]]) -> str:
    told = {model: score for model, score in scores.items() if score.value is not None}
    without = [f"{model} has no DAS ratio: {score.reason}." for model, score in scores.items() if model not in told]
    if not told:
        return f"On {name}, {' '.join(without)}"
    each = ", ".join(f"{score.value:.2f} from {model}" for model, score in told.items())
    return " ".join([
        f"On {name}, an utterance that was put in gets so many times the attention of an original turn before the "
        f"Query: {each}. 1 is no difference, and lower is better.",
        *(f"{model} gives what was put in more on {', '.join(sets)}." for model, sets in worse.items() if sets),
        *without,
    ])  # fmt: skip


def _verdict(name: str, models: Mapping[str, ModelResult]) -> Verdict:
    """The number of one set; no good news where the model is drawn to what was put in on another, and then why."""
    said = f"times as much attention for a turn that was put in ({name}) as for one that belongs there"
    headline, parts = f"{said}; 1 is no difference, lower is better", dict[str, Verdict]()
    for model, one in models.items():
        score = one.sets[name]["das_ratio_of_means"]
        level, worse = _level(score), _worse_sets(one)
        if level == "good" and worse:
            level, headline = "warn", f"{headline}; {model} gives it more on {', '.join(worse)}"
        parts[model] = Verdict("", score, level, ".2f")
    return replace(Verdict.of(parts), headline=headline)


def _worse_sets(model: ModelResult) -> list[str]:
    """Sets on which distractions get more attention than History for sure."""
    ratios = {name: one["das_ratio_of_means"] for name, one in model.sets.items()}
    return [name for name, score in ratios.items() if _level(score) == "bad"]


def _level(score: Score) -> Level:
    """Good where distractions get less attention for sure, bad where they get more, by more than is written down."""
    if score.value is None or score.interval is None:
        return "info"
    low, high = score.interval
    return "good" if high < 1 - EVEN else "bad" if low > 1 + EVEN else "warn"


def _blocks(result: DistractResult) -> Iterator[Block]:
    yield ratio_table(result, "das_ratio_of_means")  # the one that the verdict is of
    yield _bars(result)
    yield ratio_table(result)
    if result.comparisons:
        yield _comparisons(result)
    yield Prose(
        "Scores are percent of the average attention in a context: 100 % is what every utterance would get if the "
        "model did not choose. The ratio of means is what the paper's Tables 4 to 6 hold.",
        heading="What the ratios are made of",
    )
    yield detail_table(result)
    yield from _other_columns(result)
    yield from _heads(result)


def ratio_table(result: DistractResult, ratio: str = "das_ratio") -> Table:
    """Variants by test sets in the form of the paper's Table 3, the lowest of each column marked."""
    columns = [Column("model"), Column("perplexity", ".2f", "low"), Column("History %", ".1f")]
    columns += [Column(name, ".3f", "low") for name in result.set_names]
    rows: list[list[Cell]] = []
    for name, one in result.models.items():
        original: list[Cell] = [None, None]
        if one.original is not None:
            original = [one.original["perplexity"], one.original["history_percent"]]
        ratios = [one.sets[key][ratio] if key in one.sets else None for key in result.set_names]
        rows.append([name, *original, *ratios])
    how = (
        "a mean of ratios (equation 8)" if ratio == "das_ratio" else "a ratio of means, as in the paper's Tables 4 to 6"
    )
    note = f"Perplexity and History % are of the original test set. The DAS ratio is {how}; lower is better."
    caption = "DAS ratio by model and test set" + ("" if ratio == "das_ratio" else ", as a ratio of means")
    return Table(columns, rows, caption, notes=[note], name=ratio.replace("_", "-"))


def detail_table(result: DistractResult) -> Table:
    """What each ratio is made of: a row for each model and set."""
    columns = [Column("model"), Column("set"), *(Column(shown, ".2f") for shown in DETAILS.values())]
    columns += [Column("used", ",d"), Column("none put in", ",d"), Column("no History", ",d"), Column("cut", ",d")]
    rows: list[list[Cell]] = []
    for name, one in result.models.items():
        for key, found in one.sets.items():
            counts: list[Cell] = [found.samples, found.without_distraction, found.without_history, found.cut]
            rows.append([name, key, *(found[score] for score in DETAILS), *counts])
    notes = [
        "A context counts where the model read both distractions and History; cut: one of them lies before what it "
        "reads. Perplexity is over all contexts."
    ]
    return Table(columns, rows, "Attention scores by model and set", notes=notes, name="attention-scores")


def _bars(result: DistractResult) -> Block:
    series = {
        name: [one.sets[key]["das_ratio_of_means"] if key in one.sets else None for key in result.set_names]
        for name, one in result.models.items()
    }
    return grouped_bars(
        result.set_names,
        series,
        title="DAS ratio by test set, as a ratio of means",
        description=f"Bars with 95 % intervals for {', '.join(result.models)} on {len(result.set_names)} test sets; "
        "1 is as much attention on distractions as on History.",
        y=Axis("DAS ratio", ".2f"),
    )


def _comparisons(result: DistractResult) -> Table:
    rows: list[list[Cell]] = []
    for name, by in result.comparisons.items():
        for key, one in by.items():
            p = p_cell(one.p_value, n=one.difference.n, reason=one.reason)
            rows.append([name, key, one.difference, p, one.p_holm])
    columns = [
        Column("model"),
        Column("set"),
        Column("lower by", "+.3f"),
        Column("p", ".3g"),
        Column("p (Holm)", ".3g"),
    ]
    tests = sorted({one.test for by in result.comparisons.values() for one in by.values()})
    note = (
        "The first model's ratio of means minus this one's, over the same contexts and distractions; "
        f"{', '.join(tests)} over dialogues."
    )
    return Table(columns, rows, f"Compared with {result.first}", notes=[note], name="compared")


def _other_columns(result: DistractResult) -> Iterator[Block]:
    """Influence and behaviour, where they were measured."""
    found = [(name, key, more) for name, one in result.models.items() for key, more in one.extras.items()]
    heads = list(dict.fromkeys(column for _, _, more in found for column in more.scores))
    if heads:
        rows: list[list[Cell]] = [[name, key, *(more.scores.get(head) for head in heads)] for name, key, more in found]
        columns = [Column("model"), Column("set"), *(Column(head.replace("_", " "), ".3f") for head in heads)]
        note = (
            "Influence: change of log p of the response without an utterance, distractions against History. "
            "Changed: responses that differ once distractions are put in."
        )
        yield Prose(
            "Attention is not what a model acts on; these numbers need none.", heading="What distractions change"
        )
        notes = [note, *_unmeasured([more for _, _, more in found])]
        yield Table(columns, rows, "Influence and behaviour", notes=notes, name="influence")


def _unmeasured(extras: Sequence[Extras]) -> Iterator[str]:
    """What could not be measured, over all models and sets; nothing where there is nothing."""
    total: Counter[str] = Counter()
    for one in extras:
        total.update(one.left_out)
    counts = [f"{name.replace('_', ' ')} {count:,}" for name, count in total.items() if count]
    if counts:
        yield f"Left out over all rows: {', '.join(counts)}."


def _heads(result: DistractResult) -> Iterator[Block]:
    for name, one in result.models.items():
        chosen = _with_heads(one)
        if chosen is None or chosen[1].heads is None:
            continue
        ratio = chosen[1].heads.ratio
        values = [[float(cell) if np.isfinite(cell) else None for cell in row] for row in ratio]
        yield heatmap(
            [f"layer {layer}" for layer in range(ratio.shape[0])],
            [f"head {head}" for head in range(ratio.shape[1])],
            values,
            title=f"Heads of {name} on {chosen[0]}",
            description=f"Ratio of means in each layer and head of {name}, from {np.nanmin(ratio):.2f} to "
            f"{np.nanmax(ratio):.2f}; below 1 a head prefers History.",
            value=Axis("ratio", ".2f"),
            middle=1.0,
        )


def _with_heads(one: ModelResult) -> tuple[str, SetResult] | None:
    return next(((key, found) for key, found in one.sets.items() if found.heads is not None), None)


def _shown(picture: Picture) -> Iterator[tuple[str, Case, Sequence[float | None]]]:
    return ((name, picture.case, scores) for name, scores in picture.scores.items())


def _transcript(name: str, case: Case, scores: Sequence[float | None]) -> Transcript:
    last = len(case.context) - 1
    turns = [
        ShownTurn(
            "Query" if place == last else "distraction" if place in case.distractions else "History",
            text,
            None if score is None else min(1.0, score / FULL),
            "not read" if score is None else f"{score:.0%}",
            is_outlined=place in case.distractions,
        )
        for place, (text, score) in enumerate(zip(case.context, scores, strict=True))
    ]
    turns.append(ShownTurn("response", case.response))
    return Transcript(
        turns,
        title=f"Where {name} looks, in {case.dialogue}",
        description="Attention on each turn while the response is read; 100 % is the average.",
        shade=f"attention, full from {FULL:.0%} on",
        outline="put in",
    )
