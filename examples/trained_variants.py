"""The papers' models trained on real dialogues, with and without distractions: the tables of docs/results.md.

    dialoscope overlap clean dailydialog/ --threshold 0.75 --test-size 1000 --validation-size 1000 --seed 0 --out clean
    python examples/trained_variants.py clean/corpus --name dailydialog --variants presets --epochs 20 --workers 3
    python examples/trained_variants.py clean/corpus --name dailydialog --variants paper --epochs 20 --workers 3
    python examples/trained_variants.py --table presets      # perplexity and BLEU-2 of every preset
    python examples/trained_variants.py --table das          # DAS ratios in the form of the paper's Table 3
    python examples/trained_variants.py --table gains        # each beside its baseline, ours and the paper's
    python examples/trained_variants.py --table paired       # the same with intervals, on the same dialogues
    python examples/trained_variants.py clean/corpus --name dailydialog --size small --variants control --workers 2

A variant is a preset, ``static-ui``; with a probability of putting distractions into training contexts,
``static-ui+0.7``; without the attention loss, ``static-ui+0.7-noloss``; or with another weight of it,
``static-ui+0.7-mean0.01``. Every one is trained with its preset's own recipe in mixed precision (bfloat16), contexts
cut to their last tokens: as many as its paper reads, or 192 unless another number is given. The best checkpoint, as the
preset's paper chose it, is measured on the test split (on a GPU in TF32): perplexity, also with another dialogue's
context and with the Query alone, BLEU-2 of greedy responses without case (the models write small letters), and, where
it has attention, the DAS ratio on the nine distracting test sets (seed 0).

``--size small`` trains the same variants at a size for two CPU cores: its rows and its tables are its own, for their
vocabulary is smaller and their perplexities compare with each other alone.

How many runs share a card is in side_by_side.py.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import side_by_side

ROWS = {
    "paper": Path(__file__).with_suffix(".json"),
    "small": Path(__file__).with_name("trained_variants_small.json"),
}
# What a core trains at about 200 samples a second. Smaller batches: many steps are made in a few epochs.
SMALL = {
    "layers": 2,
    "width": 128,
    "embedding": 128,
    "vocabulary": 8_000,
    "context_tokens": 128,
    "batch_size": 64,
}
SMALL_EPOCHS = 12  # six are too few: which rate a variant has reached then decides its perplexity (docs/log.md)
CONTEXT_TOKENS = 192
MEASURED_AT_ONCE = 128  # contexts; with 256, rows measured beside seven that train ran out of a card's memory
PAPER = Path(__file__).with_name("trained_variants_paper.json")  # its Table 3: Ubuntu, one seed
COPIED = "dynamic-ui+0.7"  # its random cells are those of `non-hier`, in Table 4 to the digit
RANDOM = ("random-0.5", "random-0.7", "random-1.0")
DISTRACTED = ("non-hier", "static", "static-ui", "dynamic", "dynamic-ui")
PROBED = ("lstm", "lstm-attn", "bilstm-attn", "hred", "transformer")
LEAKED = ("overlap-lstm", "overlap-transformer")
GROUPS = {
    "presets": (*DISTRACTED, *PROBED, *LEAKED),
    # The 23 of Table 3.
    "paper": (
        *(f"{name}{more}" for name in DISTRACTED for more in ("", "+0.5", "+0.7", "+1.0")),
        *(f"static-ui+{probability}-noloss" for probability in ("0.5", "0.7", "1.0")),
    ),
    "control": tuple(f"{name}{more}" for name in ("static-ui", "dynamic") for more in ("", "+0.7", "+0.7-noloss")),
    # Weights of the attention loss. At the start equation 9 pulls at static attention a hundred times as hard as
    # cross-entropy does (attention_pull.py), and its least value is reached by looking at the Query alone: so below 1.
    "sweep": tuple(
        f"{name}+0.7-{weight}"
        for name in ("static", "static-ui", "dynamic")
        for weight in ("mean0.0001", "mean0.001", "mean0.01", "mean0.1")
    ),
}
NAME = re.compile(r"(?P<preset>[a-z-]+?)(\+(?P<insert>[\d.]+)(-(?P<loss>noloss|(mean|sum)[\d.]+))?)?")


@dataclass(frozen=True)
class Variant:
    """What a variant's name says."""

    preset: str
    insert: float = 0.0
    reduction: str | None = "mean"  # of the attention loss; None: without it
    weight: float = 1.0

    @classmethod
    def parse(cls, name: str) -> Variant:
        """The parts of a name."""
        found = NAME.fullmatch(name)
        if found is None:
            raise SystemExit(f"'{name}' is no variant; one is called static-ui+0.7-noloss")
        loss = found["loss"] or "mean1"
        if loss == "noloss" or not found["insert"]:
            return cls(found["preset"], float(found["insert"] or 0), None)
        reduction = "sum" if loss.startswith("sum") else "mean"
        return cls(found["preset"], float(found["insert"]), reduction, float(loss.removeprefix(reduction)))


def trained(arguments: argparse.Namespace, name: str, seed: int) -> dict[str, Any]:
    """Train one variant from one seed and measure it."""
    import torch

    from dialoscope.corpus import load
    from dialoscope.distract import AttentionLoss, InsertDistractions
    from dialoscope.model import load_model, preset, run_training
    from dialoscope.model.structure import changed, read_word

    what, data = Variant.parse(name), load(arguments.corpus)
    chosen = preset(what.preset)
    tokens = chosen.settings.context_tokens or arguments.context_tokens
    settings = replace(chosen.settings, context_tokens=tokens)
    small = arguments.size == "small"
    epochs = min(arguments.epochs, SMALL_EPOCHS if small else chosen.recipe.epochs)
    recipe = replace(chosen.recipe, epochs=epochs, precision="bf16" if arguments.device.startswith("cuda") else "fp32")
    given = {key: read_word(word) for key, word in arguments.settings.items()}
    settings, recipe = changed(settings, recipe, {**(SMALL if small else {}), **given})
    if arguments.device == "cpu":
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // arguments.workers))
    out = side_by_side.folder(arguments, name, seed)
    result = run_training(
        data,
        settings,
        recipe,
        out=out,
        seed=seed,
        device=arguments.device,
        preset=what.preset,
        best_by=chosen.best_by,
        resume=True,
        transform=InsertDistractions(what.insert) if what.insert else None,
        extra_loss=AttentionLoss(what.weight, what.reduction) if what.reduction and what.insert else None,
    )
    began = side_by_side.begin_measuring(arguments, name, seed)
    torch.set_float32_matmul_precision("high")  # a GPU that others train on is not to be kept for full precision
    model = load_model(out / "best", device=arguments.device, batch_size=MEASURED_AT_ONCE)
    test = data.split("test")
    row = {
        "corpus": arguments.name,
        "variant": name,
        "seed": seed,
        "settings": settings.to_dict(),
        "recipe": recipe.to_dict(),
        "parameters": result.parameters,
        "epochs": result.epochs,
        "best_epoch": result.best_epoch,
        "losses": side_by_side.logged(out / "log.csv", "loss"),
        "validation": side_by_side.logged(out / "log.csv", "perplexity"),
        "seconds": result.seconds,
    }
    marks = {"load": time.monotonic()}
    row |= said(model, test)
    marks["responses"] = time.monotonic()
    row["contexts"] = without_context(model, test)
    marks["contexts"] = time.monotonic()
    row |= looked(model, data, attention=settings.attention)
    marks["attention"] = time.monotonic()
    side_by_side.note_parts(began, marks)
    return {**row, "measuring_seconds": time.monotonic() - began}


def said(model: Any, test: Any) -> dict[str, Any]:
    """Perplexity, BLEU-2 and a few responses."""
    from dialoscope.metrics import Options, Pairs, score_pairs
    from dialoscope.model import respond
    from dialoscope.model.perplexity import perplexity_under

    written = list(respond(model, test))
    hypotheses, references, dialogues = (
        [one[key] for one in written] for key in ("hypothesis", "reference", "dialogue")
    )
    bleu = score_pairs(
        Pairs(hypotheses, references, dialogues), metrics=["bleu-2"], options=Options(lowercase=True)
    ).scores["bleu-2"]
    examples = [{key: one[key] for key in ("context", "hypothesis", "reference")} for one in written[:3]]
    return {
        "perplexity": perplexity_under(model, test).perplexity.to_dict(),
        "bleu-2": bleu.to_dict(),
        "examples": examples,
    }


def without_context(model: Any, test: Any) -> dict[str, float]:
    """Perplexity with the context of another dialogue and with the Query alone, to be held against that with its own.

    Where another's context serves as well, the model does not read it, and where it looks means nothing.
    """
    from dialoscope.corpus import samples

    found = list(samples(test))
    right, responses = [one.context for one in found], [one.response for one in found]
    half = len(found) // 2  # far enough to be another dialogue, as long as on average
    kinds = {"other": right[half:] + right[:half], "query": [context[-1:] for context in right]}
    scores = {}
    for kind, contexts in kinds.items():
        likelihoods = model.log_likelihood(contexts, responses)
        scores[kind] = math.exp(-sum(one.total for one in likelihoods) / sum(one.tokens for one in likelihoods))
    return scores


def looked(model: Any, data: Any, *, attention: str) -> dict[str, Any]:
    """DAS ratios on the nine sets; of attention to tokens, also each token's own on the random sets."""
    from dialoscope.distract import measure
    from dialoscope.record import path

    if attention == "none":
        return {}
    result = measure(data, models={"model": model})
    names = {key: path("model", "original", key) for key in ("perplexity", "history_percent")}
    original = {key: result.scores()[name].value for key, name in names.items()}
    row = {"original": original, "sets": _ratios(result), "dialogues": by_dialogue(result)}
    return row if attention != "token" else {**row, **looked_per_token(model, data)}


def looked_per_token(model: Any, data: Any) -> dict[str, Any]:
    """DAS ratios on the random sets of attention divided by an utterance's number of tokens."""
    from dialoscope.distract import measure

    result = measure(data, models={"model": model}, sets=RANDOM, normalisation="per_token")
    return {"sets_per_token": _ratios(result), "dialogues_per_token": by_dialogue(result, sums_of=SUMS[1:])}


NUMBERS = ("das_ratio", "das_ratio_of_means", "das_ratio_median", "distraction_percent", "history_percent",
           "first_percent", "last_percent", "perplexity")  # fmt: skip


def _ratios(result: Any) -> dict[str, Any]:
    """What a row keeps of each set."""
    from dialoscope.distract.result import CUT, NO_DISTRACTION, NO_HISTORY
    from dialoscope.record import path

    sets = {}
    for name in result.set_names:
        scores = {number: result.scores()[path("model", name, number)] for number in NUMBERS}
        left_out = result.rows["model", name].left_out()
        sets[name] = {
            **{number: score.value for number, score in scores.items()},
            "counts": {number: score.n for number, score in scores.items()},
            "samples": int(result.rows["model", name].is_used.sum()),
            "without_history": left_out[NO_HISTORY],
            "interval": scores["das_ratio"].interval,
            "without_distraction": left_out[NO_DISTRACTION],
            "cut": left_out[CUT],
            "interval_of_means": scores["das_ratio_of_means"].interval,
        }
    return sets


SUMS = (("original", ("log_likelihood", "tokens")), (RANDOM[1], ("distraction", "history")))


def by_dialogue(result: Any, *, sums_of: Sequence[tuple[str, tuple[str, str]]] = SUMS) -> dict[str, str]:
    """Sums over each test dialogue's contexts, so that variants can be compared on the same dialogues later.

    Log-likelihood and tokens of the original set; attention on distractions and on History of random-0.7, of contexts
    that have both. In words, so that a row keeps to few lines.
    """
    import numpy as np

    sums = {}
    for name, keys in sums_of:
        rows = result.rows["model", name]
        if name == "original":
            columns = np.stack([rows.column(key) for key in keys])
        else:
            columns = np.exp(np.stack([rows.column(f"log_{key}") for key in keys]))
        is_whole = ~np.isnan(columns).any(axis=0)
        _, dialogue = np.unique(rows.dialogues, return_inverse=True)
        for key, column in zip(keys, np.where(is_whole, columns, 0.0), strict=True):
            sums[key] = " ".join(f"{total:.6g}" for total in np.bincount(dialogue, weights=column))
    return sums


# --- Tables -----------------------------------------------------------------------------------------------------------


def preset_table(rows: list[dict[str, Any]]) -> str:
    """One line for each preset: the mean over seeds, the lowest and the highest, and the first seed's own interval."""
    lines = [
        "| corpus | preset | seeds | weights, M | best epoch | perplexity | of seeds | 95 % | BLEU-2 | of seeds |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    plain = [row for row in rows if row["variant"] in GROUPS["presets"]]
    for corpus, name in sorted({(row["corpus"], row["variant"]) for row in plain}, key=_order):
        mine = _of(plain, corpus, name)
        epochs = "/".join(str(row["best_epoch"]) for row in mine)
        cells = [corpus, name, str(len(mine)), f"{mine[0]['parameters'] / 1e6:.1f}", epochs]
        low, high = mine[0]["perplexity"]["interval"]
        cells += [*_over_seeds(mine, "perplexity"), f"{low:.1f}–{high:.1f}", *_over_seeds(mine, "bleu-2")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def das_table(rows: list[dict[str, Any]], ratio: str = "das_ratio_of_means") -> str:
    """Variants by test sets, as Table 3: ratios averaged over seeds, the lowest of each column in bold."""
    looked_at = [row for row in rows if "sets" in row]
    tables = []
    for corpus in dict.fromkeys(row["corpus"] for row in looked_at):
        names = sorted({(corpus, row["variant"]) for row in looked_at if row["corpus"] == corpus}, key=_order)
        sets = list(next(row["sets"] for row in looked_at if row["corpus"] == corpus))
        values = []
        for _, name in names:
            mine = _of(looked_at, corpus, name)
            first = [_mean(row["original"][key] for row in mine) for key in ("perplexity", "history_percent")]
            values.append([*first, *(_mean(row["sets"][one][ratio] for row in mine) for one in sets)])
        lowest = [min(column) for column in zip(*values, strict=True)]
        lines = [
            f"| {corpus} | seeds | perplexity | History % | {' | '.join(sets)} |",
            "|---|" + "--:|" * (3 + len(sets)),
        ]
        for (_, name), line in zip(names, values, strict=True):
            cells = [
                _bold(value, value == least and place != 1)
                for place, (value, least) in enumerate(zip(line, lowest, strict=True))
            ]
            lines.append(f"| {name} | {len(_of(looked_at, corpus, name))} | {' | '.join(cells)} |")
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def gain_table(rows: list[dict[str, Any]]) -> str:
    """Each variant beside its baseline of the same seed, and what its contexts are worth to it."""
    lines = [
        "| corpus | variant | seeds | perplexity | to baseline | with the Query alone | with another's context "
        "| ratio, random | of seeds | 95 %, random-0.7, first seed | to baseline | paper: ratio | to baseline |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    looked_at = [row for row in rows if "sets" in row]
    for corpus, name in sorted({(row["corpus"], row["variant"]) for row in looked_at}, key=_order):
        mine, base = _of(looked_at, corpus, name), Variant.parse(name).preset
        plain = {} if base == name else {row["seed"]: row for row in _of(looked_at, corpus, base)}
        both = [(row, plain[row["seed"]]) for row in mine if row["seed"] in plain]
        ratios = [_random(row) for row in mine]
        cells = [
            *(corpus, name, str(len(mine)), f"{_mean(row['perplexity']['value'] for row in mine):.1f}"),
            _change((row["perplexity"]["value"], other["perplexity"]["value"]) for row, other in both),
            _change((row["contexts"]["query"], row["perplexity"]["value"]) for row in mine),
            _change((row["contexts"]["other"], row["perplexity"]["value"]) for row in mine),
            f"{statistics.mean(ratios):.2f}",
            f"{min(ratios):.2f}–{max(ratios):.2f}" if len(ratios) > 1 else "–",
            _interval(mine),
            _change((_random(row), _random(other)) for row, other in both),
            *_printed(name, base),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def paired_table(rows: list[dict[str, Any]]) -> str:
    """Each variant against its baseline, and against itself without the loss: on the same dialogues, first seeds."""
    from dialoscope.metrics import correct

    known = {(row["corpus"], row["variant"]): row for row in reversed(rows) if "dialogues" in row}  # the first seed's
    tested = {}
    for corpus, name in sorted(known, key=_order):
        what = Variant.parse(name)
        for other in (what.preset, f"{name}-noloss"):
            if name != other and (corpus, other) in known:
                for key, change in _compared(known[corpus, name], known[corpus, other]).items():
                    tested[corpus, name, other, key] = change
    tested = correct(tested)
    lines = [
        "| corpus | variant | against | ratio, random-0.7 | 95 % | p (Holm) | perplexity | 95 % | p (Holm) |",
        "|---|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for corpus, name, other in dict.fromkeys(key[:3] for key in tested):
        ratio, words = (tested[corpus, name, other, key] for key in ("ratio", "perplexity"))
        cells = [corpus, name, other, *_shown(ratio, lambda value: f"{value:+.2f}"), *_shown(words, _in_percent)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _compared(mine: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The difference of the ratios of means, and of the mean negative log-likelihood of a token."""
    import numpy as np

    from dialoscope.metrics import compare_ratios

    sides = [{key: np.array(words.split(), float) for key, words in row["dialogues"].items()} for row in (mine, other)]
    ratio, words = (
        compare_ratios(*((sign * one[over], one[under]) for one in sides), test="bootstrap")
        for sign, over, under in ((1, "distraction", "history"), (-1, "log_likelihood", "tokens"))
    )
    return {"ratio": ratio, "perplexity": words}


def _shown(change: Any, written: Callable[[float], str]) -> list[str]:
    value, interval = change.difference.value, change.difference.interval
    ends = "–" if interval is None else " to ".join(map(written, interval))
    p = "–" if change.p_holm is None else "<0.001" if change.p_holm < 0.001 else f"{change.p_holm:.3f}"
    return [written(value), ends, p]


def _in_percent(difference: float) -> str:
    """How much higher perplexity is where a token's negative log-likelihood is higher by this."""
    return f"{100 * math.expm1(difference):+.1f} %"


def _random(row: dict[str, Any]) -> float:
    return _mean(row["sets"][one]["das_ratio_of_means"] for one in RANDOM)


def _printed(name: str, base: str) -> list[str]:
    """The paper's ratio, and how far it is from its baseline's."""
    paper = json.loads(PAPER.read_text(encoding="utf-8"))
    if name not in paper:
        return ["", ""]
    mine, plain = (_mean(paper[one][key] for key in RANDOM) for one in (name, base))
    return [f"{mine:.2f}{'?' * (name == COPIED)}", _change([(mine, plain)] if name != base else [])]


def _change(pairs: Iterable[tuple[float, float]]) -> str:
    """By how much one is larger than the other, a mean over seeds; nothing where there are none."""
    changes = [100 * (value / other - 1) for value, other in pairs]
    return f"{statistics.mean(changes):+.1f} %" if changes else ""


def _interval(rows: list[dict[str, Any]]) -> str:
    """Of the ratio on random-0.7, over dialogues: the first seed's."""
    found = rows[0]["sets"][RANDOM[1]].get("interval_of_means")
    return f"{found[0]:.2f}–{found[1]:.2f}" if found else ""


def _bold(value: float, is_best: bool) -> str:
    written = f"{value:.2f}"
    return f"**{written}**" if is_best else written


def _order(named: tuple[str, str]) -> tuple[str, int, str]:
    places = [*GROUPS["presets"]]
    return named[0], places.index(Variant.parse(named[1]).preset), named[1]


def _of(rows: list[dict[str, Any]], corpus: str, name: str) -> list[dict[str, Any]]:
    mine = [row for row in rows if (row["corpus"], row["variant"]) == (corpus, name)]
    return sorted(mine, key=lambda row: row["seed"])


def _mean(values: Iterator[float]) -> float:
    return statistics.mean(values)


def _over_seeds(rows: list[dict[str, Any]], key: str) -> tuple[str, str]:
    values = [row[key]["value"] for row in rows]
    return f"{statistics.mean(values):.2f}", f"{min(values):.2f}–{max(values):.2f}" if len(values) > 1 else "–"


TABLES: dict[str, Callable[[list[dict[str, Any]]], str]] = {
    "presets": preset_table,
    "das": das_table,
    "gains": gain_table,
    "paired": paired_table,
    "medians": partial(das_table, ratio="das_ratio_median"),
}


def main() -> None:
    """Train, or print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    side_by_side.add_options(parser, ROWS["paper"])
    parser.set_defaults(out=None)
    parser.add_argument("--size", choices=ROWS, default="paper", help="of models; small: for a CPU")
    parser.add_argument("--name", default="dailydialog", help="of the corpus, in rows and tables")
    parser.add_argument("--variants", nargs="+", default=["presets"], help=f"names, or {', '.join(GROUPS)}")
    parser.add_argument(
        "--context-tokens", type=int, default=CONTEXT_TOKENS, help="of a context, its last so many are read"
    )
    parser.add_argument("--table", choices=TABLES)
    arguments = parser.parse_args()
    rows = ROWS[arguments.size]
    if arguments.out is None and arguments.context_tokens != CONTEXT_TOKENS:
        parser.error("Another --context-tokens is a trial: give --out, so that its rows do not pass for the study's.")
    arguments.out = arguments.out or rows
    arguments.work = arguments.work / arguments.size
    if arguments.table:
        print(TABLES[arguments.table](_alike(side_by_side.read(arguments.out), rows)))
        return
    names = [name for given in arguments.variants for name in GROUPS.get(given, (given,))]
    side_by_side.run(arguments, names, rows=rows, make=trained, told=_told)


def _alike(rows: list[dict[str, Any]], path: Path) -> list[dict[str, Any]]:
    """Rows that stand beside each other must be alike: all of a preset on a corpus of one size and one recipe."""
    known: dict[tuple[str, str], tuple[Any, Any]] = {}
    for row in rows:
        key, made = (row["corpus"], Variant.parse(row["variant"]).preset), (row["settings"], row["recipe"])
        if known.setdefault(key, made) != made:
            raise SystemExit(f"{' '.join(key)}: rows of two sizes or recipes. Delete those of one from {path.name}.")
    return rows


def _told(row: dict[str, Any]) -> str:
    return f"perplexity {row['perplexity']['value']:.2f}, BLEU-2 {row['bleu-2']['value']:.2f}"


if __name__ == "__main__":
    main()
