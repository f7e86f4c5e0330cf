#!/usr/bin/python3
"""gpu-check as a program, on machines without a GPU: every probe on the virtual GPU, where its answer is the model's
documented choice, and the whole check with a fake driver that runs the kernels, and fails as environment variables
request (tests/gpu/launch/fake_driver.h)."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = DRIVER = ""
SLOW_BUILD = os.environ.get("KVSCOPE_SLOW_BUILD") == "1"  # sanitizers: about twenty times slower
SILENCE = 40 if SLOW_BUILD else 4                         # [s] without output, after which a process counts as hung

TMA = "stopped: TMA_ARG"
NO_TF32 = "the model rejects tf32 maps: a copy would round the elements"
LACKS = "rejected: the target does not support it"
SEQ = "4b800000 3f800000 3f800000 3f800002 bf800002 3f800008 00000000"
NAN = "fff8000000000000"
EDGE = ", ".join(f"row {row} bytes 464 to 479" for row in range(4))


def gold(*checksums):
    return [checksum + ", as the model" for checksum in checksums]


# The virtual GPU's answers, part by part: the choices of docs/FIDELITY.md, and published checksums.
DOCUMENTED = {
    "H1": gold("41b1fba254c2e825", "02a3441a4da47025", "4f524897662b81a5"),
    "H2": ["7ff7 everywhere", "7ff7 everywhere", "7ff77ff7 everywhere", "7ff77ff77ff77ff7 everywhere", NO_TF32],
    "H3": ["6 bytes of data, 10 zeros, in every row"],
    "H4": [EDGE],
    "H5": [TMA] * 6,
    "H6": [TMA] * 6,
    "H7": [LACKS] * 6,
    "H8": ["returns 0", "returns 0", "returns 1", "returns 1", "returns 0", "returns 1", "returns 1", "returns 0",
           "returns 1", "returns 0", "returns 0", "returns 1", "returns 1"],
    "H9": gold("5a65f3580ac2c425", "d80ac658736bb725"),
    "H10": ["the virtual GPU has no contexts"],
    "H11": ["00 everywhere"] * 2,
    "H12": [TMA],
    "H13": [NO_TF32] * 2,
    "H14": gold("42d90aa15124d3a5", "7eaaa7caca4563a5", "a3db016fafb1b825", "74e4b61e9cb96065", "8ab765093f6b3c25",
                "402cb8a4572a68a5", "dd9df55a5337a805"),
    "H15": gold("68f4d1a584ec93a5", "9502d1908cd3e825", "09d48a3143c66925", "71789d99e92d6fa5"),
    "H16": ["dynamic memory begins at a multiple of 1024"] * 2,
    "H17": ["runs with 102400 bytes"],
    "H18": ["the wait ends early, the next phase's bytes make up for it"],
    "H19": ["chunk c of row r at chunk c, the rest unchanged", "chunk c of row r at chunk c ^ r, the rest unchanged"],
    "H20": ["the virtual GPU has no driver"],
    "P1": [SEQ] * 2 + ["adds as seq"] * 6,
    "P2": [f"{NAN} {NAN} {NAN} 7ff8000000000123 fff8000000000456 fff8000000000456 7ff8000000000001",
           "fff8000000000456 fff8000000000456 3ff0000000000000 3ff0000000000000", "7fffffff 7fffffff 7fffffff",
           "7fff 7fff"],
    "P3": [" ".join(["f" * digits] * 4) for digits in (4, 8, 16)],
    "P4": ["the lowest lane of the mask"],
}
NOT_APPLICABLE = {"the virtual GPU has no contexts", "the virtual GPU has no driver", NO_TF32}


class Check:
    """One call: its exit code, its output, and its report."""

    def __init__(self, *arguments, report=True, **environment):
        with tempfile.TemporaryDirectory() as folder:
            out = ["--out", os.path.join(folder, "reports", "here")] if report else []
            done = subprocess.run([PROGRAM, *arguments, *out], capture_output=True, text=True, timeout=1200,
                                  check=False, env={**os.environ, **environment})
            self.code, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr
            self.json, self.markdown, self.names = None, "", []
            if out and os.path.isdir(out[1]):
                self.names = sorted(os.listdir(out[1]))
                for name in self.names:
                    with open(os.path.join(out[1], name), encoding="utf-8") as file:
                        if name.endswith(".json"):
                            self.json = json.load(file)
                        else:
                            self.markdown = file.read()

    def parts(self):
        for probe in self.json["probes"]:
            for part in probe["parts"]:
                yield probe["id"], part

    def failed_cases(self):
        return [case for case in self.json["cases"] if not case["passed"]]


def stand_in(*arguments, **environment):
    return Check("--driver", DRIVER, *arguments, **environment)


class OnTheVirtualGpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.check = Check("--device", "virtual", "--probes")

    def test_every_probe_gives_the_models_documented_choice(self):
        self.assertEqual([probe["id"] for probe in self.check.json["probes"]],
                         [f"H{i}" for i in range(1, 21)] + [f"P{i}" for i in range(1, 5)])
        for probe in self.check.json["probes"]:
            with self.subTest(probe=probe["id"]):
                self.assertEqual([part["measured"] for part in probe["parts"]], DOCUMENTED[probe["id"]])

    def test_what_is_asked_of_a_driver_is_not_applicable_and_everything_else_as_expected(self):
        for probe, part in self.check.parts():
            with self.subTest(probe=probe, part=part["part"]):
                self.assertEqual(part["verdict"],
                                 "not applicable" if part["measured"] in NOT_APPLICABLE else "as expected")

    def test_all_passed_is_exit_code_0_and_said(self):
        self.assertEqual(self.check.code, 0, self.check.stderr)
        self.assertTrue(self.check.json["passed"])
        self.assertEqual(self.check.json["model_choices"],
                         "target sm_90, short rows padded to the span, NaN fill 7ff7, store edge 16 B")
        self.assertIn("all passed", self.check.stdout)
        self.assertIn("78 as expected, 5 not applicable", self.check.stdout)

    def test_the_reports_are_named_after_the_gpu_and_the_day(self):
        day = self.check.json["date"]
        self.assertRegex(day, r"^20\d\d-\d\d-\d\d$")
        self.assertEqual(self.check.names, [f"report-virtual-gpu-{day}.json", f"report-virtual-gpu-{day}.md"])

    def test_the_page_has_every_question_with_what_was_measured(self):
        for probe in self.check.json["probes"]:
            self.assertIn(f"### {probe['id']}: {probe['question']}", self.check.markdown)
            for part in probe["parts"]:
                self.assertIn(f"| {part['measured']} |", self.check.markdown)

    def test_one_process_for_all_says_the_same(self):
        inside = Check("--device", "virtual", "--probes", "--in-process")
        self.assertEqual(inside.json, self.check.json)


class ThroughTheDriver(unittest.TestCase):
    """The fake driver adds as the virtual GPU does, so only these probes may differ from an H200."""

    @classmethod
    def setUpClass(cls):
        cls.check = stand_in("--cases", "--small", "--probes", "--blocks", "8")

    def test_the_device_is_the_drivers(self):
        self.assertEqual(self.check.json["device"],
                         {"kind": "cuda", "name": "Imitation H200", "architecture": "sm_90a", "driver": "CUDA 13.0",
                          "multiprocessors": 132, "memory_bytes": 1 << 34})
        self.assertTrue(self.check.names[0].startswith("report-imitation-h200-20"), self.check.names)

    def test_every_kernels_small_case_passes(self):
        self.assertEqual(self.check.failed_cases(), [])
        kernels = {case["kernel"] for case in self.check.json["cases"]}
        self.assertLessEqual({"append_tokens", "gather_rows", "populate_rows", "tma_tile_load", "gather4_tile_load",
                              "lds_stage", "paged_decode", "paged_prefill", "mla_decode", "continuous_decode"}, kernels)
        for case in self.check.json["cases"]:
            self.assertGreater(case["seconds"], 0)

    def test_probes_differ_where_the_stand_in_does(self):
        differ = [probe for probe, part in self.check.parts() if part["verdict"] == "differs"]
        self.assertEqual(differ, ["P1"] * 8)
        self.assertLessEqual({part["verdict"] for _, part in self.check.parts()},
                             {"as expected", "settled", "differs"})
        self.assertEqual(self.check.code, 1)
        self.assertFalse(self.check.json["passed"])
        self.assertIn("differs P1 random blocks, wgmma e4m3: adds as seq, expected: adds as hopper", self.check.stdout)

    def test_errors_of_the_driver_are_the_answers_to_mistakes(self):
        answers = {probe: [part["measured"] for p, part in self.check.parts() if p == probe]
                   for probe in ("H5", "H6", "H7", "H10", "H12")}
        self.assertEqual(answers, {"H5": ["stopped: error 715"] * 6, "H6": ["stopped: error 716"] * 6,
                                   "H7": ["returns 1"] * 6, "H10": ["returns 201"], "H12": ["stopped: error 715"]})

    def test_what_nobody_knows_is_settled_by_what_came(self):
        for probe, part in self.check.parts():
            self.assertEqual(part["verdict"] == "settled", part["expected"] is None, (probe, part))
        self.assertIn("settled H20 host time: ", self.check.stdout)

    def test_times_are_part_of_both_reports(self):
        check = stand_in("--bench", "--small", "--kernel", "gather_rows")
        self.assertEqual((check.json["cases"], check.json["probes"]), ([], []))
        self.assertIn("gather_rows_bf16", json.dumps(check.json["bench"]))
        self.assertIn("## Times\n", check.markdown)
        self.assertIn("| gather_rows_bf16 |", check.markdown)

    def test_cases_alone_pass(self):
        check = stand_in("--cases", "--small", "--kernel", "gather_rows")
        self.assertEqual((check.code, check.json["probes"]), (0, []), check.stderr)
        self.assertEqual({case["kernel"] for case in check.json["cases"]}, {"gather_rows"})


class WhatGoesWrong(unittest.TestCase):
    """Only one case of tma_tile_load launches tma_tile_load_fold_outer; later cases must not be lost."""
    ENTRY = "tma_tile_load_fold_outer"
    VICTIM = "k_bf16_b128_page128_fold_outer"

    @classmethod
    def setUpClass(cls):
        cls.sound = stand_in("--cases", "--kernel", "tma_tile_load")

    def check_only_the_victim_failed(self, check):
        self.assertEqual(check.code, 1, check.stderr)
        self.assertEqual([case["case"] for case in check.json["cases"]],
                         [case["case"] for case in self.sound.json["cases"]])
        self.assertEqual([case["case"] for case in check.failed_cases()], [self.VICTIM])
        self.assertNotEqual(check.json["cases"][-1]["case"], self.VICTIM)
        self.assertIn(f"FAILED  tma_tile_load {self.VICTIM}: ", check.stdout)
        return "\n".join(check.failed_cases()[0]["faults"])

    def test_without_mishap_all_pass(self):
        self.assertEqual((self.sound.code, self.sound.failed_cases()), (0, []))

    def test_a_context_that_a_kernel_ends_takes_no_other_case_along(self):
        faults = self.check_only_the_victim_failed(
            stand_in("--cases", "--kernel", "tma_tile_load", KVSCOPE_FAKE_ENDS_CONTEXT=self.ENTRY))
        self.assertIn("cuCtxSynchronize: CUDA_ERROR_OF_THE_FAKE_DRIVER (719)", faults)

    def test_a_kernel_that_never_ends_is_ended_at_the_time_limit(self):
        begin = time.monotonic()
        faults = self.check_only_the_victim_failed(
            stand_in("--cases", "--kernel", "tma_tile_load", "--time-limit", str(SILENCE),
                     KVSCOPE_FAKE_HANGS=self.ENTRY))
        self.assertIn(f"its process: silent for {SILENCE} s, killed", faults)
        self.assertGreater(time.monotonic() - begin, SILENCE)

    def test_a_process_that_crashes_is_named_with_its_signal(self):
        if SLOW_BUILD:
            self.skipTest("the sanitizers turn the signal into an exit code of theirs")
        faults = self.check_only_the_victim_failed(
            stand_in("--cases", "--kernel", "tma_tile_load", KVSCOPE_FAKE_CRASHES=self.ENTRY))
        self.assertIn("its process: killed by signal 11 (Segmentation fault)", faults)

    def test_a_probe_that_hangs_is_failed_and_the_others_are_asked(self):
        check = stand_in("--probes", "--blocks", "1", "--time-limit", str(SILENCE), KVSCOPE_FAKE_HANGS="probe_divide")
        parts = list(check.parts())
        self.assertEqual([(probe, part["measured"]) for probe, part in parts if part["verdict"] == "failed"],
                         [("P3", f"its process: silent for {SILENCE} s, killed")] * 3)
        self.assertEqual(parts[-1][1]["measured"], "the lowest lane of the mask")
        self.assertEqual(check.code, 1)
        self.assertIn("FAILED  P3 64 bits: its process: silent", check.stdout)

    def test_times_whose_process_crashes_are_no_result(self):
        if SLOW_BUILD:
            self.skipTest("the sanitizers turn the signal into an exit code of theirs")
        check = stand_in("--bench", "--small", "--kernel", "gather_rows", KVSCOPE_FAKE_CRASHES="gather_rows_bf16_bf16")
        self.assertEqual((check.code, check.json["bench"]), (1, None))
        self.assertIn("No result; its process: killed by signal 11", check.markdown)

    def test_a_gpu_that_nothing_is_compiled_for_has_not_passed(self):
        check = stand_in("--cases", "--small", "--kernel", "gather_rows", "--probes", KVSCOPE_FAKE_NEWER="1")
        self.assertEqual(check.json["device"]["architecture"], "sm_100a")
        self.assertEqual((check.json["cases"], len(check.json["left_out"])), ([], 1))
        self.assertIn("needs a GPU of sm_90a", check.json["left_out"][0])
        self.assertEqual({part["measured"] for _, part in check.parts()},
                         {"the probes are of sm_90a, this GPU is sm_100a"})
        self.assertEqual((check.code, check.json["passed"]), (1, False))

    def test_no_driver_is_exit_code_77_with_the_loaders_words(self):
        check = Check("--driver", "libcuda_that_is_not_there.so.1")
        self.assertEqual((check.code, check.names, check.stdout), (77, [], ""))
        self.assertRegex(check.stderr, r"^gpu-check: no GPU to check: no CUDA driver on this machine "
                                       r"\(libcuda_that_is_not_there\.so\.1: cannot open shared object file")

    def test_no_gpu_is_exit_code_77_with_the_drivers_words(self):
        check = stand_in(KVSCOPE_FAKE_NO_GPU="1")
        self.assertEqual((check.code, check.stderr),
                         (77, "gpu-check: no GPU to check: the driver finds no GPU on this machine\n"))


class TheCommandLine(unittest.TestCase):
    def check_refused(self, words, *arguments, report=True):
        check = Check(*arguments, report=report)
        self.assertEqual((check.code, check.names), (2, []), check.stdout)
        self.assertRegex(check.stderr, "^gpu-check: command line: ")
        self.assertRegex(check.stderr, words)

    def test_a_mistake_is_exit_code_2_and_a_way_out(self):
        self.check_refused("--out is required", "--probes", report=False)
        self.check_refused("opencl", "--device", "opencl")
        self.check_refused("no clock", "--device", "virtual", "--bench")
        self.check_refused("no kernel 'gather': one of append_tokens, ", "--device", "virtual", "--kernel", "gather")
        self.check_refused("'probe:H5/6' is not one of device, ", "--device", "virtual", "--one", "probe:H5/6", report=False)
        self.check_refused(r"--time-limit: 0 is not a number from 0\.1 to 86400: see", "--time-limit", "0")

    def test_an_option_that_has_no_effect_is_a_fault(self):
        virtual = ("--device", "virtual")
        for option in ("--cases", "--probes", "--instructions", "--in-process", "--time-limit=5", "--out=x"):
            self.check_refused(f"{option.split('=')[0]}: has no effect with --one: leave it out$", *virtual, "--one", "device", option,
                               report=False)
        self.check_refused("--bench: has no effect with --one: leave it out$", "--one", "device", "--bench", report=False)
        self.check_refused("--driver: has no effect with --device virtual", *virtual, "--driver", "libcuda.so")
        self.check_refused("--kernel: has no effect without --cases or --bench", *virtual, "--probes", "--kernel", "gather_rows")
        self.check_refused("--small: has no effect without --cases, --instructions or --bench", *virtual, "--probes", "--small")
        self.check_refused("--blocks: has no effect without --probes", *virtual, "--cases", "--blocks", "5")
        self.check_refused("--time-limit: has no effect with --in-process", *virtual, "--in-process", "--time-limit", "5")

    def test_a_case_that_a_kernel_does_not_have_is_a_fault(self):
        """It printed nothing, with exit code 0."""
        self.check_refused(r"--one: 'cases:gather_rows/1' is not a test: the cases of gather_rows are numbered from 0 to 0\n", "--device",
                           "virtual", "--small", "--one", "cases:gather_rows/1", report=False)

    def test_a_report_that_cannot_be_written_is_named_before_the_check(self):
        with tempfile.NamedTemporaryFile() as file:
            done = subprocess.run([PROGRAM, "--device", "virtual", "--cases", "--small", "--out", file.name], capture_output=True, text=True,
                                  timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, f"gpu-check: {file.name}: is not a folder: name one for the report with --out\n")

    def test_help_names_the_exit_codes(self):
        done = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, timeout=60, check=True)
        self.assertIn("0 all passed, 1 something failed, 2 usage, 77 no GPU", done.stdout)


class TheScript(unittest.TestCase):
    """tests/gpu/run.sh with a program that is already built."""
    SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "run.sh")

    def run_script(self, *arguments, sanitizer=None, driver=None):
        """`sanitizer`: a shell line that replaces compute-sanitizer in PATH; None: it is not installed."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.pathsep.join(["/usr/bin", "/bin"])
            if sanitizer is not None:
                with open(os.path.join(folder, "compute-sanitizer"), "w", encoding="utf-8") as file:
                    file.write(f"#!/bin/bash\n{sanitizer}\n")
                os.chmod(file.name, 0o755)
                path = folder + os.pathsep + path
            reports = os.path.join(folder, "reports")
            environment = {**os.environ, "PATH": path, "KVSCOPE_REPORTS": reports, "KVSCOPE_DRIVER": driver or DRIVER}
            done = subprocess.run([self.SCRIPT, *arguments], capture_output=True, text=True, timeout=600, check=False,
                                  env=environment)
            files = sorted(os.listdir(reports)) if os.path.isdir(reports) else []
            return done, files

    SMALL = ("--", "--cases", "--small", "--kernel", "gather_rows")

    def test_without_a_gpu_it_is_skipped_with_the_reason(self):
        done, files = self.run_script(PROGRAM, driver="libcuda_that_is_not_there.so.1")
        self.assertEqual((done.returncode, files), (77, []), done.stderr)
        self.assertIn("cannot open shared object file", done.stderr)
        self.assertIn("skipped: there is no GPU to run on", done.stderr)

    def test_without_the_sanitizer_it_says_what_is_skipped(self):
        done, files = self.run_script(PROGRAM, *self.SMALL)
        self.assertEqual((done.returncode, len(files)), (0, 2), done.stderr)
        self.assertIn("skipped: memcheck and racecheck: compute-sanitizer", done.stdout)

    def test_both_tools_of_the_sanitizer_run_the_small_cases(self):
        done, files = self.run_script(PROGRAM, *self.SMALL, sanitizer=(
            '[ "$1 $3" = "--tool --error-exitcode" ] || exit 3; shift 4; '
            'case "$*" in *--in-process\\ --cases\\ --small*) exec "$@" --kernel gather_rows ;; esac; exit 4'))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for tool in ("memcheck", "racecheck"):
            self.assertIn(f"{tool}: no fault in the small cases", done.stdout)
            self.assertLessEqual({tool, tool + ".log"}, set(files))

    def test_what_the_sanitizer_finds_fails(self):
        done, _ = self.run_script(PROGRAM, *self.SMALL, sanitizer='echo "Invalid __global__ read"; '
                                                                  '[ "$2" = memcheck ] && exit 9; exit 0')
        self.assertEqual(done.returncode, 1)
        self.assertIn("memcheck: FAILED, exit code 9", done.stdout)
        self.assertIn("Invalid __global__ read", done.stdout)
        self.assertIn("racecheck: no fault", done.stdout)

    def test_mistakes_are_exit_code_2(self):
        for arguments, words in ((["--small"], "options of gpu-check follow --"), (["no_such_program"], "no program")):
            done, _ = self.run_script(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)


class TheBinary(unittest.TestCase):
    def test_it_needs_the_c_library_alone(self):
        if shutil.which("ldd") is None:
            self.skipTest("no ldd on this machine: the libraries of the binary are not checked")
        if SLOW_BUILD:
            self.skipTest("a sanitizer's libraries are shared ones")
        said = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, timeout=60, check=True).stdout
        needed = {re.match(r"\s*(?:\S*/)?([a-z_+-]+)", line)[1] for line in said.splitlines()}
        self.assertIn("libc", needed)
        self.assertLessEqual(needed, {"linux-vdso", "ld-linux-x", "ld-linux-aarch", "libc", "libm", "libdl",
                                      "libpthread"})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--driver", required=True)
    options, rest = parser.parse_known_args()
    PROGRAM, DRIVER = options.program, options.driver
    unittest.main(argv=[sys.argv[0], *rest])
