"""What a call costs besides the work in C++: calls of functions, memory, and the golden output beside the command line's."""
import gc
import os
import pathlib
import resource
import subprocess
import sys
import time

import numpy as np
import pytest

import kvscope as kv
from kvscope import _core
from launch_test import EXAMPLES

TOOL = pathlib.Path(_core.__file__).parents[2] / "kvscope" / "kvscope"


def small(rows=1):
    """`rows` times two sequences of at most 4 tokens."""
    return dict(q=np.ones((2 * rows, 2, 4), np.float32), kv_cache=np.ones((3, 2, 4, 1, 4), np.float32),
                block_table=np.array([[0], [1]] * rows, np.int32), seq_lens=np.array([3, 4] * rows, np.int32))


def calls_in(call):
    """How many functions a call calls, of Python and of C."""
    count = 0

    def note(_, event, __):
        nonlocal count
        count += event in ("call", "c_call")

    call()  # imports and caches
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def test_a_call_does_little_besides_the_work_whatever_the_size_of_the_tensors():
    """In counts, which repeat exactly, as times do not."""
    found = {}
    for rows in (1, 500):
        tensors = small(rows)
        problem = kv.Problem.vllm(**tensors)
        g = kv.golden(problem)
        out = g.o.astype(np.float32)
        scale, data = kv.load(EXAMPLES / "scale.ptx")["scale"], np.ones(32 * rows, np.float32)
        for name, call in (("Problem", lambda: kv.Problem.vllm(**tensors)), ("golden", lambda: kv.golden(problem)),
                           ("verify", lambda: kv.verify(out, g)),
                           ("launch", lambda: scale.launch(block=32, args=[data, 1.0]))):
            found.setdefault(name, []).append(calls_in(call))
    for name, most in (("Problem", 200), ("golden", 20), ("verify", 100), ("launch", 130)):
        assert found[name][0] == found[name][1] <= most, f"{name}: {found[name]} calls of functions"


def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_ten_thousand_calls_keep_no_memory():
    tensors = small()
    scale, data = kv.load(EXAMPLES / "scale.ptx")["scale"], np.ones(32, np.float32)

    def calls():
        problem = kv.Problem.vllm(**tensors)
        g = kv.golden(problem)
        kv.verify(g.o.astype(np.float32), g)
        scale.launch(block=32, args=[data, 1.0])
        with pytest.raises(kv.InputError):
            kv.Problem.vllm(**{**tensors, "seq_lens": None})
    for _ in range(200):
        calls()
    gc.collect()
    before = resident()
    for _ in range(2000):
        calls()
    gc.collect()
    assert resident() - before < 10_000 * 50  # less than 50 bytes a call: the smallest leak of an object is more


@pytest.mark.skipif(not os.environ.get("KVSCOPE_FULL"), reason="some seconds of CPU time: only with KVSCOPE_FULL=1")
def test_golden_takes_the_time_of_the_command_line(tmp_path):
    if not TOOL.exists():
        pytest.skip(f"{TOOL} is not built")
    rng = np.random.default_rng(1)
    pages, sequences = 512, 16
    kv.Problem.vllm(rng.standard_normal((sequences, 8, 128), np.float32),
                    rng.standard_normal((pages, 2, 16, 4, 128), np.float32),
                    block_table=np.tile(rng.permutation(pages).astype(np.int32), (sequences, 1)),
                    seq_lens=np.full(sequences, pages * 16, np.int32)).save(tmp_path / "in.safetensors")

    def in_python():
        start = time.process_time()
        kv.golden(kv.Problem.load(tmp_path / "in.safetensors")).save(tmp_path / "python.safetensors")
        return time.process_time() - start

    def on_the_command_line():
        start = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([TOOL, "golden", "--input", tmp_path / "in.safetensors", "--out",
                        tmp_path / "tool.safetensors"], check=True, capture_output=True)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        return end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime
    times = [(in_python(), on_the_command_line()) for _ in range(5)]
    python, tool = (min(column) for column in zip(*times))
    assert python < 1.05 * tool, f"{python:.2f} s in Python, {tool:.2f} s on the command line"
    print(f"{python / tool:.3f} of the command line's CPU time ({tool:.2f} s)")
