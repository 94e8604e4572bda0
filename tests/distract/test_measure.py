from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.distract.fakes import Fake, words

from dialoscope.corpus import Corpus, Dialogue, Turn, generate
from dialoscope.distract import AttentionResult, behave, influence, make_sets, measure
from dialoscope.distract.result import (
    CUT,
    NO_DISTRACTION,
    NO_HISTORY,
    TOO_LONG,
    UNDEFINED,
    CaseRows,
    compared,
    left_out,
    scores_of,
)
from dialoscope.distract.section import DETAILS
from dialoscope.distract.sets import Case, DistractingSet
from dialoscope.errors import UsageError
from dialoscope.metrics import Comparison
from dialoscope.model.protocol import Context
from dialoscope.record import Origin, Score, direction
from dialoscope.report.plain import plain

# Weights are words: the distraction has 1 of 6, History 2 and 1, the Query 2; then 3 of 6, 1, 2.
CASES = [
    Case("d1", 3, ("a b", "x", "c", "q q"), "yes", (1,)),
    Case("d2", 2, ("x y z", "a", "q q"), "no no", (0,)),
    Case("d2", 1, ("q",), "well"),  # no History
    Case("d3", 2, ("a", "q"), "fine"),  # no distraction
]
SET = DistractingSet("mine", CASES)


def result_of(*models: Fake, sets: list[DistractingSet] | None = None, **options: Any) -> AttentionResult:
    """Models by their names, on the set above unless others are given."""
    return measure(sets or [SET], models={model.name: model for model in models}, **options)


def scores_on(result: AttentionResult, model: str = "fake@1", name: str = "mine") -> dict[str, Score]:
    """The numbers of one model on one set."""
    found = {key.split("/")[2]: score for key, score in result.scores().items() if key.startswith(f"{model}/{name}/")}
    assert found
    return found


def skipped(result: AttentionResult) -> dict[str, int]:
    """What is part of no ratio, by reason."""
    return dict(result.counts["skipped"])


def difference(result: AttentionResult, model: str, name: str) -> Comparison:
    """The first model against another one."""
    return next(each.comparison for each in result.comparisons if (each.model, each.set) == (model, name))


def test_the_das_ratio_by_hand() -> None:
    result = result_of(Fake())
    found = scores_on(result)
    # 1 / mean(2, 1) and 3 / 1: equation 8 takes the mean of the ratios, the tables' cells the ratio of the means.
    assert found["das_ratio"].value == pytest.approx((1 / 1.5 + 3 / 1) / 2)
    distraction, history = (100 * 4 / 6, 100 * 9 / 6), (100 * 4 * 1.5 / 6, 100 * 3 / 6)
    assert found["distraction_percent"].value == pytest.approx(sum(distraction) / 2)
    assert found["history_percent"].value == pytest.approx(sum(history) / 2)
    assert found["das_ratio_of_means"].value == pytest.approx(sum(distraction) / sum(history))
    assert found["first_percent"].value == pytest.approx((100 * 8 / 6 + 100 * 3 / 6) / 2)
    assert found["last_percent"].value == pytest.approx((100 * 4 / 6 + 100 * 3 / 6) / 2)
    assert found["das_ratio_median"].value == pytest.approx((1 / 1.5 + 3) / 2)
    assert found["das_ratio"].n == 2
    assert skipped(result) == {NO_HISTORY: 1, NO_DISTRACTION: 1}


def test_where_no_context_has_history_the_ratio_says_so() -> None:
    result = result_of(Fake(), sets=[DistractingSet("mine", CASES[2:3])])
    found = scores_on(result)["das_ratio_of_means"]
    assert (found.value, found.n) == (None, 0)
    assert found.reason == "no context has both History and a distraction"
    assert result.verdict.level == "not_measurable"
    assert result.verdict.text == "No context has both History and a distraction."


def test_perplexity_is_over_all_contexts() -> None:
    found = scores_on(result_of(Fake()))
    words_read, tokens = 6 + 6 + 1 + 2, 2 + 3 + 2 + 2  # log p is minus the words of the context
    assert found["perplexity"].value == pytest.approx(math.exp(words_read / tokens))
    assert found["perplexity"].n == 4


def test_json_has_a_score_for_every_number_and_says_over_how_many_contexts_it_is() -> None:
    shown = result_of(Fake()).to_dict()
    assert shown["instrument"] == "attention"
    counts = {key.removeprefix("fake@1/mine/"): score["n"] for key, score in shown["scores"].items()}
    # Two contexts have History and a distraction; one has no History, one no distraction, and all have a response.
    assert counts == {**dict.fromkeys(DETAILS, 2), "perplexity": 4}
    assert {frozenset(score) for score in shown["scores"].values()} == {frozenset(("value", "n", "interval", "reason"))}
    for name in shown["scores"]:
        assert direction(name) in ("low", "neither")


def test_uniform_attention_has_a_ratio_of_one_and_scores_of_a_hundred() -> None:
    sets = make_sets(generate(dialogues=40, seed=3), seed=1)
    uniform = Fake(lambda context: [1.0] * len(context), name="uniform@1")
    result = result_of(uniform, sets=sets)
    without = {}
    for name in result.set_names:
        found, counts = scores_on(result, "uniform@1", name), result.rows["uniform@1", name].left_out()
        assert found["das_ratio"].value == pytest.approx(1.0, abs=1e-6)
        assert found["distraction_percent"].value == pytest.approx(100.0, abs=1e-4)
        assert found["history_percent"].value == pytest.approx(100.0, abs=1e-4)
        assert found["das_ratio"].n + counts[NO_HISTORY] + counts[NO_DISTRACTION] == len(sets[0])
        assert counts[CUT] == counts[TOO_LONG] == 0
        without[name] = counts[NO_DISTRACTION]
    assert scores_on(result, "uniform@1", "original")["history_percent"].value == pytest.approx(100.0, abs=1e-4)
    assert without["random-0.5"] > without["random-0.7"] > 0
    assert without["frequent-end"] == 0


def test_a_window_that_cuts_distractions_away_is_counted_as_such() -> None:
    case = Case("d1", 4, ("x y", "a", "b", "q"), "r", (0,))
    result = result_of(Fake(window=2), sets=[DistractingSet("mine", [case])])
    found = scores_on(result)["das_ratio"]
    assert (found.value, found.n, skipped(result)) == (None, 0, {CUT: 1})
    assert found.reason


def test_a_context_behind_one_that_is_too_long_keeps_its_own_attention() -> None:
    long = Case("d0", 3, ("a", "x", "b", "q q q"), "yes", (1,))
    table = result_of(Fake(longest=2), sets=[DistractingSet("mine", [long, *CASES[:2]])]).table
    assert table["tokens"].to_pylist() == [0, 2, 3]  # words of the response and its end
    # Shares times utterances: x has 1 of 6 words of four turns; x y z has 3 of 6 of three.
    found = np.exp(table["log_distraction"].to_numpy()).tolist()
    assert found == pytest.approx([math.nan, 4 / 6, 3 * 3 / 6], nan_ok=True)


def test_every_column_of_the_table_says_what_it_means_and_in_which_unit(tmp_path: Path) -> None:
    result = result_of(Fake())
    for table in (result.table, pq.read_table(result.save(tmp_path / "run") / "cases.parquet")):
        meanings = {each.name: each.metadata[b"meaning"].decode() for each in table.schema}
        assert all(meanings.values())
        assert all("logarithm" in meaning for name, meaning in meanings.items() if name.startswith("log_"))


def test_every_context_is_counted_once_whatever_leaves_it_out() -> None:
    """Too long besides lacking History, or a distraction, or neither: it counts as too long alone."""
    long = [
        Case("d4", 1, ("q q q",), "r"),
        Case("d5", 2, ("a", "q q q"), "r"),
        Case("d6", 2, ("a", "x", "q q q"), "r", (1,)),
    ]
    sets = [DistractingSet(name, [*long, *CASES]) for name in ("original", "mine")]
    result = result_of(Fake(longest=2), sets=sets)
    counts = result.rows["fake@1", "mine"].left_out()
    assert counts == {TOO_LONG: 3, NO_HISTORY: 1, NO_DISTRACTION: 1, CUT: 0, UNDEFINED: 0}
    assert scores_on(result)["das_ratio"].n == 2
    counts = result.rows["fake@1", "original"].left_out()
    assert counts == {TOO_LONG: 3, NO_HISTORY: 1, NO_DISTRACTION: 0, CUT: 0, UNDEFINED: 0}
    assert scores_on(result, name="original")["history_percent"].n == 3
    assert skipped(result) == {TOO_LONG: 6, NO_HISTORY: 2, NO_DISTRACTION: 1}
    assert result.counts["contexts"] == {"original": 7, "mine": 7}


def test_layers_and_heads_can_be_chosen(tmp_path: Path) -> None:
    fake = Fake(kind="transformer", shape=(2, 3))
    chosen = result_of(fake, layer=1, head=-1)
    assert [each.ratio.shape for each in chosen.heads] == [(2, 3)]
    with pytest.raises(UsageError, match="2 layers"):
        result_of(fake, layer=2)
    again = AttentionResult.load(chosen.save(tmp_path / "run"))
    expected = (4 / 6 + 9 / 6) / (6 / 6 + 3 / 6)
    assert again.heads[0].ratio == pytest.approx(np.full((2, 3), expected), rel=1e-5)


def test_work_that_was_done_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["dialoscope.distract.measure"], "AT_ONCE", 3)
    first, second = Fake(), Fake()
    whole = measure([SET], models={"m": first}, work=tmp_path)
    assert first.calls == [3, 1, 1]  # the last one is the context that the page shows
    next(tmp_path.glob("*.parquet")).unlink()  # as if interrupted in between
    again = measure([SET], models={"m": second}, work=tmp_path)
    assert repr(again.table.to_pylist()) == repr(whole.table.to_pylist())  # NaN, too
    assert again.to_dict() == whole.to_dict()
    assert second.calls in ([3], [1])
    other = Fake(name="fake@2")  # other weights
    measure([SET], models={"m": other}, work=tmp_path)
    assert other.calls == [3, 1, 1]
    changed = Fake()
    measure([SET], models={"m": changed}, work=tmp_path, normalisation="per_token")
    assert changed.calls == [3, 1, 1]


def test_work_that_was_done_with_other_settings_is_done_again(tmp_path: Path) -> None:
    @dataclass
    class Configured(Fake):
        settings: dict[str, Any] = field(default_factory=dict)

    narrow = Configured(settings={"window": 128, "joining": "plain"})
    measure([SET], models={"m": narrow}, work=tmp_path)
    for changes in ({"window": 256}, {"joining": "chat"}):
        other = Configured(settings={**narrow.settings, **changes})
        measure([SET], models={"m": other}, work=tmp_path)
        assert other.calls == [4, 1]
    same = Configured(settings={**narrow.settings})
    measure([SET], models={"m": same}, work=tmp_path)
    assert same.calls == []


def test_models_are_compared_over_the_same_contexts(tmp_path: Path) -> None:
    blind = Fake(lambda context: [1.0] * len(context), name="blind@1")
    result = measure(
        generate(dialogues=60, seed=3), models={"blind": blind, "words": Fake()}, sets=["random-1.0"], seed=1
    )
    compared = difference(result, "words", "random-1.0")
    ratios = [scores_on(result, name, "random-1.0")["das_ratio_of_means"].value for name in ("blind", "words")]
    assert None not in ratios
    assert compared.difference.value == pytest.approx(ratios[0] - ratios[1])  # type: ignore[operator]
    assert compared.p_holm == compared.p_value  # the only test of the table
    again = AttentionResult.load(result.save(tmp_path / "run"))
    assert difference(again, "words", "random-1.0").to_dict() == compared.to_dict()
    (note,) = again.summary().notes
    assert note.startswith(f"blind minus words on random-1.0: {compared.difference.value:+.3f} [")
    assert compared.p_value is None and note.endswith("no p-value: the bootstrap needs at least 10 dialogues, found 6")
    assert "Compared with blind" in (tmp_path / "run" / "report.html").read_text()


def test_intervals_and_tests_are_over_dialogues() -> None:
    """Each dialogue's contexts three times over tell nothing new: no interval narrows, no p-value falls."""
    rng = np.random.default_rng(0)

    def said(most: int) -> str:
        return " ".join(["w"] * int(rng.integers(1, most)))

    once = [
        Case(f"d{place // 2}", place, (said(6), said(9), said(4), "q"), said(5), (int(rng.integers(0, 3)),))
        for place in range(24)
    ]
    copies = [case._replace(turn=case.turn + 100 * copy) for case in once for copy in range(3)]
    models = Fake(lambda context: [w**2 for w in words(context)], name="squares@1"), Fake(name="words@1")
    alone, thrice = (result_of(*models, sets=[DistractingSet("mine", cases)]) for cases in (once, copies))
    assert alone.scores().keys() == thrice.scores().keys()
    for key, score in alone.scores().items():
        copied = thrice.scores()[key]
        assert score.value is not None
        assert copied.value == pytest.approx(score.value) and copied.n == 3 * score.n
        assert (copied.interval is None) == (score.interval is None) == key.endswith("das_ratio_median"), key
        if score.interval is not None:
            assert copied.interval == pytest.approx(score.interval, rel=1e-6), key
    of_one, of_three = (difference(found, "words@1", "mine") for found in (alone, thrice))
    assert of_three.p_value == pytest.approx(of_one.p_value)
    assert of_three.difference.interval == pytest.approx(of_one.difference.interval)


def test_p_values_are_corrected_over_the_whole_table() -> None:
    """Holm: the smallest of two is doubled, the other is its own or the doubled one, whichever is larger."""
    sets = make_sets(generate(dialogues=300, seed=3), sets=["random-1.0"], seed=1)
    powers = {"words@1": 1.0, "squares@1": 2.0, "almost@1": 1.05}

    def to_the(power: float) -> Callable[[Context], list[float]]:
        return lambda context: [w**power for w in words(context)]

    models = [Fake(to_the(power), name=name) for name, power in powers.items()]
    result = result_of(*models, sets=sets)
    found = (difference(result, name, "random-1.0") for name in ("squares@1", "almost@1"))
    tests = sorted(found, key=lambda one: one.p_value or 0)
    p_values = [one.p_value or math.nan for one in tests]
    doubled = min(1.0, 2 * p_values[0])
    assert [one.p_holm for one in tests] == pytest.approx([doubled, max(doubled, p_values[1])])
    assert tests[0].p_holm != tests[0].p_value


def test_items_are_attention_on_distractions_and_history_and_the_loss_of_responses() -> None:
    items = result_of(Fake()).items()
    assert set(items) == {"fake@1/mine/das_ratio_of_means", "fake@1/mine/perplexity"}
    ratio, loss = items["fake@1/mine/das_ratio_of_means"], items["fake@1/mine/perplexity"]
    assert list(ratio.keys) == [("d1", "3"), ("d2", "2"), ("d2", "1"), ("d3", "2")]
    assert ratio.above.tolist() == pytest.approx([4 / 6, 9 / 6, math.nan, math.nan], nan_ok=True)
    assert ratio.below.tolist() == pytest.approx([4 * 1.5 / 6, 3 / 6, math.nan, math.nan], nan_ok=True)
    assert (loss.above.tolist(), loss.below.tolist()) == ([6, 6, 1, 2], [2, 3, 2, 2])


def test_a_result_is_written_whole_and_read_back(tmp_path: Path) -> None:
    corpus = generate(dialogues=60, seed=3)
    models = {"even": Fake(lambda context: [1.0] * len(context), name="even@1"), "words": Fake()}
    result = measure(corpus, models=models, sets=["random-1.0", "rare-end"], seed=1, limit=5)
    out = result.save(tmp_path / "run")
    again = AttentionResult.load(out)
    assert again.to_dict() == result.to_dict()
    assert repr(again.table.to_pylist()) == repr(result.table.to_pylist())  # NaN, too
    assert plain(again.section().blocks) == plain(result.section().blocks)
    assert again.example() == result.example() != ""
    shown = json.loads((out / "result.json").read_text())
    assert shown["origin"]["settings"]["models"] == "even=even@1,words=fake@1"
    assert shown["parts"] == {"train": 48, "test": 5}
    assert {path.name for path in (out / "tables").glob("*.tex")} >= {"das-ratio.tex", "attention-scores.tex"}
    latex = (out / "tables" / "das-ratio.tex").read_text()
    assert latex.count(r"\textbf") == 4  # the lowest of each set, and both perplexities, which are the same
    page = (out / "report.html").read_text()
    assert "Attention of words" in page
    assert "inserted" in page
    sentence = result.sets["rare-end"]["sentences"][0]["text"]
    assert f"rare: {sentence}" in (out / "tables" / "sentences.csv").read_text()


def test_a_context_too_long_for_one_model_stops_no_measurement(tmp_path: Path) -> None:
    """The only context with a distraction and a long enough History is too long for the second model."""
    long = Case("d1", 4, ("a b", "c", "x", "q q q"), "yes", (2,))
    models = {"wide": Fake(name="wide@1"), "narrow": Fake(name="narrow@1", longest=2)}
    result = measure([DistractingSet("mine", [long])], models=models)
    assert skipped(result) == {TOO_LONG: 1}
    assert scores_on(result, "narrow")["das_ratio"].value is None
    assert scores_on(result, "wide")["das_ratio"].value is not None
    assert [picture.model for picture in result.pictures] == ["wide"]
    again = AttentionResult.load(result.save(tmp_path / "run"))
    assert again.to_dict() == result.to_dict()


def test_one_bar_goes_over_all_models_and_sets() -> None:
    sets = [DistractingSet("original", CASES[:2]), SET]
    steps: list[tuple[int, int]] = []
    measure(sets, models={"a": Fake(), "b": Fake(name="b@1")}, progress=lambda *step: steps.append(step))
    assert steps == [(2, 12), (6, 12), (8, 12), (12, 12)]


def test_a_corpus_of_one_split_is_measured_whole_and_a_limit_cuts_the_measured_part_only() -> None:
    """The same rule for every interface; before, the command measured all of it and a study a tenth."""
    corpus = generate(dialogues=40, seed=3)
    whole = Corpus.of((dialogue._replace(split="all") for dialogue in corpus), name="chats")
    result = measure(whole, models={"m": Fake()}, sets=["random-1.0"])
    contexts = sum(len(dialogue.turns) - 1 for dialogue in whole)
    assert (result.counts["contexts"]["original"], result.parts) == (contexts, {"all": 40})
    assert result.used == (
        "The corpus has one split (all, 40 dialogues) and was measured; distractions come from other dialogues."
    )
    few = measure(whole, models={"m": Fake()}, sets=["random-1.0"], limit=2)
    rows = {(row["dialogue"], row["turn"]): row for row in result.table.to_pylist() if row["set"] == "random-1.0"}
    measured = [row for row in few.table.to_pylist() if row["set"] == "random-1.0"]
    assert len(measured) == sum(len(dialogue.turns) - 1 for dialogue in whole[:2])
    assert [repr(row) for row in measured] == [repr(rows[row["dialogue"], row["turn"]]) for row in measured]


def test_contexts_are_as_long_as_the_models_were_trained_with_however_they_are_given() -> None:
    @dataclass
    class Trained(Fake):
        context_turns: int | None = None

    corpus = generate(dialogues=30, seed=3)
    options: dict[str, Any] = {"sets": ["random-1.0"], "limit": 2}
    result = measure(corpus, models={"m": Trained(context_turns=3)}, **options)
    assert result.settings.context_turns == 3
    assert max(result.table["history_turns"].to_pylist()) == 2  # and the Query
    said = measure(corpus, models={"m": Trained(context_turns=3)}, context_turns=3, **options)
    assert result.to_dict() == said.to_dict()
    differ = {"few": Trained(context_turns=3), "all": Trained(name="all@1"), "any": Fake(name="any@1")}
    message = r"different turns of context \(few 3, all all\): give --context-turns"
    with pytest.raises(UsageError, match=message):
        measure(corpus, models=differ, **options)
    assert measure(corpus, models=differ, context_turns=2, **options).settings.context_turns == 2


@pytest.mark.parametrize(
    ("corpus", "options", "words"),
    [
        ("concierge", {"models": {"m": Fake()}}, "Distractions are measured on a Corpus, found str"),
        (None, {"models": {"m": Fake()}}, "Give a corpus"),
        ([SET], {"models": {}}, "at least one model"),
        ([SET], {"models": [Fake()]}, "Give models by name"),
        ([SET], {"models": {"m": 3}}, "models['m'] takes"),
        ([SET], {"models": {"m": Fake()}, "limit": 2}, "Written sets stay as they are"),
        ([SET], {"models": {"m": Fake()}, "sets": ["rare-end"]}, "no 'rare-end'"),
        ([SET], {"models": {"m": Fake()}, "sets_dir": "sets"}, "not both"),
        ([SET], {"models": {"m": Fake()}, "against": {"other": None}}, "leave out against"),
        ([SET], {"models": {"m": Fake()}, "normalisation": "none"}, "normalisation is one of utterance"),
        ([SET], {"models": {"m": Fake()}, "sets": ["loud"]}, "random-0.7"),
        ([SET], {"models": {"m": Fake()}, "sets": ["given-end"]}, "needs 2 sentences, found 0"),
        ([DistractingSet("original", CASES)], {"models": {"m": Fake()}}, "no distracting set"),
    ],
)
def test_what_cannot_be_measured_is_said_in_one_line(corpus: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        measure(corpus, **options)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_user_text_is_escaped_in_the_picture(tmp_path: Path) -> None:
    turns = ["<script>alert(1)</script> hello", "fine", "and you", "good", "ok"]
    dialogues = [
        Dialogue(tuple(Turn("AB"[k % 2], text) for k, text in enumerate(turns)), id=f"d{n}", split=split)
        for n, split in enumerate(("train", "train", "test"))
    ]
    dialogues[0] = dialogues[0]._replace(turns=tuple(Turn("A", f"other {k} <b>words</b>") for k in range(6)))
    result = measure(Corpus.of(dialogues, name="evil"), models={"m": Fake(words)}, sets=["random-1.0"])
    page = (result.save(tmp_path / "run") / "report.html").read_text()
    assert result.pictures
    assert "<script>alert(1)" not in page
    assert "<b>words" not in page


@pytest.mark.parametrize("size", [1, 7, 64])
def test_results_do_not_depend_on_batches(size: int) -> None:
    pytest.importorskip("torch")
    from tests.model.samples import network

    from dialoscope.model import Structure, Vocabulary
    from dialoscope.model.seq2seq import Seq2SeqModel

    corpus = generate(dialogues=30, seed=5)
    vocabulary = Vocabulary.of(corpus.turn_column("text").to_pylist(), size=300)
    sets = make_sets(corpus, sets=["random-0.7"], seed=1, limit=2)
    found = []
    for attention in ("token", "static", "dynamic"):
        settings = Structure(attention=attention, layers=2, width=8, embedding=8, vocabulary=len(vocabulary))
        asked = Seq2SeqModel(network(settings, scale=1.0), vocabulary, batch_size=size)
        table = measure(sets[1:], models={"m": asked}).table
        alone = [measure([DistractingSet("one", [case])], models={"m": asked}).table for case in sets[1].cases[:6]]
        for name in ("log_distraction", "log_history", "log_likelihood"):
            together = table[name].to_numpy()[:6]
            assert together.tolist() == pytest.approx(
                [one[name][0].as_py() for one in alone], abs=1e-5, rel=1e-6, nan_ok=True
            )
        found.append(table)
    assert not found[0].equals(found[1])


def test_a_ratio_too_large_to_write_counts_and_one_that_is_none_is_counted() -> None:
    """Logs of attention on distractions and on History: e^900 times as much, none on either, and as much."""
    columns = {
        "dialogue": ["a", "b", "c"],
        "log_distraction": [0.0, -math.inf, 0.0],
        "log_history": [-900.0, -math.inf, 0.0],
        **{name: [0.0] * 3 for name in ("log_first", "log_last", "log_likelihood")},
        **{name: [1, 1, 1] for name in ("tokens", "distractions", "history_turns")},
    }
    rows = CaseRows("m", "mine", pa.table(columns))
    found = scores_of(rows, Origin("c@1"))
    assert found["das_ratio"].value is not None and found["das_ratio"].value > 1e100
    assert found["das_ratio_median"].value == pytest.approx((1 + math.exp(300)) / 2)
    assert found["distraction_percent"].n == 3
    assert {reason: count for reason, count in left_out([rows]).items() if count} == {UNDEFINED: 1}


def test_equal_ratios_of_models_that_look_away_differently_are_not_found_different() -> None:
    """The second model leaves History a fourteenth of the attention, and scatters more; the ratio of both is 1."""
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(100):
        sides = [np.exp(rng.normal(0, spread, (2, 80))) * scale for spread, scale in ((0.5, 1.0), (1.0, 0.07))]
        rows = [
            CaseRows(name, "mine", pa.table({
                "dialogue": [str(place) for place in range(80)],
                "log_distraction": np.log(side[0]), "log_history": np.log(side[1]),
            }))
            for name, side in zip("ab", sides, strict=True)
        ]  # fmt: skip
        (found,) = compared(rows, Origin("c@1"))
        rejected += found.comparison.p_value is not None and found.comparison.p_value < 0.05
    assert rejected <= 13  # of 100 at a level of 5 %; randomisation rejects most of them


@pytest.mark.parametrize("question", [measure, influence, behave])
def test_dialogues_without_a_response_give_no_number_and_a_reason(question: Any, tmp_path: Path) -> None:
    prompts = [Dialogue((Turn("user", f"question {n}"),), id=f"t{n}", split="test") for n in range(3)]
    training = [dialogue for dialogue in generate(dialogues=30, seed=3) if dialogue.split == "train"]
    result = question(Corpus.of([*training, *prompts], name="prompts"), models={"m": Fake()}, sets=["random-1.0"])
    assert result.scores() and all(score.value is None and score.reason for score in result.scores().values())
    assert {verdict.level for verdict in result.verdicts()} == {"not_measurable"}
    again = type(result).load(result.save(tmp_path / "run"))
    assert again.to_dict() == result.to_dict()
