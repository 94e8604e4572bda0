"""Score hypotheses against references: any metrics of one table, each number with its n, interval and signature."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dialoscope.errors import UsageError, unknown_name
from dialoscope.metrics import bleu, distinct, embedding, length, meteor, perplexity, rouge
from dialoscope.metrics.bootstrap import DEFAULT, Resampling
from dialoscope.metrics.bootstrap import score as score_statistic
from dialoscope.metrics.embedding import Encoder
from dialoscope.metrics.options import Metric, Options
from dialoscope.metrics.paired import TESTS, Comparison, compare, correct
from dialoscope.metrics.pairs import HYPOTHESIS_COLUMNS, Pairs, check_same_dialogues, read_column, read_pairs
from dialoscope.metrics.statistic import Clusters, Resampled, Swappable
from dialoscope.metrics.tokens import TOKENISERS, WITHOUT_PUNKT
from dialoscope.record import Origin, Score

METRICS: Mapping[str, Metric[Any]] = {
    "bleu-1": bleu.corpus_metric(1),
    "bleu-2": bleu.corpus_metric(2),
    "bleu-3": bleu.corpus_metric(3),
    "bleu-4": bleu.corpus_metric(4),
    "sentence-bleu-1": bleu.sentence_metric(1),
    "sentence-bleu-2": bleu.sentence_metric(2),
    "sentence-bleu-3": bleu.sentence_metric(3),
    "sentence-bleu-4": bleu.sentence_metric(4),
    "bleu-2-overlap": bleu.overlap_metric(2),
    "bleu-4-overlap": bleu.overlap_metric(4),
    "bleu-2-probe": bleu.probe_metric(2),
    "bleu-2-probe-exchanged": bleu.probe_metric(2, is_exchanged=True),
    "distinct-1": distinct.distinct_metric(1),
    "distinct-2": distinct.distinct_metric(2),
    "distinct-1-overlap": distinct.overlap_metric(1),
    "distinct-2-overlap": distinct.overlap_metric(2),
    "distinct-responses": distinct.distinct_response_metric(),
    "rouge-1": rouge.metric("rouge1"),
    "rouge-2": rouge.metric("rouge2"),
    "rouge-l": rouge.metric("rougeL"),
    "meteor": meteor.metric(has_synonyms=True),
    "meteor-stem": meteor.metric(has_synonyms=False),
    "embedding-average": embedding.metric("average"),
    "embedding-extrema": embedding.metric("extrema"),
    "embedding-greedy": embedding.metric("greedy"),
    "perplexity": perplexity.metric(),
    "length": length.length_metric(),
    "length-ratio": length.length_ratio_metric(),
    "repetition-2": length.repetition_metric(2),
    "repetition-4": length.repetition_metric(4),
}
DEFAULT_METRICS = ("bleu-1", "bleu-2", "bleu-3", "bleu-4", "distinct-1", "distinct-2", "length")  # need no extra


@dataclass(frozen=True)
class MetricsResult:
    """Scores by metric, and the comparison with another system where one was asked for."""

    scores: Mapping[str, Score]
    others: Mapping[str, Score] = field(default_factory=dict)  # the other system's scores
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints; comparisons and notes appear only where there are any."""
        shown: dict[str, Any] = {"metrics": {name: one.to_dict() for name, one in self.scores.items()}}
        if self.comparisons:
            shown["comparisons"] = {
                name: {"other": self.others[name].to_dict(), **one.to_dict()} for name, one in self.comparisons.items()
            }
        return {**shown, "notes": list(self.notes)} if self.notes else shown

    def table(self) -> list[tuple[str, ...]]:
        """Rows for people, the heading first."""
        heading: tuple[str, ...] = ("metric", "unit", "value", "interval", "n")
        rows = [(name, METRICS[name].unit, *_cells(one), str(one.n)) for name, one in self.scores.items()]
        if not self.comparisons:
            return [heading, *rows]
        more = [_compared(self.others[name], self.comparisons[name]) for name in self.scores]
        heading = (*heading, "other", "difference", "interval", "p (Holm)")
        return [heading, *((*row, *cells) for row, cells in zip(rows, more, strict=True))]


def score_files(
    hypotheses: Path,
    references: Path,
    *,
    metrics: Sequence[str] | None = None,
    compare: Path | None = None,
    column: str | None = None,
    reference_column: str | None = None,
    dialogue_column: str | None = None,
    tokeniser: str = "13a",
    lowercase: bool = False,
    encoder: Encoder | None = None,
    encoder_name: str | None = None,
    resamples: int = DEFAULT.resamples,
    level: float = DEFAULT.level,
    interval: str = DEFAULT.method,
    test: str = "randomisation",
    seed: int = 0,
) -> MetricsResult:
    """Score the responses of a file against the references of another, and against another system's responses."""
    # Before reading: a misspelt name should not have to wait for a large file.
    chosen, options = _known(metrics), Options(tokeniser, lowercase, encoder, encoder_name)
    resampling = Resampling(resamples, level, interval, seed)
    _check(options, test)
    columns = {"reference_column": reference_column, "dialogue_column": dialogue_column}
    pairs = read_pairs(hypotheses, references, column=column, **columns)
    other = None if compare is None else _other(pairs, Path(hypotheses), compare, column, dialogue_column)
    return score_pairs(pairs, metrics=chosen, compare=other, options=options, resampling=resampling, test=test)


def score_pairs(
    pairs: Pairs,
    *,
    metrics: Sequence[str] | None = None,
    compare: Pairs | None = None,
    options: Options | None = None,
    resampling: Resampling = DEFAULT,
    test: str = "randomisation",
) -> MetricsResult:
    """Score pairs in memory; `compare` holds another system's responses to the same contexts.

    >>> pairs = Pairs(["the cat sat", "a dog"], ["the cat sat", "a dog"])
    >>> round(score_pairs(pairs, metrics=["bleu-2"]).scores["bleu-2"].value, 6)
    100.0
    """
    options = options or Options()
    _check(options, test)
    names, notes = _available(_known(metrics))
    if compare is not None:
        pairs, compare = _alike(pairs, compare)
    first = measure(pairs, names, options)
    notes = (*notes, *_without_punkt(names, options))  # only now is it known that the libraries are there at all
    scores = {name: _scored(name, one, pairs, options, resampling) for name, one in first.items()}
    notes = (*notes, *_skipped(scores, pairs))
    if compare is None:
        return MetricsResult(scores, notes=notes)
    second = measure(compare, names, options)
    others = {name: _scored(name, one, compare, options, resampling) for name, one in second.items()}
    systems = [f"{side.name.split('/')[0]}@{side.fingerprint}" for side in (pairs, compare)]
    compared = _compare_all(first, second, pairs, options, resampling, test, systems)
    notes = (*notes, *_skipped(others, compare), *_tested_otherwise(compared, test))
    return MetricsResult(scores, others, correct(compared), notes)


def measure(pairs: Pairs, names: Iterable[str], options: Options) -> dict[str, Swappable]:
    """Each metric as a statistic over dialogues; metrics that extract the same do it once."""
    extracted: dict[Callable[..., Any], Any] = {}
    clusters = Clusters.of(pairs.dialogues, n=len(pairs))
    statistics = {}
    for name in names:
        metric = METRICS[name]
        if metric.extract not in extracted:
            extracted[metric.extract] = metric.extract(pairs, options)
        statistics[name] = metric.statistic(extracted[metric.extract], clusters)
    return statistics


def _known(names: Sequence[str] | None) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(names if names is not None else DEFAULT_METRICS))
    if not chosen:
        raise UsageError(f"No metric is named. Known: {', '.join(METRICS)}.")
    for name in chosen:
        if name not in METRICS:
            raise unknown_name("metric", name, METRICS)
    return chosen


def _available(names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Put meteor-stem in the place of meteor where WordNet is missing, and say so."""
    if "meteor" not in names or meteor.has_wordnet():
        return names, ()
    note = "meteor: NLTK does not find WordNet, so meteor-stem stands in its place, exact and stem matches only."
    return tuple(dict.fromkeys("meteor-stem" if name == "meteor" else name for name in names)), (note,)


def _check(options: Options, test: str) -> None:
    if options.tokeniser not in TOKENISERS:
        raise unknown_name("tokeniser", options.tokeniser, TOKENISERS)
    if test not in TESTS:
        raise unknown_name("test", test, TESTS)


def _without_punkt(names: Iterable[str], options: Options) -> tuple[str, ...]:
    """Say which metrics had to do without NLTK's sentence model."""
    lacking = [name for name in names if METRICS[name].settings(options).get("tok") == WITHOUT_PUNKT]
    why = "NLTK does not find its sentence model (punkt_tab), so a text is one sentence and full stops inside it stay"
    return (f"{', '.join(lacking)}: {why} on their words.",) if lacking else ()


def _skipped(scores: Mapping[str, Score], pairs: Pairs) -> tuple[str, ...]:
    """Say which metrics could not score some pairs, and why, where that says more than n does."""
    reasons: dict[str, list[str]] = {}
    for name, one in scores.items():
        if one.value is not None and one.n < len(pairs) and (reason := METRICS[name].skipped_because):
            reasons.setdefault(f"{len(pairs) - one.n} of {len(pairs)} pairs skipped: {reason}", []).append(name)
    return tuple(f"{', '.join(names)} ({pairs.name}): {reason}." for reason, names in reasons.items())


def _tested_otherwise(compared: Mapping[str, Comparison], test: str) -> tuple[str, ...]:
    """Say which metrics were compared by another test than was asked for."""
    names = [name for name, one in compared.items() if one.test != test]
    return (f"{', '.join(names)}: cannot be bootstrapped, so compared by randomisation.",) if names else ()


def _other(pairs: Pairs, hypotheses: Path, compare: Path, column: str | None, dialogue_column: str | None) -> Pairs:
    """The other system's responses beside the same references."""
    theirs = read_column(compare, column=column, names=HYPOTHESIS_COLUMNS, dialogue_column=dialogue_column)
    if len(theirs.texts) != len(pairs):
        counts = f"{hypotheses} holds {len(pairs)} responses and {theirs.path} holds {len(theirs.texts)}"
        raise UsageError(f"{counts}: expected both systems' responses to the same references.")
    check_same_dialogues(pairs.dialogues, theirs.dialogues, names=(str(hypotheses), str(compare)))
    return Pairs(
        theirs.texts,
        pairs.references,
        theirs.dialogues,
        theirs.log_likelihoods,
        theirs.token_counts,
        f"{theirs.path.name}/{pairs.name.split('/')[-1]}",
        _renamed(pairs.columns, theirs.name),
    )


def _renamed(columns: str | None, name: str | None) -> str | None:
    """The columns of the pairs with another system's column in the first place."""
    rest = (columns or "-/-").split("/")[1:]
    return "/".join([name or "-", *rest]) if name or columns else None


def _alike(pairs: Pairs, other: Pairs) -> tuple[Pairs, Pairs]:
    """Both systems' pairs with the same dialogues, or what keeps them from being compared."""
    if len(other) != len(pairs):
        raise UsageError(f"{len(pairs)} and {len(other)} pairs: both systems must answer the same references.")
    for place, (one, another) in enumerate(zip(pairs.references, other.references, strict=True), 1):
        if one != another:
            found = f"reference {place} is {one!r:.40} for {pairs.name} and {another!r:.40} for {other.name}"
            raise UsageError(f"{found}: both systems must answer the same references.")
    check_same_dialogues(pairs.dialogues, other.dialogues, names=(pairs.name, other.name))
    dialogues = pairs.dialogues if pairs.dialogues is not None else other.dialogues
    return replace(pairs, dialogues=dialogues), replace(other, dialogues=dialogues)


def _scored(name: str, statistic: Swappable, pairs: Pairs, options: Options, resampling: Resampling) -> Score:
    skipped = len(pairs) - statistic.n
    return score_statistic(statistic, resampling=resampling, origin=_origin(name, pairs, options), skipped=skipped)


def _origin(name: str, pairs: Pairs, options: Options) -> Origin:
    settings = {"metric": name, **METRICS[name].settings(options), "columns": pairs.columns}
    return Origin(f"{pairs.name}@{pairs.fingerprint}", settings)


def _compare_all(
    first: Mapping[str, Swappable],
    second: Mapping[str, Swappable],
    pairs: Pairs,
    options: Options,
    resampling: Resampling,
    test: str,
    systems: Sequence[str],
) -> dict[str, Comparison]:
    """Compare metric by metric; what cannot be bootstrapped is compared by randomisation."""
    compared = {}
    for name, one in first.items():
        fitting = test if isinstance(one, Resampled) else "randomisation"
        origin = _origin(name, pairs, options)
        compared[name] = compare(one, second[name], test=fitting, resampling=resampling, origin=origin, systems=systems)
    return compared


def _cells(score: Score) -> tuple[str, str]:
    """Value and interval as people read them."""
    if score.value is None:
        return f"not computed: {score.reason}", ""
    if score.interval is None:
        return f"{score.value:.4g}", f"none: {score.interval_reason}" if score.interval_reason else "none"
    return f"{score.value:.4g}", f"[{score.interval[0]:.4g}, {score.interval[1]:.4g}]"


def _compared(other: Score, comparison: Comparison) -> tuple[str, str, str, str]:
    p, difference = comparison.p_holm, comparison.difference
    untested = "" if difference.value is None else f"none: {comparison.reason}"
    return (_cells(other)[0], *_cells(difference), untested if p is None else f"{p:.3g}")
