from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dialoscope.model import log
from dialoscope.model.log import Log, Moment


def moment(step: int, **more: Any) -> Moment:
    return Moment(1, step, step, 9, 2.5, 0.1, 100.0, 7.0, **more)


def test_a_row_is_what_the_header_says(tmp_path: Path) -> None:
    written = Log(tmp_path)
    written.tell(moment(3))
    written.tell(moment(4), is_logged=False)
    written.tell(moment(5, perplexity=12.0, bleu_2=3.25))
    assert (tmp_path / "log.csv").read_text() == (
        "epoch,step,loss,perplexity,bleu_2,rate,samples_per_second,seconds\n"
        "1,3,2.5,,,0.1,100,7\n"
        "1,5,2.5,12,3.25,0.1,100,7\n"
    )


def test_an_extra_loss_has_a_column_where_there_is_one(tmp_path: Path) -> None:
    written = Log(tmp_path, has_extra_loss=True)
    written.tell(moment(3))
    written.tell(moment(5, extra_loss=0.125))
    assert (tmp_path / "log.csv").read_text() == (
        "epoch,step,loss,extra_loss,perplexity,bleu_2,rate,samples_per_second,seconds\n"
        "1,3,2.5,,,,0.1,100,7\n"
        "1,5,2.5,0.125,,,0.1,100,7\n"
    )


def test_a_log_from_before_gets_the_column_when_its_run_goes_on(tmp_path: Path) -> None:
    Log(tmp_path).tell(moment(3))
    Log(tmp_path, step=3, has_extra_loss=True).tell(moment(5, extra_loss=0.125))
    assert (tmp_path / "log.csv").read_text().splitlines()[1:] == ["1,3,2.5,,,,0.1,100,7", "1,5,2.5,0.125,,,0.1,100,7"]


@pytest.mark.parametrize("unfinished", ["", "1,7", "1,7,2.5,,,0.1,100,7"])
def test_a_resumed_log_forgets_what_the_run_forgot(unfinished: str, tmp_path: Path) -> None:
    first = Log(tmp_path)
    for step in (1, 2, 3):
        first.tell(moment(step))
    with (tmp_path / "log.csv").open("a") as file:
        file.write(unfinished)
    second = Log(tmp_path, step=2)
    second.tell(moment(9))
    steps = [line.split(",")[1] for line in (tmp_path / "log.csv").read_text().splitlines()]
    assert steps == ["step", "1", "2", "9"]


def test_a_new_run_begins_a_new_log(tmp_path: Path) -> None:
    Log(tmp_path).tell(moment(1))
    Log(tmp_path).tell(moment(5))
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 2


@pytest.mark.parametrize("step", [None, 2])
def test_an_older_log_is_there_until_the_new_one_is_whole(
    step: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if killed in the moment before a log is replaced."""
    first = Log(tmp_path)
    for number in (1, 2, 3):
        first.tell(moment(number))
    before = (tmp_path / "log.csv").read_text()

    def killed(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(log, "whole_file", killed)
    with pytest.raises(KeyboardInterrupt):
        Log(tmp_path, step=step).tell(moment(9))
    assert (tmp_path / "log.csv").read_text() == before


def test_whoever_listens_hears_every_moment(tmp_path: Path) -> None:
    heard: list[int] = []
    told = Log(tmp_path, progress=lambda one: heard.append(one.step))
    told.tell(moment(1))
    told.tell(moment(2), is_logged=False)
    assert heard == [1, 2]


def test_without_a_folder_nothing_is_written_or_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    silent = Log(None, progress=lambda one: pytest.fail("told"))
    silent.tell(moment(1))
    assert not list(tmp_path.iterdir())
