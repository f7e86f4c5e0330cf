// Any text as a tensor map: a map that is read is checked against the rules. For a valid map the chunks of its box are
// counted, are inside its window and are reported to the barrier; everything else is rejected with a reason.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/base/errors.h"
#include "core/tma/box_plan.h"
#include "core/tma/global_memory.h"
#include "core/tma/tensor_map_json.h"
#include "core/tma/tensor_map_rules.h"

namespace {

constexpr std::int64_t kMostChunked = 1 << 16;  // [bytes] of a box whose chunks are listed

void must_hold(bool holds) {
  if (!holds) std::abort();
}

void plan(const kvscope::TensorMapFile& file) {
  const kvscope::BoxSwitches switches{.target = file.target};
  kvscope::require_box_copyable(file.map, kvscope::BoxDirection::load, switches);
  const kvscope::BoxShape shape = kvscope::box_shape(file.map, switches);
  must_hold(shape.tx_bytes > 0 && shape.tx_bytes <= shape.window_bytes && shape.inner % 16 == 0);
  if (!file.at || shape.tx_bytes > kMostChunked || file.dst < 0 || file.dst > kMostChunked) return;
  const auto chunks = kvscope::box_chunks(file.map, *file.at, file.dst, switches);
  must_hold(static_cast<std::int64_t>(chunks.size()) * 16 == shape.tx_bytes);
  const std::int64_t line = file.dst / 128 * 128;  // a swizzle stays within 128 bytes
  for (const kvscope::BoxChunk& chunk : chunks) {
    must_hold(chunk.shared >= line && chunk.shared < file.dst + shape.window_bytes + 128 && chunk.shared % 16 == 0);
    must_hold(chunk.data_bytes >= 0 && chunk.data_bytes <= 16);
  }
}

void read(std::string_view text) {
  const kvscope::TensorMapFile file = kvscope::parse_tensor_map(text, "fuzz");
  must_hold(file.map.rank >= 1 && file.map.rank <= kvscope::kTmaMaxRank);
  must_hold(!file.at || file.at->rank == file.map.rank);
  const kvscope::TensorMapReport report = kvscope::check_tensor_map(file.map, file.target);
  for (const kvscope::BrokenMapRule& broken : report.broken)
    must_hold(!broken.where.empty() && !broken.message.empty());
  if (report.broken.empty()) plan(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    read({reinterpret_cast<const char*>(data), size});
  } catch (const kvscope::InputError&) {
  } catch (const kvscope::GeometryError&) {
  } catch (const kvscope::UnsupportedError&) {
  } catch (const kvscope::IllegalAddress&) {
  }
  return 0;
}
