// Where each statement comes from: .loc, .file, and the names of inlined functions in .debug_str.
//
//   .loc 2 17 3                                                            frame 0: {2, 17, 3}
//   .loc 3 10 73, function_name $L__info_string1, inlined_at 2 17 3        frame 1: {3, 10, 73, outer 0, "load_row"}
//
// The frame outside an inlined one is the most recent earlier .loc of exactly that file, line and column: nvcc writes
// it just before. Equal places are one frame. Line 0 keeps the place before. The label of a name stands in a section at
// the end of the file, so names are filled in by finish().
// Source: PTX ISA, ".loc"; nvcc's output.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpu/virtual/text/detail/reader.h"
#include "gpu/virtual/text/module.h"

namespace kvscope::ptx {

class SourceMap {
 public:
  // `reader` stands behind the directive's name; afterwards at the token behind it (no ';' ends these).
  void read_loc(Reader& reader, Module& module);
  void read_file(Reader& reader, Module& module);
  void read_section(Reader& reader);

  void begin_function() { current_ = -1; }
  [[nodiscard]] std::int32_t current() const { return current_; }  // Module::frames
  // Names of frames, once the whole text is read; they point into `pieces`.
  void finish(Module& module, std::deque<std::string>& pieces) const;

 private:
  struct Name {
    std::string_view label;  // "": the outermost
    std::int64_t offset = 0;
    friend bool operator==(const Name&, const Name&) = default;
  };
  struct Place {
    std::int32_t file = 0;
    std::int32_t line = 0;
    std::int32_t column = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Key {
    Place place;
    std::int32_t outer = -1;
    Name name;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    [[nodiscard]] std::size_t operator()(const Place& p) const;
    [[nodiscard]] std::size_t operator()(const Key& k) const;
  };
  [[nodiscard]] static Place read_place(Reader& reader);
  std::int32_t frame_of(Module& module, const Key& key);

  std::int32_t current_ = -1;
  std::vector<Name> names_;                               // [frame]
  std::unordered_map<Key, std::int32_t, Hash> frames_;    // equal ones are one
  std::unordered_map<Place, std::int32_t, Hash> newest_;  // the frame of the most recent .loc of each place
  std::string_view debug_str_;                            // between its braces
};

}  // namespace kvscope::ptx
