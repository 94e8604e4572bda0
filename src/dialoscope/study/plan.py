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

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from dialoscope.corpus import Corpus, load
from dialoscope.corpus.formats import FORMATS
from dialoscope.corpus.load import NAMED
from dialoscope.corpus.split import sample_dialogues
from dialoscope.errors import CorpusError, MissingExtraError, UsageError, unknown_name
from dialoscope.instruments import INSTRUMENTS, Progress
from dialoscope.model.loading import DTYPES, choose_device, require_torch
from dialoscope.model.presets import PRESETS
from dialoscope.model.structure import changed
from dialoscope.study.tables import read_table

OWN = ("title", "seed", "device", "instruments", "against", "corpora", "models")
PRESENT = ("path", "dtype", "batch_size")  # options of a model that is there; the others are for training
PATHS = ("predictor", "encoder", "human")  # options of instruments that may be paths beside the TOML
# The least that options may be: a negative limit would mean all but the last ones.
LEAST = {
    "limit": 1, "train_limit": 1, "validation_limit": 1, "context_turns": 1, "batch_size": 1, "least_turns": 1,
    "most_turns": 1, "seed": 0, "bleu_samples": 0, "context_tokens": 0, "history": 0,
}  # fmt: skip
AT_A_LINE = re.compile(r":\d+: ")  # a complaint of one record, which could be left out
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

    @property
    def is_lost(self) -> bool:
        """Whether nothing is at one of its paths, which is no name either."""
        names = [one for one in self.path if one in NAMED or one.startswith("hf:") or self.format == "hf"]
        return any(one not in names and not Path(one).expanduser().exists() for one in self.path)


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

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; how many epochs a preset is trained for is said also where that is not changed."""
        kept = asdict(self)
        if self.preset is None:
            return {key: kept[key] for key in PRESENT}
        return {**kept, "set": {"epochs": PRESETS[self.preset].recipe.epochs, **self.set}}


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
    root: str | None = None  # where the TOML lies

    def __post_init__(self) -> None:
        if not self.corpora:
            raise UsageError('Give the study at least one corpus, such as chats = "chats.jsonl" under [corpora].')

    def load(self, name: str, *, progress: Progress | None = None) -> Corpus:
        """Read one of its corpora; a complaint says where it was looked for, or how a bad record is left out."""
        try:
            return self.corpora[name].load(name, progress=progress)
        except CorpusError as error:
            raise CorpusError(f"{str(error).rstrip('.')}.{self._advice(name, str(error))}") from error

    def _advice(self, name: str, told: str) -> str:
        wish = self.corpora[name]
        if wish.is_lost:
            places = dict.fromkeys(str(Path(one).resolve()) for one in (self.root, ".") if one is not None)
            return f" Looked in {' and in '.join(places)}."
        if wish.on_error == "fail" and AT_A_LINE.search(told):
            return f' To leave bad records out and count them: on_error = "skip" under [corpora.{name}] of the TOML.'
        return ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: all that is needed to run it again, with what is usual where nothing was given."""
        return {
            **{key: getattr(self, key) for key in ("title", "seed", "device", "against", "root")},
            "corpora": {name: asdict(one) for name, one in self.corpora.items()},
            "models": {name: one.to_dict() for name, one in self.models.items()},
            "instruments": [{"name": one.name, **one.to_dict(), "corpora": list(one.corpora)} for one in self.asks],
        }


def check_device(plan: Plan) -> None:
    """Complain of a device that cannot be used, before other steps have taken their hours."""
    if plan.device == "auto":
        return
    try:
        require_torch("A device")
    except MissingExtraError:  # then nothing will be run on it
        return
    choose_device(plan.device)


def check_paths(ask: Ask) -> None:
    """Complain of an instrument's paths at which nothing is."""
    for key in PATHS:
        value = getattr(ask.wish, key, None) or ()
        for path in [value] if isinstance(value, str) else value:
            if _is_lost(path, may_be_name=key == "encoder"):
                raise UsageError(f"[{ask.instrument}] {key}: expected a file or folder at '{path}', found nothing.")


def _is_lost(path: str, *, may_be_name: bool) -> bool:
    from dialoscope.engage.packaged import PACKAGED
    from dialoscope.model.huggingface.pretrained import source_of

    if path in PACKAGED or Path(path).exists():
        return False
    try:
        return not (may_be_name and source_of(path))
    except UsageError:  # no name on a hub looks like that
        return True


def read_plan(path: str | Path) -> Plan:
    """Read a study's TOML; paths in it are relative to where it lies."""
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"{path}: expected the TOML of a study, found none. Try: dialoscope study init") from error
    except OSError as error:
        raise UsageError(f"{path}: expected the TOML of a study, found: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
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
    told = {"title": f"Dialoscope on {', '.join(corpora)}", **plain, "root": None if root is None else str(root)}
    return Plan(**told, corpora=corpora, models=models, asks=asks)


def _named(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, Mapping):
        raise UsageError(f"[{key}]: expected names and paths, found {value!r}.")
    for name, one in value.items():
        if not name.strip():
            raise UsageError(f"[{key}]: expected a name for {one!r}, found {name!r}.")
    return value


def _plain(value: Any, key: str) -> Any:
    wanted = int if key == "seed" else str
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise UsageError(f"{key}: expected {'a whole number' if wanted is int else 'text'}, found {value!r}.")
    _check_least({key: value}, "")
    return value


def _check_least(options: Mapping[str, Any], where: str) -> None:
    for name, value in options.items():
        if name in LEAST and value is not None and value < LEAST[name]:
            raise UsageError(f"{where}{name}: expected {LEAST[name]} or more, found {value}.")


def _corpus(value: Any, name: str, root: Path | None) -> CorpusWish:
    table = value if isinstance(value, Mapping) else {"path": value}
    wish = read_table(CorpusWish, table, f"[corpora.{name}]")
    _check_least(vars(wish), f"[corpora.{name}] ")
    if wish.format is not None and wish.format not in (known := [*FORMATS, "hf"]):
        raise unknown_name(f"format in [corpora.{name}]", wish.format, known)
    return replace(wish, path=tuple(_placed(one, root) for one in wish.path))


def _model(value: Any, name: str, root: Path | None, corpora: Mapping[str, CorpusWish]) -> ModelWish:
    table = value if isinstance(value, Mapping) else {"path": value}
    wish = read_table(ModelWish, table, f"[models.{name}]")
    if (wish.path is None) == (wish.preset is None):
        raise UsageError(f"[models.{name}]: expected a path, or a preset to train on the spot; one of both.")
    _check_least(vars(wish), f"[models.{name}] ")
    if wish.path is not None and (unused := [key for key in table if key not in PRESENT]):
        told = "is for a preset that is trained on the spot, and path names a model that is there"
        raise UsageError(f"[models.{name}]: {unused[0]} {told}.")
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
    tabled = [name for name in ASKED if name in table]
    named = _names(table.get("instruments", tabled), "instruments")
    for name in named:
        if name not in ASKED:
            raise unknown_name("instrument", str(name), ASKED)
    if unnamed := [name for name in tabled if name not in named]:
        raise UsageError(f"[{unnamed[0]}] is not among the instruments: name it there, or leave out its table.")
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
    if not name.strip():
        raise UsageError(f"{where} name: expected a name, found {name!r}.")
    asked = {"corpora": _chosen(rest, "corpora", corpora, where)}
    has_models = INSTRUMENTS[instrument].has_models
    if has_models:
        asked["models"] = _chosen(rest, "models", models, where)
        if not asked["models"]:
            raise UsageError(f"{where} asks models, and the study names none: put some under [models].")
    wish: Any = read_table(INSTRUMENTS[instrument].wish, rest, where)
    _check_least(vars(wish), f"{where} ")
    return Ask(instrument, name, replace(wish, **_paths(wish, root)), **asked)


def _paths(wish: Any, root: Path | None) -> dict[str, Any]:
    """An instrument's paths, where they lie beside the TOML; encoders that packages carry stay names."""
    from dialoscope.engage.packaged import PACKAGED

    def placed(path: str) -> str:
        return path if path in PACKAGED else _placed(path, root)

    given = {key: getattr(wish, key, None) for key in PATHS}
    return {
        key: placed(value) if isinstance(value, str) else tuple(map(placed, value))
        for key, value in given.items()
        if value is not None
    }


def _chosen(table: dict[str, Any], key: str, known: tuple[str, ...], where: str) -> tuple[str, ...]:
    """The names under a key, which is taken out; all where there is none."""
    given = table.pop(key, None)
    if given is None:
        return known
    names = _names(given, f"{key} in {where}")
    for name in names:
        if name not in known:
            raise unknown_name(f"{'corpus' if key == 'corpora' else 'model'} in {where}", str(name), known)
    return tuple(dict.fromkeys(names))


def _names(given: Any, what: str) -> list[Any]:
    """One name or several."""
    if not isinstance(given, str | list | tuple):
        raise UsageError(f"{what}: expected names, found {given!r}.")
    return [given] if isinstance(given, str) else list(given)
