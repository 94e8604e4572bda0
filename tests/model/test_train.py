"""Training from Python: a corpus and settings go in, a trained model comes out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.model.conftest import shop

from dialoscope.corpus import Corpus, Dialogue
from dialoscope.errors import OutputError, UsageError
from dialoscope.model import TrainSettings, load, perplexity, train
from dialoscope.model.train import planned, training_corpus

SMALL: dict[str, Any] = {
    "preset": "static",
    "set": ["layers=1 width=8 embedding=8", "vocabulary=60", "learning_rate=0.5"],
    "epochs": 2,
    "batch_size": 8,
    "device": "cpu",
}


def weights(path: Path) -> dict[str, Any]:
    return {name: each.numpy() for name, each in load(path, device="cpu").network.state_dict().items()}  # type: ignore[attr-defined]


def ids(corpus: Corpus, split: str) -> list[str]:
    return [dialogue.id for dialogue in corpus.split(split)]


def test_a_trained_model_knows_its_folder_its_log_and_its_dialogues(corpus: Corpus, tmp_path: Path) -> None:
    model = train(corpus, out=tmp_path / "run", **SMALL, context_turns=2)
    assert model.path == tmp_path / "run"
    assert [moment.epoch for moment in model.training.history] == [0, 1, 2]
    assert model.used == "Validation: validation, 6 dialogues. Training: train, 24 dialogues."
    assert model.parts == {"train": 24, "validation": 6}
    assert model.name.startswith("static@")
    assert model.context_turns == 2
    assert model.generate([["Hello."]])[0] is not None
    again = perplexity(corpus, models={"a": model, "b": tmp_path / "run"}, device="cpu").scores()
    assert again["a/test/perplexity"].value == again["b/test/perplexity"].value


def test_an_interrupted_run_ends_with_the_same_weights(corpus: Corpus, tmp_path: Path) -> None:
    train(corpus, out=tmp_path / "whole", **SMALL)
    train(corpus, out=tmp_path / "parts", **{**SMALL, "epochs": 1})
    with pytest.raises(OutputError, match="Give --resume"):
        train(corpus, out=tmp_path / "parts", **SMALL)
    train(corpus, out=tmp_path / "parts", **SMALL, resume=True)
    for name, value in weights(tmp_path / "whole" / "last").items():
        assert np.array_equal(value, weights(tmp_path / "parts" / "last")[name])


def test_settings_and_keywords_are_the_same(corpus: Corpus) -> None:
    made = TrainSettings(**{**SMALL, "set": tuple(SMALL["set"])})
    assert planned(corpus, settings=made) == planned(corpus, **SMALL) == planned(corpus, settings=made, epochs=2)


def test_a_plan_counts_and_computes_nothing(corpus: Corpus) -> None:
    found = planned(corpus, **SMALL)
    assert (found["dialogues"], found["epochs"], found["vocabulary"]) == (24, 2, 33)
    assert found["batches"] == -(-found["samples"] // 8)
    assert found["used"] == "Validation: validation, 6 dialogues. Training: train, 24 dialogues."


def test_a_limit_cuts_the_training_split_only(corpus: Corpus) -> None:
    whole, parts = training_corpus(corpus, TrainSettings(limit=5))
    assert ids(whole, "train") == ids(corpus, "train")[:5]
    assert ids(whole, "validation") == ids(corpus, "validation")
    assert ids(whole, "test") == ids(corpus, "test")
    assert parts.sizes == {"train": 5, "validation": 6}
    assert parts.used.endswith("Of the training split, the first 5 dialogues were used.")


@pytest.mark.parametrize("name", ["all", "train", "test"])
def test_a_corpus_of_one_split_is_split_by_the_seed(name: str) -> None:
    corpus = Corpus.of([Dialogue(each.turns, each.id, name) for each in shop("x", 50)], name="shop")
    (first, parts), (same, _), (other, _) = (training_corpus(corpus, TrainSettings(seed=seed)) for seed in (3, 3, 4))
    assert first.splits == {"train": 40, "validation": 5, "test": 5}
    assert first.fingerprint == same.fingerprint != other.fingerprint
    assert parts.used.endswith("The corpus has one split: its dialogues were split 80/10/10 with seed 3.")


def test_other_splits_can_be_named(corpus: Corpus) -> None:
    whole, parts = training_corpus(corpus, TrainSettings(train_split="test", validation_split="dev", limit=2))
    assert parts.sizes == {"test": 2, "validation": 6}
    assert len(whole.split("train")) == 24
    same, _ = training_corpus(corpus, TrainSettings(validation_split="train"))
    assert same.fingerprint == corpus.fingerprint


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"set": ["layers"]}, "set takes KEY=VALUE, such as layers=2, found 'layers'."),
    ({"set": ["layer=2"]}, "Unknown setting 'layer'. Did you mean 'layers'?"),
    ({"set": ["heads=4"]}, "set heads=4 changes nothing in a model with encoder lstm and attention static."),
    ({"preset": "statik"}, "preset is one of non-hier, static,"),
    ({"tokens": "letters"}, "tokens is one of words, bpe; found 'letters'."),
    ({"log_metrics": ["rouge"]}, "Unknown metric 'rouge'."),
    ({"epochs": 0}, "epochs takes a whole number of 1 or more, found 0."),
    ({"validation_split": "mine"}, "shop has no mine split. Found: train, validation, test."),
    ({"train_split": "mine"}, "shop has no mine split. Found: train, validation, test."),
    ({"epoch": 1}, "Unknown setting 'epoch'. Did you mean 'epochs'?"),
]


def test_a_missing_validation_split_names_the_option_that_helps(corpus: Corpus) -> None:
    with pytest.raises(UsageError, match=r"has no validation split\. .* validation_split \(--validation-split\)\.$"):
        training_corpus(corpus.split("train", "test"), TrainSettings())


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_what_cannot_be_trained_is_one_line_and_writes_nothing(
    options: dict[str, Any], message: str, corpus: Corpus, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        train(corpus, out=tmp_path / "run", **{"device": "cpu", **options})
    assert str(caught.value).startswith(message)
    assert not (tmp_path / "run").exists()


def test_a_path_is_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^train takes a Corpus, found str\. Load it with dialoscope\.load\.$"):
        train("concierge", out=tmp_path / "run", device="cpu")  # type: ignore[arg-type]


def test_a_metric_of_ones_choice_is_logged(corpus: Corpus, tmp_path: Path) -> None:
    model = train(corpus, out=tmp_path / "run", **{**SMALL, "epochs": 1}, log_metrics=["length"])
    assert "length" in model.training.history[-1].more
