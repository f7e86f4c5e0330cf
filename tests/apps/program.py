"""Shared by the tests of the programs: calls them, finds their sources, and reads and writes files with code of its own."""
import argparse
import ctypes
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCENARIOS = os.path.join(SOURCE, "apps", "scenarios")
RECORDED = os.path.join(os.path.dirname(SOURCE), "shared", "data")  # recorded request traces, if they are installed
SLOW_BUILD = os.environ.get("KVSCOPE_SLOW_BUILD") == "1"  # sanitizers: about twenty times slower
KVSCOPE = ""
VIEWER = ""  # kvscope-viewer, for the tests that use it
GPU_CHECK = ""  # gpu-check, likewise


def kvscope(*arguments, cwd=None, timeout=300):
    return subprocess.run([KVSCOPE, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=timeout,
                          check=False)


def fine(*arguments, **options):
    """Standard output of a call that must exit with 0 and print nothing to standard error."""
    done = kvscope(*arguments, **options)
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"kvscope {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def end_with_parent():
    """For a child process of the test: it is killed when the test ends, however that happens (Linux)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def no_display(**more):
    """The environment of a machine without a screen."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
    return {**environment, **more}


def viewer(*arguments, cwd=None, timeout=300, env=None, **options):
    return subprocess.run([VIEWER, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=timeout,
                          check=False, env=no_display() if env is None else env, **options)


def drawn(*arguments, **options):
    """A call of the viewer that must exit with 0 and print nothing."""
    done = viewer(*arguments, **options)
    if done.returncode != 0 or done.stderr or done.stdout:
        raise AssertionError(f"kvscope-viewer {' '.join(map(str, arguments))}: exit code {done.returncode}\n"
                             f"{done.stdout}{done.stderr}")


def gallery(name):
    return os.path.join(SCENARIOS, name + ".json")


def gallery_names():
    return sorted(name.removesuffix(".json") for name in os.listdir(SCENARIOS) if name.endswith(".json"))


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)
    return path


def safetensors(tensors, metadata=None):
    """Bytes of a file: {name: (type as the format calls it, shape, bytes)}."""
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def read_safetensors(path):
    """The inverse: ({name: (type, shape, bytes)}, metadata)."""
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    metadata = header.pop("__metadata__", {})
    return {name: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])]) for name, t in header.items()}, metadata


class FolderTest(unittest.TestCase):
    """A test with a temporary folder."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)


def main():
    global KVSCOPE, VIEWER, GPU_CHECK
    parser = argparse.ArgumentParser()
    parser.add_argument("--kvscope", required=True, type=os.path.abspath)
    parser.add_argument("--viewer", type=os.path.abspath)
    parser.add_argument("--gpu-check", type=os.path.abspath)
    known, rest = parser.parse_known_args()
    KVSCOPE, VIEWER, GPU_CHECK = known.kvscope, known.viewer, known.gpu_check
    unittest.main(module="__main__", argv=[sys.argv[0], *rest])
