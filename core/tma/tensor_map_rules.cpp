#include "core/tma/tensor_map_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>
#include <utility>

#include "core/tma/tma_swizzle.h"

namespace kvscope {

namespace {

constexpr std::int64_t kMostBoxBytes = 228 * 1024;  // the shared memory of an SM of compute capability 9.0

// A map and its faults. A rule that depends on a field with a reported fault is not checked, because it would only
// repeat that fault.
class Checker {
 public:
  Checker(const TensorMap& map, TmaTarget target) : map_(map), target_(target) {}

  TensorMapReport run() && {
    enumerations();
    rank();
    base();
    dims();
    strides();
    box();
    element_strides();
    swizzle();
    fill();
    size();
    target();
    return std::move(report_);
  }

 private:
  // `where` and `message` are texts or functions that make them: every copy checks its map, and most maps have no
  // fault.
  template <class Where, class Message>
  void require(bool holds, TensorMapRule rule, const Where& where, const Message& message) {
    if (!holds) [[unlikely]]
      report_.broken.push_back({rule, text_of(where), text_of(message)});
  }
  template <class Text>
  static std::string text_of(const Text& text) {
    if constexpr (std::is_invocable_v<Text>) {
      return text();
    } else {
      return text;
    }
  }
  [[nodiscard]] bool packed16() const {
    return map_.data_type == TmaDataType::u4x16_align16 || map_.data_type == TmaDataType::u6x16_align16;
  }
  template <class Check>
  void each_dimension(int first, Check check) {
    for (int i = first; rank_known_ && i < map_.rank; ++i) check(static_cast<std::size_t>(i));
  }

  void enumerations() {
    const auto in_table = [&](const char* where, int value, int end) {
      require(value < end, TensorMapRule::V02, where,
              [&] { return fmt::format("{} is in no table: use 0 to {}", value, end - 1); });
      return value < end;
    };
    type_known_ = in_table("data type", static_cast<int>(map_.data_type), kTmaDataTypes);
    interleave_known_ = in_table("interleave", static_cast<int>(map_.interleave), 3);
    swizzle_known_ = in_table("swizzle", static_cast<int>(map_.swizzle), 7);
    in_table("L2 promotion", static_cast<int>(map_.l2), 4);
    in_table("fill", static_cast<int>(map_.fill), 2);
  }

  void rank() {
    rank_known_ = map_.rank >= 1 && map_.rank <= kTmaMaxRank;
    require(rank_known_, TensorMapRule::V03, "rank", [&] { return fmt::format("{} is outside 1 to 5", map_.rank); });
    if (rank_known_ && interleave_known_ && map_.interleave != TmaInterleave::none) {
      require(map_.rank >= 3, TensorMapRule::V04, "rank",
              [&] { return fmt::format("{} with {}: it takes 3 to 5", map_.rank, name(map_.interleave)); });
    }
  }

  void base() {
    const auto aligned = [&](TensorMapRule rule, std::uint64_t to, std::string_view why) {
      require(map_.base % to == 0, rule, "base", [&] {
        return fmt::format("{:#x} is {} B past a multiple of {}{}: move the tensor", map_.base, map_.base % to, to,
                           why);
      });
    };
    aligned(TensorMapRule::V05, 16, "");
    if (interleave_known_ && map_.interleave == TmaInterleave::b32) {
      aligned(TensorMapRule::V06, 32, ", as 32B interleave requires");
    }
    if (type_known_ && packed16()) aligned(TensorMapRule::V07, 32, fmt::format(", as {} wants", name(map_.data_type)));
  }

  void dims() {
    each_dimension(0, [&](std::size_t i) {
      require(
          map_.dims[i] >= 1 && map_.dims[i] <= (std::uint64_t{1} << 32), TensorMapRule::V08,
          [&] { return fmt::format("dims[{}]", i); },
          [&] { return fmt::format("{} is outside 1 to 2^32", map_.dims[i]); });
    });
    if (!rank_known_ || !type_known_ || !is_packed(map_.data_type)) return;
    const std::uint64_t whole = packed16() ? 128 : 2;
    require(map_.dims[0] % whole == 0, TensorMapRule::V09, "dims[0]", [&] {
      return fmt::format("{} values of {} are not a multiple of {}: pad the rows", map_.dims[0], name(map_.data_type),
                         whole);
    });
  }

  void strides() {
    const auto where = [](std::size_t i) { return fmt::format("strides[{}]", i - 1); };
    const auto aligned = [&](TensorMapRule rule, std::uint64_t to) {
      each_dimension(1, [&](std::size_t i) {
        require(
            map_.strides[i - 1] % to == 0, rule, [&] { return where(i); },
            [&] { return fmt::format("{} B is not a multiple of {} B: pad the rows", map_.strides[i - 1], to); });
      });
    };
    aligned(TensorMapRule::V10, 16);
    each_dimension(1, [&](std::size_t i) {
      require(
          map_.strides[i - 1] < (std::uint64_t{1} << 40), TensorMapRule::V11, [&] { return where(i); },
          [&] { return fmt::format("{} B is not below 2^40: use several maps", map_.strides[i - 1]); });
      if (map_.strides[i - 1] == 0) {
        report_.notes.push_back(
            {where(i), "0 B is legal by the rules, but whether hardware repeats one row is unknown"});
      }
    });
    if ((interleave_known_ && map_.interleave == TmaInterleave::b32) || (type_known_ && packed16())) {
      aligned(TensorMapRule::V12, 32);
    }
  }

  void box() {
    each_dimension(0, [&](std::size_t i) {
      require(
          map_.box[i] >= 1 && map_.box[i] <= 256, TensorMapRule::V13, [&] { return fmt::format("box[{}]", i); },
          [&] { return fmt::format("{} is outside 1 to 256: copy the tile in several boxes", map_.box[i]); });
    });
    if (!rank_known_ || !type_known_) return;
    if (interleave_known_ && map_.interleave == TmaInterleave::none) {
      const std::int64_t inner = static_cast<std::int64_t>(map_.box[0]) * bits(map_.data_type);
      require(inner % 128 == 0, TensorMapRule::V14, "box[0]", [&] {
        return fmt::format("{} x {} = {} B is not a multiple of 16 B: use a multiple of {} elements", map_.box[0],
                           name(map_.data_type), static_cast<double>(inner) / 8, elements_of_a_chunk());
      });
    }
    require(!packed16() || map_.box[0] == 128, TensorMapRule::V15, "box[0]",
            [&] { return fmt::format("{} values of {}: it takes 128", map_.box[0], name(map_.data_type)); });
  }

  void element_strides() {
    each_dimension(0, [&](std::size_t i) {
      require(
          map_.element_strides[i] >= 1 && map_.element_strides[i] <= 8, TensorMapRule::V16,
          [&] { return fmt::format("elementStrides[{}]", i); },
          [&] { return fmt::format("{} is outside 1 to 8", map_.element_strides[i]); });
    });
  }

  void swizzle() {
    if (!swizzle_known_ || !interleave_known_) return;
    const bool swizzled = map_.swizzle != TmaSwizzle::none;
    if (rank_known_ && type_known_ && swizzled && map_.interleave == TmaInterleave::none) {
      const std::int64_t span = swizzle_span(map_.swizzle);
      require(shared_inner() <= span, TensorMapRule::V17, "box[0]", [&] {
        return fmt::format(
            "{} x {} = {} B, but {} takes at most {} B: use {}", map_.box[0], name(map_.data_type), shared_inner(),
            name(map_.swizzle), span,
            packed16() ? "a 128B swizzle" : fmt::format("boxes of {} elements", span * 8 / bits(map_.data_type)));
      });
    }
    require(map_.interleave != TmaInterleave::b32 || map_.swizzle == TmaSwizzle::b32, TensorMapRule::V18, "swizzle",
            [&] { return fmt::format("{} with 32B interleave: it takes the 32B swizzle", name(map_.swizzle)); });
    if (!type_known_) return;
    const bool six_bits = map_.data_type == TmaDataType::u6x16_align16;
    require(!six_bits || map_.interleave == TmaInterleave::none, TensorMapRule::V19, "interleave",
            [&] { return fmt::format("{} with {}: it takes none", name(map_.interleave), name(map_.data_type)); });
    const bool b128 = !swizzled || map_.swizzle == TmaSwizzle::b128 || map_.swizzle == TmaSwizzle::b128_atom32;
    require(!six_bits || b128 || map_.swizzle == TmaSwizzle::b128_atom64, TensorMapRule::V20, "swizzle", [&] {
      return fmt::format("{} with {}: it takes none, 128B, ATOM_32B, and ATOM_64B for stores", name(map_.swizzle),
                         name(map_.data_type));
    });
    require(map_.data_type != TmaDataType::u4x16_align16 || b128, TensorMapRule::V21, "swizzle", [&] {
      return fmt::format("{} with {}: it takes none, 128B and ATOM_32B", name(map_.swizzle), name(map_.data_type));
    });
  }

  void fill() {
    if (!type_known_) return;
    require(map_.fill != OobFill::nan_request_zero_fma || is_float(map_.data_type), TensorMapRule::V22, "fill",
            [&] { return fmt::format("NaN with {}, which has none: fill with zeros", name(map_.data_type)); });
  }

  // The bytes that a box occupies in shared memory: of each axis past the first, every element_strides-th position.
  void size() {
    if (!rank_known_ || !type_known_) return;
    std::int64_t bytes = shared_inner();
    bool in_range = map_.box[0] >= 1 && map_.box[0] <= 256;
    each_dimension(1, [&](std::size_t i) {
      const std::int64_t every = map_.element_strides[i];
      in_range = in_range && map_.box[i] >= 1 && map_.box[i] <= 256 && every >= 1 && every <= 8;
      if (in_range) bytes *= (map_.box[i] + every - 1) / every;
    });
    if (!in_range) return;  // V13, V16
    require(bytes <= kMostBoxBytes, TensorMapRule::V23, "box", [&] {
      return fmt::format("{} B, but a box has at most {} B, the shared memory of an SM: copy the tile in several boxes",
                         bytes, kMostBoxBytes);
    });
  }

  void target() {
    if (target_ != TmaTarget::sm_90) return;
    require(!swizzle_known_ || map_.swizzle <= TmaSwizzle::b128, TensorMapRule::target, "swizzle",
            [&] { return fmt::format("{} needs sm_100: use the 128B swizzle on sm_90", name(map_.swizzle)); });
    require(!type_known_ || !is_packed(map_.data_type), TensorMapRule::target, "data type",
            [&] { return fmt::format("{} needs sm_100: unpack to u8 on sm_90", name(map_.data_type)); });
  }

  // [bytes] of a row in shared memory, where a value of the 16-byte packed types takes one byte.
  [[nodiscard]] std::int64_t shared_inner() const {
    const auto values = static_cast<std::int64_t>(map_.box[0]);
    return packed16() ? values : values * bits(map_.data_type) / 8;
  }
  // The smallest number of elements that fills whole 16-byte chunks.
  [[nodiscard]] std::int64_t elements_of_a_chunk() const {
    return map_.data_type == TmaDataType::u6x16_align16 ? 64 : 128 / bits(map_.data_type);
  }

  const TensorMap& map_;
  TmaTarget target_;
  TensorMapReport report_;
  bool type_known_ = false, interleave_known_ = false, swizzle_known_ = false, rank_known_ = false;
};

}  // namespace

std::string_view name(TensorMapRule rule) {
  static constexpr std::array<std::string_view, 24> kNames = {
      "V01", "V02", "V03", "V04", "V05", "V06", "V07", "V08", "V09", "V10", "V11", "V12",
      "V13", "V14", "V15", "V16", "V17", "V18", "V19", "V20", "V21", "V22", "V23", "target"};
  return kNames.at(static_cast<std::size_t>(rule));
}

TensorMapResult TensorMapReport::result() const {
  if (broken.empty()) return TensorMapResult::success;
  const auto of_the_target = [](const BrokenMapRule& rule) { return rule.rule == TensorMapRule::target; };
  return std::all_of(broken.begin(), broken.end(), of_the_target) ? TensorMapResult::unsupported_on_target
                                                                  : TensorMapResult::invalid_value;
}

std::vector<Fault> TensorMapReport::faults() const {
  std::vector<Fault> faults;
  for (const BrokenMapRule& rule : broken)
    faults.push_back({fmt::format("{} ({})", rule.where, name(rule.rule)), rule.message});
  return faults;
}

void TensorMapReport::throw_if_broken(std::string_view object) const {
  if (broken.empty()) return;
  const std::string title = fmt::format("tensor map of {}", object);
  if (result() == TensorMapResult::unsupported_on_target) throw UnsupportedError(format_faults(title, faults()));
  throw GeometryError(title, faults());
}

TensorMapReport check_tensor_map(const TensorMap& map, TmaTarget target) {
  return Checker(map, target).run();
}

}  // namespace kvscope
