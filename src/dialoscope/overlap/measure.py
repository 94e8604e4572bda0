"""How much of a test set stands in its training set, or of a corpus in the rest of itself."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import pyarrow as pa

from dialoscope.corpus import Corpus
from dialoscope.corpus.split import split_for, split_to_read
from dialoscope.errors import UsageError
from dialoscope.overlap.engine import Engine, Floats, Here, Match, Matches
from dialoscope.overlap.responses import read_answers
from dialoscope.overlap.result import OverlapResult, matches_table, origin_settings
from dialoscope.overlap.settings import OverlapSettings
from dialoscope.overlap.sides import left_out
from dialoscope.progress import Progress
from dialoscope.record import Origin
from dialoscope.report.result import skipped
from dialoscope.settings import with_options

if TYPE_CHECKING:
    from dialoscope.overlap.spark.parquet import Parquet, ParquetSides

Data: TypeAlias = "Corpus | Parquet | ParquetSides"
SHOWN = 20  # examples of matches


def measure(
    corpus: Data | Sequence[str],
    test: Sequence[str] | None = None,
    *,
    against: Mapping[str, Corpus] | None = None,
    settings: OverlapSettings | None = None,
    models: Mapping[str, Any] | None = None,
    work: Path | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> OverlapResult:
    """Find, for every test unit, the training unit that it overlaps with most.

    The ratio of two texts is 2 |u and v| / (|u| + |v|) over their sets of words; a sample (context, response) takes the
    smaller ratio of its two parts. Wen et al., section 3. A corpus of one split is compared with itself.

    With `against`, benchmarks by name are measured in place of the test split, each against the training split.

    >>> measure(["a b c d"], ["a b c e"]).ratio.tolist()  # two lists of texts: training and test
    [0.75]
    """
    settings = with_options(settings, OverlapSettings, options)
    if test is not None and not isinstance(corpus, list | tuple):
        raise UsageError("overlap takes one corpus, or two lists of texts. Load two files with load(train=…, test=…).")
    whole = Corpus.of_texts(corpus, test) if isinstance(corpus, list | tuple) else cast(Data, corpus)
    check_data(whole, against, models, engine)
    engine = engine or Here()
    parts = parts_for(whole, against, settings)
    unit = settings.unit or _usual_unit(parts, engine)
    reference = engine.side(parts.reference, unit=unit, context_turns=settings.context_turns)
    tables, examples, names = list[pa.Table](), list[Match](), list[str]()
    reasons, units, without_words = dict[str, str](), dict[str, int](), dict[str, int]()
    without_response = 0
    for part, data in parts.measured.items():
        side = engine.side(data, unit=unit, context_turns=settings.context_turns)
        matches = engine.best_matches(
            side,
            reference,
            words=settings.words,
            is_same=parts.is_same,
            choose=lambda ratio: _worth_showing(ratio, settings.leak),
        )
        table = matches_table(part, matches, unit)
        if unit == "sample":
            without_response += len(data) - len(table["dialogue"].unique())
        if reason := why_not_measurable(matches, unit):
            reasons[part] = reason
        units[part], without_words[part] = len(matches.ids), matches.without_words
        units.setdefault("reference", matches.n_reference)
        tables.append(table)
        names.append(side.name)
        examples += matches.examples
    result = OverlapResult(
        settings=settings,
        parts=parts.sizes,
        used=parts.used,
        counts={
            **skipped(left_out(whole, *(against or {}).values()), {"a dialogue without a response": without_response}),
            "units": units,
            "without_words": {part: count for part, count in without_words.items() if count},
        },
        origin=_origin(whole, settings, unit, [reference.name, *names]),
        matches=pa.concat_tables(tables),
        measured=tuple(parts.measured),
        unit=unit,
        is_within=parts.is_same,
        examples=tuple(examples),
        reasons=reasons,
    )
    if settings.hypotheses is None:
        return result
    measured = next(iter(parts.measured.values()))
    return result.with_answers(read_answers(measured, unit, settings))


@dataclass(frozen=True, eq=False)
class MeasuredParts:
    """The data that is measured, by part, and the data that it is compared with."""

    measured: Mapping[str, Any]
    uncut: Mapping[str, Any]  # the same before the limit, by which the usual unit is decided
    reference: Any
    sizes: Mapping[str, int]
    used: str
    is_same: bool


def parts_for(corpus: Data, against: Mapping[str, Corpus] | None, settings: Any) -> MeasuredParts:
    """The test split and the training split, one split twice, or benchmarks and the training split."""
    if not against:
        # Files that Spark reads have the splits, sizes and names of a corpus, which is all that is asked for here.
        whole = cast(Corpus, corpus)
        names: dict[str, Any] = {"split": settings.split, "train_split": settings.train_split}
        parts = split_for(whole, alone="itself", limit=settings.limit, **names)
        part = list(parts.sizes)[-1]
        uncut = {part: parts.uncut}
        return MeasuredParts({part: parts.measured}, uncut, parts.reference, parts.sizes, parts.used, parts.is_same)
    reference, *_ = split_to_read(cast(Corpus, corpus), split=settings.train_split, usual="train", option="train_split")
    uncut = {
        name.replace("/", "_"): split_to_read(benchmark, split=settings.split, takes_file=False)[0]
        for name, benchmark in against.items()
    }
    measured = {name: data if settings.limit is None else data[: settings.limit] for name, data in uncut.items()}
    if len(measured) < len(against) or {"train", "reference"} & measured.keys():
        raise UsageError("Give benchmarks different names, none of them 'train' or 'reference'.")
    counted = ", ".join(f"{name} ({len(data):,} dialogues)" for name, data in measured.items())
    used = f"Measured: {counted}. Compared with: {corpus.name}, {len(reference):,} dialogues."
    sizes = {"train": len(reference), **{name: len(data) for name, data in measured.items()}}
    return MeasuredParts(measured, uncut, reference, sizes, used, is_same=False)


def _usual_unit(parts: MeasuredParts, engine: Engine) -> str:
    """Samples between two splits, dialogues within one; dialogues of single turns have no samples."""
    if parts.is_same:
        return "dialogue"
    is_of_texts = all(engine.is_of_single_turns(data) for data in (*parts.uncut.values(), parts.reference))
    return "dialogue" if is_of_texts else "sample"


def check_data(
    corpus: object, against: object, models: Mapping[str, Any] | None = None, engine: Engine | None = None
) -> None:
    """Refuse what cannot be compared, in one line."""
    if models:
        raise UsageError("overlap asks no models: leave them out.")
    if against is not None and not isinstance(against, Mapping):
        raise UsageError(f"against takes corpora by name, {{'name': corpus}}, found {type(against).__name__}.")
    kinds: tuple[type, ...] = (Corpus,)
    if engine is not None:
        from dialoscope.overlap.spark.parquet import Parquet, ParquetSides

        kinds = (Corpus, Parquet, ParquetSides)
    for data in (corpus, *(against or {}).values()):
        if not isinstance(data, kinds):
            hint = "Load it with dialoscope.load, or make one of lists with Corpus.of_texts or Corpus.of_pairs."
            raise UsageError(f"overlap compares corpora, found {type(data).__name__}. {hint}")


def why_not_measurable(matches: Matches, unit: str) -> str | None:
    """Why the matches say nothing, or None."""
    kind, hint = ("response", "; --unit turn compares every turn") if unit == "sample" else ("turn", "")
    if not len(matches.ids):
        return f"no measured dialogue has a {kind}{hint}"
    if not matches.n_reference:
        return f"no dialogue to compare with has a {kind}{hint}"
    if matches.without_words == len(matches.ids):
        return f"no measured {unit} has words"
    if matches.n_reference_without_words == matches.n_reference:
        return f"no {unit} to compare with has words"
    return None


def _worth_showing(ratio: Floats, leak: float) -> list[int]:
    """Rows of the matches that are shown as text: the closest that are not identical, and one that is."""
    near = np.flatnonzero((ratio > leak) & (ratio < 1))
    near = near[np.argsort(-ratio[near], kind="stable")][: SHOWN - 1]
    identical = np.flatnonzero(ratio == 1)[:1] if leak < 1 else near[:0]
    return [*near.tolist(), *identical.tolist()]


def _origin(corpus: Data, settings: OverlapSettings, unit: str, names: list[str]) -> Origin:
    """What has to be repeated to get the same ratios; `names` are those of the compared data, the reference first."""
    if isinstance(corpus, Corpus):
        name = f"{corpus.name}@{corpus.fingerprint}"
    else:  # Spark's fingerprints are of each side
        name = f"{corpus.name}@{hashlib.sha256(' '.join(names).encode()).hexdigest()[:12]}"
    return Origin(name, origin_settings(settings, unit, ",".join(names[1:])), settings.seed)
