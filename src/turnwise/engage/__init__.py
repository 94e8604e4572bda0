"""Is the user engaged? A score for each turn from how much of the conversation is expected to remain.

>>> from turnwise.engage import Monitor, load
>>> predictor = load("engaged")                                   # needs torch   # doctest: +SKIP
>>> Monitor(predictor).hear("Hi! What did you do today?").score                   # doctest: +SKIP
0.94
"""

from turnwise.engage.baselines import BASELINES
from turnwise.engage.depth import DepthResult, measure_depth
from turnwise.engage.evaluate import EngageEvaluation, evaluate
from turnwise.engage.examples import Examples, examples, remaining_depth
from turnwise.engage.fitting import Material, fit_all, fit_head, material
from turnwise.engage.human_sets import HumanSet, halves, read_human
from turnwise.engage.live import Calibration, Monitor, Rule, rank
from turnwise.engage.output import write_depth, write_evaluation
from turnwise.engage.protocol import Rater
from turnwise.engage.settings import RECIPES, Recipe, Settings
from turnwise.engage.storage import load, save

__all__ = [
    "BASELINES",
    "RECIPES",
    "Calibration",
    "DepthResult",
    "EngageEvaluation",
    "Examples",
    "HumanSet",
    "Material",
    "Monitor",
    "Rater",
    "Recipe",
    "Rule",
    "Settings",
    "evaluate",
    "examples",
    "fit_all",
    "fit_head",
    "halves",
    "load",
    "material",
    "measure_depth",
    "rank",
    "read_human",
    "remaining_depth",
    "save",
    "write_depth",
    "write_evaluation",
]
