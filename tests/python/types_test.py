"""The package is typed, and its generated constructors are those of the layouts."""
import pathlib
import subprocess
import sys

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "apps" / "python"


def test_mypy_strict(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed: apt-get install mypy")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", f"--cache-dir={tmp_path}", "-p", "kvscope"],
                          cwd=PACKAGE,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_constructors_are_generated():
    done = subprocess.run([sys.executable, "generate_layouts.py", "--check"], cwd=PACKAGE, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
