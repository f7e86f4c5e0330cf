#!/usr/bin/python3
"""Files whose manifest states how to read them: what each option of golden, lint and convert does there. The options are found
from the help pages, and a new one needs a decision here.

    manifest_options_test.py --kvscope PROGRAM
"""
import json
import os
import sys
import tempfile
import unittest
import zipfile

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from engine_layouts import CHUNKS, E2M1, E4M3, LAYOUTS, Cache, attention  # noqa: E402
from help_test import arguments  # noqa: E402
from program import fine, kvscope  # noqa: E402

HQ = 4
READS = "describes the tensors: a value that contradicts the manifest is an error"
REPLACES = "is a convention: it replaces that of the manifest"
LAYER = "picks a layer of the file: another one than the file has is an error"
LEAVES_OUT = "leaves a tensor out"
FREE = "does not describe the tensors"

READING = dict.fromkeys(["--axes", "--cache-dtype", "--granularity", "--k-scales", "--v-scales", "--value-size", "--head-size"],
                        READS)
COMMON = {"--help": FREE, "--timeout": FREE, "--layer": LAYER, "--ignore": LEAVES_OUT}
DECISIONS = {
    "golden": {**COMMON, **READING, "--layout": READS, "--query-dtype": READS,
               **dict.fromkeys(["--mask", "--alignment", "--window-left", "--window-right", "--chunk", "--scale", "--soft-cap",
                                "--lse-base", "--empty-lse"], REPLACES),
               **dict.fromkeys(["--out", "--inputs-only", "--candidate", "--candidate-dtype", "--requests", "--step", "--input",
                                "--accuracy", "--outputs-only", "--lint"], FREE)},
    "lint": {**COMMON, "--layout": READS, "--axes": READS, "--cache-dtype": READS, "--cache-shape": READS,
             **dict.fromkeys(["--vector-read", "--causal", "--tma", "--box", "--strict", "--all", "--json"], FREE)},
    "convert": {**COMMON, **READING, "--from": READS, **dict.fromkeys(["--to", "--out", "--page-size"], FREE)},
}
HND = ["k=[block, head, slot, dim]", "v=[block, head, slot, dim]"]
NHD = ["k=[block, slot, head, dim]", "v=[block, slot, head, dim]"]
# Option: the file, values that contradict its manifest, the message, and what the manifest states.
STATES = "is {}, but the manifest of '{}' states {}: leave the option out"
LAYOUT = "is '{}', but the manifest of '{}' states layout '{}': leave the option out. If the manifest is wrong, save the tensors " \
         "again without it"
CONTRADICTIONS = {
    "--layout": [("nvfp4.npz", ["nhd", "vllm"], LAYOUT, "hnd"), ("scenario.npz", ["mla"], LAYOUT, "max")],
    "--from": [("nvfp4.npz", ["nhd", "vllm"], LAYOUT, "hnd"), ("scenario.npz", ["mla"], LAYOUT, "max")],
    "--cache-dtype": [("nvfp4.npz", ["e4m3", "bf16", "i8"], STATES, "e2m1"), ("typed.npz", ["e5m2", "e4m3fnuz"], STATES, "e4m3"),
                      ("fnuz.npz", ["e4m3", "e5m2"], STATES, "e4m3fnuz"), ("scenario.npz", ["e5m2", "e4m3fnuz"], STATES, "e4m3"),
                      ("axes.npz", ["bf16"], STATES, "f32"), ("int8.npz", ["e4m3", "e2m1"], STATES, "i8")],
    "--granularity": [("nvfp4.npz", ["8", "32"], STATES, "16"), ("scenario.npz", ["32"], STATES, "64")],
    "--k-scales": [("nvfp4.npz", ["interleaved", "tiled"], STATES, "linear"), ("scenario.npz", ["tiled"], STATES, "linear"),
                   ("ordered.npz", ["linear", "tiled"], STATES, "interleaved")],
    "--v-scales": [("nvfp4.npz", ["interleaved", "tiled"], STATES, "linear"), ("scenario.npz", ["tiled"], STATES, "linear"),
                   ("ordered.npz", ["interleaved", "tiled"], STATES, "linear")],
    "--value-size": [("diffkv.npz", ["15", "17", "99"], STATES, "16"), ("scenario.npz", ["64"], STATES, "128")],
    "--head-size": [("merged.npz", ["8", "32"], STATES, "16")],
    "--query-dtype": [("queries.npz", ["f16"], STATES, "bf16")],
}


class Manifests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        rng = np.random.default_rng(3)
        cache = Cache(21, "f32", layers=1, layer=0)
        cls.q = np.random.default_rng(1).standard_normal((cache.queries.sum(), HQ, cache.size)).astype(np.float32)
        queries = {"q": cls.q, "query_offsets": cache.starts(cache.queries)}
        plain = {**LAYOUTS["nhd"][0](cache), **queries}
        cls.save("plain.npz", plain)
        cls.convert("plain.npz", "diffkv.npz", "--from", "nhd", "--to", "vllm_diffkv", "--value-size", 16)
        cls.convert("plain.npz", "axes.npz", "--from", "nhd", "--to", cls.described("mine.json", HND))

        typed = Cache(22, "e4m3", layers=1, layer=0)
        arrays = LAYOUTS["nhd"][0](typed)
        cls.save("typed_nhd.npz", {**arrays, **queries})
        cls.convert("typed_nhd.npz", "typed.npz", "--from", "nhd", "--to", "hnd")
        cls.save("patterns.npz", {**{name.removesuffix("_e4m3"): array for name, array in arrays.items()}, **queries})
        cls.convert("patterns.npz", "fnuz.npz", "--from", "nhd", "--to", "hnd", "--cache-dtype", "e4m3fnuz")

        one = Cache(23, "f32", layers=1, layer=0, lengths=(7,))
        cls.save("chunk.npz", {**CHUNKS["lmcache_2td"][0](one),
                                "q": rng.standard_normal((one.queries.sum(), HQ, one.size)).astype(np.float32),
                                "query_offsets": one.starts(one.queries)})
        cls.convert("chunk.npz", "merged.npz", "--from", "lmcache_2td", "--to", "lmcache_t2d")

        bits = (cls.q.view(np.uint32) >> 16).astype(np.uint16)
        cls.save("bits.npz", {**plain, "q": bits})
        fine("golden", "--input", "bits.npz", "--layout", "nhd", "--query-dtype", "bf16", "--inputs-only", "--out", "queries.npz",
             cwd=cls.folder)

        codes, cls.scales = rng.integers(0, 16, (2, 5, 4, 2, 64)), rng.integers(0x30, 0x48, (2, 5, 4, 2, 4)).astype(np.uint8)
        cls.values = E2M1[codes] * np.repeat(E4M3[cls.scales], 16, -1) * 0.5
        packed = (codes[..., ::2] | codes[..., 1::2] << 4).astype(np.uint8)
        cls.nvfp4 = {"k_cache": packed[0], "v_cache": packed[1], "k_block_scale_e4m3": cls.scales[0],
                      "v_block_scale_e4m3": cls.scales[1], "k_scale": np.float32(0.5), "v_scale": np.float32(0.5),
                      "block_table": np.array([[3, 0], [2, -1]], np.int32), "cache_seqlens": np.array([6, 4], np.int32),
                      "q": rng.standard_normal((2, HQ, 64)).astype(np.float32)}
        cls.save("nvfp4_nhd.npz", cls.nvfp4)
        cls.convert("nvfp4_nhd.npz", "nvfp4.npz", "--from", "nhd", "--to", "hnd", "--cache-dtype", "e2m1")
        cls.save("nvfp4_hnd.npz", {name: array.transpose(0, 2, 1, 3) if array.ndim == 4 else array
                                    for name, array in cls.nvfp4.items()})
        cls.convert("nvfp4_hnd.npz", "ordered.npz", "--from", "hnd", "--to", "hnd", "--cache-dtype", "e2m1",
                     "--k-scales", "interleaved")
        cls.run_in("golden", program.gallery("quantized_e4m3"), "--out", "scenario.npz")
        int8 = {"k_cache": codes[0].astype(np.int8), "v_cache": codes[1].astype(np.int8)}
        cls.save("int8_nhd.npz", {**{name: array for name, array in cls.nvfp4.items() if "scale" not in name}, **int8})
        cls.convert("int8_nhd.npz", "int8.npz", "--from", "nhd", "--to", "hnd")

        layers = Cache(24, "f32", layers=3, layer=1)
        both = {**LAYOUTS["max"][0](layers), **queries}
        both["blocks"] = np.random.default_rng(4).standard_normal(both["blocks"].shape).astype(np.float32)  # each layer
        cls.save("layers_max.npz", both)
        cls.convert("layers_max.npz", "all_layers.npz", "--from", "max", "--to", "max")
        cls.convert("layers_max.npz", "layer_1.npz", "--from", "max", "--to", "max", "--layer", 1)
        cls.convert("layers_max.npz", "layer_1_hnd.npz", "--from", "max", "--to", "hnd", "--layer", 1)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def save(cls, name, arrays):
        np.savez(cls.path(name), **arrays)

    @classmethod
    def run_in(cls, *arguments_):
        done = kvscope(*arguments_, cwd=cls.folder)
        if done.returncode != 0:
            raise AssertionError(f"kvscope {' '.join(map(str, arguments_))}: exit code {done.returncode}\n{done.stderr}")
        return done.stdout

    @classmethod
    def convert(cls, file, out, *options):
        return cls.run_in("convert", file, "--out", out, *options)

    @classmethod
    def edited(cls, file, out, edit):
        """A copy of the file with another manifest, of version 1, which has no checksum of it."""
        with zipfile.ZipFile(cls.path(file)) as new, zipfile.ZipFile(cls.path(out), "w") as old:
            for name in new.namelist():
                data = new.read(name)
                if name == "manifest.json":
                    manifest = json.loads(data)
                    del manifest["manifest_crc32"]
                    edit(manifest)
                    data = json.dumps({**manifest, "kvscope_bundle": 1})
                old.writestr(name, data)
        return out

    @classmethod
    def described(cls, name, axes):
        """A file with a layout that is no named one: layout hnd or nhd under another name, from its axes."""
        with open(cls.path(name), "w", encoding="utf-8") as file:
            text = cls.run_in("layout", "show", "hnd" if axes is HND else "nhd")
            file.write(text)
        return name

    def rejected(self, *arguments_):
        done = kvscope(*arguments_, cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (2, ""), (arguments_, done.stderr))
        return done.stderr

    def golden(self, file, *options):
        """Bytes of o and lse."""
        self.run_in("golden", "--input", file, "--out", "out.npz", *options)
        with np.load(self.path("out.npz")) as found:
            return found["o"].tobytes(), found["lse"].tobytes()

    def calls(self, option, file, *options):
        """The call of each command that has the option."""
        for command, decisions in DECISIONS.items():
            if option in decisions:
                yield {"golden": ["golden", "--input", file, "--out", "x.npz"], "lint": ["lint", file],
                       "convert": ["convert", file, "--to", "dense", "--out", "x.npz"]
                       }[command] + [option, *options]

    # --- no option is missing ---

    def test_every_option_has_a_decision(self):
        for command, decisions in DECISIONS.items():
            options, _ = arguments(fine(command, "--help"))
            self.assertEqual(sorted(set(options)), sorted(decisions),
                             f"kvscope {command}: decide what an option does with a file whose manifest states how to read it")
            for option, decision in decisions.items():
                if decision == READS and option not in ("--axes", "--cache-shape"):  # these have tests of their own
                    self.assertIn(option, CONTRADICTIONS)
        self.assertEqual({option for option, decision in DECISIONS["golden"].items() if decision == REPLACES},
                         {option for options in self.CONVENTIONS for option in options[::2]})

    # --- how the tensors are read ---

    def test_a_contradiction_names_both_values_and_what_to_do(self):
        for option, cases in CONTRADICTIONS.items():
            for file, wrong, message, stated in cases:
                for value in wrong:
                    for call in self.calls(option, file, value):
                        with self.subTest(call=call):
                            if call[0] == "lint" and option == "--cache-dtype" and value == "e4m3fnuz":
                                continue  # lint has no such type
                            self.assertEqual(self.rejected(*call), f"kvscope: command line: {option}: "
                                             f"{message.format(value, file, stated)}\n")

    def test_the_value_of_the_manifest_changes_nothing(self):
        for option, cases in CONTRADICTIONS.items():
            for file, _, _, stated in cases:
                for call in self.calls(option, file, stated):
                    if option == "--cache-dtype" and stated == ("e4m3fnuz" if call[0] == "lint" else "f32"):
                        continue  # no value of this command's option
                    with self.subTest(call=call):
                        if call[0] == "golden":
                            self.assertEqual(self.golden(file, option, stated), self.golden(file))
                        else:
                            self.run_in(*call)

    def test_several_contradictions_are_one_message(self):
        found = self.rejected("golden", "--input", "nvfp4.npz", "--out", "x.npz", "--cache-dtype", "e4m3", "--granularity", 8,
                             "--v-scales", "tiled")
        self.assertEqual([line.split(": ")[2] for line in found.splitlines()], ["--cache-dtype", "--granularity", "--v-scales"])

    def test_axes(self):
        for file in ("nvfp4.npz", "axes.npz"):
            layout = "hnd" if file == "nvfp4.npz" else "mine"
            with self.subTest(file=file):
                for call in self.calls("--axes", file, NHD[0], "--axes", NHD[1]):
                    self.assertEqual(self.rejected(*call), "kvscope: command line: --axes: describes another layout, but the "
                                     f"manifest of '{file}' states layout '{layout}': leave the option out. If the manifest is "
                                     "wrong, save the tensors again without it\n")

    def test_the_axes_of_the_stated_layout_are_no_contradiction(self):
        turned = ["k=[block, head, slot, dim]", "v=[block, slot, head, dim]"]
        for axes in (HND, HND[::-1]):
            for call in self.calls("--axes", "nvfp4.npz", axes[0], "--axes", axes[1]):
                with self.subTest(call=call):
                    self.run_in(*call)
            self.assertEqual(self.golden("nvfp4.npz", "--axes", axes[0], "--axes", axes[1]), self.golden("nvfp4.npz"))
        swapped = [HND[0].replace("k=", "k_cache:v="), HND[1].replace("v=", "v_cache:k=")]
        for axes in (turned, HND[:1], ["pool:" + HND[0], HND[1]], swapped):
            options = [word for text in axes for word in ("--axes", text)]
            with self.subTest(axes=axes):
                self.assertIn("--axes: describes another layout, but the manifest of 'nvfp4.npz' states layout 'hnd'",
                              self.rejected("golden", "--input", "nvfp4.npz", *options, "--out", "x.npz"))

    def test_axes_choose_one_of_two_forms_of_the_stated_layout(self):
        """A pool of 2 blocks whose manifest states only the layout, as that of an earlier convert does."""
        rng = np.random.default_rng(6)
        k, v = rng.standard_normal((2, 2, 4, 2, 16)).astype(np.float32)
        arrays = {"block_table": np.array([[1, 0]], np.int32), "cache_seqlens": np.array([7], np.int32),
                  "q": rng.standard_normal((1, HQ, 16)).astype(np.float32)}
        # Block b of K and V, read as K and V of a pool: K has the two of block 0.
        self.save("blocks_first.npz", {**arrays, "k_cache": k, "v_cache": v})
        self.save("pair_first.npz", {**arrays, "k_cache": np.stack([k[0], v[0]]), "v_cache": np.stack([k[1], v[1]])})
        self.convert("blocks_first.npz", "vllm_2.npz", "--from", "nhd", "--to", "vllm")
        self.edited("vllm_2.npz", "two_forms.npz", lambda manifest: manifest["inputs"].pop("layout"))
        self.assertIn("kv_cache: has shape [2, 2, 4, 2, 16], which is [N, 2, P, H, D] or [2, N, P, H, D]: pass one of them as "
                      "--axes", self.rejected("golden", "--input", "two_forms.npz", "--out", "x.npz"))
        for plain, axes in [("blocks_first.npz", "kv=[block, kv, slot, head, dim]"),
                            ("pair_first.npz", "kv=[kv, block, slot, head, dim]")]:
            with self.subTest(axes=axes):
                want = self.golden(plain, "--layout", "nhd")
                self.assertEqual(self.golden("two_forms.npz", "--axes", axes), want)
                self.convert("two_forms.npz", "hnd_2.npz", "--axes", axes, "--to", "hnd")
                self.assertEqual(self.golden("hnd_2.npz"), want)
                self.run_in("golden", "--input", "two_forms.npz", "--axes", axes, "--inputs-only", "--out", "stated_2.npz")
                self.assertEqual(self.golden("stated_2.npz"), want)
                self.run_in("lint", "two_forms.npz", "--axes", axes)

    def test_axes_of_a_stated_layout_have_any_of_its_names(self):
        """hf's key_cache and keys; max has a tensor of scales, which --axes cannot describe."""
        self.convert("plain.npz", "hf.npz", "--from", "nhd", "--to", "hf")
        hf = "=[seq, head, position, dim]"
        blocks = "kv=[block, kv, layer, slot, head, dim]"
        for file, axes in [("hf.npz", ["k" + hf, "v" + hf]), ("hf.npz", ["keys:k" + hf, "values:v" + hf]),
                           ("scenario.npz", ["blocks:" + blocks])]:
            with self.subTest(file=file, axes=axes):
                self.assertEqual(self.golden(file, *[word for text in axes for word in ("--axes", text)]), self.golden(file))
        for file, axes in [("hf.npz", ["states:k" + hf, "values:v" + hf]), ("scenario.npz", [blocks]),
                           ("hf.npz", ["kv=[kv, seq, head, position, dim]"])]:
            with self.subTest(file=file, axes=axes):
                options = [word for text in axes for word in ("--axes", text)]
                self.assertIn("--axes: describes another layout, but the manifest",
                              self.rejected("golden", "--input", file, *options, "--out", "x.npz"))

    def test_axes_do_not_describe_flat_storage(self):
        with np.load(self.path("nvfp4_nhd.npz")) as given:
            arrays = {name: given[name] for name in ("block_table", "cache_seqlens", "q")}
        pool = np.random.default_rng(8).standard_normal((5, 4, 2, 64)).astype(np.float32)
        tensor = {"axes": "[block, slot, head, dim]", "strides": [512, 128, 64, 1], "sizes": [5, 4, 2, 64]}
        description = {"about": "flat", "forms": [{"tensors": [{"name": f"{side}_cache", "holds": side, **tensor}
                                                               for side in "kv"]}],
                       "table": {"form": "blocks", "tensors": {"table": ["block_table"], "lengths": ["cache_seqlens"]}}}
        with open(self.path("flat.json"), "w", encoding="utf-8") as file:
            json.dump(description, file)
        self.save("flat_alone.npz", {**arrays, "k_cache": pool.ravel(), "v_cache": pool[::-1].ravel()})
        self.run_in("golden", "--input", "flat_alone.npz", "--layout", "flat.json", "--inputs-only", "--out", "flat.npz")
        self.assertEqual(self.golden("flat.npz"), self.golden("flat_alone.npz", "--layout", "flat.json"))
        self.assertIn("--axes: describes another layout, but the manifest of 'flat.npz' states layout 'flat'",
                      self.rejected("golden", "--input", "flat.npz", "--axes", NHD[0], "--axes", NHD[1], "--out", "x.npz"))

    def test_options_complete_a_manifest_that_states_the_layout_alone(self):
        """As those of earlier versions: what they leave out is not known, so that nothing contradicts it."""
        def layout_alone(manifest):
            for key in ("holds", "inputs"):
                manifest.pop(key, None)
        patterns = ["--cache-dtype", "e2m1"]
        for file, options in [("ordered.npz", [*patterns, "--k-scales", "interleaved"]), ("nvfp4.npz", [*patterns, "--k-scales",
                              "linear"]), ("fnuz.npz", ["--cache-dtype", "e4m3fnuz"])]:
            with self.subTest(file=file):
                old = self.edited(file, "old.npz", layout_alone)
                self.assertIn("k_cache: is u8: which floats are its bit patterns? Pass --cache-dtype",
                              self.rejected("golden", "--input", old, "--out", "x.npz"))
                self.assertEqual(self.golden(old, *options), self.golden(file))
        # A manifest of another program may state the layout of u8 and not its type.
        untyped = self.edited("fnuz.npz", "untyped.npz", lambda manifest: manifest["inputs"].pop("cache_dtype"))
        self.assertEqual(self.golden(untyped, "--cache-dtype", "e4m3fnuz"), self.golden("fnuz.npz"))

    def test_a_linear_order_needs_no_block_scales(self):
        self.assertEqual(self.golden("typed.npz", "--k-scales", "linear", "--v-scales", "linear"), self.golden("typed.npz"))

    def test_a_type_for_a_file_of_packed_rows(self):
        """Fields of rows have types; the option tells e4m3 and e4m3fnuz apart."""
        rng = np.random.default_rng(9)
        rows = rng.integers(0x20, 0x60, (3, 4, 1, 656)).astype(np.uint8)
        rows[..., 512:528] = np.ones(4, np.float32).view(np.uint8)
        rows[..., 528:] = rng.standard_normal((3, 4, 1, 32)).astype(np.float32).view(np.uint8)
        self.save("packed.npz", {"kv_cache": rows, "block_table": np.array([[2, 0]], np.int32),
                                 "cache_seqlens": np.array([6], np.int32), "q": rng.standard_normal((1, 2, 576)).astype(np.float32)})
        options = ["--layout", "flashmla_fp8", "--scale", 0.05]
        self.run_in("golden", "--input", "packed.npz", *options, "--inputs-only", "--out", "packed_stated.npz")
        self.assertEqual(self.golden("packed_stated.npz"), self.golden("packed.npz", *options))
        for given in ("e4m3", "e4m3fnuz"):
            self.assertEqual(self.golden("packed_stated.npz", "--cache-dtype", given),
                             self.golden("packed.npz", *options, "--cache-dtype", given))
        self.assertNotEqual(self.golden("packed_stated.npz", "--cache-dtype", "e4m3fnuz"), self.golden("packed_stated.npz"))

    def test_an_order_of_block_scales_that_the_file_does_not_have(self):
        self.save("k_alone.npz", {name: array for name, array in self.nvfp4.items() if not name.startswith("v_block_scale")})
        self.convert("k_alone.npz", "k_alone_hnd.npz", "--from", "nhd", "--to", "hnd", "--cache-dtype", "e2m1")
        for file, options in [("typed.npz", {"--k-scales": "K", "--v-scales": "V"}), ("k_alone_hnd.npz", {"--v-scales": "V"})]:
            for option, side in options.items():
                for call in self.calls(option, file, "tiled"):
                    with self.subTest(call=call):
                        self.assertEqual(self.rejected(*call), f"kvscope: command line: {option}: is tiled, but '{file}' has no "
                                         f"block scales of {side}: leave the option out\n")
        self.assertEqual(self.rejected("golden", "--input", "k_alone_hnd.npz", "--k-scales", "tiled", "--out", "x.npz"),
                         "kvscope: command line: --k-scales: is tiled, but the manifest of 'k_alone_hnd.npz' states linear: leave "
                         "the option out\n")

    def test_a_shape_for_a_file_that_has_the_cache(self):
        self.assertEqual(self.rejected("lint", "typed.npz", "--cache-shape", "4,2,4,16"),
                         "kvscope: command line: --cache-shape: has no effect: the file has the cache, k_cache [12, 2, 4, 16]; "
                         "remove the option\n")

    def test_sizes_that_the_layout_of_the_manifest_does_not_have(self):
        for option in ("--value-size", "--head-size"):
            self.assertEqual(self.rejected("golden", "--input", "nvfp4.npz", option, 5, "--out", "x.npz"),
                             f"kvscope: command line: {option}: has no effect with layout 'hnd', which the manifest of 'nvfp4.npz' "
                             "states: remove it\n")
            self.assertEqual(self.rejected("convert", "nvfp4.npz", "--to", "nhd", option, 5, "--out", "x.npz"),
                             f"kvscope: command line: {option}: has no effect with layouts 'hnd' and 'nhd': remove it\n")
        self.assertEqual(self.rejected("golden", "--input", "typed.npz", "--granularity", 8, "--out", "x.npz"),
                         "kvscope: command line: --granularity: has no effect: the input has no block scales; remove it\n")
        self.assertEqual(self.rejected("golden", "--input", "nvfp4.npz", "--query-dtype", "bf16", "--out", "x.npz"),
                         "kvscope: nvfp4.npz: q: is f32: --query-dtype bf16 is for bit patterns that are stored as u8 or u16; "
                         "remove it\n")

    # --- layers ---

    def test_a_layer_of_a_file_with_several(self):
        """The manifest's layer is a default: --layer picks any layer of the file."""
        goldens = [self.golden("all_layers.npz", "--layer", layer) for layer in range(3)]
        self.assertEqual(len(set(goldens)), 3)
        for layer, found in enumerate(goldens):
            self.assertEqual(found, self.golden("layers_max.npz", "--layout", "max", "--layer", layer))
            self.convert("all_layers.npz", "one.npz", "--to", "hnd", "--layer", layer)
            self.assertEqual(self.golden("one.npz"), found)
        self.assertEqual(self.golden("all_layers.npz"), goldens[0])
        self.run_in("golden", "--input", "layers_max.npz", "--layout", "max", "--layer", 2, "--inputs-only", "--out", "two.npz")
        self.assertEqual(self.golden("two.npz"), goldens[2])  # the manifest's
        self.assertEqual(self.golden("two.npz", "--layer", 1), goldens[1])
        self.convert("two.npz", "one.npz", "--to", "hnd")
        self.assertEqual(self.golden("one.npz"), goldens[2])
        for layer in (1, 2):
            self.run_in("lint", "all_layers.npz", "--layer", layer)

    def test_a_layer_that_the_file_does_not_have(self):
        for file, layer, words in [("layer_1.npz", 1, "blocks has one layer: leave the option out"),
                                   ("scenario.npz", 2, "blocks has one layer: leave the option out"),
                                   ("layer_1_hnd.npz", 1, "layout 'hnd' holds one layer: leave the option out"),
                                   ("all_layers.npz", 3, "blocks has layers 0 to 2: pass one of them")]:
            for call in self.calls("--layer", file, str(layer)):
                with self.subTest(call=call):
                    self.assertEqual(self.rejected(*call), f"kvscope: {'command line' if call[0] == 'lint' else file}: --layer: is "
                                     f"{layer}, but {words}\n")
        self.assertEqual(self.golden("layer_1.npz", "--layer", 0), self.golden("layers_max.npz", "--layout", "max", "--layer", 1))
        for command in (["lint", "plain.npz", "--layout", "nhd"], ["convert", "plain.npz", "--from", "nhd", "--to", "hnd", "--out",
                                                                  "x.npz"]):  # without a manifest
            self.assertIn("--layer: is 2, but layout 'nhd' holds one layer: leave the option out",
                          self.rejected(*command, "--layer", 2))

    def test_a_tensor_is_left_out(self):
        for file, scaled in (("nvfp4.npz", True), ("nvfp4.npz", False)):
            found = self.golden(file, *([] if scaled else ["--ignore", "v_scale"]))
            self.assertEqual(found, self.golden("nvfp4_nhd.npz", "--layout", "nhd", "--cache-dtype", "e2m1",
                                                *([] if scaled else ["--ignore", "v_scale"])))

    # --- conventions ---

    STATED = {"--mask": "sliding_window", "--window-left": 2, "--window-right": 1, "--alignment": "top_left", "--scale": 0.5,
              "--soft-cap": 20, "--lse-base": "two", "--empty-lse": "+inf"}
    WINDOW = ["--window-left", "--window-right"]
    # What is given, and what of the manifest's no longer applies.
    CONVENTIONS = {("--window-left", 4): [], ("--window-right", 0): [], ("--alignment", "bottom_right"): [], ("--scale", 0.25): [],
                   ("--soft-cap", 3): [], ("--lse-base", "natural"): [], ("--empty-lse", "-inf"): [],
                   ("--mask", "none"): [*WINDOW, "--alignment"], ("--mask", "causal"): WINDOW,
                   ("--mask", "chunked", "--chunk", 3): WINDOW,
                   ("--mask", "sliding_window", "--window-left", 1, "--window-right", 1): []}

    def test_a_convention_replaces_that_of_the_manifest(self):
        """As the same options with tensors that have no manifest. One sequence has more queries than keys: rows without keys."""
        rng = np.random.default_rng(5)
        some = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
        self.save("t.npz", {"q": some(13, HQ, 8), "k_cache": some(5, 4, 2, 8), "v_cache": some(5, 4, 2, 8),
                            "block_table": np.array([[1, 0, 3], [2, -1, -1]], np.int32),
                            "cache_seqlens": np.array([11, 3], np.int32), "query_offsets": np.array([0, 5, 13], np.int32)})

        def flat(options):
            return [word for pair in options.items() for word in pair]
        own = ["--layout", "nhd"]
        self.run_in("golden", "--input", "t.npz", *own, *flat(self.STATED), "--inputs-only", "--out", "stated.npz")
        self.assertEqual(self.golden("stated.npz"), self.golden("t.npz", *own, *flat(self.STATED)))
        self.convert("stated.npz", "converted.npz", "--to", "flashinfer")
        for given, idle in self.CONVENTIONS.items():
            with self.subTest(given=given):
                options = {**self.STATED, **dict(zip(given[::2], given[1::2]))}
                expected = self.golden("t.npz", *own, *flat({name: options[name] for name in options if name not in idle}))
                self.assertNotEqual(expected, self.golden("stated.npz"))
                for file in ("stated.npz", "converted.npz"):
                    self.assertEqual(self.golden(file, *given), expected)
        self.assertEqual(self.rejected("golden", "--input", "stated.npz", "--chunk", 4, "--out", "x.npz"),
                         "kvscope: command line: --chunk: has no effect with --mask sliding_window, which the manifest of "
                         "'stated.npz' states: remove it, or pass --mask chunked\n")

    def test_alignment_is_used_by_chunks_and_by_alibi(self):
        rng = np.random.default_rng(6)
        some = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
        arrays = {"q": some(3, HQ, 8), "k_cache": some(3, 4, 2, 8), "v_cache": some(3, 4, 2, 8),
                  "block_table": np.array([[1, 0]], np.int32), "cache_seqlens": np.array([7], np.int32),
                  "query_offsets": np.array([0, 3], np.int32)}
        self.save("t.npz", arrays)
        chunked = ["--layout", "nhd", "--mask", "chunked", "--chunk", 3]
        self.assertEqual(self.golden("t.npz", *chunked, "--alignment", "bottom_right"), self.golden("t.npz", *chunked))
        # The first query of top_left sees the first key alone, which is V of slot 0 of block 1.
        self.golden("t.npz", *chunked, "--alignment", "top_left")
        with np.load(self.path("out.npz")) as found:
            np.testing.assert_array_equal(found["o"][0], np.repeat(arrays["v_cache"][1, 0].astype(float), 2, 0))
        none = ["--layout", "nhd", "--mask", "none"]
        self.assertEqual(self.rejected("golden", "--input", "t.npz", *none, "--alignment", "top_left", "--out", "x.npz"),
                         "kvscope: command line: --alignment: has no effect with --mask none: remove it, or pass --mask causal, "
                         "sliding_window or chunked\n")
        self.save("t.npz", {**arrays, "alibi_slopes": np.full(HQ, 0.5, np.float32)})
        self.assertNotEqual(self.golden("t.npz", *none, "--alignment", "top_left"), self.golden("t.npz", *none))

    # --- converted caches ---

    def test_nvfp4_is_read_as_before_the_conversion(self):
        """The golden of each layout bit for bit that of the first, which is attention in NumPy."""
        typed = ["--cache-dtype", "e2m1"]
        table, lengths = self.nvfp4["block_table"], self.nvfp4["cache_seqlens"]
        k, v = ([pool[table[b, np.arange(n) // 4], np.arange(n) % 4] for b, n in enumerate(lengths)] for pool in self.values)
        want = self.golden("nvfp4_nhd.npz", "--layout", "nhd", *typed)
        for found, expected in zip(want, attention(self.nvfp4["q"], k, v, [1, 1], 0.125)):
            np.testing.assert_allclose(np.frombuffer(found).reshape(expected.shape), expected, rtol=1e-12, atol=1e-13)
        for to in ("hnd", "flashinfer", "flashinfer_hnd", "vllm", "vllm_hnd", "flashinfer_trtllm", "sglang", "dense", "varlen"):
            with self.subTest(to=to):
                done = kvscope("convert", "nvfp4_nhd.npz", "--from", "nhd", *typed, "--to", to, "--out", "b.npz", cwd=self.folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.golden("b.npz"), want)
                self.convert("b.npz", "c.npz", "--to", "hnd" if to != "hnd" else "nhd")
                self.assertEqual(self.golden("c.npz"), want)

    def test_the_order_of_block_scales_is_kept(self):
        """FlashInfer's order of the scales of V, read by NumPy: scale g of token t of 4 is at place 4 g + t."""
        def interleaved(scales):
            blocks, page, heads, groups = scales.shape  # nhd to hnd
            rows = scales.transpose(0, 2, 1, 3).reshape(blocks, heads, page // 4, 4, groups)
            return np.ascontiguousarray(rows.transpose(0, 1, 2, 4, 3)).reshape(blocks, heads, page, groups)
        arrays = {name: np.ascontiguousarray(array.transpose(0, 2, 1, 3)) if array.ndim == 4 else array
                  for name, array in self.nvfp4.items()}
        self.save("a.npz", {**arrays, "v_block_scale_e4m3": interleaved(self.scales[1])})
        options = ["--cache-dtype", "e2m1", "--v-scales", "interleaved"]
        want = self.golden("a.npz", "--layout", "hnd", *options)
        self.assertEqual(want, self.golden("nvfp4_nhd.npz", "--layout", "nhd", "--cache-dtype", "e2m1"))
        for to, page, linear in [("hnd", 4, False), ("flashinfer_hnd", 4, False), ("nhd", 4, False), ("hnd", 8, False),
                                 ("nhd", 12, False), ("hnd", 1, True), ("nhd", 2, True), ("hnd", 6, True), ("sglang", 1, True),
                                 ("varlen", 1, True), ("dense", 6, True), ("dense", 8, False)]:
            with self.subTest(to=to, page=page):
                printed = self.convert("a.npz", "b.npz", "--from", "hnd", *options, "--to", to, "--page-size", page)
                self.assertEqual(self.golden("b.npz"), want)
                self.assertEqual("scales     linear: pages of " in printed, linear)
                self.assertEqual(self.golden("b.npz", "--v-scales", "linear" if linear else "interleaved"), want)

    def test_a_source_and_a_target_described_by_axes(self):
        cache = Cache(25, "bf16", layers=1, layer=0)
        arrays = LAYOUTS["nhd"][0](cache)
        turned = {name: np.ascontiguousarray(array.transpose(2, 0, 3, 1)) if array.ndim == 4 else array  # [H, N, D, P]
                  for name, array in arrays.items()}
        self.save("a.npz", {**arrays, "q": self.q, "query_offsets": cache.starts(cache.queries)})
        self.save("t.npz", {**turned, "q": self.q, "query_offsets": cache.starts(cache.queries)})
        axes = ["--axes", "k=[head, block, dim, slot]", "--axes", "v=[head, block, dim, slot]"]
        want = self.golden("a.npz", "--layout", "nhd")
        self.assertEqual(self.golden("t.npz", *axes), want)
        for to in ("hnd", "vllm", "sglang"):
            self.convert("t.npz", "b.npz", *axes, "--to", to)
            self.assertEqual(self.golden("b.npz"), want)
        # A bundle of inputs keeps the axes in its manifest, and the same axes are no contradiction.
        self.run_in("golden", "--input", "t.npz", *axes, "--inputs-only", "--out", "inputs.npz")
        self.assertEqual(self.golden("inputs.npz"), want)
        self.assertEqual(self.golden("inputs.npz", *axes), want)
        self.convert("inputs.npz", "b.npz", "--to", "flashinfer")
        self.assertEqual(self.golden("b.npz"), want)


if __name__ == "__main__":
    program.main()
