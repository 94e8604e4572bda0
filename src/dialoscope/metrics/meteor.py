"""METEOR (Lavie and Agarwal 2007) by NLTK: the mean over pairs, a share.

``meteor`` matches words exactly, by stem and by WordNet synonym. WordNet is a separate download; without it
there is ``meteor-stem``, exact and stem matches only, which is another, often lower number and is named so.
NLTK looks for synonyms among words it has stemmed already ("automobil"), so it finds fewer than there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from dialoscope.errors import MissingExtraError, UsageError
from dialoscope.metrics.options import Metric, Options
from dialoscope.metrics.pairs import Pairs
from dialoscope.metrics.statistic import Clusters, FloatArray, Sums, mean_of
from dialoscope.metrics.tokens import settings_of, tokenise


class NoSynonyms:
    """Stands in for WordNet where only exact and stem matches count."""

    def synsets(self, word: str) -> list[Any]:
        """No word has synonyms."""
        return []


def meteor_scores(pairs: Pairs, options: Options, *, has_synonyms: bool) -> FloatArray:
    """METEOR of each pair: (pairs,)."""
    try:
        from nltk.translate.meteor_score import meteor_score
    except ImportError as error:
        raise MissingExtraError("METEOR", "metrics") from error
    synonyms = _wordnet() if has_synonyms else NoSynonyms()
    sides = [
        tokenise(side, tokeniser=options.tokeniser, lowercase=options.lowercase)
        for side in (pairs.hypotheses, pairs.references)
    ]
    scores = [meteor_score([target], said, wordnet=synonyms) for said, target in zip(*sides, strict=True)]
    return np.array(scores, dtype=np.float64)


def mean_meteor(values: FloatArray, clusters: Clusters) -> Sums:
    """The mean over pairs."""
    return mean_of(values, clusters=clusters, undefined="there are no pairs to score", bounds=(0.0, 1.0))


def settings(options: Options, *, has_synonyms: bool) -> Mapping[str, Any]:
    """What the signature must say; NLTK ignores case itself."""
    matches = {"matches": "exact+stem+wordnet" if has_synonyms else "exact+stem", "stem": "porter"}
    wordnet = {"wordnet": _wordnet().get_version()} if has_synonyms else {}
    tokens = settings_of(options.tokeniser, lowercase=True)
    return {**tokens, **matches, **wordnet, "nltk": version("nltk")}


def metric(*, has_synonyms: bool) -> Metric[FloatArray]:
    """Mean METEOR, with WordNet's synonyms or without."""
    matches = "exact, stem and synonym" if has_synonyms else "exact and stem"
    return Metric(
        f"mean METEOR by NLTK with {matches} matches",
        partial(meteor_scores, has_synonyms=has_synonyms),
        mean_meteor,
        partial(settings, has_synonyms=has_synonyms),
    )


def has_wordnet() -> bool:
    """Whether NLTK finds WordNet, whole."""
    try:
        from nltk.corpus import wordnet

        wordnet.ensure_loaded()
    except ImportError as error:
        raise MissingExtraError("METEOR", "metrics") from error
    except (LookupError, OSError):  # nothing there, or a part of it
        return False
    return True


def _wordnet() -> Any:
    if not has_wordnet():
        raise UsageError("METEOR needs WordNet, which NLTK does not find; ask for meteor-stem, or download it.")
    from nltk.corpus import wordnet

    return wordnet
