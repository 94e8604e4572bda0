"""Runs what is missing of a study, reuses what is there, continues after a failure, and writes one page.

::

    DIR/study.json        the plan, and every step: what it depends on, how it ended, how long it took
    DIR/report.html       one page
    DIR/runs/NAME-KEY/    the result of each step; the key is of everything that its numbers depend on
    DIR/models/NAME-KEY/  models that were trained for the study
    DIR/failures/NAME     the trace of a step that failed
    DIR/unfinished/       portions of a step that was interrupted
    DIR/.dialoscope-lock  held while a study is running here
"""

from __future__ import annotations

import json
import shutil
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from dialoscope.corpus import Corpus
from dialoscope.errors import DialoscopeError, MissingExtraError, OutputError, UsageError
from dialoscope.files import whole_file
from dialoscope.fingerprint import content_of, digest
from dialoscope.instruments import QUESTIONS
from dialoscope.progress import Progress
from dialoscope.record import SCHEMA_VERSION, version
from dialoscope.report.anchor import slug
from dialoscope.report.corpus import describe
from dialoscope.report.run import RESULT, is_whole, read_json
from dialoscope.study.plan import Plan, Task, plan_of, read_plan, with_digest
from dialoscope.study.resources import Model, NotTrainedYet, Resources, foreseen, is_missing, paths_in
from dialoscope.study.steps import BOOK, KEY_LETTERS, State, Step, check_own, kept_steps, study_lock

NOT_IN_KEY = ("device", "batch_size")  # settings of speed and memory alone; every other one may change a result


class Watcher(Protocol):
    """What is told how a study goes."""

    def begin(self, step: str) -> Progress | None:
        """A step begins; what is returned is told how far it is."""
        ...

    def end(self, step: Step) -> None:
        """A step has ended."""
        ...


@dataclass(frozen=True)
class Study:
    """Where the page is, and how every step ended."""

    folder: Path
    steps: Sequence[Step]
    skipped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # records of each corpus, by reason

    @property
    def report(self) -> Path:
        """The page."""
        return self.folder / "report.html"

    @property
    def failed(self) -> list[Step]:
        """Steps that failed."""
        return [step for step in self.steps if step.state == "failed"]

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """The result of each step, as its result.json has it."""
        return {step.name: read_json(self.folder / step.run / RESULT) for step in self.steps if step.state == "done"}

    def to_dict(self) -> dict[str, Any]:
        """The study as JSON has it."""
        steps = [{**step.to_dict(), "reused": step.is_reused} for step in self.steps]
        skipped = {name: dict(reasons) for name, reasons in self.skipped.items()}
        return {"report": str(self.report), "steps": steps, "skipped": skipped, "results": self.results}

    def __repr__(self) -> str:
        done = sum(step.state == "done" for step in self.steps)
        return f"<Study {self.report}: {done} of {len(self.steps)} steps done>"


def run(
    plan: Plan | Mapping[str, Any] | str | Path,
    out: str | Path = "study",
    *,
    corpora: Mapping[str, Corpus] | None = None,
    watcher: Watcher | None = None,
    on_problem: Callable[[str], None] = lambda problem: None,
) -> Study:
    """Run a study into a folder; called again, it runs only what is missing.

    The plan is a TOML file, or a table of the same form. `corpora` are corpora in memory by their names in the plan.
    `on_problem` is told at once what is going to fail, as far as that can be seen; the other steps are run.

    >>> run("study.toml", out="study").report                           # doctest: +SKIP
    """
    from dialoscope.model.sharing import shared_models

    plan, folder = as_plan(plan), Path(out)
    check_device(plan.device)
    with study_lock(folder), shared_models():
        session = Session(plan, folder, corpora or {}, watcher)
        for name, problem in foreseen(plan).items():
            on_problem(f"{name} will fail: {problem}")
        for task in plan.tasks:
            session.run(task)
        if plan.against is not None:
            session.compare_with(Path(plan.against))
        return session.finish()


def as_plan(plan: Plan | Mapping[str, Any] | str | Path) -> Plan:
    """A plan from whatever may stand for one."""
    if isinstance(plan, str | Path):
        return read_plan(plan)
    if isinstance(plan, Mapping):
        return plan_of(plan)
    if not isinstance(plan, Plan):
        raise UsageError(f"A study takes a TOML file, a table or a Plan, found {type(plan).__name__}.")
    return plan


def check_device(device: str) -> None:
    """Refuse a device that cannot be used, before other steps have taken hours."""
    from dialoscope.model.loading import choose_device, require_torch

    if device == "auto":
        return
    try:
        require_torch("A device")
    except MissingExtraError:  # then nothing will run on it
        return
    choose_device(device)


class Session:
    """One call of `run`: the resources, the steps so far, and study.json."""

    def __init__(self, plan: Plan, folder: Path, corpora: Mapping[str, Corpus], watcher: Watcher | None) -> None:
        self.plan, self.folder, self.watcher = plan, folder, watcher
        self.resources = Resources(plan, folder, corpora, self, trains=True)
        pending = [Step(task.name, task.question, task.corpus, "pending", task.asked, task.models)
                   for task in plan.tasks]  # fmt: skip
        compared = [] if plan.against is None else [Step("compared", "compare", "", "pending")]
        self.known = {step.name: step for step in kept_steps(folder)}  # of an earlier call: how long steps took
        self.steps = {step.name: step for step in [*pending, *compared]}
        self.taken: list[Step] = []
        self._save()  # first of all, so that an interrupted study is recognised

    def run(self, task: Task) -> None:
        """Answer one question, unless it was answered before with everything that it depends on unchanged."""
        begin = time.monotonic()
        step = Step(task.name, task.question, task.corpus, "done", task.asked, task.models)
        try:
            check_paths(task)
            models = self.resources.models_for(task)
            step = self._keyed(step, task, models)
            if not is_whole(self.folder / step.run):
                models = self.resources.models_for(task, is_opened=True)
                step = self._keyed(step, task, models)  # one of them may not open
            if is_whole(self.folder / step.run):
                known = self.known.get(step.name)
                seconds = known.seconds if known is not None and known.key == step.key else 0.0
                self._end(replace(step, seconds=seconds, is_reused=True))
                return
            self._measure(step, task, models)
        except MissingExtraError as error:
            step = replace(step, state="skipped", reason=str(error))
        except Exception as error:  # whatever breaks one step must not take the others with it
            step = replace(step, state="failed", reason=reason_of(error))
            self._keep_trace(task.name, error)
        self._end(replace(step, seconds=round(time.monotonic() - begin, 3)))

    def _keyed(self, step: Step, task: Task, models: Mapping[str, Model]) -> Step:
        key = key_of(task, self.resources, models)
        left_out = tuple(name for name in task.models if name not in models)
        run = f"runs/{task.name}-{key[:KEY_LETTERS]}"
        return replace(step, key=key, run=run, models=tuple(models), left_out=left_out)

    def _measure(self, step: Step, task: Task, models: Mapping[str, Model]) -> None:
        corpus = self.resources.corpus_for(task, models) if task.corpus else None
        progress = None if self.watcher is None else self.watcher.begin(step.name)
        work = self.folder / "unfinished" / f"{step.name}-{step.key[:KEY_LETTERS]}"
        options: dict[str, Any] = {"settings": task.settings}
        if task.question != "metrics":  # which asks no models, and is done at once
            against = {name: self.resources.corpus(name) for name in task.against} or None
            paths = {name: model.path for name, model in models.items()} or None
            options |= {"against": against, "models": paths, "work": work, "progress": progress}
        if task.question == "corpus":
            result = describe(self.resources.corpus(task.corpus))
        elif task.question == "ratings":
            result = QUESTIONS[task.question].measure(list(task.files["rated"]), **options)
        elif task.question == "metrics":
            system, *others = task.files["hypotheses"]
            options["against"] = {Path(path).name: path for path in others}
            result = QUESTIONS[task.question].measure(system, task.files["references"][0], **options)
        else:
            result = QUESTIONS[task.question].measure(corpus, **options)
        self._write(result, step)
        shutil.rmtree(work, ignore_errors=True)

    def _write(self, result: Any, step: Step) -> None:
        try:
            result.save(self.folder / step.run, overwrite=True)
        except OutputError:  # a damaged result, whose files would pass for somebody else's: the folder is the study's
            shutil.rmtree(self.folder / step.run, ignore_errors=True)
            result.save(self.folder / step.run)

    def _end(self, step: Step) -> None:
        if step.state == "done":
            self._trace(step.name).unlink(missing_ok=True)
        self.taken.append(step)
        self.steps[step.name] = step
        self._save()
        if self.watcher is not None:
            self.watcher.end(step)

    def _save(self) -> None:
        head = {"schema_version": SCHEMA_VERSION, "title": self.plan.title, "version": version()}
        steps = [step.to_dict() for step in self.steps.values()]
        text = json.dumps({**head, "plan": self.plan.to_dict(), "steps": steps}, indent=2)
        with whole_file(self.folder / BOOK) as unfinished:
            unfinished.write_text(text + "\n", encoding="utf-8")

    # --- What the resources report ------------------------------------------------------------------------------------

    def begin(self, name: str) -> Progress | None:
        """A corpus is read, or a model is loaded or trained."""
        return None if self.watcher is None else self.watcher.begin(name)

    def loaded(self, name: str) -> None:
        """The trace of an earlier call is not needed any more."""
        self._trace(name).unlink(missing_ok=True)

    def lost(self, name: str, error: Exception, seconds: float) -> None:
        """A model that cannot be loaded is a step of its own, so that the page shows it."""
        state: State = "skipped" if isinstance(error, MissingExtraError) else "failed"
        if state == "failed":
            self._keep_trace(name, error)
        self._end(Step(name, "model", "", state, reason=reason_of(error), seconds=round(seconds, 3)))

    # --- The end ------------------------------------------------------------------------------------------------------

    def _trace(self, name: str) -> Path:
        short = slug(name, default="step")
        return self.folder / "failures" / f"{name if short == name else with_digest(short, [name])}.txt"

    def _keep_trace(self, name: str, error: Exception) -> None:
        path = self._trace(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as unfinished:
            unfinished.write_text("".join(traceback.format_exception(error)), encoding="utf-8")

    def compare_with(self, earlier: Path) -> None:
        """Compare with an earlier study: a step like the others, made again in every call."""
        from dialoscope.study.compare import compare

        step, begin = Step("compared", "compare", "", "done", run="runs/compared"), time.monotonic()
        try:
            self._write(compare(earlier, self.folder), step)
        except Exception as error:  # an earlier study's fault must not cost this one its page
            step = replace(step, state="failed", reason=reason_of(error), run="")
            self._keep_trace(step.name, error)
        self._end(replace(step, seconds=round(time.monotonic() - begin, 3)))

    def finish(self) -> Study:
        """Write the page and say how it went."""
        from dialoscope.study.page import write_page

        self.steps = {step.name: step for step in self.taken}
        self._save()
        if not any(step.state == "failed" for step in self.taken):
            shutil.rmtree(self.folder / "unfinished", ignore_errors=True)
        write_page(self.folder, self.plan, self.taken, self.resources.was_split)
        corpora = self.resources.corpora
        skipped = {name: dict(corpus.skipped) for name, corpus in corpora.items() if corpus.skipped}
        return Study(self.folder, self.taken, skipped)


def key_of(task: Task, resources: Resources, models: Mapping[str, Model]) -> str:
    """A hash of everything that a task's result depends on: its numbers, its pictures and what it says was skipped."""
    corpora = [resources.corpus_for(task, models)] if task.corpus else []
    corpora += [resources.corpus(name) for name in task.against]
    settings = {name: value for name, value in task.settings.to_dict().items() if name not in NOT_IN_KEY}
    parts: list[Any] = [
        version(),
        task.question,
        settings,
        [[each.name, each.fingerprint, dict(each.skipped), dict(each.ignored)] for each in corpora],
        {name: model.identity for name, model in models.items()},
        [[key, path, content_of_setting(key, path)] for key, path in paths_in(task)],
    ]
    if task.question == "corpus":  # it also shows how the dialogues were read
        parts.append(corpora[0].format)
    return digest(parts)


def content_of_setting(key: str, path: str) -> str:
    """A hash of what a setting names: of the files, or the word and the version of an encoder that packages carry."""
    from dialoscope.engage.packaged import PACKAGED, installed_versions

    if key == "encoder" and path in PACKAGED:
        return digest([path, installed_versions(path)])
    return content_of(path)


def check_paths(task: Task) -> None:
    """Refuse a setting that names a file which is not there."""
    for key, path in paths_in(task):
        if is_missing(path):
            raise UsageError(f"[{task.question}] {key}: expected a file or folder at '{path}', found nothing.")


def reason_of(error: Exception) -> str:
    """An error in one line."""
    said = " ".join(str(error).split())
    return said if isinstance(error, DialoscopeError) else f"{type(error).__name__}: {said}"


# --- A run without running --------------------------------------------------------------------------------------------


class Silent:
    """A listener that tells nobody."""

    def begin(self, name: str) -> Progress | None:
        """Nothing."""
        return None

    def loaded(self, name: str) -> None:
        """Nothing."""

    def lost(self, name: str, error: Exception, seconds: float) -> None:
        """Nothing."""


def planned(
    plan: Plan | Mapping[str, Any] | str | Path, out: str | Path, *, corpora: Mapping[str, Corpus] | None = None
) -> list[dict[str, Any]]:
    """The steps of a plan, the dialogues that each reads, and whether it is done; nothing is run or written."""
    plan, folder = as_plan(plan), Path(out)
    check_device(plan.device)
    check_own(folder)
    resources = Resources(plan, folder, corpora or {}, Silent(), trains=False)
    rows = []
    for task in plan.tasks:
        row: dict[str, Any] = {"step": task.name, "corpus": task.corpus, "models": list(task.models), "dialogues": None}
        try:
            check_paths(task)
            row["dialogues"] = len(resources.corpus(task.corpus)) if task.corpus else None
            key = key_of(task, resources, resources.models_for(task))
            is_done = is_whole(folder / f"runs/{task.name}-{key[:KEY_LETTERS]}")
            rows.append({**row, "state": "done" if is_done else "to do"})
        except NotTrainedYet:
            rows.append({**row, "state": "to do, with training"})
        except MissingExtraError as error:
            rows.append({**row, "state": f"would be skipped: {error}"})
        except Exception as error:
            rows.append({**row, "state": f"would fail: {reason_of(error)}"})
    broken = {name: error for name, error in resources.broken.items() if name.startswith("model ")}
    for name, lost in broken.items():
        state = "would be skipped" if isinstance(lost, MissingExtraError) else "would fail"
        rows.append({"step": name, "corpus": "", "models": [], "dialogues": None, "state": f"{state}: {lost}"})
    if plan.against is not None:
        told = foreseen(plan).get("compared")
        state = "to do" if told is None else f"would fail: {told}"
        rows.append({"step": "compared", "corpus": "", "models": [], "dialogues": None, "state": state})
    return rows
