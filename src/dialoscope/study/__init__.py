"""Questions about corpora and models on one page; and gates, comparisons and exports of the results.

>>> import dialoscope as ds
>>> ds.study.run("study.toml", out="study").report                      # doctest: +SKIP

Names are imported when they are first used.
"""

from typing import TYPE_CHECKING

from dialoscope.lazy import make_lazy

if TYPE_CHECKING:
    from dialoscope.study.compare import CompareResult, compare
    from dialoscope.study.gate import Gate as Gate
    from dialoscope.study.gate import check_gates
    from dialoscope.study.gate import read_gates as read_gates
    from dialoscope.study.run import Study, run

__all__ = [
    "CompareResult",
    "Study",
    "check_gates",
    "compare",
    "run",
]
make_lazy(
    __name__,
    {
        "compare": ("CompareResult", "compare"),
        "gate": ("Gate", "check_gates", "read_gates"),
        "run": ("Study", "run"),
    },
)
