// Helpers of this folder's tests: a temporary folder, Python as an independent reader, and the text of an error.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/golden/bundle/tensor.h"
#include "tests/property.h"

namespace kvscope::golden {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "kvscope_golden_XXXXXX").string();
    KVSCOPE_ASSERT(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

inline void spit(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Runs `script` with the folder as its working directory and returns its output. Missing Python or NumPy fails the
// test, because both are in the list of required packages.
inline std::string python(const TempFolder& folder, const std::string& script) {
  spit(folder / "script.py", script);
  const std::string command = "cd '" + (folder / "").string() + "' && /usr/bin/python3 script.py 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  KVSCOPE_ASSERT(pipe != nullptr);
  std::string output;
  std::array<char, 4096> piece{};
  while (const std::size_t got = fread(piece.data(), 1, piece.size(), pipe)) output.append(piece.data(), got);
  EXPECT_EQ(WEXITSTATUS(pclose(pipe)), 0) << output;
  std::filesystem::remove(folder / "script.py");
  return output;
}

// The text of the InputError that `call` must throw.
template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const InputError& e) {
    return e.what();
  }
  return "(no InputError)";
}

// Any dtype that has bytes, any shape up to rank 4 (empty ones included), any bits.
inline Tensor arbitrary_tensor() {
  const int skipping_e2m1 = prop::in_range(0, kDTypeCount - 1);
  const auto dtype = static_cast<DType>(skipping_e2m1 + (skipping_e2m1 >= static_cast<int>(DType::e2m1) ? 1 : 0));
  std::vector<std::int64_t> shape(static_cast<std::size_t>(prop::in_range(0, 5)));
  for (std::int64_t& extent : shape) extent = prop::in_range<std::int64_t>(0, 5);
  Tensor tensor = make_tensor(dtype, std::move(shape));
  for (std::byte& b : tensor.bytes) b = static_cast<std::byte>(prop::in_range(0, 256));
  return tensor;
}

}  // namespace kvscope::golden
