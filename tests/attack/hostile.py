"""Hostile kernels: each file of hostile/ states how it is run and what must come of it, `// expect: CODE TEXT`: the exit code (or two of them,
`1|2`), and a text of the report or of the error. Deeply nested and very long modules are made here, because nobody would read them."""
import glob
import os
import re
import shlex

import checks

HERE = os.path.dirname(os.path.abspath(__file__))
BEGIN = ".version 8.0\n.target sm_90a\n.address_size 64\n"
DEEP, LONG = 100_000, 200_000


def kernel(body):
    return f"{BEGIN}.visible .entry k() {{\n{body}\n}}\n"


def made():
    """[(name, text, exit codes)]"""
    return [
        ("blocks in blocks", kernel("{" * DEEP + "ret;" + "}" * DEEP), (2,)),
        ("blocks that do not end", kernel("{" * DEEP), (2,)),
        ("parentheses", kernel(".reg .b32 %r<2>; mov.u32 %r1, " + "(" * DEEP + "1" + ")" * DEEP + "; ret;"), (2,)),
        ("signs", kernel(".reg .b32 %r<2>; mov.u32 %r1, " + "-" * DEEP + "1; ret;"), (0, 2)),
        ("sums", kernel(".reg .b32 %r<2>; mov.u32 %r1, 1" + " + 1" * LONG + "; ret;"), (0, 2)),
        ("braces of a vector", kernel(".reg .b32 %r<2>; st.global.v4.u32 [0], " + "{" * DEEP + "; ret;"), (2,)),
        ("one name", kernel("bra " + "a" * 4_000_000 + ";"), (2,)),
        ("modifiers", kernel("add" + ".u32" * DEEP + " %r1, %r1, %r1;"), (2,)),
        ("operands", kernel(".reg .b32 %r<2>; add.u32 " + ", ".join(["%r1"] * DEEP) + ";"), (2,)),
        ("labels", kernel("\n".join(f"L{i}:" for i in range(LONG)) + "\n ret;"), (0, 2)),
        ("errors", kernel("x;\n" * LONG), (1, 2)),
        ("functions", BEGIN + "".join(f".func f{i}() {{ ret; }}\n" for i in range(20_000)) + ".visible .entry k() { ret; }\n", (0, 2)),
        ("comment that does not end", BEGIN + "/*" * LONG, (2,)),
        ("quotes", BEGIN + ".file 1 \"" + "\\\"" * LONG, (2,)),
    ]


def attack(kvscope, work, report=print):
    """(modules, [fault...]): each module through `ptx run`, and through `ptx disasm` and `ptx survey`, which must not fail in another way."""
    faults, modules = [], []
    for path in sorted(glob.glob(os.path.join(HERE, "hostile", "*.ptx"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        run, expect = re.search(r"^// run:(.*)$", text, re.M)[1], re.search(r"^// expect: ([\d|]+) ?(.*)$", text, re.M)
        modules.append((os.path.basename(path), path, shlex.split(run), tuple(int(code) for code in expect[1].split("|")), expect[2]))
    for name, text, codes in made():
        path = os.path.join(work, "hostile.ptx")
        modules.append((name, (path, text), ["--max-instructions", "1000"], codes, ""))
    for name, path, run, codes, expected in modules:
        if isinstance(path, tuple):
            with open(path[0], "w", encoding="utf-8") as file:
                file.write(path[1])
            path = path[0]
        for words in (["run", path, *run], ["disasm", path], ["survey", path]):
            code, out, err, seconds = checks.run([kvscope, "ptx", *words])
            _, wrong = checks.fault(code, out, err, seconds, [], [], asks=True)
            if not wrong and words[0] == "run" and code not in codes:
                wrong = f"exit code {code}, not {codes}: {(err or out)[:200]!r}"
            if not wrong and words[0] == "run" and expected.encode() not in out + err:
                wrong = f"the report does not contain '{expected}': {(err or out)[:300]!r}"
            if wrong:
                faults.append(f"{name}, ptx {words[0]}: {wrong}")
                report(faults[-1])
    return len(modules), faults
