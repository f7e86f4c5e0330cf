"""Lab 07: fault hunt. The example is computed from the rule of the tracers."""
import json
import math
import re

from facts import ROOT, constant, starter


def four(value):
    return f"{value:.4f}".rstrip("0").rstrip(".")


def write(lab, readme, notes, hints):
    reports = json.loads(starter(lab, "answers.json"))
    dims = constant("hunt_kernel.h", "kDims")
    score_dim = constant("hunt_kernel.h", "kScoreDim")
    group = constant("hunt_kernel.h", "kGroup")
    base = constant("hunt_kernel.cpp", "kPageBase")
    groups, per_group = constant("hunt_kernel.h", "kHuntGroups"), constant("hunt_kernel.h", "kFaultsPerGroup")
    points = {test["name"]: test["points"] for test in lab.manifest["tests"]}
    whole = points["report_1"]
    cause, place = 6, 3  # the grader's
    assert (constant_text("kCausePart"), constant_text("kPlacePart")) == (f"{cause}.0 / {whole}", f"{place}.0 / {whole}")
    evidence = whole - cause - place
    names = ["block", "slot", "KV head", "layer", "K or V", "position", "sequence", "page"]
    index = {name: dim for dim, name in enumerate(names)}
    zero, k, v, none = 0, 1, 2, -1  # dim 4 of K and of V; position and sequence of a slot without a token

    readme.claim("the outputs of @ wrong kernels", len(reports))
    readme.claim("`report_1.npz`, `report_1.txt`, to #", len(reports))
    readme.claim("A row of K or V has # numbers", dims)
    readme.claim("| dim | " + " | ".join("#" * dims) + " |", *range(len(names)))
    readme.claim("| holds | block | slot | KV head | layer | # in K, # in V | position | sequence | # to the power of the page |", k, v, base)
    readme.claim("A slot without a token holds position -#, sequence -#, and # in dim #.", -none, -none, zero, index["page"])
    readme.claim("A query is a number a in dim #", score_dim)
    assert score_dim == index["K or V"]
    readme.claim("`o[#] * n` is the sum of the sequences", index["sequence"])
    readme.claim("`o[#] * n` in hexadecimal counts the keys of each page", index["page"])
    readme.claim("With # keys or more of one page, a digit carries", base)
    readme.claim("@ query heads read one KV head: query head h reads KV head h / #", group, group)
    split, keys = 12, 30
    parts = [min(split, keys - at) for at in range(0, keys, split)]
    readme.claim("with # keys a split, # keys are splits of #, # and #", split, keys, *parts)
    readme.claim("here #/#, #/# and #/#.", *[n for part in parts for n in (part, keys)])
    readme.claim("A split that is lost has the weight #.", zero)
    readme.claim("V of a layer begins layers * page_size * kv_heads * # elements after its K", dims)

    heads, page_size, batch, sequence, length, blocks = 6, 4, 3, 2, 6, [9, 4]
    readme.claim("A batch of @ sequences has # query heads and pages of # tokens. Sequence # has # keys in blocks # and #, and the golden "
                 "output of its head #",
                 batch, heads, page_size, sequence, length, *blocks, zero)
    head, layer, a, scale = 0, 1, 4, 0.5

    def row(token):
        page, slot = divmod(token, page_size)
        if token >= length:
            return [blocks[page], slot, head, layer, v, none, none, 0]
        return [blocks[page], slot, head, layer, v, token, sequence, base ** page]

    def output(count):
        """lse and o of a kernel that reads the first `count` slots."""
        return [scale * a + math.log(count), *[sum(column) / count for column in zip(*[row(token) for token in range(count)])]]

    golden, report, read = output(length), output(length + 1), length + 1
    readme.claim("| | lse | " + " | ".join(["o[#]"] * dims) + " |", *range(len(names)))
    readme.claim("| golden | " + " | ".join("#" * (dims + 1)) + " |", *map(four, golden))
    readme.claim("| report | " + " | ".join("#" * (dims + 1)) + " |", *map(four, report))
    readme.claim("With a = # and a scale of # the score is #, and ln # = #.", a, scale, scale * a, length, four(math.log(length)))
    higher = round(report[0], 4) - round(golden[0], 4)
    assert round(math.exp(higher) * length) == read
    readme.claim("The lse of the report is # higher: exp(#) * # = # keys were read.", four(higher), four(higher), length, read)
    counted = round(report[1 + index["page"]] * read)
    digits = [counted // base ** page % base for page in range(len(blocks))]
    assert sum(digits) == read - 1
    readme.claim("@ keys: o[#] * # = # = #, so # keys of page #, # of page #",
                 read, index["page"], read, counted, hex(counted), digits[0], blocks.index(blocks[0]),
                 digits[1], blocks.index(blocks[1]))
    extra = [report[1 + dim] * read - golden[1 + dim] * length for dim in range(dims)]
    assert [round(value) for value in extra] == row(length)
    readme.claim("Its position is # * # - # * # = -#, its sequence # * # - # * # = -#, its block # * # - # * # = #.",
                 *[n for name, sign in (("position", -1), ("sequence", -1), ("block", 1))
                   for n in (four(report[1 + index[name]]), read, four(golden[1 + index[name]]), length, round(sign * extra[index[name]]))])
    readme.claim("The kernel read slot # of block #", row(length)[index["slot"]], row(length)[index["block"]])
    readme.claim("differs from the golden output, # at most", most_rows())
    first = 0
    readme.claim("Both are counted from #.", first)
    digits_of_evidence, one_key = 3, 1
    readme.claim("A number that is not whole needs @ digits: # % off is accepted", digits_of_evidence, accepted())
    readme.claim("Every sequence fails, so the first one is sequence #. That sequence has one key, and the kernel read @: the evidence is #.", first,
                 one_key + 1, one_key + 1)
    readme.claim("reads @ sequences through each other's row", len(("one", "other")))
    readme.claim("reads column # of the table", first)
    readme.claim("reads KV head # for every query head", first)
    readme.claim("every report has @ answers", len(reports["report_1"]))
    readme.claim("write @ answers for each report", len(reports["report_1"]))
    readme.exempt("the larger of the two sequences", "policy")
    readme.exempt("returns the lse in base two", "name")
    readme.claim("the cause (#), the rows that fail (#), the evidence (#)", cause, place, evidence)
    readme.claim("The right rows with another cause keep # points", place)

    assert groups * per_group == 24
    notes.claim("The @ causes of a student come from @ parts of the kernel, one from each @ rows of the list", len(reports), groups, per_group)
    notes.claim("cause #, the failing sequences and heads #, evidence #", cause, place, evidence)
    notes.exempt("one of the two that look alike", "policy")
    lost = whole - place
    notes.claim("| # of the report | right place, other cause: and the question", lost)
    notes.claim("another part of the kernel | # |", lost)
    notes.claim("another cause and other rows | # |", whole)
    notes.claim("too many or counted from # | # |", first + 1, place)
    notes.claim("divides the golden output by the report | # |", evidence)
    notes.claim("its keys, its factor | # |", evidence)
    notes.claim("writes it in quotes | #, and `answers`", evidence)
    notes.claim("names one cause twice | #, and `answers`", lost)
    notes.claim("a name that is not in the list | # |", lost)
    notes.claim("the @ faults of the address", per_group)
    notes.claim("`maximum_not_added` needs @ sequences", len(("one", "other")))
    cases = ("only lse", "only o, all dims", "only o, some dims", "both")
    hints[1].claim("@ cases:", len(cases))
    hints[1].exempt("in one dim or two", "policy")
    hints[3].claim("is dim # another sequence", index["sequence"])
    hints[3].exempt("distinguishes the first two", "policy")
    kv = heads // group
    modulo, divided, zero = [h % kv for h in range(heads)], [h // kv for h in range(heads)], first
    assert modulo != [h // group for h in range(heads)] != divided
    hints[3].claim("write o[#] for h = #, #, #, ...: # # # # # #, or # # # # # #, or all #?", index["KV head"], *range(kv), *modulo, *divided, zero)
    hints[3].exempt("each has the weight 1 / S; or the last split has 0;", "code")
    hints[3].exempt("or 1 / n", "code")


def source(name="lab_07_fault_hunt.cpp"):
    return (ROOT / "apps/labs" / name).read_text(encoding="utf-8")


def constant_text(name):
    """The expression of a constant of the grader: "6.0 / 12"."""
    return re.search(rf"\b{name} = ([^,;]*)", source())[1]


def accepted():
    """The relative error of the evidence that the grader accepts, in percent."""
    return f"{float(re.search(r'std::max[(][^,]*, ([^ ]*) [*] std::abs[(]right', source())[1]) * 100:g}"


def most_rows():
    """Rows of the output for the largest batch that the grader makes."""
    text = source("hunt_kernel.cpp")
    most_heads = int(re.search(r"kv_heads = pick\(\d+, (\d+)\)", text)[1]) * constant("hunt_kernel.h", "kGroup")
    lengths = re.search(r"problem\.lengths = \{([^}]*)\}", text)[1]
    return most_heads * len(re.sub(r"\([^()]*\)", "", lengths).split(","))
