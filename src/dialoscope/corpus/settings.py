"""What can be chosen when a corpus is shown, checked, converted, drawn from, or generated."""

from __future__ import annotations

from dataclasses import dataclass

from dialoscope.settings import BaseSettings, option

TARGETS = ("messages", "parquet", "text", "hf")


@dataclass(frozen=True, kw_only=True)
class ReadSettings(BaseSettings):
    """Which dialogues are read."""

    split: str | None = option(None, "Only this split; several: train,test.", group="Data")
    limit: int | None = option(None, "Maximum dialogues of each split.", group="Data", least=1)


@dataclass(frozen=True, kw_only=True)
class ConvertSettings(ReadSettings):
    """What is written, and in which format."""

    to: str | None = option(
        None, "Format to write. Default: what the name in --out ends in.", choices=TARGETS, group="Output"
    )
    merge_turns: bool = option(False, "Join consecutive messages of one speaker.", group="Data")


@dataclass(frozen=True, kw_only=True)
class SampleSettings(BaseSettings):
    """How many dialogues are drawn."""

    split: str | None = option(None, "Only this split; several: train,test.", group="Data")
    dialogues: int = option(100, "Dialogues to draw from each split.", group="Data", least=1)
    to: str | None = option(
        None, "Format to write. Default: what the name in --out ends in.", choices=TARGETS, group="Output"
    )
    seed: int = option(0, "Random seed of the draw.", group="Statistics", least=0)


@dataclass(frozen=True, kw_only=True)
class ConciergeSettings(BaseSettings):
    """Size and seed of a corpus like the built-in one, which these defaults give."""

    dialogues: int = option(5000, "Number of dialogues.", group="Data", least=1, most=10_000_000)
    to: str | None = option(
        None, "Format to write. Default: what the name in --out ends in.", choices=TARGETS, group="Output"
    )
    seed: int = option(7, "Random seed. The built-in corpus has 7.", group="Statistics", least=0)
