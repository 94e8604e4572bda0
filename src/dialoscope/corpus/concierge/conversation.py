"""A guest and the concierge talk: two small state machines, `tables.HABITS` for the one and `MOVES` for the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from dialoscope.corpus.concierge import tables
from dialoscope.corpus.concierge.city import City, find
from dialoscope.corpus.concierge.tables import DOMAINS, VALUES, Phrases
from dialoscope.corpus.concierge.wording import (
    Act,
    Said,
    act_of,
    compose,
    fill,
    join,
    of_slot,
    pick,
    tidy,
    word,
    zipf,
)
from dialoscope.corpus.dialogue import Dialogue, Turn


@dataclass
class Talk:
    """The working memory of one dialogue while it is being written."""

    rng: np.random.Generator
    city: City
    facts: list[tuple[str, str]]  # of the guest's life: kind, and what fills its phrases; small talk uses each once
    tastes: dict[str, str]  # values the guest leans to
    ease: float  # share of slots the guest gives unasked
    agenda: list[str]  # topics the guest has yet to raise
    domain: str = ""  # the topic at hand
    prompt: str = "hello"  # what the concierge's last turn waits for
    asked: list[str] = field(default_factory=list)  # slots that one side has just asked for
    options: list[str] = field(default_factory=list)  # values that the concierge has just put up for choice
    reply: str = ""  # the concierge's answer to the small talk just heard
    goal: dict[str, dict[str, str]] = field(default_factory=dict)
    state: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    venues: City = field(default_factory=dict)  # those put forward so far, the one agreed on last
    codes: dict[str, str] = field(default_factory=dict)  # references of what is booked
    turns: list[Turn] = field(default_factory=list)

    @property
    def known(self) -> dict[str, str]:
        """What the guest has said about the topic at hand."""
        return {slot: values[0] for slot, values in self.state.get(self.domain, {}).items()}

    @property
    def values(self) -> dict[str, str]:
        """What can be said about it: the guest's slots, overruled by the venue's own values."""
        return self.known | (self.venues.get(self.domain) or [{}])[-1]

    def word(self, phrases: Phrases) -> str:
        """One wording of one of the phrases."""
        return word(self.rng, phrases)

    def chance(self, share: float) -> bool:
        """True in this share of cases."""
        return bool(self.rng.random() < share)


def invite(rng: np.random.Generator, city: City) -> Talk:
    """Draw a guest: the company they are in, two to four other facts, and what they came for."""
    people = zipf(rng, VALUES["people"])
    others = rng.permutation([kind for kind in tables.FACTS if kind != "company"])[: pick(rng, (2, 3, 4))].tolist()
    facts = [("company", pick(rng, tables.COMPANY[people]))]
    facts += [(kind, compose(rng, tables.FACTS[kind].pattern, zipf)) for kind in others]
    tastes = dict(facts) | {"people": people, "day": zipf(rng, VALUES["day"]), "area": zipf(rng, VALUES["area"])}
    agenda = rng.permutation(list(DOMAINS))[: pick(rng, tables.TOPICS)].tolist()
    return Talk(rng, city, facts, tastes, pick(rng, tables.EASE), agenda)


def converse(rng: np.random.Generator, city: City) -> Dialogue:
    """Write one dialogue: guest and concierge in turn, until they say goodbye."""
    talk = invite(rng, city)
    persona = [tidy(talk.word(tables.FACTS[kind].persona).replace("<x>", fact)) for kind, fact in talk.facts]
    while talk.prompt != "bye":
        move, said = _guest_turn(talk)
        talk.turns.append(Turn("user", tidy(said.text), {"acts": said.acts}))
        _listen(talk, said.acts)
        reply = MOVES[move][1](talk)
        state = {domain: dict(slots) for domain, slots in talk.state.items()}
        talk.turns.append(Turn("system", tidy(reply.text), {"state": state, "acts": reply.acts}))
    return Dialogue(tuple(talk.turns), labels={"goal": talk.goal, "persona": {"user": persona}})


def _guest_turn(talk: Talk) -> tuple[str, Said]:
    """Draw a move that suits the concierge's prompt; where it is not possible, take the first that is."""
    habits = tables.HABITS[talk.prompt]
    mark = talk.rng.random() * sum(habits.values())
    drawn = next(move for move, reach in zip(habits, accumulate(habits.values()), strict=True) if mark < reach)
    return next((move, said) for move in (drawn, *habits) if (said := MOVES[move][0](talk)) is not None)


def _listen(talk: Talk, acts: list[Act]) -> None:
    """The state is what the guest's own acts say, nothing else."""
    for act in acts:
        if act["act"] in ("inform", "change") and act["slot"]:
            talk.state.setdefault(act["domain"], {})[act["slot"]] = act["values"]


# --- The guest's wishes -----------------------------------------------------------------------------------------------


def wishes(talk: Talk) -> dict[str, str]:
    """What the guest wants from the topic at hand: mostly a venue that exists, sometimes one that does not."""
    kind, venues = DOMAINS[talk.domain], talk.city[talk.domain]
    wish = {slot: _usual(talk, slot) for slot in kind.book}
    if talk.domain == "taxi":
        return wish | _ride(talk, wish)
    tastes = {slot: value for slot, value in talk.tastes.items() if slot in kind.search and talk.chance(0.6)}
    liked = zipf(talk.rng, find(venues, tastes) or venues)
    odd = {slot: zipf(talk.rng, VALUES[slot]) for slot in [pick(talk.rng, kind.search)] if talk.chance(0.3)}
    return {slot: liked[slot] for slot in kind.search} | odd | wish


def _usual(talk: Talk, slot: str) -> str:
    """Day and company stay mostly the same from topic to topic; no two topics get the same time."""
    if talk.chance({"people": 0.85, "day": 0.65}.get(slot, 0)):
        return talk.tastes[slot]
    used = [wish.get(slot) for wish in talk.goal.values() if slot == "time"]
    return zipf(talk.rng, [value for value in of_slot(VALUES, talk.domain, slot) if value not in used])


def _ride(talk: Talk, wish: dict[str, str]) -> dict[str, str]:
    """A cab mostly goes to a venue of this dialogue, half an hour before things begin there."""
    booked = [domain for domain in talk.codes if domain != "taxi"]
    if not booked or talk.chance(0.3):
        return {"departure": pick(talk.rng, [place for place in tables.PLACES if place != wish["destination"]])}
    domain = pick(talk.rng, booked)
    venue, given = talk.venues[domain][-1], talk.state[domain]
    ride = {"destination": venue.get("hall") or venue.get("meeting") or venue["name"], "day": given["day"][0]}
    begin = venue.get("starts") or given.get("time", [""])[0]
    return ride | ({"time": tables.CLOCK[tables.CLOCK.index(begin) - 2]} if begin else {})


# --- The guest's moves: each says something, or None where there is nothing to say ------------------------------------


def line(domain: str, act: str, phrases: Phrases, *, prompt: str = "") -> Callable[[Talk], Said]:
    """A remark that carries no value; without a domain it belongs to the topic at hand."""

    def say(talk: Talk) -> Said:
        talk.prompt = prompt or talk.prompt
        return Said(talk.word(phrases), [act_of(domain or talk.domain, act)])

    return say


def raise_topic(talk: Talk) -> Said | None:
    """Bring up the next topic with some of its slots."""
    if not talk.agenda:
        return None
    openings = tables.NEXT_OPENINGS if talk.goal else tables.OPENINGS
    talk.domain = talk.agenda.pop()
    wish = talk.goal[talk.domain] = wishes(talk)
    slots = [slot for slot in wish if talk.chance(talk.ease)]
    reason = talk.word(tables.REASONS[talk.domain]) if talk.chance(0.3) else ""
    request = talk.word(openings).replace("<thing>", _thing(talk, slots[:4]))
    return join(_before_topic(talk), _inform(talk, f"{reason} {request} {_sentences(talk, slots[4:])}"))


def _before_topic(talk: Talk) -> Said:
    """A greeting at the start, thanks for what was done later on; at times neither."""
    if (talk.turns and talk.prompt != "more") or talk.chance(0.35):
        return Said("", [])
    return line("general", *(("thank", tables.THANKS) if talk.turns else ("greet", tables.GREETINGS)))(talk)


def _thing(talk: Talk, slots: Sequence[str], *, is_guest: bool = True) -> str:
    """What is asked for: slots that fit stand before the noun, the others hang on behind."""
    head = talk.word(tables.THINGS[talk.domain])
    behind = [slot for slot in slots if f"{{{slot}}}" not in head]
    head = re.sub(r"{(\w+)}", lambda mark: mark[0] if mark[1] in slots else "", head)
    return " ".join([head, *(_post(talk, slot, is_guest=is_guest) for slot in behind)])


def _post(talk: Talk, slot: str, *, is_guest: bool = True) -> str:
    """Attach a slot to a sentence; the guest has more ways to, and may point out a value said before."""
    plain = of_slot(tables.POSTS, talk.domain, slot)
    if not is_guest:
        return talk.word(plain[:2])
    value = [talk.goal[talk.domain][slot]]
    is_again = any(given.get(slot) == value for domain, given in talk.state.items() if domain != talk.domain)
    again = of_slot(tables.AGAIN_POSTS, talk.domain, slot) if is_again else ()
    return talk.word(again or plain + of_slot(tables.OWN_POSTS, talk.domain, slot))


def _sentences(talk: Talk, slots: Sequence[str]) -> str:
    return " ".join(talk.word(of_slot(tables.TELLS, talk.domain, slot)) for slot in slots)


def _inform(talk: Talk, template: str) -> Said:
    return fill("inform", talk.domain, template, talk.goal[talk.domain])


def answer(talk: Talk) -> Said | None:
    """Give what was asked for, at times something more, or say that it does not matter."""
    asked = talk.asked[0]
    if asked in tables.ANYTHING and talk.chance(0.1):
        template = talk.word(tables.NO_MATTER).replace("<slot>", asked).replace("<word>", tables.ANYTHING[asked])
        return fill("inform", talk.domain, template, {asked: "any"})
    group = next(slots for slots in DOMAINS[talk.domain][:2] if asked in slots)
    unsaid = [slot for slot in group if slot not in talk.known and slot not in talk.asked]
    return join(talk.word(tables.ANSWER_LEADS), _give(talk, talk.asked + (unsaid[:1] if talk.chance(0.25) else [])))


def _give(talk: Talk, slots: Sequence[str]) -> Said:
    """State slots in one breath ("On Friday at 19:30, please.") or in a sentence each."""
    if all(of_slot(tables.POSTS, talk.domain, slot) for slot in slots) and talk.chance(0.4):
        return _inform(talk, " ".join(_post(talk, slot) for slot in slots) + pick(talk.rng, (".", ", please.")))
    return _inform(talk, _sentences(talk, slots))


def accept(talk: Talk) -> Said | None:
    """Take the venue and say some of what the booking needs."""
    slots = [slot for slot in DOMAINS[talk.domain].book if slot not in talk.known and talk.chance(talk.ease)]
    wording = f"{talk.word(tables.PLEASED)} {talk.word(tables.ACCEPTS[talk.domain]) if talk.chance(0.6) else ''}"
    pleased = Said(wording, [act_of(talk.domain, "affirm")])
    return join(pleased, _give(talk, slots)) if slots else pleased


def ask_detail(talk: Talk) -> Said | None:
    """Ask something about the venue that has not been said."""
    told = {act["slot"] for turn in talk.turns for act in turn.labels["acts"] if act["domain"] == talk.domain}
    details = [detail for detail in DOMAINS[talk.domain].details if detail not in told]
    if not details:
        return None
    talk.asked = [pick(talk.rng, details)]
    question = f"{talk.word(tables.QUESTION_LEADS)} {talk.word(tables.QUESTIONS[talk.asked[0]])}"
    return Said(question, [act_of(talk.domain, "request", talk.asked[0])])


def settle(talk: Talk) -> Said | None:
    """Give up a wish for what was offered instead."""
    template = talk.word(tables.SETTLE_LEADS) + talk.word(tables.SETTLES[talk.asked[0]])
    return fill("inform", talk.domain, template, {talk.asked[0]: pick(talk.rng, talk.options)})


def choose(talk: Talk) -> Said | None:
    """Pick one of the two venues put up for choice."""
    talk.venues[talk.domain].append(pick(talk.rng, talk.venues[talk.domain][-2:]))
    return fill("inform", talk.domain, talk.word(tables.PICKS), talk.values)


def agree(talk: Talk) -> Said | None:
    """Confirm, perhaps by repeating a value."""
    template = talk.word(tables.AGREES).replace("<slot>", pick(talk.rng, DOMAINS[talk.domain].book))
    return fill("affirm", talk.domain, template, talk.known)


def correct(talk: Talk) -> Said | None:
    """Change something that was said for the booking under way."""
    said = [slot for slot in DOMAINS[talk.domain].book if slot in talk.known]
    return _change(talk, talk.word(tables.CHANGE_LEADS), pick(talk.rng, said)) if said else None


def revise(talk: Talk) -> Said | None:
    """Come back to something that is booked already, rather an earlier topic than this one, and change it."""
    if not talk.codes or talk.turns[-2].labels["acts"][0]["act"] == "change":
        return None
    talk.domain = pick(talk.rng, [domain for domain in talk.codes if domain != talk.domain] or [*talk.codes])
    lead = talk.word(tables.REVISE_LEADS).replace("<booking>", tables.MINE[talk.domain])
    return _change(talk, lead, pick(talk.rng, DOMAINS[talk.domain].book))


def _change(talk: Talk, lead: str, slot: str) -> Said:
    talk.asked = [slot]
    values = [value for value in of_slot(VALUES, talk.domain, slot) if value not in talk.known.values()]
    template = lead + talk.word(tables.CHANGES[slot]).replace("<old>", talk.known[slot])
    return fill("change", talk.domain, template, {slot: zipf(talk.rng, values)})


def chat(talk: Talk) -> Said | None:
    """Small talk: something of the persona, each fact once, or nothing in particular."""
    if not talk.facts or talk.turns[-2].labels["acts"][0]["act"] == "chat":
        return None
    kind, fact = talk.facts.pop()
    about = tables.FACTS[kind]
    remark, reply = pick(talk.rng, tables.IDLE) if talk.chance(0.3) else (about.chat, about.reply)
    talk.reply = talk.word(reply).replace("<x>", fact)
    return Said(talk.word(tables.CHAT_LEADS) + talk.word(remark).replace("<x>", fact), [act_of("general", "chat")])


def say_bye(talk: Talk) -> Said | None:
    """Leave, if nothing is left to ask for; a venue on offer is turned down first."""
    if talk.agenda:
        return None
    if talk.prompt == "more":
        return line("general", "bye", tables.NO_MORE)(talk)
    return join(line("", "negate", tables.LEAVES)(talk), line("general", "bye", tables.BYES)(talk))


# --- The concierge's answers ------------------------------------------------------------------------------------------


def proceed(talk: Talk) -> Said:
    """Acknowledge and take the next step: ask, put a venue forward, check, or book."""
    step = _next_step(talk)
    if any(act["act"] == "change" for act in talk.turns[-1].labels["acts"]):
        return join(talk.word(tables.CHANGE_ACKS), step)
    if talk.prompt in ("confirm", "more"):  # these have an opening of their own
        return step
    return join(talk.word(tables.ACKS if talk.turns[1:] else tables.FIRST_LEADS), step)


def _next_step(talk: Talk) -> Said:
    kind, known = DOMAINS[talk.domain], talk.known
    if kind.search and not talk.venues.get(talk.domain):
        unknown = [slot for slot in kind.search if slot not in known]
        is_vague = len(unknown) == len(kind.search)
        return _request(talk, unknown) if unknown and (is_vague or talk.chance(0.4)) else recommend(talk)
    missing = [slot for slot in kind.book if slot not in known]
    if missing:
        return _request(talk, missing)
    return _check(talk) if talk.prompt != "confirm" and talk.chance(0.3) else book(talk)


def _request(talk: Talk, slots: list[str]) -> Said:
    """Ask for one slot or two."""
    talk.prompt, talk.asked = "slots", slots[: pick(talk.rng, (1, 2))]
    questions = [talk.word(of_slot(tables.ASKS, talk.domain, slot)) for slot in talk.asked]
    return Said(", and ".join(questions) + "?", [act_of(talk.domain, "request", slot) for slot in talk.asked])


def recommend(talk: Talk) -> Said:
    """Put forward a venue, or two to choose from, or say that there is none."""
    shown = talk.venues.setdefault(talk.domain, [])
    wanted = {slot: talk.known[slot] for slot in DOMAINS[talk.domain].search if slot in talk.known}
    found = [venue for venue in find(talk.city[talk.domain], wanted) if venue not in shown]
    if not found:
        return join(_about(talk, "nomatch", tables.ONLY), _ask(talk, "venue")) if shown else _miss(talk, wanted)
    if len(found) > 1 and talk.chance(0.12):
        shown += [found[place] for place in talk.rng.permutation(len(found))[:2]]
        talk.options = [venue["name"] for venue in shown[-2:]]
        return _ask(talk, "choice")
    shown.append(zipf(talk.rng, found))
    count = fill("inform", talk.domain, talk.word(tables.FOUND), {"choice": str(len(found))})
    lead = count if found[2:] and talk.chance(0.15) else ""
    return join(lead, _about(talk, "recommend", tables.DESCRIPTIONS[talk.domain]), _ask(talk, "venue"))


def _miss(talk: Talk, wanted: dict[str, str]) -> Said:
    """Nothing fits: offer other values for one wish, such that something does."""
    for slot in wanted:
        others = find(talk.city[talk.domain], {key: value for key, value in wanted.items() if key != slot})
        talk.asked, talk.options = [slot], list(dict.fromkeys(venue[slot] for venue in others))[:2]
        if others:
            break
    firm = [slot for slot, value in wanted.items() if value != "any"]
    template = talk.word(tables.MISSES).replace("<thing>", _thing(talk, firm, is_guest=False))
    return join(fill("nomatch", talk.domain, template, wanted), _ask(talk, "swap"))


def _about(talk: Talk, act: str, phrases: Phrases) -> Said:
    return fill(act, talk.domain, talk.word(phrases), talk.values)


def _ask(talk: Talk, prompt: str) -> Said:
    """Put the question that the guest's next turn answers."""
    talk.prompt = prompt
    if prompt == "slots":
        return _request(talk, talk.asked)
    if prompt == "swap":
        return fill("offer", talk.domain, talk.word(tables.OFFERS[talk.asked[0]]), {talk.asked[0]: talk.options})
    if prompt == "choice":
        return fill("select", talk.domain, talk.word(tables.CHOICES), {"name": talk.options})
    domain, act, phrases = tables.REMINDERS.get(prompt) or ("", "offerbook", tables.PITCHES[talk.domain])
    return line(domain, act, phrases)(talk)


def _check(talk: Talk) -> Said:
    """Read the booking out before making it."""
    talk.prompt = "confirm"
    return _about(talk, "confirm", (_booking(talk, tables.CHECKS, DOMAINS[talk.domain].book),))


def _booking(talk: Talk, phrases: Phrases, slots: Sequence[str]) -> str:
    posts = " ".join(_post(talk, slot, is_guest=False) for slot in slots)
    return talk.word(phrases).replace("<booking>", talk.word(tables.BOOKINGS[talk.domain])).replace("<posts>", posts)


def book(talk: Talk) -> Said:
    """Make the booking and give its reference."""
    code = talk.codes[talk.domain] = compose(talk.rng, tables.COMPOSED["code"])
    booked = _booking(talk, tables.BOOKED[talk.domain], DOMAINS[talk.domain].book)
    driver = talk.word(tables.DRIVERS) if talk.domain == "taxi" else ""
    values = talk.values | {part: compose(talk.rng, tables.COMPOSED[part]) for part in ("driver", "car")}
    template = f"{talk.word(tables.BOOK_LEADS)} {booked} {driver} {talk.word(tables.CODES)}"
    return join(fill("book", talk.domain, template, values | {"code": code}), _ask(talk, "more"))


def update(talk: Talk) -> Said:
    """Change what is booked; the reference stays."""
    template = f"{_booking(talk, tables.UPDATES, talk.asked)} {talk.word(tables.SAME_CODE)}"
    said = fill("book", talk.domain, template, talk.values | {"code": talk.codes[talk.domain]})
    return join(said, _ask(talk, "more"))


def tell_detail(talk: Talk) -> Said:
    """Answer a question about the venue and come back to the offer."""
    return join(_about(talk, "inform", tables.DETAILS[talk.asked[0]]), _ask(talk, "venue"))


def react(talk: Talk) -> Said:
    """Answer small talk and come back to what was asked."""
    return join(Said(talk.reply, [act_of("general", "chat")]), talk.word(tables.RETURNS), _ask(talk, talk.prompt))


def let_go(talk: Talk) -> Said:
    """Nothing is booked, and that is fine."""
    return join(line("", "release", tables.LEFT)(talk), _ask(talk, "more"))


# What the guest does, by the name of the move, and what the concierge answers.
MOVES: dict[str, tuple[Callable[[Talk], Said | None], Callable[[Talk], Said]]] = {
    "greet": (line("general", "greet", tables.GREETINGS), line("general", "welcome", tables.WELCOMES, prompt="wish")),
    "raise": (raise_topic, proceed),
    "answer": (answer, proceed),
    "accept": (accept, proceed),
    "ask": (ask_detail, tell_detail),
    "another": (line("", "alternatives", tables.ANOTHERS), recommend),
    "settle": (settle, proceed),
    "choose": (choose, proceed),
    "agree": (agree, book),
    "correct": (correct, proceed),
    "revise": (revise, update),
    "chat": (chat, react),
    "leave": (line("", "negate", tables.LEAVES), let_go),
    "bye": (say_bye, line("general", "bye", tables.FAREWELLS, prompt="bye")),
}
