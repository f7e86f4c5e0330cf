#!/usr/bin/python3
"""kvscope kernels bench, from outside: what is counted without a GPU, and what is refused.

    kernels_bench_test.py --kvscope PROGRAM
"""
import json
import os
import sys
import unittest

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import fine, kvscope  # noqa: E402

ROWS = ["append_tokens_bf16", "append_tokens_quantize", "gather_rows_bf16", "paged_decode_bf16_page16",
        "paged_decode_bf16_page1", "paged_decode_e4m3_page16", "mla_decode_bf16", "mla_decode_fp8", "bf16_product",
        "paged_prefill_bf16"]


class OnTheVirtualGpu(unittest.TestCase):
    def test_counts_every_row_and_says_that_there_is_no_clock(self):
        text = fine("kernels", "bench")
        self.assertIn("it has no clock", text.splitlines()[0])
        self.assertEqual([line.split()[0] for line in text.splitlines() if line.startswith("  ")], ROWS)
        self.assertEqual(text, fine("kernels", "bench", "--device", "virtual"))
        for word in (" ms", "GB/s", "TFLOPS", "met"):
            self.assertNotIn(word, text)

    def test_as_json_has_costs_and_no_times(self):
        report = json.loads(fine("kernels", "bench", "--kernel", "paged_prefill", "--json"))
        self.assertEqual([row["name"] for row in report["rows"]], ["bf16_product", "paged_prefill_bf16"])
        self.assertTrue(report["passed"])
        for row in report["rows"]:
            self.assertGreater(row["costs"]["tma_bytes"], 0)
            self.assertNotIn("median_ms", row)
            self.assertNotIn("ratio", row)


class Refused(unittest.TestCase):
    def fault_of(self, *arguments):
        done = kvscope("kernels", "bench", *arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        return done.stderr

    def test_a_kernel_without_a_row(self):
        self.assertIn("kernel 'lds_stage' has no benchmark: copy, append_tokens, gather_rows, paged_decode, mla_decode, ",
                      self.fault_of("--kernel", "lds_stage"))

    def test_a_gpu_that_is_not_there(self):
        if any(os.path.exists(path) for path in ("/dev/nvidia0", "/dev/nvidiactl")):
            self.skipTest("this machine has a GPU")
        self.assertIn("--device cuda", self.fault_of("--device", "cuda"))


if __name__ == "__main__":
    program.main()
