#!/usr/bin/env python3
"""The kept PTX of the kernels beside it: written anew, or held against what nvcc makes of the sources today.

  build.py            writes cuda/*.ptx
  build.py --check    compiles to a temporary folder, compares how often each opcode occurs; exit 1 when they differ

nvcc is looked for in $CUDA_HOME/bin, in PATH and in /usr/local/cuda/bin; without it nothing is done, exit 77. No path of the
machine stays in the PTX: sources are named from the repository's root, headers of the toolkit as cuda/include/...
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
