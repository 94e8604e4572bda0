"""From a path to a set of rated turns, whatever its form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dialoscope.corpus.load import name_of
from dialoscope.engage.human_sets.corpora import from_corpus
from dialoscope.engage.human_sets.rated import HumanSet
from dialoscope.engage.human_sets.tables import from_table, is_table
from dialoscope.errors import UsageError


def read_human(
    path: str | Path,
    *,
    aspect: str | None = None,
    metrics: Sequence[str] = (),
    annotators: Sequence[str] = (),
    name: str | None = None,
    splits: Sequence[str] = (),
) -> HumanSet:
    """Read rated turns: FED, DailyDialog-Human, any corpus with `ratings` on its turns, or a table.

    A table (CSV, TSV, JSONL or Parquet) has the columns ``context`` (a list of turns, or text with turns separated by
    line breaks or `` __eou__ ``), ``response`` (the rated turn), a column of numbers for each annotator, and
    ``dialogue_id`` where it is known. `metrics` are columns with other metrics' scores, `annotators` the columns of
    annotators: name them where other columns have numbers, too. The note says which were read. The folder of
    DailyDialog-Human brings its own metrics: the annotated pairs get the scores that stand in the other file. Of a
    corpus, `splits` names the only ones that are read.

    >>> read_human("fed_data.json", aspect="Engaging")                     # doctest: +SKIP
    >>> read_human("mine.csv", annotators=["ann", "bob"], metrics=["bleu"])  # doctest: +SKIP
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise UsageError(f"No file or folder '{path}' of turns that people rated.")
    if is_table(path):
        if aspect is not None:
            raise UsageError(f"{path}: the columns of a table are annotators of one aspect. Leave out --aspect.")
        if splits:
            raise UsageError(f"{path}: a table has no splits. Leave out --split.")
        return from_table(path, metrics, annotators, name or name_of([path]))
    if annotators:
        raise UsageError(f"{path}: annotators can be named for tables, whose columns they are. Leave them out.")
    return from_corpus(path, aspect, metrics, name, splits)
