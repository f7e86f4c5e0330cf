#!/usr/bin/env python3
"""The course: every solution gets all points, and every wrong submission loses exactly the tests that its patch names, with
the message that it names, under several seeds.

    course_test.py --kvscope PROGRAM
    course_test.py --update             write the table of docs/labs/staff/README.md

A compiler runs once for each submission (--cache), and most of the time of one grading is the compiler's, so the normal size grades
every solution and every fourth wrong submission under one seed. KVSCOPE_FULL=1: all of them under 20 seeds. KVSCOPE_LAB=02_rows: one
lab, all of its wrong submissions, one seed.

A patch docs/labs/staff/NN_name/wrong/KK_slug.patch changes files of solution/. It begins with lines
    # loses: TEST, TEST, TEST?; a test with a question mark is lost if the cases of the seed show the fault in it
    # message: text that the report of a lost test contains; "A | B": one of two, where the cases of a seed decide which fault is first
    # earns: POINTS of the whole submission, where a lost test keeps a part of its points; may be absent
    # hint: the hint of the first lost test, which `lab check` prints; may be absent
A patch docs/labs/staff/NN_name/right/KK_slug.patch is another form of the solution, which gets all points too.
docs/labs/staff/NN_name/triton has the same for submissions in Triton. Their PTX was made by Triton and kept (triton_standin.py), so
that they are graded where Triton is not installed; triton_test.py compiles them where it is.
Where the task depends on the student, each seed has students of its own. solve.py writes the answers of one, applies the patch, and
prints "WORD TEST" for each test that patches name @WORD.

The table of docs/labs/staff/README.md has for each lab what the full size grades; the normal size checks its numbers.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import command_line
import triton_standin

ROOT = pathlib.Path(__file__).resolve().parents[2]
COURSE = ROOT / "docs" / "labs"
NVCC = ("/usr/local/cuda/bin/nvcc", "/usr/bin/nvcc")  # as apps/labs/compile.cpp
LEAST_WRONG = 8  # wrong submissions of a lab in which students write code
SEEDS = 20  # of the full size
PAGE = COURSE / "staff" / "README.md"
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


def patched(folder, patch):
    """Applies a unified diff to the files of `folder`. Context must match exactly."""
    lines, name, source, result, at = patch.split("\n"), None, [], [], 0

    def finish():
        if name is not None:
            (folder / name).write_text("\n".join(result + source[at:]), encoding="utf-8")

    for line in lines:
        hunk = HUNK.match(line)
        if line.startswith("--- a/"):
            finish()
            name, result, at = line[6:], [], 0
            source = (folder / name).read_text(encoding="utf-8").split("\n")
        elif hunk:
            begin = int(hunk[1]) - (0 if hunk[2] == "0" else 1)
            result += source[at:begin]
            at = begin
        elif name is not None and line[:1] in (" ", "-"):
            if source[at] != line[1:]:
                raise ValueError(f"line {at + 1} of {name} is {source[at]!r}, not {line[1:]!r}")
            result += [line[1:]] if line[0] == " " else []
            at += 1
        elif name is not None and line.startswith("+") and not line.startswith("+++ "):
            result.append(line[1:])
    finish()


def table_of_full_size():
    """The lines of the table in the staff's page: what KVSCOPE_FULL=1 grades."""
    rows = []
    for staff in sorted([*COURSE.glob("staff/[0-9]*"), *COURSE.glob("staff/[0-9]*/triton")]):
        wrong, right = (len(list((staff / kind).glob("*.patch"))) for kind in ("wrong", "right"))
        solutions = (SEEDS if (staff / "solve.py").exists() else 1) + right
        name = staff.name if staff.name != "triton" else f"{staff.parent.name} in Triton"
        rows.append((name, solutions, wrong, SEEDS, SEEDS * (1 + right + wrong)))
    rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows), SEEDS, sum(row[4] for row in rows)))
    return ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def table_of_page():
    return re.findall(r"^\| (?:\d\d_\w+(?: in Triton)?|all) \| \d.*$", PAGE.read_text(encoding="utf-8"), re.M)


def write_table():
    text, old = PAGE.read_text(encoding="utf-8"), table_of_page()
    PAGE.write_text(text.replace("\n".join(old), "\n".join(table_of_full_size())), encoding="utf-8")


def header(patch, key, absent=None):
    found = re.search(rf"^# {key}: (.*)$", patch, re.M)
    if found is None and absent is not None:
        return absent
    if found is None:
        raise ValueError(f"the patch has no line '# {key}: ...'")
    return found[1].strip()


class Course:
    """`python`: compiles Triton, `kvscope lab grade --python`."""

    def __init__(self, kvscope, folder, all_wrong, python):
        self.python, self.triton = python, False
        self.all_wrong = all_wrong
        self.kvscope, self.folder, self.faults = kvscope, pathlib.Path(folder), []
        self.table = []  # [lab, solutions, wrong submissions, seeds, gradings, faults]

    def grade(self, lab, submissions, seed):
        """{student: {test: (earned, maximum, message and case, hint)}}"""
        secret = self.folder / "secret"
        secret.write_text(f"a secret of the test, number {seed}\n", encoding="utf-8")
        out = self.folder / "grades"
        shutil.rmtree(out, ignore_errors=True)
        done = subprocess.run([self.kvscope, "lab", "grade", lab, *map(str, submissions), "--course", str(COURSE), "--secret",
                               str(secret), "--out", str(out), "--cache", str(self.folder / "compiled"), "--python", self.python],
                              capture_output=True, text=True, timeout=1200, check=False)
        if done.returncode != 0:
            self.faults.append(f"{lab}: kvscope lab grade: exit code {done.returncode}: {done.stderr}")
            return {}
        grades = {}
        for submission in submissions:
            grade = json.loads((out / (submission.name + ".json")).read_text(encoding="utf-8"))
            grades[submission.name] = {test["name"]: (test["points"], test["maximum"], test["message"] + "\n" + test["case"], test["hint"])
                                       for test in grade["tests"]}
        return grades

    def staff(self, lab):
        return COURSE / "staff" / lab / "triton" if self.triton else COURSE / "staff" / lab

    def submission(self, lab, patch_file, name):
        """Writes the solution, changed by the patch if there is one. Returns the folder and what it must lose: (tests, message, points, hint)."""
        staff, target, names = self.staff(lab), self.folder / ("triton" if self.triton else "lab") / lab / name, {}
        solve = [sys.executable, staff / "solve.py", self.kvscope, COURSE, target, name]
        if (staff / "solve.py").exists():  # the answers depend on the student: a script writes them
            subprocess.run(solve, check=True, stdout=subprocess.DEVNULL)
        else:
            shutil.copytree(staff / "solution", target)
        if patch_file is None:
            return target, ([], "", "", "")
        patch = patch_file.read_text(encoding="utf-8")
        if (staff / "solve.py").exists():
            solved = subprocess.run([*solve, patch_file], check=True, stdout=subprocess.PIPE, text=True)
            names = dict(line.split() for line in solved.stdout.splitlines())
        else:
            patched(target, patch)
        if patch_file.parent.name == "right":
            return target, ([], "", "", "")
        loses = [word.strip() for word in header(patch, "loses").split(",")]
        loses = [names[word[1:]] if word.startswith("@") else word for word in loses]
        return target, (loses, header(patch, "message"), header(patch, "earns", ""), header(patch, "hint", ""))

    def submissions(self, lab, patch_files, suffix):
        """[folder], {name: what it must lose}"""
        folders, expected = [], {}
        for patch_file in [None, *patch_files]:
            name = ("solution" if patch_file is None else patch_file.stem) + suffix
            try:
                folder, expected[name] = self.submission(lab, patch_file, name)
                folders.append(folder)
            except (ValueError, KeyError, OSError, IndexError, subprocess.CalledProcessError) as error:
                self.faults.append(f"{lab}/{name}: {error}")
        return folders, expected

    def fault_of(self, tests, loses, message, earns, hint):
        lost = [test for test, (earned, maximum, *_) in tests.items() if earned < maximum]
        loses = [test.rstrip("?") for test in loses if not test.endswith("?") or test.rstrip("?") in lost]
        points = sum(earned for earned, *_ in tests.values())
        if lost != [test for test in tests if test in loses] or len(lost) != len(loses):
            return (f"loses {', '.join(lost) or 'nothing'}; expected {', '.join(loses) or 'nothing'}: "
                    f"{[tests[test][2] for test in lost][:2]}")
        if lost and not any(text in tests[test][2] for test in lost for text in message.split(" | ")):
            return f"no message contains '{message}': {[tests[test][2] for test in lost][:2]}"
        if lost and hint and tests[lost[0]][3] != int(hint):
            return f"names hint {tests[lost[0]][3]}, not {hint}"
        if earns and points != float(earns):
            return f"earns {points:g} points, not {earns}"
        return ""

    def check_lab(self, lab, seeds):
        staff, known_faults = self.staff(lab), len(self.faults)
        wrong = sorted((staff / "wrong").glob("*.patch"))
        if len(wrong) < LEAST_WRONG:
            self.faults.append(f"{lab}: has {len(wrong)} wrong submissions, fewer than {LEAST_WRONG}")
        patches = wrong if self.all_wrong else wrong[::4]
        right = sorted((staff / "right").glob("*.patch"))
        own_tasks = (staff / "solve.py").exists()  # the name of the student, not the seed, selects the task
        folders, expected, gradings = [], {}, 0
        for seed in range(seeds):
            if own_tasks or seed == 0:
                folders, expected = self.submissions(lab, [*right, *patches], f"_{seed}" if own_tasks else "")
            grades = self.grade(lab, folders, seed)
            gradings += len(grades)
            for name, tests in grades.items():
                fault = self.fault_of(tests, *expected[name])
                if fault:
                    self.faults.append(f"{lab}/{name}, seed {seed}: {fault}")
        solutions = (seeds if own_tasks else 1) + len(right)
        self.table.append((f"{lab} in Triton" if self.triton else lab, solutions, len(patches), seeds, gradings, len(self.faults) - known_faults))

    def manifest(self, lab):
        return json.loads((COURSE / lab / "lab.json").read_text(encoding="utf-8"))

    def check_manifest(self, lab):
        """The handout has a line for each test with its points, and three hints exist."""
        manifest = self.manifest(lab)
        handout = (COURSE / lab / "README.md").read_text(encoding="utf-8")
        if "goal" in manifest and f"| you learn | {manifest['goal']} |" not in handout:
            self.faults.append(f"{lab}: the handout has no row '| you learn | {manifest['goal']} |'")
        for test in manifest["tests"]:
            if f"| `{test['name']}` | {test['points']} |" not in handout:
                self.faults.append(f"{lab}: the handout has no row '| `{test['name']}` | {test['points']} |'")
            if test.get("hint", 1) > 3:
                self.faults.append(f"{lab}: {test['name']} has hint {test['hint']}, which does not exist")
        for file in [*manifest["files"], *([manifest["triton"]] if "triton" in manifest else [])]:
            if f"`{file}`" not in handout:
                self.faults.append(f"{lab}: the handout does not name `{file}`")
        for page in manifest["reads"]:
            if not (ROOT / "docs" / page).exists():
                self.faults.append(f"{lab}: docs/{page} does not exist")
        for hint in (1, 2, 3):
            if not (COURSE / lab / "hints" / f"{hint}.md").exists():
                self.faults.append(f"{lab}: hints/{hint}.md is missing")
        if not (COURSE / "staff" / lab / "NOTES.md").exists():
            self.faults.append(f"{lab}: staff/{lab}/NOTES.md is missing")

    def check_starter(self, lab):
        """The starter earns no points."""
        target = self.folder / ("triton_starter" if self.triton else "starter") / lab
        subprocess.run([self.kvscope, "lab", "start", lab, str(target), "--course", str(COURSE), "--language",
                        "triton" if self.triton else "cuda"], check=True, capture_output=True)
        for name, tests in self.grade(lab, [target], 0).items():
            points = sum(earned for earned, *_ in tests.values())
            if points != 0:
                self.faults.append(f"{lab}: the starter of {name} earns {points} points")


def main():
    arguments = command_line.only("--update", required=False)
    if arguments.update:
        write_table()
        return 0
    kvscope = arguments.kvscope or sys.exit("--kvscope PROGRAM is missing")
    seeds = SEEDS if os.environ.get("KVSCOPE_FULL") == "1" else 1
    listed = subprocess.run([kvscope, "lab", "list", "--course", str(COURSE)], capture_output=True, text=True, check=True)
    labs = ["_".join(line.split()[:2]) for line in listed.stdout.splitlines()]
    chosen = os.environ.get("KVSCOPE_LAB")
    with tempfile.TemporaryDirectory() as folder:
        python = triton_standin.standin_python(pathlib.Path(folder) / "python")
        course = Course(kvscope, folder, seeds > 1 or chosen is not None, python)
        for lab in labs:
            if chosen in (None, lab):
                course.check_manifest(lab)
                if "triton" in course.manifest(lab):
                    course.triton = True
                    course.check_starter(lab)
                    course.check_lab(lab, seeds)
                    course.triton = False
                if course.manifest(lab)["kind"] == "cuda" and not any(pathlib.Path(path).exists() for path in NVCC):
                    print(f"skipped the submissions of {lab}: no CUDA compiler at {' or '.join(NVCC)}")
                    continue
                course.check_starter(lab)
                course.check_lab(lab, seeds)
    if table_of_page() != table_of_full_size():
        course.faults.append(f"{PAGE.relative_to(ROOT)}: the table is of other submissions: run tests/labs/course_test.py --update")
    for fault in course.faults:
        print(fault)
    print(f"{'lab':<26}{'solutions':>10}{'wrong':>7}{'seeds':>7}{'gradings':>10}{'faults':>8}")
    for row in [*course.table, ("all", *(sum(row[k] for row in course.table) for k in (1, 2)), seeds,
                                *(sum(row[k] for row in course.table) for k in (4, 5)))]:
        print(f"{row[0]:<26}{row[1]:>10}{row[2]:>7}{row[3]:>7}{row[4]:>10}{row[5]:>8}")
    return 1 if course.faults or not labs else 0


if __name__ == "__main__":
    sys.exit(main())
