"""`turnwise generate` and `turnwise perplexity`: ask any model about a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from turnwise.cli.console import (
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
from turnwise.cli.train import ContextTurns, Device

GENERATE_EPILOG = (
    "Try: turnwise generate run concierge --out said.jsonl  ·  then: turnwise metrics said.jsonl said.jsonl"
)
PERPLEXITY_EPILOG = (
    "Try: turnwise perplexity run concierge --split test  ·  … perplexity HuggingFaceTB/SmolLM2-135M chats.jsonl --json"
)

Model = Annotated[
    str, typer.Argument(help="A folder written by turnwise train, or a Hugging Face path or name.", metavar="MODEL")
]
CorpusArgument = Annotated[str, typer.Argument(help="A file, a folder or a name.", metavar="CORPUS")]
SplitOption = Annotated[str, typer.Option("--split", help="Which split (several: validation,test).")]
BatchSize = Annotated[int, typer.Option("--batch-size", min=1, help="Contexts computed together.")]
Dtype = Annotated[str, typer.Option("--dtype", help="float32 or bfloat16.")]


def perplexity(
    model: Model,
    corpus: CorpusArgument,
    split: SplitOption = "test",
    context_turns: ContextTurns = None,
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
    from turnwise.model import load
    from turnwise.model import perplexity as measure

    quiet = quiet or json
    data = load_corpus([corpus], format=format, on_error=on_error, split=split, limit=limit, seed=seed, quiet=quiet)
    asked = load(model, device=device, dtype=dtype, batch_size=batch_size)
    with progress_bar("reading responses", quiet=quiet) as progress:
        found = measure(asked, data, context_turns=context_turns, seed=seed or 0, progress=progress)
    if json:
        print_json(found.to_dict())
        return
    score = found.perplexity
    value = score.value if score.value is not None else f"not computed: {score.reason}"
    interval = f"[{score.interval[0]:,.2f}, {score.interval[1]:,.2f}]" if score.interval else score.interval_reason
    rows = [[found.model, value, interval, score.n, found.dialogues, found.tokens]]
    print_table(["model", "perplexity", "interval", "responses", "dialogues", "tokens"], rows)
    typer.echo(score.signature)


def generate(
    model: Model,
    corpus: CorpusArgument,
    out: Annotated[Path, typer.Option("--out", help="JSONL file: dialogue, context, hypothesis, reference.")],
    split: SplitOption = "test",
    method: Annotated[str, typer.Option("--method", help="greedy, beam or sample.")] = "greedy",
    beams: Annotated[int, typer.Option("--beams", min=1, help="Of beam search.")] = 4,
    temperature: Annotated[float, typer.Option("--temperature", min=0.01, help="Of sampling.")] = 1.0,
    top_k: Annotated[int, typer.Option("--top-k", min=0, help="Of sampling; 0: all words.")] = 0,
    top_p: Annotated[float, typer.Option("--top-p", min=0, max=1, help="Of sampling.")] = 1.0,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Of a response.")] = 40,
    context_turns: ContextTurns = None,
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
    """Let a model answer every context of a split; deterministic, sampling under its --seed."""
    from turnwise.atomic import whole_file
    from turnwise.model import Decoding, load, respond

    quiet = quiet or json
    chosen: Any = _method(method)
    sampling = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed or 0}
    decoding = Decoding(chosen, beams=beams, max_tokens=max_tokens, **sampling)  # type: ignore[arg-type]
    data = load_corpus([corpus], format=format, on_error=on_error, split=split, limit=limit, seed=seed, quiet=quiet)
    asked = load(model, device=device, dtype=dtype, batch_size=batch_size)
    count = 0
    with (
        whole_file(out) as unfinished,
        unfinished.open("wb") as file,
        progress_bar("answering", quiet=quiet) as progress,
    ):
        for record in respond(asked, data, decoding=decoding, context_turns=context_turns, progress=progress):
            file.write(orjson.dumps(record) + b"\n")
            count += 1
    shown = {"responses": count, "model": asked.name, "out": str(out)}
    print_json(shown) if json else typer.echo(f"{count:,} responses of {asked.name} written to {out}")


def _method(name: str) -> str:
    from turnwise.errors import unknown_name

    methods = ("greedy", "beam", "sample")
    if name not in methods:
        raise unknown_name("method", name, methods)
    return name
