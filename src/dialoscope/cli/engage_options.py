"""What the engage commands share: options, predictors as they were asked for, and how scores are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialoscope.cli.console import print_json, print_table
from dialoscope.cli.model import named_paths
from dialoscope.errors import UsageError

if TYPE_CHECKING:
    from dialoscope.engage.estimate import Estimate
    from dialoscope.engage.predictor import Predictor

INPUT = "-"  # standard input
BAR = 20  # characters that a score of 1 is wide

Model = Annotated[str, typer.Argument(help="A folder written by dialoscope engage train.", metavar="MODEL")]
Models = Annotated[list[str], typer.Argument(help="Folders of dialoscope engage train; NAME=PATH names one.")]
Out = Annotated[Path | None, typer.Option("--out", help="Folder for the report and the numbers.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]
Dtype = Annotated[str, typer.Option("--dtype", help="float32 or bfloat16.")]
BatchSize = Annotated[
    int | None,
    typer.Option("--batch-size", min=1, help="Turns encoded together. Usual: as many as fit."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count, and estimate the time.")]


def loaded(path: str, device: str, dtype: str = "float32", batch_size: int | None = None) -> Predictor:
    """The predictor of a folder, as it was asked for."""
    from dialoscope.engage import load
    from dialoscope.model.loading import require_torch

    require_torch("A predictor of engagement")
    return load(path, device=device).using(dtype=dtype, batch_size=batch_size)


def all_loaded(given: Sequence[str], device: str, dtype: str, batch_size: int | None) -> dict[str, Predictor]:
    """Predictors by their names."""
    return {name: loaded(path, device, dtype, batch_size) for name, path in named_paths(given).items()}


def untrained(predictors: Mapping[str, Predictor]) -> dict[str, Predictor]:
    """The first predictor's encoder as it was, where a package has it, under a random layer: the control RDEP-U."""
    from dialoscope.engage.encoder import Encoder
    from dialoscope.engage.packaged import PACKAGED
    from dialoscope.engage.predictor import Predictor

    one = next(iter(predictors.values()))
    encoder, is_packaged = one.encoder, one.encoder.name in PACKAGED
    called = "untrained" if is_packaged else "untrained layer"
    if called in predictors:
        raise UsageError(f"'{called}' is the control that stands beside all models: name yours, such as mine=PATH.")
    if is_packaged:
        found = Encoder.load(encoder.name, device=str(encoder.device))
        encoder = found.using(dtype=encoder.dtype, batch_size=encoder.batch_size)
    return {called: Predictor.untrained(encoder, one.settings)}


def show_estimate(found: Estimate, *, json: bool) -> None:
    """Counts and seconds."""
    shown = found.to_dict()
    if json:
        print_json(shown)
        return
    print_table(["what", "value"], [[*one] for one in shown.items()], title="Nothing was done (--dry-run)")


def bar(score: float) -> str:
    """A score as a length."""
    return "█" * round(BAR * score)
