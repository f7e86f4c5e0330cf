"""Solves lab 07 of one student from the handed-out files alone: solve.py KVSCOPE COURSE FOLDER NAME [PATCH].

The diagnosis follows the teacher's notes: which outputs differ, then the numbers of the tracers. A patch has lines
`# in GROUP: FIELD = EXPRESSION` over the right answer of the report whose fault is in that part of the kernel. Prints `GROUP report_N`
for each report."""
import json
import math
import os
import re
import subprocess
import sys

import numpy as np

GROUPS = {
    "table": ["table_entry", "table_rows_exchanged", "first_page_repeated"],
    "length": ["one_key_too_many", "last_page_unmasked", "new_token_missing"],
    "heads": ["head_modulo", "head_divided_by_kv_heads", "head_zero"],
    "address": ["k_read_as_v", "other_layer", "stride_of_one_layer"],
    "score": ["scale_missing", "scale_twice", "maximum_not_added"],
    "lse": ["lse_base_two", "lse_without_logarithm", "lse_negated"],
    "merge": ["splits_averaged", "last_split_lost", "last_split_twice"],
    "division": ["not_normalized", "divided_by_slots", "divided_twice"]}
GROUP_OF = {cause: group for group, causes in GROUPS.items() for cause in causes}


def same(a, b):
    return np.allclose(a, b, rtol=1e-5, atol=1e-5)


class Hunt:
    def __init__(self, folder):
        with open(os.path.join(folder, "task.json"), encoding="utf-8") as file:
            self.task = json.load(file)
        self.folder = folder
        golden = np.load(os.path.join(folder, "golden.npz"))
        self.o, self.lse = golden["o"], golden["lse"]
        self.n = np.array(self.task["keys_of_each_sequence"])
        self.size = self.task["page_size"]
        self.pages = -(-self.n // self.size)
        self.splits = -(-self.n // self.task["keys_per_split"])
        self.last = self.n - (self.splits - 1) * self.task["keys_per_split"]
        self.a = np.array(self.task["query_dim_4_of_each_head"])
        self.one = int(np.argmin(self.n))

    def printed(self, report):
        """[sequence][head]: whether `diff golden.txt REPORT` prints the row, as the handout has it."""
        with open(os.path.join(self.folder, "golden.txt"), encoding="utf-8") as golden, \
                open(os.path.join(self.folder, report), encoding="utf-8") as other:
            rows = [right != given for right, given in zip(golden, other, strict=True)][1:]
        return [rows[b * self.o.shape[1]:(b + 1) * self.o.shape[1]] for b in range(self.o.shape[0])]

    def diagnose(self, number):
        report = np.load(os.path.join(self.folder, f"report_{number}.npz"))
        o, lse = report["o"].astype(float), report["lse"].astype(float)
        wrong = ~(np.isclose(o, self.o, rtol=1e-5, atol=1e-5).all(2) & np.isclose(lse, self.lse, rtol=1e-5, atol=1e-5))
        if self.printed(f"report_{number}.txt") != wrong.tolist():
            raise ValueError(f"report_{number}: diff of the text files does not print the rows that fail")
        sequences = np.flatnonzero(wrong.any(1)).tolist()
        heads = np.flatnonzero(wrong.any(0)).tolist()
        cause, evidence = self.cause(o, lse, sequences, heads)
        return {"cause": cause, "sequences": sequences, "heads": heads, "evidence": evidence}

    def cause(self, o, lse, sequences, heads):
        s, h, n = sequences[0], heads[0], self.n[:, None]
        if same(o, self.o):
            ratio = lse[s, h] / self.lse[s, h]
            if same(lse, self.lse * math.log2(math.e)):
                return "lse_base_two", ratio
            if same(lse, -self.lse):
                return "lse_negated", ratio
            if same(lse, self.task["scale"] * self.a + n):
                return "lse_without_logarithm", ratio
            factor = ((lse - np.log(n)) / self.a).mean()
            return {0: "maximum_not_added", 1: "scale_missing"}.get(round(factor, 3), "scale_twice"), factor
        factor = o[:, 0, 4] / 2  # dim 4 of V is 2, so any common factor shows there
        if same(lse, self.lse) and same(o, self.o * factor[:, None, None]):
            causes = {"not_normalized": self.n, "divided_by_slots": self.n / (self.pages * self.size), "divided_twice": 1 / self.n}
            return next(name for name, right in causes.items() if same(factor, right)), factor[s]
        if same(o[:, :, 4], 1) and same(lse, self.lse):
            sizes = [self.task[name] for name in ("layers", "page_size", "kv_heads")]
            return "k_read_as_v", 8 * math.prod(sizes)
        only = [dim for dim in range(8) if not same(o[:, :, dim], self.o[:, :, dim])]
        if only == [3]:
            return "other_layer", o[self.one, 0, 3]
        if only == [2] and same(lse, self.lse):
            read, head = o[s, :, 2], np.arange(self.task["query_heads"])
            rules = {"head_modulo": head % self.task["kv_heads"], "head_divided_by_kv_heads": head // self.task["kv_heads"],
                     "head_zero": 0 * head}
            return next(name for name, rule in rules.items() if same(read, rule)), read[heads[-1]]
        keys = np.round(self.n * np.exp(lse[:, 0] - self.lse[:, 0]), 3)
        counts = {"one_key_too_many": self.n + 1, "last_page_unmasked": self.pages * self.size, "new_token_missing": self.n - 1}
        for name, count in counts.items():
            if same(keys, count):
                return name, keys[s]
        several = self.splits > 1
        if same(keys, self.n - several * self.last):
            return "last_split_lost", 0
        if same(keys, self.n + several * self.last):
            return "last_split_twice", 2 * self.last[s] / (self.n[s] + self.last[s])
        if not same(lse, self.lse):
            return "stride_of_one_layer", o[self.one, 0, 0]
        return self.table_or_merge(o, sequences)

    def table_or_merge(self, o, sequences):
        s, table = sequences[0], np.array(self.task["table"])
        if same(o[:, :, 6], self.o[:, :, 6]):  # no key of another sequence
            if all(same(o[b, :, 0], table[b, 0]) for b in sequences):
                return "first_page_repeated", table[s, 0]
            return "splits_averaged", 1 / self.splits[s]
        if len(sequences) == 2:
            return "table_rows_exchanged", sequences[1]
        counts = round(o[s, 0, 7] * self.n[s])
        missing = next(page for page in range(self.pages[s]) if counts >> 4 * page & 15 < min(self.size, self.n[s] - page * self.size))
        tokens = min(self.size, self.n[s] - missing * self.size)
        return "table_entry", round(table[s, missing] + (o[s, 0, 0] - self.o[s, 0, 0]) * self.n[s] / tokens)


def main():
    kvscope, course, folder, name, *patch = sys.argv[1:]
    if not os.path.exists(os.path.join(folder, "task.json")):
        subprocess.run([kvscope, "lab", "start", "7", folder, "--student", name, "--course", course], check=True,
                       stdout=subprocess.DEVNULL)
    hunt = Hunt(folder)
    answers = {f"report_{number}": hunt.diagnose(number) for number in range(1, 9)}
    report_of = {GROUP_OF[answer["cause"]]: report for report, answer in answers.items()}
    right = {group: dict(answers[report]) for group, report in report_of.items()}

    def alike(cause):
        causes = GROUPS[GROUP_OF[cause]]
        return causes[(causes.index(cause) + 1) % 3]

    if patch:
        with open(patch[0], encoding="utf-8") as file:
            for group, field, expression in re.findall(r"^# in (\w+): (\w+) = (.*)$", file.read(), re.M):
                values = dict(right[group], right=right, alike=alike, task=hunt.task, keys=hunt.n)
                answers[report_of[group]][field] = eval(expression, values)
    with open(os.path.join(folder, "answers.json"), "w", encoding="utf-8") as file:
        json.dump(answers, file, indent=2, default=float)
    for group, report in report_of.items():
        print(group, report)


main()
