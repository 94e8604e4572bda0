"""The root of the command line as a user meets it: in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dialoscope import cli


def dialoscope(*arguments: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dialoscope", *map(str, arguments)]
    environment = {**os.environ, **(env or {})}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


@pytest.mark.parametrize(
    "command",
    [
        (),
        ("corpus",),
        ("corpus", "show"),
        ("corpus", "convert"),
        ("metrics",),
        ("metrics", "measure"),
        ("train",),
        ("generate",),
        ("perplexity",),
        ("presets",),
        ("demo",),
    ],
)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_ends_with_commands_that_can_be_pasted(command: tuple[str, ...], flag: str) -> None:
    done = dialoscope(*command, flag, env={"COLUMNS": "80"})
    assert done.returncode == 0
    assert "Try: dialoscope" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_version_is_that_of_the_package() -> None:
    import dialoscope as ds

    assert dialoscope("--version").stdout.strip() == ds.__version__


def test_completion_can_be_installed_and_completes_commands() -> None:
    assert "--install-completion" in dialoscope("--help").stdout
    words = {"_DIALOSCOPE_COMPLETE": "complete_bash", "COMP_WORDS": "dialoscope corpus va", "COMP_CWORD": "2"}
    assert dialoscope(env=words).stdout.split() == ["validate"]


def test_a_mistake_names_the_help_that_shows_more() -> None:
    done = dialoscope("corpus", "show", "--fromat", "x")
    assert done.returncode == 2
    assert done.stderr.rstrip().endswith("See: dialoscope corpus show --help")


STOPPED = """
import sys, time
from pathlib import Path
import dialoscope.cli as cli
from dialoscope.files import whole_folder

@cli.app.command(name="wait")
def wait(out: Path) -> None:
    with whole_folder(out):
        print("writing", flush=True)
        time.sleep(60)

cli.main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_stopped_command_cleans_up_and_says_so(tmp_path: Path, name: str) -> None:
    number = getattr(signal, name)
    # Whoever runs these tests in the background, or under nohup, has such signals ignored in all that they start.
    usual = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    usual += "for one in (signal.SIGTERM, signal.SIGHUP): signal.signal(one, signal.SIG_DFL)\n"
    command = [sys.executable, "-c", usual + STOPPED, "wait", str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        process.send_signal(number)
        _, complaint = process.communicate(timeout=60)
    assert (process.returncode, complaint) == (128 + number, "dialoscope: stopped\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
def test_a_command_under_nohup_goes_on_when_its_terminal_closes(tmp_path: Path) -> None:
    ignoring = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + STOPPED.replace("60", "0.5")
    command = [sys.executable, "-c", ignoring, "wait", str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=60)
    assert (process.returncode, (tmp_path / "out").is_dir()) == (0, True)


def test_the_programs_own_help_names_every_command_there_is() -> None:
    from typer.main import get_command

    made = set(get_command(cli.everything()).commands)  # type: ignore[attr-defined]  # of a group
    assert made == set(cli.COMMANDS)
    done = subprocess.run([sys.executable, "-m", "dialoscope", "--help"], capture_output=True, text=True, check=True)
    assert all(f" {name} " in done.stdout for name in made)


@pytest.mark.parametrize("name", ["corpus", "train", "presets", "perplexity", "gate", "demo"])
def test_the_file_of_a_command_makes_it(name: str) -> None:
    from typer.main import get_command

    assert name in get_command(cli.app_for([name])).commands  # type: ignore[attr-defined]  # of a group
