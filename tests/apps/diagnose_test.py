#!/usr/bin/python3
"""kvscope diagnose against an attention kernel in NumPy whose fault is known: the true cause comes first, and no wrong
cause is stated as certain.

    diagnose_test.py --kvscope PROGRAM

With KVSCOPE_FAULT_TABLE=1 the first test prints one line per fault.
"""
import collections
import concurrent.futures
import itertools
import json
import os
import sys
import tempfile
import unittest

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from attention_faults import FAULTS  # noqa: E402
from faulty_attention import SHAPES, Inputs, Kernel, suffixed, to_bits  # noqa: E402
from program import fine, kvscope  # noqa: E402

DTYPES = ["f32", "bf16", "f16"]
SEEDS = [1, 2, 3]


def candidate(dtype, o, lse):
    return {suffixed("o", dtype): to_bits(dtype, o), "lse": lse.astype(np.float32)}


class Folder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder, cls.made, cls.count = folder.name, {}, itertools.count()

    @classmethod
    def inputs(cls, shape, dtype, seed):
        """A batch and its golden's path."""
        key = shape.name, dtype, seed
        if key not in cls.made:
            name = os.path.join(cls.folder, "-".join(map(str, key)))
            inputs = Inputs(shape, dtype, seed)
            np.savez(name + ".npz", **inputs.arrays)
            done = kvscope("golden", "--input", name + ".npz", *shape.options, "--out", name + "-golden.npz")
            if done.returncode != 0:
                raise AssertionError(done.stderr)
            cls.made[key] = inputs, name + "-golden.npz"
        return cls.made[key]

    @classmethod
    def verify(cls, golden, dtype, o, lse):
        path = os.path.join(cls.folder, f"candidate-{next(cls.count)}.npz")
        np.savez(path, **candidate(dtype, o, lse))
        done = kvscope("verify", golden, path, "--json")
        os.remove(path)
        if done.returncode not in (0, 1) or done.stderr:
            raise AssertionError(done.stderr)
        return json.loads(done.stdout)


class Judged:
    """What a diagnosis said about a candidate whose fault is known."""

    def __init__(self, report, hypotheses, place):
        self.observable = not report["passed"]
        diagnosis = report.get("diagnosis", {"explanations": [], "certain": False})
        true = [e["name"] in hypotheses and (place is None or place in e["cause"]) for e in diagnosis["explanations"]]
        self.first, self.listed, self.certain = true[:1] == [True], any(true), diagnosis["certain"]
        self.wrong = self.certain and not self.first
        self.words = "; ".join(e["name"] + ": " + e["cause"] for e in diagnosis["explanations"][:3]) or "none"


class Faults(Folder):
    def cases(self):
        for n, fault in enumerate(FAULTS):
            for shape in filter(fault.when, SHAPES):
                for m, (dtype, seed) in enumerate(itertools.product(DTYPES, SEEDS)):
                    if program.SLOW_BUILD and (n + m) % 9 or not EVERY and m % 4:
                        continue
                    yield n, fault, shape, dtype, seed

    def judge(self, case):
        n, fault, shape, dtype, seed = case
        inputs, golden = self.inputs(shape, dtype, seed)
        kernel = Kernel(inputs)
        place = fault.apply(kernel, np.random.default_rng([n, seed]))
        try:
            o, lse = kernel.run(dtype)
        except IndexError:  # outside the cache's memory: a GPU would stop the kernel
            return None
        return Judged(self.verify(golden, dtype, o, lse), fault.hypotheses, place)

    def test_the_true_cause_is_first_and_no_wrong_one_is_certain(self):
        counts, misses = collections.defaultdict(collections.Counter), []
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            cases = list(self.cases())
            for case, judged in zip(cases, pool.map(self.judge, cases)):
                _, fault, shape, dtype, seed = case
                if judged is None:
                    continue
                counts[fault.name].update(cases=1, observable=judged.observable)
                if not judged.observable:
                    continue
                counts[fault.name].update(first=judged.first, listed=judged.listed, certain=judged.certain,
                                          wrong=judged.wrong)
                if not judged.first:
                    misses.append(f"{fault.name}, {shape.name}, {dtype}, seed {seed}: {judged.words}"
                                  f"{' (certain)' if judged.certain else ''}")
        total = sum(counts.values(), collections.Counter())
        columns = ["cases", "observable", "first", "listed", "certain", "wrong"]
        if os.environ.get("KVSCOPE_FAULT_TABLE") == "1":
            print("\n".join(misses))
            for name, row in counts.items():
                print(f"{name:36}" + "".join(f"{row[c]:>11}" for c in columns))
        print(f"{'fault':36}" + "".join(f"{c:>11}" for c in columns))
        print(f"{str(len(counts)) + ' faults':36}" + "".join(f"{total[c]:>11}" for c in columns))


EVERY = os.environ.get("KVSCOPE_EVERY_FAULT") == "1"

if __name__ == "__main__":
    program.main()
