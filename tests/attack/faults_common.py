"""Shared by the tests with injected faults: runs kvscope with faults_inject, and compares the files it leaves."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "apps"))
import program  # noqa: E402
from program import SCENARIOS, SOURCE, kvscope  # noqa: E402, F401

INJECTOR = os.path.abspath(os.environ["FAULTS_INJECT"])
FULL = os.environ.get("KVSCOPE_FULL") == "1"
SAMPLE = int(os.environ.get("FAULTS_SAMPLE", "0"))  # calls of each kind and command without FULL; 0: those of the test
# A program inherits ignored signals, and a shell starts background jobs with some.
for each in ("SIGINT", "SIGQUIT", "SIGHUP", "SIGTERM", "SIGPIPE"):
    signal.signal(getattr(signal, each), signal.SIG_DFL)
TEMPORARY = re.compile(r"\.kvscope-[0-9a-f]{32}\.tmp")
EXAMPLES = os.path.join(SOURCE, "apps", "examples")
SCENARIO = os.path.join(SCENARIOS, "first_light.json")
SCALE = os.path.join(EXAMPLES, "scale.ptx")


class Command:
    """A command line with `{in}` and `{out}` for the folders of its inputs and outputs."""

    def __init__(self, name, line, outputs, inputs=()):
        self.name, self.line, self.outputs, self.inputs = name, line, outputs, inputs

    def arguments(self, work):
        return [word.replace("{in}", os.path.join(work, "in")).replace("{out}", os.path.join(work, "out"))
                for word in self.line.split()]


# One command for each kind of writer, and for each kind of reader.
COMMANDS = [
    Command("run", "run {in}/s.json --out {out}/run --trace full", ["run"], ["s.json"]),
    Command("golden safetensors", "golden {in}/s.json --out {out}/g.safetensors", ["g.safetensors"], ["s.json"]),
    Command("golden npz", "golden {in}/s.json --out {out}/g.npz", ["g.npz"], ["s.json"]),
    Command("stage", "stage {in}/s.json --out {out}/bytes.npy", ["bytes.npy"], ["s.json"]),
    Command("verify", "verify {in}/g.npz {in}/g.npz --junit {out}/j.xml", ["j.xml"], ["g.npz"]),
    Command("merge", "merge {in}/a.npz {in}/b.npz --out {out}/m.npz", ["m.npz"], ["a.npz", "b.npz"]),
    Command("ptx run", "ptx run {in}/scale.ptx --block 64 --arg f32[64] --arg 2.5 --json {out}/r.json "
            "--events {out}/e.txt --save 0={out}/x.npy", ["r.json", "e.txt", "x.npy"], ["scale.ptx"]),
    Command("trace show", "trace show {in}/t.kvt", [], ["t.kvt"]),
    Command("tma check", "tma check {in}/rows.json", [], ["rows.json"]),
    Command("scenario check", "scenario check {in}/s.json", [], ["s.json"]),
]


def make_inputs(folder):
    """The inputs of all commands."""
    shutil.copy(SCENARIO, os.path.join(folder, "s.json"))
    shutil.copy(SCALE, os.path.join(folder, "scale.ptx"))
    shutil.copy(os.path.join(EXAMPLES, "rows.json"), os.path.join(folder, "rows.json"))
    import numpy as np
    for name in ("a", "b"):
        np.savez(os.path.join(folder, name + ".npz"), o=np.ones((2, 4, 8), np.float32), lse=np.ones((2, 4), np.float32))
    with tempfile.TemporaryDirectory() as work:
        for line in (["golden", "s.json", "--out", "g.npz"], ["run", "s.json", "--out", work, "--trace", "full"]):
            done = kvscope(*line, cwd=folder)
            assert done.returncode == 0, done.stderr
        shutil.copy(os.path.join(work, "trace.kvt"), os.path.join(folder, "t.kvt"))


def contents(folder):
    """{relative path: bytes} of all files, {path: None} of folders."""
    found = {}
    for at, folders, files in os.walk(folder):
        for name in folders:
            found[os.path.relpath(os.path.join(at, name), folder)] = None
        for name in files:
            with open(os.path.join(at, name), "rb") as file:
                found[os.path.relpath(os.path.join(at, name), folder)] = file.read()
    return found


def inject(arguments, under, at=None, counts=None, log=None, cwd=None, timeout=120):
    environment = {**os.environ, "LD_PRELOAD": INJECTOR, "FAULTS_UNDER": under}
    for name, value in (("FAULTS_AT", at), ("FAULTS_COUNTS", counts), ("FAULTS_LOG", log)):
        environment.pop(name, None)
        if value:
            environment[name] = value
    return subprocess.run([program.KVSCOPE, *arguments], cwd=cwd, env=environment, capture_output=True, text=True,
                          errors="replace", timeout=timeout, check=False)


def count_calls(arguments, under):
    """{call: number of calls} of a run without faults."""
    with tempfile.TemporaryDirectory() as work:
        file = os.path.join(work, "counts.txt")
        inject(arguments, under, counts=file)
        with open(file, encoding="ascii") as lines:
            return {name: int(number) for name, number in (line.split() for line in lines)}


def sampled(count, most, first=1):
    """All of `first` to count with KVSCOPE_FULL=1, else at most `most` of them: the first, the last, and evenly spaced ones."""
    most = SAMPLE or most
    if FULL or count - first < most:
        return range(first, count + 1)
    return sorted({first + round(i * (count - first) / (most - 1)) for i in range(most)})
