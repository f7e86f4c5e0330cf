// Damage to a small bundle: each single bit of a file is flipped, and each byte is removed or doubled. The file must be
// rejected, or give the same tensors and the same manifest.
#include <gmock/gmock.h>

#include "core/golden/bundle/bundle.h"
#include "core/golden/bundle/npy.h"
#include "core/golden/bundle/npz.h"
#include "core/golden/bundle/safetensors.h"
#include "core/golden/bundle/zip_layout.h"
#include "tests/core/golden/support.h"

namespace kvscope::golden::damage_test {
namespace {

Bundle convention_bundle() {
  Bundle bundle;
  bundle.tensors.emplace("k", tensor_of<bf16>({1, 2}, std::array{bf16{0x3f80}, bf16{0x4000}}));
  bundle.tensors.emplace("lse", tensor_of<double>({1}, std::array{0.5}));
  json::Value conventions;
  conventions.set("scale", 0.125);
  conventions.set("causal", true);
  bundle.manifest.set("layout", "nhd");
  bundle.manifest.set("page_size", 16);
  bundle.manifest.set("conventions", std::move(conventions));
  return bundle;
}

struct Tally {
  int rejected = 0;
  int harmless = 0;
};

// Loads every damaged file; `places` receives those that load with other contents.
template <class Damage>
Tally load_damaged(const char* name, const Bundle& made, const Damage& damage, std::vector<std::string>& places) {
  const TempFolder folder;
  const std::filesystem::path path = folder / name;
  static_cast<void>(save_bundle(path, made));
  const Bundle whole = load_bundle(path);
  const std::string bytes = slurp(path);
  Tally tally;
  damage(bytes, [&](const std::string& damaged, const std::string& place) {
    try {
      const Bundle loaded = parse_bundle(damaged, path);
      const bool is_same = loaded.tensors == whole.tensors && loaded.manifest == whole.manifest;
      if (!is_same) places.push_back(place);
      ++tally.harmless;
    } catch (const InputError& error) {
      EXPECT_FALSE(error.faults().empty()) << place;
      ++tally.rejected;
    }
  });
  return tally;
}

const auto kEveryBit = [](const std::string& bytes, const auto& check) {
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    check(damaged, "byte " + std::to_string(bit / 8) + ", bit " + std::to_string(bit % 8));
  }
};

const auto kEveryByte = [](const std::string& bytes, const auto& check) {
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    check(bytes.substr(0, at) + bytes.substr(at + 1), "without byte " + std::to_string(at));
    check(bytes.substr(0, at + 1) + bytes.substr(at), "byte " + std::to_string(at) + " twice");
  }
};

class BundleDamage : public testing::TestWithParam<const char*> {};

TEST_P(BundleDamage, EveryFlippedBitIsRejectedOrHarmless) {
  std::vector<std::string> places;
  const Tally tally = load_damaged(GetParam(), convention_bundle(), kEveryBit, places);
  EXPECT_THAT(places, testing::IsEmpty());
  EXPECT_GT(tally.rejected, 9 * tally.harmless) << tally.rejected << " rejected, " << tally.harmless << " harmless";
}

TEST_P(BundleDamage, EveryLostOrDoubledByteIsRejectedOrHarmless) {
  std::vector<std::string> places;
  static_cast<void>(load_damaged(GetParam(), convention_bundle(), kEveryByte, places));
  EXPECT_THAT(places, testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(EveryEnding, BundleDamage, testing::Values("b.safetensors", "b.npz"),
                         [](const auto& param) { return std::string(param.param + 2); });

// An .npy file has no checksum: NumPy's format has no place for one. Everything but its data and its byte order is held
// by the rules of the header, and the length by the shape.
TEST(NpyDamage, OnlyTheDataAndTheByteOrderCanChangeUnnoticed) {
  Bundle bundle;
  bundle.tensors.emplace("lse", tensor_of<double>({1, 2}, std::array{0.5, 3.0}));
  const std::string bytes = npy_bytes(bundle.tensors.at("lse"));
  const std::size_t order = bytes.find('<');
  const std::size_t data = bytes.size() - 16;
  std::vector<std::string> places, allowed{"byte " + std::to_string(order) + ", bit 1"};  // '<' becomes '>'
  for (std::size_t bit = data * 8; bit < bytes.size() * 8; ++bit) {
    allowed.push_back("byte " + std::to_string(bit / 8) + ", bit " + std::to_string(bit % 8));
  }
  static_cast<void>(load_damaged("lse.npy", bundle, kEveryBit, places));
  EXPECT_THAT(places, testing::ElementsAreArray(allowed));
}

// The file of the issue that version 2 closes: a damaged key made its check disappear.
TEST(ManifestDamage, ADamagedKeyIsNamed) {
  const TempFolder folder;
  const std::filesystem::path path = folder / "b.safetensors";
  static_cast<void>(save_bundle(path, convention_bundle()));
  const std::string bytes = slurp(path);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string damaged = bytes;
    damaged.replace(damaged.find(from), from.size(), to);
    spit(path, damaged);
    return message_of([&] { static_cast<void>(load_bundle(path)); });
  };
  EXPECT_THAT(
      with("\"kvscope\"", "\"kvscopg\""),
      testing::EndsWith("__metadata__ 'kvscopg': holds a manifest of kvscope, which belongs under 'kvscope': the "
                        "file was changed or damaged"));
  EXPECT_THAT(with("kvscope_bundle", "kvscope_bundme"),
              testing::EndsWith("'kvscope_bundle', the format version, is missing or not a positive integer"));
  EXPECT_THAT(
      with("manifest_crc32", "manifest_crc33"),
      testing::HasSubstr("'manifest_crc32', the checksum of the manifest, is missing, but version 2 has it: the "
                         "file was changed or damaged"));
  EXPECT_THAT(with("causal", "caural"), testing::ContainsRegex("manifest: manifest_crc32 is \"[0-9a-f]{8}\", but the "
                                                               "manifest has \"[0-9a-f]{8}\": the file was changed"));
  EXPECT_THAT(with("page_size", "page_sizd"),
              testing::HasSubstr("manifest: unknown key 'page_sizd': the file was damaged"));
}

std::string zip_rejection(const std::string& archive) {
  return message_of([&] { static_cast<void>(parse_npz(archive, "a.npz")); });
}

std::string small_archive() {
  return npz_bytes({{"a", tensor_of<float>({2}, std::array{1.f, 2.f})}, {"b", make_tensor(DType::u8, {3})}}, {});
}

// NumPy 1.24 and Python's zipfile read bytes before the first member; no reader of both uses them.
TEST(ZipLayout, BytesThatBelongToNoRecordAreRejected) {
  const std::string archive = small_archive();
  const std::size_t directory = archive.find("PK\1\2");
  const std::size_t end = archive.size() - 22;
  const auto with_offset = [&](std::string bytes, std::size_t added) {  // the end record's offset of the directory
    bytes[bytes.size() - 6] = static_cast<char>((directory + added) & 0xff);
    bytes[bytes.size() - 5] = static_cast<char>((directory + added) >> 8);
    return bytes;
  };
  EXPECT_NE(zip_rejection("stray" + archive), "(no InputError)");
  EXPECT_NE(zip_rejection(archive + "stray"), "(no InputError)");
  EXPECT_THAT(zip_rejection(with_offset(archive.substr(0, directory) + "stray" + archive.substr(directory), 5)),
              testing::HasSubstr("central directory: begins at"));
  EXPECT_NE(zip_rejection(archive.substr(0, end) + "stray" + archive.substr(end)), "(no InputError)");
}

TEST(ZipLayout, ALocalHeaderThatDiffersFromTheDirectoryIsRejected) {
  const std::string archive = small_archive();
  std::string renamed = archive;
  renamed[archive.find("a.npy")] = 'c';
  EXPECT_EQ(zip_rejection(renamed), "a.npz rejected: not a readable zip archive: Zip archive inconsistent");
  std::vector<Fault> faults;
  check_zip_layout(renamed, faults);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].where + ": " + faults[0].message, "member 'a.npy': its local header names it 'c.npy'");
  std::string other_flags = archive;
  other_flags[6] = static_cast<char>(other_flags[6] ^ 4);
  faults.clear();
  check_zip_layout(other_flags, faults);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].message, "its local header and the directory differ in flags or method");
}

// Python writes zip64 fields and data descriptors when it cannot seek; NumPy writes zip64 fields always.
TEST(ZipLayout, ArchivesOfPythonWithZip64FieldsAndDescriptorsAreRead) {
  const TempFolder folder;
  python(folder, R"(
import io, zipfile, numpy as np
class Pipe(io.RawIOBase):
    def __init__(self): self.f = open('pipe.npz', 'wb')
    def writable(self): return True
    def write(self, b): return self.f.write(b)
    def seekable(self): return False
    def flush(self): self.f.flush()
np.savez('savez.npz', a=np.arange(3), b=np.zeros(2))
np.savez_compressed('deflated.npz', a=np.arange(3), b=np.zeros(2))
p = Pipe()
with zipfile.ZipFile(p, 'w') as z:
    for name in ('a', 'b'):
        with z.open(name + '.npy', 'w', force_zip64=name == 'b') as m:
            np.lib.format.write_array(m, np.arange(3) if name == 'a' else np.zeros(2))
p.f.close()
)");
  for (const char* name : {"savez.npz", "deflated.npz", "pipe.npz"}) {
    const Bundle bundle = parse_npz(slurp(folder / name), name);
    EXPECT_EQ(bundle.tensors.at("a"), tensor_of<std::int64_t>({3}, std::array<std::int64_t, 3>{0, 1, 2})) << name;
  }
}

// Python's zipfile writes a zip64 end record past 65535 members; here its limit is lowered.
TEST(ZipLayout, AZip64EndRecordIsRead) {
  const TempFolder folder;
  python(folder, R"(
import zipfile, numpy as np
zipfile.ZIP_FILECOUNT_LIMIT = 1
np.savez('many.npz', a=np.arange(3), b=np.zeros(2), c=np.zeros(1))
)");
  const std::string archive = slurp(folder / "many.npz");
  ASSERT_NE(archive.find("PK\6\6"), std::string::npos);
  std::vector<Fault> faults;
  check_zip_layout(archive, faults);
  EXPECT_TRUE(faults.empty()) << format_faults("many.npz", faults);
  std::string damaged = archive;
  damaged[archive.find("PK\6\6") + 32] = 7;  // the count of members
  check_zip_layout(damaged, faults);
  EXPECT_FALSE(faults.empty());
}

}  // namespace
}  // namespace kvscope::golden::damage_test
