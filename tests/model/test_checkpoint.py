"""Models on disk: what is written is read back, and whatever was tampered with is refused in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from dialoscope.errors import DialoscopeError, ModelError, OutputError, UsageError
from dialoscope.model import Structure, Vocabulary, load
from dialoscope.model.checkpoint import Checkpoint, copy_checkpoint, load_model, read_checkpoint, read_state, save_model
from dialoscope.model.network import Seq2Seq

VOCABULARY = Vocabulary.of(["is it far ? no , it is near ."], size=20)
SETTINGS = Structure(attention="static", layers=1, width=8, embedding=8, vocabulary=len(VOCABULARY))
CONTEXTS = [["is it far?"], ["no, it is near.", "is it?"]]


def checkpoint() -> Checkpoint:
    torch.manual_seed(0)
    return Checkpoint(Seq2Seq(SETTINGS), VOCABULARY, SETTINGS, "static")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_model(tmp_path / "model", checkpoint())
    return tmp_path / "model"


def test_a_model_is_read_back_as_it_was(folder: Path) -> None:
    read = read_checkpoint(folder)
    assert (read.settings, read.preset) == (SETTINGS, "static")
    assert read.vocabulary.to_json() == VOCABULARY.to_json()
    before, after = checkpoint().network.state_dict(), read.network.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_loaded_model_answers_and_names_its_weights(folder: Path) -> None:
    one, again = load(folder, device="cpu"), load_model(folder)
    assert one.name == again.name
    assert one.name.startswith("static@")
    assert one.generate(CONTEXTS) == again.generate(CONTEXTS)
    assert len(one.log_likelihood(CONTEXTS, ["it is", ""])) == 2


def test_other_weights_have_another_name(folder: Path, tmp_path: Path) -> None:
    torch.manual_seed(1)
    save_model(tmp_path / "other", Checkpoint(Seq2Seq(SETTINGS), VOCABULARY, SETTINGS, "static"))
    assert load_model(tmp_path / "other").name != load_model(folder).name


@pytest.mark.parametrize(("present", "meant"), [(["best", "last"], "best"), (["last", "epoch-001"], "last")])
def test_a_training_folder_means_its_best_model(present: list[str], meant: str, folder: Path, tmp_path: Path) -> None:
    for name in present:
        torch.manual_seed(len(name))
        save_model(tmp_path / "run" / name, Checkpoint(Seq2Seq(SETTINGS), VOCABULARY, SETTINGS, name))
    assert read_checkpoint(tmp_path / "run").preset == meant


def test_a_copy_has_the_same_files(folder: Path, tmp_path: Path) -> None:
    copy_checkpoint(folder, tmp_path / "best")
    copy_checkpoint(folder, tmp_path / "best")  # again, over the first
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert {file.name: file.read_bytes() for file in (tmp_path / "best").iterdir()} == files


@pytest.mark.parametrize(
    "changes",
    [{"layers": 20}, {"layers": 20, "attention": "token"}, {"layers": 20, "attention": "static", "integration": True}],
)
def test_many_layers_are_read_back(changes: dict[str, Any], tmp_path: Path) -> None:
    deep = Structure(width=4, embedding=4, vocabulary=len(VOCABULARY), **changes)
    save_model(tmp_path / "deep", Checkpoint(Seq2Seq(deep), VOCABULARY, deep, "deep"))
    assert read_checkpoint(tmp_path / "deep").settings == deep


def test_layers_of_a_transformer_are_read_back(tmp_path: Path) -> None:
    deep = Structure("transformer", "token", layers=20, width=4, embedding=4, vocabulary=len(VOCABULARY))
    save_model(tmp_path / "deep", Checkpoint(Seq2Seq(deep), VOCABULARY, deep, "deep"))
    assert read_checkpoint(tmp_path / "deep").settings == deep


@pytest.mark.parametrize(
    ("origin", "expected"), [({}, None), ({"context_turns": None}, None), ({"context_turns": 3}, 3)]
)
def test_a_loaded_model_knows_how_many_turns_it_was_trained_with(
    origin: dict[str, Any], expected: int | None, tmp_path: Path
) -> None:
    made = checkpoint()
    save_model(tmp_path / "model", Checkpoint(made.network, VOCABULARY, SETTINGS, "static", origin))
    assert load_model(tmp_path / "model").context_turns == expected


def test_only_a_checkpoint_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with pytest.raises(OutputError, match="found other files"):
        save_model(tmp_path / "thesis", checkpoint())
    assert (tmp_path / "thesis" / "chapter.txt").exists()


def test_the_state_of_a_run_is_kept_beside_the_model(tmp_path: Path) -> None:
    save_model(tmp_path / "last", checkpoint(), state={"epoch": 3}, optimiser={"0.exp_avg": torch.ones(2)})
    state, memory = read_state(tmp_path / "last")
    assert state == {"epoch": 3}
    assert memory["0.exp_avg"].tolist() == [1.0, 1.0]


def test_a_model_without_state_cannot_be_resumed(folder: Path) -> None:
    with pytest.raises(ModelError, match="found a model only"):
        read_state(folder)


# --- Tampered and foreign folders -------------------------------------------------------------------------------------


def describe(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = folder / "model.json"
    described = json.loads(path.read_text())
    path.write_text(json.dumps(change(described) or described))


def vouch(folder: Path) -> None:
    """Let model.json vouch for whatever the files now hold, as a careful forger would."""
    from dialoscope.model.vouched import sha256

    def change(described: dict[str, Any]) -> None:
        for name in described["files"]:
            file = folder / name
            described["files"][name] = {"bytes": file.stat().st_size, "sha256": sha256(file)}

    describe(folder, change)


def forge(change: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], None]:
    def tamper(folder: Path) -> None:
        weights = load_file(folder / "weights.safetensors")
        change(weights)
        save_file(weights, folder / "weights.safetensors")
        vouch(folder)

    return tamper


def pickle_weights(folder: Path) -> None:
    torch.save({"words.weight": torch.ones(1)}, folder / "weights.safetensors")
    vouch(folder)


def flip_a_bit(folder: Path) -> None:
    path = folder / "weights.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))


def cut_short(folder: Path) -> None:
    path = folder / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-9])


def foreign_words(folder: Path) -> None:
    (folder / "vocabulary.json").write_text("{}")
    vouch(folder)


def smaller_vocabulary(folder: Path) -> None:
    (folder / "vocabulary.json").write_text(Vocabulary.of(["it"], size=1).to_json())
    vouch(folder)


def settings(**changed: Any) -> Callable[[Path], None]:
    return lambda folder: describe(folder, lambda described: described["settings"].update(changed))


TAMPERED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no weights": (lambda folder: (folder / "weights.safetensors").unlink(), "expected this file"),
    "no vocabulary": (lambda folder: (folder / "vocabulary.json").unlink(), "expected this file"),
    "no description": (lambda folder: (folder / "model.json").unlink(), "written by dialoscope train"),
    "no JSON": (lambda folder: (folder / "model.json").write_text("{"), "expected JSON"),
    "no object": (lambda folder: (folder / "model.json").write_text("[1]"), "expected a JSON object, found list"),
    "no text": (lambda folder: (folder / "model.json").write_bytes(b"\xff\xfe"), "expected JSON"),
    "deep JSON": (lambda folder: (folder / "model.json").write_text("[" * 100_000), "expected JSON"),
    "other format": (lambda folder: describe(folder, lambda one: {**one, "format": "x"}), "dialoscope-model"),
    "later schema": (lambda folder: describe(folder, lambda one: {**one, "schema": 2}), "found 'dialoscope-model' 2"),
    "no files": (lambda folder: describe(folder, lambda one: {**one, "files": []}), "expected 'files'"),
    "file elsewhere": (
        lambda folder: describe(folder, lambda one: one["files"].update({"../../etc/passwd": {}})),
        "found '../../etc/passwd'",
    ),
    "cut short": (cut_short, "bytes, found"),
    "flipped bit": (flip_a_bit, "SHA-256 differs"),
    "pickle": (pickle_weights, "expected safetensors"),
    "weight missing": (forge(lambda weights: weights.pop("out.bias")), "'out.bias' to be"),
    "weight too many": (forge(lambda weights: weights.update(x=torch.ones(1))), "'x' to be absent"),
    "other shape": (forge(lambda weights: weights.update({"out.bias": torch.ones(3)})), "found 3 float32"),
    "other type": (forge(lambda weights: weights.update({"out.bias": weights["out.bias"].long()})), "int64"),
    "unknown setting": (settings(colour="red"), "Unknown setting 'colour'"),
    "wrong type": (settings(layers="two"), "layers is 'two'"),
    "excluding settings": (settings(encoder="bilstm", integration=True), "integration"),
    "other size": (settings(width=16), "to be"),
    "enormous size": (settings(width=10**7, embedding=10**7), "to be"),
    "uncountable size": (settings(width=10**12, embedding=10**12), "far larger"),
    "endless layers": (settings(layers=10**12), "far larger"),
    "too many layers": (settings(layers=400), "far larger"),
    "endless transformer": (
        settings(encoder="transformer", attention="token", layers=10**12),
        "far larger",
    ),
    "no origin": (lambda folder: describe(folder, lambda one: {**one, "origin": [1]}), "'origin' as a JSON object"),
    "no turns": (lambda folder: describe(folder, lambda one: {**one, "origin": {"context_turns": "3"}}), "found 3"),
    "no settings": (lambda folder: describe(folder, lambda one: {**one, "settings": None}), "found NoneType"),
    "foreign words": (foreign_words, "expected a vocabulary"),
    "fewer words": (smaller_vocabulary, "expected one vocabulary size"),
}


@pytest.mark.parametrize("name", list(TAMPERED))
def test_a_tampered_folder_is_refused_in_one_line(name: str, folder: Path) -> None:
    tamper, message = TAMPERED[name]
    tamper(folder)
    with pytest.raises(ModelError) as caught:
        load(folder, device="cpu")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("files", "message"),
    [([], "an empty folder"), (["pytorch_model.bin"], "never read"), (["notes.txt"], "found notes.txt")],
)
def test_a_foreign_folder_says_what_was_expected(files: list[str], message: str, tmp_path: Path) -> None:
    for name in files:
        (tmp_path / name).write_text("")
    with pytest.raises(ModelError, match=message):
        load(tmp_path, device="cpu")


def test_a_path_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DialoscopeError) as caught:
        load(tmp_path / "nothing", device="cpu")
    assert "nothing" in str(caught.value)


@pytest.mark.parametrize(("device", "message"), [("gpu9", "Unknown device"), ("cuda:99", "cuda")])
def test_an_impossible_device_is_refused(device: str, message: str, folder: Path) -> None:
    if device.startswith("cuda") and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(UsageError, match=message):
        load(folder, device=device)


def test_an_unknown_number_type_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="Unknown dtype"):
        load(folder, device="cpu", dtype="float8")
