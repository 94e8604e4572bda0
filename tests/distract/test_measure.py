from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.distract.fakes import Fake, words

from dialoscope.corpus import Corpus, Dialogue, Turn, generate
from dialoscope.distract.examine import Wish, examine, make_sets
from dialoscope.distract.influence import behaviour, influence, respond, unread
from dialoscope.distract.measure import Measured, Scoring, measure
from dialoscope.distract.output import write_result
from dialoscope.distract.plan import Planned, plan
from dialoscope.distract.report import DETAILS
from dialoscope.distract.result import compared, set_result, summarise
from dialoscope.distract.sets import Case, DistractingSet
from dialoscope.errors import DialoscopeError, UsageError
from dialoscope.metrics import Resampling
from dialoscope.model.protocol import Context, Likelihood
from dialoscope.record import Origin
from dialoscope.report import read_run

# Weights are words: the distraction has 1 of 6, History 2 and 1, the Query 2; then 3 of 6, 1, 2.
CASES = [
    Case("d1", 3, ("a b", "x", "c", "q q"), "yes", (1,)),
    Case("d2", 2, ("x y z", "a", "q q"), "no no", (0,)),
    Case("d2", 1, ("q",), "well"),  # no History
    Case("d3", 2, ("a", "q"), "fine"),  # no distraction
]
SET = DistractingSet("mine", CASES)


def result_of(*models: Fake, sets: list[DistractingSet] | None = None, **options: Any) -> Any:
    named = {model.name: model for model in models}
    measured = measure(named, sets or [SET], **options)
    return summarise(measured, origin=Origin("corpus@1"))


def test_the_das_ratio_by_hand() -> None:
    found = result_of(Fake()).models["fake@1"].sets["mine"]
    # 1 / mean(2, 1) and 3 / 1: equation 8 takes the mean of the ratios, the tables' cells the ratio of the means.
    assert found["das_ratio"].value == pytest.approx((1 / 1.5 + 3 / 1) / 2)
    distraction, history = (100 * 4 / 6, 100 * 9 / 6), (100 * 4 * 1.5 / 6, 100 * 3 / 6)
    assert found["distraction_percent"].value == pytest.approx(sum(distraction) / 2)
    assert found["history_percent"].value == pytest.approx(sum(history) / 2)
    assert found["das_ratio_of_means"].value == pytest.approx(sum(distraction) / sum(history))
    assert found["first_percent"].value == pytest.approx((100 * 8 / 6 + 100 * 3 / 6) / 2)
    assert found["last_percent"].value == pytest.approx((100 * 4 / 6 + 100 * 3 / 6) / 2)
    assert found["das_ratio_median"].value == pytest.approx((1 / 1.5 + 3) / 2)
    assert (found.samples, found.without_history, found.without_distraction) == (2, 1, 1)


def test_where_no_context_has_history_the_ratio_says_so() -> None:
    found = result_of(Fake(), sets=[DistractingSet("mine", CASES[2:3])]).models["fake@1"].sets["mine"]
    assert (found["das_ratio_of_means"].value, found.samples) == (None, 0)
    assert found["das_ratio_of_means"].reason == "no context has both History and a distraction"


def test_perplexity_is_over_all_contexts() -> None:
    found = result_of(Fake()).models["fake@1"].sets["mine"]
    words_read, tokens = 6 + 6 + 1 + 2, 2 + 3 + 2 + 2  # log p is minus the words of the context
    assert found["perplexity"].value == pytest.approx(math.exp(words_read / tokens))
    assert found["perplexity"].n == 4


def test_json_says_of_every_number_what_it_is_of() -> None:
    found = result_of(Fake()).models["fake@1"].sets["mine"].to_dict()
    promised = {"das_ratio", "interval", "das_ratio_of_means", "distraction_percent", "history_percent", "samples",
                "without_distraction", "without_history"}  # fmt: skip
    assert promised <= found.keys()
    # Two contexts have History and a distraction; one has no History, one no distraction, and all have a response.
    assert found["counts"] == {**dict.fromkeys(found["counts"], 2), "perplexity": 4}
    assert found["counts"].keys() == DETAILS.keys()


def test_uniform_attention_has_a_ratio_of_one_and_scores_of_a_hundred() -> None:
    corpus = generate(dialogues=40, seed=3)
    sets = make_sets(corpus, seed=1)
    uniform = Fake(lambda context: [1.0] * len(context), name="uniform@1")
    found = result_of(uniform, sets=sets).models["uniform@1"]
    for one in found.sets.values():
        assert one["das_ratio"].value == pytest.approx(1.0, abs=1e-6)
        assert one["distraction_percent"].value == pytest.approx(100.0, abs=1e-4)
        assert one["history_percent"].value == pytest.approx(100.0, abs=1e-4)
        assert one.samples + one.without_history + one.without_distraction == len(sets[0])
        assert one.cut == one.too_long == 0
    assert found.original is not None
    assert found.original["history_percent"].value == pytest.approx(100.0, abs=1e-4)
    assert found.sets["random-0.5"].without_distraction > found.sets["random-0.7"].without_distraction > 0
    assert found.sets["frequent-end"].without_distraction == 0


def test_a_window_that_cuts_distractions_away_is_counted_as_such() -> None:
    case = Case("d1", 4, ("x y", "a", "b", "q"), "r", (0,))
    found = result_of(Fake(window=2), sets=[DistractingSet("mine", [case])]).models["fake@1"].sets["mine"]
    assert (found.samples, found.without_distraction, found.cut) == (0, 0, 1)
    assert found["das_ratio"].value is None
    assert json.dumps(found.to_dict()["reasons"])


def test_a_context_behind_one_that_is_too_long_keeps_its_own_attention() -> None:
    long = Case("d0", 3, ("a", "x", "b", "q q q"), "yes", (1,))
    table = measure({"m": Fake(longest=2)}, [DistractingSet("mine", [long, *CASES[:2]])])[0].table
    assert table["tokens"].to_pylist() == [0, 2, 3]  # words of the response and its end
    # Shares times utterances: x has 1 of 6 words of four turns; x y z has 3 of 6 of three.
    assert np.exp(table["distraction"].to_numpy()).tolist() == pytest.approx([math.nan, 4 / 6, 3 * 3 / 6], nan_ok=True)


def test_every_context_is_counted_once_whatever_leaves_it_out() -> None:
    """Too long besides lacking History, or a distraction, or neither: it counts as too long alone."""
    long = [
        Case("d4", 1, ("q q q",), "r"),
        Case("d5", 2, ("a", "q q q"), "r"),
        Case("d6", 2, ("a", "x", "q q q"), "r", (1,)),
    ]
    sets = [DistractingSet(name, [*long, *CASES]) for name in ("original", "mine")]
    found = result_of(Fake(longest=2), sets=sets).models["fake@1"]
    one = found.sets["mine"]
    assert (one.too_long, one.without_history, one.without_distraction, one.cut, one.samples) == (3, 1, 1, 0, 2)
    whole = found.original
    assert (whole.too_long, whole.without_history, whole.cut, whole.samples) == (3, 1, 0, 3)


def test_layers_and_heads_can_be_chosen() -> None:
    fake = Fake(kind="transformer", shape=(2, 3))
    assert result_of(fake, scoring=Scoring(layer=1, head=-1)).models["fake@1"].sets["mine"].heads.ratio.shape == (2, 3)
    with pytest.raises(UsageError, match="2 layers"):
        result_of(fake, scoring=Scoring(layer=2))
    shown = result_of(fake).to_dict()["models"]["fake@1"]["sets"]["mine"]["heads"]
    assert np.array(shown["das_ratio_of_means"]).shape == (2, 3)
    expected = (4 / 6 + 9 / 6) / (6 / 6 + 3 / 6)
    assert shown["best"]["das_ratio_of_means"] == pytest.approx(expected, rel=1e-5)


def test_work_that_was_done_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["dialoscope.distract.measure"], "AT_ONCE", 3)
    first, second = Fake(), Fake()
    whole = measure({"m": first}, [SET], work=tmp_path)[0].table
    assert first.calls == [3, 1]
    next(tmp_path.glob("*.parquet")).unlink()  # as if killed in between
    again = measure({"m": second}, [SET], work=tmp_path)[0].table
    assert repr(again.to_pylist()) == repr(whole.to_pylist())  # NaN, too
    assert second.calls in ([3], [1])
    other = Fake(name="fake@2")  # other weights
    measure({"m": other}, [SET], work=tmp_path)
    assert other.calls == [3, 1]
    changed = Fake()
    measure({"m": changed}, [SET], work=tmp_path, scoring=Scoring("per_token"))
    assert changed.calls == [3, 1]


def test_work_that_was_done_with_other_settings_is_done_again(tmp_path: Path) -> None:
    @dataclass
    class Configured(Fake):
        settings: dict[str, Any] = field(default_factory=dict)

    narrow = Configured(settings={"window": 128, "joining": "plain"})
    measure({"m": narrow}, [SET], work=tmp_path)
    for changes in ({"window": 256}, {"joining": "chat"}):
        other = Configured(settings={**narrow.settings, **changes})
        measure({"m": other}, [SET], work=tmp_path)
        assert other.calls == [4]
    same = Configured(settings={**narrow.settings})
    measure({"m": same}, [SET], work=tmp_path)
    assert same.calls == []


def test_models_are_compared_over_the_same_contexts() -> None:
    corpus = generate(dialogues=60, seed=3)
    sets = make_sets(corpus, names=["random-1.0"], seed=1)
    blind = Fake(lambda context: [1.0] * len(context), name="blind@1")
    result = result_of(blind, Fake(name="words@1"), sets=sets)
    one = result.comparisons["words@1"]["random-1.0"]
    ratios = [result.models[name].sets["random-1.0"]["das_ratio_of_means"].value for name in result.models]
    assert one.difference.value == pytest.approx(ratios[0] - ratios[1])
    assert one.p_holm == one.p_value  # the only test of the table
    assert result.to_dict()["compared_with"] == "blind@1"


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
    for name in alone.models:
        for key, score in alone.models[name].sets["mine"].scores.items():
            copied = thrice.models[name].sets["mine"].scores[key]
            assert copied.value == pytest.approx(score.value) and copied.n == 3 * score.n
            assert (copied.interval is None) == (score.interval is None) == (key == "das_ratio_median"), key
            if score.interval is not None:
                assert copied.interval == pytest.approx(score.interval, rel=1e-6), key
    of_one, of_three = (found.comparisons["words@1"]["mine"] for found in (alone, thrice))
    assert of_three.p_value == pytest.approx(of_one.p_value)
    assert of_three.difference.interval == pytest.approx(of_one.difference.interval)
    left_out = influence(Fake(), once), influence(Fake(), copies)
    for key, score in left_out[0].scores.items():
        assert score.interval is not None
        assert left_out[1].scores[key].interval == pytest.approx(score.interval), key


def test_p_values_are_corrected_over_the_whole_table() -> None:
    """Holm: the smallest of two is doubled, the other is its own or the doubled one, whichever is larger."""
    sets = make_sets(generate(dialogues=300, seed=3), names=["random-1.0"], seed=1)
    powers = {"words@1": 1.0, "squares@1": 2.0, "almost@1": 1.05}

    def to_the(power: float) -> Callable[[Context], list[float]]:
        return lambda context: [w**power for w in words(context)]

    models = [Fake(to_the(power), name=name) for name, power in powers.items()]
    found = result_of(*models, sets=sets).comparisons
    tests = sorted((found[name]["random-1.0"] for name in ("squares@1", "almost@1")), key=lambda one: one.p_value)
    doubled = min(1.0, 2 * tests[0].p_value)
    assert [one.p_holm for one in tests] == pytest.approx([doubled, max(doubled, tests[1].p_value)])
    assert tests[0].p_holm != tests[0].p_value


def test_influence_by_hand() -> None:
    """Leaving a turn out raises log p, minus the words of the context, by its words: falls are below 0."""
    found = influence(Fake(), CASES)
    assert found.distraction_fall.value == pytest.approx(-(1 + 3) / 2)
    assert found.history_fall.value == pytest.approx(-(1.5 + 1) / 2)
    assert found.ratio.value == pytest.approx((1 + 3) / (1.5 + 1))
    assert found.ratio.n == 2


def test_influence_leaves_out_what_is_not_read_and_counts_it() -> None:
    cases = [
        # Three turns are read: x, c and the Query, 1 + 1 + 2 words. Without x or c, "a b" comes back in their place:
        # 2 + 1 + 2 words, a fall of 1. "a b" itself is not read; as a turn without influence it would halve the mean.
        Case("d1", 3, ("a b", "x", "c", "q q"), "yes", (1,)),
        Case("d2", 3, ("a", "b b", "x x x", "q"), "no", (2,)),  # 6 words are read; without b b 5, without x x x 4
        Case("d3", 4, ("x y", "a", "b", "q"), "r", (0,)),  # its distraction is not read
        Case("d4", 2, ("a", "x", "q"), "r", (1,)),  # all is read: without a or x one word less
        Case("d5", 2, ("a", "x", "q q q q"), "r", (1,)),  # too long
    ]
    fake = Fake(window=3, longest=3)
    found = influence(fake, cases)
    assert found.distraction_fall.value == pytest.approx((1 - 2 - 1) / 3)
    assert found.history_fall.value == pytest.approx((1 - 1 - 1) / 3)
    assert found.ratio.value == pytest.approx((1 + 2 + 1) / (1 + 1 + 1))
    assert found.ratio.n == 3
    assert found.left_out == {"influence_too_long": 1, "influence_cut": 1, "influence_turns_cut": 3}
    assert fake.scored == [3 + 3 + 3 + 3]  # a whole context, and two turns that can be left out, of each that fits


def test_influence_shares_what_contexts_begin_with_where_a_model_can() -> None:
    @dataclass
    class Sharing(Fake):
        groups: list[int] = field(default_factory=list)

        def log_likelihood_sharing(
            self, contexts: Sequence[Context], responses: Sequence[str], groups: Sequence[int]
        ) -> list[Likelihood]:
            self.groups += groups
            assert [contexts[groups.index(group)] for group in sorted(set(groups))] == [
                case.context for case in CASES[:2]
            ]
            return super().log_likelihood(contexts, responses)

    fake = Sharing()
    assert influence(fake, CASES).scores == influence(Fake(), CASES).scores
    assert fake.groups == [0] * 4 + [1] * 3  # a whole context first, then without each turn before the Query


def test_influence_of_nothing_that_is_read_says_why_there_is_none() -> None:
    found = influence(Fake(longest=0), CASES)
    assert found.ratio.value is None and found.ratio.reason
    assert found.too_long == 2


def test_influence_and_responses_that_were_done_are_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["dialoscope.distract.influence"]
    monkeypatch.setattr(module, "AT_ONCE", 1)
    monkeypatch.setattr(module, "WRITTEN_AT_ONCE", 3)
    first, second = Fake(longest=1), Fake(longest=1)
    cases = [*CASES, Case("d4", 3, ("a", "x x", "b", "q"), "yes", (1,))]
    whole = influence(first, cases, work=tmp_path), respond(first, cases, work=tmp_path)
    assert whole[0].left_out == {"influence_too_long": 2, "influence_cut": 0, "influence_turns_cut": 0}
    assert whole[0].ratio.value == pytest.approx(2 / 1)
    assert whole[1] == [None, None, "q", "a", "a"]  # "q q" is too long
    again = influence(second, cases, work=tmp_path), respond(second, cases, work=tmp_path)
    assert (second.scored, second.written) == ([], [])
    assert (again[0].scores, again[0].left_out, again[1]) == (whole[0].scores, whole[0].left_out, whole[1])
    other = Fake(longest=1, name="fake@2")  # other weights
    respond(other, cases, work=tmp_path)
    assert other.written == [1, 2]


def test_responses_are_compared_where_both_were_written() -> None:
    found = behaviour(["a b", None, "x", "y"], ["b c", "same", None, "y"], CASES)
    assert (found.changed.value, found.changed.n) == (1.0, 1)
    assert found.left_out == {"behaviour_too_long": 1, "behaviour_cut": 0}  # the third got no distraction


def test_responses_to_distractions_that_are_not_read_are_left_out_and_counted() -> None:
    """A window of two turns reads the second context's later distraction, and none of the first one's."""
    cases = [Case("d1", 4, ("x y", "a", "b", "q"), "r", (0,)), Case("d2", 4, ("x", "a", "z", "q"), "r", (0, 2))]
    cases.append(Case("d3", 2, ("x", "q q q q"), "r", (0,)))  # too long
    sets = [
        DistractingSet("original", [one._replace(context=("a", one.context[-1]), distractions=()) for one in cases]),
        DistractingSet("mine", cases),
    ]
    fake = Fake(window=2, longest=3)
    assert unread(fake, cases) == [2, 2, 0]
    found = behaviour(["q", "q", None], ["q", "z", None], cases, unread=unread(fake, cases))
    assert (found.changed.value, found.changed.n) == (1.0, 1)
    assert found.left_out == {"behaviour_too_long": 1, "behaviour_cut": 1}
    told = examine({"fake": fake}, sets, wish=Wish(has_behaviour=True)).result.to_dict()["models"]["fake"]["sets"][
        "mine"
    ]
    assert (told["behaviour_cut"], told["behaviour_too_long"], told["changed_share"]["n"]) == (1, 1, 1)


def test_words_lost_are_ranked_against_the_das_ratio_by_hand() -> None:
    """Words lost 0, 1/2, 1, 1/3 have ranks 1, 3, 4, 2; the ratios 1, 4, 3, 2: 1 - 6 · (1 + 1) / (4 · 15)."""
    cases = [Case(f"d{n}", 2, ("x", "a", "q"), "r", (0,) if n else ()) for n in range(5)]
    original = ["a b", "a b", "a b", "a b", "a b c"]
    distracted = ["c d", "a b", "a c", "c d", "a b d"]
    found = behaviour(original, distracted, cases, ratios=[5.0, 0.1, 0.9, 0.5, 0.2])  # the first got none
    assert found.with_ratio is not None
    assert found.with_ratio.value == pytest.approx(0.8)
    assert found.with_ratio.n == 4
    assert found.changed.value == 0.75
    assert found.kept_words.value == pytest.approx((1 + 1 / 2 + 0 + 2 / 3) / 4)
    assert found.scores["change_with_das_ratio"] is found.with_ratio


def test_a_context_too_long_for_one_model_stops_no_examination(tmp_path: Path) -> None:
    """The only context with a distraction and a long enough History is too long for the second model."""
    long = Case("d1", 4, ("a b", "c", "x", "q q q"), "yes", (2,))
    sets = [
        DistractingSet(
            "original", [case._replace(context=("a b", "c", case.context[-1]), distractions=()) for case in (long,)]
        ),
        DistractingSet("mine", [long]),
    ]
    models = {"wide": Fake(name="wide@1"), "narrow": Fake(name="narrow@1", longest=2)}
    found = examine(models, sets, wish=Wish(has_influence=True, has_behaviour=True))
    narrow = found.result.to_dict()["models"]["narrow"]["sets"]["mine"]
    assert (narrow["too_long"], narrow["influence_too_long"], narrow["behaviour_too_long"]) == (1, 1, 1)
    assert narrow["influence_ratio"]["value"] is None
    scores = {**found.result.models["wide"].sets["mine"].scores, **found.result.models["wide"].extras["mine"].scores}
    assert {"das_ratio", "influence_ratio", "kept_words"} < set(scores)
    for name, score in scores.items():
        assert {"model:wide@1", "set:mine", f"metric:{name.replace('_', '-')}"} <= set(score.signature.split("|"))
    wide = found.result.to_dict()["models"]["wide"]["sets"]["mine"]
    assert (wide["influence_too_long"], wide["behaviour_too_long"]) == (0, 0)
    assert [list(one.scores) for one in found.pictures] == [["wide"]]
    out = write_result(found.result, found.measured, tmp_path / "run", pictures=found.pictures)
    assert "Left out over all rows: influence too long 1, behaviour too long 1." in (out / "report.html").read_text()


def test_a_plan_counts_portions_and_what_is_done_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["dialoscope.distract.measure"], "AT_ONCE", 3)
    monkeypatch.setattr(sys.modules["dialoscope.distract.influence"], "AT_ONCE", 1)
    sets = [DistractingSet("original", CASES[:2]), SET]
    fake, wish = Fake(), Wish(has_influence=True, has_behaviour=True)
    # Of the four cases: attention in threes, the influence of two one by one, responses all at once.
    assert plan({"m": None}, sets, wish=wish) == [Planned("m", "original", 2, 2, 0), Planned("m", "mine", 4, 5, 0)]
    assert plan({"m": fake}, sets) == [Planned("m", "original", 2, 1, 0), Planned("m", "mine", 4, 2, 0)]
    measure({"m": fake}, sets[1:], work=tmp_path)
    influence(fake, CASES[:1], work=tmp_path)
    done = plan({"m": fake, "other": Fake(name="other@1")}, sets, wish=wish, work=tmp_path)
    assert [one.done for one in done] == [0, 2 + 1, 0, 0]
    examine({"m": fake}, sets, wish=wish, work=tmp_path)
    assert [(one.portions, one.done) for one in plan({"m": fake}, sets, wish=wish, work=tmp_path)] == [(2, 2), (5, 5)]


def test_one_bar_goes_through_all_stages() -> None:
    sets = [DistractingSet("original", CASES[:2]), SET]
    told: list[tuple[int, int]] = []
    models = {"a": Fake(), "b": Fake(name="b@1")}
    examine(models, sets, wish=Wish(has_influence=True, has_behaviour=True), progress=lambda *one: told.append(one))
    # Of each model: attention on 2 + 4 contexts, 2 that have both kinds, responses to 2 + 4.
    assert {total for _, total in told} == {2 * 14}
    assert [done for done, _ in told] == [2, 6, 8, 12, 14, 16, 20, 22, 24, 28]


def test_behaviour_by_hand() -> None:
    found = behaviour(["a b", "same", "x", "y"], ["b c", "same", "z", "y"], CASES, ratios=[0.9, 0.1, 0.0, 0.0])
    assert found.changed.value == 0.5  # of the two that got a distraction
    assert found.kept_words.value == pytest.approx((2 * 1 / 4 + 1) / 2)


def test_an_examination_is_written_whole_and_read_back(tmp_path: Path) -> None:
    corpus = generate(dialogues=60, seed=3)
    sets = make_sets(corpus, names=["random-1.0", "rare-end"], seed=1, limit=5)
    models = {"even": Fake(lambda context: [1.0] * len(context), name="even@1"), "words": Fake()}
    found = examine(models, sets, wish=Wish(has_influence=True, has_behaviour=True))
    out = write_result(found.result, found.measured, tmp_path / "run", pictures=found.pictures)
    run = read_run(out)
    assert run.instrument == "distract"
    assert run.data["models"]["words"]["sets"]["rare-end"]["influence_ratio"]["value"] > 0
    assert run.data["sets"]["rare-end"]["fingerprint"] == sets[2].fingerprint
    assert {path.name for path in (out / "tables").glob("*.tex")} >= {"das-ratio.tex", "attention-scores.tex"}
    latex = (out / "tables" / "das-ratio.tex").read_text()
    assert latex.count(r"\textbf") == 4  # the lowest of each set, and both perplexities, which are the same
    page = (out / "report.html").read_text()
    assert "Where words looks" in page
    assert "put in" in page


def test_user_text_is_escaped_in_the_picture(tmp_path: Path) -> None:
    turns = ["<script>alert(1)</script> hello", "fine", "and you", "good", "ok"]
    dialogues = [
        Dialogue(tuple(Turn("AB"[k % 2], text) for k, text in enumerate(turns)), id=f"d{n}", split=split)
        for n, split in enumerate(("train", "train", "test"))
    ]
    dialogues[0] = dialogues[0]._replace(turns=tuple(Turn("A", f"other {k} <b>words</b>") for k in range(6)))
    corpus = Corpus.of(dialogues, name="evil")
    found = examine({"m": Fake(words)}, make_sets(corpus, names=["random-1.0"]))
    page = (
        write_result(found.result, found.measured, tmp_path / "run", pictures=found.pictures) / "report.html"
    ).read_text()
    assert found.pictures
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
    sets = make_sets(corpus, names=["random-0.7"], seed=1, limit=2)
    found = []
    for attention in ("token", "static", "dynamic"):
        settings = Structure(attention=attention, layers=2, width=8, embedding=8, vocabulary=len(vocabulary))
        asked = Seq2SeqModel(network(settings, scale=1.0), vocabulary, batch_size=size)
        table = measure({"m": asked}, sets)[1].table
        alone = [measure({"m": asked}, [DistractingSet("one", [case])])[0].table for case in sets[1].cases[:6]]
        for name in ("distraction", "history", "log_likelihood"):
            together = table[name].to_numpy()[:6]
            assert together.tolist() == pytest.approx(
                [one[name][0].as_py() for one in alone], abs=1e-5, rel=1e-6, nan_ok=True
            )
        found.append(table)
    assert not found[0].equals(found[1])


def test_a_ratio_too_large_to_write_counts_and_one_that_is_none_is_told() -> None:
    """Logs of attention on distractions and on History: e^900 times as much, none on either, and as much."""
    columns = {
        "dialogue": ["a", "b", "c"],
        "distraction": [0.0, -math.inf, 0.0],
        "history": [-900.0, -math.inf, 0.0],
        **{name: [0.0] * 3 for name in ("first", "last", "log_likelihood")},
        **{name: [1, 1, 1] for name in ("tokens", "put_in", "turns_before")},
    }
    found = set_result(Measured("m", "m@1", "mine", pa.table(columns), None), Origin("c@1"), Resampling())
    assert found["das_ratio"].value is not None and found["das_ratio"].value > 1e100
    assert found["das_ratio_median"].value == pytest.approx((1 + math.exp(300)) / 2)
    assert (found.samples, found.undefined) == (3, 1)
    assert found.to_dict()["undefined"] == 1


def test_equal_ratios_of_models_that_look_away_differently_are_not_found_different() -> None:
    """The second model leaves History a fourteenth of the attention, and scatters more; the ratio of both is 1."""
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(100):
        sides = [np.exp(rng.normal(0, spread, (2, 80))) * scale for spread, scale in ((0.5, 1.0), (1.0, 0.07))]
        measured = [
            Measured(name, f"{name}@1", "mine", pa.table({
                "dialogue": [str(place) for place in range(80)],
                "distraction": np.log(side[0]), "history": np.log(side[1]),
                **{key: np.zeros(80) for key in ("first", "last", "log_likelihood")},
                **{key: np.ones(80, dtype=np.int64) for key in ("tokens", "put_in", "turns_before")},
            }), None)
            for name, side in zip("ab", sides, strict=True)
        ]  # fmt: skip
        by = {one.model: {one.name: one} for one in measured}
        p_value = compared(by, Origin("c@1"), Resampling(resamples=200))["b"]["mine"].p_value
        rejected += p_value is not None and p_value < 0.05
    assert rejected <= 13  # of 100 at a level of 5 %; randomisation rejects most of them


def test_a_split_that_is_not_there_is_an_error() -> None:
    with pytest.raises(DialoscopeError, match="tset"):
        make_sets(generate(dialogues=60, seed=1), split="tset")
