"""The command line: every command is parse, one library call, print."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from types import FrameType
from typing import NoReturn

import typer

from dialoscope.cli.arguments import epilog
from dialoscope.cli.console import complain, let_threads_sleep
from dialoscope.errors import DialoscopeError

INTERRUPTED = 130  # what shells expect after Ctrl-C

# Each command of the program: the file that makes it, and its help. A file is imported when its command is called.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "Ask the main questions about the built-in corpus and write one page."),
    "corpus": ("corpus", "Show a corpus, check it, convert it, draw from it, or generate one."),
    "overlap": ("overlap", "Is the test set in the training set? Measure it, filter it, clean it, split it again."),
    "distract": ("distract", "Does the model attend to what matters?"),
    "probe": ("probe", "What does the encoding of a context know?"),
    "engage": ("engage", "Where does a conversation lose its user? Remaining depth, and people's ratings."),
    "metrics": ("metrics", "Score responses against references, and compare systems."),
    "train": ("train", "Train a dialogue model. An interrupted run resumes exactly with --resume."),
    "presets": ("model", "List the models of the papers."),
    "perplexity": ("model", "Measure how well models predict the responses."),
    "generate": ("model", "Let a model answer every context of a split."),
    "study": ("study", "Ask many questions of corpora and models, and write one page."),
    "report": ("study", "Join results and studies into one page; nothing is run."),
    "gate": ("study", "Test scores against thresholds: the exit code is 1 where one is not kept."),
    "compare": ("study", "Test what has changed between two results or studies, with paired tests."),
    "export": ("study", "Write results in the forms of other tools."),
}


def app_for(words: Sequence[str]) -> typer.Typer:
    """The program as these words need it: one command, the names of all for its own help, or everything.

    `dialoscope --help` shows sixteen names; making all their options for it would take most of its time.
    """
    if words and words[0] in COMMANDS:
        return _program([COMMANDS[words[0]][0]])
    if set(words) <= {"-h", "--help"} and not any(name.startswith("_DIALOSCOPE") for name in os.environ):
        program = _program([])
        for name, (_, help) in COMMANDS.items():
            program.command(name, help=help)(lambda: None)
        return program
    return everything()


@cache
def everything() -> typer.Typer:
    """The program with all commands."""
    return _program(list(dict.fromkeys(file for file, _ in COMMANDS.values())))


def _program(files: Sequence[str]) -> typer.Typer:
    program = typer.Typer(
        name="dialoscope",
        help="Check whether test data leaks into training, and whether a dialogue model uses the conversation.",
        epilog=epilog("demo", "overlap measure concierge"),
        no_args_is_help=True,
        pretty_exceptions_enable=False,  # bugs keep their plain traceback
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    program.callback(invoke_without_command=True)(_options)
    for file in files:
        module = import_module(f"dialoscope.cli.{file}")
        if hasattr(module, "add_commands"):
            module.add_commands(program)
        else:
            program.add_typer(module.app, name=file)
    return program


def _options(
    show_version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    if show_version:
        from dialoscope.record import version

        typer.echo(version())
        raise typer.Exit


def __getattr__(name: str) -> typer.Typer:
    if name == "app":
        return everything()
    raise AttributeError(f"module 'dialoscope.cli' has no attribute '{name}'")


def main() -> NoReturn:
    """Run a command. Whatever a user can mend is one line on standard error and exit code 2; bugs keep their trace."""
    let_threads_sleep()
    stopped_by = _stop_cleanly()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal that cannot show … shows ?
    try:
        code = app_for(sys.argv[1:])(prog_name="dialoscope", standalone_mode=False)
        if code == INTERRUPTED:  # Typer may have caught it first
            complain("stopped")
    except DialoscopeError as error:
        complain(str(error))
        code = 2
    except KeyboardInterrupt:
        complain("stopped")
        code = INTERRUPTED
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:
        code = _usage_problem(error)
    sys.exit(128 + stopped_by[0] if stopped_by else code if isinstance(code, int) else 0)


def _stop_cleanly() -> list[int]:
    """Let the signals that end a process end it as Ctrl-C does, with what is unfinished deleted; which one it was.

    What the caller had us ignore, as `nohup` does, stays ignored.
    """
    caught: list[int] = []
    mine = os.getpid()
    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    signals = [one for one in signals if signal.getsignal(one) == signal.SIG_DFL]

    def stop(number: int, frame: FrameType | None) -> None:
        if os.getpid() != mine:  # a worker of ours, which has nothing to clean up
            os._exit(128 + number)
        for one in signals:
            signal.signal(one, signal.SIG_IGN)  # a second one would break off the cleaning
        caught.append(number)
        raise KeyboardInterrupt

    for one in signals:
        signal.signal(one, stop)
    return caught


def _usage_problem(error: Exception) -> int:
    """Typer's own complaints about arguments, recognised by their shape, for it has moved them between packages."""
    if isinstance(error, typer.Abort):
        complain("stopped")
        return INTERRUPTED
    if not hasattr(error, "format_message"):
        raise error
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(message)
        return 2
    context = getattr(error, "ctx", None)
    hint = f" See: {context.command_path} --help" if context is not None else ""
    complain(" ".join(message.split()) + hint)
    return 2
