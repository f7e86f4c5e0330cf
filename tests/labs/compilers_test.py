#!/usr/bin/env python3
"""CUDA labs with each compiler that this machine has: nvcc, and NVRTC from its wheel. A solution that one compiles, the
other compiles too, and both give the same grade.

    compilers_test.py --kvscope PROGRAM

The wheel is that of python3 if it is installed. With KVSCOPE_FULL=1 it is downloaded (90 MB); where the index is unreachable,
the tests of NVRTC are skipped.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
COURSE = ROOT / "docs" / "labs"
FINDER = ROOT / "apps" / "python" / "kvscope" / "_nvrtc.py"
WHEEL = "nvidia-cuda-nvrtc-cu12"
NVCC = ("/usr/local/cuda/bin/nvcc", "/usr/bin/nvcc")  # as apps/labs/compile_cuda.cpp
LABS = {"09_gather": "gather.cu", "11_tma_tile": "tile.cu", "13_paged_decode": "decode.cu"}
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

    def test_solutions_get_all_points_with_nvrtc(self):
        nvrtc = self.need_nvrtc()
        for lab in LABS:
            grade = self.check(lab, COURSE / "staff" / lab / "solution", *nvrtc)
            self.assertEqual(grade["points"], grade["maximum"], f"{lab}: {grade['tests']}")

    def test_nvcc_and_nvrtc_give_one_grade(self):
        nvrtc = self.need_nvrtc()
        if not any(pathlib.Path(path).exists() for path in NVCC):
            self.skipTest(f"no nvcc at {' or '.join(NVCC)}")
        for lab in LABS:
            folder = COURSE / "staff" / lab / "solution"
            self.assertEqual([test["points"] for test in self.check(lab, folder)["tests"]],
                             [test["points"] for test in self.check(lab, folder, *nvrtc)["tests"]], lab)

    def test_a_fault_of_the_source_is_named_with_its_line(self):
        nvrtc = self.need_nvrtc()
        folder = pathlib.Path(self.folder.name) / "faulty"
        folder.mkdir()
        (folder / "gather.cu").write_text("\n\nextern \"C\" __global__ void gather() { undeclared(); }\n", encoding="utf-8")
        test = self.check("09_gather", folder, *nvrtc)["tests"][0]
        self.assertIn("does not compile", test["message"])
        self.assertRegex(test["case"], r"gather\.cu\(3\): error: identifier \"undeclared\" is undefined")

    def test_the_sandbox_hides_files_from_nvrtc(self):
        nvrtc = self.need_nvrtc()
        folder = pathlib.Path(self.folder.name) / "spy"
        folder.mkdir()
        (folder / "gather.cu").write_text("#include \"/etc/passwd\"\n", encoding="utf-8")
        case = self.check("09_gather", folder, *nvrtc)["tests"][0]["case"]
        self.assertIn("could not open source file \"/etc/passwd\"", case)

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
    parser = argparse.ArgumentParser()
    parser.add_argument("--kvscope", required=True, type=os.path.abspath)
    arguments, rest = parser.parse_known_args()
    KVSCOPE = arguments.kvscope
    unittest.main(argv=[sys.argv[0], *rest])
