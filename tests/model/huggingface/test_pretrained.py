from __future__ import annotations

import importlib
import importlib.util
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dialoscope.errors import MissingExtraError, ModelError, UsageError
from dialoscope.model.huggingface import load_huggingface, pretrained
from dialoscope.model.huggingface.adapter import HuggingFaceModel
from dialoscope.model.protocol import DialogueModel

Folder = Callable[[str], Path]
Load = Callable[..., HuggingFaceModel]


@pytest.fixture
def copy(checkpoint: Folder, tmp_path: Path) -> Path:
    """A checkpoint to break."""
    return Path(shutil.copytree(checkpoint("gpt2"), tmp_path / "broken"))


def configure(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def message(given: Path | str, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        load_huggingface(given, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_loaded_checkpoint_is_a_dialogue_model(model: Load) -> None:
    assert isinstance(model("llama"), DialogueModel)


def test_a_name_tells_checkpoint_and_weights(model: Load, copy: Path) -> None:
    from safetensors.torch import load_file, save_file

    name = model("gpt2").name
    same = load_huggingface(copy).name
    weights = load_file(copy / "model.safetensors")
    weights["transformer.ln_f.bias"] += 0.5
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    assert name.startswith("gpt2@")
    assert same == name.replace("gpt2", "broken")
    assert load_huggingface(copy).name != same


def test_a_name_tells_which_words_a_tokenizer_has(model: Load, copy: Path) -> None:
    path = copy / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    words = tokenizer["model"]["vocab"]
    words["a"], words["b"] = words["b"], words["a"]  # the same words and numbers, exchanged
    path.write_text(json.dumps(tokenizer))
    assert load_huggingface(copy).name.partition("@")[2] != model("gpt2").name.partition("@")[2]


def test_a_name_tells_how_a_tokenizer_writes_conversations(model: Load, copy: Path) -> None:
    path = copy / "tokenizer_config.json"
    template = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
    path.write_text(json.dumps({**json.loads(path.read_text()), "chat_template": template}))
    assert load_huggingface(copy).name.partition("@")[2] != model("gpt2").name.partition("@")[2]


def test_settings_tell_what_a_number_depends_on(model: Load) -> None:
    assert model("gpt2").settings == {
        "joining": "plain:'\\n'", "layer": -1, "pooling": "last", "window": 128, "dtype": "float32"
    }  # fmt: skip


def test_pickled_weights_are_refused(copy: Path) -> None:
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    assert "must hold safetensors weights, found only pytorch_model.bin" in message(copy)


def test_a_folder_without_weights_is_refused(copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    assert "must hold safetensors weights, found none" in message(copy)


def test_a_folder_without_configuration_is_refused(tmp_path: Path) -> None:
    assert "holds no config.json" in message(tmp_path)


@pytest.mark.parametrize(
    "given",
    [
        "/no/such/folder",
        "./missing",
        "~/missing",
        "a/b/c",
        "missing/",
        "runs\\missing",
        "missing.gguf",
        "best.SAFETENSORS",
    ],
)
def test_a_path_that_does_not_exist_is_refused(given: str) -> None:
    assert message(given) == f"No checkpoint at '{given}': there is no such folder or file."


def test_what_is_missing_in_a_folder_that_is_here_is_not_looked_for_on_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    assert message("runs/mien") == "No checkpoint at 'runs/mien': there is no such folder or file."
    assert pretrained.source_of("Qwen/Qwen2.5-0.5B") == pretrained.Source("Qwen/Qwen2.5-0.5B")
    assert pretrained.source_of("gpt2") == pretrained.Source("gpt2")


def test_a_file_that_is_no_checkpoint_is_refused(file: Callable[[str, str | bytes], Path]) -> None:
    assert "is another kind of file" in message(file("notes.txt", "x"))


def test_a_hub_name_that_cannot_be_fetched_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AutoConfig

    def refuse(place: str, **options: Any) -> None:
        assert (place, options["trust_remote_code"]) == ("nobody/nothing", False)
        raise OSError("We couldn't connect\nto the hub")

    monkeypatch.setattr(AutoConfig, "from_pretrained", refuse)
    assert message("nobody/nothing") == (
        "No folder 'nobody/nothing' is here, and as a name on the Hugging Face hub it could not be loaded: "
        "We couldn't connect to the hub"
    )


def test_a_checkpoints_own_code_is_never_run(copy: Path, tmp_path: Path) -> None:
    (copy / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Config: ...\n")
    configure(copy, model_type="evil", auto_map={"AutoConfig": "evil.Config"})
    assert "could not be loaded" in message(copy)
    assert not (tmp_path / "ran").exists()


def test_weights_that_a_checkpoint_lacks_are_not_made_up(copy: Path) -> None:
    configure(copy, n_layer=3, num_hidden_layers=3)
    assert "lacks 12 of its weights, such as transformer.h.2." in message(copy)


def test_a_tampered_file_is_refused(copy: Path) -> None:
    (copy / "model.safetensors").write_bytes(b"\xff" * 64)
    assert "could not be loaded" in message(copy)


def test_an_unknown_dtype_gets_a_suggestion(checkpoint: Folder) -> None:
    assert message(checkpoint("gpt2"), dtype="bfloat") == "Unknown dtype 'bfloat'. Did you mean 'bfloat16'?"


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("tpu9", "Unknown device 'tpu9'. Give auto, cpu, cuda or cuda:N."),
        ("meta", "Device 'meta' cannot be used here (Tensor.item() cannot be called on meta tensors). Give --device"),
        ("mps", "Device 'mps' cannot be used here ("),
        ("xla", "Device 'xla' cannot be used here ("),
    ],
)
def test_a_device_that_cannot_be_used_is_refused(checkpoint: Folder, device: str, expected: str) -> None:
    assert expected in message(checkpoint("gpt2"), device=device)


def test_a_model_that_does_not_fit_into_memory_is_one_line(checkpoint: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **options: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr(torch.nn.Module, "to", refuse)
    with pytest.raises(ModelError, match="'gpt2' does not fit into the memory of cpu"):
        load_huggingface(checkpoint("gpt2"))


def test_a_network_that_looks_ahead_is_refused(checkpoint: Folder) -> None:
    assert "'xlnet' looks ahead: its earlier predictions change with later words" in message(checkpoint("xlnet"))


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("config.json", {"n_layer": "two"}, "Field 'n_layer' expected int, got str"),
        ("config.json", {"n_embd": None}, "Field 'n_embd' expected int, got NoneType"),
        ("config.json", {"vocab_size": -5}, "could not be loaded: "),
        ("config.json", {"n_head": 3}, "could not be loaded: "),
        ("config.json", {"eos_token_id": "x"}, "Field 'eos_token_id' with value 'x'"),
        ("tokenizer_config.json", {"tokenizer_class": 3}, "could not be loaded: "),
        (
            "tokenizer_config.json",
            {"chat_template": "{{ 1 / 0 }}"},
            "cannot write this conversation (division by zero)",
        ),
        ("tokenizer_config.json", {"chat_template": "{% for"}, "cannot write this conversation (unexpected 'end of"),
        ("tokenizer_config.json", {"chat_template": "{{ messages.x.y }}"}, "cannot write this conversation"),
        ("generation_config.json", {"eos_token_id": "a"}, "eos_token_id must be the number of a token, found 'a'"),
        (
            "generation_config.json",
            {"eos_token_id": [1, None]},
            "eos_token_id must be the number of a token, found None",
        ),
        ("generation_config.json", [], "could not be loaded: TypeError"),
        ("tokenizer.json", {"version": "0"}, "could not be loaded: "),
    ],
)
def test_a_changed_setting_is_one_line(copy: Path, name: str, changes: Any, expected: str) -> None:
    path = copy / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes} if isinstance(changes, dict) else changes))
    assert expected in message(copy)


@pytest.mark.parametrize(("name", "window"), [("gpt2", 129), ("bart", 257)])
def test_a_window_beyond_the_positions_that_were_learnt_is_refused(checkpoint: Folder, name: str, window: int) -> None:
    assert f"cannot read a window of {window:,} tokens" in message(checkpoint(name), window=window)
    assert "at least one token" in message(checkpoint(name), window=0)


def test_every_position_that_was_learnt_can_be_read(checkpoint: Folder) -> None:
    loaded = load_huggingface(checkpoint("gpt2"), window=128)
    sample = loaded.sampler.pairs([["a" * 124]], ["bb"])[0]  # a newline after each
    assert (sample.cut, len(sample.source) + len(sample.target)) == (0, 128)
    assert loaded.log_likelihood([["a" * 124]], ["bb"])[0].tokens == 3


def test_positions_that_are_computed_can_be_asked_for_more(checkpoint: Folder) -> None:
    assert load_huggingface(checkpoint("llama"), window=300).sampler.window == 300


def test_quiet_loading_shows_no_bar(checkpoint: Folder, capfd: pytest.CaptureFixture[str]) -> None:
    load_huggingface(checkpoint("gpt2"))
    shown = capfd.readouterr().err
    load_huggingface(checkpoint("gpt2"), quiet=True)
    assert capfd.readouterr().err == ""
    load_huggingface(checkpoint("gpt2"))
    assert "Loading weights" in shown and "Loading weights" in capfd.readouterr().err  # afterwards as before


def test_quiet_loading_shows_no_bar_of_the_gguf_reader(capfd: pytest.CaptureFixture[str]) -> None:
    reader: Any = importlib.import_module("transformers.modeling_gguf_pytorch_utils")
    with pretrained.silent(True):
        assert list(reader.tqdm([1, 2], desc="Converting")) == [1, 2]
    assert capfd.readouterr().err == ""
    for is_quiet in (False, True):  # not asked to be quiet, and afterwards as before
        with pretrained.silent(is_quiet):
            pass
        assert list(reader.tqdm([1, 2], desc="Converting")) == [1, 2]
        assert "Converting" in capfd.readouterr().err


def test_a_missing_extra_prints_its_install_line(checkpoint: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        pretrained, "find_spec", lambda name: None if name == "torch" else importlib.util.find_spec(name)
    )
    with pytest.raises(MissingExtraError, match=r"pip install 'dialoscope\[hf\]'"):
        load_huggingface(checkpoint("gpt2"))


def test_gguf_needs_its_reader(file: Callable[[str, str | bytes], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrained, "find_spec", lambda name: None)
    assert "pip install 'dialoscope[gguf]'" in message(file("a.gguf", "x"))


def test_a_folder_with_one_gguf_file_is_that_file(file: Callable[[str, str | bytes], Path]) -> None:
    pytest.importorskip("gguf")
    path = file("one.gguf", "x")
    assert pretrained.source_of(path.parent) == pretrained.source_of(path)
    file("two.gguf", "x")
    assert "holds 2 .gguf files: name one of them, such as one.gguf" in message(path.parent)


@pytest.mark.parametrize(
    ("name", "kind"), [("gpt2", "causal"), ("llama", "causal"), ("t5", "encoder-decoder"), ("bert", "encoder")]
)
def test_the_kind_is_told_by_the_architecture(model: Load, name: str, kind: str) -> None:
    assert model(name).network.kind == kind


def test_half_precision_reads_too(checkpoint: Folder) -> None:
    loaded = load_huggingface(checkpoint("llama"), dtype="bfloat16")
    assert loaded.settings["dtype"] == "bfloat16"
    assert loaded.attend([["hello", "you"]], ["fine"])[0].log_share.shape == (2, 4, 2)
    assert loaded.encode([["hello"]]).dtype == "float32"
