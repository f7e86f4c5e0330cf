#include "core/smem/shared_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "core/base/checked.h"
#include "core/base/errors.h"

namespace kvscope {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 31;

std::int64_t checked_size(std::int64_t bytes) {
  if (bytes < 0 || bytes > kMostBytes) {
    throw GeometryError(fmt::format("shared memory of {} B is outside [0, {}]", bytes, kMostBytes));
  }
  return bytes;
}

// address + count is never formed: it may not fit.
void check_range(std::string_view what, std::int64_t address, std::int64_t count, std::int64_t size) {
  if (address >= 0 && count >= 0 && address <= size && count <= size - address) return;
  throw IndexError(fmt::format(
      "{} of {} B at address {} leaves the shared memory of {} B: use addresses of the CTA's window, in bytes", what,
      count, address, size));
}

}  // namespace

SharedImage::SharedImage(std::int64_t bytes, std::byte poison)
    : bytes_(static_cast<std::size_t>(checked_size(bytes)), poison),
      writers_(static_cast<std::size_t>(bytes), static_cast<std::int32_t>(kNobody.value)) {}

void SharedImage::write(std::int64_t address, std::span<const std::byte> bytes, CopyIdx copy) {
  check_range("write", address, static_cast<std::int64_t>(bytes.size()), size());
  const auto writer = narrow<std::int32_t>(copy.value, "copy");
  std::copy(bytes.begin(), bytes.end(), bytes_.begin() + address);
  std::fill_n(writers_.begin() + address, bytes.size(), writer);
}

std::span<const std::byte> SharedImage::read(std::int64_t address, std::int64_t count) const {
  check_range("read", address, count, size());
  return std::span(bytes_).subspan(static_cast<std::size_t>(address), static_cast<std::size_t>(count));
}

CopyIdx SharedImage::writer(std::int64_t address) const {
  check_range("writer", address, 1, size());
  return CopyIdx{writers_[static_cast<std::size_t>(address)]};
}

}  // namespace kvscope
