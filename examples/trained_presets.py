"""The presets trained on DailyDialog, cleaned because the original leaks: the table in docs/results.md.

    turnwise overlap clean dailydialog/ --threshold 0.75 --test 1000 --validation 1000 --seed 0 --out clean
    python examples/trained_presets.py clean/corpus --device cuda --workers 5      # trains what has no row yet
    python examples/trained_presets.py --table                                     # prints the table

Every preset is trained with its own recipe in mixed precision (bfloat16), contexts cut to their last 100 tokens, from
three seeds; the checkpoint with the lowest validation perplexity is measured on the test split, BLEU-2 of greedy
responses without case, for the models write small letters. Runs go side by side, each in a process of its own; one row
for each is added to examples/trained_presets.json as it ends, its checkpoints are deleted, and rows that are there are
not made again. On one GPU several runs share its time well only under NVIDIA's MPS (`nvidia-cuda-mps-control -d`).
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

ROWS = Path(__file__).with_suffix(".json")
CONTEXT_TOKENS = 100


def trained(corpus: Path, name: str, seed: int, epochs: int, device: str, work: Path) -> dict[str, Any]:
    """Train one preset from one seed and measure it."""
    from turnwise.corpus import load
    from turnwise.metrics import Options, Pairs, score_pairs
    from turnwise.model import load_model, perplexity, preset, respond, train

    chosen, data = preset(name), load(corpus)
    settings = replace(chosen.settings, context_tokens=CONTEXT_TOKENS)
    recipe = replace(chosen.recipe, epochs=min(epochs, chosen.recipe.epochs), precision="bf16")
    out = work / f"{name}-{seed}"
    result = train(data, settings, recipe, out=out, seed=seed, device=device, preset=name, resume=True)
    model, test = load_model(out / "best", device=device), data.split("test")
    said = list(respond(model, test))
    hypotheses, references, dialogues = ([one[key] for one in said] for key in ("hypothesis", "reference", "dialogue"))
    pairs = Pairs(hypotheses, references, dialogues)
    bleu = score_pairs(pairs, metrics=["bleu-2"], options=Options(lowercase=True)).scores["bleu-2"]
    history = result.history[1:]
    return {
        "preset": name,
        "seed": seed,
        "parameters": result.parameters,
        "epochs": result.epochs,
        "best_epoch": result.best_epoch,
        "losses": [moment.loss for moment in history],
        "validation": [moment.perplexity for moment in history],
        "samples_per_second": statistics.median(moment.samples_per_second for moment in history),
        "seconds": result.seconds,
        "perplexity": perplexity(model, test).perplexity.to_dict(),
        "bleu-2": bleu.to_dict(),
        "examples": [{key: one[key] for key in ("context", "hypothesis", "reference")} for one in said[:3]],
    }


def missing(presets: list[str], seeds: list[int]) -> Iterator[tuple[str, int]]:
    """Runs that have no row yet, a seed after the other, so that an early end leaves whole seeds."""
    made = {(row["preset"], row["seed"]) for row in _rows()}
    return ((name, seed) for seed in seeds for name in presets if (name, seed) not in made)


def run_all(arguments: argparse.Namespace) -> None:
    """Train what is missing, so many at a time; begin none after the given time."""
    start, lock = time.monotonic(), Lock()

    def work(run: tuple[str, int]) -> None:
        if time.monotonic() - start > arguments.begin_within:
            return
        command = [sys.executable, __file__, str(arguments.corpus), "--one", run[0], str(run[1])]
        command += ["--epochs", str(arguments.epochs), "--device", arguments.device, "--work", str(arguments.work)]
        command += ["--workers", str(arguments.workers)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(*run, "failed:", done.stderr.strip()[-2000:], flush=True)
            return
        row = json.loads(done.stdout.splitlines()[-1])
        with lock:
            arguments.out.write_text(json.dumps([*_rows(arguments.out), row], indent=1) + "\n")
        shutil.rmtree(arguments.work / f"{run[0]}-{run[1]}")
        print(*run, row["perplexity"]["value"], row["bleu-2"]["value"], round(row["seconds"]), flush=True)

    with ThreadPoolExecutor(arguments.workers) as pool:
        list(pool.map(work, missing(arguments.presets, arguments.seeds)))


def _rows(path: Path = ROWS) -> list[dict[str, Any]]:
    return json.loads(path.read_text()) if path.exists() else []


def table(rows: list[dict[str, Any]]) -> str:
    """One line for each preset: the mean over seeds, the lowest and the highest, and the first seed's own interval."""
    lines = [
        "| preset | seeds | weights, M | best epoch | perplexity | of seeds | 95 % of seed 0 | BLEU-2 | of seeds |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name in dict.fromkeys(row["preset"] for row in rows):
        mine = sorted((row for row in rows if row["preset"] == name), key=lambda row: row["seed"])
        epochs = "/".join(str(row["best_epoch"]) for row in mine)
        cells = [name, str(len(mine)), f"{mine[0]['parameters'] / 1e6:.1f}", epochs]
        low, high = mine[0]["perplexity"]["interval"]
        cells += [*_over_seeds(mine, "perplexity"), f"{low:.1f}–{high:.1f}", *_over_seeds(mine, "bleu-2")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _over_seeds(rows: list[dict[str, Any]], key: str) -> tuple[str, str]:
    values = [row[key]["value"] for row in rows]
    return f"{statistics.mean(values):.2f}", f"{min(values):.2f}–{max(values):.2f}"


def main() -> None:
    """Train, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, nargs="?", help="the folder of cleaned splits")
    presets = ["non-hier", "static", "static-ui", "dynamic", "dynamic-ui"]
    parser.add_argument("--presets", nargs="+", default=presets)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=40, help="at most; also at most the preset's own")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--begin-within", type=float, default=1e9, help="seconds after which no run is begun")
    parser.add_argument("--work", type=Path, default=Path("out/presets"), help="where checkpoints go")
    parser.add_argument("--out", type=Path, default=ROWS)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.table:
        print(table(_rows()))
    elif arguments.one:
        from turnwise.model import graphs

        graphs.SHARE_OF_MEMORY = 0.6 / arguments.workers  # each keeps to its part of the card
        name, seed = arguments.one
        row = trained(arguments.corpus, name, int(seed), arguments.epochs, arguments.device, arguments.work)
        print(json.dumps(row))
    else:
        run_all(arguments)


if __name__ == "__main__":
    main()
