"""Lab 14: page size."""
import json
import re

from facts import ROOT, constant, number_in, starter


def columns(pages):
    return -(-pages // 8) * 8 + 16


def write(lab, readme, notes, hints):
    sizes = json.loads(starter(lab, "report.json"))["page_sizes"]
    assert sizes == constant("page_size_task.h", "kPageSizes")
    task = (ROOT / "apps/labs/page_size_task.cpp").read_text(encoding="utf-8")
    grader = (ROOT / "apps/labs/lab_14_page_size.cpp").read_text(encoding="utf-8")
    requests, entry = constant("page_size_task.cpp", "kRequests"), constant("page_size_task.cpp", "kEntryBytes")
    lists = [name for name in json.loads(starter(lab, "report.json")) if name not in ("page_sizes", "page_size")]
    costs = ("cost_of_a_percent_of_waste", "cost_of_1000_lookups")
    per = int(re.search(r"cost_of_(\d+)_lookups", lab.readme.read_text(encoding="utf-8"))[1])
    assert f"* ratio * {per}" in task  # the cost that lab start writes is for as many
    vector, spare = 8, columns(8) - 8
    readme.claim("measure both costs for @ page sizes", len(sizes))
    readme.claim("| # requests: when each arrives", requests)
    readme.claim("a pool of pages of # tokens that serves this traffic", number_in(grader, r'"scenario.json", page_size_scenario\(task, (\d+)\)'))
    readme.claim("and @ costs", len(costs))
    figure = (ROOT / "docs/figures/diagrams_of_labs.py").read_text(encoding="utf-8")
    drawn = re.search(r"for row, size in enumerate\(\(([\d, ]+)\)\)", figure)[1].split(", ")
    readme.claim("pages of @ sizes", len(drawn))
    readme.claim("For pages of #, #, #, #, #, # and # tokens:", *sizes)
    readme.exempt("stores p + g - 1", "code")
    readme.claim("rounded up to a multiple of #, and # more; # bytes an entry", vector, spare, entry)
    readme.claim("for each # lookups", per)
    readme.claim("The first @ are lists of @ numbers", len(lists), len(sizes))
    prompt, generated, page = 6, 4, sizes[0]
    stored = prompt + generated - 1
    steps = range(prompt + 1, stored + 1)
    pages = -(-stored // page)
    readme.claim("A request has # prompt tokens and generates #. The prefill stores # tokens and generates the first token; @ decode steps "
                 "store one token each, and "
                 "read #, # and # tokens.", prompt, generated, prompt, len(steps), *steps)
    entries = [-(-tokens // page) for tokens in steps]
    empty = pages * page - stored
    readme.claim("With pages of # tokens the request ends with # tokens on # pages, so # of # slots are empty: # %. Its decode steps need "
                 "# + # + # = # entries.",
                 page, stored, pages, empty, pages * page, round(100 * empty / (pages * page)), *entries, sum(entries))
    readme.claim("For # and # tokens, how well", sizes[0], sizes[-1])
    readme.exempt("Which of the two would you put", "policy")
    of_curve = r"curves\.\w+,\s+([\d.]+)(?: \* task\.cost_of_percent)?,(?:\s*//[^\n]*)?\s+([\d.]+),"  # absolute, relative
    tolerances = [(float(absolute), float(relative)) for absolute, relative in re.findall(of_curve, grader)]
    (waste, end), lookups = tolerances[:2], of_lookups(grader)
    readme.claim("within # percentage points or # % of the value", waste[0], 100 * waste[1])
    readme.claim("within # percentage points or # % |", end[0], 100 * end[1])
    readme.claim("`lookups`, within # %", 100 * lookups)
    readme.claim("tolerance of the waste allows, or # %", 100 * tolerances[-1][1])

    notes.exempt("compares two independent counts", "name")
    notes.exempt("another column, six numbers", "name")
    notes.message("begin with 4")
    notes.claim("takes the cost of # lookups for one", per)
    notes.message("the cost of lookups is for 1000 of them")
    notes.message("the two costs are exchanged")
    notes.claim("at # tokens the rule fits within a few tenths of a percent; at # it is too low", sizes[0], sizes[-1])
    padding = {count: columns(count) - count for count in range(1, 200)}
    most = max(count for count, spared in padding.items() if spared > count) + 1
    notes.claim("fewer than about # pages: then # to # entries of padding", most, min(padding.values()), max(padding.values()))
    notes.claim("nearly by # while sequences have many pages", sizes[1] // sizes[0])
    assert all(b == 2 * a for a, b in zip(sizes, sizes[1:]))
    notes.exempt("the two neighbors' costs", "name")
    notes.exempt("Page 01 shows", "name")
    hints[1].claim("for all @ sizes", len(sizes))
    hints[2].exempt("n = p + g - 1 tokens", "code")
    hints[2].exempt("100 * (1 - tokens / slots)", "code")
    hints[2].claim("a multiple of #, plus #, times `max_batch` rows, times #", vector, spare, entry)
    hints[3].exempt("has g - 1 decode steps. The first reads p + 1 tokens, the last p + g - 1", "code")
    hints[3].exempt("Python two loops", "policy")
    hints[3].claim("for # of them", per)


def of_lookups(grader):
    """The relative tolerance of the lookups."""
    return float(re.search(r"curves\.lookups,\s+[\d.]+,\s+([\d.]+),", grader)[1])
