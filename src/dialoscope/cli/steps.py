"""The progress of a study: a bar for the step that runs, a line for each that has ended."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from dialoscope.progress import Progress as OnProgress
    from dialoscope.study.steps import Step


class StepBars:
    """On standard error, where somebody is looking: bars on a terminal, lines in a log, nothing where it is quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self.console, self.quiet = Console(stderr=True), quiet
        self.bar: Progress | None = None
        self.task: Any = None

    def __enter__(self) -> StepBars:
        if not self.quiet and self.console.is_terminal:
            columns = [TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()]
            self.bar = Progress(*columns, console=self.console, transient=True)
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def begin(self, step: str) -> OnProgress | None:
        """A new bar, in the place of the last."""
        if self.bar is None:
            return None
        self._clear()
        bar, task = self.bar, self.bar.add_task(escape(step), total=None)
        self.task = task
        return lambda done, total: bar.update(task, completed=done, total=total)

    def end(self, step: Step) -> None:
        """A line that stays."""
        self._clear()
        if self.quiet:
            return
        how = "reused" if step.is_reused else f"{step.state}, {step.seconds:.1f} s"
        self.console.print(f"{escape(step.name)}: {how}", highlight=False)

    def _clear(self) -> None:
        if self.bar is not None and self.task is not None:
            self.bar.remove_task(self.task)
            self.task = None
