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
from program import fine, gallery, kvscope, write_json  # noqa: E402


def candidate(*arguments):
    return json.loads(fine("run", *arguments, "--device", "virtual", "--json"))["candidate"]


class OnTheVirtualGpu(unittest.TestCase):
    def test_a_batch_of_single_tokens_is_decoded_as_it_lies(self):
        if program.SLOW_BUILD:
            self.skipTest("32 sequences of 32 heads take a checked build too long")
        text = fine("run", gallery("continuous"), "--device", "virtual")
        section = text[text.index("\ncandidate of"):]
        self.assertIn("\ncandidate of virtual GPU, kernel paged_decode_bf16_d128: within what rounding may make\n", section)
        self.assertRegex(section, r"\n  o +worst 0\.\d+ of what rounding to bf16 may make \(sequence \d+, query 0, head ")
        self.assertRegex(section, r"\n  lse +worst 0\.\d+")
        self.assertRegex(section, r"\n  costs +\d+ warp instructions, \d+ wavefronts \(1\.00x ideal\)")

    def test_what_had_to_be_converted_is_said(self):
        check = candidate(gallery("quantized_e4m3"))
        self.assertTrue(check["passed"])
        self.assertEqual((check["kernel"], check["dtype"], check["device"]),
                         ("paged_decode_f32_d128", "f32", "virtual"))
        self.assertEqual(check["notes"], ["q is bf16, the kernel is given f32",
                                          "K is e4m3 with scales, the kernel is given f32",
                                          "V is e4m3 with scales, the kernel is given f32"])
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

    def test_without_the_option_nothing_is_launched(self):
        self.assertNotIn("candidate", json.loads(fine("run", gallery("quantized_e4m3"), "--json")))


class Refused(unittest.TestCase):
    def refusal(self, *arguments):
        done = kvscope("run", *arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        return done.stderr

    def test_what_no_kernel_has_is_named_a_line_a_reason_and_no_report_is_left(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out")
            said = self.refusal(gallery("sliding_window"), "--device", "virtual", "--out", out)
            self.assertFalse(os.path.exists(os.path.join(out, "report.txt")))
        start = "kvscope: command line: --device virtual: no kernel computes this attention: "
        self.assertTrue(all(line.startswith(start) for line in said.splitlines()), said)
        self.assertIn(start + "paged_prefill does not have head_size 256: 64 and 128\n", said)
        self.assertIn(start + "paged_prefill does not have page_size 12: a divisor or a multiple of 128\n", said)
        self.assertIn(start + "paged_decode does not have a soft cap (50)\n", said)

    def test_a_golden_that_was_left_out_cannot_be_compared_with(self):
        with tempfile.TemporaryDirectory() as folder:
            scenario = write_json(os.path.join(folder, "s.json"), {
                "kvscope_scenario": 1, "name": "A large pool", "model": "llama-3.1-8b",
                "cache": {"page_size": 16, "blocks": 28600, "dtype": "bf16"},
                "requests": {"list": [{"arrival_us": 0, "prompt_tokens": 5, "generate_tokens": 2}]}})
            self.assertIn("there is no golden to hold a kernel against: one layer of the pool takes",
                          self.refusal(scenario, "--device", "virtual"))

    def test_another_device_and_one_that_is_not_there(self):
        self.assertIn("--device", self.refusal(gallery("mla"), "--device", "metal"))
        if not any(os.path.exists(p) for p in ("/dev/nvidia0", "/dev/nvidiactl")):
            self.assertIn("--device cuda", self.refusal(gallery("mla"), "--device", "cuda"))


if __name__ == "__main__":
    program.main()
