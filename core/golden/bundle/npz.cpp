#include "core/golden/bundle/npz.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "core/golden/bundle/npy.h"
#include "core/golden/bundle/zip_layout.h"

namespace kvscope::golden {
namespace {

constexpr std::string_view kManifestMember = "manifest.json";
constexpr std::uint64_t kDeflateRatio = 1032;                   // the maximum of deflate
constexpr std::uint64_t kFreeBytes = std::uint64_t{256} << 20;  // [bytes]
constexpr std::uint64_t kArchiveRatio = 100;
constexpr std::uint64_t kMaxManifest = std::uint64_t{16} << 20;  // [bytes]
constexpr zip_int64_t kMaxMembers = 65535;
constexpr zip_uint16_t kFirstOfJanuary1980 = (1 << 5) | 1;  // DOS date: year - 1980, month, day

struct Closer {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
using Archive = std::unique_ptr<zip_t, Closer>;
using Member = std::unique_ptr<zip_file_t, Closer>;
using Source = std::unique_ptr<zip_source_t, Closer>;

struct Error : zip_error_t {
  Error() { zip_error_init(this); }
  Error(const Error&) = delete;
  Error& operator=(const Error&) = delete;
  ~Error() { zip_error_fini(this); }
  std::string text() { return zip_error_strerror(this); }
};

bool is_safe_name(std::string_view member) {
  if (member.empty() || member.front() == '/' || member.find('\\') != std::string_view::npos ||
      member.find('\0') != std::string_view::npos || (member.size() > 1 && member[1] == ':')) {
    return false;
  }
  for (std::size_t at = 0; at <= member.size();) {
    const std::size_t end = std::min(member.find('/', at), member.size());
    const std::string_view part = member.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return false;
    at = end + 1;
  }
  return true;
}

struct ZipEntry {
  zip_uint64_t index = 0;
  std::string name;
  std::uint64_t size = 0;  // [bytes] as declared; the unpacked size is compared with it
};

// Call after a call of libzip has failed, with errno set to 0 before it: libzip reports some failed allocations as
// damage of the archive, and some without an error ("No error").
void throw_if_out_of_memory(int code) {
  if (code == ZIP_ER_OK || code == ZIP_ER_MEMORY || errno == ENOMEM) throw std::bad_alloc();
}

// The checks that need only the archive's directory.
std::vector<ZipEntry> check_directory(zip_t* archive, std::uint64_t archive_size, std::vector<Fault>& faults) {
  std::vector<ZipEntry> entries;
  std::uint64_t total = 0;
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  if (count > kMaxMembers) {
    faults.push_back({"", fmt::format("{} members, more than {}", count, kMaxMembers)});
    return entries;
  }
  for (zip_int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    zip_stat_t stat;
    zip_stat_init(&stat);
    if (zip_stat_index(archive, index, 0, &stat) != 0) {
      throw_if_out_of_memory(zip_error_code_zip(zip_get_error(archive)));
      faults.push_back({fmt::format("member {}", i), zip_strerror(archive)});
      continue;
    }
    ZipEntry entry{index, stat.name, stat.size};
    const std::string where = fmt::format("member '{}'", entry.name);
    const auto fault = [&](std::string message) { faults.push_back({where, std::move(message)}); };
    if (!is_safe_name(entry.name)) {
      fault("absolute names, empty parts and '..' are rejected: save with names relative to the archive");
    } else if (entry.name != kManifestMember && !(entry.name.ends_with(".npy") && entry.name.size() > 4)) {
      fault("not a .npy array: an npz holds .npy members and manifest.json only");
    }
    if (stat.encryption_method != ZIP_EM_NONE) {
      fault("encrypted: save it without a password");
    } else if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE) {
      fault(fmt::format("compression method {} is not read: use stored or deflated", stat.comp_method));
    } else {
      // libzip has checked that the stored bytes are within the archive, so that the total has no overflow.
      const std::uint64_t ratio = stat.comp_method == ZIP_CM_STORE ? 1 : kDeflateRatio;
      if (stat.size / ratio > stat.comp_size) {
        fault(fmt::format("claims {} bytes from {} stored ones, which its compression cannot give", stat.size,
                          stat.comp_size));
      } else {
        total += stat.size;
      }
    }
    if (entry.name == kManifestMember && stat.size > kMaxManifest) {
      fault(fmt::format("{} bytes, more than {}", stat.size, kMaxManifest));
    }
    entries.push_back(std::move(entry));
  }
  if (total > kFreeBytes && (total - kFreeBytes) / kArchiveRatio > archive_size) {
    faults.push_back({"", fmt::format("unpacks to {} bytes from {}: more than 256 MiB + 100 times its size is rejected "
                                      "as a zip bomb; save it with numpy.savez, uncompressed",
                                      total, archive_size)});
  }
  return entries;
}

// The member's bytes. Memory use depends on the real size, not on the declared one.
std::string unpack(zip_t* archive, const ZipEntry& entry, std::vector<Fault>& faults) {
  const auto fault = [&](const std::string& message) {
    faults.push_back({fmt::format("member '{}'", entry.name), message});
    return std::string();
  };
  errno = 0;
  const Member member(zip_fopen_index(archive, entry.index, 0));
  if (member == nullptr) {
    throw_if_out_of_memory(zip_error_code_zip(zip_get_error(archive)));
    return fault(zip_strerror(archive));
  }
  std::string bytes;
  std::string piece(std::size_t{1} << 20, '\0');
  while (true) {
    const zip_int64_t got = zip_fread(member.get(), piece.data(), piece.size());
    if (got < 0) {
      throw_if_out_of_memory(zip_error_code_zip(zip_file_get_error(member.get())));
      return fault(fmt::format("damaged: {}", zip_file_strerror(member.get())));
    }
    if (got == 0) break;
    bytes.append(piece, 0, static_cast<std::size_t>(got));
    if (bytes.size() > entry.size) return fault(fmt::format("unpacks to more than the {} bytes it claims", entry.size));
  }
  if (bytes.size() != entry.size) {
    return fault(fmt::format("unpacks to {} bytes, but claims {}: truncated", bytes.size(), entry.size));
  }
  return bytes;
}

// `header` and `bytes`, the contents, must outlive the archive: they are not copied.
void add_member(zip_t* archive, const std::string& member, std::string_view header, std::string_view bytes) {
  const auto require = [&](bool succeeded) {
    if (succeeded) return;
    throw_if_out_of_memory(zip_error_code_zip(zip_get_error(archive)));
    throw InputError(fmt::format("member '{}'", member), "", zip_strerror(archive));
  };
  const auto fragment = [](std::string_view part) {
    // libzip takes a pointer that is not const, and writes to it only if it is told to free it.
    const auto* data = reinterpret_cast<const zip_uint8_t*>(part.data());
    return zip_buffer_fragment_t{const_cast<zip_uint8_t*>(data), part.size()};  // NOLINT
  };
  const std::array fragments{fragment(header), fragment(bytes)};
  Source source(zip_source_buffer_fragment(archive, fragments.data(), fragments.size(), 0));
  require(source != nullptr);
  const zip_int64_t index = zip_file_add(archive, member.c_str(), source.get(), ZIP_FL_ENC_UTF_8);
  require(index >= 0);
  static_cast<void>(source.release());  // the archive owns it now
  const auto at = static_cast<zip_uint64_t>(index);
  require(zip_set_file_compression(archive, at, ZIP_CM_STORE, 0) == 0);
  require(zip_file_set_dostime(archive, at, 0, kFirstOfJanuary1980, 0) == 0);
}

std::string read_back(zip_source_t* source) {
  zip_stat_t stat;
  KVSCOPE_ASSERT(zip_source_stat(source, &stat) == 0 && zip_source_open(source) == 0);
  std::string bytes(stat.size, '\0');
  KVSCOPE_ASSERT(zip_source_read(source, bytes.data(), bytes.size()) == static_cast<zip_int64_t>(bytes.size()));
  zip_source_close(source);
  return bytes;
}

}  // namespace

Bundle parse_npz(std::string_view bytes, std::string_view source) {
  if (bytes.empty()) throw InputError(source, "", "empty: not a zip archive");  // libzip would open it without members
  Error error;
  errno = 0;
  Source buffer(zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error));
  if (buffer == nullptr) throw std::bad_alloc();
  const Archive archive(zip_open_from_source(buffer.get(), ZIP_RDONLY | ZIP_CHECKCONS, &error));
  if (archive == nullptr) {
    throw_if_out_of_memory(zip_error_code_zip(&error));
    throw InputError(source, "",
                     zip_error_code_zip(&error) == ZIP_ER_EXISTS
                         ? "two members have the same name: save each tensor once"
                         : fmt::format("not a readable zip archive: {}", error.text()));
  }
  static_cast<void>(buffer.release());  // the archive owns it now

  std::vector<Fault> faults;
  const std::vector<ZipEntry> entries = check_directory(archive.get(), bytes.size(), faults);
  if (faults.empty()) check_zip_layout(bytes, faults);
  if (!faults.empty()) throw InputError(source, std::move(faults));

  Bundle bundle;
  for (const ZipEntry& entry : entries) {
    const std::size_t faults_before = faults.size();
    const std::string member = unpack(archive.get(), entry, faults);
    if (faults.size() != faults_before) continue;
    const std::string where = fmt::format("member '{}'", entry.name);
    try {
      if (entry.name == kManifestMember) {
        bundle.manifest = json::parse(member, where);
        continue;
      }
      Tensor tensor = parse_npy(member, where);
      NpyName split = split_npy_name(std::string_view(entry.name).substr(0, entry.name.size() - 4), tensor.dtype);
      if (split.dtype) tensor = reinterpret_as(std::move(tensor), *split.dtype);
      if (!bundle.tensors.emplace(split.name, std::move(tensor)).second) {
        faults.push_back({where, fmt::format("a second member for tensor '{}'", split.name)});
      }
    } catch (const InputError& e) {
      for (const Fault& fault : e.faults()) {
        faults.push_back({fault.where.empty() ? where : fmt::format("{}, {}", where, fault.where), fault.message});
      }
    }
  }
  if (!faults.empty()) throw InputError(source, std::move(faults));
  return bundle;
}

std::string npz_bytes(const std::map<std::string, Tensor>& tensors, const json::Value& manifest) {
  struct Contents {
    std::string member, header;
    std::string_view bytes;
  };
  std::vector<Contents> members;                 // libzip reads them when it closes
  std::map<std::string, std::string> tensor_of;  // of each member
  if (!manifest.is_null()) members.push_back({std::string(kManifestMember), json::dump(manifest) + "\n", {}});
  for (const auto& [tensor_name, tensor] : tensors) {
    std::string member = join_npy_name(tensor_name, tensor.dtype) + ".npy";
    if (!is_safe_name(member) || tensor_name.empty()) {
      throw InputError(fmt::format("tensor '{}'", tensor_name), "",
                       "no legal member name: absolute names, empty parts and '..' are rejected");
    }
    if (const auto [other, is_new] = tensor_of.emplace(member, tensor_name); !is_new) {
      throw InputError(
          fmt::format("tensor '{}'", tensor_name), "",
          fmt::format("would be the member '{}', as tensor '{}' is: rename one of them", member, other->second));
    }
    members.push_back({std::move(member), npy_header(tensor), as_text(tensor)});
  }

  Error error;
  const Source buffer(zip_source_buffer_create(nullptr, 0, 0, &error));
  if (buffer == nullptr) throw std::bad_alloc();
  errno = 0;
  Archive archive(zip_open_from_source(buffer.get(), ZIP_TRUNCATE, &error));
  if (archive == nullptr) throw_if_out_of_memory(zip_error_code_zip(&error));
  KVSCOPE_ASSERT(archive != nullptr);
  zip_source_keep(buffer.get());
  for (const Contents& each : members) add_member(archive.get(), each.member, each.header, each.bytes);
  if (zip_close(archive.get()) != 0) {
    throw_if_out_of_memory(zip_error_code_zip(zip_get_error(archive.get())));
    throw InputError("npz archive", "", zip_strerror(archive.get()));
  }
  static_cast<void>(archive.release());  // zip_close has freed it
  return read_back(buffer.get());
}

}  // namespace kvscope::golden
