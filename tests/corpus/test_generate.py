"""The concierge corpus: what its labels claim, its text says; every probe task and every planted copy can be found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from dialoscope.corpus.concierge.wording import tidy, variants, zipf
from dialoscope.corpus.dialogue import Corpus, Dialogue
from dialoscope.corpus.generate import generate
from dialoscope.errors import UsageError

State = dict[str, dict[str, list[str]]]
SHARED_SLOTS = {"day", "time", "people", "area", "price"}
STOP_WORDS = {"i", "a", "an", "the", "is", "am", "are", "my", "to", "in", "of", "for", "and", "our", "with", "who"}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return generate(dialogues=1000, seed=3)


@pytest.fixture(scope="module")
def dialogues(corpus: Corpus) -> list[Dialogue]:
    return list(corpus)


class Position(NamedTuple):
    """What the probe tasks know about one system turn: s_t, s_{t-1}, the turns around it, and the whole dialogue."""

    state: State
    before: State
    turn: int
    user: str
    system: str
    acts: list[dict[str, Any]]
    dialogue: Dialogue


@pytest.fixture(scope="module")
def positions(dialogues: list[Dialogue]) -> list[Position]:
    return [position for dialogue in dialogues for position in positions_of(dialogue)]


def positions_of(dialogue: Dialogue) -> Iterator[Position]:
    before: State = {}
    for place in range(1, len(dialogue.turns), 2):
        user, system = dialogue.turns[place - 1 : place + 1]
        yield Position(system.labels["state"], before, place, user.text, system.text, system.labels["acts"], dialogue)
        before = system.labels["state"]


def given(state: State) -> set[tuple[str, str, str]]:
    return {(domain, slot, value) for domain in state for slot in state[domain] for value in state[domain][slot]}


def new(position: Position) -> set[tuple[str, str, str]]:
    return given(position.state) - given(position.before)


def repeated(position: Position) -> set[str]:
    earlier = {slot for _, slot, _ in given(position.before)}
    return {slot for _, slot, _ in new(position)} & earlier


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def says(text: str, value: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE) is not None


def bag(dialogue: Dialogue) -> set[str]:
    return words(" ".join(dialogue.texts))


def ratio(left: set[str], right: set[str]) -> float:
    return 2 * len(left & right) / (len(left) + len(right))


# --- The corpus as a whole --------------------------------------------------------------------------------------------


def test_same_seed_gives_the_same_corpus() -> None:
    assert generate(dialogues=60, seed=5).fingerprint == generate(dialogues=60, seed=5).fingerprint


def test_another_seed_gives_another_corpus() -> None:
    assert generate(dialogues=60, seed=5).fingerprint != generate(dialogues=60, seed=6).fingerprint


def test_corpus_is_named_after_its_format(corpus: Corpus) -> None:
    assert (corpus.name, corpus.format) == ("concierge", "concierge")


@pytest.mark.parametrize(
    ("count", "splits"),
    [
        (1, {"train": 1}),
        (2, {"train": 2}),
        (3, {"train": 1, "validation": 1, "test": 1}),
        (10, {"train": 8, "validation": 1, "test": 1}),
        (205, {"train": 165, "validation": 20, "test": 20}),
    ],
)
def test_eighty_ten_ten_as_far_as_the_count_allows(count: int, splits: dict[str, int]) -> None:
    assert generate(dialogues=count).splits == splits


@pytest.mark.parametrize("count", [0, -3])
def test_less_than_one_dialogue_is_an_error_in_one_line(count: int) -> None:
    with pytest.raises(UsageError) as error:
        generate(dialogues=count)
    assert str(error.value) == f"Cannot generate {count} dialogues: expected at least 1."


def test_ids_are_unique(dialogues: list[Dialogue]) -> None:
    assert len({dialogue.id for dialogue in dialogues}) == len(dialogues)


def test_user_speaks_first_and_system_last_in_strict_turns(dialogues: list[Dialogue]) -> None:
    for dialogue in dialogues:
        speakers = [turn.speaker for turn in dialogue.turns]
        assert speakers == ["user", "system"] * (len(speakers) // 2), dialogue.id


def test_lengths_spread_from_a_few_turns_to_more_than_twenty(corpus: Corpus) -> None:
    turns = corpus.turns_per_dialogue
    assert turns.min() == 4
    assert turns.max() > 30
    assert np.quantile(turns, 0.75) >= 1.5 * np.quantile(turns, 0.25)
    assert 10 <= turns.mean() <= 20


def test_vocabulary_has_more_than_1500_words(dialogues: list[Dialogue]) -> None:
    assert len(set().union(*map(bag, dialogues))) > 1500


def test_values_are_uneven_as_words_are(dialogues: list[Dialogue]) -> None:
    days = Counter(slots["day"] for dialogue in dialogues for slots in dialogue.labels["goal"].values())
    ((_, most), *_, (_, least)) = days.most_common()
    assert len(days) == 7
    assert most > 3 * least


# --- Topics, slots and personas ---------------------------------------------------------------------------------------


def test_guests_have_one_to_four_topics_out_of_eight(dialogues: list[Dialogue]) -> None:
    goals = [dialogue.labels["goal"] for dialogue in dialogues]
    assert len({domain for goal in goals for domain in goal}) == 8
    assert {len(goal) for goal in goals} == {1, 2, 3, 4}


def test_every_domain_has_four_to_six_slots_some_of_them_shared(dialogues: list[Dialogue]) -> None:
    slots = {domain: set(wish) for dialogue in dialogues for domain, wish in dialogue.labels["goal"].items()}
    uses = Counter(slot for names in slots.values() for slot in names)
    assert all(4 <= len(names) <= 6 for names in slots.values())
    assert {slot for slot, count in uses.items() if count > 1} == SHARED_SLOTS


def test_goal_and_final_state_speak_of_the_same_domains(dialogues: list[Dialogue]) -> None:
    for dialogue in dialogues:
        assert set(dialogue.turns[-1].labels["state"]) == set(dialogue.labels["goal"]), dialogue.id


def test_persona_has_three_to_five_sentences(dialogues: list[Dialogue]) -> None:
    personas = [dialogue.labels["persona"]["user"] for dialogue in dialogues]
    assert {len(persona) for persona in personas} == {3, 4, 5}
    assert all(re.fullmatch(r"[A-Z].*\.", sentence) for persona in personas for sentence in persona)


def test_small_talk_reflects_the_persona_more_often_than_not(dialogues: list[Dialogue]) -> None:
    shared = [
        bool((words(turn.text) & words(" ".join(dialogue.labels["persona"]["user"]))) - STOP_WORDS)
        for dialogue in dialogues
        for turn in dialogue.turns
        if turn.speaker == "user" and "chat" in {act["act"] for act in turn.labels["acts"]}
    ]
    assert len(shared) > 200
    assert np.mean(shared) > 0.5


# --- The text says what the labels claim ------------------------------------------------------------------------------


def test_every_newly_given_value_is_said_in_the_turn_that_gives_it(positions: list[Position]) -> None:
    for position in positions:
        for _, slot, value in new(position):
            assert says(position.user, value), (position.dialogue.id, slot, value, position.user)


@pytest.mark.parametrize("speaker", ["user", "system"])
def test_every_value_of_an_act_is_said_in_its_turn(dialogues: list[Dialogue], speaker: str) -> None:
    for dialogue in dialogues:
        for turn in dialogue.turns:
            if turn.speaker == speaker:
                said = [value for act in turn.labels["acts"] for value in act["values"]]
                assert all(says(turn.text, value) for value in said), (dialogue.id, said, turn.text)


def test_state_is_cumulative_and_stands_on_system_turns_only(positions: list[Position]) -> None:
    for position in positions:
        for domain, slots in position.before.items():
            assert slots.keys() <= position.state[domain].keys(), position.dialogue.id
    assert not any("state" in turn.labels for position in positions for turn in position.dialogue.turns[::2])


def test_state_changes_only_by_what_the_user_tells(positions: list[Position]) -> None:
    for position in positions:
        acts = position.dialogue.turns[position.turn - 1].labels["acts"]
        told = {(act["domain"], act["slot"], value) for act in acts for value in act["values"]}
        assert new(position) <= told, position.dialogue.id


def test_acts_have_the_shared_form(dialogues: list[Dialogue]) -> None:
    acts = [act for dialogue in dialogues for turn in dialogue.turns for act in turn.labels["acts"]]
    assert {tuple(act) for act in acts} == {("domain", "act", "slot", "values")}
    assert all(act["domain"] and act["act"] for act in acts)
    assert all(act["slot"] for act in acts if act["values"])


def test_system_has_every_kind_of_act(positions: list[Position]) -> None:
    assert {act["act"] for position in positions for act in position.acts} == {
        *("welcome", "request", "recommend", "inform", "select", "nomatch", "offer", "offerbook", "confirm", "book"),
        *("release", "chat", "reqmore", "bye"),
    }


def test_recommended_venue_has_what_the_user_asked_for(positions: list[Position]) -> None:
    checked = 0
    for position in positions:
        for act in position.acts:
            wanted = position.state.get(act["domain"], {}).get(act["slot"], ["any"])
            if act["act"] == "recommend" and wanted != ["any"]:
                assert act["values"] == wanted, position.dialogue.id
                checked += 1
    assert checked > 1000


def test_a_venue_keeps_its_street_throughout_the_corpus(positions: list[Position]) -> None:
    streets: dict[str, set[str]] = {}
    for position in positions:
        said = {act["slot"]: act["values"][0] for act in position.acts if act["act"] == "recommend"}
        if "street" in said:
            streets.setdefault(said["name"], set()).add(said["street"])
    assert len(streets) > 100
    assert all(len(found) == 1 for found in streets.values())


def test_first_booking_of_a_topic_comes_with_its_reference(dialogues: list[Dialogue]) -> None:
    for dialogue in dialogues:
        booked: set[str] = set()
        for turn in dialogue.turns[1::2]:
            slots = {(act["domain"], act["slot"]) for act in turn.labels["acts"] if act["act"] == "book"}
            for domain in {domain for domain, _ in slots} - booked:
                assert (domain, "code") in slots, dialogue.id
                booked.add(domain)


# --- What users do ----------------------------------------------------------------------------------------------------


def test_turns_that_give_nothing_new_exist_and_are_the_smaller_part(positions: list[Position]) -> None:
    assert 0.15 < np.mean([not new(position) for position in positions]) < 0.5


def test_slot_names_are_repeated_in_more_than_a_twentieth_of_positions(positions: list[Position]) -> None:
    assert np.mean([bool(repeated(position)) for position in positions]) > 0.05


def test_users_change_values_they_gave(positions: list[Position]) -> None:
    changed = [
        any(slot in position.before.get(domain, {}) for domain, slot, _ in new(position)) for position in positions
    ]
    assert np.mean(changed) > 0.03


def test_users_restate_a_value_of_another_topic(positions: list[Position]) -> None:
    restated = [
        any((slot, value) in {pair[1:] for pair in given(position.before)} for _, slot, value in new(position))
        for position in positions
    ]
    assert np.mean(restated) > 0.03


def test_users_come_back_to_earlier_topics(dialogues: list[Dialogue]) -> None:
    returns = 0
    for dialogue in dialogues:
        topics = [domain for position in positions_of(dialogue) for domain, _, _ in list(new(position))[:1]]
        runs = [topic for place, topic in enumerate(topics) if place == 0 or topics[place - 1] != topic]
        returns += len(runs) > len(set(runs))
    assert returns > 0.03 * len(dialogues)


# --- The 18 probe tasks, straight from the labels ---------------------------------------------------------------------

Label = tuple[str, ...]
Task = Callable[[Position], object]


def last_topic(position: Position) -> Label:
    topics: set[str] = set()
    for earlier in positions_of(position.dialogue):
        if earlier.turn <= position.turn:
            topics = {domain for domain, _, _ in new(earlier)} or topics
    return tuple(sorted(topics))


def labels_of(items: object) -> Label:
    return tuple(sorted(set(items))) if isinstance(items, set) else (str(items),)


TASKS: dict[str, Task] = {
    "UtteranceLoc": lambda at: min(at.turn // 6, 4),
    "RecentTopic": last_topic,
    "AllTopics": lambda at: set(at.state),
    "NumAllTopics": lambda at: len(at.dialogue.labels["goal"]),
    "IsMultiTopic": lambda at: len(at.dialogue.labels["goal"]) > 1,
    "RecentSlots": lambda at: {slot for _, slot, _ in new(at)},
    "RecentValues": lambda at: {value for _, _, value in new(at)},
    "NumRecentInfo": lambda at: len(new(at)),
    "AllSlots": lambda at: {slot for _, slot, _ in given(at.state)},
    "AllValues": lambda at: {value for _, _, value in given(at.state)},
    "NumAllInfo": lambda at: len(given(at.state)),
    "RepeatInfo": repeated,
    "NumRepeatInfo": lambda at: len(repeated(at)),
    "ActionSelect": lambda at: {f"{act['domain']}-{act['act']}" for act in at.acts},
    "EntitySlots": lambda at: {act["slot"] for act in at.acts if act["slot"]},
    "EntityValues": lambda at: {value for act in at.acts for value in act["values"]},
    "PersonalInfo": lambda at: words(" ".join(at.dialogue.labels["persona"]["user"])) - STOP_WORDS,
}


@pytest.mark.parametrize("name", TASKS)
def test_probe_task_has_labels_that_tell_positions_apart(name: str, positions: list[Position]) -> None:
    labels = Counter(labels_of(TASKS[name](position)) for position in positions[:4000])
    assert len(labels) >= 2
    assert labels.most_common(1)[0][1] < 0.85 * 4000


def test_word_content_has_mid_frequency_words_that_tell_contexts_apart(dialogues: list[Dialogue]) -> None:
    turns = [turn.text.lower() for dialogue in dialogues for turn in dialogue.turns]
    counts = Counter(word for text in turns for word in re.findall(r"\w+", text))
    scale = len(turns) / 131_000  # the paper's range is 1000 to 3000 uses in 131k turns
    middle = {word for word, count in counts.items() if 1000 * scale <= count <= 3000 * scale}
    assert len(middle) > 100
    held = [len(middle & words(" ".join(dialogue.texts[:3]))) for dialogue in dialogues]
    assert len(set(held)) > 5


# --- Planted copies ---------------------------------------------------------------------------------------------------


def test_about_eight_percent_of_held_out_dialogues_are_planted(dialogues: list[Dialogue]) -> None:
    planted = Counter(dialogue.split for dialogue in dialogues if "planted" in dialogue.labels)
    assert planted == {"validation": 8, "test": 8}  # 8 % of 100 each


def test_planted_dialogues_name_a_training_dialogue_each_its_own(dialogues: list[Dialogue]) -> None:
    train = {dialogue.id for dialogue in dialogues if dialogue.split == "train"}
    origins = [dialogue.labels["planted"]["of"] for dialogue in dialogues if "planted" in dialogue.labels]
    assert set(origins) <= train
    assert len(set(origins)) == len(origins)


def pairs(dialogues: list[Dialogue], kind: str) -> list[tuple[Dialogue, Dialogue]]:
    by_id = {dialogue.id: dialogue for dialogue in dialogues}
    planted = [dialogue for dialogue in dialogues if dialogue.labels.get("planted", {}).get("kind") == kind]
    assert planted
    return [(by_id[dialogue.labels["planted"]["of"]], dialogue) for dialogue in planted]


def test_exact_copies_have_the_same_turns(dialogues: list[Dialogue]) -> None:
    assert all(original.turns == copy.turns for original, copy in pairs(dialogues, "exact"))


def test_near_copies_differ_by_a_few_words(dialogues: list[Dialogue]) -> None:
    for original, copy in pairs(dialogues, "near"):
        assert 0.9 < ratio(bag(original), bag(copy)) < 1


@pytest.mark.parametrize("kind", ["exact", "near"])
def test_copies_keep_the_labels_of_the_original(dialogues: list[Dialogue], kind: str) -> None:
    for original, copy in pairs(dialogues, kind):
        kept = {key: value for key, value in copy.labels.items() if key != "planted"}
        assert kept == original.labels
        assert [turn.labels for turn in copy.turns] == [turn.labels for turn in original.turns]


def test_dialogues_that_are_not_planted_stay_far_from_training_ones(dialogues: list[Dialogue]) -> None:
    train = [bag(dialogue) for dialogue in dialogues if dialogue.split == "train"]
    others = [bag(dialogue) for dialogue in dialogues if dialogue.split == "test" and "planted" not in dialogue.labels]
    closest = [max(ratio(one, other) for other in train) for one in others[:60]]
    assert max(closest) < 0.8
    assert np.quantile(closest, 0.9) < 0.7


# --- Wording ----------------------------------------------------------------------------------------------------------


def texts(dialogues: list[Dialogue]) -> list[str]:
    return [text for dialogue in dialogues if "planted" not in dialogue.labels for text in dialogue.texts]


@pytest.mark.parametrize(
    ("fault", "pattern"),
    [
        ("a mark of a template is left", r"[\[\]{}<>|]"),
        ("blanks are doubled or stand before punctuation", r"\s\s|\s[,.?!:]|^\s|\s$"),
        ("punctuation is doubled", r"[,.?!:]{2}"),
        ("'a' stands before a vowel", r"\b[Aa] [aeioAEIO]"),
        ("'an' stands before a consonant", r"\b[Aa]n (?!hour)[^aeiouAEIOU]"),
        ("a word is doubled", r"(?i)\b(\w+) \1\b"),
        ("an article is doubled", r"(?i)\b(a|an|the|its|their) (a|an|the)\b"),
        ("a sentence starts small", r"^[a-z]|[.?!] [a-z]"),
        ("a turn does not end a sentence", r"[^.?!]$"),
    ],
)
def test_text_has_no_such_fault(dialogues: list[Dialogue], fault: str, pattern: str) -> None:
    faulty = [text for text in texts(dialogues) if re.search(pattern, text)]
    assert not faulty, (fault, faulty[:3])


def test_variants_are_all_wordings_of_a_phrase() -> None:
    assert variants("[Hi|Hello] there[!|]") == ("Hi there!", "Hi there", "Hello there!", "Hello there")


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("  we need a  art museum , please .", "We need an art museum, please."),
        ("on Friday, too,. and a one-way ticket", "On Friday, too. And a one-way ticket"),
        ("A old mill? a university!", "An old mill? A university!"),
    ],
)
def test_tidy_mends_what_joining_leaves_behind(raw: str, clean: str) -> None:
    assert tidy(raw) == clean


def test_zipf_draws_the_first_most_and_every_one_sometimes() -> None:
    rng = np.random.default_rng(0)
    drawn = Counter(zipf(rng, "abcd") for _ in range(4000))
    # P(k) = log(1 + 1/k) / log(5): 0.43, 0.25, 0.18, 0.14
    assert [drawn[letter] / 4000 for letter in "abcd"] == pytest.approx([0.43, 0.25, 0.18, 0.14], abs=0.03)
