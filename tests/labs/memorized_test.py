#!/usr/bin/env python3
"""A submission that gives the right answers to the public cases, and to no others, passes `lab check` and fails a grading.

    memorized_test.py --kvscope PROGRAM

C++ labs: the solution writes down what it is asked in `lab check` (--trust, so that it may write a file). CUDA labs: a kernel cannot
write a file, so on a case that it has not seen it stores to the address that is the case's number. The check reports that address;
the number is written down, and the check repeated until all points are earned. The submission under test answers what was written
down, and nothing else. Labs with a task of each student: the answers of another student are submitted.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import command_line

ROOT = pathlib.Path(__file__).resolve().parents[2]
COURSE = ROOT / "docs" / "labs"
NVCC = ("/usr/local/cuda/bin/nvcc", "/usr/bin/nvcc")  # as apps/labs/compile_cuda.cpp
MOST_ROUNDS = 40  # checks until every public case of a CUDA lab is written down

# `seen` is a hash of everything that was asked since the case began; known() tells, from 20 of its bits, whether it was asked in lab check
# too. More bits would make lab 08's table of 28,000 numbers larger than a submission may be.
MEMORY = r"""
#include <cstdio>
#include <cstring>
#include <set>
namespace {
std::uint64_t seen = 0;
void see(std::uint64_t value) { seen = (seen ^ value) * 1099511628211u + 0x9e3779b97f4a7c15u; }
void see_float(float value) { std::uint32_t bits = 0; std::memcpy(&bits, &value, 4); see(bits); }
bool known() {
  const auto number = static_cast<unsigned>(seen >> 12 & 0xfffff);
#ifdef RECORD
  if (std::FILE* file = std::fopen(RECORD, "a")) {
    std::fprintf(file, "%u,\n", number);
    std::fclose(file);
  }
  return true;
#else
  static const std::set<unsigned> asked{
#include "asked.inc"
  };
  return asked.count(number) > 0;
#endif
}
}  // namespace
"""

ROWS = r"""
static void ask(const PagedCache& c, std::int64_t sequence, std::int64_t token) {
  seen = 0;
  for (const std::int64_t n : {c.page_size, c.layers, c.k_or_v, sequence, token}) see(static_cast<std::uint64_t>(n));
  see(c.table[sequence * c.columns + token / c.page_size]);
}
std::uint32_t row_idx(const PagedCache& c, std::int64_t sequence, std::int64_t token) {
  ask(c, sequence, token);
  return known() ? right_row_idx(c, sequence, token) : 0;
}
void populate(const PagedCache& c, std::int64_t sequence, std::int64_t base, std::int64_t tile, std::uint32_t* rows) {
  ask(c, sequence, base), see(static_cast<std::uint64_t>(tile));
  if (known()) right_populate(c, sequence, base, tile, rows);
}
"""

TABLE = r"""
std::int64_t table_columns(std::int64_t pages) {
  seen = 0, see(static_cast<std::uint64_t>(pages));
  return known() ? right_table_columns(pages) : 0;
}
void build_table(const Batch& b, std::int64_t columns, std::uint32_t* table) {
  seen = 0;
  for (const std::int64_t n : {b.rows, b.page_size, std::int64_t{b.null_page}, columns}) see(static_cast<std::uint64_t>(n));
  for (std::int64_t row = 0; row < b.rows; ++row) {
    see(static_cast<std::uint64_t>(b.order[row]));
    if (b.order[row] >= 0) see(b.requests[b.order[row]].blocks[0]), see(static_cast<std::uint64_t>(b.requests[b.order[row]].tokens));
  }
  if (known()) right_build_table(b, columns, table);
}
"""

SOFTMAX = r"""
class Asked final : public Tiles {
 public:
  explicit Asked(Tiles& tiles, std::int64_t dim) : tiles_(tiles), dim_(dim) { seen = 0; }
  bool next(Tile& tile) override {
    if (!tiles_.next(tile)) return false;
    for (std::int64_t key = 0; key < tile.keys; ++key) see_float(tile.scores[key]), see_float(tile.values[key * dim_]);
    return true;
  }

 private:
  Tiles& tiles_;
  std::int64_t dim_;
};
float attend(Tiles& tiles, std::int64_t dim, float* o) {
  Asked asked(tiles, dim);
  const float lse = right_attend(asked, dim, o);
  if (known()) return lse;
  for (std::int64_t d = 0; d < dim; ++d) o[d] = 0;
  return 0;
}
float merge(const float* o_a, float lse_a, const float* o_b, float lse_b, std::int64_t dim, float* o) {
  seen = 0, see_float(lse_a), see_float(lse_b), see_float(o_a[0]), see_float(o_b[0]);
  return known() ? right_merge(o_a, lse_a, o_b, lse_b, dim, o) : 0;
}
"""

SWIZZLE = r"""
static bool ask(const Tile& tile, std::int64_t a, std::int64_t b) {
  seen = 0;
  for (const std::int64_t n : {tile.rows, tile.columns, tile.element_bytes, tile.mode_bytes, a, b}) see(static_cast<std::uint64_t>(n));
  return known();
}
std::int64_t offset(const Tile& tile, std::int64_t row, std::int64_t col) {
  return ask(tile, row, col) ? right_offset(tile, row, col) : 0;
}
void place(const Tile& tile, std::int64_t at, std::int64_t* row, std::int64_t* col) {
  if (ask(tile, -1, at)) right_place(tile, at, row, col);
}
"""

POOL = r"""
namespace {
class Memorized final : public Allocator {
 public:
  explicit Memorized(std::unique_ptr<Allocator> right) : right_(std::move(right)) { ask(0, 0, 0); }
  Block append(int s) override { return ask(1, s, 0) ? right_->append(s) : kNone; }
  void publish(int s, Hash hash) override { if (ask(2, s, hash)) right_->publish(s, hash); }
  Block share(int s, Hash hash) override { return ask(3, s, hash) ? right_->share(s, hash) : kNone; }
  void fork(int s, int child) override { if (ask(4, s, static_cast<std::uint64_t>(child))) right_->fork(s, child); }
  void release(int s) override { if (ask(5, s, 0)) right_->release(s); }
  std::vector<Block> pages(int s) const override { return right_->pages(s); }
  std::int64_t holders(Block b) const override { return right_->holders(b); }
  std::vector<Block> free_blocks() const override { return right_->free_blocks(); }
  std::vector<Block> cached_blocks() const override { return right_->cached_blocks(); }

 private:
  static bool ask(int call, int s, std::uint64_t other) {
    if (call == 0) seen = 0;
    see(static_cast<std::uint64_t>(call)), see(static_cast<std::uint64_t>(s)), see(other);
    return known();
  }
  std::unique_ptr<Allocator> right_;
};
}  // namespace
std::unique_ptr<Allocator> make_allocator(std::int64_t blocks, std::int64_t page_size) {
  return std::make_unique<Memorized>(right_allocator(blocks, page_size));
}
"""

POLICY = r"""
Decision decide(const Step& step) {
  if (step.step == 0) seen = 0;
  for (const std::int64_t number : {step.step, step.blocks, step.free_blocks}) see(static_cast<std::uint64_t>(number));
  for (const Running& r : step.running) see(static_cast<std::uint64_t>(r.request * 1000 + r.tokens));
  for (const Waiting& w : step.waiting) see(static_cast<std::uint64_t>(w.request * 1000 + w.tokens));
  return known() ? right_decide(step) : Decision{};
}
"""

# C++ lab: the submitted file, the functions that get another name in the solution, the memory's use, and the most points that
# answers to the public cases may earn in a grading.
CPP = {"02_rows": ("rows.cpp", {"row_idx(": "right_row_idx(", "populate(": "right_populate("}, ROWS, 0),
       "03_table": ("table.cpp", {"table_columns(": "right_table_columns(", "build_table(": "right_build_table("}, TABLE, 0),
       "04_block_pool": ("pool.cpp", {"make_allocator(": "right_allocator("}, POOL, 0),
       "05_scheduler": ("policy.cpp", {"decide(": "right_decide("}, POLICY, 0),
       "06_softmax": ("softmax.cpp", {"attend(": "right_attend(", "merge(": "right_merge("}, SOFTMAX, 0),
       "08_swizzle": ("swizzle.cpp", {"offset(": "right_offset(", "place(": "right_place("}, SWIZZLE, 0)}

# CUDA lab: of each file, the numbers that tell one case from another.
CUDA = {"09_gather": {"gather.cu": ["count", "page_size", "row", "block_stride", "tokens[0]", "table[0]"]},
        "10_four_kernels": {"sum.cu": ["x[0]"], "stream.cu": ["x[0]"], "store.cu": ["x[0]"], "last.cu": ["x[0]"]},
        "11_tma_tile": {"tile.cu": ["tiles", "pages", "rows[0]"]},
        "13_paged_decode": {"decode.cu": ["heads", "kv_heads", "page_size", "columns", "lengths[0]", "table[0]"]}}

OWN_TASKS = ("01_address", "07_fault_hunt", "14_page_size")  # lab 12 has no public numbers: one schedule serves every block


def run(kvscope, *arguments):
    return subprocess.run([kvscope, "lab", *map(str, arguments), "--course", str(COURSE)], capture_output=True, text=True, check=False)


def points(path):
    return sum(test["points"] for test in json.loads(path.read_text(encoding="utf-8"))["tests"])


def graded(kvscope, lab, submission, folder):
    """The points of a grading."""
    (folder / "secret").write_text("a secret of the memorized test\n", encoding="utf-8")
    done = run(kvscope, "grade", lab, submission, "--secret", folder / "secret", "--out", folder / "grades")
    if done.returncode != 0:
        raise RuntimeError(f"{lab}: kvscope lab grade: {done.stderr}")
    return points(folder / "grades" / f"{submission.name}.json")


def faults_of_cpp(kvscope, lab, folder):
    name, renamed, use, most = CPP[lab]
    right = (COURSE / "staff" / lab / "solution" / name).read_text(encoding="utf-8")
    for function, other in renamed.items():
        right = re.sub(rf"(?<![\w>.]){re.escape(function)}", other, right)
    asked, submission = folder / "asked", folder / "memorized"
    submission.mkdir(parents=True)
    (submission / name).write_text(f'#define RECORD "{asked}"\n{right}{MEMORY}{use}', encoding="utf-8")
    done = run(kvscope, "check", lab, submission, "--trust", "--json", folder / "recorded.json")
    if done.returncode != 0 or not asked.exists():
        return [f"{lab}: the solution that writes down its cases: exit code {done.returncode}: {done.stdout}{done.stderr}"]
    numbers = "".join(sorted(set(asked.read_text(encoding="utf-8").splitlines())))
    memory = MEMORY.replace('#include "asked.inc"', numbers)
    (submission / name).write_text(f"{right}{memory}{use}", encoding="utf-8")
    done = run(kvscope, "check", lab, submission, "--json", folder / "public.json")
    faults = []
    if done.returncode != 0:
        faults.append(f"{lab}: the memorized answers do not pass the public cases: {done.stdout}{done.stderr}")
    earned = graded(kvscope, lab, submission, folder)
    print(f"{lab}: {earned:g} points in a grading")
    if earned > most:
        faults.append(f"{lab}: the memorized answers to the public cases earn {earned} points in a grading, at most {most} are expected")
    return faults


def gated(source, numbers, known, record):
    """The kernel with a gate: only cases whose hash is in `known` pass it. `record`: the others store to the hash as an address."""
    hashed = " ".join(f"kv_h = (kv_h ^ static_cast<unsigned>({number})) * 16777619u;" for number in numbers)
    test = " && ".join([f"kv_h != {value}u" for value in sorted(known)] or ["true"])
    otherwise = "*reinterpret_cast<volatile int*>(0x700000000000ull + (kv_h & ~3u)) = 1; __trap(); " if record else ""
    gate = f"\n  unsigned kv_h = 2166136261u; {hashed} kv_h &= ~3u;\n  if ({test}) {{ {otherwise}return; }}\n"
    begin = source.index("{", source.index("__global__"))
    return source[:begin + 1] + gate + source[begin + 1:]


def faults_of_cuda(kvscope, lab, folder):
    solution, submission = COURSE / "staff" / lab / "solution", folder / "memorized"
    shutil.copytree(solution, submission)
    known = {name: set() for name in CUDA[lab]}

    def write(record):
        for name, numbers in CUDA[lab].items():
            (submission / name).write_text(gated((solution / name).read_text(encoding="utf-8"), numbers, known[name], record),
                                           encoding="utf-8")

    for _ in range(MOST_ROUNDS):
        write(record=True)
        done = run(kvscope, "check", lab, submission, "--json", folder / "recorded.json", "--cache", folder / "compiled")
        tests = json.loads((folder / "recorded.json").read_text(encoding="utf-8"))["tests"]
        found = {name: {int(number, 16) & 0xffffffff for test in tests if len(known) == 1 or test["name"] == name.split(".")[0]
                        for number in re.findall(r"0x0*7000([0-9a-f]{8})\b", test["message"] + test["case"])}
                 for name in known}
        if not any(found[name] - known[name] for name in known):
            break
        for name in known:
            known[name] |= found[name]
    write(record=False)
    done = run(kvscope, "check", lab, submission, "--json", folder / "public.json", "--cache", folder / "compiled")
    faults = []
    if done.returncode != 0:
        faults.append(f"{lab}: the memorized answers do not pass the public cases: {done.stdout}{done.stderr}")
    earned = graded(kvscope, lab, submission, folder)
    print(f"{lab}: {sum(map(len, known.values()))} public cases, {earned:g} points in a grading")
    if earned != 0:
        faults.append(f"{lab}: the memorized answers to the public cases earn {earned} points in a grading")
    return faults


def faults_of_own_task(kvscope, lab, folder):
    """Ada's right answers, submitted by Grace: less than half of the points."""
    subprocess.run([sys.executable, COURSE / "staff" / lab / "solve.py", kvscope, COURSE, folder / "ada", "ada"], check=True,
                   stdout=subprocess.DEVNULL)
    shutil.copytree(folder / "ada", folder / "grace", ignore=shutil.ignore_patterns("kvscope-lab.json"))  # it names ada
    mine, hers = graded(kvscope, lab, folder / "ada", folder), graded(kvscope, lab, folder / "grace", folder)
    print(f"{lab}: {mine:g} points, {hers:g} points for the same answers of another student")
    faults = [f"{lab}: the student's own answers earn {mine} points"] if mine != 100 else []
    return faults + ([f"{lab}: another student's answers earn {hers} points"] if hers >= 50 else [])


def main():
    kvscope = command_line.only().kvscope
    chosen = os.environ.get("KVSCOPE_LAB")
    checks = {**{lab: faults_of_cpp for lab in CPP}, **{lab: faults_of_own_task for lab in OWN_TASKS}}
    if any(pathlib.Path(path).exists() for path in NVCC):
        checks.update({lab: faults_of_cuda for lab in CUDA})
    else:
        print(f"skipped {', '.join(CUDA)}: no CUDA compiler at {' or '.join(NVCC)}")
    faults = []
    for lab, check in sorted(checks.items()):
        if chosen in (None, lab):
            with tempfile.TemporaryDirectory() as folder:
                faults += check(kvscope, lab, pathlib.Path(folder))
    for fault in faults:
        print(fault)
    print(f"{len(checks)} labs, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
