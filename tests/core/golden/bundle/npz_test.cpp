#include "core/golden/bundle/npz.h"

#include "tests/core/golden/support.h"
#include "tests/property.h"

namespace kvscope::golden::npz_test {
namespace {

using Tensors = std::map<std::string, Tensor>;

std::string rejection(const std::string& bytes) {
  return message_of([&] { static_cast<void>(parse_npz(bytes, "a.npz")); });
}
// An archive made by Python's zipfile: `body` may use z (a ZipFile), npy (a function giving the bytes of an array), np.
std::string made_by_python(const std::string& body, const std::string& mode = "w") {
  const TempFolder folder;
  python(folder,
         "import io, struct, warnings, zipfile, numpy as np\nwarnings.simplefilter('ignore')\n"
         "def npy(a):\n    f = io.BytesIO(); np.save(f, a); return f.getvalue()\n"
         "with zipfile.ZipFile('a.npz', '" +
             mode + "') as z:\n    " + body + "\n");
  return slurp(folder / "a.npz");
}

TEST(Npz, EveryBundleComesBackBitForBit) {
  EXPECT_TRUE(prop::check([] {
    Tensors tensors;
    for (int i = prop::in_range(0, 4); i > 0; --i) tensors.emplace("t" + std::to_string(i), arbitrary_tensor());
    const Bundle back = parse_npz(npz_bytes(tensors, json::Value(7)), "a.npz");
    RC_ASSERT(back.tensors == tensors);
    RC_ASSERT(back.manifest == json::Value(7));
  }));
}

TEST(Npz, NumpyOpensWhatIsWrittenAndTheOtherWayRound) {
  const TempFolder folder;
  json::Value manifest;
  manifest.set("layout", "nhd");
  spit(folder / "ours.npz", npz_bytes({{"k", tensor_of<bf16>({2}, std::array{bf16{0x3f80}, bf16{0xc000}})},
                                       {"lse", tensor_of<double>({1, 2}, std::array{0.5, -0.25})}},
                                      manifest));
  EXPECT_EQ(python(folder, R"(
import json, numpy as np
z = np.load('ours.npz')
print(sorted(z.files), z['k_bf16'].dtype, z['k_bf16'].tolist(), z['lse'].tolist(), json.loads(z['manifest.json']))
np.savez('stored.npz', a=np.arange(6).reshape(2, 3), k_e4m3=np.array([0x7e], 'u1'))
np.savez_compressed('deflated.npz', a=np.arange(6).reshape(2, 3), k_e4m3=np.array([0x7e], 'u1'))
)"),
            "['k_bf16', 'lse', 'manifest.json'] uint16 [16256, 49152] [[0.5, -0.25]] {'layout': 'nhd'}\n");
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const Bundle bundle = parse_npz(slurp(folder / name), name);
    EXPECT_EQ(bundle.tensors.at("a"), tensor_of<std::int64_t>({2, 3}, std::array<std::int64_t, 6>{0, 1, 2, 3, 4, 5}))
        << name;
    EXPECT_EQ(bundle.tensors.at("k").dtype, DType::e4m3) << name;
    EXPECT_TRUE(bundle.manifest.is_null());
  }
}

// The file must not depend on the clock or the time zone, because bundles are compared by their bytes.
TEST(Npz, EqualBundlesGiveEqualBytesInEveryTimeZone) {
  const Tensors tensors{{"a", make_tensor(DType::u8, {3})}};
  setenv("TZ", "Pacific/Auckland", 1);
  tzset();
  const std::string first = npz_bytes(tensors, {});
  setenv("TZ", "America/Lima", 1);
  tzset();
  EXPECT_EQ(npz_bytes(tensors, {}), first);
  unsetenv("TZ");
  tzset();
  EXPECT_NE(first.find(std::string("\0\0\x21\0", 4)), std::string::npos);  // 00:00 on 1980-01-01
}

TEST(Npz, HostileArchivesGetOneClearMessage) {
  const std::string head = "a.npz rejected: ";
  EXPECT_EQ(rejection(""), head + "empty: not a zip archive");
  EXPECT_EQ(rejection("PK\3\4 something"), head + "not a readable zip archive: Not a zip archive");
  EXPECT_EQ(rejection(made_by_python("z.writestr('/etc/a.npy', npy(np.zeros(1)))")),
            head +
                "member '/etc/a.npy': absolute names, empty parts and '..' are rejected: save with names relative to "
                "the archive");
  EXPECT_EQ(
      rejection(made_by_python("z.writestr('x/../../a.npy', npy(np.zeros(1)))")),
      head +
          "member 'x/../../a.npy': absolute names, empty parts and '..' are rejected: save with names relative to the "
          "archive");
  EXPECT_EQ(rejection(made_by_python("z.writestr('a.npy', npy(np.zeros(1))); z.writestr('a.npy', npy(np.zeros(1)))")),
            head + "two members have the same name: save each tensor once");
  EXPECT_EQ(rejection(made_by_python(
                "z.writestr('a_bf16.npy', npy(np.zeros(1, 'u2'))); z.writestr('a.npy', npy(np.zeros(1)))")),
            head + "member 'a.npy': a second member for tensor 'a'");
  EXPECT_EQ(rejection(made_by_python("z.writestr('code.pkl', b'cos'); z.writestr('a.npy', npy(np.zeros(1)))")),
            head + "member 'code.pkl': not a .npy array: an npz holds .npy members and manifest.json only");
  EXPECT_EQ(rejection(made_by_python("z.writestr('a.npy', npy(np.zeros(1)), zipfile.ZIP_BZIP2)")),
            head + "member 'a.npy': compression method 12 is not read: use stored or deflated");
  EXPECT_EQ(rejection(made_by_python("z.writestr('a.npy', npy(np.array([None], dtype=object)))")),
            head +
                "member 'a.npy', npy header: '|O' holds Python objects, which are a pickle and therefore code: never "
                "read. Save "
                "numbers");
  EXPECT_EQ(rejection(made_by_python("z.writestr('a.npy', npy(np.zeros(1))[:-1])")),
            head + "member 'a.npy', npy data: shape [1] of '<f8' needs 8 bytes, the file has 7: truncated");
  EXPECT_EQ(rejection(made_by_python("z.writestr('manifest.json', '{\"a\": ')")).substr(0, 47),
            head + "member 'manifest.json', line 1,");
}

TEST(Npz, AllFaultsOfAnArchiveComeTogether) {
  EXPECT_EQ(
      rejection(made_by_python("z.writestr('/a.npy', b''); z.writestr('b.txt', b''); z.writestr('c.npy', b'')")),
      "a.npz rejected, 2 faults:\n"
      "  member '/a.npy': absolute names, empty parts and '..' are rejected: save with names relative to the archive\n"
      "  member 'b.txt': not a .npy array: an npz holds .npy members and manifest.json only");
}

// 600 MiB of zeros from 600 KiB: detected from the directory, before unpacking.
TEST(Npz, ABombIsRejectedBeforeItIsUnpacked) {
  const std::string bomb =
      made_by_python("[z.writestr(f'{i}.npy', bytes(100 << 20), zipfile.ZIP_DEFLATED) for i in range(6)]");
  EXPECT_EQ(rejection(bomb),
            "a.npz rejected: unpacks to 629145600 bytes from " + std::to_string(bomb.size()) +
                ": more than 256 MiB + 100 times its size is rejected as a zip bomb; save it with numpy.savez, "
                "uncompressed");
}

// 257 MiB of zeros: past the part that is free, but with less than 100 times the archive's size beyond it. The text file
// ends the reading before anything is unpacked.
TEST(Npz, ABombIsMeasuredBeyondTheFree256Mebibytes) {
  EXPECT_EQ(rejection(made_by_python(
                "z.writestr('a.npy', bytes(257 << 20), zipfile.ZIP_DEFLATED); z.writestr('b.txt', b'')")),
            "a.npz rejected: member 'b.txt': not a .npy array: an npz holds .npy members and manifest.json only");
}

// The same bomb with small sizes in its directory and local headers: unpacking stops at the declared size.
TEST(Npz, AMemberThatUnpacksToMoreThanItClaimsIsRejected) {
  std::string bytes = made_by_python("z.writestr('a.npy', bytes(100000), zipfile.ZIP_DEFLATED)");
  const std::string size("\xa0\x86\x01\0", 4);
  for (std::size_t at = bytes.find(size); at != std::string::npos; at = bytes.find(size))
    bytes.replace(at, 4, "\x10\0\0\0", 4);
  EXPECT_EQ(rejection(bytes).substr(0, 38), "a.npz rejected: member 'a.npy': unpack");
}

TEST(Npz, AMemberThatUnpacksToLessThanItClaimsIsRejected) {
  std::string bytes = made_by_python("z.writestr('a.npy', bytes(100000), zipfile.ZIP_DEFLATED)");
  const std::string size("\xa0\x86\x01\0", 4);
  for (std::size_t at = bytes.find(size); at != std::string::npos; at = bytes.find(size)) ++bytes[at];
  EXPECT_EQ(rejection(bytes), "a.npz rejected: member 'a.npy': unpacks to 100000 bytes, but claims 100001: truncated");
}

TEST(Npz, AMemberThatClaimsMoreThanItsBytesCanGiveIsRejected) {
  std::string bytes = made_by_python("z.writestr('a.npy', bytes(100000), zipfile.ZIP_DEFLATED)");
  const std::string size("\xa0\x86\x01\0", 4);
  for (std::size_t at = bytes.find(size); at != std::string::npos; at = bytes.find(size)) {
    bytes.replace(at, 4, "\xff\xff\xff\x0f", 4);
  }
  EXPECT_EQ(rejection(bytes).substr(0, 61), "a.npz rejected: member 'a.npy': claims 268435455 bytes from 1");
}

// With such a size, a member could claim any number of unpacked bytes.
TEST(Npz, AMemberWithMoreStoredBytesThanTheArchiveIsRejected) {
  std::string bytes = made_by_python("z.writestr('a.npy', bytes(100000))");
  const std::string size("\xa0\x86\x01\0", 4);
  for (std::size_t at = bytes.find(size); at != std::string::npos; at = bytes.find(size)) {
    bytes.replace(at, 4, "\xff\xff\xff\x7f", 4);
  }
  EXPECT_EQ(rejection(bytes).substr(0, 43), "a.npz rejected: not a readable zip archive:");
}

// A stored member has as many bytes as it is long; 65536 members are one more than a zip file without zip64 can count.
TEST(Npz, MoreMembersThanTheLimitAreRejected) {
  EXPECT_EQ(rejection(made_by_python("[z.writestr(f'{i}', b'') for i in range(65536)]")),
            "a.npz rejected: 65536 members, more than 65535");
}

// Only the member's checksum detects a flipped bit in the data, because every length is intact.
TEST(Npz, AFlippedBitIsFound) {
  std::string bytes = npz_bytes({{"a", tensor_of<float>({2}, std::array{1.f, 2.f})}}, {});
  bytes[bytes.find(std::string("\0\0\x80\x3f", 4)) + 1] ^= 1;
  EXPECT_EQ(rejection(bytes), "a.npz rejected: member 'a.npy': damaged: CRC error");
}

TEST(Npz, EncryptedMembersAreRejected) {
  std::string bytes = made_by_python("z.writestr('a.npy', npy(np.zeros(1)))");
  bytes[6] |= 1;                         // general purpose flag of the local header
  bytes[bytes.find("PK\1\2") + 8] |= 1;  // and of the directory
  EXPECT_EQ(rejection(bytes), "a.npz rejected: member 'a.npy': encrypted: save it without a password");
}

TEST(Npz, NoTruncationIsReadAsAnArchive) {
  const std::string whole = npz_bytes({{"a", tensor_of<float>({2}, std::array{1.f, 2.f})}}, {});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THROW(static_cast<void>(parse_npz(whole.substr(0, length), "cut")), InputError) << length;
  }
}

TEST(Npz, NamesThatWouldNotComeBackAreNotWritten) {
  EXPECT_EQ(message_of([] {
              static_cast<void>(npz_bytes({{"../a", make_tensor(DType::f32, {1})}}, {}));
            }),
            "tensor '../a' rejected: no legal member name: absolute names, empty parts and '..' are rejected");
  EXPECT_EQ(message_of([] {
              static_cast<void>(npz_bytes({{"", make_tensor(DType::f32, {1})}}, {}));
            }),
            "tensor '' rejected: no legal member name: absolute names, empty parts and '..' are rejected");
  try {  // a zip archive's names end at a zero byte
    static_cast<void>(npz_bytes({{std::string("a\0b", 3), make_tensor(DType::f32, {1})}}, {}));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.source(), std::string("tensor 'a\0b'", 12));
  }
}

// bf16 is stored as u16 with its name at the end of the member's name.
TEST(Npz, TwoTensorsWithTheNameOfOneMemberAreNotWritten) {
  EXPECT_EQ(message_of([] {
              static_cast<void>(
                  npz_bytes({{"a", make_tensor(DType::bf16, {1})}, {"a_bf16", make_tensor(DType::f32, {1})}}, {}));
            }),
            "tensor 'a_bf16' rejected: would be the member 'a_bf16.npy', as tensor 'a' is: rename one of them");
}

}  // namespace
}  // namespace kvscope::golden::npz_test
