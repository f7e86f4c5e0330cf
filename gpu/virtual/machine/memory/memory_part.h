// The device memory that some CTAs of a launch see while other threads run the other CTAs (launch_parts.h): the bytes that
// the device had when the launch began, and an own copy of each page that these CTAs write. Reads and writes are recorded
// in cells of 4 bytes, so that accesses of different parts to one cell are found afterward.
//
//   MemoryPart first(memory.allocations()), second(memory.allocations());
//   first.write(0, 8, 4);                        bytes 8 to 11 of allocation 0: a copy of the page, to write into
//   second.read(0, 8, 4);                        the device's bytes
//   first_conflict({&first, &second})            allocation 0, byte 8
//
// Memory: a page of 4096 bytes and 272 bytes of records for each page written, 272 bytes for each page read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace kvscope::ptx {

struct Allocation;

class MemoryPart {
 public:
  static constexpr std::uint64_t kCell = 4;     // [bytes]
  static constexpr std::uint64_t kPage = 4096;  // [bytes]

  // The bytes of `whole` must stay in place and unchanged as long as this object is used.
  explicit MemoryPart(std::span<const Allocation> whole);

  // The bytes [offset, offset + count) of an allocation, contiguous. Precondition: they exist. A pointer is valid for this
  // access only: a later write copies the page.
  [[nodiscard]] const std::byte* read(std::size_t allocation, std::uint64_t offset, std::uint64_t count);
  [[nodiscard]] std::byte* write(std::size_t allocation, std::uint64_t offset, std::uint64_t count);

  // Copies each cell that was written to `to`, an allocation's bytes.
  void commit(std::size_t allocation, std::span<std::byte> to) const;
  [[nodiscard]] std::size_t allocations() const { return all_.size(); }

  // The first cell, in the order of allocations and parts, that one part wrote and another one read or wrote.
  struct Conflict {
    std::size_t allocation = 0;
    std::uint64_t offset = 0;  // [bytes]
  };
  [[nodiscard]] static std::optional<Conflict> first_conflict(std::span<const MemoryPart* const> parts);

 private:
  using Cells = std::array<std::uint64_t, kPage / kCell / 64>;  // one bit per cell
  struct Page {
    Cells read{}, written{};
    bool own = false;  // Bytes::own has a copy
  };
  struct Bytes {
    const std::byte* whole = nullptr;
    std::uint64_t size = 0;
    // `size` bytes from the first write on. Only pages that are copied take memory: the host gives out large blocks page by
    // page as they are touched.
    std::unique_ptr<std::byte[]> own;
    std::vector<std::unique_ptr<Page>> pages;  // null: not accessed
  };
  [[nodiscard]] static Page& page_of(Bytes& bytes, std::uint64_t page);
  static void copy_page(Bytes& bytes, std::uint64_t page);
  static void mark(Bytes& bytes, std::uint64_t offset, std::uint64_t count, Cells Page::*cells);

  std::vector<Bytes> all_;
};

}  // namespace kvscope::ptx
