"""Commands made from settings: one option for each field, with its help, group and choices.

Every option is read as text here and checked by `BaseSettings`, so that a wrong value gets the same message on the
command line, in a study's TOML and in Python.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from dialoscope.errors import UsageError
from dialoscope.settings import BaseSettings, Option, default_of, element_of, option, options_of, types_of

WORDS = {bool: None, int: "N", float: "X", str: "TEXT"}  # what help calls a value

# Positional arguments that mean the same in every command.
Corpus = Annotated[
    list[str] | None, typer.Argument(help="Files, a folder, 'concierge', 'chitchat' or 'hf:NAME'.", metavar="[CORPUS…]")
]


@dataclass(frozen=True, kw_only=True)
class Reading(BaseSettings):
    """How a corpus is read."""

    train: tuple[str, ...] = option(
        (), "Training data, in place of a corpus with splits.", group="Data", metavar="PATH"
    )
    test: tuple[str, ...] = option((), "Test data, beside --train.", group="Data", metavar="PATH")
    format: str | None = option(None, "Format of the files (see: dialoscope corpus formats).", group="Data")
    on_error: str = option("fail", "What to do at a bad record.", group="Data", choices=("fail", "skip"))

    def load(self, corpus: Sequence[str] | None, output: Output) -> Any:
        """Read the corpus that a command was given."""
        from dialoscope.cli.console import progress_bar
        from dialoscope.corpus import load

        if bool(corpus) == bool(self.train or self.test):
            raise UsageError("Give one corpus, or both --train and --test.")
        sides = {"train": list(self.train) or None, "test": list(self.test) or None}
        with progress_bar("reading", quiet=output.is_quiet) as progress:
            options: dict[str, Any] = {"format": self.format, "on_error": self.on_error, "progress": progress}
            return load(*(corpus or ()), **sides, **options)

    @property
    def paths(self) -> tuple[str, ...]:
        """Everything that is read besides the corpus."""
        return (*self.train, *self.test)


@dataclass(frozen=True, kw_only=True)
class Models(BaseSettings):
    """The models that a command asks."""

    model: tuple[str, ...] = option(
        (), "A model: a folder of 'dialoscope train', or a Hugging Face path or name.", group="Models",
        metavar="[NAME=]PATH",
    )  # fmt: skip

    def by_name(self) -> dict[str, str]:
        """Models by name; one without a name is called as its path ends."""
        named: dict[str, str] = {}
        for word in self.model:
            name, _, path = word.rpartition("=")
            name = name or Path(path).name
            if name in named:
                raise UsageError(f"Two models are called '{name}'. Name them: --model NAME={path}.")
            named[name] = path
        return named


@dataclass(frozen=True, kw_only=True)
class Output(BaseSettings):
    """What a command does with its result."""

    out: str | None = option(None, "Folder for the result, its tables and a page.", group="Output", metavar="DIR")
    overwrite: bool = option(False, "Replace an earlier result.", group="Output")
    json: bool = option(False, "Print the result as JSON.", group="Output")
    quiet: bool = option(False, "No progress bars.", group="Output")

    @property
    def is_quiet(self) -> bool:
        """Whether progress bars are left out."""
        return self.quiet or self.json

    @property
    def folder(self) -> Path | None:
        """Where the result goes."""
        return None if self.out is None else Path(self.out)


def command(
    app: typer.Typer, name: str, run: Callable[..., None], *, examples: Sequence[str], hidden: bool = False
) -> None:
    """Add a command. Each parameter of `run` that is a settings class becomes one option for each of its fields."""
    types = get_type_hints(run, include_extras=True)
    parameters, classes = [], {}
    for parameter in inspect.signature(run).parameters.values():
        kind = types[parameter.name]
        if isinstance(kind, type) and issubclass(kind, BaseSettings):
            classes[parameter.name] = kind
            parameters += [_parameter(kind, field, each) for field, each in options_of(kind).items()]
        else:
            default = None if parameter.default is parameter.empty else parameter.default
            parameters.append(parameter.replace(annotation=kind, kind=parameter.KEYWORD_ONLY, default=default))

    def parse(**words: Any) -> None:
        made = {each: _settings(kind, words) for each, kind in classes.items()}
        run(**{each: made[each] if each in made else words[each] for each in inspect.signature(run).parameters})

    parse.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    parse.__doc__ = run.__doc__
    app.command(name, epilog=epilog(*examples), hidden=hidden)(parse)


def epilog(*examples: str) -> str:
    """The end of a help page: commands that can be pasted."""
    return "Try: " + "  ·  ".join(f"dialoscope {example}" for example in examples)


def _parameter(kind: type[BaseSettings], field: str, limits: Option) -> inspect.Parameter:
    """One option of the command line. None stands for an option that was not given."""
    element, is_tuple, _ = element_of(types_of(kind)[field])
    flag = f"--{field.replace('_', '-')}"
    default = default_of(kind, field)
    flags = [f"{flag}/--no-{flag.removeprefix('--')}" if default else flag] if element is bool else [flag]
    if (field, element) in SHORT:
        flags.append(SHORT[field, element])
    shown = Annotated[
        (bool if element is bool else list[str] if is_tuple else str) | None,  # type: ignore[valid-type]
        typer.Option(
            *flags,
            help=_help(limits, default, is_tuple),
            metavar=None if element is bool else limits.metavar or WORDS[element],
            rich_help_panel=limits.group,
            show_default=False,
        ),
    ]
    return inspect.Parameter(field, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=shown)


SHORT = {("quiet", bool): "-q"}


def _help(limits: Option, default: Any, is_tuple: bool) -> str:
    """The help of an option with its choices and its default."""
    choices = f" One of: {', '.join(limits.choices)}." if limits.choices else ""
    several = (" May be repeated." if limits.is_repeated else " Several: a,b.") if is_tuple else ""
    shown = ",".join(map(str, default)) if is_tuple and default else default
    is_told = not isinstance(shown, bool) and shown not in (None, (), "")
    usual = f" Default: {shown}." if is_told else ""
    return f"{limits.help}{choices}{several}{usual}"


def _settings(kind: type[BaseSettings], words: Mapping[str, Any]) -> BaseSettings:
    """The settings that the words of the command line give; options that were not given keep their defaults."""
    values = {}
    for each in fields(kind):
        word = words[each.name]
        element, is_tuple, _ = element_of(types_of(kind)[each.name])
        if word is None or word == []:
            continue
        if is_tuple:
            limits = options_of(kind)[each.name]
            pieces = word if limits.is_repeated else [piece.strip() for part in word for piece in part.split(",")]
            values[each.name] = tuple(read_word(piece, element) for piece in pieces if piece)
        else:
            values[each.name] = read_word(word, element)
    return kind(**values)


def read_word(word: Any, element: type) -> Any:
    """A word of the command line as a number where one is expected; the settings refuse what is none.

    >>> read_word("1.5", int), read_word("3", int), read_word("many", int)
    (1.5, 3, 'many')
    """
    if element is int and isinstance(word, str):
        return int(word) if word.removeprefix("-").isdecimal() else read_word(word, float)
    if element is float and isinstance(word, str):
        try:
            number = float(word)
        except ValueError:
            return word
        return number if number == number and abs(number) != float("inf") else word
    return word
