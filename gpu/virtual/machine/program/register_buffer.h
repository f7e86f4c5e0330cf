// The registers of one activation, 32 lanes each, aligned so that vector instructions can load a whole register.
// Copying the object copies the values.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace kvscope::ptx {

template <class T, std::size_t kAlign>
struct AlignedAllocator {
  using value_type = T;
  template <class U>
  struct rebind {
    using other = AlignedAllocator<U, kAlign>;
  };
  AlignedAllocator() = default;
  template <class U>
  explicit AlignedAllocator(const AlignedAllocator<U, kAlign>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(kAlign))); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t(kAlign)); }
  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};

using RegisterBuffer = std::vector<std::byte, AlignedAllocator<std::byte, 64>>;

}  // namespace kvscope::ptx
