"""Six forms in which people have conversations, each given to the command line, to Python and to a study."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dialoscope as ds
from dialoscope.corpus import Corpus, generate

CHATS = 40  # enough for 80/10/10 with four dialogues to measure


@dataclass(frozen=True)
class Input:
    """One corpus and how each interface is given it."""

    command: tuple[str, ...]  # arguments of a command
    python: Callable[[], Corpus]
    study: Any  # the value under [corpora]


def records(corpus: Corpus) -> list[dict[str, Any]]:
    """The dialogues as records of `messages` JSONL."""
    return [
        {"id": dialogue.id, "messages": [{"role": turn.speaker, "content": turn.text} for turn in dialogue.turns]}
        for dialogue in corpus
    ]


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> str:
    """Write records as JSONL."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def make_inputs(folder: Path) -> Mapping[str, Input]:
    """Write the files and say how each interface reads them."""
    chats = records(generate(dialogues=CHATS, seed=5))
    unsplit = write_jsonl(folder / "chats.jsonl", chats)
    train, test = (write_jsonl(folder / f"{name}.jsonl", rows) for name, rows in (("a", chats[:28]), ("b", chats[28:])))
    for name, rows in (("train", chats[:28]), ("eval", chats[28:])):
        write_jsonl(folder / "both" / f"{name}.jsonl", rows)
    parquet = folder / "concierge.parquet"
    ds.corpus.write(generate(dialogues=CHATS, seed=5), parquet, to="parquet")
    listed = write_jsonl(folder / "records.jsonl", chats)
    return {
        "unsplit messages": Input((unsplit,), lambda: ds.load(unsplit), unsplit),
        "train and test files": Input(
            ("--train", train, "--test", test),
            lambda: ds.load(train=train, test=test),
            {"train": train, "test": test},
        ),
        "folder of train and eval": Input(
            (str(folder / "both"),), lambda: ds.load(folder / "both"), str(folder / "both")
        ),
        "Parquet with splits": Input((str(parquet),), lambda: ds.load(parquet), str(parquet)),
        "records": Input((listed,), lambda: ds.load(chats), listed),
        "concierge": Input(("concierge",), lambda: ds.load("concierge"), "concierge"),
    }
