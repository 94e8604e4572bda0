"""What filter and clean return: the data that was kept and dropped, a ledger, and a folder to write them to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import orjson

from dialoscope.record import Origin, Scores
from dialoscope.report.run import record_of, write_result_folder
from dialoscope.report.section import Section
from dialoscope.settings import BaseSettings


@dataclass(frozen=True, eq=False, kw_only=True)
class Made:
    """Data that was kept, data that was dropped, and a ledger that names the reason and the partner of each drop."""

    instrument: ClassVar[str]

    settings: BaseSettings
    parts: Mapping[str, int]  # dialogues by split
    used: str  # one sentence: which dialogues were used for what
    counts: Mapping[str, Any]
    origin: Origin

    def ledger(self) -> Iterator[dict[str, Any]]:
        """A row for each drop."""
        raise NotImplementedError

    def section(self) -> Section:
        """What was kept and dropped, as a section of a page."""
        raise NotImplementedError

    def fill(self, folder: Path) -> None:
        """Write the data into a folder."""
        raise NotImplementedError

    def scores(self) -> Scores:
        """The numbers that were measured on the way."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """The record as `result.json` and `--json` have it."""
        return record_of(self, self.instrument, self.scores())

    def save(self, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write the data, `ledger.jsonl`, `result.json` and a page into a folder, whole or not at all."""
        return write_result_folder(
            out,
            head=self.to_dict(),
            section=self.section(),
            origin=self.origin,
            overwrite=overwrite,
            fill=self._fill,
        )

    def _fill(self, folder: Path) -> None:
        self.fill(folder)
        with (folder / "ledger.jsonl").open("wb") as file:
            file.writelines(orjson.dumps(row) + b"\n" for row in self.ledger())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.origin.corpus.partition('@')[0]}: {self.used}>"
