#!/usr/bin/env python3
"""CUDA labs with each compiler that this machine has: nvcc, NVRTC from its wheel, clang. Each compiles every solution to a
kernel with full points, rejects a fault with its line, and sees no file of the grader.

    compilers_test.py --kvscope PROGRAM

The wheel is that of python3 if it is installed. With KVSCOPE_FULL=1 it is downloaded (90 MB); where the index is unreachable,
the tests of NVRTC are skipped.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

import command_line

ROOT = pathlib.Path(__file__).resolve().parents[2]
COURSE = ROOT / "docs" / "labs"
FINDER = ROOT / "apps" / "python" / "kvscope" / "_nvrtc.py"
WHEEL = "nvidia-cuda-nvrtc-cu12"
NVCC = pathlib.Path("/usr/local/cuda/bin/nvcc")
CLANG = pathlib.Path("/usr/bin/clang++")  # as apps/labs/compile_cuda.cpp
LABS = ("09_gather", "10_four_kernels", "11_tma_tile", "13_paged_decode")
KVSCOPE = ""


def downloaded(folder):
    """The library of the wheel in `folder`, or the reason why there is none."""
    if os.environ.get("KVSCOPE_FULL") != "1":
        return None, f"{WHEEL} is not installed; KVSCOPE_FULL=1 downloads it"
    done = subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", folder, WHEEL],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, f"{WHEEL} cannot be downloaded: {done.stderr.strip().splitlines()[-1:]}"
    wheel = next(pathlib.Path(folder).glob("*.whl"))
    zipfile.ZipFile(wheel).extractall(folder)
    found = subprocess.run([sys.executable, FINDER], env={**os.environ, "PYTHONPATH": folder}, capture_output=True, text=True,
                           check=True).stdout.strip()
    return (found, "") if found else (None, f"{FINDER} does not find the library of {wheel.name}")


class CompilersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.nvrtc = subprocess.run([sys.executable, FINDER], capture_output=True, text=True, check=True).stdout.strip()
        cls.why = ""
        if not cls.nvrtc:
            cls.nvrtc, cls.why = downloaded(cls.folder.name)

    def check(self, lab, folder, *options):
        out = pathlib.Path(self.folder.name) / "grade.json"
        done = subprocess.run([KVSCOPE, "lab", "check", lab, str(folder), "--course", str(COURSE), "--json", str(out), *options],
                              capture_output=True, text=True, check=False)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(out.read_text(encoding="utf-8"))

    def need_nvrtc(self):
        if not self.nvrtc:
            self.skipTest(self.why)
        return ("--nvrtc", self.nvrtc)

    def need_clang(self):
        if not CLANG.exists():
            self.skipTest(f"{CLANG} is not installed")
        return ("--clang",)

    def solutions(self, *options):
        for lab in LABS:
            grade = self.check(lab, COURSE / "staff" / lab / "solution", *options)
            self.assertEqual(grade["points"], grade["maximum"], f"{lab}: {grade['tests']}")

    def faults(self, *options):
        """The compiler's messages for an undeclared name in line 3, and for a file of the grader."""
        folder = pathlib.Path(self.folder.name) / "faulty"
        folder.mkdir(exist_ok=True)
        cases = []
        for text in ("\n\nextern \"C\" __global__ void gather() { undeclared(); }\n", "#include \"/etc/passwd\"\n"):
            (folder / "gather.cu").write_text(text, encoding="utf-8")
            grade = self.check("09_gather", folder, *options)
            self.assertEqual(grade["points"], 0)
            self.assertIn("does not compile", grade["tests"][0]["message"])
            cases.append(grade["tests"][0]["case"])
        self.assertRegex(cases[0], r"gather\.cu[(:]3\b.*undeclared")
        self.assertNotIn("root", cases[1])
        return cases[1]

    def test_nvrtc_compiles_every_solution(self):
        self.solutions(*self.need_nvrtc())

    def test_clang_compiles_every_solution(self):
        self.solutions(*self.need_clang())

    def test_faults_with_nvrtc(self):
        self.assertRegex(self.faults(*self.need_nvrtc()), "(could not|cannot) open source file \"/etc/passwd\"")

    def test_faults_with_clang(self):
        self.assertIn("'/etc/passwd' file not found", self.faults(*self.need_clang()))

    def test_a_kernel_of_clang_names_its_lines(self):
        folder = pathlib.Path(self.folder.name) / "outside"
        folder.mkdir(exist_ok=True)
        (folder / "gather.cu").write_text(
            "extern \"C\" __global__ void gather(const unsigned short* pool, const unsigned* table, const int* tokens,\n"
            "                                  unsigned short* out, int count, int page_size, int row, long long stride) {\n"
            "  out[-1 - threadIdx.x] = 7;\n}\n", encoding="utf-8")
        for options in (self.need_clang(), ("--nvrtc", self.nvrtc) if self.nvrtc else self.need_clang()):
            self.assertIn("OUT_OF_BOUNDS line 3", self.check("09_gather", folder, *options)["tests"][0]["message"])

    def test_too_many_sectors_name_the_array_the_line_and_the_compiler(self):
        """2 bytes for each lane: right with the table's entry in a variable, too many sectors with the entry in the loop."""
        folder = pathlib.Path(self.folder.name) / "traffic"
        folder.mkdir(exist_ok=True)
        kernel = (
            "extern \"C\" __global__ void gather(const unsigned short* pool, const unsigned* table, const int* tokens,\n"
            "                                  unsigned short* out, int count, int page_size, int row, long long stride) {\n"
            "  const int i = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;\n"
            "  if (i >= count) return;\n"
            "  const int t = tokens[i];\n"
            "  const long long block = t < 0 ? 0 : table[t / page_size];\n"
            "  for (int e = lane; e < row; e += 32) {\n"
            "    out[(long long)i * row + e] = t < 0 ? 0 : pool[BLOCK * stride + t % page_size * row + e];\n"
            "  }\n}\n")
        for options, compiler in ((("--clang",) if CLANG.exists() else None, "clang"),
                                  (("--nvrtc", self.nvrtc) if self.nvrtc else None, "nvcc or NVRTC"),
                                  (() if NVCC.exists() else None, "nvcc or NVRTC")):
            if options is None:
                print(f"skipped: no {compiler}")
                continue
            for block, points in (("block", 30), ("table[t / page_size]", 0)):
                (folder / "gather.cu").write_text(kernel.replace("BLOCK", block), encoding="utf-8")
                sectors = next(test for test in self.check("09_gather", folder, *options)["tests"] if test["name"] == "sectors")
                self.assertEqual(sectors["points"], points, sectors)
                if points == 0:
                    self.assertIn("table, line 8: the entry is read again", sectors["message"])
                    self.assertIn(f"compiled by {compiler}", sectors["case"])

    def test_a_library_that_is_none_is_a_message(self):
        fake = pathlib.Path(self.folder.name) / "libnvrtc.so.12"
        fake.write_text("no library\n", encoding="utf-8")
        grade = self.check("09_gather", COURSE / "staff" / "09_gather" / "solution", "--nvrtc", str(fake))
        self.assertEqual(grade["points"], 0)
        self.assertIn("cannot be loaded", grade["tests"][0]["case"])
        done = subprocess.run([KVSCOPE, "lab", "check", "9", str(COURSE / "staff" / "09_gather" / "solution"), "--course",
                               str(COURSE), "--nvrtc", "/nowhere.so"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--nvrtc: '/nowhere.so' is not a file", done.stderr)


if __name__ == "__main__":
    command_line.run_tests()
