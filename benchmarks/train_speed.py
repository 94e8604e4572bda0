"""How fast the five models of the distraction paper train: ours against a plain step-by-step PyTorch loop.

Both sides hold the same weights, see the same batch, and do the same training step in the same precision: forward,
backward, clipping, SGD. The plain side is what one writes first: `nn.LSTM` encodes, `nn.LSTMCell` decodes layer by
layer and step by step, `cross_entropy` reads all logits. Losses and gradients of both are compared without dropout;
then they are timed in turn, several times over, and the medians are compared.

    python benchmarks/train_speed.py                       # on a GPU at the paper's size, else on the CPU at demo size
    python benchmarks/train_speed.py --presets static --precisions bf16 --repeats 3 --out /dev/null

The JSON keeps one part for each device, so a run on a CPU does not overwrite what a GPU did.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dialoscope.model.batch import Batch
from dialoscope.model.network import Seq2Seq
from dialoscope.model.presets import PRESETS
from dialoscope.model.structure import Structure
from plain_seq2seq import Plain

FIVE = ("non-hier", "static", "static-ui", "dynamic", "dynamic-ui")
WANTED = {"token": 3.0, "dynamic": 3.0, "static": 5.0}  # times the plain loop, on a GPU at the paper's size
ROUNDING = {"fp32": 1e-4, "tf32": 5e-3, "bf16": 5e-2}  # how far gradients may be from the plain loop's in fp32


@dataclass(frozen=True)
class Size:
    """How large the model and the batch are."""

    layers: int
    width: int
    vocabulary: int
    batch: int
    turns: int
    turn_tokens: int
    steps: int


SIZES = {"paper": Size(4, 512, 25_000, 256, 5, 16, 20), "demo": Size(2, 128, 2_000, 32, 5, 16, 20)}


# --- One training step ------------------------------------------------------------------------------------------------


class Trainer:
    """A model, its optimiser and its precision."""

    def __init__(self, model: nn.Module, precision: str, device: torch.device) -> None:
        self.model, self.precision, self.device = model.to(device), precision, device
        is_cuda = device.type == "cuda"
        self.optimiser = torch.optim.SGD(model.parameters(), lr=0.1, **({"fused": True} if is_cuda else {}))

    def loss(self, batch: Batch) -> Tensor:
        """Forward, in the precision asked for."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
            model: Any = self.model
            loss: Tensor = model.loss(batch) if isinstance(model, Plain) else model.loss(model(batch), batch)
        return loss

    def step(self, batch: Batch) -> None:
        """Forward, backward, clip, update."""
        torch.autograd.backward(self.loss(batch))
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)

    def seconds(self, batch: Batch, steps: int) -> float:
        """Of one step, the mean of several."""
        start = self._now()
        for _ in range(steps):
            self.step(batch)
        return (self._now() - start) / steps

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()


def make_batch(size: Size, device: torch.device, seed: int) -> Batch:
    """Random words in full turns, so that both sides compute the same and nothing is padding."""
    rng = torch.Generator().manual_seed(seed)
    tokens = size.turns * size.turn_tokens
    context = torch.randint(5, size.vocabulary, (size.batch, tokens), generator=rng)
    response = torch.randint(5, size.vocabulary, (size.batch, size.steps + 1), generator=rng)
    ends = torch.arange(1, size.turns + 1) * size.turn_tokens - 1
    full = torch.ones(size.batch, dtype=torch.long)
    utterance = (torch.arange(tokens) // size.turn_tokens).repeat(size.batch, 1)
    none = torch.zeros(size.batch, size.turns, dtype=torch.bool)
    places = ends.repeat(size.batch, 1)
    batch = Batch(
        context,
        full * tokens,
        utterance,
        places,
        full * size.turns,
        none,
        response,
        full * size.steps,
        real_places=torch.arange(size.batch * size.steps),
        steps=(size.steps,) * size.batch,
    )
    return batch.to(device)


# --- Comparing --------------------------------------------------------------------------------------------------------


def agreement(settings: Structure, precision: str, device: torch.device, batch: Batch) -> dict[str, float]:
    """How far both sides' gradients are from the plain loop's in fp32, without dropout.

    In a shorter precision both round, at different places. Under bf16 autocast PyTorch runs `nn.LSTM` in fp16, where
    the encoder's small gradients vanish: on a GPU the plain loop is then far from its own fp32 gradients.
    """
    still = replace(settings, dropout=0.0)
    exact = gradients(still, "fp32", device, batch)
    found = gradients(still, precision, device, batch)
    return {
        "fp32_loss": exact["ours"][0].item(),
        "plain_fp32_loss": exact["plain"][0].item(),
        "fp32_distance": distance(exact["ours"], exact["plain"]),
        "distance": distance(found["ours"], exact["plain"]),
        "plain_distance": distance(found["plain"], exact["plain"]),
    }


def agrees(row: dict[str, Any]) -> bool:
    """Whether a row of results is to be trusted."""
    return bool(row["fp32_distance"] <= ROUNDING["fp32"] and row["distance"] <= ROUNDING[row["precision"]])


def gradients(settings: Structure, precision: str, device: torch.device, batch: Batch) -> dict[str, list[Tensor]]:
    """By side: the loss, and its gradients of word vectors and output layer.

    The third pass counts: by then ours is compiled and captured.
    """
    set_precision(precision)
    found = {}
    for name, side in both_sides(settings, precision, device).items():
        for _ in range(3):
            side.optimiser.zero_grad(set_to_none=True)
            loss = side.loss(batch)
            torch.autograd.backward(loss)
        model: Any = side.model
        found[name] = [loss.detach(), model.words.weight.grad.double(), model.out.weight.grad.double()]
    return found


def distance(found: list[Tensor], expected: list[Tensor]) -> float:
    """The larger ‖found - expected‖ / ‖expected‖ of the two gradients."""
    return max(float((a - b).norm() / b.norm()) for a, b in zip(found[1:], expected[1:], strict=True))


def set_precision(precision: str) -> None:
    """Products of fp32 numbers in tf32, or in full."""
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = precision == "tf32"


def both_sides(settings: Structure, precision: str, device: torch.device) -> dict[str, Trainer]:
    """Ours and the plain one, with the same weights."""
    torch.manual_seed(0)
    ours, plain = Seq2Seq(settings), Plain(settings)
    plain.copy(ours)
    return {"ours": Trainer(ours, precision, device), "plain": Trainer(plain, precision, device)}


def compare(name: str, size: Size, precision: str, options: argparse.Namespace) -> dict[str, Any]:
    """One preset in one precision."""
    device = torch.device(options.device)
    settings = replace(
        PRESETS[name].settings,
        layers=size.layers,
        width=size.width,
        embedding=size.width,
        vocabulary=size.vocabulary,
    )
    batch = make_batch(size, device, seed=0)
    agreed = agreement(settings, precision, device, batch)
    sides = both_sides(settings, precision, device)
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(options.repeats + 1):  # the first round warms up: it compiles, captures and fills caches
        for side, trainer in sides.items():
            seconds[side].append(trainer.seconds(batch, options.steps))
    row = {"preset": name, "precision": precision, **_summary(seconds, size, settings), **agreed}
    return {**row, "agrees": agrees(row)}


def _summary(seconds: dict[str, list[float]], size: Size, settings: Structure) -> dict[str, Any]:
    counted = {side: times[1:] for side, times in seconds.items()}
    rates = {side: size.batch / statistics.median(times) for side, times in counted.items()}
    spread = {side: [round(size.batch / one) for one in (max(times), min(times))] for side, times in counted.items()}
    return {
        "samples_per_second": round(rates["ours"], 1),
        "plain_samples_per_second": round(rates["plain"], 1),
        "slowest_and_fastest": spread["ours"],
        "plain_slowest_and_fastest": spread["plain"],
        "times_plain": round(rates["ours"] / rates["plain"], 2),
        "wanted_times_plain": WANTED[settings.attention] if size == SIZES["paper"] else None,
    }


def machine(device: str) -> dict[str, Any]:
    """Where this was measured."""
    chip = torch.cuda.get_device_name() if device == "cuda" else f"{len(os.sched_getaffinity(0))} CPU cores"
    return {"device": chip, "torch": torch.__version__, "python": platform.python_version()}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--size", choices=SIZES)
    parser.add_argument("--presets", nargs="+", default=FIVE)
    parser.add_argument("--precisions", nargs="+", choices=ROUNDING)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    parser.add_argument("--table", action="store_true", help="print the committed rows as in docs/models.md")
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(options.out.read_text(encoding="utf-8"))))
        return
    is_cuda = options.device == "cuda"
    size = SIZES[options.size or ("paper" if is_cuda else "demo")]
    about = {"size": asdict(size), "repeats": options.repeats, "steps": options.steps, **machine(options.device)}
    rows: list[dict[str, Any]] = []
    for precision in options.precisions or (["bf16", "tf32"] if is_cuda else ["fp32"]):
        for name in options.presets:
            rows.append(compare(name, size, precision, options))
            print(json.dumps(rows[-1]), flush=True)
            _write(options.out, options.device, {"about": about, "rows": rows})
    if not all(row["agrees"] for row in rows):
        raise SystemExit("The two sides disagree: see 'agrees' above.")


def table(found: dict[str, Any]) -> str:
    """The rows of all devices as Markdown."""
    lines = [
        "| device | precision | preset | samples a second | plain loop | times | goal |",
        "|---|---|---|--:|--:|--:|--:|",
    ]
    for device in found.values():
        for row in device["rows"]:
            goal = f"{row['wanted_times_plain']:.0f}" if row["wanted_times_plain"] else ""
            rates = (
                f"{row['samples_per_second']:,.0f} | {row['plain_samples_per_second']:,.0f} | {row['times_plain']:.2f}"
            )
            lines.append(f"| {device['about']['device']} | {row['precision']} | {row['preset']} | {rates} | {goal} |")
    return "\n".join(lines)


def _write(path: Path, device: str, found: dict[str, Any]) -> None:
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    path.write_text(json.dumps({**known, device: found}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
