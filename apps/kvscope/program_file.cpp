#include "apps/kvscope/program_file.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "core/base/errors.h"
#include "core/base/file.h"

namespace kvscope::apps {
namespace {

constexpr std::int64_t kMostProgram = std::int64_t{4} << 30;  // [bytes]
constexpr std::uint32_t kFatMagic = 0xba55ed50;

class Elf {
 public:
  Elf(std::string_view bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  template <class T>
  [[nodiscard]] T at(std::uint64_t offset) const {
    T value;
    std::memcpy(&value, range(offset, sizeof value).data(), sizeof value);
    return value;
  }
  [[nodiscard]] std::string_view range(std::uint64_t offset, std::uint64_t count) const {
    if (offset > bytes_.size() || count > bytes_.size() - offset)
      throw InputError(path_, "",
                       fmt::format("its ELF tables name {} bytes at {}, past the end of the file", count, offset));
    return bytes_.substr(offset, count);
  }
  // The text at 0 is empty in every table, also where a file has none.
  [[nodiscard]] std::string text(const Elf64_Shdr& strings, std::uint64_t offset) const {
    if (offset == 0) return {};
    const std::string_view table = range(strings.sh_offset, strings.sh_size);
    if (offset >= table.size())
      throw InputError(path_, "",
                       fmt::format("its ELF tables name a text at {} of a table of {} bytes", offset, table.size()));
    const std::string_view rest = table.substr(offset);
    return std::string(rest.substr(0, rest.find('\0')));
  }
  // Empty: the file has no section headers.
  [[nodiscard]] std::vector<Elf64_Shdr> sections() const {
    const auto header = at<Elf64_Ehdr>(0);
    if (header.e_shoff == 0) return {};
    if (header.e_shentsize != sizeof(Elf64_Shdr))
      throw InputError(path_, "",
                       fmt::format("its section headers have {} bytes, those of ELF have {}", header.e_shentsize,
                                   sizeof(Elf64_Shdr)));
    // A number of 65,280 or more is in the first header.
    const std::uint64_t count = header.e_shnum != 0 ? header.e_shnum : at<Elf64_Shdr>(header.e_shoff).sh_size;
    if (count > bytes_.size() / sizeof(Elf64_Shdr))
      throw InputError(path_, "", fmt::format("its ELF header names {} sections, past the end of the file", count));
    std::vector<Elf64_Shdr> out;
    for (std::uint64_t i = 0; i < count; ++i) out.push_back(at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
    return out;
  }
  // The section with the names of sections.
  [[nodiscard]] std::uint64_t names_of(const std::vector<Elf64_Shdr>& sections) const {
    const auto index = at<Elf64_Ehdr>(0).e_shstrndx;
    return index == SHN_XINDEX && !sections.empty() ? sections.front().sh_link : index;
  }
  [[noreturn]] void damaged_container(std::uint64_t at) const {
    throw InputError(path_, "",
                     fmt::format("its section .nv_fatbin has a container at byte {} that ends after the section", at));
  }

 private:
  std::string_view bytes_;
  const std::string& path_;
};

void read_symbols(const Elf& elf, const Elf64_Shdr& table, const Elf64_Shdr& strings, ProgramFile& out) {
  for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
    const auto symbol = elf.at<Elf64_Sym>(table.sh_offset + at);
    std::string name = elf.text(strings, symbol.st_name);
    if (!name.empty()) (symbol.st_shndx == SHN_UNDEF ? out.imported : out.exported).insert(std::move(name));
  }
}

void read_dynamic(const Elf& elf, const Elf64_Shdr& table, const Elf64_Shdr& strings, ProgramFile& out) {
  for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= table.sh_size; at += sizeof(Elf64_Dyn)) {
    const auto entry = elf.at<Elf64_Dyn>(table.sh_offset + at);
    if (entry.d_tag == DT_NEEDED) out.needed.push_back(elf.text(strings, entry.d_un.d_val));
    if (entry.d_tag == DT_RPATH) out.has_rpath = true;
  }
}

// Containers follow one another, each aligned to 8 bytes.
void read_fat_binaries(const Elf& elf, std::string_view section, ProgramFile& out) {
  for (std::size_t at = 0; at + 16 <= section.size();) {
    std::uint32_t magic = 0;
    std::uint16_t header = 0;
    std::uint64_t bytes = 0;
    std::memcpy(&magic, section.data() + at, sizeof magic);
    std::memcpy(&header, section.data() + at + 6, sizeof header);
    std::memcpy(&bytes, section.data() + at + 8, sizeof bytes);
    if (magic != kFatMagic) {
      at += 8;
      continue;
    }
    const std::size_t left = section.size() - at;
    if (header < 16 || header > left || bytes > left - header) elf.damaged_container(at);
    const std::string_view one = section.substr(at, header + bytes);
    const auto* const first = reinterpret_cast<const std::byte*>(one.data());
    out.fat_binaries.emplace_back(first, first + one.size());
    at += (one.size() + 7) / 8 * 8;
  }
}

}  // namespace

ProgramFile read_program(const std::string& path) {
  const std::string bytes = read_file(path, kMostProgram);
  ProgramFile out;
  if (bytes.size() < sizeof(Elf64_Ehdr) || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0 ||
      bytes[EI_CLASS] != ELFCLASS64 || bytes[EI_DATA] != ELFDATA2LSB)
    return out;
  out.elf = true;
  const Elf elf(bytes, path);
  const std::vector<Elf64_Shdr> sections = elf.sections();
  const std::uint64_t names_at = elf.names_of(sections);
  const bool has_names = names_at != SHN_UNDEF && names_at < sections.size();
  if (sections.empty()) {
    out.unchecked = "section headers, so its libraries and its device code are";
  } else if (!has_names) {
    out.unchecked = "names of sections, so its device code is";
  }
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type == SHT_NOBITS) continue;
    const bool linked = section.sh_link < sections.size();
    if (section.sh_type == SHT_DYNSYM && linked) read_symbols(elf, section, sections[section.sh_link], out);
    if (section.sh_type == SHT_DYNAMIC && linked) read_dynamic(elf, section, sections[section.sh_link], out);
    if (has_names && elf.text(sections[names_at], section.sh_name) == ".nv_fatbin")
      read_fat_binaries(elf, elf.range(section.sh_offset, section.sh_size), out);
  }
  return out;
}

}  // namespace kvscope::apps
