#!/usr/bin/python3
"""What a person sees who gave the program something wrong: every message to the letter, exit code 2, nothing on
standard output, and every file as it was before.

    bad_input_test.py --kvscope PROGRAM
"""
import json
import os
import shlex
import sqlite3
import sys
import tempfile
import unittest
import zipfile
import zlib

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import fine, kvscope, safetensors  # noqa: E402


# --- files ------------------------------------------------------------------------------------------------------------

def changed(base, change):
    """`base` with the leaves of `change`; None takes a key out."""
    out = dict(base)
    for key, value in change.items():
        if isinstance(value, dict) and isinstance(out.get(key), dict):
            out[key] = changed(out[key], value)
        elif value is None:
            out.pop(key, None)
        else:
            out[key] = value
    return out


GOOD = {"kvscope_scenario": 1, "name": "good", "model": "tiny", "cache": {"page_size": 4, "blocks": 8},
        "requests": {"list": [{"prompt_tokens": 5, "generate_tokens": 3}]}, "tile": {"BN": 4, "BK": 8}}


def scenario(change=None):
    return json.dumps(changed(GOOD, change or {}))


HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
ROW = "2023-11-16 18:17:03.9799600,4,2\n"


def jsonl(**change):
    row = changed({"timestamp": 0, "input_length": 5, "output_length": 2, "hash_ids": [0]}, change)
    return json.dumps(row) + "\n"


def npz(**arrays):
    def write(path):
        with open(path, "wb") as file:  # a path would be given the ending .npz
            np.savez(file, **arrays)
    return write


def stating(manifest, **arrays):
    """A bundle with a manifest of a valid checksum."""
    def write(path):
        lines = {name: {"dtype": {"f4": "f32", "i4": "i32"}[array.dtype.str[1:]], "shape": list(array.shape),
                        "crc32": f"{zlib.crc32(array.tobytes()):08x}"} for name, array in arrays.items()}
        whole = {"kvscope_bundle": 2, **manifest, "tensors": lines}
        whole["manifest_crc32"] = f"{zlib.crc32(json.dumps(whole, separators=(',', ':')).encode()):08x}"
        npz(**arrays)(path)
        with zipfile.ZipFile(path, "a") as file:
            file.writestr("manifest.json", json.dumps(whole))
    return write


# Two sequences of 5 and 3 keys in pages of 2, two KV heads of 4.
NHD = {"k_cache": np.ones((6, 2, 2, 4), np.float32), "v_cache": np.ones((6, 2, 2, 4), np.float32),
       "block_table": np.array([[5, 0, 3], [1, 2, -1]], np.int32), "cache_seqlens": np.array([5, 3], np.int32),
       "q": np.ones((2, 4, 4), np.float32)}
MAX = {"blocks": np.ones((6, 2, 3, 2, 2, 4), np.float32), "lookup_table": NHD["block_table"].astype(np.uint32),
       "cache_lengths": np.array([4, 2], np.uint32), "q": NHD["q"]}
HND = changed(NHD, {"k_cache": np.ones((6, 2, 2, 4), np.float32), "v_cache": np.ones((6, 2, 2, 4), np.float32)})
FLASHINFER = {"kv_cache": np.ones((6, 2, 2, 2, 4), np.float32), "kv_indptr": np.array([0, 3, 5], np.int32),
              "kv_indices": np.array([5, 0, 3, 1, 2], np.int32), "kv_last_page_len": np.array([1, 1], np.int32),
              "q": NHD["q"]}
VLLM = {"key_cache": np.ones((6, 2, 1, 2, 4), np.float32), "value_cache": np.ones((6, 2, 4, 2), np.float32),
        "block_tables": NHD["block_table"], "seq_lens": NHD["cache_seqlens"], "q": NHD["q"]}
SGLANG = {"k_buffer": np.ones((12, 2, 4), np.float32), "v_buffer": np.ones((12, 2, 4), np.float32),
          "kv_indptr": np.array([0, 5, 8], np.int32), "kv_indices": np.arange(8, dtype=np.int32), "q": NHD["q"]}
MLA = {"kv_cache": np.ones((6, 2, 4), np.float32), "block_table": NHD["block_table"],
       "cache_seqlens": NHD["cache_seqlens"], "q": NHD["q"]}
STATE = {"o": np.ones((2, 4, 8), np.float32), "lse": np.ones((2, 4), np.float32)}


def based(base):
    """STATE with the base of its lse."""
    return stating({"conventions": {"lse_base": base}}, **STATE)


def golden(layout, arrays, change, options=""):
    return ({"in.npz": npz(**changed(arrays, change))},
            f"golden --input in.npz --layout {layout} --out out.npz {options}".strip())


def of_run(name, edit=None):
    """A file that a run of the program made, and what was done to its bytes since."""
    def write(path):
        with open(os.path.join(MADE.name, name), "rb") as file:
            content = file.read()
        with open(path, "wb") as file:
            file.write(edit(content) if edit else content)
    return write


def edited(sql):
    """The trace of a run after an SQL statement."""
    def write(path):
        of_run("trace.kvt")(path)
        db = sqlite3.connect(path)
        db.executescript(sql)
        db.close()
    return write


def flipped_middle(content):
    at = len(content) // 2
    return content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1:]


def flipped_last(content):
    return content[:-1] + bytes([content[-1] ^ 0xFF])


def newer(content):
    return content.replace(b'kvscope_bundle\\":2', b'kvscope_bundle\\":3')


def npy(array):
    def write(path):
        np.save(path, array)
    return write


# Folder with trace.kvt and golden.npz of a run of GOOD, of_tensors.npz, the golden output of NHD in in.npz, and
# merged.npz and merged.safetensors of two STATEs.
MADE = None
CHECK = "scenario check s.json"
CSV = "run s.json --requests r.csv --out out"
JSONL = "run s.json --requests r.jsonl --out out"


# --- cases: situation, files, command line, faults without "kvscope: " ------------------------------------------------
# <size> is that of the recorded trace.

COMMAND_LINE = [
    ("unknown command", {}, "walk",
     ["command line: 'walk' is not a command: "
      "choose one of run, explain, scenario, trace, golden, verify, diagnose, reduce, merge, layout, convert, lint, import, "
      "dtype, ptx, cuda, nvcc, kernels, stage, tma, swizzle, fragment, lds, lab, completion: see 'kvscope --help'"]),
    ("mistyped command", {}, "explian s.json",
     ["command line: 'explian' is not a command: did you mean \"explain\"? See 'kvscope --help'"]),
    ("unknown option", {}, "run s.json --fast",
     ["command line: '--fast' is not an option of 'kvscope run': see 'kvscope run --help'"]),
    ("no scenario", {}, "run",
     ["command line: SCENARIO is required: see 'kvscope run --help'"]),
    ("two scenarios", {}, "run a.json b.json",
     ["command line: 'kvscope run' takes no further argument 'b.json': see 'kvscope run --help'"]),
    ("detail of no meaning", {}, "run s.json --trace all",
     ["command line: --trace: 'all' is not a valid value: choose one of off, steps, full: see 'kvscope run --help'"]),
    ("interval below zero", {}, "run s.json --check-every -1",
     ["command line: --check-every: -1 is below 0: give a number of steps"]),
    ("interval that is no number", {}, "run s.json --check-every often",
     ["command line: --check-every: 'often' is not a valid number: see 'kvscope run --help'"]),
    ("trace without a folder", {"s.json": scenario()}, "run s.json --trace full",
     ["command line: --trace: needs --out DIR: the trace is written there as trace.kvt"]),
    ("explain without a token", {}, "explain s.json --seq 0",
     ["command line: --token: is required, unless a place is given: --shared-address, or --lane with --register"]),
    ("neither K nor V", {}, "explain s.json --seq 0 --token 0 --kv q",
     ["command line: --kv: 'q' is not a valid value: choose one of k, v: see 'kvscope explain --help'"]),
    ("golden of nothing", {}, "golden --out g.npz",
     ["command line: golden: give either a SCENARIO or --input TENSORS, and not both"]),
    ("golden of two things", {}, "golden s.json --input t.npz --layout nhd --out g.npz",
     ["command line: golden: give either a SCENARIO or --input TENSORS, and not both"]),
    ("golden without a file to write", {}, "golden s.json",
     ["command line: --out is required: see 'kvscope golden --help'"]),
    ("tensors without a layout", {}, "golden --input t.npz --out g.npz",
     ["t.npz: cannot be read: No such file or directory"]),  # its manifest may state the layout
    ("requests beside tensors", {}, "golden --input t.npz --layout nhd --requests r.csv --step 3 --out g.npz",
     ["command line: --requests: applies only to SCENARIO: remove it, or pass a SCENARIO instead of --input",
      "command line: --step: applies only to SCENARIO: remove it, or pass a SCENARIO instead of --input"]),
    ("layout beside a scenario", {"s.json": scenario()}, "golden s.json --layout nhd --mask none --out g.npz",
     [f"command line: {option}: applies only to --input: with SCENARIO, mask, scale and types come from the scenario "
      "file; 'kvscope scenario schema' prints its keys" for option in ("--layout", "--mask")]),
    ("layout of no engine", {}, "golden --input t.npz --layout torch --out g.npz",
     ["command line: --layout: 'torch' is not a valid value: choose one of max, nhd, hnd, flashinfer, flashinfer_hnd, "
      "vllm_legacy, sglang, mla, vllm, vllm_hnd, vllm_diffkv, flashinfer_trtllm, trtllm, flashmla_fp8, mla_indptr, "
      "sglang_mla, sglang_req, hf, dense, varlen, mlc, lmcache, lmcache_2td, lmcache_t2d, lmcache_mla, flashmla_sparse: "
      "see 'kvscope golden --help'"]),
    ("mask of no meaning", {}, "golden --input t.npz --layout nhd --mask windowed --out g.npz",
     ["command line: --mask: 'windowed' is not a valid value: choose one of none, causal, sliding_window, chunked: see 'kvscope golden --help'"]),
    ("verify of one file", {}, "verify g.npz",
     ["command line: CANDIDATE is required: see 'kvscope verify --help'"]),
    ("unknown profile", {}, "verify g.npz c.npz --profile numpy",
     ["command line: --profile: 'numpy' is not a valid value: choose one of flashattention, flashinfer, vllm, flashmla, torch: see 'kvscope verify "
      "--help'"]),
    ("merge of one part", {}, "merge a.npz --out m.npz",
     ["command line: PART: At least 2 required but received 1: see 'kvscope merge --help'"]),
    ("part to read from standard input, and no file to write", {}, "merge a.npz -",
     ["command line: --out is required: see 'kvscope merge --help'"]),
    ("the end of the options, and no file to write", {}, "merge a.npz b.npz --",
     ["command line: --out is required: see 'kvscope merge --help'"]),
    ("the end of the options in place of a command", {}, "--",
     ["command line: a command is missing: "
      "choose one of run, explain, scenario, trace, golden, verify, diagnose, reduce, merge, layout, convert, lint, import, "
      "dtype, ptx, cuda, nvcc, kernels, stage, tma, swizzle, fragment, lds, lab, completion: see 'kvscope --help'"]),
    ("option with the beginning of many names", {}, "ptx run k.ptx --max-",
     ["command line: '--max-' is not an option of 'kvscope ptx run': see 'kvscope ptx run --help'"]),
    ("argument of one letter", {}, "scenario check s.json x",
     ["command line: 'kvscope scenario check' takes no further argument 'x': see 'kvscope scenario check --help'"]),
    ("type of a tensor for a mask", {}, "golden --input t.npz --layout nhd --mask half --out g.npz",
     ["command line: --mask: 'half' is not a valid value: choose one of none, causal, sliding_window, chunked"
      ": see 'kvscope golden --help'"]),
    # Values with the words of the parser's messages, which the program rewrites.
    ("number that reads like a choice", {}, "golden --input t.npz --layer '1 not in {2}' --out g.npz",
     ["command line: --layer: '1 not in {2}' is not a valid number: see 'kvscope golden --help'"]),
    ("number that reads like a range", {}, "golden --input t.npz --layer '1 not in range 2' --out g.npz",
     ["command line: --layer: '1 not in range 2' is not a valid number: see 'kvscope golden --help'"]),
    ("seconds that read like a range", {}, "golden --input t.npz --timeout '1 not in range 2' --out g.npz",
     ["command line: --timeout: '1 not in range 2' is not a number of seconds from 0 to 1000000"
      ": see 'kvscope golden --help'"]),
    ("choice that reads like a choice", {}, "golden --input t.npz --layout nhd --mask 'half not in {causal}' --out g.npz",
     ["command line: --mask: 'half not in {causal}' is not a valid value: choose one of none, causal, sliding_window, "
      "chunked: see 'kvscope golden --help'"]),
    ("mistyped command of a command", {}, "trace shwo t.kvt",
     ["command line: 'shwo' is not a command of 'kvscope trace': did you mean \"show\"? See 'kvscope trace --help'"]),
    ("option where a command of a command stands", {}, "trace --json replay t.kvt --step 3",
     ["command line: a command of 'kvscope trace' is missing: choose one of show, diff: see 'kvscope trace --help'"]),
    ("unknown command of a command", {}, "trace replay t.kvt --step 3",
     ["command line: 'replay' is not a command of 'kvscope trace': choose one of show, diff: see 'kvscope trace --help'"]),
    ("kind of no event", {}, "trace show t.kvt --kind token_read",
     ["command line: --kind: 'token_read' is not a valid value: choose one of step_began, step_ended, request_arrived, "
      "request_admitted, request_preempted, request_finished, request_refused, block_allocated, block_shared, "
      "block_copied, block_released, block_evicted, tokens_written, tile_opened, barrier_expects, box_copied, "
      "barrier_completed, lds_copied, wave_waited, fragment_read, chunk_landed, lane_read, tile_memory, tile_page, "
      "tile_map, tile_shared, tile_fragments, bank_phase, register_filled, operand_read, operand_chunk: see 'kvscope "
      "trace show --help'"]),
    ("diff of one trace", {}, "trace diff t.kvt",
     ["command line: B is required: see 'kvscope trace diff --help'"]),
    ("shell of another house", {}, "completion tcsh",
     ["command line: SHELL: 'tcsh' is not a valid value: choose one of bash, zsh, fish: see 'kvscope completion --help'"]),
    ("file where a folder is to be", {"s.json": scenario(), "out": "a file"}, "run s.json --out out",
     ["out: cannot be written: Not a directory"]),
    ("file on the way to a folder", {"s.json": scenario(), "out": "a file"}, "run s.json --out out/deeper",
     ["out/deeper: cannot be written: Not a directory"]),
    ("bundle into no folder", {"s.json": scenario()}, "golden s.json --out no/such/g.npz",
     ["no/such/g.npz: cannot be written: the folder 'no/such' does not exist"]),
    ("bundle of no known ending", {"s.json": scenario()}, "golden s.json --out g.tensors",
     ["g.tensors: ending '.tensors' names no bundle; endings are .safetensors, .npz and .npy"]),
    ("bundle of two tensors as one array",
     {"a.npz": npz(**STATE), "b.npz": npz(**STATE)}, "merge a.npz b.npz --out m.npy",
     ["m.npy: an npy file holds one tensor, this bundle has 2: save as .safetensors or .npz"]),
    ("report into no folder", {"g.npz": of_run("golden.npz")}, "verify g.npz g.npz --junit no/such/j.xml",
     ["no/such/j.xml: cannot be written: the folder 'no/such' does not exist"]),
    ("layer past the last of a golden", {"s.json": scenario()}, "golden s.json --layer 2 --out g.npz",
     ["--layer 2 is outside [0, 2)"]),
    ("step past the last of a golden", {"s.json": scenario()}, "golden s.json --step 3 --out g.npz",
     ["--step 3 is outside [0, 3): steps of the run"]),
]

SCENARIO_FILE = [
    ("no file", {}, CHECK,
     ["s.json: cannot be read: No such file or directory"]),
    ("a folder", {"s.json/x": ""}, CHECK,
     ["s.json: is a folder: name a file in it"]),
    ("empty", {"s.json": ""}, CHECK,
     ["s.json: line 1, column 1: is empty: a JSON value is expected"]),
    ("no JSON", {"s.json": '{\n  "kvscope_scenario": 1,\n  "name" "x"\n}\n'}, CHECK,
     ["s.json: line 3, column 12: syntax error while parsing object separator - unexpected string literal; expected "
      "':'"]),
    ("cut off", {"s.json": '{"kvscope_scenario": 1,\n "cache": {'}, CHECK,
     ["s.json: line 2, column 12: syntax error while parsing object key - unexpected end of input; expected string "
      "literal"]),
    ("key given twice", {"s.json": '{"kvscope_scenario": 1, "seed": 1, "seed": 2}'}, CHECK,
     ["s.json: line 1, column 36: duplicate key \"seed\": keep one of the two"]),
    ("text after the end", {"s.json": scenario() + "\n}"}, CHECK,
     ["s.json: line 2, column 1: syntax error while parsing value - unexpected '}'; expected end of input"]),
    ("no object", {"s.json": "[1]"}, CHECK,
     ["s.json: $: an array instead of an object"]),
    ("no version", {"s.json": scenario({"kvscope_scenario": None})}, CHECK,
     ["s.json: $.kvscope_scenario: missing: write 1, the version of the format"]),
    ("newer version", {"s.json": scenario({"kvscope_scenario": 2})}, CHECK,
     ["s.json: $.kvscope_scenario: version 2 is newer than 1, the newest this program reads: update kvscope"]),
    ("version of the wrong kind", {"s.json": scenario({"kvscope_scenario": "1"})}, CHECK,
     ["s.json: $.kvscope_scenario: the string \"1\" is not a version of the format: write 1"]),
    ("unknown key with a neighbour", {"s.json": scenario({"cache": {"pagesize": 16}})}, CHECK,
     ["s.json: $.cache.pagesize: unknown key: did you mean \"page_size\"?"]),
    ("unknown key without one", {"s.json": scenario({"colour": "red"})}, CHECK,
     ["s.json: $.colour: unknown key: choose one of kvscope_scenario, $schema, name, description, model, cache, "
      "requests, scheduler, attention, tile, lds, focus, seed"]),
    ("several faults at once",
     {"s.json": scenario({"cache": {"page_size": 0, "blocks": "many", "dtype": "fp16"}, "model":
      "llama-3.1-80b", "sheduler": {}, "seed": -1})}, CHECK,
     ["s.json: $.model: \"llama-3.1-80b\" is not one of the presets tiny, llama-3.1-8b, llama-3.1-70b, qwen2.5-7b, "
      "gemma-2-9b, mistral-7b, deepseek-v3: did you mean \"llama-3.1-8b\"?",
      "s.json: $.cache.page_size: 0 is outside [1, 65536]: choose a power of two such as 16",
      "s.json: $.cache.blocks: the string \"many\" instead of an integer in [1, 2147483646]",
      "s.json: $.cache.dtype: \"fp16\" is not one of f32, f16, bf16, e4m3, e5m2: did you mean \"f16\"?",
      "s.json: $.seed: -1 instead of an integer in [0, 18446744073709551615]",
      "s.json: $.sheduler: unknown key: did you mean \"scheduler\"?"]),
    ("several faults of a run",
     {"s.json": scenario({"cache": {"page_size": 0, "blocks": 0}})}, "run s.json --out out --trace full",
     ["s.json: $.cache.page_size: 0 is outside [1, 65536]: choose a power of two such as 16",
      "s.json: $.cache.blocks: 0 is outside [1, 2147483646]: choose the number of pages the pool holds, such as 64"]),
    ("text for a number", {"s.json": scenario({"cache": {"page_size": "16"}})}, CHECK,
     ["s.json: $.cache.page_size: the string \"16\" instead of an integer in [1, 65536]"]),
    ("fraction for an integer", {"s.json": scenario({"cache": {"page_size": 16.5}})}, CHECK,
     ["s.json: $.cache.page_size: 16.5 instead of an integer in [1, 65536]"]),
    ("number for a list", {"s.json": scenario({"requests": {"list": 3}})}, CHECK,
     ["s.json: $.requests.list: 3 instead of an array"]),
    ("list for an object", {"s.json": scenario({"cache": []})}, CHECK,
     ["s.json: $.cache: an array instead of an object"]),
    ("number past 64 bits", {"s.json": scenario({"seed": 99999999999999999999999})}, CHECK,
     ["s.json: line 1, column 202: integer 99999999999999999999999 is above 2^64 - 1: it does not fit in 64 bits"]),
    ("page of nothing", {"s.json": scenario({"cache": {"page_size": 0}})}, CHECK,
     ["s.json: $.cache.page_size: 0 is outside [1, 65536]: choose a power of two such as 16"]),
    ("page past the limit", {"s.json": scenario({"cache": {"page_size": 65537}})}, CHECK,
     ["s.json: $.cache.page_size: 65537 is outside [1, 65536]: choose a power of two such as 16"]),
    ("model without layers", {"s.json": scenario({"model": {"preset": "tiny", "layers": 0}})}, CHECK,
     ["s.json: $.model.layers: 0 is outside [1, 1024]: choose the model's layer count"]),
    ("unknown preset", {"s.json": scenario({"model": "gemma-2-9"})}, CHECK,
     ["s.json: $.model: \"gemma-2-9\" is not one of the presets tiny, llama-3.1-8b, llama-3.1-70b, qwen2.5-7b, "
      "gemma-2-9b, mistral-7b, deepseek-v3: did you mean \"gemma-2-9b\"?"]),
    ("unknown element type", {"s.json": scenario({"cache": {"dtype": "fp8"}})}, CHECK,
     ["s.json: $.cache.dtype: \"fp8\" is not one of f32, f16, bf16, e4m3, e5m2"]),
    ("heads that do not share evenly", {"s.json": scenario({"model": {"preset": "tiny", "query_heads": 5}})}, CHECK,
     ["s.json: $.model.query_heads: 5 query heads cannot share 2 kv heads evenly: choose a multiple of 2"]),
    ("several KV heads of MLA",
     {"s.json": scenario({"model": {"preset": "tiny", "is_mla": True}, "attention": {"scale": 0.1}})},
      CHECK,
     ["s.json: $.model.kv_heads: 2 is not 1: all query heads of an MLA model share one latent row; choose 1, or "
      "\"is_mla\": false"]),
    ("MLA without a scale",
     {"s.json": scenario({"model": {"preset": "tiny", "is_mla": True, "kv_heads": 1, "value_size": 6}})},
      CHECK,
     ["s.json: $.attention.scale: missing: an MLA model has no default, because a row's width is not the query's "
      "before absorption; for DeepSeek-V3 write 0.07216878364870322 (1/sqrt(192)), or 0.1352337788608801 with its "
      "rope scaling"]),
    ("V larger than the row", {"s.json": scenario({"model": {"preset": "tiny", "value_size": 9}})}, CHECK,
     ["s.json: $.model.value_size: 9 is more than the head size 8: choose at most 8"]),
    ("scales on sixteen bits",
     {"s.json": scenario({"cache": {"dtype": "bf16", "quantization": {"granularity": 4}}})}, CHECK,
     ["s.json: $.cache.quantization: a bf16 cache takes no scales: choose dtype e4m3 or e5m2, or leave quantization "
      "out"]),
    ("granule past the head",
     {"s.json": scenario({"cache": {"dtype": "e4m3", "quantization": {"granularity": 9}}})}, CHECK,
     ["s.json: $.cache.quantization.granularity: 9 is outside [1, 8], the elements of a head: choose 8 for one scale "
      "a head"]),
    ("scales without a granularity", {"s.json": scenario({"cache": {"dtype": "e4m3", "quantization": {}}})}, CHECK,
     ["s.json: $.cache.quantization.granularity: missing: choose a number up to head_size, such as 64"]),
    ("continuous without a length", {"s.json": scenario({"cache": {"kind": "continuous"}})}, CHECK,
     ["s.json: $.cache.max_tokens: 0 is outside [1, 2147483647]: a continuous cache reserves that many tokens for "
      "every sequence, so choose the longest length expected"]),
    ("continuous that shares",
     {"s.json": scenario({"cache": {"kind": "continuous", "max_tokens": 64, "prefix_sharing": True}})},
      CHECK,
     ["s.json: $.cache.prefix_sharing: true needs pages to share: choose kind paged, or false"]),
    ("more rows than 32 bits name", {"s.json": scenario({"cache": {"blocks": 2000000000}})}, CHECK,
     ["s.json: $.cache.blocks: 2000000000 blocks of 16 rows (2 slots x 2 layers x 4 tokens) are more rows than a "
      "32-bit row number can name: choose at most 268435455"]),
    ("nobody asks", {"s.json": scenario({"requests": {"list": None}})}, CHECK,
     ["s.json: $.requests: no source of requests: give a list, a generator or a file"]),
    ("no requests", {"s.json": scenario({"requests": None})}, CHECK,
     ["s.json: $.requests: missing: give a list, a generator or a file"]),
    ("empty prompt", {"s.json": scenario({"requests": {"list": [{"prompt_tokens": 5}, {"prompt_tokens": 0}]}})}, CHECK,
     ["s.json: $.requests.list[1].prompt_tokens: 0 is outside [1, 2147483647]: a request has at least one token"]),
    ("prompt left out", {"s.json": scenario({"requests": {"list": [{"generate_tokens": 5}]}})}, CHECK,
     ["s.json: $.requests.list[0].prompt_tokens: missing: a request has at least one token"]),
    ("spans of another length",
     {"s.json": scenario({"requests": {"list": [{"prompt_tokens": 5, "content": [{"content": 1, "length":
      3}]}]}})}, CHECK,
     ["s.json: $.requests.list[0].content: the spans are 3 tokens long together, the prompt 5: make them equal"]),
    ("generator upside down",
     {"s.json": scenario({"requests": {"generator": {"count": 3, "prompt_min": 9, "prompt_max": 5}}})},
      CHECK,
     ["s.json: $.requests.generator.prompt_min: 9 is more than prompt_max, 5: choose at most 5"]),
    ("groups that share nothing",
     {"s.json": scenario({"requests": {"generator": {"count": 3, "prefix_groups": 2}}})}, CHECK,
     ["s.json: $.requests.generator.prefix_tokens: 0 tokens leave 2 prefix groups nothing to share: choose a length"]),
    ("request file of no known ending", {"s.json": scenario({"requests": {"file": {"path": "trace.txt"}}})}, CHECK,
     ["s.json: $.requests.file.path: \"trace.txt\" ends in neither .csv nor .jsonl, the endings of the two formats: rename the file"]),
    ("request file that is not there", {"s.json": scenario({"requests": {"file": {"path": "none.csv"}}})}, CHECK,
     ["none.csv: cannot be read: No such file or directory"]),
    ("window of nothing", {"s.json": scenario({"attention": {"mask": "sliding_window"}})}, CHECK,
     ["s.json: $.attention.window: 0 keys leave a sliding window empty: choose how many keys a query sees, its own included, such as 4096"]),
    ("window without a mask for it", {"s.json": scenario({"attention": {"window": 7}})}, CHECK,
     ["s.json: $.attention.window: 7 has no meaning with mask causal: choose mask sliding_window or chunked, or "
      "leave the window out"]),
    ("soft cap below zero", {"s.json": scenario({"attention": {"soft_cap": -1}})}, CHECK,
     ["s.json: $.attention.soft_cap: -1 is outside (0, 1000000]: choose a cap such as 50, or leave it out"]),
    ("tile across the end of a page", {"s.json": scenario({"tile": {"BN": 6}})}, CHECK,
     ["s.json: $.tile.BN: 6 tokens are not a whole number of 4-token pages: choose 4 or 8"]),
    ("tile that promises too much", {"s.json": scenario({"tile": {"BN": 8, "base_alignment": 3}})}, CHECK,
     ["s.json: $.tile.base_alignment: tiles start every 8 tokens, so not every start is a multiple of 3: "
      "choose a divisor of 8, or 0"]),
    ("layer past the last", {"s.json": scenario({"focus": {"layer": 2}})}, CHECK,
     ["s.json: $.focus.layer: 2 is outside [0, 2): the model has 2 layers, numbered from 0"]),
    ("step past the last", {"s.json": scenario({"focus": {"step": 99}})}, "run s.json",
     ["scenario 'good': $.focus.step: 99 is outside [0, 3): the run has 3 steps"]),
]

REQUEST_FILE = [
    ("no file", {"s.json": scenario()}, "run s.json --requests none.csv --out out",
     ["none.csv: cannot be read: No such file or directory"]),
    ("neither csv nor jsonl", {"s.json": scenario(), "r.txt": HEADER + ROW}, "run s.json --requests r.txt --out out",
     ["r.txt: the name ends in neither .csv nor .jsonl, the endings of the two formats: rename the file"]),
    ("empty csv", {"s.json": scenario(), "r.csv": ""}, CSV,
     ["r.csv: no rows: the first line should be TIMESTAMP,ContextTokens,GeneratedTokens"]),
    ("csv without its header", {"s.json": scenario(), "r.csv": ROW}, CSV,
     ["r.csv: line 1: the header is \"2023-11-16 18:17:03.9799600,4,2\", not "
      "TIMESTAMP,ContextTokens,GeneratedTokens: is this a trace of another kind?"]),
    ("csv of another kind", {"s.json": scenario(), "r.csv": "time,in,out\n" + ROW}, CSV,
     ["r.csv: line 1: the header is \"time,in,out\", not TIMESTAMP,ContextTokens,GeneratedTokens: is this a trace of "
      "another kind?"]),
    ("column too few", {"s.json": scenario(), "r.csv": HEADER + ROW + "2023-11-16 18:17:04,5\n"}, CSV,
     ["r.csv: line 3: 2 columns instead of 3 (TIMESTAMP,ContextTokens,GeneratedTokens): correct or remove the row"]),
    ("bad rows, each with its line",
     {"s.json": scenario(), "r.csv": HEADER + "yesterday,5,1\n" + ROW +
      "2023-11-16 18:17:05,0,-1\n2023-13-16 18:17:05,x,1\n"}, CSV,
     ["r.csv: line 2: TIMESTAMP \"yesterday\" is not a time between 1970 and 2261 such as 2023-11-16 18:17:03.9799600: "
      "correct or remove the row",
      "r.csv: line 4: ContextTokens \"0\" is not an integer in [1, 2147483647]: correct or remove the row",
      "r.csv: line 4: GeneratedTokens \"-1\" is not an integer in [0, 2147483647]: correct or remove the row",
      "r.csv: line 5: TIMESTAMP \"2023-13-16 18:17:05\" is not a time between 1970 and 2261 such as 2023-11-16 "
      "18:17:03.9799600: correct or remove the row",
      "r.csv: line 5: ContextTokens \"x\" is not an integer in [1, 2147483647]: correct or remove the row"]),
    ("empty line between rows", {"s.json": scenario(), "r.csv": HEADER + "\n" + ROW}, CSV,
     ["r.csv: line 2: empty between rows: remove the line"]),
    ("longer than a sequence may be",
     {"s.json": scenario(), "r.csv": HEADER + "2023-11-16 18:17:04,2147483647,1\n"}, CSV,
     ["r.csv: line 2: 2147483647 context and 1 generated tokens are together more than 2147483647: correct or remove "
      "the row"]),
    ("empty jsonl", {"s.json": scenario(), "r.jsonl": ""}, JSONL,
     ["r.jsonl: no rows: every line should be an object with timestamp, input_length, output_length and hash_ids"]),
    ("line that is no JSON", {"s.json": scenario(), "r.jsonl": jsonl() + '{"timestamp": 0,\n' + jsonl()}, JSONL,
     ["r.jsonl: line 2: column 17: syntax error while parsing object key - unexpected end of input; expected string "
      "literal"]),
    ("line that is no object", {"s.json": scenario(), "r.jsonl": jsonl() + "[1, 2]\n"}, JSONL,
     ["r.jsonl: line 2: an array instead of an object: correct or remove the row"]),
    ("length left out", {"s.json": scenario(), "r.jsonl": jsonl(input_length=None)}, JSONL,
     ["r.jsonl: line 1: input_length is missing: correct or remove the row"]),
    ("every field of the wrong kind",
     {"s.json": scenario(), "r.jsonl": jsonl(timestamp=-1, input_length="5", output_length=2.5)}, JSONL,
     ["r.jsonl: line 1: timestamp -1 is not a number of milliseconds in [0, 9000000000000]: correct or remove the row",
      "r.jsonl: line 1: input_length \"5\" is not an integer in [1, 2147483647]: correct or remove the row",
      "r.jsonl: line 1: output_length 2.5 is not an integer in [0, 2147483647]: correct or remove the row"]),
    ("hashes of another length", {"s.json": scenario(), "r.jsonl": jsonl(input_length=600)}, JSONL,
     ["r.jsonl: line 1: 1 hash_ids cover at most 512 tokens, but input_length is 600: give 2"]),
    ("hash below zero", {"s.json": scenario(), "r.jsonl": jsonl(hash_ids=[-1])}, JSONL,
     ["r.jsonl: line 1: hash_ids[0] -1 is not an integer in [0, 4611686018427387903]: correct or remove the row"]),
    ("bad file that the scenario names",
     {"s.json": scenario({"requests": {"file": {"path": "r.csv"}}}), "r.csv": HEADER + "x\n"}, CHECK,
     ["r.csv: line 2: 1 columns instead of 3 (TIMESTAMP,ContextTokens,GeneratedTokens): correct or remove the row"]),
]

BUNDLE = [
    ("no file", {}, "golden --input in.npz --layout nhd --out out.npz",
     ["in.npz: cannot be read: No such file or directory"]),
    ("pickle", {"in.pt": "\x80"}, "golden --input in.pt --layout nhd --out out.npz",
     ["in.pt: '.pt' is a Python pickle, which is code: never read. Convert it where it was made:\n"
      "  import torch; from safetensors.torch import save_file\n"
      "  save_file({k: v.contiguous() for k, v in torch.load('in.pt', weights_only=True).items()}, "
      "'in.safetensors')"]),
    ("another ending", {"in.h5": "x"}, "golden --input in.h5 --layout nhd --out out.npz",
     ["in.h5: ending '.h5' names no bundle; endings are .safetensors, .npz and .npy"]),
    ("npz that is no zip", {"in.npz": "tensors"}, "golden --input in.npz --layout nhd --out out.npz",
     ["in.npz: not a readable zip archive: Not a zip archive"]),
    ("npz cut off",
     {"g.npz": of_run("golden.npz"), "in.npz": of_run("merged.npz", lambda content: content[:-30])},
      "verify g.npz in.npz",
     ["in.npz: not a readable zip archive: Not a zip archive"]),
    ("npz with a byte changed",
     {"g.npz": of_run("golden.npz"), "in.npz": of_run("merged.npz", flipped_middle)}, "verify g.npz in.npz",
     ["in.npz: member 'o.npy': damaged: CRC error"]),
    ("safetensors shorter than a length",
     {"g.npz": of_run("golden.npz"), "in.safetensors": "abc"}, "verify g.npz in.safetensors",
     ["in.safetensors: 3 bytes long; the header's length alone takes 8: truncated"]),
    ("safetensors that is something else",
     {"g.npz": of_run("golden.npz"), "in.safetensors": "MZ" * 40}, "verify g.npz in.safetensors",
     ["in.safetensors: header: 6506956324894235213 bytes long, more than 100000000: not a safetensors file"]),
    ("safetensors cut off",
     {"g.npz": of_run("golden.npz"), "in.safetensors": safetensors({"o": ("F32", [1, 1, 4],
      bytes(16))})[:-8]}, "verify g.npz in.safetensors",
     ["in.safetensors: tensor 'o': data_offsets [0, 16] run past the 8 bytes of data: truncated"]),
    ("safetensors with a byte changed",
     {"g.npz": of_run("golden.npz"), "in.safetensors": of_run("merged.safetensors", flipped_last)},
      "verify g.npz in.safetensors",
     ["in.safetensors: tensor 'o': the manifest says crc32 \"74caf475\", the file has \"59c81bf8\": the file was "
      "changed or damaged"]),
    ("safetensors of a newer version",
     {"g.npz": of_run("golden.npz"), "in.safetensors": of_run("merged.safetensors", newer)},
      "verify g.npz in.safetensors",
     ["in.safetensors: manifest: bundle version 3 is newer than 2, the newest this program reads: update kvscope"]),
    ("shape and offsets that differ",
     {"g.npz": of_run("golden.npz"), "in.safetensors": safetensors({"o": ("F32", [9, 9, 9], bytes(8))})},
      "verify g.npz in.safetensors",
     ["in.safetensors: tensor 'o': shape [9, 9, 9] of f32 needs 2916 bytes, but data_offsets [0, 8] hold 8"]),
    ("tensors that overlap",
     {"g.npz": of_run("golden.npz"), "in.safetensors": safetensors({"a": ("U8", [8], bytes(8)), "b": ("U8",
      [8], bytes(8))}).replace(b"[8, 16]", b"[4, 12]")[:-4]}, "verify g.npz in.safetensors",
     ["in.safetensors: tensor 'b': data_offsets [4, 12] overlap tensor 'a', which ends at 8"]),
    ("tensor of an unknown type",
     {"g.npz": of_run("golden.npz"), "in.safetensors": safetensors({"o": ("F4", [8], bytes(8))})},
      "verify g.npz in.safetensors",
     ["in.safetensors: tensor 'o': type 'F4' is not read; types are F64 F32 F16 BF16 F8_E4M3 F8_E5M2 F8_E8M0 I8 to "
      "I64, U8 to U64, BOOL"]),
    ("no golden", {"in.npz": npz(**STATE)}, "verify in.npz in.npz",
     ["in.npz: golden 'o': is f32 [2, 4, 8], but a golden output is f64 [query, head, dim]"]),
    ("candidate without an output",
     {"g.npz": of_run("golden.npz"), "c.npz": npz(x=STATE["lse"])}, "verify g.npz c.npz",
     ["c.npz: candidate 'o': is missing; the golden has f64 [1, 4, 8]. The candidate has x: save the kernel's output "
      "as o, out or output"]),
    ("candidate in an array file, of another shape",
     {"g.npz": of_run("golden.npz"), "x.npy": npy(np.ones((1, 3, 8)))}, "verify g.npz x.npy",
     ["x.npy: candidate 'x': holds f64 [1, 3, 8], but the golden's output o is f64 [1, 4, 8]: pass the kernel's "
      "output, as f64, f32, f16 or bf16"]),
    ("candidate in an array file of whole numbers",
     {"g.npz": of_run("golden.npz"), "table.npy": npy(np.ones((1, 4, 8), np.int32))},
     "verify g.npz table.npy",
     ["table.npy: candidate 'table': holds i32 [1, 4, 8], but the golden's output o is f64 [1, 4, 8]: pass "
      "the kernel's output, as f64, f32, f16 or bf16"]),
    ("candidate in an array file of another order of axes",
     {"g.npz": of_run("golden.npz"), "x.npy": npy(np.ones((4, 8, 1)))}, "verify g.npz x.npy",
     ["x.npy: candidate 'o': has shape [4, 8, 1], the golden [1, 4, 8]: save it in the order and shape "
      "[query, head, dim]"]),
    ("queries in place of the candidate, of a golden without inputs",
     {"g.npz": of_run("golden.npz"), "query.npy": npy(np.ones((1, 4, 8), np.float32))}, "verify g.npz query.npy",
     ["query.npy: candidate 'query': is f32 [1, 4, 8] and has the name of the queries, an input: pass the kernel's output, "
      "or rename the file to o.npy if it is the output"]),
    ("queries in place of the candidate, of a golden with inputs",
     {"g.npz": of_run("golden.npz"), "q.npy": npy(np.ones((1, 4, 8), np.float32))}, "verify g.npz q.npy",
     ["q.npy: candidate 'o': is missing; the golden has f64 [1, 4, 8]. The candidate has q: a .npy file has the name of its "
      "tensor, so rename the file to o.npy"]),
    ("candidate in an array file called like another tensor",
     {"g.npz": of_run("golden.npz"), "lse.npy": npy(np.ones((1, 4)))}, "verify g.npz lse.npy",
     ["lse.npy: candidate 'o': is missing; the golden has f64 [1, 4, 8]. The candidate has lse: a .npy file has the name "
      "of its tensor, so rename the file to o.npy"]),
    ("golden and candidate exchanged",
     {"g.npz": of_run("golden.npz"), "c.npz": npz(out=STATE["o"])}, "verify c.npz g.npz",
     ["c.npz: is not a golden bundle, but 'g.npz' is one: exchange the two files"]),
    ("inputs of a kernel in the place of the golden",
     {"in.npz": npz(q=STATE["lse"]), "c.npz": npz(o=STATE["o"])}, "verify in.npz c.npz",
     ["in.npz: is not a golden bundle: it has no tensor 'o' and none of 'c.npz'. If it holds the inputs of the kernel, "
      "compute the golden output with `kvscope golden --input in.npz --out in_golden.npz`"]),
    ("tensors in the place of a scenario", {"t.npz": npz(o=STATE["o"])}, "golden t.npz --out g.npz",
     ["t.npz: is not a scenario (JSON). It is a file of tensors: pass it as `kvscope golden --input t.npz`, or to kvscope "
      "lint, layout detect or convert"]),
    ("tensors in the place of a scenario, with their options", {"t.npz": npz(o=STATE["o"])},
     "golden t.npz --layout nhd --out g.npz",
     ["t.npz: is not a scenario (JSON). It is a file of tensors: pass it as `kvscope golden --input t.npz`, or to kvscope "
      "lint, layout detect or convert"]),
    *((f"golden output in the place of its inputs, {command.split()[0]}", {"g.npz": of_run("of_tensors.npz")}, command,
       ["g.npz: is a golden bundle, which does not hold the tensors that it was computed from: pass their file, "
        "'in.npz'"]) for command in ("lint g.npz", "lint g.npz --layout nhd", "convert g.npz --to hnd --out x.npz",
                                     "golden --input g.npz --out x.npz")),
    ("layout of an output", {"c.npz": npz(**STATE)}, "layout detect c.npz",
     ["c.npz: has no tensor of any layout, but lse, o: name the tensors as 'kvscope layout show LAYOUT' prints, or pass "
      "the file that the kernel reads"]),
    ("bit patterns without their type", {"g.npz": of_run("golden.npz"), "c.npz": npz(o=np.ones((1, 4, 8), np.uint16))},
     "verify g.npz c.npz",
     ["c.npz: candidate 'o': is u16; an output is f64, f32, f16 or bf16: for bit patterns of bf16, save it as o_bf16, of "
      "f16 as o_f16"]),
    ("kernel in the place of a scenario", {"k.ptx": ".version 8.0"}, "run k.ptx",
     ["k.ptx: is not a scenario (JSON). It is a compiled kernel: run it with `kvscope ptx run k.ptx`"]),
    ("recorded traffic in the place of a scenario", {"hour.csv": "TIMESTAMP,ContextTokens,GeneratedTokens\n"}, "run hour.csv",
     ["hour.csv: is not a scenario (JSON). It is recorded traffic, which a scenario runs: `kvscope run SCENARIO --requests "
      'hour.csv`, or "requests": {"file": {"path": "hour.csv"}} in the scenario']),
    ("candidate with two outputs",
     {"g.npz": of_run("golden.npz"),
      "c.npz": npz(o=STATE["o"], out=STATE["o"], lse=STATE["lse"], softmax_lse=STATE["lse"])}, "verify g.npz c.npz",
     ["c.npz: candidate 'o': is stored under 2 names, o and out: keep one of these tensors",
      "c.npz: candidate 'lse': is stored under 2 names, lse and softmax_lse: keep one of these tensors"]),
    ("candidate of another shape",
     {"g.npz": of_run("golden.npz"), "c.npz": npz(o=np.ones((3, 4, 7), np.float32))}, "verify g.npz c.npz",
     ["c.npz: candidate 'o': has shape [3, 4, 7], the golden [1, 4, 8]"]),
    ("candidate of integers",
     {"g.npz": of_run("golden.npz"), "c.npz": npz(o=np.ones((2, 4, 8), np.int32))}, "verify g.npz c.npz",
     ["c.npz: candidate 'o': has shape [2, 4, 8], the golden [1, 4, 8]",
      "c.npz: candidate 'o': is i32; an output is f64, f32, f16 or bf16"]),
    ("exact tensor that neither file has", {"g.npz": of_run("golden.npz")}, "verify g.npz g.npz --exact rows",
     ["g.npz: candidate 'rows': is to be compared bit for bit, but the golden does not have it"]),
    ("two bundles at fault", {"g.npz": "x", "c.npz": "y"}, "verify g.npz c.npz",
     ["g.npz: not a readable zip archive: Not a zip archive",
      "c.npz: not a readable zip archive: Not a zip archive"]),
    ("part with errors of o alone",
     {"a.npz": npz(**STATE), "b.npz": npz(**STATE, o_error=STATE["lse"])}, "merge a.npz b.npz --out m.npz",
     ["b.npz: lse_error: is missing: o and lse have errors"]),
    ("part with an error of each element",
     {"a.npz": npz(**STATE), "b.npz": npz(**STATE, o_error=STATE["o"], lse_error=STATE["lse"])},
     "merge a.npz b.npz --out m.npz", ["b.npz: o_error: is f32 [2, 4, 8], but lse is [2, 4]: an error of each row"]),
    ("part with errors of lse alone",
     {"a.npz": npz(**STATE), "b.npz": npz(**STATE, lse_error=STATE["lse"])}, "merge a.npz b.npz --out m.npz",
     ["b.npz: o_error: is missing: o and lse have errors"]),
    ("part with integers as errors",
     {"a.npz": npz(**STATE), "b.npz": npz(**STATE, o_error=np.ones((2, 4), np.int32), lse_error=STATE["lse"])},
     "merge a.npz b.npz --out m.npz", ["b.npz: o_error: is i32 [2, 4], but lse is [2, 4]: an error of each row"]),
    ("part with the errors of a whole golden",
     {"a.npz": npz(**STATE), "b.npz": npz(**STATE, golden_error=np.zeros((2, 4, 2)))}, "merge a.npz b.npz --out m.npz",
     ["b.npz: golden_error: states the errors of a golden by their sources, which merge does not read: make the part with "
      "--outputs-only, or with --accuracy strict"]),
    ("part of integers",
     {"a.npz": npz(**STATE), "b.npz": npz(o=np.ones((2, 4, 8), np.int32), lse=STATE["lse"])},
     "merge a.npz b.npz --out m.npz", ["b.npz: o: is i32 [2, 4, 8], not a float tensor of 3 axes"]),
    ("part whose lse has fewer heads",
     {"a.npz": npz(**STATE), "b.npz": npz(o=STATE["o"], lse=STATE["lse"][:, :3])}, "merge a.npz b.npz --out m.npz",
     ["b.npz: lse: is f32 [2, 3], but o is f32 [2, 4, 8]: the first two axes must be equal"]),
    ("part whose lse has fewer queries",
     {"a.npz": npz(**STATE), "b.npz": npz(o=STATE["o"], lse=STATE["lse"][:1])}, "merge a.npz b.npz --out m.npz",
     ["b.npz: lse: is f32 [1, 4], but o is f32 [2, 4, 8]: the first two axes must be equal"]),
    ("parts of two bases",
     {"a.npz": npz(**STATE), "b.npz": based("two"), "c.npz": based("natural"), "d.npz": based("natural")},
     "merge a.npz b.npz c.npz d.npz --out m.npz",
     ["merge: c.npz: states lse base natural, but b.npz states two",
      "merge: d.npz: states lse base natural, but b.npz states two"]),
    ("part of another base than the option's", {"a.npz": npz(**STATE), "b.npz": based("two")},
     "merge a.npz b.npz --lse-base natural --out m.npz",
     ["merge: b.npz: states lse base two, but --lse-base states natural"]),
    ("part of an unknown base", {"a.npz": npz(**STATE), "b.npz": based("2")}, "merge a.npz b.npz --out m.npz",
     ["b.npz: manifest 'conventions.lse_base': is \"2\", not one of natural, two"]),
    ("part whose base is a number", {"a.npz": npz(**STATE), "b.npz": based(2)}, "merge a.npz b.npz --out m.npz",
     ["b.npz: manifest 'conventions.lse_base': is 2, not one of natural, two"]),
    # The other members: tests/core/golden/golden_inputs_test.cpp.
    ("manifest with an unknown mask",
     {"in.npz": stating({"layout": "nhd", "conventions": {"mask": "sliding", "scale": "0.5"}}, **NHD)},
     "golden --input in.npz --out g.npz",
     ["in.npz: manifest 'conventions.mask': is \"sliding\", not one of none, causal, sliding_window, chunked",
      "in.npz: manifest 'conventions.scale': is \"0.5\", not a number"]),
    ("manifest with a mistyped convention",
     {"in.npz": stating({"layout": "nhd", "conventions": {"softcap": 30}}, **NHD)},
     "golden --input in.npz --out g.npz",
     ["in.npz: manifest 'conventions.softcap': is 30, which is not read: one of alibi, alignment, bias, chunk, empty_row, "
      "lse_base, mask, scale, sinks, soft_cap, window_left, window_right"]),
    ("manifest of a head without elements",
     {"in.npz": stating({"layout": "nhd", "inputs": {"head_size": 0}}, **NHD)}, "convert in.npz --to hnd --out g.npz",
     ["in.npz: manifest 'inputs.head_size': is 0, not an integer of at least 1"]),
    ("part without its lse", {"a.npz": npz(**STATE), "b.npz": npz(o=STATE["o"])}, "merge a.npz b.npz --out m.npz",
     ["b.npz: lse: is missing: a partial state has o [query, head, dim] and lse [query, head]"]),
    ("part of the wrong rank",
     {"a.npz": npz(**STATE), "b.npz": npz(o=STATE["o"], lse=STATE["o"])}, "merge a.npz b.npz --out m.npz",
     ["b.npz: lse: is f32 [2, 4, 8], not a float tensor of 2 axes"]),
    ("parts of different shapes",
     {"a.npz": npz(**STATE), "b.npz": npz(o=STATE["o"][:1], lse=STATE["lse"][:1])},
      "merge a.npz b.npz --out m.npz",
      ["b.npz: o: has shape [1, 4, 8], but a.npz has [2, 4, 8]: "
       "parts of one attention have the same queries, heads and dims"]),
    ("candidate over its golden", {"s.json": scenario()}, "golden s.json --out g.npz --candidate ./g.npz",
     ["command line: --candidate: './g.npz' is also given as --out, and would be replaced: pass another file"]),
    ("a window no mask looks at", {"in.npz": npz(**NHD)},
     "golden --input in.npz --layout nhd --window-left 3 --value-size 4 --out g.npz",
     ["command line: --window-left: has no effect with --mask causal: remove it, or pass --mask sliding_window",
      "command line: --value-size: has no effect with --layout nhd: remove it, or pass --layout mla or --layout "
      "max"]),
]

# The axes of K and V, and the tensors of the file.
AXES = "golden --input in.npz --out g.npz"
K_AXES, V_AXES = "--axes 'k=[block, slot, head, dim]'", "--axes 'v=[block, slot, head, dim]'"
FIT = "in.npz: --layout: the tensors fit 'nhd' and 'hnd': pass --layout nhd or --layout hnd"
WITHOUT_V = ["in.npz: --axes: describes K only, and the file has v_cache: pass the axes of V too, such as --axes 'v=[block, "
             "slot, head, dim]'", FIT]
IS_MLA = ["in.npz: --value-size: is missing: an MLA row of 4 elements is K, and its first elements are V: pass their number, "
          "from 1 to 4",
          "in.npz: --scale: is missing: engines scale MLA by 1/sqrt(576) or by 1/sqrt(192): pass the scale of your kernel"]
STATED = "but the manifest of 'in.npz' states"
ANOTHER = f"{STATED} layout '{{}}': leave the option out. If the manifest is wrong, save the tensors again without it"
INTEGERS = changed(NHD, {name: np.ones((6, 2, 2, 4), np.int32) for name in ("k_cache", "v_cache")})
DESCRIBED = [
    ("word that is no part", {}, f"{AXES} --axes 'foo=[block, slot, head, dim]'",
     ["command line: --axes: 'foo' is not a part of a cache: write k=[...], v=[...] or kv=[...]"]),
    ("name of a tensor in place of its part", {}, f"{AXES} --axes 'V_pool=[block, slot, head, dim]'",
     ["command line: --axes: 'V_pool' is not a part of a cache: write v=[...], or V_pool:v=[...] for a tensor of that "
      "name"]),
    ("name of a tensor of both", {}, f"{AXES} --axes 'kv_pool=[block, kv, slot, head, dim]'",
     ["command line: --axes: 'kv_pool' is not a part of a cache: write kv=[...], or kv_pool:kv=[...] for a tensor of "
      "that name"]),
    ("one unknown axis", {}, f"{AXES} --axes 'k=[block, slot, quark, dim]' {V_AXES}",
     ["command line: --axes 'k=[block, slot, quark, dim]': 'quark' is not an axis: choose of block, slot, token, seq, "
      "position, head, dim, dim/x, x, latent, rope, kv, layer, 1, group, row, head*dim, block*kv, dim+vdim, query"]),
    ("part described twice", {}, f"{AXES} {K_AXES} {K_AXES}",
     ["command line: --axes: k= is given twice: describe each part of the cache once"]),
    ("scales without the name of their tensor", {}, f"{AXES} {K_AXES} --axes 'k_scales=[block, slot, head, group]'",
     ["command line: --axes: k_scales= needs the name of the tensor: write NAME:k_scales=[...]"]),
    ("scales of no group", {}, f"{AXES} {K_AXES} {V_AXES} --axes 's:k_scales=[block, slot, head]'",
     ["command line: --axes 's:k_scales=[block, slot, head]': exactly one axis of a head's elements is needed: dim, dim/x "
      "with x, latent, rope, row, head*dim, dim+vdim or, for scales, group"]),
    ("K and its scales alone", {}, f"{AXES} {K_AXES} --axes 's:k_scales=[block, slot, head, group]'",
     ["command line: --axes: no tensor holds v: pass its axes too, such as --axes 'v=[block, slot, head, dim]'"]),
    ("K alone", {"in.npz": npz(**NHD)}, f"{AXES} {K_AXES}", WITHOUT_V),
    ("K alone under a name", {"in.npz": npz(**NHD)}, f"{AXES} --axes 'c:k=[block, slot, head, dim]'", WITHOUT_V),
    ("K alone of a file without V", {"in.npz": npz(**changed(NHD, {"v_cache": None}))}, f"{AXES} {K_AXES}", IS_MLA),
    ("K alone of a file whose V is left out", {"in.npz": npz(**NHD)}, f"{AXES} {K_AXES} --ignore v_cache", IS_MLA),
    ("axes of other tensors", {"in.npz": npz(**NHD)},
     f"{AXES} --axes 'k=[block, head, dim]' --axes 'v=[block, head, dim]'",
     ["in.npz: k_cache: has shape [6, 2, 2, 4], but layout 'axes' needs [N, H, D]",
      "in.npz: v_cache: has shape [6, 2, 2, 4], but layout 'axes' needs [N, H, D]", FIT]),
    ("layout and axes", {"in.npz": npz(**NHD)}, f"{AXES} --layout nhd {K_AXES}",
     ["command line: --layout: and --axes both describe the layout: pass one of them"]),
    ("type of bit patterns for floats", {"in.npz": stating({"layout": "nhd", "inputs": {}}, **NHD)},
     f"{AXES} --cache-dtype i8",
     [f"command line: --cache-dtype: is i8, {STATED} f32: leave the option out"]),
    ("type of bit patterns for integers", {"in.npz": stating({"layout": "nhd", "inputs": {}}, **INTEGERS)},
     f"{AXES} --cache-dtype bf16", [f"command line: --cache-dtype: is bf16, {STATED} i32: leave the option out"]),
    ("layout of a manifest that describes none", {"in.npz": stating({"layout": "mine"}, **NHD)}, f"{AXES} --layout nhd",
     [f"command line: --layout: is 'nhd', {ANOTHER.format('mine')}"]),
    ("axes of a manifest that describes none", {"in.npz": stating({"layout": "mine"}, **NHD)},
     f"{AXES} {K_AXES} {V_AXES}",
     [f"command line: --axes: describes another layout, {ANOTHER.format('mine')}"]),
    ("axes of a manifest of another layout", {"in.npz": stating({"layout": "mla"}, **NHD)}, f"{AXES} {K_AXES} {V_AXES}",
     [f"command line: --axes: describes another layout, {ANOTHER.format('mla')}"]),
    *[("layout that is a number", {"in.npz": stating({"layout": 5}, **NHD)}, command,
       ["in.npz: manifest 'layout': is 5, not a text"])
      for command in (AXES, AXES + " --layout nhd", "convert in.npz --to hnd --out g.npz", "lint in.npz")],
]

OF_TENSORS = {"g.npz": of_run("of_tensors.npz"), "c.npz": npz(o=np.ones((2, 4, 4), np.float32))}
RUN_GOLDEN = {"g.npz": of_run("golden.npz"), "c.npz": of_run("golden.npz")}
INPUTS = [
    ("golden whose inputs are gone", OF_TENSORS, "diagnose g.npz c.npz",
     ["g.npz: inputs: 'in.npz', from which it was computed, is missing: pass the file with --input"]),
    ("golden that names no inputs", {"g.npz": of_run("part.npz"), "c.npz": npz(o=STATE["o"])}, "diagnose g.npz c.npz",
     ["g.npz: inputs: are not named in its manifest: pass the file that it was computed from with --input"]),
    ("golden of another computation", {"g.npz": npz(x=STATE["o"]), "c.npz": npz(x=STATE["o"])}, "diagnose g.npz c.npz",
     ["g.npz: golden 'o': is missing: only an attention output is diagnosed. Make the golden with `kvscope golden`"]),
    ("small case of a golden whose inputs are gone", OF_TENSORS, "reduce g.npz c.npz",
     ["g.npz: inputs: 'in.npz', from which it was computed, is missing: pass the file with --input"]),
    ("small case of a golden that names no inputs", {"g.npz": of_run("part.npz"), "c.npz": npz(o=STATE["o"])},
     "reduce g.npz c.npz",
     ["g.npz: inputs: are not named in its manifest: pass the file that it was computed from with --input"]),
    ("small case as one tensor", RUN_GOLDEN, "reduce g.npz c.npz --out small.npy",
     ["command line: --out: '.npy' holds one tensor: pass a .npz or .safetensors file"]),
    *[(f"command without {{{word}}}", RUN_GOLDEN, f"reduce g.npz c.npz --command 'x {{{other}}}'",
       ["command line: --command: needs the words {inputs} and {candidate}: the file that the kernel reads, and the one "
        "that it writes"]) for word, other in [("inputs", "candidate"), ("candidate", "inputs")]],
    *[(f"time limit of {seconds} s", RUN_GOLDEN,
       f"reduce g.npz c.npz --command 'x {{inputs}} {{candidate}}' --time-limit {seconds}",
       [f"command line: --time-limit: {seconds} s is outside (0, 1e6)"]) for seconds in ["0", "-1", "1000000"]],
    ("inputs that are of another computation", {**OF_TENSORS, "in.npz": npz(q=NHD["q"])},
     "verify g.npz c.npz --input in.npz --profile vllm",
     ["in.npz: k_cache: is missing; layout 'nhd' needs k_cache [N, P, H, D]",
      "in.npz: v_cache: is missing; layout 'nhd' needs v_cache [N, P, H, D]",
      "in.npz: block_table: is missing; layout 'nhd' needs block_table [B, columns]",
      "in.npz: cache_seqlens: is missing; layout 'nhd' needs cache_seqlens [B]"]),
]

# A command that is given a file must not replace it, whatever path names it.
G = {"g.npz": of_run("golden.npz")}
PARTS = {"a.npz": npz(**STATE), "b.npz": npz(**STATE)}


def replaced(option, path, other):
    return [f"command line: {option}: '{path}' is also given as {other}, and would be replaced: pass another file"]


REPLACED = [
    ("tensors by their golden", {"in.npz": npz(**NHD)}, "golden --input in.npz --layout nhd --out ./in.npz",
     replaced("--out", "./in.npz", "--input")),
    ("tensors by an example of a candidate", {"in.npz": npz(**NHD)},
     "golden --input in.npz --layout nhd --out g.npz --candidate in.npz",
     replaced("--candidate", "in.npz", "--input")),
    ("recorded requests", {"s.json": scenario(), "r.npz": HEADER + ROW},
     "golden s.json --requests r.npz --out r.npz", replaced("--out", "r.npz", "--requests")),
    ("cache by a converted one", {"in.npz": npz(**NHD)}, "convert in.npz --from nhd --to hnd --out in.npz",
     replaced("--out", "in.npz", "FILE")),
    ("part by the merged output", PARTS, "merge a.npz b.npz --out b.npz", replaced("--out", "b.npz", "PART")),
    ("candidate by a report", {**G, "c.npz": npz(**STATE)}, "verify g.npz c.npz --junit c.npz",
     replaced("--junit", "c.npz", "CANDIDATE")),
    ("golden by a small case", {**G, "c.npz": npz(**STATE)}, "reduce g.npz c.npz --out g.npz",
     replaced("--out", "g.npz", "GOLDEN")),
    # The file that `reduce` writes without --out.
    ("candidate by a small case of no name", {**G, "reduced.npz": npz(o=np.zeros((1, 4, 8), np.float32))},
     "reduce g.npz reduced.npz",
     ["command line: --out: 'reduced.npz' is read by this command, and would be replaced: pass another file"]),
    ("array by its conversion", {"x.npy": npy(np.ones(3, np.float32))}, "dtype x.npy ./x.npy --from f32 --to bf16",
     replaced("OUT", "./x.npy", "IN")),
    ("two outputs in one file", {"m.json": "{}", "s.json": scenario()}, "stage s.json --out o.npy --registers ./o.npy",
     replaced("--registers", "./o.npy", "--out")),
    ("folder in the place of a golden", {"s.json": scenario(), "g.npz/x": ""}, "golden s.json --out g.npz",
     ["g.npz: is a folder: name a file in it"]),
]

# An option without an effect is an error: its user believes that it has one.
IN = {"in.npz": npz(**NHD)}
ON_NHD = "golden --input in.npz --layout nhd --out g.npz"
IDLE = [
    ("head size of a layout that has an axis for it", IN, ON_NHD + " --head-size 4",
     ["command line: --head-size: has no effect with --layout nhd: remove it, or pass a layout with one axis for heads "
      "and elements, such as lmcache"]),
    ("sizes that neither layout uses", IN,
     "convert in.npz --from nhd --to hnd --value-size 4 --head-size 4 --out g.npz",
     [f"command line: {option}: has no effect with layouts 'nhd' and 'hnd': remove it"
      for option in ("--value-size", "--head-size")]),
    ("table of a layout that has none", {}, "layout show hf --token 2 --table 1,2",
     ["command line: --table: has no effect with layout 'hf', which has no table: remove it"]),
    ("accuracy of no output", IN, ON_NHD + " --inputs-only --accuracy fast",
     ["command line: --accuracy: has no effect with --inputs-only: remove it, or pass it when you compute the golden "
      "output"]),
    ("an idle option beside a file that is not there", {}, "golden --input in.npz --layout nhd --value-size 4 --out g.npz",
     ["command line: --value-size: has no effect with --layout nhd: remove it, or pass --layout mla or --layout max"]),
    ("output of no output", IN, ON_NHD + " --inputs-only --outputs-only",
     ["command line: --outputs-only: has no effect with --inputs-only: remove it, or pass it when you compute the golden "
      "output"]),
    ("type of no candidate", IN, ON_NHD + " --candidate-dtype bf16",
     ["command line: --candidate-dtype requires --candidate: see 'kvscope golden --help'"]),
    ("window of no size", IN, ON_NHD + " --mask sliding_window",
     ["command line: --mask: sliding_window needs the size of the window: pass --window-left N, the number of keys "
      "before the query's position that it sees"]),
    ("chunk of no size", IN, ON_NHD + " --mask chunked",
     ["command line: --mask: chunked needs the length of a chunk: pass --chunk N, in tokens"]),
    ("budget of a fixed tolerance", {**G, "c.npz": npz(**STATE)}, "verify g.npz c.npz --profile torch --explain",
     ["command line: --explain: has no effect with --profile, whose tolerance is no sum of rounding errors: remove one "
      "of the two"]),
    ("rounding of a fixed tolerance", {**G, "c.npz": npz(**STATE)}, "verify g.npz c.npz --profile torch --p-dtype f16",
     ["command line: --profile excludes --p-dtype: see 'kvscope verify --help'"]),
    ("shape beside a cache", IN, "lint in.npz --layout nhd --cache-shape 6,2,2,4",
     ["command line: --cache-shape: has no effect: the file has the cache, k_cache [6, 2, 2, 4]; remove the option"]),
    ("time limit without a command", {**G, "c.npz": npz(**STATE)}, "reduce g.npz c.npz --time-limit 5",
     ["command line: --time-limit requires --command: see 'kvscope reduce --help'"]),
    ("output of a wider type than its file", {**G, "c.npz": npz(o=np.ones((1, 4, 8), np.float16))},
     "verify g.npz c.npz --candidate-dtype f32",
     ["c.npz: candidate 'o': is f16, which cannot hold the f32 output that --candidate-dtype states: save the output in "
      "the type that the kernel wrote, and remove the option"]),
    ("arithmetic compared bit for bit", {**G, "c.npz": npz(o=np.ones((1, 4, 8), np.float32))},
     "verify g.npz c.npz --exact o",
     ["c.npz: candidate 'o': is f32 [1, 4, 8], the golden f64 [1, 4, 8]: data that a kernel only moves has the same type "
      "and shape; compare the result of arithmetic without --exact"]),
]

LAYOUTS = [
    ("nhd without a value cache", *golden("nhd", NHD, {"v_cache": None}),
     ["in.npz: v_cache: is missing; layout 'nhd' needs v_cache [N, P, H, D]"]),
    ("nhd without anything", *golden("nhd", {}, {"x": np.ones(1)}),
     ["in.npz: k_cache: is missing; layout 'nhd' needs k_cache [N, P, H, D]",
      "in.npz: v_cache: is missing; layout 'nhd' needs v_cache [N, P, H, D]",
      "in.npz: block_table: is missing; layout 'nhd' needs block_table [B, columns]",
      "in.npz: cache_seqlens: is missing; layout 'nhd' needs cache_seqlens [B]",
      "in.npz: q: is missing; it is [T, Hq, D] with query_offsets [B + 1], or [B, queries, Hq, D]",
      "in.npz: x: is not a tensor of layout 'nhd': choose one of k_cache, v_cache, block_table, cache_seqlens, q, "
      "query_offsets, k_scale, v_scale, kv_scale, sm_scale, sinks, alibi_slopes, q_lens, custom_mask, packed_custom_mask, "
      "mask_indptr, tree_mask, attn_mask, k_block_scale, v_block_scale. Pass --ignore x to leave it out"]),
    ("the names of the layout are listed once", *golden("nhd", NHD, {"x": np.ones(1), "y": np.ones(1)}),
     ["in.npz: x: is not a tensor of layout 'nhd': choose one of k_cache, v_cache, block_table, cache_seqlens, q, "
      "query_offsets, k_scale, v_scale, kv_scale, sm_scale, sinks, alibi_slopes, q_lens, custom_mask, packed_custom_mask, "
      "mask_indptr, tree_mask, attn_mask, k_block_scale, v_block_scale. Pass --ignore x to leave it out",
      "in.npz: y: is not a tensor of layout 'nhd' either. Pass --ignore y to leave it out"]),
    ("queries with their axes exchanged", *golden("nhd", NHD, {"q": np.ones((4, NHD["q"].shape[0], 4), np.float32)}),
     [f"in.npz: q: has 4 rows for {NHD['q'].shape[0]} sequences: add query_offsets [B + 1]; if q is [Hq, B, D], transpose "
      f"it to [{NHD['q'].shape[0]}, 4, 4]"]),
    ("nhd of the wrong rank", *golden("nhd", NHD, {"k_cache": np.ones((6, 2, 8), np.float32)}),
     ["in.npz: k_cache: has shape [6, 2, 8], but layout 'nhd' needs [N, P, H, D]"]),
    ("K and V of different shapes", *golden("nhd", NHD, {"v_cache": np.ones((6, 2, 1, 4), np.float32)}),
     ["in.npz: v_cache: is f32 [6, 2, 1, 4], but k_cache is f32 [6, 2, 2, 4]: all axes but the last must be alike"]),
    ("caches of integers",
     *golden("nhd", NHD, {"k_cache": np.ones((6, 2, 2, 4), np.uint16), "v_cache": np.ones((6, 2, 2, 4),
      np.uint16)}),
     ["in.npz: k_cache: is u16: which floats are its bit patterns? Pass --cache-dtype bf16, or end its name in _bf16 or "
      "_f16",
      "in.npz: v_cache: is u16: which floats are its bit patterns? Pass --cache-dtype bf16, or end its name in _bf16 or "
      "_f16"]),
    ("bytes in the place of floats", *golden("nhd", NHD, {"q": np.ones((2, 4, 4), np.uint8)}),
     ["in.npz: q: is u8: which floats are its bit patterns? Pass --query-dtype e4m3, or end its name in _e4m3 or _e5m2"]),
    ("queries of bytes, stated as bf16", *golden("nhd", NHD, {"q": np.ones((2, 4, 4), np.uint8)}, "--query-dtype bf16"),
     ["in.npz: q: is u8, which holds no bf16 bit patterns"]),
    ("integers in the place of floats", *golden("nhd", NHD, {"q": np.ones((2, 4, 4), np.int32)}),
     ["in.npz: q: is i32: allowed are floats, and their bit patterns in u8 or u16"]),
    ("table of floats", *golden("nhd", NHD, {"block_table": np.ones((2, 3))}),
     ["in.npz: block_table: is f64; an index tensor is i32, u32, i64 or u64"]),
    ("table with a row too few", *golden("nhd", NHD, {"block_table": NHD["block_table"][:1]}),
     ["in.npz: block_table: has 1 rows, but cache_seqlens has 2 entries"]),
    ("table with a column too few", *golden("nhd", NHD, {"block_table": NHD["block_table"][:, :2]}),
     ["in.npz: cache_seqlens[0]: sequence 0 has 5 keys, which are 3 pages of 2 tokens, but block_table has 2 columns"]),
    ("entry past the blocks", *golden("nhd", NHD, {"block_table": np.array([[5, 6, 3], [1, -1, 0]], np.int32)}),
     ["in.npz: block_table[0, 1]: is 6, outside the 6 blocks; sequence 0 has 5 keys and reads its page 1",
      "in.npz: block_table[1, 1]: is -1, outside the 6 blocks; sequence 1 has 3 keys and reads its page 1"]),
    ("length below zero", *golden("nhd", NHD, {"cache_seqlens": np.array([5, -3], np.int32)}),
     ["in.npz: cache_seqlens[1]: is -3, not a length in [0, 2^40]"]),
    ("query of another head size", *golden("nhd", NHD, {"q": np.ones((2, 4, 5), np.float32)}),
     ["in.npz: q: has shape [2, 4, 5], but a head of the cache has 4 elements"]),
    ("query heads that do not share evenly", *golden("nhd", NHD, {"q": np.ones((2, 3, 4), np.float32)}),
     ["in.npz: q: has 3 heads, not a multiple of the 2 kv heads"]),
    ("query rows without offsets", *golden("nhd", NHD, {"q": np.ones((3, 4, 4), np.float32)}),
     ["in.npz: q: has 3 rows for 2 sequences: add query_offsets [B + 1]"]),
    ("offsets that fall",
     *golden("nhd", NHD, {"q": np.ones((3, 4, 4), np.float32), "query_offsets": np.array([0, 4, 3])}),
     ["in.npz: query_offsets: must be 3 entries, rising from 0 to the 3 rows of q"]),
    ("slopes of another number", *golden("nhd", NHD, {"alibi_slopes": np.ones(3)}),
     ["in.npz: alibi_slopes: has 3 entries for 4 query heads"]),
    ("scale that is none", *golden("hnd", HND, {}, "--scale nan"), ["in.npz: --scale: nan is not a finite number"]),
    ("caches of no elements",
     *golden("nhd", NHD, {"k_cache": np.ones((6, 2, 2, 0), np.float32), "v_cache": np.ones((6, 2, 2, 0),
      np.float32)}),
     ["in.npz: k_cache: has shape [6, 2, 2, 0]: every extent must be at least 1",
      "in.npz: v_cache: has shape [6, 2, 2, 0]: every extent must be at least 1"]),
    ("sequences that are not those of q", *golden("nhd", NHD, {"q": np.ones((3, 1, 4, 4), np.float32)}),
     ["in.npz: q: has shape [3, 1, 4, 4], but there are 2 sequences"]),
    ("length past the table by far", *golden("nhd", NHD, {"cache_seqlens": np.array([2 ** 40, 3])}),
     ["in.npz: cache_seqlens[0]: sequence 0 has 1099511627776 keys, which are 549755813888 pages of 2 tokens, but "
      "block_table has 3 columns"]),
    ("bits that the array cannot hold", *golden("nhd", NHD, {}, "--cache-dtype bf16"),
     ["in.npz: k_cache: is f32: --cache-dtype bf16 is for bit patterns that are stored as u8, i8 or u16; remove it",
      "in.npz: v_cache: is f32: --cache-dtype bf16 is for bit patterns that are stored as u8, i8 or u16; remove it"]),
    # As wide as bf16: reading the bits of one type as the other gives a golden output of other numbers.
    ("f16 read as bf16",
     *golden("nhd", NHD, {"k_cache": np.ones((6, 2, 2, 4), np.float16), "v_cache": np.ones((6, 2, 2, 4), np.float16),
                          "q": np.ones((2, 1, 4, 4), np.float16)}, "--cache-dtype bf16 --query-dtype bf16"),
     ["in.npz: k_cache: is f16: --cache-dtype bf16 is for bit patterns that are stored as u8, i8 or u16; remove it",
      "in.npz: v_cache: is f16: --cache-dtype bf16 is for bit patterns that are stored as u8, i8 or u16; remove it",
      "in.npz: q: is f16: --query-dtype bf16 is for bit patterns that are stored as u8 or u16; remove it"]),
    ("no query", *golden("nhd", NHD, {"q": None}),
     ["in.npz: q: is missing; it is [T, Hq, D] with query_offsets [B + 1], or [B, queries, Hq, D]"]),
    ("heads where the tokens of a page are",
     *golden("hnd", NHD, {"k_cache": np.ones((6, 3, 2, 4), np.float32), "v_cache": np.ones((6, 3, 2, 4),
      np.float32)}),
     ["in.npz: q: has 4 heads, not a multiple of the 3 kv heads",
      "in.npz: --layout: the tensors fit 'nhd': pass --layout nhd"]),
    ("max with three slots", *golden("max", MAX, {"blocks": np.ones((6, 3, 3, 2, 2, 4), np.float32)}),
     ["in.npz: blocks: has shape [6, 3, 3, 2, 2, 4]: axis 1 is 2 (K and V) or 1 (MLA)"]),
    ("layer past the last", *golden("max", MAX, {}, "--layer 3"),
     ["in.npz: --layer: is 3, but blocks has layers 0 to 2: pass one of them"]),
    ("new tokens without a page", *golden("max", MAX, {"cache_lengths": np.array([6, 2], np.uint32)}),
     ["in.npz: cache_lengths[0]: sequence 0 has 7 keys (6 cached, 1 new), which are 4 pages of 2 tokens, but "
      "lookup_table has 3 columns"]),
    ("entry past the blocks", *golden("max", MAX, {"lookup_table": np.array([[5, 6, 3], [1, 2, 9]], np.uint32)}),
     ["in.npz: lookup_table[0, 1]: is 6, outside the 6 blocks; sequence 0 has 5 keys and reads its page 1"]),
    ("scales of another shape",
     *golden("max", MAX, {"scales": np.ones((6, 2, 3, 2, 2, 3), np.float32)}, "--granularity 2"),
     ["in.npz: scales: has shape [6, 2, 3, 2, 2, 3], but blocks [6, 2, 3, 2, 2, 4] at granularity 2 need [6, 2, 3, "
      "2, 2, 2]"]),
    ("flashinfer without two slots",
     *golden("flashinfer", FLASHINFER, {"kv_cache": np.ones((6, 1, 2, 2, 4), np.float32)}),
     ["in.npz: kv_cache: has shape [6, 1, 2, 2, 4]: axis 1 is 2, K and V"]),
    ("last page longer than a page",
     *golden("flashinfer", FLASHINFER, {"kv_last_page_len": np.array([3, 0], np.int32)}),
     ["in.npz: kv_last_page_len[0]: is 3, but a last page holds 1 to 2 tokens: a kernel would read past the page",
      "in.npz: kv_last_page_len[1]: is 0, but a last page holds 1 to 2 tokens: a kernel would read past the page"]),
    ("pages that fall", *golden("flashinfer", FLASHINFER, {"kv_indptr": np.array([0, 3, 2], np.int32)}),
     ["in.npz: kv_indptr[2]: is 2 after 3; it must not fall"]),
    ("pages past the indices", *golden("flashinfer", FLASHINFER, {"kv_indptr": np.array([0, 3, 6], np.int32)}),
     ["in.npz: kv_indptr: ends at 6, but kv_indices has 5 entries"]),
    ("pages that start late", *golden("flashinfer", FLASHINFER, {"kv_indptr": np.array([1, 3, 5], np.int32)}),
     ["in.npz: kv_indptr[0]: is 1; the first sequence starts at 0"]),
    ("index past the pages", *golden("flashinfer", FLASHINFER, {"kv_indices": np.array([5, 0, 3, 1, 6], np.int32)}),
     ["in.npz: kv_indices[4]: is 6, outside the 6 blocks; sequence 1 has 3 keys and reads its page 1"]),
    ("vllm_legacy with V like K", *golden("vllm_legacy", VLLM, {"value_cache": np.ones((6, 2, 2, 4), np.float32)}),
     ["in.npz: value_cache: is f32 [6, 2, 2, 4], but key_cache f32 [6, 2, 1, 2, 4] needs f32 [6, 2, 4, 2]"]),
    ("vllm_legacy entry past the blocks",
     *golden("vllm_legacy", VLLM, {"block_tables": np.array([[5, 0, 7], [1, 2, -1]], np.int32)}),
     ["in.npz: block_tables[0, 2]: is 7, outside the 6 blocks; sequence 0 has 5 keys and reads its page 2"]),
    ("sglang slot past the last",
     *golden("sglang", SGLANG, {"kv_indices": np.array([0, 1, 2, 3, 12, 5, 6, 7], np.int32)}),
     ["in.npz: kv_indices[4]: is 12, outside the 12 blocks; sequence 0 has 5 keys and reads its page 4"]),
    ("sglang of the wrong rank", *golden("sglang", SGLANG, {"k_buffer": np.ones((12, 8), np.float32)}),
     ["in.npz: k_buffer: has shape [12, 8], but layout 'sglang' needs [slots, H, D]"]),
    ("mla without a scale", *golden("mla", MLA, {}, "--value-size 3"),
     ["in.npz: --scale: is missing: engines scale MLA by 1/sqrt(576) or by 1/sqrt(192): pass the scale of your kernel"]),
    ("mla without the size of V", *golden("mla", MLA, {}, "--scale 0.5"),
     ["in.npz: --value-size: is missing: an MLA row of 4 elements is K, and its first elements are V: pass their "
      "number, from 1 to 4"]),
    ("max of MLA without the size of V",
     {"in.npz": npz(**{**MAX, "blocks": MAX["blocks"][:, :1]})},
     "golden --input in.npz --layout max --scale 0.5 --out g.npz",
     ["in.npz: --value-size: is missing: an MLA row of 4 elements is K, and its first elements are V: pass their "
      "number, from 1 to 4"]),
    ("V larger than an mla row", *golden("mla", MLA, {}, "--scale 0.5 --value-size 5"),
     ["in.npz: --value-size: 5 is outside [1, 4], a head's elements"]),
    ("mla parts that differ",
     *golden("mla", MLA, {"kv_cache": None, "ckv": np.ones((6, 2, 3), np.float32), "kpe": np.ones((5, 2,
      1), np.float32)}, "--scale 0.5"),
     ["in.npz: kpe: is f32 [5, 2, 1], but ckv is f32 [6, 2, 3]: blocks, pages and type must be alike"]),
    ("window that ends before it begins", *golden("hnd", HND, {}, "--mask sliding_window --window-left -2"),
     ["in.npz: --window-left: -2 keys: give at least 0, or -1 for no limit"]),
    ("chunks of nothing", *golden("hnd", HND, {}, "--mask chunked --chunk 0"),
     ["in.npz: --chunk: 0 positions: a chunk holds at least 1"]),
    ("query offsets without entries", *golden("nhd", NHD, {"query_offsets": np.zeros(0, int)}),
     ["in.npz: query_offsets: must be 3 entries, rising from 0 to the 2 rows of q"]),
    ("chunks of less than nothing", *golden("hnd", HND, {}, "--mask chunked --chunk -1"),
     ["in.npz: --chunk: -1 positions: a chunk holds at least 1"]),
    ("soft cap of nothing", *golden("hnd", HND, {}, "--soft-cap 0"),
     ["in.npz: --soft-cap: 0 is not a finite number above 0: leave it out for no cap"]),
]

TRACE_FILE = [
    ("no file", {}, "trace show t.kvt",
     ["t.kvt: cannot be read: No such file or directory"]),
    ("empty", {"t.kvt": ""}, "trace show t.kvt",
     ["t.kvt: is not a trace: it does not begin as an SQLite database does"]),
    ("no database", {"t.kvt": "a trace, they said" * 40}, "trace show t.kvt",
     ["t.kvt: is not a trace: it does not begin as an SQLite database does"]),
    ("another database", {"t.kvt": edited("PRAGMA application_id = 7")}, "trace show t.kvt",
     ["t.kvt: is not a trace: its application id is 0x00000007, a trace has 0x6b767472"]),
    ("newer version", {"t.kvt": edited("PRAGMA user_version = 5")}, "trace show t.kvt",
     ["t.kvt: format version 5 is newer than this program's 4: update kvscope"]),
    ("cut off", {"t.kvt": of_run("trace.kvt", lambda content: content[:-1])}, "trace show t.kvt",
     ["t.kvt: is cut short: <size - 1> of <size> bytes are there"]),
    ("cut off beside itself", {"t.kvt": of_run("trace.kvt", lambda content: content[:-1])}, "trace diff t.kvt t.kvt",
     ["t.kvt: is cut short: <size - 1> of <size> bytes are there"]),
    ("step that is not in it", {"t.kvt": of_run("trace.kvt")}, "trace show t.kvt --step 3",
     ["command line: --step: 3 is not in the trace: it has 3 steps, and -1 is what came before the first"]),
    ("step before the first but one", {"t.kvt": of_run("trace.kvt")}, "trace show t.kvt --step -2",
     ["command line: --step: -2 is not in the trace: it has 3 steps, and -1 is what came before the first"]),
    ("event taken out", {"t.kvt": edited("DELETE FROM block_allocated WHERE block = 1")}, "trace show t.kvt --verify",
     ["t.kvt: event 4: is in no table"]),
    ("number changed",
     {"t.kvt":
      edited("UPDATE tokens_written SET tokens = 4 WHERE tokens = 5; UPDATE tokens_written SET slot = slot + 1")},
      "trace show t.kvt --verify",
     ["t.kvt: step 0: checksum is 2848250159 instead of 3881306205: the file was changed or damaged"]),
    ("index changed",
     {"t.kvt": edited("UPDATE step SET first_event = first_event + 1 WHERE row = 2")}, "trace show t.kvt",
     ["t.kvt: table 'step', row 2: begins at event 9 instead of 8"]),
    ("table too many", {"t.kvt": edited("CREATE TABLE notes (text)")}, "trace show t.kvt",
     ["t.kvt: table 'notes': does not belong to a trace"]),
    ("table too few", {"t.kvt": edited("DROP TABLE block_copied")}, "trace show t.kvt",
     ["t.kvt: table 'block_copied': is missing"]),
    ("trigger",
     {"t.kvt": edited("CREATE TRIGGER t AFTER INSERT ON step BEGIN DELETE FROM step; END")},
      "trace show t.kvt",
     ["t.kvt: trigger 't': does not belong to a trace"]),
    ("good one beside a bad one", {"a.kvt": of_run("trace.kvt"), "b.kvt": "x"}, "trace diff a.kvt b.kvt",
     ["b.kvt: is not a trace: it does not begin as an SQLite database does"]),
]

QUESTION = [
    ("sequence past the last", {"s.json": scenario()}, "explain s.json --seq 1 --token 0",
     ["sequence 1 is outside [0, 1): sequences are numbered by arrival"]),
    ("sequence below zero", {"s.json": scenario()}, "explain s.json --seq -1 --token 0",
     ["sequence -1 is outside [0, 1): sequences are numbered by arrival"]),
    ("token past the last", {"s.json": scenario()}, "explain s.json --seq 0 --token 8",
     ["sequence 0: token 8 is outside [0, 8): it has 5 prompt and 3 generated tokens"]),
    ("last token, never stored", {"s.json": scenario()}, "explain s.json --seq 0 --token 7",
     ["sequence 0: token 7 is never stored: the last token that is generated has no successor that would read it, "
      "and a rejected request stores none"]),
    ("token of a rejected request",
     {"s.json": scenario({"requests": {"list": [{"prompt_tokens": 99}, {"prompt_tokens": 3}]}})},
      "explain s.json --seq 0 --token 7",
     ["sequence 0: token 7 is never stored: the last token that is generated has no successor that would read it, "
      "and a rejected request stores none"]),
    ("layer past the last", {"s.json": scenario()}, "explain s.json --seq 0 --token 0 --layer 2",
     ["layer 2 is outside [0, 2): layers of the scenario's model"]),
    ("head past the last", {"s.json": scenario()}, "explain s.json --seq 0 --token 0 --head 2",
     ["KV head 2 is outside [0, 2): each serves 2 query heads"]),
    ("dim past the last", {"s.json": scenario()}, "explain s.json --seq 0 --token 0 --dim 8",
     ["dim 8 is outside [0, 8): elements of a head"]),
    ("step past the last", {"s.json": scenario()}, "explain s.json --seq 0 --token 0 --step 3",
     ["step 3 is outside [0, 3): the run is over by then"]),
    ("step before the sequence came",
     {"s.json": scenario({"requests": {"list": [{"prompt_tokens": 5, "generate_tokens": 3}, {"arrival_us":
      12000, "prompt_tokens": 2}]}})}, "explain s.json --seq 1 --token 0 --step 0",
     ["sequence 1 is not in the batch of step 0, which holds 0: choose one of these, or another step"]),
    ("token that is not there yet", {"s.json": scenario()}, "explain s.json --seq 0 --token 6 --step 0",
     ["sequence 0: token 6 is outside [0, 5): step 0 has 0 cached and 5 new tokens of it"]),
    ("V of an MLA cache",
     {"s.json": scenario({"model": {"preset": "tiny", "is_mla": True, "kv_heads": 1, "value_size": 6},
      "attention": {"scale": 0.3}})}, "explain s.json --seq 0 --token 0 --kv v",
     ["an MLA cache stores K only, and V is the first elements of K: use --kv k"]),
    ("token that is no number", {"s.json": scenario()}, "explain s.json --seq 0 --token last",
     ["command line: --token: 'last' is not a valid number: see 'kvscope explain --help'"]),
]

# Words of frameworks and of other engines, and of the pages: the message names kvscope's.
def not_a_value(option, word, ours, command):
    return [f"command line: {option}: '{word}' is not a valid value: did you mean \"{ours}\"? See 'kvscope {command} --help'"]


def axes(*texts):
    return "golden --input in.npz --out g.npz " + " ".join(f"--axes {shlex.quote(text)}" for text in texts)


OTHER_WORDS = [
    ("layout in capitals", IN, "golden --input in.npz --layout NHD --out g.npz", not_a_value("--layout", "NHD", "nhd", "golden")),
    *((f"type called {word}", IN, ON_NHD + f" --cache-dtype {word}", not_a_value("--cache-dtype", word, ours, "golden"))
      for word, ours in [("bfloat16", "bf16"), ("half", "f16"), ("fp8", "e4m3"), ("float8_e4m3fn", "e4m3"),
                         ("fp8_e5m2", "e5m2"), ("BF16", "bf16"), ("int8", "i8")]),
    ("base called 2", IN, ON_NHD + " --lse-base 2", not_a_value("--lse-base", "2", "two", "golden")),
    ("number outside of a range", G, "verify g.npz g.npz --ex2-error 2",
     ["command line: --ex2-error: 2 is not a number from 0 to 1: see 'kvscope verify --help'"]),
    ("word in the place of a number", G, "verify g.npz g.npz --tile-keys abc",
     ["command line: --tile-keys: abc is not a number from 1 to 1073741824: see 'kvscope verify --help'"]),
    ("layout in the place of an expression", {}, "layout nhd",
     ["command line: EXPR: 'nhd' is the layout of a cache: 'kvscope layout show nhd' prints it"]),
    ("no command of layout", {}, "layout detetc",
     ["command line: EXPR: 'detetc' is no layout expression such as '(8,4):(4,1)', and no command of 'kvscope layout': did "
      "you mean \"detect\"?"]),
    ("axes by the words of the pages", IN, axes("k=[block, page_row, head, head_dim]", "v=[N, P, H, D]"),
     ["command line: --axes 'k=[block, page_row, head, head_dim]': 'page_row' is not an axis: did you mean \"slot\"?",
      "command line: --axes 'k=[block, page_row, head, head_dim]': 'head_dim' is not an axis: did you mean \"dim\"?",
      "command line: --axes 'v=[N, P, H, D]': 'N' is not an axis: did you mean \"block\"?",
      "command line: --axes 'v=[N, P, H, D]': 'P' is not an axis: did you mean \"slot\"?",
      "command line: --axes 'v=[N, P, H, D]': 'H' is not an axis: did you mean \"head\"?",
      "command line: --axes 'v=[N, P, H, D]': 'D' is not an axis: did you mean \"dim\"?"]),
    ("axes of no meaning", IN, axes("k=[block, quark, gluon, dim]"),
     ["command line: --axes 'k=[block, quark, gluon, dim]': 'quark' and 'gluon' are not axes: choose of block, slot, token, "
      "seq, position, head, dim, dim/x, x, latent, rope, kv, layer, 1, group, row, head*dim, block*kv, dim+vdim, query"]),
    ("K described twice", IN, axes("k=[block, slot, head, dim]", "k=[block, slot, head, dim]"),
     ["command line: --axes: k= is given twice: describe each part of the cache once"]),
    ("part in capitals, and the name of a tensor", IN, axes("K=[block, slot, head, dim]", "v_cache=[block, slot, head, dim]"),
     ["command line: --axes: 'K' is not a part of a cache: write k=[...], or K:k=[...] for a tensor of that name",
      "command line: --axes: 'v_cache' is not a part of a cache: write v=[...], or v_cache:v=[...] for a tensor of that name"]),
    ("scales without a name", IN, axes("k=[block, slot, head, dim]", "k_scales=[block]"),
     ["command line: --axes: k_scales= needs the name of the tensor: write NAME:k_scales=[...]"]),
    ("V without K", IN, axes("v=[block, slot, head, dim]"),
     ["command line: --axes: no tensor holds k: pass its axes too, such as --axes 'k=[block, slot, head, dim]'"]),
    ("K without V", IN, axes("k=[block, slot, head, dim]"),
     ["in.npz: --axes: describes K only, and the file has v_cache: pass the axes of V too, such as --axes 'v=[block, slot, "
      "head, dim]'",
      "in.npz: --layout: the tensors fit 'nhd' and 'hnd': pass --layout nhd or --layout hnd"]),
    ("folder in the place of tensors", {"tensors/x": ""}, "golden --input tensors --layout nhd --out g.npz",
     ["tensors: is a folder: name a file in it"]),
    ("file without an ending", {"tensors": "x"}, "golden --input tensors --layout nhd --out g.npz",
     ["tensors: has no ending; endings of bundles are .safetensors, .npz and .npy"]),
    ("several tensors cut off",
     {"in.safetensors": safetensors({"a": ("F32", [4], bytes(16)), "b": ("F32", [4], bytes(16)),
                                     "c": ("F32", [4], bytes(16))})[:-24]}, "golden --input in.safetensors --layout nhd --out g.npz",
     ["in.safetensors: tensor 'b': data_offsets [16, 32] run past the 24 bytes of data: truncated"]),
]

SMALL_COMMANDS = [
    ("program in place of PTX", {"app": "\x7fELF\x02"}, "ptx run app",
     ["app: is a compiled program or library (ELF), not PTX: run a program with `kvscope cuda ./app`, or compile its "
      "source with nvcc -ptx -lineinfo"]),
    ("program in a folder in place of PTX", {"bin/app": "\x7fELF\x02"}, "ptx survey bin/app",
     ["bin/app: is a compiled program or library (ELF), not PTX: run a program with `kvscope cuda bin/app`, or compile "
      "its source with nvcc -ptx -lineinfo"]),
    ("layout cut off", {}, "layout (8,4):(4",
     ["layout \"(8,4):(4\": column 9: expected ',' or ')'\n  (8,4):(4\n          ^"]),
    ("layout of two ranks", {}, "layout (8,4):(4,1,2)",
     ["layout \"(8,4):(4,1,2)\": column 7: stride (4,1,2) is a tuple of 3 where shape (8,4) is a tuple of 2\n  "
      "(8,4):(4,1,2)\n        ^"]),
    ("layout of nothing", {}, "layout ''",
     ["command line: EXPR: the value is empty: write one, or leave it out: see 'kvscope layout --help'"]),
    ("layout of a space", {}, "layout ' '",
     ["layout \" \": column 2: expected a number or '('\n   \n   ^"]),
    ("extent of nothing", {}, "layout (8,0)",
     ["layout \"(8,0)\": column 4: a shape is 1 or more\n  (8,0)\n     ^"]),
    ("swizzle of the wrong size", {}, "layout 'Sw<3,3,2> o (8,64):(64,1)'",
     ["layout \"Sw<3,3,2> o (8,64):(64,1)\": column 1: shift 2 moves 3 bits onto themselves: use at least 3 or at "
      "most -3\n  Sw<3,3,2> o (8,64):(64,1)\n  ^"]),
    ("array that is not there", {}, "dtype none.npy out.npy --from f32 --to bf16",
     ["none.npy: cannot be read: No such file or directory"]),
    ("type of no meaning", {}, "dtype in.npy out.npy --from f33 --to bf16",
     ["command line: --from: 'f33' is not a type that can be converted: use one of f64 f32 f16 bf16 e4m3 e5m2 e8m0 "
      "i8 u8 i16 u16 i32 u32 i64 u64"]),
    ("array that is none", {"in.npy": "1, 2, 3"}, "dtype in.npy out.npy --from f32 --to bf16",
     ["in.npy: does not begin with \\x93NUMPY: not an npy file; write it with numpy.save"]),
    ("array into no folder",
     {"in.npy": npy(np.ones(3, np.float32))}, "dtype in.npy no/such/out.npy --from f32 --to bf16",
     ["no/such/out.npy: cannot be written: the folder 'no/such' does not exist"]),
]


# --- running --------------------------------------------------------------------------------------------------------

def listing(folder):
    """The folders, and the files with their bytes."""
    found = []
    for where, folders, files in os.walk(folder):
        found += [(os.path.relpath(os.path.join(where, name), folder), None) for name in folders]
        for name in files:
            with open(os.path.join(where, name), "rb") as file:
                found.append((os.path.relpath(file.name, folder), file.read()))
    return sorted(found)


def call(files, command):
    """What the program did with these files, and what is in its folder before and after."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if callable(content):
                content(path)
            else:
                with open(path, "wb") as file:
                    file.write(content if isinstance(content, bytes) else content.encode("latin-1"))
        before = listing(folder)
        done = kvscope(*shlex.split(command), cwd=folder)
        return done, before, listing(folder)


def setUpModule():
    global MADE
    MADE = tempfile.TemporaryDirectory()
    with open(os.path.join(MADE.name, "s.json"), "w", encoding="utf-8") as file:
        file.write(scenario())
    fine("run", "s.json", "--out", ".", "--trace", "full", cwd=MADE.name)
    fine("golden", "s.json", "--out", "golden.npz", cwd=MADE.name)
    npz(**NHD)(os.path.join(MADE.name, "in.npz"))
    fine("golden", "--input", "in.npz", "--layout", "nhd", "--out", "of_tensors.npz", cwd=MADE.name)
    npz(**STATE)(os.path.join(MADE.name, "part.npz"))
    for ending in ["npz", "safetensors"]:
        fine("merge", "part.npz", "part.npz", "--out", f"merged.{ending}", cwd=MADE.name)


def tearDownModule():
    MADE.cleanup()


class BadInput(unittest.TestCase):
    maxDiff = None

    def check(self, cases):
        # Under the sanitizers, where a start is slow, one of three: all cases of a table end in the same readers.
        for situation, files, command, faults in cases[::3 if program.SLOW_BUILD else 1]:
            with self.subTest(situation=situation, command=command):
                done, before, after = call(files, command)
                size = os.path.getsize(os.path.join(MADE.name, "trace.kvt"))
                said = "".join(f"kvscope: {fault}\n" for fault in faults)
                said = said.replace("<size - 1>", str(size - 1)).replace("<size>", str(size))
                self.assertEqual(done.stderr, said)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(after, before)

    def test_command_lines(self):
        self.check(COMMAND_LINE)

    def test_words_of_other_programs(self):
        self.check(OTHER_WORDS)

    def test_options_without_an_effect(self):
        self.check(IDLE)

    def test_files_that_would_be_replaced(self):
        self.check(REPLACED)

    def test_scenario_files(self):
        self.check(SCENARIO_FILE)

    def test_request_files(self):
        self.check(REQUEST_FILE)

    def test_bundles(self):
        self.check(BUNDLE)

    def test_tensors_of_every_layout(self):
        self.check(LAYOUTS)

    def test_axes(self):
        self.check(DESCRIBED)

    def test_inputs_of_goldens(self):
        self.check(INPUTS)

    def test_trace_files(self):
        self.check(TRACE_FILE)

    def test_questions(self):
        self.check(QUESTION)

    def test_small_commands(self):
        self.check(SMALL_COMMANDS)

    def test_has_at_least_a_hundred_cases_and_none_twice(self):
        tables = [COMMAND_LINE, SCENARIO_FILE, REQUEST_FILE, BUNDLE, LAYOUTS, DESCRIBED, INPUTS, TRACE_FILE, QUESTION, SMALL_COMMANDS]
        self.assertGreater(sum(map(len, tables)), 100)
        for table in tables:
            names = [(situation, command) for situation, _, command, _ in table]
            self.assertEqual(len(set(names)), len(names))

    def test_a_good_input_of_each_kind_is_none_of_them(self):
        # The tables change one thing each: without the change everything passes.
        for files, command in [({"s.json": scenario()}, "run s.json"), ({"s.json": scenario()}, CHECK),
                               ({"s.json": scenario(), "r.csv": HEADER + ROW}, "run s.json --requests r.csv"),
                               ({"s.json": scenario(), "r.jsonl": jsonl() + jsonl()}, "run s.json --requests r.jsonl"),
                               ({"s.json": scenario()}, "explain s.json --seq 0 --token 6"),
                               ({"g.npz": of_run("golden.npz")}, "verify g.npz g.npz"),
                               ({"t.kvt": of_run("trace.kvt")}, "trace show t.kvt --verify"),
                               ({"a.npz": npz(**STATE), "b.npz": npz(**STATE)}, "merge a.npz b.npz --out m.npz"),
                               golden("nhd", NHD, {}), golden("hnd", HND, {}), golden("max", MAX, {}, "--layer 2"),
                               golden("flashinfer", FLASHINFER, {}), golden("vllm_legacy", VLLM, {}),
                               golden("sglang", SGLANG, {}), golden("mla", MLA, {}, "--scale 0.5 --value-size 3")]:
            with self.subTest(command=command):
                done = call(files, command)[0]
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    program.main()
