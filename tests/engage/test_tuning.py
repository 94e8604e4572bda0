from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.engage.samples import conversations, of

from dialoscope.engage import storage, tuning
from dialoscope.engage.encoder import Encoder
from dialoscope.engage.live import Calibration
from dialoscope.engage.predictor import Predictor, loss_of
from dialoscope.engage.shape import Recipe, Shape
from dialoscope.engage.tuning import Batch, Data, Moment, Plan, Tuned, tune
from dialoscope.errors import ModelError, OutputError, TrainingError, UsageError

TRAINING, VALIDATION = conversations(30, seed=1), conversations(10, seed=2)
RECIPE = Recipe(rate=1e-3, head_rate=1e-2, steps=12, warmup=3, batch_turns=16, evaluate_every=4)
FILES = ("weights.safetensors", "optimiser.safetensors", "config.json", "tokenizer.json")

# Says where it is, and lets itself be killed there. What a process did before can change how it rounds, so a run that
# is held against another process's is one of a process of its own.
SCRIPT = """
import sys, time
from tests.engage.test_tuning import RECIPE, TRAINING, VALIDATION
from dialoscope.engage import tuning
from dialoscope.engage.storage import load

def tell(moment, steps):
    print(moment.step, moment.validation is not None, flush=True)
    time.sleep(float(sys.argv[3]))

tuning.LOOK_EVERY = 1
start = load(sys.argv[1])
tuning.tune([TRAINING], VALIDATION, start=start, out=sys.argv[2], recipe=RECIPE, seed=3, resume=True, progress=tell)
"""


class Killed(Exception):
    """Stands for a kill where a process of its own would take too long."""


@pytest.fixture
def start(predictor: Callable[..., Predictor]) -> Predictor:
    return predictor(history=1)


@pytest.fixture
def run(start: Predictor, tmp_path: Path) -> Callable[..., Tuned]:
    """A short run of a toy corpus; options replace what is usual."""

    def go(out: str = "run", **options: Any) -> Tuned:
        usual = {"training": [TRAINING], "validation": VALIDATION, "start": start, "recipe": RECIPE, "seed": 3}
        return tune(out=tmp_path / out, **{**usual, **options})

    return go


Run = Callable[..., Tuned]


def weights(made: Predictor) -> dict[str, torch.Tensor]:
    return {**made.encoder.network.state_dict(), **made.head.state_dict(prefix="head.")}


def are_equal(first: Predictor, second: Predictor) -> bool:
    one, other = weights(first), weights(second)
    return all(torch.equal(one[key], other[key]) for key in one)


# --- Learning ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"history": 1, "activation": "sigmoid"}, {"classes": 5}], ids=str)
def test_depth_is_learnt(predictor: Callable[..., Predictor], run: Run, options: dict[str, Any]) -> None:
    recipe = replace(RECIPE, rate=2e-3, steps=60, evaluate_every=30)
    found = run(start=predictor(**options), recipe=recipe)
    first, last = found.history[0], found.history[-1]
    assert first.validation is not None and last.validation is not None and last.pearson is not None
    assert last.validation < min(0.8 * first.validation, 80 * float(VALIDATION.targets.var()))  # × 100: percent
    assert last.pearson > 0.5
    assert (found.steps, [one.step for one in found.history]) == (60, [0, 30, 60])


def test_the_logged_numbers_are_those_of_the_predictor_that_is_kept(run: Run, tmp_path: Path) -> None:
    found = run()
    scores = np.concatenate(found.predictor.predict(list(VALIDATION.dialogues)))
    at_best = next(one for one in found.history if one.step == found.best_step)
    assert at_best.validation == pytest.approx(100 * np.square(scores - VALIDATION.targets).mean(), abs=1e-4)
    assert at_best.pearson == pytest.approx(np.corrcoef(scores, VALIDATION.targets)[0, 1], abs=1e-4)
    assert at_best.validation == min(one.validation for one in found.history if one.validation is not None)
    lines = list(csv.DictReader((tmp_path / "run" / "log.csv").read_text().splitlines()))
    assert [int(line["step"]) for line in lines] == [0, 4, 8, 12]
    assert [float(line["validation"]) for line in lines] == [one.validation for one in found.history]
    assert lines[0]["loss"] == ""


def test_one_step_of_sgd_by_hand(bert: Path, run: Run, tmp_path: Path) -> None:
    """The gradient of the bias is the mean of 2 (score - target), whatever the history: each window is a mean."""
    still = Encoder.load(bert)
    for module in still.network.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    begun = Predictor.untrained(still, Shape(history=2))
    errors = np.concatenate(begun.predict(list(TRAINING.dialogues))) - TRAINING.targets
    recipe = Recipe("sgd", 0.01, 0.1, steps=1, warmup=2, batch_turns=10_000, clip=1e9, loss_scale=5.0)
    run(start=begun, recipe=recipe)
    found = storage.load(tmp_path / "run" / "last")
    expected = begun.head.bias.item() - 0.1 * (1 / 2) * 5.0 * 2 * errors.mean()  # half the rate in the warm-up
    assert found.head.bias.item() == pytest.approx(expected, abs=1e-5)


def test_rates_follow_the_schedule(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[list[float]] = []
    step = torch.optim.AdamW.step

    def watched(self: Any, *given: Any, **options: Any) -> Any:
        taken.append([group["lr"] for group in self.param_groups])
        return step(self, *given, **options)

    monkeypatch.setattr(torch.optim.AdamW, "step", watched)
    run(recipe=Recipe(rate=1e-3, head_rate=1e-2, steps=4, warmup=2, batch_turns=16))
    np.testing.assert_allclose(taken, [[0.5e-3, 0.5e-2], [1e-3, 1e-2], [1e-3, 1e-2], [0.5e-3, 0.5e-2]])


def test_the_same_seed_gives_the_same_weights_and_another_gives_others(run: Run, start: Predictor) -> None:
    first, second, other = run("a"), run("b"), run("c", seed=4)
    assert are_equal(first.predictor, second.predictor)
    assert not are_equal(first.predictor, other.predictor)


def test_what_is_tuned_is_a_copy(run: Run, bert: Path) -> None:
    begun = Predictor.untrained(Encoder.load(bert), Shape())
    before = {key: one.clone() for key, one in weights(begun).items()}
    found = run(start=begun)
    assert all(torch.equal(one, before[key]) for key, one in weights(begun).items())
    assert not are_equal(found.predictor, begun)


def test_history_costs_nothing_in_a_training_step(run: Run, encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    work: list[int] = []
    forward = Encoder._forward

    def watched(self: Encoder, ids: Sequence[Sequence[int]], pooling: str) -> torch.Tensor:
        work.append(len(ids) if torch.is_grad_enabled() else 0)
        return forward(self, ids, pooling)

    monkeypatch.setattr(Encoder, "_forward", watched)
    counts = []
    for history in (0, 3):
        work.clear()
        begun = Predictor.untrained(encoder, Shape(history=history))
        run(f"history-{history}", start=begun, recipe=Recipe(steps=1, batch_turns=10_000))
        counts.append(sum(work))
    assert counts == [len(TRAINING.texts)] * 2


# --- Batches ----------------------------------------------------------------------------------------------------------


def batches(parts: Sequence[Any], encoder: Encoder, count: int, *, first: int = 0, **recipe: Any) -> list[Batch]:
    data = Data.of(parts, encoder, Shape())
    plan = Plan(Shape(), replace(RECIPE, **recipe), 3, "valloss")
    return list(islice(data.batches(plan, first=first), count))


def dialogues_of(batch: Batch) -> list[tuple[Any, ...]]:
    """Token ids and targets of each dialogue."""
    pairs = zip(batch.starts[:-1], batch.starts[1:], strict=True)
    return [(*map(tuple, batch.ids[low:high]), *batch.targets[low:high].tolist()) for low, high in pairs]


NUMBERED = of([[f"hello {'a b c d e f'[: 2 * place]}", *["i see"] * (place % 4), "bye"] for place in range(7)])


def test_every_dialogue_comes_whole_and_once_an_epoch_in_another_order(encoder: Encoder) -> None:
    ids = encoder.read(NUMBERED.texts, Shape())
    whole = dialogues_of(Batch(ids, NUMBERED.starts, NUMBERED.targets))
    taken = [dialogues_of(one) for one in batches([NUMBERED], encoder, 40, batch_turns=6)]
    epochs: list[list[tuple[Any, ...]]] = [[]]
    for batch in taken:
        if len(epochs[-1]) == len(whole):
            epochs.append([])
        epochs[-1] += batch
    assert len(epochs) > 5
    for epoch in epochs[:-1]:
        assert sorted(epoch) == sorted(whole)
    assert epochs[0] != epochs[1]


def test_a_batch_ends_with_the_dialogue_that_fills_it(encoder: Encoder) -> None:
    taken = batches([NUMBERED], encoder, 20, batch_turns=6)
    for batch in taken:
        assert batch.starts[-2] < 6  # without its last dialogue, it had too few turns
    full = [batch for batch in taken if len(batch.ids) >= 6]
    assert len(full) >= len(taken) * 2 / 3  # the last one of an epoch may have fewer


def test_batches_from_a_step_on_are_those_of_an_unbroken_run(encoder: Encoder) -> None:
    for mixing in ("proportional", "by-corpus"):
        options: dict[str, Any] = {"batch_turns": 6, "mixing": mixing}
        whole = batches([NUMBERED, VALIDATION], encoder, 12, **options)
        later = batches([NUMBERED, VALIDATION], encoder, 5, first=7, **options)
        assert list(map(dialogues_of, later)) == list(map(dialogues_of, whole[7:]))


def test_mixing_by_corpus_takes_a_batch_of_each_in_turn(encoder: Encoder) -> None:
    small, large = of([["a", "b"]] * 3), of([["c", "d", "e"]] * 40)
    by_corpus = batches([small, large], encoder, 10, batch_turns=6, mixing="by-corpus")
    first = [{tuple(one) for one in batch.ids} for batch in by_corpus]
    words = [{tuple(one) for one in encoder.read(part.texts, Shape())} for part in (small, large)]
    assert first == [words[0], words[1]] * 5


def test_proportional_mixing_takes_dialogues_as_they_come(encoder: Encoder) -> None:
    small, large = of([["a", "b"]] * 10), of([["c", "d"]] * 30)
    epoch = batches([small, large], encoder, 10, batch_turns=8)  # four dialogues a batch
    taken = [tuple(batch.ids[place]) for batch in epoch for place in batch.starts[:-1]]
    opening = tuple(encoder.read(["a"], Shape())[0])
    assert (len(taken), taken.count(opening)) == (40, 10)
    assert any(len({tuple(one) for one in batch.ids}) == 4 for batch in epoch)  # both corpora in one batch


# --- Killed and resumed -----------------------------------------------------------------------------------------------


def stopping(*, step: int, is_evaluated: bool) -> Callable[[Moment, int], None]:
    def progress(moment: Moment, steps: int) -> None:
        if moment.step == step and (moment.validation is not None) == is_evaluated:
            raise Killed

    return progress


def differing(first: Path, second: Path) -> list[str]:
    """Files of two runs that are not the same, and by how much weights differ."""
    pairs = [(first / at / name, second / at / name) for at in ("best", "last") for name in FILES]
    there = [(one, other) for one, other in pairs if one.exists() or other.exists()]
    return [f"{one} {_farthest(one, other)}" for one, other in there if one.read_bytes() != other.read_bytes()]


def _farthest(first: Path, second: Path) -> dict[str, float] | str:
    if first.suffix != ".safetensors":
        return first.read_text()[:200] + second.read_text()[:200]
    one, other = load_file(first), load_file(second)
    apart = {key: float((one[key].double() - other[key].double()).abs().max()) for key in one}
    return {key: value for key, value in apart.items() if value}


def logged(folder: Path) -> list[list[str]]:
    """The log, less the seconds."""
    return [line[:-1] for line in csv.reader((folder / "log.csv").read_text().splitlines())]


SGD = replace(RECIPE, optimiser="sgd", evaluate_every=5)  # an optimiser without memory, a last interval cut short


@pytest.fixture(scope="module")
def unbroken(predictor: Callable[..., Predictor], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of runs that nobody killed, by optimiser."""
    folder = tmp_path_factory.mktemp("unbroken")
    for recipe in (RECIPE, SGD):
        out = folder / recipe.optimiser
        tune([TRAINING], VALIDATION, start=predictor(history=1), out=out, recipe=recipe, seed=3)
    return {recipe.optimiser: folder / recipe.optimiser for recipe in (RECIPE, SGD)}


@pytest.mark.parametrize(
    ("recipe", "stops"),
    [
        (RECIPE, [(4, True)]),  # after an evaluation
        (RECIPE, [(6, False)]),  # between two
        (RECIPE, [(2, False)]),  # before the first, but for that of the untrained one
        (RECIPE, [(3, False), (8, True), (11, False)]),
        (RECIPE, [(12, True)]),  # after all was done
        (SGD, [(7, False), (11, False)]),
    ],
    ids=lambda given: str(given) if isinstance(given, list) else given.optimiser,
)
def test_killed_and_resumed_is_the_unbroken_run_bit_for_bit(
    run: Run,
    unbroken: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    recipe: Recipe,
    stops: list[tuple[int, bool]],
) -> None:
    monkeypatch.setattr(tuning, "LOOK_EVERY", 1)
    whole = unbroken[recipe.optimiser]
    for step, is_evaluated in stops:
        with pytest.raises(Killed):
            run(recipe=recipe, resume=True, progress=stopping(step=step, is_evaluated=is_evaluated))
    resumed = run(recipe=recipe, resume=True)
    assert not differing(whole, tmp_path / "run")
    assert logged(whole) == logged(tmp_path / "run")
    assert resumed.predictor.name == storage.load(whole).name


@pytest.mark.parametrize("save", [1, 2, 3, 8])  # the first last, the first best, the second last, the last best
def test_killed_at_any_write_and_resumed_is_the_unbroken_run(
    run: Run, unbroken: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: int
) -> None:
    plain, calls = storage.save, iter(range(1, 100))

    def failing(path: Path, *given: Any, **options: Any) -> None:
        if next(calls) == save:
            raise Killed
        plain(path, *given, **options)

    monkeypatch.setattr(storage, "save", failing)
    with pytest.raises(Killed):
        run()
    monkeypatch.setattr(storage, "save", plain)
    run(resume=True)
    assert not differing(unbroken["adamw"], tmp_path / "run")
    assert logged(unbroken["adamw"]) == logged(tmp_path / "run")


def test_a_process_that_is_killed_and_resumed_is_the_unbroken_run(start: Predictor, tmp_path: Path) -> None:
    storage.save(tmp_path / "start", start)

    def process(out: str, *, pause: float) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", SCRIPT, str(tmp_path / "start"), str(tmp_path / out), str(pause)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2], env=environment
        )

    with process("whole", pause=0) as whole, process("run", pause=0.2) as killed:
        assert whole.stdout is not None and killed.stdout is not None
        assert any(line.strip() == "7 False" for line in killed.stdout)
        killed.send_signal(signal.SIGKILL)
        assert killed.wait() == -signal.SIGKILL
        assert [line.split() for line in whole.stdout][-1] == ["12", "True"]
    assert logged(tmp_path / "run")[-1][0] == "4"
    with process("run", pause=0) as resumed:
        assert resumed.stdout is not None
        first, *_ = resumed.stdout.readlines()
        assert first.split() == ["5", "False"]
    assert (whole.returncode, resumed.returncode) == (0, 0)
    assert not differing(tmp_path / "whole", tmp_path / "run")
    assert logged(tmp_path / "whole") == logged(tmp_path / "run")


def test_a_run_that_has_ended_is_only_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = run()
    monkeypatch.setattr(tuning.Run, "step", lambda *_: pytest.fail("a step was taken"))
    again = run(resume=True)
    assert are_equal(again.predictor, ended.predictor)
    assert [one.validation for one in again.history] == [one.validation for one in ended.history]


@pytest.mark.parametrize("before", [(False, False), (True, True), (True, False)], ids=str)
def test_a_step_leaves_pytorchs_own_choice_as_it_was(before: tuple[bool, bool]) -> None:
    was_enabled, is_mild = before
    torch.use_deterministic_algorithms(was_enabled, warn_only=is_mild)
    try:
        with pytest.raises(Killed), tuning._repeatable():
            assert torch.are_deterministic_algorithms_enabled()
            # who asked for an error gets it; nobody else does
            assert torch.is_deterministic_algorithms_warn_only_enabled() is (before != (True, False))
            raise Killed
        assert torch.are_deterministic_algorithms_enabled() is was_enabled
        assert torch.is_deterministic_algorithms_warn_only_enabled() is is_mild
    finally:
        torch.use_deterministic_algorithms(False)


# --- What is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"seed": 4}, "seed"),
        ({"recipe": replace(RECIPE, rate=1e-4)}, "recipe"),
        ({"training": [VALIDATION]}, "training"),
        ({"validation": TRAINING}, "validation"),
    ],
)
def test_another_run_is_not_resumed_in_the_same_folder(
    run: Run, tmp_path: Path, changed: dict[str, Any], key: str
) -> None:
    run()
    before = (tmp_path / "run" / "last" / "weights.safetensors").read_bytes()
    with pytest.raises(ModelError, match=rf"^[^\n]*another run was begun here \('{key}' differs\)[^\n]*$"):
        run(resume=True, **changed)
    assert (tmp_path / "run" / "last" / "weights.safetensors").read_bytes() == before


def test_a_run_with_another_history_is_not_resumed(run: Run, encoder: Encoder) -> None:
    run()
    with pytest.raises(ModelError, match=r"another run was begun here \('start' differs\)"):
        run(resume=True, start=Predictor.untrained(encoder, Shape(history=2)))


def test_a_run_is_not_begun_twice_nor_among_other_files(run: Run, tmp_path: Path) -> None:
    run()
    with pytest.raises(OutputError, match="a training run was begun here"):
        run()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "thesis.tex").touch()
    for resume in (False, True):
        with pytest.raises(OutputError, match="expected an empty folder"):
            run("notes", resume=resume)


def test_a_selection_must_be_known_and_have_what_it_needs(run: Run) -> None:
    with pytest.raises(UsageError, match="Unknown selection 'people'"):
        run(select="people")
    with pytest.raises(UsageError, match="needs a human-rated set: give --human"):
        run(select="human")


def test_a_loss_that_is_no_number_ends_the_run_and_the_last_checkpoint_is_good(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter(range(1, 100))
    monkeypatch.setattr(tuning, "loss_of", lambda *given: loss_of(*given) * (float("nan") if next(losses) > 5 else 1))
    with pytest.raises(TrainingError) as caught:
        run()
    assert str(caught.value) == (
        "The loss is no number any more at step 8. Give a smaller --rate. "
        f"Last good checkpoint: {tmp_path / 'run' / 'last'}."
    )
    found = storage.load(tmp_path / "run" / "last")
    assert all(bool(one.isfinite().all()) for one in weights(found).values())
    assert storage.read_standing(tmp_path / "run" / "last").state["step"] == 4


def test_a_last_step_that_breaks_the_weights_is_not_kept(run: Run, tmp_path: Path) -> None:
    recipe = Recipe("sgd", 1e30, steps=1, warmup=0, batch_turns=16)  # its loss, before the step, is a number
    with pytest.raises(TrainingError, match="The scores are no numbers any more at step 1"):
        run(recipe=recipe)
    assert storage.read_standing(tmp_path / "run" / "last").state["step"] == 0


# --- Selection --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rated:
    """Turns and what people think of them."""

    dialogues: Sequence[Sequence[str]]
    mean: np.ndarray[Any, Any]

    @property
    def selection_keys(self) -> Sequence[str]:
        return [f"item-{place}" for place in reversed(range(len(self.dialogues)))]


TURNS = [["hello there"], ["bye"], ["where is the station?", "it is near the river"], ["good night"]]


@pytest.mark.parametrize(("ratings", "is_late"), [([5, 1, 3, 1], True), ([1, 5, 3, 5], False)])
def test_selection_by_people_keeps_the_step_with_the_highest_pearson(
    run: Run, start: Predictor, ratings: list[float], is_late: bool
) -> None:
    people = Rated(TURNS, np.array(ratings))
    found = run(select="human", human=people, recipe=replace(RECIPE, steps=20))
    by_step = {one.step: one.human for one in found.history if one.human is not None}
    assert found.best_step == max(by_step, key=lambda step: by_step[step])
    agreement = np.corrcoef(found.predictor.rate(people.dialogues), people.mean)[0, 1]
    assert agreement == pytest.approx(max(by_step.values()), abs=1e-4)
    assert (found.best_step > 4) == is_late  # who likes farewells is served best before depth is learnt
    assert found.predictor.selected_on == {"item-0", "item-1", "item-2", "item-3"}


def test_people_who_are_only_watched_are_logged_and_select_nothing(run: Run) -> None:
    watched = run("watched", human=Rated(TURNS, np.array([1, 5, 3, 5])))
    assert all(one.human is not None for one in watched.history)
    assert watched.predictor.selected_on == frozenset()
    assert are_equal(watched.predictor, run("plain").predictor)


def test_what_a_predictor_was_selected_on_stays_with_what_is_tuned_from_it(run: Run, start: Predictor) -> None:
    begun = replace(start, origin={"selected_on": ["item-9"]})
    assert run("plain", start=begun).predictor.selected_on == {"item-9"}
    people = Rated(TURNS[:1] + TURNS[-1:], np.array([5, 1]))
    found = run("people", start=begun, select="human", human=people)
    assert found.predictor.selected_on == {"item-0", "item-1", "item-9"}


def test_intervals_of_other_weights_are_not_kept(run: Run, start: Predictor) -> None:
    scores = np.linspace(0, 1, 100, dtype=np.float32)
    assert (
        run(
            start=replace(start, calibration=Calibration.of(scores, scores, np.ones(100, np.int64)))
        ).predictor.calibration
        is None
    )


def test_patience_ends_a_run_after_so_many_evaluations_without_a_gain(run: Run, start: Predictor) -> None:
    unbeatable = Rated(TURNS, start.rate(TURNS))  # they agree fully with the untrained predictor
    recipe = replace(RECIPE, evaluate_every=2, patience=2)
    found = run("a", select="human", human=unbeatable, recipe=recipe)
    assert (found.best_step, found.steps) == (0, 4)


def test_a_kill_does_not_try_the_patience(run: Run, start: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "LOOK_EVERY", 1)
    options = {"select": "human", "human": Rated(TURNS, start.rate(TURNS))}
    options["recipe"] = replace(RECIPE, evaluate_every=2, patience=2)
    for step in (1, 3):
        with pytest.raises(Killed):
            run(**options, resume=True, progress=stopping(step=step, is_evaluated=False))
    assert run(**options, resume=True).steps == 4
