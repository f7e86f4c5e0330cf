"""A Python with a package triton that compiles nothing: it returns the PTX that Triton made of the submissions in docs/labs.

    python = standin_python(folder)        a program for `kvscope lab check --python`

The package is tests/labs/triton_package. The PTX is in triton_kept.json.xz: {"triton": version, "kept": {SHA-256 of the file:
what triton_compile.py wrote}}. tests/labs/triton_test.py --update writes it again.
"""
import hashlib
import json
import lzma
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
KEPT = HERE / "triton_kept.json.xz"


def number_of(text):
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def read_kept():
    with lzma.open(KEPT, "rt", encoding="utf-8") as file:
        return json.load(file)


def write_kept(version, products):
    """`products`: {text of a submission: what triton_compile.py wrote}"""
    kept = {number_of(text): product for text, product in products.items()}
    text = json.dumps({"triton": version, "kept": kept}, indent=1, sort_keys=True)
    KEPT.write_bytes(lzma.compress(text.encode("utf-8"), preset=9 | lzma.PRESET_EXTREME))


def standin_python(folder):
    """Writes the package and the program to `folder`; returns the program's path."""
    folder = pathlib.Path(folder).resolve()
    package = folder / "packages" / "triton"
    shutil.copytree(HERE / "triton_package" / "triton", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "kept").mkdir()
    for number, product in read_kept()["kept"].items():
        (package / "kept" / number).write_text(product, encoding="utf-8")
    program = folder / "python3"
    program.write_text(f"#!/bin/sh\nPYTHONPATH='{folder / 'packages'}' exec '{sys.executable}' \"$@\"\n", encoding="utf-8")
    program.chmod(0o755)
    return str(program)
