#!/usr/bin/env python3
"""Does `kvscope verify` accept every correct kernel, and no wrong one whose effect exceeds rounding?

Simulated kernels (bound_study_kernels.py) write outputs over the same data as the golden: right ones in many orders of
summation and types, wrong ones with a missing key, an exchanged page and so on. The effect of a fault is compared with
the rounding of the right kernels: the largest error of any of them with the same output type over the same data. A
wrong kernel must be rejected when the effect of its fault is at least MARGIN times that.

  bound_study_test.py --kvscope PROGRAM                      a subset, in seconds: the test of tests/run.sh
  bound_study_test.py --kvscope PROGRAM --full               10,000 right kernels, and the table of docs/04
  bound_study_test.py --kvscope PROGRAM --full --seed 7      the same on other data
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import bound_study_kernels as study

MARGIN = 8.0
# keys: data sets of each kind
FULL = {17: 2, 33: 2, 188: 2, 1000: 2, 4096: 2, 16384: 1, 65536: 1}
QUICK = {17: 1, 188: 1, 1000: 1}
QUICK_KERNELS = 3    # drawn for each data set, in addition to the usual ones


def drawn_kernels(keys, full):
    return QUICK_KERNELS if not full else 48 if keys <= 4096 else 36 if keys <= 16384 else 8


def save(path, arrays):
    np.savez(path, **arrays)


def inputs_of(data):
    blocks = -(-data.keys // study.PAGE)
    pad = ((0, blocks * study.PAGE - data.keys), (0, 0), (0, 0))
    pages = {name: np.pad(x, pad).reshape(blocks, study.PAGE, *x.shape[1:]) for name, x in
             (("k_cache", data.k), ("v_cache", data.v))}
    arrays = {"q": data.q[None], **pages}
    if data.stored == "bf16":
        arrays = {name + "_bf16": (x.view(np.uint32) >> 16).astype(np.uint16) for name, x in
                  ((n, np.ascontiguousarray(x)) for n, x in arrays.items())}
    elif data.stored == "f16":
        arrays = {name: x.astype(np.float16) for name, x in arrays.items()}
    arrays["block_table"] = np.arange(blocks, dtype=np.int32)[None]
    arrays["cache_seqlens"] = np.array([data.keys], np.int32)
    return arrays


def candidate_of(o, lse, output, with_lse=True):
    if output == "bf16":
        arrays = {"o_bf16": (np.ascontiguousarray(o).view(np.uint32) >> 16).astype(np.uint16)[None]}
    else:
        arrays = {"o": o.astype(np.float16 if output == "f16" else np.float32)[None]}
    if with_lse:
        arrays["lse"] = lse[None]
    return arrays


class Study:
    def __init__(self, kvscope, folder):
        self.kvscope, self.folder = kvscope, pathlib.Path(folder)
        self.right = self.false_alarms = 0
        # (keys, fault, output, with lse): [cases, visible, accepted visible, seen, effects]
        self.wrong = collections.defaultdict(lambda: [0, 0, 0, 0, []])
        self.accepted = []

    def run(self, *arguments):
        return subprocess.run([self.kvscope, *map(str, arguments)], capture_output=True, text=True)

    def verdict(self, kernel, arrays):
        save(self.folder / "candidate.npz", arrays)
        result = self.run("verify", self.folder / "golden.npz", self.folder / "candidate.npz", "--no-diagnose", "--json",
                          *kernel.options())
        if result.returncode == 2:
            sys.exit(result.stderr)
        return json.loads(result.stdout)

    def data_set(self, kind, keys, stored, seed, kernels):
        rng = np.random.default_rng([seed, keys, 1])
        dim = int(rng.choice([32, 64, 128])) if keys <= 4096 else 64
        data = study.make_data(kind, keys, stored, seed, dim=dim)
        save(self.folder / "inputs.npz", inputs_of(data))
        made = self.run("golden", "--input", self.folder / "inputs.npz", "--layout", "nhd", "--out",
                        self.folder / "golden.npz")
        if made.returncode != 0:
            sys.exit(made.stderr)
        o64, lse64 = study.exact(data)
        golden = np.load(self.folder / "golden.npz")
        assert np.allclose(golden["o"][0], o64, rtol=1e-9, atol=1e-12 * (1 + abs(data.v).max())), (kind, keys)

        rounding = collections.defaultdict(lambda: (1e-300, 1e-300))
        for kernel in study.usual_kernels() + study.right_kernels(rng, kernels):
            o, lse = study.run_kernel(data, kernel)
            if not kernel.options():
                errors = np.abs(o - o64).max(), np.abs(lse - lse64).max()
                rounding[kernel.output] = tuple(map(max, rounding[kernel.output], errors))
            report = self.verdict(kernel, candidate_of(o, lse, kernel.output, rng.random() < 0.8))
            self.right += 1
            if not report["passed"]:
                self.false_alarms += 1
                print("rejected:", kind, keys, stored, "seed", seed, kernel,
                      *(c["name"] + ": " + c["detail"] for c in report["criteria"] if not c["passed"]), sep="\n  ",
                      flush=True)
        for name, arguments in study.faults(data, rng):
            self.fault(data, kind, name, arguments, o64, lse64, rounding, rng)

    def fault(self, data, kind, name, arguments, o64, lse64, rounding, rng):
        faulty_o, faulty_lse = study.exact(data, **arguments)
        tile = int(rng.choice([32, 64, 128]))
        outputs = list(rounding)
        del outputs[int(rng.integers(3))]   # two of the three types of each fault
        for output in outputs:
            o_error, lse_error = rounding[output]
            kernel = study.Kernel(output=output, p=output, tile=tile, row_sum=str(rng.choice(["exact", "rounded"])))
            o, lse = study.run_kernel(data, kernel, **arguments)
            for with_lse in (True, False):
                effect = np.abs(faulty_o - o64).max() / o_error
                if with_lse:
                    effect = max(effect, np.abs(faulty_lse - lse64).max() / lse_error)
                passed = self.verdict(kernel, candidate_of(o, lse, output, with_lse))["passed"]
                cell = self.wrong[data.keys, name, output, with_lse]
                cell[0] += 1
                cell[3] += not passed
                cell[4].append(effect)
                if effect >= MARGIN:
                    cell[1] += 1
                    if passed:
                        cell[2] += 1
                        self.accepted.append((kind, data.keys, data.stored, name, output, with_lse, effect))

    def totals(self):
        return [sum(cell[i] for cell in self.wrong.values()) for i in range(4)]

    def table(self):
        """By length and fault: the share of wrong kernels that verify rejects, and the median effect."""
        lengths = sorted({key[0] for key in self.wrong})
        names = list(dict.fromkeys(key[1] for key in self.wrong))
        for with_lse in (True, False):
            print(f"\nrejected, in percent of the cases{'' if with_lse else ', candidates without lse'} (f32, bf16, f16):\n")
            print("| fault | " + " | ".join(f"{n:,} keys" for n in lengths) + " |")
            print("|---|" + "---|" * len(lengths))
            for name in names:
                row = []
                for keys in lengths:
                    cells = [self.wrong.get((keys, name, output, with_lse)) for output in ("f32", "bf16", "f16")]
                    row.append(" / ".join("-" if c is None else f"{100 * c[3] / c[0]:.0f}" for c in cells))
                print(f"| {name} | " + " | ".join(row) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvscope", required=True)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keys", type=int, nargs="*", help="only these lengths")
    parser.add_argument("--kinds", nargs="*", help="only these kinds of data")
    parser.add_argument("--kernels", type=int, help="kernels to draw for each data set, in addition to the usual 12")
    parser.add_argument("--show", type=int, default=10, help="accepted wrong kernels to print")
    options = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    extent = FULL if options.full else QUICK
    kinds = study.TUNED_KINDS + study.OTHER_KINDS
    with tempfile.TemporaryDirectory() as folder:
        result = Study(options.kvscope, folder)
        for keys, sets in extent.items():
            if options.keys and keys not in options.keys:
                continue
            for index in range(sets):
                for number, kind in enumerate(kinds if options.full else kinds[:4] + kinds[-7:-5]):
                    if options.kinds and kind not in options.kinds:
                        continue
                    stored = ("f32", "bf16", "f16")[(number + index) % 3]
                    result.data_set(kind, keys, stored, options.seed * 1000 + index,
                                    drawn_kernels(keys, options.full) if options.kernels is None else options.kernels)
                    if options.full and keys > 4096:
                        print(f"{keys} keys, {kind}: {result.false_alarms} of {result.right} right kernels rejected", flush=True)
            if options.full:
                cases, visible, accepted, seen = result.totals()
                print(f"up to {keys} keys: {result.false_alarms} of {result.right} right kernels rejected; of {cases} wrong ones "
                      f"{seen} rejected; {accepted} of {visible} above {MARGIN}x rounding accepted", flush=True)
    for case in sorted(result.accepted, key=lambda case: -case[-1])[: options.show]:
        print("accepted:", *case)
    cases, visible, accepted, seen = result.totals()
    if options.full:
        result.table()
    print(f"{result.right} right kernels: {result.false_alarms} rejected; {cases} wrong ones: {seen} rejected, {visible} exceed "
          f"{MARGIN:.0f}x the rounding of right kernels, {accepted} of these accepted")
    return 1 if result.false_alarms or accepted else 0


if __name__ == "__main__":
    sys.exit(main())
