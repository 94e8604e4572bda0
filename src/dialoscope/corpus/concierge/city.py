"""The city: venues of every kind, composed from parts and the most popular first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dialoscope.corpus.concierge import tables
from dialoscope.corpus.concierge.tables import DOMAINS, VALUES, Domain
from dialoscope.corpus.concierge.wording import compose, pick, zipf

Venue = dict[str, str]
City = dict[str, list[Venue]]  # by domain, the most popular venues first


def build_city(rng: np.random.Generator) -> City:
    """Invent the venues of every domain; no two of them share a name."""
    taken: set[str] = set()
    return {name: [_venue(rng, domain, taken) for _ in range(domain.venues)] for name, domain in DOMAINS.items()}


def _venue(rng: np.random.Generator, domain: Domain, taken: set[str]) -> Venue:
    name = compose(rng, pick(rng, domain.names))
    if name in taken:
        return _venue(rng, domain, taken)
    taken.add(name)
    venue = {"name": name, **{slot: zipf(rng, VALUES[slot]) for slot in domain.search}}
    return venue | {detail: _detail(rng, detail, venue) for detail in domain.details}


def _detail(rng: np.random.Generator, detail: str, venue: Venue) -> str:
    if detail in tables.PER_KIND:
        slot, options = tables.PER_KIND[detail]
        return pick(rng, options[venue[slot]])
    return compose(rng, tables.COMPOSED[detail]) if detail in tables.COMPOSED else zipf(rng, VALUES[detail])


def find(venues: Sequence[Venue], wanted: Mapping[str, str]) -> list[Venue]:
    """Venues that have all wanted values."""
    for slot, value in wanted.items():
        venues = [venue for venue in venues if value in (venue[slot], "any")]
    return list(venues)
