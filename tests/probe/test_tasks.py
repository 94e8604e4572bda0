from __future__ import annotations

import re
from copy import copy
from dataclasses import replace
from pathlib import Path

import pytest

from dialoscope.corpus import Corpus, Dialogue, Turn, generate
from dialoscope.errors import UsageError
from dialoscope.probe.examples import Examples, Info, examples, last_tokens
from dialoscope.probe.tasks import NONE, TASKS, carried, chosen_tasks, middling_words, why_not

DOCUMENT = Path(__file__).parents[2] / "docs" / "probe-tasks.md"
State = dict[str, dict[str, list[str]]]
HOTEL: State = {"hotel": {"pricerange": ["cheap"], "area": ["north"], "book stay": ["2"], "book day": ["friday"]}}
BOTH: State = {**HOTEL, "restaurant": {"area": ["north"], "book day": ["friday"]}}
FOOD: State = {**HOTEL, "restaurant": {**BOTH["restaurant"], "food": ["italian"], "pricerange": ["cheap"]}}


def act(domain: str, name: str, slot: str = "", *values: str) -> dict[str, object]:
    return {"domain": domain, "act": name, "slot": slot, "values": list(values)}


def example(*, is_on_system: bool = True) -> Dialogue:
    """The dialogue of docs/probe-tasks.md, with states where MultiWOZ 2.1 or where SGD puts them."""
    rows = [
        ("user", "I need a cheap hotel in the north, two nights from Friday.", HOTEL, []),
        ("system", "The Alder House is cheap. Shall I book it?", HOTEL, [act("hotel", "recommend", "name")]),
        ("user", "Yes please. And a restaurant in the north for Friday.", BOTH, []),
        ("system", "Which food would you like?", BOTH, [act("restaurant", "request", "food")]),
        ("user", "Italian, and make it cheap.", FOOD, []),
        ("system", "I booked a table at Casa Verde.", FOOD, [act("booking", "book", "name", "Casa Verde")]),
    ]  # fmt: skip
    turns = []
    for speaker, text, state, acts in rows:
        has_state = (speaker == "system") == is_on_system
        turns.append(
            Turn(speaker, text, {**({"state": state} if has_state else {}), **({"acts": acts} if acts else {})})
        )
    persona = {"user": ["I love hiking.", "I am allergic to nuts."]}
    return Dialogue(tuple(turns), "d", labels={"goal": {"hotel": {}, "restaurant": {}}, "persona": persona})


def written(name: str) -> set[str]:
    """The labels of a task's example in the document."""
    found = re.search(rf"^### {name}\n.*?^Label: (.*?)$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return set(re.findall(r"`([^`]+)`", found[1]))


@pytest.mark.parametrize("is_on_system", [True, False])
@pytest.mark.parametrize("name", [name for name in TASKS if name != "WordCont"])
def test_the_examples_of_the_document_hold(name: str, is_on_system: bool) -> None:
    found = examples(Corpus.of([example(is_on_system=is_on_system)], name="example"))
    rule = TASKS[name].labeller(found)
    assert (set(rule(found.positions[1])) or {NONE}) == written(name)


def test_middling_words_are_asked_for_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "dialoscope.probe.tasks.middling_words", lambda training: frozenset({"friday", "hotel", "train"})
    )
    found = examples(Corpus.of([example()], name="example"))
    assert set(TASKS["WordCont"].labeller(found)(found.positions[1])) == written("WordCont")


def test_the_document_has_every_task() -> None:
    assert set(re.findall(r"^### (\w+)$", DOCUMENT.read_text(), re.MULTILINE)) == set(TASKS)


def test_words_between_a_131st_and_three_131sts_of_the_turns_are_middling() -> None:
    """In 1,310 turns: seen 10 to 30 times."""
    counts = {"once": 9, "ten": 10, "thirty": 30, "often": 31, "a": 20}
    words = [word for word, count in counts.items() for _ in range(count)]
    turns = [Turn("AB"[n % 2], words[n] if n < len(words) else "!") for n in range(1310)]
    found = examples(Corpus.of([Dialogue(tuple(turns), "d")], name="c"))
    assert middling_words(found) == {"ten", "thirty"}  # "a" has one character


def test_of_too_many_middling_words_the_most_frequent_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialoscope.probe.tasks.WORDS", 1)
    texts = ["ten"] * 10 + ["thirty"] * 30 + ["!"] * 1270
    turns = tuple(Turn("AB"[place % 2], text) for place, text in enumerate(texts))
    assert middling_words(examples(Corpus.of([Dialogue(turns, "d")], name="c"))) == {"thirty"}


def test_a_word_seen_once_is_not_middling_in_a_small_corpus() -> None:
    """A 131st of 100 turns is less than one, and three are 2.3."""
    texts = ["once", "twice", "twice", *["!"] * 97]
    turns = tuple(Turn("AB"[place % 2], text) for place, text in enumerate(texts))
    assert middling_words(examples(Corpus.of([Dialogue(turns, "d")], name="c"))) == {"twice"}


def test_a_corpus_too_small_for_middling_words_says_so() -> None:
    found = examples(Corpus.of([Dialogue((Turn("A", "x y"), Turn("B", "z")), "d")], name="c"))
    with pytest.raises(UsageError, match="too small"):
        TASKS["WordCont"].labeller(found)
    assert carried(TASKS, found)["WordCont"] == "the training split is too small to have words of middling frequency"


def test_a_value_spelt_differently_is_not_new() -> None:
    first, second = {"r": {"time": ["6 pm"]}}, {"r": {"time": ["18:00", "6 pm"], "food": ["thai"]}}
    turns = (
        Turn("user", "at six", {"state": first}),
        Turn("system", "ok"),
        Turn("user", "thai", {"state": second}),
        Turn("system", "ok"),
    )
    found = examples(Corpus.of([Dialogue(turns, "d")], name="c"))
    assert [one.recent for one in found.positions] == [{Info("r", "time", "6 pm")}, {Info("r", "food", "thai")}]


def test_a_slot_that_left_the_state_was_given_before_all_the_same() -> None:
    turns = [
        Turn(speaker, "x", {"state": {"hotel": {"area": [area]} if area else {}}} if speaker == "user" else {})
        for area in ("north", "", "south")
        for speaker in ("user", "system")
    ]
    found = examples(Corpus.of([Dialogue(tuple(turns), "d")], name="c"))
    assert [one.earlier for one in found.positions] == [set(), {"area"}, {"area"}]
    assert set(TASKS["RepeatInfo"].labeller(found)(found.positions[2])) == {"area"}


def test_a_persona_is_that_of_whoever_answers() -> None:
    turns = tuple(Turn(speaker, "x") for speaker in "ABA")
    personas = {"A": ["I hike."], "B": ["I swim."]}
    found = examples(Corpus.of([Dialogue(turns, "d", labels={"persona": personas})], name="c"))
    assert [one.persona for one in found.positions] == [("I swim.",), ("I hike.",)]


def test_without_annotation_every_turn_is_a_response() -> None:
    found = examples(Corpus.of([Dialogue((Turn("A", "1"), Turn("B", "2"), Turn("A", "3")), "d")], name="c"))
    assert [one.context for one in found.positions] == [("1",), ("1", "2")]
    reasons = [why_not(task, found.annotations) for task in TASKS.values()]
    assert [name for name, reason in zip(TASKS, reasons, strict=True) if reason is None] == ["UtteranceLoc", "WordCont"]


def test_an_annotated_corpus_without_an_assistant_names_who_speaks() -> None:
    turns = [turn._replace(speaker={"user": "customer", "system": "agent"}[turn.speaker]) for turn in example().turns]
    with pytest.raises(UsageError, match=r"c: expected answers by assistant or system, .* by agent, customer alone"):
        examples(Corpus.of([example()._replace(turns=tuple(turns))], name="c"))
    with pytest.raises(UsageError, match="expected dialogues of two turns or more to probe, found none"):
        examples(Corpus.of([example()._replace(turns=tuple(turns[:1]))], name="c"))


def test_topics_without_a_goal_are_those_of_the_last_state() -> None:
    dialogue = example()._replace(labels={})
    found = examples(Corpus.of([dialogue], name="c"))
    assert {one.goal for one in found.positions} == {frozenset({"hotel", "restaurant"})}


def test_the_built_in_corpus_carries_all_tasks() -> None:
    found = examples(generate(dialogues=300, seed=0))
    assert found.annotations == {"state", "acts", "goal", "persona"}
    counts = carried(TASKS, found)
    assert all(isinstance(count, int) and count > 1 for count in counts.values()), counts


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (1, ("!",)),
        (2, ("Hi!",)),
        (4, (", you", "Hi!")),
        (5, ("there, you", "Hi!")),
        (6, ("Hello there, you", "Hi!")),
        (99, ("Hello there, you", "Hi!")),
    ],
)
def test_the_last_tokens_of_a_context(tokens: int, expected: tuple[str, ...]) -> None:
    assert last_tokens(["Hello there, you", "Hi!"], tokens) == expected


def test_cutting_keeps_who_said_it() -> None:
    found = examples(Corpus.of([example()], name="c"))
    assert [turn.speaker for turn in found.contexts(30)[1]] == ["user", "system", "user"]  # type: ignore[attr-defined]


def test_fingerprints_tell_contexts_apart_and_not_labels() -> None:
    one = examples(Corpus.of([example()], name="c"))
    other = replace(one, positions=[replace(each, goal=frozenset()) for each in one.positions])
    assert Examples(one.corpus, other.positions, one.annotations).fingerprint == one.fingerprint
    moved = replace(one.positions[0], context=("x",))
    assert Examples(one.corpus, [moved, *one.positions[1:]], one.annotations).fingerprint != one.fingerprint


def test_fingerprints_are_of_contexts_however_their_turns_are_shared() -> None:
    """Positions that share their turns, as those of a dialogue do, and copies that share none."""
    one = examples(Corpus.of([example(), example()._replace(id="e")], name="c"))
    copied = [replace(each, context=tuple(copy(turn) for turn in each.context)) for each in one.positions]
    assert Examples(one.corpus, copied, one.annotations).fingerprint == one.fingerprint
    shorter = [replace(each, context=each.context[:-1]) for each in one.positions]
    for others in (one.positions[::-1], one.positions[:-1], [*one.positions, one.positions[-1]], shorter):
        assert Examples(one.corpus, others, one.annotations).fingerprint != one.fingerprint


def test_who_said_the_first_turn_of_the_next_dialogue_counts() -> None:
    """Its text is that of the dialogue before, so that only who said it tells the two apart."""

    def fingerprint(speaker: str) -> str:
        dialogues = [Dialogue((Turn(who, "x"), Turn("B", "y")), who) for who in ("A", speaker)]
        return examples(Corpus.of(dialogues, name="c")).fingerprint

    assert fingerprint("A'") != fingerprint("C")


def test_tasks_are_chosen_by_name_family_or_all() -> None:
    assert list(chosen_tasks(["all"])) == list(TASKS)
    assert list(chosen_tasks(["downstream", "UtteranceLoc"])) == [
        "ActionSelect",
        "EntitySlots",
        "EntityValues",
        "UtteranceLoc",
    ]
    with pytest.raises(UsageError, match="Did you mean 'RecentTopic'"):
        chosen_tasks(["RecentTopics"])
