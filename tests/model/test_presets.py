from __future__ import annotations

from dataclasses import replace

import pytest

from turnwise.errors import UsageError
from turnwise.model.network import parameter_count
from turnwise.model.presets import PRESETS, preset
from turnwise.model.settings import Recipe, Settings

PROBED = [name for name, one in PRESETS.items() if one.millions]


def test_the_twelve_presets_are_named_as_in_the_design() -> None:
    assert list(PRESETS) == [
        "non-hier", "static", "static-ui", "dynamic", "dynamic-ui", "lstm", "lstm-attn", "bilstm-attn", "hred",
        "transformer", "overlap-lstm", "overlap-transformer",
    ]  # fmt: skip


@pytest.mark.parametrize("name", PROBED)
def test_sizes_are_those_of_the_probe_papers_table_3(name: str) -> None:
    """At 17,000 words all five round to the printed millions; the paper says 13k and 16k for its two corpora."""
    settings = replace(PRESETS[name].settings, vocabulary=17_000)
    assert round(parameter_count(settings) / 1e6) == PRESETS[name].millions


def test_a_parameter_count_by_hand() -> None:
    """V = 10 words, e = 3, w = 4, 2 layers: word vectors 30, each LSTM 16 (3 + 4) + 16 · 8 + 2 · 16, output 50."""
    settings = Settings(layers=2, width=4, embedding=3, vocabulary=10)
    assert parameter_count(settings) == 30 + 2 * (112 + 128 + 32) + 50


@pytest.mark.parametrize("name", PRESETS)
def test_settings_and_recipes_survive_json(name: str) -> None:
    one = PRESETS[name]
    assert Settings.from_dict(one.settings.to_dict()) == one.settings
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
        Settings.from_dict(values)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("values", [{"learning_rate": 0}, {"epochs": -1}, {"clip": 0.0}, {"precision": "fp8"}])
def test_recipes_that_do_not_fit_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Recipe.from_dict(values)


def test_an_unknown_preset_names_the_closest() -> None:
    with pytest.raises(UsageError, match="Did you mean 'static-ui'"):
        preset("static-iu")
