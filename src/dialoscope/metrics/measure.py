"""How good responses are, by metrics against references, and whether they are better than another system's."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dialoscope.errors import UsageError
from dialoscope.metrics.bootstrap import Resampling
from dialoscope.metrics.embedding import Encoder
from dialoscope.metrics.options import Options
from dialoscope.metrics.pairs import (
    HYPOTHESIS_COLUMNS,
    REFERENCE_COLUMNS,
    Pairs,
    check_same_dialogues,
    read_column,
    read_pairs,
)
from dialoscope.metrics.result import MetricsResult, responses_table
from dialoscope.metrics.score import METRICS, Scored, compare_systems, score_pairs
from dialoscope.metrics.settings import ALL, MetricsSettings
from dialoscope.record import Origin
from dialoscope.report.result import skipped
from dialoscope.settings import with_options

Texts = Sequence[str] | str | Path  # texts, or a file that holds them
SYSTEM = "hypotheses"  # the name of a system whose responses are a list


def measure(
    hypotheses: Texts | Pairs,
    references: Texts | None = None,
    *,
    dialogues: Sequence[Hashable] | None = None,
    against: Mapping[str, Texts | Pairs] | None = None,
    settings: MetricsSettings | None = None,
    name: str | None = None,
    encoder: Encoder | None = None,
    **options: Any,
) -> MetricsResult:
    """Score responses against references, and against other systems' responses to the same references.

    `hypotheses` and `references` are lists of texts or files of them; `Pairs` hold both. `dialogues` has the dialogue
    of each response: intervals and tests draw whole dialogues. `name` is what the system is called in the result; the
    default is the file's name. `encoder` gives the word vectors of the embedding metrics.

    >>> result = measure(["a cat", "a dog"], ["a cat", "a dog"], metrics=["bleu-2"])
    >>> round(result.scores()["hypotheses/all/bleu-2"].value, 6)
    100.0
    """
    settings = with_options(settings, MetricsSettings, options)
    pairs = pairs_of(hypotheses, references, dialogues, settings)
    others = {other: beside(pairs, texts, other, settings) for other, texts in (against or {}).items()}
    pairs, others = with_same_dialogues(pairs, others)
    system = name or pairs.name.split("/")[0]
    if system in others:
        raise UsageError(f"Two systems are called '{system}': give the other one another name, or this one a name.")

    choices = Options(settings.tokeniser, settings.lowercase, encoder)
    resampling = Resampling(settings.resamples, settings.level, settings.method, settings.seed)
    is_lenient = ALL in settings.metrics
    scored = score_pairs(pairs, metrics=settings.names, options=choices, resampling=resampling, is_lenient=is_lenient)
    theirs, comparisons, notes = compare_systems(
        pairs, others, scored.statistics, options=choices, resampling=resampling, test=settings.test
    )
    systems = {system: (pairs, scored), **{other: (others[other], theirs[other]) for other in others}}
    return MetricsResult(
        settings=settings,
        parts={"all": count_dialogues(pairs)},
        used=used_of(pairs),
        counts=skipped(*(left_out(*each) for each in systems.values())),
        origin=origin_of(pairs, others, scored, settings, choices),
        system=system,
        system_scores={system: dict(each.scores) for system, (_, each) in systems.items()},
        comparisons=comparisons,
        responses=responses_table({system: (both, each.statistics) for system, (both, each) in systems.items()}),
        notes=tuple(dict.fromkeys((*scored.notes, *(note for each in theirs.values() for note in each.notes), *notes))),
    )


def pairs_of(
    hypotheses: Texts | Pairs,
    references: Texts | None,
    dialogues: Sequence[Hashable] | None,
    settings: MetricsSettings,
) -> Pairs:
    """Responses beside their references, whatever holds them."""
    if isinstance(hypotheses, Pairs):
        if references is not None or dialogues is not None:
            raise UsageError("Pairs hold references and dialogues: leave references and dialogues out.")
        return hypotheses
    if references is None:
        raise UsageError("measure takes hypotheses and references, or Pairs; references are missing.")
    if is_file(hypotheses) and is_file(references):
        columns = {"reference_column": settings.reference_column, "dialogue_column": settings.dialogue_column}
        pairs = read_pairs(Path(str(hypotheses)), Path(str(references)), column=settings.column, **columns)
    else:
        ours, name = texts_of(hypotheses, "hypotheses", settings.column, HYPOTHESIS_COLUMNS)
        theirs, other = texts_of(references, "references", settings.reference_column, REFERENCE_COLUMNS)
        pairs = Pairs(ours, theirs, name=f"{name}/{other}")
    return pairs if dialogues is None else replace(pairs, dialogues=dialogues)


def beside(pairs: Pairs, texts: Texts | Pairs, name: str, settings: MetricsSettings) -> Pairs:
    """Another system's responses beside the same references."""
    if isinstance(texts, Pairs):
        check_same_references(pairs, texts)
        return texts
    if is_file(texts):
        where = {"column": settings.column, "dialogue_column": settings.dialogue_column}
        column = read_column(Path(str(texts)), names=HYPOTHESIS_COLUMNS, **where)
        check_same_dialogues(pairs.dialogues, column.dialogues, names=(pairs.name, str(texts)))
        rest = (pairs.columns or "-/-").split("/")[1:]
        columns = "/".join([column.name or "-", *rest]) if column.name or pairs.columns else None
        beside_texts = (column.dialogues, column.log_likelihoods, column.token_counts)
        found, called = column.texts, column.path.name
    else:
        found, called = texts_of(texts, f"against['{name}']", None, HYPOTHESIS_COLUMNS)
        beside_texts, columns = (None, None, None), None
    if len(found) != len(pairs):
        counts = f"{pairs.name.split('/')[0]} holds {len(pairs)} responses and {called} holds {len(found)}"
        raise UsageError(f"{counts}: expected both systems' responses to the same references.")
    return Pairs(found, pairs.references, *beside_texts, f"{called}/{pairs.name.split('/')[-1]}", columns)


def is_file(texts: object) -> bool:
    """Whether this is a path rather than a list of texts."""
    return isinstance(texts, str | Path)


def texts_of(texts: Any, role: str, column: str | None, names: Sequence[str]) -> tuple[Sequence[str], str]:
    """The texts of a list or a file, and what they are called."""
    if is_file(texts):
        path = Path(str(texts))
        return read_column(path, column=column, names=names).texts, path.name
    if isinstance(texts, Mapping) or not hasattr(texts, "__len__") or not hasattr(texts, "__iter__"):
        raise UsageError(f"{role} takes a list of texts or a file, found {type(texts).__name__}.")
    listed = list(texts)
    for place, text in enumerate(listed, 1):
        if not isinstance(text, str):
            raise UsageError(f"{role} takes texts; number {place} is {text!r:.40}.")
    return listed, role if role in (SYSTEM, "references") else role.split("'")[1]


def check_same_references(pairs: Pairs, other: Pairs) -> None:
    """Two systems are compared on the same references only."""
    if len(other) != len(pairs):
        raise UsageError(f"{len(pairs)} and {len(other)} pairs: both systems must answer the same references.")
    for place, (mine, theirs) in enumerate(zip(pairs.references, other.references, strict=True), 1):
        if mine != theirs:
            found = f"reference {place} is {mine!r:.40} for {pairs.name} and {theirs!r:.40} for {other.name}"
            raise UsageError(f"{found}: both systems must answer the same references.")
    check_same_dialogues(pairs.dialogues, other.dialogues, names=(pairs.name, other.name))


def with_same_dialogues(pairs: Pairs, others: Mapping[str, Pairs]) -> tuple[Pairs, dict[str, Pairs]]:
    """All systems with the dialogues that any of them names."""
    named = next((each.dialogues for each in (pairs, *others.values()) if each.dialogues is not None), None)
    return replace(pairs, dialogues=named), {name: replace(each, dialogues=named) for name, each in others.items()}


def count_dialogues(pairs: Pairs) -> int:
    """Dialogues behind the responses; without names each response is one."""
    return len(pairs) if pairs.dialogues is None else len(set(pairs.dialogues))


def used_of(pairs: Pairs) -> str:
    """Which responses were scored."""
    count = f"{len(pairs):,} response{'' if len(pairs) == 1 else 's'}"
    if pairs.dialogues is None:
        return f"Measured: {count}. No dialogues were named, so intervals draw single responses."
    return f"Measured: {count} of {count_dialogues(pairs):,} dialogues. Intervals draw whole dialogues."


def left_out(pairs: Pairs, scored: Scored) -> dict[str, int]:
    """Pairs that a metric could not score, by reason."""
    reasons = {
        name: METRICS[name].skipped_because or "the response is too short" if score.reason is None else score.reason
        for name, score in scored.scores.items()
        if score.n < len(pairs)
    }
    return {f"{name}: {reason}": len(pairs) - scored.scores[name].n for name, reason in reasons.items()}


def origin_of(
    pairs: Pairs, others: Mapping[str, Pairs], scored: Scored, settings: MetricsSettings, options: Options
) -> Origin:
    """What has to be repeated to get the same numbers: responses, settings, and how each metric reads them."""
    changed = {key: value for key, value in settings.changed().items() if key not in ("seed", "metrics")}
    how = {
        name: ",".join(f"{key}={value}" for key, value in METRICS[name].settings(options).items())
        for name in scored.statistics
    }
    systems = {other: each.fingerprint for other, each in others.items()}
    return Origin(
        f"{pairs.name}@{pairs.fingerprint}", {**changed, **systems, "columns": pairs.columns, **how}, settings.seed
    )
