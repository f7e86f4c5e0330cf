// Every rule of a zip archive's layout, each broken alone. The archives are built here from APPNOTE.TXT 6.3.10, because
// libzip, which opens an archive first, rejects many of these faults in its own words.
#include "core/golden/bundle/zip_layout.h"

#include <gmock/gmock.h>

#include "core/base/file.h"
#include "core/golden/bundle/npz.h"
#include "tests/core/golden/support.h"

namespace kvscope::golden::zip_layout_test {
namespace {

std::string le(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

// How an archive of two stored members is written.
struct Form {
  bool zip64 = false;       // wide sizes in extra fields, and a zip64 end record
  bool descriptor = false;  // checksum and sizes follow the data
  bool signature = true;    // of the descriptor
  bool left_open = true;    // with a descriptor: zeros in the local header
  std::string extra = {};   // before the zip64 field, in both headers
  std::string a = "a.npy", b = "b.npy";
  std::string bytes = "xyz";  // of the first member; the second has "uvwx"
};

// In the plain form: local headers at 0 and 38, the directory at 77 with entries at 77 and 128, the end record at 179.
std::string archive_of(const Form& form) {
  constexpr std::uint64_t kIn64 = 0xffffffff;
  const std::uint64_t flags = form.descriptor ? 8 : 0;
  std::string out, directory;
  for (const auto& [name, bytes] : {std::pair(form.a, form.bytes), std::pair(form.b, std::string("uvwx"))}) {
    const std::uint64_t at = out.size(), crc = crc32(bytes), size = bytes.size();
    const bool is_open = form.descriptor && form.left_open;
    const std::uint64_t local_size = is_open ? 0 : size;
    const std::string extra =
        form.extra + (form.zip64 ? le(1, 2) + le(16, 2) + le(local_size, 8) + le(local_size, 8) : "");
    const std::string narrow = le(form.zip64 ? kIn64 : local_size, 4);
    out += "PK\3\4" + le(20, 2) + le(flags, 2) + le(0, 2) + le(0, 2) + le(0x21, 2) + le(is_open ? 0 : crc, 4) + narrow +
           narrow + le(name.size(), 2) + le(extra.size(), 2) + name + extra + bytes;
    const int width = form.zip64 ? 8 : 4;
    if (form.descriptor) out += (form.signature ? "PK\7\x08" : "") + le(crc, 4) + le(size, width) + le(size, width);

    const std::string wide =
        form.extra + (form.zip64 ? le(1, 2) + le(24, 2) + le(size, 8) + le(size, 8) + le(at, 8) : "");
    directory += "PK\1\2" + le(20, 2) + le(20, 2) + le(flags, 2) + le(0, 2) + le(0, 2) + le(0x21, 2) + le(crc, 4) +
                 le(form.zip64 ? kIn64 : size, 4) + le(form.zip64 ? kIn64 : size, 4) + le(name.size(), 2) +
                 le(wide.size(), 2) + le(0, 2) + le(0, 2) + le(0, 2) + le(0, 4) + le(form.zip64 ? kIn64 : at, 4) +
                 name + wide;
  }
  const std::uint64_t at = out.size(), size = directory.size(), end64 = at + size;
  out += directory;
  if (form.zip64) {
    out += "PK\6\6" + le(44, 8) + le(45, 2) + le(45, 2) + le(0, 4) + le(0, 4) + le(2, 8) + le(2, 8) + le(size, 8) +
           le(at, 8) + "PK\6\7" + le(0, 4) + le(end64, 8) + le(1, 4);
  }
  const std::string count = le(form.zip64 ? 0xffff : 2, 2);
  return out + "PK\5\6" + le(0, 2) + le(0, 2) + count + count + le(form.zip64 ? kIn64 : size, 4) +
         le(form.zip64 ? kIn64 : at, 4) + le(0, 2);
}

// All faults, one a line; empty for an archive without one.
std::string faults_of(const std::string& archive) {
  std::vector<Fault> faults;
  check_zip_layout(archive, faults);
  std::string text;
  for (const Fault& fault : faults) text += (text.empty() ? "" : "\n") + fault.where + ": " + fault.message;
  return text;
}

// Fields that are overwritten, little-endian.
struct Field {
  std::size_t at;
  int bytes;
  std::uint64_t value;
};
std::string with(std::string archive, const std::vector<Field>& fields) {
  for (const Field& field : fields) {
    archive.replace(field.at, static_cast<std::size_t>(field.bytes), le(field.value, field.bytes));
  }
  return archive;
}

TEST(ZipLayout, ArchivesOfEveryFormAreAccepted) {
  for (const bool zip64 : {false, true}) {
    for (const std::string& extra : {std::string(), std::string("UT\1\0x", 5), std::string("UT\0\0ux\2\0ab", 10)}) {
      EXPECT_EQ(faults_of(archive_of({.zip64 = zip64, .extra = extra})), "");
      for (const bool signature : {false, true}) {
        for (const bool left_open : {false, true}) {
          EXPECT_EQ(faults_of(archive_of({.zip64 = zip64,
                                          .descriptor = true,
                                          .signature = signature,
                                          .left_open = left_open,
                                          .extra = extra})),
                    "")
              << zip64 << signature << left_open;
        }
      }
    }
  }
}

TEST(ZipLayout, EachRuleOfThePlainFormIsCheckedAlone) {
  const std::string archive = archive_of({});
  ASSERT_EQ(archive.size(), 201u);
  const struct {
    std::vector<Field> fields;
    std::string fault;
  } cases[] = {
      {{{179, 1, 'Q'}}, "end record: is not in the last 22 bytes: bytes follow the archive, or it has a comment"},
      {{{179 + 4, 2, 1}}, "end record: names several disks"},
      {{{179 + 6, 2, 1}}, "end record: names several disks"},
      {{{179 + 20, 2, 1}}, "end record: names a comment, which the file does not have"},
      {{{179 + 8, 2, 1}}, "end record: gives two different counts of members"},
      {{{179 + 12, 4, 101}}, "central directory: 101 bytes at 77 do not end at 179, where the end record begins"},
      {{{179 + 16, 4, 78}}, "central directory: 102 bytes at 78 do not end at 179, where the end record begins"},
      {{{179 + 16, 4, 0xfffffff0}},
       "central directory: 102 bytes at 4294967280 do not end at 179, where the end record begins"},
      {{{179 + 12, 4, 0xfffffff0}},
       "central directory: 4294967280 bytes at 77 do not end at 179, where the end record begins"},
      {{{179 + 8, 2, 1}, {179 + 10, 2, 1}}, "central directory: 51 bytes follow its 1 entries"},
      {{{179 + 8, 2, 3}, {179 + 10, 2, 3}}, "entry 2 of the central directory: is damaged"},
      {{{128, 1, 'Q'}}, "entry 1 of the central directory: is damaged"},
      {{{128 + 28, 2, 6}}, "entry 1 of the central directory: runs past the end of the directory"},
      {{{128 + 34, 2, 1}}, "entry 1 of the central directory: is on another disk"},
      {{{128 + 6, 2, 64}}, "entry 1 of the central directory: needs zip version 6.4: at most 6.3"},
      {{{128 + 8, 2, 0x10}}, "entry 1 of the central directory: has unknown flags 0x0010"},
      {{{128 + 28, 2, 2}, {128 + 30, 2, 3}}, "entry 1 of the central directory: has damaged extra fields"},
      {{{128 + 28, 2, 1}, {128 + 30, 2, 4}}, "entry 1 of the central directory: has damaged extra fields"},
      {{{128 + 46, 1, 'a'}}, "member 'a.npy': occurs twice: save each tensor once"},
      {{{128 + 42, 4, 37}}, "member 'b.npy': begins at 37, inside the member that ends at 38"},
      {{{128 + 42, 4, 39}}, "member 'b.npy': 1 bytes before it belong to no member"},
      {{{77 + 42, 4, 1}}, "member 'a.npy': 1 bytes before it belong to no member"},
      {{{38, 1, 'Q'}}, "member 'b.npy': its local header is missing"},
      // The first member reaches into the end record, and the second would begin less than 30 bytes before the end.
      {{{18, 4, 145}, {22, 4, 145}, {77 + 20, 4, 145}, {77 + 24, 4, 145}, {128 + 42, 4, 180}},
       "member 'b.npy': its local header is missing"},
      {{{38 + 26, 2, 0xffff}}, "member 'b.npy': runs past the end"},
      {{{38 + 18, 4, 500}, {128 + 20, 4, 500}}, "member 'b.npy': runs past the end"},
      {{{38 + 30, 1, 'c'}}, "member 'b.npy': its local header names it 'c.npy'"},
      {{{38 + 6, 2, 2}}, "member 'b.npy': its local header and the directory differ in flags or method"},
      {{{38 + 8, 2, 8}}, "member 'b.npy': its local header and the directory differ in flags or method"},
      {{{38 + 28, 2, 3}}, "member 'b.npy': has damaged extra fields"},
      {{{38 + 14, 4, 1}}, "member 'b.npy': its local header and the directory differ in checksum or size"},
      {{{38 + 18, 4, 3}}, "member 'b.npy': its local header and the directory differ in checksum or size"},
      {{{38 + 22, 4, 3}}, "member 'b.npy': its local header and the directory differ in checksum or size"},
      {{{38 + 18, 4, 3}, {38 + 22, 4, 3}, {128 + 20, 4, 3}, {128 + 24, 4, 3}},
       "central directory: begins at 77, but the members end at 76: bytes belong to no member or to two"}};
  for (const auto& c : cases) EXPECT_EQ(faults_of(with(archive, c.fields)), c.fault);
  const std::string no_end = "end record: is not in the last 22 bytes: bytes follow the archive, or it has a comment";
  EXPECT_EQ(faults_of(archive.substr(179, 21)), no_end);
  EXPECT_EQ(faults_of(archive + "x"), no_end);
  EXPECT_EQ(faults_of(archive.substr(179 - 10, 10) + archive.substr(179)),
            "central directory: 102 bytes at 77 do not end at 10, where the end record begins");
}

// Without the signature, its four bytes are those of the checksum.
TEST(ZipLayout, ADescriptorThatDiffersFromTheDirectoryIsRejected) {
  const std::string differs = "its data descriptor and the directory differ in checksum or size";
  for (const bool zip64 : {false, true}) {
    for (const bool signature : {false, true}) {
      const Form form{.zip64 = zip64, .descriptor = true, .signature = signature};
      const std::string archive = archive_of(form);
      const std::size_t checksum = archive.find("xyz") + 3 + (signature ? 4 : 0);
      const std::size_t width = zip64 ? 8 : 4;
      for (const std::size_t at : {checksum, checksum + 4, checksum + 4 + width}) {
        std::string damaged = archive;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        EXPECT_EQ(faults_of(damaged), "member 'a.npy': " + differs) << zip64 << signature << at;
      }
    }
  }
  // The local header is left open only with all three fields 0.
  const std::string plain = archive_of({.descriptor = true});
  for (const Field& field : {Field{14, 4, 1}, Field{18, 4, 3}, Field{22, 4, 3}}) {
    EXPECT_EQ(faults_of(with(plain, {field})),
              "member 'a.npy': its local header and the directory differ in checksum or size");
  }
  // The last member's descriptor is cut off by the end of the file: its data reach into the end record.
  const std::string last = archive_of({.descriptor = true, .signature = false, .left_open = false});
  const std::size_t local = last.find("PK\3\4", 1), entry = last.find("PK\1\2", last.find("PK\1\2") + 1);
  const std::size_t data = local + 35, stored = last.size() - 5 - data;
  EXPECT_EQ(
      faults_of(with(
          last, {{local + 18, 4, stored}, {local + 22, 4, stored}, {entry + 20, 4, stored}, {entry + 24, 4, stored}})),
      "member 'b.npy': " + differs);
  EXPECT_EQ(faults_of(with(last, {{local + 18, 4, stored + 3},
                                  {local + 22, 4, stored + 3},
                                  {entry + 20, 4, stored + 3},
                                  {entry + 24, 4, stored + 3}})),
            "member 'b.npy': " + differs);
}

TEST(ZipLayout, EachRuleOfTheZip64EndRecordIsCheckedAlone) {
  const std::string archive = archive_of({.zip64 = true});
  const std::size_t at = archive.find("PK\6\6"), locator = archive.find("PK\6\7"), end = archive.size() - 22;
  const std::string disks = "zip64 end record: names several disks";
  const std::string place = "zip64 end record: is not the 56 bytes before its locator at " + std::to_string(locator);
  const std::string differs =
      "zip64 end record: differs from the end record in the count of members or the place of the directory";
  const struct {
    Field field;
    std::string fault;
  } cases[] = {
      {{locator + 4, 4, 1}, disks}, {{locator + 16, 4, 2}, disks},     {{at + 16, 4, 1}, disks},
      {{at + 20, 4, 1}, disks},     {{locator + 8, 8, at - 1}, place}, {{locator + 8, 8, ~std::uint64_t{0}}, place},
      {{at, 1, 'Q'}, place},        {{at + 4, 8, 45}, place},          {{at + 24, 8, 3}, differs},
      {{at + 32, 8, 3}, differs},   {{end + 12, 4, 1}, differs},       {{end + 16, 4, 1}, differs}};
  for (const auto& c : cases) EXPECT_EQ(faults_of(with(archive, {c.field})), c.fault) << c.field.at;
  EXPECT_EQ(faults_of(with(archive, {{end + 8, 2, 1}, {end + 10, 2, 1}})), differs) << "neither 0xffff nor 2";
  // The end record may give the same numbers itself.
  const std::uint64_t directory = archive.find("PK\1\2");
  EXPECT_EQ(faults_of(with(
                archive, {{end + 8, 2, 2}, {end + 10, 2, 2}, {end + 12, 4, at - directory}, {end + 16, 4, directory}})),
            "");
  EXPECT_EQ(faults_of(with(archive, {{at + 40, 8, at - directory - 1}})),
            "central directory: " + std::to_string(at - directory - 1) + " bytes at " + std::to_string(directory) +
                " do not end at " + std::to_string(at) + ", where the end record begins");
}

TEST(ZipLayout, AZip64FieldIsThereOnceAndHoldsEachNumberThatItReplaces) {
  const std::string archive = archive_of({.zip64 = true});
  const std::size_t entry = archive.find("PK\1\2") + 46 + 5;  // its extra field
  const std::string damaged = "entry 0 of the central directory: has damaged extra fields";
  EXPECT_EQ(faults_of(with(archive, {{entry + 2, 2, 23}})), damaged);
  EXPECT_EQ(faults_of(with(archive, {{entry + 2, 2, 25}})), damaged);
  // 24 bytes as a field of 16 and an empty one of another kind: the third number is missing.
  EXPECT_EQ(faults_of(with(archive, {{entry + 2, 2, 16}, {entry + 20, 2, 9}, {entry + 22, 2, 4}})), damaged);
  const std::string empty("\1\0\0\0", 4);
  EXPECT_EQ(faults_of(archive_of({.extra = empty})), "") << "no number is replaced";
  EXPECT_EQ(faults_of(archive_of({.extra = empty + empty})), damaged) << "twice";
}

std::string rejection(const std::string& archive) {
  return message_of([&] { static_cast<void>(parse_npz(archive, "a.npz")); });
}

// As Windows would write them, or as they would be read outside of the folder that an archive is unpacked in.
TEST(ZipLayout, NamesThatAreNotRelativePathsAreRejected) {
  for (const char* name : {"", "/a.npy", "a\\b.npy", "C:a.npy", "x//a.npy", "x/./a.npy", "../a.npy", "x/a.npy/"}) {
    EXPECT_EQ(rejection(archive_of({.a = name})),
              std::string("a.npz rejected: member '") + name +
                  "': absolute names, empty parts and '..' are rejected: save with names relative to the archive");
  }
  EXPECT_EQ(rejection(archive_of({.a = ".npy"})),
            "a.npz rejected: member '.npy': not a .npy array: an npz holds .npy members and manifest.json only");
  EXPECT_THAT(rejection(archive_of({.a = "x.npy"})),
              testing::HasSubstr("member 'x.npy': does not begin with \\x93NUMPY: not an npy file"));
}

TEST(ZipLayout, AManifestLongerThanItsLimitIsRejected) {
  const std::string text(std::size_t{16} << 20, ' ');
  EXPECT_THAT(rejection(archive_of({.a = "manifest.json", .bytes = text + ' '})),
              testing::HasSubstr("member 'manifest.json': 16777217 bytes, more than 16777216"));
  EXPECT_THAT(rejection(archive_of({.a = "manifest.json", .bytes = text})),
              testing::Not(testing::HasSubstr("more than 16777216")));
}

}  // namespace
}  // namespace kvscope::golden::zip_layout_test
