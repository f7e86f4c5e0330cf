#include "apps/labs/picture_file.h"

#include <fmt/format.h>

#include <optional>

#include "apps/labs/sandbox.h"
#include "core/base/errors.h"
#include "core/base/file.h"

namespace kvscope::labs {
namespace fs = std::filesystem;
namespace {

std::optional<fs::path> find_converter() {
  std::error_code ignored;
  for (const char* const path : {"/usr/bin/rsvg-convert", "/usr/local/bin/rsvg-convert"}) {
    if (fs::is_regular_file(path, ignored)) return path;
  }
  return std::nullopt;
}

}  // namespace

void check_picture_file(const fs::path& file) {
  if (file.extension() == ".svg") return;
  if (file.extension() != ".png") {
    throw InputError("command line", "--picture", fmt::format("'{}' is neither .svg nor .png", file.string()));
  }
  if (!find_converter()) {
    throw InputError("command line", "--picture",
                     fmt::format("'{}': a .png needs the program rsvg-convert (on Debian, the package librsvg2-bin); "
                                 "without it, write an .svg file",
                                 file.string()));
  }
}

void write_picture_file(const fs::path& file, const std::string& svg) {
  check_picture_file(file);
  if (file.extension() == ".svg") return write_file_atomically(file, svg);
  // The SVG is kvscope's own, so limits are enough (SandboxKind::trusted).
  SandboxJob job;
  job.command = {find_converter()->string(), "--format=png", "--zoom=2"};
  job.input = svg;
  job.limits.processes = true;
  job.limits.output_bytes = std::int64_t{64} << 20;
  const SandboxEnd end = run_in_sandbox(SandboxKind::trusted, job);
  if (!end.fine() || end.output.empty()) {
    throw InputError(file.string(), "", "rsvg-convert failed: " + end.errors + end_text(end, job.limits));
  }
  write_file_atomically(file, end.output);
}

}  // namespace kvscope::labs
