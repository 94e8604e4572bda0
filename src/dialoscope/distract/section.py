"""The attention section of the report: attention on distractions, table by table, and one dialogue to see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from dialoscope.distract.names import ORIGINAL
from dialoscope.distract.result import (
    CUT,
    NO_DISTRACTION,
    NO_HISTORY,
    ONE,
    AttentionResult,
    Heads,
    Picture,
)
from dialoscope.report import Block, Column, Prose, Section, ShownTurn, Table, Transcript
from dialoscope.report.cell import Cell, p_cell
from dialoscope.report.charts import Axis, grouped_bars, heatmap

FULL = 2.0  # times the average attention that shade a turn fully
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


def section_of(result: AttentionResult) -> Section:
    """All models and sets, as a section."""
    texts = " ".join(verdict.text for verdict in result.verdicts())
    return Section(
        title="Attention",
        anchor="attention",
        question="Does the model attend to what matters?",
        blocks=[*_blocks(result), *map(_transcript, result.pictures)],
        lead=f"{texts} {result.used}",
        verdict=result.card,
        origin=result.origin,
    )


def _blocks(result: AttentionResult) -> Iterator[Block]:
    yield ratio_table(result, "das_ratio_of_means")  # the one that the verdict is of
    yield _bars(result)
    yield ratio_table(result)
    if result.comparisons:
        yield _comparisons(result)
    yield Prose(
        "Scores are percent of the average attention in a context: 100 % is what every turn would get if attention "
        "were spread evenly over turns. The ratio of means is what the paper's Tables 4 to 6 hold.",
        heading="What the ratios are made of",
    )
    yield detail_table(result)
    yield from sentences_table(result.sets)
    yield from _heads(result)


def ratio_table(result: AttentionResult, ratio: str = "das_ratio") -> Table:
    """Variants by test sets in the form of the paper's Table 3, the lowest of each column marked."""
    columns = [Column("model"), Column("perplexity", ".2f", "low"), Column("History %", ".1f")]
    columns += [Column(name, ".3f", "low") for name in result.set_names]
    rows: list[list[Cell]] = []
    for model in result.model_names:
        original = [result.score(model, ORIGINAL, number) for number in ("perplexity", "history_percent")]
        rows.append([model, *original, *(result.score(model, name, ratio) for name in result.set_names)])
    how = (
        "a mean of ratios (equation 8)" if ratio == "das_ratio" else "a ratio of means, as in the paper's Tables 4 to 6"
    )
    note = f"Perplexity and History % are of the original test set. The DAS ratio is {how}; {ONE}."
    caption = "DAS ratio by model and test set" + ("" if ratio == "das_ratio" else ", as a ratio of means")
    return Table(columns, rows, caption, notes=[note], name=ratio.replace("_", "-"))


def detail_table(result: AttentionResult) -> Table:
    """What each ratio is made of: a row for each model and set."""
    columns = [Column("model"), Column("set"), *(Column(shown, ".2f") for shown in DETAILS.values())]
    columns += [Column("used", ",d"), Column("no distraction", ",d"), Column("no History", ",d"), Column("cut", ",d")]
    rows: list[list[Cell]] = []
    for (model, name), each in result.rows.items():
        if name != ORIGINAL:
            left_out = each.left_out()
            counts = [int(each.is_used.sum()), left_out[NO_DISTRACTION], left_out[NO_HISTORY], left_out[CUT]]
            rows.append([model, name, *(result.score(model, name, number) for number in DETAILS), *counts])
    notes = [
        "A context counts where the model read both distractions and History; cut: one of them lies before what it "
        "reads. Perplexity is over all contexts."
    ]
    return Table(columns, rows, "Attention scores by model and set", notes=notes, name="attention-scores")


def sentences_table(sets: Mapping[str, Mapping[str, object]]) -> Iterator[Table]:
    """The fixed sentences that were inserted, and how frequent their words are in training."""
    sentences: dict[str, Mapping[str, object]] = {}
    for name, about in sets.items():
        for sentence in about.get("sentences", ()):  # type: ignore[attr-defined]
            sentences.setdefault(f"{name.partition('-')[0]}: {sentence['text']}", sentence)
    rows: list[list[Cell]] = []
    for name, sentence in sentences.items():
        ranks = sentence["word_ranks"]
        words = ", ".join(f"{word} {rank or '–'}" for word, rank in ranks.items())  # type: ignore[attr-defined]
        rows.append([name, words, "yes" if sentence["is_in_training"] else "no"])
    if rows:
        note = "Rank 1 is the most frequent word of the training split; – is a word that it lacks."
        columns = ["sentence", "ranks of its words", "in training"]
        yield Table(columns, rows, "Sentences that were inserted", notes=[note], name="sentences")


def _bars(result: AttentionResult) -> Block:
    series = {
        model: [result.score(model, name, "das_ratio_of_means") for name in result.set_names]
        for model in result.model_names
    }
    return grouped_bars(
        result.set_names,
        series,
        title="DAS ratio by test set, as a ratio of means",
        description=f"Bars with 95 % intervals for {', '.join(series)} on {len(result.set_names)} test sets; "
        "1 is as much attention on distractions as on History.",
        y=Axis("DAS ratio", ".2f"),
    )


def _comparisons(result: AttentionResult) -> Table:
    rows: list[list[Cell]] = []
    for each in result.comparisons:
        tested = each.comparison
        p = p_cell(tested.p_value, n=tested.difference.n, reason=tested.reason)
        rows.append([each.model, each.set, tested.difference, p, tested.p_holm])
    columns = [
        Column("model"),
        Column("set"),
        Column("lower by", "+.3f"),
        Column("p", ".3g"),
        Column("p (Holm)", ".3g"),
    ]
    tests = sorted({each.comparison.test for each in result.comparisons})
    note = (
        "The first model's ratio of means minus this one's, over the same contexts and distractions; "
        f"{', '.join(tests)} over dialogues."
    )
    return Table(columns, rows, f"Compared with {result.model_names[0]}", notes=[note], name="compared")


def _heads(result: AttentionResult) -> Iterator[Block]:
    first: dict[str, Heads] = {}
    for heads in result.heads:
        if heads.set != ORIGINAL and np.isfinite(heads.ratio).any():
            first.setdefault(heads.model, heads)
    for heads in first.values():
        ratio = heads.ratio
        values = [[float(cell) if np.isfinite(cell) else None for cell in row] for row in ratio]
        finite = ratio[np.isfinite(ratio)]
        yield heatmap(
            [f"layer {layer}" for layer in range(ratio.shape[0])],
            [f"head {head}" for head in range(ratio.shape[1])],
            values,
            title=f"Heads of {heads.model} on {heads.set}",
            description=f"Ratio of means in each layer and head of {heads.model}, from {finite.min():.2f} to "
            f"{finite.max():.2f}; below 1 a head prefers History.",
            value=Axis("ratio", ".2f"),
            middle=1.0,
        )


def _transcript(picture: Picture) -> Transcript:
    last = len(picture.turns) - 1
    turns = [
        ShownTurn(
            "Query" if position == last else "distraction" if position in picture.distractions else "History",
            text,
            None if score is None else min(1.0, score / FULL),
            "not read" if score is None else f"{score:.0%}",
            is_outlined=position in picture.distractions,
        )
        for position, (text, score) in enumerate(zip(picture.turns, picture.scores, strict=True))
    ]
    turns.append(ShownTurn("response", picture.response))
    return Transcript(
        turns,
        title=f"Attention of {picture.model}, in {picture.dialogue}",
        description="Attention on each turn while the response is read; 100 % is the average.",
        shade=f"attention, full from {FULL:.0%} on",
        outline="inserted",
    )
