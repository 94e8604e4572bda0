"""Loops that run as machine code, and how they get there.

Kernels are plain functions over arrays, translated when first used and kept on disk for the next run. They free
the interpreter lock and are run from ordinary threads: numba's own parallel loops may not be entered from two
threads at once, which a service does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
REORDERING = {"reassoc", "contract", "nsz"}  # all of it would also assume that no number is NaN or infinite


def compiled(kernel: Kernel, *, reorders: bool = False) -> Kernel:
    """The kernel as machine code; `reorders` lets sums be taken in any order, several terms at a time."""
    return cast(Kernel, _compile(kernel, reorders))


@cache
def _compile(kernel: Callable[..., Any], reorders: bool) -> Any:
    from numba import njit

    fastmath = REORDERING if reorders else False
    try:
        return njit(cache=True, nogil=True, fastmath=fastmath)(kernel)
    except RuntimeError:  # no folder to keep the result in: translate it anew in every run
        return njit(nogil=True, fastmath=fastmath)(kernel)


def weighted_sums(counts: npt.NDArray[Any], totals: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Each row of counts times the totals: (rows, dialogues) and (dialogues, k) to (rows, k).

    The matrix product, but of integers with floats, without a copy, and with the same sum for a row whatever other
    rows are computed with it. A BLAS gives none of these, and its threads would contend with ours.
    """
    sums = np.zeros((len(counts), totals.shape[1]))
    whole = counts.view(np.int8) if counts.dtype == np.bool_ else counts.astype(np.int32, copy=False)
    compiled(_weigh, reorders=True)(np.ascontiguousarray(whole), np.ascontiguousarray(totals.T), sums)
    return sums


def _weigh(counts: npt.NDArray[Any], columns: npt.NDArray[np.float64], sums: npt.NDArray[np.float64]) -> None:
    rows, dialogues = counts.shape
    for row in range(rows):
        for k in range(len(columns)):
            total = 0.0
            for dialogue in range(dialogues):
                total += counts[row, dialogue] * columns[k, dialogue]
            sums[row, k] = total
