"""`dialoscope engage rank` and `dialoscope engage watch`: candidates for a response, and a conversation as it goes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialoscope.cli.arguments import Models, command
from dialoscope.cli.console import print_json, print_table
from dialoscope.engage.settings import PredictorOptions
from dialoscope.errors import UsageError
from dialoscope.settings import BaseSettings, option

if TYPE_CHECKING:
    from dialoscope.engage.live import Reading, Rule

INPUT = "-"  # standard input
BAR = 20  # characters that a score of 1 is wide
NO_TURN: Mapping[str, Any] = {
    "turn": None, "score": None, "interval": None, "trend": None, "alert": False, "reason": "an instruction is no turn",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Predictors(Models):
    """The predictors that a command asks."""

    model: tuple[str, ...] = option(
        (), "A predictor: a folder of 'dialoscope engage train'.", group="Models", metavar="[NAME=]PATH"
    )


@dataclass(frozen=True, kw_only=True)
class RankOptions(PredictorOptions):
    """Which lines are ranked."""

    limit: int | None = option(None, "Rank at most this many lines.", group="Data", least=1)


@dataclass(frozen=True, kw_only=True)
class WatchOptions(PredictorOptions):
    """When to raise the alarm."""

    alert: str = option("3<0.3", "Alarm at this many falling turns, all under a score.", metavar="TURNS<SCORE")


@dataclass(frozen=True, kw_only=True)
class Printing(BaseSettings):
    """What a command prints."""

    json: bool = option(False, "Print JSON.", group="Output")


Questions = Annotated[str, typer.Argument(help="JSON lines of context (or messages) and candidates; - for input.")]


def rank(file: Questions, settings: RankOptions, models: Predictors, printing: Printing) -> None:
    """Order candidate responses by how much of the conversation is expected to remain after each."""
    from dialoscope.engage.live import rank as rank_candidates
    from dialoscope.engage.predictors import open_predictor

    if not file:
        raise UsageError("Name a file of JSON lines, or - for standard input.")
    model = the_model(models)
    predictor = open_predictor(model, settings)
    ranked = [(question, rank_candidates(predictor, *question)) for question in _questions(file)[: settings.limit]]
    if printing.json:
        shown = [[{"score": score, "candidate": text} for score, text in candidates] for _, candidates in ranked]
        print_json({"model": predictor.name, "ranked": shown})
        return
    for (context, _), candidates in ranked:
        title = context[-1] if context else ""
        print_table(["score", "", "candidate"], [[score, bar(score), text] for score, text in candidates], title=title)
    typer.echo(f"Next: dialoscope engage watch --model {quote(model)}")


def watch(settings: WatchOptions, models: Predictors, printing: Printing) -> None:
    """Read a conversation line by line, each a turn or 'Speaker: turn', and show the score as it goes.

    A speaker is one word of at most 20 characters before a colon; what one says in a row is one turn. Instructions (of
    system, developer, tool and function) are no turns, as in every command.
    """
    import orjson

    from dialoscope.engage.live import Monitor
    from dialoscope.engage.predictors import open_predictor

    model = the_model(models)
    monitor = Monitor(open_predictor(model, settings), _rule(settings.alert))
    for line in sys.stdin.buffer:
        speaker, text = _spoken(line.decode(errors="replace").strip())
        if text:
            reading = monitor.hear(text, speaker=speaker)
            heard = {**(NO_TURN if reading is None else reading.to_dict()), "speaker": speaker, "text": text}
            typer.echo(orjson.dumps(heard).decode() if printing.json else _shown(reading))
    if not printing.json:
        typer.echo(f"Next: dialoscope engage score chats.jsonl --model {quote(model)}")


def add_live_commands(app: typer.Typer) -> None:
    """Add both commands."""
    command(app, "rank", rank, examples=["engage rank questions.jsonl --model engaged",
                                         "engage rank - --model engaged < questions.jsonl"])  # fmt: skip
    command(app, "watch", watch, examples=["engage watch --model engaged",
                                           "engage watch --model engaged --alert '3<0.3' < talk.txt"])  # fmt: skip


def the_model(models: Models) -> str:
    """The only model of a command."""
    paths = list(models.by_name().values())
    if len(paths) != 1:
        raise UsageError(f"Give one predictor: --model PATH; found {len(paths)}.")
    return paths[0]


def bar(score: float) -> str:
    """A score as a length."""
    return "█" * round(BAR * score)


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
    questions = [_question(line, number) for number, line in enumerate(data.splitlines(), 1) if line.strip()]
    if not questions:
        raise UsageError(f"{file}: expected lines of JSON with context and candidates, found none.")
    return questions


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}.") from error


def _question(line: bytes, number: int) -> tuple[list[str], list[str]]:
    import orjson

    from dialoscope.corpus.streams import BadRecord

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
    from dialoscope.corpus.streams import Record
    from dialoscope.corpus.turns import conversation

    (dialogue,) = parse_messages(Record(chat, 0))
    return conversation(dialogue).texts


def _spoken(line: str) -> tuple[str | None, str]:
    """`A: Hello` as speaker and text; a line without a short name before a colon is a turn of its own."""
    speaker, colon, text = line.partition(": ")
    is_named = bool(colon) and len(speaker) <= 20 and " " not in speaker
    return (speaker, text.strip()) if is_named else (None, line)


def _shown(reading: Reading | None) -> str:
    if reading is None:
        return f"{'–':>4}  not scored: {NO_TURN['reason']}"
    interval = "" if reading.interval is None else f"  [{reading.interval[0]:.2f}, {reading.interval[1]:.2f}]"
    trend = "" if reading.trend is None else f"  {reading.trend:+.2f} a turn"
    alert = "  ALERT" if reading.is_alert else ""
    return f"{reading.turn:>4}  {reading.score:.2f} {bar(reading.score):<{BAR}}{interval}{trend}{alert}"
