// Lint behind the parsers: index tensors of any shape, type and value in every layout, with and without a cache. Numbers
// come from the file and must not overflow, and no entry may be used before it is checked.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/errors.h"
#include "core/golden/bundle/npz.h"
#include "core/golden/bundle/safetensors.h"
#include "core/golden/lint/lint.h"

namespace {

using kvscope::golden::Bundle;
using kvscope::golden::LintOptions;
using kvscope::golden::LintReport;

constexpr std::size_t kLargestFile = std::size_t{1} << 18;  // [bytes]; larger ones are only slower

Bundle parse(std::string_view bytes) {
  if (bytes.starts_with("PK")) return kvscope::golden::parse_npz(bytes, "fuzz.npz");
  return {kvscope::golden::parse_safetensors(bytes, "fuzz.safetensors").tensors, {}};
}

void check(const Bundle& bundle, const LintOptions& options) {
  try {
    const LintReport report = kvscope::golden::lint(bundle, options);
    static_cast<void>(kvscope::golden::text_report(report, "fuzz"));
    static_cast<void>(kvscope::golden::json_report(report, "fuzz"));
  } catch (const kvscope::InputError&) {
  } catch (const kvscope::GeometryError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > kLargestFile) return 0;
  try {
    const Bundle bundle = parse({reinterpret_cast<const char*>(data), size});
    for (const std::string& layout : kvscope::golden::layout_names()) {
      LintOptions options;
      options.layout.layout = layout;
      check(bundle, options);
      options.layout.attention.mask = kvscope::MaskKind::sliding_window;
      options.layout.attention.window_left = 2;
      options.vector_read = 4;
      options.tma = true;
      check(bundle, options);
      options.cache_shape = {1 << 10, 16, 1 << 9, 1 << 9};  // 2^32 elements, for a file without cache tensors
      check(bundle, options);
    }
  } catch (const kvscope::InputError&) {
  }
  return 0;
}
