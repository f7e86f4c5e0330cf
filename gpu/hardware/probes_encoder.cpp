// What the driver's tensor map encoder accepts and rejects, and its run time. The virtual GPU has no driver: there, the
// rules of core/tma/tensor_map_rules.h give the answer.
#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "core/base/fnv.h"
#include "core/tma/tensor_map_record.h"
#include "gpu/hardware/probe_copy.h"

namespace kvscope::gpu {
namespace {

// The arguments of one call of the encoder, possibly invalid: arrays may be null.
struct Call {
  TensorMap map;
  bool no_dims = false, no_strides = false;
};

TensorMapReport by_rules(const Call& call) {
  alignas(64) std::byte out[128];
  return encode_tensor_map(out,
                           {.data_type = call.map.data_type,
                            .rank = static_cast<std::uint32_t>(call.map.rank),
                            .base = call.map.base,
                            .dims = call.no_dims ? nullptr : call.map.dims.data(),
                            .strides = call.no_strides ? nullptr : call.map.strides.data(),
                            .box = call.map.box.data(),
                            .element_strides = call.map.element_strides.data(),
                            .interleave = call.map.interleave,
                            .swizzle = call.map.swizzle,
                            .l2 = call.map.l2,
                            .fill = call.map.fill},
                           TmaTarget::sm_90);
}

cuda::Status by_driver(const cuda::Driver& driver, const Call& call, TensorMapSlot& slot) {
  const TensorMap& map = call.map;
  return driver.encode_tiled(slot.bytes, static_cast<int>(map.data_type), static_cast<std::uint32_t>(map.rank),
                             reinterpret_cast<void*>(map.base), call.no_dims ? nullptr : map.dims.data(),
                             call.no_strides ? nullptr : map.strides.data(), map.box.data(), map.element_strides.data(),
                             static_cast<int>(map.interleave), static_cast<int>(map.swizzle), static_cast<int>(map.l2),
                             static_cast<int>(map.fill));
}

std::string text_of(TensorMapResult result) {
  return result == TensorMapResult::success         ? "returns 0"
         : result == TensorMapResult::invalid_value ? "returns 1"
                                                    : "rejected: the target does not support it";
}

std::vector<std::string> faults_of(const TensorMapReport& report) {
  std::vector<std::string> lines;
  for (const BrokenMapRule& broken : report.broken)
    lines.push_back(fmt::format("{}: {}: {}", name(broken.rule), broken.where, broken.message));
  for (const Fault& note : report.notes) lines.push_back(fmt::format("{}: {}", note.where, note.message));
  return lines;
}

// --- H7: modes of compute capability 10 ------------------------------------------------------------------------------

// The encoder's result; if it accepts the map, the result of a load with it.
ProbePart later_mode(const char* name, TmaDataType type, TmaSwizzle swizzle) {
  return {name, [type, swizzle](ProbeDevice& whom) {
            ProbeTensor tensor(whom.device, 20 * 128, source_byte);
            const bool packed = is_packed(type);
            const Call call{.map = packed ? map_2d(type, tensor.base(), {128, 20}, 128, {128, 8}, swizzle)
                                          : map_2d(type, tensor.base(), {64, 20}, 128, {64, 8}, swizzle)};
            const TensorMapReport rules = by_rules(call);
            if (whom.is_virtual())
              return answer(text_of(rules.result()), "rejected: the target does not support it", faults_of(rules));
            TensorMapSlot slot{};
            const cuda::Status status = by_driver(*whom.driver, call, slot);
            std::string text = fmt::format("returns {}", status);
            if (status != 0) return answer(text, "returns 1", {whom.driver->words(status)});
            const CopySeen seen =
                copy_window(whom, {.load_map = call.map, .loads = {{0, 3, 0}}, .window_bytes = 1024}, slot);
            if (!seen.outcome.faults.empty())
              return answer(text + "; a load " + how_it_stopped(whom, seen.outcome), std::nullopt,
                            first_fault(seen.outcome));
            return answer(fmt::format("{}; a load brings {:016x}", text, fnv1a(seen.window)), std::nullopt,
                          {"ATOM_32B as on sm_100 would be 6a111c2dded19b25, ATOM_64B cd0c9f875161dc25, FLIP_8B "
                           "60a125928e7cac25"});
          }};
}

// --- H8: corners of the rules ----------------------------------------------------------------------------------------

Call plain_call() {
  return {.map = map_2d(TmaDataType::bf16, 0x1000, {64, 20}, 128, {64, 8}, TmaSwizzle::b128)};
}

ProbePart corner(const char* name, void (*change)(Call&), const char* literal) {
  return {name, [change, literal](ProbeDevice& whom) {
            Call call = plain_call();
            change(call);
            const TensorMapReport rules = by_rules(call);
            // Each corner also states the expected result of the rules, so that the virtual GPU's answer is tested as
            // well.
            if (whom.is_virtual()) return answer(text_of(rules.result()), literal, faults_of(rules));
            TensorMapSlot slot{};
            const cuda::Status status = by_driver(*whom.driver, call, slot);
            return answer(fmt::format("returns {}", status), literal,
                          status == 0 ? std::vector<std::string>{} : std::vector{whom.driver->words(status)});
          }};
}

std::vector<ProbePart> corners() {
  return {
      corner(
          "a stride of 0", [](Call& c) { c.map.strides[0] = 0; }, "returns 0"),
      corner(
          "rows that overlap", [](Call& c) { c.map.strides[0] = 64; }, "returns 0"),
      corner(
          "element stride 0 of the first axis", [](Call& c) { c.map.element_strides[0] = 0; }, "returns 1"),
      corner(
          "element stride 9 of the first axis", [](Call& c) { c.map.element_strides[0] = 9; }, "returns 1"),
      corner(
          "2^32 rows", [](Call& c) { c.map.dims[1] = std::uint64_t{1} << 32; }, "returns 0"),
      corner(
          "2^32 + 1 rows", [](Call& c) { c.map.dims[1] = (std::uint64_t{1} << 32) + 1; }, "returns 1"),
      corner(
          "a box of 256 KiB",
          [](Call& c) {
            c.map = map_2d(TmaDataType::f32, 0x1000, {256, 256}, 1024, {256, 256}, TmaSwizzle::none);
          },
          "returns 1"),
      corner(
          "a box of 228 KiB",
          [](Call& c) {
            c.map = map_2d(TmaDataType::f32, 0x1000, {256, 256}, 1024, {256, 228}, TmaSwizzle::none);
          },
          "returns 0"),
      corner(
          "a box of 228 KiB and a row",
          [](Call& c) {
            c.map = map_2d(TmaDataType::f32, 0x1000, {256, 256}, 1024, {256, 229}, TmaSwizzle::none);
          },
          "returns 1"),
      corner(
          "a box of 256 KiB, every second row of it",
          [](Call& c) {
            c.map = map_2d(TmaDataType::f32, 0x1000, {256, 256}, 1024, {256, 256}, TmaSwizzle::none);
            c.map.element_strides[1] = 2;
          },
          "returns 0"),
      corner(
          "a base of 0", [](Call& c) { c.map.base = 0; }, "returns 0"),
      corner(
          "no array of dims", [](Call& c) { c.no_dims = true; }, "returns 1"),
      corner(
          "rank 1 without strides",
          [](Call& c) {
            c.map.rank = 1;
            c.no_strides = true;
          },
          "returns 1"),
  };
}

// --- H10, H20 --------------------------------------------------------------------------------------------------------

Answer without_context(ProbeDevice& whom) {
  if (whom.is_virtual()) return not_applicable("the virtual GPU has no contexts");
  cuda::Status status = 0;
  std::thread([&] {
    TensorMapSlot slot{};
    status = by_driver(*whom.driver, plain_call(), slot);
  }).join();
  return answer(fmt::format("returns {}", status), "returns 201",
                status == 0 ? std::vector<std::string>{} : std::vector{whom.driver->words(status)});
}

Answer cost(ProbeDevice& whom) {
  if (whom.is_virtual()) return not_applicable("the virtual GPU has no driver");
  using Clock = std::chrono::steady_clock;
  const auto microseconds = [](Clock::time_point begin, int times) {
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / times;
  };
  constexpr int kTimes = 1000;
  const Call call = plain_call();
  TensorMapSlot slot{};
  const auto encode_begin = Clock::now();
  cuda::Status status = 0;
  for (int i = 0; i < kTimes; ++i) status = by_driver(*whom.driver, call, slot);
  const double encode = microseconds(encode_begin, kTimes);
  whom.driver->check(status, "cuTensorMapEncodeTiled");
  void* const library = dlopen(whom.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto look_begin = Clock::now();
  bool found = library != nullptr;
  for (int i = 0; i < kTimes; ++i) found = found && dlsym(library, "cuTensorMapEncodeTiled") != nullptr;
  const double look = microseconds(look_begin, kTimes);
  return answer(fmt::format("{:.2f} us to look the function up, {:.2f} us to encode a map", look, encode), std::nullopt,
                {fmt::format("means of {} calls on the host's clock{}", kTimes, found ? "" : "; it was not found")});
}

}  // namespace

std::vector<Probe> probes_of_the_encoder() {
  return {
      {"H7",
       "What does the encoder return for swizzles and types of compute capability 10?",
       "each in a map; a load by those it takes",
       {later_mode("ATOM_32B", TmaDataType::bf16, TmaSwizzle::b128_atom32),
        later_mode("FLIP_8B", TmaDataType::bf16, TmaSwizzle::b128_atom32_flip8),
        later_mode("ATOM_64B", TmaDataType::bf16, TmaSwizzle::b128_atom64),
        later_mode("4-bit, 8 bytes", TmaDataType::u4x16_align8, TmaSwizzle::none),
        later_mode("4-bit, 16 bytes", TmaDataType::u4x16_align16, TmaSwizzle::none),
        later_mode("6-bit, 16 bytes", TmaDataType::u6x16_align16, TmaSwizzle::none)}},
      {"H8", "What does the encoder return at the limits of its rules?", "one change of a good map at a time",
       corners()},
      {"H10",
       "What does the encoder return on a thread without a context?",
       "a call on a new thread",
       {{"new thread", without_context}}},
      {"H20", "What does the encoder cost?", "the host's clock around many calls", {{"host time", cost}}},
  };
}

}  // namespace kvscope::gpu
