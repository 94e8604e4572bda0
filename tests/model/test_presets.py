from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from dialoscope.errors import UsageError
from dialoscope.model.network import Seq2Seq, parameter_count
from dialoscope.model.presets import PRESETS, preset
from dialoscope.model.structure import Recipe, Structure

PROBED = [name for name, one in PRESETS.items() if one.millions]


def test_the_twelve_presets_are_named_as_in_the_design() -> None:
    assert list(PRESETS) == [
        "non-hier", "static", "static-ui", "dynamic", "dynamic-ui", "lstm", "lstm-attn", "bilstm-attn", "hred",
        "transformer", "overlap-lstm", "overlap-transformer",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "ours", "printed"),
    [
        ("lstm", 10.05, 11),
        ("lstm-attn", 10.57, 11),
        ("bilstm-attn", 11.49, 12),
        ("hred", 11.62, 12),
        ("transformer", 39.31, 41),
    ],
)
def test_sizes_are_within_a_tenth_of_the_probe_papers_table_3(name: str, ours: float, printed: float) -> None:
    """Counted by hand at the preset's 16,000 words, the larger of the paper's two vocabularies (13k and 16k).

    With V = 16,000 words, e = 128 and w = 256, an LSTM of two layers over vectors of n has 4w(n + w) + 4w · 2w + 2 · 4w
    weights (919,552 over words), additive attention 2w² + 2w, the layer that joins h and c has 2w² + w, and a decoder
    that attends has 4w · w more in its first layer. Two tables of words and the output layer are Ve each and V(w + 1).
    """
    one = PRESETS[name]
    count = parameter_count(one.settings)
    assert one.settings.vocabulary == 16_000
    assert (round(count / 1e6, 2), one.millions) == (ours, printed)
    assert abs(count / 1e6 - printed) < 0.1 * printed
    assert count == COUNTED[name]


E, W, V = 128, 256, 16_000
WORDS = 2 * V * E + V * (W + 1)
LSTM = 4 * W * (E + W) + 4 * W * 2 * W + 2 * 4 * W
ATTENTION = (2 * W * W + 2 * W) + (2 * W * W + W) + 4 * W * W
ENCODER_LAYER = 4 * (512 * 512 + 512) + (512 * 2048 + 2048 + 2048 * 512 + 512) + 2 * 2 * 512
DECODER_LAYER = ENCODER_LAYER + 4 * (512 * 512 + 512) + 2 * 512
COUNTED = {
    "lstm": WORDS + 2 * LSTM,
    "lstm-attn": WORDS + 2 * LSTM + ATTENTION,
    "bilstm-attn": WORDS + 3 * LSTM + ATTENTION,
    "hred": WORDS + 2 * LSTM + (4 * W * 2 * W + 4 * W * 2 * W + 2 * 4 * W) + ATTENTION,
    "transformer": 2 * V * 512 + V * 513 + 2 * ENCODER_LAYER + 2 * DECODER_LAYER + 2 * 2 * 512,
}


@pytest.mark.parametrize("name", ["non-hier", "static", "static-ui", "dynamic", "dynamic-ui"])
def test_the_distraction_papers_recipe(name: str) -> None:
    """Section 4.2 prints batch, rate, clip, vocabulary and dropout; that the loss is summed is our reading."""
    recipe, settings = PRESETS[name].recipe, PRESETS[name].settings
    assert (recipe.optimiser, recipe.learning_rate, recipe.clip, recipe.batch_size) == ("sgd", 1.0, 5.0, 256)
    assert recipe.halve_when_stalled and recipe.loss_over == "responses"
    assert (settings.layers, settings.width, settings.vocabulary, settings.dropout) == (4, 512, 25_000, 0.2)


def test_the_probe_papers_models_are_chosen_by_bleu_and_the_others_by_perplexity() -> None:
    assert {name for name, one in PRESETS.items() if one.best_by == "bleu-2"} == set(PROBED)
    assert {one.best_by for one in PRESETS.values()} == {"bleu-2", "perplexity"}


@pytest.mark.parametrize(
    ("name", "ignored"),
    [
        ("static", {"heads", "norm"}),
        ("lstm", {"heads", "norm", "scoring"}),
        ("transformer", {"words_within"}),
    ],
)
def test_what_a_structure_ignores_changes_none_of_its_weights(name: str, ignored: set[str]) -> None:
    settings = replace(PRESETS[name].settings, layers=1, width=8, embedding=8, vocabulary=9, words_within=0.1)
    assert settings.ignored == ignored
    changes = {"heads": 4, "norm": "pre", "scoring": "additive", "words_within": 9.0}
    other = replace(settings, **{name: changes[name] for name in ignored})  # type: ignore[arg-type]
    weights = []
    for one in (settings, other):
        torch.manual_seed(0)
        weights.append(Seq2Seq(one).state_dict())
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_a_parameter_count_by_hand() -> None:
    """V = 10 words, e = 3, w = 4, 2 layers: word vectors 30, each LSTM 16 (3 + 4) + 16 · 8 + 2 · 16, output 50."""
    settings = Structure(layers=2, width=4, embedding=3, vocabulary=10)
    assert parameter_count(settings) == 30 + 2 * (112 + 128 + 32) + 50


@pytest.mark.parametrize("name", PRESETS)
def test_settings_and_recipes_survive_json(name: str) -> None:
    one = PRESETS[name]
    assert Structure.from_dict(one.settings.to_dict()) == one.settings
    assert Recipe.from_dict(one.recipe.to_dict()) == one.recipe


def test_words_of_a_command_line_override_settings() -> None:
    changed = PRESETS["static"].settings.override({"layers": "2", "integration": "true", "context_tokens": "50"})
    assert (changed.layers, changed.integration, changed.context_tokens) == (2, True, 50)
    assert changed.override({"context_tokens": "none"}).context_tokens is None
    assert PRESETS["static"].recipe.override({"clip": "none", "learning_rate": "0.5"}).clip is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"layers": 0}, "layers is 0, expected more than 0"),
        ({"layers": "two"}, "layers is 'two', expected int"),
        ({"layers": 2.5}, "layers is 2.5, expected int"),
        ({"integration": 1}, "integration is 1, expected bool"),
        ({"dropout": 1.0}, "dropout is 1.0, expected a share from 0 to below 1"),
        ({"dropout": float("nan")}, "dropout is nan, expected a share"),
        ({"encoder": "lstmm"}, "Unknown encoder 'lstmm'. Did you mean 'lstm'?"),
        ({"encoder": 3}, "encoder is 3, expected lstm or bilstm or hierarchical or transformer"),
        ({"widht": 3}, "Unknown setting 'widht'. Did you mean 'width'?"),
        ({"encoder": "hierarchical", "attention": "token"}, "keeps utterances, not tokens"),
        ({"encoder": "hierarchical", "integration": True}, "already has an LSTM over utterances"),
        ({"encoder": "bilstm", "integration": True}, "integration needs states that read forward"),
        ({"encoder": "transformer"}, "a transformer attends to tokens"),
        ({"encoder": "transformer", "attention": "token", "heads": 3}, "no multiple of twice the 3 heads"),
        ({"encoder": "transformer", "attention": "token", "embedding": 128}, "as wide as its layers"),
    ],
)
def test_settings_that_do_not_fit_are_refused_in_one_line(values: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Structure.from_dict(values)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("values", [{"learning_rate": 0}, {"epochs": -1}, {"clip": 0.0}, {"precision": "fp8"}])
def test_recipes_that_do_not_fit_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Recipe.from_dict(values)


def test_an_unknown_preset_names_the_closest() -> None:
    with pytest.raises(UsageError, match="Did you mean 'static-ui'"):
        preset("static-iu")
