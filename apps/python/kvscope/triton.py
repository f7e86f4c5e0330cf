"""Triton kernels on the virtual GPU, with tensors in host memory. Triton itself is imported when it is first needed.

    kv.triton.launch(kernel, grid, q, out, n, BLOCK=64, num_warps=4)      # a LaunchResult

    with kv.triton.activate() as gpu:                                     # or activate() ... deactivate()
        kernel[grid](q, out, n, BLOCK=64, num_warps=4)                    # DeviceError unless the launch is clean
        gpu.results[-1].counters

Triton's own compiler makes the PTX, without a GPU. docs/17_from_python.md has an example.
"""
from __future__ import annotations

import collections
import copy
import dataclasses
import importlib
import sys
import types
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from . import _core
from ._arrays import array_of
from ._calls import guided
from ._errors import CompileError, DeviceError, InputError
from ._host_memory import View, pointers
from ._launch import TMA_TYPES, LaunchResult, Module, Offset, TensorMap

__all__ = ["Gpu", "HostTensor", "activate", "deactivate", "launch", "tensor"]

# Triton's types of scalar parameters, as PTX types.
_SCALARS = {"i1": "u8", "u1": "u8", "i8": "s8", "u8": "u8", "i16": "s16", "u16": "u16", "i32": "s32", "u32": "u32",
            "i64": "s64", "u64": "u64", "fp16": "f16", "bf16": "bf16", "fp32": "f32", "f32": "f32", "fp64": "f64"}
_DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "e4m3": "float8_e4m3fn",
           "e5m2": "float8_e5m2", "e8m0": "uint8", "i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16",
           "i32": "int32", "u32": "uint32", "i64": "int64", "u64": "uint64"}
_SWIZZLES = ("none", "32B", "64B", "128B")  # CUtensorMapSwizzle


def _triton(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise CompileError(f"{module} cannot be imported: {error}. Install Triton: pip install triton") from None


class _DType(str):
    """The name of an element type, as Triton looks for it: str(), itemsize, is_floating_point."""
    itemsize: int
    is_floating_point: bool


class HostTensor:
    """An array with the attributes that Triton reads of a PyTorch tensor: data_ptr(), dtype, shape, stride()."""

    def __init__(self, array: Any) -> None:
        found = array_of("tensor", array)
        self.array = array
        self.values = found.values
        self.dtype = _DType(_DTYPES[found.dtype])
        self.dtype.itemsize = found.values.itemsize
        self.dtype.is_floating_point = "float" in self.dtype
        self.shape = found.values.shape

    def data_ptr(self) -> int:
        return int(self.values.__array_interface__["data"][0])

    def numel(self) -> int:
        return self.values.size

    def stride(self, axis: int | None = None) -> Any:
        """In elements, as PyTorch counts them."""
        strides = tuple(n // self.values.itemsize for n in self.values.strides)
        return strides if axis is None else strides[axis]

    # For autotune's reset_to_zero and restore_value.
    def zero_(self) -> "HostTensor":
        self.values[...] = 0
        return self

    def clone(self) -> "HostTensor":
        other = copy.copy(self)
        other.values = other.array = self.values.copy()
        return other

    def copy_(self, other: "HostTensor") -> "HostTensor":
        self.values[...] = other.values
        return self


def tensor(array: Any) -> HostTensor:
    """A NumPy or JAX array as an argument of `kernel[grid](...)`; PyTorch tensors need no wrapper."""
    return HostTensor(array)


def _arguments(name: str, kind: Any, value: Any) -> Iterator[tuple[str, str, Any]]:
    """(name, type, value) of each parameter that the compiled kernel has for an argument; constants have none."""
    if isinstance(kind, tuple):
        for i, (one, part) in enumerate(zip(kind, value)):
            yield from _arguments(f"{name}[{i}]", one, part)
    elif kind != "constexpr":
        yield name, kind, value


class _Launcher:
    """What Triton calls for each launch of a compiled kernel."""

    def __init__(self, target: int, source: Any, metadata: Any) -> None:
        self._metadata = metadata
        names = list(source.fn.arg_names) if hasattr(source, "fn") else []
        self._signature = [(names[key] if isinstance(key, int) and key < len(names) else str(key), kind)
                           for key, kind in source.signature.items()]
        group = _triton("triton.runtime.cache").get_cache_manager(metadata.hash).get_group(f"{source.name[:150]}.json")
        text = [path for name, path in (group or {}).items() if name.endswith(".ptx")]
        if not text:
            raise CompileError(f"Triton kept no PTX of {metadata.name}: unset TRITON_STORE_BINARY_ONLY")
        with open(text[0], encoding="utf-8") as file:
            self._kernel = Module(file.read(), f"{metadata.name}.ptx", target=target)[metadata.name]

    def _parameters(self, values: Sequence[Any], blocks: int) -> list[tuple[str, str, Any]]:
        """(name, type, value) of each parameter of the PTX: arguments, then pointers to the kernel's own scratch."""
        maps = iter(getattr(self._metadata, "tensordesc_meta", None) or ())
        out: list[tuple[str, str, Any]] = []
        for (argument, argument_kind), argument_value in zip(self._signature, values):
            for name, kind, value in _arguments(argument, argument_kind, argument_value):
                if kind.startswith("tensordesc"):
                    out += _of_descriptor(name, value, next(maps, None))
                else:
                    out.append((name, kind, value))
        for scratch in ("global_scratch", "profile_scratch")[:len(self._kernel.parameters) - len(out)]:
            size = (getattr(self._metadata, f"{scratch}_size", 0) or 0) * blocks
            out.append((scratch, "*i8", np.zeros(size, np.uint8) if size else None))
        if len(out) != len(self._kernel.parameters):
            raise CompileError(f"Triton compiled {self._kernel.signature} for {len(out)} arguments: this version of "
                               "Triton passes arguments that kvscope does not have")
        return out

    def __call__(self, grid_x: int, grid_y: int, grid_z: int, stream: Any, function: Any, packed_metadata: Any,
                 launch_metadata: Any, enter_hook: Any, exit_hook: Any, *values: Any) -> None:
        if grid_x * grid_y * grid_z == 0:
            return
        if not _active:
            raise InputError(f"{self._kernel.name} was compiled for the virtual GPU, which is no longer active: call "
                             "kv.triton.activate()")
        clusters = getattr(self._metadata, "num_ctas", 1)
        given = self._parameters(values, grid_x * grid_y * grid_z * clusters)
        views, at = [], []
        for i, (name, kind, value) in enumerate(given):
            base = value[0].base if kind == "map" else value
            if kind == "map" or (kind.startswith("*") and value is not None):
                views.append(View(name, _array(base)))
                at.append(i)
        arguments = [value for _, _, value in given]
        for i, pointer in zip(at, pointers(views)):
            name, kind, value = given[i]
            arguments[i] = _tensor_map(name, value[0], value[1], pointer) if kind == "map" else pointer
        kernel = copy.copy(self._kernel)
        kernel.parameters = [dataclasses.replace(p, name=name, type=_SCALARS.get(kind, p.type))
                             for p, (name, kind, _) in zip(kernel.parameters, given)]
        if enter_hook is not None:
            enter_hook(launch_metadata)
        result = kernel.launch((grid_x * clusters, grid_y, grid_z), 32 * self._metadata.num_warps, args=arguments,
                               shared=self._metadata.shared, cluster=clusters if clusters > 1 else None,
                               cooperative=bool(getattr(self._metadata, "launch_cooperative_grid", False)),
                               **_active[-1].options)
        _active[-1].launched(result)
        if exit_hook is not None:
            exit_hook(launch_metadata)


def _array(value: Any) -> Any:
    """The tensor behind an argument: Triton's reinterpret() and HostTensor wrap one."""
    if isinstance(value, HostTensor):
        return value.array
    return _array(value.base) if type(value).__name__ == "TensorWrapper" else value


def _of_descriptor(name: str, descriptor: Any, meta: Any) -> list[tuple[str, str, Any]]:
    """The parameters of a host-side TensorDescriptor: a tensor map, or, where the compiler uses none, its base, shape,
    strides and flags; then shape and strides."""
    shape, strides = list(descriptor.shape), list(descriptor.strides)
    if meta is None:
        flags = [descriptor.padding == "nan", bool(getattr(descriptor, "round_f32_to_tf32", False))]
        first = [("*", descriptor.base), *(("i64", n) for n in shape + strides), *(("i1", flag) for flag in flags)]
    elif meta.get("is_im2col") or meta.get("fp4_padded"):
        raise InputError(f"{name} is an im2col or padded fp4 descriptor, which kvscope does not have: pass a tiled one")
    else:
        first = [("map", (descriptor, meta))]
    return [(name, kind, value)
            for kind, value in (*first, *(("i32", n) for n in shape), *(("i64", n) for n in strides))]


def _tensor_map(name: str, descriptor: Any, meta: Any, pointer: Offset) -> TensorMap:
    found = array_of(name, _array(descriptor.base))
    size = found.values.itemsize
    kind = TMA_TYPES[found.dtype]
    if getattr(descriptor, "round_f32_to_tf32", False):
        kind = "tf32"
    return TensorMap(pointer.array, list(reversed(meta["block_size"])), dims=list(reversed(descriptor.shape)),
                     strides=[n * size for n in reversed(descriptor.strides[:-1])], type=kind, offset=pointer.elements,
                     swizzle=_SWIZZLES[meta["swizzle"]], fill="nan" if descriptor.padding == "nan" else "zeros")


class Gpu:
    """The virtual GPU as Triton's driver, from activate() to deactivate().

    results    the LaunchResult of the last launches, the newest last
    tuned      (name, cost) of each launch that autotune made to compare its configurations
    """

    def __init__(self, *, target: int, raises: bool, keep: int, multiprocessors: int,
                 cost: str | Callable[[LaunchResult], float], options: dict[str, Any]) -> None:
        self.target = target
        self.options = options
        self.results: collections.deque[LaunchResult] = collections.deque(maxlen=keep)
        self.tuned: list[tuple[str, float]] = []
        self._raises = raises
        self._cost = cost
        self._costs: list[float] | None = None
        self._previous: Any = None
        self._target = _triton("triton.backends.compiler").GPUTarget("cuda", target, 32)
        properties = {"max_shared_mem": _core.most_shared(target), "multiprocessor_count": multiprocessors,
                      "max_num_regs": 65536, "warpSize": 32}
        # Names that Triton gives: driver.active.utils, driver.active.launcher_cls.
        self.utils = types.SimpleNamespace(get_device_properties=lambda device: dict(properties),
                                           load_binary=lambda name, *rest: (None, name, 0, 0, 1024),
                                           unload_module=lambda module: None)
        self.launcher_cls = lambda source, metadata: _Launcher(target, source, metadata)

    def launched(self, result: LaunchResult) -> None:
        sys.stdout.write(result.printed)
        if self._costs is None:
            self.results.append(result)
        else:
            cost = self._cost(result) if callable(self._cost) else result.counters[self._cost]
            self._costs.append(cost)
            self.tuned.append((result.kernel, cost))
        if self._raises and not result.clean:
            raise DeviceError(f"the launch is not clean: {result!r}", [("", one.text) for one in result.reports])

    def _benchmark(self, call: Callable[[], Any], quantiles: Sequence[float] | None = None, **ignored: Any) -> Any:
        """In place of triton.testing.do_bench: one run, and its cost in place of its milliseconds."""
        self._costs = []
        try:
            call()
            cost = float(sum(self._costs))
        finally:
            self._costs = None
        return cost if quantiles is None else [cost] * len(quantiles)

    # The interface of triton.backends.driver.DriverBase.
    def is_active(self) -> bool:
        return True

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> Any:
        return f"kvscope sm_{self.target}"  # Triton keeps compiled kernels by device: none of another driver is reused

    def set_current_device(self, device: Any) -> None:
        pass

    def get_current_stream(self, device: Any = None) -> int:
        return 0

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        return divmod(self.target, 10)

    def get_active_torch_device(self) -> Any:
        return _triton("torch").device("cpu")

    def get_device_interface(self) -> Any:
        return types.SimpleNamespace(synchronize=lambda device=None: None, current_device=lambda: 0)

    def get_benchmarker(self) -> Callable[..., Any]:
        return self._benchmark

    def __enter__(self) -> "Gpu":
        return self

    def __exit__(self, *_: Any) -> None:
        if self in _active:
            while _active[-1] is not self:
                deactivate()
            deactivate()


_active: list[Gpu] = []


def activate(*, raises: bool = True, keep: int = 8, target: int = 90, multiprocessors: int = 8,
             cost: str | Callable[[LaunchResult], float] = "runs", **options: Any) -> Gpu:
    """Makes the virtual GPU Triton's active driver, until deactivate() or the end of a `with`. `kernel[grid](...)` then
    takes tensors in host memory.

    raises           DeviceError for a launch with reports of severity error; False: read gpu.results[-1].reports
    keep             how many results to keep; each holds the arrays of its launch
    target           compute capability to compile for, 80 or higher: 90 is sm_90a
    multiprocessors  what a persistent kernel is told; the virtual GPU itself has no such number
    cost             what autotune minimizes in place of time: a name of LaunchResult.counters, "runs" are warp
                     instructions, or a function of a LaunchResult
    options          checks, schedule, sum, max_reports, max_instructions, max_memory, jobs of Kernel.launch()

    autotune counts, it does not measure: the configuration that it chooses and keeps says nothing about time on a GPU.
    """
    config = _triton("triton.runtime.driver").driver
    unknown = set(options) - {"checks", "schedule", "sum", "max_reports", "max_instructions", "max_memory", "counters",
                              "jobs"}
    if unknown:
        raise InputError(f"{', '.join(sorted(unknown))}: no option of activate; grid, block, shared and cluster come "
                         "from the kernel")
    gpu = Gpu(target=target, raises=raises, keep=keep, multiprocessors=multiprocessors, cost=cost, options=options)
    gpu._previous = vars(config).get("_active", vars(config).get("active"))
    config.set_active(gpu)
    _active.append(gpu)
    return gpu


def deactivate() -> None:
    """Gives Triton back the driver that it had before the last activate(). Without one, does nothing."""
    if _active:
        config = _triton("triton.runtime.driver").driver
        previous = _active.pop()._previous
        if previous is None:
            config._active = None  # Triton looks for a driver again when it needs one
        else:
            config.set_active(previous)


@guided
def launch(kernel: Any, grid: int | Sequence[int] | Callable[[Any], Sequence[int]], *args: Any, target: int = 90,
           checks: str | Sequence[str] = "all", schedule: str = "late", max_reports: int = 20,
           max_instructions: int | None = None, max_memory: int = 4 << 30, **named: Any) -> LaunchResult:
    """Compiles a @triton.jit kernel for sm_90a, without a GPU, and runs it on the virtual GPU.

    args, named   as in `kernel[grid](...)`: tensors in host memory (PyTorch, NumPy, JAX), numbers, constants, and
                  options of Triton such as num_warps and num_stages
    checks, schedule, max_...   as in Kernel.launch()

    `sum` of Kernel.launch() is no argument here, because kernels may have a parameter of that name. It is taken from the
    innermost activate() in progress: `with kv.triton.activate(sum="hopper"): kv.triton.launch(...)`.

    Tensors may be strided, and views of one buffer: views that interleave share an allocation. What the kernel reads or
    writes outside of the bytes of a tensor is reported. Reports raise nothing: see LaunchResult.clean.
    """
    wrapped = [_wrapped(value) for value in args]
    outer = {"sum": _active[-1].options["sum"]} if _active and "sum" in _active[-1].options else {}
    with activate(raises=False, keep=1, target=target, checks=checks, schedule=schedule, max_reports=max_reports,
                  max_instructions=max_instructions, max_memory=max_memory, **outer) as gpu:
        kernel[(grid,) if isinstance(grid, int) else grid](*wrapped, **{name: _wrapped(value)
                                                                        for name, value in named.items()})
    if not gpu.results:
        raise InputError(f"the grid {grid} has no thread block: pass extents of at least 1")
    return gpu.results[-1]


def _wrapped(value: Any) -> Any:
    """Arrays that Triton does not take as they are, also in tuples."""
    if type(value) is tuple:
        return tuple(_wrapped(one) for one in value)
    if hasattr(value, "data_ptr") or not (hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")):
        return value
    return value if isinstance(value, np.generic) else HostTensor(value)
