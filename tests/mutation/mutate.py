#!/usr/bin/python3
"""Makes one formula wrong at a time and checks that a test notices.

    tests/mutation/mutate.py [--only TEXT] [--list]

Works on a copy of the tree in build/mutation, so the tree itself is never touched. A mutant of core/<folder> is judged
by that folder's own test program. Prints one line a mutant with the test that killed it; exits 1 when one survives,
does not compile, or no longer matches the source exactly once.
"""
import argparse
import os
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
TREE = os.path.join(WORK, "tree")
BUILD = os.path.join(WORK, "build")
TIMEOUT = 300  # [s] of one test program: a mutant that loops for ever is noticed too


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write_if_changed(path, text):
    """Keeps the time stamp of what did not change, so that only mutated files are compiled again."""
    if os.path.exists(path) and read(path) == text:
        return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def copy_tree():
    keep = ["CMakeLists.txt", "core", "viz", "apps", "tests"]
    wanted = set()
    for top in keep:
        source = os.path.join(ROOT, top)
        files = [source] if os.path.isfile(source) else [
            os.path.join(folder, name) for folder, _, names in os.walk(source) for name in names
            if name.endswith((".h", ".cpp", ".txt", ".in"))]
        for path in files:
            target = os.path.join(TREE, os.path.relpath(path, ROOT))
            wanted.add(target)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            write_if_changed(target, read(path))
    for folder, _, names in os.walk(TREE):
        for name in names:
            if os.path.join(folder, name) not in wanted:
                os.remove(os.path.join(folder, name))


def place_of(text, old):
    """(begin, end) of each place where `old` stands, white space aside."""
    pattern = r"\s+".join(re.escape(word) for word in old.split())
    return [match.span() for match in re.finditer(pattern, text)]


def build(target):
    return subprocess.run(["ninja", "-C", BUILD, target], capture_output=True, text=True, check=False)


def first_failure(output, code):
    failed = re.search(r"^\[  FAILED  \] ([\w/]+\.[\w/]+)", output, re.MULTILINE)
    if failed:
        return failed[1]
    started = re.findall(r"^\[ RUN      \] (\S+)", output, re.MULTILINE)
    return f"{started[-1] if started else 'before the first test'} (ended with {code})"


def run_tests(folder):
    """None when all pass, else the name of the first that does not."""
    program = os.path.join(BUILD, "tests", "core", folder, folder + "_test")
    try:
        done = subprocess.run([program, "--gtest_fail_fast"], capture_output=True, text=True, errors="replace",
                              timeout=TIMEOUT, cwd=BUILD, check=False)
    except subprocess.TimeoutExpired as late:
        return first_failure((late.stdout or b"").decode("utf-8", "replace"), f"nothing after {TIMEOUT} s")
    return None if done.returncode == 0 else first_failure(done.stdout, done.returncode)


def prepare(folders):
    copy_tree()
    configured = subprocess.run(
        ["cmake", "-G", "Ninja", "-S", TREE, "-B", BUILD, "-D", "CMAKE_BUILD_TYPE=Mutation",
         "-D", "CMAKE_CXX_FLAGS=-O1", "-D", "KVSCOPE_CHECK_HEADERS=OFF", "-D", "KVSCOPE_BUILD_VIEWER=OFF"],
        capture_output=True, text=True, check=False)
    if configured.returncode != 0:
        sys.exit("configuring the copy failed:\n" + configured.stdout + configured.stderr)
    for folder in folders:
        built = build(folder + "_test")
        if built.returncode != 0:
            sys.exit(f"the tree as it is does not build {folder}_test:\n{built.stdout[-4000:]}")
        failure = run_tests(folder)
        if failure is not None:
            sys.exit(f"the tree as it is fails {failure}: no mutant can be judged")


def judge(path, old, new):
    """('killed' | 'SURVIVED' | 'DOES NOT COMPILE' | 'NOT FOUND ONCE', detail)"""
    target = os.path.join(TREE, path)
    original = read(target)  # of the copy: somebody may be editing the tree
    places = place_of(original, old)
    if len(places) != 1:
        return "NOT FOUND ONCE", f"stands there {len(places)} times: bring tests/mutation/mutants.py up to date"
    begin, end = places[0]
    folder = path.split("/")[1]
    write_if_changed(target, original[:begin] + new + original[end:])
    try:
        built = build(folder + "_test")
        if built.returncode != 0:
            return "DOES NOT COMPILE", next((line for line in built.stdout.splitlines() if "error:" in line), "")
        failure = run_tests(folder)
    finally:
        write_if_changed(target, original)
    return ("SURVIVED", f"add a test of {path}") if failure is None else ("killed", failure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="mutants whose file or mistake contains this text")
    parser.add_argument("--list", action="store_true",
                        help="print the mutants and whether each is found once; build nothing")
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
    os.makedirs(TREE, exist_ok=True)
    prepare(sorted({path.split("/")[1] for path, *_ in chosen}))
    verdicts = []
    for path, old, new, why in chosen:
        verdict, detail = judge(path, old, new)
        verdicts.append(verdict)
        print(f"{verdict:<8} {path}: {why}\n         {detail}", flush=True)
    killed = verdicts.count("killed")
    print(f"{killed} of {len(verdicts)} mutants killed in {time.monotonic() - started:.0f} s")
    return 0 if killed == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
