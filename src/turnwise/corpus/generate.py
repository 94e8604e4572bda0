"""The built-in `concierge` corpus: annotated, task-oriented dialogues that need no download.

A guest with a persona and a few wishes talks to the concierge of an invented city. The two are small state machines:
what the guest may do next depends on what the concierge waits for (`HABITS`), what the concierge answers depends on
what the guest did (`MOVES`). Text and labels come from the same template, and the state is read off the guest's acts,
so labels cannot claim what nobody said. Some held-out dialogues are planted copies of training ones: every instrument
has something to find, and the truth is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple, TypeVar

import numpy as np

from turnwise.corpus import concierge as tables
from turnwise.corpus.concierge import DOMAINS, VALUES, Phrases
from turnwise.corpus.dialogue import Corpus, Dialogue, Turn
from turnwise.errors import UsageError

T = TypeVar("T")
Act = dict[str, Any]
Venue = dict[str, str]
City = dict[str, list[Venue]]  # by domain, the most popular venues first
State = dict[str, dict[str, list[str]]]

PLANTED_SHARE = 0.08  # of validation and of test
TOPICS = {1: 30, 2: 38, 3: 23, 4: 9}  # topics of a dialogue -> weight


def generate(*, dialogues: int = 5000, seed: int = 7) -> Corpus:
    """Write the concierge corpus: 80 % train, 10 % validation, 10 % test, with planted copies in the last two.

    The same seed gives the same corpus, to the letter. Planted dialogues say so in their labels:
    ``planted: {"of": id of a training dialogue, "kind": "exact" or "near"}``.

    >>> corpus = generate(dialogues=20, seed=7)
    >>> corpus.name, corpus.splits
    ('concierge', {'train': 16, 'validation': 2, 'test': 2})
    """
    if dialogues < 1:
        raise UsageError(f"Cannot generate {dialogues} dialogues: expected at least 1.")
    rng = np.random.default_rng(seed)
    city = build_city(rng)
    written = [
        converse(rng, city)._replace(id=f"concierge-{number:05}", split=split)
        for number, split in enumerate(_splits(dialogues), 1)
    ]
    return replace(Corpus.of(_plant(rng, written), name="concierge"), format="concierge")


def _splits(dialogues: int) -> list[str]:
    held_out = max(dialogues // 10, int(dialogues >= 3))
    return ["train"] * (dialogues - 2 * held_out) + ["validation"] * held_out + ["test"] * held_out


# --- Drawing and wording ----------------------------------------------------------------------------------------------


class Said(NamedTuple):
    """Words and what they do, before they become a turn."""

    text: str
    acts: list[Act]


def pick(rng: np.random.Generator, options: Sequence[T]) -> T:
    """One of them, all alike. (Several times faster than `rng.choice`, which makes an array first.)"""
    return options[int(rng.random() * len(options))]


def zipf(rng: np.random.Generator, options: Sequence[T]) -> T:
    """One of them, the k-th with a probability close to 1/k: values then are as uneven as words."""
    return options[int((len(options) + 1) ** rng.random()) - 1]


def weighted(rng: np.random.Generator, weights: Mapping[T, float]) -> T:
    """One of the keys, by weight."""
    left = rng.random() * sum(weights.values())
    for key, weight in weights.items():
        left -= weight
        if left < 0:
            break
    return key


@lru_cache(maxsize=None)
def variants(phrase: str) -> Phrases:
    """Every wording of a phrase: ``[Hi|Hello] there[!|]`` has four."""
    pieces = re.split(r"\[([^\]]*)\]", phrase)
    choices = [piece.split("|") if place % 2 else [piece] for place, piece in enumerate(pieces)]
    return tuple("".join(chosen) for chosen in product(*choices))


def word(rng: np.random.Generator, phrases: Phrases) -> str:
    """One wording of one of the phrases."""
    return pick(rng, variants(pick(rng, phrases)))


def compose(rng: np.random.Generator, pattern: str, draw: Callable[..., str] = pick) -> str:
    """Fill the ``<part>`` marks of a name."""
    return re.sub(r"<(\w+)>", lambda mark: draw(rng, tables.PARTS[mark[1]]), pattern)


def of_slot(table: Mapping[str, T], domain: str, slot: str) -> T | None:
    """A table's entry for a slot: that of the domain, else the general one."""
    return table.get(f"{domain}.{slot}", table.get(slot))


def fill(act: str, domain: str, template: str, values: Mapping[str, str | list[str]]) -> Said:
    """Put values into a template; each one that is mentioned becomes an act."""
    slots = dict.fromkeys(re.findall(r"{(\w+)}", template))
    given = {slot: [value] if isinstance(value := values[slot], str) else value for slot in slots}
    text = template.format_map({slot: " or ".join(options) for slot, options in given.items()})
    return Said(text, [_act(domain, act, slot, options) for slot, options in given.items()] or [_act(domain, act)])


def _act(domain: str, act: str, slot: str = "", values: Sequence[str] = ()) -> Act:
    return {"domain": domain, "act": act, "slot": slot, "values": list(values)}


def join(*parts: Said | str) -> Said:
    """Several things said in one turn."""
    said = [Said(part, []) if isinstance(part, str) else part for part in parts]
    return Said(" ".join(part.text for part in said), [act for part in said for act in part.acts])


def tidy(text: str) -> str:
    """Mend what joining leaves behind: blanks, commas, "a" before a vowel, small letters after a full stop."""
    text = re.sub(r"\s+(?=[\s,.?!]|$)", "", text.strip())
    text = re.sub(r",+(?=[,.?!])", "", text)
    text = re.sub(r"\b([Aa]) (?=[aeiouAEIOU])(?!eu|uni|one)", r"\1n ", text)
    return re.sub(r"(?:^|[.!?] )[a-z]", lambda start: start[0].upper(), text)


# --- The city and its guests ------------------------------------------------------------------------------------------


def build_city(rng: np.random.Generator) -> City:
    """Invent the venues of every domain; no two of them share a name."""
    taken: set[str] = set()
    return {name: [_venue(rng, name, taken) for _ in range(domain.venues)] for name, domain in DOMAINS.items()}


def _venue(rng: np.random.Generator, domain: str, taken: set[str]) -> Venue:
    kind = DOMAINS[domain]
    name = compose(rng, pick(rng, kind.names))
    if name in taken:
        return _venue(rng, domain, taken)
    taken.add(name)
    venue = {"name": name, **{slot: zipf(rng, VALUES[slot]) for slot in kind.search}}
    return venue | {detail: _detail(rng, detail, venue) for detail in kind.details}


def _detail(rng: np.random.Generator, detail: str, venue: Venue) -> str:
    if detail in tables.PER_KIND:
        slot, options = tables.PER_KIND[detail]
        return pick(rng, options[venue[slot]])
    return compose(rng, tables.COMPOSED[detail]) if detail in tables.COMPOSED else zipf(rng, VALUES[detail])


def find(venues: list[Venue], wanted: Mapping[str, str]) -> list[Venue]:
    """Venues that have all wanted values."""
    firm = [(slot, value) for slot, value in wanted.items() if value != "any"]
    return [venue for venue in venues if all(venue[slot] == value for slot, value in firm)]


class Guest(NamedTuple):
    """Who is asking: facts of a life, the values they lean to, and the share of slots they give unasked."""

    persona: list[str]
    facts: list[tuple[str, str]]  # kind -> what fills the fact's phrases; small talk uses each once
    tastes: dict[str, str]
    ease: float


def invite(rng: np.random.Generator) -> Guest:
    """Draw a guest: the company they are in and two to four other facts."""
    people = zipf(rng, VALUES["people"])
    others = rng.permutation([kind for kind in tables.FACTS if kind != "company"])[: 2 + int(3 * rng.random())]
    facts = [("company", pick(rng, tables.COMPANY[people]))]
    facts += [(str(kind), compose(rng, tables.FACTS[kind].pattern, zipf)) for kind in others]
    persona = [tidy(word(rng, tables.FACTS[kind].persona).replace("<x>", fact)) for kind, fact in facts]
    tastes = dict(facts) | {"people": people, "day": zipf(rng, VALUES["day"])}
    return Guest(persona, facts, tastes, ease=pick(rng, (0.25, 0.45, 0.6, 0.8)))


@dataclass
class Talk:
    """The working memory of one dialogue while it is being written."""

    rng: np.random.Generator
    city: City
    guest: Guest
    agenda: list[str]  # topics the guest has yet to raise
    domain: str = ""
    prompt: str = "hello"  # what the concierge's last turn waits for
    asked: list[str] = field(default_factory=list)  # slots that one side has just asked for
    options: list[str] = field(default_factory=list)  # values that the concierge has just put up for choice
    reply: str = ""  # the concierge's answer to small talk
    goal: dict[str, dict[str, str]] = field(default_factory=dict)
    state: State = field(default_factory=dict)
    venues: City = field(default_factory=dict)  # those put forward so far, the one agreed on last
    codes: dict[str, str] = field(default_factory=dict)  # of what is booked
    turns: list[Turn] = field(default_factory=list)

    @property
    def known(self) -> dict[str, str]:
        """What the guest has said about the current topic."""
        return {slot: values[0] for slot, values in self.state.get(self.domain, {}).items()}

    @property
    def venue(self) -> Venue:
        """The venue under discussion; a cab has none."""
        return (self.venues.get(self.domain) or [{}])[-1]


def converse(rng: np.random.Generator, city: City) -> Dialogue:
    """Write one dialogue: guest and concierge in turn, until they say goodbye."""
    topics = [str(name) for name in rng.permutation(list(DOMAINS))[: weighted(rng, TOPICS)]]
    talk = Talk(rng, city, invite(rng), topics)
    while talk.prompt != "bye":
        move, said = _guest_turn(talk)
        talk.turns.append(Turn("user", tidy(said.text), {"acts": said.acts}))
        _listen(talk.state, said.acts)
        reply = MOVES[move][1](talk)
        state = {domain: dict(slots) for domain, slots in talk.state.items()}
        talk.turns.append(Turn("system", tidy(reply.text), {"state": state, "acts": reply.acts}))
    return Dialogue(tuple(talk.turns), labels={"goal": talk.goal, "persona": {"user": talk.guest.persona}})


def _guest_turn(talk: Talk) -> tuple[str, Said]:
    """Draw a move that suits the concierge's prompt; where it is not possible, take the first that is."""
    habits = HABITS[talk.prompt]
    moves = (weighted(talk.rng, habits), *habits)
    return next((move, said) for move in moves if (said := MOVES[move][0](talk)) is not None)


def _listen(state: State, acts: list[Act]) -> None:
    """The state is what the guest's own acts say, nothing else."""
    for act in acts:
        if act["act"] in ("inform", "change"):
            state.setdefault(act["domain"], {})[act["slot"]] = act["values"]


# --- The guest's wishes -----------------------------------------------------------------------------------------------


def wishes(talk: Talk) -> dict[str, str]:
    """What the guest wants from the current topic: mostly a venue that exists, sometimes one that does not."""
    if talk.domain == "taxi":
        return _ride(talk)
    kind, venues = DOMAINS[talk.domain], talk.city[talk.domain]
    tastes = {slot: value for slot, value in talk.guest.tastes.items() if slot in kind.search and talk.rng.random() < 0.6}
    liked = zipf(talk.rng, find(venues, tastes) or venues)
    wish = {slot: liked[slot] for slot in kind.search}
    if talk.rng.random() < 0.3:
        slot = pick(talk.rng, kind.search)
        wish[slot] = zipf(talk.rng, VALUES[slot])
    talk.guest.tastes.setdefault("area", wish.get("area", tables.AREAS[0]))
    return wish | {slot: _usual(talk, slot) for slot in kind.book}


def _usual(talk: Talk, slot: str) -> str:
    """A guest's days and company stay mostly the same from topic to topic; nothing else happens at the same time twice."""
    if slot in talk.guest.tastes and talk.rng.random() < 0.7:
        return talk.guest.tastes[slot]
    used = {wish.get("time") for wish in talk.goal.values()} if slot == "time" else set()
    values = of_slot(VALUES, talk.domain, slot) or tables.PLACES
    return zipf(talk.rng, [value for value in values if value not in used])


def _ride(talk: Talk) -> dict[str, str]:
    """A cab mostly goes to a venue of this dialogue, in time for the booking, else to some other place."""
    wish = {slot: _usual(talk, slot) for slot in DOMAINS["taxi"].book}
    booked = [domain for domain in talk.codes if domain != "taxi"]
    if booked and talk.rng.random() < 0.7:
        domain = pick(talk.rng, booked)
        venue, given = talk.venues[domain][-1], talk.state[domain]
        wish |= {"destination": venue.get("hall") or venue.get("meeting") or venue["name"], "day": given["day"][0]}
        begin = venue.get("starts") or given.get("time", [""])[0]
        wish["time"] = tables.CLOCK[tables.CLOCK.index(begin) - 2] if begin else wish["time"]  # half an hour before
    while wish["departure"] == wish["destination"]:
        wish["departure"] = pick(talk.rng, tables.PLACES)
    return wish


# --- The guest's moves: each says something, or None where it has nothing to say --------------------------------------


def greet(talk: Talk) -> Said | None:
    """Say hello and no more."""
    return Said(word(talk.rng, tables.GREETINGS), [_act("general", "greet")])


def raise_topic(talk: Talk) -> Said | None:
    """Bring up the next topic with some of its slots, in one sentence and perhaps another."""
    if not talk.agenda:
        return None
    is_first = not talk.goal
    talk.domain = talk.agenda.pop()
    talk.goal[talk.domain] = wishes(talk)
    slots = [slot for slot in talk.goal[talk.domain] if talk.rng.random() < talk.guest.ease]
    frame = word(talk.rng, tables.OPENINGS if is_first else tables.NEXT_OPENINGS)
    parts = [frame.replace("<thing>", _thing(talk, slots[:4])), *(_tell(talk, slot) for slot in slots[4:])]
    if talk.rng.random() < 0.3:
        parts.insert(0, word(talk.rng, tables.REASONS[talk.domain]))
    return join(_opening_words(talk), _inform(talk, " ".join(parts)))


def _opening_words(talk: Talk) -> Said | str:
    if not talk.turns:
        return join(greet(talk) or "") if talk.rng.random() < 0.6 else ""
    if talk.prompt == "hello" or talk.rng.random() < 0.3:
        return ""
    return Said(word(talk.rng, tables.TOPIC_LEADS), [_act("general", "thank")])


def _thing(talk: Talk, slots: Sequence[str], *, is_guest: bool = True) -> str:
    """What is asked for: slots that fit stand before the noun, the others hang on behind."""
    head = word(talk.rng, tables.THINGS[talk.domain])
    behind = [slot for slot in slots if f"{{{slot}}}" not in head]
    head = re.sub(r"{(\w+)}", lambda mark: mark[0] if mark[1] in slots else "", head)
    return " ".join([head, *(_post(talk, slot, is_guest=is_guest) for slot in behind)])


def _post(talk: Talk, slot: str, *, is_guest: bool = True) -> str:
    phrases = of_slot(tables.POSTS, talk.domain, slot) or ()
    if not is_guest:
        return word(talk.rng, phrases[:2])  # the plain ones
    value = [talk.goal[talk.domain][slot]]
    again = any(given.get(slot) == value for domain, given in talk.state.items() if domain != talk.domain)
    own = of_slot(tables.AGAIN_POSTS if again else tables.OWN_POSTS, talk.domain, slot) or ()
    return word(talk.rng, own if again and own else phrases + own)


def _tell(talk: Talk, slot: str) -> str:
    return word(talk.rng, of_slot(tables.TELLS, talk.domain, slot) or ())


def _inform(talk: Talk, template: str) -> Said:
    return fill("inform", talk.domain, template, talk.goal[talk.domain])
