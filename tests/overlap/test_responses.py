from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialoscope.corpus import Corpus, Dialogue, Turn
from dialoscope.errors import UsageError
from dialoscope.overlap import OverlapResult, measure
from dialoscope.record import direction

# Test samples "q0" … "q9" in five dialogues of two samples each. Of samples 0 to 3 training has context and response,
# of the others neither. Leaked responses are remembered word for word, clean ones are not: "a b" for "a b", "a x" for
# "a y".
LEAKED = 4


def corpus() -> Corpus:
    def dialogue(number: int, split: str) -> Dialogue:
        first, second = 2 * number, 2 * number + 1
        texts = (f"q{first}", "a b" if first < LEAKED else "a y", f"q{second}", "a b" if second < LEAKED else "a y")
        return Dialogue(
            tuple(Turn("AB"[place % 2], text) for place, text in enumerate(texts)), f"{split}{number}", split
        )

    training = [dialogue(number, "train") for number in range(LEAKED // 2)]
    return Corpus.of([*training, *(dialogue(number, "test") for number in range(5))])


@pytest.fixture
def said(tmp_path: Path) -> str:
    """One response for each test sample; of three samples a dialogue, the second answers "a b" or "a y" with "q"."""
    path = tmp_path / "said.txt"
    path.write_text("".join(line + "\n" for line in answers()))
    return str(path)


def answers() -> list[str]:
    lines = []
    for number in range(5):
        is_leaked = 2 * number < LEAKED
        response = "a b" if is_leaked else "a x"
        lines += [response, f"q{2 * number + 1}" if is_leaked else "w", response]
    return lines


def test_each_part_has_the_score_worked_by_hand(said: str) -> None:
    # Fifteen samples, three a dialogue; those of the first two dialogues are leaked: 6, and 9 are clean. Leaked words
    # match, 2·2 + 1 = 5 a dialogue. Of a clean dialogue "a" of "a x" matches twice: 2 of 5 words.
    found = measure(corpus(), hypotheses=said, metrics=["bleu-1", "length"])
    scores = {part: scores["bleu-1"].value for part, scores in found.responses.items()}
    assert scores == pytest.approx({"test": 100 * 16 / 25, "clean": 40.0, "leaked": 100.0})
    assert {part: scores["length"].n for part, scores in found.responses.items()} == {
        "test": 15,
        "clean": 9,
        "leaked": 6,
    }
    assert found.scores()["responses/leaked/bleu-1"].value == pytest.approx(100)
    assert [direction(name) for name in found.scores() if name.endswith(("bleu-1", "length"))] == [
        "high",
        "neither",
    ] * 3


def test_whole_dialogues_are_resampled(said: str) -> None:
    responses = measure(corpus(), hypotheses=said, metrics=["bleu-1"]).responses
    assert "|dialogues:5|" in responses["test"]["bleu-1"].signature
    assert "[clean]@" in responses["clean"]["bleu-1"].signature
    assert "|dialogues:3|" in responses["clean"]["bleu-1"].signature


def test_a_part_that_is_too_small_for_an_interval_says_why(said: str) -> None:
    found = measure(corpus(), hypotheses=said, metrics=["bleu-1"])
    leaked = found.responses["leaked"]["bleu-1"]
    assert leaked.value == pytest.approx(100)
    assert leaked.interval is None
    assert leaked.interval_reason is not None
    assert any(note.startswith("bleu-1, leaked: no interval, for ") for note in found.notes)


@pytest.mark.parametrize(
    ("leak", "part", "reason"),
    [(1.0, "leaked", "no sample is over 1"), (0.8, "clean", "no sample is at or under 0.8")],
)
def test_an_empty_part_says_so(leak: float, part: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "said.txt").write_text("c\n")
    data = Corpus.of_pairs([("a", "b")], [("a", "b")])
    found = measure(data, hypotheses=str(tmp_path / "said.txt"), metrics=["bleu-1", "distinct-1"], leak=leak)
    assert [score.reason for score in found.responses[part].values()] == [reason, reason]


def test_a_saved_result_is_scored_again_at_another_threshold(said: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"hypotheses": said, "metrics": ["bleu-1", "distinct-1"]}
    again = OverlapResult.load(measure(corpus(), **options).save(tmp_path / "run"))
    assert again.to_dict() == measure(corpus(), **options).to_dict()
    assert again.at(0.2).to_dict() == measure(corpus(), **options, leak=0.2).to_dict()
    assert "responses/leaked/bleu-1" in json.loads((tmp_path / "run" / "result.json").read_text())["scores"]
    assert "Scores with and without the leak" in (tmp_path / "run" / "report.html").read_text()
    assert (tmp_path / "run" / "tables" / "responses.tex").is_file()


def test_shares_of_distinct_words_are_scored_only_where_they_are_asked_for_and_with_a_note(said: str) -> None:
    usual = measure(corpus(), hypotheses=said).responses["clean"]
    assert set(usual) == {"bleu-1", "bleu-2", "bleu-3", "bleu-4", "length"}
    found = measure(corpus(), hypotheses=said, metrics=["distinct-1", "length"])
    note = "distinct-1: falls as responses are added, so parts of different size do not compare."
    assert note in found.notes
    (table,) = [table for table in found.section().tables if table.name == "responses"]
    assert note in table.notes
    assert [head.name for head in table.heads] == ["metric", "unit", "test", "clean", "leaked"]


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (3, {}, "15 test samples and 3 hypotheses: expected one for each, in order."),
        (15, {"metrics": ["blue-2"]}, "Unknown metric 'blue-2'. Did you mean 'bleu-2'?"),
        (5, {"unit": "dialogue"}, "A dialogue has no response to score against: give references."),
    ],
)
def test_responses_that_do_not_fit_are_one_line(
    lines: int, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (tmp_path / "said.txt").write_text("a\n" * lines)
    with pytest.raises(UsageError) as raised:
        measure(corpus(), hypotheses=str(tmp_path / "said.txt"), **options)
    assert str(raised.value) == message


def test_references_of_their_own_stand_in_for_the_test_responses(tmp_path: Path) -> None:
    for name, text in (("said.txt", "b\n"), ("meant.txt", "b\n")):
        (tmp_path / name).write_text(text)
    paths: dict[str, Any] = {"hypotheses": str(tmp_path / "said.txt"), "references": str(tmp_path / "meant.txt")}
    found = measure(Corpus.of_texts(["x"], ["a"]), **paths, metrics=["bleu-1"])
    assert found.responses["test"]["bleu-1"].value == pytest.approx(100)


def test_dialogues_that_share_an_id_are_resampled_apart(said: str) -> None:
    whole = corpus()
    renamed = Corpus.of([dialogue._replace(id="d1") for dialogue in whole])
    assert (
        "|dialogues:5|" in measure(renamed, hypotheses=said, metrics=["bleu-1"]).responses["test"]["bleu-1"].signature
    )
