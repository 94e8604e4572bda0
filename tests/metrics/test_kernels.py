from __future__ import annotations

import numpy as np
import pytest

from dialoscope.metrics import kernels
from dialoscope.metrics.kernels import compiled, weighted_sums


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.bool_])
def test_weighted_sums_are_the_matrix_product(dtype: type) -> None:
    rng = np.random.default_rng(0)
    drawn, totals = rng.integers(0, 2, size=(7, 30)), rng.normal(size=(30, 4))
    assert weighted_sums(drawn.astype(dtype), totals) == pytest.approx(drawn.astype(float) @ totals)


def test_a_row_has_the_same_sum_whatever_stands_beside_it() -> None:
    rng = np.random.default_rng(1)
    counts, totals = rng.integers(0, 5, size=(9, 1001)), rng.normal(size=(1001, 2))
    assert (weighted_sums(counts[4:5], totals) == weighted_sums(counts, totals)[4]).all()


def test_a_gap_among_the_totals_is_not_taken_for_a_number() -> None:
    totals = np.array([[np.nan], [1.0]])
    assert np.isnan(weighted_sums(np.array([[1, 1]]), totals)).all()
    options: dict[str, object] = compiled(kernels._weigh, reorders=True).targetoptions  # type: ignore[attr-defined]
    assert options["fastmath"] == {"reassoc", "contract", "nsz"}


def test_without_a_place_to_keep_kernels_they_are_translated_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    def refuse(*, cache: bool = False, **options: object) -> object:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda kernel: kernel

    monkeypatch.setattr(numba, "njit", refuse)
    kernels._compile.cache_clear()
    assert compiled(sum) is sum
    kernels._compile.cache_clear()
