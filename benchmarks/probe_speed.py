"""All state tasks for one checkpoint at once, beside scikit-learn: seconds, scores and memory.

Features are encodings of SGD positions by an LSTM 512 wide, trained for one epoch on a part of SGD. The tasks are those
that read the dialogue state, all their labels included. The reference is what the paper used, scikit-learn's
`LogisticRegression(max_iter=250)`, for sets of labels in a `OneVsRestClassifier` with `n_jobs=2`. Of every set its time
is extrapolated from a sample of labels of all frequencies; both are scored on those. Scikit-learn stops where a
gradient is small, which with encodings of small numbers can be well before the optimum, even where it takes itself to
have converged (`reference_converged`); `--optimum` lets it run on to the end, untimed, and compares scores there. Of
that end the largest gradient is written down (`optimum_gradient`), for it says how near it is.

    unzip sgd.zip -d sgd
    python benchmarks/probe_speed.py --data sgd/              # writes benchmarks/probe_speed.json
    python benchmarks/probe_speed.py --data sgd/ --optimum    # adds scores at the optimum
    python benchmarks/probe_speed.py --data sgd/ --device cuda
    python benchmarks/probe_speed.py --table                  # prints the table of docs/probe.md
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dialoscope.cores import cores
from dialoscope.corpus import Corpus, load
from dialoscope.model import Recipe, load_model, preset, run_training
from dialoscope.model.protocol import Floats
from dialoscope.probe.encodings import encode
from dialoscope.probe.examples import Examples, examples
from dialoscope.probe.labels import Labels, f1_parts, hits
from dialoscope.probe.logistic import Linear, fit_logistic
from dialoscope.probe.measure import label_all
from dialoscope.probe.targets import Targets
from dialoscope.probe.tasks import TASKS
from peak import memory_from_here, peak_memory

JSON = Path(__file__).with_suffix(".json")
STATE_TASKS = {name: task for name, task in TASKS.items() if "state" in task.needs}
TRAINED_ON = 1000  # dialogues
WIDTH = 512
ITERATIONS = 250  # of scikit-learn, as in the paper
TOLERANCE = 1e-8  # of a gradient at the optimum; scikit-learn's own is 1e-4


def checkpoint(corpus: Corpus, work: Path, device: str) -> Path:
    """A small LSTM that has learnt a little; trained once."""
    out = work / "lstm"
    splits = corpus.table["split"].to_pylist()
    taught = [place for place, split in enumerate(splits) if split == "train"]
    places = np.random.default_rng(1).permutation(taught)[:TRAINED_ON].tolist()
    places += [place for place, split in enumerate(splits) if split == "validation"][:50]
    settings = replace(preset("lstm").settings, layers=1, width=WIDTH, embedding=128, vocabulary=10_000)
    recipe = Recipe("adam", 1e-3, epochs=1, batch_size=64, clip=5.0)
    settings = replace(settings, context_tokens=100)
    run_training(corpus.select(places), settings, recipe, out=out, device=device, bleu_samples=0, resume=True)
    return out / "last"


def some(corpus: Corpus, split: str, count: int) -> Examples:
    """So many positions of dialogues drawn from all of a split: files hold one kind of dialogue after the other."""
    part = corpus.split(split)
    drawn = part.select(np.random.default_rng(0).permutation(len(part)).tolist())
    found = examples(drawn)
    return Examples(found.corpus, found.positions[:count], found.annotations)


def ours(features: Floats, labels: Mapping[str, Labels], device: str) -> tuple[list[Linear], dict[str, Any]]:
    """All labels of all tasks."""
    memory_from_here()
    start = time.perf_counter()
    fitted = fit_logistic(features, [one.training for one in labels.values()], device=device)
    found = {"seconds": time.perf_counter() - start, "peak_gib": peak_memory() / 2**30}
    if device.startswith("cuda"):
        found["gpu_peak_gib"] = torch.cuda.max_memory_allocated() / 2**30
    undecided = sum(int((~np.asarray(one.is_converged)).sum()) for one in fitted)
    return fitted, {**found, "not_converged": undecided}


def reference(
    one: Labels, features: Floats, held_out: Floats, chosen: np.ndarray[Any, Any]
) -> tuple[Targets, dict[str, Any]]:
    """Scikit-learn's answers, its seconds, and whether it converged; of a set only the chosen labels."""
    from scipy import sparse
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    codes = one.training.codes
    if not isinstance(codes, np.ndarray):  # processes are started before the clock is
        OneVsRestClassifier(LogisticRegression(), n_jobs=2).fit(features[:50, :4], np.eye(50, 4, dtype=np.int64))
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of other processes do not arrive: iterations tell instead
        if isinstance(codes, np.ndarray):
            model: Any = LogisticRegression(max_iter=ITERATIONS).fit(features, codes)
        else:
            model = OneVsRestClassifier(LogisticRegression(max_iter=ITERATIONS), n_jobs=2)
            model.fit(features, codes[:, chosen].toarray().astype(np.int64))
    found = {"seconds": time.perf_counter() - start, "is_converged": is_converged(model)}
    said = model.predict(held_out)
    if isinstance(codes, np.ndarray):
        return Targets(said.astype(np.int64), one.training.classes), found
    return Targets(sparse.csr_array(said.astype(bool)), len(chosen)), found


def is_converged(model: Any) -> bool:
    """Whether scikit-learn stopped before its last iteration, on all labels; those of one value are no problem."""
    each = getattr(model, "estimators_", [model])
    return all(int(np.max(one.n_iter_)) < ITERATIONS for one in each if hasattr(one, "n_iter_"))


def at_optimum(one: Labels, features: Floats, held_out: Floats, chosen: np.ndarray[Any, Any]) -> tuple[Targets, float]:
    """Scikit-learn's answers once it has converged for good, and its largest gradient; of a set the chosen labels.

    One label is Newton's method on a small Hessian. That of many classes would take gigabytes, and conjugate gradients
    instead of it hours; L-BFGS in float64 ends, and the gradient tells where.
    """
    from scipy import sparse
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    codes, rows, asked = one.training.codes, features.astype(np.float64), held_out.astype(np.float64)
    if isinstance(codes, np.ndarray):
        model: Any = LogisticRegression(solver="lbfgs", max_iter=50_000, tol=TOLERANCE).fit(rows, codes)
        return Targets(model.predict(asked).astype(np.int64), one.training.classes), gradient(model, rows, codes)
    model = OneVsRestClassifier(LogisticRegression(solver="newton-cholesky", max_iter=1000, tol=TOLERANCE))
    truths = codes[:, chosen].toarray().astype(np.int64)
    said = model.fit(rows, truths).predict(asked)
    solved = [(each, truth) for each, truth in zip(model.estimators_, truths.T, strict=True) if hasattr(each, "coef_")]
    steepest = max((gradient(each, rows, truth) for each, truth in solved), default=0.0)
    return Targets(sparse.csr_array(said.astype(bool)), len(chosen)), steepest


def gradient(model: Any, rows: np.ndarray[Any, Any], codes: np.ndarray[Any, Any]) -> float:
    """The largest of the objective at the weights that were found, a row: what scikit-learn's tolerance is of."""
    excess = model.predict_proba(rows) - (codes[:, None] == model.classes_)  # (rows, classes)
    excess = excess[:, -len(model.coef_) :]  # two classes are one problem, of the second
    return float(max(np.abs(excess.T @ rows + model.coef_).max(), np.abs(excess.sum(0)).max()) / len(rows))


def sampled(labels: Labels, most: int) -> np.ndarray[Any, Any]:
    """Labels of all frequencies, from the most frequent to the rarest: classes are in that order."""
    return np.unique(np.linspace(0, len(labels.classes) - 1, min(most, len(labels.classes))).astype(np.int64))


def of_chosen(one: Labels, mine: Targets, chosen: np.ndarray[Any, Any]) -> tuple[Labels, Targets]:
    """Of a set, the labels that the reference has as well, and our answers to those."""
    if isinstance(one.held_out.codes, np.ndarray) or isinstance(mine.codes, np.ndarray):
        return one, mine
    names = tuple(one.classes[place] for place in chosen)
    truth = Targets(one.held_out.codes[:, chosen], len(chosen))
    asked = replace(one, classes=names, held_out=truth, unseen=np.zeros_like(one.unseen))
    return asked, Targets(mine.codes[:, chosen], len(chosen))


def compared(one: Labels, fitted: Linear, features: Floats, held_out: Floats, most: int, device: str) -> dict[str, Any]:
    """One task by both: micro-F1 on the labels that both have, and the reference's seconds for all of them."""
    chosen = sampled(one, most)
    expected, told = reference(one, features, held_out, chosen)
    asked, mine = of_chosen(one, fitted.predict(held_out, device=device), chosen)
    return {
        "task": one.name,
        "labels": len(one.classes),
        "sampled": len(asked.classes),
        "reference_seconds": told["seconds"] * len(one.classes) / len(asked.classes),
        "reference_converged": told["is_converged"],
        "f1": micro(asked, mine),
        "reference_f1": micro(asked, expected),
    }


def with_optimum(
    row: dict[str, Any],
    labels: Mapping[str, Labels],
    fitted: list[Linear],
    features: Floats,
    held_out: Floats,
    most: int,
) -> dict[str, Any]:
    """A row with every task's score at the reference's optimum."""
    tasks = []
    for known, one, each in zip(row["tasks"], labels.values(), fitted, strict=True):
        chosen = sampled(one, most)
        asked, mine = of_chosen(one, each.predict(held_out), chosen)
        said, steepest = at_optimum(one, features, held_out, chosen)
        found = {"f1": micro(asked, mine), "optimum_f1": micro(asked, said), "optimum_gradient": steepest}
        tasks.append({**known, **found})
        print(one.name, found, flush=True)
    apart = max(abs(one["f1"] - one["optimum_f1"]) for one in tasks)
    return {**row, "tasks": tasks, "difference_at_optimum": apart}


def micro(labels: Labels, answers: Targets) -> float:
    """Micro-F1; 1 where nothing was to be said and nothing was."""
    top, bottom = (float(part.sum()) for part in f1_parts(hits(labels, answers)))
    return top / bottom if bottom else 1.0


def table(found: dict[str, Any]) -> str:
    """The rows as Markdown."""
    lines = [
        "| device | positions × features | labels | ours, s | scikit-learn, s | times faster | F1 apart | "
        "at the optimum | GiB |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in found["rows"]:
        size = f"{row['positions']:,} × {row['features']}"
        numbers = f"{row['seconds']:.1f} | {row['reference_seconds']:,.0f} | {row['times_faster']:.0f}"
        best = row.get("difference_at_optimum")
        more = f"{row['largest_difference']:.4f} | {'–' if best is None else f'{best:.4f}'} | {row['peak_gib']:.2f}"
        lines.append(f"| {row['device']} | {size} | {row['labels']:,} | {numbers} | {more} |")
    return "\n".join(lines) + "\n"


def write(path: Path, kept: list[dict[str, Any]], row: dict[str, Any]) -> None:
    """The rows of other devices, and this one."""
    rows = sorted([*(one for one in kept if one["device"] != row["device"]), row], key=lambda one: one["device"])
    path.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    print(table({"rows": rows}), end="")


def main() -> None:
    """Measure and write, or print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="SGD, unpacked")
    parser.add_argument("--positions", type=int, default=50_000)
    parser.add_argument("--held-out", type=int, default=5_000)
    parser.add_argument("--labels", type=int, default=20, help="of each set, for scikit-learn")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--work", type=Path, default=Path("out/probe_speed"))
    parser.add_argument("--out", type=Path, default=JSON)
    parser.add_argument("--encode-only", action="store_true", help="train and encode, and stop there")
    parser.add_argument("--optimum", action="store_true", help="only compare scores at scikit-learn's optimum")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(JSON.read_text())), end="")
        return
    corpus = load(arguments.data)
    training = some(corpus, "train", arguments.positions)
    asked = some(corpus, "validation", arguments.held_out)
    model = load_model(checkpoint(corpus, arguments.work, arguments.device), device=arguments.device, batch_size=256)
    features, held_out = (
        encode(model, part, tokens=100, cache=arguments.work / "encodings") for part in (training, asked)
    )
    if arguments.encode_only:
        return
    labels, _ = label_all(STATE_TASKS, training, asked)
    kept = json.loads(arguments.out.read_text())["rows"] if arguments.out.exists() else []
    fitted, row = ours(features, labels, arguments.device)
    if arguments.optimum:
        mine = next(one for one in kept if one["device"] == arguments.device)
        row = with_optimum(mine, labels, fitted, features, held_out, arguments.labels)
        write(arguments.out, kept, row)
        return
    print(f"all labels in {row['seconds']:.1f} s; now scikit-learn", flush=True)
    tasks = [
        compared(one, each, features, held_out, arguments.labels, arguments.device)
        for one, each in zip(labels.values(), fitted, strict=True)
    ]
    total = sum(one["reference_seconds"] for one in tasks)
    row |= {
        "device": arguments.device,
        "cores": cores(),
        "positions": len(features),
        "features": features.shape[1],
        "labels": sum(one["labels"] for one in tasks),
        "reference_seconds": total,
        "times_faster": total / row["seconds"],
        "largest_difference": max(abs(one["f1"] - one["reference_f1"]) for one in tasks),
        "tasks": tasks,
    }
    write(arguments.out, kept, row)


if __name__ == "__main__":
    main()
