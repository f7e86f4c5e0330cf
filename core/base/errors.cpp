#include "core/base/errors.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

namespace kvscope {

std::string format_faults(std::string_view object, const std::vector<Fault>& faults) {
  const auto line = [](const Fault& fault) {
    return fault.where.empty() ? fault.message : fmt::format("{}: {}", fault.where, fault.message);
  };
  if (faults.size() == 1) return fmt::format("{} rejected: {}", object, line(faults.front()));
  std::string text = fmt::format("{} rejected, {} faults:", object, faults.size());
  for (const Fault& fault : faults) text += "\n  " + line(fault);
  return text;
}

void throw_index_error(std::string_view what, std::int64_t value, std::int64_t end, std::string_view next_step) {
  throw IndexError(
      fmt::format("{} {} is outside [0, {}){}{}", what, value, end, next_step.empty() ? "" : ": ", next_step));
}

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "kvscope: internal error at %s:%d: %s is false. Please report it with the command you ran.\n",
               file, line, condition);
  std::abort();
}

namespace {

std::string joined(const std::string& object, const Fault& fault) {
  std::string line;
  for (const std::string* part : {&object, &fault.where, &fault.message}) {
    if (part->empty()) continue;
    line += line.empty() ? *part : ": " + *part;
  }
  return line;
}

// The object of a GeometryError is only in its text: "<object> rejected: ..." or "<object> rejected, 2 faults: ...".
std::string object_of(const GeometryError& error) {
  const std::string text = error.what();
  if (error.faults().size() == 1 && error.faults().front().message == text) return "";
  return text.substr(0, text.find(" rejected"));
}

// Line breaks that an indented line does not follow are written as \u000a. They come from names in files, which could
// otherwise begin a line that looks like another fault.
std::string with_indented_lines(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool breaks = text[i] == '\n' && !text.substr(i + 1).starts_with("  ");
    breaks ? out += "\\u000a" : out += text[i];
  }
  return out;
}

}  // namespace

std::vector<std::string> fault_lines(const std::exception& error) {
  std::vector<std::string> lines;
  if (const auto* input = dynamic_cast<const InputError*>(&error)) {
    for (const Fault& fault : input->faults()) lines.push_back(joined(input->source(), fault));
  } else if (const auto* geometry = dynamic_cast<const GeometryError*>(&error)) {
    for (const Fault& fault : geometry->faults()) lines.push_back(joined(object_of(*geometry), fault));
  } else if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    lines.emplace_back("out of memory: ask for fewer tokens, layers or heads at a time");
  } else {
    lines.emplace_back(error.what());
  }
  for (std::string& line : lines) line = with_indented_lines(line);
  return lines;
}

std::string system_message(int error) {
#ifdef __GLIBC__
  const char* const words = ::strerrordesc_np(error);  // strerror() and std::error_code translate
  return words != nullptr ? words : fmt::format("error {}", error);
#else
  return std::generic_category().message(error);
#endif
}

}  // namespace kvscope
