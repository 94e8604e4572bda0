"""A study's TOML as tasks: which question is asked of which corpus, with which settings and models.

::

    title = "Our assistant"

    [corpora]
    chats = "chats/"

    [models]
    ours = "runs/ours"

    [models.small]                 # trained for this study
    preset = "static-ui"
    epochs = 3

    [attention]                    # a question and its settings
    limit = 200
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dialoscope.corpus import Corpus, load
from dialoscope.corpus.formats import FORMATS
from dialoscope.corpus.load import NAMED
from dialoscope.engage.baselines import BASELINES
from dialoscope.errors import CorpusError, UsageError, unknown_name
from dialoscope.fingerprint import digest
from dialoscope.instruments import QUESTIONS
from dialoscope.progress import Progress
from dialoscope.report.anchor import LONGEST, slug
from dialoscope.settings import BaseSettings, Option, Settings, option, options_of
from dialoscope.study.training import StudyTraining

OWN_KEYS = ("title", "seed", "device", "against", "questions", "corpora", "models")
OWN_NAMES = ("corpus", "compared")  # steps of every study
USUAL = ("overlap", "attention", "probe", "depth")  # the questions of a study that names none
FILES = {"ratings": ("rated",), "metrics": ("hypotheses", "references")}  # questions about files, not about corpora
IS_PATH = re.compile("PATH|FILE|DIR|FOLDER")  # in the metavar of an option: its value may lie beside the TOML
NAME_LETTERS = 8  # of the digest in the name of a step
AT_A_LINE = re.compile(r":\d+: ")  # in a complaint about one record, which can be skipped


@dataclass(frozen=True, kw_only=True)
class CorpusSettings(BaseSettings):
    """Where the dialogues of one corpus are, and how they are read."""

    path: tuple[str, ...] = option((), "Files, a folder or a name.", metavar="PATH")
    train: tuple[str, ...] = option((), "Training data, in place of path.", metavar="PATH")
    test: tuple[str, ...] = option((), "Test data, beside train.", metavar="PATH")
    format: str | None = option(None, "Format of the files.", choices=(*FORMATS, "hf"))
    on_error: str = option("fail", "What to do at a bad record.", choices=("fail", "skip"))

    def check(self) -> None:
        """A corpus has a path, or files for training and testing."""
        if bool(self.path) == bool(self.train or self.test):
            raise UsageError("takes a path, or train and test; one of both.")

    @property
    def paths(self) -> tuple[str, ...]:
        """Everything that is read."""
        return (*self.path, *self.train, *self.test)

    @property
    def is_missing(self) -> bool:
        """Whether nothing is at one of its paths, and the path is no name either."""
        paths = [path for path in self.paths if not (path in NAMED or path.startswith("hf:") or self.format == "hf")]
        return not all(Path(path).expanduser().exists() for path in paths)


@dataclass(frozen=True)
class ModelEntry:
    """A model of the study: a path or a name, or the settings by which it is trained for this study."""

    path: str | None = None
    training: StudyTraining | None = None
    corpus: str | None = None  # that it is trained on; the first one by default

    @property
    def is_predictor(self) -> bool:
        """Whether it predicts remaining depth, and so is asked by the questions of `engage`, not by the others."""
        if self.is_baseline:
            return True
        folders = () if self.path is None else (Path(self.path) / each for each in ("", "best", "last"))
        return any((folder / "engage.json").is_file() for folder in folders)

    @property
    def is_baseline(self) -> bool:
        """Whether it is the name of a baseline that scores turns without training."""
        return self.path in BASELINES

    def to_dict(self) -> dict[str, Any]:
        """The entry as JSON has it."""
        if self.training is None:
            return {"path": self.path}
        return {"corpus": self.corpus, **self.training.to_dict()}


@dataclass(frozen=True)
class Task:
    """One question about one corpus: a step of the study."""

    name: str  # of the step, and of its folder
    question: str  # its name in `instruments.QUESTIONS`, or corpus
    asked: str  # what the TOML calls it
    corpus: str  # empty where it is about files, or about sets that were written before
    settings: BaseSettings
    models: tuple[str, ...] = ()
    against: tuple[str, ...] = ()  # further corpora
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # in place of a corpus (FILES)

    def to_dict(self) -> dict[str, Any]:
        """The task as JSON has it."""
        names = {"name": self.name, "instrument": self.question, "asked": self.asked, "corpus": self.corpus}
        lists = {"models": list(self.models), "against": list(self.against)}
        files = {name: list(paths) for name, paths in self.files.items()}
        return {**names, **lists, "files": files, "settings": self.settings.to_dict()}


@dataclass(frozen=True)
class Plan:
    """Everything that a study's numbers depend on."""

    title: str
    corpora: Mapping[str, CorpusSettings]
    models: Mapping[str, ModelEntry]
    tasks: Sequence[Task]
    seed: int = 0
    device: str = "auto"
    against: str | None = None  # the folder of an earlier study
    root: str | None = None  # the folder of the TOML

    def load(self, name: str, *, progress: Progress | None = None) -> Corpus:
        """Read a corpus; a complaint says where it was looked for, or how a bad record is skipped."""
        corpus = self.corpora[name]
        sides: dict[str, Any] = {"train": list(corpus.train) or None, "test": list(corpus.test) or None}
        options: dict[str, Any] = {"format": corpus.format, "on_error": corpus.on_error, "progress": progress}
        try:
            return load(*corpus.path, name=name, **sides, **options)
        except CorpusError as error:
            message, advice = str(error).rstrip("."), ""
            if corpus.is_missing:
                folders = dict.fromkeys(str(Path(each).resolve()) for each in (self.root, ".") if each is not None)
                advice = f" Looked in {' and in '.join(folders)}."
            elif corpus.on_error == "fail" and AT_A_LINE.search(message):
                advice = f' To skip and count bad records: on_error = "skip" under [corpora.{name}] of the TOML.'
            raise CorpusError(f"{message}.{advice}") from error

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON has it, with every default: enough to run it again."""
        return {
            **{key: getattr(self, key) for key in ("title", "seed", "device", "against", "root")},
            "corpora": {name: corpus.to_dict() for name, corpus in self.corpora.items()},
            "models": {name: model.to_dict() for name, model in self.models.items()},
            "tasks": [task.to_dict() for task in self.tasks],
        }


def read_plan(path: str | Path) -> Plan:
    """Read a study's TOML; paths in it are relative to its folder."""
    table = read_toml(path, "the TOML of a study", missing="Try: dialoscope study init")
    try:
        return plan_of(table, root=Path(path).parent)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def read_toml(path: str | Path, what: str, *, missing: str) -> dict[str, Any]:
    """A TOML file as a table; what cannot be read is one line, and `missing` says how to get the file."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"{path}: expected {what}, found no such file. {missing}") from error
    except OSError as error:
        raise UsageError(f"{path}: expected {what}, found: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: expected {what}, found {' '.join(str(error).split())}.") from error


def plan_of(table: Mapping[str, Any], *, root: Path | None = None) -> Plan:
    """A plan from a table of the form of the TOML.

    >>> plan = plan_of({"corpora": {"small": "concierge"}, "overlap": {"leak": 0.9}})
    >>> [(task.name, task.settings.leak) for task in plan.tasks[1:]]
    [('overlap-small', 0.9)]
    """
    for key in table:
        if key not in OWN_KEYS and key not in QUESTIONS:
            raise unknown_name("part of a study", key, [*OWN_KEYS, *QUESTIONS])
    own = {key: _own_value(table[key], key) for key in ("title", "seed", "device", "against") if key in table}
    corpora = {name: _corpus(value, name, root) for name, value in _entries(table, "corpora").items()}
    if not corpora:
        raise UsageError('Give the study at least one corpus, such as chats = "chats.jsonl" under [corpora].')
    models = {name: _model(value, name, root, list(corpora), own) for name, value in _entries(table, "models").items()}
    if "against" in own:
        own["against"] = _beside(own["against"], root)
    tasks = _tasks(table, list(corpora), models, root, own)
    models |= {name: ModelEntry(path=name) for task in tasks for name in task.models if name not in models}
    texts = {"title": f"Dialoscope on {', '.join(corpora)}", "root": None if root is None else str(root)}
    return Plan(**{**texts, **own}, corpora=corpora, models=models, tasks=tasks)


def _own_value(value: Any, key: str) -> Any:
    wanted = int if key == "seed" else str
    if not isinstance(value, wanted) or isinstance(value, bool) or (isinstance(value, int) and value < 0):
        what = "a whole number of 0 or more" if key == "seed" else "text"
        raise UsageError(f"{key} takes {what}, found {value!r}.")
    return value


def _entries(table: Mapping[str, Any], key: str) -> dict[str, dict[str, Any]]:
    """The tables under [corpora] or [models] by name; a text alone is a path."""
    entries = table.get(key, {})
    if not isinstance(entries, Mapping):
        raise UsageError(f"[{key}]: expected names and paths, found {entries!r}.")
    if nameless := [value for name, value in entries.items() if not name.strip()]:
        raise UsageError(f"[{key}]: expected a name for {nameless[0]!r}, found none.")
    return {name: dict(value) if isinstance(value, Mapping) else {"path": value} for name, value in entries.items()}


def _corpus(table: dict[str, Any], name: str, root: Path | None) -> CorpusSettings:
    for key in ("path", "train", "test"):
        if isinstance(table.get(key), str):
            table[key] = [table[key]]
    return _settings(CorpusSettings, table, f"[corpora.{name}]", root)


def _model(
    table: dict[str, Any], name: str, root: Path | None, corpora: list[str], own: Mapping[str, Any]
) -> ModelEntry:
    where = f"[models.{name}]"
    if ("path" in table) == ("preset" in table):
        raise UsageError(f"{where} takes a path, or a preset that is trained for this study; one of both.")
    if "path" in table:
        if others := [key for key in table if key != "path"]:
            raise UsageError(f"{where} {others[0]} is for a preset that is trained for this study, not for a path.")
        if not isinstance(table["path"], str):
            raise UsageError(f"{where} path takes text, found {table['path']!r}.")
        return ModelEntry(path=_beside(table["path"], root))
    corpus = table.pop("corpus", corpora[0])
    if corpus not in corpora:
        raise unknown_name(f"corpus in {where}", str(corpus), corpora)
    if isinstance(changes := table.get("set"), Mapping):  # { layers = 1 } reads better in TOML than ["layers=1"]
        table["set"] = [f"{key}={str(value).lower() if isinstance(value, bool) else value}"
                        for key, value in changes.items()]  # fmt: skip
    return ModelEntry(training=_settings(StudyTraining, table, where, root, own), corpus=corpus)


def _tasks(
    table: Mapping[str, Any],
    corpora: list[str],
    models: Mapping[str, ModelEntry],
    root: Path | None,
    own: Mapping[str, Any],
) -> list[Task]:
    """The description of every corpus, then every question on each of its corpora."""
    with_table = [name for name in QUESTIONS if name in table]
    named = _names(table.get("questions", with_table), "questions")
    for name in named:
        if name not in QUESTIONS:
            raise unknown_name("question", str(name), QUESTIONS)
    if unnamed := [name for name in with_table if name not in named]:
        raise UsageError(f"[{unnamed[0]}] is not among the questions: name it there, or leave out its table.")
    usual = [name for name in USUAL if models or not QUESTIONS[name].asks_dialogue_models]
    tasks = [Task("", "corpus", "corpus", corpus, BaseSettings()) for corpus in corpora]
    for question in named or usual:
        tables = table.get(question, {})
        for number, each in enumerate(tables if isinstance(tables, list) else [tables], 1):
            tasks += _tasks_of(question, number, each, corpora, models, root, own)
    asked = Counter((task.asked, task.corpus) for task in tasks)
    if repeated := next((name for (name, _), count in asked.items() if count > 1), None):
        raise UsageError(f"Two questions are called '{repeated}': give each a name of its own.")
    return _named(tasks)


def _tasks_of(
    question: str,
    number: int,
    table: Any,
    corpora: list[str],
    models: Mapping[str, ModelEntry],
    root: Path | None,
    own: Mapping[str, Any],
) -> list[Task]:
    """One table of a question: a task for each of its corpora."""
    where = f"[{question}]"
    if not isinstance(table, Mapping):
        raise UsageError(f"{where}: expected a table, found {table!r}.")
    rest = dict(table)
    name = rest.pop("name", question if number == 1 else f"{question}-{number}")
    if not isinstance(name, str) or not name.strip() or name in OWN_NAMES:
        raise UsageError(f"{where} name: expected a name of its own, found {name!r}.")
    files = {key: tuple(_beside(str(path), root) for path in _names(rest.pop(key, ()), f"{key} in {where}"))
             for key in FILES.get(question, ())}  # fmt: skip
    if missing := [key for key, paths in files.items() if not paths]:
        raise UsageError(f"{where} asks about files: give {missing[0]}.")
    if question == "metrics":
        _check_systems(files, where)
    has_corpus = not files and rest.get("sets_dir") is None
    if "sets_dir" in rest and (named := [key for key in ("corpora", "against") if key in rest]):
        raise UsageError(f"{where} measures the sets of sets_dir, and no corpus: leave out {named[0]}.")
    against = _chosen(rest, "against", corpora, where, usual=[]) if has_corpus else []
    measured = [each for each in corpora if each not in against]
    chosen = _chosen(rest, "corpora", corpora, where, usual=measured) if has_corpus else [""]
    asked = []
    if QUESTIONS[question].has_models:
        wants_dialogue_models = QUESTIONS[question].asks_dialogue_models
        usual = [each for each, entry in models.items() if entry.is_predictor != wants_dialogue_models]
        usual = [each for each in usual if question == "ratings" or not models[each].is_baseline]
        known = [*models, *(BASELINES if question == "ratings" else ())]
        asked = _chosen(rest, "models", known, where, usual=usual)
        if wants_dialogue_models and not asked:
            raise UsageError(f"{where} asks models, and the study names none: put some under [models].")
    if "sets_dir" in rest:  # written sets keep the seed that they were made with
        own = {key: value for key, value in own.items() if key != "seed"}
    settings = _settings(QUESTIONS[question].settings, rest, where, root, own)
    return [Task("", question, name, corpus, settings, tuple(asked), tuple(against), files) for corpus in chosen]


def _check_systems(files: Mapping[str, tuple[str, ...]], where: str) -> None:
    """Several systems are told apart by the names of their files, and answer the same references."""
    if len(files["references"]) > 1:
        raise UsageError(f"{where} references takes one file, found {len(files['references'])}.")
    for name, count in Counter(Path(path).name for path in files["hypotheses"]).items():
        if count > 1:
            raise UsageError(f"{where} hypotheses: {count} files are called '{name}', and systems are named by files.")


def _chosen(table: dict[str, Any], key: str, known: list[str], where: str, *, usual: list[str]) -> list[str]:
    """The names under a key of a question's table, which is taken out of it."""
    if key not in table:
        return usual
    names = _names(table.pop(key), f"{key} in {where}")
    for name in names:
        if name not in known:
            raise unknown_name(f"{'model' if key == 'models' else 'corpus'} in {where}", str(name), known)
    return list(dict.fromkeys(names))


def _names(value: Any, what: str) -> list[Any]:
    if not isinstance(value, str | list | tuple):
        raise UsageError(f"{what}: expected names, found {value!r}.")
    return [value] if isinstance(value, str) else list(value)


def _settings(
    kind: type[Settings], table: Mapping[str, Any], where: str, root: Path | None, own: Mapping[str, Any] | None = None
) -> Settings:
    """Settings from a table; the study's seed and device fill what the table leaves out."""
    known = options_of(kind)
    filled: dict[str, Any] = {
        key: (own or {})[key] for key in ("seed", "device") if key in known and key in (own or {})
    }
    values = {key: _placed(value, known.get(key), root) for key, value in table.items()}
    return kind.from_table({**filled, **values}, where)


def _placed(value: Any, limits: Option | None, root: Path | None) -> Any:
    """The value of an option that is a path: beside the TOML, where something is there."""
    if limits is None or not IS_PATH.search(limits.metavar or ""):
        return value
    if isinstance(value, list):
        return [_placed(each, limits, root) for each in value]
    return _beside(value, root) if isinstance(value, str) else value


def _beside(path: str, root: Path | None) -> str:
    beside = None if root is None else root / path
    return str(beside) if beside is not None and beside.exists() else path


def _named(tasks: Sequence[Task]) -> list[Task]:
    """Tasks with names that a folder can have.

    No name depends on the order of the plan: where two would be equal, or letters are lost, a digest of the true names
    is added.
    """
    texts = [f"{task.asked}-{task.corpus}" if task.corpus else task.asked.rstrip("-") for task in tasks]
    slugs = [slug(text, default=task.question) for text, task in zip(texts, tasks, strict=True)]
    same, alike = Counter(texts), Counter([*OWN_NAMES, *slugs])
    named = []
    for text, short, task in zip(texts, slugs, tasks, strict=True):
        has_all_letters = text.isascii() and len(text) <= LONGEST
        is_own = same[text] == 1 if short == text else alike[short] == 1 and has_all_letters
        name = short if is_own else with_digest(short, [task.question, task.asked, task.corpus])
        named.append(replace(task, name=name))
    return named


def with_digest(short: str, names: Sequence[str]) -> str:
    """A slug, cut where it must be, that no other names have."""
    return f"{short[: LONGEST - NAME_LETTERS - 1].rstrip('-')}-{digest(list(names))[:NAME_LETTERS]}"
