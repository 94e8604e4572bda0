"""What does the encoding of a context know? 18 probe tasks, with controls beside every score.

>>> from dialoscope.probe import examine, examples
>>> training, held_out = examples(corpus, split="train"), examples(corpus, split="validation")   # doctest: +SKIP
>>> examine({"mine": model}, training, held_out).result.models["mine"].tasks["RecentTopic"].f1    # doctest: +SKIP
"""

from dialoscope.probe.examine import Examined, examine
from dialoscope.probe.examples import Examples, Info, Position, examples
from dialoscope.probe.measure import Measured, Settings, measure
from dialoscope.probe.output import write_result
from dialoscope.probe.result import ProbeResult, summarise
from dialoscope.probe.tasks import TASKS, Task, chosen_tasks
from dialoscope.probe.ties import tie_study

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
