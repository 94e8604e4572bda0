"""`dialoscope generate`, `dialoscope perplexity` and `dialoscope presets`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any

import typer

from dialoscope.cli.arguments import LAST_GROUP, Corpus, Models, Output, Printing, Reading, command
from dialoscope.cli.console import check_output, finish, print_json, print_table, print_text, progress_bar
from dialoscope.errors import UsageError
from dialoscope.model.settings import GenerateSettings, PerplexitySettings
from dialoscope.settings import option

if TYPE_CHECKING:
    from dialoscope.model.presets import Preset


@dataclass(frozen=True, kw_only=True)
class FileOutput(Output):
    """Where the responses go."""

    out: str | None = option(
        None, "JSONL file: dialogue, context, hypothesis, reference.", group=LAST_GROUP, metavar="FILE"
    )
    overwrite: bool = option(False, "Replace an earlier file.", group=LAST_GROUP)
    json: bool = option(False, "Print counts as JSON.", group=LAST_GROUP)


def perplexity(corpus: Corpus, models: Models, settings: PerplexitySettings, reading: Reading, output: Output) -> None:
    """Measure how well models predict the responses: perplexity of a token, with an interval over dialogues."""
    paths = models.by_name()
    check_models(paths)
    check_output(output, [*(corpus or ()), *reading.paths, *paths.values()])
    from dialoscope.model.perplexity import perplexity as measure_perplexity

    data = reading.load(corpus, output)
    with progress_bar("reading responses", quiet=output.is_quiet) as progress:
        is_quiet = hides_bars(output)
        result = measure_perplexity(data, models=paths, settings=settings, progress=progress, quiet=is_quiet)
    first = quote(next(iter(paths.values())))
    finish(result, output, next_command=f"dialoscope generate {reading.words(corpus)} --model {first} --out said.jsonl")


def generate(corpus: Corpus, models: Models, settings: GenerateSettings, reading: Reading, output: FileOutput) -> None:
    """Let a model answer every context of a split; the same settings give the same responses."""
    paths = models.by_name()
    check_models(paths)
    if len(paths) > 1:
        raise UsageError("generate asks one model: give --model once.")
    out = output.required("a JSONL file")
    check_output(output, [*(corpus or ()), *reading.paths, *paths.values()])
    from dialoscope.model.generate import generate as generate_responses

    data = reading.load(corpus, output)
    path = next(iter(paths.values()))
    with progress_bar("answering", quiet=output.is_quiet) as progress:
        written = generate_responses(data, path, settings=settings, progress=progress, quiet=hides_bars(output))
        count = written.save(out, overwrite=output.overwrite)
    name = written.asked.model.name
    if output.json:
        print_json({"responses": count, "model": name, "out": str(out), "used": written.used, **written.to_dict()})
        return
    typer.echo(f"{count:,} responses of {name} were written to {out}. {written.used}")
    print_unread(written.to_dict())
    typer.echo(f"Next: dialoscope metrics measure {quote(str(out))} {quote(str(out))}")


def presets(printing: Printing) -> None:
    """List the models of the papers: their parts, their training, and their numbers of weights."""
    from dialoscope.model.loading import require_torch

    require_torch("Counting weights")
    from dialoscope.model.network import parameter_count
    from dialoscope.model.presets import PRESETS

    counts = {name: parameter_count(each.settings) for name, each in PRESETS.items()}
    if printing.json:
        print_json(
            {
                name: {
                    "settings": each.settings.to_dict(),
                    "recipe": each.recipe.to_dict(),
                    "best_by": each.best_by,
                    "paper": each.paper,
                    "parameters": counts[name],
                    "paper_millions": each.millions,
                }
                for name, each in PRESETS.items()
            }
        )
        return
    rows = []
    for name, each in PRESETS.items():
        structure, recipe = each.settings, each.recipe
        attention = f"{structure.attention}{' UI' if structure.integration else ''}"
        rate = f"{recipe.optimiser} {recipe.learning_rate:.0e}".replace("e-0", "e-").replace("e+00", "")
        size = f"{structure.layers}×{structure.width}"
        rows.append([name, structure.encoder, attention, size, rate, counts[name] / 1e6])
    print_table(["preset", "encoder", "attention", "size", "rate", "M"], rows)
    typer.echo(_about_sizes(PRESETS))
    typer.echo("Next: dialoscope train CORPUS --preset NAME --out run")


def _about_sizes(named: Mapping[str, Preset]) -> str:
    """At which vocabularies the weights are counted, and what the paper counts."""
    counted = {name: each for name, each in named.items() if each.millions is not None}
    others = {each.settings.vocabulary for name, each in named.items() if name not in counted}
    theirs = {each.settings.vocabulary for each in counted.values()}
    words = [" or ".join(f"{size:,}" for size in sorted(sizes)) for sizes in (theirs, others)]
    printed = ", ".join(f"{name} {each.millions:g}" for name, each in counted.items())
    ours = f"M: million weights with {words[0]} words for {', '.join(counted)}; with {words[1]} for the others."
    return f"{ours}\nTable 3 of the probe paper, for corpora of 13k and 16k words: {printed}."


def check_models(paths: Mapping[str, str]) -> None:
    """Refuse missing models before the corpus is read."""
    from dialoscope.model.loading import check_model, require_torch

    if not paths:
        raise UsageError("Give a model with --model PATH.")
    require_torch("A dialogue model")
    for path in paths.values():
        check_model(path)


def hides_bars(output: Output) -> bool:
    """Whether libraries show no bars of their own: where they were not wanted, or nobody looks."""
    return output.is_quiet or not sys.stderr.isatty()


def print_unread(found: Mapping[str, Any]) -> None:
    """What a model was not asked about, and what it did not read, where there is any."""
    from dialoscope.model.answers import in_words

    if found["left_out"]:
        print_text(f"Skipped: {in_words(found['left_out'])}")
    if found["cut"] and found["cut"]["contexts"]:
        typer.echo(f"Cut: {found['cut']['contexts']:,} contexts lost {found['cut']['turns']:,} of their oldest turns")
    if found["unknown_share"]:
        typer.echo(f"Unknown to the model: {found['unknown_share']:.1%} of the words")


def add_commands(app: typer.Typer) -> None:
    """Add the commands to the root of the command line."""
    command(
        app,
        "perplexity",
        perplexity,
        examples=["perplexity concierge --model run", "perplexity chats.jsonl --model HuggingFaceTB/SmolLM2-135M"],
    )
    command(
        app,
        "generate",
        generate,
        examples=["generate concierge --model run --out said.jsonl", "metrics measure said.jsonl said.jsonl"],
    )
    command(app, "presets", presets, examples=["presets", "presets --json"])
