// Any bytes as a tensor map's record: an accepted record is a valid map that encodes to the same record; everything
// else is rejected with a reason. The target inserts a valid checksum, because otherwise no input would pass that
// check.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/tma/box_plan.h"
#include "core/tma/global_memory.h"
#include "core/tma/tensor_map_record.h"

namespace {

void must_hold(bool holds) {
  if (!holds) std::abort();
}

void read(std::span<const std::byte> bytes) {
  try {
    const kvscope::TensorMap map = kvscope::decode_tensor_map("fuzz", bytes);
    const auto again = kvscope::encode_tensor_map("fuzz", map, kvscope::TmaTarget::sm_100);
    must_hold(std::equal(bytes.begin(), bytes.end(), again.begin(), again.end()));
    const kvscope::BoxSwitches switches{.target = kvscope::TmaTarget::sm_100};
    try {
      kvscope::require_box_copyable(map, kvscope::BoxDirection::load, switches);
    } catch (const kvscope::UnsupportedError&) {
      return;
    }
    const kvscope::BoxShape shape = kvscope::box_shape(map, switches);
    must_hold(shape.tx_bytes > 0 && shape.tx_bytes <= shape.window_bytes && shape.inner % 16 == 0);
    kvscope::TmaCoord origin;
    origin.rank = map.rank;
    if (shape.tx_bytes <= 1 << 16) {
      must_hold(static_cast<std::int64_t>(kvscope::box_chunks(map, origin, 0, switches).size()) * 16 == shape.tx_bytes);
    }
  } catch (const kvscope::InputError&) {
  } catch (const kvscope::IllegalAddress&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  read(bytes);
  if (size >= kvscope::kTensorMapBytes) {
    std::array<std::byte, kvscope::kTensorMapBytes> record{};
    std::copy_n(bytes.begin(), record.size(), record.begin());
    const std::uint32_t crc = kvscope::crc32({reinterpret_cast<const char*>(record.data()), 124});
    for (std::size_t i = 0; i < 4; ++i) record[124 + i] = static_cast<std::byte>(crc >> (8 * i) & 0xFF);
    read(record);
  }
  return 0;
}
