"""Several instruments over corpora and models, one report; and what follows from it: gates, comparisons, exports.

>>> from turnwise.study import plan_of, run_study
>>> plan = plan_of({"corpora": {"chats": "chats.jsonl"}, "models": {"ours": "runs/ours"}})
>>> run_study(plan, "study").report                                                       # doctest: +SKIP
"""

from turnwise.study.book import Step
from turnwise.study.compare import Compared, compare
from turnwise.study.folders import Placed, read_runs
from turnwise.study.gate import Gate, Passage, pass_gates, read_gates, to_junit
from turnwise.study.interop import to_evaluate, to_lm_eval, to_mlflow, to_model_card
from turnwise.study.plan import Plan, plan_of, read_plan
from turnwise.study.running import Study, Watcher, run_study

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
    "to_evaluate",
    "to_junit",
    "to_lm_eval",
    "to_mlflow",
    "to_model_card",
]
