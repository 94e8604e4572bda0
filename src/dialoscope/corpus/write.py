"""A corpus out again: `messages` JSONL, Parquet, a Hugging Face `datasets` folder, or plain text.

A target that names a file gets the whole corpus in it; any other target is a folder with a file per split. Reading what
was written gives the same corpus: text, speakers, ids, splits and labels. Files appear whole or not at all, and a
folder is replaced only where a marker in it says that Dialoscope wrote every file of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq

from dialoscope.corpus.columns import encode_labels
from dialoscope.corpus.dialogue import Corpus, Dialogue, Labels, Turn
from dialoscope.corpus.readers.text import COMPANION, END
from dialoscope.errors import MissingExtraError, OutputError, unknown_name
from dialoscope.files import contents, whole_file, whole_folder
from dialoscope.record import version

Write = Callable[[Corpus, Path], None]

MARKER = ".dialoscope"  # in every folder we write; hidden, so that no reader takes it for data
# A folder of such a name would be taken for a file by whoever sees it.
FILE_ENDING = re.compile(
    r"(?i).*\.(jsonl?|ndjson|csv|tsv|tab|txt|text|md|parquet|arrow|feather|xml|html?|gz|zst|bz2|xz|zip|tar|tgz)"
)
PLAIN_NAME = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")  # one file on any disk, and a split that `datasets` takes
LONGEST_NAME = 60
# What readers know by name or leave out, and the names that we give ourselves.
CLAIMED_NAME = re.compile(
    r"(readme|licen[cs]e|copying|changelog|dialogues|split)(_.*)?|(train|valid|test)_.*_(original|revised).*"
)


def write(corpus: Corpus, target: str | Path, *, to: str = "messages", overwrite: bool = False) -> list[Path]:
    """Write a corpus and return the files it is in.

    >>> write(corpus, "chats.jsonl", to="messages")      # doctest: +SKIP
    """
    target = Path(target)
    if to not in WRITERS:
        raise unknown_name("target format", to, WRITERS)
    writer = WRITERS[to]
    if writer.file is not None and target.name.endswith(writer.ending):
        with whole_file(target, overwrite=overwrite) as unfinished:
            writer.file(corpus, unfinished)
        return [target]
    _check_name(target, to)
    with whole_folder(target, overwrite=overwrite, check=_check_ours) as unfinished:
        writer.folder(corpus, unfinished)
        _mark(unfinished, to)
    return sorted(path for path in target.iterdir() if path.name != MARKER)


def _check_name(target: Path, to: str) -> None:
    """`out.json` is surely meant to be a file, so it does not become a folder in silence."""
    if not FILE_ENDING.fullmatch(target.name):
        return
    ending = WRITERS[to].ending
    expected = f"a file name that ends in {ending}, or the name of a folder" if ending else "the name of a folder"
    raise OutputError(f"{target}: the format {to} expects {expected}, found '{target.suffix}'. Give such a name.")


# --- Folders that may be replaced -------------------------------------------------------------------------------------


def _mark(folder: Path, to: str) -> None:
    """Say that we wrote this folder, and which files are ours."""
    marker = {"format": to, "version": version(), "files": sorted(contents(folder))}
    (folder / MARKER).write_bytes(orjson.dumps(marker) + b"\n")


def _check_ours(folder: Path) -> None:
    """Replacing a folder deletes what is in it, so every file in it must be one that we wrote."""
    ours = _marked(folder)
    foreign = sorted(contents(folder) - ours if ours else (path.name for path in folder.iterdir()))
    if foreign:
        raise OutputError(
            f"{folder}: expected a folder that Dialoscope wrote, found {foreign[0]!r}, which it did not. "
            "Nothing was replaced. Give a new folder name."
        )


def _marked(folder: Path) -> set[str]:
    """The files that a folder's marker lists; none where there is no marker, or one that is not ours."""
    try:
        return {MARKER, *map(str, orjson.loads((folder / MARKER).read_bytes())["files"])}
    except (FileNotFoundError, IsADirectoryError, ValueError, TypeError, KeyError):
        return set()


# --- A file per split -------------------------------------------------------------------------------------------------


def _by_split(write_one: Write, ending: str) -> Write:
    """A folder with a file per split."""

    def fill(corpus: Corpus, folder: Path) -> None:
        for split, name in split_names(corpus.splits).items():
            write_one(corpus.split(split), folder / f"{name}{ending}")

    return fill


def split_names(splits: Iterable[str]) -> dict[str, str]:
    """Split -> its name on disk, which no other split has and no reader takes for something else.

    Plain names stay; any other becomes a number, and the split's real name is inside the file.

    >>> split_names(["train", "a_b", "a/b", "README"])
    {'train': 'train', 'a_b': 'a_b', 'a/b': 'split_3', 'README': 'split_4'}
    """
    return {split: split if _is_plain(split) else f"split_{number}" for number, split in enumerate(splits, 1)}


def _is_plain(split: str) -> bool:
    is_safe = PLAIN_NAME.fullmatch(split) is not None and len(split) <= LONGEST_NAME
    return is_safe and CLAIMED_NAME.fullmatch(split) is None


# --- The formats ------------------------------------------------------------------------------------------------------


def write_messages(corpus: Corpus, path: Path) -> None:
    """One dialogue a line, into a file that whoever calls makes appear whole."""
    with path.open("wb") as file:
        for dialogue in corpus:
            file.write(orjson.dumps(message_record(dialogue)) + b"\n")


def message_record(dialogue: Dialogue) -> dict[str, Any]:
    """One dialogue as `messages` has it; labels stand under `labels`, where they cannot clash with other keys."""
    record: dict[str, Any] = {"id": dialogue.id, "split": dialogue.split}
    record["messages"] = [_message(turn) for turn in dialogue.turns]
    return {**record, "labels": _as_json(dialogue.labels)} if dialogue.labels else record


def _message(turn: Turn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": turn.speaker, "content": turn.text}
    return {**message, "labels": _as_json(turn.labels)} if turn.labels else message


def _as_json(labels: Labels) -> orjson.Fragment:
    """Labels as JSON already: `encode_labels` can write those that are too deep or too large for orjson."""
    return orjson.Fragment(encode_labels(labels) or "{}")


def _write_parquet(corpus: Corpus, path: Path) -> None:
    pq.write_table(corpus.table, path, compression="zstd")


def _write_text(corpus: Corpus, path: Path) -> None:
    """A dialogue a line, and beside it a companion with what a line cannot hold."""
    companion = path.with_name(path.name.removesuffix(".txt") + COMPANION)
    with path.open("w", encoding="utf-8", newline="\n") as text, companion.open("wb") as beside:
        for dialogue in corpus:
            shown = [_one_line(turn.text) for turn in dialogue.turns]
            text.write("".join(f"{line} {END} " for line in shown).rstrip(" ") + "\n")
            beside.write(orjson.dumps(_companion_record(dialogue, shown)) + b"\n")


def _one_line(text: str) -> str:
    """A turn without line breaks and marks; taking a mark out of `__eo__eou__u__` leaves another one behind."""
    while END in text:
        text = text.replace(END, "")
    return " ".join(text.split())


def _companion_record(dialogue: Dialogue, shown: list[str]) -> dict[str, Any]:
    record: dict[str, Any] = {"id": dialogue.id, "split": dialogue.split}
    record["speakers"] = [turn.speaker for turn in dialogue.turns]
    record["labels"] = _as_json(dialogue.labels) if dialogue.labels else None
    record["turn_labels"] = {str(i): _as_json(turn.labels) for i, turn in enumerate(dialogue.turns) if turn.labels}
    record["texts"] = {str(i): turn.text for i, turn in enumerate(dialogue.turns) if turn.text != shown[i]}
    return {key: value for key, value in record.items() if value or key in ("id", "split", "speakers")}


def _fill_hf(corpus: Corpus, folder: Path) -> None:
    """What `datasets.load_from_disk` reads: a `DatasetDict` with our four columns."""
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError("Writing Hugging Face data sets", "datasets") from error
    names = split_names(corpus.splits)
    splits = {name: datasets.Dataset(corpus.split(split).table) for split, name in names.items()}
    is_shown = datasets.utils.logging.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        datasets.DatasetDict(splits).save_to_disk(str(folder))
    finally:
        if is_shown:
            datasets.enable_progress_bars()


@dataclass(frozen=True)
class Writer:
    """How a format fills a folder and, where a single file can hold a corpus, how it fills that file."""

    folder: Write
    ending: str = ""
    file: Write | None = None


WRITERS: dict[str, Writer] = {
    "messages": Writer(_by_split(write_messages, ".jsonl"), ".jsonl", write_messages),
    "parquet": Writer(_by_split(_write_parquet, ".parquet"), ".parquet", _write_parquet),
    "text": Writer(_by_split(_write_text, ".txt")),
    "hf": Writer(_fill_hf),
}
