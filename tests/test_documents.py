"""Documents are tested like code: snippets run, numbers come from committed commands, links lead somewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GENERATED = ROOT / "docs" / "reference" / "commands.md"  # by docs/build_site.py
DOCUMENTS = [path for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")) if path != GENERATED]


def snippets(name: str) -> str:
    text = (ROOT / name).read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))


def check_shown(document: str, mark: str, *command: object) -> None:
    """What a document has between a mark and the end is what a committed command prints."""
    done = subprocess.run([sys.executable, *map(str, command)], check=True, capture_output=True, text=True)
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    assert re.findall(rf"<!-- {mark} -->\n(.*?)<!-- end -->", text, re.DOTALL) == [done.stdout]


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", "docs/overlap.md", "docs/distract.md", "docs/probe.md", "docs/study.md"]
)
def test_python_snippets_run(name: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", snippets(name)], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_reader_of_the_contributing_page_reads(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"chat": [["ann", "Hi."], ["bob", "Hello."]], "topic": "greeting"}\n')
    code = snippets("CONTRIBUTING.md") + (
        "\nfrom dialoscope.corpus import load\n"
        "corpus = load('a.jsonl')\n"
        "print(corpus.format, corpus[0].texts, dict(corpus[0].labels))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "chat ['Hi.', 'Hello.'] {'topic': 'greeting'}\n"


def test_the_metric_of_the_contributing_page_counts() -> None:
    code = snippets("CONTRIBUTING.md") + (
        "\nfrom dialoscope.metrics import score\n"
        "from dialoscope.metrics.score import score_pairs\n"
        "score.METRICS['questions'] = QUESTIONS\n"
        "pairs = Pairs(['Why?', 'No.', 'Well?', 'Ah.'], ['a', 'b', 'c', 'd'])\n"
        "print(score_pairs(pairs, metrics=['questions']).scores['questions'].value)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0.5\n", "")


def test_the_probe_task_of_the_contributing_page_labels() -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")
    code = snippets("CONTRIBUTING.md") + (
        "\nfrom dialoscope.corpus import Corpus, Dialogue, Turn\n"
        "from dialoscope.probe.examples import examples\n"
        "from dialoscope.probe.measure import label_all\n"
        "turns = tuple(Turn('AB'[i % 2], text) for i, text in enumerate(['Why?', 'So.', 'When?', 'Now.']))\n"
        "part = examples(Corpus.of([Dialogue(turns, 'd')], name='c'))\n"
        "labels, skipped = label_all({'IsQuestion': IS_QUESTION}, part, part)\n"
        "print(labels['IsQuestion'].classes, labels['IsQuestion'].held_out.codes, skipped)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("('yes', 'no') [0 1 0] {}\n", "")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text(encoding="utf-8"))
    places = [path.parent / target for target in targets]
    assert [place for place in places if not place.exists() and place.resolve() != GENERATED] == []


def test_the_installation_page_names_every_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE)) == set(extras) - {"dev"}


@pytest.mark.parametrize("page", ["corpus", "metrics", "overlap", "study"])
def test_a_tutorial_prints_what_it_shows(page: str) -> None:
    pytest.importorskip("chitchat_dataset", reason="chitchat is not installed: pip install 'dialoscope[demo]'")
    run_tutorials("--check", page)


@pytest.mark.parametrize("pages", [("models", "distract", "probe"), ("engage",)], ids="-".join)
def test_tutorials_of_models_run_as_pasted(pages: tuple[str, ...]) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")
    pytest.importorskip("chitchat_dataset", reason="chitchat is not installed: pip install 'dialoscope[demo]'")
    run_tutorials("--tiny", *pages)


def run_tutorials(*arguments: str) -> None:
    command = [sys.executable, str(ROOT / "docs" / "run_tutorials.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_sizes_of_corpora_are_what_the_command_prints(data: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "corpus_sizes.py"), str(data)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    document = (ROOT / "docs" / "corpora.md").read_text(encoding="utf-8")
    shown = re.findall(r"<!-- table 6 -->\n(.*?)\n<!-- end -->", document, re.DOTALL)
    assert shown == [printed.rpartition("\nEmpatheticDialogues read")[0]]


def test_the_speeds_of_training_are_those_committed() -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")
    check_shown("models.md", "train speed", ROOT / "benchmarks" / "train_speed.py", "--table")


def test_the_speeds_of_probing_are_those_committed() -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")
    check_shown("probe.md", "probe speed", ROOT / "benchmarks" / "probe_speed.py", "--table")


@pytest.mark.parametrize(
    ("mark", "table"), [("leak curves", "curves"), ("memorised", "memorised"), ("leak cleaned", "cleaned")]
)
def test_the_tables_of_the_leak_are_what_the_study_prints(mark: str, table: str) -> None:
    check_shown("results.md", mark, ROOT / "examples" / "leak_study.py", "--table", table)


def test_the_table_of_probed_presets_is_what_the_study_prints() -> None:
    check_shown("results.md", "probes", ROOT / "examples" / "probed_presets.py", "--table")
    check_shown("results.md", "probe agreement", ROOT / "examples" / "probed_presets.py", "--agreement")
    check_shown("results.md", "probe controls", ROOT / "examples" / "probed_presets.py", "--table", "controls")
    check_shown("results.md", "probe summary", ROOT / "examples" / "probed_presets.py", "--summary")


def test_the_speed_of_engagement_is_what_the_benchmark_found() -> None:
    check_shown("engage.md", "engage speed", ROOT / "benchmarks" / "engage_speed.py", "--table")


def test_the_tables_of_remaining_depth_are_what_the_study_prints() -> None:
    check_shown("results.md", "engage depth", ROOT / "examples" / "trained_engagement.py", "--table", "depth")
    check_shown("results.md", "engage people", ROOT / "examples" / "trained_engagement.py", "--table", "people")
    check_shown("results.md", "engage ablations", ROOT / "examples" / "trained_engagement.py", "--table", "ablations")


def test_the_table_of_what_beats_words_is_what_the_study_prints() -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")
    check_shown("results.md", "beyond words", ROOT / "examples" / "engagement_baselines.py", "--table", "reported")


def test_the_table_of_the_chat_model_is_what_the_study_prints() -> None:
    check_shown("results.md", "chat model", ROOT / "examples" / "chat_model.py", "--table")


@pytest.mark.parametrize(
    ("mark", "table"),
    [
        ("presets", "presets"),
        ("das", "das"),
        ("das gains", "gains"),
        ("das medians", "medians"),
        ("das paired", "paired"),
    ],
)
def test_the_tables_of_trained_variants_are_those_committed(mark: str, table: str) -> None:
    check_shown("results.md", mark, ROOT / "examples" / "trained_variants.py", "--table", table)


def test_the_table_of_rows_made_twice_is_that_committed() -> None:
    check_shown("results.md", "made again", ROOT / "examples" / "all_studies.py", "again")


def test_the_speeds_of_the_join_are_those_committed() -> None:
    check_shown("overlap.md", "join", ROOT / "benchmarks" / "overlap_join.py", "--table")


def test_the_costs_of_measuring_attention_are_those_committed() -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'dialoscope[hf]'")
    check_shown("distract.md", "distract speed", ROOT / "benchmarks" / "distract_speed.py", "--table")
    check_shown("distract.md", "influence speed", ROOT / "benchmarks" / "influence_speed.py", "--table")


def test_what_cleaning_ten_million_turns_took_is_that_committed() -> None:
    check_shown("scale.md", "clean", ROOT / "benchmarks" / "clean_scale.py", "--line")


def test_the_cleaned_dailydialog_is_what_the_command_prints(data: Path) -> None:
    check_shown("overlap.md", "cleaned", ROOT / "examples" / "cleaned_dailydialog.py", data / "dailydialog")


def test_the_growth_of_the_join_is_that_committed() -> None:
    check_shown("scale.md", "growth", ROOT / "benchmarks" / "overlap_scale.py", "--table")


def test_the_committed_reading_benchmark_is_within_its_limits() -> None:
    result = json.loads((ROOT / "benchmarks" / "read_corpus.json").read_text())
    million = next(size for size in result["sizes"] if size["dialogues"] == 1_000_000)
    ours = million["readers"]["dialoscope"]
    assert ours["ratio_to_orjson_loop"] <= result["limits"]["ratio_to_orjson_loop"]
    assert ours["memory_above_result_mb"] <= result["limits"]["memory_above_result_mb"]
