"""From a path or a name to a `Corpus`: find the files, recognise them, read them, account for all of them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from turnwise.corpus.columns import Columns
from turnwise.corpus.dialogue import Corpus, Dialogue, in_corpus_order
from turnwise.corpus.formats import FORMATS, detect, format_named
from turnwise.corpus.hub import hub_parts, is_saved
from turnwise.corpus.readers import Part
from turnwise.corpus.split import split_of
from turnwise.corpus.streams import BadRecord, LeftOut, Source, plain_name, why_not_text
from turnwise.errors import CorpusError, UsageError, unknown_name

OnError = Literal["fail", "skip"]
Progress = Callable[[int, int], None]  # bytes read so far, bytes in all
MOST_PROBLEMS = 100  # problems kept word by word; the counts are complete
NO_DATA = re.compile(
    r"(?i)(readme|license|licence|copying|changelog)([-_.].*)?|.*\.(md|rst|pdf|png|py|sh|yaml|yml|toml)|\..*"
)


@dataclass
class Account:
    """What was left out on reading and why: counted by reason, the first problems word by word."""

    on_error: OnError
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def bad(self, label: str, problem: BadRecord) -> None:
        """Count a bad record, or stop at it."""
        where = f"{label}:{problem.line}" if problem.line else label
        if self.on_error == "fail":
            raise CorpusError(f"{where}: {problem}")
        self.skipped[f"expected {problem.expected}"] += 1
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(f"{where}: {problem}")

    def left_out(self, item: LeftOut) -> None:
        """Count a sound record that is no dialogue."""
        self.skipped[item.reason] += 1


def load(
    *paths: str | Path,
    format: str | None = None,
    on_error: OnError = "fail",
    limit: int | None = None,
    name: str | None = None,
    progress: Progress | None = None,
) -> Corpus:
    """Read files, folders, saved data sets or built-in corpora into one corpus.

    >>> corpus = load("chats.jsonl")                            # doctest: +SKIP
    >>> corpus = load("dailydialog/", on_error="skip")          # doctest: +SKIP
    >>> corpus = load("concierge")                              # built in, no download   # doctest: +SKIP

    `on_error="fail"` stops at the first bad record with its file and line; `"skip"` counts bad records by reason in
    `Corpus.skipped`. `limit` stops after so many dialogues of each split.
    """
    if not paths:
        raise UsageError("Give at least one path or corpus name.")
    if on_error not in ("fail", "skip"):
        raise unknown_name("value for on_error", str(on_error), ["fail", "skip"])
    if len(paths) == 1 and str(paths[0]) == "concierge":
        return _built_in(limit)
    parts, ignored = _find(paths, format)
    account = Account(on_error)
    table = _read(parts, account, limit, progress)
    if not table.num_rows:
        raise CorpusError(f"{_joined(paths)}: expected dialogues, found none{_reasons(account)}")
    return Corpus(
        in_corpus_order(table),
        name=name or _name_of(paths),
        format=", ".join(dict.fromkeys(part.format for part in parts)),
        skipped=dict(account.skipped),
        problems=tuple(account.problems),
        ignored=ignored,
    )


def _built_in(limit: int | None) -> Corpus:
    from turnwise.corpus.generate import generate

    corpus = generate()
    return corpus if limit is None else first_of_each_split(corpus, limit)


def first_of_each_split(corpus: Corpus, limit: int) -> Corpus:
    """At most `limit` dialogues of each split, the first ones."""
    splits = np.asarray(corpus.table["split"].to_pylist())
    kept = [np.flatnonzero(splits == name)[:limit] for name in corpus.splits]
    return corpus.select(np.sort(np.concatenate(kept)))


# --- Finding ----------------------------------------------------------------------------------------------------------


def _find(paths: Sequence[str | Path], format: str | None) -> tuple[list[Part], dict[str, str]]:
    parts: list[Part] = []
    ignored: dict[str, str] = {}
    for given in paths:
        found, aside = _find_one(given, format)
        parts += found
        ignored |= aside
    return parts, ignored


def _find_one(given: str | Path, format: str | None) -> tuple[list[Part], dict[str, str]]:
    if format is not None and format != "hf":
        format_named(format)
    path = _named(given)
    if format == "hf" or str(given).startswith("hf:") or is_saved(path):
        return hub_parts(str(given).removeprefix("hf:")), {}
    if path.is_dir():
        return _find_in_folder(path, format)
    if not path.exists():
        known = [*NAMED, *(str(other) for other in _neighbours(path))]
        raise _no_such(given, known)
    return [_part(path, path.parent, format)], {}


def _no_such(given: str | Path, known: Iterable[str]) -> CorpusError:
    hint = str(unknown_name("", str(given), known)).partition(". ")[2]
    hint = hint if hint.startswith("Did you mean") else f"Built-in corpora: {', '.join(NAMED)}; 'hf:NAME' for a hub."
    return CorpusError(f"No corpus, file or folder '{given}'. {hint}")


def _neighbours(path: Path) -> list[Path]:
    return list(path.parent.iterdir())[:1000] if path.parent.is_dir() else []


def _chitchat() -> Path:
    """The data set that the package `chitchat-dataset` carries (extra: demo)."""
    spec = find_spec("chitchat_dataset")
    if spec is None or spec.origin is None:
        raise UsageError("The corpus 'chitchat' comes with a package: pip install 'turnwise[demo]'")
    return Path(spec.origin).with_name("dataset.json")


NAMED: dict[str, Callable[[], Path]] = {"concierge": lambda: Path("concierge"), "chitchat": _chitchat}


def _named(given: str | Path) -> Path:
    path = Path(given).expanduser()
    return NAMED[str(given)]() if str(given) in NAMED and not path.exists() else path


def _find_in_folder(root: Path, format: str | None) -> tuple[list[Part], dict[str, str]]:
    files = sorted((path for path in root.rglob("*") if path.is_file()), key=_natural)
    ignored = {path: "not a data file" for path in files if NO_DATA.fullmatch(path.name)}
    for form in FORMATS.values():
        if form.set_aside is not None:
            ignored |= form.set_aside([path for path in files if path not in ignored])
    parts = [_part(path, root, format) for path in files if path not in ignored]
    if not parts:
        raise CorpusError(f"{root}: expected dialogue files in this folder, found none")
    return parts, {str(path): reason for path, reason in ignored.items()}


def _part(path: Path, root: Path, format: str | None) -> Part:
    name = format
    if name is None:
        try:
            name = detect(Source(path))
        except BadRecord as bad:
            raise CorpusError(f"{path}{f':{bad.line}' if bad.line else ''}: {bad}") from bad
        except OSError as error:
            raise CorpusError(f"{path}: cannot be read: {error.strerror or error}") from error
    form = FORMATS[name]
    return Part(
        str(path), split_of(path, root), name, path.stat().st_size, lambda moved: form.items(Source(path, moved))
    )


def _natural(path: Path) -> list[tuple[int, str]]:
    """`part_2` before `part_10`."""
    return [(int(piece), "") if piece.isdecimal() else (0, piece) for piece in re.split(r"(\d+)", str(path))]


# --- Reading ----------------------------------------------------------------------------------------------------------


def _read(parts: Sequence[Part], account: Account, limit: int | None, progress: Progress | None) -> pa.Table:
    columns = Columns()
    total, done = sum(part.size for part in parts), 0
    taken: Counter[str] = Counter()
    prefix = os.path.commonpath([str(Path(part.label).parent) for part in parts])
    for part in parts:
        moved = _mover(progress, done, total)
        _read_part(part, _id_prefix(part.label, prefix), columns, account, taken, limit, moved)
        done += part.size
    if progress is not None:
        progress(total, total)
    return columns.table()


def _mover(progress: Progress | None, done: int, total: int) -> Callable[[int], None]:
    return (lambda position: None) if progress is None else (lambda position: progress(done + position, total))


def _id_prefix(label: str, prefix: str) -> str:
    """Ids made by us say where a dialogue came from: `train/chats-17` is the 17th of that file."""
    path = Path(os.path.relpath(label, prefix))
    return path.with_name(plain_name(path).partition(".")[0]).as_posix()


def _read_part(
    part: Part,
    prefix: str,
    columns: Columns,
    account: Account,
    taken: Counter[str],
    limit: int | None,
    moved: Callable[[int], None],
) -> None:
    number = 0
    try:
        for item in part.read(moved):
            if isinstance(item, pa.RecordBatch):
                batch = _filled(item, prefix, number, part.split)
                number += batch.num_rows
                columns.add_batch(_limited(batch, taken, limit))
            elif isinstance(item, LeftOut):
                account.left_out(item)
            elif isinstance(item, BadRecord):
                account.bad(part.label, item)
            else:
                number += 1
                _add(item, f"{prefix}-{number}", part, columns, account, taken, limit)
            if limit is not None and part.split and taken[part.split] >= limit:
                return
    except BadRecord as bad:
        account.bad(part.label, bad)
    except OSError as error:
        raise CorpusError(f"{part.label}: cannot be read: {error.strerror or error}") from error


def _add(
    item: tuple[int, Dialogue],
    default_id: str,
    part: Part,
    columns: Columns,
    account: Account,
    taken: Counter[str],
    limit: int | None,
) -> None:
    line, dialogue = item
    problem = why_not_dialogue(dialogue)
    if problem is not None:
        account.bad(part.label, problem.at(line))
        return
    split = dialogue.split or part.split
    if limit is None or taken[split] < limit:
        taken[split] += 1
        try:
            columns.add(dialogue, default_id=default_id, default_split=part.split)
        except CorpusError as error:
            account.bad(part.label, BadRecord("labels that JSON can hold", str(error), line))


def why_not_dialogue(dialogue: Dialogue) -> BadRecord | None:
    """What keeps a dialogue from being stored, or None."""
    if not dialogue.turns:
        return BadRecord("at least one turn", "none")
    texts = [part for turn in dialogue.turns for part in (turn.speaker, turn.text)]
    problem = why_not_text("\n".join([dialogue.id, dialogue.split, *texts]))
    return BadRecord("UTF-8 text", problem) if problem else None


def _filled(batch: pa.RecordBatch, prefix: str, before: int, split: str) -> pa.RecordBatch:
    """Give ids and a split to dialogues that have none."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if columns["id"].null_count:
        numbers = pa.array(np.arange(before + 1, before + 1 + batch.num_rows)).cast(pa.string())
        made = pc.binary_join_element_wise(pa.scalar(prefix), numbers, "-")
        columns["id"] = pc.coalesce(columns["id"], made)
    columns["split"] = pc.fill_null(columns["split"], split)
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def _limited(batch: pa.RecordBatch, taken: Counter[str], limit: int | None) -> pa.RecordBatch:
    splits = batch["split"].to_pylist() if limit is not None else []
    if limit is None:
        return batch
    kept = []
    for split in splits:
        kept.append(taken[split] < limit)
        taken[split] += kept[-1]
    return batch.filter(pa.array(kept, pa.bool_()))


def _name_of(paths: Sequence[str | Path]) -> str:
    first = Path(str(paths[0]).removeprefix("hf:"))
    name = plain_name(first.resolve()).partition(".")[0] or "corpus"
    return name if len(paths) == 1 else f"{name} and {len(paths) - 1} more"


def _joined(paths: Sequence[str | Path]) -> str:
    return ", ".join(map(str, paths))


def _reasons(account: Account) -> str:
    counts = "; ".join(f"{count} × {reason}" for reason, count in account.skipped.most_common(3))
    return f" ({counts})" if counts else ""
