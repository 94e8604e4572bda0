"""The command line: every command is parse, one library call, print."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

import typer

from dialoscope.cli import corpus, demo, distract, engage, metrics, model, overlap, probe, study, train
from dialoscope.cli.arguments import epilog
from dialoscope.cli.console import complain, let_threads_sleep
from dialoscope.errors import DialoscopeError

INTERRUPTED = 130  # what shells expect after Ctrl-C

app = typer.Typer(
    name="dialoscope",
    help="Check whether test data leaks into training, and whether a dialogue model uses the conversation.",
    epilog=epilog("demo", "overlap measure concierge"),
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # bugs keep their plain traceback
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(corpus.app, name="corpus")
app.add_typer(overlap.app, name="overlap")
app.add_typer(distract.app, name="distract")
app.add_typer(probe.app, name="probe")
app.add_typer(engage.app, name="engage")
app.add_typer(metrics.app, name="metrics")
train.add_commands(app)
model.add_commands(app)
study.add_commands(app)
demo.add_command(app)


@app.callback(invoke_without_command=True)
def _options(
    show_version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    if show_version:
        from dialoscope.record import version

        typer.echo(version())
        raise typer.Exit


def main() -> NoReturn:
    """Run a command. Whatever a user can mend is one line on standard error and exit code 2; bugs keep their trace."""
    let_threads_sleep()
    stopped_by = _stop_cleanly()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal that cannot show … shows ?
    try:
        code = app(prog_name="dialoscope", standalone_mode=False)
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
