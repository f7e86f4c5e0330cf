#!/usr/bin/env python3
"""Does `kvscope verify` accept every correct kernel, and no wrong one whose effect exceeds rounding?

Simulated kernels (bound_study_kernels.py) write outputs over the same data as the golden: right ones in many orders of
summation and types, wrong ones with a missing key, an exchanged page and so on. The effect of a fault is compared with
the rounding of the right kernels: the largest error of any of them with the same output type over the same data, at
least 64 of each type (512 for the shortest sequences, 32 for long ones), in which everything is drawn that decides how
a correct kernel rounds. A wrong kernel must be rejected when the effect of its fault is at least MARGIN times that: each
may round by 8 standard deviations, and the largest of 16 errors is about 2. A fault that leaves every bit of the stored
o has no effect on it.

  bound_study_test.py --kvscope PROGRAM --judge PROGRAM        a subset, and whether docs/04 has the tables
  bound_study_test.py --kvscope PROGRAM --judge PROGRAM --full --seed 7 --add FILE    all lengths, added to FILE
  bound_study_test.py --update docs/04_attention_and_golden.md        writes the tables of the kept results
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
# keys: kernels drawn for each data set, in addition to the usual ones. A data set for each kind of data and length.
FULL = {17: 75, 33: 75, 188: 75, 1000: 20, 4096: 6, 16384: 3, 65536: 2}
QUICK = {17: 3, 188: 3, 1000: 3}
QUICK_KINDS = ("normal", "biased", "constant_v", "same_key", "recency", "large_values")
# Of the subset, correct kernels only: without the term for matrix instructions, some of them are rejected.
QUICK_TRUNCATION = (("far_from_zero", 16384), ("heavy_end", 65536))
TRUNCATING = 2      # kernels with truncating fp8 sums of each data set
MATRIX = 6          # kernels on 16-bit matrix instructions of each data set
# Kernels of each output type for the estimate of the largest error that rounding can make. A short sequence has few
# scores, so one kernel shows few of their errors: it gets more kernels, each with its own order of products.
ROUNDING, ROUNDING_OF_SHORT, ROUNDING_OF_LONG, ROUNDING_OF_SUBSET = 64, 512, 32, 16
SHORT = 64          # below this length
LONG = 16384        # from this length on: fewer usual kernels, and one type of output for each fault
FAULTS_OF_LONGEST = 6   # faults of each data set of 65,536 keys
# The kept results of full runs, and the page that shows them.
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "04_attention_and_golden.md"
RESULTS = pathlib.Path(__file__).with_name("bound_study_results.json")


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
    def __init__(self, kvscope, judge, folder):
        self.kvscope, self.folder = kvscope, pathlib.Path(folder)
        self.judge = judge and subprocess.Popen([judge], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.compared = 0   # candidates of the current golden that `kvscope verify` judged
        # keys: [kernels, rejected] of right kernels
        self.right = collections.defaultdict(lambda: [0, 0])
        # (fault, keys, output, with lse, effect over rounding as a power of two): [cases, rejected, rejected by no
        # criterion but "o: pages"]
        self.wrong = collections.defaultdict(lambda: [0, 0, 0])
        self.accepted = []
        self.sampled = lambda keys: ROUNDING_OF_LONG if keys >= LONG else ROUNDING if keys >= SHORT else ROUNDING_OF_SHORT

    def run(self, *arguments):
        return subprocess.run([self.kvscope, *map(str, arguments)], capture_output=True, text=True)

    def verdict(self, kernel, arrays):
        """The criteria that failed, by name, with their details. `kvscope verify` judges one candidate in many, and its
        verdict must be that of the judge."""
        failed = self.answer_of_judge(kernel, arrays)
        self.compared += 1
        if self.compared in (1, 40):
            program = self.verdict_of_program(kernel, arrays)
            assert program == failed, (kernel, program, failed)
        return failed

    def ask(self, line, *tensors):
        self.judge.stdin.write(line.encode() + b"\n" + b"".join(tensor.tobytes() for tensor in tensors))
        self.judge.stdin.flush()
        answer = self.judge.stdout.readline().decode().rstrip("\n")
        if not answer:
            sys.exit("the judge ended")
        return answer

    def answer_of_judge(self, kernel, arrays):
        o = arrays["o"] if "o" in arrays else arrays["o_bf16"]
        lse = [arrays["lse"]] if "lse" in arrays else []
        tile = kernel.tile if kernel.accumulator_bits and kernel.promoted else 1
        answer = self.ask(f"judge {kernel.output} {kernel.p if kernel.p != kernel.output else '-'} "
                          f"{kernel.partials if kernel.partials != 'f32' else '-'} {kernel.accumulator_bits} {tile} "
                          f"{len(lse)}", np.ascontiguousarray(o), *map(np.ascontiguousarray, lse))
        if answer == "pass":
            return {}
        return {": ".join(text.split(": ")[:2]): text.split(": ", 2)[2] for text in answer.split("\t")}

    def verdict_of_program(self, kernel, arrays):
        save(self.folder / "candidate.npz", arrays)
        result = self.run("verify", self.folder / "golden.npz", self.folder / "candidate.npz", "--no-diagnose", "--json",
                          *kernel.options())
        if result.returncode == 2:
            sys.exit(result.stderr)
        return {c["name"]: c["detail"] for c in json.loads(result.stdout)["criteria"] if not c["passed"]}

    def data_set(self, kind, keys, stored, seed, kernels, later_shapes, with_faults=True):
        rng = np.random.default_rng([seed, keys, 1])
        shapes = (study.LONGEST_SHAPES if keys >= LONG else study.LONG_SHAPES if keys >= 4096 else
                  study.LATER_SHAPES if later_shapes else study.SHAPES)
        data = study.make_data(kind, keys, stored, seed, shapes[int(rng.integers(len(shapes)))])
        save(self.folder / "inputs.npz", inputs_of(data))
        made = self.run("golden", "--input", self.folder / "inputs.npz", "--layout", "nhd", "--out",
                        self.folder / "golden.npz")
        if made.returncode != 0:
            sys.exit(made.stderr)
        self.ask(f"golden {self.folder / 'golden.npz'} {self.folder / 'inputs.npz'}")
        self.compared = 0
        o64, lse64 = study.exact(data)
        golden = np.load(self.folder / "golden.npz")
        assert np.allclose(golden["o"][0], o64, rtol=1e-9, atol=1e-12 * (1 + abs(data.v).max())), (kind, keys)

        rounding = collections.defaultdict(lambda: (1e-300, 1e-300))
        usual = study.kernels_of_long_sequences() if keys >= LONG else study.usual_kernels()
        chosen = usual + study.right_kernels(rng, kernels)
        if keys <= 4096:
            chosen += study.truncating_kernels(rng, TRUNCATING)
        # Their own numbers, so that the other kernels and the faults of a seed are those of earlier runs.
        other = np.random.default_rng([seed, keys, 2])
        matrix = study.matrix_kernels(other, MATRIX)
        count = self.sampled(keys) if with_faults else 0
        sampled = study.rounding_kernels(np.random.default_rng([seed, keys, 3]), count,
                                         study.DOT_ORDERS if keys >= SHORT else max(1, count // 2))
        for kernel in chosen + matrix + sampled:
            o, lse = study.run_kernel(data, kernel)
            if not kernel.options():
                errors = np.abs(o - o64).max(), np.abs(lse - lse64).max()
                rounding[kernel.output] = tuple(map(max, rounding[kernel.output], errors))
            with_lse = (other if kernel.instruction else rng).random() < 0.8
            failed = self.verdict(kernel, candidate_of(o, lse, kernel.output, with_lse))
            self.right[keys][0] += 1
            if failed:
                self.right[keys][1] += 1
                print("rejected:", kind, keys, stored, data.shape, "seed", seed, kernel,
                      *(f"{name}: {detail}" for name, detail in failed.items()), sep="\n  ", flush=True)
        if not with_faults:
            return
        faults = list(study.faults(data, rng))
        if keys > LONG:
            faults = [faults[i] for i in sorted(rng.permutation(len(faults))[:FAULTS_OF_LONGEST])]
        for name, arguments in faults:
            self.fault(data, name, arguments, o64, lse64, rounding, rng)

    def fault(self, data, name, arguments, o64, lse64, rounding, rng):
        faulty_o, faulty_lse = study.exact(data, **arguments)
        tile = int(rng.choice([32, 64, 128]))
        outputs = list(rounding)
        del outputs[int(rng.integers(3))]   # two of the three types of each fault
        if data.keys >= LONG:
            del outputs[int(rng.integers(2))]
        for output in outputs:
            o_error, lse_error = rounding[output]
            kernel = study.Kernel(output=output, p=output, tile=tile, row_sum=str(rng.choice(["exact", "rounded"])))
            o, lse = study.run_kernel(data, kernel, **arguments)
            for with_lse in (True, False):
                effect = np.abs(faulty_o - o64).max() / o_error
                failed = self.verdict(kernel, candidate_of(o, lse, output, with_lse))
                if not failed and np.array_equal(o, study.run_kernel(data, kernel)[0]):
                    effect = 0.0    # every stored bit is that of the correct kernel: no test on o can reject it
                if with_lse:
                    effect = max(effect, np.abs(faulty_lse - lse64).max() / lse_error)
                power = int(np.clip(np.floor(np.log2(max(effect, 1e-9))), -10, 10))
                cell = self.wrong[name, data.keys, output, with_lse, power]
                cell[0] += 1
                cell[1] += bool(failed)
                cell[2] += list(failed) == ["o: pages"]
                if not failed and power >= 0:
                    self.accepted.append((data.kind, data.keys, data.stored, data.shape, name, output, with_lse,
                                          float(f"{effect:.3g}")))

    def totals(self, margin=MARGIN):
        """Right kernels, rejected ones, wrong ones, rejected ones, those above `margin` times rounding, accepted ones."""
        above = [cell for key, cell in self.wrong.items() if 2.0 ** key[4] >= margin]
        return (sum(cell[0] for cell in self.right.values()), sum(cell[1] for cell in self.right.values()),
                sum(cell[0] for cell in self.wrong.values()), sum(cell[1] for cell in self.wrong.values()),
                sum(cell[0] for cell in above), sum(cell[0] - cell[1] for cell in above))

    def summary(self):
        right, rejected, wrong, seen, above, accepted = self.totals()
        return (f"{right} right kernels: {rejected} rejected; {wrong} wrong ones: {seen} rejected, {above} exceed "
                f"{MARGIN:.0f}x the rounding of right kernels, {accepted} of these accepted")

    # --- kept results ---------------------------------------------------------------------------------------------

    def load(self, path):
        kept = json.loads(path.read_text())
        for keys, kernels, rejected in kept["right"]:
            self.right[keys] = [self.right[keys][0] + kernels, self.right[keys][1] + rejected]
        for *key, cases, rejected, by_pages in kept["wrong"]:
            cell = self.wrong[tuple(key)]
            cell[0] += cases
            cell[1] += rejected
            cell[2] += by_pages
        return kept["seeds"]

    def write(self, path, seeds):
        row = lambda values: json.dumps(values)
        path.write_text('{\n"seeds": ' + row(seeds) + ',\n"right": [\n'
                        + ",\n".join(row([keys, *cell]) for keys, cell in sorted(self.right.items())) + '],\n"wrong": [\n'
                        + ",\n".join(row([*key, *cell]) for key, cell in sorted(self.wrong.items())) + "]\n}\n")


# --- tables of the page -----------------------------------------------------------------------------------------------

def right_table(result):
    lines = ["| keys | correct kernels | rejected |", "|---|---|---|"]
    for keys, (kernels, rejected) in sorted(result.right.items()):
        lines.append(f"| {keys:,} | {kernels:,} | {rejected} |")
    return lines


def margin_table(result):
    lines = ["| effect over rounding, at least | wrong kernels | accepted |", "|---|---|---|"]
    for margin in (1, 2, 4, 8, 16):
        *_, above, accepted = result.totals(margin)
        lines.append(f"| {margin} | {above:,} | {accepted:,} |")
    return lines


def only_pages_table(result):
    lines = ["| fault | rejected | only by `o: pages` |", "|---|---|---|"]
    for name in sorted({key[0] for key in result.wrong}):
        cells = [cell for key, cell in result.wrong.items() if key[0] == name]
        lines.append(f"| {name} | {sum(cell[1] for cell in cells):,} | {sum(cell[2] for cell in cells):,} |")
    return lines


def fault_table(result, with_lse):
    """Of each fault and length: percent rejected, and the median effect over rounding as a power of two."""
    lengths = sorted({key[1] for key in result.wrong})
    names = [name for name, _ in study.faults(study.make_data("normal", 188, "f32", 1), np.random.default_rng(1))]
    lines = ["| fault | " + " | ".join(f"{n:,}" for n in lengths) + " |", "|---|" + "---|" * len(lengths)]
    for name in names:
        row = []
        for keys in lengths:
            cells = {}
            for key, cell in result.wrong.items():
                if (key[0], key[1], key[3]) == (name, keys, with_lse):
                    have = cells.setdefault(key[4], [0, 0])
                    have[0] += cell[0]
                    have[1] += cell[1]
            cases, rejected = (sum(cell[i] for cell in cells.values()) for i in (0, 1))
            if not cases:
                row.append("-")
                continue
            median = sorted(power for power, cell in cells.items() for _ in range(cell[0]))[cases // 2]
            effect = f"{2.0 ** median:.3g}" if abs(median) < 10 else "> 1000" if median > 0 else "< 0.001"
            row.append(f"{100 * rejected / cases:.0f} % ({effect})")
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    return lines


def tables(result):
    return {"right": right_table(result), "margins": margin_table(result), "only pages": only_pages_table(result),
            "faults with lse": fault_table(result, True),
            "faults without lse": fault_table(result, False)}


def with_tables(page, result):
    """`page` with the lines between <!-- study: NAME --> and <!-- end --> replaced by the tables of `result`."""
    for name, lines in tables(result).items():
        start, end = f"<!-- study: {name} -->\n", "<!-- end -->"
        head, found, rest = page.partition(start)
        if not found:
            sys.exit(f"the page has no line '{start.strip()}'")
        page = head + start + "\n".join(lines) + "\n" + rest[rest.index(end):]
    return page


def page_is_current():
    kept = Study(None, None, ".")
    kept.load(RESULTS)
    text = PAGE.read_text()
    if with_tables(text, kept) == text:
        return True
    print(f"the tables of {PAGE.name} are not those of {RESULTS.name}: run bound_study_test.py --update {PAGE}")
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvscope")
    parser.add_argument("--judge", help="the program bound_study_judge of the build, beside these tests")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keys", type=int, nargs="*", help="only these lengths")
    parser.add_argument("--kinds", nargs="*", help="only these kinds of data")
    parser.add_argument("--kernels", type=int, help="kernels to draw for each data set, in addition to the usual ones")
    parser.add_argument("--show", type=int, default=10, help="accepted wrong kernels to print")
    parser.add_argument("--add", type=pathlib.Path, help="file of results to which this run is added")
    parser.add_argument("--update", type=pathlib.Path, help="write the tables of the kept results into this page")
    options = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if options.update:
        kept = Study(None, None, ".")
        kept.load(RESULTS)
        options.update.write_text(with_tables(options.update.read_text(), kept))
        return 0
    if not options.kvscope or not options.judge:
        parser.error("--kvscope and --judge are required")
    extent = FULL if options.full else QUICK
    kinds = study.ALL_KINDS if options.full else QUICK_KINDS
    with tempfile.TemporaryDirectory() as folder:
        result = Study(options.kvscope, options.judge, folder)
        if not options.full:
            result.sampled = lambda keys: ROUNDING_OF_SUBSET
        seeds = result.load(options.add) if options.add and options.add.exists() else []
        seeds = sorted({*seeds, options.seed})
        for number, kind in enumerate(kinds):
            if options.kinds and kind not in options.kinds:
                continue
            for keys, kernels in extent.items():
                if options.keys and keys not in options.keys:
                    continue
                result.data_set(kind, keys, ("f32", "bf16", "f16")[(number + options.seed) % 3], options.seed,
                                kernels if options.kernels is None else options.kernels, (number + options.seed) % 2 == 0)
                if options.add:  # a run that is stopped keeps what it has
                    result.write(options.add, seeds)
            if options.full:
                print(f"{kind}: {result.summary()}", flush=True)
        for kind, keys in () if options.full else QUICK_TRUNCATION:
            result.data_set(kind, keys, "f16", options.seed, 0, False, with_faults=False)
    for case in sorted(result.accepted, key=lambda case: -case[-1])[: options.show]:
        print("accepted:", *case)
    print(result.summary())
    if not options.full and not page_is_current():
        return 1
    _, rejected, *_, accepted = result.totals()
    return 1 if rejected or accepted else 0


if __name__ == "__main__":
    sys.exit(main())
