"""Progress of long work, reported to a function as the steps done and the steps in all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Progress = Callable[[int, int], None]  # steps done, steps in all


@dataclass
class Stages:
    """One bar for work in stages, each of which counts from 0."""

    progress: Progress | None
    total: int
    done: int = 0

    def next(self) -> Progress:
        """The progress of the next stage."""
        before = self.done

        def report(done: int, _: int) -> None:
            self.done = before + done
            if self.progress is not None:
                self.progress(self.done, self.total)

        return report
