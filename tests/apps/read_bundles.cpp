// read_bundles: reads names of bundles from standard input, one a line, and prints a line of JSON for each:
// {"error": "..."} or {"tensors": {"k": ["bf16", [2, 3], "0f1e2d3c"]}}, with the CRC-32 of the tensor's bytes.
#include <fmt/format.h>

#include <exception>
#include <iostream>
#include <string>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/golden/bundle/bundle.h"

namespace {

kvscope::json::Value described(const std::string& path) {
  using namespace kvscope;
  json::Value line;
  try {
    const golden::Bundle bundle = golden::load_bundle(path);
    json::Object tensors;
    for (const auto& [name, tensor] : bundle.tensors) {
      json::Array shape;
      for (const std::int64_t extent : tensor.shape) shape.emplace_back(extent);
      tensors.emplace_back(name, json::Array{kvscope::name(tensor.dtype), std::move(shape),
                                             fmt::format("{:08x}", crc32(golden::as_text(tensor)))});
    }
    line.set("tensors", std::move(tensors));
  } catch (const std::exception& error) {
    line.set("error", std::string(error.what()));
  }
  return line;
}

}  // namespace

int main() {
  for (std::string path; std::getline(std::cin, path);) {
    std::cout << kvscope::json::dump(described(path), -1) << '\n' << std::flush;
  }
  return 0;
}
