#!/usr/bin/env python3
"""Submissions in Triton: starters, names of files, messages, and, where a Python has Triton, every submission compiled by it.

    triton_test.py --kvscope PROGRAM
    triton_test.py --kvscope PROGRAM --update     write triton_kept.json.xz

The Python is KVSCOPE_TRITON, or python3. Without the package triton (pip install triton) the tests that need it are skipped;
course_test.py and triton_security_test.py use the PTX that is kept in triton_kept.json.xz, with the package's version.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import command_line
import course_test
import triton_standin

ROOT = pathlib.Path(__file__).resolve().parents[2]
COURSE = ROOT / "docs" / "labs"
FINDER = ROOT / "apps" / "labs" / "triton_finder.py"
PYTHON = os.environ.get("KVSCOPE_TRITON", sys.executable)
LABS = ("09_gather", "13_paged_decode")
KVSCOPE = ""


def version_of_triton():
    """The version of the package of PYTHON; empty without one."""
    found = subprocess.run([PYTHON, FINDER], capture_output=True, text=True, check=True).stdout.splitlines()
    return re.sub(r".*/triton-|\.dist-info$", "", found[4]) if len(found) > 4 else ""


def manifest(lab):
    return json.loads((COURSE / lab / "lab.json").read_text(encoding="utf-8"))


def sources(lab):
    """{name: text} of the starter, the solution, its other forms, and each wrong submission."""
    name, staff = manifest(lab)["triton"], COURSE / "staff" / lab / "triton"
    texts = {"starter": (COURSE / lab / "triton" / name).read_text(encoding="utf-8"),
             "solution": (staff / "solution" / name).read_text(encoding="utf-8")}
    for patch in sorted(staff.glob("*/*.patch")):
        with tempfile.TemporaryDirectory() as folder:
            target = pathlib.Path(folder) / name
            target.write_text(texts["solution"], encoding="utf-8")
            course_test.patched(pathlib.Path(folder), patch.read_text(encoding="utf-8"))
            texts[f"{patch.parent.name}/{patch.stem}"] = target.read_text(encoding="utf-8")
    return texts


def run(*arguments, **options):
    return subprocess.run([KVSCOPE, "lab", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=300,
                          **options)


def compiled(lab, text):
    """What triton_compile.py writes for the submission, in the sandbox: the product in the cache of compiled files."""
    with tempfile.TemporaryDirectory() as folder:
        cache, target = pathlib.Path(folder) / "cache", pathlib.Path(folder) / "work"
        target.mkdir()
        (target / manifest(lab)["triton"]).write_text(text, encoding="utf-8")
        done = run("check", lab, target, "--course", COURSE, "--python", PYTHON, "--cache", cache)
        entries = list(cache.glob("*.compiled"))
        if not entries:
            raise RuntimeError(f"{lab} does not compile: {done.stdout}{done.stderr}")
        entry = entries[0].read_text(encoding="utf-8").split("\n", 2)
        return entry[2][int(entry[1]):]


class TritonTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def need_triton(self):
        version = version_of_triton()
        if not version:
            self.skipTest(f"{PYTHON} has no package triton: pip install triton, or set KVSCOPE_TRITON to a Python that has it")
        return version

    def standin(self):
        return triton_standin.standin_python(self.folder / "python")

    def work(self, **files):
        target = self.folder / "work"
        target.mkdir(exist_ok=True)
        for name, text in files.items():
            (target / name.replace("_dot_", ".")).write_text(text, encoding="utf-8")
        return target

    def check(self, lab, folder, *options):
        """The grade as JSON."""
        out = self.folder / "grade.json"
        done = run("check", lab, folder, "--course", COURSE, "--json", out, *options)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(out.read_text(encoding="utf-8"))

    def message(self, text, lab="09_gather", python=None):
        """What a student reads about a submission that has no kernel."""
        grade = self.check(lab, self.work(**{manifest(lab)["triton"].replace(".", "_dot_"): text}), "--python",
                           python or self.standin())
        self.assertEqual(grade["points"], 0)
        return grade["tests"][0]["message"] + "\n" + grade["tests"][0]["case"]

    # With Triton.

    def test_every_submission_loses_what_its_patch_names_when_triton_compiles_it(self):
        self.need_triton()
        course = course_test.Course(KVSCOPE, self.folder, True, PYTHON)
        course.triton = True
        for lab in LABS:
            course.check_starter(lab)
            course.check_lab(lab, 1)
        self.assertEqual(course.faults, [])
        graded = [1 + len(list((COURSE / "staff" / lab / "triton").glob("*/*.patch"))) for lab in LABS]
        self.assertEqual([row[4] for row in course.table], graded)

    def test_the_kept_ptx_is_that_of_triton(self):
        version, kept = self.need_triton(), triton_standin.read_kept()
        if version != kept["triton"]:
            self.skipTest(f"the kept PTX is of Triton {kept['triton']}, and {PYTHON} has {version}")
        for lab in LABS:
            for name in ("starter", "solution"):
                number = triton_standin.number_of(sources(lab)[name])
                self.assertEqual(compiled(lab, sources(lab)[name]), kept["kept"][number], f"{lab}/{name}")

    def test_a_fault_of_the_kernel_names_its_line(self):
        self.need_triton()
        text = sources("09_gather")["solution"]

        def line_of(part):
            return text[:text.index(part)].count("\n") + 1

        rows, load, store = line_of("tl.arange(0, 4)"), line_of("token >= 0, other"), line_of("tl.store")
        self.assertIn(f"gather.py does not compile\ngather.py:{rows}: arange's range must be a power of 2\n    i = tl.program_id(0)",
                      self.message(text.replace("tl.arange(0, 4)", "tl.arange(0, 3)"), python=PYTHON))
        self.assertRegex(self.message(text.replace("token >= 0, other", "tokn >= 0, other"), python=PYTHON),
                         rf"gather\.py:{load}: .*tokn is not defined")
        self.assertRegex(self.message(text.replace("i[:, None] * row", "i[None, :] * row"), python=PYTHON),
                         rf"gather\.py:{store}: .*\b4 and 256.*\n        tl\.store\(")
        helper = text.replace("@triton.jit\ndef gather", "@triton.jit\ndef rows(i):\n    return i + tl.arange(0, 3)\n\n\n@triton.jit\ndef "
                              "gather").replace("tl.arange(0, 4)", "rows(0)")
        self.assertIn(f"gather.py:{line_of('def gather') + 1}: arange's range must be a power of 2\n    return i + tl.arange(0, 3)",
                      self.message(helper, python=PYTHON))

    def test_device_descriptors_need_memory_that_the_launch_lacks(self):
        self.need_triton()
        text = sources("09_gather")["solution"].replace(
            "    for at in", "    made = tl.make_tensor_descriptor(out, [count, row], [row, 1], [1, 64])\n"
            "    made.store([0, 0], tl.zeros([1, 64], tl.bfloat16))\n    for at in")
        self.assertIn("bytes of global scratch memory", self.message(text, python=PYTHON))

    # Without Triton.

    def test_the_kept_ptx_is_complete(self):
        numbers = {triton_standin.number_of(text) for lab in LABS for text in sources(lab).values()}
        self.assertEqual(sorted(numbers), sorted(triton_standin.read_kept()["kept"]), "make it again: triton_test.py --update")

    def test_the_solution_in_triton_gets_all_points(self):
        for lab in LABS:
            grade = self.check(lab, COURSE / "staff" / lab / "triton" / "solution", "--python", self.standin())
            self.assertEqual(grade["points"], grade["maximum"], grade["tests"])
            (self.folder / "python").rename(self.folder / ("python " + lab))

    def test_a_class_has_submissions_in_cuda_in_triton_and_in_a_folder_of_the_archive(self):
        solution = sources("09_gather")["solution"]
        for place in ("ada", "grace/lab09"):
            (self.folder / place).mkdir(parents=True)
            (self.folder / place / "gather.py").write_text("\ufeff" + solution if place == "ada" else solution, encoding="utf-8")
        (self.folder / "alan").mkdir()
        (self.folder / "alan" / "gather.ptx").write_text("no PTX", encoding="utf-8")
        (self.folder / "secret").write_text("a secret of the test of Triton\n", encoding="utf-8")
        done = run("grade", 9, *(self.folder / name for name in ("ada", "grace", "alan")), "--course", COURSE, "--secret",
                   self.folder / "secret", "--out", self.folder / "grades", "--python", self.standin())
        self.assertEqual(done.returncode, 0, done.stderr)
        grades = {path.stem: json.loads(path.read_text(encoding="utf-8"))["points"] for path in (self.folder / "grades").iterdir()}
        self.assertEqual(grades, {"ada": 100, "grace": 100, "alan": 0})

    def test_start_writes_the_file_in_triton_alone(self):
        for lab in LABS:
            done = run("start", lab, self.folder / lab, "--course", COURSE, "--language", "triton")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(path.name for path in (self.folder / lab).iterdir()),
                             sorted([manifest(lab)["triton"], "kvscope-lab.json"]))

    def test_labs_that_triton_cannot_express_say_why(self):
        for lab, file in (("10_four_kernels", "sum"), ("11_tma_tile", "tile")):
            reason = manifest(lab)["without_triton"]
            done = run("start", lab, self.folder / lab, "--course", COURSE, "--language", "triton")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"lab {lab} takes no Triton: {reason}", done.stderr)
            self.assertFalse((self.folder / lab).exists())
            done = run("check", lab, self.work(**{f"{file}_dot_py": ""}), "--course", COURSE)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"the folder has '{file}.py', and this lab takes no Triton: {reason}", done.stderr)
        done = run("start", "2", self.folder / "two", "--course", COURSE, "--language", "triton")
        self.assertEqual(done.returncode, 2)
        self.assertIn("lab 02_rows takes no Triton: its kind is cpp", done.stderr)

    def test_two_submissions_in_one_folder_are_rejected(self):
        folder = self.work(gather_dot_cu="", gather_dot_py=sources("09_gather")["solution"])
        done = run("check", 9, folder, "--course", COURSE, "--python", self.standin())
        self.assertEqual(done.returncode, 2)
        self.assertIn("gather.cu: and gather.py are both in the folder: remove the one that is not your submission", done.stderr)

    def test_a_file_of_a_similar_name_is_named(self):
        done = run("check", 9, self.work(**{"Gather (1)_dot_py": ""}), "--course", COURSE)
        self.assertEqual(done.returncode, 2)
        self.assertIn("the folder has 'Gather (1).py': rename the right one to gather.py", done.stderr)

    def test_a_python_without_triton_is_a_message_with_the_command(self):
        bare = self.folder / "bare"  # no folder of packages
        bare.write_text(f"#!/bin/sh\nexec '{sys.executable}' -I -S \"$@\"\n", encoding="utf-8")
        bare.chmod(0o755)
        self.assertIn(f"{bare} has no package triton: install it with '{bare} -m pip install triton', name a Python that has it "
                      "with --python FILE, or submit gather.ptx in place of gather.py", self.message("", python=bare))

    def test_a_python_that_cannot_be_run_is_bad_usage(self):
        done = run("check", 9, self.work(gather_dot_py=""), "--course", COURSE, "--python", self.folder / "none")
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"--python: '{self.folder / 'none'}' cannot be run as Python", done.stderr)

    def test_a_libpython_outside_of_usr_lib_is_in_the_sandbox(self):
        """As in the images of Docker's python: the third line of the finder names it, and the sandbox has no cache of the linker."""
        library = self.folder / "lib" / "libpython3.99.so"
        library.parent.mkdir()
        library.write_text("no library", encoding="utf-8")
        python = self.folder / "shared"
        python.write_text(f"#!/bin/sh\n'{self.standin()}' \"$@\" | sed '3s|.*|{library}|'\n", encoding="utf-8")
        python.chmod(0o755)
        text = f"import os\nraise ValueError((os.environ['LD_LIBRARY_PATH'], open({str(library)!r}).read()))\n"
        self.assertIn(f"gather.py:2: ValueError: ('{library.parent}', 'no library')", self.message(text, python=python))

    def test_the_python_of_the_path_is_asked(self):
        folder = pathlib.Path(self.standin()).parent
        work = self.work(gather_dot_py=sources("09_gather")["solution"])
        done = run("check", 9, work, "--course", COURSE, env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_nothing_of_the_current_folder_is_imported_outside_the_sandbox(self):
        """Finders run as `python3 -`, which would search the current folder first: here that of a submission."""
        mark = self.folder / "imported"
        spy = f"open({str(mark)!r}, 'w').close()\n"
        work = self.work(gather_dot_py=sources("09_gather")["solution"],
                         **{f"{name}_dot_py": spy for name in ("glob", "sysconfig", "triton", "re", "fnmatch")})
        done = run("check", 9, work, "--course", COURSE, "--python", self.standin(), cwd=work)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (work / "gather.py").rename(work / "gather.txt")
        (work / "gather.cu").write_text("", encoding="utf-8")
        run("check", 9, work, "--course", COURSE, cwd=work)  # asks for NVRTC where there is no nvcc
        self.assertFalse(mark.exists())

    def test_messages_about_the_kernel_as_python_declares_it(self):
        head = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
        parameters = "pool, table, tokens, out, count, page_size, row, block_stride"
        for text, wanted in (
                (head + f"def copy({parameters}):\n    pass\n", "gather.py has no kernel 'gather'"),
                (f"def gather({parameters}):\n    pass\n", "gather is of type function: write @triton.jit alone above it"),
                (head + "def gather(pool, table):\n    pass\n", "the parameters of gather are (pool, table), not (pool, table, tokens,"),
                (head + f"def gather({parameters}, BLOCK):\n    pass\n", "write 'BLOCK: tl.constexpr = VALUE'"),
                (head + f"def gather({parameters}, BLOCK: tl.constexpr):\n    pass\n", "write 'BLOCK: tl.constexpr = VALUE'"),
                (head + f"def gather({parameters.replace('row', 'row: tl.constexpr')}):\n    pass\n",
                 "row is a value of the launch: remove its tl.constexpr"),
                ("import triton\nimport torch\n", "gather.py:2: No module named 'torch'. The grader has the standard library"),
                ("def gather(:\n", "gather.py:1: invalid syntax"),
                ("\nraise ValueError('five')\n", "gather.py:2: ValueError: five")):
            with self.subTest(wanted=wanted):
                self.assertIn(wanted, self.message(text))
                (self.folder / "python").rename(self.folder / f"python {len(list(self.folder.iterdir()))}")


def update():
    version = version_of_triton()
    if not version:
        sys.exit(f"{PYTHON} has no package triton: set KVSCOPE_TRITON to a Python that has it")
    triton_standin.write_kept(version, {text: compiled(lab, text) for lab in LABS for text in sources(lab).values()})


if __name__ == "__main__":
    arguments, rest = command_line.parse("--update")
    KVSCOPE = arguments.kvscope
    if arguments.update:
        sys.exit(update())
    command_line.run_tests(program=KVSCOPE, others=rest)
