from __future__ import annotations

from pathlib import Path

import pytest

from dialoscope.errors import UsageError
from dialoscope.probe.checkpoints import Choice, best_epoch, checkpoints, choices

LOG = """epoch,step,loss,perplexity,bleu_2
0,0,,900,0.1
1,10,5.0,,
1,20,4.5,80,1.5
2,40,4.0,60,2.5
3,60,3.5,70,2.5
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for name in ("untrained", "epoch-001", "epoch-002", "epoch-003", "best", "last"):
        (tmp_path / name).mkdir()
    (tmp_path / "log.csv").write_text(LOG)
    return tmp_path


def test_all_are_in_order_and_each_once(run: Path) -> None:
    assert list(checkpoints(run, ["all"])) == ["untrained", "epoch-001", "epoch-002", "epoch-003"]


def test_some_are_named_or_chosen_by_a_column_of_the_log(run: Path) -> None:
    found = checkpoints(run, ["untrained", "by:bleu_2", "by:loss", "last"])
    assert {name: path.name for name, path in found.items()} == {
        "untrained": "untrained",
        "by:bleu_2": "epoch-002",  # of equal ones the first
        "by:loss": "epoch-003",
        "last": "last",
    }
    assert best_epoch(run, "perplexity") == Choice("epoch-002", 60.0)


def test_of_any_loss_the_lowest_is_the_best(run: Path) -> None:
    (run / "log.csv").write_text("epoch,step,loss,extra_loss,perplexity\n1,1,4,0.5,90\n2,2,3,0.2,80\n3,3,2,0.9,85\n")
    chosen = {column: best_epoch(run, column).checkpoint for column in ("loss", "extra_loss", "perplexity")}
    assert chosen == {"loss": "epoch-003", "extra_loss": "epoch-002", "perplexity": "epoch-002"}


@pytest.mark.parametrize("column", ["repetition-2", "repetition_2", "repetition-4", "repetition_4"])
def test_who_repeats_least_is_the_best(column: str, run: Path) -> None:
    (run / "log.csv").write_text(f"epoch,perplexity,{column}\n1,90,0.3\n2,80,0.1\n3,70,0.2\n")
    assert choices(run)[column] == best_epoch(run, column) == Choice("epoch-002", 0.1)


@pytest.mark.parametrize(
    "column",
    ["epoch", "step", "rate", "samples_per_second", "seconds", "length", "length-ratio", "length_ratio"],
)
def test_nothing_is_chosen_by_what_is_neither_good_nor_bad(column: str, run: Path) -> None:
    columns = list(dict.fromkeys(["epoch", column, "perplexity"]))
    (run / "log.csv").write_text(f"{','.join(columns)}\n{','.join('1' for _ in columns)}\n")
    with pytest.raises(UsageError, match=f"'by:{column}' chooses nothing"):
        checkpoints(run, [f"by:{column}"])
    assert column not in choices(run)


def test_every_metric_of_the_log_makes_its_choice(run: Path, tmp_path: Path) -> None:
    """Loss is of the training text, and the steps and seconds are no metrics."""
    assert choices(run) == {"perplexity": Choice("epoch-002", 60.0), "bleu_2": Choice("epoch-002", 2.5)}
    (run / "log.csv").write_text("epoch,perplexity,bleu_2,meteor\n1,80,0.5,\n2,nan,0.7,\n3,90,,\n")
    assert choices(run) == {"perplexity": Choice("epoch-001", 80.0), "bleu_2": Choice("epoch-002", 0.7)}
    (run / "log.csv").unlink()
    assert choices(run) == {}


def test_what_is_not_there_is_named(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no checkpoint 'epoch-009'; it has untrained, epoch-001"):
        checkpoints(run, ["epoch-009"])
    with pytest.raises(UsageError, match="no column 'meteor'"):
        checkpoints(run, ["by:meteor"])
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UsageError, match="expected a folder of dialoscope train"):
        checkpoints(empty, ["all"])
