#!/usr/bin/python3
"""Arguments of `kvscope ptx run` as people have them: structs field by field, names, pointers into arrays, kernels by their
C++ names; and reports that are suppressed. The expected bytes are packed by Python's struct module.

    ptx_arguments_test.py --kvscope PROGRAM
"""
import json
import os
import struct
import sys
import unittest

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import SOURCE, kvscope  # noqa: E402

DATA = os.path.join(SOURCE, "tests", "gpu", "virtual", "text", "data")
DEBUG = os.path.join(DATA, "structs_debug.sm_90a.ptx")  # compiled from structs.cu with -G
# struct Params of structs.h: the format of Python's struct module, with the padding of the compiler.
PARAMS = "<QQif3q" + "h6xQ3B5x" * 4 + "B7xd?xH4x"

# Copies its parameter, a struct of `bytes` bytes, to the array whose address is in its first eight.
COPY = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry _Z4copy6Params(.param .align 16 .b8 _Z4copy6Params_param_0[{bytes}])
{{
  .reg .b32 %r<3>; .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [_Z4copy6Params_param_0];
{moves}
  ret;
}}
"""

# Two tensor maps are its only parameters: a box goes by TMA from (0, 2) of the first to (0, 1) of the second.
BY_MAPS = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry by_maps(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128])
{
  .reg .pred %p<2>; .reg .b32 %r<5>; .reg .b64 %rd<3>;
  .shared .align 128 .b8 box[128];
  .shared .align 8 .b8 full[8];
  mov.b64 %rd1, from; cvta.param.u64 %rd1, %rd1;
  mov.b64 %rd2, to; cvta.param.u64 %rd2, %rd2;
  mov.u32 %r1, box; mov.u32 %r2, full; mov.u32 %r3, 0; mov.u32 %r4, 2;
  mbarrier.init.shared.b64 [%r2], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 128;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r3, %r4}], [%r2];
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0;
  @!%p1 bra WAIT;
  mov.u32 %r4, 1;
  cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd2, {%r3, %r4}], [%r1];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ret;
}
"""

RACE = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry race(.param .u64 out)
{
  .reg .b32 %r<6>; .reg .b64 %rd<3>;
  .shared .align 4 .b8 words[128];
  .loc 1 3 1
  mov.u32 %r1, %tid.x;
  xor.b32 %r3, %r1, 32;
  and.b32 %r2, %r1, 31;
  shl.b32 %r2, %r2, 2;
  mov.u32 %r4, words;
  add.u32 %r4, %r4, %r2;
  st.shared.u32 [%r4], %r1;
  ret;
}
.file 1 "race.cu"
"""


def copy_kernel(size):
    moves = "\n".join(f"  ld.param.u32 %r1, [_Z4copy6Params_param_0+{at}];\n  st.global.u32 [%rd1+{at}], %r1;"
                      for at in range(0, size, 4))
    return COPY.format(bytes=size, moves=moves)


class Arguments(program.FolderTest):
    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(text)
        return self.path(name)

    def copied(self, size, *arguments):
        """The bytes of the struct that the kernel was given."""
        self.write("copy.ptx", copy_kernel(size))
        done = kvscope("ptx", "run", self.path("copy.ptx"), *arguments, "--save", f"0.out={self.path('y.npy')}")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return np.load(self.path("y.npy")).tobytes(), done.stdout

    def run_ok(self, *arguments):
        done = kvscope("ptx", "run", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def fault(self, *arguments):
        done = kvscope("ptx", "run", *arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        return done.stderr


class Structs(Arguments):
    def test_fields_have_the_bytes_of_the_compiler(self):
        size = struct.calcsize(PARAMS)
        fields = {"q": "@0.out+16", "n": "-5", "scale": "0.25", "strides[1]": "-7000000000", "in[1][0].page": "-3",
                  "in[0][1].base": "null", "in[1][1].tail[2]": "200", "flag": "255", "weight": "1e300", "on": "1",
                  "ends": "65535"}
        words = [f"--arg=0.{name}={value}" for name, value in fields.items()]
        got, printed = self.copied(size, "--struct", f"0={DATA}/structs.h:Params", f"--arg=0.out=u8[{size}]", *words)
        at = int(printed.split("0.out u8")[1].split("at 0x")[1].split(",")[0], 16)
        inner = [[0] * 5 for _ in range(4)]
        inner[2][0], inner[3][4] = -3, 200
        self.assertEqual(got, struct.pack(PARAMS, at, at + 16, -5, 0.25, 0, -7000000000, 0, *sum(inner, []), 255, 1e300, True,
                                          65535))
        self.assertIn("parameter 0: 12 of 31 fields set, the others are 0: strides[0], strides[2], ", printed)

    def test_an_array_of_a_field_has_its_name_in_the_results(self):
        size = struct.calcsize(PARAMS)
        self.copied(size, "--struct", f"0={DATA}/structs.h:Params", f"--arg=0.out=u8[{size}]", "--json", self.path("r.json"))
        with open(self.path("r.json"), encoding="utf-8") as file:
            arrays = json.load(file)["arrays"]
        self.assertEqual([(array["argument"], array["word"]) for array in arrays], [("0.out", f"u8[{size}]")])

    def test_a_file_sets_fields_offsets_and_all_bytes(self):
        header = self.write("params.h", "struct Params { int* out; short page[2]; float scale; double* q; };\n")
        values = {"fields": {"page": [3, -4], "scale": 1.5}, "at": {"0": "u8[24]", "16": "@0+0+8"}}
        values["at"]["16"] = {"type": "u64", "value": 77}
        path = self.write("p.json", json.dumps(values))
        self.write("copy.ptx", copy_kernel(24))
        done = kvscope("ptx", "run", self.path("copy.ptx"), "--struct", f"0={header}", f"--arg=@{path}", "--save",
                       f"0+0={self.path('y.npy')}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(np.load(self.path("y.npy")).tobytes()[8:], struct.pack("<hhfQ", 3, -4, 1.5, 77))
        path = self.write("raw.json", json.dumps({"hex": "00" * 8 + "ff" * 16, "at": {"0": "u8[24]"}}))
        done = kvscope("ptx", "run", self.path("copy.ptx"), f"--arg=@{path}", "--save", f"0+0={self.path('y.npy')}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(np.load(self.path("y.npy")).tobytes()[8:], b"\xff" * 16)

    def test_a_layout_as_json(self):
        layout = self.write("layout.json", json.dumps({"name": "P", "bytes": 24, "fields": [
            {"name": "out", "offset": 0, "type": "pointer"}, {"name": "x", "offset": 8, "type": "bf16"},
            {"name": "y", "offset": 10, "type": "f16"}]}))
        got, _ = self.copied(24, "--struct", f"0={layout}", "--arg=0.out=u8[24]", "--arg=0.x=-2", "--arg=0.y=0.5")
        self.assertEqual(got[8:12], bytes.fromhex("00c00038"))

    def test_each_fault_is_named(self):
        header = self.write("params.h", "struct Params { int* out; short page[2]; float scale; double* q; };\n")
        ptx = self.write("copy.ptx", copy_kernel(24))
        self.assertIn("the fields of parameter 0 (24 bytes _Z4copy6Params_param_0) are unknown: compile with nvcc -G, or give its "
                      "definition as --struct 0=FILE.h", self.fault(ptx, "--arg=0.out=u8[24]"))
        text = self.fault(ptx, "--struct", f"0={header}", "--arg=0.out=u8[24]", "--arg=0.out=u8[24]", "--arg=0.pages=1",
                          "--arg=0.page[0]=70000", "--arg=0.scale=x", "--arg=1.q=3", "--arg=0.page[1]=u8[4]")
        for said in ("--arg 1: field out (int*) has a value already",
                     "--arg 2: Params has no field 'pages': fields are out, page[0], page[1], scale, q",
                     "--arg 3: '70000' does not fit field page[0] (short): write an integer from -32768 to 32767",
                     "--arg 4: 'x' is neither a number", "--arg 5: there is no parameter '1': kernel copy has 0 (24 bytes ",
                     "--arg 6: 'u8[4]' is an array, but field page[1] (short) is not a pointer of 8 bytes"):
            self.assertIn(said, text)
        self.assertIn("--struct 0: Params has 24 bytes, but parameter _Z4copy6Params_param_0 has 32",
                      self.fault(self.write("large.ptx", copy_kernel(32)), "--struct", f"0={header}", "--arg=0.out=u8[32]"))
        bad = self.write("bad.json", json.dumps({"fields": {"page": 1, "nothing": 2}, "at": {"23": {"type": "u16", "value": 1}}}))
        text = self.fault(ptx, "--struct", f"0={header}", f"--arg=@{bad}")
        for said in ("fields.page: Params has no field 'page'", "fields.nothing: Params has no field 'nothing'",
                     "at.23: ends after byte 24 of parameter 0"):
            self.assertIn(said, text)
        for content, said in (("[]", "is not an object"), ('{"field": {}}', "field: is unknown: keys are fields, at, hex"),
                              ('{"hex": "0"}', "hex: is not a text of two hexadecimal digits"),
                              ('{"hex": "00"}', "hex has 1 bytes, but parameter 0 has 24"),
                              ('{"at": {"x": 1}}', "at.x: is not an offset")):
            self.assertIn(said, self.fault(ptx, f"--arg=@{self.write('s.json', content)}"), content)


class Names(Arguments):
    def test_debug_information_names_parameters_and_fields(self):
        q = self.path("q.npy")
        np.save(q, np.arange(8, dtype=np.float32))
        done = kvscope("ptx", "run", DEBUG, "--entry", "plain", "--block", "8", "--arg=a=3", "--arg=p.out=f32[8]",
                       f"--arg=p.q={q}", "--arg=p.n=8", "--arg=p.scale=2", "--arg=p.in[0][1].base=@p.q", "--arg=p.strides[2]=10",
                       "--arg=p.in[1][0].page=-4", "--save", f"p.out={self.path('y.npy')}")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        x = np.arange(8, dtype=np.float32)
        np.testing.assert_array_equal(np.load(self.path("y.npy")), x * 6 + 6 + x)
        self.assertIn("argument p.out f32[8] at", done.stdout)
        self.assertIn("kernel      plain: 1 CTA of 8 threads\n", done.stdout)

    def test_missing_and_doubled_parameters_are_named(self):
        self.assertIn("no value for Params p: kernel plain takes Params p, float a",
                      self.fault(DEBUG, "--entry", "plain", "--arg=a=3"))
        self.assertIn("parameter 1 (float a) has a value already",
                      self.fault(DEBUG, "--entry", "plain", "--arg=a=3", "--arg=1=4", "--arg=p.n=1"))

    def test_kernels_by_their_names_in_cpp(self):
        for name in ("ns::decode<4>", "decode<4>", "decode", "ns::decode", "dec"):
            self.assertIn("kernel decode takes 3: Table<4,float> t, const Derived d, int n",
                          self.fault(DEBUG, "--entry", name), name)
        self.assertIn("--entry: there is no kernel 'decoder': the file has ", self.fault(DEBUG, "--entry", "decoder"))


class Pointers(Arguments):
    def test_arrays_of_an_npz_and_pointers_into_them(self):
        np.savez(self.path("w.npz"), a=np.arange(6, dtype=np.uint32), b=np.zeros(2, np.uint32))
        ptx = self.write("two.ptx", """.version 8.0
.target sm_90a
.address_size 64
.visible .entry two(.param .u64 to, .param .u64 from, .param .u64 none)
{
  .reg .b32 %r<2>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [to]; ld.param.u64 %rd2, [from]; ld.param.u64 %rd3, [none];
  ld.global.u32 %r1, [%rd2]; st.global.u32 [%rd1], %r1; st.global.u64 [%rd1+8], %rd3;
  ret;
}
""")
        done = kvscope("ptx", "run", ptx, "--arg", f"{self.path('w.npz')}:a", "--arg", "@0+20", "--arg", "null", "--save",
                       f"0={self.path('y.npy')}")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        np.testing.assert_array_equal(np.load(self.path("y.npy")), [5, 1, 0, 0, 4, 5])
        self.assertIn("has no tensor 'c': it has a, b",
                      self.fault(ptx, "--arg", f"{self.path('w.npz')}:c", "--arg", "null", "--arg", "null"))
        self.assertIn("--arg 1: '@2' is not @ARRAY or @ARRAY+BYTES of an array placed before it: arrays are 0",
                      self.fault(ptx, "--arg", "u8[8]", "--arg", "@2", "--arg", "null"))
        self.assertIn("'@0+x' is not @ARRAY", self.fault(ptx, "--arg", "u8[8]", "--arg", "@0+x", "--arg", "null"))


class ArraysOfMaps(Arguments):
    """Kernels of CUTLASS take descriptors alone: no parameter is a pointer to the array."""

    def setUp(self):
        super().setUp()
        self.kernel = self.write("by_maps.ptx", BY_MAPS)
        self.x = np.arange(64, dtype=np.float32).reshape(8, 8)
        np.save(self.path("x.npy"), self.x)
        self.map = self.write("m.json", json.dumps({"kvscope_tensor_map": 1, "type": "f32", "dims": [8, 8], "strides": [32],
                                                    "box": [8, 4]}))

    def test_a_map_brings_the_array_that_only_it_points_to(self):
        out = self.run_ok(self.kernel, "--arg", f"map:{self.map}@{self.path('x.npy')}", "--arg", f"map:{self.map}@f32[8,8]",
                          "--save", f"1={self.path('y.npy')}", "--save", f"0={self.path('same.npy')}")
        y = np.load(self.path("y.npy"))
        np.testing.assert_array_equal(y[1:5], self.x[2:6])
        self.assertEqual(y[0].tobytes() + y[5:].tobytes(), b"\xff" * 128)  # nothing else is written
        np.testing.assert_array_equal(np.load(self.path("same.npy")), self.x)
        self.assertIn("argument 1  f32[8,8] at 0x", out)

    def test_a_second_map_reaches_the_array_of_the_first(self):
        np.savez(self.path("w.npz"), k=self.x)
        self.run_ok(self.kernel, "--arg", f"map:{self.map}@{self.path('w.npz')}:k", "--arg", f"map:{self.map}@0", "--save",
                    f"0={self.path('y.npy')}")
        np.testing.assert_array_equal(np.load(self.path("y.npy")), self.x[[0, 2, 3, 4, 5, 5, 6, 7]])

    def test_an_array_whose_path_has_an_at_sign(self):
        os.mkdir(self.path("a@b"))
        np.save(self.path("a@b/x.npy"), self.x)
        self.run_ok(self.kernel, "--arg", f"map:{self.map}@{self.path('a@b/x.npy')}", "--arg", f"map:{self.map}@0")

    def test_a_map_that_is_larger_than_its_array_is_reported(self):
        done = kvscope("ptx", "run", self.kernel, "--arg", f"map:{self.map}@f32[5,8]", "--arg", f"map:{self.map}@f32[8,8]")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("OUT_OF_BOUNDS", done.stdout)

    def test_what_is_no_array_is_named_with_what_is(self):
        done = kvscope("ptx", "run", self.kernel, "--arg", f"map:{self.map}@x", "--arg", f"map:{self.map}@64")
        self.assertEqual(done.returncode, 2)
        for number, name in enumerate(("x", "64")):
            self.assertIn(f"--arg {number}: 'map:{self.map}@{name}': '{name}' is neither an array placed before it (no array is "
                          "placed), nor FILE.npy, FILE.npz:NAME, FILE.safetensors:NAME or TYPE[SHAPE]", done.stderr)


class Suppressions(Arguments):
    def test_suggested_lines_make_the_run_clean(self):
        ptx = self.write("race.ptx", RACE)
        run = ["ptx", "run", ptx, "--block", "64", "--arg", "null"]
        known = self.path("known.txt")
        done = kvscope(*run, "--suggest-suppressions", known)
        self.assertEqual(done.returncode, 1, done.stdout)
        with open(known, encoding="utf-8") as lines:
            self.assertEqual(lines.read(), "# kind | kernel | source\nRACE_WW | race | race.cu:3\n")
        done = kvscope(*run, "--suppress", known)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("verdict     clean\n", done.stdout)
        other = self.write("other.txt", "RACE_RW | * | *\n")
        done = kvscope(*run, "--suppress", other, "--suppress", known)
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"suppressed  nothing by {other}:1: remove the line if no other kernel needs it\n", done.stdout)
        self.assertEqual(kvscope(*run, "--suppress", other).returncode, 1)

    def test_bad_lines_are_named(self):
        ptx = self.write("race.ptx", RACE)
        bad = self.write("bad.txt", "RACE_XX | * | *\nRACE_WW\n")
        text = self.fault(ptx, "--arg", "null", "--suppress", bad)
        self.assertIn(f"{bad}: line 1: 'RACE_XX' is no kind of report", text)
        self.assertIn(f"{bad}: line 2: has 1 parts", text)


if __name__ == "__main__":
    program.main()
