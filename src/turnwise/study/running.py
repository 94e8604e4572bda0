"""Run what is missing of a study, reuse what is there, go on after a failure, and join it all on one page.

::

    DIR/study.json      every step: what it depends on, how it ended, how long it took
    DIR/report.html     one page
    DIR/runs/NAME-KEY/  a run for each step (see `turnwise.report.run`); the key is of all that its numbers depend on
    DIR/models/NAME/    models that were trained on the spot
    DIR/failures/NAME   the trace of a step that failed
    DIR/unfinished/     what a step that was broken off goes on from
    DIR/.turnwise-lock  held while a study is at work here
"""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from turnwise.atomic import whole_file
from turnwise.corpus import Corpus, resplit
from turnwise.errors import MissingExtraError, TurnwiseError, UsageError
from turnwise.instruments import INSTRUMENTS, Bench, CorpusShown, Progress
from turnwise.record import Origin, version
from turnwise.report import read_run, render, write_run
from turnwise.report.anchor import free_name, slug
from turnwise.report.run import FILES, table_files
from turnwise.study.book import Book, Step, at_work, check_own
from turnwise.study.compare import compare, section_of
from turnwise.study.folders import read_runs
from turnwise.study.keys import digest, fingerprint
from turnwise.study.models import Models, Source, check_there, found_source, trained_folder, trained_source
from turnwise.study.page import overall, sections_of
from turnwise.study.plan import Ask, ModelWish, Plan, check_device, check_paths

Found = TypeVar("Found")
KEY_LETTERS = 12  # of a step's key, in the name of its folder
COMPARED = Step("compared", "compare", "", "pending")  # with an earlier study
HELD_OUT = 10  # of a corpus with one split, one in so many dialogues, twice


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
        for name, ask, corpus in _steps(plan):
            session.take(name, ask, corpus)
        if plan.against is not None:
            session.hold_against(Path(plan.against))
        return session.finish()


def planned(plan: Plan, out: str | Path, *, given: Mapping[str, Corpus] | None = None) -> list[dict[str, Any]]:
    """The steps of a plan, how many dialogues each reads, and whether it is done; nothing is run or written.

    Of a step that is to do, `seconds` is what it took when it was last done in this folder, `training_seconds` of them
    for models that have to be trained again; None is not known.
    """
    check_device(plan)
    check_own(Path(out))
    session = _Session(plan, Path(out), dict(given or {}), Unseen(), is_dry=True)
    session.look_for_models()
    rows = [session.looked_at(name, ask, corpus) for name, ask, corpus in _steps(plan)]
    back = [] if plan.against is None else [session.looked_back(Path(plan.against))]
    shown = len(plan.corpora)
    return [*rows[:shown], *session.lost_models(), *rows[shown:], *back]


def foreseen(plan: Plan) -> list[str]:
    """What will fail of a plan, as far as a glance shows before hours of work; its corpora are read first anyway."""
    looks: dict[str, Callable[[], object]] = {}
    for ask in plan.asks:
        looks |= {f"model {name}": partial(check_there, plan.models[name])
                  for name in ask.models if plan.models[name].path is not None}  # fmt: skip
        looks[ask.name] = partial(check_paths, ask)
    if plan.against is not None:
        looks[COMPARED.name] = partial(read_runs, [Path(plan.against)])
    found = {name: _complaint(look) for name, look in looks.items()}
    return [f"{name} will fail: {told}" for name, told in found.items() if told is not None]


def _complaint(look: Callable[[], object]) -> str | None:
    try:
        look()
    except MissingExtraError:  # no failure: its step is left out
        return None
    except TurnwiseError as error:
        return _told(error)
    return None


def _steps(plan: Plan) -> list[tuple[str, Ask, str]]:
    """Every corpus itself, then every instrument on each of its corpora; each with a name that a folder can have."""
    shown = Ask("corpus", "corpus", CorpusShown(), tuple(plan.corpora))
    taken: set[str] = set()
    found = []
    for ask in (shown, *plan.asks):
        for corpus in ask.corpora:
            name = free_name(slug(f"{ask.name}-{corpus}", default=ask.instrument), taken)
            taken.add(name)
            found.append((name, ask, corpus))
    return found


def _pending(plan: Plan) -> list[Step]:
    """What a plan will have done."""
    found = [Step(name, ask.instrument, corpus, "pending", asked=ask.name) for name, ask, corpus in _steps(plan)]
    return found if plan.against is None else [*found, COMPARED]


class _Untrained(Exception):
    """A model that a dry run would have to train."""


class _Session:
    """One call of `run_study`: corpora and models that were had so far, and the book."""

    def __init__(
        self, plan: Plan, folder: Path, corpora: dict[str, Corpus], watcher: Watcher, *, is_dry: bool = False
    ) -> None:
        self.plan, self.folder, self.watcher = plan, folder, watcher
        self.corpora = corpora
        self.dealt: dict[str, Corpus] = {}
        self.sources: dict[str, Source] = {}
        self.models: Models | None = None
        self.broken: dict[str, Exception] = {}  # corpora and models that could not be had
        self.proved: set[str] = set()  # models that were loaded once
        self.is_dry = is_dry
        self.training = 0.0  # seconds of the step that is being taken
        self.book = (
            Book.look(folder, plan.title) if is_dry else Book.open(folder, plan.title, _pending(plan), plan.to_dict())
        )
        self.taken: list[Step] = []

    def take(self, name: str, ask: Ask, corpus: str) -> None:
        """Do a step, unless it was done before with all that it depends on unchanged."""
        begin, self.training = time.monotonic(), 0.0
        step = Step(name, ask.instrument, corpus, "done", asked=ask.name)
        try:
            check_paths(ask)
            data = self._given(ask, corpus)
            sources = self._available(ask)
            step = self._keyed(step, ask, data, sources)
            if not is_whole(self.folder / step.run) and (loaded := self._loadable(ask, sources)) != sources:
                sources = loaded
                step = self._keyed(step, ask, data, sources)
            if is_whole(self.folder / step.run):
                kept = self.book.steps.get(name)
                took = (kept.seconds, kept.training) if kept is not None and kept.key == step.key else (0.0, 0.0)
                self._end(replace(step, seconds=took[0], training=took[1], is_reused=True))
                return
            _clear_tables(self.folder / step.run)
            self._run(step, ask, data, sources)
        except MissingExtraError as error:
            step = replace(step, state="skipped", reason=str(error))
        except Exception as error:  # whatever breaks one step must not take the others with it
            step = replace(step, state="failed", reason=_told(error))
            self._keep_trace(name, error)
        self._end(replace(step, seconds=round(time.monotonic() - begin, 3), training=round(self.training, 3)))

    def looked_at(self, name: str, ask: Ask, corpus: str) -> dict[str, Any]:
        """A step without doing it."""
        row = _row(name, corpus, ask.models)
        try:
            check_paths(ask)
            data = self._given(ask, corpus)
            row["dialogues"] = len(data)
            step = self._keyed(Step(name, ask.instrument, corpus, "pending"), ask, data, self._available(ask))
            is_done = is_whole(self.folder / step.run)
            return {**row, "state": "done"} if is_done else {**row, "state": "to do", **self._last_time(name)}
        except _Untrained:
            return {**row, "state": "to do, with training", **self._last_time(name, has_training=True)}
        except MissingExtraError as error:
            return {**row, "state": f"would be left out: {error}"}
        except Exception as error:
            return {**row, "state": f"would fail: {_told(error)}"}

    def look_for_models(self) -> None:
        """Look for all models that should be there: what is said of one must not hide the others."""
        for name in dict.fromkeys(name for ask in self.plan.asks for name in ask.models):
            if self.plan.models[name].path is not None:
                with suppress(Exception):  # kept among the broken
                    self.sources[name] = self._had(f"model {name}", partial(self._source, name))

    def lost_models(self) -> list[dict[str, Any]]:
        """Models that a run would go on without."""
        lost = {name: error for name, error in self.broken.items() if name.startswith("model ")}
        rows = []
        for name, error in lost.items():
            if isinstance(error, MissingExtraError) and self.sources:
                rows.append({**_row(name, ""), "state": f"would be left out: {error}"})
            elif not isinstance(error, MissingExtraError | _Untrained):
                rows.append({**_row(name, ""), "state": f"would fail: {_told(error)}"})
        return rows

    def looked_back(self, earlier: Path) -> dict[str, Any]:
        """The comparison with an earlier study, without doing it."""
        row = _row(COMPARED.name, COMPARED.corpus)
        try:
            read_runs([earlier])
        except UsageError as error:
            return {**row, "state": f"would fail: {error}"}
        return {**row, "state": "to do", **self._last_time(COMPARED.name)}

    def _last_time(self, name: str, *, has_training: bool = False) -> dict[str, float | None]:
        """How long a step took when it was last done, whatever it was told; with training only where that is due."""
        last = self.book.steps.get(name)
        if last is None or last.state not in ("done", "pending") or not last.seconds:  # 0: killed before it was noted
            return {}
        if has_training:
            return {"seconds": last.seconds, "training_seconds": last.training or None}
        return {"seconds": round(last.seconds - last.training, 3)}

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
            models=self._loaded(sources),
            paths={name: one.path for name, one in sources.items()},
            seed=self.plan.seed,
            device=self.plan.device,
            progress=self.watcher.begin(step.name),
        )
        INSTRUMENTS[ask.instrument].run(bench, ask.wish)
        shutil.rmtree(work, ignore_errors=True)

    # --- What a step needs --------------------------------------------------------------------------------------------

    def _corpus(self, name: str) -> Corpus:
        if name not in self.corpora:
            self.corpora[name] = self._had(f"corpus {name}", lambda progress: self.plan.load(name, progress=progress))
        return self.corpora[name]

    def _given(self, ask: Ask, name: str) -> Corpus:
        """The corpus as the instrument is given it; models learn from the same splits."""
        corpus = self._corpus(name)
        return self._dealt(name) if INSTRUMENTS[ask.instrument].is_dealt else corpus

    def _dealt(self, name: str) -> Corpus:
        """A corpus of one split is dealt once for the whole study, or models would be asked what they learnt."""
        if name not in self.dealt:
            self.dealt[name] = dealt(self._corpus(name), self.plan.seed)
        return self.dealt[name]

    def _available(self, ask: Ask) -> dict[str, Source]:
        """The models that can be had; a step goes on with those, and the others stand among the failures."""
        without: dict[str, MissingExtraError] = {}
        untrained: _Untrained | None = None
        # Those that are there come first: that one is not should be known before others are trained for hours.
        for name in sorted(ask.models, key=lambda name: self.plan.models[name].path is None):
            if name not in self.sources:
                try:
                    self.sources[name] = self._had(f"model {name}", partial(self._source, name))
                except MissingExtraError as error:
                    without[name] = error
                except _Untrained as error:
                    untrained = error
                except Exception:
                    continue
        if untrained is not None:
            raise untrained
        found = {name: self.sources[name] for name in ask.models if name in self.sources}
        if ask.models and not found:
            raise next(iter(without.values()), UsageError("None of its models can be loaded."))
        self._leave_out(without)
        return found

    def _leave_out(self, without: Mapping[str, MissingExtraError]) -> None:
        """Say once of each model what is not installed for it."""
        for name, error in without.items():
            step = Step(f"model {name}", "model", "", "skipped", reason=str(error))
            if not self.is_dry and step not in self.taken:
                self._end(step)

    def _loadable(self, ask: Ask, sources: Mapping[str, Source]) -> dict[str, Source]:
        """Those of the models that can be loaded: tried before the step, which one of them would take down with it."""
        models = self._loaded(sources)
        for name in sources:
            if name not in self.proved:
                try:
                    self._had(f"model {name}", lambda progress, name=name: models[name])  # type: ignore[misc]
                    self.proved.add(name)
                except Exception:  # kept among the broken
                    del self.sources[name]
        return self._available(ask)

    def _source(self, name: str, progress: Progress | None) -> Source:
        wish = self.plan.models[name]
        if wish.path is not None:
            return found_source(wish, device=self.plan.device)
        corpus = self._dealt(wish.corpus or next(iter(self.plan.corpora)))
        models = self.folder / "models"
        if self.is_dry:
            return self._already_trained(wish, name, corpus, models)
        is_new = not (trained_folder(wish, name, corpus, models, device=self.plan.device) / "best").is_dir()
        begin = time.monotonic()
        found = trained_source(wish, name, corpus, models, device=self.plan.device, progress=progress)
        self.training += time.monotonic() - begin if is_new else 0.0
        return found

    def _already_trained(self, wish: ModelWish, name: str, corpus: Corpus, models: Path) -> Source:
        found = trained_folder(wish, name, corpus, models, device=self.plan.device) / "best"
        if not found.is_dir():
            raise _Untrained
        return found_source(replace(wish, path=str(found), preset=None), device=self.plan.device)

    def _loaded(self, sources: Mapping[str, Source]) -> Models:
        """One set of models for all steps that ask the same ones, so that they are loaded once."""
        if self.models is None or self.models.sources != sources:
            self.models = Models(sources)
        return self.models

    def _had(self, name: str, get: Callable[[Progress | None], Found]) -> Found:
        """Something that several steps need: tried once, and told as a step of its own where it fails."""
        if name in self.broken:
            raise self.broken[name]
        begin = time.monotonic()
        try:
            found = get(self.watcher.begin(name))
            if not self.is_dry:
                self._trace(name).unlink(missing_ok=True)  # of an earlier call
            return found
        except Exception as error:
            self.broken[name] = error
            if self.is_dry:
                raise
            if name.startswith("model ") and not isinstance(error, MissingExtraError):
                self._keep_trace(name, error)
                seconds = round(time.monotonic() - begin, 3)
                self._end(Step(name, "model", "", "failed", reason=_told(error), seconds=seconds))
            raise

    def _keyed(self, step: Step, ask: Ask, corpus: Corpus, sources: Mapping[str, Source]) -> Step:
        key = self._key(ask, corpus, sources)
        return replace(step, key=key, run=f"runs/{step.name}-{key[:KEY_LETTERS]}")

    def _key(self, ask: Ask, corpus: Corpus, sources: Mapping[str, Source]) -> str:
        models = {name: one.identity for name, one in sources.items()}
        read = {path: fingerprint(path) for path in INSTRUMENTS[ask.instrument].reads(ask.wish)}
        parts = [version(), ask.to_dict(), corpus.name, corpus.fingerprint, models, read, self.plan.seed]
        if ask.instrument == "corpus":  # it also shows how the dialogues were read, of which they know nothing
            parts += [corpus.format, dict(corpus.skipped), dict(corpus.ignored)]
        return digest(parts)

    # --- The end ------------------------------------------------------------------------------------------------------

    def _trace(self, name: str) -> Path:
        return self.folder / "failures" / f"{slug(name, default='step')}.txt"

    def _keep_trace(self, name: str, error: Exception) -> None:
        path = self._trace(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as unfinished:
            unfinished.write_text("".join(traceback.format_exception(error)), encoding="utf-8")

    def dealt_names(self) -> list[str]:
        """Corpora of one split that were dealt."""
        return [name for name, one in self.dealt.items() if one is not self.corpora[name]]

    def hold_against(self, earlier: Path) -> None:
        """Compare with an earlier study; a step like the others, done anew each time."""
        step, begin = replace(COMPARED, state="done", run="runs/compared"), time.monotonic()
        try:
            compared = compare(earlier, self.folder)
            section = section_of(compared)
            write_run(
                self.folder / step.run,
                instrument="compare",
                data=compared.to_dict(),
                section=section,
                origin=section.origin or Origin(),
            )
        except Exception as error:  # an earlier study's fault must not cost this one its page
            step = replace(step, state="failed", reason=_told(error))
            self._keep_trace(step.name, error)
        self._end(replace(step, seconds=round(time.monotonic() - begin, 3)))

    def finish(self) -> Study:
        """Write the page and say how it went."""
        self.book.keep([one.name for one in self.taken])
        sections = sections_of(self.folder, self.taken, self.plan, dealt=[*self.dealt_names()])
        if not any(one.state == "failed" for one in self.taken):
            shutil.rmtree(self.folder / "unfinished", ignore_errors=True)
        found = list(zip(self.taken, sections, strict=False))  # the last one is of the steps themselves
        page = render(self.plan.title, sections, subtitle=", ".join(self.plan.corpora), overall=overall(found))
        with whole_file(self.folder / "report.html") as unfinished:
            unfinished.write_text(page, encoding="utf-8", newline="\n")
        verdicts = {one.name: section.verdict.line if section.verdict else section.lead for one, section in found}
        left_out = {name: dict(one.skipped) for name, one in self.corpora.items() if one.skipped}
        return Study(self.folder / "report.html", self.folder, self.taken, verdicts, left_out)


def dealt(corpus: Corpus, seed: int) -> Corpus:
    """A corpus of one split with one in ten dialogues held out for validation and one for testing; others unchanged."""
    if len(corpus.splits) > 1 or len(corpus) < HELD_OUT:
        return corpus
    count = len(corpus) // HELD_OUT
    return resplit(corpus, validation=count, test=count, seed=seed)


def is_whole(run: Path) -> bool:
    """Whether a run is there with all of its files."""
    try:
        kept = read_run(run)
    except UsageError:
        return False
    return all((run / name).is_file() for name in (*FILES, *kept.files, *table_files(kept.section)))


def _clear_tables(run: Path) -> None:
    """Delete the tables of a run that is made again: one that has lost a file would pass for somebody else's."""
    with suppress(UsageError):  # nothing is there, or nothing that can be read
        for name in table_files(read_run(run).section):
            (run / name).unlink(missing_ok=True)
    with suppress(OSError):  # there is none, or it holds something else
        (run / "tables").rmdir()


def _row(step: str, corpus: str, models: Sequence[str] = ()) -> dict[str, Any]:
    known = {"step": step, "corpus": corpus, "models": ", ".join(models)}
    return {**known, "dialogues": None, "seconds": None, "training_seconds": None}


def _told(error: Exception) -> str:
    said = " ".join(str(error).split())
    return said if isinstance(error, TurnwiseError) else f"{type(error).__name__}: {said}"
