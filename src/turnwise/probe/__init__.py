"""What does the encoding of a context know? 18 probe tasks, with controls beside every score.

>>> from turnwise.probe import examine, examples
>>> training, held_out = examples(corpus, split="train"), examples(corpus, split="validation")   # doctest: +SKIP
>>> examine({"mine": model}, training, held_out).result.models["mine"].tasks["RecentTopic"].f1    # doctest: +SKIP
"""

from turnwise.probe.examine import Examined, examine
from turnwise.probe.examples import Examples, Info, Position, examples
from turnwise.probe.measure import Measured, Settings, measure
from turnwise.probe.output import write_result
from turnwise.probe.result import ProbeResult, summarise
from turnwise.probe.tasks import TASKS, Task, chosen_tasks
from turnwise.probe.ties import tie_study

__all__ = [
    "TASKS",
    "Examined",
    "Examples",
    "Info",
    "Measured",
    "Position",
    "ProbeResult",
    "Settings",
    "Task",
    "chosen_tasks",
    "examine",
    "examples",
    "measure",
    "summarise",
    "tie_study",
    "write_result",
]
