"""Runs the Python files of docs/17_from_python.md and compares what they print with the page, and the example project.

KVSCOPE_UPDATE=1 writes what is printed into the page.
"""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "17_from_python.md"
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "kvscope.pytest_plugin", "-c", "/dev/null", "--rootdir=."]
FILE = re.compile(r"^```python (\S+)\n(.*?)^```$", re.M | re.S)


def python(arguments, folder):
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=600,
                          check=False)


@pytest.mark.parametrize("name,source", FILE.findall(PAGE.read_text()), ids=lambda text: text.split("\n")[0][:20])
def test_a_file_of_the_page_prints_what_the_page_shows(name, source, tmp_path):
    for module in re.findall(r"^import (triton|torch|numba)$", source, re.M):
        if not importlib.util.find_spec(module):
            pytest.skip(f"{module} is not installed: pip install {module}")
    (tmp_path / name).write_text(source)
    (tmp_path / "apps").symlink_to(ROOT / "apps")
    done = python([name], tmp_path)
    assert done.returncode == 0, done.stderr
    text = PAGE.read_text()
    shown = re.compile(rf"^```text {re.escape(name)}\n(.*?)^```$", re.M | re.S)
    if os.environ.get("KVSCOPE_UPDATE"):
        PAGE.write_text(shown.sub(lambda _: f"```text {name}\n{done.stdout}```", text))
    else:
        assert shown.search(text)[1] == done.stdout


def test_the_example_project_passes_and_its_ptx_is_of_its_source():
    folder = ROOT / "docs" / "examples" / "check_my_kernel"
    done = python([*PYTEST, "test_decode.py"], folder)
    assert done.returncode == 0 and "6 passed, 1 skipped" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("words, said, report", [
    (r"change `(.*?)` in `decode.cu` to `(.*?)`", "diagnosis  query head h uses KV head h % KV heads", "3 rejected outputs"),
    (r"With `(.*?)` changed to `(.*?)` instead", "OUT_OF_BOUNDS", "0 rejected outputs")])
def test_the_exercise_of_the_page_ends_as_the_page_states(tmp_path, words, said, report):
    nvcc = shutil.which("nvcc", path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin")
    if nvcc is None:
        pytest.skip("nvcc is not installed: the changed kernel cannot be compiled")
    folder = tmp_path / "check_my_kernel"
    shutil.copytree(ROOT / "docs" / "examples" / "check_my_kernel", folder)
    old, new = re.search(words, PAGE.read_text().replace("\n", " ")).groups()
    source = (folder / "decode.cu").read_text()
    assert source.count(old) == 1
    (folder / "decode.cu").write_text(source.replace(old, new))
    subprocess.run([nvcc, "-ptx", "-lineinfo", "-arch=sm_90a", "decode.cu"], cwd=folder, check=True)
    done = python([*PYTEST, "--kvscope-report=report.html", "test_decode.py"], folder)
    assert done.returncode == 1 and said in done.stdout, done.stdout + done.stderr
    assert report in (folder / "report.html").read_text()


def test_the_triton_example_passes_or_is_skipped_with_the_reason():
    done = python([*PYTEST, "-rs", "test_triton_kernels.py"], ROOT / "docs" / "examples" / "check_triton_kernels")
    if not importlib.util.find_spec("triton"):
        assert done.returncode == 5 and "Triton is not installed" in done.stdout
        pytest.skip("Triton is not installed: pip install triton")
    assert done.returncode == 0 and re.search("[67] passed", done.stdout), done.stdout + done.stderr
