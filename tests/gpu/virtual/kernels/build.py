#!/usr/bin/env python3
"""Regenerates the kept PTX of the kernels in cuda/, or compares it with the current output of nvcc.

  build.py            writes cuda/*.ptx
  build.py --check    compiles to a temporary folder, compares the number of occurrences of each opcode; exit 1 if they differ

nvcc is searched in $CUDA_HOME/bin, in PATH and in /usr/local/cuda/bin; without it nothing is done, exit 77. The PTX contains
no path of the machine: sources are named relative to the repository's root, headers of the toolkit as cuda/include/...
"""
import argparse
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[3]
SOURCES = HERE / 'cuda'
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / 'gpu'))
from build_ptx import differences, find_nvcc, write_ptx  # noqa: E402

# Kernels that are also built for the compiler's other dialect: registers, moves and pointers are written differently.
BOTH = ['atomics', 'elementwise', 'reduce', 'ring', 'transpose', 'warp']
ONE = ['attention_faults', 'calls', 'cluster', 'convert', 'decode', 'decode_bugs', 'grid', 'host_calls', 'library_barrier', 'paged_tile', 'plain', 'qk', 'qk_bugs',
       'small_bugs', 'store', 'sync', 'tensor_load', 'wgmma', 'wild']


def builds():
    """(source stem, output name, flags) of every kept file."""
    for stem in sorted(BOTH + ONE):
        yield stem, stem + '.ptx', ['-arch=sm_90a', '-lineinfo']
    for stem in BOTH:
        yield stem, stem + '.sm_100a.ptx', ['-arch=sm_100a', '-lineinfo']
    yield 'tensor_memory', 'tensor_memory.sm_100a.ptx', ['-arch=sm_100a', '-lineinfo']
    yield 'qk', 'qk.debug.ptx', ['-arch=sm_90a', '-G']
    yield 'wmma', 'wmma.ptx', ['-arch=sm_90a']  # with -lineinfo, names of inlined templates would be longer than the code


def compile_all(nvcc, folder):
    for stem, output, flags in builds():
        write_ptx(nvcc, (SOURCES / (stem + '.cu')).relative_to(ROOT), folder / output, flags)


def check(nvcc):
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        compile_all(nvcc, folder)
        for _, output, _ in builds():
            faults += differences(output, (SOURCES / output).read_text(), (folder / output).read_text())
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
