#include "tests/conformance/kept_mutants.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace kvscope::gpu {
namespace {

const std::filesystem::path kFolder = KVSCOPE_SOURCE_DIR "/tests/conformance/mutants";

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

KeptMutant read_mutant(const std::filesystem::path& path) {
  KeptMutant mutant{.name = path.stem().string(), .mistake{}, .base{}, .fails{}, .cases{}, .difference{}};
  for (std::string& line : lines_of(path)) {
    const std::size_t colon = line.find(": ");
    const std::string key = mutant.difference.empty() ? line.substr(0, colon) : "";
    if (key == "mistake") {
      mutant.mistake = line.substr(colon + 2);
    } else if (key == "base") {
      mutant.base = line.substr(colon + 2);
    } else if (key == "fails") {
      mutant.fails = line.substr(colon + 2);
    } else if (key == "cases") {
      std::istringstream words(line.substr(colon + 2));
      for (std::string word; words >> word;) mutant.cases.push_back(word);
    } else {
      mutant.difference.push_back(std::move(line));
    }
  }
  return mutant;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace

const std::vector<KeptMutant>& kept_mutants() {
  static const std::vector<KeptMutant> all = [] {
    std::vector<KeptMutant> read;
    for (const auto& entry : std::filesystem::directory_iterator(kFolder))
      if (entry.path().extension() == ".diff") read.push_back(read_mutant(entry.path()));
    std::sort(read.begin(), read.end(), [](const KeptMutant& a, const KeptMutant& b) { return a.name < b.name; });
    return read;
  }();
  return all;
}

std::string base_ptx(const std::string& base) {
  return joined(lines_of(kFolder / (base + ".ptx")));
}

// Applies a difference to the base's lines. "@@ 12,2 @@": from line 12 on, two lines (after "-") are replaced by the
// lines after "+".
std::string mutated_ptx(const KeptMutant& mutant) {
  const std::vector<std::string> base = lines_of(kFolder / (mutant.base + ".ptx"));
  std::vector<std::string> made;
  std::size_t at = 0;
  for (const std::string& line : mutant.difference) {
    if (line.starts_with("@@ ")) {
      std::size_t first = 0;
      std::from_chars(line.data() + 3, line.data() + line.size(), first);
      if (first < at + 1 || first > base.size() + 1) throw std::runtime_error(mutant.name + ": " + line);
      made.insert(made.end(), base.begin() + static_cast<std::ptrdiff_t>(at),
                  base.begin() + static_cast<std::ptrdiff_t>(first - 1));
      at = first - 1;
    } else if (line.starts_with("+")) {
      made.push_back(line.substr(1));
    } else if (line.starts_with("-") && at < base.size() && base[at] == line.substr(1)) {
      ++at;
    } else {
      throw std::runtime_error(mutant.name + ": is no difference from " + mutant.base + ".ptx: " + line);
    }
  }
  made.insert(made.end(), base.begin() + static_cast<std::ptrdiff_t>(at), base.end());
  return joined(made);
}

const Kernel& kernel_of(const std::string& base) {
  for (const Kernel& kernel : all_kernels())
    if (base.starts_with(kernel.name)) return kernel;
  throw std::runtime_error("no kernel is a beginning of " + base);
}

const Case& case_of(const Kernel& kernel, const std::string& name) {
  for (const Case& c : kernel.cases)
    if (c.name == name) return c;
  throw std::runtime_error(kernel.name + " has no case " + name);
}

}  // namespace kvscope::gpu
