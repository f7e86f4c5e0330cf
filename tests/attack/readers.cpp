// The readers of tests/fuzz in one process, without libFuzzer: for many mutated inputs in little time.
//
//   attack_readers READER < INPUTS
//
// INPUTS is a sequence of one length (8 bytes, little-endian) and that many bytes each. The program prints the number of
// inputs read. A fault ends it by a signal, and so does an input that takes more than kProcessorTime (SIGPROF). Before
// each input its number is written to standard error, so that the last number names the input.
#include <sys/time.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/attack/readers_list.h"  // KVSCOPE_READERS, made by CMakeLists.txt from the files of tests/fuzz

// tests/attack/CMakeLists.txt gives LLVMFuzzerTestOneInput of <name>_fuzz.cpp the name <name>_reader.
#define KVSCOPE_DECLARE(name) extern "C" int name##_reader(const std::uint8_t* data, std::size_t size);
KVSCOPE_READERS(KVSCOPE_DECLARE)

// ptx_decode_fuzz.cpp has a mutator that calls libFuzzer's; nothing calls that mutator here.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* /*data*/, std::size_t size, std::size_t /*most*/) {
  return size;
}

namespace {

constexpr time_t kProcessorTime = 30;  // [s] for one input

struct Reader {
  const char* name;
  int (*read)(const std::uint8_t* data, std::size_t size);
};

#define KVSCOPE_ENTRY(name) Reader{#name, &name##_reader},
const Reader kReaders[] = {KVSCOPE_READERS(KVSCOPE_ENTRY)};

bool next(std::vector<std::uint8_t>& input) {
  std::uint8_t length_bytes[8];
  if (std::fread(length_bytes, 1, sizeof length_bytes, stdin) != sizeof length_bytes) return false;
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | length_bytes[i];
  input.resize(length);
  return std::fread(input.data(), 1, input.size(), stdin) == input.size();
}

}  // namespace

int main(int argc, char** argv) {
  for (const Reader& reader : kReaders) {
    if (argc != 2 || std::strcmp(argv[1], reader.name) != 0) continue;
    std::vector<std::uint8_t> input;
    long read = 0;
    for (; next(input); ++read) {
      std::fprintf(stderr, "%ld\n", read);
      const itimerval limit{{}, {kProcessorTime, 0}};
      setitimer(ITIMER_PROF, &limit, nullptr);
      // A copy of exactly this size, so that a tool that watches memory notices reads past its end.
      const std::vector<std::uint8_t> exact(input.begin(), input.end());
      reader.read(exact.data(), exact.size());
    }
    std::printf("%ld\n", read);
    return EXIT_SUCCESS;
  }
  std::fprintf(stderr, "usage: attack_readers READER < INPUTS, with one of the readers of tests/fuzz\n");
  return 2;
}
