// A benchmark as text, JSON and Markdown.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "core/base/report.h"
#include "gpu/bench/bench.h"
#include "gpu/launch/device_report.h"

namespace kvscope::gpu {
namespace {

bool counted(const BenchReport& report) {
  return report.device.kind == "virtual";
}

std::string head(const BenchReport& report) {
  if (counted(report))
    return "virtual GPU: it has no clock, so no times and no targets are reported. Instructions and memory traffic on "
           "small shapes:";
  return fmt::format("{}, {}, {} multiprocessors, driver {}{}", report.device.name, report.device.architecture,
                     report.device.multiprocessors, report.device.driver,
                     report.small ? ". Small shapes: their times are not those of real workloads" : "");
}

std::string rate_text(const BenchRow& row) {
  return row.flops > 0 ? fmt::format("{:.0f} TFLOPS", row.rate / 1e12) : fmt::format("{:.0f} GB/s", row.rate / 1e9);
}

std::string ratio_text(const BenchRow& row) {
  if (!row.ratio) return "";
  if (row.unit == "time") return fmt::format("{:.2f}x as fast as {}", *row.ratio, row.against);
  return fmt::format("{:.0f} % of {}", *row.ratio * 100, row.against);
}

std::string target_text(const BenchRow& row) {
  if (!row.target) return "";
  return row.unit == "time" ? fmt::format("{:.1f}x", *row.target) : fmt::format("{:.0f} %", *row.target * 100);
}

double over(std::int64_t is, std::int64_t ideal) {
  return ideal > 0 ? static_cast<double>(is) / static_cast<double>(ideal) : 0;
}

struct Counts {
  double instructions = 0;             // warp instructions per KB of data; for flops: per million of them
  double moved = 0;                    // bytes of sectors, including those of copies, over the bytes of the data
  double sectors = 0, wavefronts = 0;  // over ideal; 0: none
};
Counts counts_of(const BenchRow& row) {
  Counts counts;
  const double unit = row.flops > 0 ? row.flops / 1e6 : static_cast<double>(row.bytes) / 1024;
  counts.instructions = static_cast<double>(row.costs->instructions) / unit;
  counts.moved = static_cast<double>(row.costs->sectors * 32) / static_cast<double>(row.bytes);
  counts.sectors = over(row.costs->sectors, row.costs->ideal_sectors);
  counts.wavefronts = over(row.costs->wavefronts, row.costs->ideal_wavefronts);
  return counts;
}
const char* unit_of(const BenchRow& row) {
  return row.flops > 0 ? "MFLOP" : "KB";
}
std::string over_text(double ratio) {
  return ratio > 0 ? fmt::format("{:.2f}x", ratio) : "none";
}

// The text of a table cell: one line, without bars.
std::string cell(std::string text) {
  for (char& c : text) c = c == '\n' || c == '|' ? ' ' : c;
  return text;
}

}  // namespace

std::string text_report(const BenchReport& report) {
  std::string text = head(report) + "\n";
  for (const BenchRow& row : report.rows) {
    text += fmt::format("  {:<26}", row.name);
    if (!row.faults.empty()) {
      text += " FAILED\n";
      for (const std::string& fault : row.faults) text += fmt::format("    {}\n", fault);
      continue;
    }
    if (row.costs) {
      const Counts counts = counts_of(row);
      text +=
          fmt::format(" {:>7.1f} instructions per {:<5}  moved/data {:>5.2f}  sectors {:>6}  wavefronts {:>6}  {}\n",
                      counts.instructions, unit_of(row), counts.moved, over_text(counts.sectors),
                      over_text(counts.wavefronts), row.shape);
      continue;
    }
    text += fmt::format(" {:>9.4f} ms  {:>11}  {:<36} {:<6} {:<9}  {}\n", row.time->median_ms, rate_text(row),
                        ratio_text(row), target_text(row), row.verdict(), row.shape);
  }
  if (counted(report))
    text +=
        "instructions are warp instructions; sectors (32 bytes) and wavefronts (shared memory) are relative to the "
        "minimum\n";
  text += report.passed() ? "" : "FAILED\n";
  return text;
}

json::Value json_report(const BenchReport& report) {
  json::Value value;
  value.set("kvscope_benchmarks", 1);
  value.set("passed", report.passed());
  value.set("device", report.device.kind);
  value.set("device_name", report.device.name);
  value.set("architecture", report.device.architecture);
  value.set("driver", report.device.driver);
  value.set("multiprocessors", report.device.multiprocessors);
  value.set("small", report.small);
  json::Array rows;
  for (const BenchRow& row : report.rows) {
    json::Value one;
    one.set("name", row.name);
    one.set("kernel", row.kernel);
    one.set("shape", row.shape);
    one.set("bytes", row.bytes);
    one.set("flops", row.flops);
    one.set("verdict", row.verdict());
    if (row.time) {
      one.set("median_ms", row.time->median_ms);
      one.set("fastest_ms", row.time->fastest_ms);
      one.set("slowest_ms", row.time->slowest_ms);
      one.set("repetitions", row.time->repetitions);
      one.set(row.flops > 0 ? "flops_per_second" : "bytes_per_second", row.rate);
    }
    if (!row.against.empty()) one.set("against", row.against);
    if (row.ratio) {
      one.set("ratio_of", row.unit);
      one.set("ratio", *row.ratio);
    }
    if (row.target) one.set("target", *row.target);
    if (row.costs) one.set("costs", to_json(*row.costs));
    if (!row.faults.empty()) one.set("faults", json::strings(row.faults));
    rows.push_back(std::move(one));
  }
  value.set("rows", std::move(rows));
  return value;
}

std::string markdown_report(const BenchReport& report) {
  std::string text = head(report) + "\n\n";
  if (counted(report)) {
    text += markdown_head({"row", "shape", "warp instructions", "moved / data", "sectors", "wavefronts"});
  } else {
    text += markdown_head({"row", "shape", "median", "fastest, slowest", "rate", "ratio", "target", "verdict"});
  }
  for (const BenchRow& row : report.rows) {
    if (!row.faults.empty()) {
      text += fmt::format("| {} | {} | failed: {} |\n", row.name, row.shape, cell(row.faults.front()));
    } else if (row.costs) {
      const Counts counts = counts_of(row);
      text += fmt::format("| {} | {} | {:.1f} a {} | {:.2f} | {} | {} |\n", row.name, row.shape, counts.instructions,
                          unit_of(row), counts.moved, over_text(counts.sectors), over_text(counts.wavefronts));
    } else {
      text += fmt::format("| {} | {} | {:.4f} ms | {:.4f}, {:.4f} | {} | {} | {} | {} |\n", row.name, row.shape,
                          row.time->median_ms, row.time->fastest_ms, row.time->slowest_ms, rate_text(row),
                          ratio_text(row), target_text(row), row.verdict());
    }
  }
  return text;
}

}  // namespace kvscope::gpu
