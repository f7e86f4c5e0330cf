#include "core/golden/bundle/torch_save.h"

#include <fmt/format.h>

namespace kvscope::golden {

bool is_torch_save(std::string_view bytes) {
  if (bytes.starts_with("PK\x03\x04")) return bytes.substr(0, 1024).find("data.pkl") != std::string_view::npos;
  // A safetensors header of 640, 896, 1152 or 1408 bytes begins with the same two bytes: its length, then "{".
  constexpr std::string_view kRestOfLength("\0\0\0\0", 4);
  if (bytes.size() > 8 && bytes.substr(4, 4) == kRestOfLength && bytes[8] == '{') return false;
  return bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

std::string torch_save_advice(const std::filesystem::path& path) {
  std::filesystem::path converted = path.filename();
  converted.replace_extension(".safetensors");
  return fmt::format(
      "a Python pickle, which is code: never read. Convert it where it was made:\n"
      "  import torch; from safetensors.torch import save_file\n"
      "  save_file({{k: v.contiguous() for k, v in torch.load('{}', weights_only=True).items()}}, '{}')",
      path.filename().string(), converted.string());
}

}  // namespace kvscope::golden
