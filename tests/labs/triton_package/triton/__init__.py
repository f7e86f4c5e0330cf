"""A stand-in for the package triton: it compiles nothing, and returns the PTX that Triton made of the same file.

It has what apps/labs/triton_compile.py and submissions use when they are imported. tests/labs/triton_standin.py builds a Python
that finds it, so that the path from a submission in Triton to its grade is tested where Triton is not installed.
"""
from .runtime import JITFunction, jit
from .compiler import compile

__version__ = "0 (stand-in)"
__all__ = ["JITFunction", "compile", "jit"]
