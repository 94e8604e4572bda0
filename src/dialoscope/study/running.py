"""Run what is missing of a study, reuse what is there, go on after a failure, and join it all on one page.

::

    DIR/study.json      every step: what it depends on, how it ended, how long it took
    DIR/report.html     one page
    DIR/runs/NAME-KEY/  a run for each step (see `dialoscope.report.run`); the key is of all that its numbers depend on
    DIR/models/NAME/    models that were trained on the spot
    DIR/failures/NAME   the trace of a step that failed
    DIR/unfinished/     what a step that was broken off goes on from
    DIR/.dialoscope-lock  held while a study is at work here
"""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from dialoscope.corpus import Corpus
from dialoscope.errors import MissingExtraError, UsageError
from dialoscope.files import whole_file
from dialoscope.instruments import INSTRUMENTS, Bench, Progress
from dialoscope.record import Origin
from dialoscope.report import read_run, render, write_run
from dialoscope.report.run import table_files
from dialoscope.study.at_hand import AtHand
from dialoscope.study.book import Book, Step, at_work
from dialoscope.study.compare import compare, section_of
from dialoscope.study.dry_run import foreseen
from dialoscope.study.models import Source
from dialoscope.study.page import overall, sections_of
from dialoscope.study.plan import Ask, Plan, check_device, check_paths
from dialoscope.study.splits import check_splits
from dialoscope.study.steps import COMPARED, is_whole, keyed, pending, reason_of, steps_of, trace_name


class Watcher(Protocol):
    """Somebody who looks on."""

    def begin(self, step: str) -> Progress | None:
        """A step begins; what is returned is told how far it is."""
        ...

    def end(self, step: Step) -> None:
        """A step has ended."""
        ...


class Unseen:
    """Nobody looks on."""

    def begin(self, step: str) -> Progress | None:
        """Nothing."""
        return None

    def end(self, step: Step) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Study:
    """Where the report is, how every step ended, and the verdict of each."""

    report: Path
    folder: Path
    steps: Sequence[Step]
    verdicts: Mapping[str, str]
    left_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # records of each corpus, by reason

    @property
    def failed(self) -> list[Step]:
        """Steps that broke."""
        return [one for one in self.steps if one.state == "failed"]

    def to_dict(self) -> dict[str, Any]:
        """The study as JSON has it."""
        steps = [one.to_dict() | {"reused": one.is_reused} for one in self.steps]
        left_out = {name: dict(reasons) for name, reasons in self.left_out.items()}
        return {"report": str(self.report), "verdicts": dict(self.verdicts), "left_out": left_out, "steps": steps}


def run_study(
    plan: Plan,
    out: str | Path,
    *,
    given: Mapping[str, Corpus] | None = None,
    watcher: Watcher | None = None,
    on_problem: Callable[[str], None] = lambda problem: None,
) -> Study:
    """Carry out a plan in a folder; called again, it does only what is missing.

    `given` are corpora that are in memory already, by their names in the plan. `on_problem` is told at once what will
    fail, as far as a glance shows; the study goes on with the rest.
    """
    folder = Path(out)
    check_device(plan)
    with at_work(folder):
        session = _Session(plan, folder, dict(given or {}), watcher or Unseen())
        for problem in foreseen(plan):
            on_problem(problem)
        for name, ask, corpus in steps_of(plan):
            session.take(name, ask, corpus)
        if plan.against is not None:
            session.hold_against(Path(plan.against))
        return session.finish()


class _Session:
    """One call of `run_study`: what is at hand, the book, and the steps that were taken."""

    def __init__(self, plan: Plan, folder: Path, corpora: dict[str, Corpus], watcher: Watcher) -> None:
        self.plan, self.folder, self.watcher = plan, folder, watcher
        self.at_hand = AtHand(plan, folder, corpora, self, trains=True)
        self.book = Book.open(folder, plan.title, pending(plan), plan.to_dict())
        self.taken: list[Step] = []

    def take(self, name: str, ask: Ask, corpus: str) -> None:
        """Do a step, unless it was done before with all that it depends on unchanged."""
        begin = time.monotonic()
        step = Step(name, ask.instrument, corpus, "done", asked=ask.name)
        try:
            check_paths(ask)
            data = self.at_hand.given(ask, corpus)
            check_splits(ask, data)
            sources = self.at_hand.available(ask)
            step = keyed(step, ask, data, sources, seed=self.plan.seed)
            if not is_whole(self.folder / step.run) and (loaded := self.at_hand.loadable(ask, sources)) != sources:
                sources = loaded
                step = keyed(step, ask, data, sources, seed=self.plan.seed)
            if is_whole(self.folder / step.run):
                kept = self.book.steps.get(name)
                seconds = kept.seconds if kept is not None and kept.key == step.key else 0.0
                self._end(replace(step, seconds=seconds, is_reused=True))
                return
            _make_room(self.folder / step.run)
            self._run(step, ask, data, sources)
        except MissingExtraError as error:
            step = replace(step, state="skipped", reason=str(error))
        except Exception as error:  # whatever breaks one step must not take the others with it
            step = replace(step, state="failed", reason=reason_of(error))
            self._keep_trace(name, error)
        self._end(replace(step, seconds=round(time.monotonic() - begin, 3)))

    def _end(self, step: Step) -> None:
        if step.state == "done":
            self._trace(step.name).unlink(missing_ok=True)
        self.taken.append(step)
        self.book.write(step)
        self.watcher.end(step)

    def _run(self, step: Step, ask: Ask, corpus: Corpus, sources: Mapping[str, Source]) -> None:
        work = self.folder / "unfinished" / step.name
        bench = Bench(
            corpus,
            out=self.folder / step.run,
            work=work,
            models=self.at_hand.loaded(sources),
            paths={name: one.path for name, one in sources.items()},
            seed=self.plan.seed,
            device=self.plan.device,
            progress=self.watcher.begin(step.name),
        )
        INSTRUMENTS[ask.instrument].run(bench, ask.wish)
        shutil.rmtree(work, ignore_errors=True)

    # --- What is got for the steps ------------------------------------------------------------------------------------

    def begin(self, name: str) -> Progress | None:
        """A corpus is read, a model found or trained."""
        return self.watcher.begin(name)

    def got(self, name: str) -> None:
        """The trace of an earlier call is of no more use."""
        self._trace(name).unlink(missing_ok=True)

    def lost(self, model: str, error: Exception, seconds: float) -> None:
        """Told as a step of its own."""
        self._keep_trace(model, error)
        self._end(Step(model, "model", "", "failed", reason=reason_of(error), seconds=round(seconds, 3)))

    def left_out(self, model: str, error: MissingExtraError) -> None:
        """Say once of each model what is not installed for it."""
        step = Step(model, "model", "", "skipped", reason=str(error))
        if step not in self.taken:
            self._end(step)

    # --- The end ------------------------------------------------------------------------------------------------------

    def _trace(self, name: str) -> Path:
        return self.folder / "failures" / trace_name(name)

    def _keep_trace(self, name: str, error: Exception) -> None:
        path = self._trace(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as unfinished:
            unfinished.write_text("".join(traceback.format_exception(error)), encoding="utf-8")

    def hold_against(self, earlier: Path) -> None:
        """Compare with an earlier study; a step like the others, done anew each time."""
        step, begin = replace(COMPARED, state="done", run="runs/compared"), time.monotonic()
        try:
            compared = compare(earlier, self.folder)
            section = section_of(compared)
            _make_room(self.folder / step.run)
            write_run(
                self.folder / step.run,
                instrument="compare",
                data=compared.to_dict(),
                section=section,
                origin=section.origin or Origin(),
            )
        except Exception as error:  # an earlier study's fault must not cost this one its page
            step = replace(step, state="failed", reason=reason_of(error))
            self._keep_trace(step.name, error)
        self._end(replace(step, seconds=round(time.monotonic() - begin, 3)))

    def finish(self) -> Study:
        """Write the page and say how it went."""
        self.book.keep([one.name for one in self.taken])
        sections = sections_of(self.folder, self.taken, self.plan, dealt=self.at_hand.dealt_names())
        if not any(one.state == "failed" for one in self.taken):
            shutil.rmtree(self.folder / "unfinished", ignore_errors=True)
        found = list(zip(self.taken, sections, strict=False))  # the last one is of the steps themselves
        page = render(self.plan.title, sections, subtitle=", ".join(self.plan.corpora), overall=overall(found))
        with whole_file(self.folder / "report.html") as unfinished:
            unfinished.write_text(page, encoding="utf-8", newline="\n")
        verdicts = {one.name: section.verdict.line if section.verdict else section.lead for one, section in found}
        left_out = {name: dict(one.skipped) for name, one in self.at_hand.corpora.items() if one.skipped}
        return Study(self.folder / "report.html", self.folder, self.taken, verdicts, left_out)


def _make_room(run: Path) -> None:
    """Delete what would keep a run from being made again in its folder, which is the study's own."""
    try:
        tables = table_files(read_run(run).section)
    except UsageError:  # nothing is there, or a damaged run, whose files would pass for somebody else's
        shutil.rmtree(run, ignore_errors=True)
        return
    for name in tables:  # one that has lost a file would pass for somebody else's, too
        (run / name).unlink(missing_ok=True)
    with suppress(OSError):  # there is none, or it holds something else
        (run / "tables").rmdir()
