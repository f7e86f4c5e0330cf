#include "core/golden/bundle/npy.h"

#include <gmock/gmock.h>

#include <bit>

#include "tests/core/golden/support.h"
#include "tests/property.h"

namespace kvscope::golden::npy_test {
namespace {

using testing::ElementsAre;

// A file written from the specification of the format, not by kvscope's writer.
std::string file_of(std::string header, const std::string& data, char major = 1) {
  std::string file = "\x93NUMPY";
  file += {major, '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  if (major > 1) file += {'\0', '\0'};
  return file + header + data;
}
std::string dict(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}
std::string rejection(const std::string& bytes) {
  return message_of([&] { static_cast<void>(parse_npy(bytes, "a.npy")); });
}

TEST(Npy, EveryTensorComesBackBitForBit) {
  EXPECT_TRUE(prop::check([] {
    const Tensor tensor = arbitrary_tensor();
    Tensor back = parse_npy(npy_bytes(tensor), "a.npy");
    RC_ASSERT(reinterpret_as(std::move(back), tensor.dtype) == tensor);
  }));
}

// A file without the comma of a one-element tuple, or without the padding, is read by this parser but not by NumPy.
TEST(Npy, WritesTheBytesThatNumpyWrites) {
  const TempFolder folder;
  write_npy(folder / "scalar.npy", tensor_of<double>({}, std::array{2.5}));
  write_npy(folder / "one.npy", tensor_of<float>({3}, std::array{1.f, 2.f, 3.f}));
  write_npy(folder / "two.npy", tensor_of<std::int64_t>({2, 2}, std::array<std::int64_t, 4>{1, -2, 3, -4}));
  write_npy(folder / "none.npy", make_tensor(DType::u8, {0, 7}));
  write_npy(folder / "bits_bf16.npy", tensor_of<bf16>({2}, std::array{bf16{0x3f80}, bf16{0x7fc0}}));
  EXPECT_EQ(python(folder, R"(
import io, numpy as np
for name, a in dict(scalar=np.float64(2.5), one=np.array([1, 2, 3], '<f4'), two=np.array([[1, -2], [3, -4]]),
                    none=np.zeros((0, 7), 'u1'), bits_bf16=np.array([0x3f80, 0x7fc0], 'u2')).items():
    f = io.BytesIO()
    np.save(f, a)
    print(name, f.getvalue() == open(name + '.npy', 'rb').read())
)"),
            "scalar True\none True\ntwo True\nnone True\nbits_bf16 True\n");
}

// With equal extents a wrong transposition would not be detected.
TEST(Npy, ReadsWhatNumpySavesInBothOrdersAndBothByteOrders) {
  const TempFolder folder;
  python(folder, R"(
import numpy as np
a = np.arange(24, dtype='<i4').reshape(2, 3, 4)
np.save('c.npy', a)
np.save('f.npy', np.asfortranarray(a))
np.save('big.npy', a.astype('>i4'))
np.save('bigf.npy', np.asfortranarray(a.astype('>i4')))
np.save('half.npy', np.array([1, -2], '<f2'))
np.save('bool.npy', np.array([True, False]))
np.lib.format.write_array(open('v2.npy', 'wb'), a, version=(2, 0))
np.lib.format.write_array(open('v3.npy', 'wb'), a, version=(3, 0))
)");
  const Tensor c = read_npy(folder / "c.npy");
  EXPECT_EQ(c.shape, (std::vector<std::int64_t>{2, 3, 4}));
  for (std::int32_t i = 0; i < 24; ++i) EXPECT_EQ(values<std::int32_t>(c)[static_cast<std::size_t>(i)], i);
  for (const char* name : {"f.npy", "big.npy", "bigf.npy", "v2.npy", "v3.npy"}) {
    EXPECT_EQ(read_npy(folder / name), c) << name;
  }
  const Tensor half = read_npy(folder / "half.npy");
  EXPECT_EQ(half.dtype, DType::f16);
  EXPECT_EQ(values<f16>(half)[1].bits, 0xc000);
  EXPECT_THAT(values<std::uint8_t>(read_npy(folder / "bool.npy")), ElementsAre(1, 0));
}

TEST(Npy, TakesKeysInAnyOrderAndWithEitherQuote) {
  const Tensor tensor = parse_npy(file_of("{\"shape\":(2,),'fortran_order':True,\"descr\":'|i1'}", "ab"), "a.npy");
  EXPECT_EQ(describe(tensor), "i8 [2]");
}

TEST(Npy, NameEndingSpeaksOnlyWhereTheArrayIsABitPattern) {
  EXPECT_EQ(split_npy_name("k_bf16", DType::u16).name, "k");
  EXPECT_EQ(split_npy_name("k_bf16", DType::u16).dtype, DType::bf16);
  EXPECT_EQ(split_npy_name("k_e4m3", DType::u8).dtype, DType::e4m3);
  EXPECT_EQ(split_npy_name("k_e4m3", DType::u16).name, "k_e4m3");
  EXPECT_EQ(split_npy_name("lse_f16", DType::f32).name, "lse_f16");
  EXPECT_EQ(split_npy_name("_bf16", DType::u16).name, "_bf16");
  EXPECT_EQ(join_npy_name("scale", DType::e8m0), "scale_e8m0");
  EXPECT_EQ(join_npy_name("k_bf16", DType::f32), "k_bf16");
  EXPECT_EQ(message_of([] { static_cast<void>(join_npy_name("k_bf16", DType::u16)); }),
            "tensor 'k_bf16' rejected: a u16 array of this name would be read back as bf16 'k': rename it");
}

TEST(Npy, HostileFilesGetOneClearMessage) {
  const std::string good = dict("<f4", "False", "(2, 3)");
  const std::string head = "a.npy rejected: ";
  EXPECT_EQ(rejection(""), head + "does not begin with \\x93NUMPY: not an npy file; write it with numpy.save");
  EXPECT_EQ(rejection("PK\3\4"), head + "does not begin with \\x93NUMPY: not an npy file; write it with numpy.save");
  EXPECT_EQ(rejection("\x93NUMPY\1"), head + "ends inside its first 8 bytes: truncated");
  EXPECT_EQ(rejection(std::string("\x93NUMPY\1\0\x76", 9)), head + "ends inside the header's length: truncated");
  EXPECT_EQ(rejection(file_of(good, "", 4)), head + "npy version 4.0 is not read; versions are 1.0, 2.0 and 3.0");
  EXPECT_EQ(rejection(std::string("\x93NUMPY\1\0\0\x20{", 11)),
            head + "npy header: 8192 bytes long, but 1 bytes follow: truncated");
  EXPECT_EQ(rejection(std::string("\x93NUMPY\2\0\0\0\0\x7f{", 13)),
            head + "npy header: 2130706432 bytes long, more than 10000");
  EXPECT_EQ(rejection(file_of(good, std::string(23, 'x'))),
            head + "npy data: shape [2, 3] of '<f4' needs 24 bytes, the file has 23: truncated");
  EXPECT_EQ(rejection(file_of(good, std::string(25, 'x'))),
            head + "npy data: shape [2, 3] of '<f4' needs 24 bytes, but 1 more follow: remove them");
  EXPECT_EQ(rejection(file_of(dict("<f8", "False", "(4611686018427387904, 2)"), "")),
            head + "npy header: shape [4611686018427387904, 2] of '<f8' overflows 64 bits");
  // A factor of 0 must not hide an overflow, because strides are products of the other factors.
  EXPECT_EQ(rejection(file_of(dict("|u1", "True", "(0, 4294967296, 4294967296)"), "")),
            head + "npy header: shape [0, 4294967296, 4294967296] of '|u1' overflows 64 bits");
  // Claims 2^60 bytes; a reader that allocates first would fail.
  EXPECT_EQ(
      rejection(file_of(dict("|u1", "False", "(1152921504606846976,)"), "x")),
      head +
          "npy data: shape [1152921504606846976] of '|u1' needs 1152921504606846976 bytes, the file has 1: truncated");
  EXPECT_EQ(rejection(file_of(dict("|u1", "False", "(99999999999999999999,)"), "")),
            head + "npy header, character 69: an extent does not fit in 64 bits");
  EXPECT_EQ(rejection(file_of(dict("|u1", "False", "(-1,)"), "")),
            head + "npy header, character 51: expected an extent, 0 or more");
  EXPECT_EQ(
      rejection(file_of(dict("|O", "False", "(1,)"), "")),
      head + "npy header: '|O' holds Python objects, which are a pickle and therefore code: never read. Save numbers");
  EXPECT_EQ(rejection(file_of(dict("<c8", "False", "(1,)"), "")),
            head + "npy header: complex type '<c8' is not read: save .real and .imag");
  EXPECT_EQ(
      rejection(file_of(dict("<U4", "False", "(1,)"), "")),
      head +
          "npy header: type '<U4' is not read; types are f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1 with < or > before them: "
          "convert with .astype()");
  EXPECT_EQ(
      rejection(file_of(dict("", "False", "(1,)"), "")),
      head +
          "npy header: type '' is not read; types are f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1 with < or > before them: "
          "convert with .astype()");
  EXPECT_EQ(rejection(file_of("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "")),
            head +
                "npy header, character 10: a structured array (descr is a list of fields) is not read: save each field "
                "as a separate array");
  EXPECT_EQ(rejection(file_of("{'descr': '<f4', 'descr': '<f4'}", "")),
            head + "npy header, character 25: 'descr' occurs twice");
  EXPECT_EQ(rejection(file_of("{'descr': '<f4', 'shape': ()}", "")),
            head + "npy header, character 29: 'fortran_order' is missing");
  EXPECT_EQ(rejection(file_of("{'fortran_order': False, 'shape': ()}", "")),
            head + "npy header, character 37: 'descr' is missing");
  EXPECT_EQ(rejection(file_of("{'descr': '<f4', 'fortran_order': False}", "")),
            head + "npy header, character 40: 'shape' is missing");
  EXPECT_EQ(rejection(file_of("{", "")), head + "npy header, character 1: expected a key in quotes");
  EXPECT_EQ(rejection(file_of("{'descr':", "")), head + "npy header, character 9: expected a type in quotes");
  EXPECT_EQ(rejection(file_of("{'de\\x73cr': '<f4'}", "")), head + "npy header, character 1: escapes are not read");
  EXPECT_EQ(rejection(file_of(dict("|u1", "False", "(9223372036854775808,)"), "")),
            head + "npy header, character 69: an extent does not fit in 64 bits");
  EXPECT_EQ(rejection(file_of("{'evil': 1}", "")),
            head + "npy header, character 8: unknown key 'evil'; the keys are descr, fortran_order, shape");
  EXPECT_EQ(rejection(file_of("__import__('os')", "")), head + "npy header, character 0: expected '{'");
  EXPECT_EQ(rejection(file_of(good + "x", "")), head + "npy header, character 60: text after the closing brace");
  EXPECT_EQ(rejection(file_of("{'descr': '<f4", "")), head + "npy header, character 10: a quote is never closed");
  EXPECT_EQ(rejection(file_of(dict("<f4", "Maybe", "(1,)"), "")),
            head + "npy header, character 34: expected True or False");
  std::string axes = "(";
  for (int i = 0; i < 33; ++i) axes += "1,";
  EXPECT_EQ(rejection(file_of(dict("|u1", "False", axes + ")"), "x")),
            head + "npy header, character 116: more than 32 axes");
}

// Numbers of NumPy's names of types, and the one that has none.
TEST(Npy, EveryTypeIsWrittenUnderItsName) {
  const std::pair<DType, const char*> names[] = {
      {DType::f64, "<f8"},  {DType::f32, "<f4"},  {DType::f16, "<u2"}, {DType::bf16, "<u2"}, {DType::e4m3, "|u1"},
      {DType::e5m2, "|u1"}, {DType::e8m0, "|u1"}, {DType::i8, "|i1"},  {DType::u8, "|u1"},   {DType::i16, "<i2"},
      {DType::u16, "<u2"},  {DType::i32, "<i4"},  {DType::u32, "<u4"}, {DType::i64, "<i8"},  {DType::u64, "<u8"}};
  for (const auto& [dtype, descr] : names) {
    EXPECT_THAT(npy_bytes(make_tensor(dtype, {1})), testing::HasSubstr(std::string("'descr': '") + descr + "'"));
  }
  try {
    static_cast<void>(npy_bytes({DType::e2m1, {2}, {}}));
    FAIL() << "expected UnsupportedError";
  } catch (const UnsupportedError& error) {
    EXPECT_STREQ(error.what(), "npy holds no e2m1: two elements share a byte; store u8");
  }
}

// Every prefix of a valid file is rejected: no length is used unchecked.
TEST(Npy, NoTruncationIsReadAsAnArray) {
  const std::string whole = npy_bytes(tensor_of<float>({2, 2}, std::array{1.f, 2.f, 3.f, 4.f}));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THROW(static_cast<void>(parse_npy(whole.substr(0, length), "cut")), InputError) << length;
  }
}

}  // namespace
}  // namespace kvscope::golden::npy_test
