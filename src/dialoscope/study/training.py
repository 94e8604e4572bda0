"""Models that are trained for a study: the settings under [models.NAME], and the call."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dialoscope.corpus import Corpus
from dialoscope.errors import UsageError
from dialoscope.fingerprint import digest
from dialoscope.model.presets import PRESETS, preset
from dialoscope.model.structure import Recipe, Structure, changed, read_word
from dialoscope.progress import Progress
from dialoscope.record import version
from dialoscope.report.anchor import slug
from dialoscope.settings import BaseSettings, option

KEY_LETTERS = 16  # of the digest in the name of a model's folder


@dataclass(frozen=True, kw_only=True)
class TrainSettings(BaseSettings):
    """How a model is trained for a study."""

    preset: str = option("static-ui", "Which model (see: dialoscope presets).", choices=tuple(PRESETS))
    epochs: int | None = option(None, "Epochs at most. Default: the preset's.", least=1)
    set: tuple[str, ...] = option((), "A setting of the preset, such as layers=2.", metavar="NAME=VALUE")
    insert: float = option(0.0, "Probability of inserting each of two distractions.", least=0, most=1)
    attention_loss: bool = option(True, "With insert: lower attention on them.")
    attention_weight: float = option(1.0, "Weight of that loss.", least=0)
    attention_reduction: str = option("mean", "How it is reduced over places.", choices=("mean", "sum"))
    context_turns: int | None = option(None, "Turns of context at most.", least=1)
    limit: int | None = option(None, "Training dialogues at most.", least=1)
    validation_limit: int | None = option(None, "Validation dialogues at most.", least=1)
    bleu_samples: int = option(200, "Responses for BLEU after each epoch.", least=0)
    seed: int = option(0, "Same seed, same weights.", least=0)
    device: str = option("auto", "auto, cpu, cuda or cuda:N.", decides=False)

    def check(self) -> None:
        """Refuse settings that the preset does not have."""
        self.structure()

    def structure(self) -> tuple[Structure, Recipe]:
        """The preset's structure and recipe with what `set` and `epochs` change."""
        values = {}
        for word in self.set:
            name, sign, value = word.partition("=")
            if not sign:
                raise UsageError(f"set takes NAME=VALUE, found {word!r}.")
            values[name] = read_word(value)
        chosen = preset(self.preset)
        return changed(
            chosen.settings, chosen.recipe, {**values, **({} if self.epochs is None else {"epochs": self.epochs})}
        )


def training_dialogues(corpus: Corpus, settings: TrainSettings, name: str) -> Corpus:
    """The dialogues that a model learns from and is chosen by; the corpus has the splits train and validation."""
    splits = corpus.table["split"].to_pylist()
    rows: list[int] = []
    for split, limit in (("train", settings.limit), ("validation", settings.validation_limit)):
        if split not in corpus.splits:
            raise UsageError(f"[models.{name}]: {corpus.name} has no {split} split. Found: {', '.join(corpus.splits)}.")
        rows += [row for row, each in enumerate(splits) if each == split][:limit]
    return corpus.select(rows)


def training_folder(folder: Path, name: str, corpus: Corpus, settings: TrainSettings) -> Path:
    """Where a model is trained: everything that its weights depend on is in the name."""
    from dialoscope.model.loading import choose_device

    device = choose_device(settings.device).partition(":")[0]
    chosen = {key: value for key, value in settings.to_dict().items() if key != "device"}
    key = digest([version(), chosen, training_dialogues(corpus, settings, name).fingerprint, device])
    return folder / f"{slug(name, default='model')}-{key[:KEY_LETTERS]}"


def train_for_study(
    corpus: Corpus, settings: TrainSettings, name: str, out: Path, *, progress: Progress | None = None
) -> None:
    """Train a model; an interrupted training is continued."""
    from dialoscope.model.loading import choose_device
    from dialoscope.model.log import Moment
    from dialoscope.model.training import run_training

    structure, recipe = settings.structure()
    inserting = {}
    if settings.insert:
        from dialoscope.distract import AttentionLoss, InsertDistractions

        loss = AttentionLoss(settings.attention_weight, settings.attention_reduction)  # type: ignore[arg-type]
        inserting = {
            "transform": InsertDistractions(settings.insert),
            "extra_loss": loss if settings.attention_loss else None,
        }

    def report(moment: Moment) -> None:
        if progress is not None:
            progress((moment.epoch - 1) * moment.batches + moment.done, recipe.epochs * moment.batches)

    run_training(
        training_dialogues(corpus, settings, name),
        structure,
        recipe,
        out=out,
        seed=settings.seed,
        device=choose_device(settings.device),
        preset=settings.preset,
        best_by=preset(settings.preset).best_by if settings.bleu_samples else "perplexity",
        context_turns=settings.context_turns,
        bleu_samples=settings.bleu_samples,
        resume=True,
        progress=report,
        **inserting,
    )
