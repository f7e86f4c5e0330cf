"""Ctrl+C ends each long call within 100 ms of CPU time: SIGINT from outside, at many moments of the call."""
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from launch_test import ENDLESS

SCENARIOS = str(pathlib.Path(__file__).resolve().parents[2] / "apps" / "scenarios")

# Calls `work()` again and again until a signal comes, then prints the CPU time and the wall time of the exception.
CHILD = """
import signal, sys, time
import numpy as np
import kvscope as kv

def problem(sequences, keys, queries=1, heads=8, dims=128):
    rng = np.random.default_rng(1)
    pages = keys // 16
    cache = rng.standard_normal((pages, 2, 16, heads // 2, dims), np.float32)
    return kv.Problem.vllm(rng.standard_normal((sequences * queries, heads, dims), np.float32), cache,
                           block_table=np.tile(rng.permutation(pages).astype(np.int32), (sequences, 1)),
                           seq_lens=np.full(sequences, keys, np.int32),
                           query_start_loc=np.arange(sequences + 1, dtype=np.int32) * queries)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job begins with SIGINT ignored
{setup}
print("ready", flush=True)
try:
    while True:
        work()
except KeyboardInterrupt:
    print(time.process_time(), time.monotonic(), flush=True)
"""
WORK = {
    "golden": "p = problem(24, 8192)\nwork = lambda: kv.golden(p)",
    "golden of a long sequence": "p = problem(1, 131072, heads=2)\nwork = lambda: kv.golden(p)",
    "golden of a prompt": "p = problem(1, 1024, queries=1024)\nwork = lambda: kv.golden(p)",
    "fast golden": "p = problem(48, 8192)\nwork = lambda: kv.golden(p, accuracy='fast')",
    "verify": "p = problem(64, 1024, queries=64)\np.about\ng = kv.golden(p, accuracy='fast')\n"
              "o = g.o.astype(np.float32)\nwork = lambda: kv.verify(o, g)",
    "diagnose": "p = problem(4, 4096)\ng = kv.golden(p)\no = np.roll(g.o, 3, 0).astype(np.float32) * 1.5\n"
                "work = lambda: kv.verify(o, g)",
    "run": "work = lambda: kv.run({scenarios!r} + '/real_traffic_like.json', golden=False)",
    "step": "r = kv.run({scenarios!r} + '/real_traffic_like.json', golden=False)\nwork = lambda: r.step(400_000)",
    "run with a golden output": "work = lambda: kv.run({scenarios!r} + '/mla.json')",
    "sweep": "r = kv.run({scenarios!r} + '/first_light.json')\nwork = lambda: r.sweep(page_size=[4, 8, 16, 32, 64, 128])",
    "bounds": "p = problem(64, 256, queries=64)\ng = kv.golden(p, accuracy='fast')\nwork = lambda: g.bounds",
    "launch": "k = kv.Module({ptx!r})['endless']\nout = np.zeros(1, np.uint32)\n"
              "work = lambda: k.launch(grid=64, block=512, args=[out], max_instructions=1 << 40)",
}


def cpu_time(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100  # USER_HZ


def seconds_after_the_signal(name, delay):
    """(CPU time, wall time) from SIGINT, `delay` seconds after the start, to the exception; None if this process had to wait for a
    processor while it sent the signal, so that the call went on without one."""
    script = CHILD.format(setup=textwrap.dedent(WORK[name]).format(ptx=ENDLESS, scenarios=SCENARIOS))
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(delay)
        cpu, wall = cpu_time(child.pid), time.monotonic()
        child.send_signal(signal.SIGINT)
        waited = time.monotonic() - wall > 0.01
        words = child.communicate(timeout=60)[0].split()
        assert len(words) == 2, f"{name}: no KeyboardInterrupt"
        return None if waited else (float(words[0]) - cpu, float(words[1]) - wall)
    finally:
        child.kill()
        child.wait()


FULL = os.environ.get("KVSCOPE_FULL")


@pytest.mark.parametrize("name", WORK if FULL else ["golden", "verify", "launch", "run"])
def test_ctrl_c_stops_a_call_within_100_ms(name):
    for delay in (0.05, 0.3, 0.7, 1.3, 2.2) if FULL else (0.2,):
        cpu, wall = next(filter(None, (seconds_after_the_signal(name, delay) for _ in range(20))))
        assert cpu < 0.1, f"{cpu:.3f} s of CPU time, {wall:.3f} s after a signal at {delay} s"
