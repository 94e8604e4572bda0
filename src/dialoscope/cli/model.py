"""`dialoscope generate` and `dialoscope perplexity`: ask any model about a corpus."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from dialoscope.cli.console import (
    Format,
    Json,
    Limit,
    OnErrorOption,
    Quiet,
    Seed,
    load_corpus,
    print_json,
    print_table,
    progress_bar,
)
from dialoscope.cli.train import ContextTurns, Device
from dialoscope.errors import UsageError

if TYPE_CHECKING:
    from dialoscope.model import DialogueModel

GENERATE_EPILOG = (
    "Try: dialoscope generate run concierge --out said.jsonl  ·  then: dialoscope metrics said.jsonl said.jsonl"
)
PERPLEXITY_EPILOG = (
    "Try: dialoscope perplexity run concierge --split test  ·  "
    "… perplexity HuggingFaceTB/SmolLM2-135M chats.jsonl --split all --json"
)

BEAMS = 4  # of beam search, where nothing else is asked for

Model = Annotated[
    str, typer.Argument(help="A folder written by dialoscope train, or a Hugging Face path or name.", metavar="MODEL")
]
CorpusArgument = Annotated[str, typer.Argument(help="A file, a folder or a name.", metavar="CORPUS")]
SplitOption = Annotated[str, typer.Option("--split", help="Which split (several: validation,test).")]
BatchSize = Annotated[int, typer.Option("--batch-size", min=1, help="Contexts computed together.")]
Dtype = Annotated[str, typer.Option("--dtype", help="float32 or bfloat16.")]
ResponsesOption = Annotated[
    str | None,
    typer.Option("--responses", help="Of which speaker, or all. Usual: a chat model's assistant, where there is one."),
]
Window = Annotated[
    int | None, typer.Option("--window", min=1, help="Tokens a Hugging Face model reads at once, if not its own limit.")
]
JoiningOption = Annotated[
    str, typer.Option("--joining", help="Of a Hugging Face model's context: auto, chat (its template) or plain.")
]
SeparatorOption = Annotated[
    str, typer.Option("--separator", help="Between plainly joined turns: auto, newline or eos (the end token).")
]


def perplexity(
    model: Model,
    corpus: CorpusArgument,
    split: SplitOption = "test",
    responses: ResponsesOption = None,
    context_turns: ContextTurns = None,
    window: Window = None,
    joining: JoiningOption = "auto",
    separator: SeparatorOption = "auto",
    device: Device = "auto",
    dtype: Dtype = "float32",
    batch_size: BatchSize = 64,
    limit: Limit = None,
    seed: Seed = None,
    format: Format = None,
    on_error: OnErrorOption = "fail",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """How well a model foresees a corpus's responses: perplexity of a token, with an interval over dialogues."""
    from dialoscope.model import perplexity as measure
    from dialoscope.model.loading import check_model

    check_model(model)
    quiet = quiet or json
    reading = {"window": window, "joining": joining, "separator": separator}
    data = load_corpus([corpus], format=format, on_error=on_error, split=split, limit=limit, seed=seed, quiet=quiet)
    asked = _load(model, device=device, dtype=dtype, batch_size=batch_size, quiet=quiet, **reading)
    which: dict[str, Any] = {"context_turns": context_turns, "responses": responses}
    with progress_bar("reading responses", quiet=quiet) as progress:
        found = measure(asked, data, **which, seed=seed or 0, progress=progress)
    if json:
        print_json(found.to_dict())
        return
    score = found.perplexity
    value = score.value if score.value is not None else f"not computed: {score.reason}"
    interval = f"[{score.interval[0]:,.2f}, {score.interval[1]:,.2f}]" if score.interval else score.interval_reason
    rows = [[found.model, value, interval, score.n, found.dialogues, found.tokens]]
    print_table(["model", "perplexity", "interval", "responses", "dialogues", "tokens"], rows)
    typer.echo(score.signature)
    _show_unread(found.to_dict())


def generate(
    model: Model,
    corpus: CorpusArgument,
    out: Annotated[Path, typer.Option("--out", help="JSONL file: dialogue, context, hypothesis, reference.")],
    split: SplitOption = "test",
    method: Annotated[str, typer.Option("--method", help="greedy, beam or sample.")] = "greedy",
    beams: Annotated[int, typer.Option("--beams", min=1, help="Of beam search.")] = BEAMS,
    temperature: Annotated[float, typer.Option("--temperature", min=0.01, help="Of sampling.")] = 1.0,
    top_k: Annotated[int, typer.Option("--top-k", min=0, help="Of sampling; 0: all words.")] = 0,
    top_p: Annotated[float, typer.Option("--top-p", min=0, max=1, help="Of sampling.")] = 1.0,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Of a response.")] = 40,
    responses: ResponsesOption = None,
    context_turns: ContextTurns = None,
    window: Window = None,
    joining: JoiningOption = "auto",
    separator: SeparatorOption = "auto",
    device: Device = "auto",
    dtype: Dtype = "float32",
    batch_size: BatchSize = 64,
    limit: Limit = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Of sampling.")] = None,
    format: Format = None,
    on_error: OnErrorOption = "fail",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file that is there.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Let a model answer every context of a split; deterministic, sampling under its --seed."""
    from dialoscope.files import whole_file
    from dialoscope.model import Decoding, respond
    from dialoscope.model.loading import check_model

    check_model(model)
    quiet = quiet or json
    reading = {"window": window, "joining": joining, "separator": separator}
    sampling = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed or 0}
    decoding = Decoding(method, beams=beams, max_tokens=max_tokens, **sampling)  # type: ignore[arg-type]
    if method != "sample" and (temperature, top_k, top_p, seed) != (1.0, 0, 1.0, None):
        raise UsageError("--temperature, --top-k, --top-p and --seed are of sampling. Give --method sample with them.")
    if method != "beam" and beams != BEAMS:
        raise UsageError("--beams is of beam search. Give --method beam with it.")
    data = load_corpus([corpus], format=format, on_error=on_error, split=split, limit=limit, quiet=quiet)
    asked = _load(model, device=device, dtype=dtype, batch_size=batch_size, quiet=quiet, **reading)
    count = 0
    which: dict[str, Any] = {"context_turns": context_turns, "responses": responses}
    with (
        whole_file(out, overwrite=overwrite) as unfinished,
        unfinished.open("wb") as file,
        progress_bar("answering", quiet=quiet) as progress,
    ):
        written = respond(asked, data, decoding=decoding, **which, progress=progress)
        for record in written:
            file.write(orjson.dumps(record) + b"\n")
            count += 1
    if json:
        print_json({"responses": count, "model": asked.name, "out": str(out), **written.to_dict()})
        return
    typer.echo(f"{count:,} responses of {asked.name} written to {out}")
    _show_unread(written.to_dict())


def _load(model: str, *, quiet: bool, **options: Any) -> DialogueModel:
    """A model, with bars of its own only where somebody is looking."""
    from dialoscope.model import load

    return load(model, quiet=quiet or not sys.stderr.isatty(), **options)


def _show_unread(found: dict[str, Any]) -> None:
    """What a model was not asked about, and what it did not read, where there is any."""
    from dialoscope.model.answers import in_words

    if found["left_out"]:
        typer.echo(f"left out: {in_words(found['left_out'])}")
    if found["cut"] and found["cut"]["contexts"]:
        typer.echo(f"cut: {found['cut']['contexts']:,} contexts lost {found['cut']['turns']:,} of their oldest turns")
    if found["unknown_share"]:
        typer.echo(f"unknown: {found['unknown_share']:.1%} of words")


def load_models(given: Sequence[str], **options: Any) -> dict[str, DialogueModel]:
    """Models by label; the options are those of `dialoscope.model.load`."""
    return {label: _load(path, **options) for label, path in named_paths(given).items()}


def named_paths(
    given: Sequence[str], *, kind: str = "models", label: Callable[[str, Sequence[str]], str] | None = None
) -> dict[str, str]:
    """Paths by label: the name before a `=`, or the last part of the path that tells them apart."""
    found: dict[str, str] = {}
    for one in given:
        name, is_named, path = one.partition("=")
        path = path if is_named else one
        name = name if is_named else (label or _label)(path, given)
        if name in found:
            raise UsageError(f"Two {kind} are called '{name}': name them, such as first={path}.")
        found[name] = path
    return found


def _label(path: str, given: Sequence[str]) -> str:
    parts = Path(path).parts
    names = ["/".join(parts[-length:]) for length in range(1, len(parts) + 1)]
    others = [Path(other).parts for other in given if other != path]
    return next((name for n, name in enumerate(names, 1) if all(other[-n:] != parts[-n:] for other in others)), path)
