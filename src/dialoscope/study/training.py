"""Models that are trained for a study: the settings under [models.NAME], and the call."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dialoscope.corpus import Corpus
from dialoscope.distract.settings import DistractionSettings
from dialoscope.fingerprint import digest
from dialoscope.model.settings import TrainSettings
from dialoscope.progress import Progress
from dialoscope.record import version
from dialoscope.report.anchor import slug

if TYPE_CHECKING:
    from dialoscope.model.log import Moment

KEY_LETTERS = 16  # of the digest in the name of a model's folder


@dataclass(frozen=True, kw_only=True)
class StudyTraining(TrainSettings, DistractionSettings):
    """How a model is trained for a study: the settings of `dialoscope train`, distractions included."""

    def check(self) -> None:
        """Both kinds of settings, and changes that the preset has."""
        from dialoscope.model.presets import preset
        from dialoscope.model.structure import changed, read_word

        TrainSettings.check(self)
        DistractionSettings.check(self)
        values = dict(change.split("=", 1) for change in self.changes)
        chosen = preset(self.preset)
        changed(chosen.settings, chosen.recipe, {name: read_word(word) for name, word in values.items()})


def training_folder(folder: Path, name: str, corpus: Corpus, settings: StudyTraining) -> Path:
    """Where a model is trained: everything that its weights depend on is in the name."""
    from dialoscope.model.loading import choose_device
    from dialoscope.model.train import training_corpus

    whole, parts = training_corpus(corpus, settings)
    learnt = whole.split(*(split for split in whole.splits if split in parts.sizes))
    deciding = {key: value for key, value in settings.to_dict().items() if key != "device"}
    key = digest([version(), deciding, learnt.fingerprint, choose_device(settings.device).partition(":")[0]])
    return folder / f"{slug(name, default='model')}-{key[:KEY_LETTERS]}"


def train_for_study(corpus: Corpus, settings: StudyTraining, out: Path, *, progress: Progress | None = None) -> None:
    """Train a model; an interrupted training is continued."""
    from dialoscope.model.train import plan_of, train

    distractions = settings.for_training()
    epochs = plan_of(settings, distractions.get("transform"), distractions.get("extra_loss")).recipe.epochs

    def report(moment: Moment) -> None:
        if progress is not None:
            progress((moment.epoch - 1) * moment.batches + moment.done, epochs * moment.batches)

    train(corpus, out=out, settings=settings, resume=True, progress=report, **distractions)
