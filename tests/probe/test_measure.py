from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.probe.fakes import CHAT, Blind, Broken, Counting, chat, probed, splits

from dialoscope.corpus import Corpus, generate
from dialoscope.errors import UsageError
from dialoscope.model.protocol import Context, Floats
from dialoscope.probe import TASKS, ProbeResult, ProbeSettings, measure, planned
from dialoscope.probe.encodings import encode
from dialoscope.probe.measure import label_all
from dialoscope.probe.pictures import main_directions
from dialoscope.probe.result import COLUMNS
from dialoscope.probe.tasks import chosen_tasks
from dialoscope.record import direction
from dialoscope.report.result import Result


def test_an_encoding_that_knows_scores_fully_and_one_that_does_not_scores_as_the_majority() -> None:
    """As many contexts of 1, 2, … 8 turns: fifths end at 2, 4, 5 and 7, so no bucket holds more than two of eight."""
    result = probed({"knows": Counting(), "blind": Blind("blind@0")})
    scores = result.scores()
    assert scores["knows/UtteranceLoc/f1"].value == 1.0
    assert scores["majority/UtteranceLoc/f1"].value == pytest.approx(2 / 8)
    assert scores["blind/UtteranceLoc/f1"].value == pytest.approx(2 / 8)
    assert scores["knows/UtteranceLoc/f1"].n == 12 * 8
    shuffled = scores["knows (shuffled)/UtteranceLoc/f1"].value
    assert shuffled is not None and shuffled < 0.6
    difference = result.models["blind"].against_first["UtteranceLoc"].difference
    assert difference.value == pytest.approx(6 / 8)


def test_words_say_what_they_say() -> None:
    """The last word of a context names its length, so a bag of words knows it too."""
    assert probed({"m": Counting()}).scores()["bag_of_words/UtteranceLoc/f1"].value == 1.0


def test_a_model_that_cannot_be_made_anew_says_so() -> None:
    result = probed({"m": Counting()})
    assert list(result.models["m"].controls) == ["shuffled"]
    score = result.scores()["m (untrained)/UtteranceLoc/f1"]
    assert score.value is None and "does not say what it is made of" in (score.reason or "")


def test_tasks_that_the_corpus_cannot_carry_are_missing_with_the_reason() -> None:
    result = probed({"m": Counting()}, tasks=("all",), controls=False)
    assert set(result.not_probed) == set(TASKS) - set(result.tasks)
    reason = "needs state annotation, which the corpus lacks"
    assert result.scores()["m/RecentSlots/f1"].to_dict() == {"value": None, "n": 0, "interval": None, "reason": reason}
    needing_state = sum(why == reason for why in result.not_probed.values())
    assert result.counts["skipped"][f"task: {reason}"] == needing_state > 1
    with pytest.raises(UsageError, match="Nothing to probe: PersonalInfo needs persona"):
        probed({"m": Counting()}, tasks=("PersonalInfo",))


def test_all_18_tasks_on_the_built_in_corpus() -> None:
    result = probed({"m": Counting()}, generate(dialogues=120, seed=1), tasks=("all",), controls=False)
    assert list(result.tasks) == list(TASKS)
    assert result.not_probed == {}
    scores = {name: result.scores()[f"m/{name}/f1"].value or 0 for name in TASKS}
    assert all(0 <= score <= 1 and result.tasks[name].counts.labels > 1 for name, score in scores.items())
    hard = [score for name, score in scores.items() if TASKS[name].difficulty == "hard"]
    assert result.scores()["m/hard tasks/f1"].value == pytest.approx(np.mean(hard))
    assert result.scores()["m/all tasks/f1"].value == pytest.approx(np.mean(list(scores.values())))


# --- One call ---------------------------------------------------------------------------------------------------------


def test_a_corpus_of_one_split_is_split_by_the_seed() -> None:
    whole = Corpus.of([each._replace(split="all") for each in chat(40, "x")], name="chat")
    result = probed({"m": Counting()}, whole, controls=False)
    assert result.parts == {"train": 32, "validation": 4}
    assert result.used.endswith("The corpus has one split: its dialogues were split 80/10/10 with seed 0.")
    dialogues = [
        set(probed({"m": Counting()}, whole, controls=False, seed=seed).table["dialogue"].to_pylist())
        for seed in (0, 0, 1)
    ]
    assert dialogues[0] == dialogues[1] != dialogues[2]


def test_a_missing_validation_split_names_the_option_that_helps() -> None:
    corpus = Corpus.of([each._replace(split=split) for split in ("train", "test") for each in chat(4, split)])
    with pytest.raises(UsageError, match=r"has no validation split\. .* Name another with split \(--split\)\.$"):
        probed({"m": Counting()}, corpus, controls=False)


def test_a_limit_cuts_the_measured_split_and_a_train_limit_the_other() -> None:
    limited = probed({"m": Counting()}, limit=5, controls=False)
    assert limited.parts == {"train": 30, "validation": 5}
    both = probed({"m": Counting()}, limit=5, train_limit=7, controls=False)
    assert both.parts == {"train": 7, "validation": 5}
    assert both.used.endswith("Learnt from: the first 7 training dialogues.")


def test_settings_and_keywords_are_the_same() -> None:
    settings = ProbeSettings(tasks=("UtteranceLoc",), controls=False, device="cpu", limit=5)
    by_settings = measure(CHAT, models={"m": Counting()}, settings=settings)
    assert by_settings.to_dict() == probed({"m": Counting()}, controls=False, limit=5).to_dict()


def test_work_and_progress_change_no_number(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    plain = probed({"m": Counting()})
    watched = probed({"m": Counting()}, work=tmp_path, progress=lambda done, total: told.append((done, total)))
    assert watched.to_dict() == plain.to_dict()
    assert list(tmp_path.rglob("*.npy"))
    # 336 contexts, 5 labels of the model, of shuffled ones and of the bag; no untrained model could be made.
    assert told[-1] == (336 + 3 * 5, 2 * 336 + 3 * 5 + 5)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "corpus": ({"corpus": ["a"]}, "probe measures a Corpus, found list"),
    "against": ({"against": {"other": CHAT}}, "compares with no other corpus"),
    "models": ({"models": [Counting()]}, "Give models by name"),
    "none": ({"models": None}, "Give models by name"),
    "a model": ({"models": {"m": 3}}, r"models\['m'\] takes a path, a hub name"),
    "a control's name": ({"models": {"constant": Counting()}}, "A control is called 'constant'"),
    "names alike": ({"models": {"a/b": Counting(), "a_b": Counting()}}, "Two models would be called 'a_b'"),
    "task": ({"tasks": ("RecentTopics",)}, "Did you mean 'RecentTopic'"),
    "no tasks": ({"tasks": ()}, "tasks is empty"),
    "picture": ({"picture_by": "WordCount", "tasks": ("semantic",)}, "Did you mean 'WordCont'"),
    "classifier": ({"classifier": "svm"}, "classifier is one of logistic, mlp; found 'svm'"),
    "groups": ({"groups": "own", "controls": False}, "leave controls on"),
    "tokens": ({"context_tokens": -1}, "context_tokens takes a whole number of 0 or more"),
    "checkpoints": ({"checkpoints": ("last",)}, "checkpoints needs paths of runs, found Counting"),
    "layer": ({"layer": (6,)}, "layer and pooling are for Hugging Face models"),
    "setting": ({"is_scaled": True}, "Unknown setting 'is_scaled'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_in_one_line(name: str) -> None:
    given, message = WRONG[name]
    options: dict[str, Any] = {"corpus": CHAT, "models": {"m": Counting()}, "tasks": ("UtteranceLoc",), **given}
    with pytest.raises(UsageError, match=message) as caught:
        measure(**options)
    assert "\n" not in str(caught.value)


def test_a_plan_counts_what_would_be_done() -> None:
    assert planned(CHAT, models={"m": Counting()}) == {
        "models": ["m"],
        "training_positions": 240,
        "held_out_positions": 96,
        "contexts_to_encode": 2 * (240 + 96),
        "used": "Measured: validation, 12 dialogues. Training: train, 30 dialogues.",
    }
    assert planned(CHAT, models={"m": Counting()}, controls=False)["contexts_to_encode"] == 240 + 96
    with pytest.raises(UsageError, match="two different splits"):
        planned(CHAT, models={"m": Counting()}, split="train")


def test_what_was_cut_or_left_out_is_counted() -> None:
    """Contexts of 1 to 8 turns of two tokens: those of three turns and more are longer than four tokens."""
    single = chat(1, "single")[0]
    corpus = Corpus.of([*CHAT, single._replace(turns=single.turns[:1], split="validation")], name="chat")
    counts = probed({"m": Counting()}, corpus, controls=False, context_tokens=4).counts
    assert counts["skipped"] == {"dialogue without a response": 1, "context cut to its last 4 tokens": 12 * 6}


# --- One result -------------------------------------------------------------------------------------------------------


def test_a_result_is_saved_and_loaded_whole(tmp_path: Path) -> None:
    corpus = generate(dialogues=40, seed=1)
    models = {"table": Counting(), "org/m#0": Blind("blind@0"), "org/m#1": Blind("blind@1")}
    result = probed(models, corpus, tasks=("UtteranceLoc", "RecentTopic", "PersonalInfo"))
    loaded = ProbeResult.load(result.save(tmp_path / "run"))
    assert loaded.to_dict() == result.to_dict()
    assert loaded.section() == result.section()
    assert loaded.summary() == result.summary()
    assert loaded.items().keys() == result.items().keys()
    assert repr(loaded) == repr(result)
    assert "What encodings know" in (tmp_path / "run" / "report.html").read_text()


def test_every_score_has_a_direction_and_a_path_of_three_parts() -> None:
    models = {"a/b#0": Counting(), "a/b#1": Blind("blind@1")}
    result = probed(models, generate(dialogues=40, seed=1), tasks=("UtteranceLoc", "WordCont"))
    assert {direction(name) for name in result.scores()} == {"high", "neither"}
    assert {name.count("/") for name in result.scores()} == {2}
    assert "a_b#0 (shuffled)/WordCont/f1_without_none" in result.scores()


def test_the_table_has_what_scores_are_made_of(tmp_path: Path) -> None:
    result = probed({"m": Counting()}, tasks=("semantic",))
    assert isinstance(result, Result)
    table = result.table
    assert {each.name: (each.metadata or {})[b"meaning"].decode() for each in table.schema} == COLUMNS
    assert len(table) == 96 * len(result.tasks)
    right, more, missing = (np.array(table[key])[:96].sum() for key in ("right", "too_many", "missing"))
    assert 2 * right / (2 * right + more + missing) == 1.0
    kept = pq.read_table(result.save(tmp_path / "run") / "positions.parquet")
    assert kept.to_pydict() == table.to_pydict()


def test_the_example_is_a_position_that_only_one_of_encoding_and_words_tells() -> None:
    """The words of these contexts tell their place; an encoding that is always the same tells the most frequent one."""
    evidence = probed({"m": Blind()}).evidence
    assert evidence is not None
    assert (evidence.model, evidence.task, evidence.turn) == ("m", "UtteranceLoc", 3)
    assert evidence.query == "word2 and"
    assert (evidence.labels, evidence.from_words) == (("2",), ("2",))
    assert evidence.from_encodings == ("1",)
    assert evidence.text == probed({"m": Blind()}).example()
    assert probed({"m": Counting()}).example() == ""  # both tell everything
    assert probed({"m": Blind()}, controls=False).example() == ""


def test_items_make_the_scores() -> None:
    result = probed({"m": Counting(), "other": Blind()}, generate(dialogues=40, seed=1), tasks=("information",))
    items = result.items()
    assert list(items) == [f"{name}/{task}/f1" for name in result.models for task in result.tasks]
    for name, each in items.items():
        assert each.above.sum() / each.below.sum() == pytest.approx(result.scores()[name].value)
        assert len(set(each.keys)) == len(each.keys) == result.scores()[name].n
        assert [key[0] for key in each.keys] == list(each.dialogues)


# --- Encodings --------------------------------------------------------------------------------------------------------


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


def test_an_interrupted_run_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(Counting):
        def encode(self, contexts: Sequence[Context]) -> Floats:
            if self.asked >= 150:
                raise KeyboardInterrupt
            return super().encode(contexts)

    monkeypatch.setattr("dialoscope.probe.encodings.AT_ONCE", 50)
    training, _ = splits(CHAT)
    with pytest.raises(KeyboardInterrupt):
        encode(Interrupted(), training, tokens=100, cache=tmp_path)
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
    parts = splits(generate(dialogues=120, seed=1))
    tasks = chosen_tasks(["NumAllTopics", "IsMultiTopic", "AllTopics"])
    whole, so_far = (label_all(tasks, *parts, topics_so_far=on)[0] for on in (False, True))
    assert (whole["NumAllTopics"].held_out.codes != so_far["NumAllTopics"].held_out.codes).any()
    assert (whole["AllTopics"].held_out.codes != so_far["AllTopics"].held_out.codes).nnz == 0


def test_main_directions_are_those_of_the_variance() -> None:
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(500, 2)) * [5.0, 2.0]
    turned, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    encodings = np.asarray(flat @ turned[:2] + 3, dtype=np.float32)
    points, share = main_directions(encodings, np.arange(500))
    assert share == pytest.approx(1.0, abs=1e-5)
    assert points.std(axis=0) == pytest.approx(np.sqrt(np.linalg.eigvalsh(np.cov(flat.T, bias=True))[::-1]), rel=1e-3)
