"""A study without doing it: its steps, which are done, and what would fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dialoscope.corpus import Corpus
from dialoscope.errors import DialoscopeError, MissingExtraError, UsageError
from dialoscope.study.at_hand import AtHand, Nobody, Untrained
from dialoscope.study.book import Step, check_own
from dialoscope.study.folders import read_runs
from dialoscope.study.models import check_there, check_turns
from dialoscope.study.plan import Ask, Plan, check_device, check_paths
from dialoscope.study.splits import check_splits
from dialoscope.study.steps import COMPARED, is_whole, keyed, reason_of, steps_of


def planned(plan: Plan, out: str | Path, *, given: Mapping[str, Corpus] | None = None) -> list[dict[str, Any]]:
    """The steps of a plan, how many dialogues each reads, and whether it is done; nothing is run or written."""
    check_device(plan)
    check_own(Path(out))
    look = _Look(plan, Path(out), dict(given or {}))
    rows = [look.at(name, ask, corpus) for name, ask, corpus in steps_of(plan)]
    back = [] if plan.against is None else [look.back(Path(plan.against))]
    shown = len(plan.corpora)
    return [*rows[:shown], *look.lost_models(), *rows[shown:], *back]


def foreseen(plan: Plan) -> list[str]:
    """What will fail of a plan, as far as a glance shows before hours of work; its corpora are read first anyway."""
    looks: dict[str, Callable[[], object]] = {}
    for ask in plan.asks:
        looks |= {f"model {name}": partial(check_there, plan.models[name])
                  for name in ask.models if plan.models[name].path is not None}  # fmt: skip
        looks[ask.name] = partial(_glance, plan, ask)
    if plan.against is not None:
        looks[COMPARED.name] = partial(read_runs, [Path(plan.against)])
    found = {name: _complaint(look) for name, look in looks.items()}
    return [f"{name} will fail: {told}" for name, told in found.items() if told is not None]


def _glance(plan: Plan, ask: Ask) -> None:
    check_paths(ask)
    check_turns(ask, {name: plan.models[name] for name in ask.models})


def _complaint(look: Callable[[], object]) -> str | None:
    try:
        look()
    except MissingExtraError:  # no failure: its step is left out
        return None
    except DialoscopeError as error:
        return reason_of(error)
    return None


class _Look:
    """One dry run: what is at hand, and what was done before."""

    def __init__(self, plan: Plan, folder: Path, corpora: dict[str, Corpus]) -> None:
        self.plan, self.folder = plan, folder
        self.at_hand = AtHand(plan, folder, corpora, Nobody(), trains=False)
        self.at_hand.look_for_models()

    def at(self, name: str, ask: Ask, corpus: str) -> dict[str, Any]:
        """A step without doing it."""
        row = _row(name, corpus, ask.models)
        try:
            check_paths(ask)
            data = self.at_hand.given(ask, corpus)
            row["dialogues"] = len(data)
            check_splits(ask, data)
            step = Step(name, ask.instrument, corpus, "pending")
            step = keyed(step, ask, data, self.at_hand.available(ask), seed=self.plan.seed)
            is_done = is_whole(self.folder / step.run)
            return {**row, "state": "done" if is_done else "to do"}
        except Untrained:
            return {**row, "state": "to do, with training"}
        except MissingExtraError as error:
            return {**row, "state": f"would be left out: {error}"}
        except Exception as error:
            return {**row, "state": f"would fail: {reason_of(error)}"}

    def lost_models(self) -> list[dict[str, Any]]:
        """Models that a run would go on without."""
        lost = {name: error for name, error in self.at_hand.broken.items() if name.startswith("model ")}
        rows = []
        for name, error in lost.items():
            if isinstance(error, MissingExtraError) and self.at_hand.sources:
                rows.append({**_row(name, ""), "state": f"would be left out: {error}"})
            elif not isinstance(error, MissingExtraError | Untrained):
                rows.append({**_row(name, ""), "state": f"would fail: {reason_of(error)}"})
        return rows

    def back(self, earlier: Path) -> dict[str, Any]:
        """The comparison with an earlier study, without doing it."""
        row = _row(COMPARED.name, COMPARED.corpus)
        try:
            read_runs([earlier])
        except UsageError as error:
            return {**row, "state": f"would fail: {error}"}
        return {**row, "state": "to do"}


def _row(step: str, corpus: str, models: Sequence[str] = ()) -> dict[str, Any]:
    return {"step": step, "corpus": corpus, "models": ", ".join(models), "dialogues": None}
