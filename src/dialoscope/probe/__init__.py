"""What does the encoding of a context know? 18 probe tasks, with controls beside every score.

Names are imported when they are first used.

>>> measure(load("concierge"), models={"mine": "run"}).scores()["mine/RecentTopic/f1"]           # doctest: +SKIP
"""

from typing import TYPE_CHECKING

from dialoscope.lazy import make_lazy

if TYPE_CHECKING:
    from dialoscope.probe.measure import measure
    from dialoscope.probe.measure import planned as planned
    from dialoscope.probe.result import ProbeResult
    from dialoscope.probe.settings import ProbeSettings as ProbeSettings
    from dialoscope.probe.tasks import TASKS as TASKS
    from dialoscope.probe.tasks import Task as Task
    from dialoscope.probe.ties import tie_study as tie_study

__all__ = [
    "ProbeResult",
    "measure",
]
make_lazy(
    __name__,
    {
        "measure": ("measure", "planned"),
        "result": ("ProbeResult",),
        "settings": ("ProbeSettings",),
        "tasks": ("TASKS", "Task"),
        "ties": ("tie_study",),
    },
)
