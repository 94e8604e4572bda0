"""Commands made from settings: one option for each field, with its help, group and choices.

Every option is read as text here and checked by `BaseSettings`, so that a wrong value gets the same message on the
command line, in a study's TOML and in Python.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand

from dialoscope.errors import UsageError
from dialoscope.settings import (
    GROUPS,
    BaseSettings,
    Option,
    default_of,
    element_of,
    option,
    options_of,
    types_of,
)

WORDS = {bool: "", int: "N", float: "X", str: "TEXT"}  # what help calls a value
SHORT = {"quiet": ("-q",)}
LAST_GROUP = "Output"  # of options in help, after those of settings.GROUPS

# Positional arguments that mean the same in every command.
Corpus = Annotated[
    list[str] | None, typer.Argument(help="Files, a folder, 'concierge', 'chitchat' or 'hf:NAME'.", metavar="CORPUS")
]


@dataclass(frozen=True, kw_only=True)
class Reading(BaseSettings):
    """How a corpus is read."""

    train: tuple[str, ...] = option(
        (), "Training data, in place of a corpus with splits.", group="Data", metavar="PATH", is_repeated=True
    )
    test: tuple[str, ...] = option((), "Test data, beside --train.", group="Data", metavar="PATH", is_repeated=True)
    format: str | None = option(None, "Format of the files (see: dialoscope corpus formats).", group="Data")
    on_error: str = option("fail", "What to do at a bad record.", group="Data", choices=("fail", "skip"))

    def load(self, corpus: Sequence[str] | None, output: Any, **options: Any) -> Any:
        """Read the corpus that a command was given; the options are those of `dialoscope.load`."""
        from dialoscope.cli.console import progress_bar
        from dialoscope.corpus.load import load

        if bool(corpus) == bool(self.train or self.test):
            raise UsageError("Give one corpus, or both --train and --test.")
        sides: dict[str, Any] = {"train": list(self.train) or None, "test": list(self.test) or None}
        with progress_bar("reading", quiet=output.is_quiet) as progress:
            how: dict[str, Any] = {"format": self.format, "on_error": self.on_error, "progress": progress}
            return load(*(corpus or ()), **sides, **{**how, **options})

    @property
    def paths(self) -> tuple[str, ...]:
        """Everything that is read besides the corpus."""
        return (*self.train, *self.test)

    def words(self, corpus: Sequence[str] | None) -> str:
        """What was read, as the next command has to name it."""
        from shlex import quote

        if corpus:
            return " ".join(map(quote, corpus))
        sides = [f"--train {quote(path)}" for path in self.train] + [f"--test {quote(path)}" for path in self.test]
        return " ".join(sides)


@dataclass(frozen=True, kw_only=True)
class Models(BaseSettings):
    """The models that a command asks."""

    model: tuple[str, ...] = option(
        (), "A model: a folder of 'dialoscope train', or a Hugging Face path or name.", group="Models",
        metavar="[NAME=]PATH", is_repeated=True,
    )  # fmt: skip

    def by_name(self) -> dict[str, str]:
        """Models by name; one without a name is called as its path ends."""
        named: dict[str, str] = {}
        for word in self.model:
            add_named(named, word, "model")
        return named


def add_named(named: dict[str, str], word: str, kind: str) -> None:
    """Add NAME=PATH to paths by name; a path without a name is called as it ends."""
    name, sign, path = word.partition("=")
    if not sign or "/" in name:  # the folder runs/rate=0.1 has no name
        name, path = Path(word).name, word
    if name in named:
        raise UsageError(f"Two {kind}s are called '{name}'. Name them: --{kind} NAME={path}.")
    named[name] = path


@dataclass(frozen=True, kw_only=True)
class Output(BaseSettings):
    """What a command does with its result."""

    out: str | None = option(None, "Folder for the result, its tables and a page.", group=LAST_GROUP, metavar="DIR")
    overwrite: bool = option(False, "Replace an earlier result.", group=LAST_GROUP)
    json: bool = option(False, "Print the result as JSON.", group=LAST_GROUP)
    quiet: bool = option(False, "No progress bars.", group=LAST_GROUP)

    @property
    def is_quiet(self) -> bool:
        """Whether progress bars are left out."""
        return self.quiet or self.json

    @property
    def folder(self) -> Path | None:
        """Where the result goes."""
        return None if self.out is None else Path(self.out)

    def required(self, what: str) -> Path:
        """Where the result goes, in a command that must write one: `what` is a folder, say."""
        if self.out is None:
            raise UsageError(f"Give {what} with --out.")
        return Path(self.out)


@dataclass(frozen=True, kw_only=True)
class Printing(BaseSettings):
    """What a command does that only prints."""

    json: bool = option(False, "Print the result as JSON.", group=LAST_GROUP)


class Command(TyperCommand):
    """A command whose help names `--help` last, among the options about output."""

    def get_help_option(self, ctx: Any) -> Any:
        """The option `--help`, in the last group."""
        shown: Any = super().get_help_option(ctx)
        if shown is not None:
            shown.rich_help_panel, shown.metavar = LAST_GROUP, ""
        return shown


def command(
    app: typer.Typer, name: str, run: Callable[..., None], *, examples: Sequence[str], hidden: bool = False
) -> None:
    """Add a command. Each parameter of `run` that is a settings class becomes one option for each of its fields."""
    types = get_type_hints(run, include_extras=True)
    arguments, options, classes = [], [], {}
    for parameter in inspect.signature(run).parameters.values():
        kind = types[parameter.name]
        if isinstance(kind, type) and issubclass(kind, BaseSettings):
            classes[parameter.name] = kind
            options += [(each.group, _parameter(kind, field, each)) for field, each in options_of(kind).items()]
        else:
            default = None if _may_be_missing(kind) else parameter.default
            arguments.append(parameter.replace(annotation=kind, kind=parameter.KEYWORD_ONLY, default=default))
    order = (*GROUPS, LAST_GROUP)
    options.sort(key=lambda option: order.index(option[0]) if option[0] in order else len(GROUPS))

    def parse(**words: Any) -> None:
        made = {each: _settings(kind, words) for each, kind in classes.items()}
        run(**{each: made[each] if each in made else words[each] for each in inspect.signature(run).parameters})

    parameters = [*arguments, *(parameter for _, parameter in options)]
    parse.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    parse.__doc__ = run.__doc__
    app.command(name, epilog=epilog(*examples), hidden=hidden, cls=Command)(parse)


def _may_be_missing(annotation: Any) -> bool:
    """Whether a positional argument may be left out: its type allows None."""
    members = get_args(annotation)  # of Annotated[list[str] | None, …]
    return bool(members) and NoneType in get_args(members[0])


def epilog(*examples: str) -> str:
    """The end of a help page: commands that can be pasted, each on a line of its own."""
    return "\n\n".join(f"Try: dialoscope {example}" for example in examples)


def _parameter(kind: type[BaseSettings], field: str, limits: Option) -> inspect.Parameter:
    """One option of the command line. None stands for an option that was not given."""
    element, is_tuple, is_optional = element_of(types_of(kind)[field])
    flag = f"--{field.replace('_', '-')}"
    default = default_of(kind, field)
    is_switch = element is bool and (default or is_optional)  # it can be turned off as well
    flags = [f"{flag}/--no-{flag.removeprefix('--')}" if is_switch else flag]
    flags += SHORT.get(field, ()) if element is bool else ()
    kind_shown: Any = bool if element is bool else list[str] if is_tuple else str
    shown: Any = Annotated[
        kind_shown | None,
        typer.Option(
            *flags,
            help=_help(limits, default, is_tuple),
            metavar=limits.metavar or WORDS[element],
            rich_help_panel=limits.group,
            show_default=False,
            autocompletion=_completion(limits.choices),
        ),
    ]
    return inspect.Parameter(field, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=shown)


def _completion(choices: Sequence[str]) -> Callable[[str], list[str]] | None:
    """What a shell offers after the option."""
    if not choices:
        return None
    return lambda incomplete: [choice for choice in choices if choice.startswith(incomplete)]


def _help(limits: Option, default: Any, is_tuple: bool) -> str:
    """The help of an option with its choices and its default."""
    choices = f" One of: {', '.join(limits.choices)}." if limits.choices else ""
    several = (" May be repeated." if limits.is_repeated else " Several: a,b.") if is_tuple else ""
    shown = ", ".join(map(str, default)) if is_tuple and default else default
    has_default = not isinstance(shown, bool) and shown not in (None, (), "")
    usual = f" Default: {shown}." if has_default else ""
    return f"{limits.help}{choices}{several}{usual}"


def _settings(kind: type[BaseSettings], words: Mapping[str, Any]) -> BaseSettings:
    """The settings that the words of the command line give; options that were not given keep their defaults."""
    values = {}
    for name, limits in options_of(kind).items():
        word = words[name]
        element, is_tuple, _ = element_of(types_of(kind)[name])
        if word is None or word == []:
            continue
        if is_tuple:
            pieces = word if limits.is_repeated else [piece.strip() for part in word for piece in part.split(",")]
            values[name] = tuple(read_word(piece, element) for piece in pieces if piece)
        else:
            values[name] = read_word(word, element)
    return kind(**values)


def words_of(settings: BaseSettings, names: Collection[str]) -> str:
    """Those of the named settings that differ from their defaults, as options of a command.

    >>> words_of(Reading(on_error="skip", train=("a b.jsonl",)), ("train", "on_error"))
    "--train 'a b.jsonl' --on-error skip"
    """
    words = []
    for name, limits in options_of(type(settings)).items():
        value, flag = getattr(settings, name), f"--{name.replace('_', '-')}"
        if name not in names or value == default_of(type(settings), name):
            continue
        if isinstance(value, bool):
            words.append(flag if value else f"--no-{flag.removeprefix('--')}")
        elif isinstance(value, tuple) and limits.is_repeated:
            words += [f"{flag} {quote(str(each))}" for each in value]
        elif isinstance(value, tuple):
            words.append(f"{flag} {quote(','.join(map(str, value)))}")
        else:
            words.append(f"{flag} {quote(str(value))}")
    return " ".join(words)


def read_word(word: Any, element: type) -> Any:
    """A word of the command line as a number where one is expected; the settings refuse what is none.

    >>> read_word("1.5", int), read_word("3", int), read_word("many", int)
    (1.5, 3, 'many')
    """
    if element not in (int, float) or not isinstance(word, str):
        return word
    try:
        if element is int and word.removeprefix("-").isdecimal():
            return int(word)
        number = float(word)
    except ValueError:
        return word
    return number if number == number and abs(number) != float("inf") else word
