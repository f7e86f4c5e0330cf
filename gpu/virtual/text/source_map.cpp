#include "gpu/virtual/text/detail/source_map.h"

#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "gpu/virtual/text/detail/constant.h"
#include "gpu/virtual/text/detail/debug_section.h"

namespace kvscope::ptx {
namespace {

constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15u;
constexpr std::int64_t kMost32 = std::numeric_limits<std::int32_t>::max();

std::string_view unquoted(std::string_view text) {
  return text.substr(1, text.size() - 2);
}

}  // namespace

std::size_t SourceMap::Hash::operator()(const Place& p) const {
  std::uint64_t h = static_cast<std::uint32_t>(p.line) * kOdd;
  h = (h ^ static_cast<std::uint32_t>(p.column)) * kOdd;
  h = (h ^ static_cast<std::uint32_t>(p.file)) * kOdd;
  return static_cast<std::size_t>(h ^ h >> 32);
}

std::size_t SourceMap::Hash::operator()(const Key& k) const {
  const std::uint64_t h = ((*this)(k.place) ^ static_cast<std::uint32_t>(k.outer)) * kOdd;
  return static_cast<std::size_t>((h ^ h >> 32) + std::hash<std::string_view>{}(k.name.label));
}

SourceMap::Place SourceMap::read_place(Reader& reader) {
  Place place;
  place.file = static_cast<std::int32_t>(read_integer(reader, "file", 0, kMost32));
  place.line = static_cast<std::int32_t>(read_integer(reader, "line", 0, kMost32));
  place.column = static_cast<std::int32_t>(read_integer(reader, "column", 0, kMost32));
  return place;
}

void SourceMap::read_loc(Reader& reader, Module& module) {
  // LLVM counts on, from the line of the statement, in each line of inline assembly that has several: the load of
  //   .loc 1 19 32 // begin inline asm .loc 1 19 32 mov.u16 %rs2, 0x0; .loc 1 20 32 ld.global.b16 ... // end inline asm
  // is in line 19, and line 20 of the source is another statement.
  const std::int32_t assembly = reader.lexer().inline_assembly();
  const bool counted_on = assembly != 0 && assembly == std::exchange(assembly_, assembly);
  Key key;
  key.place = read_place(reader);
  while (reader.accept(',')) {
    if (reader.accept("function_name")) {
      key.name.label = reader.expect_word("label of a function's name").text;
      key.name.offset = read_offset(reader);
    } else if (reader.accept("inlined_at")) {
      const Place at = read_place(reader);
      const auto found = newest_.find(at);
      key.outer = found != newest_.end() ? found->second : frame_of(module, {at, -1, {}});
    } else {
      reader.fail_expected("function_name or inlined_at");
    }
  }
  const std::int32_t frame = frame_of(module, key);
  if (!counted_on && (key.place.line != 0 || current_ < 0)) current_ = frame;
}

std::int32_t SourceMap::frame_of(Module& module, const Key& key) {
  const auto [entry, is_new] = frames_.try_emplace(key, static_cast<std::int32_t>(module.frames.size()));
  if (is_new) {
    module.frames.push_back({key.place.file, key.place.line, key.place.column, key.outer, {}});
    names_.push_back(key.name);
  }
  newest_[key.place] = entry->second;
  return entry->second;
}

void SourceMap::read_file(Reader& reader, Module& module) {
  SourceFile file;
  file.number = static_cast<std::int32_t>(read_integer(reader, "file number", 0, kMost32));
  if (reader.token().kind != TokenKind::string) reader.fail_expected("file name in quotes");
  file.path = std::string(unquoted(reader.take().text));
  while (reader.accept(',')) static_cast<void>(read_constant(reader));  // modification time, size
  module.files.push_back(std::move(file));
}

void SourceMap::read_section(Reader& reader, Module& module) {
  if (!reader.at_directive() && !reader.at_word()) reader.fail_expected("section name");
  const std::string_view name = reader.take().text;
  if (!reader.is('{')) reader.fail_expected('{');
  const std::string_view between = reader.lexer().skip_braces();
  if (name == ".debug_str") module.debug.strings = between;
  if (name == ".debug_abbrev") module.debug.abbreviations = between;
  if (name == ".debug_info") module.debug.info = between;
}

void SourceMap::finish(Module& module, std::deque<std::string>& pieces) const {
  const DebugSection strings = read_debug_section(module.debug.strings);
  if (strings.bytes.empty()) return;
  const std::string_view bytes = pieces.emplace_back(strings.bytes);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const auto found = strings.labels.find(names_[i].label);
    if (names_[i].label.empty() || found == strings.labels.end()) continue;
    const std::int64_t at = static_cast<std::int64_t>(found->second) + names_[i].offset;
    if (at < 0 || at >= static_cast<std::int64_t>(bytes.size())) continue;
    const std::string_view rest = bytes.substr(static_cast<std::size_t>(at));
    module.frames[i].function = rest.substr(0, rest.find('\0'));
  }
}

}  // namespace kvscope::ptx
