#!/usr/bin/python3
"""kvscope cuda and kvscope nvcc: programs of the CUDA runtime, right and wrong, on the virtual GPU.

    cuda_test.py --kvscope PROGRAM --cuda-program PROGRAM [--sanitized]

--cuda-program is tests/gpu/driver/cuda_program.cpp, which needs no toolkit. Programs that nvcc compiles are skipped where there is no
nvcc, and under the sanitizers, which a program must be compiled with.
"""
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
import docs_test  # noqa: E402
import matrix_sums  # noqa: E402
import program  # noqa: E402

PAGE = pathlib.Path(program.SOURCE) / "docs" / "15_virtual_gpu.md"
NVCC = shutil.which("nvcc", path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin")
CUDA_PROGRAM, SANITIZED = "", False
# The runtime is never destroyed, and a program that ends with findings does not run the leak check.
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS="detect_leaks=0")

# A program with every kind of copy, symbol, stream and graph; prints "ok".
SAMPLE = r"""
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { \
  printf("%d: %s\n", __LINE__, cudaGetErrorString(e)); return 3; } } while (0)
#define EXPECT(c) do { if (!(c)) { printf("%d: %s\n", __LINE__, #c); return 3; } } while (0)
__constant__ float factor;
__device__ float offsets[32];
__managed__ int launches;
template <class T> __global__ void apply(T* y, const T* x, int n) {
  extern __shared__ float tile[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  if (i < n) y[i] = tile[threadIdx.x] * factor + offsets[i % 32];
  if (i == 0) launches += 1;
}
__global__ void __cluster_dims__(2, 1, 1) ranks(int* out) {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) { out[blockIdx.x] = rank; printf("cta %d\n", blockIdx.x); }
}
int main() {
  const int n = 100;
  std::vector<float> x(n, 3), y(n), o(32, 1);
  const float two = 2;
  cudaDeviceProp p; CHECK(cudaGetDeviceProperties(&p, 0));
  EXPECT(p.major == 9 && p.multiProcessorCount == 132 && p.warpSize == 32 && p.clusterLaunch == 1);
  CHECK(cudaMemcpyToSymbol(factor, &two, sizeof two));
  CHECK(cudaMemcpyToSymbol(offsets, o.data(), 128));
  float *dx, *dy; CHECK(cudaMalloc(&dx, 4 * n)); CHECK(cudaMalloc(&dy, 4 * n));
  cudaStream_t s; CHECK(cudaStreamCreate(&s));
  cudaEvent_t a, b; CHECK(cudaEventCreate(&a)); CHECK(cudaEventCreate(&b));
  CHECK(cudaMemcpyAsync(dx, x.data(), 4 * n, cudaMemcpyHostToDevice, s));
  CHECK(cudaEventRecord(a, s));
  apply<float><<<4, 32, 128, s>>>(dy, dx, n); CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(b, s)); CHECK(cudaStreamSynchronize(s));
  float ms = 0; CHECK(cudaEventElapsedTime(&ms, a, b)); EXPECT(ms > 0);
  CHECK(cudaMemcpy(y.data(), dy, 4 * n, cudaMemcpyDeviceToHost));
  EXPECT(y[0] == 7 && y[99] == 7 && launches == 1);
  cudaGraph_t g; cudaGraphExec_t x2;
  CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  apply<float><<<4, 32, 128, s>>>(dx, dy, n); apply<float><<<4, 32, 128, s>>>(dy, dx, n);
  CHECK(cudaStreamEndCapture(s, &g)); CHECK(cudaGraphInstantiate(&x2, g, 0));
  EXPECT(launches == 1);
  CHECK(cudaGraphLaunch(x2, s)); CHECK(cudaStreamSynchronize(s));
  CHECK(cudaMemcpy(y.data(), dy, 4 * n, cudaMemcpyDeviceToHost));
  EXPECT(y[0] == 31 && launches == 3);
  int blocks = 0, size = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, apply<float>, 256, 0)); EXPECT(blocks == 8);
  CHECK(cudaOccupancyMaxPotentialBlockSize(&blocks, &size, apply<float>)); EXPECT(size == 1024);
  CHECK(cudaFuncSetAttribute(apply<float>, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
  cudaFuncAttributes f; CHECK(cudaFuncGetAttributes(&f, apply<float>)); EXPECT(f.maxDynamicSharedSizeBytes == 200 << 10);
  int* ids; CHECK(cudaMallocManaged(&ids, 16));
  cudaLaunchConfig_t c = {}; c.gridDim = 4; c.blockDim = 32; c.stream = s;
  CHECK(cudaLaunchKernelEx(&c, ranks, ids)); CHECK(cudaDeviceSynchronize());
  EXPECT(ids[0] == 0 && ids[1] == 1 && ids[2] == 0 && ids[3] == 1);
  cudaExtent extent = make_cudaExtent(20, 3, 2);
  cudaPitchedPtr box; CHECK(cudaMalloc3D(&box, extent)); CHECK(cudaMemset3D(box, 7, extent));
  std::vector<unsigned char> bytes(120);
  cudaMemcpy3DParms m = {}; m.srcPtr = box; m.dstPtr = make_cudaPitchedPtr(bytes.data(), 20, 20, 3); m.extent = extent;
  m.kind = cudaMemcpyDeviceToHost; CHECK(cudaMemcpy3D(&m)); EXPECT(bytes[119] == 7);
  cudaPointerAttributes w; CHECK(cudaPointerGetAttributes(&w, dx + 1)); EXPECT(w.type == cudaMemoryTypeDevice);
  CHECK(cudaPointerGetAttributes(&w, &two)); EXPECT(w.type == cudaMemoryTypeUnregistered);
  CHECK(cudaGraphExecDestroy(x2)); CHECK(cudaGraphDestroy(g)); CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(dx)); CHECK(cudaFree(dy)); CHECK(cudaFree(ids)); CHECK(cudaFree(box.ptr));
  puts("ok");
}
"""


def run(*arguments, **options):
    return subprocess.run([program.KVSCOPE, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False,
                          env=ENVIRONMENT, **options)


class WithoutNvcc(unittest.TestCase):
    def test_a_right_program_keeps_its_exit_code(self):
        done = run("cuda", CUDA_PROGRAM)
        self.assertEqual((done.returncode, done.stdout), (0, "no error\ny[3] = 6\n"), done.stderr)
        self.assertRegex(done.stderr, r"^kvscope cuda: \d+ calls, 32 warp instructions: no findings\n$")
        self.assertEqual(run("cuda", CUDA_PROGRAM, "code").returncode, 5)

    def test_findings_give_exit_code_1_and_name_both_calls(self):
        done = run("cuda", CUDA_PROGRAM, "double_free")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "no error\ny[3] = 6\n")
        self.assertRegex(done.stderr, r"(?s)DOUBLE_FREE  cudaFree  0x200000000 \(256 bytes\)\n.*"
                                      r"allocated by call 1, cudaMalloc of 256 bytes.*freed by call 7, cudaFree")
        done = run("cuda", CUDA_PROGRAM, "host_pointer")
        self.assertEqual(done.returncode, 1)
        self.assertIn("an illegal memory access was encountered", done.stdout)
        self.assertIn("HOST_POINTER", done.stderr)

    def test_a_device_pointer_on_the_host_is_reported_before_the_program_ends(self):
        if SANITIZED:
            self.skipTest("the address sanitizer has memory at the addresses of the device")
        done = run("cuda", CUDA_PROGRAM, "device_pointer")
        self.assertEqual(done.returncode, 128 + 11)
        self.assertIn("DEVICE_POINTER  host code  0x300000000", done.stderr)
        self.assertIn("allocated by call 2, cudaMalloc", done.stderr)

    def debug(self, commands, *arguments):
        return run("cuda", "--gdb", *arguments, input=commands)

    def test_the_debugger_opens_at_each_report_and_continue_leads_to_the_next(self):
        done = self.debug("print %rd4\nback\nlist\nx global 0x200000000 8\nc\nc\nquit\n", CUDA_PROGRAM, "uninitialized")
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertEqual(done.stderr.count("stopped at a report\nUNINITIALIZED  global 0x200000000"), 3, "one of them twice")
        self.assertIn("launched by call 3, cudaLaunchKernel of scale", done.stderr)
        self.assertIn("launched by call 4, cudaLaunchKernel of scale", done.stderr)
        self.assertIn("lanes 0-7         0x200000000 0x200000004", done.stderr)
        self.assertRegex(done.stderr, r"\n>    15    st\.global\.f32 \[%rd5\], %f2;\n")
        self.assertIn("\n0x200000000  ffffffff ffffffff\n", done.stderr)
        # A report counts once however often the debugger has reached it. The program did not reach its leaks.
        self.assertRegex(done.stderr, r"kvscope cuda: 4 calls, 47 warp instructions: 2 findings\n$")

    def test_the_debugger_changes_neither_outputs_nor_exit_code(self):
        plain = run("cuda", CUDA_PROGRAM, "uninitialized")
        done = self.debug("c\nc\nc\n", CUDA_PROGRAM, "uninitialized")
        self.assertEqual((done.returncode, done.stdout), (1, plain.stdout))
        self.assertEqual(done.stderr.splitlines()[-1], plain.stderr.splitlines()[-1])
        done = self.debug("detach\n", CUDA_PROGRAM, "uninitialized")
        self.assertEqual((done.returncode, done.stdout), (1, plain.stdout))
        self.assertEqual(done.stderr.count("stopped at"), 1)
        done = self.debug("", CUDA_PROGRAM, "code")
        self.assertEqual((done.returncode, done.stdout), (5, "no error\ny[3] = 6\n"), "no report: the debugger is silent")

    def test_the_debugger_stops_at_breakpoints_of_the_command_line(self):
        done = self.debug("where\nstep\nregisters\nquit\n", "--break", "scale", CUDA_PROGRAM)
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stderr.startswith("stopped at breakpoint 1\nstep 0  cta 0 warp 0"), done.stderr)
        done = self.debug("print %r4\nquit\n", "--break", "ptx:13 if %r4 == 40", CUDA_PROGRAM)
        self.assertRegex(done.stderr, r"^stopped at breakpoint 1\nstep \d+  cta 0 warp 1 .*\n.*ld\.global\.f32")
        # A breakpoint that no kernel has never stops; a script's mistake is an error, and the program goes on.
        self.assertEqual(self.debug("", "--break", "other.cu:7", CUDA_PROGRAM).returncode, 0)
        done = self.debug("nonsense\ndetach\n", "--break", "scale", CUDA_PROGRAM, "leak")
        self.assertEqual((done.returncode, done.stdout), (2, "no error\ny[3] = 6\n"))
        self.assertIn("there is no command 'nonsense'", done.stderr)
        for wrong in (["--break", "scale if 3", CUDA_PROGRAM], ["--break", "", CUDA_PROGRAM]):
            self.assertEqual(self.debug("", *wrong).returncode, 2)

    def test_the_debugger_prompts_on_a_terminal(self):
        try:
            ours, theirs = pty.openpty()
        except OSError as error:
            self.skipTest(f"no pseudo-terminal is available ({error}): is /dev/pts mounted?")
        with subprocess.Popen([program.KVSCOPE, "cuda", "--gdb", CUDA_PROGRAM, "uninitialized"], stdin=theirs, stdout=theirs,
                              stderr=theirs, env=ENVIRONMENT) as process:
            os.close(theirs)
            text = ""
            for answer in ("wrong\n", "back\n", "quit\n"):
                while not text.endswith("\n> "):
                    text += os.read(ours, 65536).decode().replace("\r", "")
                os.write(ours, answer.encode())
                text += "|"
            while True:
                try:
                    text += os.read(ours, 65536).decode().replace("\r", "")
                except OSError:
                    break
            os.close(ours)
        self.assertEqual(process.returncode, 1, "a person's mistyped command is no failure")
        self.assertIn("help lists the commands\n> |wrong\nthere is no command 'wrong'", text)
        self.assertIn("> |back\nstep 14  cta 0 warp 0", text)

    def test_jobs_are_stated_at_the_end_and_change_nothing_else(self):
        one, several = run("cuda", CUDA_PROGRAM, "grid"), run("cuda", "--jobs", "3", CUDA_PROGRAM, "grid")
        self.assertEqual((several.returncode, several.stdout), (0, one.stdout))
        self.assertEqual(several.stderr, one.stderr.rstrip("\n") + "; 1 of 1 launches on 3 threads\n")
        done = run("cuda", "--jobs", "3", CUDA_PROGRAM, "none")
        self.assertTrue(done.stderr.endswith("; 0 of 1 launches on 3 threads, the others on one, the first of them because it has "
                                             "one CTA\n"), done.stderr)
        done = run("cuda", "--jobs", "257", CUDA_PROGRAM)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--jobs: 257 is not a number from 1 to 256", done.stderr)

    def test_the_sum_of_matrix_instructions_is_that_of_the_option_and_is_stated(self):
        with tempfile.TemporaryDirectory() as folder:
            for how in matrix_sums.NAMES:
                done = run("cuda", "--sum", how, "--report", "r.json", CUDA_PROGRAM, "sum", cwd=folder)
                product = re.search(r"^product = (.*)$", done.stdout, re.MULTILINE)
                self.assertEqual(float.fromhex(product[1]), float(matrix_sums.of_kernel(how)), how)
                self.assertEqual(json.loads(pathlib.Path(folder, "r.json").read_text(encoding="utf-8"))["sum"], how)
                self.assertEqual(f"; sum {how}\n" in done.stderr, how != "seq")
        self.assertEqual(run("cuda", "--sum", "seq", CUDA_PROGRAM, "sum").stdout, run("cuda", CUDA_PROGRAM, "sum").stdout)
        done = run("cuda", "--sum", "ampere", CUDA_PROGRAM, "sum")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--sum: 'ampere' is not a valid value: choose one of seq, exact, hopper", done.stderr)

    def test_a_sum_in_the_environment_that_is_none_is_rejected_with_the_names(self):
        libraries = os.path.join(os.path.dirname(program.KVSCOPE), "..", "..", "lib", "kvscope", "cuda")
        done = subprocess.run([CUDA_PROGRAM, "sum"], env=dict(ENVIRONMENT, KVSCOPE_CUDA_SUM="ampere", LD_LIBRARY_PATH=libraries),
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("KVSCOPE_CUDA_SUM: 'ampere' is not one of seq, exact, hopper", done.stderr)

    def test_a_sample_of_the_ctas_is_stated_at_the_end(self):
        done = run("cuda", "--ctas", "0,last", CUDA_PROGRAM, "grid")
        self.assertEqual((done.returncode, done.stdout), (0, "no error\ny[3] = 6\n"), done.stderr)
        self.assertTrue(done.stderr.endswith("no findings; sampled: 2 of 4 CTAs ran, so the program's results are not those of whole "
                                             "launches\n"), done.stderr)
        done = run("cuda", "--ctas", "1", CUDA_PROGRAM, "grid")
        self.assertEqual(done.returncode, 1, "y was not written")
        self.assertNotIn("sampled", run("cuda", "--ctas", "0-3", CUDA_PROGRAM, "grid").stderr)
        done = run("cuda", "--ctas", "first", CUDA_PROGRAM)
        self.assertEqual(done.returncode, 1)
        self.assertIn("ctas: 'first' is not a CTA: write a number", done.stderr)

    def test_leaks_can_be_left_out(self):
        self.assertEqual(run("cuda", CUDA_PROGRAM, "leak").returncode, 1)
        self.assertEqual(run("cuda", "--no-leaks", CUDA_PROGRAM, "leak").returncode, 0)

    def test_reports_are_written_as_json_junit_and_sarif(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("r.json", "r.xml", "r.sarif", "r.txt"):
                run("cuda", "--report", name, CUDA_PROGRAM, "leak", cwd=folder)
            text = {name: pathlib.Path(folder, name).read_text(encoding="utf-8") for name in os.listdir(folder)}
        (report,) = json.loads(text["r.json"])["reports"]
        self.assertEqual((report["kind"], report["severity"]), ("LEAK", "error"))
        self.assertEqual(xml.etree.ElementTree.fromstring(text["r.xml"]).get("failures"), "1")
        self.assertEqual(json.loads(text["r.sarif"])["runs"][0]["results"][0]["ruleId"], "LEAK")
        self.assertTrue(text["r.txt"].startswith("LEAK  0x300000000 (256 bytes)\n"))

    def test_options_after_the_program_are_the_programs(self):
        self.assertEqual(run("cuda", "/bin/echo", "--policy", "--help").stdout, "--policy --help\n")

    def test_what_cannot_run_is_rejected_by_name(self):
        done = run("cuda", "./no_such_program")
        self.assertEqual((done.returncode, done.stderr), (2, "kvscope: ./no_such_program: no such file\n"))
        self.assertEqual(run("cuda").returncode, 2)
        self.assertEqual(run("cuda", "--policy", "soon", CUDA_PROGRAM).returncode, 2)
        done = run("nvcc", "-rdc=true", "sums.cu")
        self.assertEqual(done.returncode, 2)
        self.assertIn("relocatable device code", done.stderr)

    def test_a_time_limit_ends_the_program_too(self):
        done = run("cuda", "--timeout", "0.3", "/bin/sleep", "100")
        self.assertEqual(done.returncode, 2)


@unittest.skipIf(NVCC is None, "there is no nvcc")
class WithNvcc(unittest.TestCase):
    def setUp(self):
        if SANITIZED:
            self.skipTest("nvcc's programs are not compiled with the sanitizers, as the library is")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compile(self, source, *options, command=("nvcc",)):
        (self.folder / "p.cu").write_text(source, encoding="utf-8")
        done = run(*command, "-o", "p", *options, "p.cu", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.folder / "p"

    def test_an_ordinary_program_runs_unchanged(self):
        for options in ([], ["--no-compress", "--default-stream", "per-thread", "-O0"]):
            with self.subTest(options=options):
                done = run("cuda", self.compile(SAMPLE, *options))
                self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "ok"), done.stdout + done.stderr)
                self.assertEqual(sorted(done.stdout.splitlines()[:4]), [f"cta {i}" for i in range(4)])

    def test_programs_without_a_shared_runtime_or_ptx_are_rejected(self):
        source = self.folder / "p.cu"
        source.write_text("__global__ void k() {}\nint main() { k<<<1, 1>>>(); cudaDeviceSynchronize(); }\n", encoding="utf-8")
        subprocess.run([NVCC, "-arch=sm_90", "-o", "static", source], cwd=self.folder, check=True, capture_output=True)
        done = run("cuda", self.folder / "static")
        self.assertEqual(done.returncode, 2)
        self.assertIn("link again with nvcc -cudart shared", done.stderr)
        subprocess.run([NVCC, "-cudart", "shared", "-gencode", "arch=compute_90,code=sm_90", "-o", "code", source],
                       cwd=self.folder, check=True, capture_output=True)
        done = run("cuda", self.folder / "code")
        self.assertEqual(done.returncode, 2)
        self.assertIn("machine code for sm_90; no PTX", done.stderr)

    def test_the_page_shows_what_is_printed(self):
        lines = PAGE.read_text(encoding="utf-8").split("\n")
        start = lines.index("## Your program, no GPU")
        checked = 0
        for language, name, first, end in docs_test.blocks(lines):
            if first < start:
                continue
            if name.endswith(".cu"):
                (self.folder / name).write_text("\n".join(lines[first:end]) + "\n", encoding="utf-8")
            if language == "text" and lines[first].startswith("$ kvscope nvcc"):
                for command, expected in docs_test.split_block(lines[first:end]):
                    done = subprocess.run(command.replace("kvscope", program.KVSCOPE, 1), shell=True, cwd=self.folder,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
                    printed = re.sub(r"\n$", "", done.stdout).split("\n") if done.stdout else []
                    self.assertTrue(docs_test.matches(expected, printed), f"$ {command}\n{done.stdout}")
                    checked += 1
        self.assertEqual(checked, 4)


if __name__ == "__main__":
    if "--sanitized" in sys.argv:
        sys.argv.remove("--sanitized")
        SANITIZED = True
    at = sys.argv.index("--cuda-program")
    CUDA_PROGRAM = os.path.abspath(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    program.main()
