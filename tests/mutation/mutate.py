#!/usr/bin/python3
"""Makes one formula wrong at a time and checks that a test fails.

    tests/mutation/mutate.py [--only TEXT] [--list] [--jobs N]

Works on copies of the tree in build/mutation, one per job, so the tree itself is never touched. A mutant of core/<folder> or
gpu/virtual/<folder> is judged by that folder's own test program, with thinned grids (tests/whole_grid.h). Prints one
line per mutant with the test that killed it; exits 1 when one survives, does not compile, or no longer matches the source
exactly once.
"""
import argparse
import concurrent.futures
import os
import queue
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mutants import MUTANTS  # noqa: E402

WORK = os.path.join(ROOT, "build", "mutation")
TIMEOUT = 300  # [s] of one test program: a mutant that loops forever counts as killed


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write_if_changed(path, text):
    """Keeps the time stamps of unchanged files, so that only mutated files are compiled again."""
    if os.path.exists(path) and read(path) == text:
        return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def test_program(path):
    """(ninja target, program below the build folder) of the tests for a mutant of this file."""
    parts = path.split("/")
    if parts[:2] == ["gpu", "virtual"]:
        return f"virtual_{parts[2]}_test", os.path.join("tests", "gpu", "virtual", parts[2], f"virtual_{parts[2]}_test")
    return f"{parts[1]}_test", os.path.join("tests", "core", parts[1], f"{parts[1]}_test")


def place_of(text, old):
    """(begin, end) of each occurrence of `old`, ignoring white space."""
    pattern = r"\s+".join(re.escape(word) for word in old.split())
    return [match.span() for match in re.finditer(pattern, text)]


def first_failure(output, code):
    failed = re.search(r"^\[  FAILED  \] ([\w/]+\.[\w/]+)", output, re.MULTILINE)
    if failed:
        return failed[1]
    started = re.findall(r"^\[ RUN      \] (\S+)", output, re.MULTILINE)
    return f"{started[-1] if started else 'before the first test'} (ended with {code})"


class Copy:
    """A copy of the tree and its build folder, in which one mutant at a time is tested."""

    def __init__(self, number):
        self.tree = os.path.join(WORK, str(number), "tree")
        self.folder = os.path.join(WORK, str(number), "build")
        self.ready = set()  # test programs that were built and passed without a mutant
        os.makedirs(self.tree, exist_ok=True)
        self.copy_tree()
        configured = subprocess.run(
            ["cmake", "-G", "Ninja", "-S", self.tree, "-B", self.folder, "-D", "CMAKE_BUILD_TYPE=Mutation",
             "-D", "CMAKE_CXX_FLAGS=-O1", "-D", "KVSCOPE_CHECK_HEADERS=OFF", "-D", "KVSCOPE_BUILD_VIEWER=OFF"],
            capture_output=True, text=True, check=False)
        if configured.returncode != 0:
            sys.exit("configuring the copy failed:\n" + configured.stdout + configured.stderr)

    def copy_tree(self):
        """Keeps the time stamps of unchanged files, so that only changed ones are compiled again."""
        for top in ["CMakeLists.txt", "core", "gpu", "viz", "apps", "tests"]:
            source, target = os.path.join(ROOT, top), os.path.join(self.tree, top)
            if os.path.isfile(source):
                shutil.copy2(source, target)
                continue
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("corpus", "__pycache__"))

    def build(self, target):
        return subprocess.run(["ninja", "-j2", "-C", self.folder, target], capture_output=True, text=True, check=False)

    def run_tests(self, program):
        """None if all tests pass, else the name of the first that fails."""
        try:
            done = subprocess.run([os.path.join(self.folder, program), "--gtest_fail_fast"], capture_output=True, text=True,
                                  errors="replace", timeout=TIMEOUT, cwd=self.folder, check=False)
        except subprocess.TimeoutExpired as late:
            return first_failure((late.stdout or b"").decode("utf-8", "replace"), f"nothing after {TIMEOUT} s")
        return None if done.returncode == 0 else first_failure(done.stdout, done.returncode)

    def prepare(self, target, program):
        """The reason why no mutant of this test program can be tested, or None."""
        if target in self.ready:
            return None
        built = self.build(target)
        if built.returncode != 0:
            return f"the tree as it is does not build {target}: {built.stdout[-2000:]}"
        failure = self.run_tests(program)
        if failure is not None:
            return f"the tree as it is fails {failure}"
        self.ready.add(target)
        return None

    def judge(self, path, old, new):
        """('killed' | 'SURVIVED' | 'DOES NOT COMPILE' | 'NOT FOUND ONCE' | 'NOT JUDGED', detail)"""
        file = os.path.join(self.tree, path)
        original = read(file)
        places = place_of(original, old)
        if len(places) != 1:
            return "NOT FOUND ONCE", f"found {len(places)} times: bring tests/mutation/mutants.py up to date"
        begin, end = places[0]
        target, program = test_program(path)
        reason = self.prepare(target, program)
        if reason is not None:
            return "NOT JUDGED", reason
        write_if_changed(file, original[:begin] + new + original[end:])
        try:
            built = self.build(target)
            if built.returncode != 0:
                return "DOES NOT COMPILE", next((line for line in built.stdout.splitlines() if "error:" in line), "")
            failure = self.run_tests(program)
        finally:
            write_if_changed(file, original)
        return ("SURVIVED", f"add a test of {path}") if failure is None else ("killed", failure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="mutants whose file or mistake contains this text")
    parser.add_argument("--list", action="store_true",
                        help="print the mutants and whether each is found once; build nothing")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tested at the same time (default: 2)")
    arguments = parser.parse_args()
    chosen = [m for m in MUTANTS if arguments.only in m[0] or arguments.only in m[3]]
    if not chosen:
        sys.exit(f"no mutant's file or mistake contains '{arguments.only}'")
    if arguments.list:
        missing = 0
        for path, old, _, why in chosen:
            count = len(place_of(read(os.path.join(ROOT, path)), old))
            missing += count != 1
            print(f"{'ok ' if count == 1 else count} {path}: {why}")
        return 1 if missing else 0

    for tool in ("cmake", "ninja"):
        if shutil.which(tool) is None:
            sys.exit(f"no {tool} here: tests/run.sh installs it")
    started = time.monotonic()
    jobs = max(1, min(arguments.jobs, len(chosen)))
    copies = queue.Queue()
    for number in range(jobs):
        copies.put(Copy(number))

    def judge(mutant):
        copy = copies.get()
        try:
            return copy.judge(*mutant[:3])
        finally:
            copies.put(copy)

    verdicts = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as workers:
        for (path, _, _, why), (verdict, detail) in zip(chosen, workers.map(judge, chosen)):
            verdicts.append(verdict)
            print(f"{verdict:<8} {path}: {why}\n         {detail}", flush=True)
    killed = verdicts.count("killed")
    print(f"{killed} of {len(verdicts)} mutants killed in {time.monotonic() - started:.0f} s")
    return 0 if killed == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
