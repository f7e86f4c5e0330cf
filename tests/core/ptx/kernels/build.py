#!/usr/bin/env python3
"""The kept PTX of the kernels beside it: written anew, or held against what nvcc makes of the sources today.

  build.py            writes cuda/*.ptx
  build.py --check    compiles to a temporary folder, compares how often each opcode occurs; exit 1 when they differ

nvcc is looked for in $CUDA_HOME/bin, in PATH and in /usr/local/cuda/bin; without it nothing is done, exit 77. No path of the
machine stays in the PTX: sources are named from the repository's root, headers of the toolkit as cuda/include/...
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[3]
SOURCES = HERE / 'cuda'

# Kernels that are also built for the other dialect of the compiler: registers, moves and pointers are spelt otherwise.
BOTH = ['atomics', 'elementwise', 'reduce', 'ring', 'transpose', 'warp']
ONE = ['calls', 'cluster', 'convert', 'decode', 'decode_bugs', 'host_calls', 'library_barrier', 'paged_tile', 'qk', 'qk_bugs',
       'small_bugs', 'store', 'sync', 'tensor_load', 'wgmma']


def builds():
    """(source stem, output name, flags) of every kept file."""
    for stem in sorted(BOTH + ONE):
        yield stem, stem + '.ptx', ['-arch=sm_90a', '-lineinfo']
    for stem in BOTH:
        yield stem, stem + '.sm_100a.ptx', ['-arch=sm_100a', '-lineinfo']
    yield 'qk', 'qk.debug.ptx', ['-arch=sm_90a', '-G']
    yield 'wmma', 'wmma.ptx', ['-arch=sm_90a']  # names of its inlined templates would be longer than its code


def find_nvcc():
    for folder in [os.environ.get('CUDA_HOME', '') + '/bin', None, '/usr/local/cuda/bin']:
        found = shutil.which('nvcc', path=folder)
        if found:
            return found
    return None


def neutral_path(path):
    """As the path stands in the PTX: from the repository's root, or from an include folder."""
    path = os.path.normpath(path)
    if path.startswith(str(ROOT) + '/'):
        return path[len(str(ROOT)) + 1:]
    where, _, rest = path.partition('/include/')
    return ('cuda/include/' if 'cuda' in where else 'include/') + rest


def without_machine(text):
    text = re.sub(r'(\.file\s+\d+\s+")([^"]+)(")', lambda m: m[1] + neutral_path(m[2]) + m[3], text)
    # Debug sections spell the folder of compilation byte by byte; lengths must stay.
    def spelt(name):
        return ','.join(str(b) for b in name.encode())
    stand_in = ('/kvscope' + '/' * len(str(ROOT)))[:len(str(ROOT))]
    text = text.replace('.b8 ' + spelt(str(ROOT)) + '\n', '.b8 ' + spelt(stand_in) + '\n')
    for word in (str(ROOT), spelt(str(ROOT))):
        if word in text:
            sys.exit(f'build.py: a path of this machine is left in the PTX: {word}')
    return text


def compile_all(nvcc, folder):
    for stem, output, flags in builds():
        source = (SOURCES / (stem + '.cu')).relative_to(ROOT)
        to = folder / output
        subprocess.run([nvcc, '-ptx', '-std=c++20', '-I.', *flags, str(source), '-o', str(to)], cwd=ROOT, check=True)
        to.write_text(without_machine(to.read_text()))


def histogram(ptx):
    """How often each opcode occurs in a PTX file."""
    count = collections.Counter()
    body = re.sub(r'//[^\n]*', '', ptx)
    body = re.sub(r'\.section[^{]*\{[^}]*\}', '', body)
    for statement in re.split(r'[;{}]', body):
        words = [w for w in statement.split() if not w.endswith(':') and not w.startswith('@')]
        if words and re.fullmatch(r'[a-z][a-z0-9]*(\.[\w:]+)*', words[0]):
            count[words[0]] += 1
    return count


def check(nvcc):
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        compile_all(nvcc, folder)
        for _, output, _ in builds():
            kept, now = histogram((SOURCES / output).read_text()), histogram((folder / output).read_text())
            for opcode in sorted(kept.keys() | now.keys()):
                if kept[opcode] != now[opcode]:
                    faults.append(f'{output}: {opcode} {kept[opcode]} times in the kept file, {now[opcode]} times now')
    for fault in faults:
        print(fault)
    if faults:
        print('Run build.py and look at what changed; another toolkit may rightly write other PTX.')
    else:
        print(f'{len(list(builds()))} files say the same')
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--check', action='store_true', help='compare, write nothing')
    arguments = parser.parse_args()
    nvcc = find_nvcc()
    if nvcc is None:
        print('SKIPPED: no nvcc in $CUDA_HOME/bin, PATH or /usr/local/cuda/bin, so the kept PTX is not held against its sources')
        return 77
    if arguments.check:
        return check(nvcc)
    compile_all(nvcc, SOURCES)
    return 0


if __name__ == '__main__':
    sys.exit(main())
