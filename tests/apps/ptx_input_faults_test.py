#!/usr/bin/python3
"""Mistakes in the arguments, struct files and options of `kvscope ptx run`: each one gives its own fault, with the exact text,
and no second fault follows from it.

    ptx_input_faults_test.py --kvscope PROGRAM
"""
import json
import os
import struct
import sys
import unittest

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import kvscope  # noqa: E402

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"
MOST = 2**64 - 1
STRUCT = "parameter 0 (24 bytes p)"
# Copies its parameter, a struct of 24 bytes, to the array whose address is in its first eight.
COPY = HEAD + """.visible .entry copy(.param .align 8 .b8 p[24])
{
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [p+8]; ld.param.u64 %rd3, [p+16];
  st.global.u64 [%rd1], %rd1; st.global.u64 [%rd1+8], %rd2; st.global.u64 [%rd1+16], %rd3;
  ret;
}
"""
# Writes one parameter of four bytes to an array.
STORE = HEAD + """.visible .entry store(.param .u64 to, .param .{type} x)
{{
  .reg .b32 %r<2>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [to]; ld.param.b32 %r1, [x];
  st.global.u32 [%rd1], %r1;
  ret;
}}
"""
NOT_A_WORD = ("is neither a number, nor FILE.npy, FILE.npz:NAME, FILE.safetensors:NAME, TYPE[SHAPE], null, @ARRAY or "
              "map:FILE.json@ARRAY")
LAYOUT = {"name": "P", "bytes": 24, "fields": [{"name": "to", "offset": 0, "type": "pointer"}, {"name": "x", "offset": 8, "type": "s32"}]}


class Ptx(program.FolderTest):
    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(text if isinstance(text, str) else json.dumps(text))
        return self.path(name)

    def faults(self, *arguments):
        """The lines of standard error, each without the beginning that all have."""
        done = kvscope("ptx", "run", *arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        lines = done.stderr.splitlines()
        for line in lines:
            self.assertTrue(line.startswith("kvscope: command line: "), line)
        return [line.removeprefix("kvscope: command line: ") for line in lines]


class Words(Ptx):
    def test_a_word_that_is_no_value_is_quoted(self):
        copy = self.write("copy.ptx", COPY)
        for word in ("=3", "a-b=3", "[1]=3", "word", "0x", "-", "1.5.2", "f32[]", "f32[0]", "f32[2,]", "f32[2,x]", "f99[2]", "f32[2"):
            with self.subTest(word=word):
                self.assertEqual(self.faults(copy, f"--arg={word}"), [f"--arg 0: '{word}' {NOT_A_WORD}"])

    def test_a_file_of_several_arrays_needs_a_name(self):
        for word in ("a.npz", "a.safetensors"):
            self.assertEqual(self.faults(self.write("copy.ptx", COPY), f"--arg={word}"), [
                f"--arg 0: '{word}' holds several arrays: pass one, as FILE.npy, FILE.npz:NAME or FILE.safetensors:NAME"])

    def test_a_struct_takes_neither_a_number_nor_an_array(self):
        copy = self.write("copy.ptx", COPY)
        self.assertEqual(self.faults(copy, "--arg=-0X5"), [
            "--arg 0: '-0X5' is a number, but parameter p (24 bytes) is a struct: pass its fields as 0.FIELD=VALUE or @FILE.json, "
            "or a tensor map as map:FILE.json@ARRAY"])
        for word in ("u8[24]", "null"):
            self.assertEqual(self.faults(copy, f"--arg={word}"), [
                f"--arg 0: '{word}' is an array, but parameter p (24 bytes) is not a pointer of 8 bytes: write map:FILE.json@ARRAY"])

    def test_too_many_words_are_counted_and_a_wrong_one_among_them_is_named_too(self):
        store = self.write("store.ptx", STORE.format(type="u32"))
        takes = "kernel store takes 2: .u64 to, .u32 x"
        self.assertEqual(self.faults(store, "--arg", "null", "--arg", "1", "--arg", "2"), [f"--arg: 3 given, {takes}"])
        self.assertEqual(self.faults(store, "--arg", "null", "--arg", "1", "--arg", "x"),
                         [f"--arg 2: 'x' {NOT_A_WORD}", f"--arg: 3 given, {takes}"])
        self.assertEqual(self.faults(store, "--arg", "null", "--arg", "1", "--arg", "u8[3]", "--arg", "2=5"),
                         ["--arg 3: there is no parameter '2': kernel store has 0 (.u64 to), 1 (.u32 x)", f"--arg: 4 given, {takes}"])

    def test_a_kernel_without_parameters_has_none(self):
        bare = self.write("bare.ptx", HEAD + ".visible .entry bare()\n{\n  ret;\n}\n")
        self.assertEqual(self.faults(bare, "--arg=x=1"), ["--arg 0: there is no parameter 'x': kernel bare has none"])

    def test_references_need_an_array_before_them(self):
        store = self.write("store.ptx", STORE.format(type="u32"))
        for word in ("@0", "@", "@0+-4", f"@0+{MOST + 1}"):
            self.assertEqual(self.faults(store, f"--arg={word}", "--arg=1"), [
                f"--arg 0: '{word}' is not @ARRAY or @ARRAY+BYTES of an array placed before it: no array is placed"])
        record = self.write("map.json", {"kvscope_tensor_map": 1, "type": "bf16", "dims": [64, 20], "strides": [128], "box": [64, 8]})
        self.assertEqual(self.faults(store, f"--arg=map:{record}@7", "--arg=1")[0],
                         f"--arg 0: 'map:{record}@7': '7' is neither an array placed before it (no array is placed), nor FILE.npy, "
                         "FILE.npz:NAME, FILE.safetensors:NAME or TYPE[SHAPE]")

    def test_arrays_of_more_bytes_than_the_limit_are_rejected_before_they_are_allocated(self):
        store = self.write("store.ptx", STORE.format(type="u32"))
        for word in ("u8[4294967297]", "f64[65536,65536]", "f64[4294967296,4294967296]"):
            self.assertEqual(self.faults(store, f"--arg={word}", "--arg=1"), [f"--arg 0: '{word}' is more than 4294967296 bytes"])

    def test_numbers_are_read_by_the_type_of_the_parameter(self):
        # nvcc declares float as .f32, or as .b32 for newer targets: a decimal number is then stored by its bits.
        for kind, word, expected in [("b32", "1.5", struct.pack("<f", 1.5)), ("f32", "-inf", struct.pack("<f", -np.inf)),
                                     ("b32", "7", struct.pack("<I", 7)), ("u32", "-1", b"\xff" * 4),
                                     ("s32", "0xfffffffe", struct.pack("<i", -2)), ("s32", "-0x80000000", struct.pack("<i", -2**31))]:
            with self.subTest(kind=kind, word=word):
                done = kvscope("ptx", "run", self.write("s.ptx", STORE.format(type=kind)), "--arg", "u8[2,2]", f"--arg={word}", "--save",
                               f"0={self.path('y.npy')}")
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                stored = np.load(self.path("y.npy"))
                self.assertEqual((stored.shape, stored.tobytes()), ((2, 2), expected))

    def test_numbers_that_do_not_fit_name_the_range(self):
        for kind, word, said in [
                ("s32", "2147483648", "'2147483648' does not fit parameter x (.s32): write an integer from -2147483648 to 2147483647"),
                ("u32", str(MOST + 1), f"'{MOST + 1}' does not fit parameter x (.u32): write an integer from -2147483648 to 4294967295"),
                ("u32", "1.5", "'1.5' is not an integer, but parameter x (.u32) takes integers: write an integer from -2147483648 to "
                               "4294967295, or 0x3fc00000 for the bits of 1.5"),
                ("u16", "1.5", "'1.5' is not an integer, but parameter x (.u16) takes integers: write an integer from -32768 to 65535"),
                ("u64", "1.5", "'1.5' is not an integer, but parameter x (.u64) takes integers: write an integer from "
                               "-9223372036854775808 to 18446744073709551615, or 0x3ff8000000000000 for the bits of 1.5"),
                ("f32", "1e39", "'1e39' does not fit parameter x (.f32): write a number from -3.40282e+38 to 3.40282e+38, or inf"),
                ("f32", "0x10", "'0x10' does not fit parameter x (.f32): write a decimal number, as 2.5")]:
            with self.subTest(kind=kind, word=word):
                self.assertEqual(self.faults(self.write("s.ptx", STORE.format(type=kind)), "--arg", "null", f"--arg={word}"),
                                 [f"--arg 1: {said}"])


class StructFiles(Ptx):
    def struct_faults(self, layout, *arguments):
        name = self.write("l.json", layout)
        start = f"--struct 0: {name}: "
        lines = self.faults(self.write("copy.ptx", COPY), "--struct", f"0={name}", *arguments)
        self.assertTrue(all(line.startswith(start) for line in lines), lines)
        return [line.removeprefix(start) for line in lines]

    def test_without_a_size_only_the_size_is_reported(self):
        # The offsets were compared with a size of 0 ("from 0 to -4"), and the fields of --arg were said to need --struct.
        size = ["bytes: is required: the size of the struct, from 1 to 1048576"]
        for value in (None, "24", 0, -1, 1048577, 1.5):
            with self.subTest(value=value):
                layout = {**LAYOUT, "bytes": value}
                if value is None:
                    del layout["bytes"]
                self.assertEqual(self.struct_faults(layout, "--arg=0.to=u8[24]", "--arg=0.x=3"), size)

    def test_a_field_is_not_larger_than_its_struct(self):
        self.assertEqual(self.struct_faults({"bytes": 2, "fields": [{"name": "a", "offset": 0, "type": "u64"},
                                                                    {"name": "b", "offset": 0, "type": "u16"},
                                                                    {"name": "c", "offset": 1, "type": "u16"}]}, "--arg=0.a=1"),
                         ["fields[0].type: is 'u64' of 8 bytes, but the struct has 2",
                          "fields[2].offset: is required: the field's first byte, from 0 to 0"])

    def test_every_fault_of_the_fields_is_reported_with_its_place(self):
        kind = "write pointer, or a type such as s32, f32 or bf16"
        first = "is required: the field's first byte, from 0 to 23"
        name = "is required: a name that no other field has"
        fields = [3, {"offset": 0}, {"name": 4}, {"name": "", "offset": 0, "type": "u8"}, {"name": "a", "offset": 0, "type": "u8"},
                  {"name": "a", "offset": 1, "type": "u8"}, {"name": "b", "offset": 1}, {"name": "c", "offset": 1, "type": 5},
                  {"name": "d", "offset": 1, "type": "pred"}, {"name": "e", "offset": 1, "type": "b128"}, {"name": "f", "offset": 24, "type": "u8"},
                  {"name": "g", "offset": -1, "type": "u8"}, {"name": "h", "type": "u8"}, {"name": "i", "offset": "0", "type": "u8"},
                  {"name": "j", "offset": 0, "type": "u8", "size": 1}]
        self.assertEqual(self.struct_faults({"bytes": 24, "fields": fields}, "--arg=0.a=1"), [
            "fields[0]: is not an object with name, offset and type", f"fields[1].name: {name}", f"fields[2].name: {name}",
            f"fields[3].name: {name}", f"fields[5].name: {name}", f"fields[6].type: is '': {kind}", f"fields[7].type: is '': {kind}",
            f"fields[8].type: is 'pred': {kind}", f"fields[9].type: is 'b128': {kind}", f"fields[10].offset: {first}",
            f"fields[11].offset: {first}", f"fields[12].offset: {first}", f"fields[13].offset: {first}",
            "fields[14].size: is unknown: keys are name, offset, type"])

    def test_a_layout_without_fields_or_with_a_name_that_is_no_text(self):
        fields = "fields: is required: a list of name, offset and type"
        for value in (None, [], {}, "a"):
            with self.subTest(value=value):
                self.assertEqual(self.struct_faults({"bytes": 24, "fields": value}, "--arg=0.a=1"), [fields])
        self.assertEqual(self.struct_faults({**LAYOUT, "name": 5}, "--arg=0.x=1"),
                         ["name: is not a text: write the name of the struct in quotation marks"])
        self.assertEqual(self.struct_faults("[]", "--arg=0.x=1"), ["is not an object with name, bytes and fields"])

    def test_a_layout_without_a_name_is_called_the_struct(self):
        layout = {"bytes": 16, "fields": LAYOUT["fields"]}
        self.assertEqual(self.faults(self.write("copy.ptx", COPY), "--struct", f"0={self.write('l.json', layout)}", "--arg=0.x=1"), [
            "--struct 0: the struct has 16 bytes, but parameter p has 24: give the struct that the kernel was compiled with"])

    def test_words_of_struct(self):
        copy, layout = self.write("copy.ptx", COPY), self.write("l.json", LAYOUT)
        for word in ("0.x=" + layout, "=" + layout, layout):
            self.assertEqual(self.faults(copy, "--struct", word, "--arg=0.x=1"),
                             [f"--struct 0: '{word}' is not PARAMETER=FILE or PARAMETER=FILE:TYPE"])
        self.assertEqual(self.faults(copy, "--struct", f"0={layout}:P", "--arg=0.x=1"),
                         [f"--struct 0: {layout}: is the layout of one struct: leave out ':P'"])
        # A colon in a folder's name is not the beginning of a type.
        os.mkdir(self.path("a:b"))
        inside = self.write("a:b/l.json", LAYOUT)
        done = kvscope("ptx", "run", copy, "--struct", f"0={inside}", "--arg=0.to=u8[24]", "--arg=0.x=-2", "--save", f"0.to={self.path('y.npy')}")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertEqual(np.load(self.path("y.npy")).tobytes()[8:], struct.pack("<iiQ", -2, 0, 0))

    def test_values_of_a_file(self):
        copy = self.write("copy.ptx", COPY)
        at = "is neither a text, such as \"@0+32\", nor {\"type\": \"s32\", \"value\": 64}"
        offset = "is not an offset in bytes from 0"
        hexadecimal = "hex: is not a text of two hexadecimal digits for each byte"
        for content, faults in [
                ({}, ["is not an object with fields, at or hex"]), ([], ["is not an object with fields, at or hex"]),
                ({"fields": []}, ["fields: is not an object of names and values"]),
                ({"at": 3}, ["at: is not an object of offsets and values"]),
                ({"at": {"-1": "null", "1048577": "null", "1.5": "null"}},
                 [f"at.-1: {offset}", f"at.1.5: {offset}", f"at.1048577: {offset}"]),
                ({"at": {"0": 5}}, [f"at.0: {at}"]), ({"at": {"0": {"type": "s32"}}}, [f"at.0: {at}"]),
                ({"at": {"0": {"value": 1}}}, [f"at.0: {at}"]), ({"at": {"0": {"type": 3, "value": 1}}}, [f"at.0: {at}"]),
                ({"at": {"0": {"type": "s32", "value": [1]}}}, [f"at.0: {at}"]),
                ({"at": {"0": {"type": "u8", "value": 1, "size": 1}}}, ["at.0.size: is unknown: keys are type, value"]),
                ({"hex": 5}, [hexadecimal]), ({"hex": "+1"}, [hexadecimal]), ({"hex": "0g"}, [hexadecimal]), ({"hex": "000"}, [hexadecimal])]:
            with self.subTest(content=content):
                name = self.write("v.json", content)
                self.assertEqual(sorted(self.faults(copy, f"--arg=@{name}")), sorted(f"--arg 0: {name}: {fault}" for fault in faults))

    def test_truth_values_and_nothing_are_1_0_and_null(self):
        layout = {"bytes": 24, "fields": [{"name": "to", "offset": 0, "type": "pointer"}, {"name": "on", "offset": 8, "type": "u8"},
                                          {"name": "off", "offset": 9, "type": "u8"}, {"name": "q", "offset": 16, "type": "pointer"}]}
        values = {"fields": {"to": "u8[24]", "on": True, "off": False, "q": None}, "hex": "ff" * 24}
        done = kvscope("ptx", "run", self.write("copy.ptx", COPY), "--struct", f"0={self.write('l.json', layout)}",
                       f"--arg=@{self.write('v.json', values)}", "--save", f"0.to={self.path('y.npy')}")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertEqual(np.load(self.path("y.npy")).tobytes()[8:], b"\x01\x00" + b"\xff" * 6 + b"\x00" * 8)


class Overlaps(Ptx):
    """Two values for the same bytes of a struct: the second replaced the first, and nothing was reported."""
    FIELDS = [("to", 0, "pointer"), ("x", 8, "s32"), ("y", 12, "s32"), ("z", 8, "u64"), ("w", 16, "u64")]

    def setUp(self):
        super().setUp()
        self.layout = self.write("l.json", {"bytes": 24, "fields": [{"name": n, "offset": o, "type": t} for n, o, t in self.FIELDS]})
        self.copy = [self.write("copy.ptx", COPY), "--struct", f"0={self.layout}", "--arg=0.to=u8[24]"]

    def test_fields_that_share_bytes(self):
        # z is a member of a union with x and y.
        kinds = {name: f"field {name} ({kind})" for name, _, kind in self.FIELDS}
        sizes = {name: (offset, 4 if kind == "s32" else 8) for name, offset, kind in self.FIELDS}
        for first in ("x", "y", "z", "w"):
            for second in ("x", "y", "z", "w"):
                (a, m), (b, n) = sizes[first], sizes[second]
                words = [f"--arg=0.{first}=1", f"--arg=0.{second}=2"]
                with self.subTest(first=first, second=second):
                    if first == second:
                        self.assertEqual(self.faults(*self.copy, *words), [f"--arg 2: {kinds[first]} has a value already"])
                    elif a < b + n and b < a + m:
                        self.assertEqual(self.faults(*self.copy, *words),
                                         [f"--arg 2: {kinds[second]} overlaps {kinds[first]}, which has a value already"])
                    else:
                        self.assertEqual(kvscope("ptx", "run", *self.copy, *words).returncode, 0)

    def test_bytes_at_offsets_and_fields(self):
        def at(**numbers):
            return {key[1:]: {"type": kind, "value": 1} for key, kind in numbers.items()}
        copy = self.copy[:-1]
        for values, fault in [({"fields": {"x": 1}, "at": at(_8="s32")}, "at.8: at 8 overlaps field x (s32)"),
                              ({"fields": {"y": 1}, "at": at(_15="u8")}, "at.15: at 15 overlaps field y (s32)"),
                              ({"at": at(_8="s32", _10="u16")}, "at.10: at 10 overlaps at 8"),
                              ({"at": at(_10="u8", _8="u64")}, "at.8: at 8 overlaps at 10"),
                              ({"fields": {"z": 1}, "at": at(_7="u8", _15="u16")}, "at.7: at 7 overlaps field to (pointer)")]:
            with self.subTest(values=values):
                values.setdefault("fields", {})["to"] = "u8[24]"
                name = self.write("v.json", values)
                faults = self.faults(*copy, f"--arg=@{name}")
                self.assertEqual(faults[0], f"--arg 0: {name}: {fault}, which has a value already")
        # Next to one another, and over bytes of hex, which are there to be changed.
        for values in ({"fields": {"x": 7}, "at": at(_12="s32", _16="u64")}, {"hex": "ff" * 24, "fields": {"x": 7}, "at": at(_12="s32", _16="u64")}):
            values["fields"]["to"] = "u8[24]"
            self.assertEqual(kvscope("ptx", "run", *copy, f"--arg=@{self.write('v.json', values)}", "--save",
                                     f"0.to={self.path('y.npy')}").returncode, 0)
            self.assertEqual(np.load(self.path("y.npy")).tobytes()[8:], struct.pack("<iiQ", 7, 1, 1))

    def test_words_after_a_file_of_hex(self):
        layout = self.write("v.json", {"fields": {"to": "u8[24]"}, "hex": "00" * 24})
        self.assertEqual(self.faults(*self.copy[:-1], f"--arg=@{layout}", "--arg=0.w=1"), ["--arg 1: field w (u64) has a value already"])

    def test_a_name_that_ends_in_a_dot_names_no_field(self):
        self.assertEqual(self.faults(*self.copy[:-1], "--arg=0.=5")[0], f"--arg 0: '0.=5' {NOT_A_WORD}")

    def test_parameters_by_their_names_in_ptx(self):
        done = kvscope("ptx", "run", *self.copy[:-1], "--arg=p.to=u8[24]", "--arg=p.z=7", "--arg=0.w=8", "--save", f"0.to={self.path('y.npy')}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(np.load(self.path("y.npy")).tobytes()[8:], struct.pack("<QQ", 7, 8))
        store = self.write("store.ptx", STORE.format(type="u32"))
        self.assertEqual(self.faults(store, "--arg=to=u8[4]", "--arg=x=1", "--arg=to=null", "--arg=x.q=2"), [
            "--arg 2: parameter 0 (.u64 to) has a value already", "--arg 3: parameter 1 (.u32 x) has a value already"])

    def test_an_unknown_field_lists_twelve_fields_and_counts_the_others(self):
        layout = self.write("many.json", {"name": "Many", "bytes": 24, "fields": [{"name": f"f{i}", "offset": i, "type": "u8"} for i in range(15)]})
        said = "Many has no field 'q': fields are " + ", ".join(f"f{i}" for i in range(12)) + " and 3 more"
        for value in ("1", "map:k.json@0"):
            self.assertEqual(self.faults(self.copy[0], "--struct", f"0={layout}", f"--arg=0.q={value}"), [f"--arg 0: {said}"])

    def test_a_tensor_map_takes_bytes_of_its_own_field_only(self):
        record = self.write("map.json", {"kvscope_tensor_map": 1, "type": "bf16", "dims": [64, 20], "strides": [128], "box": [64, 8]})
        kernel = self.write("k.ptx", HEAD + ".visible .entry k(.param .align 64 .b8 p[576])\n{\n  ret;\n}\n")
        fields = [("n", 0, "s32"), ("m", 4, "s32"), *((f"map[{i}]", 64 + 8 * i, "u64") for i in range(16)), ("mark", 384, "u64"),
                  *((f"pair.{one}[{i}]", (64 if one == "a" else 192) + 8 * i, "u64") for one in "ab" for i in range(16)),
                  ("last", 512, "u64"), ("end", 568, "u64")]
        layout = self.write("l.json", {"bytes": 576, "fields": [{"name": n, "offset": o, "type": t} for n, o, t in fields]})
        run = [kernel, "--struct", f"0={layout}"]

        def place(field):
            return f"--arg=0.{field}=map:{record}@bf16[20,64]"
        # A map at a number replaced the numbers behind it.
        self.assertEqual(self.faults(*run, place("n")), ["--arg 0: a tensor map of 128 bytes at field n overlaps field m (s32)"])
        self.assertEqual(self.faults(*run, place("pair")), [
            "--arg 0: field pair has more bytes than a tensor map, which has 128: name a part of it"])
        self.assertEqual(self.faults(*run, place("end")), [
            "--arg 0: a tensor map of 128 bytes at offset 568 ends after byte 576 of parameter 0"])
        self.assertEqual(self.faults(*run, place("map"), place("map"))[0], "--arg 1: field map overlaps field map, which has a value already")
        self.assertEqual(self.faults(*run, place("map"), "--arg=0.map[3]=1"), ["--arg 1: field map[3] (u64) has a value already"])
        self.assertEqual(self.faults(*run, "--arg=0.map[3]=1", place("map")), [
            "--arg 1: field map overlaps field map[3] (u64), which has a value already"])
        self.assertEqual(self.faults(*run, place("pair.a"), "--arg=0.map[15]=1"), [
            "--arg 1: field map[15] (u64) overlaps field pair.a, which has a value already"])
        # At an offset, in a file.
        for offset, fault in ((0, None), (448, None), (449, "a tensor map of 128 bytes at offset 449 ends after byte 576 of parameter 0")):
            values = self.write("v.json", {"at": {str(offset): f"map:{record}@bf16[20,64]"}})
            if fault:
                self.assertEqual(self.faults(*run, f"--arg=@{values}"), [f"--arg 0: {values}: at.{offset}: {fault}"])
            else:
                self.assertEqual(kvscope("ptx", "run", *run, f"--arg=@{values}").returncode, 0)
        # One field of a layout marks the place, and a union has other fields there.
        for words in ([place("map"), place("mark"), "--arg=0.last=1", "--arg=0.m=1"], [place("pair.a"), place("pair.b")]):
            self.assertEqual(kvscope("ptx", "run", *run, *words).returncode, 0, words)


class Options(Ptx):
    def setUp(self):
        super().setUp()
        self.store = self.write("store.ptx", STORE.format(type="u32"))

    def test_a_seed_is_a_whole_number_from_1(self):
        # strtoull() read seed:5x as 5, seed:-1 as 2^64 - 1 and every larger number as 2^64 - 1.
        for word in ("seed:", "seed:0", "seed:-1", "seed:+1", "seed: 1", "seed:5x", "seed:1.5", f"seed:{MOST + 1}"):
            with self.subTest(word=word):
                self.assertEqual(self.faults(self.store, "--arg", "u8[4]", "--arg", "1", "--policy", word),
                                 [f"--policy: '{word}' is not seed:N with N from 1 to {MOST}"])
        for word in ("seed:1", f"seed:{MOST}"):
            self.assertEqual(kvscope("ptx", "run", self.store, "--arg", "u8[4]", "--arg", "1", "--policy", word).returncode, 0)

    def test_extents_are_x_y_z(self):
        kernel = self.write("k.ptx", HEAD + ".visible .entry k()\n{\n  ret;\n}\n")
        for words, shown in ((["--grid=2,3,4", "--block=5"], "2x3x4 CTAs of 5 threads"), (["--grid=2,3", "--block=8,2,2"], "2x3 CTAs of 8x2x2 threads"),
                             (["--grid=2,1,4", "--cluster=2"], "2x1x4 CTAs of 1 thread"), (["--grid=1,4", "--cluster=1,2"], "1x4 CTAs of 1 thread")):
            done = kvscope("ptx", "run", kernel, *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(shown, done.stdout)
        done = kvscope("ptx", "run", kernel, "--grid=3", "--cluster=2")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("cluster", done.stderr)

    def test_a_number_with_a_leading_zero_is_decimal(self):
        # Base 0 of strtoull() made 010 the octal number 8 and rejected 08.
        for word, threads in (("010", 10), ("08", 8), ("0x10", 16), ("0X10", 16), ("+12", 12)):
            with self.subTest(word=word):
                done = kvscope("ptx", "run", self.store, "--arg", "u8[4]", "--arg", "1", f"--block={word}")
                self.assertIn(f"1 CTA of {threads} threads\n", done.stdout, done.stderr)
        for word in ("0x", "0b1", "1x", "-", "1 "):
            with self.subTest(word=word):
                self.assertEqual(self.faults(self.store, f"--block={word}"),
                                 [f"--block: '{word}' is not a valid number: see 'kvscope ptx run --help'"])

    def test_a_number_outside_of_a_range_is_quoted_as_typed(self):
        # The zeros that the parser writes after the limits were removed from the typed number too: 2000.0000005 became 20005.
        for word in ("2000.0000005", "0", "10001", "1.5"):
            self.assertEqual(self.faults(self.store, f"--max-reports={word}"),
                             [f"--max-reports: {word} is not a number from 1 to 10000: see 'kvscope ptx run --help'"])

    def test_saved_arrays_and_recorded_steps(self):
        run = [self.store, "--arg", "u8[4]", "--arg", "1"]
        for word in ("0", "0=", "1=y.npy", "=y.npy"):
            self.assertEqual(self.faults(*run, "--save", word),
                             [f"--save: '{word}' does not name an array: write ARRAY=FILE.npy; arrays are 0"])
        for word in ("5:2", "1", "x:2", "1:x", ":2", "1:"):
            self.assertEqual(self.faults(*run, "--events", self.path("e.jsonl"), "--event-steps", word),
                             [f"--event-steps: '{word}' is not FIRST:LAST, two steps in order"])

    def test_a_file_of_several_kernels_or_none_needs_a_name(self):
        body = "()\n{\n  ret;\n}\n"
        two = self.write("two.ptx", HEAD + ".visible .entry _ZN1a3runEv" + body + ".visible .entry _ZN1b3runEv" + body)
        shown = "a::run() (_ZN1a3runEv), b::run() (_ZN1b3runEv)"
        self.assertEqual(self.faults(two), [f"--entry: is required: the file has {shown}"])
        self.assertEqual(self.faults(two, "--entry", "run"), [f"--entry: 'run' can be 2 kernels: {shown}; write more of the name"])
        none = self.write("none.ptx", HEAD + ".visible .func f" + body)
        self.assertEqual(self.faults(none), ["--entry: is required: the file has no kernel"])
        self.assertEqual(self.faults(none, "--entry", "f"), ["--entry: there is no kernel 'f': the file has no kernel"])
        # A function beside a kernel, and a declaration without a body, are no choice.
        one = self.write("one.ptx", HEAD + ".visible .func f" + body + ".visible .entry k" + body)
        self.assertEqual(kvscope("ptx", "run", one).returncode, 0)
        declared = self.write("declared.ptx", HEAD + ".visible .func f" + body + ".visible .entry other();\n.visible .entry k" + body)
        self.assertEqual(kvscope("ptx", "run", "--strict", declared).returncode, 0)


if __name__ == "__main__":
    program.main()
