#!/usr/bin/env python3
"""Differential fuzzing of the bundle readers: thousands of mutated .npy, .npz and .safetensors files, each read by kvscope and
by a reference reader. What the reference rejects, kvscope must reject; what kvscope reads must have the same bytes.

References: NumPy for .npy and .npz. For .safetensors a strict reader written here from the format's published description
(https://github.com/huggingface/safetensors, "Format"), and the package safetensors too where it is installed.
Seeds are fixed. KVSCOPE_FULL=1 reads ten times as many files.
"""
import io
import json
import os
import random
import struct
import subprocess
import tempfile
import unittest
import warnings
import zipfile
import zlib

import numpy as np

import program

try:
    import safetensors
except ImportError:
    safetensors = None

FILES = (20000 if os.environ.get("KVSCOPE_FULL") == "1" else 2000) // (10 if program.SLOW_BUILD else 1)
NUMPY_TYPES = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "bf16": "<u2", "e4m3": "u1", "e5m2": "u1", "e8m0": "u1", "i8": "i1",
               "u8": "u1", "i16": "<i2", "u16": "<u2", "i32": "<i4", "u32": "<u4", "i64": "<i8", "u64": "<u8"}
SAFETENSORS_TYPES = {"F64": ("f64", 8), "F32": ("f32", 4), "F16": ("f16", 2), "BF16": ("bf16", 2), "F8_E4M3": ("e4m3", 1),
                     "F8_E5M2": ("e5m2", 1), "F8_E8M0": ("e8m0", 1), "I8": ("i8", 1), "U8": ("u8", 1), "I16": ("i16", 2),
                     "U16": ("u16", 2), "I32": ("i32", 4), "U32": ("u32", 4), "I64": ("i64", 8), "U64": ("u64", 8),
                     "BOOL": ("u8", 1)}
BOUNDARIES = [0, 1, 2, 7, 8, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 2**63 - 1, 2**63, 2**64 - 1]


class Rejected(Exception):
    """The reference reader does not read the file."""


# --- reference readers: bytes -> {name: (numpy bytes, shape)}; Rejected ---------------------------------------------------------

def c_order(array):
    """Row-major, little-endian bytes."""
    if array.dtype.hasobject or array.dtype.kind not in "fiub":
        raise Rejected(f"type {array.dtype}")
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def numpy_arrays(content, is_archive):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = np.load(io.BytesIO(content), allow_pickle=False)
            if isinstance(loaded, np.ndarray) == is_archive:
                raise Rejected("of the other kind")
            arrays = {name: loaded[name] for name in loaded.files} if is_archive else {"": loaded}
            return {name: (c_order(array), list(array.shape)) for name, array in arrays.items()
                    if isinstance(array, np.ndarray)}
    except Rejected:
        raise
    except Exception as error:  # whatever NumPy, zipfile or zlib raise
        raise Rejected(repr(error)) from error


def unique(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise Rejected("a key occurs twice")
    return dict(pairs)


def is_size(value):
    return type(value) is int and 0 <= value < 2**64  # not a bool, not a float


def strict_safetensors(content):
    """The rules of the published description, and no others."""
    if len(content) < 8:
        raise Rejected("no header length")
    length = struct.unpack("<Q", content[:8])[0]
    if length > 100_000_000 or length > len(content) - 8:
        raise Rejected("header length")
    text, data = content[8:8 + length], content[8 + length:]
    if not text.startswith(b"{"):
        raise Rejected("does not begin with {")
    try:
        # "-0" is a number with a sign, which no size is.
        header = json.loads(text.decode("utf-8"), object_pairs_hook=unique,
                            parse_int=lambda digits: -1 if digits == "-0" else int(digits))
    except (ValueError, RecursionError) as error:
        raise Rejected(repr(error)) from error
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise Rejected("__metadata__")
    places, tensors = [], {}
    for name, entry in header.items():
        if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
            raise Rejected(f"entry of {name}")
        dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(dtype, str) or dtype not in SAFETENSORS_TYPES:
            raise Rejected(f"type of {name}")
        if not isinstance(shape, list) or not all(map(is_size, shape)):
            raise Rejected(f"shape of {name}")
        if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(is_size, offsets)):
            raise Rejected(f"offsets of {name}")
        size = SAFETENSORS_TYPES[dtype][1]
        for extent in shape:
            size *= extent
        begin, end = offsets
        if end - begin != size or end > len(data):
            raise Rejected(f"size of {name}")
        places.append((begin, end))
        tensors[name] = (SAFETENSORS_TYPES[dtype][0], shape, data[begin:end])
    at = 0
    for begin, end in sorted(places):
        if begin != at:
            raise Rejected("hole or overlap")
        at = end
    if at != len(data):
        raise Rejected("bytes behind the tensors")
    return tensors


# --- mutations ------------------------------------------------------------------------------------------------------------------

def mutate_bytes(rng, content):
    """One to three changes at random places."""
    content = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(content) + 1)
        kind = rng.randrange(9)
        if kind == 0 and content:
            content[min(at, len(content) - 1)] ^= 1 << rng.randrange(8)
        elif kind == 1 and content:
            content[min(at, len(content) - 1)] = rng.randrange(256)
        elif kind == 2:
            content[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
        elif kind == 3:
            del content[at:at + rng.randrange(1, 9)]
        elif kind == 4:
            end = at + rng.randrange(1, 65)
            content[at:at] = content[at:end]
        elif kind == 5:
            del content[at:]
        elif kind == 6:
            width = rng.choice((1, 2, 4, 8))
            content[at:at + width] = (rng.choice(BOUNDARIES) % 256**width).to_bytes(width, "little")
        elif kind == 7:
            content += bytes(rng.randrange(1, 17))
        elif content:
            other = rng.randrange(len(content))
            content[at:at + 8] = content[other:other + 8]
        if not content:
            break
    return bytes(content)


TEXT_PIECES = ["0", "1", "-", "+", ".", "e", "00", "-0", "0x1", " ", "\t", "\n", "\r", "\f", "\v", "\0", ",", ":", "(", ")", "[", "]",
               "{", "}", "'", '"', "\\", "#", "L", "True", "False", "null", "9223372036854775808", "18446744073709551616",
               "4294967296", "1e0", "é", '"a":1,', "'descr'", "<f4", ">f4", "|u1", "<f8", "=f8", "|O", "_1", "F32", "BF16", "BOOL"]


def mutate_text(rng, text):
    """A header's text with one to three tokens changed, so that it mostly stays well-formed."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(6)
        if kind == 0:
            text = text[:at] + rng.choice(TEXT_PIECES) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + rng.randrange(1, 4):]
        elif kind == 2:
            digits = [i for i, c in enumerate(text) if c.isdigit()]
            if digits:
                i = rng.choice(digits)
                text = text[:i] + rng.choice(("0", "1", "2", "9", "12", "-1", "-0", "01", str(rng.choice(BOUNDARIES)))) + text[i + 1:]
        elif kind == 3:
            end = at + rng.randrange(1, 30)
            text = text[:at] + text[at:end] + text[at:]
        elif kind == 4:
            text = text[:at] + text[at:at + 1].swapcase() + text[at + 1:]
        else:
            text = text[:at] + rng.choice(TEXT_PIECES) + text[at + 1:]
    return text


def npy_file(header, data, version=1):
    encoded = header.encode("latin1" if version < 3 else "utf8", "replace")
    length = struct.pack("<H" if version == 1 else "<I", len(encoded) % (1 << (16 if version == 1 else 32)))
    return b"\x93NUMPY" + bytes([version, 0]) + length + encoded + data


def npy_seeds():
    arrays = [np.arange(6, dtype="<f4").reshape(2, 3), np.asfortranarray(np.arange(24, dtype="<i8").reshape(2, 3, 4)),
              np.arange(3, dtype=">u2"), np.array(7, "u1"), np.zeros((0, 5), "<f8"), np.array([True, False])]
    out = []
    for array in arrays:
        f = io.BytesIO()
        np.lib.format.write_array(f, array, version=(1, 0))
        out.append(f.getvalue())
    return out


def npy_mutant(rng, seeds):
    content = rng.choice(seeds)
    if rng.random() < 0.4:
        return mutate_bytes(rng, content)
    length = struct.unpack("<H", content[8:10])[0]
    header = content[10:10 + length].decode("latin1")
    return npy_file(mutate_text(rng, header), content[10 + length:], rng.choice((1, 1, 1, 2, 3)))


def npz_seeds():
    out = []
    for save in (np.savez, np.savez_compressed):
        f = io.BytesIO()
        save(f, a=np.arange(6, dtype="<f4").reshape(2, 3), k_bf16=np.arange(4, dtype="<u2"), e=np.zeros(0))
        out.append(f.getvalue())
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w") as z:  # without zip64 fields
        for name in ("a.npy", "b.npy"):
            member = io.BytesIO()
            np.save(member, np.arange(3))
            z.writestr(name, member.getvalue())
    out.append(f.getvalue())
    return out


def npz_mutant(rng, seeds):
    content = rng.choice(seeds)
    if rng.random() < 0.3:
        return mutate_bytes(rng, content)
    # A field of a record, where the changes matter: 60 bytes around a signature.
    content = bytearray(content)
    records = [i for mark in (b"PK\3\4", b"PK\1\2", b"PK\5\6") for i in range(len(content)) if content[i:i + 4] == mark]
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.choice(records) + rng.randrange(60)
        width = rng.choice((1, 2, 4))
        if rng.random() < 0.5 and at < len(content):
            content[at] ^= 1 << rng.randrange(8)
        elif rng.random() < 0.5:
            content[at:at + width] = (rng.choice(BOUNDARIES) % 256**width).to_bytes(width, "little")
        else:
            content[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 5)))
    return bytes(content)


def safetensors_file(header, data):
    encoded = header.encode("utf-8", "replace")
    return struct.pack("<Q", len(encoded)) + encoded + data


def safetensors_seeds():
    return [
        ('{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},'
         '"k":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]}}  ', bytes(range(32))),
        ('{"x":{"dtype":"I8","shape":[],"data_offsets":[2,3]},"y":{"dtype":"F16","shape":[1,1],"data_offsets":[0,2]},'
         '"z":{"dtype":"F64","shape":[0,4],"data_offsets":[3,3]}}', b"\1\2\3"),
        ('{}', b""),
    ]


def safetensors_mutant(rng, seeds):
    header, data = rng.choice(seeds)
    if rng.random() < 0.3:
        return mutate_bytes(rng, safetensors_file(header, data))
    if rng.random() < 0.2:
        return safetensors_file(header, mutate_bytes(rng, data))
    return safetensors_file(mutate_text(rng, header), data)


# --- the test -------------------------------------------------------------------------------------------------------------------

class BundleReaders(unittest.TestCase):
    def compare(self, ending, mutant, seeds, check):
        """Reads FILES mutants; `check` compares kvscope's tensors with the reference's, or raises Rejected."""
        rng = random.Random(17)
        counts = {"both read": 0, "both reject": 0, "only the reference reads": 0}
        with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
                [os.environ["READ_BUNDLES"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
            path = os.path.join(folder, "a" + ending)
            for number in range(FILES):
                content = mutant(rng, seeds)
                with open(path, "wb") as f:
                    f.write(content)
                reader.stdin.write(path + "\n")
                reader.stdin.flush()
                answer = reader.stdout.readline()
                self.assertTrue(answer, f"the reader ended at file {number}: {content!r}")
                answer = json.loads(answer)
                try:
                    check(content, answer.get("tensors"))
                except Rejected as reason:
                    self.assertIn("error", answer, f"file {number}: the reference rejects it ({reason}): {content!r}")
                    counts["both reject"] += 1
                else:
                    counts["both read" if "tensors" in answer else "only the reference reads"] += 1
            reader.stdin.close()
        print(f"{ending}: {FILES} files: {counts}")
        self.assertGreater(counts["both read"], FILES // 50)
        self.assertGreater(counts["both reject"], FILES // 50)

    def test_npy(self):
        def check(content, tensors):
            array, shape = numpy_arrays(content, is_archive=False)[""]
            if tensors is not None:
                (dtype, own_shape, crc), = tensors.values()
                self.assertEqual((own_shape, crc), (shape, f"{zlib.crc32(array):08x}"), content)
                self.assertEqual(np.dtype(NUMPY_TYPES[dtype]).itemsize * int(np.prod(shape)), len(array))
        self.compare(".npy", npy_mutant, npy_seeds(), check)

    def test_npz(self):
        def check(content, tensors):
            arrays = numpy_arrays(content, is_archive=True)
            if tensors is not None:
                own = {}
                for name, (dtype, shape, crc) in tensors.items():
                    key = name if name in arrays else f"{name}_{dtype}"
                    own[key] = (shape, crc)
                self.assertEqual(own, {name: (shape, f"{zlib.crc32(data):08x}") for name, (data, shape) in arrays.items()},
                                 content)
        self.compare(".npz", npz_mutant, npz_seeds(), check)

    def test_safetensors(self):
        def check(content, tensors):
            expected = strict_safetensors(content)
            if tensors is not None:
                self.assertEqual(tensors, {name: [dtype, shape, f"{zlib.crc32(data):08x}"]
                                           for name, (dtype, shape, data) in expected.items()}, content)
        self.compare(".safetensors", safetensors_mutant, safetensors_seeds(), check)

    @unittest.skipIf(safetensors is None, "the package safetensors is not installed: its rules are tested by the strict reader")
    def test_safetensors_with_the_official_reader(self):
        def check(content, tensors):
            try:
                official = dict(safetensors.deserialize(content))
            except safetensors.SafetensorError as error:
                raise Rejected(str(error)) from error
            except BaseException as error:  # types that this version of the package does not know
                raise Rejected(repr(error)) from error
            if tensors is not None:
                self.assertEqual({name: (shape, crc) for name, (_, shape, crc) in tensors.items()},
                                 {name: (list(t["shape"]), f"{zlib.crc32(bytes(t['data'])):08x}")
                                  for name, t in official.items()}, content)
        self.compare(".safetensors", safetensors_mutant, safetensors_seeds(), check)


if __name__ == "__main__":
    program.main()
