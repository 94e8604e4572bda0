"""Is the user engaged? A score for each turn from how much of the conversation is expected to remain.

>>> from dialoscope.engage import Monitor, load
>>> predictor = load("engaged")                                   # needs torch   # doctest: +SKIP
>>> Monitor(predictor).hear("Hi! What did you do today?").score                   # doctest: +SKIP
0.94
"""

from dialoscope.engage.baselines import BASELINES
from dialoscope.engage.depth import DepthResult, measure_depth
from dialoscope.engage.evaluate import EngageEvaluation, evaluate
from dialoscope.engage.examples import Examples, examples, remaining_depth
from dialoscope.engage.fitting import Material, fit_all, fit_head, material
from dialoscope.engage.human_sets import HumanSet, halves, read_human
from dialoscope.engage.live import Calibration, Monitor, Rule, rank
from dialoscope.engage.output import write_depth, write_evaluation
from dialoscope.engage.protocol import Rater
from dialoscope.engage.settings import RECIPES, Recipe, Settings
from dialoscope.engage.storage import load, save

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
