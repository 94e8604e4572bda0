"""Several instruments over corpora and models, one report; and what follows from it: gates, comparisons, exports.

>>> from dialoscope.study import plan_of, run_study
>>> plan = plan_of({"corpora": {"chats": "chats.jsonl"}, "models": {"ours": "runs/ours"}})
>>> run_study(plan, "study").report                                                       # doctest: +SKIP
"""

from dialoscope.study.book import Step
from dialoscope.study.compare import Compared, compare
from dialoscope.study.folders import Placed, read_runs
from dialoscope.study.gate import Gate, Passage, pass_gates, read_gates, to_junit
from dialoscope.study.interop import to_lm_eval, to_mlflow, to_model_card
from dialoscope.study.plan import Plan, plan_of, read_plan
from dialoscope.study.running import Study, Watcher, run_study

__all__ = [
    "Compared",
    "Gate",
    "Passage",
    "Placed",
    "Plan",
    "Step",
    "Study",
    "Watcher",
    "compare",
    "pass_gates",
    "plan_of",
    "read_gates",
    "read_plan",
    "read_runs",
    "run_study",
    "to_junit",
    "to_lm_eval",
    "to_mlflow",
    "to_model_card",
]
