"""Check attention kernels over paged KV caches from Python, without a GPU.

    import kvscope as kv

    problem = kv.Problem.vllm(q, kv_cache, block_table=table, seq_lens=lengths)
    g = kv.golden(problem)                      # g.o, g.lse, g.bounds
    kv.assert_close(out, g)                     # KernelMismatch with the ranked causes
    m = kv.load("kernel.ptx")                   # or kv.compile(source)
    r = m["decode"].launch(grid=8, block=128, args=dict(q=q, out=out))
    r.reports, r.counters
    kv.show(kv.run("scenario.json"), step=6)    # a picture; in a notebook, each object draws itself
    with kv.capture.to("dumps") as capture:     # keeps the calls of an engine, for python -m kvscope replay
        capture.vllm()

docs/17_from_python.md explains each part.
"""
try:
    import numpy as _numpy
except ModuleNotFoundError:
    raise ModuleNotFoundError("kvscope needs NumPy: pip install numpy", name="numpy") from None
del _numpy

from . import capture, numba, triton
from ._arrays import bits
from ._compile import compile
from ._core import __version__
from ._drawn import Picture
from ._errors import (CompileError, DeviceError, DeviceMemoryWarning, Error, GeometryError, IllegalAddress, IndexError,
                      InputError, KernelMismatch, LaunchWarning, NonFiniteWarning, OverflowError, UnsupportedError)
from ._golden import (Attention, Cause, Diagnosis, Errors, Golden, Verdict, assert_close, attention, diagnose, golden,
                      verify)
from ._launch import (Kernel, LaunchResult, Module, Offset, Parameter, Profile, Race, Report, TensorMap, load,
                      offset)
from ._problem import LayoutFit, LintReport, Problem, convert, detect, layouts, lint
from ._run import Explanation, Link, Run, Step, run
from ._show import show
from ._stepper import StepperState, stepper
from ._tile import Fragment, SharedImage, fragment, fragments

__all__ = ["Attention", "Cause", "CompileError", "DeviceError", "DeviceMemoryWarning", "Diagnosis", "Error", "Errors",
           "Explanation", "Fragment", "GeometryError", "Golden", "IllegalAddress", "IndexError", "InputError", "Kernel", "KernelMismatch",
           "LaunchResult", "LaunchWarning", "LayoutFit", "Link", "LintReport", "Module", "NonFiniteWarning", "Offset", "OverflowError", "Parameter",
           "Picture", "Problem", "Profile", "Race", "Report", "Run", "SharedImage", "Step", "StepperState", "TensorMap",
           "UnsupportedError", "Verdict", "__version__", "assert_close", "attention", "bits", "capture", "compile", "convert",
           "detect", "diagnose", "fragment", "fragments", "golden", "layouts", "lint", "load", "numba", "offset", "run",
           "show", "stepper", "triton", "verify"]
