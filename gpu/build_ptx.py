#!/usr/bin/env python3
"""Regenerates the kept PTX of gpu/kernels, or compares it with the current output of nvcc.

  build_ptx.py                    writes ptx/KERNEL.ARCHITECTURE.ptx for each kernels/KERNEL/kernel.cu
  build_ptx.py --only KERNEL      only that kernel
  build_ptx.py --check            compiles to a temporary folder and compares; exit 1 when a kept file is stale

nvcc is searched in $CUDA_HOME/bin, in PATH and in /usr/local/cuda/bin; without it nothing is done, exit 77. The PTX contains
no path of the machine: sources are named relative to the repository's root, headers of the toolkit as cuda/include/...
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
ROOT = HERE.parent

# In addition to sm_90a: kernels with a second form for a later architecture.
ALSO = {'gather4_tile_load': ['sm_100a']}


def find_nvcc():
    for folder in [os.environ.get('CUDA_HOME', '') + '/bin', None, '/usr/local/cuda/bin']:
        found = shutil.which('nvcc', path=folder)
        if found:
            return found
    return None


def neutral_path(path):
    """The path as written in the PTX: relative to the repository's root or to an include folder."""
    path = os.path.normpath(path)
    if path.startswith(str(ROOT) + '/'):
        return path[len(str(ROOT)) + 1:]
    where, _, rest = path.partition('/include/')
    return ('cuda/include/' if 'cuda' in where else 'include/') + rest


def without_machine(text):
    """The PTX with neutral paths; exits if a path of the machine remains."""
    text = re.sub(r'(\.file\s+\d+\s+")([^"]+)(")', lambda m: m[1] + neutral_path(m[2]) + m[3], text)
    # Debug sections contain the compilation folder byte by byte; lengths must not change.
    def spelt(name):
        return ','.join(str(b) for b in name.encode())
    stand_in = ('/kvscope' + '/' * len(str(ROOT)))[:len(str(ROOT))]
    text = text.replace('.b8 ' + spelt(str(ROOT)) + '\n', '.b8 ' + spelt(stand_in) + '\n')
    for word in (str(ROOT), spelt(str(ROOT))):
        if word in text:
            sys.exit(f'a path of this machine is left in the PTX: {word}')
    return text


def write_ptx(nvcc, source, to, flags):
    """Compiles a file, named relative to the repository's root."""
    subprocess.run([nvcc, '-ptx', '-std=c++20', '-I.', *flags, str(source), '-o', str(to)], cwd=ROOT, check=True)
    to.write_text(without_machine(to.read_text()))


def builds(only):
    """(kernel, architecture) of every kept file."""
    kernels = sorted(p.parent.name for p in HERE.glob('kernels/*/kernel.cu'))
    if only and only not in kernels:
        sys.exit(f'build_ptx.py: no kernel {only}: one of {", ".join(kernels)}')
    for kernel in kernels:
        if not only or kernel == only:
            for architecture in ['sm_90a'] + ALSO.get(kernel, []):
                yield kernel, architecture


def compile_all(nvcc, folder, only):
    for kernel, architecture in builds(only):
        write_ptx(nvcc, f'gpu/kernels/{kernel}/kernel.cu', folder / f'{kernel}.{architecture}.ptx',
                  [f'-arch={architecture}', '-lineinfo', '-Werror', 'all-warnings'])


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


def differences(name, kept, now):
    """A line for each opcode whose number of occurrences differs."""
    kept, now = histogram(kept), histogram(now)
    return [f'{name}: {opcode} {kept[opcode]} times in the kept file, {now[opcode]} times now'
            for opcode in sorted(kept.keys() | now.keys()) if kept[opcode] != now[opcode]]


def check(nvcc):
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        compile_all(nvcc, folder, None)
        expected = {f'{kernel}.{architecture}.ptx' for kernel, architecture in builds(None)}
        for name in sorted(expected | {p.name for p in HERE.glob('ptx/*.ptx')}):
            if name not in expected:
                faults.append(f'{name}: no kernel writes it any more')
            elif not (HERE / 'ptx' / name).exists():
                faults.append(f'{name}: is not kept')
            else:
                faults += differences(name, (HERE / 'ptx' / name).read_text(), (folder / name).read_text())
    for fault in faults:
        print(fault)
    print('Run gpu/build_ptx.py and look at what changed.' if faults else f'{len(expected)} files say the same')
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--check', action='store_true', help='compare, write nothing')
    parser.add_argument('--only', metavar='KERNEL')
    arguments = parser.parse_args()
    nvcc = find_nvcc()
    if nvcc is None:
        print('SKIPPED: no nvcc in $CUDA_HOME/bin, PATH or /usr/local/cuda/bin, so the kept PTX is not held against its sources')
        return 77
    if arguments.check:
        return check(nvcc)
    (HERE / 'ptx').mkdir(exist_ok=True)
    compile_all(nvcc, HERE / 'ptx', arguments.only)
    return 0


if __name__ == '__main__':
    sys.exit(main())
