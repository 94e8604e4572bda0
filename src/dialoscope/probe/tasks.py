"""The 18 probe tasks in one visible table: what each one asks, and the rule that answers it.

The paper (Parthasarathi et al. 2020, Table 1) names the tasks and says what they ask; its label rules were never
published. Ours are in docs/probe-tasks.md, a paragraph and an example for each. A label function gets a `Position` and
gives its labels; a task that needs to know the training split first (where buckets end, which words are of middling
frequency) has a `fit` instead, which returns such a function.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from dialoscope.errors import MissingExtraError, UsageError, unknown_name
from dialoscope.probe.examples import Examples, Position, domain_of

Family = Literal["semantic", "information", "downstream"]
Difficulty = Literal["easy", "medium", "hard"]
Labeller = Callable[[Position], Iterable[str]]

NONE = "none"  # the label of an empty set
BUCKETS = 5
WORDS = 500
# The paper takes words seen 1,000 to 3,000 times in PersonaChat, whose training split has 131,000 turns.
SEEN_LEAST, SEEN_MOST = 1000 / 131_000, 3000 / 131_000  # times a turn
WORD = re.compile(r"\w\w+")  # what scikit-learn's list of stop words is made for


@dataclass(frozen=True)
class Task:
    """A question about a position. Exactly one of `labels` and `fit` is given."""

    asks: str
    family: Family
    difficulty: Difficulty  # in the paper
    needs: tuple[str, ...]  # annotations, any one of which will do; none: any corpus carries it
    is_multi: bool  # a set of labels, or one
    labels: Labeller | None = None
    fit: Callable[[Examples], Labeller] | None = None

    def labeller(self, training: Examples) -> Labeller:
        """The rule, once the training split is known."""
        if self.labels is not None:
            return self.labels
        assert self.fit is not None
        return self.fit(training)


# --- Rules ------------------------------------------------------------------------------------------------------------


def location(training: Examples) -> Labeller:
    """In which fifth of the training split's positions the Query's number lies."""
    lengths = np.array([len(position.context) for position in training.positions])
    edges = np.quantile(lengths, np.arange(1, BUCKETS) / BUCKETS)
    return lambda position: [str(1 + int((edges < len(position.context)).sum()))]


def content(training: Examples) -> Labeller:
    """Which words of middling frequency are in the context."""
    wanted = middling_words(training)
    if not wanted:
        raise UsageError("the training split is too small to have words of middling frequency")

    @lru_cache(maxsize=1 << 16)
    def within(text: str) -> frozenset[str]:
        return wanted.intersection(words_of(text))

    return lambda position: {word for turn in position.context for word in within(str(turn))}


def middling_words(training: Examples) -> frozenset[str]:
    """The 500 most frequent words among those seen often enough and not too often for the split's size."""
    texts = [text.as_py() or "" for chunk in training.corpus.turn_column("text").chunks for text in chunk]
    counts = Counter(word for text in texts for word in words_of(text))
    least, most = max(2.0, SEEN_LEAST * len(texts)), SEEN_MOST * len(texts)
    chosen = sorted((-count, word) for word, count in counts.items() if least <= count <= most)
    return frozenset(word for _, word in chosen[:WORDS])


def words_of(text: str) -> list[str]:
    """Words of two characters and more, in small letters."""
    return WORD.findall(text.lower())


def recent_topics(position: Position) -> Iterable[str]:
    """Domains of what the Query gave; where it gave nothing, those of the last that did."""
    return position.topics


def all_topics(position: Position) -> Iterable[str]:
    """Domains of everything given so far."""
    return {info.domain for info in position.state}


def topic_count(position: Position) -> Iterable[str]:
    """How many domains the whole dialogue has."""
    return [str(len(position.goal))]


def is_multi_topic(position: Position) -> Iterable[str]:
    """Whether the whole dialogue has more than one."""
    return ["yes" if len(position.goal) > 1 else "no"]


def topic_count_so_far(position: Position) -> Iterable[str]:
    """How many domains were talked about by now."""
    return [str(len(set(all_topics(position))))]


def is_multi_topic_so_far(position: Position) -> Iterable[str]:
    """Whether more than one was talked about by now."""
    return ["yes" if len(set(all_topics(position))) > 1 else "no"]


def recent_slots(position: Position) -> Iterable[str]:
    """Slots that the Query gave."""
    return {info.name for info in position.recent}


def recent_values(position: Position) -> Iterable[str]:
    """Values that the Query gave."""
    return {info.value for info in position.recent}


def recent_count(position: Position) -> Iterable[str]:
    """How much the Query gave."""
    return [str(len(position.recent))]


def all_slots(position: Position) -> Iterable[str]:
    """Slots given so far."""
    return {info.name for info in position.state}


def all_values(position: Position) -> Iterable[str]:
    """Values given so far."""
    return {info.value for info in position.state}


def all_count(position: Position) -> Iterable[str]:
    """How much was given so far."""
    return [str(len(position.state))]


def repeated(position: Position) -> Iterable[str]:
    """Slot names, whatever the domain, that the Query gave and that had been given before."""
    return {info.slot for info in position.recent} & position.earlier


def repeated_count(position: Position) -> Iterable[str]:
    """How many they are."""
    return [str(len(set(repeated(position))))]


def actions(position: Position) -> Iterable[str]:
    """What the system does next: domains with acts."""
    return {f"{domain_of(act['domain'])}-{act['act']}" for act in position.acts}


def entity_slots(position: Position) -> Iterable[str]:
    """The slots of what it does next."""
    return {f"{domain_of(act['domain'])}-{act['slot']}" for act in position.acts if act["slot"]}


def entity_values(position: Position) -> Iterable[str]:
    """The values of what it does next."""
    return {str(value).strip().lower() for act in position.acts for value in act["values"]}


def personal_words(training: Examples) -> Labeller:
    """The persona's words without stop words."""
    try:
        from sklearn.feature_extraction import text
    except ImportError as error:
        raise MissingExtraError("The list of stop words", "hf") from error
    stop_words: frozenset[str] = text.ENGLISH_STOP_WORDS

    @lru_cache(maxsize=1 << 12)
    def words(persona: tuple[str, ...]) -> frozenset[str]:
        return frozenset(word for sentence in persona for word in words_of(sentence)) - stop_words

    return lambda position: words(position.persona)


# --- The table --------------------------------------------------------------------------------------------------------

STATE, ACTS, TOPICS, PERSONA = ("state",), ("acts",), ("goal", "state"), ("persona",)

# fmt: off
TASKS: Mapping[str, Task] = {
    "UtteranceLoc": Task("How long has the conversation been going on?", "semantic", "medium", (), False, fit=location),
    "WordCont": Task("Which middling words are in the context?", "semantic", "medium", (), True, fit=content),
    "RecentTopic": Task("What is the conversation about now?", "information", "hard", STATE, True, recent_topics),
    "AllTopics": Task("What was talked about so far?", "information", "medium", STATE, True, all_topics),
    "NumAllTopics": Task("How many topics has the whole dialogue?", "information", "easy", TOPICS, False, topic_count),
    "IsMultiTopic": Task("Has the dialogue several?", "information", "easy", TOPICS, False, is_multi_topic),
    "RecentSlots": Task("Which slots did the user just give?", "information", "medium", STATE, True, recent_slots),
    "RecentValues": Task("Which values did the user just give?", "information", "hard", STATE, True, recent_values),
    "NumRecentInfo": Task("How much did the user just give?", "information", "medium", STATE, False, recent_count),
    "AllSlots": Task("Which slots did the user give so far?", "information", "hard", STATE, True, all_slots),
    "AllValues": Task("Which values did the user give so far?", "information", "hard", STATE, True, all_values),
    "NumAllInfo": Task("How much did the user give so far?", "information", "hard", STATE, False, all_count),
    "RepeatInfo": Task("Which slots are given again?", "information", "easy", STATE, True, repeated),
    "NumRepeatInfo": Task("How many slots are given again?", "information", "easy", STATE, False, repeated_count),
    "ActionSelect": Task("What will the system do next?", "downstream", "hard", ACTS, True, actions),
    "EntitySlots": Task("Which slots will the system mention?", "downstream", "hard", ACTS, True, entity_slots),
    "EntityValues": Task("Which values will the system mention?", "downstream", "hard", ACTS, True, entity_values),
    "PersonalInfo": Task("Which persona does it show?", "information", "hard", PERSONA, True, fit=personal_words),
}
# fmt: on

SO_FAR: Mapping[str, Labeller] = {"NumAllTopics": topic_count_so_far, "IsMultiTopic": is_multi_topic_so_far}


def chosen_tasks(names: Sequence[str] = ("all",)) -> dict[str, Task]:
    """Tasks by name, by family, or all of them."""
    families = {task.family for task in TASKS.values()}
    chosen: dict[str, Task] = {}
    for name in names:
        if name not in TASKS and name not in families and name != "all":
            raise unknown_name("probe task", name, [*TASKS, *families, "all"])
        chosen |= {key: task for key, task in TASKS.items() if name in (key, task.family, "all")}
    return chosen


def why_not(task: Task, annotations: frozenset[str]) -> str | None:
    """Why a corpus cannot carry a task; None where it can."""
    if not task.needs or annotations.intersection(task.needs):
        return None
    return f"needs {' or '.join(task.needs)} annotation, which the corpus lacks"


def rule_of(task: Task, training: Examples, annotations: frozenset[str]) -> Labeller:
    """The rule of a task where there are these annotations; an error says why it cannot be asked."""
    reason = why_not(task, annotations)
    if reason is not None:
        raise UsageError(reason)
    return task.labeller(training)


def carried(tasks: Mapping[str, Task], examples: Examples) -> dict[str, int | str]:
    """How many labels each task has in a corpus, or why it cannot carry the task."""
    counts: dict[str, int | str] = {}
    for name, task in tasks.items():
        try:
            rule = rule_of(task, examples, examples.annotations)
            counts[name] = len({label for position in examples.positions for label in rule(position)})
        except (UsageError, MissingExtraError) as error:
            counts[name] = str(error)
    return counts


def describe(name: str, counts: Mapping[str, int | str]) -> dict[str, Any]:
    """A task as JSON has it, with the number of its labels in a corpus or the reason why it has none."""
    task = TASKS[name]
    shown: dict[str, Any] = {"name": name, "family": task.family, "is_multi": task.is_multi}
    shown |= {"difficulty": task.difficulty, "needs": list(task.needs), "asks": task.asks}
    if name in counts:
        is_carried = isinstance(counts[name], int)
        shown |= {"is_carried": is_carried, "labels" if is_carried else "reason": counts[name]}
    return shown
