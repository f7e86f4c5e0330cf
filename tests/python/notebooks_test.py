"""The notebooks of docs/notebooks: their cells run, each exercise accepts its solution and rejects another answer.

The cells run in one namespace in a process of their own, with the rules of a notebook that they use: a last line that is
an expression is shown. KVSCOPE_UPDATE=1 writes the notebooks in the form that the first test expects.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "notebooks"
NAMES = ["token_to_register", "find_the_bug", "races", "page_size"]

RUNNER = """
import ast, json, sys

def show(value):
    if value is not None:
        for name in ("_repr_html_", "_repr_svg_", "_repr_png_"):
            if callable(getattr(value, name, None)):
                getattr(value, name)()
        print(repr(value))

space = {"__name__": "__main__"}
for number, source in enumerate(json.load(open(sys.argv[1]))):
    tree = ast.parse(source, f"cell {number}")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, f"cell {number}", "exec"), space)
    if last is not None:
        show(eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), space))
"""


def load(name):
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))


def source_of(cell):
    return "".join(cell["source"])


def is_solution(cell):
    return "solution" in cell["metadata"].get("tags", [])


def canonical(notebook):
    """The text of the file: no output, no count, no setting of the machine that ran it."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
        tags = {"jupyter": {"source_hidden": True}, "tags": ["solution"]}
        cell["metadata"] = tags if is_solution(cell) else {}
    notebook["metadata"] = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                            "language_info": {"name": "python"}}
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def run(cells, tmp_path, name="cells"):
    """What the cells print, run in a copy of the notebooks' folder."""
    top = tmp_path / name
    shutil.copytree(FOLDER, top / "docs" / "notebooks")
    (top / "apps").symlink_to(ROOT / "apps")
    (top / "run.py").write_text(RUNNER)
    (top / "cells.json").write_text(json.dumps(cells))
    done = subprocess.run([sys.executable, str(top / "run.py"), str(top / "cells.json")], cwd=top / "docs" / "notebooks",
                          env={**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}:.", "PYTHONHASHSEED": "0"},
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return done.stdout


def test_all_notebooks_are_tested():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_stripped_and_has_its_parts(name):
    path = FOLDER / f"{name}.ipynb"
    notebook = load(name)
    text = path.read_text(encoding="utf-8")
    if os.environ.get("KVSCOPE_UPDATE"):
        path.write_text(canonical(notebook), encoding="utf-8")
    assert text == canonical(load(name)), "run this test with KVSCOPE_UPDATE=1 to strip outputs"
    cells = notebook["cells"]
    assert notebook["nbformat"] == 4 and len({cell["id"] for cell in cells}) == len(cells)
    assert source_of(cells[0]).startswith("# ") and re.search(r"\*\*(Try next|Next):\*\*", source_of(cells[-1]))
    assert 10 <= sum(1 for cell in cells if not is_solution(cell)) <= 40
    for link in re.findall(r"\]\(([^)#\s]+)", "\n".join(map(source_of, cells))):
        assert (FOLDER / link).exists(), link
    for cell in cells:
        most = 150 if cell["cell_type"] == "markdown" else 120
        assert all(len(line) <= most for line in source_of(cell).split("\n")), source_of(cell)
        if is_solution(cell):  # JupyterLab shows the first line of a hidden cell
            assert source_of(cell).startswith("# The solution: click here\n"), source_of(cell)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_its_exercises_accept_their_solutions(name, tmp_path):
    cells = [cell for cell in load(name)["cells"] if cell["cell_type"] == "code"]
    exercises = [cell for cell in cells if "check(" in source_of(cell) and not is_solution(cell)]
    solutions = [cell for cell in cells if is_solution(cell)]
    assert len(exercises) == len(solutions) >= 3
    unanswered = run([source_of(cell) for cell in cells if not is_solution(cell)], tmp_path, "unanswered")
    printed = run([source_of(cell) for cell in cells], tmp_path)
    assert printed.count("Right.") == len(solutions) and "is not right" not in printed, printed
    assert printed.count("Not answered yet") == len(exercises)
    assert unanswered.count("Not answered yet") == len(exercises) and "Right." not in unanswered


@pytest.mark.parametrize("name", NAMES)
def test_an_exercise_rejects_another_answer_with_a_hint(name, tmp_path):
    wrong = []
    for cell in load(name)["cells"]:
        if cell["cell_type"] == "code" and not is_solution(cell):
            source = source_of(cell)
            other = "(lambda h: 0)" if "my_head_of = None" in source else "-12345"
            wrong.append(re.sub(r"^(my_\w+) = None(?=\n[^#])", lambda m: m[0].replace("None", other), source, flags=re.M)
                         if "check(" in source else source)
    printed = run(wrong, tmp_path)
    exercises = [source for source in wrong if "check(" in source]
    assert printed.count("is not right. ") == len(exercises) and "Right." not in printed, printed


def test_the_kept_ptx_is_that_of_its_source(tmp_path):
    """Every line of code that the PTX names is in the source, and its kernels are those of the source."""
    source, ptx = (FOLDER / "neighbor.cu").read_text(), (FOLDER / "neighbor.ptx").read_text()
    assert re.findall(r"__global__ void (\w+)", source) == sorted(re.findall(r"\.entry (\w+)", ptx), key=source.find)
    lines = source.split("\n")
    numbers = {int(number) for number in re.findall(r"^\s*\.loc\s+1 (\d+)", ptx, re.M)} - {0}  # 0: no line
    stores = [number for number, line in enumerate(lines, 1) if "tile[i] = in[" in line]
    assert max(numbers) <= len(lines) and set(stores) <= numbers
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None:
        return
    subprocess.run([nvcc, "-ptx", "-lineinfo", "-arch=sm_90", "neighbor.cu", "-o", str(tmp_path / "again.ptx")],
                   cwd=FOLDER, check=True)
    again = (tmp_path / "again.ptx").read_text()
    release = re.compile(r"Cuda compilation tools, release (\S+),")
    if release.search(again)[1] == release.search(ptx)[1]:
        assert re.sub(r"\.file.*", "", again) == re.sub(r"\.file.*", "", ptx)
