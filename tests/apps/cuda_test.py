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
import struct
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

    def test_a_value_in_the_environment_that_is_none_is_rejected_as_on_the_command_line(self):
        libraries = os.path.join(os.path.dirname(program.KVSCOPE), "..", "..", "lib", "kvscope", "cuda")
        for name, value, fault in (("SUM", "ampere", "'ampere' is not one of seq, exact, hopper"),
                                   ("POLICY", "soon", "'soon' is not one of late, early, seed:N"),
                                   ("POLICY", "seed:0", f"'seed:0' is not seed:N with N from 1 to {2 ** 64 - 1}")):
            done = subprocess.run([CUDA_PROGRAM, "sum"], capture_output=True, text=True, timeout=60, check=False,
                                  env=dict(ENVIRONMENT, LD_LIBRARY_PATH=libraries, **{f"KVSCOPE_CUDA_{name}": value}))
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"KVSCOPE_CUDA_{name}: {fault}", done.stderr)

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

    def test_a_source_with_a_space_is_whole_in_the_report_and_a_uri_in_sarif(self):
        with tempfile.TemporaryDirectory() as folder:
            copied = shutil.copy(CUDA_PROGRAM, os.path.join(folder, "my program"))
            for name in ("r.json", "r.sarif"):
                run("cuda", "--report", name, copied, "uninitialized", cwd=folder)
            plain = json.loads(pathlib.Path(folder, "r.json").read_text(encoding="utf-8"))["reports"][0]
            sarif = json.loads(pathlib.Path(folder, "r.sarif").read_text(encoding="utf-8"))["runs"][0]["results"][0]
        self.assertRegex(plain["source"], r"^my program\.ptx:\d+$")
        place = sarif["locations"][0]["physicalLocation"]
        self.assertEqual((place["artifactLocation"]["uri"], f"my program.ptx:{place['region']['startLine']}"),
                         ("my%20program.ptx", plain["source"]))

    def test_a_format_without_a_report_is_rejected(self):
        done = run("cuda", "--format", "json", CUDA_PROGRAM)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "kvscope: command line: --format requires --report: see 'kvscope cuda --help'\n")

    def test_a_list_of_checks_does_not_take_the_program(self):
        done = run("cuda", "--check", "race,init", CUDA_PROGRAM)
        self.assertEqual((done.returncode, done.stdout), (0, "no error\ny[3] = 6\n"), done.stderr)

    def test_the_program_is_found_as_a_shell_finds_it(self):
        def find(name, path, cwd):
            environment = {key: value for key, value in ENVIRONMENT.items() if key != "PATH"}
            if path is not None:
                environment["PATH"] = path
            return subprocess.run([program.KVSCOPE, "cuda", name], cwd=cwd, env=environment, capture_output=True, text=True, timeout=60,
                                  check=False)
        with tempfile.TemporaryDirectory() as folder:
            os.symlink("/bin/true", os.path.join(folder, "mine"))
            pathlib.Path(folder, "plain").write_text("no program", encoding="utf-8")
            os.mkdir(os.path.join(folder, "box"))
            self.assertEqual(find("true", None, folder).returncode, 0, "the default of execvp is /bin:/usr/bin")
            for path in ("", ":/nowhere", "/nowhere:", "/nowhere::/bin", folder, f"/nowhere:{folder}"):
                self.assertEqual(find("mine", path, folder).returncode, 0, path)
            for name in ("mine", "plain", "box", "no_such"):
                done = find(name, "/nowhere" if name == "mine" else folder, folder)
                self.assertEqual((done.returncode, done.stderr),
                                 (2, f"kvscope: {name}: not found in PATH: a program of this folder is written ./{name}\n"))
            done = find("./" + "n" * 300, folder, folder)
            self.assertEqual((done.returncode, done.stderr), (2, f"kvscope: ./{'n' * 300}: cannot be read: File name too long\n"))
            done = find("./box", folder, folder)
            self.assertEqual((done.returncode, done.stderr), (2, "kvscope: ./box: is a folder: name a file in it\n"))

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

    def test_a_mistyped_option_is_no_program(self):
        for words in (("--chek", "race", CUDA_PROGRAM), ("--chek=race", CUDA_PROGRAM)):
            done = run("cuda", *words)
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (2, "", "kvscope: command line: '--chek' is not an option of 'kvscope cuda': did you mean --check? "
                              "See 'kvscope cuda --help'\n"))

    def test_a_source_in_the_place_of_its_program(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text, fault in (
                    ("./my.cu", "int main() {}\n", "is CUDA source, not a program: compile it with `kvscope nvcc -o ./my "
                     "./my.cu`, and run `kvscope cuda ./my`"),
                    ("./k.ptx", ".version 8.0\n", "is PTX, not a program: run a kernel of it with `kvscope ptx run ./k.ptx`")):
                path = pathlib.Path(folder) / name
                path.write_text(text, encoding="utf-8")
                for mode in (0o644, 0o755):
                    path.chmod(mode)
                    done = run("cuda", name, cwd=folder)
                    self.assertEqual((done.returncode, done.stderr), (2, f"kvscope: {name}: {fault}\n"))

    def test_a_time_limit_ends_the_program_too(self):
        done = run("cuda", "--timeout", "0.3", "/bin/sleep", "100")
        self.assertEqual(done.returncode, 2)


# Kinds of sections, and entries of the dynamic section, by their numbers in the ELF specification.
STRTAB, DYNAMIC, NOBITS, DYNSYM = 3, 6, 8, 11
NEEDED, RPATH, RUNPATH = 1, 15, 29


def container(*parts):
    """A fat binary of nvcc: (text of PTX) or (number of an architecture, for machine code), each in an entry."""
    entries = b""
    for part in parts:
        payload = (part.encode() if isinstance(part, str) else b"code").ljust(32, b"\0")
        entries += struct.pack("<HHIQQIIQQQQ", 1 if isinstance(part, str) else 2, 257, 64, len(payload), 0, 0,
                               90 if isinstance(part, str) else part, 0, 0x11, 0, 0) + payload
    return struct.pack("<IHHQ", 0xba55ed50, 1, 16, len(entries)) + entries


class ProgramFile:
    """An ELF file without segments, so that the system cannot start it: what kvscope does not reject ends in that message."""

    def __init__(self, needed=(), dynamic=(), imported=(), exported=(), fat=b"", fat_kind=1):
        strings = b"\0"

        def name(text):
            nonlocal strings
            strings += text.encode() + b"\0"
            return len(strings) - len(text) - 1
        symbols = b"".join(struct.pack("<IBBHQQ", name(text), 18, 0, section, 0, 0)
                           for texts, section in ((imported, 0), (exported, 1)) for text in texts)
        tags = b"".join(struct.pack("<qQ", NEEDED, name(text)) for text in needed)
        tags += b"".join(struct.pack("<qQ", tag, name(text)) for tag, text in dynamic)
        self.sections = [("", 0, b"", 0), (".dynstr", STRTAB, strings, 0), (".dynsym", DYNSYM, b"\0" * 24 + symbols, 1),
                         (".dynamic", DYNAMIC, tags + b"\0" * 16, 1), (".nv_fatbin", fat_kind, fat, 0)]
        self.header = {"class": 2, "order": 1, "shentsize": 64, "shnum": 6, "shstrndx": 5, "first": (0, 0)}

    def bytes(self, **header):
        h = {**self.header, **header}
        names = b"\0" + b"".join(name.encode() + b"\0" for name, *_ in self.sections[1:]) + b".shstrtab\0"
        body, table = b"", b""
        for name, kind, content, link in [*self.sections, (".shstrtab", STRTAB, names, 0)]:
            body += b"\0" * (-len(body) % 8)
            size, link = h["first"] if not name else (len(content), link)
            table += struct.pack("<IIQQQQIIQQ", names.index(name.encode() + b"\0"), kind, 0, 0, 64 + len(body), size, link, 0, 8, 0)
            body += content
        body += b"\0" * (-len(body) % 8)
        start = struct.pack("<4sBBB9xHHIQQQIHHHHHH", b"\x7fELF", h["class"], h["order"], 1, 2, 62, 1, 0, 0, h.get("shoff", 64 + len(body)), 0,
                            64, 0, 0, h["shentsize"], h["shnum"], h["shstrndx"])
        return start + body + table


class ProgramFiles(unittest.TestCase):
    """What kvscope cuda reads of a program before it starts it."""
    STARTED = ["it cannot be started: Exec format error"]
    NOTE = ("kvscope: note: ./p: has no %s not checked before it runs: keep the section headers when you strip a program "
            "(strip keeps them, sstrip does not)\n")
    PTX = ".target sm_80\n"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def faults(self, content, *options, note=""):
        path = os.path.join(self.folder, "p")
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, 0o755)
        done = run("cuda", *options, "./p", cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(done.stderr[:len(note)], note)
        lines = done.stderr[len(note):].splitlines()
        for line in lines:
            self.assertTrue(line.startswith("kvscope: ./p: "), line)
        return [line.removeprefix("kvscope: ./p: ") for line in lines]

    def test_a_program_without_section_headers_runs_with_a_note(self):
        data = bytearray(pathlib.Path("/bin/true").read_bytes())
        data[40:48], data[58:64] = bytes(8), bytes(6)  # e_shoff; e_shentsize, e_shnum, e_shstrndx
        path = os.path.join(self.folder, "p")
        pathlib.Path(path).write_bytes(data)
        os.chmod(path, 0o755)
        done = run("cuda", "./p", cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (0, "", self.NOTE % "section headers, so its libraries and its device code are"))

    def test_libraries_that_the_virtual_gpu_lacks_are_named_all_at_once(self):
        code = "its kernels are machine code or need the driver, which the virtual GPU cannot run: replace the calls by kernels of the program"
        self.assertEqual(self.faults(ProgramFile(["libcublasLt.so.13", "libc.so.6", "libcuda.so.1", "libcudart.so.11.0"]).bytes()), [
            f"libcublasLt.so.13: {code}", f"libcuda.so.1: {code}",
            "libcudart.so.11.0: kvscope has libcudart.so.12 and libcudart.so.13: compile with CUDA 12 or 13"])
        for version in (12, 13):
            self.assertEqual(self.faults(ProgramFile([f"libcudart.so.{version}"]).bytes()), self.STARTED)

    def test_an_rpath_hides_the_library_and_a_runpath_does_not(self):
        self.assertEqual(self.faults(ProgramFile(["libcudart.so.13"], [(RPATH, "/opt/cuda")]).bytes()), [
            "RPATH: the program finds libcudart by its RPATH: link with -Wl,--enable-new-dtags, or without -rpath"])
        self.assertEqual(self.faults(ProgramFile(["libcudart.so.13"], [(RUNPATH, "/opt/cuda")]).bytes()), self.STARTED)
        self.assertEqual(self.faults(ProgramFile([], [(RPATH, "/opt")]).bytes()), self.STARTED, "it uses no CUDA")

    def test_functions_of_the_runtime_that_the_library_lacks_are_named(self):
        needed = ["libcudart.so.13"]
        self.assertEqual(self.faults(ProgramFile(needed, imported=["cudaMalloc", "cudaNoSuch", "__cudaNoSuch", "printf"]).bytes()), [
            "libcudart.so.13: kvscope's library has no __cudaNoSuch, cudaNoSuch: it has the functions of CUDA 12.9 and 13.0"])
        # A function that the program defines for itself.
        self.assertEqual(self.faults(ProgramFile(needed, imported=["cudaNoSuch"], exported=["cudaNoSuch"]).bytes()), self.STARTED)
        self.assertEqual(self.faults(ProgramFile([], imported=["cudaNoSuch"]).bytes()), self.STARTED, "another library may have it")

    def test_device_code_is_what_the_containers_of_its_section_have(self):
        def fat(content, *options, **more):
            return self.faults(ProgramFile(["libcudart.so.13"], fat=content, **more).bytes(), *options)

        def fault(has, target=90):
            return [f"device code: its device code is {has}: the virtual GPU runs PTX for sm_{target} or earlier: compile again with kvscope "
                    f"nvcc, or with -gencode arch=compute_{target}a,code=compute_{target}a"]
        self.assertEqual(fat(container(self.PTX)), self.STARTED)
        self.assertEqual(fat(container(80, 90)), fault("machine code for sm_80, sm_90; no PTX"))
        # Of each source file a container. 24 bytes between them are no container.
        self.assertEqual(fat(container(80) + b"\0" * 24 + container(90)), fault("machine code for sm_80, sm_90; no PTX"))
        self.assertEqual(fat(container(80) + container(self.PTX)), self.STARTED)
        later = container(".target sm_100a\n")
        self.assertEqual(fat(later), fault("no machine code; PTX for sm_100a"))
        self.assertEqual(fat(later, "--target", "100"), self.STARTED)
        self.assertEqual(fat(later, "--target", "120"), fault("no machine code; PTX for sm_100a", 120))
        self.assertEqual(fat(container("ret;")), fault("no machine code; no PTX; PTX without a target"))
        self.assertEqual(fat(b""), self.STARTED)
        self.assertEqual(fat(b"\0" * 64), self.STARTED)
        self.assertEqual(fat(later, fat_kind=NOBITS), self.STARTED, "a section without bytes in the file")
        self.assertEqual(self.faults(ProgramFile([], fat=container(self.PTX)).bytes()), [
            "libcudart: the program links the CUDA runtime statically: link again with nvcc -cudart shared"])

    def test_a_container_that_does_not_end_in_its_section_is_damage(self):
        # It was skipped like padding, so that a program without device code that can run was started.
        good = container(self.PTX)
        for at, form, value in ((6, "<H", 15), (6, "<H", 65535), (8, "<Q", len(good) - 15), (8, "<Q", 2**64 - 1), (8, "<Q", 2**64 - 16)):
            content = bytearray(good)
            struct.pack_into(form, content, at, value)
            self.assertEqual(self.faults(ProgramFile(["libcudart.so.13"], fat=bytes(content)).bytes()), [
                "its section .nv_fatbin has a container at byte 0 that ends after the section"], (at, value))

    def test_names_outside_of_their_table_are_damage(self):
        # They were read as no name: a library that cannot run was then not found.
        for section, at in ((2, 24), (3, 8)):
            made = ProgramFile(["libcublas.so.13"], imported=["cudaMalloc"])
            size = len(made.sections[1][2])
            for offset, is_damage in ((size - 1, False), (size, True), (2**32 - 1, True)):
                name, kind, content, link = made.sections[section]
                content = content[:at] + struct.pack("<I", offset) + content[at + 4:]
                made.sections[section] = (name, kind, content, link)
                got = self.faults(made.bytes())
                self.assertEqual(got == [f"its ELF tables name a text at {offset} of a table of {size} bytes"], is_damage, got)

    def test_many_sections_are_counted_in_the_first_one(self):
        # Files of 65,280 sections or more: the header's numbers are 0 and 0xffff.
        made = ProgramFile(["libcublas.so.13"])
        self.assertEqual(len(self.faults(made.bytes(shnum=0, shstrndx=0xffff, first=(6, 5)))), 1)
        self.assertIn("libcublas.so.13: ", self.faults(made.bytes(shnum=0, shstrndx=0xffff, first=(6, 5)))[0])
        fat = ProgramFile(fat=container(90))
        self.assertIn("libcudart: ", self.faults(fat.bytes(shnum=0, shstrndx=0xffff, first=(6, 5)))[0])
        for count in (2**64 - 1, 2**58, 4000):
            self.assertEqual(self.faults(made.bytes(shnum=0, first=(count, 0))), [
                f"its ELF header names {count} sections, past the end of the file"])

    def test_damaged_headers_of_sections_are_named(self):
        made = ProgramFile(["libcublas.so.13"])
        for size in (0, 63, 65):
            self.assertEqual(self.faults(made.bytes(shentsize=size)), [f"its section headers have {size} bytes, those of ELF have 64"])
        for place in (2**64 - 64, 2**64 - 1, 10**6):
            self.assertEqual(self.faults(made.bytes(shoff=place)), [f"its ELF tables name 64 bytes at {place}, past the end of the file"])
        # What has no headers or names of sections is not checked, which a note states; without links, the system decides.
        self.assertEqual(self.faults(made.bytes(shoff=0), note=self.NOTE % "section headers, so its libraries and its device "
                                     "code are"), self.STARTED)
        for index in (0, 9):
            self.assertEqual(self.faults(ProgramFile(fat=container(90)).bytes(shstrndx=index),
                                         note=self.NOTE % "names of sections, so its device code is"), self.STARTED)
        made.sections[3] = (*made.sections[3][:3], 77)
        self.assertEqual(self.faults(made.bytes()), self.STARTED)

    def test_other_files_are_left_to_the_system(self):
        made = ProgramFile(["libcublas.so.13"])
        for other in ({"class": 1}, {"order": 2}):
            self.assertEqual(self.faults(made.bytes(**other)), self.STARTED)
        self.assertEqual(self.faults(made.bytes()[:63]), self.STARTED)
        self.assertEqual(self.faults(b"\x7fEL"), self.STARTED)
        self.assertEqual(self.faults(b""), self.STARTED)

    def test_a_cut_program_gives_one_message(self):
        content = ProgramFile(["libcublas.so.13", "libcudart.so.13"], imported=["cudaMalloc"], fat=container(self.PTX)).bytes()
        for size in range(64, len(content), 40):
            (fault,) = self.faults(content[:size])
            self.assertRegex(fault, "^its ELF (tables|header) names? .* past the end of the file$", size)


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

    # Calls in lines of their own, each of which a report names: blocks are too large, and nothing is freed. The places were in the
    # templates and stubs of CUDA.
    CALLS = """__global__ void twice(float* y) { y[threadIdx.x] *= 2; }
template <class T> __global__ void half(T* y) { y[threadIdx.x] /= 2; }
static void launch(float* y) {
  twice<<<1, 2048>>>(y); }
__attribute__((noinline)) static void again(float* y) {
  twice<<<1, 2048>>>(y); asm volatile(""); }
int main() {
  float *y, *h;
  cudaMalloc(&y, 128);
  cudaMallocHost(&h, 128);
  launch(y);
  again(y);
  half<float><<<1, 2048>>>(y);
  cudaLaunchConfig_t config = {}; config.gridDim = 1; config.blockDim = 2048;
  cudaLaunchKernelEx(&config, twice, y);
}
"""

    def places_of_calls(self, *options):
        """{call: (innermost line, all lines)} by addr2line, of the calls that reports name."""
        path = self.compile(self.CALLS, *options)
        printed = run("cuda", path).stderr
        found = {}
        for call, place in re.findall(r" call (\d+), .*, (?:from|by \S+) \(?p\+(0x[0-9a-f]+)", printed):
            lines = subprocess.run(["addr2line", "-i", "-e", path, place], capture_output=True, text=True, check=True).stdout
            found[int(call)] = re.findall(r"([\w.]+):(\d+)", lines)
        return found

    @unittest.skipIf(shutil.which("addr2line") is None, "there is no addr2line")
    def test_the_place_of_a_call_is_the_users_line(self):
        lines = {1: "9", 2: "10", 3: "4", 4: "6", 5: "13", 6: "15"}
        for options in ((), ("-Xcompiler", "-fno-pie", "-Xlinker", "-no-pie")):
            found = self.places_of_calls("-g", *options)
            self.assertEqual({call: places[0] for call, places in found.items()},
                             {call: ("p.cu", line) for call, line in lines.items()}, options)
        # Functions that the compiler inlines have no frame: addr2line -i names their callers.
        found = self.places_of_calls("-g", "-O2")
        self.assertEqual(sorted(found), sorted(lines))
        for call, places in found.items():
            self.assertIn(("p.cu", lines[call]), places)

    def test_the_place_of_a_call_in_a_stripped_program_is_in_the_function_that_calls_the_runtime(self):
        path = self.compile(self.CALLS, "-Xlinker", "-s")
        done = run("cuda", path)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r" by call 1, cudaMalloc of 128 bytes, from p\+0x[0-9a-f]+\n")

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
