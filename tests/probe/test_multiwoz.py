"""Labels of three MultiWOZ 2.1 dialogues, worked out by hand from the publisher's states and acts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dialoscope.corpus import load
from dialoscope.probe.examples import Examples, examples
from dialoscope.probe.tasks import TASKS

CARRIED = [name for name in TASKS if name not in ("WordCont", "PersonalInfo")]
INN = "express by holiday inn cambridge"
CAROLINA, JELLO = "carolina bed and breakfast", "cafe jello gallery"

# Dialogue -> task -> labels at each of the system's turns. An empty string is the empty set.
BY_HAND: dict[str, dict[str, list[str]]] = {
    # One domain; at the second turn the time of leaving is given again, with another value.
    "SNG01935": {
        "UtteranceLoc": ["1", "2", "3"],
        "RecentTopic": ["taxi", "taxi", "taxi"],
        "AllTopics": ["taxi", "taxi", "taxi"],
        "NumAllTopics": ["1", "1", "1"],
        "IsMultiTopic": ["no", "no", "no"],
        "RecentSlots": ["taxi-leaveAt|taxi-destination", "taxi-leaveAt|taxi-departure", ""],
        "RecentValues": [f"07:00|{CAROLINA}", f"07:15|{JELLO}", ""],
        "NumRecentInfo": ["2", "2", "0"],
        "AllSlots": ["taxi-leaveAt|taxi-destination"] + 2 * ["taxi-leaveAt|taxi-destination|taxi-departure"],
        "AllValues": [f"07:00|{CAROLINA}"] + 2 * [f"07:15|{CAROLINA}|{JELLO}"],
        "NumAllInfo": ["2", "3", "3"],
        "RepeatInfo": ["", "leaveAt", ""],
        "NumRepeatInfo": ["0", "1", "0"],
        "ActionSelect": ["taxi-request", "taxi-inform", "general-welcome"],
        "EntitySlots": ["taxi-depart", "taxi-car|taxi-phone|taxi-leave", ""],
        "EntityValues": ["", "yellow volvo|07456851233|7:15", ""],
    },
    # Two domains; at the third turn a name is given for the second time, now of an attraction.
    "PMUL2504": {
        "UtteranceLoc": ["1", "2", "3", "5"],
        "RecentTopic": ["hotel", "hotel", "attraction", "attraction"],
        "AllTopics": ["hotel", "hotel", "hotel|attraction", "hotel|attraction"],
        "NumAllTopics": ["2", "2", "2", "2"],
        "IsMultiTopic": ["yes", "yes", "yes", "yes"],
        "RecentSlots": [
            "hotel-name", "hotel-book people|hotel-book day|hotel-book stay", "attraction-type|attraction-name", "",
        ],
        "RecentValues": [INN, "5|friday|4", "college|queens college", ""],
        "NumRecentInfo": ["1", "3", "2", "0"],
        "AllSlots": [
            "hotel-name",
            "hotel-name|hotel-book people|hotel-book day|hotel-book stay",
            *2 * ["hotel-name|hotel-book people|hotel-book day|hotel-book stay|attraction-type|attraction-name"],
        ],
        "AllValues": [INN, f"{INN}|5|friday|4", *2 * [f"{INN}|5|friday|4|college|queens college"]],
        "NumAllInfo": ["1", "4", "6", "6"],
        "RepeatInfo": ["", "", "name", ""],
        "NumRepeatInfo": ["0", "0", "1", "0"],
        "ActionSelect": ["hotel-inform", "booking-book", "general-reqmore|attraction-inform", "general-bye"],
        "EntitySlots": [
            "hotel-area|hotel-price|hotel-type|hotel-stars",
            "booking-ref",
            "attraction-name|attraction-addr|attraction-phone|attraction-post|attraction-area|attraction-fee",
            "",
        ],
        "EntityValues": [
            "east|expensive|hotel|2",
            "xxpdu1jp",
            "queens ' college|silver street|01223335511|cb39et|west area|2.50",
            "",
        ],
    },
    # Two domains and five things told at once.
    "PMUL4075": {
        "UtteranceLoc": ["1", "2", "3", "5"],
        "RecentTopic": ["restaurant", "restaurant", "hotel", "hotel"],
        "AllTopics": ["restaurant", "restaurant", "restaurant|hotel", "restaurant|hotel"],
        "NumAllTopics": ["2", "2", "2", "2"],
        "IsMultiTopic": ["yes", "yes", "yes", "yes"],
        "RecentSlots": [
            "restaurant-food",
            "restaurant-pricerange|restaurant-area|restaurant-book people|restaurant-book day|restaurant-book time",
            "hotel-name",
            "",
        ],
        "RecentValues": ["chinese", "moderate|centre|4|wednesday|13:45", "home from home", ""],
        "NumRecentInfo": ["1", "5", "1", "0"],
        "AllSlots": [
            "restaurant-food",
            "restaurant-food|restaurant-pricerange|restaurant-area|restaurant-book people|restaurant-book day"
            "|restaurant-book time",
            *2
            * [
                "restaurant-food|restaurant-pricerange|restaurant-area|restaurant-book people|restaurant-book day"
                "|restaurant-book time|hotel-name"
            ],
        ],
        "AllValues": [
            "chinese",
            "chinese|moderate|centre|4|wednesday|13:45",
            *2 * ["chinese|moderate|centre|4|wednesday|13:45|home from home"],
        ],
        "NumAllInfo": ["1", "6", "7", "7"],
        "RepeatInfo": ["", "", "", ""],
        "NumRepeatInfo": ["0", "0", "0", "0"],
        "ActionSelect": [
            "restaurant-request|restaurant-inform",
            "booking-book",
            "booking-inform|hotel-inform",
            "general-bye|general-welcome",
        ],
        "EntitySlots": [
            "restaurant-area|restaurant-price|restaurant-food|restaurant-choice",
            "booking-time|booking-people|booking-day|booking-name|booking-ref",
            "hotel-addr|hotel-post|hotel-area|hotel-stars|hotel-parking|hotel-price|hotel-name|hotel-type"
            "|hotel-internet",
            "",
        ],
        "EntityValues": [
            "chinese|17",
            "13:45|4|wednesday|jinling noodle bar|uvpkoa8z",
            "78 - 80 milton road|cb41la|north|4|moderately - priced|home from home|guesthouse",
            "",
        ],
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def three(data: Path) -> Examples:
    validation = load(data / "multiwoz21").split("validation")
    chosen = [place for place, name in enumerate(validation.table["id"].to_pylist()) if name in BY_HAND]
    return examples(validation.select(chosen))


def test_sixteen_tasks_have_labels_by_hand() -> None:
    assert len(CARRIED) == 16
    assert all(list(by_hand) == CARRIED for by_hand in BY_HAND.values())


@pytest.mark.parametrize("task", CARRIED)
@pytest.mark.parametrize("name", list(BY_HAND))
def test_labels_are_those_worked_out_by_hand(name: str, task: str, three: Examples) -> None:
    rule = TASKS[task].labeller(three)
    found = [set(rule(one)) for one in three.positions if one.dialogue == name]
    assert found == [set(filter(None, labels.split("|"))) for labels in BY_HAND[name][task]]


def test_buckets_end_where_a_fifth_of_the_training_positions_lies(three: Examples) -> None:
    """Contexts of 1, 1, 1, 3, 3, 3, 5, 5, 5, 7 and 7 turns: the fifths end at 1, 3, 5 and 5."""
    rule = TASKS["UtteranceLoc"].labeller(three)
    position = three.positions[0]
    lengths = (1, 2, 3, 4, 5, 6, 99)
    assert [*(next(iter(rule(replace(position, context=("x",) * n)))) for n in lengths)] == list("1223355")


def test_every_turn_of_the_system_is_a_position(data: Path) -> None:
    found = examples(load(data / "multiwoz21"), split="validation")
    assert found.annotations == {"state", "acts", "goal"}
    assert len(found) == 7365  # the system's turns of 999 dialogues
    assert len(found.corpus) == 999
