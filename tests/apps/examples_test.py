#!/usr/bin/python3
"""Every command under "Examples:" of every help page runs as printed, in a folder that holds a copy of apps/scenarios and
apps/examples. The examples of one page run in order: a later one may read a file that an earlier one wrote.

    examples_test.py --kvscope PROGRAM --viewer PROGRAM --gpu-check PROGRAM
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import program  # noqa: E402
from help_test import commands, pages, section  # noqa: E402
from program import no_display  # noqa: E402


def examples(page):
    """The commands of a page; a line that is indented deeper continues the one before it."""
    lines = []
    for line in section(page, "Examples"):
        if line.startswith("    "):
            lines[-1] += "\n" + line.strip()
        else:
            lines.append(line.strip())
    return lines


# The examples of `cuda` and `nvcc` compile this program. The sanitizers need a program that is compiled with them.
COMPILES_CUDA = not program.SLOW_BUILD and shutil.which("nvcc", path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin") is not None
CUDA_FILES = {"my_test.cu": "int main() {}\n", "Makefile": "all:\n\t$(NVCC) -o my_test my_test.cu\n"}


class Examples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        bin_folder = os.path.join(self.folder, ".bin")
        os.mkdir(bin_folder)
        for name, path in (("kvscope", program.KVSCOPE), ("kvscope-viewer", program.VIEWER),
                           ("gpu-check", program.GPU_CHECK)):
            if path:
                os.symlink(path, os.path.join(bin_folder, name))
        self.path = f"{bin_folder}:/usr/bin:{os.environ['PATH']}"  # the system's Python has numpy

    def run_page(self, page):
        """Runs the examples of one page in an empty folder; returns their number."""
        lines = examples(page)
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            for part in ("scenarios", "examples"):
                shutil.copytree(os.path.join(program.SOURCE, "apps", part), os.path.join(folder, "apps", part))
            for name, text in CUDA_FILES.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                    out.write(text)
            for line in lines:
                if not COMPILES_CUDA and ("nvcc" in line or "./my_test" in line):
                    continue
                window = line.startswith("kvscope-viewer") and "--render" not in line
                command = f"timeout 5 {line}" if window else line
                done = subprocess.run(["bash", "--noprofile", "--norc", "-c", command], cwd=folder, text=True,
                                      capture_output=True, timeout=300, check=False,
                                      env=no_display(PATH=self.path, QT_QPA_PLATFORM="offscreen",
                                                     XDG_RUNTIME_DIR=self.folder))
                progress = done.stderr if line.startswith("gpu-check") else ""
                with self.subTest(example=line):
                    # A window is still open when `timeout` ends it with 124.
                    self.assertEqual((done.returncode, done.stderr), (124 if window else 0, progress))
        return len(lines)

    def test_every_command_of_kvscope_has_examples_that_run(self):
        for words, page in pages().items():
            with self.subTest(command=words):
                self.assertGreater(self.run_page(page), 0)

    def test_an_example_of_a_command_calls_that_command(self):
        for words, page in pages().items():
            called = " ".join(("kvscope", *words))
            with self.subTest(command=words):
                self.assertIn(called, "\n".join(examples(page)))

    def test_those_of_the_viewer_run(self):
        if not program.VIEWER:
            self.skipTest("built without the viewer")
        self.assertGreater(self.run_page(program.viewer("--help").stdout), 1)

    def test_those_of_gpu_check_run(self):
        page = subprocess.run([program.GPU_CHECK, "--help"], capture_output=True, text=True, check=True).stdout
        self.assertGreater(self.run_page(page), 1)


class SameAsThePages(unittest.TestCase):
    def test_the_kernel_without_a_barrier(self):
        with open(os.path.join(program.SOURCE, "docs", "15_virtual_gpu.md"), encoding="utf-8") as file:
            page = file.read()
        for language, name in (("cuda", "reverse.cu"), ("ptx", "reverse.ptx")):
            block = page.split(f"```{language} {name}\n")[1].split("```")[0]
            with open(os.path.join(program.SOURCE, "apps", "examples", name), encoding="utf-8") as file:
                self.assertEqual(file.read(), block)


if __name__ == "__main__":
    program.main()
