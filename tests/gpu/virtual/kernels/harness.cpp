#include "tests/gpu/virtual/kernels/harness.h"

#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <sstream>
#include <utility>

#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/machine/diagnosis/report.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx::test {

Gpu::Gpu(const std::string& file, const Schedule& schedule, const ProgramOptions& options)
    : device_(options), schedule_(schedule) {
  module_ = &device_.load(parse_module(kept_ptx(file), file));
}

std::uint64_t Gpu::upload_bytes(std::string_view name, std::span<const std::byte> bytes) {
  const std::uint64_t address = device_.memory().allocate(static_cast<std::int64_t>(bytes.size()), name);
  device_.memory().write(address, bytes);
  return address;
}

std::uint64_t Gpu::zeros(std::string_view name, std::size_t bytes) {
  return device_.memory().allocate(static_cast<std::int64_t>(bytes), name);
}

std::vector<std::byte> Gpu::download_bytes(std::uint64_t address, std::size_t count) {
  return device_.memory().read(address, static_cast<std::int64_t>(count));
}

LaunchResult Gpu::run(const Run& run, Monitor* monitor) {
  LaunchConfig config;
  config.kernel = run.kernel;
  config.grid = run.grid;
  config.block = run.block;
  config.dynamic_shared = run.dynamic_shared;
  config.params = pack_params(*module_, run.kernel, run.values);
  config.options.policy = schedule_.policy;
  config.options.seed = schedule_.seed;
  config.options.jobs = schedule_.jobs;
  config.options.limits.instructions = run.max_instructions;
  config.options.resident_limit = static_cast<std::int32_t>(run.resident_limit);
  config.options.cooperative = run.cooperative;
  if (run.dynamic_shared > 47 * 1024) config.options.shared_opt_in = 232448;
  return device_.launch(*module_, config, monitor);
}

LaunchResult Gpu::run_checked(const Run& run) {
  Checks checks;
  return this->run(run, checks.monitor());
}

LaunchResult Gpu::run_clean(const Run& run) {
  Checks checks({.global_race = true, .uninit_regs = true, .uninit_local = true});
  LaunchResult result = this->run(run, checks.monitor());
  EXPECT_TRUE(result.clean()) << run.kernel << '\n' << reports_text(result);
  return result;
}

std::string kept_ptx(const std::string& file) {
  std::ifstream stream(std::string(KVSCOPE_SOURCE_DIR) + "/tests/gpu/virtual/kernels/cuda/" + file);
  EXPECT_TRUE(stream.good()) << file << " is not beside its source: run build.py";
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

std::string reports_text(const LaunchResult& result) {
  std::string text;
  for (const Report& report : result.reports) text += to_text(report) + '\n';
  return text;
}

std::uint64_t fnv(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const std::byte byte : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3U;
  return hash;
}

ParamValue float_bits(float v) {
  return static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(v));
}

std::uint16_t bf16(float exact) {
  const auto bits = std::bit_cast<std::uint32_t>(exact);
  EXPECT_EQ(bits & 0xffffU, 0U) << exact << " is no bf16";
  return static_cast<std::uint16_t>(bits >> 16);
}

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::vector<std::uint16_t> bf16_noise(std::size_t count, std::uint64_t seed) {
  std::vector<std::uint16_t> values(count);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
  for (std::uint16_t& v : values) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const auto n = static_cast<std::int32_t>(state >> 56) - 128;  // of 256 steps of 1/64
    v = bf16(static_cast<float>(n) / 64);
  }
  return values;
}

TensorMap tensor_map(TmaDataType type, std::uint64_t base, const std::vector<std::uint64_t>& dims,
                     const std::vector<std::uint64_t>& strides, const std::vector<std::uint32_t>& box,
                     TmaSwizzle swizzle) {
  TensorMap map;
  map.data_type = type;
  map.rank = static_cast<int>(dims.size());
  map.base = base;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    map.dims.at(i) = dims[i];
    map.box.at(i) = box.at(i);
    if (i > 0) map.strides.at(i - 1) = strides.at(i - 1);
  }
  map.swizzle = swizzle;
  return map;
}

}  // namespace kvscope::ptx::test
