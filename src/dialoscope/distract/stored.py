"""Test sets on disk, so that two systems are tested on the same thing: a file of cases for each, and what they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from dialoscope.corpus.turns import Said
from dialoscope.distract.sets import Case, DistractingSet
from dialoscope.errors import CorpusError, OutputError, UsageError
from dialoscope.files import whole_folder

INDEX = "sets.json"
KIND = "dialoscope-distracting-sets"
FIELDS = {"dialogue": str, "turn": int, "context": list, "response": str, "distractions": list, "speakers": list}


def write_sets(sets: Iterable[DistractingSet], out: str | Path, *, overwrite: bool = False) -> Path:
    """A folder with ``NAME.jsonl`` for each set and ``sets.json``, whole or not at all."""
    out = Path(out)
    with whole_folder(out, overwrite=overwrite, check=_check_ours) as folder:
        index: dict[str, Any] = {"kind": KIND, "sets": {}}
        for one in sets:
            with (folder / f"{one.name}.jsonl").open("wb") as file:
                file.writelines(
                    orjson.dumps({**case._asdict(), "speakers": case.speakers}) + b"\n" for case in one.cases
                )
            index["sets"][one.name] = {"cases": len(one), "fingerprint": one.fingerprint, **one.about}
        (folder / INDEX).write_bytes(orjson.dumps(index, option=orjson.OPT_INDENT_2) + b"\n")
    return out


def read_sets(folder: str | Path) -> list[DistractingSet]:
    """The sets that `write_sets` wrote; a line that was changed since is an error."""
    return [_read_set(Path(folder), name, about) for name, about in _index(Path(folder)).items()]


def _index(folder: Path) -> dict[str, dict[str, Any]]:
    try:
        index = orjson.loads((folder / INDEX).read_bytes())
        if index["kind"] == KIND:
            return {str(name): dict(about) for name, about in index["sets"].items()}
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError):
        pass
    raise UsageError(
        f"{folder}: expected the folder that 'dialoscope distract sets' wrote, found no {INDEX} of its own."
    )


def _read_set(folder: Path, name: str, about: dict[str, Any]) -> DistractingSet:
    path = folder / f"{name}.jsonl"
    found = DistractingSet(name, list(_cases(path)), {key: about[key] for key in about if key not in _COUNTED})
    if found.fingerprint != about.get("fingerprint"):
        raise CorpusError(
            f"{path}: expected the cases of fingerprint {about.get('fingerprint')}, found {found.fingerprint}. "
            "Write the sets again, or take the file as it was."
        )
    return found


_COUNTED = ("cases", "fingerprint")


def _cases(path: Path) -> Iterator[Case]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror}.") from error
    for number, line in enumerate(lines, start=1):
        try:
            yield _case(orjson.loads(line))
        except (ValueError, TypeError) as error:
            raise CorpusError(f"{path}:{number}: expected a case with {', '.join(FIELDS)}, found {error}.") from error


def _case(value: Any) -> Case:
    if not isinstance(value, dict):
        raise TypeError(f"a {type(value).__name__}")
    for name, kind in FIELDS.items():
        if not isinstance(value.get(name), kind):
            raise TypeError(f"{name}: {value.get(name)!r}")
    context, distractions = tuple(value["context"]), tuple(value["distractions"])
    if not context or not all(isinstance(turn, str) for turn in context):
        raise TypeError(f"context: {value['context']!r}")
    if not all(isinstance(place, int) and 0 <= place < len(context) - 1 for place in distractions):
        raise ValueError(f"distractions: {value['distractions']!r} in a context of {len(context)} turns")
    speakers = value["speakers"]
    if len(speakers) != len(context) + 1 or not all(isinstance(name, str) for name in speakers):
        raise ValueError(f"speakers: {speakers!r}, not one for each turn and the response")
    *turns, response = (_said(*both) for both in zip((*context, value["response"]), speakers, strict=True))
    return Case(value["dialogue"], value["turn"], tuple(turns), response, distractions)


def _said(text: str, speaker: str) -> str:
    return Said(text, speaker) if speaker else text


def _check_ours(folder: Path) -> None:
    known = {INDEX, *(f"{name}.jsonl" for name in _index(folder))}
    foreign = sorted(path.name for path in folder.iterdir() if path.name not in known)
    if foreign:
        raise OutputError(f"{folder}: expected a new folder or earlier sets, found {foreign[0]!r}. Give a new folder.")
