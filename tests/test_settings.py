"""Settings refuse wrong values with the same words through every interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from dialoscope.cli.arguments import command
from dialoscope.errors import UsageError
from dialoscope.settings import BaseSettings, default_of, element_of, option, options_of, with_options


@dataclass(frozen=True, kw_only=True)
class Example(BaseSettings):
    """One option of each kind."""

    count: int = option(1, "A whole number.")
    limit: int | None = option(None, "At least one.", least=1)
    share: float = option(0.5, "Between 0 and 1.", least=0, most=1)
    rate: float = option(1.0, "Above 0.", above=0)
    most: float = option(1.0, "At most 2.", most=2)
    between: float = option(1.0, "Above 0, at most 2.", above=0, most=2)
    words: str = option("auto", "A choice.", choices=("auto", "words"))
    name: str | None = option(None, "Any text.")
    flag: bool = option(False, "A switch.")
    names: tuple[str, ...] = option(("a",), "Several texts.")
    sizes: tuple[int, ...] = option((), "Several numbers.", least=1)
    device: str = option("auto", "Decides no number.", decides=False)

    def check(self) -> None:
        """Two values that do not go together."""
        if self.flag and self.name is None:
            raise UsageError("flag needs a name: give name as well.")


# A value as TOML and Python have it, the words of the command line that give it, and the one message.
WRONG = [
    ({"count": 1.5}, ["--count", "1.5"], "count takes a whole number, found 1.5."),
    ({"count": "many"}, ["--count", "many"], "count takes a whole number, found 'many'."),
    ({"limit": 0}, ["--limit", "0"], "limit takes a whole number of 1 or more, found 0."),
    ({"share": 1.5}, ["--share", "1.5"], "share takes a number from 0 to 1, found 1.5."),
    ({"share": "half"}, ["--share", "half"], "share takes a number, found 'half'."),
    ({"rate": 0.0}, ["--rate", "0"], "rate takes a number above 0, found 0.0."),
    ({"most": 3.0}, ["--most", "3"], "most takes a number of 2 or less, found 3.0."),
    ({"between": 3.0}, ["--between", "3"], "between takes a number above 0 and of 2 or less, found 3.0."),
    ({"words": "foo"}, ["--words", "foo"], "words is one of auto, words; found 'foo'."),
    ({"sizes": (1, 0)}, ["--sizes", "1,0"], "sizes takes a whole number of 1 or more, found 0."),
    ({"sizes": ("x",)}, ["--sizes", "x"], "sizes takes a whole number, found 'x'."),
    ({"flag": True}, ["--flag"], "flag needs a name: give name as well."),
]  # fmt: skip


def from_python(values: dict[str, Any]) -> Example:
    return with_options(None, Example, values)


def from_toml(values: dict[str, Any]) -> Example:
    return Example.from_table({key: list(each) if isinstance(each, tuple) else each for key, each in values.items()})


def from_command_line(*words: str) -> Example:
    made: list[Example] = []

    def run(settings: Example) -> None:
        made.append(settings)

    app = typer.Typer()
    command(app, "run", run, examples=["run"])
    result = CliRunner().invoke(app, list(words), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return made[0]


@pytest.mark.parametrize(("values", "words", "message"), WRONG)
def test_a_wrong_value_gets_the_same_message_through_every_interface(
    values: dict[str, Any], words: list[str], message: str
) -> None:
    asks: list[Callable[[], Example]] = [
        lambda: from_python(values),
        lambda: from_toml(values),
        lambda: from_command_line(*words),
        lambda: Example(**values),
    ]
    for ask in asks:
        with pytest.raises(UsageError) as caught:
            ask()
        assert str(caught.value) == message


RIGHT = [
    ({}, []),
    ({"count": -3}, ["--count", "-3"]),
    ({"limit": 20}, ["--limit", "20"]),
    ({"share": 1.0}, ["--share", "1"]),
    ({"words": "words", "name": "x"}, ["--words", "words", "--name", "x"]),
    ({"flag": True, "name": "1"}, ["--flag", "--name", "1"]),
    ({"names": ("a", "b", "c")}, ["--names", "a, b", "--names", "c"]),
    ({"names": ()}, ["--names", ","]),
    ({"sizes": (1, 2)}, ["--sizes", "1,2"]),
]


@pytest.mark.parametrize(("values", "words"), RIGHT)
def test_a_value_is_the_same_through_every_interface(values: dict[str, Any], words: list[str]) -> None:
    assert from_python(values) == from_toml(values) == from_command_line(*words) == Example(**values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"count": True}, "count takes a whole number, found true."),
        ({"count": 1.0}, "count takes a whole number, found 1.0."),
        ({"count": None}, "count takes a whole number, found None."),
        ({"share": True}, "share takes a number, found true."),
        ({"share": float("nan")}, "share takes a number from 0 to 1, found nan."),
        ({"rate": float("inf")}, "rate takes a number above 0, found inf."),
        ({"flag": 1}, "flag takes true or false, found 1."),
        ({"flag": "yes"}, "flag takes true or false, found 'yes'."),
        ({"name": 3}, "name takes text, found 3."),
        ({"names": "a"}, "names takes a list, found 'a'."),
        ({"names": (1,)}, "names takes text, found 1."),
        ({"name": "x" * 99, "words": "y" * 99}, f"words is one of auto, words; found '{'y' * 59}."),
    ],
)
def test_types_are_exact(values: dict[str, Any], message: str) -> None:
    """True is not a number, 1.0 is not a whole number, and a text is not a list."""
    for ask in (from_python, from_toml):
        with pytest.raises(UsageError) as caught:
            ask(values)
        assert str(caught.value) == message


def test_a_whole_number_is_a_number() -> None:
    assert Example(share=1).share == 1
    assert from_toml({"rate": 2}).rate == 2


def test_what_is_no_number_stays_text_on_the_command_line() -> None:
    for word in ("nan", "inf", "1e999", "٣x", "--"):
        with pytest.raises(UsageError, match="rate takes a number"):
            from_command_line(f"--rate={word}")


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"^Unknown setting 'limti'\. Did you mean 'limit'\?$"):
        from_python({"limti": 3})
    with pytest.raises(UsageError, match=r"^Unknown option in \[example\] 'limti'\. Did you mean 'limit'\?$"):
        Example.from_table({"limti": 3}, "[example]")
    with pytest.raises(UsageError, match=r"^Unknown option 'limti'\. Did you mean 'limit'\?$"):
        Example.from_table({"limti": 3})
    with pytest.raises(UsageError, match=r"^Unknown setting 'limti'\. There are none\.$"):
        with_options(None, BaseSettings, {"limti": 3})


def test_a_message_of_a_table_says_where_it_is() -> None:
    with pytest.raises(UsageError, match=r"^\[example\] limit takes a whole number of 1 or more, found 0\.$"):
        Example.from_table({"limit": 0}, "[example]")


def test_settings_of_another_question_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^settings takes Example, found BaseSettings\.$"):
        with_options(BaseSettings(), Example, {})
    with pytest.raises(UsageError, match=r"^settings takes Example, found dict\.$"):
        with_options({"limit": 3}, Example, {})  # type: ignore[arg-type]


def test_keywords_change_the_settings_that_are_given() -> None:
    assert with_options(Example(limit=3, count=2), Example, {"limit": 5}) == Example(limit=5, count=2)
    assert with_options(None, Example, {"names": ["x", "y"]}).names == ("x", "y")


def test_a_signature_names_what_was_changed_and_decides_a_number() -> None:
    assert Example(limit=3, device="cuda", count=1).changed() == {"limit": 3}


def test_settings_come_back_from_their_json() -> None:
    example = Example(limit=3, names=("x", "y"), share=0.25)
    assert example.to_dict()["names"] == ["x", "y"]
    assert Example.from_table(example.to_dict()) == example


def test_an_option_has_one_plain_type() -> None:
    assert element_of(tuple[int, ...] | None) == (int, True, True)
    for kind in (int | str, dict[str, int], list[str]):
        with pytest.raises(TypeError):
            element_of(kind)


def test_the_default_of_an_option() -> None:
    assert {name: default_of(Example, name) for name in ("limit", "share", "names")} == {
        "limit": None, "share": 0.5, "names": ("a",),
    }  # fmt: skip
    assert list(options_of(Example))[:2] == ["count", "limit"]


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.text())))
def test_whatever_is_given_is_taken_as_it_is_or_refused_in_one_line(value: Any) -> None:
    for name in ("count", "limit", "share", "words", "flag", "names"):
        try:
            kept = getattr(Example(**{"name": "x", name: value}), name)
        except UsageError as error:
            assert "\n" not in str(error)
        else:
            assert kept is value
