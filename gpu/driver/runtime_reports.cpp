#include <fmt/format.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <exception>
#include <fstream>
#include <utility>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/report.h"
#include "gpu/driver/runtime.h"

namespace kvscope::driver {
namespace {

constexpr std::int64_t kMostLeaks = 20;  // reported one by one

// What the host has at an address: "the heap", "the stack", the file that is mapped there; "": nothing.
std::string host_memory_at(std::uint64_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64, &begin, &end) != 2 || address < begin || address >= end)
      continue;
    if (line.ends_with("[heap]")) return "the heap";
    if (line.ends_with("[stack]")) return "the stack";
    const std::size_t slash = line.find('/');
    return slash == std::string::npos ? "an anonymous mapping" : "a variable of " + line.substr(line.rfind('/') + 1);
  }
  return {};
}

bool is_wild_access(const ptx::Report& report) {
  return report.kind == ptx::ReportKind::out_of_bounds && report.address.known && report.address.symbol.empty() &&
         (report.address.space == ptx::Space::global || report.address.space == ptx::Space::generic);
}

// "my scale.cu:5" of "my scale.cu:5  <- main.cu:9".
std::string first_source(const ptx::Report& report) {
  for (const ptx::ReportParty& party : report.parties) {
    if (!party.source.empty()) return party.source.substr(0, party.source.find("  <- "));
  }
  return {};
}

}  // namespace

std::vector<std::string> Runtime::block_lines(std::uint64_t address) const {
  const Block* block = find_block(address);
  if (block == nullptr) {  // just outside of one
    const ptx::Allocation* const nearest = engine_->memory().nearest(address);
    if (nearest != nullptr && address + ptx::DeviceMemory::kUnmapped > nearest->address &&
        address < nearest->end() + ptx::DeviceMemory::kUnmapped)
      block = find_block(nearest->address);
  }
  std::vector<std::string> out;
  if (block == nullptr) return out;
  out.push_back("allocated by " + block->made.text());
  if (block->of_graph && block->freed.ordinal == block->made.ordinal)
    out.push_back("exists only while its graph runs");
  else if (!block->is_live())
    out.push_back("freed by " + block->freed.text());
  return out;
}

void Runtime::report_call(std::string kind, const std::string& subject, std::uint64_t address,
                          const std::string& hint) {
  ProgramReport report;
  report.text = fmt::format("{}  {}  {}\n  {}", kind, call.function, subject, call.text());
  if (address != 0) {
    for (const std::string& line : block_lines(address)) report.text += "\n  " + line;
  }
  report.text += "\n  " + hint;
  report.kind = std::move(kind);
  report.function = call.function;
  report.call = call.ordinal;
  reports_.add(std::move(report), options_.prints);
}

ProgramReport Runtime::described(const ptx::Report& found) const {
  ProgramReport report;
  report.kind = ptx::name(found.kind);
  report.severity = found.severity;
  report.text = to_text(found);
  report.function = call.function;
  report.call = call.ordinal;
  report.kernel = found.kernel;
  report.source = first_source(found);
  report.text += "\n  launched by " + call.text();
  if (is_wild_access(found)) {
    if (const std::string host = host_memory_at(found.address.absolute); !host.empty()) {
      report.kind = "HOST_POINTER";
      report.text += fmt::format(
          "\n  HOST_POINTER: 0x{:x} is host memory ({}): copy the data to memory of cudaMalloc, and pass that",
          found.address.absolute, host);
    }
  } else if (found.address.known && found.address.space == ptx::Space::global) {
    for (const std::string& line : block_lines(found.address.absolute)) report.text += "\n  " + line;
  }
  return report;
}

void Runtime::report_kernel(const ptx::Report& found, bool prints) {
  reports_.add(described(found), prints);
}

void Runtime::write_reports() {
  if (options_.report_path.empty()) return;
  try {
    write_file_atomically(options_.report_path,
                          format_reports(reports_.all(), report_format(options_.report_format, options_.report_path),
                                         {.program = program_name(), .sum = std::string(name(options_.engine.sum))}));
  } catch (const std::exception& error) {
    std::fputs(fmt::format("kvscope cuda: {}\n", error.what()).c_str(), stderr);
  }
}

std::int64_t Runtime::finish() {
  if (std::exchange(finished_, true)) return reports_.findings();
  std::int64_t leaks = 0;
  const bool quits = debugger_ != nullptr && debugger_->quits();
  if (options_.leaks && sticky == kSuccess && !quits) {
    for (const auto& [address, block] : blocks_) {
      if (!block.is_live() || block.kind == MemoryKind::registered || block.kind == MemoryKind::variable ||
          ++leaks > kMostLeaks)
        continue;
      ProgramReport report;
      report.kind = "LEAK";
      report.text = fmt::format("LEAK  0x{:x} ({} bytes)\n  allocated by {}\n  not freed when the program ended",
                                address, block.size, block.made.text());
      reports_.add(std::move(report), options_.prints);
    }
  }
  if (leaks > kMostLeaks && options_.prints)
    std::fputs(fmt::format("{} more leaks\n\n", leaks - kMostLeaks).c_str(), stderr);
  if (options_.prints && calls > 0) {
    const std::int64_t findings = reports_.findings();
    std::fflush(stdout);
    const std::string sampled =
        engine_->ctas() == engine_->grid_ctas()
            ? ""
            : fmt::format("; sampled: {} of {} CTAs ran, so the program's results are not those of whole launches",
                          engine_->ctas(), engine_->grid_ctas());
    const std::string jobs = engine_->jobs_text();
    const ptx::SumMode sum = options_.engine.sum;
    std::fputs(
        fmt::format("kvscope cuda: {}, {}: {}{}{}{}{}\n", counted(calls, "call"),
                    counted(static_cast<std::int64_t>(engine_->warp_instructions()), "warp instruction"),
                    findings == 0 ? "no findings" : counted(findings, "finding"), sampled, jobs.empty() ? "" : "; ",
                    jobs, sum == ptx::SumMode::seq ? "" : fmt::format("; sum {}", name(sum)))
            .c_str(),
        stderr);
  }
  write_reports();
  return reports_.findings();
}

int Runtime::exit_code() {
  const bool findings = finish() > 0;
  return debugger_ != nullptr && debugger_->has_faults() ? 2 : findings ? 1 : 0;
}

void Runtime::quit() {
  std::fflush(nullptr);
  _exit(exit_code());
}

bool Runtime::host_fault(std::uint64_t address) {
  if (!is_device_address(address)) return false;
  const Block* const block = find_block(address);
  const bool freed = block != nullptr && !block->is_live();
  ProgramReport report;
  report.kind = freed ? "USE_AFTER_FREE" : "DEVICE_POINTER";
  report.text = fmt::format("{}  host code  0x{:x}\n  after {}", report.kind, address, call.text());
  for (const std::string& line : block_lines(address)) report.text += "\n  " + line;
  report.text +=
      freed ? "\n  host code accesses memory that has been freed"
            : "\n  host code accesses memory of the device: copy it to the host first, or use cudaMallocManaged";
  reports_.add(std::move(report), options_.prints);
  write_reports();
  return true;
}

void Runtime::reset() {
  for (auto& [address, block] : blocks_) {
    // Variables belong to their modules.
    if (!block.is_live() || block.kind == MemoryKind::variable) continue;
    end(block);
  }
  streams.clear();
  events.clear();
  graphs.clear();
  execs.clear();
  per_thread_streams.clear();
  sticky = kSuccess;
}

}  // namespace kvscope::driver
