from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.record import Origin, Score
from dialoscope.report import Card, Chart, Column, Fact, Facts, Part, Prose, Section, Table, render
from dialoscope.report.html import _in_script
from dialoscope.report.verdict import Level

VOID = {"meta", "link", "wbr", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """The page as a browser's parser sees it: tags, attributes, text and scripts."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.scripts: list[tuple[dict[str, str], str]] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag == "script":
            self.scripts.append((self.tags[-1][1], ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            attributes, text = self.scripts.pop()
            self.scripts.append((attributes, text + data))
        elif self.open and self.open[-1] != "style":
            self.texts.append(data)

    def attributes(self, name: str) -> list[str]:
        return [found[name] for _, found in self.tags if name in found]


@pytest.fixture
def page(section: Section) -> Page:
    return Page(render("A report", [section]))


@pytest.fixture
def hostile_page(hostile: str, hostile_section: Section) -> Page:
    return Page(render(hostile, [hostile_section], subtitle=hostile))


def test_every_element_is_closed(page: Page) -> None:
    assert page.open == []


def test_hostile_text_makes_no_element_that_plain_text_does_not_make(page: Page, hostile_page: Page) -> None:
    ours = {"html", "script", "style", "meta", "link", "title"}
    assert {tag for tag, _ in hostile_page.tags} - {tag for tag, _ in page.tags} == set()
    assert len(hostile_page.scripts) == len(page.scripts)
    assert ours <= {tag for tag, _ in hostile_page.tags}


def test_hostile_text_is_shown_letter_by_letter(hostile: str, hostile_page: Page) -> None:
    shown = [text.strip() for text in hostile_page.texts]
    assert shown.count(hostile) >= 15


def test_no_element_has_a_handler_or_a_foreign_link(hostile_page: Page) -> None:
    assert not [name for _, found in hostile_page.tags for name in found if name.startswith("on")]
    assert all(link.startswith("#") or link.startswith("data:") for link in hostile_page.attributes("href"))


def test_nothing_is_loaded_from_anywhere(page: Page) -> None:
    assert page.attributes("src") == []
    assert not [tag for tag, _ in page.tags if tag in {"iframe", "img", "object", "embed", "base", "form"}]


def test_styles_import_nothing(section: Section) -> None:
    style = re.search(r"<style>(.*?)</style>", render("x", [section]), re.S)
    assert style is not None
    assert not re.search(r"url\(|@import|https?:", style[1])


def test_data_in_the_page_is_json_again(hostile_section: Section, hostile_page: Page) -> None:
    stored = [json.loads(text) for found, text in hostile_page.scripts if found.get("type") == "application/json"]
    charts = [block.figure for block in hostile_section.blocks if isinstance(block, Chart)]
    assert [each for each in stored if "layout" in each] == charts


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner, max_size=3), max_leaves=5))
def test_json_in_a_script_cannot_end_it(value: Any) -> None:
    shown = str(_in_script(value))
    assert not set(shown) & set("<>&\u2028\u2029")
    assert json.loads(shown) == value


def test_the_policy_names_exactly_the_scripts_of_the_page(page: Page) -> None:
    policy = next(found["content"] for _, found in page.tags if found.get("http-equiv") == "Content-Security-Policy")
    scripts = [text for found, text in page.scripts if "type" not in found]
    hashes = {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts}
    assert set(re.findall(r"'sha256-([^']+)'", policy)) == hashes
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_plotly_is_in_the_page_once(section: Section) -> None:
    assert len(re.findall(r"plotly\.js v\d", render("x", [section, section]))) == 1


def test_a_page_without_charts_has_no_plotly_and_is_small() -> None:
    html = render("x", [Section("T", "t", "Why?", [Prose("Words.")])])
    assert len(html) < 40_000


def test_ids_are_unique_even_for_two_runs_of_one_instrument(section: Section) -> None:
    ids = Page(render("x", [section, section, section.at("records")])).attributes("id")
    assert len(ids) == len(set(ids))


def test_every_link_within_the_page_has_a_target(section: Section) -> None:
    page = Page(render("x", [section, section]))
    links = {link[1:] for link in page.attributes("href") if link.startswith("#")}
    assert links <= set(page.attributes("id"))


def test_every_label_by_reference_exists(page: Page) -> None:
    used = {part for found in page.attributes("aria-labelledby") for part in found.split()}
    assert used <= set(page.attributes("id"))


def test_a_page_has_language_viewport_and_landmarks(page: Page) -> None:
    found = dict(page.tags)
    assert found["html"]["lang"] == "en"
    assert "width=device-width" in next(each["content"] for _, each in page.tags if each.get("name") == "viewport")
    assert {"header", "main", "nav", "section", "figure", "figcaption", "footer"} <= set(found)


def test_contents_are_left_out_where_there_is_one_thing_to_read() -> None:
    assert "nav" not in dict(Page(render("x", [Section("T", "t", "", [])])).tags)


def test_a_verdict_is_told_in_words_as_well_as_in_colour() -> None:
    section = Section("Overlap", "overlap", "", [], verdict=Card("of the test set leaks", 0.2315, "concern", ".2%"))
    words = " ".join(text.strip() for text in Page(render("x", [section])).texts if text.strip())
    assert "Concern : 23.15% of the test set leaks Overlap" in words


def test_the_signature_of_each_section_is_in_the_records() -> None:
    section = Section("T", "t", "", [], origin=Origin("demo@00", {"k": 3}, 7, "0.1.0"))
    words = "".join(text.strip() for text in Page(render("x", [section])).texts)
    assert "corpus:demo@00|seed:7|k:3|v:0.1.0" in words


def test_the_same_sections_make_the_same_page(section: Section) -> None:
    assert render("x", [section]) == render("x", [section])


@pytest.mark.parametrize(
    ("number", "expected"),
    [(-0.5, "−0.500"), (Score(-0.5, 4, (-1.0, 0.25)), "−0.500"), ("mid-size", "mid-size")],
)
def test_numbers_get_a_true_minus_and_words_keep_their_hyphen(number: float | Score | str, expected: str) -> None:
    page = Page(render("x", [Section("T", "t", "", [Facts([Fact("f", number)])])]))
    assert expected in [text.strip() for text in page.texts]


def test_the_best_cell_says_so_to_those_who_cannot_see_bold_type() -> None:
    table = Table(["a", Column("F1", best="high")], [["x", 0.5], ["y", 0.25]], "T")
    texts = [text.strip() for text in Page(render("x", [Section("T", "t", "", [table])])).texts if text.strip()]
    assert texts[texts.index("0.500") + 1] == "(best)"


def test_a_table_without_rows_says_so() -> None:
    page = Page(render("x", [Section("T", "t", "", [Table(["a"], [], "Empty")])]))
    assert "No rows." in page.texts


def test_a_card_names_every_part_with_its_number_and_its_level() -> None:
    score = Score(1.5, 40, (1.25, 1.75))
    parts = [Part("base", score, "concern"), Part("<ours>", 0.5, "good")]
    card = Card("times", None, "concern", ".2f", parts)
    page = Page(render("x", [Section("Distraction", "d", "", [], verdict=card)]))
    words = " ".join(text.strip() for text in page.texts if text.strip())
    assert "Concern: base 1.50 [1.25, 1.75] Good: <ours> 0.50 times Distraction" in words


def test_what_the_verdicts_come_to_stands_above_the_cards() -> None:
    section = Section("Overlap", "overlap", "", [], verdict=Card("leaks", 0.5, "concern"))
    html = render("x", [section], overall="1 of 1 <finding>")
    assert html.index("1 of 1 &lt;finding&gt;") < html.index('class="verdict concern"')
    assert "Nothing can be said" in render("x", [Section("T", "t", "", [])], overall="Nothing can be said")


def test_files_of_one_page_have_names_of_their_own_that_say_which_section_they_are_of() -> None:
    tables = [Table(["a"], [["b"]], "Scores", name=name) for name in ("probe-f1", "labels", "labels")]
    places = [Section("T", anchor, "", tables) for anchor in ("probe-chats", "probe-mail", "probe-" + "long-" * 11)]
    stored = [json.loads(text) for found, text in Page(render("x", places)).scripts if "type" in found]
    names = [each["name"] for each in stored]
    assert names[:6] == [
        "probe-chats-f1", "probe-chats-labels", "probe-chats-labels-2",
        "probe-mail-f1", "probe-mail-labels", "probe-mail-labels-2",
    ]  # fmt: skip
    assert len(set(names)) == 9
    assert [f"\\label{{tab:{each['name']}}}" in each["tex"] for each in stored] == [True] * 9


def test_pictures_of_one_page_say_which_section_they_are_of(section: Section) -> None:
    files = Page(render("x", [section.at("chats"), section.at("mail")])).attributes("data-file")
    assert [one.partition("-")[0] for one in files] == ["chats"] * 9 + ["mail"] * 9
    assert len(set(files)) == 18


def test_the_page_of_one_run_names_files_as_its_folder_does() -> None:
    section = Section("T", "probe", "", [Table(["a"], [["b"]], "Scores", name="scores")])
    (stored,) = (json.loads(text) for found, text in Page(render("x", [section])).scripts if "type" in found)
    assert stored["name"] == "scores"


@pytest.mark.parametrize(
    ("level", "word"),
    [("good", "Good"), ("concern", "Concern"), ("cannot_tell", "Cannot tell"), ("not_measurable", "Not measurable")],
)
def test_every_level_has_its_word_and_its_class(level: Level, word: str) -> None:
    html = render("x", [Section("T", "t", "", [], verdict=Card("says so", None, level))])
    assert f'class="verdict {level}"' in html
    assert " ".join(text.strip() for text in Page(html).texts if text.strip()).count(f"{word} : says so") == 1
