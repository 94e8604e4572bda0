"""Turns that people have rated: FED, DailyDialog-Human, or a table of your own."""

from dialoscope.engage.human_sets.items import dialogues_of
from dialoscope.engage.human_sets.keys import item_key, keys_of, normalised, pair_key, selection_keys
from dialoscope.engage.human_sets.rated import Halves, HumanSet, Numbers, halves, some_of
from dialoscope.engage.human_sets.reading import read_human
from dialoscope.engage.human_sets.tables import MOST_NAMED

__all__ = [
    "MOST_NAMED",
    "Halves",
    "HumanSet",
    "Numbers",
    "dialogues_of",
    "halves",
    "item_key",
    "keys_of",
    "normalised",
    "pair_key",
    "read_human",
    "selection_keys",
    "some_of",
]
