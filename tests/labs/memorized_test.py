#!/usr/bin/env python3
"""A submission that gives the right answers to the public cases, and to no others, passes `lab check` and earns nothing in a grading.

    memorized_test.py --kvscope PROGRAM

The labs' solutions write down what they are asked in `lab check` (--trust, so that they may write a file). The submission under
test answers only what was written down.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
COURSE = ROOT / "docs" / "labs"

# `seen` is a hash of everything that was asked since the case began; known(), from its low 32 bits, tells whether it was asked in lab check too.
MEMORY = r"""
#include <cstdio>
#include <set>
namespace {
std::uint64_t seen = 0;
void see(std::uint64_t value) { seen = (seen ^ value) * 1099511628211u + 0x9e3779b97f4a7c15u; }
bool known() {
#ifdef RECORD
  if (std::FILE* file = std::fopen(RECORD, "a")) {
    std::fprintf(file, "%u,\n", static_cast<unsigned>(seen));
    std::fclose(file);
  }
  return true;
#else
  static const std::set<unsigned> asked{
#include "asked.inc"
  };
  return asked.count(static_cast<unsigned>(seen)) > 0;
#endif
}
}  // namespace
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

# lab: the submitted file, the name of its function, the name that the solution has beside the memory, and the memory's use
LABS = {"04_block_pool": ("pool.cpp", "make_allocator(", "right_allocator(", POOL),
        "05_scheduler": ("policy.cpp", "decide(", "right_decide(", POLICY)}


def run(kvscope, *arguments):
    return subprocess.run([kvscope, "lab", *map(str, arguments), "--course", str(COURSE)], capture_output=True, text=True, check=False)


def points(path):
    return sum(test["points"] for test in json.loads(path.read_text(encoding="utf-8"))["tests"])


def faults_of(kvscope, lab, folder):
    name, function, renamed, use = LABS[lab]
    right = (COURSE / "staff" / lab / "solution" / name).read_text(encoding="utf-8").replace(function, renamed)
    asked, submission, secret = folder / "asked", folder / "memorized", folder / "secret"
    submission.mkdir(parents=True)
    (submission / name).write_text(f'#define RECORD "{asked}"\n{right}{MEMORY}{use}', encoding="utf-8")
    done = run(kvscope, "check", lab, submission, "--trust", "--json", folder / "recorded.json")
    if done.returncode != 0 or not asked.exists():
        return [f"{lab}: the solution that writes down its cases: exit code {done.returncode}: {done.stdout}{done.stderr}"]
    numbers = "".join(sorted(set(asked.read_text(encoding="utf-8").splitlines(keepends=True))))
    memory = MEMORY.replace('#include "asked.inc"\n', numbers)
    (submission / name).write_text(f"{right}{memory}{use}", encoding="utf-8")
    done = run(kvscope, "check", lab, submission, "--json", folder / "public.json")
    faults = []
    if done.returncode != 0:
        faults.append(f"{lab}: the memorized answers do not pass the public cases: {done.stdout}")
    secret.write_text("a secret of the memorized test\n", encoding="utf-8")
    run(kvscope, "grade", lab, submission, "--secret", secret, "--out", folder / "grades")
    earned = points(folder / "grades" / "memorized.json")
    if earned != 0:
        faults.append(f"{lab}: the memorized answers to the public cases earn {earned} points in a grading")
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kvscope", required=True, type=os.path.abspath)
    kvscope = parser.parse_args().kvscope
    faults = []
    for lab in LABS:
        with tempfile.TemporaryDirectory() as folder:
            faults += faults_of(kvscope, lab, pathlib.Path(folder))
    for fault in faults:
        print(fault)
    print(f"{len(LABS)} labs, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
