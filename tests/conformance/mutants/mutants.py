#!/usr/bin/env python3
"""Kernels with one mistake in each, kept as PTX: the conformance cases must fail on every one of them.

  mutants.py                    writes the kept files anew
  mutants.py --only PATTERN     those whose name matches
  mutants.py --check            compiles to memory and compares; exit 1 when a kept file is stale

mutant_list.py says what is broken and how. A base is some entries of a kernel as they are, BASE.ptx; a mutant is the
same entries of an edited copy of gpu/kernels, kept as the lines in which it differs, MUTANT.diff:

  mistake: the last key of a sequence is not looked at
  base: paged_decode_bf16
  fails: values                       differs from the model, no report; or how a report begins: RACE write-after-read
  cases: bf16_page16_gqa4
  @@ 12,2 @@                          from line 12 of the base two lines go ...
  -add.s32 %r7, %r1, 1;
  -setp.lt.u32 %p2, %r7, %r3;
  +setp.lt.u32 %p2, %r1, %r3;         ... and this one comes

nvcc is looked for as gpu/build_ptx.py does; without it nothing is done, exit 77.
"""
import argparse
import collections
import concurrent.futures
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(ROOT / 'gpu')]
from build_ptx import find_nvcc  # noqa: E402
from mutant_list import BASES, MUTANTS  # noqa: E402


# --- sources ---------------------------------------------------------------------------------------------------------

def places_of(text, comments):
    """Indices of the characters of `text` that are not white space and, unless `comments`, not in a // comment."""
    hidden = set()
    if not comments:
        hidden.update(i for match in re.finditer(r'//[^\n]*', text) for i in range(*match.span()))
    return [i for i, c in enumerate(text) if not c.isspace() and i not in hidden]


def replaced(text, find, by, where):
    """`text` with `by` in place of `find`, which must occur exactly once, ignoring white space. Comments are compared
    only where `find` does not occur once without them."""
    counts = []
    for comments in (False, True):
        places = places_of(text, comments)
        squeezed, wanted = ''.join(text[i] for i in places), ''.join(find[i] for i in places_of(find, comments))
        counts.append(squeezed.count(wanted))
        if counts[-1] == 1:
            at = squeezed.index(wanted)
            return text[:places[at]] + by + text[places[at + len(wanted) - 1] + 1:]
    sys.exit(f'mutants.py: {where}: found {counts[0]} times without comments and {counts[1]} times with them, '
             f'not once: {find}')


def only_entries(text, kept):
    """A kernel.cu without the other entries: macro lines are identified by their beginning, functions by name."""
    made = set()

    def entry(match):
        asked = [k for k in kept if k == match['function'] or match['macro'] and match[0].startswith(k)]
        made.update(asked)
        return match[0] if asked else ''

    text = re.sub(r'^(?P<macro>[A-Z][A-Z0-9_]+)\(.*\)(?: *//.*)?\n'
                  r'|^KERNEL [^;{]*?(?P<function>\w+)\(const[^{]*\{\n(?:[^}\n].*\n|\n)*\}\n', entry, text, flags=re.M)
    if made != set(kept):
        sys.exit(f'mutants.py: of the entries {kept} there are {sorted(made)}')
    return text


# --- PTX -------------------------------------------------------------------------------------------------------------

def plain_lines(ptx):
    """The PTX without comments, indentation and lines that depend on the compiling machine."""
    ptx = re.sub(r'(_INTERNAL_|_GLOBAL__N__)[0-9a-f]{8}(_\d+_kernel_cu_)[0-9a-f]{8}', r'\g<1>0\g<2>0', ptx)
    lines = (re.sub(r'\s+', ' ', line.partition('//')[0]).strip() for line in ptx.splitlines())
    return [line for line in lines if line]


def edited(edits):
    """File of gpu/kernels -> its text with the mistake."""
    files = {}
    for file, find, by in edits:
        files[file] = replaced(files.get(file) or (ROOT / 'gpu/kernels' / file).read_text(), find, by, file)
    return files


def compiled(nvcc, base, files):
    kernel, architecture, entries = BASES[base]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        shutil.copytree(ROOT / 'gpu/kernels', folder / 'gpu/kernels')
        for file, text in files.items():
            (folder / 'gpu/kernels' / file).write_text(text)
        source = folder / f'gpu/kernels/{kernel}/kernel.cu'
        source.write_text(only_entries(source.read_text(), entries))
        done = subprocess.run([nvcc, '-ptx', '-std=c++20', '-I.', f'-arch={architecture}', '-w',
                               f'gpu/kernels/{kernel}/kernel.cu', '-o', 'out.ptx'],
                              cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f'mutants.py: {base} with another {", ".join(files)}:\n{done.stderr}')
        return plain_lines((folder / 'out.ptx').read_text())


NAME = re.compile(r'%[a-z]+(?=\d)\d+|\$L__\w+')  # a register or a label
CLASS = re.compile(r'(?<=%)([a-z]+)\d+|(?<=\$L__)\w+')


def blind(line):
    """The line without the numbers of its registers and labels."""
    return re.sub(r'<\d+>', '<>', CLASS.sub(lambda m: m[1] or '', line))


def functions(lines):
    """The range of lines of each function, from its name on; lines between functions are in no range."""
    depth, begin = 0, None
    for i, line in enumerate(lines):
        if depth == 0 and re.search(r'\.(entry|func)\b', line):
            begin = i
        depth += line.count('{') - line.count('}')
        if depth == 0 and begin is not None and '}' in line:
            yield begin, i + 1
            begin = None


def pairs(a, b):
    return difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()


def renamed(base, lines):
    """A function's lines with the registers and labels of the base where both do the same, so that they differ little.

    One name stays one name, and two stay two: names that the base has no counterpart for get numbers it does not use.
    """
    names, taken = {}, set()
    for what, a, a_end, b, _ in pairs([blind(x) for x in base], [blind(x) for x in lines]):
        for i in range(a_end - a if what == 'equal' else 0):
            for of_base, of_line in zip(NAME.findall(base[a + i]), NAME.findall(lines[b + i])):
                if of_line not in names and of_base not in taken:
                    names[of_line] = of_base
                    taken.add(of_base)
    last = collections.Counter()
    for name in {n for line in base + lines for n in NAME.findall(line)} | taken:
        head, number = re.fullmatch(r'(.*?)(\d+)', name).groups()
        last[head] = max(last[head], int(number))

    def new_name(match):
        if match[0] not in names:
            head = re.fullmatch(r'(.*?)\d+', match[0])[1]
            last[head] += 1
            names[match[0]] = f'{head}{last[head]}'
        return names[match[0]]

    lines = [NAME.sub(new_name, line) for line in lines]
    most = collections.Counter()
    for name in names.values():
        head, number = re.fullmatch(r'(.*?)(\d+)', name).groups()
        most[head] = max(most[head], int(number) + 1)
    return [re.sub(r'^(\.reg \S+ )(%[a-z]+)<\d+>;', lambda m: f'{m[1]}{m[2]}<{most[m[2]]}>;', line) for line in lines]


def in_order(lines):
    """Registers and labels renumbered in order of appearance: equal results differ only in these names."""
    names = {}
    return [re.sub(r'<\d+>', '<>', NAME.sub(lambda m: names.setdefault(m[0], f'{blind(m[0])}{len(names)}'), line))
            for line in lines]


def like_base(base, lines):
    ours, theirs = list(functions(base)), list(functions(lines))
    for (a, a_end), (b, b_end) in zip(reversed(ours), reversed(theirs)):
        if base[a] == lines[b]:
            body = renamed(base[a:a_end], lines[b:b_end])
            if in_order(body) != in_order(lines[b:b_end]):
                sys.exit(f'mutants.py: {base[a]}: renaming registers has changed what it does')
            lines = lines[:b] + body + lines[b_end:]
    return lines


def difference(base, lines):
    out = []
    for what, a, a_end, b, b_end in pairs(base, lines):
        if what != 'equal':
            out += [f'@@ {a + 1},{a_end - a} @@'] + ['-' + x for x in base[a:a_end]] + ['+' + x for x in lines[b:b_end]]
    return out


def patched(base, diff):
    out, at, lines = [], 0, iter(diff)
    for line in lines:
        first, gone = map(int, re.fullmatch(r'@@ (\d+),(\d+) @@', line).groups()) if line[0] == '@' else (0, 0)
        if line[0] == '@':
            out += base[at:first - 1]
            at = first - 1 + gone
        elif line[0] == '+':
            out.append(line[1:])
    return out + base[at:]


# --- kept files ------------------------------------------------------------------------------------------------------

def header(mutant):
    return [f'mistake: {mutant["mistake"]}', f'base: {mutant["base"]}', f'fails: {mutant["fails"]}',
            f'cases: {" ".join(mutant["cases"])}']


def texts(nvcc, pattern):
    """File name -> its lines, for all requested files."""
    mutants = [m for m in MUTANTS if re.search(pattern, m['name'])]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        sources = [edited(m['edits']) for m in mutants]
        bases = {b: workers.submit(compiled, nvcc, b, {}) for b in sorted({m['base'] for m in mutants})}
        made = [workers.submit(compiled, nvcc, m['base'], files) for m, files in zip(mutants, sources)]
        files = {f'{b}.ptx': lines.result() for b, lines in bases.items()}
        for mutant, lines in zip(mutants, made):
            base = files[mutant['base'] + '.ptx']
            diff = difference(base, like_base(base, lines.result()))
            if not diff:
                sys.exit(f'mutants.py: {mutant["name"]}: the edit changes nothing')
            files[f'{mutant["name"]}.diff'] = header(mutant) + diff
    return files


def meaning(files, name):
    """The parts of a kept file that must be equal: its header, and the count of each statement, ignoring registers."""
    lines = files[name]
    if name.endswith('.ptx'):
        return [], collections.Counter(map(blind, lines))
    head = [line for line in lines if re.match(r'[a-z]+: ', line)]
    base = files[head[1].partition(': ')[2] + '.ptx']
    return head, collections.Counter(map(blind, patched(base, lines[len(head):])))


def check(files):
    kept = {p.name: p.read_text().splitlines() for p in HERE.iterdir() if p.suffix in ('.ptx', '.diff')}
    faults = [f'{name}: is not kept' for name in sorted(files.keys() - kept.keys())]
    faults += [f'{name}: nothing in mutant_list.py makes it' for name in sorted(kept.keys() - files.keys())]
    faults += [f'{name}: is not what nvcc makes today' for name in sorted(files.keys() & kept.keys())
               if meaning(files, name) != meaning(kept, name)]
    for fault in faults:
        print(fault)
    print('Run mutants.py and look at what changed.' if faults else f'{len(files)} files say the same')
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--check', action='store_true', help='compare, write nothing')
    parser.add_argument('--only', metavar='PATTERN', default='')
    arguments = parser.parse_args()
    nvcc = find_nvcc()
    if nvcc is None:
        print('SKIPPED: no nvcc in $CUDA_HOME/bin, PATH or /usr/local/cuda/bin, so the kept mutants are not held '
              'against the kernels')
        return 77
    if arguments.check:
        return check(texts(nvcc, ''))
    for name, lines in texts(nvcc, arguments.only).items():
        (HERE / name).write_text('\n'.join(lines) + '\n')
    return 0


if __name__ == '__main__':
    sys.exit(main())
