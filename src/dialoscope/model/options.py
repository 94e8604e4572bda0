"""Options that every question to a model has: where it runs, how exact, how many contexts at once."""

from __future__ import annotations

from dataclasses import dataclass

from dialoscope.settings import BaseSettings, option

DTYPES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True, kw_only=True)
class ModelOptions(BaseSettings):
    """How models are run; the settings of questions that ask models inherit these."""

    device: str = option("auto", "Where models run: auto, cpu, cuda or cuda:N.", group="Models", decides=False)
    dtype: str = option("float32", "Number type of the weights.", group="Models", choices=DTYPES)
    batch_size: int = option(64, "Contexts computed together.", group="Models", least=1, decides=False)
