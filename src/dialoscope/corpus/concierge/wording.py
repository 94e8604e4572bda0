"""Drawing and wording: templates into text and labels at once, so that labels cannot claim what nobody said."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dialoscope.corpus.concierge import tables
from dialoscope.corpus.concierge.tables import Phrases

T = TypeVar("T")
Act = dict[str, Any]


class Said(NamedTuple):
    """Words and what they do, before they become a turn."""

    text: str
    acts: list[Act]


def pick(rng: np.random.Generator, options: Sequence[T]) -> T:
    """Draw one, all alike; much faster than `rng.choice`, which makes an array first."""
    return options[int(rng.random() * len(options))]


def zipf(rng: np.random.Generator, options: Sequence[T]) -> T:
    """Draw one, the k-th with a probability close to 1/k: values then are as uneven as words are."""
    return options[int((len(options) + 1) ** rng.random()) - 1]


@cache
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


def of_slot(table: Mapping[str, Phrases], domain: str, slot: str) -> Phrases:
    """A table's entry for a slot: that of the domain, else the general one, else nothing."""
    return table.get(f"{domain}.{slot}", table.get(slot, ()))


def fill(act: str, domain: str, template: str, values: Mapping[str, str | list[str]]) -> Said:
    """Put values into a template; each one that is mentioned becomes an act."""
    slots = dict.fromkeys(re.findall(r"{(\w+)}", template))
    given = {slot: [value] if isinstance(value := values[slot], str) else value for slot in slots}
    text = template.format_map({slot: " or ".join(options) for slot, options in given.items()})
    return Said(text, [act_of(domain, act, slot, options) for slot, options in given.items()] or [act_of(domain, act)])


def act_of(domain: str, act: str, slot: str = "", values: Sequence[str] = ()) -> Act:
    """One act in the form all corpora share."""
    return {"domain": domain, "act": act, "slot": slot, "values": list(values)}


def join(*parts: Said | str) -> Said:
    """Several things said in one turn."""
    said = [Said(part, []) if isinstance(part, str) else part for part in parts]
    return Said(" ".join(part.text for part in said), [act for part in said for act in part.acts])


def tidy(text: str) -> str:
    """Mend what joining leaves behind: blanks, commas, "a" before a vowel, small letters after a full stop."""
    text = re.sub(r"\s+(?=[\s,.?!]|$)|,+(?=\s*[,.?!])", "", text.strip())
    text = re.sub(r"\b([Aa]) (?=[aeiouAEIOU])(?!eu|uni|one)", r"\1n ", text)
    return re.sub(r"(?:^|[.!?] )[a-z]", lambda start: start[0].upper(), text)
