// Source places of statements: .loc, .file, and the names of inlined functions in .debug_str.
//
//   .loc 2 17 3                                                            frame 0: {2, 17, 3}
//   .loc 3 10 73, function_name $L__info_string1, inlined_at 2 17 3        frame 1: {3, 10, 73, outer 0, "load_row"}
//
// The caller of an inlined frame is the most recent earlier .loc with exactly that file, line and column: nvcc writes
// it just before. Equal places share one frame. Line 0 keeps the previous place. The label of a function name is in a
// section at the end of the file, so finish() fills in the names.
// Source: PTX ISA, ".loc"; the output of nvcc.
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
  // Precondition: the token is after the directive's name. Reads to the token after the statement, which has no ';'.
  void read_loc(Reader& reader, Module& module);
  void read_file(Reader& reader, Module& module);
  void read_section(Reader& reader, Module& module);

  void begin_function() { current_ = -1; }
  [[nodiscard]] std::int32_t current() const { return current_; }  // Module::frames
  // Sets the names of frames after the whole text is read; they point into `pieces`.
  void finish(Module& module, std::deque<std::string>& pieces) const;

 private:
  struct Name {
    std::string_view label;  // "": the outermost frame
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
  std::int32_t assembly_ = 0;                             // the block of inline assembly of the last .loc
  std::vector<Name> names_;                               // [frame]
  std::unordered_map<Key, std::int32_t, Hash> frames_;    // equal frames are stored once
  std::unordered_map<Place, std::int32_t, Hash> newest_;  // the frame of the most recent .loc of each place
};

}  // namespace kvscope::ptx
