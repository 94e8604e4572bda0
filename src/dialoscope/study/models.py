"""The models of a study: loaded when they are asked, or trained first; known by what their weights are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialoscope.corpus import Corpus
from dialoscope.errors import ModelError, UsageError
from dialoscope.instruments import Progress
from dialoscope.record import version
from dialoscope.report.anchor import slug
from dialoscope.study.keys import digest, fingerprint
from dialoscope.study.plan import Ask, ModelWish
from dialoscope.study.splits import need_split

if TYPE_CHECKING:
    from dialoscope.model.log import Moment
    from dialoscope.model.protocol import DialogueModel

AT_ONCE = 4  # models that are held in memory
KEY_LETTERS = 16  # of a model's key, in the name of its folder


@dataclass(frozen=True)
class Source:
    """A model that is there: where, how it is loaded, and what its weights are."""

    path: str
    options: Mapping[str, Any]
    identity: str


class Models(Mapping[str, "DialogueModel"]):
    """Models by name, loaded when they are asked; a few stay in memory."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self.sources = sources
        self._load: Callable[[str], DialogueModel] = lru_cache(AT_ONCE)(self._loaded)

    def __getitem__(self, name: str) -> DialogueModel:
        return self._load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.sources)

    def __len__(self) -> int:
        return len(self.sources)

    def _loaded(self, name: str) -> DialogueModel:
        from dialoscope.model import load

        source = self.sources[name]
        return load(source.path, **source.options, quiet=True)


def check_there(wish: ModelWish) -> None:
    """Complain of a path that leads to no model; nothing is loaded, and a hub's name is taken at its word."""
    from dialoscope.model.checkpoint import find_checkpoint
    from dialoscope.model.loading import check_model, require_torch

    assert wish.path is not None
    require_torch("A dialogue model")
    if not Path(wish.path).exists() and len(Path(wish.path).parts) > 1 and Path(wish.path).parent.exists():
        raise UsageError(f"{wish.path}: expected a model's folder, found nothing there.")  # and no name for a hub
    check_model(wish.path)
    if Path(wish.path).is_dir() and not _is_pretrained(Path(wish.path)):
        find_checkpoint(wish.path)


def _is_pretrained(folder: Path) -> bool:
    return (folder / "config.json").is_file() or any(folder.glob("*.gguf"))


def check_turns(ask: Ask, wishes: Mapping[str, ModelWish]) -> None:
    """Complain of models that learnt from different turns of context where the plan does not say how many are asked.

    `wishes` are the models that are asked, by name; `dialoscope.model.checkpoint.shared_turns` would complain if all of
    them are trained.
    """
    if not wishes or getattr(ask.wish, "context_turns", 0) is not None:
        return
    found = {name: turns for name, wish in wishes.items() for turns in _learnt_turns(wish)}
    if len(set(found.values())) > 1:
        said = ", ".join(f"{name} {'all' if turns is None else turns}" for name, turns in found.items())
        told = f"the models were trained with different turns of context ({said})"
        raise UsageError(f"[{ask.instrument}] context_turns: {told}. Give the number that all of them are asked with.")


def _learnt_turns(wish: ModelWish) -> list[int | None]:
    """How many turns of context a model learns from, None for all; nothing where that cannot be seen."""
    from dialoscope.model.checkpoint import is_checkpoint, trained_turns

    if wish.path is None:
        return [wish.context_turns]
    with suppress(ModelError):  # told when it is looked for
        return [trained_turns(wish.path)] if is_checkpoint(wish.path) else []
    return []


def found_source(wish: ModelWish, *, device: str) -> Source:
    """A model that was there before the study.

    Ours are read whole, which shows now that one is damaged; others may be large, and show it when they are loaded.
    """
    from dialoscope.model.checkpoint import is_checkpoint, read_checkpoint
    from dialoscope.model.loading import choose_device

    assert wish.path is not None
    check_there(wish)
    if is_checkpoint(wish.path):
        read_checkpoint(wish.path)
    options = {"device": choose_device(device), "dtype": wish.dtype, "batch_size": wish.batch_size}
    return Source(wish.path, options, _identity(wish.path, options))


def trained_source(
    wish: ModelWish, name: str, corpus: Corpus, folder: Path, *, device: str, progress: Progress | None = None
) -> Source:
    """A model that the study trains; what was begun goes on, and what is trained is not trained again."""
    from dialoscope.distract import AttentionLoss, InsertDistractions
    from dialoscope.model import preset, train
    from dialoscope.model.loading import choose_device, require_torch
    from dialoscope.model.structure import changed

    require_torch("Training")
    assert wish.preset is not None
    chosen, place = preset(wish.preset), choose_device(device)
    settings, recipe = changed(chosen.settings, chosen.recipe, wish.set)
    out = trained_folder(wish, name, corpus, folder, device=device)
    train(
        _part(corpus, wish, name),
        settings,
        recipe,
        out=out,
        seed=wish.seed,
        device=place,
        preset=wish.preset,
        best_by="perplexity" if not wish.bleu_samples else chosen.best_by,
        context_turns=wish.context_turns,
        bleu_samples=wish.bleu_samples,
        transform=InsertDistractions(wish.insert) if wish.insert else None,
        extra_loss=AttentionLoss(wish.attention_weight, wish.attention_reduction)
        if wish.insert and wish.attention_loss
        else None,
        resume=True,
        progress=None if progress is None else _told(progress, recipe.epochs),
    )
    return found_source(replace(wish, path=str(out / "best"), preset=None), device=device)


def trained_folder(wish: ModelWish, name: str, corpus: Corpus, folder: Path, *, device: str) -> Path:
    """Where a model is trained; all that its weights depend on is in the name."""
    from dialoscope.model.loading import choose_device, require_torch

    require_torch("Training")
    place = choose_device(device).partition(":")[0]
    learnt = {key: value for key, value in asdict(wish).items() if key not in ("path", "dtype", "batch_size")}
    parts = [version(), learnt, _part(corpus, wish, name).fingerprint, place]
    return folder / f"{slug(name, default='model')}-{digest(parts)[:KEY_LETTERS]}"


def _part(corpus: Corpus, wish: ModelWish, name: str) -> Corpus:
    """The dialogues that a model learns from and is chosen by."""
    splits = corpus.table["split"].to_pylist()
    chosen: list[int] = []
    for split, most in (("train", wish.train_limit), ("validation", wish.validation_limit)):
        need_split(corpus, split, f"[models.{name}]")
        chosen += [place for place, one in enumerate(splits) if one == split][:most]
    return corpus.select(chosen)


def _told(progress: Progress, epochs: int) -> Callable[[Moment], None]:
    def tell(moment: Moment) -> None:
        progress((moment.epoch - 1) * moment.batches + moment.done, epochs * moment.batches)

    return tell


def _identity(path: str, options: Mapping[str, Any]) -> str:
    """A fingerprint of a model's files; a hub's model is asked for its own."""
    from dialoscope.model import load
    from dialoscope.model.checkpoint import find_checkpoint, is_checkpoint

    place = find_checkpoint(path) if is_checkpoint(path) else Path(path)
    if not place.exists():
        return digest([load(path, **options, quiet=True).name, options])
    return digest([fingerprint(place), options])
