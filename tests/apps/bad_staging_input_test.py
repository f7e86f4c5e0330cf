#!/usr/bin/python3
"""What a person sees who gave the commands of the chain's second half something wrong: every message to the letter,
exit code 2, nothing on standard output, and no file more or less than before.

    bad_staging_input_test.py --kvscope PROGRAM
"""
import json
import sys
import unittest

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from bad_input_test import CHECK, call, changed, npy, scenario  # noqa: E402


def tensor_map(change=None):
    return json.dumps(changed({"kvscope_tensor_map": 1, "type": "bf16", "dims": [64, 20], "strides": [128],
                               "box": [64, 8]}, change or {}))


def staged(change=None):
    """A scenario whose tiles can go both ways."""
    return scenario(changed({"model": {"preset": "tiny", "head_size": 128, "value_size": 128},
                             "cache": {"page_size": 64, "dtype": "bf16"},
                             "requests": {"list": [{"prompt_tokens": 100, "generate_tokens": 3}]},
                             "tile": {"BN": 64, "BK": 64}}, change or {}))


# --- cases: situation, files, command line, faults without "kvscope: " ------------------------------------------------

TENSOR_MAP_FILE = [
    ("no file", {}, "tma check m.json",
     ["m.json: cannot be read: No such file or directory"]),
    ("no JSON", {"m.json": "{"}, "tma check m.json",
     ["m.json: line 1, column 2: syntax error while parsing object key - unexpected end of input; "
      "expected string literal"]),
    ("no object", {"m.json": "[1]"}, "tma check m.json",
     ["m.json: $: an array instead of an object"]),
    ("nothing in it", {"m.json": "{}"}, "tma check m.json",
     ["m.json: $.kvscope_tensor_map: missing: write 1, the version of this format",
      "m.json: $.type: missing: choose one of u8, u16, u32, i32, u64, i64, f16, f32, f64, bf16, f32_ftz, "
      "tf32, tf32_ftz, u4x16_align8, u4x16_align16, u6x16_align16",
      "m.json: $.dims: missing: a list of integers, fastest dimension first",
      "m.json: $.strides: missing: a list of integers, fastest dimension first",
      "m.json: $.box: missing: a list of integers, fastest dimension first"]),
    ("a megabyte of it", {"m.json": " " * (1 << 20) + "{}"}, "tma check m.json",
     ["m.json: 1048578 bytes, but at most 1048576 are read: split it or give a smaller one"]),
    ("newer version", {"m.json": tensor_map({"kvscope_tensor_map": 2})}, "tma check m.json",
     ["m.json: $.kvscope_tensor_map: 2 is not the version this program reads: 1"]),
    ("unknown type", {"m.json": tensor_map({"type": "bf61"})}, "tma check m.json",
     ['m.json: $.type: "bf61" is not a legal word: did you mean "bf16"?']),
    ("type that is a number", {"m.json": tensor_map({"type": 9})}, "tma check m.json",
     ["m.json: $.type: 9 instead of a word: choose one of u8, u16, u32, i32, u64, i64, f16, "
      "f32, f64, bf16, f32_ftz, tf32, tf32_ftz, u4x16_align8, u4x16_align16, u6x16_align16"]),
    ("type left out", {"m.json": tensor_map({"type": None})}, "tma check m.json",
     ["m.json: $.type: missing: choose one of u8, u16, u32, i32, u64, i64, f16, f32, f64, bf16, f32_ftz, "
      "tf32, tf32_ftz, u4x16_align8, u4x16_align16, u6x16_align16"]),
    ("unknown swizzle", {"m.json": tensor_map({"swizzle": "128"})}, "tma check m.json",
     ['m.json: $.swizzle: "128" is not a legal word: did you mean "128B"?']),
    ("unknown target", {"m.json": tensor_map({"target": "sm_80"})}, "tma check m.json",
     ['m.json: $.target: "sm_80" is not a legal word: did you mean "sm_90"?']),
    ("unknown interleave", {"m.json": tensor_map({"interleave": "64B"})}, "tma check m.json",
     ['m.json: $.interleave: "64B" is not a legal word: choose one of none, 16B, 32B']),
    ("unknown promotion", {"m.json": tensor_map({"l2_promotion": "512B"})}, "tma check m.json",
     ['m.json: $.l2_promotion: "512B" is not a legal word: choose one of none, 64B, 128B, 256B']),
    ("unknown fill", {"m.json": tensor_map({"fill": "NaN"})}, "tma check m.json",
     ['m.json: $.fill: "NaN" is not a legal word: did you mean "nan"?']),
    ("unknown key", {"m.json": tensor_map({"stride": [128]})}, "tma check m.json",
     ['m.json: $.stride: unknown key: did you mean "strides"?']),
    ("base below zero", {"m.json": tensor_map({"base": -16})}, "tma check m.json",
     ["m.json: $.base: -16 instead of an integer in [0, 18446744073709551615]"]),
    ("base that is text", {"m.json": tensor_map({"base": "0x1000"})}, "tma check m.json",
     ['m.json: $.base: "0x1000" instead of an integer in [0, 18446744073709551615]']),
    ("no dimension", {"m.json": tensor_map({"dims": []})}, "tma check m.json",
     ["m.json: $.dims: has 0 numbers, a map has 1 to 5"]),
    ("six dimensions", {"m.json": tensor_map({"dims": [1, 1, 1, 1, 1, 1]})}, "tma check m.json",
     ["m.json: $.dims: has 6 numbers, a map has 1 to 5"]),
    ("dims that are a number", {"m.json": tensor_map({"dims": 64})}, "tma check m.json",
     ["m.json: $.dims: 64 instead of a list of integers"]),
    ("fraction of a dimension", {"m.json": tensor_map({"dims": [64, 2.5]})}, "tma check m.json",
     ["m.json: $.dims[1]: 2.5 instead of an integer in [0, 18446744073709551615]"]),
    ("a stride a dimension", {"m.json": tensor_map({"strides": [2, 128]})}, "tma check m.json",
     ["m.json: $.strides: has 2 numbers, the rank asks for 1"]),
    ("box of another rank", {"m.json": tensor_map({"box": [64]})}, "tma check m.json",
     ["m.json: $.box: has 1 numbers, the rank asks for 2"]),
    ("box past 32 bits", {"m.json": tensor_map({"box": [64, 4294967296]})}, "tma check m.json",
     ["m.json: $.box[1]: 4294967296 instead of an integer in [0, 4294967295]"]),
    ("element strides of another rank", {"m.json": tensor_map({"element_strides": [1]})}, "tma check m.json",
     ["m.json: $.element_strides: has 1 numbers, the rank asks for 2"]),
    ("copy that is a list", {"m.json": tensor_map({"copy": [0, 17]})}, "tma check m.json",
     ["m.json: $.copy: an array instead of an object"]),
    ("copy without coordinates", {"m.json": tensor_map({"copy": {"dst": 0}})}, "tma check m.json",
     ["m.json: $.copy.at: missing: a list of integers, fastest dimension first"]),
    ("coordinate past 32 bits", {"m.json": tensor_map({"copy": {"at": [0, 2147483648]}})}, "tma check m.json",
     ["m.json: $.copy.at[1]: 2147483648 instead of an integer in [-2147483648, 2147483647]"]),
    ("unknown key of a copy", {"m.json": tensor_map({"copy": {"at": [0, 0], "to": 0}})}, "tma check m.json",
     ["m.json: $.copy.to: unknown key: choose one of at, dst"]),
    ("several faults at once",
     {"m.json": tensor_map({"type": "f61", "dims": [64, -1], "strides": [], "box": None, "fill": 0})},
     "tma check m.json",
     ['m.json: $.type: "f61" is not a legal word: did you mean "f16"?',
      "m.json: $.fill: 0 instead of a word: choose one of zeros, nan",
      "m.json: $.dims[1]: -1 instead of an integer in [0, 18446744073709551615]",
      "m.json: $.strides: has 0 numbers, the rank asks for 1",
      "m.json: $.box: missing: a list of integers, fastest dimension first"]),
]

TMA_COPY = [
    ("map that breaks rules",
     {"m.json": tensor_map({"box": [72, 0], "swizzle": "128B"}), "d.npy": npy(np.zeros(2560, np.uint8))},
     "tma copy m.json --data d.npy --at 0,0",
     ["tensor map of m.json: box[1] (V13): 0 is outside 1 to 256: copy the tile in several boxes",
      "tensor map of m.json: box[0] (V17): 72 x bf16 = 144 B, but 128B swizzle takes at most 128 B: use "
      "boxes of 64 elements"]),
    ("map that needs another target",
     {"m.json": tensor_map({"swizzle": "128B_ATOM_64B"}), "d.npy": npy(np.zeros(2560, np.uint8))},
     "tma copy m.json --data d.npy --at 0,0",
     ["tensor map of m.json rejected: swizzle (target): 128B_ATOM_64B swizzle needs sm_100: use the 128B "
      "swizzle on sm_90"]),
    ("map whose boxes are not modeled",
     {"m.json": tensor_map({"interleave": "16B", "dims": [8, 20, 3], "strides": [128, 4096], "box": [8, 8, 1]}),
      "d.npy": npy(np.zeros(2560, np.uint8))},
     "tma copy m.json --data d.npy --at 0,0,0",
     ["load of a box: where the bytes of a map with 16B interleave land is not modeled: use no interleave"]),
    ("packed type that only hardware unpacks",
     {"m.json": tensor_map({"type": "u4x16_align16", "dims": [128, 20], "strides": [64], "box": [128, 1],
                            "target": "sm_100"}), "d.npy": npy(np.zeros(2560, np.uint8))},
     "tma copy m.json --data d.npy --at 0,0",
     ["load of a box: u4x16_align16 is converted on its way, and only byte copies are modeled: use u8"]),
    ("type that is rounded on its way",
     {"m.json": tensor_map({"type": "tf32", "box": [32, 8], "strides": [256]}), "d.npy": npy(np.zeros(2560, np.uint8))},
     "tma copy m.json --data d.npy --at 0,0",
     ["load of a box: tf32 is converted on its way, and only byte copies are modeled: use f32"]),
    ("no coordinates",
     {"m.json": tensor_map(), "d.npy": npy(np.zeros(2560, np.uint8))}, "tma copy m.json --data d.npy",
     ["command line: --at: is required, because the map has no copy.at: give the coordinates of the box, fastest dimension first: --at 0,17"]),
    ("coordinate too few",
     {"m.json": tensor_map(), "d.npy": npy(np.zeros(2560, np.uint8))}, "tma copy m.json --data d.npy --at 3",
     ["command line: --at: has 1 numbers, the map has 2 dimensions"]),
    ("coordinate that is no number",
     {"m.json": tensor_map(), "d.npy": npy(np.zeros(2560, np.uint8))}, "tma copy m.json --data d.npy --at 0,x",
     ["command line: --at: 'x' is not a valid number: see 'kvscope tma copy --help'"]),
    ("column inside a chunk",
     {"m.json": tensor_map(), "d.npy": npy(np.zeros(2560, np.uint8))}, "tma copy m.json --data d.npy --at 3,0",
     ["load of a box: coordinate 0: 3 x bf16 = 6 B is not a multiple of 16 B (error 715 on Hopper): "
      "start at 0 or 8"]),
    ("address inside a line",
     {"m.json": tensor_map(), "d.npy": npy(np.zeros(2560, np.uint8))},
     "tma copy m.json --data d.npy --at 0,0 --dst 64",
     ["load of a box: shared address: 64 is not a multiple of 128 B (error 716): use 128"]),
    ("address below zero",
     {"m.json": tensor_map(), "d.npy": npy(np.zeros(2560, np.uint8))},
     "tma copy m.json --data d.npy --at 0,0 --dst -128",
     ["--dst -128 is outside [0, 1048576): byte addresses of shared memory"]),
    ("address past any shared memory",
     {"m.json": tensor_map(), "d.npy": npy(np.zeros(2560, np.uint8))},
     "tma copy m.json --data d.npy --at 0,0 --dst 1048576",
     ["--dst 1048576 is outside [0, 1048576): byte addresses of shared memory"]),
    ("byte past any shared memory",
     {"m.json": tensor_map(), "d.npy": npy(np.zeros(2560, np.uint8))},
     "tma copy m.json --data d.npy --at 0,0 --byte 1048576",
     ["--byte 1048576 is outside [0, 1048576): byte addresses of shared memory"]),
    ("array shorter than the map",
     {"m.json": tensor_map({"dims": [64, 200]}), "d.npy": npy(np.zeros(2560, np.uint8))},
     "tma copy m.json --data d.npy --at 0,150",
     ["illegal address (error 700): 16 bytes at 0x4b00 are in no allocation; the nearest is 'd.npy', "
      "2560 bytes at 0x0: check the map's base, dims and strides"]),
    ("array that is none", {"m.json": tensor_map(), "d.npy": "1, 2, 3"}, "tma copy m.json --data d.npy --at 0,0",
     ["d.npy: does not begin with \\x93NUMPY: not an npy file; write it with numpy.save"]),
    ("no array", {"m.json": tensor_map()}, "tma copy m.json --at 0,0",
     ["command line: --data is required: see 'kvscope tma copy --help'"]),
    ("array that is not there", {"m.json": tensor_map()}, "tma copy m.json --data d.npy --at 0,0",
     ["d.npy: cannot be read: No such file or directory"]),
    ("copy into no folder",
     {"m.json": tensor_map(), "d.npy": npy(np.zeros(2560, np.uint8))},
     "tma copy m.json --data d.npy --at 0,0 --out no/such/o.npy",
     ["no/such/o.npy: cannot be written: the folder 'no/such' does not exist"]),
]

STAGING_FIELDS = [
    ("LDS tile of no rows", {"s.json": scenario({"lds": {"BN": -1}})}, CHECK,
     ["s.json: $.lds.BN: -1 is outside [0, 4096]: choose a multiple of 32 such as 64, or 0"]),
    ("LDS tile past the limit", {"s.json": scenario({"lds": {"BN": 1 << 21}})}, CHECK,
     ["s.json: $.lds.BN: 2097152 is outside [0, 4096]: choose a multiple of 32 such as 64, or 0"]),
    ("wave tile below zero", {"s.json": scenario({"lds": {"WN": -32}})}, CHECK,
     ["s.json: $.lds.WN: -32 is outside [0, 4096]: choose a divisor of BN, or 0"]),
    ("strip of text", {"s.json": scenario({"lds": {"BK": "32"}})}, CHECK,
     ['s.json: $.lds.BK: the string "32" instead of an integer in [0, 8192]']),
    ("no threads", {"s.json": scenario({"lds": {"threads": 0}})}, CHECK,
     ["s.json: $.lds.threads: 0 is outside [64, 1024]: choose a multiple of 64 such as 256"]),
    ("more threads than a block has", {"s.json": scenario({"lds": {"threads": 4096}})}, CHECK,
     ["s.json: $.lds.threads: 4096 is outside [64, 1024]: choose a multiple of 64 such as 256"]),
    ("unknown instruction", {"s.json": scenario({"lds": {"mma": "32x32x4"}})}, CHECK,
     ['s.json: $.lds.mma: "32x32x4" is not one of shipped, 32x32x8, 32x32x16, 16x16x32, 32x32x64, '
      '16x16x128: did you mean "32x32x8"?']),
    ("unknown LDS swizzle", {"s.json": scenario({"lds": {"swizzle": "(3,0,5)"}})}, CHECK,
     ['s.json: $.lds.swizzle: "(3,0,5)" is not one of shipped, none, (3,0,4), (3,0,3), (2,0,3), (2,0,2): '
      'did you mean "(3,0,4)"?']),
    ("unknown key of lds", {"s.json": scenario({"lds": {"bn": 64}})}, CHECK,
     ['s.json: $.lds.bn: unknown key: did you mean "BN"?']),
    ("full_kv that is a number", {"s.json": scenario({"lds": {"full_kv": 1}})}, CHECK,
     ["s.json: $.lds.full_kv: 1 instead of true or false"]),
    ("stage of no columns", {"s.json": scenario({"lds": {"smem_depth": -1}})}, CHECK,
     ["s.json: $.lds.smem_depth: -1 is outside [0, 8192]: choose a multiple of BK, or 0"]),
    ("registers for more than is staged", {"s.json": staged({"lds": {"reg_chunk_depth": 160}})}, CHECK,
     ["s.json: $.lds.reg_chunk_depth: 160 columns in registers are more than the 128 that are staged: choose at most "
      "128, or 0"]),
    ("lds that is a number", {"s.json": scenario({"lds": 64})}, CHECK,
     ["s.json: $.lds: 64 instead of an object"]),
    ("head past the last", {"s.json": scenario({"focus": {"head": 2}})}, CHECK,
     ["s.json: $.focus.head: 2 is outside [0, 2): the model has 2 KV heads, numbered from 0"]),
    ("head below zero", {"s.json": scenario({"focus": {"head": -1}})}, CHECK,
     ["s.json: $.focus.head: -1 is outside [0, 4095]: choose a KV head of the model"]),
    ("tile below zero", {"s.json": scenario({"focus": {"tile": -1}})}, CHECK,
     ["s.json: $.focus.tile: -1 is outside [0, 2147483647]: choose 0 for the first tile"]),
    ("sequence below minus one", {"s.json": scenario({"focus": {"sequence": -2}})}, CHECK,
     ["s.json: $.focus.sequence: -2 is outside [-1, 2147483647]: choose -1 for the longest"]),
    ("unknown detail of staging", {"s.json": scenario({"focus": {"staging": "all"}})}, CHECK,
     ['s.json: $.focus.staging: "all" is not one of none, copies, lanes']),
    ("staging that is a truth", {"s.json": scenario({"focus": {"staging": True}})}, CHECK,
     ["s.json: $.focus.staging: true instead of one of none, copies, lanes"]),
    ("several of the focus at once",
     {"s.json": scenario({"focus": {"head": 9, "layer": 9, "tile": 1.5, "staging": ""}})}, CHECK,
     ["s.json: $.focus.tile: 1.5 instead of an integer in [0, 2147483647]",
      's.json: $.focus.staging: "" is not one of none, copies, lanes',
      "s.json: $.focus.layer: 9 is outside [0, 2): the model has 2 layers, numbered from 0",
      "s.json: $.focus.head: 9 is outside [0, 2): the model has 2 KV heads, numbered from 0"]),
]

STAGING_COMMANDS = [
    ("mistyped tma command", {}, "tma chek m.json",
     ["command line: 'chek' is not a command of 'kvscope tma': did you mean \"check\"? See 'kvscope tma --help'"]),
    ("barrier of no operations", {}, "tma barrier",
     ["command line: OPERATION is required: see 'kvscope tma barrier --help'"]),
    ("mistyped operations", {}, "tma barrier expect:10 complte:3 arrive:x inval:3 wait wait:",
     ["command line: OPERATION: 'complte:3' is not an operation: did you mean \"complete\"?",
      "command line: OPERATION: 'arrive:x' has no number after its colon: arrive:N",
      "command line: OPERATION: 'inval:3' takes no number",
      "command line: OPERATION: 'wait' needs a number: wait:N",
      "command line: OPERATION: 'wait:' has no number after its colon: wait:N"]),
    ("barrier of no arrivals", {}, "tma barrier arrive --arrivals 0",
     ["barrier, init: 0 arrivals are outside 1 to 1048575"]),
    ("gather without rows", {}, "tma gather4 m.json --data d.npy",
     ["command line: --rows is required: see 'kvscope tma gather4 --help'"]),
    ("swizzle of no meaning", {}, "swizzle table 256B",
     ["command line: SWIZZLE: '256B' is not a swizzle: use none, 32B, 64B, 128B, or bits,base,shift on bytes "
      "such as 3,4,3"]),
    ("swizzle of two numbers", {}, "swizzle table 3,4",
     ["command line: SWIZZLE: '3,4' is not a swizzle: use none, 32B, 64B, 128B, or bits,base,shift on bytes such as 3,4,3"]),
    ("swizzle with text behind it", {}, "swizzle table 3,4,3x",
     ["command line: SWIZZLE: '3,4,3x' is not a swizzle: use none, 32B, 64B, 128B, or bits,base,shift on bytes "
      "such as 3,4,3"]),
    ("swizzle that overlaps itself", {}, "swizzle table 3,4,2",
     ["swizzle (3,4,2): shift: 2 moves 3 bits onto themselves: use at least 3 or at most -3"]),
    ("swizzle of too many bits", {}, "swizzle table 40,4,41",
     ["swizzle (40,4,41): bits + base + |shift| = 85 is outside [0, 63)"]),
    ("swizzle below zero", {}, "swizzle table -1,4,3",
     ["swizzle (-1,4,3): bits: -1 is negative: use 0 or more"]),
    ("table of no rows", {}, "swizzle table 128B --rows 0",
     ["command line: --rows: 0 is outside [1, 4096]"]),
    ("table of too many rows", {}, "swizzle table 128B --rows 4097",
     ["command line: --rows: 4097 is outside [1, 4096]"]),
    ("rows of half a chunk", {}, "swizzle table 128B --row-bytes 24",
     ["command line: --row-bytes: 24 is not a multiple of 16 in [16, 1024]"]),
    ("rows that are too long", {}, "swizzle table 128B --row-bytes 1040",
     ["command line: --row-bytes: 1040 is not a multiple of 16 in [16, 1024]"]),
    ("tile inside a chunk", {}, "swizzle table 128B --dst 8",
     ["command line: --dst: 8 is not a multiple of 16, from 0 on"]),
    ("reader of no meaning", {}, "swizzle solve --read wmma",
     ["command line: --read: 'wmma' is not a valid value: choose one of ldmatrix, mfma32, mfma16, row, column: see 'kvscope swizzle solve --help'"]),
    ("ldmatrix on another vendor", {}, "swizzle solve --target gfx950",
     ["command line: --target: ldmatrix is an instruction of NVIDIA GPUs: use --target nvidia"]),
    ("mfma on another vendor", {}, "swizzle solve --read mfma32",
     ["mfma is an instruction of AMD: use gfx942 or gfx950"]),
    ("rows that ldmatrix does not read whole", {}, "swizzle solve --rows 24 --row-bytes 100",
     ["tile read by ldmatrix.x4, K as B, 2 B elements: rows: 24 is not a multiple of 16, what one read takes: use 32",
      "tile read by ldmatrix.x4, K as B, 2 B elements: pitch: 100 is not a multiple of 32, what one read "
      "takes: use 128"]),
    ("width that no lane reads", {}, "swizzle solve --read row --width 3",
     ["command line: --width: '3' is not a valid value: choose one of 1, 2, 4, 8, 16: see 'kvscope swizzle solve --help'"]),
    ("chunk narrower than a read", {}, "swizzle solve --chunk 8",
     ["layout to solve: ldmatrix.x4, K as B, 2 B elements: reads 16 B at a time, but chunks of 8 B may "
      "be torn apart: use a chunk of 16"]),
    ("chunk that is no power of two", {}, "swizzle solve --chunk 24",
     ["layout to solve: chunk: 24 B is not a power of two in [1, 1024]"]),
    ("padding below zero", {}, "swizzle solve --max-padding -1",
     ["layout to solve: max_padding: -1 is outside [0, 65536]"]),
    ("column of too few rows", {}, "swizzle solve --read column --rows 8",
     ["pattern 'a column, 4 B a lane': rows: 8 is not a whole number of the 32 rows that one access "
      "reads: choose 32"]),
    ("table of no meaning", {"s.json": scenario()}, "lds table s.json --what swizzle",
     ["command line: --what: 'swizzle' is not a valid value: choose one of constants, copy, registers: see 'kvscope lds table --help'"]),
    ("values that are not staged", {"s.json": scenario()}, "lds table s.json --what copy",
     ["KVBuffer (K): dtype: f32 is not staged: use bf16, f16, e4m3 or e5m2"]),
    ("stage that does not hold a row", {"s.json": staged()}, "lds table s.json --smem-depth 96",
     ["command line: --smem-depth: 96 columns of a stage do not hold the 128 that are staged: choose at least 128, 0, "
      "or \"full_kv\": false"]),
    ("head of another size", {"s.json": staged()}, "stage s.json --cache-depth 64 --head-dim-offset 128",
     ["command line: --cache-depth: 64 is not the head size 128: rows of the scenario's cache are that wide; choose 128, "
      "or 0",
      "command line: --head-dim-offset: 128 is outside [0, 128), the elements of a head: choose a column of it"]),
    ("loop over blocks", {"s.json": staged()}, "lds schedule s.json --full-kv false",
     ["the loops load whole tiles, and without full_kv a stage holds one block: use full_kv"]),
    ("wave past the last", {"s.json": staged()}, "lds table s.json --what copy --wave 4",
     ["--wave 4 is outside [0, 4): waves of the block"]),
    ("strip past the last", {"s.json": staged()}, "lds table s.json --what registers --strip 4",
     ["--strip 4 is outside [0, 4): strips of the tile"]),
    ("more rows than the tile", {"s.json": staged()}, "lds table s.json --what copy --valid-rows 65",
     ["--valid-rows 65 is outside [0, 65): keys of the tile"]),
    ("schedule of no tiles", {"s.json": staged()}, "lds schedule s.json --tiles 0",
     ["command line: --tiles: 0 is outside [1, 8]"]),
    ("schedule of too many tiles", {"s.json": staged()}, "lds schedule s.json --tiles 9",
     ["command line: --tiles: 9 is outside [1, 8]"]),
    ("masked tile past the last", {"s.json": staged()}, "lds schedule s.json --masked 0,3",
     ["--masked 3 is outside [0, 3): tiles of the loop"]),
    ("masked tile in decode", {"s.json": staged()}, "lds schedule s.json --loop decode --masked 0",
     ["command line: --masked: the decode loop passes over no tile: leave it out"]),
    ("schedule without a step past the last", {"s.json": staged()}, "lds schedule s.json --without 32",
     ["--without 32 is outside [0, 32): steps of the loop"]),
    ("counter of a wave past the last", {"s.json": staged()}, "lds schedule s.json --wave 4",
     ["--wave 4 is outside [0, 4): waves of the block"]),
    ("schedule of values that are not staged", {"s.json": scenario()}, "lds schedule s.json",
     ["KVBuffer (K): dtype: f32 is not staged: use bf16, f16, e4m3 or e5m2"]),
    ("fragment without a name", {}, "fragment table",
     ["command line: NAME is required: see 'kvscope fragment table --help'"]),
    ("mistyped fragment", {}, "fragment table mma.m16n8k61.a",
     ["command line: 'mma.m16n8k61.a' is not a fragment: did you mean \"mma.m16n8k16.a\"?"]),
    ("fragment of no meaning", {}, "fragment table wmma",
     ["command line: 'wmma' is not a fragment: choose one of mma.m16n8k16.a, mma.m16n8k16.b, "
      "mma.m16n8k16.c, mma.m16n8k32.a, mma.m16n8k32.b, mma.m16n8k32.c, mfma.32x32x8.k, mfma.32x32x8.v, "
      "mfma.32x32x8.sum, mfma.32x32x16.k, mfma.32x32x16.v, mfma.32x32x16.sum, mfma.16x16x32.k, "
      "mfma.16x16x32.v, mfma.16x16x32.sum, mfma.32x32x64.k, mfma.32x32x64.v, mfma.32x32x64.sum, "
      "mfma.16x16x128.k, mfma.16x16x128.v, mfma.16x16x128.sum, ldmatrix.k_as_b.16, ldmatrix.k_as_b.8, "
      "ldmatrix.k_as_a.16, ldmatrix.k_as_a.8, ldmatrix.v_as_b.16, ldmatrix.v_as_a.16, fp8_v, "
      "wgmma.m64n8.d, wgmma.m64n16.d, wgmma.m64n32.d, wgmma.m64n64.d, wgmma.m64n128.d, wgmma.m64n256.d, "
      "wgmma.a.16, wgmma.a.8"]),
    ("part past the tile", {}, "fragment table mma.m16n8k16.c --first-row 10 --rows 7",
     ["table of mma.m16n8k16, C: rows: [10, 17) is not a part of [0, 16)"]),
    ("part before the tile", {}, "fragment table mma.m16n8k16.c --first-column -1 --rows -2",
     ["command line: --rows: -2 is below -1: see 'kvscope fragment table --help'"]),
    ("columns before the tile", {}, "fragment table mma.m16n8k16.c --first-column -1",
     ["table of mma.m16n8k16, C: columns: [-1, 8) is not a part of [0, 8)"]),
]

STAGE = [
    ("stage without a scenario", {}, "stage",
     ["command line: SCENARIO is required: see 'kvscope stage --help'"]),
    ("path of no meaning", {"s.json": staged()}, "stage s.json --path smem",
     ["command line: --path: 'smem' is not a valid value: choose one of tma, lds: see 'kvscope stage --help'"]),
    ("neither K nor V", {"s.json": staged()}, "stage s.json --kv q",
     ["command line: --kv: 'q' is not a valid value: choose one of k, v: see 'kvscope stage --help'"]),
    ("layer past the last", {"s.json": staged()}, "stage s.json --layer 2",
     ["--layer 2 is outside [0, 2): layers of the scenario's model"]),
    ("head past the last", {"s.json": staged()}, "stage s.json --head 2",
     ["--head 2 is outside [0, 2): KV heads of the scenario's model"]),
    ("dim past the last", {"s.json": staged()}, "stage s.json --dim 128",
     ["--dim 128 is outside [0, 128): elements of a head"]),
    ("step past the last", {"s.json": staged()}, "stage s.json --step 3",
     ["scenario 'good': $.focus.step: 3 is outside [0, 3): the run has 3 steps"]),
    ("sequence that is not in the batch", {"s.json": staged()}, "stage s.json --seq 4",
     ["scenario 'good': $.focus.sequence: 4 is not in the batch of step 1, which holds 0: choose one of "
      "these, or -1 for the longest"]),
    ("requests that never run",
     {"s.json": staged({"requests": {"list": [{"prompt_tokens": 1000000, "generate_tokens": 3}]}})}, "stage s.json",
     ["scenario 'good': $.focus.step: step 0 computes no sequence, so there is no tile: choose another step, or "
      "requests that fit into the pool"]),
    ("tile past the end", {"s.json": staged()}, "stage s.json --tile 3",
     ["scenario 'good': $.focus.tile: 3 is outside [0, 2): sequence 0 has 101 tokens at step 1, 64 a tile"]),
    ("tile past the end of wider LDS tiles",
     {"s.json": staged({"lds": {"BN": 32}, "requests": {"list": [{"prompt_tokens": 90, "generate_tokens": 3}]}})},
     "stage s.json --tile 3 --path lds",
     ["scenario 'good': $.focus.tile: 3 is outside [0, 3): sequence 0 has 91 tokens at step 1, 32 a tile"]),
    ("pages that LDS tiles do not divide",
     {"s.json": staged({"cache": {"page_size": 16}})}, "stage s.json --path lds",
     ["KVCacheIterator: tile_size: 64 tokens do not divide a page of 16: a tile must be in one page, use a divisor"]),
    ("values that LDS does not stage", {"s.json": staged({"cache": {"dtype": "f32"}})}, "stage s.json --path lds",
     ["KVBuffer (K): dtype: f32 is not staged: use bf16, f16, e4m3 or e5m2"]),
    ("values that TMA does not bring", {"s.json": staged({"cache": {"dtype": "e5m2"}})}, "stage s.json",
     ["tensor map of PagedKVCache.create_tma_tile: dtype: e5m2 is not supported by TMA: use f32, f16, bf16, "
      "e4m3, e8m0, u8, u16, u32, i32, i64 or u64"]),
    ("registers of values without fragments",
     {"s.json": staged({"cache": {"dtype": "f32"}})}, "stage s.json --registers r.npy",
     ["--registers: mma.sync reads elements of 8 and 16 bits, and these have 32: a kernel converts them"]),
    ("image into no folder", {"s.json": staged()}, "stage s.json --out no/such/o.npy",
     ["no/such/o.npy: cannot be written: the folder 'no/such' does not exist"]),
    ("V of an MLA cache",
     {"s.json": scenario({"model": {"preset": "tiny", "is_mla": True, "kv_heads": 1, "value_size": 6},
                          "attention": {"scale": 0.3}})},
     "stage s.json --kv v",
     ["an MLA cache stores K only, and V is the first elements of K: use --kv k"]),
]

WAY_BACK = [
    ("token and a place", {"s.json": staged()}, "explain s.json --seq 0 --token 3 --shared-address 0",
     ["command line: --token: cannot be combined with a place (--shared-address, --lane, --register): give one of both"]),
    ("two places", {"s.json": staged()}, "explain s.json --seq 0 --shared-address 0 --lane 1 --register 0",
     ["command line: --shared-address: cannot be combined with --lane and --register: give one place"]),
    ("lane without a register", {"s.json": staged()}, "explain s.json --seq 0 --lane 1",
     ["command line: --register: is required: a lane has many registers"]),
    ("register without a lane", {"s.json": staged()}, "explain s.json --seq 0 --register 1",
     ["command line: --lane: is required: a lane has many registers"]),
    ("step below zero", {"s.json": staged()}, "explain s.json --seq 0 --shared-address 0 --step -2",
     ["command line: --step: -2 is below -1, which selects the step with the most filled slots"]),
    ("sequence past the last", {"s.json": staged()}, "explain s.json --seq 1 --shared-address 0",
     ["sequence 1 is outside [0, 1): sequences are numbered by arrival"]),
    ("layer past the last", {"s.json": staged()}, "explain s.json --seq 0 --layer 2 --shared-address 0",
     ["layer 2 is outside [0, 2): layers of the scenario's model"]),
    ("head past the last", {"s.json": staged()}, "explain s.json --seq 0 --head 2 --shared-address 0",
     ["KV head 2 is outside [0, 2): KV heads of the scenario's model"]),
    ("dim past the last", {"s.json": staged()}, "explain s.json --seq 0 --dim 128 --shared-address 0",
     ["dim 128 is outside [0, 128): elements of a head"]),
    ("byte past the tile", {"s.json": staged()}, "explain s.json --seq 0 --shared-address 8192",
     ["shared address 8192 is outside [0, 8192): bytes of the staged tile"]),
    ("byte below zero", {"s.json": staged()}, "explain s.json --seq 0 --shared-address -1",
     ["shared address -1 is outside [0, 8192): bytes of the staged tile"]),
    ("byte past the stage", {"s.json": staged()}, "explain s.json --seq 0 --path lds --shared-address 16384",
     ["LDS byte 16384 is outside [0, 16384): bytes of a stage"]),
    ("byte of a row past the end", {"s.json": staged()}, "explain s.json --seq 0 --tile 1 --shared-address 8191",
     ["row 63 of the tile would be token 127, and sequence 0 has 102 at step 2: the row holds no "
      "token and is masked"]),
    ("tile past the end", {"s.json": staged()}, "explain s.json --seq 0 --tile 2 --shared-address 0",
     ["sequence 0: tile 2 is outside [0, 2): it has 102 tokens at step 2, 64 a tile"]),
    ("lane past a warp", {"s.json": staged()}, "explain s.json --seq 0 --lane 32 --register 0",
     ["lane 32 is outside [0, 32): lanes of a warp"]),
    ("lane past a wave", {"s.json": staged()}, "explain s.json --seq 0 --lane 64 --register 0 --path lds",
     ["--lane 64 is outside [0, 64): lanes of a wave; a warp has 32"]),
    ("register past the last", {"s.json": staged()}, "explain s.json --seq 0 --lane 0 --register 64",
     ["register 64 is outside [0, 64): 32-bit registers of the whole tile"]),
    ("wave past the last", {"s.json": staged()}, "explain s.json --seq 0 --lane 0 --register 0 --wave 4 --path lds",
     ["wave 4 is outside [0, 4): waves of the block"]),
    ("path of no meaning", {"s.json": staged()}, "explain s.json --seq 0 --lane 0 --register 0 --path smem",
     ["command line: --path: 'smem' is not a valid value: choose one of tma, lds: see 'kvscope explain --help'"]),
    ("register of values without fragments",
     {"s.json": staged({"cache": {"dtype": "f32"}})}, "explain s.json --seq 0 --lane 0 --register 0",
     ["mma.sync reads elements of 8 and 16 bits, and these have 32: a kernel converts them"]),
    ("pages that LDS tiles do not divide",
     {"s.json": staged({"cache": {"page_size": 16}})}, "explain s.json --seq 0 --shared-address 0 --path lds",
     ["KVCacheIterator: tile_size: 64 tokens do not divide a page of 16: a tile must be in one page, use a divisor"]),
    ("place in the cache of a rejected request",
     {"s.json": scenario({"requests": {"list": [{"prompt_tokens": 99}, {"prompt_tokens": 3}]}})},
     "explain s.json --seq 0 --shared-address 0",
     ["sequence 0 never stores a token: a rejected request has no cache"]),
    ("V of an MLA cache",
     {"s.json": scenario({"model": {"preset": "tiny", "is_mla": True, "kv_heads": 1, "value_size": 6},
                          "attention": {"scale": 0.3}})},
     "explain s.json --seq 0 --shared-address 0 --kv v",
     ["an MLA cache stores K only, and V is the first elements of K: use --kv k"]),
]

TABLES = [TENSOR_MAP_FILE, TMA_COPY, STAGING_FIELDS, STAGING_COMMANDS, STAGE, WAY_BACK]


class BadStagingInput(unittest.TestCase):
    maxDiff = None

    def check(self, cases):
        # Under the sanitizers, where a start is slow, one of three: all cases of a table end in the same readers.
        for situation, files, command, faults in cases[::3 if program.SLOW_BUILD else 1]:
            with self.subTest(situation=situation, command=command):
                done, before, after = call(files, command)
                self.assertEqual(done.stderr, "".join(f"kvscope: {fault}\n" for fault in faults))
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(after, before)

    def test_files_of_tensor_maps(self):
        self.check(TENSOR_MAP_FILE)

    def test_copies_by_tensor_maps(self):
        self.check(TMA_COPY)

    def test_fields_of_scenarios(self):
        self.check(STAGING_FIELDS)

    def test_swizzles_lds_and_fragments(self):
        self.check(STAGING_COMMANDS)

    def test_tiles_to_stage(self):
        self.check(STAGE)

    def test_places_to_explain(self):
        self.check(WAY_BACK)

    def test_has_at_least_sixty_cases_and_none_twice(self):
        self.assertGreaterEqual(sum(map(len, TABLES)), 60)
        for table in TABLES:
            names = [(situation, command) for situation, _, command, _ in table]
            self.assertEqual(len(set(names)), len(names))

    def test_a_good_input_of_each_kind_is_none_of_them(self):
        # The tables change one thing each: without the change everything passes.
        for files, command in [({"m.json": tensor_map()}, "tma check m.json"),
                               ({"m.json": tensor_map(), "d.npy": npy(np.zeros(2560, np.uint8))},
                                "tma copy m.json --data d.npy --at 0,0"),
                               ({"s.json": scenario()}, CHECK), ({}, "swizzle table 128B"), ({}, "swizzle solve"),
                               ({}, "fragment table mma.m16n8k16.c"),
                               ({"s.json": staged()}, "lds table s.json --what copy"),
                               ({"s.json": staged()}, "stage s.json"),
                               ({"s.json": staged()}, "stage s.json --path lds"),
                               ({"s.json": staged()}, "explain s.json --seq 0 --shared-address 0"),
                               ({"s.json": staged()}, "explain s.json --seq 0 --lane 0 --register 0 --path lds")]:
            with self.subTest(command=command):
                done = call(files, command)[0]
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    program.main()
