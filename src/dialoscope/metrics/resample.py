"""Draw dialogues, thousands of times, in bounded memory and on all cores.

Every resample has its own random stream, made from the seed and its number, so the draws are the same however
many threads work and however the work is cut. Indices are drawn one by one with replacement (no Poisson or
normal approximation) and without modulo bias (Lemire, "Fast Random Integer Generation in an Interval", 2019).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from dialoscope.cores import cores
from dialoscope.metrics.kernels import compiled
from dialoscope.metrics.statistic import FloatArray, IntArray, Resampled

CELLS = 2**19  # counts held at once by each thread: 2 MB, so that they stay in its cache
FEW_CELLS = 2**18  # done sooner than threads are started

# splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014)
STEP, FIRST, SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
LOW = np.uint64(0xFFFFFFFF)
U1, U27, U30, U31, U32 = np.uint64(1), np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)


def draw_counts(seed: int, start: int, stop: int, dialogues: int) -> npt.NDArray[np.int32]:
    """How often each dialogue was drawn in resamples start … stop: (stop − start, dialogues)."""
    counts = np.zeros((stop - start, dialogues), dtype=np.int32)
    compiled(_count_draws)(np.uint64(seed), start, counts)
    return counts


def draw_swaps(seed: int, start: int, stop: int, dialogues: int) -> npt.NDArray[np.bool_]:
    """Which dialogues change sides in rounds start … stop, each with probability one half."""
    swaps = np.zeros((stop - start, dialogues), dtype=np.bool_)
    compiled(_toss)(np.uint64(seed), start, swaps)
    return swaps


def resample(statistic: Resampled, *, resamples: int, rng: np.random.Generator) -> FloatArray:
    """The statistic's value in each of so many resamples of its dialogues; NaN where it is not defined."""
    seed, dialogues = draw_seed(rng), statistic.dialogues
    return in_pieces(
        lambda start, stop: statistic.resampled(draw_counts(seed, start, stop, dialogues)), resamples, dialogues
    )


def left_out_by_counts(statistic: Resampled) -> FloatArray:
    """Leave each dialogue out in turn, for statistics that have no shorter way than to be computed again."""
    return in_pieces(
        lambda start, stop: statistic.resampled(_all_but(start, stop, statistic.dialogues)),
        statistic.dialogues,
        statistic.dialogues,
    )


def draw_seed(rng: np.random.Generator) -> int:
    """A seed for the streams of one set of resamples."""
    return int(rng.integers(2**63))


def in_pieces(compute: Callable[[int, int], FloatArray], rows: int, width: int) -> FloatArray:
    """Compute rows start … stop piece by piece on all cores and join them; memory is bounded by the piece."""
    pieces = list(_pieces(rows, width))
    if len(pieces) == 1:
        return compute(*pieces[0])
    with ThreadPoolExecutor(max_workers=cores()) as threads:
        return np.concatenate([np.zeros(0), *threads.map(lambda piece: compute(*piece), pieces)])


def _pieces(rows: int, width: int) -> Iterator[tuple[int, int]]:
    share = rows if rows * width <= FEW_CELLS else -(-rows // cores())
    size = max(1, min(CELLS // max(1, width), share))
    for start in range(0, rows, size):
        yield start, min(start + size, rows)


def _all_but(start: int, stop: int, dialogues: int) -> IntArray:
    counts = np.ones((stop - start, dialogues), dtype=np.int32)
    counts[np.arange(stop - start), np.arange(start, stop)] = 0
    return counts


def _count_draws(seed: np.uint64, start: int, counts: npt.NDArray[np.int32]) -> None:
    rows, size = counts.shape
    wide = np.uint64(size)
    reject_below = (LOW - wide + U1) % wide if size > 0 else wide  # 2^32 mod size
    for row in range(rows):
        state = (seed + np.uint64(start + row)) * STEP
        state = (state ^ (state >> U30)) * FIRST
        state = (state ^ (state >> U27)) * SECOND
        drawn = 0
        while drawn < size:
            state = state + STEP
            word = (state ^ (state >> U30)) * FIRST
            word = (word ^ (word >> U27)) * SECOND
            word = word ^ (word >> U31)
            for half in (word >> U32, word & LOW):
                product = half * wide
                if drawn < size and (product & LOW) >= reject_below:
                    counts[row, np.int64(product >> U32)] += 1
                    drawn += 1


def _toss(seed: np.uint64, start: int, swaps: npt.NDArray[np.bool_]) -> None:
    rows, size = swaps.shape
    for row in range(rows):
        state = (seed + np.uint64(start + row)) * STEP
        state = (state ^ (state >> U30)) * FIRST
        state = (state ^ (state >> U27)) * SECOND
        word = state
        for column in range(size):
            if column % 64 == 0:
                state = state + STEP
                word = (state ^ (state >> U30)) * FIRST
                word = (word ^ (word >> U27)) * SECOND
                word = word ^ (word >> U31)
            swaps[row, column] = (word & U1) == U1
            word = word >> U1
