"""What scoring engagement costs beside the encoder it runs on: histories, the bare forward pass, live turns.

    python benchmarks/engage_speed.py --data dailydialog/           # writes benchmarks/engage_speed.json
    python benchmarks/engage_speed.py --data dailydialog/ --device cuda
    python benchmarks/engage_speed.py --memory 200000               # peak of scoring so many made-up dialogues
    python benchmarks/engage_speed.py --table                       # prints the table of docs/engage.md

The bare forward pass is the same network over the same unique texts, tokenised and sorted by length beforehand, in
batches of as many tokens: no tokenizer, no linear layer, no dialogues. Rounds of all contestants are interleaved, and a
ratio is that of medians. Memory is the peak over what the process held before it read the corpus from Parquet and
scored it into another file, with an encoder so small that it needs none.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from dialoscope.corpus import load
from dialoscope.corpus.dialogue import SCHEMA
from dialoscope.engage.encoder import CHUNK_TOKENS, Encoder, chunks
from dialoscope.engage.examples import examples
from dialoscope.engage.live import Monitor
from dialoscope.engage.predictor import Predictor
from dialoscope.engage.scoring import write_scores
from dialoscope.engage.shape import Shape
from peak import memory_from_here, peak_memory

JSON = Path(__file__).with_suffix(".json")
SHORT, LONG = 2, 200  # turns of a live conversation
WORDS = (
    "hello",
    "there",
    "the",
    "old",
    "bridge",
    "is",
    "near",
    "a",
    "river",
    "where",
    "do",
    "you",
    "like",
    "it",
    "bye",
)
MEMORY = "memory"  # its key in the JSON, beside devices


def bare(encoder: Encoder, ids: list[list[int]]) -> Callable[[], None]:
    """The network alone, over texts that are ready."""
    ids = sorted(ids, key=len, reverse=True)
    batches = []
    for chunk in chunks([len(one) for one in ids], CHUNK_TOKENS[encoder.device.type]):
        some = ids[chunk]
        tokens = torch.zeros(len(some), len(some[0]), dtype=torch.long)
        for row, one in enumerate(some):
            tokens[row, : len(one)] = torch.tensor(one)
        mask = torch.tensor([[1] * len(one) + [0] * (len(some[0]) - len(one)) for one in some])
        batches.append((tokens.to(encoder.device), mask.to(encoder.device)))

    @torch.inference_mode()
    def run() -> None:
        for tokens, mask in batches:
            encoder.network(input_ids=tokens, attention_mask=mask)

    return run


def seconds(run: Callable[[], Any], device: torch.device) -> float:
    """One round."""
    start = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def rounds(contestants: dict[str, Callable[[], Any]], device: torch.device, repeats: int) -> dict[str, list[float]]:
    """Seconds of each contestant, one after the other in every round; a first round is not counted."""
    for run in contestants.values():
        seconds(run, device)
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, run in contestants.items():
            found[name].append(seconds(run, device))
    return found


def live(predictor: Predictor, turns: list[str], repeats: int) -> dict[str, list[float]]:
    """Seconds of one more turn after a short and after a long conversation, which every probe finds as it was."""
    monitors = {str(count): Monitor(predictor) for count in (SHORT, LONG)}
    for count, monitor in monitors.items():
        for turn in turns[: int(count)]:
            monitor.hear(turn)
    probes = turns[LONG : LONG + repeats]
    found: dict[str, list[float]] = {name: [] for name in monitors}
    for number, turn in enumerate(probes):
        for name in [*monitors] if number % 2 else reversed(monitors):  # neither always goes first
            monitor = standing(monitors[name])
            found[name].append(seconds(lambda one=monitor, text=turn: one.hear(text), predictor.encoder.device))  # type: ignore[misc]
    return found


def standing(monitor: Monitor) -> Monitor:
    """A copy that hears for itself; the predictor is shared."""
    made, talk = copy(monitor), copy(monitor._talk)
    for name in ("scores", "outputs", "texts"):
        setattr(talk, name, copy(getattr(talk, name)))
    made._talk, made._heard = talk, copy(monitor._heard)
    return made


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """Everything on one device."""
    encoder = Encoder.load(device=arguments.device)
    held_out = examples(load(arguments.data).split("test")[: arguments.dialogues])
    dialogues = list(held_out.dialogues)
    predictors = {history: Predictor.untrained(encoder, Shape(history=history)) for history in (0, 3)}
    unique = list(dict.fromkeys(held_out.texts))
    contestants: dict[str, Callable[[], Any]] = {
        "bare": bare(encoder, encoder.read(unique, Shape())),
        "history 0": lambda: predictors[0].predict(dialogues),
        "history 3": lambda: predictors[3].predict(dialogues),
    }
    found = rounds(contestants, encoder.device, arguments.repeats)
    middle = {name: statistics.median(one) for name, one in found.items()}
    after = {name: statistics.median(one) for name, one in live(predictors[3], list(held_out.texts), 100).items()}
    return {
        "device": torch.cuda.get_device_name() if encoder.device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "turns": len(held_out.texts),
        "unique": len(unique),
        "repeats": arguments.repeats,
        "seconds": found,
        "turns_per_second": len(held_out.texts) / middle["history 0"],
        "of_bare": middle["bare"] / middle["history 0"],
        "history_3_over_0": middle["history 3"] / middle["history 0"],
        "live_milliseconds": {name: 1000 * one for name, one in after.items()},
        "live_long_over_short": after[str(LONG)] / after[str(SHORT)],
    }


def memory(dialogues: int) -> dict[str, Any]:
    """Peak of reading and scoring a corpus that was made up on disk."""
    predictor = Predictor.untrained(_tiny(), Shape(history=2))
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "talks.parquet", Path(folder) / "scores.parquet"
        turns = _made_up(path, dialogues)
        write_scores(predictor, load(path, limit=10), out)  # libraries are loaded
        held, start = memory_from_here(), time.perf_counter()
        corpus = load(path)
        reading = peak_memory() - held
        write_scores(predictor, corpus, out, overwrite=True)
        found = {"dialogues": dialogues, "turns": turns, "corpus_bytes": corpus.table.nbytes, "reading_bytes": reading}
        return {**found, "peak_bytes": peak_memory() - held, "seconds": time.perf_counter() - start}


def _tiny() -> Encoder:
    """A BERT of one layer with random weights, and a tokenizer of a few words."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    t: Any = import_module("transformers")
    words = Tokenizer(models.WordLevel({word: at for at, word in enumerate(["[PAD]", "[UNK]", *WORDS])}, "[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = t.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]")
    shape = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(0)
    network = t.BertModel(t.BertConfig(vocab_size=64, **shape))
    return Encoder.of(network, tokenizer, "tiny")


def _made_up(path: Path, dialogues: int) -> int:
    """Dialogues of two to six turns of two to seven words; how many turns."""
    rng, total = np.random.default_rng(0), 0
    with pq.ParquetWriter(path, SCHEMA) as writer:
        for first in range(0, dialogues, 4096):
            rows = []
            for number in range(first, min(first + 4096, dialogues)):
                texts = [" ".join(rng.choice(WORDS, rng.integers(2, 8))) for _ in range(rng.integers(2, 7))]
                turns = [{"speaker": "AB"[at % 2], "text": text, "labels": None} for at, text in enumerate(texts)]
                rows.append({"id": f"d{number}", "split": "test", "labels": None, "turns": turns})
                total += len(turns)
            writer.write_table(pa.Table.from_pylist(rows, SCHEMA))
    return total


def table(found: dict[str, Any]) -> str:
    """The rows as Markdown."""
    lines = [
        "| device | turns | turns a second | of the bare pass | history 3 over 0 | live, ms | turn 201 over turn 3 |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, one in found.items():
        if name == MEMORY:
            continue
        cells = [one["device"], f"{one['turns']:,}", f"{one['turns_per_second']:,.0f}", f"{one['of_bare']:.2f}"]
        cells += [f"{one['history_3_over_0']:.2f}", f"{one['live_milliseconds'][str(LONG)]:.1f}"]
        lines.append(f"| {' | '.join([*cells, format(one['live_long_over_short'], '.2f')])} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dialogues", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path, default=JSON)
    parser.add_argument("--memory", type=int)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    kept = json.loads(JSON.read_text()) if JSON.exists() else {}
    if arguments.table:
        print(table(kept))
        return
    if arguments.memory:
        kept[MEMORY] = memory(arguments.memory)
    else:
        kept[arguments.device] = measured(arguments)
    arguments.out.write_text(json.dumps(kept, indent=1) + "\n")
    print(table(kept))


if __name__ == "__main__":
    main()
