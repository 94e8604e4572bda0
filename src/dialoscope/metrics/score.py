"""Score hypotheses against references: any metrics of one table, each number with its n, interval and signature."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dialoscope.errors import DialoscopeError, unknown_name
from dialoscope.metrics import bleu, distinct, embedding, length, meteor, perplexity, rouge
from dialoscope.metrics.bootstrap import DEFAULT, Resampling
from dialoscope.metrics.bootstrap import score as score_statistic
from dialoscope.metrics.options import Metric, Options
from dialoscope.metrics.paired import Comparison, compare, correct
from dialoscope.metrics.pairs import Pairs
from dialoscope.metrics.settings import DEFAULT_METRICS
from dialoscope.metrics.statistic import Clusters, Resampled, Swappable
from dialoscope.metrics.tokens import WITHOUT_PUNKT
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


@dataclass(frozen=True, eq=False)
class Scored:
    """One system's scores by metric, the statistics behind them, and what has to be said of them."""

    scores: Mapping[str, Score]
    statistics: Mapping[str, Swappable] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def score_pairs(
    pairs: Pairs,
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    options: Options | None = None,
    resampling: Resampling = DEFAULT,
    is_lenient: bool = False,
) -> Scored:
    """Score the pairs of one system. With `is_lenient`, a metric that cannot be computed here says why.

    >>> pairs = Pairs(["the cat sat", "a dog"], ["the cat sat", "a dog"])
    >>> round(score_pairs(pairs, metrics=["bleu-2"]).scores["bleu-2"].value, 6)
    100.0
    """
    options = options or Options()
    for name in metrics:
        if name not in METRICS:
            raise unknown_name("metric", name, METRICS)
    reasons = _reasons(metrics, options) if is_lenient else {}
    names, notes = _available([name for name in metrics if name not in reasons])
    statistics = statistics_of(pairs, names, options)
    notes = (*notes, *_without_punkt(names, options))  # only now is it known that the libraries are there at all
    scores = {name: _scored(name, statistic, pairs, options, resampling) for name, statistic in statistics.items()}
    scores |= {name: Score.missing(reason, n=0) for name, reason in reasons.items()}
    left_out = tuple(f"{name}: {reason}" for name, reason in reasons.items())
    asked = ["meteor-stem" if name == "meteor" and name not in scores else name for name in metrics]
    ordered = {name: scores[name] for name in asked}
    return Scored(ordered, statistics, (*notes, *_skipped(scores, pairs), *left_out))


def compare_systems(
    pairs: Pairs,
    others: Mapping[str, Pairs],
    first: Mapping[str, Swappable],
    *,
    options: Options,
    resampling: Resampling,
    test: str,
) -> tuple[dict[str, Scored], dict[str, dict[str, Comparison]], tuple[str, ...]]:
    """Score other systems and compare each with the first, by Holm's correction over all comparisons."""
    scored: dict[str, Scored] = {}
    compared: dict[tuple[str, str], Comparison] = {}
    for system, other in others.items():
        scored[system] = score_pairs(other, metrics=list(first), options=options, resampling=resampling)
        systems = [f"{side.name.split('/')[0]}@{side.fingerprint}" for side in (pairs, other)]
        found = _compare_all(first, scored[system].statistics, pairs, options, resampling, test, systems)
        compared |= {(system, name): comparison for name, comparison in found.items()}
    corrected = correct(compared)
    tables = {system: {name: each for (whose, name), each in corrected.items() if whose == system} for system in others}
    notes = dict.fromkeys(note for table in tables.values() for note in _tested_otherwise(table, test))
    return scored, tables, tuple(notes)


def statistics_of(pairs: Pairs, names: Iterable[str], options: Options) -> dict[str, Swappable]:
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


def _reasons(names: Sequence[str], options: Options) -> dict[str, str]:
    """Why metrics cannot be computed on this computer, tried on one pair: a package or a download is missing."""
    tried, reasons = Pairs(["a"], ["a"]), dict[str, str]()
    for name in names:
        try:
            METRICS[name].extract(tried, options)
        except DialoscopeError as error:
            reasons[name] = str(error).rstrip(".")
    return reasons


def _available(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Put meteor-stem in the place of meteor where WordNet is missing, and say so."""
    if "meteor" not in names or meteor.has_wordnet():
        return tuple(dict.fromkeys(names)), ()
    note = "meteor: NLTK does not find WordNet, so meteor-stem stands in its place, exact and stem matches only."
    return tuple(dict.fromkeys("meteor-stem" if name == "meteor" else name for name in names)), (note,)


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
