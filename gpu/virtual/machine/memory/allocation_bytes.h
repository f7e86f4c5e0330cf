// The bytes of an allocation: its own, which begin as zeros, or the caller's, such as pinned memory of the host.
//
//   AllocationBytes own(1 << 30);                 takes memory of the host page by page, as its pages are written
//   AllocationBytes lent(std::span(host, 64));    writes go to `host`
//   AllocationBytes copy = lent;                  64 bytes of its own
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace kvscope::ptx {

class AllocationBytes {
 public:
  AllocationBytes() = default;  // none
  explicit AllocationBytes(std::size_t size)
      : own_(size == 0 ? nullptr : static_cast<std::byte*>(std::calloc(size, 1))), all_(own_.get(), size) {
    if (own_ == nullptr && size > 0) throw std::bad_alloc();
  }
  explicit AllocationBytes(std::span<std::byte> lent) : all_(lent) {}  // which must outlive this object
  AllocationBytes(const AllocationBytes& other) : AllocationBytes(other.all_.size()) {
    std::copy(other.all_.begin(), other.all_.end(), all_.begin());
  }
  AllocationBytes(AllocationBytes&& other) noexcept
      : own_(std::move(other.own_)), all_(std::exchange(other.all_, {})) {}
  AllocationBytes& operator=(AllocationBytes other) noexcept {
    std::swap(own_, other.own_);
    std::swap(all_, other.all_);
    return *this;
  }
  ~AllocationBytes() = default;

  [[nodiscard]] std::span<std::byte> all() const { return all_; }
  [[nodiscard]] std::byte* data() const { return all_.data(); }
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] bool are_lent() const { return own_ == nullptr && !all_.empty(); }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<std::byte[], Free> own_;
  std::span<std::byte> all_;
};

}  // namespace kvscope::ptx
