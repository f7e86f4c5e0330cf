// Any bytes as a trace file: opening and reading all of it succeeds or throws an InputError, in bounded time and
// memory.
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/errors.h"
#include "core/trace/trace_reader.h"

namespace {

// One file name per process, in a folder in memory if the system has one.
const std::filesystem::path& fuzzed_path() {
  static const std::filesystem::path path = [] {
    const std::filesystem::path memory = "/dev/shm";
    const bool usable = ::access(memory.c_str(), W_OK) == 0;
    return (usable ? memory : std::filesystem::temp_directory_path()) /
           ("kvscope_trace_fuzz_" + std::to_string(::getpid()) + ".kvt");
  }();
  return path;
}

void read_all(const std::string& bytes) {
  std::ofstream(fuzzed_path(), std::ios::binary) << bytes;
  try {
    kvscope::trace::TraceReader trace(fuzzed_path());
    trace.verify_all();
  } catch (const kvscope::InputError&) {
  }
  std::filesystem::remove(fuzzed_path());
}

// The bytes with the header of a trace of this length, so that inputs of any length pass the first check.
std::string with_plausible_header(std::string bytes) {
  constexpr std::size_t kPage = 1024;
  const std::string start("SQLite format 3\0\x04\0\x01\x01\0\x40\x20\x20", 24);
  const std::string identity("\0\0\0\x01\0\0\0\0kvtr", 12);  // version 1, no vacuum, application id
  bytes.resize((bytes.size() + kPage - 1) / kPage * kPage);
  if (bytes.empty()) return bytes;
  bytes.replace(0, start.size(), start);
  bytes.replace(60, identity.size(), identity);
  bytes[92] = bytes[24], bytes[93] = bytes[25], bytes[94] = bytes[26],
  bytes[95] = bytes[27];  // marks the length field as valid
  for (std::size_t i = 0, pages = bytes.size() / kPage; i < 4; ++i, pages >>= 8) {
    bytes[31 - i] = static_cast<char>(pages & 0xFF);
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  read_all(bytes);
  read_all(with_plausible_header(bytes));
  return 0;
}
