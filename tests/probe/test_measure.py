from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from dialoscope.corpus import Corpus, Dialogue, Turn, generate
from dialoscope.errors import UsageError
from dialoscope.metrics import Resampling
from dialoscope.model.protocol import Attention, Context, Decoding, DialogueModel, Floats, Likelihood
from dialoscope.probe import TASKS, Examples, Settings, chosen_tasks, examine, examples, write_result
from dialoscope.probe.encodings import encode
from dialoscope.probe.measure import measure
from dialoscope.probe.pictures import main_directions
from dialoscope.report import read_run

FEW = Resampling(resamples=50)


class Counting:
    """A model that encodes how many turns a context has, as one of eight directions, and how often it was asked."""

    def __init__(self, name: str = "counting@0") -> None:
        self.name, self.asked = name, 0

    def encode(self, contexts: Sequence[Context]) -> Floats:
        self.asked += len(contexts)
        lengths = np.array([min(len(context), 8) - 1 for context in contexts])
        return np.asarray(10 * np.eye(8)[lengths], dtype=np.float32)

    def attend(self, contexts: Sequence[Context], responses: Sequence[str]) -> list[Attention]:
        raise NotImplementedError

    def log_likelihood(self, contexts: Sequence[Context], responses: Sequence[str]) -> list[Likelihood]:
        raise NotImplementedError

    def generate(self, contexts: Sequence[Context], *, decoding: Decoding | None = None) -> list[str]:
        raise NotImplementedError


class Blind(Counting):
    """A model that encodes everything alike."""

    def encode(self, contexts: Sequence[Context]) -> Floats:
        return np.ones((len(contexts), 4), dtype=np.float32)


class Broken(Counting):
    """A model that encodes nothing."""

    def encode(self, contexts: Sequence[Context]) -> Floats:
        return np.full((len(contexts), 2), np.nan, dtype=np.float32)


def chat(count: int, split: str) -> list[Dialogue]:
    """Dialogues of equal contexts; the last response, which is in none of them, tells them apart."""
    turns = [Turn("AB"[place % 2], f"word{place} and") for place in range(8)]
    names = [f"{split}{number}" for number in range(count)]
    return [Dialogue((*turns, Turn("A", name)), name, split) for name in names]


CHAT = Corpus.of([*chat(30, "train"), *chat(12, "validation")], name="chat")


def splits(corpus: Corpus) -> tuple[Examples, Examples]:
    return examples(corpus, split="train"), examples(corpus, split="validation")


def test_an_encoding_that_knows_scores_fully_and_one_that_does_not_scores_as_the_majority() -> None:
    """As many contexts of 1, 2, … 8 turns: fifths end at 2, 4, 5 and 7, so no bucket holds more than two of eight."""
    tasks = chosen_tasks(["UtteranceLoc"])
    models: dict[str, DialogueModel] = {"knows": Counting(), "blind": Blind("blind@0")}
    result = examine(models, *splits(CHAT), tasks=tasks, resampling=FEW).result
    knows, blind = (result.models[name].tasks["UtteranceLoc"] for name in models)
    assert knows.f1.value == 1.0
    assert knows.controls["majority"].value == pytest.approx(2 / 8)
    assert blind.f1.value == pytest.approx(2 / 8)
    assert knows.f1.n == 12 * 8
    assert knows.controls["shuffled"].value is not None and knows.controls["shuffled"].value < 0.6
    difference = result.comparisons["blind"]["UtteranceLoc"]
    assert difference.difference.value == pytest.approx(6 / 8)


def test_words_say_what_they_say() -> None:
    """The last word of a context names its length, so a bag of words knows it too."""
    result = examine({"m": Counting()}, *splits(CHAT), tasks=chosen_tasks(["UtteranceLoc"]), resampling=FEW).result
    assert result.models["m"].tasks["UtteranceLoc"].controls["bag_of_words"].value == 1.0


def test_a_model_that_cannot_be_made_anew_says_so() -> None:
    found = examine({"m": Counting()}, *splits(CHAT), tasks=chosen_tasks(["UtteranceLoc"]), resampling=FEW).result
    one = found.models["m"]
    assert "untrained" not in one.tasks["UtteranceLoc"].controls
    assert "does not say what it is made of" in one.to_dict()["untrained"]


def test_tasks_that_the_corpus_cannot_carry_are_named_with_the_reason() -> None:
    found = measure({"m": Counting()}, *splits(CHAT), settings=Settings(has_controls=False))
    assert set(found.skipped) == set(TASKS) - set(found.labels)
    assert "needs state annotation" in found.skipped["RecentSlots"]
    with pytest.raises(UsageError, match="Nothing to probe: PersonalInfo needs persona"):
        measure({"m": Counting()}, *splits(CHAT), tasks=chosen_tasks(["PersonalInfo"]))


def test_all_18_tasks_on_the_built_in_corpus() -> None:
    corpus = generate(dialogues=120, seed=1)
    parts = examples(corpus.split("train")), examples(corpus.split("validation"))
    result = examine({"m": Counting()}, *parts, settings=Settings(has_controls=False), resampling=FEW).result
    shown = result.to_dict()
    assert list(shown["models"]["m"]["tasks"]) == list(TASKS)
    assert shown["skipped"] == {}
    assert all(0 <= one["f1"] <= 1 and one["labels"] > 1 for one in shown["models"]["m"]["tasks"].values())
    hard = [one["f1"] for name, one in shown["models"]["m"]["tasks"].items() if TASKS[name].difficulty == "hard"]
    assert shown["models"]["m"]["groups"]["hard"] == pytest.approx(np.mean(hard))


def test_encodings_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialoscope.probe.encodings.AT_ONCE", 50)
    model, (training, _) = Counting(), splits(CHAT)
    first = encode(model, training, tokens=100, cache=tmp_path)
    assert model.asked == len(training) == 240
    again = encode(model, training, tokens=100, cache=tmp_path)
    assert model.asked == 240
    assert np.array_equal(first, again)
    assert np.array_equal(first, encode(Counting(), training, tokens=100))
    encode(model, training, tokens=99, cache=tmp_path)
    assert model.asked == 240 + 240  # another cut is another encoding
    encode(Counting("other@1"), training, tokens=100, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 3


def test_encodings_that_are_kept_are_one_file_and_not_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialoscope.probe.encodings.AT_ONCE", 50)
    for _ in range(2):  # when they are made, and when they are read again
        found = encode(Counting(), splits(CHAT)[0], tokens=100, cache=tmp_path)
        assert isinstance(found, np.memmap) and found.filename is not None
        assert [path.name for path in tmp_path.rglob("*.npy")] == [Path(found.filename).name] == ["whole.npy"]
        found[0] = -1  # torch wants to be able to; the file stays as it is


def test_a_run_that_was_killed_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(Counting):
        def encode(self, contexts: Sequence[Context]) -> Floats:
            if self.asked >= 150:
                raise KeyboardInterrupt
            return super().encode(contexts)

    monkeypatch.setattr("dialoscope.probe.encodings.AT_ONCE", 50)
    training, _ = splits(CHAT)
    with pytest.raises(KeyboardInterrupt):
        encode(Killed(), training, tokens=100, cache=tmp_path)
    portions = sorted(tmp_path.rglob("*.npy"))
    assert [path.name for path in portions] == ["000000000.npy", "000000050.npy", "000000100.npy"]
    portions[1].write_bytes(portions[1].read_bytes()[:-9])  # one of them is damaged
    model = Counting()
    found = encode(model, training, tokens=100, cache=tmp_path)
    assert model.asked == 240 - 2 * 50
    assert np.array_equal(found, Counting().encode(training.contexts(100)))


def test_a_damaged_encoding_is_made_anew(tmp_path: Path) -> None:
    training, _ = splits(CHAT)
    first = np.array(encode(Counting(), training, tokens=100, cache=tmp_path))
    (whole,) = tmp_path.rglob("whole.npy")
    shorter = BytesIO()
    np.save(shorter, first[:-1])  # whole, but of fewer positions
    for damaged in (b"", whole.read_bytes()[:-9], shorter.getvalue()):
        whole.write_bytes(damaged)
        model = Counting()
        assert np.array_equal(encode(model, training, tokens=100, cache=tmp_path), first)
        assert model.asked == 240


class Reading(Counting):
    """A model that says how it reads."""

    def __init__(self, **settings: object) -> None:
        super().__init__()
        self.settings = settings


def test_what_is_read_otherwise_is_another_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one model, every layer and pooling has its own; so has code that is said to encode otherwise."""
    ways = [{"layer": -1, "pooling": "last"}, {"layer": 6, "pooling": "last"}, {"layer": -1, "pooling": "mean"}]
    training, _ = splits(CHAT)
    for count, way in enumerate([*ways, ways[0]], 1):
        encode(Reading(**way), training, tokens=100, cache=tmp_path)
        assert len(list(tmp_path.iterdir())) == min(count, len(ways))
    monkeypatch.setattr("dialoscope.probe.encodings.ENCODING", 10_000)
    encode(Reading(**ways[0]), training, tokens=100, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


def test_encodings_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(UsageError, match="not finite"):
        encode(Broken(), splits(CHAT)[0], tokens=None)


def test_topics_so_far_change_the_two_tasks_that_count_topics() -> None:
    corpus = generate(dialogues=120, seed=1)
    parts = examples(corpus.split("train")), examples(corpus.split("validation"))
    tasks = chosen_tasks(["NumAllTopics", "IsMultiTopic", "AllTopics"])
    whole, so_far = (
        measure({"m": Counting()}, *parts, tasks=tasks, settings=Settings(topics_so_far=on, has_controls=False)).labels
        for on in (False, True)
    )
    assert (whole["NumAllTopics"].held_out.codes != so_far["NumAllTopics"].held_out.codes).any()
    assert (whole["AllTopics"].held_out.codes != so_far["AllTopics"].held_out.codes).nnz == 0


def test_a_run_is_written_and_read_back(tmp_path: Path) -> None:
    found = examine({"m": Counting()}, *splits(CHAT), tasks=chosen_tasks(["semantic"]), resampling=FEW)
    out = write_result(found.result, found.measured, tmp_path / "run", pictures=found.pictures)
    run = read_run(out)
    assert run.data["models"]["m"]["tasks"]["UtteranceLoc"]["f1"] == 1.0
    table = pq.read_table(out / "positions.parquet").to_pydict()
    assert len(table["turn"]) == 96 * len(found.measured.labels)
    right, more, missing = (np.array(table[key])[:96].sum() for key in ("right", "too_many", "missing"))
    assert 2 * right / (2 * right + more + missing) == 1.0
    assert "What encodings know" in (out / "report.html").read_text()


def test_main_directions_are_those_of_the_variance() -> None:
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(500, 2)) * [5.0, 2.0]
    turned, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    encodings = np.asarray(flat @ turned[:2] + 3, dtype=np.float32)
    points, share = main_directions(encodings, np.arange(500))
    assert share == pytest.approx(1.0, abs=1e-5)
    assert points.std(axis=0) == pytest.approx(np.sqrt(np.linalg.eigvalsh(np.cov(flat.T, bias=True))[::-1]), rel=1e-3)
