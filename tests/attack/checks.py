"""One run of a program under limits, and what must hold of it whatever its input: used by the attacks of this folder.

A run fails the check if
  - a signal ends it, or its exit code is neither 0, 1 nor 2
  - it needs more than its limit of processor time or of address space
  - with exit code 2 its standard error is empty, or a line of it is neither `kvscope: ...` nor an indented continuation of one
  - it prints a control character that a terminal would act on
  - with exit code 2 an output exists, or with any exit code a file exists that the command line does not name
  - with exit code 0 or 1 an output is damaged, judged by NumPy, sqlite3 or json
  - it accepts an input that the reference reader of its format rejects
"""
import io
import json
import os
import resource
import shutil
import sqlite3
import struct
import subprocess
import warnings
import zipfile

import numpy as np

ADDRESS_SPACE = 1 << 30  # [bytes]
PROCESSOR_TIME = 10  # [s]
WALL_TIME = 120  # [s]; only a run that sleeps forever reaches it
DTYPES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1, "F8_E8M0": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4,
          "F32": 4, "F64": 8, "I64": 8, "U64": 8}


# --- reference readers: each throws an exception for a file that it rejects ------------------------------------------

def no_twice(pairs):
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("duplicate key")
    return dict(pairs)


def read_json(data):
    json.loads(data, object_pairs_hook=no_twice)  # of bytes: a byte order mark is allowed


def read_jsonl(data):
    for line in data.split(b"\n"):
        if line.strip():
            json.loads(line)


def read_npy(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.lib.format.read_array(io.BytesIO(data), allow_pickle=False, max_header_size=10**9)


def read_npz(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        broken = archive.testzip()
        if broken:
            raise ValueError(broken)
        for name in archive.namelist():
            if name.endswith(".npy"):
                read_npy(archive.read(name))


def read_safetensors(data):
    """The format's published rules: https://huggingface.co/docs/safetensors (header, offsets without holes, no bytes behind)."""
    length, = struct.unpack("<Q", data[:8])
    if length > 100_000_000 or length > len(data) - 8:
        raise ValueError("header length")
    header = json.loads(data[8:8 + length].decode("utf-8"), object_pairs_hook=no_twice)
    for key, value in header.pop("__metadata__", {}).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise ValueError("metadata")
    end = 0
    for begin, after, size in sorted((*t["data_offsets"], DTYPES[t["dtype"]] * int(np.prod(t["shape"], dtype=object))) for t in header.values()):
        if begin != end or after - begin != size:
            raise ValueError("offsets")
        end = after
    if end != len(data) - 8 - length:
        raise ValueError("bytes behind the tensors")


def read_kvt(data):
    """Every row of every table. Not integrity_check, which also rejects a changed byte that no row uses."""
    base = sqlite3.connect(":memory:")
    try:
        base.deserialize(data)
        for table, in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            base.execute(f'SELECT * FROM "{table}"').fetchall()
    finally:
        base.close()


READERS = {"json": read_json, "jsonl": read_jsonl, "npy": read_npy, "npz": read_npz, "safetensors": read_safetensors, "kvt": read_kvt}


def rejected_by_reference(name, data):
    """Whether the reference reader rejects these bytes; no reader, or one that lacks the function here: nothing is known."""
    if not name or (name == "kvt" and not hasattr(sqlite3.Connection, "deserialize")):
        return ""
    try:
        READERS[name](data)
    except RecursionError:
        return ""
    except Exception as error:  # pylint: disable=broad-except
        return f"{type(error).__name__}: {error}"[:200]
    return ""


# --- one run ------------------------------------------------------------------------------------------------------------

def run(arguments, stdin=b"", cwd=None, env=None, address_space=ADDRESS_SPACE, processor_time=PROCESSOR_TIME, wall_time=WALL_TIME):
    """(exit code, below 0 for a signal; stdout; stderr; seconds of processor time), under the limits."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, env=env) as child:
        try:
            if address_space:
                resource.prlimit(child.pid, resource.RLIMIT_AS, (address_space, address_space))
            resource.prlimit(child.pid, resource.RLIMIT_CPU, (processor_time, processor_time + 1))
        except ProcessLookupError:
            pass  # it has ended
        try:
            out, err = child.communicate(stdin, timeout=wall_time)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            err += b"\n(killed after the wall-clock limit)"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return child.returncode, out, err, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def fault_of_text(printed):
    """Why a terminal should not be given this text; the characters are those of core/base/terminal_text.h."""
    try:
        text = printed.decode("utf-8")
    except UnicodeDecodeError:
        return "text is not UTF-8"
    odd = [c for c in text if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 or 0x202A <= ord(c) <= 0x202E]
    return f"control character {odd[0]!r}" if odd else ""


def fault_of_message(err, program="kvscope"):
    if not err:
        return "exit code 2 without a message"
    lines = err.decode("utf-8", "replace").split("\n")
    if lines.pop() != "" or not lines[0].startswith(program + ": "):
        return "message does not begin with the program's name, or does not end its line"
    if any(not line.startswith((program + ": ", "  ")) for line in lines):
        return "line of the message without the program's name"
    return ""


def fault_of_output(path):
    """Why a written file is damaged, judged by readers that share no code with kvscope; empty: it is whole."""
    try:
        with open(path, "rb") as file:
            data = file.read()
        kind = {"npy": read_npy, "npz": read_npz, "safetensors": read_safetensors, "json": read_json}.get(path.rsplit(".", 1)[-1])
        if kind:
            kind(data)
        elif path.endswith(".kvt"):
            base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            if base.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                return f"{os.path.basename(path)}: integrity_check"
            base.close()
        elif not data:
            return f"{os.path.basename(path)}: empty"
    except Exception as error:  # pylint: disable=broad-except
        return f"{os.path.basename(path)}: {type(error).__name__}: {error}"[:200]
    return ""


def written(folder):
    return sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names)


def fault(code, out, err, seconds, outputs, named, asks=False, program="kvscope"):
    """What is wrong with one run, as (class, text); ("", "") if nothing is. `named`: paths that the command line names as outputs."""
    if b"killed after the wall-clock limit" in err or code == -24 or seconds > PROCESSOR_TIME:
        return "time", f"more than {PROCESSOR_TIME} s of processor time"
    if code not in (0, 1, 2):
        return "crash", f"exit code {code}: {err[-300:].decode('utf-8', 'replace')}"
    printed = fault_of_text(err) or fault_of_text(out)
    if printed:
        return "message", f"{printed}: {(err or out)[:300]!r}"
    if code == 2:
        if b"out of memory" in err and not asks:
            return "memory", err[:200].decode("utf-8", "replace")
        message = fault_of_message(err, program)
        if message:
            return "message", message + ": " + repr(err[:300])
        if outputs:
            return "output", f"exit code 2, and {os.path.basename(outputs[0])} exists"
    for path in outputs:
        if not any(path == one or path.startswith(one + os.sep) for one in named):
            return "output", f"{os.path.basename(path)} is left behind"
        damaged = fault_of_output(path)
        if damaged:
            return "output", damaged
    return "", ""


def emptied(folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder
