"""Where NVIDIA's wheels put the NVRTC library. `kvscope lab` runs this file as a program: it prints the path, or nothing.

    nvidia-cuda-nvrtc-cu12   site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12
    nvidia-cuda-nvrtc        site-packages/nvidia/cu13/lib/libnvrtc.so.13
"""
from __future__ import annotations

import glob
import os
import sys

PATTERN = os.path.join("nvidia", "c*", "lib", "libnvrtc.so.[0-9]*")


def library() -> str | None:
    """The newest one of the first folder of sys.path that has any."""
    for folder in sys.path:
        found = glob.glob(os.path.join(folder, PATTERN))
        if found:
            return max(found, key=lambda path: [int(n) for n in path.rpartition(".so.")[2].split(".")])
    return None


if __name__ == "__main__":
    print(library() or "")
