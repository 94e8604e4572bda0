"""A corpus out again: `messages` JSONL, Parquet, a Hugging Face `datasets` folder, or plain text.

A target that names a file gets the whole corpus in it; any other target is a folder with a file per split. Reading what
was written gives the same corpus: text, speakers, ids, splits and labels. Files appear whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq

from turnwise.atomic import whole_file, whole_folder
from turnwise.corpus.dialogue import Corpus, Dialogue, Turn
from turnwise.corpus.readers.text import COMPANION, END
from turnwise.errors import MissingExtraError, OutputError, UsageError, unknown_name


def write(corpus: Corpus, target: str | Path, *, to: str = "messages", overwrite: bool = False) -> list[Path]:
    """Write a corpus and return the files it is in.

    >>> write(corpus, "chats.jsonl", to="messages")      # doctest: +SKIP
    """
    target = Path(target)
    if to not in WRITERS:
        raise unknown_name("target format", to, WRITERS)
    if target.exists() and not overwrite and (target.is_file() or any(target.iterdir())):
        raise OutputError(f"{target} exists. Give a new name, or --overwrite to replace it.")
    ending, write_one = WRITERS[to]
    if to == "hf":
        return _write_hf(corpus, target)
    if target.name.endswith(ending):
        return _write_file(corpus, target, write_one)
    return _write_folder(corpus, target, ending, write_one)


def _write_file(corpus: Corpus, target: Path, write_one: Callable[[Corpus, Path], None]) -> list[Path]:
    if target.suffix == ".txt":
        raise UsageError(f"Text is written as a folder, a file per split: give a folder name, not {target}.")
    with whole_file(target) as unfinished:
        write_one(corpus, unfinished)
    return [target]


def _write_folder(corpus: Corpus, target: Path, ending: str, write_one: Callable[[Corpus, Path], None]) -> list[Path]:
    with whole_folder(target) as unfinished:
        for split in corpus.splits:
            write_one(corpus.split(split), unfinished / f"{_file_name(split)}{ending}")
    return sorted(target.iterdir())


def _file_name(split: str) -> str:
    """A split's name as a file name; the split itself is kept inside the file."""
    return "".join(character if character.isalnum() or character in "-_" else "_" for character in split) or "_"


def _write_messages(corpus: Corpus, path: Path) -> None:
    with path.open("wb") as file:
        for dialogue in corpus:
            file.write(orjson.dumps(message_record(dialogue)) + b"\n")


def message_record(dialogue: Dialogue) -> dict[str, Any]:
    """One dialogue as `messages` has it; labels stand under `labels`, where they cannot clash with other keys."""
    record: dict[str, Any] = {"id": dialogue.id, "split": dialogue.split}
    record["messages"] = [_message(turn) for turn in dialogue.turns]
    return {**record, "labels": dict(dialogue.labels)} if dialogue.labels else record


def _message(turn: Turn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": turn.speaker, "content": turn.text}
    return {**message, "labels": dict(turn.labels)} if turn.labels else message


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
    return " ".join(text.replace(END, "").split())


def _companion_record(dialogue: Dialogue, shown: list[str]) -> dict[str, Any]:
    record: dict[str, Any] = {"id": dialogue.id, "split": dialogue.split}
    record["speakers"] = [turn.speaker for turn in dialogue.turns]
    record["labels"] = dict(dialogue.labels)
    record["turn_labels"] = {str(i): dict(turn.labels) for i, turn in enumerate(dialogue.turns) if turn.labels}
    record["texts"] = {str(i): turn.text for i, turn in enumerate(dialogue.turns) if turn.text != shown[i]}
    return {key: value for key, value in record.items() if value or key in ("id", "split", "speakers")}


def _write_hf(corpus: Corpus, target: Path) -> list[Path]:
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError("Writing Hugging Face data sets", "hub") from error
    quiet = datasets.utils.logging.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        with whole_folder(target) as unfinished:
            splits = {name: datasets.Dataset(corpus.split(name).table) for name in corpus.splits}
            datasets.DatasetDict(splits).save_to_disk(str(unfinished))
    finally:
        if quiet:
            datasets.enable_progress_bars()
    return sorted(target.iterdir())


WRITERS: dict[str, tuple[str, Callable[[Corpus, Path], None]]] = {
    "messages": (".jsonl", _write_messages),
    "parquet": (".parquet", _write_parquet),
    "text": (".txt", _write_text),
    "hf": ("", _write_parquet),
}
