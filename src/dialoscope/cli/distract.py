"""`dialoscope distract`: attention, influence and behaviour on distracting test sets, and the sets themselves."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from shlex import quote
from typing import Any

import typer

from dialoscope.cli.arguments import Corpus, Models, Output, Reading, command, words_of
from dialoscope.cli.console import check_output, finish, print_json, print_table, progress_bar
from dialoscope.distract.settings import (
    AttentionSettings,
    BehaveSettings,
    InfluenceSettings,
    QuestionSettings,
    SetsSettings,
)
from dialoscope.settings import options_of

app = typer.Typer(name="distract", help="Does the model attend to what matters?", no_args_is_help=True)


def measure(corpus: Corpus, settings: AttentionSettings, models: Models, reading: Reading, output: Output) -> None:
    """Measure the attention on unrelated turns, relative to real ones: the DAS ratio.

    An interrupted run resumes when it is called again with the same --out.
    """
    from dialoscope.distract import measure as measure_attention

    following = f"dialoscope distract influence {_same(corpus, settings, models, reading)}"
    _ask(measure_attention, "attention", corpus, settings, models, reading, output, following)


def influence(corpus: Corpus, settings: InfluenceSettings, models: Models, reading: Reading, output: Output) -> None:
    """Measure how much unrelated turns change the response's probability, relative to real ones.

    An interrupted run resumes when it is called again with the same --out.
    """
    from dialoscope.distract import influence as measure_influence

    following = f"dialoscope distract behave {_same(corpus, settings, models, reading)}"
    _ask(measure_influence, "influence", corpus, settings, models, reading, output, following)


def behave(corpus: Corpus, settings: BehaveSettings, models: Models, reading: Reading, output: Output) -> None:
    """Compare what models write with and without unrelated turns.

    An interrupted run resumes when it is called again with the same --out.
    """
    from dialoscope.distract import behave as compare_responses

    following = f"dialoscope distract measure {_same(corpus, settings, models, reading)}"
    _ask(compare_responses, "responses", corpus, settings, models, reading, output, following)


def sets(corpus: Corpus, settings: SetsSettings, reading: Reading, output: Output) -> None:
    """Write the original test set and its distracting sets, so that other systems are tested on the same."""
    from dialoscope.distract import make_sets, write_sets

    out = output.required("a folder for the sets")
    check_output(output, [*(corpus or ()), *reading.paths])
    made = make_sets(reading.load(corpus, output), settings)
    write_sets(made, out, overwrite=output.overwrite)
    if output.json:
        shown = {each.name: {"cases": len(each), "fingerprint": each.fingerprint, **each.about} for each in made}
        print_json({"out": str(out), "sets": shown})
        return
    rows = [
        [
            each.name,
            len(each),
            sum(len(case.distractions) for case in each.cases),
            " · ".join(sentence["text"] for sentence in each.about.get("sentences", ())),
        ]
        for each in made
    ]
    print_table(["set", "contexts", "distractions", "sentences"], rows)
    typer.echo(f"Next: dialoscope distract measure --sets-dir {quote(str(out))} --model NAME=PATH")


def _ask(
    question: Callable[..., Any],
    label: str,
    corpus: list[str] | None,
    settings: QuestionSettings,
    models: Models,
    reading: Reading,
    output: Output,
    following: str,
) -> None:
    """Read what was given, ask the question, show the answer; finished portions wait beside the folder until then."""
    from dialoscope.distract.portions import work_folder

    check_output(output, [*(corpus or ()), *reading.paths, settings.sets_dir])
    named, is_corpus = models.by_name(), bool(corpus or reading.paths)
    data = reading.load(corpus, output) if is_corpus or settings.sets_dir is None else None
    work = None if output.folder is None else work_folder(output.folder)
    with progress_bar(label, quiet=output.is_quiet) as progress:
        result = question(data, settings=settings, models=named, work=work, progress=progress)
    finish(result, output, next_command=following)
    if work is not None:
        shutil.rmtree(work, ignore_errors=True)


def _same(corpus: list[str] | None, settings: QuestionSettings, models: Models, reading: Reading) -> str:
    """The corpus and the models again, for the next command."""
    data = reading.words(corpus) if settings.sets_dir is None else f"--sets-dir {quote(settings.sets_dir)}"
    asked = words_of(settings, options_of(SetsSettings))
    return " ".join(each for each in (data, *(f"--model {quote(model)}" for model in models.model), asked) if each)


command(
    app,
    "measure",
    measure,
    examples=[
        "distract measure concierge --model run --out attention/",
        "distract measure chats.jsonl --model base=runs/a --model trained=runs/b --sets random --json",
    ],
)
command(
    app,
    "influence",
    influence,
    examples=[
        "distract influence concierge --model run --sets random-1.0 --limit 15",
        "distract influence --sets-dir sets/ --model run --out influence/",
    ],
)
command(
    app,
    "behave",
    behave,
    examples=[
        "distract behave concierge --model run --sets random-1.0 --limit 15",
        "distract behave chats.jsonl --model run --responses assistant --out behaviour/",
    ],
)
command(
    app,
    "sets",
    sets,
    examples=[
        "distract sets concierge --out sets/",
        "distract sets chats.jsonl --sets given --sentences 'my cat is blue' --sentences 'so is mine' --out sets/",
    ],
)
