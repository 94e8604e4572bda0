from __future__ import annotations

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoscope.record import Score
from dialoscope.report import Column, Table
from dialoscope.report.markup import latex

SCORES = Table(
    ["Model", Column("BLEU", ".3f", best="high"), Column("Change", ".1f")],
    [
        ["a,b", Score(0.41273, 1000, (0.40511, 0.42034)), -1.5],
        ['say "hi"', Score.missing("no references"), 2.0],
        ["[c]_1", Score(0.5, 1000, (0.4, 0.6)), None],
    ],
    "Scores of A_1 & B",
    ["95% bootstrap."],
)


def test_csv_has_full_precision_and_a_column_for_each_part_of_a_score() -> None:
    assert SCORES.to_csv() == (
        "Model,BLEU,BLEU low,BLEU high,BLEU n,BLEU reason,Change\n"
        '"a,b",0.41273,0.40511,0.42034,1000,,-1.5\n'
        '"say ""hi""",,,,0,no references,2.0\n'
        "[c]_1,0.5,0.4,0.6,1000,,\n"
    )


def test_latex_is_a_booktabs_table_with_escaped_text() -> None:
    assert SCORES.to_latex() == "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            r"\caption{Scores of A\_1 \& B}",
            r"\label{tab:scores-of-a-1-b}",
            r"\begin{tabular}{lrr}",
            r"\toprule",
            r"Model & BLEU & Change \\",
            r"\midrule",
            r"a,b & 0.413 {\footnotesize [0.405, 0.420]} & $-$1.5 \\",
            r"say \textquotedbl{}hi\textquotedbl{} & ---\textsuperscript{a} & 2.0 \\",
            r"{[}c]\_1 & \textbf{0.500} {\footnotesize [0.400, 0.600]} &  \\",
            r"\bottomrule",
            r"\end{tabular}",
            r"\par\smallskip",
            r"{\footnotesize 95\% bootstrap. n = 1,000 for every score. \textsuperscript{a} no references\par}",
            r"\end{table}",
            "",
        ]
    )


def test_arrow_has_the_columns_of_the_csv_with_types() -> None:
    schema = SCORES.to_arrow().schema
    text, number, whole = pa.string(), pa.float64(), pa.int64()
    assert schema.names == ["Model", "BLEU", "BLEU low", "BLEU high", "BLEU n", "BLEU reason", "Change"]
    assert schema.types == [text, number, number, number, whole, text, number]


def test_arrow_keeps_missing_scores_as_nulls() -> None:
    assert SCORES.to_arrow()["BLEU"].to_pylist() == [0.41273, None, 0.5]


def test_a_column_of_words_and_numbers_is_text_in_arrow() -> None:
    table = Table(["value"], [["many"], [3], [None]], "Mixed")
    assert table.to_arrow()["value"].to_pylist() == ["many", "3", None]


@pytest.mark.parametrize(
    ("best", "expected"), [("high", {(1, 0), (3, 0)}), ("low", {(0, 0)}), (None, set[tuple[int, int]]())]
)
def test_the_best_of_a_column_is_marked_and_ties_share_the_mark(best: str, expected: set[tuple[int, int]]) -> None:
    column = Column("x", best=best)  # type: ignore[arg-type]
    assert Table([column], [[1], [3], [None], [3]], "Best").best_cells == expected


def test_a_number_alone_is_not_the_best() -> None:
    assert Table([Column("x", best="high")], [[1], [None]], "Alone").best_cells == set()


def test_what_is_written_like_the_best_shares_its_mark() -> None:
    column = Column("x", number_format=".2f", best="low")
    assert Table([column], [[1.0001], [0.9999], [1.02]], "Alike").best_cells == {(0, 0), (1, 0)}


def test_an_unknown_end_of_a_column_is_refused() -> None:
    with pytest.raises(ValueError, match="'high' or 'low', found 'most'"):
        Column("x", best="most")  # type: ignore[arg-type]


def test_one_n_for_all_scores_is_a_note() -> None:
    assert SCORES.remarks == ("95% bootstrap.", "n = 1,000 for every score.")


def test_n_that_differs_by_row_is_a_column() -> None:
    table = Table(["set", "F1"], [["a", Score(0.5, 10)], ["b", Score(0.25, 20)]], "By row")
    rows = [line for line in table.to_latex().splitlines() if line.endswith(r"\\")]
    assert rows == [r"set & F1 & $n$ \\", r"a & 0.500 & 10 \\", r"b & 0.250 & 20 \\"]


def test_n_that_differs_within_a_row_stands_in_each_cell() -> None:
    table = Table(["x", "y"], [[Score(0.5, 10), Score(0.25, 20)]], "By cell")
    assert r"0.500 {\footnotesize (n=10)} & 0.250 {\footnotesize (n=20)} \\" in table.to_latex().splitlines()


def test_reasons_share_a_footnote() -> None:
    rows = [[Score.missing("empty")], [Score.missing("short")], [Score.missing("empty")]]
    assert Table(["x"], rows, "Reasons").footnotes == {"empty": "a", "short": "b"}


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="row 1: expected 2 cells, found 1"):
        Table(["a", "b"], [[1, 2], [3]], "Uneven")


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two columns have one name"):
        Table(["a", "a"], [], "Twins")


def test_a_column_that_a_score_needs_is_taken() -> None:
    with pytest.raises(ValueError, match="two columns have one name"):
        Table(["F1", "F1 n"], [[Score(0.5, 3), 3]], "Clash")


def test_a_file_name_cannot_leave_its_folder() -> None:
    assert Table(["a"], [], "x", name="../../etc/passwd").name == "etc-passwd"


def test_a_table_without_rows_still_has_its_columns() -> None:
    assert Table(["a", "b"], [], "Empty").to_csv() == "a,b\n"


def test_every_letter_with_a_meaning_in_latex_is_escaped() -> None:
    assert latex("\\{}$&#^_~%<>|") == (
        r"\textbackslash{}\{\}\$\&\#\textasciicircum{}\_\textasciitilde{}\%\textless{}\textgreater{}\textbar{}"
    )


def test_a_line_break_in_a_cell_does_not_break_the_row() -> None:
    assert Table(["a", "b"], [["x\ny", "z"]], "Breaks").to_latex().splitlines()[9] == r"x y & z \\"


# CSV has no way to write a lone carriage return or a NUL that every reader understands.
TEXT = st.text(st.characters(exclude_characters="\r\x00", exclude_categories=["Cs"]), min_size=1)


@given(st.lists(st.tuples(TEXT, st.floats(allow_nan=False, allow_infinity=False)), max_size=8))
def test_csv_gives_back_what_went_in(rows: list[tuple[str, float]]) -> None:
    read = list(csv.reader(io.StringIO(Table(["text", "number"], rows, "Any").to_csv())))[1:]
    given = [(f"'{text}" if text[0] in "=+-@\t" else text, number) for text, number in rows]
    assert [(text, float(number)) for text, number in read] == given


def test_a_spreadsheet_finds_text_and_no_formula() -> None:
    table = Table(["=1+1", "score"], [["=HYPERLINK(1)", -0.5], ["@SUM(1)", 1], ["a = b", None]], "Formulas")
    assert table.to_csv() == "'=1+1,score\n'=HYPERLINK(1),-0.5\n'@SUM(1),1\na = b,\n"
    assert table.to_arrow().column_names == ["=1+1", "score"]
