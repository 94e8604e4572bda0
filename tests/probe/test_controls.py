"""Every control is what its name says; and nothing that is fitted sees the held-out split."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
import torch
from tests.probe.fakes import CHAT, Blind, Counting, chat, probed

from dialoscope.corpus import Corpus, Dialogue, Turn, generate
from dialoscope.corpus.turns import Said
from dialoscope.errors import UsageError
from dialoscope.metrics import Resampling
from dialoscope.metrics.paired import holm
from dialoscope.model import Vocabulary
from dialoscope.model.protocol import Context, Floats
from dialoscope.model.seq2seq import Seq2Seq, Seq2SeqModel
from dialoscope.model.structure import Structure as ModelSettings
from dialoscope.model.untrained import untrained
from dialoscope.probe import ProbeSettings
from dialoscope.probe.examples import Examples, Position, examples
from dialoscope.probe.labels import Hits
from dialoscope.probe.measure import check_apart, encodings_of, label_all
from dialoscope.probe.scores import Scorer
from dialoscope.probe.section import score_table
from dialoscope.probe.tasks import TASKS, chosen_tasks
from dialoscope.probe.words import bags_of_words
from dialoscope.progress import Stages
from dialoscope.record import Origin

LOCATION = chosen_tasks(["UtteranceLoc"])


def lstm(words: list[str], *, seed: int = 9) -> Seq2SeqModel:
    vocabulary = Vocabulary.of(words, size=50)
    torch.manual_seed(seed)
    settings = ModelSettings(
        encoder="lstm", attention="none", layers=1, width=16, embedding=8, vocabulary=len(vocabulary)
    )
    return Seq2SeqModel(Seq2Seq(settings).eval(), vocabulary)


def test_an_untrained_model_has_the_structure_and_the_words_but_other_weights() -> None:
    trained = lstm(["a b c d"])
    fresh, again, other = (untrained(trained, seed=seed) for seed in (0, 0, 1))
    assert isinstance(fresh, Seq2SeqModel)
    assert fresh.vocabulary is trained.vocabulary
    assert fresh.network.settings == trained.network.settings
    assert fresh.name == again.name != other.name
    contexts = [["a b"], ["c", "d"]]
    assert np.array_equal(fresh.encode(contexts), again.encode(contexts))
    assert np.abs(fresh.encode(contexts) - trained.encode(contexts)).max() > 0.01


def test_the_untrained_control_is_not_the_model() -> None:
    """Where the untrained control is the model itself, the two agree on every position."""
    model = lstm([f"word{place} and" for place in range(9)])
    with torch.no_grad():
        for weight in model.network.parameters():
            weight.mul_(4)  # no weights that anything would be initialised with
    scores = probed({"m": model}).scores()
    assert scores["m/UtteranceLoc/f1"].value != scores["m (untrained)/UtteranceLoc/f1"].value


def test_two_models_that_differ_in_their_words_have_two_names() -> None:
    first, second = lstm(["a b c d"]), lstm(["e f g h"])
    assert first.network.settings == second.network.settings
    assert first.name != second.name


def noise(count: int, split: str, rng: np.random.Generator) -> list[Dialogue]:
    """One question of twelve random words; one dialogue in four has a second topic, which no word tells."""
    goals: dict[bool, dict[str, dict[str, str]]] = {True: {"a": {}, "b": {}}, False: {"a": {}}}
    return [
        Dialogue(
            (Turn("A", " ".join(f"w{word}" for word in rng.integers(80, size=12))), Turn("B", "yes")),
            f"{split}{number}", split, {"goal": goals[bool(rng.random() < 1 / 4)]},
        )
        for number in range(count)
    ]  # fmt: skip


def test_a_model_that_encodes_everything_alike_is_never_known_better() -> None:
    """It is far above a bag of words that learnt noise, but what it answers is the best constant answer."""
    rng = np.random.default_rng(0)
    corpus = Corpus.of([*noise(150, "train", rng), *noise(400, "validation", rng)], name="noise")
    result = probed({"blind": Blind()}, corpus, tasks=("IsMultiTopic", "NumAllTopics"))
    for task in result.tasks:
        model, words, always = (result.scores()[f"{name}/{task}/f1"] for name in ("blind", "bag_of_words", "constant"))
        assert words.interval is not None and words.interval[1] < (model.value or 0)
        assert model.value == always.value
        test = result.models["blind"].above_both[task]
        assert (test.difference.value, test.p_value) == (0, 1)
    assert result.scores()["blind/all tasks/tasks_above_baselines"].to_dict() == {
        "value": 0, "n": 2, "interval": [0, 0], "reason": None,
    }  # fmt: skip
    assert result.verdict.level == "concern"
    assert result.verdict.text == "blind beats the bag-of-words and constant baselines on 0 of 2 tasks."


def test_a_model_that_knows_is_better_than_both_by_the_smaller_difference() -> None:
    """Words that stand everywhere tell no place, and the constant answer knows two of eight; its own are all right.

    Where the last word names the place, a bag of words knows all of them, too.
    """
    turns = [Turn("AB"[place % 2], "word and") for place in range(8)]
    alike = [
        Dialogue((*turns, Turn("A", f"{split}{number}")), f"{split}{number}", split)
        for split, count in (("train", 30), ("validation", 12))
        for number in range(count)
    ]
    cases = ((Corpus.of(alike, name="alike"), 6 / 8, 1, "good"), (CHAT, 0, 0, "concern"))
    for corpus, difference, known, level in cases:
        result = probed({"m": Counting()}, corpus)
        test = result.models["m"].above_both["UtteranceLoc"]
        assert test.difference.value == pytest.approx(difference)
        count = result.scores()["m/all tasks/tasks_above_baselines"]
        assert (count.value, count.n, result.verdict.level) == (known, 1, level)


def test_edges_are_those_of_the_training_split() -> None:
    """Training has contexts of 1 to 8 turns, held-out dialogues of two turns: all of them in the first bucket."""
    short = Corpus.of([Dialogue((Turn("A", "x"), Turn("B", "y")), str(number)) for number in range(5)], name="short")
    training = examples(CHAT, split="train")
    labels, _ = label_all(LOCATION, training, examples(short))
    one = labels["UtteranceLoc"]
    assert [one.classes[code] for code in one.held_out.codes] == ["1"] * 5
    assert len(one.classes) == 5


def test_words_are_those_of_the_training_split() -> None:
    taught, asked = bags_of_words([["a b"], ["a c"]], [["a z z z"], ["z"]])
    assert taught.tolist() == [[1, 1, 0], [1, 0, 1]]
    assert asked.tolist() == [[1, 0, 0], [0, 0, 0]]


def test_a_bag_holds_the_words_of_the_same_cut() -> None:
    """The last token of every context is "and", which tells no place; the word before it would tell all."""
    scores = probed({"m": Counting()}, context_tokens=1).scores()
    assert scores["bag_of_words/UtteranceLoc/f1"].value == pytest.approx(2 / 8)


def test_the_scale_is_that_of_the_training_split() -> None:
    """Held-out contexts of one turn are all alike and have none."""
    short = Corpus.of([Dialogue((Turn("A", "x"), Turn("B", "y")), str(number)) for number in range(5)], name="short")
    parts = examples(CHAT, split="train"), examples(short)
    settings = ProbeSettings(scaled=True, context_tokens=0)
    first, second = encodings_of(
        Counting(), training=parts[0], held_out=parts[1], settings=settings, stages=Stages(None, 0)
    )
    plain = Counting().encode(parts[0].contexts(None))
    assert first.std(axis=0).mean() == pytest.approx(1)
    assert second == pytest.approx(Counting().encode(parts[1].contexts(None)) / plain.std(axis=0).mean())


def test_labels_are_shuffled_by_the_seed() -> None:
    def control(seed: int) -> float | None:
        return probed({"m": Counting()}, seed=seed).scores()["m (shuffled)/UtteranceLoc/f1"].value

    assert control(0) == control(0) != control(1)


def test_what_is_tested_against_both_controls_is_corrected_over_tasks() -> None:
    tasks = ("UtteranceLoc", "NumAllInfo", "IsMultiTopic")
    result = probed({"m": Counting()}, generate(dialogues=120, seed=1), tasks=tasks)
    tested = list(result.models["m"].above_both.values())
    p_values = [one.p_value for one in tested]
    assert [one.p_holm for one in tested] == holm(p_values) != p_values


def test_groups_of_ones_own_are_those_of_the_untrained_scores() -> None:
    """UtteranceLoc is medium in the paper; of these contexts an untrained LSTM knows more than half."""
    model = lstm([f"word{place} and" for place in range(9)])
    groups = {}
    for grouping in ("paper", "own"):
        result = probed({"m": model}, groups=grouping)
        groups[grouping] = result.tasks["UtteranceLoc"].difficulty
    score = result.scores()["m (untrained)/UtteranceLoc/f1"].value
    assert score is not None and score > 0.5
    assert groups == {"paper": "medium", "own": "easy"}
    assert result.scores()["m/easy tasks/f1"].value == result.scores()["m/UtteranceLoc/f1"].value
    with pytest.raises(UsageError, match="no model could be made untrained"):
        probed({"m": Counting()}, groups="own")


def test_intervals_are_over_dialogues() -> None:
    """Every position ten times over, in the dialogues that it is in, makes no interval narrower."""
    turns = [Turn("AB"[place % 2], f"word{place}") for place in range(9)]
    uneven = [Dialogue(tuple(turns[: 3 + number % 7]), str(number)) for number in range(20)]
    corpus = Corpus.of([*chat(30, "train"), *(one._replace(split="validation") for one in uneven)], name="uneven")
    rows = probed({"m": Blind()}, corpus, controls=False).table.to_pydict()
    hits = np.array([rows[key] for key in ("right", "too_many", "missing")], dtype=np.float64).T
    widths = []
    for times in (1, 10):
        dialogues = [one for one in rows["dialogue"] for _ in range(times)]
        scorer = Scorer(dialogues, Origin(), Resampling())
        score = scorer.f1({"T": Hits(np.repeat(hits, times, axis=0), None)})["T"]
        low, high = score.interval or (0, 0)
        widths.append((score.n, high - low))
    assert widths[1][0] == 10 * widths[0][0]
    assert widths[0][1] > 0.01
    assert widths[1][1] == pytest.approx(widths[0][1], rel=1e-6)


def test_the_same_split_twice_is_refused() -> None:
    training = examples(CHAT, split="train")
    with pytest.raises(UsageError, match="two different splits"):
        probed({"m": Counting()}, split="train")
    other = [one._replace(id=f"again-{one.id}", split="validation") for one in chat(30, "train")[5:9]]
    with pytest.raises(UsageError, match="two different splits"):  # a part of it, under other names
        check_apart(training, examples(Corpus.of(other, name="chat")))


def test_dialogues_that_are_in_both_splits_are_counted() -> None:
    """Three of five held-out dialogues are in training, one of them twice."""
    known = chat(30, "train")
    mixed = [
        one._replace(id=str(place), split="validation") for place, one in enumerate([known[0], known[0], known[7]])
    ]
    result = probed({"m": Counting()}, Corpus.of([*known, *mixed, *chat(2, "validation")]), controls=False)
    assert (result.dialogues.training, result.dialogues.held_out, result.dialogues.shared) == (30, 5, 3)
    assert result.counts["dialogues_in_both_splits"] == 3
    assert result.dialogues.warning.startswith("3 of 5 held-out dialogues are in the training split as well")
    assert result.dialogues.warning in score_table(result).notes
    assert result.dialogues.warning in result.summary().notes


def test_splits_that_share_no_dialogue_need_no_warning() -> None:
    result = probed({"m": Counting()}, controls=False)
    assert result.counts["dialogues_in_both_splits"] == 0
    assert not [note for note in (*score_table(result).notes, *result.summary().notes) if "training split" in note]


def test_labels_that_did_not_converge_are_counted_by_what_they_were_read_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """After no iteration, none of the five labels has converged, whoever's features they are to be read from."""
    from dialoscope.probe import logistic

    hasty = partial(logistic.fit_logistic, most_iterations=0)
    monkeypatch.setattr(logistic, "fit_logistic", hasty)
    model = lstm([f"word{place} and" for place in range(9)])
    undecided = probed({"m": model}).counts["labels_not_converged"]
    assert undecided == {"m": 5, "bag_of_words": 5, "m (shuffled)": 5, "m (untrained)": 5}


def test_where_all_labels_converge_nothing_is_said_of_it() -> None:
    result = probed({"m": Counting()})
    assert result.counts["labels_not_converged"] == {}
    assert [*result.controls, *result.models["m"].controls] == ["majority", "constant", "bag_of_words", "shuffled"]


def test_a_task_with_one_label_is_not_asked() -> None:
    pairs = [Dialogue((Turn("A", "x"), Turn("B", str(number))), str(number)) for number in range(6)]
    splits_of = ["train"] * 4 + ["validation"] * 2
    corpus = Corpus.of([one._replace(split=split) for one, split in zip(pairs, splits_of, strict=True)], name="a")
    with pytest.raises(UsageError, match="UtteranceLoc has one label only in the training split, '1'"):
        probed({"m": Counting()}, corpus)


def test_topics_so_far_need_states() -> None:
    """A goal tells how many topics a dialogue has, not how many it had by now."""
    goals: list[dict[str, dict[str, str]]] = [{"a": {}}, {"a": {}, "b": {}}] * 2
    turns = Turn("A", "x"), Turn("B", "y")
    dialogues = [Dialogue(turns, str(number), labels={"goal": goal}) for number, goal in enumerate(goals)]
    part, rest = examples(Corpus.of(dialogues[:2], name="a")), examples(Corpus.of(dialogues, name="b"))
    tasks = chosen_tasks(["NumAllTopics"])
    assert list(label_all(tasks, part, rest)[0]) == ["NumAllTopics"]
    skipped = label_all(tasks, part, rest, topics_so_far=True)[1]
    assert skipped == {"NumAllTopics": "needs state annotation, which the corpus lacks"}


def test_a_value_called_none_is_not_the_empty_set() -> None:
    states = [{"media": {"subtitles": ["None"]}}, {}]
    turns = [Turn("user", "x", {"state": states[0]}), Turn("system", "y")]
    empty = [Turn("user", "x", {"state": states[1]}), Turn("system", "y")]
    part = examples(Corpus.of([Dialogue(tuple(turns), "1"), Dialogue(tuple(empty), "2")], name="c"))
    labels, _ = label_all(chosen_tasks(["AllValues"]), part, part)
    assert sorted(labels["AllValues"].classes) == ["'none'", "none"]


def test_services_of_one_kind_are_one_domain() -> None:
    turns = (
        Turn("user", "x", {"state": {"Hotels_2": {"place": ["here"]}}}),
        Turn("system", "y", {"acts": [{"domain": "Hotels_2", "act": "offer", "slot": "name", "values": []}]}),
    )
    part = examples(Corpus.of([Dialogue(turns, "1", labels={"goal": {"Hotels_2": {}, "Hotels_4": {}}})], name="c"))
    (position,) = part.positions
    found = {name: set(TASKS[name].labeller(part)(position)) for name in ("AllTopics", "ActionSelect", "EntitySlots")}
    assert found == {"AllTopics": {"Hotels"}, "ActionSelect": {"Hotels-offer"}, "EntitySlots": {"Hotels-name"}}
    assert position.goal == {"Hotels"}


def test_who_said_it_is_part_of_the_fingerprint() -> None:
    def part(role: str) -> Examples:
        return Examples(CHAT, [Position("d", (Said("hello", "A", role),))], frozenset())

    assert part("user").fingerprint != part("assistant").fingerprint


def test_scaled_encodings_do_not_know_their_scale() -> None:
    class Small(Counting):
        def encode(self, contexts: Sequence[Context]) -> Floats:
            return super().encode(contexts) / np.float32(1000)

    scores = []
    for is_scaled in (False, True):
        models = {"large": Counting(), "small": Small("small@0"), "blind": Blind("blind@0")}
        result = probed(models, scaled=is_scaled, controls=False)
        scores.append([result.scores()[f"{name}/UtteranceLoc/f1"].value for name in models])
    assert scores[0][0] == 1.0 and (scores[0][1] or 0) < 1.0
    assert scores[1][:2] == [1.0, 1.0]
