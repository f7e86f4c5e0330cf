#include "gpu/virtual/machine/matrix/wgmma_operands.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/semantics/matrix_product.h"

namespace kvscope::ptx {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // of the operands of a CTA

// [lines][length] -> [length][lines]; lines is a multiple of 8.
template <class T>
void transpose(const T* from, int lines, int length, T* to) {
  constexpr int kBlock = 8;
  for (int line = 0; line < lines; line += kBlock) {
    for (int i = 0; i < length; ++i) {
      T* const column = to + i * lines + line;
      const T* const row = from + line * length + i;
      for (int j = 0; j < kBlock; ++j) column[j] = row[j * length];
    }
  }
}

}  // namespace

WgmmaOperand::WgmmaOperand(const WgmmaOperandKey& key, const Cta& cta) : key_(key) {
  for (const WgmmaChunk& chunk :
       wgmma_chunks(key.descriptor, key.mn_major, bits(key.type), key.mn_from, key.mns, key.ks)) {
    if (!outside_ && shared_at(cta, chunk.offset, kWgmmaChunkBytes) == nullptr) outside_ = chunk.offset;
    chunks_.push_back(chunk.offset);
  }
  offsets_ = chunks_;
  std::sort(offsets_.begin(), offsets_.end());
  offsets_.erase(std::unique(offsets_.begin(), offsets_.end()), offsets_.end());
}

std::size_t WgmmaOperand::memory() const {
  const auto elements = static_cast<std::size_t>(key_.mns) * static_cast<std::size_t>(key_.ks);
  return 4 * elements + (2 * sizeof(std::uint64_t) + kWgmmaChunkBytes) * chunks_.size();
}

bool WgmmaOperand::read(const Cta& cta) {
  const std::byte* const window = shared_at(cta, kSharedBase, 0);
  if (!bytes_.empty()) {
    const std::byte* known = bytes_.data();
    typedef std::uint64_t Chunk __attribute__((vector_size(kWgmmaChunkBytes)));
    Chunk changed{};
    for (const std::uint64_t offset : chunks_) {
      Chunk now, before;
      std::memcpy(&now, window + (offset - kSharedBase), sizeof now);
      std::memcpy(&before, known, sizeof before);
      changed |= now ^ before;
      known += kWgmmaChunkBytes;
    }
    if ((changed[0] | changed[1]) == 0) return false;
  }
  bytes_.resize(chunks_.size() * kWgmmaChunkBytes);
  std::byte* to = bytes_.data();
  for (const std::uint64_t offset : chunks_) {
    std::memcpy(to, window + (offset - kSharedBase), kWgmmaChunkBytes);
    to += kWgmmaChunkBytes;
  }
  return true;
}

template <class T>
void WgmmaOperand::decode(std::vector<T>& numbers) {
  const int count = key_.mns * key_.ks;
  numbers.resize(static_cast<std::size_t>(count));
  // The chunks are in the order [mn][k], or [k][mn] if the operand is MN-major.
  if (key_.order == (key_.mn_major ? OperandOrder::columns : OperandOrder::rows))
    return decode_elements(key_.type, bytes_.data(), count, numbers.data());
  std::vector<T> as_stored(numbers.size());
  decode_elements(key_.type, bytes_.data(), count, as_stored.data());
  if constexpr (std::is_same_v<T, float>) {
    if (key_.order == OperandOrder::quads)
      return arrange_quads(!key_.mn_major, key_.mns, key_.ks, as_stored.data(), numbers.data());
  }
  transpose(as_stored.data(), key_.mn_major ? key_.ks : key_.mns, key_.mn_major ? key_.mns : key_.ks, numbers.data());
}

template <class T>
std::span<const T> WgmmaOperand::numbers(const Cta& cta, std::uint64_t moment) {
  auto& numbers = std::get<std::vector<T>>(numbers_);
  if (moment == moment_) return numbers;
  moment_ = moment;
  if (read(cta)) {
    decode(numbers);
    if constexpr (std::is_same_v<T, float>)
      exact_products_ = have_exact_products(numbers.data(), static_cast<int>(numbers.size()));
  }
  return numbers;
}
template std::span<const float> WgmmaOperand::numbers(const Cta& cta, std::uint64_t moment);
template std::span<const std::int32_t> WgmmaOperand::numbers(const Cta& cta, std::uint64_t moment);

std::size_t WgmmaOperands::Hash::operator()(const WgmmaOperandKey& key) const {
  std::uint64_t hash = key.descriptor;
  for (const int part :
       {static_cast<int>(key.type) * 4 + key.mn_major * 2, static_cast<int>(key.order), key.mn_from, key.mns, key.ks})
    hash = (hash ^ hash >> 29 ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15U;
  return hash ^ hash >> 32;
}

WgmmaOperand& WgmmaOperands::at(const WgmmaOperandKey& key, const Cta& cta) {
  if (const auto found = operands_.find(key); found != operands_.end()) return found->second;
  WgmmaOperand& operand = operands_.emplace(key, WgmmaOperand(key, cta)).first->second;
  memory_ += operand.memory();
  return operand;
}

void WgmmaOperands::trim() {
  if (memory_ <= kMostBytes) return;
  operands_.clear();
  memory_ = 0;
}

}  // namespace kvscope::ptx
