#!/usr/bin/env python3
"""Limits of submitted kernels and programs: what exceeds one gets a message that names its option, and a larger limit lets it pass.

    limits_test.py --kvscope PROGRAM

Kernels are submitted as PTX (lab 09), programs as C++ (lab 02): no CUDA compiler is needed.
"""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import command_line
import triton_standin
from course_test import patched

ROOT = pathlib.Path(__file__).resolve().parents[2]
COURSE = ROOT / "docs" / "labs"
SOLUTION = (COURSE / "staff" / "02_rows" / "solution" / "rows.cpp").read_text(encoding="utf-8")
KVSCOPE = ""
CUDA = ["--max-instructions", "--max-memory", "--max-local", "--max-printed", "--max-heap", "--max-mallocs", "--max-copies", "--max-ptx"]
CPP = ["--max-run-time", "--max-run-memory", "--max-run-output"]
BOTH = ["--max-compile-time"]
HEAD = """.version 8.0
.target sm_90a
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
"""
ENTRY = """.visible .entry gather(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d,
                       .param .u32 e, .param .u32 f, .param .u32 g, .param .u64 h)
"""
# Registers, and a jump to the end for all threads but the first of the grid's first CTA.
FIRST = """.reg .u32 %r<9>; .reg .u64 %d<9>; .reg .pred %p<9>;
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; or.b32 %r1, %r1, %r2; setp.ne.u32 %p1, %r1, 0;
@%p1 bra DONE;
mov.u32 %r3, 0;
"""
MALLOC = "{ .param .b64 n; .param .b64 r; st.param.b64 [n], %d1; call (r), malloc, (n); ld.param.b64 %d2, [r]; }\n"
FREE = "{ .param .b64 p; st.param.b64 [p], %d2; call free, (p); }\n"
PRINT = """{ .param .b64 f; .param .b64 v; .param .b32 r; mov.u64 %d3, text; cvta.global.u64 %d3, %d3; st.param.b64 [f], %d3;
  mov.u64 %d4, 0; st.param.b64 [v], %d4; call (r), vprintf, (f, v); }
"""


def first_thread(body, before=""):
    """A kernel whose first thread runs the body once."""
    return f"{HEAD}{before}{ENTRY}{{\n{FIRST}{body}\nDONE: ret;\n}}\n"


def times(count, body):
    return f"AGAIN:\n{body}\nadd.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, {count};\n@%p2 bra AGAIN;"


# Option, kernel, a limit that it exceeds and one that it does not ("": the default), and the message of the first.
KERNELS = [
    ("--max-instructions", first_thread(times(2000, "")), "1000", "", "more instructions than the lab allows: the limit of 1000 "),
    ("--max-memory", first_thread("", ".global .b8 large[70000000];\n"), "", "200000000", "the device's 67108864 bytes"),
    ("--max-local", first_thread(".local .b8 x[1024]; st.local.u8 [x], %r3; ld.local.u8 %r3, [x];"), "100000", "", "at most 100000 in total"),
    ("--max-printed", first_thread(times(600, PRINT), f".global .b8 text[128] = {{{', '.join(['65'] * 127)}, 0}};\n"), "", "100000",
     "of at most 65536 bytes"),
    ("--max-heap", first_thread("mov.u64 %d1, 2097152;\n" + MALLOC + "st.u32 [%d2], %r3;\n" + FREE), "", "4194304", "OUT_OF_BOUNDS"),
    ("--max-mallocs", first_thread("mov.u64 %d1, 8;\n" + times(1001, MALLOC + FREE)), "", "2000",
     "1000 blocks of this launch, freed ones included, are the limit"),
    ("--max-copies", first_thread(".shared .align 16 .b8 s[16]; mov.u64 %d3, from;\n" + times(2000, "cp.async.ca.shared.global [s], [%d3], 16;") +
                                  "\ncp.async.wait_all;", ".global .align 16 .b8 from[16];\n"), "50", "",
     "asynchronous copies and groups of this CTA are in flight: at most 50"),
]


def inside(code, includes=""):
    """The solution of lab 02, with `code` at the beginning of row_idx."""
    return includes + SOLUTION.replace("const std::int64_t page =", code + "\n  const std::int64_t page =", 1)


# Only the test tile_of_pages, 25 points, needs the time: of the CPU, or of the clock.
BURN, SLEEP = ("#include <ctime>\n#include <unistd.h>\n" + SOLUTION.replace("  rows[0] =", f"  if (tile > cache.page_size) {code}\n  rows[0] =", 1)
               for code in ("while (std::clock() < 5 * CLOCKS_PER_SEC / 2) {}", "static const unsigned left = sleep(4);"))
PROGRAMS = [
    ("--max-run-time", BURN, "", "20", 75, "more than 2 s of CPU time|did not end within 6 s"),
    ("--max-run-time", SLEEP, "1", "20", 75, "did not end within 3 s"),
    ("--max-run-memory", inside("static char* p = new char[600'000'000]; p[0] = 1;"), "", "2147483648", 0,
     "an allocation failed, and a process may have 536870912 bytes of memory"),
    ("--max-run-output", SOLUTION, "1024", "", None, "wrote more than 1024 bytes"),
]


def kvscope(*arguments, **options):
    return subprocess.run([KVSCOPE, "lab", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=300, **options)


class LimitsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check(self, lab, name, text, *options):
        """The grade of a file."""
        work, out = self.folder / "work", self.folder / "grade.json"
        work.mkdir(exist_ok=True)
        (work / name).write_text(text, encoding="utf-8")
        done = kvscope("check", lab, work, "--course", COURSE, "--json", out, *options)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(out.read_text(encoding="utf-8"))

    @staticmethod
    def told(grade):
        return "\n".join(test["message"] + "\n" + test["case"] for test in grade["tests"])

    def test_a_kernel_that_exceeds_a_limit_is_told_its_option(self):
        self.assertEqual([option for option, *_ in KERNELS], CUDA[:-1])
        for option, text, low, high, message in KERNELS:
            with self.subTest(option=option):
                exceeded = self.check("9", "gather.ptx", text, *([option, low] if low else []))
                self.assertIn(message, self.told(exceeded))
                if option != "--max-heap":
                    self.assertIn(f"larger limit: {option}", self.told(exceeded))
                else:  # past it malloc returns 0, as on hardware
                    self.assertNotIn("--max", self.told(exceeded))
                self.assertEqual(exceeded["points"], 0)
                fits = self.told(self.check("9", "gather.ptx", text, *([option, high] if high else [])))
                self.assertNotRegex(fits, "LIMIT|RUNAWAY|OUT_OF_BOUNDS|cannot be launched|--max")
                self.assertRegex(fits, "expected|not written|nothing is written")

    def test_stores_to_local_memory_are_no_rows_of_out(self):
        # A recursion that exceeds the local memory of a thread: its stores were taken for those of a row, and the advice was about rows.
        function = (".func again(.param .align 8 .b8 x[64]) {\n.reg .b32 %r<4>; .local .align 8 .b8 d[65536];\n"
                    "ld.param.u32 %r1, [x]; st.local.u32 [d], %r1; call again, (x); ret;\n}\n")
        text = f"{HEAD}{function}{ENTRY}{{\n.param .align 8 .b8 y[64]; .reg .b32 %r<4>; mov.u32 %r1, 0; st.param.u32 [y], %r1; call again, (y); ret;\n}}\n"
        told = self.told(self.check("9", "gather.ptx", text))
        self.assertRegex(told, "STACK line .* of local memory per thread")
        self.assertNotIn("behind the end of their row", told)

    def test_compiled_ptx_that_exceeds_the_limit_is_told_its_option(self):
        python = triton_standin.standin_python(self.folder / "python")
        solution = (COURSE / "staff" / "09_gather" / "triton" / "solution" / "gather.py").read_text(encoding="utf-8")
        self.assertEqual(self.check("9", "gather.py", solution, "--python", python)["points"], 100)
        grade = self.check("9", "gather.py", solution, "--python", python, "--max-ptx", "1024")
        self.assertRegex(self.told(grade), r"bytes of PTX, more than 1024: .*; a larger limit: --max-ptx\n")
        self.assertEqual(grade["points"], 0)

    def test_a_program_that_exceeds_a_limit_is_told_its_option(self):
        for option, text, low, high, points, message in PROGRAMS:
            with self.subTest(option=option, message=message):
                exceeded = self.check("2", "rows.cpp", text, *([option, low] if low else []))
                self.assertRegex(self.told(exceeded), f"({message})[^;\n]*; a larger limit: {option}\n")
                if points is not None:
                    self.assertEqual(exceeded["points"], points)
                fits = self.check("2", "rows.cpp", text, *([option, high] if high else []))
                self.assertEqual(fits["points"], 100, self.told(fits))

    def test_a_compiler_that_exceeds_its_time_is_told_the_option(self):
        long = "constexpr long f(long n) { long s = 0; for (long i = 0; i < n; ++i) s += i ^ n; return s; }\n" + "".join(
            f"constexpr long v{i} = f({200000 + i});\n" for i in range(1000))
        # The harness comes from the cache: only the submission is compiled within the limit.
        cache = ["--cache", self.folder / "cache"]
        self.assertEqual(self.check("2", "rows.cpp", SOLUTION, *cache)["points"], 100)
        grade = self.check("2", "rows.cpp", long + SOLUTION, "--max-compile-time", "1", *cache)
        self.assertRegex(self.told(grade), r"the compiler was stopped: the program .* (1|1\.5) s.*; a larger limit: --max-compile-time\n")

    def test_the_memory_of_the_test_one_pass_is_no_limit_of_an_option(self):
        # Lab 06 tests in a process of 64 MiB that tiles are not kept: a larger limit must not make such a submission right.
        staff, work = COURSE / "staff" / "06_softmax", self.folder / "kept"
        shutil.copytree(staff / "solution", work)
        patched(work, (staff / "wrong" / "19_keys_copied.patch").read_text(encoding="utf-8"))
        done = kvscope("check", "6", work, "--course", COURSE, "--max-run-memory", str(1 << 33))
        self.assertIn("all tiles are kept, and the row does not fit into memory", done.stdout)
        self.assertNotIn("--max", done.stdout)

    def test_arrays_of_the_lab_that_exceed_the_memory_are_a_fault_of_the_command(self):
        # A class would lose its points for a limit that the teacher chose.
        text = next(text for option, text, *_ in KERNELS if option == "--max-instructions")
        for action in (["check", "9", self.folder / "ada"], ["grade", "9", self.folder / "ada", "--secret", self.folder / "secret"]):
            (self.folder / "ada").mkdir(exist_ok=True)
            (self.folder / "ada" / "gather.ptx").write_text(text, encoding="utf-8")
            (self.folder / "secret").write_text("a secret of the limits test\n", encoding="utf-8")
            done = kvscope(*action, "--course", COURSE, "--max-memory", "1000")
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertRegex(done.stderr, r"--max-memory: 1000 bytes do not hold the arrays of the lab: those of one launch have \d+ bytes\n")

    def test_values_outside_their_range_are_rejected_by_name(self):
        ranges = {"--max-ptx": (1024, 64 << 20), "--max-run-time": (1, 86400), "--max-run-memory": (64 << 20, 1 << 40),
                  "--max-run-output": (1024, 1 << 30), "--max-compile-time": (1, 86400)}
        for command in ("check", "grade"):
            for option in CUDA + CPP + BOTH:
                least, most = ranges.get(option, (1, (1 << 63) - 1))
                shown = "2^63 - 1" if option not in ranges else str(most)
                for value in ("-1", "1e9", "0x10", "x", str(least - 1), str(most + 1)):
                    done = kvscope(command, "2", self.folder, "--course", COURSE, f"{option}={value}")
                    self.assertEqual((done.returncode, done.stdout), (2, ""), (option, value))
                    self.assertIn(f"{option}: '{value}' is not a whole number from {least} to {shown}", done.stderr)

    def test_the_help_pages_list_every_limit_with_its_default(self):
        defaults = {**self.check("9", "gather.ptx", KERNELS[0][1])["limits"], **self.check("2", "rows.cpp", SOLUTION)["limits"]}
        self.assertEqual(set(defaults), {*CUDA, *CPP, *BOTH})
        for command in ("check", "grade"):
            page = kvscope(command, "--help").stdout.partition("\nLimits:\n")[2].partition("\n\n")[0]
            found = dict(re.findall(r"(?s)(--max-[\w-]+) .*?\[default:\s+(\d+)\]", page))
            self.assertEqual(found, {option: str(value) for option, value in defaults.items()})
        shared = kvscope("--help").stdout and subprocess.run([KVSCOPE, "ptx", "run", "--help"], capture_output=True, text=True, check=True).stdout
        for option in CUDA[:-1]:
            self.assertIn(f"\n  {option} ", shared)

    def test_the_documentation_names_the_limit_without_a_message(self):
        page = (ROOT / "docs" / "08_labs.md").read_text(encoding="utf-8").replace("\n", " ")
        self.assertIn("the message names the option. `--max-heap` has no message: past it `malloc` returns 0", page)

    def test_the_documentation_has_the_defaults(self):
        page = (ROOT / "docs" / "08_labs.md").read_text(encoding="utf-8")
        security = (COURSE / "staff" / "SECURITY.md").read_text(encoding="utf-8")
        units = {"s": 1, "KiB": 1 << 10, "MiB": 1 << 20, "": 1}
        defaults = {**self.check("9", "gather.ptx", KERNELS[0][1])["limits"], **self.check("2", "rows.cpp", SOLUTION)["limits"]}
        for option, value in defaults.items():
            row = re.search(rf"(?m)^\| `{option}` \| (CUDA|C\+\+|C\+\+, CUDA) \| ([\d,]+) ?(\w*) \|", page)
            self.assertIsNotNone(row, option)
            self.assertEqual(int(row[2].replace(",", "")) * units[row[3]], value, option)
            self.assertIn(f"`{option}`", security)

    def test_a_grading_is_repeated_with_its_limits(self):
        (self.folder / "secret").write_text("a secret of the limits test\n", encoding="utf-8")
        for student in ("ada", "grace"):
            (self.folder / student).mkdir()
            (self.folder / student / "rows.cpp").write_text(SOLUTION, encoding="utf-8")
        common = ("--secret", self.folder / "secret", "--out", self.folder / "grades", "--course", COURSE)
        plain = kvscope("grade", "2", self.folder / "grace", *common)
        self.assertRegex(plain.stdout, r"^grace  seed [0-9a-f]{64}\n")
        self.assertEqual(kvscope("report", self.folder / "grades", "--course", COURSE).stdout.count("limits"), 0)
        changed = ("--max-run-output", "1024", "--max-run-time", "3")
        out = self.folder / "gradescope.json"
        graded = kvscope("grade", "2", self.folder / "ada", *common, *changed, "--gradescope", out)
        repeat = re.search(r"(?m)^ada  seed ([0-9a-f]{64} --max-run-time 3 --max-run-output 1024)$", graded.stdout)
        self.assertIsNotNone(repeat, graded.stdout)
        self.assertIn(repeat[1], json.loads(out.read_text(encoding="utf-8"))["output"])
        kept = json.loads((self.folder / "grades" / "ada.json").read_text(encoding="utf-8"))
        self.assertEqual((kept["limits"]["--max-run-output"], kept["limits"]["--max-run-memory"]), (1024, 512 << 20))
        kvscope("check", "2", self.folder / "ada", "--course", COURSE, "--json", self.folder / "again.json", "--seed", *repeat[1].split())
        again = json.loads((self.folder / "again.json").read_text(encoding="utf-8"))
        self.assertEqual([again[key] for key in ("seed", "limits", "tests")], [kept[key] for key in ("seed", "limits", "tests")])
        self.assertLess(again["points"], 100)
        self.assertIn("the grades have different limits, so compare them with care:\n"
                      "  --max-run-time 3 --max-run-output 1024: ada\n  the default limits: grace\n",
                      kvscope("report", self.folder / "grades", "--course", COURSE).stdout)

    def test_an_option_without_effect_in_the_lab_is_rejected(self):
        (self.folder / "secret").write_text("a secret of the limits test\n", encoding="utf-8")
        kinds = {"1": ("01_address", "answers", []), "2": ("02_rows", "cpp", CPP + BOTH), "9": ("09_gather", "cuda", CUDA + BOTH)}
        for lab, (name, kind, its) in kinds.items():
            limits = f"its limits are {', '.join(its)}" if its else "no submitted code runs, so the lab has no limits"
            for option in CUDA + CPP + BOTH:
                if option in its:
                    continue
                value = "1073741824" if option == "--max-run-memory" else "4096"
                for action in (["check"], ["grade", "--secret", self.folder / "secret"]):
                    done = kvscope(*action, lab, self.folder, "--course", COURSE, option, value)
                    self.assertEqual((done.returncode, done.stdout), (2, ""), (lab, option))
                    self.assertIn(f"{option}: has no effect in lab {name}, of kind {kind}: {limits}\n", done.stderr)

    def test_labs_without_submitted_code_have_no_limits(self):
        schedule = (COURSE / "staff" / "12_through_lds" / "solution" / "schedule.txt").read_text(encoding="utf-8")
        grade = self.check("12", "schedule.txt", schedule)
        self.assertEqual((grade["limits"], grade["points"]), ({}, 100))


if __name__ == "__main__":
    command_line.run_tests()
