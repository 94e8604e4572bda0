"""What a study is about: corpora, models and instruments, read from a short TOML or put together from flags.

::

    title = "Our assistant"

    [corpora]
    chats = "chats/"

    [models]
    ours = "runs/ours"

    [models.small]                 # trained on the spot
    preset = "static-ui"
    set = { epochs = 3 }

    [distract]                     # an instrument and its options
    limit = 200
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from turnwise.corpus import Corpus, load
from turnwise.corpus.formats import FORMATS
from turnwise.corpus.split import sample_dialogues
from turnwise.errors import UsageError, unknown_name
from turnwise.instruments import INSTRUMENTS, Progress
from turnwise.model.loading import DTYPES
from turnwise.model.presets import PRESETS
from turnwise.model.settings import changed
from turnwise.study.tables import read_table

OWN = ("title", "seed", "device", "instruments", "against", "corpora", "models")
ASKED = tuple(name for name in INSTRUMENTS if name != "corpus")  # the corpus is always described


@dataclass(frozen=True)
class CorpusWish:
    """Where dialogues are, and how many of each split are read."""

    path: tuple[str, ...]
    format: str | None = None
    on_error: Literal["fail", "skip"] = "fail"
    limit: int | None = None
    seed: int | None = None  # with a limit: draw them at random

    def load(self, name: str, *, progress: Progress | None = None) -> Corpus:
        """Read the dialogues."""
        first = self.limit if self.seed is None else None
        corpus = load(*self.path, format=self.format, on_error=self.on_error, limit=first, name=name, progress=progress)
        return (
            corpus if self.limit is None or self.seed is None else sample_dialogues(corpus, self.limit, seed=self.seed)
        )


@dataclass(frozen=True)
class ModelWish:
    """A model: a path or a name, or a preset that is trained on the spot."""

    path: str | None = None
    dtype: str = "float32"
    batch_size: int = 64  # contexts computed together
    # What follows is for training on the spot.
    preset: str | None = None
    corpus: str | None = None  # of the study; usually its first
    set: Mapping[str, Any] = field(default_factory=dict)  # settings and recipe, as in {layers = 1, epochs = 3}
    insert: float = 0.0
    attention_loss: bool = True
    attention_weight: float = 1.0
    attention_reduction: Literal["mean", "sum"] = "mean"
    context_turns: int | None = None
    train_limit: int | None = None
    validation_limit: int | None = None
    bleu_samples: int = 200
    seed: int = 0


@dataclass(frozen=True)
class Ask:
    """One instrument, told how, on some corpora and models; a step of the study for each corpus."""

    instrument: str
    name: str
    wish: Any  # of the instrument's own type
    corpora: tuple[str, ...]
    models: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"instrument": self.instrument, "options": asdict(self.wish), "models": list(self.models)}


@dataclass(frozen=True)
class Plan:
    """Everything a study's numbers depend on, and where earlier numbers are that it is held against."""

    title: str
    corpora: Mapping[str, CorpusWish]
    models: Mapping[str, ModelWish]
    asks: Sequence[Ask]
    seed: int = 0
    device: str = "auto"
    against: str | None = None

    def __post_init__(self) -> None:
        if not self.corpora:
            raise UsageError('Give the study at least one corpus, such as chats = "chats.jsonl" under [corpora].')


def read_plan(path: str | Path) -> Plan:
    """Read a study's TOML; paths in it are relative to where it lies."""
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"{path}: expected the TOML of a study, found none. Try: turnwise study init") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path}: expected TOML, found {' '.join(str(error).split())}.") from error
    try:
        return plan_of(table, root=path.parent)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def plan_of(table: Mapping[str, Any], *, root: Path | None = None) -> Plan:
    """A plan from a table of the form of the TOML.

    >>> plan = plan_of({"corpora": {"small": "concierge"}, "overlap": {"threshold": 0.9}})
    >>> plan.asks[0].instrument, plan.asks[0].wish.threshold
    ('overlap', 0.9)
    """
    for name in table:
        if name not in OWN and name not in ASKED:
            raise unknown_name("part of a study", name, [*OWN, *ASKED])
    corpora = {name: _corpus(value, name, root) for name, value in _named(table, "corpora").items()}
    models = {name: _model(value, name, root, corpora) for name, value in _named(table, "models").items()}
    plain = {key: _plain(table[key], key) for key in ("title", "seed", "device", "against") if key in table}
    if "against" in plain:
        plain["against"] = _placed(plain["against"], root)
    asks = _asks(table, tuple(corpora), tuple(models), root)
    return Plan(**{"title": f"Turnwise on {', '.join(corpora)}", **plain}, corpora=corpora, models=models, asks=asks)


def _named(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, Mapping):
        raise UsageError(f"[{key}]: expected names and paths, found {value!r}.")
    return value


def _plain(value: Any, key: str) -> Any:
    wanted = int if key == "seed" else str
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise UsageError(f"{key}: expected {'a whole number' if wanted is int else 'text'}, found {value!r}.")
    return value


def _corpus(value: Any, name: str, root: Path | None) -> CorpusWish:
    table = value if isinstance(value, Mapping) else {"path": value}
    wish = read_table(CorpusWish, table, f"[corpora.{name}]")
    if wish.format is not None and wish.format not in (known := [*FORMATS, "hf"]):
        raise unknown_name(f"format in [corpora.{name}]", wish.format, known)
    return replace(wish, path=tuple(_placed(one, root) for one in wish.path))


def _model(value: Any, name: str, root: Path | None, corpora: Mapping[str, CorpusWish]) -> ModelWish:
    table = value if isinstance(value, Mapping) else {"path": value}
    wish = read_table(ModelWish, table, f"[models.{name}]")
    if (wish.path is None) == (wish.preset is None):
        raise UsageError(f"[models.{name}]: expected a path, or a preset to train on the spot; one of both.")
    if wish.corpus is not None and wish.corpus not in corpora:
        raise unknown_name(f"corpus in [models.{name}]", wish.corpus, corpora)
    if wish.dtype not in (known := [*DTYPES, *DTYPES.values()]):
        raise unknown_name(f"dtype in [models.{name}]", wish.dtype, known)
    if wish.preset is not None:
        _check_preset(wish.preset, wish.set, f"[models.{name}]")
    return wish if wish.path is None else replace(wish, path=_placed(wish.path, root))


def _check_preset(preset: str, values: Mapping[str, Any], where: str) -> None:
    """Complain now, not when other steps have taken their hours."""
    if preset not in PRESETS:
        raise unknown_name(f"preset in {where}", preset, PRESETS)
    try:
        changed(PRESETS[preset].settings, PRESETS[preset].recipe, values)
    except UsageError as error:
        raise UsageError(f"{where} set: {error}") from error


def _placed(path: str, root: Path | None) -> str:
    """A path beside the TOML, where something is there; otherwise as it is, for it may be a name."""
    beside = None if root is None else root / path
    return str(beside) if beside is not None and beside.exists() else path


def _asks(table: Mapping[str, Any], corpora: tuple[str, ...], models: tuple[str, ...], root: Path | None) -> list[Ask]:
    """Every instrument that is named, or has a table, or else all that can be run."""
    named = table.get("instruments") or [name for name in ASKED if name in table]
    for name in named:
        if name not in ASKED:
            raise unknown_name("instrument", str(name), ASKED)
    chosen = named or [name for name in ASKED if models or not INSTRUMENTS[name].has_models]
    found: list[Ask] = []
    for instrument in chosen:
        tables = table.get(instrument, {})
        for number, one in enumerate(tables if isinstance(tables, list) else [tables], 1):
            found.append(_ask(instrument, number, one, corpora, models, root))
    names = [one.name for one in found]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"Two instruments are called '{repeated}': give each a name of its own.")
    return found


def _ask(
    instrument: str, number: int, table: Any, corpora: tuple[str, ...], models: tuple[str, ...], root: Path | None
) -> Ask:
    where = f"[{instrument}]"
    if not isinstance(table, Mapping):
        raise UsageError(f"{where}: expected a table, found {table!r}.")
    rest = dict(table)
    name = str(rest.pop("name", instrument if number == 1 else f"{instrument}-{number}"))
    asked = {"corpora": _chosen(rest.pop("corpora", None), corpora, f"corpus in {where}")}
    has_models = INSTRUMENTS[instrument].has_models
    if has_models:
        asked["models"] = _chosen(rest.pop("models", None), models, f"model in {where}")
        if not asked["models"]:
            raise UsageError(f"{where} asks models, and the study names none: put some under [models].")
    for key in ("predictor", "human"):
        if instrument == "engage" and key in rest:
            paths = rest[key]
            rest[key] = [_placed(one, root) for one in paths] if isinstance(paths, list) else _placed(paths, root)
    return Ask(instrument, name, read_table(INSTRUMENTS[instrument].wish, rest, where), **asked)


def _chosen(given: Any, known: tuple[str, ...], what: str) -> tuple[str, ...]:
    if given is None:
        return known
    names = [given] if isinstance(given, str) else given
    for name in names:
        if name not in known:
            raise unknown_name(what, str(name), known)
    return tuple(names)
