"""Writes the report of one student of lab 14: solve.py KVSCOPE COURSE FOLDER NAME [PATCH].

Everything is counted from the handed-out traffic by a small simulation of the engine's steps; kvscope runs nothing. A patch has lines
`# report: FIELD = EXPRESSION` over the right answers and the numbers of the task."""
import csv
import datetime
import json
import os
import re
import subprocess
import sys

SIZES = [4, 8, 16, 32, 64, 128, 256]
STEP = 20000  # [us]


def pages(tokens, size):
    return -(-tokens // size)


def read_traffic(path):
    """[(arrival in us, prompt tokens, generated tokens)]"""
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    times = [datetime.datetime.fromisoformat(row["TIMESTAMP"]) for row in rows]
    one = datetime.timedelta(microseconds=1)
    return [((time - min(times)) // one, int(row["ContextTokens"]), int(row["GeneratedTokens"])) for time, row in zip(times, rows)]


def mean_waste(requests, size):
    """[%] empty slots of held blocks at the end of a step, mean over the steps that hold a block."""
    clock, waiting, running, shares = 0, sorted(requests), [], []
    while waiting or running:
        if not running:
            clock = max(clock, waiting[0][0])
        while waiting and waiting[0][0] <= clock:
            _, prompt, generate = waiting.pop(0)
            running.append([0, prompt, prompt + generate - 1])  # stored, stored by this step's end, stored at the end
        for request in running:
            request[0] = request[1]
            request[1] += 1
        running = [request for request in running if request[0] < request[2]]
        slots = sum(pages(request[0], size) * size for request in running)
        if slots:
            shares.append(1 - sum(request[0] for request in running) / slots)
        clock += STEP
    return 100 * sum(shares) / len(shares)


def right_report(task, requests):
    stored = [prompt + generate - 1 for _, prompt, generate in requests]
    report = {"page_sizes": SIZES, "waste_percent": [mean_waste(requests, size) for size in SIZES],
              "waste_at_end_percent": [100 * (1 - sum(stored) / sum(pages(n, size) * size for n in stored)) for size in SIZES],
              "table_bytes": [task["max_batch"] * (pages(pages(max(stored), size), 8) * 8 + 16) * 4 for size in SIZES],
              "lookups": [sum(pages(n, size) for _, prompt, generate in requests for n in range(prompt + 1, prompt + generate))
                          for size in SIZES]}
    report["cost"] = [task["cost_of_a_percent_of_waste"] * waste + task["cost_of_1000_lookups"] * lookups / 1000
                      for waste, lookups in zip(report["waste_percent"], report["lookups"])]
    report["page_size"] = min(zip(report["cost"], SIZES))[1]
    return report


def main():
    kvscope, course, folder, name, *patch = sys.argv[1:]
    if not os.path.exists(os.path.join(folder, "task.json")):
        subprocess.run([kvscope, "lab", "start", "14", folder, "--student", name, "--course", course], check=True,
                       stdout=subprocess.DEVNULL)
    with open(os.path.join(folder, "task.json"), encoding="utf-8") as file:
        task = json.load(file)
    requests = read_traffic(os.path.join(folder, "traffic.csv"))
    report = right_report(task, requests)
    right = dict(report, **task, requests=requests, pages=pages, percent=task["cost_of_a_percent_of_waste"],
                 thousand=task["cost_of_1000_lookups"])
    if patch:
        with open(patch[0], encoding="utf-8") as file:
            for field, expression in re.findall(r"^# report: (\w+) = (.*)$", file.read(), re.M):
                report[field] = eval(expression, dict(right))
    with open(os.path.join(folder, "report.json"), "w", encoding="utf-8") as file:
        json.dump(report, file, indent=2)


main()
