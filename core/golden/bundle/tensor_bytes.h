// The bytes of a tensor: its own, or memory of a caller that is read in place, such as an array of Python.
//
// Reading never copies. The first call that may write (a member that is not const) copies borrowed bytes, so that the
// lender's memory is never written. Copies of borrowed bytes borrow too.
// Example: borrow(span, owner) of a cache of 1 GB takes no memory; bytes.data()[0] = x on it takes 1 GB.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace kvscope::golden {

class TensorBytes {
 public:
  using value_type = std::byte;

  TensorBytes() = default;
  TensorBytes(std::vector<std::byte> bytes) : own_(std::move(bytes)) {}  // NOLINT: a vector is the usual case
  template <class Iterator>
  TensorBytes(Iterator first, Iterator last) : own_(first, last) {}
  explicit TensorBytes(std::size_t count) : own_(count) {}

  // `bytes` stay valid and unchanged while `owner` exists; each copy of this object keeps it. `bytes` are aligned for
  // the tensor's elements.
  [[nodiscard]] static TensorBytes borrow(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
    TensorBytes borrowed;
    borrowed.lent_ = bytes;
    borrowed.owner_ = std::move(owner);
    borrowed.borrows_ = true;
    return borrowed;
  }
  [[nodiscard]] bool borrows() const { return borrows_; }

  [[nodiscard]] const std::byte* data() const { return borrows_ ? lent_.data() : own_.data(); }
  [[nodiscard]] std::size_t size() const { return borrows_ ? lent_.size() : own_.size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] const std::byte* begin() const { return data(); }
  [[nodiscard]] const std::byte* end() const { return data() + size(); }
  [[nodiscard]] const std::byte& operator[](std::size_t at) const { return data()[at]; }
  friend bool operator==(const TensorBytes& a, const TensorBytes& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

  // The bytes as a vector to write to.
  [[nodiscard]] std::vector<std::byte>& own() {
    if (borrows_) own_.assign(lent_.begin(), lent_.end());
    borrows_ = false;  // the owner stays: pointers to the lent bytes remain valid
    return own_;
  }
  [[nodiscard]] std::byte* data() { return own().data(); }
  [[nodiscard]] std::byte* begin() { return data(); }
  [[nodiscard]] std::byte* end() { return data() + size(); }
  [[nodiscard]] std::byte& operator[](std::size_t at) { return own()[at]; }
  void resize(std::size_t count) { own().resize(count); }
  template <class Iterator>
  void assign(Iterator first, Iterator last) {
    *this = TensorBytes(first, last);
  }
  template <class Iterator>
  void append(Iterator first, Iterator last) {
    own().insert(own_.end(), first, last);
  }

 private:
  std::vector<std::byte> own_;
  std::span<const std::byte> lent_;
  std::shared_ptr<const void> owner_;
  bool borrows_ = false;
};

}  // namespace kvscope::golden
