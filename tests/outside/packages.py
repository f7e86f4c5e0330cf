"""Packages of PyPI: downloaded once by pip, unpacked once, below the cache folder."""
from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from recipe import Package, RecipeError


def _download(package: Package, folder: Path) -> Path:
    """The archive of the package: a wheel, or a source archive. pip verifies its checksum against the index."""
    folder.mkdir(parents=True, exist_ok=True)
    form = "--only-binary" if package.form == "wheel" else "--no-binary"
    ending = "*.whl" if package.form == "wheel" else "*.tar.gz"
    found = sorted(folder.glob(ending))
    if not found:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", form, ":all:", "--dest",
                   str(folder), f"{package.name}=={package.version}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = sorted(folder.glob(ending))
        if done.returncode != 0 or not found:
            raise RecipeError(f"{package.name} {package.version} cannot be downloaded as {package.form}: "
                              f"{done.stderr.strip()[-400:]}")
    return found[0]


def unpacked(package: Package, cache: Path) -> Path:
    """The folder with the files of the package. A mark at its end tells a complete folder from an interrupted one."""
    folder = cache / f"{package.name}-{package.version}"
    files, mark = folder / "files", folder / "unpacked"
    if not mark.exists():
        archive = _download(package, folder)
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as opened:
                opened.extractall(files)
                for one in opened.infolist():  # zipfile leaves out the mode: Triton brings an assembler that is run
                    if one.external_attr >> 16 & 0o111 and not one.is_dir():
                        (files / one.filename).chmod(0o755)
        else:
            with tarfile.open(archive) as opened:
                names = [one.name for one in opened.getmembers()]
                outside = [name for name in names if name.startswith("/") or ".." in name.split("/")]
                if outside:
                    raise RecipeError(f"{archive.name}: member {outside[0]!r} is outside of the archive's folder")
                opened.extractall(files)
        mark.write_text(archive.name + "\n")
    return files
