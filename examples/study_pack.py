"""What a machine with a GPU and no network needs for the studies, as archives that Python and tar can open."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
STUDIES, ENGAGEMENT, ENCODER = "studies.tar.xz", "engagement.tar.xz", "encoder.tar.xz"
ENGAGING = ("empathetic_dialogues", "personachat", "wizard_of_wikipedia", "chitchat")
UNSPLIT = ("personachat", "wizard_of_wikipedia", "chitchat")  # a tenth each becomes the validation and the test split


def pack(data: Path, out: Path, site: Path | None) -> None:
    """Write one archive of the sources, the corpora, and packages that the other machine lacks."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        corpora = Path(folder) / "corpora"
        _gather(data, corpora)
        with tarfile.open(out / STUDIES, "w:xz", preset=9) as archive:
            for part in ("src", "examples"):
                archive.add(ROOT / part, part, filter=_without_compiled)
            archive.add(corpora, "corpora")
            if site is not None:
                archive.add(site, "site", filter=_without_compiled)
            _add_metadata(archive)
    _say_size(out / STUDIES)


def _gather(data: Path, corpora: Path) -> None:
    """DailyDialog as published and cleaned, with the pairs of the leak study, and Ubuntu IRC, as Parquet."""
    from dialoscope.corpus import load, merge_turns, write

    (corpora / "clean" / "corpus").mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        clean, unpacked = Path(folder) / "clean", Path(folder) / "ubuntu"
        command = [sys.executable, "-m", "dialoscope", "overlap", "clean", data / "dailydialog", "--threshold", "0.75"]
        sizes = ["--test", "1000", "--validation", "1000", "--seed", "0", "--out", clean, "--quiet"]
        subprocess.run([*map(str, (*command, *sizes))], check=True, stdout=subprocess.DEVNULL)
        zipfile.ZipFile(data / "ubuntu_irc" / "ubuntu_irc.zip").extractall(unpacked)
        corpus_of_file = {
            "clean/corpus/corpus.parquet": load(clean / "corpus"),
            "dailydialog.parquet": load(data / "dailydialog"),
            "ubuntu_irc.parquet": merge_turns(load(unpacked)),
        }
        for turns in (1, 3):
            (corpora / "clean" / f"pairs-{turns}").mkdir()
            shutil.copy(clean / f"pairs-{turns}" / "test.parquet", corpora / "clean" / f"pairs-{turns}")
    for name, corpus in corpus_of_file.items():
        write(corpus, corpora / name, to="parquet", overwrite=True)
        print(name, corpus.splits, "test split", corpus.split("test").fingerprint, flush=True)


def _without_compiled(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in member.name or member.name.endswith((".pyc", ".egg-info")) else member


def _add_metadata(archive: tarfile.TarFile) -> None:
    """Add the package metadata; without it a bare folder of sources has no version."""
    from dialoscope.record import version

    text = f"Metadata-Version: 2.1\nName: dialoscope\nVersion: {version()}\n".encode()
    member = tarfile.TarInfo(f"src/dialoscope-{version()}.dist-info/METADATA")
    member.size = len(text)
    archive.addfile(member, io.BytesIO(text))


def _say_size(path: Path) -> None:
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB", flush=True)


# --- Remaining depth --------------------------------------------------------------------------------------------------


def pack_engagement(data: Path, out: Path) -> None:
    """Write the corpora that depth is learnt from with what people rated, and MiniLM in half precision."""
    from dialoscope.corpus import load, resplit, write

    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        corpora = Path(folder) / "corpora"
        corpora.mkdir()
        for name in ENGAGING:
            corpus = load(name if name == "chitchat" else data / name)
            if name in UNSPLIT:
                corpus = resplit(corpus, validation=len(corpus) // 10, test=len(corpus) // 10, seed=0)
            write(corpus, corpora / f"{name}.parquet", to="parquet", overwrite=True)
            print(name, corpus.splits, flush=True)
        shutil.copytree(data / "dailydialog_human", corpora / "human")
        _halve_encoder(Path(folder) / "encoder")
        for name, part in ((ENGAGEMENT, "corpora"), (ENCODER, "encoder")):
            with tarfile.open(out / name, "w:xz", preset=3) as archive:
                archive.add(Path(folder) / part, part)
            _say_size(out / name)


def _halve_encoder(folder: Path) -> None:
    """MiniLM from its package, with weights in half precision: half the size, and they are read into fp32 again."""
    import torch

    from dialoscope.engage.encoder import Encoder

    encoder = Encoder.load("minilm")
    encoder.network.to(torch.float16).save_pretrained(folder)
    encoder.tokenizer.save_pretrained(folder)
