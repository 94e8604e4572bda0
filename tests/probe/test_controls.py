"""Every control is what its name says; and nothing that is fitted sees the held-out split."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
import torch
from dialoscope.probe.report import beats_both, score_table
from tests.probe.test_measure import FEW, Blind, Counting, chat, splits

from dialoscope.corpus import Corpus, Dialogue, Turn, generate
from dialoscope.corpus.turns import Said
from dialoscope.errors import UsageError
from dialoscope.metrics.paired import holm
from dialoscope.model import Vocabulary
from dialoscope.model.protocol import Context, DialogueModel, Floats
from dialoscope.model.seq2seq import Seq2Seq, Seq2SeqModel
from dialoscope.model.settings import Settings as ModelSettings
from dialoscope.model.untrained import untrained
from dialoscope.probe import Examples, Settings, chosen_tasks, examine, examples
from dialoscope.probe.examples import Position
from dialoscope.probe.measure import Bench, label_all, measure
from dialoscope.probe.tasks import TASKS
from dialoscope.probe.words import bags_of_words

CHAT = Corpus.of([*chat(30, "train"), *chat(12, "validation")], name="chat")
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
    found = examine({"m": model}, *splits(CHAT), tasks=LOCATION, resampling=FEW).measured.models[0]
    assert not np.array_equal(found.own["UtteranceLoc"].all, found.controls["untrained"]["UtteranceLoc"].all)


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
    tasks = chosen_tasks(["IsMultiTopic", "NumAllTopics"])
    found = examine({"blind": Blind()}, *splits(corpus), tasks=tasks, resampling=FEW).result.models["blind"].tasks
    for one in found.values():
        words, always = (one.controls[name] for name in ("bag_of_words", "constant"))
        assert words.interval is not None and words.interval[1] < (one.f1.value or 0)
        assert one.f1.value == always.value
        assert one.above_both is not None
        assert (one.above_both.difference.value, one.above_both.p_value) == (0, 1)
    assert beats_both(found.values()) == (0, 2)


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
    for corpus, difference, known in ((Corpus.of(alike, name="alike"), 6 / 8, 1), (CHAT, 0, 0)):
        result = examine({"m": Counting()}, *splits(corpus), tasks=LOCATION, resampling=FEW).result
        one = result.models["m"].tasks["UtteranceLoc"]
        assert one.to_dict()["against_bag_and_constant"]["difference"]["value"] == pytest.approx(difference)
        assert beats_both([one]) == (known, 1)


def test_edges_are_those_of_the_training_split() -> None:
    """Training has contexts of 1 to 8 turns, held-out dialogues of two turns: all of them in the first bucket."""
    short = Corpus.of([Dialogue((Turn("A", "x"), Turn("B", "y")), str(number)) for number in range(5)], name="short")
    training = examples(CHAT, split="train")
    labels, _ = label_all(LOCATION, training, examples(short), Settings())
    one = labels["UtteranceLoc"]
    assert [one.classes[code] for code in one.held_out.codes] == ["1"] * 5
    assert len(one.classes) == 5


def test_words_are_those_of_the_training_split() -> None:
    taught, asked = bags_of_words([["a b"], ["a c"]], [["a z z z"], ["z"]])
    assert taught.tolist() == [[1, 1, 0], [1, 0, 1]]
    assert asked.tolist() == [[1, 0, 0], [0, 0, 0]]


def test_a_bag_holds_the_words_of_the_same_cut() -> None:
    """The last token of every context is "and", which tells no place; the word before it would tell all."""
    how = Settings(context_tokens=1)
    found = examine({"m": Counting()}, *splits(CHAT), tasks=LOCATION, settings=how, resampling=FEW).result
    assert found.models["m"].tasks["UtteranceLoc"].controls["bag_of_words"].value == pytest.approx(2 / 8)


def test_the_scale_is_that_of_the_training_split() -> None:
    """Held-out contexts of one turn are all alike and have none."""
    short = Corpus.of([Dialogue((Turn("A", "x"), Turn("B", "y")), str(number)) for number in range(5)], name="short")
    parts = examples(CHAT, split="train"), examples(short)
    bench = Bench(*parts, {}, Settings(is_scaled=True), "cpu", None, lambda steps: None, "")
    first, second = bench.encodings(Counting())
    plain = Counting().encode(parts[0].contexts(None))
    assert first.std(axis=0).mean() == pytest.approx(1)
    assert second == pytest.approx(Counting().encode(parts[1].contexts(None)) / plain.std(axis=0).mean())


def test_labels_are_shuffled_by_the_seed() -> None:
    def control(seed: int) -> list[list[float]]:
        found = measure({"m": Counting()}, *splits(CHAT), tasks=LOCATION, settings=Settings(seed=seed)).models[0]
        hits: list[list[float]] = found.controls["shuffled"]["UtteranceLoc"].all.tolist()
        return hits

    assert control(0) == control(0) != control(1)


def test_what_is_tested_against_both_controls_is_corrected_over_tasks() -> None:
    corpus = generate(dialogues=120, seed=1)
    parts = examples(corpus.split("train")), examples(corpus.split("validation"))
    tasks = chosen_tasks(["UtteranceLoc", "NumAllInfo", "IsMultiTopic"])
    found = examine({"m": Counting()}, *parts, tasks=tasks, resampling=FEW).result.models["m"].tasks
    tested = [one.above_both for one in found.values() if one.above_both is not None]
    p_values = [one.p_value for one in tested]
    assert [one.p_holm for one in tested] == holm(p_values) != p_values


def test_groups_of_ones_own_are_those_of_the_untrained_scores() -> None:
    """UtteranceLoc is medium in the paper; of these contexts an untrained LSTM knows more than half."""
    model = lstm([f"word{place} and" for place in range(9)])
    groups = {}
    for grouping in ("paper", "own"):
        found = examine({"m": model}, *splits(CHAT), tasks=LOCATION, grouping=grouping, resampling=FEW).result
        groups[grouping] = found.difficulty["UtteranceLoc"]
    score = found.models["m"].tasks["UtteranceLoc"].controls["untrained"].value
    assert score is not None and score > 0.5
    assert groups == {"paper": "medium", "own": "easy"}


def test_intervals_are_over_dialogues() -> None:
    """Every position ten times over, in the dialogues that it is in, makes no interval narrower."""
    turns = [Turn("AB"[place % 2], f"word{place}") for place in range(9)]
    uneven = [Dialogue(tuple(turns[: 3 + number % 7]), str(number)) for number in range(20)]
    plain = examples(Corpus.of(uneven, name="uneven"))
    repeated = Examples(plain.corpus, [one for one in plain.positions for _ in range(10)], plain.annotations)
    widths = []
    for part in (plain, repeated):
        found = examine({"m": Blind()}, examples(CHAT, split="train"), part, tasks=LOCATION).result
        score = found.models["m"].tasks["UtteranceLoc"].f1
        low, high = score.interval or (0, 0)
        widths.append((score.n, high - low))
    assert widths[1][0] == 10 * widths[0][0]
    assert widths[0][1] > 0.01
    assert widths[1][1] == pytest.approx(widths[0][1], rel=1e-6)


def test_the_same_split_twice_is_refused() -> None:
    training = examples(CHAT, split="train")
    with pytest.raises(UsageError, match="two different splits"):
        measure({"m": Counting()}, training, training)
    other = [one._replace(id=f"again-{one.id}", split="validation") for one in chat(30, "train")[5:9]]
    with pytest.raises(UsageError, match="two different splits"):  # a part of it, under other names
        measure({"m": Counting()}, training, examples(Corpus.of(other, name="chat")))


def test_dialogues_that_are_in_both_splits_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Three of five held-out dialogues are in training, one of them twice."""
    known = chat(30, "train")
    mixed = [one._replace(id=str(place)) for place, one in enumerate([known[0], known[0], known[7]])]
    held_out = examples(Corpus.of([*mixed, *chat(2, "validation")], name="chat"))
    how = Settings(has_controls=False)
    found = examine({"m": Counting()}, examples(CHAT, split="train"), held_out, tasks=LOCATION, settings=how).result
    assert found.to_dict()["dialogues"] == {"training": 30, "held_out": 5, "shared": 3}
    (line,) = caplog.messages
    assert line.startswith("3 of 5 held-out dialogues are in the training split as well")
    assert line in score_table(found).notes


def test_splits_that_share_no_dialogue_raise_no_word(caplog: pytest.LogCaptureFixture) -> None:
    how = Settings(has_controls=False)
    found = examine({"m": Counting()}, *splits(CHAT), tasks=LOCATION, settings=how).result
    assert found.to_dict()["dialogues"] == {"training": 30, "held_out": 12, "shared": 0}
    assert caplog.messages == []


def test_labels_that_did_not_converge_are_counted_by_what_they_were_read_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """After no iteration, none of the five labels has converged, whoever's features they are to be read from."""
    from dialoscope.probe import logistic

    hasty = partial(logistic.fit_logistic, most_iterations=0)
    monkeypatch.setattr(logistic, "fit_logistic", hasty)
    model = lstm([f"word{place} and" for place in range(9)])
    found = examine({"m": model}, *splits(CHAT), tasks=LOCATION, resampling=FEW).result.models["m"]
    assert found.to_dict()["not_converged"] == {"model": 5, "bag_of_words": 5, "shuffled": 5, "untrained": 5}


def test_where_all_labels_converge_nothing_is_said_of_it() -> None:
    found = examine({"m": Counting()}, *splits(CHAT), tasks=LOCATION, resampling=FEW).result.models["m"]
    assert "not_converged" not in found.to_dict()
    assert list(found.tasks["UtteranceLoc"].controls) == ["majority", "constant", "bag_of_words", "shuffled"]


def test_a_task_with_one_label_is_not_asked() -> None:
    pairs = [Dialogue((Turn("A", "x"), Turn("B", str(number))), str(number)) for number in range(6)]
    parts = examples(Corpus.of(pairs[:4], name="a")), examples(Corpus.of([*pairs, pairs[0]], name="b"))
    with pytest.raises(UsageError, match="UtteranceLoc has one label only in the training split, '1'"):
        measure({"m": Counting()}, *parts, tasks=LOCATION)


def test_topics_so_far_need_states() -> None:
    """A goal tells how many topics a dialogue has, not how many it had by now."""
    goals: list[dict[str, dict[str, str]]] = [{"a": {}}, {"a": {}, "b": {}}] * 2
    turns = Turn("A", "x"), Turn("B", "y")
    dialogues = [Dialogue(turns, str(number), labels={"goal": goal}) for number, goal in enumerate(goals)]
    part, rest = examples(Corpus.of(dialogues[:2], name="a")), examples(Corpus.of(dialogues, name="b"))
    tasks = chosen_tasks(["NumAllTopics"])
    assert list(label_all(tasks, part, rest, Settings())[0]) == ["NumAllTopics"]
    skipped = label_all(tasks, part, rest, Settings(topics_so_far=True))[1]
    assert skipped == {"NumAllTopics": "needs state annotation, which the corpus lacks"}


def test_a_value_called_none_is_not_the_empty_set() -> None:
    states = [{"media": {"subtitles": ["None"]}}, {}]
    turns = [Turn("user", "x", {"state": states[0]}), Turn("system", "y")]
    empty = [Turn("user", "x", {"state": states[1]}), Turn("system", "y")]
    part = examples(Corpus.of([Dialogue(tuple(turns), "1"), Dialogue(tuple(empty), "2")], name="c"))
    labels, _ = label_all(chosen_tasks(["AllValues"]), part, part, Settings())
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
        how = Settings(is_scaled=is_scaled, has_controls=False)
        models: dict[str, DialogueModel] = {"large": Counting(), "small": Small("small@0"), "blind": Blind("blind@0")}
        result = examine(models, *splits(CHAT), tasks=LOCATION, settings=how, resampling=FEW).result
        scores.append([one.tasks["UtteranceLoc"].f1.value for one in result.models.values()])
    assert scores[0][0] == 1.0 and (scores[0][1] or 0) < 1.0
    assert scores[1][:2] == [1.0, 1.0]
