from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from dialoscope.engage import storage
from dialoscope.engage.predictor import Predictor
from dialoscope.errors import DialoscopeError, ModelError, OutputError

Make = Callable[..., Predictor]
DIALOGUES = [["hello there", "where is the old bridge?", "bye"], ["good night", "[SEP] see you"]]
PLAIN = {"engage.json", "weights.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"}


@pytest.fixture
def saved(predictor: Make, tmp_path: Path) -> Path:
    storage.save(tmp_path / "mine", predictor(history=2))
    return tmp_path / "mine"


def refused(folder: Path) -> str:
    """The message that a folder is refused with."""
    with pytest.raises(DialoscopeError) as caught:
        storage.load(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def rewrite(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change engage.json, as somebody could who knows how hashes are written."""
    about = json.loads((folder / "engage.json").read_text())
    change(about)
    for name in about["files"] if isinstance(about.get("files"), dict) else []:
        if (folder / name).is_file():
            about["files"][name]["sha256"] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "engage.json").write_text(json.dumps(about))


def test_its_files_are_as_readable_as_others(saved: Path, tmp_path: Path) -> None:
    """Safetensors writes for its user alone; others may have to read."""
    (tmp_path / "other").touch()
    assert {file.stat().st_mode for file in saved.iterdir()} == {(tmp_path / "other").stat().st_mode}


# --- Round trips ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"history": 2, "pooling": "max"}, {"classes": 5}, {"is_flat": True}], ids=str)
def test_a_predictor_comes_back_with_its_name_scores_and_origin(
    predictor: Make, tmp_path: Path, options: dict[str, Any]
) -> None:
    made = replace(predictor(**options), origin={"training": ["toy@1"], "selected_on": ["a"]})
    storage.save(tmp_path / "mine", made)
    found = storage.load(tmp_path / "mine")
    assert (found.name, found.settings, dict(found.origin)) == (made.name, made.settings, dict(made.origin))
    assert found.selected_on == {"a"}
    for before, after in zip(made.predict(DIALOGUES), found.predict(DIALOGUES), strict=True):
        np.testing.assert_array_equal(before, after)


def test_only_known_files_are_written(saved: Path, predictor: Make, tmp_path: Path) -> None:
    assert {file.name for file in saved.iterdir()} == PLAIN
    standing = storage.Standing({"step": 7}, {"0.step": torch.ones(())})
    storage.save(tmp_path / "last", predictor(), standing=standing)
    assert {file.name for file in (tmp_path / "last").iterdir()} == PLAIN | {"training.json", "optimiser.safetensors"}
    found = storage.read_standing(tmp_path / "last")
    assert (found.state, found.optimiser["0.step"].item()) == ({"step": 7}, 1.0)


def test_a_path_means_the_predictor_in_it_then_the_best_then_the_last(predictor: Make, tmp_path: Path) -> None:
    for place in ("last", "best"):
        storage.save(tmp_path / "run" / place, predictor())
        assert storage.find(tmp_path / "run") == tmp_path / "run" / place
    assert storage.find(tmp_path / "run" / "last") == tmp_path / "run" / "last"


def test_a_predictor_is_replaced_by_a_predictor(saved: Path, predictor: Make) -> None:
    storage.save(saved, predictor(history=1))
    assert storage.load(saved).settings.history == 1


@pytest.mark.parametrize("ours", [True, False])
def test_a_folder_with_other_files_is_not_overwritten(saved: Path, predictor: Make, ours: bool) -> None:
    if not ours:
        (saved / "engage.json").unlink()
    (saved / "thesis.tex").write_text("all of it")
    with pytest.raises(OutputError, match="expected a predictor to replace, found other files"):
        storage.save(saved, predictor())
    assert (saved / "thesis.tex").read_text() == "all of it"


# --- What is refused --------------------------------------------------------------------------------------------------


def test_tampered_weights_are_refused(saved: Path) -> None:
    content = bytearray((saved / "weights.safetensors").read_bytes())
    content[-1] ^= 1
    (saved / "weights.safetensors").write_bytes(content)
    assert "weights.safetensors: expected the content that engage.json vouches for" in refused(saved)


@pytest.mark.parametrize("name", sorted(PLAIN - {"engage.json"}))
def test_a_missing_file_is_named(saved: Path, name: str) -> None:
    (saved / name).unlink()
    assert f"{name}: expected this file of the predictor, found nothing" in refused(saved)


def test_a_foreign_folder_is_refused(tmp_path: Path, bert: Path) -> None:
    for folder in (tmp_path, bert, tmp_path / "nowhere"):
        assert "expected a folder written by dialoscope engage train" in refused(folder)


def test_pickled_weights_are_never_unpickled(saved: Path, tmp_path: Path) -> None:
    (saved / "weights.safetensors").write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    rewrite(saved, lambda about: None)
    assert "weights.safetensors: expected safetensors" in refused(saved)
    assert not (tmp_path / "sprung").exists()


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.mkdir, (self.path,)


def without(key: str) -> Callable[[dict[str, Any]], Any]:
    return lambda about: about.pop(key)


def with_settings(**changed: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda about: about["settings"].update(changed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_settings(history="2"), "Setting 'history' must be int, found '2'."),
        (with_settings(is_flat=0), "Setting 'is_flat' must be bool, found 0."),
        (with_settings(pooling="sum"), "Unknown pooling 'sum'."),
        (with_settings(history=-1), "A history has 0 turns or more, found -1."),
        (with_settings(depth=3), "Unknown setting 'depth'."),
        (with_settings(classes=5), "expected the weights of its configuration"),
        (without("settings"), "expected 'settings' as a JSON object, found NoneType."),
        (lambda about: about.update(settings=[]), "expected 'settings' as a JSON object, found list."),
        (without("origin"), "expected 'origin' as a JSON object."),
        (without("files"), "expected 'files' with weights.safetensors, config.json and tokenizer.json."),
        (lambda about: about["files"].update({"../x": {}}), "expected the files of a predictor, found '../x'."),
        (lambda about: about.update(format="other"), "expected format 'dialoscope-engage' 1, found 'other' 1."),
        (lambda about: about.update(schema=2), "expected format 'dialoscope-engage' 1, found 'dialoscope-engage' 2."),
    ],
)
def test_a_description_that_is_wrong_is_refused(
    saved: Path, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    rewrite(saved, change)
    assert message in refused(saved)


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "expected JSON"), ("[]", "expected a JSON object, found list"), ("", "expected JSON")],
)
def test_a_description_that_is_no_json_is_refused(saved: Path, content: str, message: str) -> None:
    (saved / "engage.json").write_text(content)
    assert message in refused(saved)


def test_weights_of_another_shape_are_refused(saved: Path) -> None:
    tensors = load_file(saved / "weights.safetensors")
    save_file({**tensors, "head.weight": torch.zeros(1, 7)}, saved / "weights.safetensors")
    rewrite(saved, lambda about: None)
    assert "expected the weights of its configuration, found others" in refused(saved)


def test_missing_weights_are_never_made_up(saved: Path) -> None:
    tensors = load_file(saved / "weights.safetensors")
    save_file({key: one for key, one in tensors.items() if "layer.1" not in key}, saved / "weights.safetensors")
    rewrite(saved, lambda about: None)
    assert "expected the weights of its configuration, found others" in refused(saved)


def test_a_configuration_of_another_kind_is_refused(saved: Path) -> None:
    (saved / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    rewrite(saved, lambda about: None)
    assert "expected an encoder of BERT's kind, found gpt2" in refused(saved)


def test_code_in_a_folder_is_not_run(saved: Path, tmp_path: Path) -> None:
    config = json.loads((saved / "config.json").read_text())
    config |= {"model_type": "unheard-of", "auto_map": {"AutoConfig": "README.Config"}}
    (saved / "config.json").write_text(json.dumps(config))
    (saved / "README.py").write_text(f"import pathlib; pathlib.Path({str(tmp_path / 'sprung')!r}).mkdir()")
    rewrite(saved, lambda about: None)
    assert "could not be loaded" in refused(saved)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("name", ["added_tokens.json", "vocab.txt", "pytorch_model.bin", "own.py"])
def test_a_file_that_nobody_vouches_for_is_refused(saved: Path, name: str) -> None:
    (saved / name).write_text(json.dumps({"bridge": 150}))  # the tokenizer would take this word from added_tokens.json
    assert f"found '{name}' as well" in refused(saved)


def test_notes_beside_a_predictor_do_no_harm(saved: Path) -> None:
    (saved / "README.md").write_text("Mine.")
    assert storage.load(saved).settings.history == 2


def test_a_predictor_alone_has_no_run_to_go_on_with(saved: Path) -> None:
    with pytest.raises(ModelError, match="expected the state of a training run"):
        storage.read_standing(saved)


def test_intervals_of_an_older_predictor_ask_for_a_new_fit(tmp_path: Path, predictor: Callable[..., Predictor]) -> None:
    storage.save(tmp_path / "old", predictor())
    about = tmp_path / "old" / storage.ABOUT
    older = {"edges": [], "low": [-0.1], "high": [0.1], "share": 0.9}
    about.write_text(json.dumps({**json.loads(about.read_text()), "calibration": older}))
    with pytest.raises(ModelError, match=r"engage\.json: [^\n]*fit the predictor anew\.$"):
        storage.load(tmp_path / "old")
