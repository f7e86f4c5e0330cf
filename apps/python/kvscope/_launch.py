"""Kernels on the virtual GPU."""
from __future__ import annotations

import copy
import dataclasses
import json
import math
import os
import warnings
from typing import Any, Iterator, Mapping, Sequence

import numpy as np

from . import _core
from ._arrays import Array, array_of
from ._calls import guided, path_of, text_of
from ._drawn import Drawn
from ._errors import IndexError as KvscopeIndexError
from ._errors import InputError, LaunchWarning
from ._html import table, text
from ._pictures_device import draw_race
from ._signatures import names_in_source
from ._svg import Drawing

_INTEGERS = {"u8": (1, False), "u16": (2, False), "u32": (4, False), "u64": (8, False), "s8": (1, True), "s16": (2,
                                                                                                                 True),
             "s32": (4, True), "s64": (8, True), "b8": (1, False), "b16": (2, False), "b32": (4, False), "b64": (8,
                                                                                                                 False)}
_FLOATS = ("f16", "bf16", "f32", "f64")
_UNTYPED = {"b16": "f16", "b32": "f32", "b64": "f64"}  # bits that a float of their width sets
_MAP_BYTES = 128
TMA_TYPES = {"f64": "f64", "f32": "f32", "f16": "f16", "bf16": "bf16", "u8": "u8", "i8": "u8", "e4m3": "u8",
              "e5m2": "u8",
              "e8m0": "u8", "u16": "u16", "i16": "u16", "u32": "u32", "i32": "i32", "u64": "u64", "i64": "i64"}


@dataclasses.dataclass(frozen=True)
class Offset:
    """A pointer to element `elements` of an array: `kv.offset(array, n)`."""
    array: Any
    elements: int


@guided
def offset(array: Any, elements: int) -> Offset:
    """A pointer argument that begins at an element of `array`, counted in row-major order."""
    return Offset(array, elements)


class TensorMap:
    """A tensor map of an array, for a parameter of type CUtensorMap.

    box, dims and strides have the fastest dimension first, as the driver's encoder takes them; box and dims count
    elements, strides bytes. Default dims and strides: the array's own. swizzle: "none", "32B", "64B", "128B".
    Example: TensorMap(k, box=[64, 8], swizzle="128B") for k bf16 [20, 64].
    """

    def __init__(self, array: Any, box: Sequence[int], *, dims: Sequence[int] | None = None,
                 strides: Sequence[int] | None = None, type: str | None = None, offset: int = 0, **words: Any) -> None:
        found = array_of("TensorMap", array)
        size = found.values.dtype.itemsize
        own = [int(n) for n in reversed(found.values.shape)]
        if dims is None:
            dims = own
        if strides is None:
            strides = [size * int(np.prod(own[:i], dtype=object)) for i in range(1, len(dims))]
        self.array = array
        self.offset = offset
        given: dict[str, Any] = {"kvscope_tensor_map": 1, "type": type or TMA_TYPES[found.dtype], "base": 0,
                                 "dims": [int(n) for n in dims], "box": [int(n) for n in box]}
        if len(dims) > 1:
            given["strides"] = [int(n) for n in strides]
        self.json = json.dumps({**given, **words})


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel. `type` is the PTX type of a scalar, "" for a struct; `fields` of a known struct."""
    name: str
    ptx_name: str
    type: str
    type_name: str
    bytes: int
    fields: tuple[tuple[str, int, int, str, bool, str], ...]

    @property
    def label(self) -> str:
        return f"parameter {self.name or self.ptx_name}"

    def __str__(self) -> str:
        kind = self.type_name or (f".{self.type}" if self.type else f"struct of {self.bytes} bytes")
        return f"{kind} {self.name or self.ptx_name}"


class Report(Mapping[str, Any]):
    """A finding of the virtual GPU: kind, severity, cta, step, message, hint, sources, text."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values
        self.kind: str = values["kind"]
        self.severity: str = values["severity"]
        self.text: str = values["text"]

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return self.text


class Race(Report, Drawn):
    """Two accesses to the same bytes that nothing orders. `parties` are dicts with action, actor, thread, warp, opcode
    and source, in the order in which the accesses ran."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.parties: list[dict[str, Any]] = values["parties"]

    @property
    def where(self) -> str:
        """"block (0, 0, 0), step 12"."""
        return f"block {tuple(self['cta'])}, step {self['step']}"

    @property
    def address_text(self) -> str:
        """"4 bytes at tile + 0, shared"; "" if the address is unknown."""
        a = self["address"]
        if not a["known"]:
            return ""
        return f"{a['bytes']} bytes at {a['symbol'] or 'address'} + {a['offset']}, {a['space']}"

    def _draw(self) -> Drawing:
        return draw_race(self)

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
        return (["action", "actor", "instruction", "source"],
                [[p["action"], p["actor"], p["opcode"], p["source"]] for p in self.parties])


def _report(values: dict[str, Any]) -> Report:
    race = values["kind"].startswith("RACE") and len(values["parties"]) >= 2
    return Race(values) if race else Report(values)


class Profile:
    """Counts of a launch, not times."""

    def __init__(self, results: dict[str, Any]) -> None:
        self._results = results

    def by_line(self) -> list[dict[str, Any]]:
        """One dict for each source line: source, runs, wavefronts, ideal_wavefronts, sectors, ideal_sectors, ..."""
        return list(self._results["lines"])

    def by_class(self) -> dict[str, int]:
        """Warp instructions of each class that occurs."""
        return {name: runs for name, runs in self._results["classes"].items() if runs}

    def _repr_html_(self) -> str:
        lines = self.by_line()
        return table(list(lines[0]) if lines else [], [list(line.values()) for line in lines])


class LaunchResult:
    """A finished launch. Arrays that the kernel wrote have their new values."""

    def __init__(self, core: _core.Launch, kernel: str) -> None:
        self._core = core
        self._results = core.results()
        self.kernel = kernel
        self.finished: bool = self._results["finished"]
        self.clean: bool = self._results["clean"]  # finished, without a report of severity error
        self.steps: int = self._results["steps"]   # warp instructions
        self.ctas: int = self._results["ctas"]     # that ran: fewer than grid_ctas in a sampled launch
        self.grid_ctas: int = self._results["grid_ctas"]
        self.sum: str = self._results["sum"]       # how matrix instructions added: "seq", "exact" or "hopper"
        self.threads: int = self._results["threads"]        # that ran the CTAs
        self.one_thread: str = self._results["one_thread"]  # why only one did although jobs asked for several, or ""
        self.printed = self._results["printed"].decode("utf-8", "replace")
        self.reports = [_report(one) for one in self._results["reports"]]

    @property
    def races(self) -> list[Race]:
        """The reports of races with both accesses."""
        return [report for report in self.reports if isinstance(report, Race)]

    @property
    def counters(self) -> dict[str, int]:
        """Sums over the launch: runs, lanes, wavefronts, sectors, copied_bytes, ...; empty with counters=False."""
        return dict(self._results["counters"] or {})

    def profile(self) -> Profile:
        """The counts by source line and by instruction class."""
        return Profile(self._results)

    def trace(self, path: str | os.PathLike[str], *, cta: int = 0, lanes: bool = False) -> int:
        """Writes the tiles that a CTA loads as a trace (.kvt); returns their number. The launch runs again for it."""
        return self._core.trace(path_of("path", path), cta, lanes)

    def __repr__(self) -> str:
        end = "to the end" if self.finished else "and was stopped"
        found = "".join(f"\n{report.text}\n" for report in self.reports)
        sampled = f", sampled: {self.ctas} of {self.grid_ctas} CTAs ran" if self.ctas < self.grid_ctas else ""
        reports = "1 report" if len(self.reports) == 1 else f"{len(self.reports)} reports"
        return (f"kernel {self.kernel}: {self.steps} warp instructions, {end}, {reports}{sampled}"
                f"{found}")

    def _repr_html_(self) -> str:
        return text(repr(self)) + "".join(race._repr_html_() for race in self.races[:3])


class _Arrays:
    """The arrays of one launch, each once; two parameters may point to the same one."""

    def __init__(self) -> None:
        self.arrays: list[tuple[str, np.ndarray[Any, Any]]] = []
        self.dtypes: dict[str, str] = {}  # by the name of the parameter or field

    def place(self, name: str, value: Any) -> tuple[int, Array]:
        array = array_of(name, value)
        self.dtypes[name] = array.dtype
        values = array.values
        if not values.flags.c_contiguous:
            raise InputError(f"{name} is not contiguous (strides {values.strides} of shape {values.shape}): pass a "
                             f"contiguous copy, or kv.offset(base, n) of the array that it is a part of")
        flat = values.reshape(-1).view(np.uint8)
        for number, (other, placed) in enumerate(self.arrays):
            same = placed.__array_interface__["data"][0] == flat.__array_interface__["data"][0]
            if same and placed.size == flat.size:
                return number, array
            if flat.size and placed.size and np.may_share_memory(placed, flat):
                raise InputError(f"{name} and {other} overlap in memory: pass one array, and "
                                 "kv.offset(array, n) for a part")
        self.arrays.append((name, flat))
        return len(self.arrays) - 1, array

    def pointer(self, name: str, value: Any) -> tuple[int, int]:
        """(number, byte offset)"""
        if isinstance(value, Offset):
            number, array = self.place(name, value.array)
            if isinstance(value.elements, bool) or not isinstance(value.elements, (int, np.integer)):
                raise InputError(f"{name}: the offset is {value.elements!r}: pass a whole number of elements")
            if not 0 <= value.elements <= array.values.size:
                raise KvscopeIndexError(f"{name}: offset {value.elements} is outside [0, {array.values.size}]")
            return number, int(value.elements) * array.values.dtype.itemsize
        return self.place(name, value)[0], 0


def _is_array(value: Any) -> bool:
    if isinstance(value, (bool, int, float, str, bytes, np.generic)) or value is None:
        return False
    return isinstance(value, (Array, Offset)) or hasattr(value, "__array__") or hasattr(value, "__dlpack__") or \
        isinstance(value, (memoryview, bytearray))


def _float(name: str, kind: str, dtype: str, value: float) -> bytes:
    """The bytes of a number in a type of floats, rounded once; InputError if only infinity is near enough."""
    data = _core.rounded(dtype, value)
    if math.isfinite(value) and data in (_core.rounded(dtype, math.inf), _core.rounded(dtype, -math.inf)):
        raise InputError(f"{name} is {value}, which does not fit .{kind}: it is past the largest {dtype}")
    return data


def _scalar(name: str, kind: str, size: int, value: Any) -> bytes:
    """A number as the bytes of a parameter or field of that PTX type."""
    if isinstance(value, np.generic) or (hasattr(value, "item") and getattr(value, "ndim", 1) == 0):
        value = value.item()
    if not isinstance(value, (bool, int, float)):
        raise InputError(f"{name} takes a number of type .{kind}, not {type(value).__name__}")
    try:
        if kind in _FLOATS:
            return _float(name, kind, kind, float(value))
        if kind in _UNTYPED and isinstance(value, float):
            return _float(name, kind, _UNTYPED[kind], value)
        if kind in _INTEGERS:
            if isinstance(value, float):
                raise InputError(f"{name} is {value}, but its type .{kind} takes whole numbers")
            width, _ = _INTEGERS[kind]
            low, high = -(1 << (8 * width - 1)), (1 << 8 * width) - 1
            if not low <= value <= high:
                raise InputError(f"{name} is {value}, which does not fit .{kind}: {low} to {high}")
            return (value % (1 << 8 * width)).to_bytes(width, "little")
    except OverflowError as error:
        raise InputError(f"{name} is {value}, which does not fit .{kind}: {error}") from None
    raise InputError(f"{name} has the type .{kind}, which kvscope cannot set: pass its {size} bytes")


def _no_field(name: str, p: Parameter, path: object) -> str:
    return f"{name} has no field {path!r}: fields are {', '.join([field[0] for field in p.fields][:12])}"


def _place_of_map(name: str, p: Parameter, path: str) -> int:
    """[bytes] The first byte of a tensor map in a struct: the fields below `path`, in its 128 bytes, are its opaque words."""
    inside = [f for f in p.fields if f[0] == path or f[0].startswith((f"{path}.", f"{path}["))]
    if not inside:
        raise InputError(_no_field(name, p, path))
    begin = min(f[1] for f in inside)
    end = begin + _MAP_BYTES
    if any(f[1] + f[2] > end for f in inside):
        raise InputError(f"{name}.{path} has more bytes than a tensor map, which has {_MAP_BYTES}: name a part of it")
    for other in p.fields:
        in_union = any(other[1] < f[1] + f[2] and f[1] < other[1] + other[2] for f in inside)
        if other not in inside and not in_union and other[1] < end and begin < other[1] + other[2]:
            raise InputError(f"a tensor map of {_MAP_BYTES} bytes at {name}.{path} overlaps {name}.{other[0]}")
    return begin


class Kernel:
    """A kernel of a module. `signature` shows its parameters."""

    def __init__(self, module: "Module", about: dict[str, Any]) -> None:
        self._module = module
        self.name: str = about["name"]
        self.short_name: str = about["short_name"]
        known = names_in_source(module.source, self.short_name, len(about["parameters"])) if module.source else []
        self.parameters = [Parameter(one.get("name") or (known[i] if known else ""), one["ptx_name"], one["type"],
                                     one.get("type_name", ""), one["bytes"], tuple(one["fields"]))
                           for i, one in enumerate(about["parameters"])]

    @property
    def signature(self) -> str:
        def shown(index: int, parameter: Parameter) -> str:  # nvcc's name "_Z5scalePff_param_1" tells only the number
            made_up = self.name != self.short_name and parameter.ptx_name == f"{self.name}_param_{index}"
            return str(dataclasses.replace(parameter, ptx_name=str(index)) if made_up else parameter)

        return f"{self.short_name}({', '.join(shown(i, p) for i, p in enumerate(self.parameters))})"

    def __repr__(self) -> str:
        return f"<kvscope.Kernel {self.signature}>"

    @guided
    def with_struct(self, parameter: str | int, header: str, type: str = "") -> "Kernel":
        """This kernel with the struct of a parameter defined by a C header, for PTX without debug information.

        Its fields are then set by a dict: `args={"p": {"out": array, "n": 3, "in[1].page": 2}}`.
        """
        at = [i for i, p in enumerate(self.parameters) if str(parameter) in (p.name, p.ptx_name, str(i))]
        if len(at) != 1:
            raise InputError(f"there is no parameter {parameter!r}: kernel {self.signature}")
        type_name, size, fields = _core.struct_layout(header, type)
        old = self.parameters[at[0]]
        if old.bytes != size or old.type:
            raise InputError(f"{type_name or 'the struct'} has {size} bytes, but parameter {old} has {old.bytes}: "
                             "pass the struct that the kernel was compiled with")
        kernel = copy.copy(self)
        kernel.parameters = list(self.parameters)
        kernel.parameters[at[0]] = dataclasses.replace(old, type_name=type_name, fields=tuple(fields))
        return kernel

    def _numbered(self, args: Mapping[Any, Any] | Sequence[Any]) -> list[Any]:
        count = len(self.parameters)
        if not isinstance(args, Mapping):
            if len(args) != count:
                raise InputError(f"{len(args)} arguments given, kernel {self.signature} takes {count}")
            return list(args)
        values: list[Any] = [_MISSING] * count
        for key, value in args.items():
            at = [i for i, p in enumerate(self.parameters) if str(key) in (p.name, p.ptx_name, str(i))]
            if len(at) != 1:
                raise InputError(f"there is no parameter {key!r}: kernel {self.signature}; without names in the "
                                 "source, keys are numbers from 0")
            if values[at[0]] is not _MISSING:
                raise InputError(f"parameter {at[0]} ({self.parameters[at[0]]}) has a value already: {key!r} names it again")
            values[at[0]] = value
        missing = [str(p) for p, value in zip(self.parameters, values) if value is _MISSING]
        if missing:
            raise InputError(f"no value for {', '.join(missing)}: kernel {self.signature}")
        return values

    def _argument(self, p: Parameter, value: Any, arrays: _Arrays) -> tuple[bytes, list[tuple[int, int, int, str]]]:
        name = p.label
        if isinstance(value, TensorMap):
            if p.type:
                raise InputError(f"{name} is .{p.type}, not a tensor map: pass an array or a number")
            number, at = arrays.pointer(name, Offset(value.array, value.offset))
            return bytes(p.bytes), [(0, number, at, value.json)]
        if p.type:
            if _is_array(value) and not (hasattr(value, "ndim") and value.ndim == 0):
                if p.type not in ("u64", "b64", "s64"):
                    raise InputError(f"{name} takes a number of type .{p.type}, not an array: kernel {self.signature}")
                number, at = arrays.pointer(name, value)
                return bytes(8), [(0, number, at, "")]
            if value is None:
                if p.type not in ("u64", "b64", "s64"):
                    raise InputError(f"{name} takes a number of type .{p.type}, not None: kernel {self.signature}")
                return bytes(8), []
            return _scalar(name, p.type, p.bytes, value), []
        if isinstance(value, Mapping):
            return self._struct(name, p, value, arrays)
        if isinstance(value, (bytes, bytearray)):
            data = bytes(value)
        elif isinstance(value, (np.void, np.ndarray)):  # a record
            data = value.tobytes()
        else:
            raise InputError(f"{name} is a struct of {p.bytes} bytes: pass a dict of its fields, a NumPy record, bytes "
                             f"or a kv.TensorMap, not {type(value).__name__}")
        if len(data) != p.bytes:
            raise InputError(f"{name} has {p.bytes} bytes, the argument has {len(data)}")
        return data, []

    def _struct(self, name: str, p: Parameter, value: Mapping[str, Any],
                arrays: _Arrays) -> tuple[bytes, list[tuple[int, int, int, str]]]:
        if not p.fields:
            raise InputError(f"the fields of {name} are unknown: define them with kernel.with_struct(), or compile "
                             f"with debug information (nvcc -G), or pass its {p.bytes} bytes or a NumPy record")
        fields = {field[0]: field for field in p.fields}
        data, patches = bytearray(p.bytes), []
        given: list[tuple[str, int, int]] = []  # path, first byte, end

        def claim(path: str, begin: int, size: int) -> None:
            for other, first, end in given:
                if begin < end and first < begin + size:
                    raise InputError(f"{name}.{path} overlaps {name}.{other}, which has a value already")
            given.append((path, begin, begin + size))

        for path, one in value.items():
            if isinstance(one, TensorMap):
                begin = _place_of_map(name, p, path)
                claim(path, begin, _MAP_BYTES)
                number, at = arrays.pointer(f"{name}.{path}", Offset(one.array, one.offset))
                patches.append((begin, number, at, one.json))
                continue
            if path not in fields:
                raise InputError(_no_field(name, p, path))
            _, begin, size, kind, pointer, type_name = fields[path]
            if not kind:
                raise InputError(f"{name}.{path} ({type_name}) is a bit field: pass the whole struct as bytes")
            if one is None and not pointer:
                raise InputError(f"{name}.{path} takes a number of type .{kind}, not None")
            claim(path, begin, size)
            if pointer and one is not None and _is_array(one):
                number, at = arrays.pointer(f"{name}.{path}", one)
                patches.append((begin, number, at, ""))
            elif one is not None:
                data[begin:begin + size] = _scalar(f"{name}.{path}", kind, size, one)
        return bytes(data), patches

    @guided
    def launch(self, grid: int | Sequence[int] = 1, block: int | Sequence[int] | None = None, *,
               args: Mapping[str, Any] | Sequence[Any] = (), shared: int = 0,
               cluster: int | Sequence[int] | None = None,
               checks: str | Sequence[str] = "all", schedule: str = "late", sum: str = "seq", counters: bool = True,
               cooperative: bool = False, ctas: str = "", jobs: int = 1, max_reports: int = 20,
               max_instructions: int | None = None, max_memory: int = 4 << 30) -> LaunchResult:
        """Runs the kernel on the virtual GPU and writes the arrays that it changed.

        args      a dict by parameter name (or number), or a list in order. Arrays for pointers, kv.offset(array, n),
                  None for a null pointer, numbers for scalars, a dict or record for a struct, kv.TensorMap for a map
        shared    dynamic shared memory [bytes];  grid, block, cluster: a number or up to three, x first; without block
                  a CTA has 1 thread, with a LaunchWarning if the kernel reads %tid
        checks    "all", "none", or names such as "race,init" (docs/15_virtual_gpu.md)
        ctas      the CTAs that run, such as "0-3,last" or "(1,2,0)"; others leave their elements as they were
        jobs      threads that run CTAs which cannot see one another; all results are those of one thread
        schedule  "late", "early" or "seed:N": when asynchronous copies land, and the order of warps
        sum       "seq", "exact" or "hopper": how matrix instructions add products (docs/15_virtual_gpu.md)

        Every array is an allocation of its own: an access outside of it is reported. InputError names a wrong argument
        and the kernel's signature. Ctrl+C stops the launch; no array is changed then.
        """
        if not isinstance(schedule, str):
            raise InputError(f"schedule is {schedule!r}: pass \"late\", \"early\" or \"seed:N\"")
        names = checks.split(",") if isinstance(checks, str) else list(checks)
        unknown = [name for name in names if name not in _CHECKS]
        if unknown:
            raise InputError(f"checks {', '.join(map(str, unknown))}: unknown; one of {', '.join(_CHECKS)}")
        if not isinstance(sum, str) or sum not in _SUMS:
            raise InputError(f"sum is {sum!r}: pass one of {', '.join(_SUMS)}")
        clusters = None if cluster is None else _extents("cluster", cluster)
        if clusters is not None and min(clusters) < 1:  # 0 is no cluster in the launch's configuration
            raise InputError(f"cluster is {cluster!r}: pass numbers of at least 1, or None for the kernel's own")
        arrays = _Arrays()
        arguments = [self._argument(p, value, arrays) for p, value in zip(self.parameters, self._numbered(args))]
        options = {"grid": _extents("grid", grid), "block": _extents("block", 1 if block is None else block),
                   "shared": shared, "schedule": schedule, "sum": sum, "checks": names,
                   "counters": counters, "cooperative": cooperative, "ctas": ctas, "jobs": jobs,
                   "max_reports": max_reports, "max_instructions": max_instructions, "max_memory": max_memory,
                   "cluster": clusters}
        elements = [(i, arrays.dtypes[p.label], p.name) for i, p in enumerate(self.parameters) if p.label in arrays.dtypes]
        for note in _core.launch_notes(self._module._core, self.name, block is not None, elements):
            warnings.warn(note, LaunchWarning, stacklevel=3)
        core = _core.launch(self._module._core, self.name, options, arrays.arrays, arguments)
        changes = [(name, flat, core.changed(i)) for i, (name, flat) in enumerate(arrays.arrays)]
        fixed = [name for name, flat, after in changes if after is not None and not flat.flags.writeable]
        if fixed:
            raise InputError(f"{', '.join(fixed)}: the kernel wrote an array that is read-only; pass a copy. "
                             "No array was changed")
        for _, flat, after in changes:
            if after is not None:
                flat[:] = np.frombuffer(after, np.uint8)
        return LaunchResult(core, self.short_name)


_MISSING = object()
_CHECKS = tuple(_core.check_names())
_SUMS = tuple(_core.sum_names())


def _extents(name: str, value: int | Sequence[int]) -> list[int]:
    given = [value] if isinstance(value, (int, np.integer)) else list(value)
    if not 1 <= len(given) <= 3 or not all(isinstance(n, (int, np.integer)) for n in given):
        raise InputError(f"{name} is {value!r}: pass a number, or up to three, x first")
    return [int(n) for n in given] + [1] * (3 - len(given))


class Module:
    """The kernels of a PTX text: `module["decode"]` by name or the shortest part of it that means one kernel.

    Like a dict, a module iterates over the names of its kernels, and `"decode" in module` tells whether the name means
    one of them."""

    def __init__(self, ptx: str, name: str = "kernel.ptx", *, target: int | None = None, source: str = "") -> None:
        text_of("ptx", ptx, 'the text of a PTX file; kv.load("kernel.ptx") reads one')
        if ptx.endswith((".ptx", ".cu")) and "\n" not in ptx:
            call = f"kv.load({ptx!r})" if ptx.endswith(".ptx") else f"kv.compile(open({ptx!r}).read())"
            raise InputError(f"{ptx} is the name of a file, and Module takes a text of PTX: write {call}")
        self._core = _core.Module(ptx, name, target)
        self.ptx, self.source = ptx, source
        self.kernels = [Kernel(self, about) for about in self._core.kernels()]

    def __getitem__(self, name: str) -> Kernel:
        found = self._core.find(text_of("name", name, '"decode"'))
        if len(found) != 1:
            have = ", ".join(self) or ("none. A kernel of a template is compiled if the source instantiates it, such as "
                                       "template __global__ void decode<64>(float*);")
            problem = "there is no kernel" if not found else "more than one kernel has the name"
            raise InputError(f"{problem} {name!r}: kernels are {have}")
        return next(kernel for kernel in self.kernels if kernel.name == found[0])

    def __iter__(self) -> Iterator[str]:
        return (kernel.short_name for kernel in self.kernels)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and len(self._core.find(name)) == 1

    def __len__(self) -> int:
        return len(self.kernels)

    def __repr__(self) -> str:
        return f"<kvscope.Module {', '.join(kernel.signature for kernel in self.kernels) or 'without kernels'}>"


@guided
def load(path: str | os.PathLike[str], *, target: int | None = None) -> Module:
    """A module of a PTX file. InputError with each error of the text, or of the file.

    target: compute capability of the virtual GPU, such as 100 for sm_100a. Default: that of the file, but 90 at least."""
    name = path_of("path", path)
    if name.endswith(".cu"):
        raise InputError(f"{name} is CUDA source: compile it with kv.compile(open({name!r}).read()), or to PTX with nvcc -ptx")
    try:
        with open(name, "rb") as file:
            data = file.read()
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error}") from None
    if data.startswith(b"\x7fELF"):
        raise InputError(f"{name} is a compiled program or library (ELF), not PTX: compile its source with nvcc -ptx")
    try:
        return Module(data.decode("utf-8").replace("\r\n", "\n"), name, target=target)
    except UnicodeDecodeError as error:
        raise InputError(f"{name} cannot be read: {error}") from None
