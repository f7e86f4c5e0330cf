#include "core/golden/bundle/safetensors.h"

#include "tests/core/golden/support.h"
#include "tests/property.h"

namespace kvscope::golden::safetensors_test {
namespace {

std::string file_of(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header + data;
}
std::string rejection(const std::string& bytes) {
  return message_of([&] { static_cast<void>(parse_safetensors(bytes, "a.safetensors")); });
}
std::string header_rejection(const std::string& header, std::size_t data) {
  return rejection(file_of(header, std::string(data, 'x')));
}

TEST(Safetensors, EveryFileComesBackBitForBit) {
  EXPECT_TRUE(prop::check([] {
    Safetensors file;
    for (int i = prop::in_range(0, 5); i > 0; --i) file.tensors.emplace("t" + std::to_string(i), arbitrary_tensor());
    for (int i = prop::in_range(0, 3); i > 0; --i)
      file.metadata.emplace("m" + std::to_string(i), "a \"quoted\"\n\xc3\xa9");
    RC_ASSERT(parse_safetensors(safetensors_bytes(file), "a") == file);
  }));
}

// The reader and the writer here are ten lines each with Python's standard library, independent of kvscope's code.
TEST(Safetensors, ATenLineReaderAndWriterInPythonAgree) {
  const TempFolder folder;
  spit(folder / "ours.safetensors",
       safetensors_bytes({{{"b", tensor_of<std::uint8_t>({3}, std::array<std::uint8_t, 3>{1, 2, 3})},
                           {"a", tensor_of<float>({1, 2}, std::array{1.f, -2.f})},
                           {"k", tensor_of<bf16>({1}, std::array{bf16{0x3f80}})}},
                          {{"who", "me"}}}));
  EXPECT_EQ(python(folder, R"(
import json, struct
f = open('ours.safetensors', 'rb').read()
n = struct.unpack('<Q', f[:8])[0]
h = json.loads(f[8:8 + n])
print(n % 8, list(h), h['__metadata__'])
for t in ('a', 'b', 'k'):
    b, e = h[t]['data_offsets']
    print(t, h[t]['dtype'], h[t]['shape'], b, f[8 + n + b:8 + n + e].hex())
h = json.dumps({'x': {'dtype': 'F8_E4M3', 'shape': [2], 'data_offsets': [4, 6]}, 'y': {'dtype': 'I32', 'shape': [],
                'data_offsets': [0, 4]}, '__metadata__': {'a': 'b'}}).encode()
open('theirs.safetensors', 'wb').write(struct.pack('<Q', len(h)) + h + struct.pack('<i', -5) + b'\x7e\x01')
)"),
            "0 ['__metadata__', 'a', 'b', 'k'] {'who': 'me'}\n"
            "a F32 [1, 2] 0 0000803f000000c0\n"
            "b U8 [3] 10 010203\n"
            "k BF16 [1] 8 803f\n");
  const Safetensors theirs = parse_safetensors(slurp(folder / "theirs.safetensors"), "theirs");
  EXPECT_EQ(values<e4m3>(theirs.tensors.at("x"))[0].bits, 0x7e);
  EXPECT_EQ(values<std::int32_t>(theirs.tensors.at("y"))[0], -5);
  EXPECT_EQ(theirs.metadata.at("a"), "b");
}

TEST(Safetensors, HostileFilesGetOneClearMessage) {
  const std::string head = "a.safetensors rejected: ";
  EXPECT_EQ(rejection("1234567"), head + "7 bytes long; the header's length alone takes 8: truncated");
  EXPECT_EQ(rejection(file_of("{}", "").substr(0, 9)), head + "header: 2 bytes long, but 1 bytes follow: truncated");
  EXPECT_EQ(rejection("\xff\xff\xff\xff\xff\xff\xff\xff{}"),
            head + "header: 18446744073709551615 bytes long, more than 100000000: not a safetensors file");
  EXPECT_EQ(rejection(std::string("\x01\xe1\xf5\x05\0\0\0\0{}", 10)),
            head + "header: 100000001 bytes long, more than 100000000: not a safetensors file");
  EXPECT_EQ(rejection(file_of("[]", "")), head + "header: does not begin with '{': not a safetensors file");
  EXPECT_EQ(header_rejection(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7),
            head + "tensor 'a': data_offsets [0, 8] run past the 7 bytes of data: truncated");
  EXPECT_EQ(header_rejection(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 9),
            head + "data: 1 bytes belong to no tensor");
  EXPECT_EQ(header_rejection(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12),
            head + "tensor 'a': data_offsets [4, 12] leave a hole of 4 bytes before them");
  EXPECT_EQ(header_rejection(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
                             7),
            head + "tensor 'b': data_offsets [3, 7] overlap tensor 'a', which ends at 4");
  EXPECT_EQ(header_rejection(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8),
            head + "tensor 'a': data_offsets [8, 0] run backwards or are negative");
  EXPECT_EQ(header_rejection(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
            head + "tensor 'a': shape [3] of f32 needs 12 bytes, but data_offsets [0, 8] hold 8");
  EXPECT_EQ(header_rejection(R"({"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,8]}})", 8),
            head + "tensor 'a': shape [4294967296, 4294967296] of f64 overflows 64 bits");
  EXPECT_EQ(header_rejection(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,8]}})", 8),
            head + "tensor 'a': an extent of 'shape' is not an integer in [0, 2^63)");
  EXPECT_EQ(header_rejection(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,8]}})", 8),
            head + "tensor 'a': an extent of 'shape' is not an integer in [0, 2^63)");
  EXPECT_EQ(header_rejection(R"({"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", 1),
            head +
                "tensor 'a': type 'F4' is not read; types are F64 F32 F16 BF16 F8_E4M3 F8_E5M2 F8_E8M0 I8 to I64, U8 "
                "to U64, BOOL");
  EXPECT_EQ(header_rejection(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8),
            head + "tensor 'a': 'dtype' is missing or not a string");
  EXPECT_EQ(header_rejection(R"({"a":{"dtype":4,"shape":[2],"data_offsets":[0,8]}})", 8),
            head + "tensor 'a': 'dtype' is missing or not a string");
  for (const char* offsets : {"[0.0,8]", "[0,8.0]", "[0,8,9]", "{}"}) {
    EXPECT_EQ(header_rejection(std::string(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)") + offsets + "}}", 8),
              head + "tensor 'a': 'data_offsets' is missing or not [begin, end]");
  }
  EXPECT_EQ(header_rejection(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})", 8),
            head + "tensor 'a': data_offsets [-8, 0] run backwards or are negative");
  std::string ones = "1";
  for (int i = 0; i < 32; ++i) ones += ",1";
  EXPECT_EQ(header_rejection(R"({"a":{"dtype":"U8","shape":[)" + ones + R"(],"data_offsets":[0,1]}})", 1),
            head + "tensor 'a': 33 axes, more than 32");
  // The third overlaps the first, which ends after the second, though not the second.
  EXPECT_EQ(header_rejection(R"({"a":{"dtype":"U8","shape":[6],"data_offsets":[0,6]},)"
                             R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},)"
                             R"("c":{"dtype":"U8","shape":[3],"data_offsets":[4,7]}})",
                             7),
            "a.safetensors rejected, 2 faults:\n"
            "  tensor 'b': data_offsets [1, 3] overlap tensor 'a', which ends at 6\n"
            "  tensor 'c': data_offsets [4, 7] overlap tensor 'a', which ends at 6");
  EXPECT_EQ(header_rejection(R"({"a":7})", 0), head + "tensor 'a': not an object with dtype, shape and data_offsets");
  EXPECT_EQ(header_rejection(R"({"__metadata__":{"n":7}})", 0),
            head + "__metadata__ 'n': not a string; the format has strings only");
  EXPECT_EQ(header_rejection(R"({"__metadata__":[]})", 0), head + "__metadata__: not an object of strings");
  EXPECT_EQ(
      header_rejection(
          R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[],"data_offsets":[1,2]}})",
          2),
      head + "line 1, column 53: duplicate key \"a\": keep one of the two");
}

TEST(Safetensors, AllFaultsOfAHeaderComeTogether) {
  EXPECT_EQ(
      header_rejection(R"({"a":{"dtype":"F3","shape":7,"data_offsets":[0]},)"
                       R"("b":{"dtype":"U8","shape":[2],"data_offsets":[0,1],"x":0}})",
                       1),
      "a.safetensors rejected, 4 faults:\n"
      "  tensor 'a': type 'F3' is not read; types are F64 F32 F16 BF16 F8_E4M3 F8_E5M2 F8_E8M0 I8 to I64, U8 to U64, "
      "BOOL\n"
      "  tensor 'a': 'shape' is missing or not an array\n"
      "  tensor 'a': 'data_offsets' is missing or not [begin, end]\n"
      "  tensor 'b': unknown key 'x'");
}

TEST(Safetensors, NoTruncationIsReadAsAFile) {
  const std::string whole = safetensors_bytes({{{"a", tensor_of<float>({2}, std::array{1.f, 2.f})}}, {}});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THROW(static_cast<void>(parse_safetensors(whole.substr(0, length), "cut")), InputError) << length;
  }
}

// A u8 tensor of 3 bytes before an f32 one would leave the floats misaligned in a memory-mapped file.
TEST(Safetensors, EveryTensorIsAlignedToItsElements) {
  EXPECT_TRUE(prop::check([] {
    Safetensors file;
    for (int i = prop::in_range(1, 6); i > 0; --i) file.tensors.emplace("t" + std::to_string(i), arbitrary_tensor());
    const std::string bytes = safetensors_bytes(file);
    for (const auto& [name, tensor] : file.tensors) {
      const std::size_t key = bytes.find("\"" + name + "\"");
      const std::size_t offsets = bytes.find("[", bytes.find("data_offsets", key));
      RC_ASSERT(std::stoll(bytes.substr(offsets + 1)) % size_of(tensor.dtype) == 0);
    }
  }));
}

TEST(Safetensors, WhatTheFormatCannotSayIsNotWritten) {
  EXPECT_EQ(message_of([] {
              static_cast<void>(safetensors_bytes({{{"__metadata__", make_tensor(DType::u8, {1})}}, {}}));
            }),
            "tensor '__metadata__' rejected: the format keeps this name for its metadata: rename it");
  EXPECT_EQ(message_of([] {
              static_cast<void>(safetensors_bytes({{{"a", {DType::e2m1, {2}, {}}}}, {}}));
            }),
            "tensor 'a' rejected: e2m1 elements share bytes: store u8");
}

}  // namespace
}  // namespace kvscope::golden::safetensors_test
