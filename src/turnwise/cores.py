"""Compiled loops on all cores this process may use.

Threads of our own over loops that release the interpreter's lock, and not Numba's parallel loops: those end the whole
process where two threads start them at once and no thread-safe layer (OpenMP, TBB) is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
FEW = 4096  # items that one thread does in less time than another takes to start


def cores() -> int:
    """Cores this process may use; the variable NUMBA_NUM_THREADS allows fewer."""
    from numba import config

    return int(config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]  # set when Numba reads its environment


def in_ranges(count: int, work: Callable[[int, int], T], *, ranges: int | None = None, few: int = FEW) -> list[T]:
    """Call `work(low, high)` on ranges that cover 0 … count, in threads; what it gave, in order.

    As many ranges as cores, or more where items differ much in cost; a single one where there are few items.

    >>> in_ranges(5, lambda low, high: high - low)
    [5]
    """
    ranges = 1 if count <= few else min(count, ranges or cores())
    edges = [count * place // ranges for place in range(ranges + 1)]
    if ranges == 1:
        return [work(0, count)]
    with ThreadPoolExecutor(cores()) as threads:
        return list(threads.map(work, edges[:-1], edges[1:]))
