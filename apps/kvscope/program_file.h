// What an ELF file needs in order to run: the libraries and functions that it imports, and the device code inside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace kvscope::apps {

struct ProgramFile {
  bool elf = false;                                  // 64-bit, little-endian; everything below is empty otherwise
  std::string unchecked;                             // what is missing in the file and left empty here: "": nothing
  std::vector<std::string> needed;                   // "libcudart.so.13"
  bool has_rpath = false;                            // DT_RPATH, which is searched before LD_LIBRARY_PATH
  std::set<std::string> imported, exported;          // functions
  std::vector<std::vector<std::byte>> fat_binaries;  // containers of section .nv_fatbin
};

// Throws InputError if the file cannot be read, or is an ELF file whose tables are damaged.
[[nodiscard]] ProgramFile read_program(const std::string& path);

}  // namespace kvscope::apps
