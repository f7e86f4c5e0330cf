// A long copy-on-write array. Copies share chunks of kChunk elements until one of the copies writes to a chunk. The
// state of a million blocks is stored once; each checkpoint adds only the chunks that changed since the previous one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/errors.h"

namespace kvscope::viz {

template <class T, std::size_t kChunk = 1024>
class CowArray {
 public:
  CowArray() = default;
  // All chunks of a new array share one chunk until they are written to.
  explicit CowArray(std::int64_t size) { resize(size); }

  [[nodiscard]] std::int64_t size() const { return size_; }

  [[nodiscard]] const T& operator[](std::int64_t i) const {
    KVSCOPE_ASSERT(i >= 0 && i < size_);
    return (*chunks_[static_cast<std::size_t>(i) / kChunk])[static_cast<std::size_t>(i) % kChunk];
  }

  // Prefetches an element into the CPU cache; does nothing for an index outside the array. Without it, reads at random
  // indices of a million elements each wait for a cache miss.
  void prefetch(std::int64_t i) const {
    if (i >= 0 && i < size_) __builtin_prefetch(&(*this)[i]);
  }

  // The element, for writing: its chunk is copied first if a copy of this array shares it.
  [[nodiscard]] T& at(std::int64_t i) {
    KVSCOPE_ASSERT(i >= 0 && i < size_);
    std::shared_ptr<Chunk>& chunk = chunks_[static_cast<std::size_t>(i) / kChunk];
    if (chunk.use_count() > 1) chunk = std::make_shared<Chunk>(*chunk);
    return (*chunk)[static_cast<std::size_t>(i) % kChunk];
  }

  // New elements are T{}. Precondition (caller): size >= size(); shrinking is not supported.
  void resize(std::int64_t size) {
    KVSCOPE_ASSERT(size >= size_);
    const std::size_t chunks = (static_cast<std::size_t>(size) + kChunk - 1) / kChunk;
    if (chunks > chunks_.size()) chunks_.resize(chunks, std::make_shared<Chunk>());
    size_ = size;
  }

  // Calls visit(first, span of elements) for each chunk in order. Faster than operator[] for painting a million cells.
  template <class Visit>
  void for_each_chunk(Visit&& visit) const {
    for (std::size_t c = 0; c < chunks_.size(); ++c) visit_chunk(c, visit);
  }

  // The same, only for the chunks that are not shared with `other`. Precondition (caller): the sizes are equal.
  template <class Visit>
  void for_each_chunk_apart(const CowArray& other, Visit&& visit) const {
    KVSCOPE_ASSERT(size_ == other.size_);
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      if (chunks_[c] != other.chunks_[c]) visit_chunk(c, visit);
    }
  }

  [[nodiscard]] std::int64_t chunks() const { return static_cast<std::int64_t>(chunks_.size()); }
  // Number of chunks that are not shared with `other`: the memory cost of a copy. [chunks]
  [[nodiscard]] std::int64_t chunks_apart(const CowArray& other) const {
    std::int64_t apart = 0;
    for_each_chunk_apart(other, [&](std::int64_t, std::span<const T>) { ++apart; });
    return apart;
  }
  static constexpr std::int64_t kChunkBytes = static_cast<std::int64_t>(kChunk * sizeof(T));

  friend bool operator==(const CowArray& a, const CowArray& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t c = 0; c < a.chunks_.size(); ++c) {
      if (a.chunks_[c] != b.chunks_[c] && *a.chunks_[c] != *b.chunks_[c]) return false;
    }
    return true;
  }

 private:
  using Chunk = std::array<T, kChunk>;

  template <class Visit>
  void visit_chunk(std::size_t c, Visit& visit) const {
    const auto first = static_cast<std::int64_t>(c * kChunk);
    const auto count =
        static_cast<std::size_t>(std::min<std::int64_t>(static_cast<std::int64_t>(kChunk), size_ - first));
    visit(first, std::span<const T>(chunks_[c]->data(), count));
  }

  std::vector<std::shared_ptr<Chunk>> chunks_;
  std::int64_t size_ = 0;
};

}  // namespace kvscope::viz
