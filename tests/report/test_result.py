"""One form of result: what every question's answer can do, shown by the smallest one there is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from dialoscope.errors import OutputError, UsageError
from dialoscope.metrics import mean_score
from dialoscope.record import Origin, Score, Scores, path
from dialoscope.report import Section, Table
from dialoscope.report.items import Items
from dialoscope.report.result import Result, documented, kept, skipped
from dialoscope.report.verdict import Level, Verdict, judge
from dialoscope.settings import BaseSettings, option


@dataclass(frozen=True, kw_only=True)
class CoinSettings(BaseSettings):
    limit: int | None = option(None, "Coins at most.", least=1)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CoinResult(Result):
    instrument: ClassVar[str] = "coin"
    settings_class: ClassVar[type[CoinSettings]] = CoinSettings
    heads: pa.Table

    @kept
    def scores(self) -> Scores:
        values = self.heads["heads"].to_numpy().astype(float)
        return {"coin/all/share_over_0.5": mean_score(values, clusters=np.arange(len(values)))}

    def items(self) -> dict[str, Items]:
        values = self.heads["heads"].to_numpy().astype(float)
        keys = [(str(row),) for row in range(len(values))]
        return {"coin/all/share_over_0.5": Items.mean_of(keys, [key[0] for key in keys], values)}

    @kept
    def verdicts(self) -> list[Verdict]:
        name = "coin/all/share_over_0.5"
        return [judge(self.scores()[name], name, text="<b>Half</b> are heads.", concern_over=0.9)]

    @property
    def table(self) -> pa.Table:
        return self.heads

    def section(self) -> Section:
        table = Table(["coins"], [[len(self.heads)]], "Coins")
        return Section("Coin", "coin", "Is it fair?", [table], verdict=self.card, origin=self.origin)


def coins(count: int = 40) -> CoinResult:
    rows = documented(pa.table({"heads": [row % 2 for row in range(count)]}), {"heads": "1 for heads, 0 for tails"})
    return CoinResult(
        settings=CoinSettings(limit=count),
        parts={"all": count},
        used=f"Measured: {count} coins.",
        counts=skipped({"bent": 2}, {"bent": 1, "lost": 0}),
        origin=Origin("coins@1", {}, 0),
        heads=rows,
    )


def test_json_has_one_form_and_only_scores_names_and_counts(tmp_path: Path) -> None:
    shown = coins().to_dict()
    assert list(shown) == [
        "schema_version", "instrument", "origin", "settings", "parts", "used", "counts", "scores", "verdicts",
    ]  # fmt: skip
    assert shown["schema_version"] == 2
    assert shown["counts"] == {"skipped": {"bent": 3}}
    (score,) = shown["scores"].values()
    assert list(score) == ["value", "n", "interval", "reason"] and (score["value"], score["n"]) == (0.5, 40)
    assert json.loads(json.dumps(shown)) == shown


def test_a_saved_result_comes_back_the_same(tmp_path: Path) -> None:
    result = coins()
    out = result.save(tmp_path / "out")
    again = CoinResult.load(out)
    assert again.to_dict() == result.to_dict()
    assert again.section().blocks == result.section().blocks
    assert again.settings == result.settings and again.table.equals(result.table)
    assert json.loads((out / "result.json").read_text())["scores"] == result.to_dict()["scores"]


def test_loading_a_result_measures_nothing_again(tmp_path: Path) -> None:
    out = coins().save(tmp_path / "out")
    kept_text = (out / "result.json").read_text()
    assert '"value": 0.5' in kept_text
    (out / "result.json").write_text(kept_text.replace('"value": 0.5', '"value": 0.25'))
    assert CoinResult.load(out).scores()["coin/all/share_over_0.5"].value == 0.25


def test_a_result_says_itself_in_one_line_and_is_escaped_in_notebooks() -> None:
    assert repr(coins()) == "<CoinResult coins: <b>Half</b> are heads.>"
    assert "<b>Half</b>" not in coins()._repr_html_() and "&lt;b&gt;Half" in coins()._repr_html_()


def test_only_an_earlier_result_of_the_same_question_is_replaced(tmp_path: Path) -> None:
    out = coins().save(tmp_path / "out")
    with pytest.raises(OutputError, match="--overwrite"):
        coins().save(out)
    assert coins(6).save(out, overwrite=True) == out
    (out / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"mine\.txt"):
        coins().save(out, overwrite=True)


def test_a_result_of_another_question_is_not_read(tmp_path: Path) -> None:
    out = coins().save(tmp_path / "out")
    head = json.loads((out / "result.json").read_text())
    (out / "result.json").write_text(json.dumps({**head, "instrument": "probe"}))
    with pytest.raises(UsageError, match="expected a result of coin, found 'probe'"):
        CoinResult.load(out)


def test_results_of_schema_1_are_not_read(tmp_path: Path) -> None:
    out = coins().save(tmp_path / "out")
    head = json.loads((out / "result.json").read_text())
    (out / "result.json").write_text(json.dumps({**head, "schema_version": 1}))
    with pytest.raises(UsageError, match=r"expected schema_version 2, found 1\. Measure again"):
        CoinResult.load(out)


def test_a_damaged_result_is_one_line(tmp_path: Path) -> None:
    out = coins().save(tmp_path / "out")
    head = json.loads((out / "result.json").read_text())
    del head["scores"]
    (out / "result.json").write_text(json.dumps(head))
    with pytest.raises(UsageError, match="expected a whole result, found KeyError: 'scores'"):
        CoinResult.load(out)


def test_a_column_without_a_meaning_is_refused() -> None:
    assert coins().table.schema.field("heads").metadata == {b"meaning": b"1 for heads, 0 for tails"}
    with pytest.raises(KeyError, match="tails"):
        documented(pa.table({"tails": [1]}), {})


def test_a_path_has_three_parts_whatever_a_model_is_called() -> None:
    assert path("org/model", "random-0.7", "f1") == "org_model/random-0.7/f1"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class JudgedResult(CoinResult):
    """Verdicts of these levels, about these paths."""

    levels: dict[str, Level]

    @kept
    def scores(self) -> Scores:
        return {name: Score(float(place), 9) for place, name in enumerate(self.levels)}

    @kept
    def verdicts(self) -> list[Verdict]:
        return [Verdict(level, f"{name} is {level}.", [name]) for name, level in self.levels.items()]


def judged(**levels: Level) -> JudgedResult:
    coin = coins()
    head = {name: getattr(coin, name) for name in ("settings", "parts", "used", "counts", "origin", "heads")}
    return JudgedResult(**head, levels={name.replace("__", "/"): level for name, level in levels.items()})


@pytest.mark.parametrize(
    ("levels", "worst"),
    [
        (["good", "concern", "cannot_tell"], "concern"), (["good", "cannot_tell"], "cannot_tell"),
        (["not_measurable", "cannot_tell"], "cannot_tell"), (["good", "not_measurable"], "not_measurable"),
        (["good"] * 2, "good"),
    ],
)  # fmt: skip
def test_a_card_of_several_is_as_bad_as_the_worst_and_good_only_where_all_are(levels: list[Level], worst: str) -> None:
    card = judged(**{f"m{place}__all__f1": level for place, level in enumerate(levels)}).card
    assert (card.level, card.headline.split()[-1]) == (worst, f"{worst}.")
    assert [(part.name, part.level) for part in card.parts] == [
        (f"m{place}", each) for place, each in enumerate(levels)
    ]


def test_a_card_of_one_number_is_that_number() -> None:
    card = judged(m__all__f1="good", m__all__mse="concern").card
    assert (card.headline, card.level, card.parts) == ("m/all/f1 is good.", "good", ())
    assert card.number == Score(0.0, 9)


def test_parts_of_a_card_are_named_by_what_differs() -> None:
    names = {"r__a__f1": "good", "r__b__f1": "good"}
    assert [part.name for part in judged(**names).card.parts] == ["a", "b"]  # type: ignore[arg-type]
    both = {"r__a__f1": "good", "s__b__f1": "good"}
    assert [part.name for part in judged(**both).card.parts] == ["r, a", "s, b"]  # type: ignore[arg-type]
