"""The training loop: what it learns, what it writes, and what ends it."""

from __future__ import annotations

import csv
import math
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from safetensors.torch import load_file

import dialoscope as ds
from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.errors import DialoscopeError, OutputError, TrainingError, UsageError
from dialoscope.model import Recipe, Structure, graphs, load_model, run_training, training
from dialoscope.model.batch import Batch, Output
from dialoscope.model.examples import Examples, examples_of
from dialoscope.model.log import Moment
from dialoscope.model.protocol import DialogueModel
from dialoscope.model.run import Data, Plan, TrainingResult


def run(corpus: Corpus, settings: Structure, recipe: Recipe, out: Path, **options: Any) -> TrainingResult:
    return run_training(corpus, settings, recipe, out=out, device="cpu", **{"bleu_samples": 4, **options})


def weights(folder: Path) -> bytes:
    return (folder / "weights.safetensors").read_bytes()


def rows(out: Path) -> list[dict[str, str]]:
    with (out / "log.csv").open(newline="") as file:
        return list(csv.DictReader(file))


# --- What it learns ---------------------------------------------------------------------------------------------------


def test_a_model_beats_the_entropy_of_single_words(tmp_path: Path) -> None:
    concierge = ds.corpus.generate(dialogues=40, seed=1)
    settings = Structure(attention="static", layers=1, width=24, embedding=24, vocabulary=200)
    recipe = Recipe("adam", 0.02, epochs=4, batch_size=32, clip=5.0)
    result = run(concierge, settings, recipe, tmp_path / "run", context_turns=2)
    vocabulary = load_model(tmp_path / "run").vocabulary
    assert result.history[-1].loss is not None
    assert result.history[-1].loss < unigram_entropy(examples_of(concierge.split("train"), vocabulary))
    found = [one.perplexity or math.inf for one in result.history]
    assert min(found[1:]) < found[0] / 2


def unigram_entropy(examples: Examples) -> float:
    """Nats a token costs whoever knows only how frequent each is: the best loss without reading anything."""
    turns = examples.turns
    counts = Counter(
        np.concatenate(
            [turns.tokens[turns.offsets[one] : turns.offsets[one + 1]] for one in examples.response]
        ).tolist()
    )
    shares = np.array(list(counts.values())) / sum(counts.values())
    return float(-(shares * np.log(shares)).sum())


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_the_same_seed_gives_the_same_weights(
    optimiser: Any, corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path
) -> None:
    short = replace(recipe, optimiser=optimiser, epochs=1)
    for name, seed in (("one", 5), ("same", 5), ("other", 6)):
        run(corpus, settings, short, tmp_path / name, seed=seed)
    for checkpoint in ("untrained", "last"):
        one, same, other = (weights(tmp_path / name / checkpoint) for name in ("one", "same", "other"))
        assert one == same
        assert one != other


def seeds_of(corpus: Corpus, settings: Structure, recipe: Recipe, out: Path) -> list[int]:
    """What dropout draws from, in each batch of a run."""
    seeds: list[int] = []

    def extra(output: Output, batch: Batch) -> torch.Tensor:
        seeds.append(torch.initial_seed())
        return output.states.sum() * 0

    run(corpus, settings, recipe, out, extra_loss=extra)
    return seeds


def test_dropout_is_drawn_anew_in_every_batch_of_every_epoch(
    corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path
) -> None:
    seeds = seeds_of(corpus, settings, recipe, tmp_path / "run")
    assert len(set(seeds)) == len(seeds) == 3 * 9


def test_every_process_drops_for_itself(
    corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short, found = replace(recipe, epochs=1), list[int]()
    for place in range(3):
        monkeypatch.setattr(Accelerator, "process_index", place)
        found += seeds_of(corpus, settings, short, tmp_path / str(place))
    assert len(set(found)) == len(found) == 3 * 9


def test_byte_pairs_are_trained_as_well(corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path) -> None:
    run(corpus, replace(settings, vocabulary=290), replace(recipe, epochs=1), tmp_path / "run", tokens="bpe")
    assert load_model(tmp_path / "run").vocabulary.kind == "bpe"


# --- What it writes ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def done(corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("done") / "run"
    moments: list[Moment] = []
    result = run(corpus, settings, recipe, out, progress=moments.append, validate=lambda model: {"length": 7.0})
    assert [one.epoch for one in result.history] == [0, 1, 2, 3]
    assert (result.epochs, result.out) == (3, str(out))
    assert [(one.epoch, one.done, one.batches) for one in moments if one.perplexity is None] == [
        (epoch, 9, 9)
        for epoch in (1, 2, 3)  # 24 dialogues have 72 responses
    ]
    return out


def test_every_checkpoint_is_a_model(done: Path) -> None:
    names = sorted(file.name for file in done.iterdir() if file.is_dir())
    assert names == ["best", "epoch-001", "epoch-002", "epoch-003", "last", "untrained"]
    assert len({load_model(done / name).name for name in names}) == 4  # best and last are copies
    assert weights(done / "epoch-003") == weights(done / "last")


def test_the_log_has_a_row_for_every_epoch(done: Path) -> None:
    found = rows(done)
    assert list(found[0]) == [
        "epoch", "step", "loss", "perplexity", "bleu_2", "rate", "samples_per_second", "seconds", "length",
    ]  # fmt: skip
    assert [(row["epoch"], row["step"], row["length"]) for row in found] == [
        ("0", "0", "7"), ("1", "9", "7"), ("2", "18", "7"), ("3", "27", "7"),
    ]  # fmt: skip
    assert found[0]["loss"] == ""
    assert float(found[3]["perplexity"]) < float(found[0]["perplexity"])


def test_no_file_is_a_pickle(done: Path) -> None:
    written = (file for file in done.rglob("*") if file.is_file())
    assert {file.suffix for file in written} == {".json", ".safetensors", ".csv"}


def test_a_checkpoint_tells_its_origin(done: Path, corpus: Corpus) -> None:
    from dialoscope.model.checkpoint import read_checkpoint

    origin = read_checkpoint(done).origin
    assert origin["corpus"] == f"shop@{corpus.fingerprint}"
    assert (origin["seed"], origin["recipe"]["epochs"]) == (0, 3)


# --- When the rate is halved, and when it ends ------------------------------------------------------------------------


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let validation find these perplexities: of the untrained model, then of each epoch."""

    def play(*values: float) -> None:
        script: Iterator[float] = iter(values)
        monkeypatch.setattr(training, "perplexity_of", lambda *given, **named: next(script))

    return play


@pytest.mark.parametrize(
    ("perplexities", "halve", "patience", "rates", "best"),
    [
        ([9, 5, 4, 3], True, None, [1, 1, 1], 3),
        ([9, 5, 6, 4], True, None, [1, 1, 0.5], 3),  # worse in epoch 2, so halved from epoch 3 on
        ([9, 5, 5, 5], True, None, [1, 1, 0.5], 1),  # as good is no better
        ([9, 5, 6, 7], False, None, [1, 1, 1], 1),
        ([9, 5, 6, 7], True, 1, [1, 1], 1),
        ([1, 5, 6, 4], True, 2, [1, 1, 0.5], 3),  # the untrained model counts for nothing
        ([9, 5, 7, 6, 4], True, None, [1, 1, 0.5, 0.25], 4),  # lower than before, but not than the lowest
        ([9, 5, 7, 6, 4], False, 2, [1, 1, 1], 1),
    ],
)
def test_the_rate_is_halved_when_perplexity_stops_falling(
    perplexities: list[float], halve: bool, patience: int | None, rates: list[float], best: int,
    scripted: Any, corpus: Corpus, settings: Structure, tmp_path: Path,
) -> None:  # fmt: skip
    scripted(*perplexities)
    recipe = Recipe(
        "sgd", 1.0, halve_when_stalled=halve, epochs=len(perplexities) - 1, batch_size=64, patience=patience
    )
    result = run(corpus, settings, recipe, tmp_path / "run")
    assert [one.rate for one in result.history[1:]] == rates
    assert result.best_epoch == best
    assert weights(tmp_path / "run" / "best") == weights(tmp_path / "run" / f"epoch-{best:03d}")


def test_the_best_can_be_chosen_by_bleu(
    corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = iter([0.0, 2.0, 3.0, 1.0])
    monkeypatch.setattr("dialoscope.model.evaluation.Questions.bleu_2", lambda *given: next(script))
    assert run(corpus, settings, recipe, tmp_path / "run", best_by="bleu-2").best_epoch == 2
    with pytest.raises(UsageError, match="needs responses to score"):
        run(corpus, settings, recipe, tmp_path / "none", best_by="bleu-2", bleu_samples=0)


def moved(folder: Path, *names: str) -> float:
    """How far apart the weights of two checkpoints are."""
    before, after = (load_file(folder / name / "weights.safetensors") for name in names)
    return math.sqrt(sum(float((before[name] - after[name]).square().sum()) for name in before))


def test_choosing_on_what_was_learnt_is_said(
    corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run(corpus, settings, replace(recipe, epochs=1), tmp_path / "same", validation_split="train")
    assert "Trained and validated on 'train'" in caplog.text
    caplog.clear()
    run(corpus, settings, replace(recipe, epochs=1), tmp_path / "other")
    assert "validated" not in caplog.text


def test_a_full_disk_is_one_line_and_names_what_is_left(
    corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import safetensors.torch

    real, calls = safetensors.torch.save_file, list[Path]()

    def full(tensors: Any, path: Path) -> None:
        calls.append(path)
        if len(calls) > 3:  # untrained, last with its optimiser, and then
            raise safetensors.SafetensorError("I/O error: No space left on device (os error 28)")
        real(tensors, path)

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(OutputError, match=r"No space left on device.*Last good checkpoint: .*last\.$"):
        run(corpus, settings, recipe, tmp_path / "run")
    assert {file.name for file in (tmp_path / "run").iterdir()} >= {"untrained", "last"}
    monkeypatch.setattr(safetensors.torch, "save_file", real)
    result = run(corpus, settings, recipe, tmp_path / "run", resume=True)
    assert result.epochs == 3


def test_a_folder_without_its_best_checkpoint_says_which_is_read(
    corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run(corpus, settings, replace(recipe, epochs=1), tmp_path / "run")
    load_model(tmp_path / "run")
    assert "checkpoint" not in caplog.text
    shutil.rmtree(tmp_path / "run" / "best")
    load_model(tmp_path / "run")
    assert "run has no best checkpoint: its last one is read." in caplog.text
    caplog.clear()
    load_model(tmp_path / "run" / "last")
    assert not caplog.text


@pytest.mark.parametrize(("size", "tokens", "least"), [(1, "words", 6), (5, "words", 6), (260, "bpe", 261)])
def test_a_vocabulary_without_room_for_words_is_refused_as_it_was_given(
    size: int, tokens: str, least: int, corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=f"vocabulary is {size}, expected at least {least} for {tokens}"):
        run(corpus, replace(settings, vocabulary=size), recipe, tmp_path / "run", tokens=tokens)


def test_gradients_are_clipped(corpus: Corpus, settings: Structure, tmp_path: Path) -> None:
    recipe = Recipe("sgd", 1.0, epochs=1, batch_size=1000, clip=0.01)  # one step: it moves by the clip at most
    run(corpus, settings, recipe, tmp_path / "run")
    assert moved(tmp_path / "run", "untrained", "last") == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("has_extra", [False, True])
def test_a_loss_over_responses_sums_their_tokens(
    has_extra: bool, corpus: Corpus, settings: Structure, tmp_path: Path
) -> None:
    """One step of SGD over the whole training split moves every weight by the loss's gradient."""

    def squared(output: Output, batch: Batch) -> torch.Tensor:
        return output.states.square().mean()

    extra = squared if has_extra else None
    for over in ("tokens", "responses"):
        recipe = Recipe("sgd", 0.1, epochs=1, batch_size=1000, loss_over=over)
        run(corpus, settings, recipe, tmp_path / over, extra_loss=extra)
    steps = Data.of(corpus, Plan(settings, recipe, 0)).training.steps
    apart = {over: moved(tmp_path / over, "untrained", "last") for over in ("tokens", "responses")}
    assert apart["responses"] / apart["tokens"] == pytest.approx(steps.sum() / len(steps), rel=1e-4)


def test_the_rate_rises_in_the_beginning(corpus: Corpus, settings: Structure, tmp_path: Path) -> None:
    recipe = Recipe("sgd", 1.0, warmup=4, epochs=1, batch_size=1000, clip=0.01)  # one step at a quarter of the rate
    run(corpus, settings, recipe, tmp_path / "run")
    assert moved(tmp_path / "run", "untrained", "last") == pytest.approx(0.01 / 4, rel=1e-3)
    longer = replace(recipe, epochs=6)
    result = run(corpus, settings, longer, tmp_path / "longer")
    assert [one.rate for one in result.history] == [0.25, 0.5, 0.75, 1, 1, 1, 1]  # of the step that comes next


# --- Transforms and extra losses --------------------------------------------------------------------------------------


def test_a_transform_is_drawn_anew_every_epoch_and_never_for_validation(
    corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path
) -> None:
    seen: list[tuple[int, int]] = []

    def transform(examples: Examples, rng: np.random.Generator) -> Examples:
        seen.append((len(examples), int(rng.integers(10**9))))
        return examples.take(np.arange(8))

    result = run(corpus, settings, recipe, tmp_path / "run", transform=transform, seed=4)
    assert seen == [(72, int(np.random.default_rng([4, epoch]).integers(10**9))) for epoch in (1, 2, 3)]
    assert result.steps == 3  # eight examples are one batch


def test_an_extra_loss_is_added_in_training_only(
    corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path
) -> None:
    seen: list[bool] = []

    def extra(output: Output, batch: Batch) -> torch.Tensor:
        seen.append(torch.is_grad_enabled() and output.log_attention is not None)
        return output.states.square().mean()

    plain = run(corpus, settings, replace(recipe, epochs=1), tmp_path / "plain")
    more = run(corpus, settings, replace(recipe, epochs=1), tmp_path / "more", extra_loss=extra)
    assert seen == [True] * 9
    assert plain.history[0].perplexity == more.history[0].perplexity
    assert weights(tmp_path / "plain" / "last") != weights(tmp_path / "more" / "last")


def _large_batches(output: Output, batch: Batch) -> torch.Tensor:
    """Half of each sample in a batch of 50, nothing of others; no gradient."""
    return torch.tensor(0.5 if len(batch.response_length) == 50 else 0.0)


def test_the_log_has_the_extra_loss_in_a_column_of_its_own(
    corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path
) -> None:
    chosen = replace(recipe, epochs=2, batch_size=50)  # 72 samples are batches of 50 and 22
    run(corpus, settings, chosen, tmp_path / "plain")
    result = run(corpus, settings, chosen, tmp_path / "more", extra_loss=_large_batches)
    plain, more = rows(tmp_path / "plain"), rows(tmp_path / "more")
    assert list(more[0])[:4] == ["epoch", "step", "loss", "extra_loss"]
    assert "extra_loss" not in plain[0]
    assert [row["extra_loss"] for row in more] == ["", "0.347222", "0.347222"]  # 0.5 · 50 / 72
    assert [row["loss"] for row in more] == [row["loss"] for row in plain]  # the cross-entropy alone
    assert result.to_dict()["history"][2]["extra_loss"] == pytest.approx(25 / 72)


LONG = Corpus.of(
    [
        Dialogue(tuple(Turn("AB"[k % 2], "a b c") for k in range(4)), id=f"{split}-{n}", split=split)
        for split in ("train", "validation")
        for n in range(3)
    ],
    name="long",
)


@pytest.mark.parametrize(
    ("tokens", "turns", "cut"),
    [
        (None, None, 0),
        (12, None, 0),  # contexts of three words and an end mark for each turn: 4, 8 and 12 tokens
        (11, None, 3),
        (8, None, 3),
        (7, None, 6),
        (4, 2, 6),
        (8, 2, 0),  # 4, 8 and 8 tokens
        (3, None, 9),
    ],
)
@pytest.mark.parametrize("transform", [None, ds.distract.InsertDistractions(1.0)])
def test_contexts_longer_than_what_is_read_are_counted(
    transform: Any, tokens: int | None, turns: int | None, cut: int, settings: Structure, recipe: Recipe
) -> None:
    plan = Plan(replace(settings, context_tokens=tokens), recipe, context_turns=turns, transform=transform)
    assert Data.of(LONG, plan).cut == cut


def test_what_is_cut_is_said_once(
    settings: Structure, recipe: Recipe, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    result = run(LONG, replace(settings, context_tokens=8), replace(recipe, epochs=2), tmp_path / "cut")
    assert caplog.messages == [
        "3 of 9 training contexts are longer than context_tokens=8: only their last tokens are read."
    ]
    assert result.to_dict()["cut_contexts"] == 3
    caplog.clear()
    run(LONG, replace(settings, context_tokens=12), replace(recipe, epochs=1), tmp_path / "whole")
    assert caplog.messages == []


@pytest.mark.parametrize("kind", ["non-hier", "dynamic", "hred", "transformer"])
def test_distractions_and_attention_loss_work_with_every_attention(kind: str, corpus: Corpus, tmp_path: Path) -> None:
    preset = ds.model.preset(kind)
    small = replace(preset.settings, layers=1, width=8, embedding=8, vocabulary=60)
    options = {"transform": ds.distract.InsertDistractions(1.0), "extra_loss": ds.distract.AttentionLoss(100.0, "sum")}
    result = run(corpus, small, replace(preset.recipe, epochs=1, batch_size=24), tmp_path / "run", **options)
    assert result.steps == 3


# --- What ends it early -----------------------------------------------------------------------------------------------


def _nothing(output: Output, batch: Batch) -> torch.Tensor:
    return output.states.sum() * math.nan


def _out_of_memory(output: Output, batch: Batch) -> torch.Tensor:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.\nIncluding\nlines")


def _no_cpu_memory(output: Output, batch: Batch) -> torch.Tensor:
    raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")


@pytest.mark.parametrize(
    ("extra", "batch_size", "message"),
    [
        (_nothing, 8, "The loss became nan in epoch 1 after 9 batches"),
        (_nothing, 1000, "The validation perplexity became nan in epoch 1 after 1 batches"),  # seen after the update
        (_out_of_memory, 8, "Out of memory on cpu in epoch 1 after 0 batches"),
        (_no_cpu_memory, 8, "Out of memory on cpu in epoch 1 after 0 batches"),
    ],
)
def test_what_cannot_go_on_names_the_last_good_checkpoint(
    extra: Any, batch_size: int, message: str, corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path
) -> None:
    with pytest.raises(TrainingError, match=message) as caught:
        run(corpus, settings, replace(recipe, batch_size=batch_size), tmp_path / "run", extra_loss=extra)
    good = tmp_path / "run" / "last"
    assert str(caught.value).endswith(f"Last good checkpoint: {good}.")
    assert "\n" not in str(caught.value)
    assert all(torch.isfinite(one).all() for one in load_file(good / "weights.safetensors").values())


NO_ROOM = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.\nIncluding\nlines"),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    MemoryError(),
]


@pytest.mark.parametrize("error", NO_ROOM, ids=lambda error: type(error).__name__)
def test_a_model_that_has_no_room_is_one_line(
    error: Exception,
    corpus: Corpus,
    settings: Structure,
    recipe: Recipe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_room(settings: Structure) -> None:
        raise error

    monkeypatch.setattr(training, "Seq2Seq", no_room)
    with pytest.raises(TrainingError, match="no room for a model of 1 layers of width 12, ") as caught:
        run(corpus, settings, recipe, tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_model_of_more_bytes_than_can_be_counted_is_one_line(
    corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path
) -> None:
    with pytest.raises(TrainingError, match="no room for a model of 1 layers of width 4,000,000,000"):
        run(corpus, replace(settings, width=4_000_000_000), recipe, tmp_path / "run")


@pytest.mark.parametrize("extra", [None, _out_of_memory])
def test_captured_graphs_give_their_memory_back_at_the_end(
    extra: Any, corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleared: list[str] = []
    monkeypatch.setattr(graphs, "clear", lambda: cleared.append("graphs"))
    try:
        run(corpus, settings, replace(recipe, epochs=1), tmp_path / "run", extra_loss=extra)
    except TrainingError:
        assert cleared == ["graphs"] * 2  # before giving up, and at the end
    else:
        assert cleared == ["graphs"]


class Full:
    """A loss for which there is no memory on some calls; what was computed before the failure has left gradients."""

    def __init__(self, *calls: int) -> None:
        self.calls, self.called = calls, 0

    def __call__(self, output: Output, batch: Batch) -> torch.Tensor:
        self.called += 1
        if self.called in self.calls:
            output.states.sum().backward(retain_graph=True)  # type: ignore[no-untyped-call]
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return output.states.sum() * 0


def test_a_batch_is_tried_again_once_captured_graphs_gave_way(
    corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unbroken = run(corpus, settings, recipe, tmp_path / "unbroken", extra_loss=Full())
    monkeypatch.setattr(graphs, "give_way", lambda: True)
    found = run(corpus, settings, recipe, tmp_path / "found", extra_loss=Full(2, 5))
    assert found.steps == unbroken.steps
    one, other = (load_file(tmp_path / name / "last" / "weights.safetensors") for name in ("unbroken", "found"))
    assert all(torch.equal(one[key], other[key]) for key in one)
    with pytest.raises(TrainingError, match="Out of memory on cpu in epoch 1 after 1 batches"):
        run(corpus, settings, recipe, tmp_path / "twice", extra_loss=Full(2, 3))


def test_graphs_give_way_where_they_hold_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "SHARE_OF_MEMORY", 0.3)
    assert not graphs.give_way()
    monkeypatch.setitem(graphs._waiting, ("some run",), [object()])
    assert graphs.give_way()
    assert graphs.SHARE_OF_MEMORY == 0.15
    assert not graphs._waiting


def test_a_bug_keeps_its_trace(corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path) -> None:
    def broken(output: Output, batch: Batch) -> torch.Tensor:
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes do not match"):
        run(corpus, settings, recipe, tmp_path / "run", extra_loss=broken)


# --- What is refused --------------------------------------------------------------------------------------------------


def test_a_run_is_not_overwritten(done: Path, corpus: Corpus, settings: Structure, recipe: Recipe) -> None:
    with pytest.raises(OutputError, match="Give --resume"):
        run(corpus, settings, recipe, done)


def test_a_folder_with_other_files_is_not_used(
    corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path
) -> None:
    (tmp_path / "thesis.txt").write_text("")
    with pytest.raises(OutputError, match=r"found thesis\.txt"):
        run(corpus, settings, recipe, tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train_split": "all"}, "No split 'all'"),
        ({"validation_split": "dev"}, "No split 'dev'"),
        ({"tokens": "letters"}, "Unknown kind of tokens"),
        ({"best_by": "luck"}, "Unknown measure"),
    ],
)
def test_what_does_not_exist_is_refused(
    options: dict[str, str], message: str, corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        run(corpus, settings, recipe, tmp_path / "run", **options)


def test_single_turns_cannot_be_learnt_from(settings: Structure, recipe: Recipe, tmp_path: Path) -> None:
    turn = ds.Turn("A", "Hi.")
    alone = Corpus.of([ds.Dialogue((turn,), id=split, split=split) for split in ("train", "validation")])
    with pytest.raises(TrainingError, match="two turns or more in 'train'"):
        run(alone, settings, recipe, tmp_path / "run")


def test_validate_sees_the_model_of_the_epoch(
    corpus: Corpus, settings: Structure, recipe: Recipe, tmp_path: Path
) -> None:
    names: list[str] = []

    def validate(model: DialogueModel) -> dict[str, float]:
        names.append(model.name)
        return {"seen": len(names)}

    result = run(corpus, settings, replace(recipe, epochs=1), tmp_path / "run", preset="mine", validate=validate)
    assert names == [load_model(tmp_path / "run" / name).name for name in ("untrained", "last")]
    assert [one.more for one in result.history] == [{"seen": 1}, {"seen": 2}]


def test_errors_are_ours_to_catch() -> None:
    assert issubclass(TrainingError, DialoscopeError)
