#!/usr/bin/python3
"""kvscope run --device, from outside: a kernel's attention beside the golden one, and what is said where no kernel can.

    run_on_device_test.py --kvscope PROGRAM
"""
import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import fine, gallery, gallery_names, kvscope, write_json  # noqa: E402


def candidate(*arguments):
    return json.loads(fine("run", *arguments, "--device", "virtual", "--json"))["candidate"]


class OnTheVirtualGpu(unittest.TestCase):
    def test_a_batch_of_single_tokens_is_decoded_as_it_lies(self):
        if program.SLOW_BUILD:
            self.skipTest("32 sequences of 32 heads take a checked build too long")
        text = fine("run", gallery("continuous"), "--device", "virtual")
        section = text[text.index("\ncandidate of"):]
        self.assertIn("\ncandidate of virtual GPU, kernel continuous_decode_bf16_d128: within the rounding bound\n", section)
        self.assertRegex(section, r"\n  o +largest error 0\.\d+x the bound for rounding to bf16 \(sequence \d+, query 0, head ")
        self.assertRegex(section, r"\n  lse +largest error 0\.\d+")
        self.assertRegex(section, r"\n  costs +\d+ warp instructions, \d+ wavefronts \(1\.00x ideal\)")

    def test_scales_of_two_granules_a_head_are_the_kernels(self):
        check = candidate(gallery("quantized_e4m3"))
        self.assertTrue(check["passed"])
        self.assertEqual((check["kernel"], check["dtype"], check["device"]),
                         ("paged_decode_e4m3_any", "bf16", "virtual"))
        self.assertEqual(check["notes"], [])
        self.assertGreater(check["costs"]["sectors"], 0)
        self.assertLess(check["comparison"]["tensors"][-1]["worst"]["error_over_allowed"], 1)

    def test_a_chunk_of_a_prompt_is_prefilled_and_the_report_files_have_it_too(self):
        with tempfile.TemporaryDirectory() as folder:
            scenario = write_json(os.path.join(folder, "s.json"), {
                "kvscope_scenario": 1, "name": "A chunk", "seed": 4,
                "model": {"preset": "llama-3.1-8b", "layers": 2, "query_heads": 2, "kv_heads": 1},
                "cache": {"page_size": 16, "blocks": 12, "dtype": "bf16"},
                "requests": {"list": [{"arrival_us": 0, "prompt_tokens": 50, "generate_tokens": 2}]},
                "scheduler": {"max_step_tokens": 30}, "focus": {"step": 1, "layer": 1}})
            out = os.path.join(folder, "out")
            text = fine("run", scenario, "--device", "virtual", "--out", out)
            self.assertIn("kernel paged_prefill_bf16_d128: within", text)
            with open(os.path.join(out, "report.txt"), encoding="utf-8") as file:
                self.assertEqual(file.read(), text)
            with open(os.path.join(out, "report.json"), encoding="utf-8") as file:
                self.assertTrue(json.load(file)["candidate"]["passed"])

    # Every scenario of the gallery that has a golden output. Two with fewer heads: their step takes the virtual GPU up to
    # a minute, and each head is the same work.
    def test_every_scenario_of_the_gallery_has_a_kernel(self):
        kernels = {
            "first_light": "paged_prefill_bf16_d64", "prefix_sharing": "paged_prefill_bf16_d64",
            "parallel_samples": "paged_prefill_bf16_d64", "preemption": "paged_decode_bf16_any",
            "page_size_fragmentation": "paged_prefill_bf16_d128", "continuous": "continuous_decode_bf16_d128",
            "sliding_window": "paged_decode_f16_any", "mla": "mla_decode_bf16",
            "quantized_e4m3": "paged_decode_e4m3_any", "real_traffic_slice": "paged_decode_bf16_any",
            "tile_by_tma": "paged_decode_bf16_d64", "tile_through_lds": "paged_decode_bf16_d64",
            "swizzle_off": "paged_decode_bf16_d64", "partial_page": "paged_decode_bf16_d128",
            "gather_sparse": "paged_decode_bf16_d64", "mla_rope": "mla_decode_bf16",
            "lds_too_large": "paged_decode_bf16_any",
            **{f"lds_{name}": "paged_decode_bf16_d128" for name in (
                "six_waves", "missing_barrier", "two_swizzles", "swizzle_reach", "narrow_waves", "small_pages")}}
        self.assertEqual({*kernels, "real_traffic_like"}, set(gallery_names()))  # its pool is too large for a golden
        fewer_heads = {"page_size_fragmentation": {"query_heads": 1, "kv_heads": 1}, "mla": {"query_heads": 8},
                       "continuous": {"query_heads": 8, "kv_heads": 2}}
        if program.SLOW_BUILD:  # a checked build takes these too long
            for name in ("page_size_fragmentation", "mla", "sliding_window", "continuous"):
                del kernels[name]
        with tempfile.TemporaryDirectory() as folder:
            for name, kernel in kernels.items():
                path = gallery(name)
                if name in fewer_heads:
                    with open(path, encoding="utf-8") as file:
                        scenario = json.load(file)
                    model = scenario["model"]
                    scenario["model"] = {**({"preset": model} if isinstance(model, str) else model),
                                         **fewer_heads[name]}
                    path = write_json(os.path.join(folder, name + ".json"), scenario)
                with self.subTest(name):
                    check = candidate(path)
                    self.assertEqual((check["passed"], check["kernel"]), (True, kernel))

    def test_a_model_that_no_gallery_scenario_has_is_decoded_or_converted(self):
        def made(folder, cache, model, **more):
            return write_json(os.path.join(folder, "s.json"), {
                "kvscope_scenario": 1, "name": "Made", "seed": 4, "model": {"preset": "tiny", **model},
                "cache": {"page_size": 5, "blocks": 20, **cache},
                "requests": {"list": [{"arrival_us": 0, "prompt_tokens": 33, "generate_tokens": 2}]}, **more})
        with tempfile.TemporaryDirectory() as folder:
            check = candidate(made(folder, {"dtype": "bf16"}, {"head_size": 80}, attention={"alibi": True, "sinks": True}))
            self.assertEqual((check["passed"], check["kernel"]), (True, "paged_decode_bf16_any"))
            check = candidate(made(folder, {"dtype": "f32"}, {}))
            self.assertEqual((check["passed"], check["kernel"]), (True, "paged_decode_f32_any"))
            self.assertNotIn("given f32", "".join(check["notes"]))  # it is stored as f32
            check = candidate(made(folder, {"dtype": "e5m2"}, {"head_size": 16}))
            self.assertEqual((check["passed"], check["kernel"]), (True, "paged_decode_f32_any"))
            self.assertIn("K is e5m2, the kernel is given f32", check["notes"])

    def test_a_latent_cache_of_e4m3_with_a_scale_a_token_is_decoded(self):
        with tempfile.TemporaryDirectory() as folder:
            scenario = write_json(os.path.join(folder, "s.json"), {
                "kvscope_scenario": 1, "name": "Latent rows of eight bits", "seed": 4,
                "model": {"preset": "deepseek-v3", "layers": 1, "query_heads": 4},
                "cache": {"page_size": 16, "blocks": 8, "dtype": "e4m3",
                          "quantization": {"scale_dtype": "f32", "granularity": 576}},
                "requests": {"list": [{"arrival_us": 0, "prompt_tokens": 20, "generate_tokens": 3}]},
                "attention": {"scale": 0.0721}, "focus": {"step": 1}})
            check = candidate(scenario)
            self.assertEqual((check["passed"], check["kernel"], check["notes"]), (True, "mla_decode_e4m3", []))

    def test_without_the_option_nothing_is_launched(self):
        self.assertNotIn("candidate", json.loads(fine("run", gallery("quantized_e4m3"), "--json")))


class Refused(unittest.TestCase):
    def fault_of(self, *arguments):
        done = kvscope("run", *arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        return done.stderr

    def test_what_no_kernel_supports_is_a_line_a_feature_and_no_report_is_left(self):
        with tempfile.TemporaryDirectory() as folder:
            scenario = write_json(os.path.join(folder, "s.json"), {
                "kvscope_scenario": 1, "name": "Long heads", "seed": 4,
                "model": {"preset": "tiny", "head_size": 264}, "cache": {"page_size": 12, "blocks": 12, "dtype": "f16"},
                "requests": {"list": [{"arrival_us": 0, "prompt_tokens": 50, "generate_tokens": 2}]},
                "attention": {"sinks": True}})
            out = os.path.join(folder, "out")
            said = self.fault_of(scenario, "--device", "virtual", "--out", out)
            self.assertFalse(os.path.exists(os.path.join(out, "report.txt")))
        start = "kvscope: command line: --device virtual: no kernel computes this attention: "
        self.assertEqual(said, "".join(start + line + "\n" for line in (
            "paged_decode does not support head_size 264: multiples of 8 up to 256",
            "paged_prefill does not support attention sinks",
            "paged_prefill does not support head_size 264: 64 and 128",
            "paged_prefill does not support page_size 12: a divisor or a multiple of 128")))

    def test_a_golden_that_was_left_out_cannot_be_compared_with(self):
        with tempfile.TemporaryDirectory() as folder:
            scenario = write_json(os.path.join(folder, "s.json"), {
                "kvscope_scenario": 1, "name": "A large pool", "model": "llama-3.1-8b",
                "cache": {"page_size": 16, "blocks": 28600, "dtype": "bf16"},
                "requests": {"list": [{"arrival_us": 0, "prompt_tokens": 5, "generate_tokens": 2}]}})
            self.assertIn("there is no golden output to compare a kernel with: one layer of the pool takes",
                          self.fault_of(scenario, "--device", "virtual"))

    def test_another_device_and_one_that_is_not_there(self):
        self.assertIn("--device", self.fault_of(gallery("mla"), "--device", "metal"))
        if not any(os.path.exists(p) for p in ("/dev/nvidia0", "/dev/nvidiactl")):
            self.assertIn("--device cuda", self.fault_of(gallery("mla"), "--device", "cuda"))


if __name__ == "__main__":
    program.main()
