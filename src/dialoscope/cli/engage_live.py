"""`dialoscope engage rank` and `dialoscope engage watch`: candidates for a response, and a conversation as it goes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from dialoscope.cli.console import Json, print_json, print_table
from dialoscope.cli.engage_options import BAR, INPUT, BatchSize, Dtype, Model, bar, loaded
from dialoscope.cli.train import Device
from dialoscope.corpus.streams import BadRecord, Record
from dialoscope.errors import UsageError

if TYPE_CHECKING:
    from dialoscope.engage.live import Reading, Rule

RANK_EPILOG = (
    """Try: echo '{"context": ["Hi!"], "candidates": ["Bye.", "How are you?"]}' | dialoscope engage rank engaged -"""
)
WATCH_EPILOG = "Try: dialoscope engage watch engaged    (then type one line for each turn)"
NO_TURN: Mapping[str, Any] = {
    "turn": None, "score": None, "interval": None, "trend": None, "alert": False, "reason": "an instruction is no turn",
}  # fmt: skip


def rank(
    model: Model,
    file: Annotated[str, typer.Argument(help="JSON lines of context (or messages) and candidates; - for input.")],
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="At most so many lines.")] = None,
    device: Device = "auto",
    dtype: Dtype = "float32",
    batch_size: BatchSize = None,
    json: Json = False,
) -> None:
    """Order candidate responses by how engaging they are for their context."""
    from dialoscope.engage.live import rank as ranked_by

    predictor = loaded(model, device, dtype, batch_size)
    ranked = [(asked, ranked_by(predictor, *asked)) for asked in _questions(file)[:limit]]
    if json:
        shown = [[{"score": score, "candidate": text} for score, text in found] for _, found in ranked]
        print_json({"model": predictor.name, "ranked": shown})
        return
    for (context, _), found in ranked:
        title = context[-1] if context else ""
        print_table(["score", "", "candidate"], [[score, bar(score), text] for score, text in found], title=title)


def watch(
    model: Model,
    alert: Annotated[str, typer.Option("--alert", help="So many falling turns, all under a score: 3<0.3.")] = "3<0.3",
    device: Device = "auto",
    dtype: Dtype = "float32",
    json: Json = False,
) -> None:
    """Read a conversation line by line, each a turn or 'Speaker: turn', and show the score as it goes.

    A speaker is one word of at most 20 characters before a colon; what one says in a row is one turn. Instructions (of
    system, developer, tool and function) are no turns, as in every command.
    """
    from dialoscope.engage.live import Monitor

    monitor = Monitor(loaded(model, device, dtype), _rule(alert))
    for line in sys.stdin.buffer:
        speaker, text = _spoken(line.decode(errors="replace").strip())
        if text:
            found = monitor.hear(text, speaker=speaker)
            heard = {**(NO_TURN if found is None else found.to_dict()), "speaker": speaker, "text": text}
            typer.echo(orjson.dumps(heard).decode() if json else _shown(found))


def _rule(written: str) -> Rule:
    from dialoscope.engage.live import Rule

    turns, _, below = written.partition("<")
    try:
        return Rule(int(turns), float(below))
    except ValueError as error:
        raise UsageError(f"--alert expects TURNS<SCORE, such as 3<0.3, found '{written}'.") from error


def _questions(file: str) -> list[tuple[list[str], list[str]]]:
    """Contexts and candidates, a line each."""
    data = sys.stdin.buffer.read() if file == INPUT else _bytes(Path(file))
    found = [_question(line, number) for number, line in enumerate(data.splitlines(), 1) if line.strip()]
    if not found:
        raise UsageError(f"{file}: expected lines of JSON with context and candidates, found none.")
    return found


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}.") from error


def _question(line: bytes, number: int) -> tuple[list[str], list[str]]:
    wanted = 'expected {"context": ["…"], "candidates": ["…"]}'
    try:
        read = orjson.loads(line)
        said = _said(read) if "messages" in read else list(read["context"])
        candidates = list(read["candidates"])
    except (ValueError, KeyError, TypeError, BadRecord) as error:
        raise UsageError(f"Line {number}: {wanted}, found {line[:80].decode(errors='replace')}.") from error
    is_list = "messages" in read or isinstance(read["context"], list)  # a text would be a turn for each letter
    if not is_list or not candidates or not all(isinstance(one, str) for one in (*said, *candidates)):
        raise UsageError(f"Line {number}: {wanted}, all of them text.")
    return said, candidates


def _said(chat: Any) -> list[str]:
    """Turns of a chat as `train` and `score` have them."""
    from dialoscope.corpus.readers.chat import parse_messages
    from dialoscope.corpus.turns import conversation

    (dialogue,) = parse_messages(Record(chat, 0))
    return conversation(dialogue).texts


def _spoken(line: str) -> tuple[str | None, str]:
    """`A: Hello` as speaker and text; a line without a short name before a colon is a turn of its own."""
    speaker, colon, text = line.partition(": ")
    is_named = bool(colon) and len(speaker) <= 20 and " " not in speaker
    return (speaker, text.strip()) if is_named else (None, line)


def _shown(found: Reading | None) -> str:
    if found is None:
        return f"{'–':>4}  not scored: {NO_TURN['reason']}"
    interval = "" if found.interval is None else f"  [{found.interval[0]:.2f}, {found.interval[1]:.2f}]"
    trend = "" if found.trend is None else f"  {found.trend:+.2f} a turn"
    return f"{found.turn:>4}  {found.score:.2f} {bar(found.score):<{BAR}}{interval}{trend}{'  ALERT' * found.is_alert}"
