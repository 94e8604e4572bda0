"""From a path or a name to a `Corpus`: find the files, recognise them, read them, account for all of them."""

from __future__ import annotations

import difflib
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from dialoscope.corpus.columns import Columns, why_not_dialogue
from dialoscope.corpus.dialogue import Corpus, Dialogue
from dialoscope.corpus.formats import FORMATS, detect, format_named
from dialoscope.corpus.hub import dataset_parts, hub_parts, is_dataset, is_saved
from dialoscope.corpus.readers import Item, Part
from dialoscope.corpus.split import canonical, split_of
from dialoscope.corpus.streams import BadRecord, LeftOut, Source, plain_name
from dialoscope.corpus.write import MARKER
from dialoscope.errors import CorpusError, MissingExtraError, UsageError, unknown_name
from dialoscope.progress import Progress  # of bytes

OnError = Literal["fail", "skip"]
RECORDS = "records"  # the name of a corpus that comes from a list
MOST_PROBLEMS = 100  # problems kept word by word; the counts are complete
DATA_ENDING = re.compile(r"(\.ascii)?\.(jsonl|json|ndjson|csv|tsv|tab|txt|parquet|xml)$")
NO_DATA = re.compile(
    r"(?i)(readme|license|licence|copying|changelog)([-_.].*)?|.*\.(md|rst|pdf|png|py|sh|yaml|yml|toml)|\..*"
)


@dataclass
class Account:
    """What was left out on reading and why: counted by reason, the first problems word by word."""

    on_error: OnError
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    bad_records: int = 0
    on_problem: Callable[[str], None] = lambda problem: None

    def bad(self, label: str, problem: BadRecord) -> None:
        """Count a bad record, or stop at it."""
        where = f"{label}:{problem.line}" if problem.line else label
        if self.on_error == "fail":
            raise CorpusError(f"{where}: {problem}")
        self.bad_records += 1
        self.skipped[f"expected {problem.expected}"] += 1
        self.on_problem(f"{where}: {problem}")
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(f"{where}: {problem}")

    def left_out(self, item: LeftOut) -> None:
        """Count a sound record that is no dialogue."""
        self.skipped[item.reason] += 1


Given = str | Path | Corpus | Sequence[Any]  # a path, a name, or records as the lines of a JSONL file have them


def load(
    *sources: Given,
    train: Given | Sequence[Given] | None = None,
    test: Given | Sequence[Given] | None = None,
    split: str | None = None,
    format: str | None = None,
    on_error: OnError = "fail",
    limit: int | None = None,
    name: str | None = None,
    progress: Progress | None = None,
    on_problem: Callable[[str], None] | None = None,
) -> Corpus:
    """Read files, folders, records or built-in corpora into one corpus.

    >>> corpus = load("chats.jsonl")                            # doctest: +SKIP
    >>> corpus = load("dailydialog/", on_error="skip")          # doctest: +SKIP
    >>> corpus = load(train="a.jsonl", test="b.jsonl")          # two files as one corpus   # doctest: +SKIP
    >>> corpus = load([{"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]}])
    >>> corpus = load("concierge", split="test")                # built in, no download   # doctest: +SKIP

    `on_error="fail"` stops at the first bad record with its file and line; `"skip"` counts bad records by reason in
    `Corpus.skipped` and passes each to `on_problem`. `limit` stops after this many dialogues of each split. `train` and
    `test` become one corpus of these two splits; of a source with several splits, the split of that name is taken.
    """
    if on_error not in ("fail", "skip"):
        raise unknown_name("value for on_error", str(on_error), ["fail", "skip"])
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise UsageError(f"limit takes a whole number of 1 or more, found {limit!r:.40}.")
    options = {"format": format, "on_error": on_error, "limit": limit, "progress": progress, "on_problem": on_problem}
    if train is not None or test is not None:
        if sources:
            raise UsageError("Give one corpus, or training and test data with train= and test=; not both.")
        corpus = _two_sides(train, test, name, options)
    elif len(sources) == 1 and is_dataset(sources[0]):
        corpus = from_dataset(sources[0], name=name or "dataset")
    elif len(sources) == 1 and is_paths(sources[0]):
        corpus = _load_paths(sources[0], name, **options)  # type: ignore[arg-type]
    elif len(sources) == 1 and is_records(sources[0]):
        corpus = _load_records(sources[0], name or RECORDS, options)  # type: ignore[arg-type]
    else:
        corpus = _load_paths(sources, name, **options)  # type: ignore[arg-type]
    return corpus if split is None else corpus.split(*(canonical(each) for each in split.replace(" ", "").split(",")))


def is_records(source: object) -> bool:
    """Whether something is a list of records or dialogues rather than a path."""
    return isinstance(source, Sequence) and not isinstance(source, str | bytes | Path)


def is_paths(source: object) -> bool:
    """Whether something is a list of paths or names."""
    return is_records(source) and bool(source) and all(isinstance(each, str | Path) for each in source)  # type: ignore[attr-defined]


def _load_paths(
    paths: Sequence[str | Path],
    name: str | None,
    *,
    format: str | None,
    on_error: OnError,
    limit: int | None,
    progress: Progress | None,
    on_problem: Callable[[str], None] | None,
) -> Corpus:
    wrong = next((each for each in paths if not isinstance(each, str | Path)), None)
    if wrong is not None:
        raise UsageError(f"load takes paths, names or a list of records, found {type(wrong).__name__}.")
    if not all(map(str, paths)) or not paths:
        raise UsageError("Give at least one path or corpus name.")
    account = Account(on_error, on_problem=on_problem or (lambda problem: None))
    parts, ignored = find_parts(paths, format, account)
    table = _read(parts, account, limit, progress)
    if not table.num_rows:
        raise CorpusError(f"{_joined(paths)}: expected dialogues, found none{_reasons(account)}")
    return Corpus(
        table,
        name=name or name_of(paths),
        format=", ".join(dict.fromkeys(part.format for part in parts)),
        skipped=dict(account.skipped),
        bad_records=account.bad_records,
        problems=tuple(account.problems),
        ignored=ignored,
    )


def _load_records(records: Sequence[Any], name: str, options: Mapping[str, Any]) -> Corpus:
    """Records go the way of a JSONL file, so that both give the same corpus."""
    if not records:
        raise CorpusError("The list of records is empty.")
    if all(isinstance(each, Dialogue) for each in records):
        return Corpus.of(records, name=name)
    with tempfile.TemporaryDirectory() as folder:
        # A folder of a fixed name: no split is read into the random name of the temporary one.
        path = Path(folder) / RECORDS / f"{RECORDS}.jsonl"
        path.parent.mkdir()
        try:
            path.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in records))
        except TypeError as error:
            raise CorpusError(f"A record holds what JSON can hold; {error}.") from error

        def without_path(problem: str) -> str:
            return problem.replace(f"{path}:", f"{name}, record ").replace(str(path), name)

        on_problem = options["on_problem"]
        told = None if on_problem is None else (lambda problem: on_problem(without_path(problem)))
        try:
            corpus = _load_paths([path], name, **{**options, "on_problem": told})
        except CorpusError as error:
            raise CorpusError(without_path(str(error))) from error
        return replace(corpus, problems=tuple(map(without_path, corpus.problems)), ignored={})


def _two_sides(train: Any, test: Any, name: str | None, options: Mapping[str, Any]) -> Corpus:
    """Training and test data as one corpus."""
    if train is None or test is None:
        raise UsageError(f"Give both train and test; {'train' if train is None else 'test'} is missing.")
    sides = {split: _side(source, split, options) for split, source in (("train", train), ("test", test))}
    tables = _with_distinct_ids({split: replace_split(side.table, split) for split, side in sides.items()})
    skipped: Counter[str] = Counter()
    for side in sides.values():
        skipped.update(side.skipped)
    return Corpus(
        pa.concat_tables(tables),
        name=name or " and ".join(side.name for side in sides.values()),
        format=", ".join(dict.fromkeys(side.format for side in sides.values())),
        skipped=dict(skipped),
        bad_records=sum(side.bad_records for side in sides.values()),
        problems=tuple(problem for side in sides.values() for problem in side.problems)[:MOST_PROBLEMS],
        ignored={file: reason for side in sides.values() for file, reason in side.ignored.items()},
    )


def _side(source: Any, split: str, options: Mapping[str, Any]) -> Corpus:
    """One side: several files are read whole; of one source with several splits, the split of that name is taken."""
    corpus = source if isinstance(source, Corpus) else load(source, **options)
    are_files = is_paths(source) and len(source) > 1 and all(Path(path).expanduser().is_file() for path in source)
    return corpus if are_files or len(corpus.splits) == 1 else corpus.split(split)


def _with_distinct_ids(tables: Mapping[str, pa.Table]) -> list[pa.Table]:
    """Both sides' dialogues; where an id stands on both sides, all ids begin with the name of their split."""
    ids = [set(table["id"].to_pylist()) for table in tables.values()]
    if ids[0].isdisjoint(ids[1]):
        return list(tables.values())
    renamed = []
    for split, table in tables.items():
        at = table.schema.get_field_index("id")
        names = pc.binary_join_element_wise(pa.scalar(split), table["id"], "/")
        renamed.append(table.set_column(at, "id", names))
    return renamed


def replace_split(table: pa.Table, split: str) -> pa.Table:
    """The same dialogues, all in one split."""
    at = table.schema.get_field_index("split")
    return table.set_column(at, "split", pa.array([split] * table.num_rows, pa.string()))


def from_dataset(data: Any, *, name: str = "dataset") -> Corpus:
    """A Hugging Face `Dataset` or `DatasetDict` that is in memory already, recognised by its columns."""
    if not is_dataset(data):
        raise UsageError(f"Expected a datasets.Dataset or DatasetDict, found {type(data).__name__}.")
    table = _read(dataset_parts(data, name), Account("fail"), None, None)
    return Corpus(table, name=name, format="hf")


# --- Finding ----------------------------------------------------------------------------------------------------------


def find_parts(paths: Sequence[str | Path], format: str | None, account: Account) -> tuple[list[Part], dict[str, str]]:
    """Files of a corpus with their splits and formats, and what else lies there, with the reason it is not read."""
    if format is not None and format != "hf":
        format_named(format)
    parts: list[Part] = []
    ignored: dict[str, str] = {}
    for given in paths:
        found, aside = _find_one(given, format, account)
        parts += found
        ignored |= aside
    return parts, ignored


def _find_one(given: str | Path, format: str | None, account: Account) -> tuple[list[Part], dict[str, str]]:
    path = Path(given).expanduser()
    if str(given) in NAMED and not path.exists():
        return [NAMED[str(given)]()], {}
    if format == "hf" or str(given).startswith("hf:") or is_saved(path):
        return hub_parts(str(path) if is_saved(path) else str(given).removeprefix("hf:")), {}
    if path.is_dir():
        return _find_in_folder(path, format, account)
    if path.exists() and not path.is_file():
        raise CorpusError(f"{path}: expected a file or a folder, found something else")
    if not path.exists():
        raise _no_such(given, [*NAMED, *map(str, _neighbours(path))])
    return [part for part in [_part(path, path.parent, format, account)] if part], {}


def _no_such(given: str | Path, known: Sequence[str]) -> CorpusError:
    close = difflib.get_close_matches(str(given), known, n=1)
    hint = f"Did you mean '{close[0]}'?" if close else f"Built in: {', '.join(NAMED)}; 'hf:NAME' for a hub."
    return CorpusError(f"No corpus, file or folder '{given}'. {hint}")


def _neighbours(path: Path) -> list[Path]:
    return list(islice(path.parent.iterdir(), 1000)) if path.parent.is_dir() else []


def _concierge() -> Part:
    from dialoscope.corpus.generate import generate

    return Part("concierge", "", "concierge", 0, lambda moved: iter(generate().table.to_batches()))


def _chitchat() -> Part:
    """The data set that the package `chitchat-dataset` carries (extra: demo)."""
    spec = find_spec("chitchat_dataset")
    if spec is None or spec.origin is None:
        raise MissingExtraError("The corpus 'chitchat'", "demo")
    return _file_part(Path(spec.origin).with_name("dataset.json"), "all", "chitchat")


NAMED: dict[str, Callable[[], Part]] = {"concierge": _concierge, "chitchat": _chitchat}


def _find_in_folder(root: Path, format: str | None, account: Account) -> tuple[list[Part], dict[str, str]]:
    entries = sorted(_walked(root), key=_natural)
    files = [path for path in entries if path.is_file()]
    ignored = {path: "not a file" for path in entries if not path.is_file()}
    ignored |= {path: "not a data file" for path in files if _is_no_data(path.relative_to(root))}
    for form in FORMATS.values():
        if form.set_aside is not None:
            ignored |= form.set_aside([path for path in files if path not in ignored])
    found = [_part(path, root, format, account) for path in files if path not in ignored]
    if not found:
        raise CorpusError(f"{root}: expected dialogue files in this folder, found none")
    return [part for part in found if part], {str(path): reason for path, reason in ignored.items()}


def _walked(root: Path) -> Iterator[Path]:
    """Everything below a folder but folders and our own marks; links are followed, each folder once."""

    def fail(error: OSError) -> None:
        raise CorpusError(f"{error.filename}: this folder cannot be read: {error.strerror}") from error

    seen: set[str] = set()
    for folder, folders, names in os.walk(root, followlinks=True, onerror=fail):
        real = {name: os.path.realpath(Path(folder, name)) for name in folders}
        folders[:] = [name for name in folders if real[name] not in seen]
        seen.update(real.values())
        yield from (Path(folder, name) for name in names if name != MARKER)


def _is_no_data(path: Path) -> bool:
    """Documents, and whatever is hidden: version control, caches, outputs that were never finished."""
    return NO_DATA.fullmatch(path.name) is not None or any(part.startswith(".") for part in path.parts)


def _part(path: Path, root: Path, format: str | None, account: Account) -> Part | None:
    """A file ready to be read, or None where it is not recognised and bad records are skipped."""
    try:
        return _file_part(path, split_of(path, root), format or detect(Source(path)))
    except BadRecord as bad:
        account.bad(str(path), bad)
        return None
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror or error}") from error


def _file_part(path: Path, split: str, format: str) -> Part:
    form = FORMATS[format]
    return Part(str(path), split, format, path.stat().st_size, lambda moved: form.items(Source(path, moved)))


def _natural(path: Path) -> list[tuple[int, str]]:
    """`part_2` before `part_10`."""
    return [(int(piece), "") if piece.isdecimal() else (0, piece) for piece in re.split(r"(\d+)", str(path))]


# --- Reading ----------------------------------------------------------------------------------------------------------


class _Reading:
    """Items of all parts into columns, with an account of what was left out."""

    def __init__(self, account: Account, limit: int | None) -> None:
        self.account, self.limit = account, limit
        self.columns = Columns()
        self.taken: Counter[str] = Counter()  # dialogues by split
        self.names_splits = False  # whether a record of the current part has named its split itself

    def read(self, part: Part, prefix: str, moved: Callable[[int], None]) -> None:
        """Take every item of one part."""
        number = items = 0
        self.names_splits = False
        try:
            for item in part.read(moved):
                items += 1
                number += self._take(item, part, prefix, number)
                if self._has_enough(part):
                    return
            if not items:
                self.account.bad(part.label, BadRecord("dialogues", "none"))
        except BadRecord as bad:
            self.account.bad(part.label, bad)
        except OSError as error:
            raise CorpusError(f"{part.label}: cannot be read: {error.strerror or error}") from error

    def _has_enough(self, part: Part) -> bool:
        """Whether reading on is idle: never where records name their own splits, for another one may follow."""
        return self.limit is not None and not self.names_splits and self.taken[part.split] >= self.limit

    def _take(self, item: Item, part: Part, prefix: str, number: int) -> int:
        """Take one item; how many dialogues it held."""
        if isinstance(item, pa.RecordBatch):
            self.names_splits |= item["split"].null_count < len(item)
            self.columns.add_batch(self._limited(_filled(item, prefix, number, part.split)))
            return int(item.num_rows)
        if isinstance(item, BadRecord):
            self.account.bad(part.label, item)
            return 0
        if isinstance(item, LeftOut):
            self.account.left_out(item)
            return 0
        line, dialogue = item
        self._add(line, dialogue, part, f"{prefix}-{number + 1}")
        return 1

    def _add(self, line: int, dialogue: Dialogue, part: Part, default_id: str) -> None:
        problem = why_not_dialogue(dialogue)
        if problem is not None:
            self.account.bad(part.label, problem.at(line))
            return
        self.names_splits |= bool(dialogue.split)
        split = dialogue.split or part.split
        if self.limit is None or self.taken[split] < self.limit:
            self.taken[split] += 1
            try:
                self.columns.add(dialogue, default_id=default_id, default_split=part.split)
            except BadRecord as bad:
                self.account.bad(part.label, bad.at(line))

    def _limited(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.limit is None:
            return batch
        kept = []
        for split in batch["split"].to_pylist():
            kept.append(self.taken[split] < self.limit)
            self.taken[split] += kept[-1]
        return batch.filter(pa.array(kept, pa.bool_()))


def _read(parts: Sequence[Part], account: Account, limit: int | None, progress: Progress | None) -> pa.Table:
    reading = _Reading(account, limit)
    total, done = sum(part.size for part in parts), 0
    folder = os.path.commonpath([Path(part.label).absolute().parent for part in parts]) if parts else ""
    for part in parts:
        reading.read(part, _id_prefix(part.label, folder), _mover(progress, done, total))
        done += part.size
    if progress is not None:
        progress(total, total)
    return reading.columns.table()


def _mover(progress: Progress | None, done: int, total: int) -> Callable[[int], None]:
    return (lambda position: None) if progress is None else (lambda position: progress(done + position, total))


def _id_prefix(label: str, folder: str) -> str:
    """Ids made by us say where a dialogue came from: `train/chats-17` is the 17th of that file."""
    path = Path(label).absolute().relative_to(folder)
    return path.with_name(DATA_ENDING.sub("", plain_name(path))).as_posix()


def _filled(batch: pa.RecordBatch, prefix: str, before: int, split: str) -> pa.RecordBatch:
    """Give ids and a split to dialogues that have none."""
    columns = {name: batch[name] for name in batch.schema.names}
    for name in ("id", "split"):
        columns[name] = pc.if_else(pc.equal(columns[name], ""), None, columns[name])
    if columns["id"].null_count:
        numbers = pa.array(np.arange(before + 1, before + 1 + batch.num_rows)).cast(pa.string())
        made = pc.binary_join_element_wise(pa.scalar(prefix), numbers, "-")
        columns["id"] = pc.coalesce(columns["id"], made)
    columns["split"] = pc.fill_null(columns["split"], split)
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def name_of(paths: Sequence[str | Path]) -> str:
    """A short name of a corpus, from its path."""
    first = Path(str(paths[0]).removeprefix("hf:"))
    name = DATA_ENDING.sub("", plain_name(Path(os.path.normpath(first.absolute())))) or "corpus"
    return name if len(paths) == 1 else f"{name} and {len(paths) - 1} more"


def _joined(paths: Sequence[str | Path]) -> str:
    return ", ".join(map(str, paths))


def _reasons(account: Account) -> str:
    counts = "; ".join(f"{count} × {reason}" for reason, count in account.skipped.most_common(3))
    return f" ({counts})" if counts else ""
