"""Dialogues that people have rated: FED and DailyDialog-Human. Ratings stay per annotator."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dialoscope.corpus.dialogue import Dialogue, Turn
from dialoscope.corpus.readers import Item
from dialoscope.corpus.streams import BadRecord, Record, Source, csv_records, member, need, plain_name, shown, without

# --- FED -------------------------------------------------------------------------------------------------------------

_SPEAKER = re.compile(r"(User|System): ?(.*)", re.DOTALL)


def parse_fed(record: Record) -> list[Dialogue]:
    r"""`{"context": "User: …\nSystem: …", "response": "System: …", "annotations": {aspect: [score, …]}, …}`.

    With a response the ratings are of that turn; without one they are of the whole dialogue.
    """
    turns = list(_fed_turns(member(record.value, "context", str)))
    annotations = need(record.value.get("annotations", {}), dict, "'annotations'")
    ratings = {aspect: _by_annotator(scores) for aspect, scores in annotations.items()}
    labels = without(record.value, "context", "response", "annotations")
    if "response" not in record.value:
        return [Dialogue(tuple(turns), record.key, labels={**labels, "ratings": ratings})]
    response = list(_fed_turns(member(record.value, "response", str)))
    if len(response) != 1:
        raise BadRecord("one line 'System: …' in 'response'", f"{len(response)} turns")
    return [Dialogue((*turns, response[0]._replace(labels={"ratings": ratings})), record.key, labels=labels)]


def _fed_turns(text: str) -> Iterator[Turn]:
    """Turns of a context; a line without a speaker goes on where the last one stopped."""
    speaker, said = "", [""]
    for line in text.split("\n"):
        match = _SPEAKER.match(line)
        if match is None and speaker:
            said.append(line)
        elif match:
            if speaker:
                yield Turn(speaker, "\n".join(said).strip())
            speaker, said = match.group(1), [match.group(2)]
        elif line.strip():
            raise BadRecord("a line that starts with 'User: ' or 'System: '", shown(line))
    if speaker:
        yield Turn(speaker, "\n".join(said).strip())


def _by_annotator(scores: Any) -> dict[str, Any]:
    """Annotators are not named in FED: their place in the list is all that is known of them."""
    return {str(place): score for place, score in enumerate(need(scores, list, "an aspect's scores"), 1)}


# --- DailyDialog-Human -----------------------------------------------------------------------------------------------


def read_dailydialog_human(source: Source) -> Iterator[Item]:
    """Query-reply pairs with engagement scores from 1 to 5, in the form of either published file.

    The form the workers filled in (`Input.query1` … `Answer.pair10`, a row per worker) names its annotators; the
    other one (`query,response,human_score,…`, a row per score) does not, and brings other metrics' scores along.
    """
    pairs: dict[tuple[str, str], tuple[int, dict[str, Any], dict[str, Any]]] = {}
    for record in csv_records(source):
        if isinstance(record, BadRecord):
            yield record
            continue
        try:
            for query, reply, annotator, score, others in _judgements(record.value):
                _, scores, _ = pairs.setdefault((query, reply), (record.line, {}, others))
                scores[annotator or str(len(scores) + 1)] = score
        except BadRecord as bad:
            yield bad.at(record.line)
    for (query, reply), (line, scores, others) in pairs.items():
        labels = {"ratings": {"engagement": scores}, **({"scores": others} if others else {})}
        yield line, Dialogue((Turn("A", query), Turn("B", reply, labels)))


def _judgements(row: dict[str, str]) -> Iterator[tuple[str, str, str, int, dict[str, float]]]:
    if "human_score" in row:
        others = {
            key: _number(value, key) for key, value in row.items() if key not in ("query", "response", "human_score")
        }
        yield row["query"], row["response"], "", int(_number(row["human_score"], "human_score")), others
        return
    worker = member(row, "WorkerId", str)
    for number in range(1, 11):
        query, reply = member(row, f"Input.query{number}", str), member(row, f"Input.response{number}", str)
        answer = member(row, f"Answer.pair{number}", str)
        yield query, reply, worker, int(_number(answer, f"Answer.pair{number}")), {}


def _number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise BadRecord(f"'{what}' to be a number", shown(text)) from error


def scored_pairs(paths: Sequence[Path]) -> dict[Path, str]:
    """The file with other metrics' scores holds the annotated pairs again: in a folder, the annotated one is read."""
    names = {plain_name(path): path for path in paths}
    annotated, scored = (
        [path for name, path in names.items() if mark in name] for mark in ("_annotated.csv", "Eng_Scores_")
    )
    reason = "pairs of the same study with other metrics' scores; name the file itself to read it"
    return {path: reason for path in scored if annotated}
