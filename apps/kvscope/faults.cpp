#include "apps/kvscope/faults.h"

#include <iostream>
#include <new>

#include "core/base/errors.h"

namespace kvscope::apps {
namespace {

std::string joined(const std::string& object, const Fault& fault) {
  std::string line;
  for (const std::string* part : {&object, &fault.where, &fault.message}) {
    if (part->empty()) continue;
    line += line.empty() ? *part : ": " + *part;
  }
  return line;
}

// A GeometryError keeps its object only in its text: "<object> rejected: ..." or "<object> rejected, 2 faults: ...".
std::string object_of(const GeometryError& error) {
  const std::string text = error.what();
  if (error.faults().size() == 1 && error.faults().front().message == text) return "";
  return text.substr(0, text.find(" rejected"));
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
  return lines;
}

int print_faults(const std::exception& error) {
  for (const std::string& line : fault_lines(error)) std::cerr << "kvscope: " << line << '\n';
  return kExitBadInput;
}

}  // namespace kvscope::apps
