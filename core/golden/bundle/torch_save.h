// Files of torch.save are pickles, which can contain code: they are recognized and rejected, with the lines of Python
// that convert them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kvscope::golden {

// Whether the bytes are a file of torch.save: a zip with a member data.pkl first, or a pickle of protocol 2 to 5.
[[nodiscard]] bool is_torch_save(std::string_view bytes);

// The end of a message that rejects `path`: two lines of Python.
[[nodiscard]] std::string torch_save_advice(const std::filesystem::path& path);

}  // namespace kvscope::golden
