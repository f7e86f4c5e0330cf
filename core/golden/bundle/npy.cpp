#include "core/golden/bundle/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/base/file.h"
#include "core/golden/bundle/bundle_file.h"

namespace kvscope::golden {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

// The header is a Python literal, a dict of exactly three keys. No other Python syntax is accepted.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  Header parse() {
    Header header;
    bool seen_descr = false;
    bool seen_order = false;
    bool seen_shape = false;
    text_.remove_prefix(std::min(text_.find_first_not_of(" \t"), text_.size()));
    if (!text_.starts_with('{')) fail("expected '{'");
    ++at_;
    while (!accept('}')) {
      const std::string key = string("a key in quotes");
      expect(':');
      if (key == "descr") {
        once(seen_descr, key);
        header.descr = descr();
      } else if (key == "fortran_order") {
        once(seen_order, key);
        header.fortran_order = boolean();
      } else if (key == "shape") {
        once(seen_shape, key);
        header.shape = tuple();
      } else {
        fail(fmt::format("unknown key '{}'; the keys are descr, fortran_order, shape", key));
      }
      if (accept(',')) continue;
      expect('}');
      break;
    }
    skip_blanks();
    if (at_ != text_.size()) fail("text after the closing brace");
    if (!seen_descr || !seen_order || !seen_shape) {
      fail(fmt::format("'{}' is missing", !seen_descr ? "descr" : !seen_order ? "fortran_order" : "shape"));
    }
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(source_, fmt::format("npy header, character {}", at_), message);
  }
  void once(bool& seen, const std::string& key) const {
    if (std::exchange(seen, true)) fail(fmt::format("'{}' occurs twice", key));
  }
  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool accept(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected '{}'", c));
  }
  std::string string(const char* what) {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail(fmt::format("expected {}", what));
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a quote is never closed");
    const std::string_view body = text_.substr(at_ + 1, end - at_ - 1);
    if (body.find('\\') != std::string_view::npos) fail("escapes are not read");
    at_ = end + 1;
    return std::string(body);
  }
  std::string descr() {
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '[') {
      fail("a structured array (descr is a list of fields) is not read: save each field as a separate array");
    }
    return string("a type in quotes");
  }
  bool boolean() {
    skip_blanks();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    fail("expected True or False");
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> shape;
    expect('(');
    while (!accept(')')) {
      shape.push_back(extent());
      if (shape.size() > kMaxRank) fail(fmt::format("more than {} axes", kMaxRank));
      if (accept(',')) continue;
      if (shape.size() == 1) fail("expected ',': (3) is a number in Python, (3,) is a shape of one axis");
      expect(')');
      break;
    }
    return shape;
  }
  std::int64_t extent() {
    skip_blanks();
    const std::size_t begin = at_;
    std::int64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value)) {
        fail("an extent does not fit in 64 bits");
      }
      ++at_;
    }
    if (at_ == begin) fail("expected an extent, 0 or more");
    if (text_[begin] == '0' && value != 0) fail("an extent begins with 0, which Python does not read");
    return value;
  }

  std::string_view text_;
  std::string_view source_;
  std::size_t at_ = 0;
};

struct Stored {
  DType dtype;
  bool big_endian;
};

Stored stored_type(const std::string& descr, std::string_view source) {
  const char order = descr.empty() ? '\0' : descr[0];
  const std::string_view type = std::string_view(descr).substr(descr.empty() ? 0 : 1);
  static constexpr std::array<std::pair<std::string_view, DType>, 12> kTypes{{{"f8", DType::f64},
                                                                              {"f4", DType::f32},
                                                                              {"f2", DType::f16},
                                                                              {"i1", DType::i8},
                                                                              {"u1", DType::u8},
                                                                              {"b1", DType::u8},
                                                                              {"i2", DType::i16},
                                                                              {"u2", DType::u16},
                                                                              {"i4", DType::i32},
                                                                              {"u4", DType::u32},
                                                                              {"i8", DType::i64},
                                                                              {"u8", DType::u64}}};
  if (order == '<' || order == '>' || order == '=' || order == '|') {
    for (const auto& [text, dtype] : kTypes) {
      if (type == text && (order != '|' || bits(dtype) == 8)) return {dtype, order == '>'};
    }
  }
  if (type.starts_with('O')) {
    throw InputError(
        source, "npy header",
        fmt::format("'{}' holds Python objects, which are a pickle and therefore code: never read. Save numbers",
                    descr));
  }
  if (type.starts_with('c')) {
    throw InputError(source, "npy header", fmt::format("complex type '{}' is not read: save .real and .imag", descr));
  }
  throw InputError(
      source, "npy header",
      fmt::format("type '{}' is not read; types are f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1 with < or > before "
                  "them: convert with .astype()",
                  descr));
}

// Element i of the row-major result is element sum(index * fortran stride) of the data.
void copy_fortran(const char* src, std::byte* dst, std::span<const std::int64_t> shape, std::size_t size) {
  std::vector<std::int64_t> index(shape.size(), 0);
  std::vector<std::size_t> stride(shape.size());
  std::size_t running = size;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    stride[axis] = running;
    running *= static_cast<std::size_t>(shape[axis]);
  }
  std::size_t offset = 0;
  for (std::size_t done = 0; done < running; done += size) {
    std::memcpy(dst + done, src + offset, size);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      offset += stride[axis];
      if (++index[axis] < shape[axis]) break;
      offset -= stride[axis] * static_cast<std::size_t>(shape[axis]);
      index[axis] = 0;
    }
  }
}

void swap_bytes(TensorBytes& bytes, std::size_t size) {
  for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
  }
}

std::string_view descr_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "<f8";
    case DType::f32:
      return "<f4";
    case DType::f16:
    case DType::bf16:
    case DType::u16:
      return "<u2";
    case DType::e4m3:
    case DType::e5m2:
    case DType::e8m0:
    case DType::u8:
      return "|u1";
    case DType::i8:
      return "|i1";
    case DType::i16:
      return "<i2";
    case DType::i32:
      return "<i4";
    case DType::u32:
      return "<u4";
    case DType::i64:
      return "<i8";
    case DType::u64:
      return "<u8";
    case DType::e2m1:
      break;
  }
  throw UnsupportedError("npy holds no e2m1: two elements share a byte; store u8");
}

constexpr std::array<DType, 5> kPatternTypes{DType::bf16, DType::f16, DType::e4m3, DType::e5m2, DType::e8m0};

struct NpyStart {
  Stored stored;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::size_t data_at = 0;  // [bytes]
};

// `start` holds the header, `file_size` the bytes of the whole file, which the header must give exactly.
NpyStart read_npy_start(std::string_view start, std::uint64_t file_size, std::string_view source) {
  if (!start.starts_with(kMagic)) {
    throw InputError(source, "", "does not begin with \\x93NUMPY: not an npy file; write it with numpy.save");
  }
  if (start.size() < 8) throw InputError(source, "", "ends inside its first 8 bytes: truncated");
  const auto byte = [&](std::size_t at) { return static_cast<std::size_t>(static_cast<unsigned char>(start[at])); };
  const std::size_t major = byte(6);
  const std::size_t minor = byte(7);
  if (major < 1 || major > 3 || minor != 0) {
    throw InputError(source, "",
                     fmt::format("npy version {}.{} is not read; versions are 1.0, 2.0 and 3.0", major, minor));
  }
  const std::size_t data_of_length = major == 1 ? 2 : 4;
  if (start.size() < 8 + data_of_length) throw InputError(source, "", "ends inside the header's length: truncated");
  std::size_t header_length = byte(8) | byte(9) << 8;
  if (major > 1) header_length |= byte(10) << 16 | byte(11) << 24;
  const std::size_t header_at = 8 + data_of_length;
  if (header_length > kMaxNpyHeader) {
    throw InputError(source, "npy header", fmt::format("{} bytes long, more than {}", header_length, kMaxNpyHeader));
  }
  if (header_length > start.size() - header_at) {
    throw InputError(
        source, "npy header",
        fmt::format("{} bytes long, but {} bytes follow: truncated", header_length, start.size() - header_at));
  }
  const Header header = HeaderParser(start.substr(header_at, header_length), source).parse();
  const Stored stored = stored_type(header.descr, source);
  std::vector<std::int64_t> extents = header.shape;
  std::replace(extents.begin(), extents.end(), std::int64_t{0}, std::int64_t{1});  // NumPy's rule: they count as 1
  const auto needed = byte_count(stored.dtype, extents) ? byte_count(stored.dtype, header.shape) : std::nullopt;
  const std::string what = fmt::format("shape {} of '{}'", shape_text(header.shape), header.descr);
  if (!needed) throw InputError(source, "npy header", fmt::format("{} overflows 64 bits", what));
  const auto size = static_cast<std::uint64_t>(*needed);
  const std::uint64_t has = file_size - (header_at + header_length);
  if (has < size) {
    throw InputError(source, "npy data", fmt::format("{} needs {} bytes, the file has {}: truncated", what, size, has));
  }
  if (has > size) {
    throw InputError(source, "npy data",
                     fmt::format("{} needs {} bytes, but {} more follow: remove them", what, size, has - size));
  }
  return {stored, header.fortran_order, header.shape, header_at + header_length};
}

}  // namespace

void check_npy_start(std::string_view start, std::uint64_t file_size, std::string_view source) {
  static_cast<void>(read_npy_start(start, file_size, source));
}

Tensor parse_npy(std::string_view bytes, std::string_view source) {
  NpyStart start = read_npy_start(bytes, bytes.size(), source);
  const std::string_view data = bytes.substr(start.data_at);
  Tensor tensor{start.stored.dtype, std::move(start.shape), std::vector<std::byte>(data.size())};
  const auto element = static_cast<std::size_t>(size_of(tensor.dtype));
  if (start.fortran_order && tensor.shape.size() > 1) {
    copy_fortran(data.data(), tensor.bytes.data(), tensor.shape, element);
  } else if (!data.empty()) {
    std::memcpy(tensor.bytes.data(), data.data(), data.size());
  }
  if (start.stored.big_endian) swap_bytes(tensor.bytes, element);
  return tensor;
}

std::string npy_header(const Tensor& tensor) {
  std::string shape;
  for (const std::int64_t extent : tensor.shape) shape += fmt::format("{}, ", extent);
  if (tensor.shape.size() > 1) shape.resize(shape.size() - 2);
  if (tensor.shape.size() == 1) shape.pop_back();  // (3,)
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr_of(tensor.dtype), shape);
  constexpr std::size_t kPrefix = 10;  // magic, version, length
  header.append(63 - (kPrefix + header.size()) % 64, ' ');
  header += '\n';
  std::string file(kMagic);
  file += {'\1', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  file += header;
  return file;
}

std::string npy_bytes(const Tensor& tensor) {
  std::string file = npy_header(tensor);
  file.reserve(file.size() + tensor.bytes.size());
  file += as_text(tensor);
  return file;
}

Tensor read_npy(const std::filesystem::path& path) {
  return parse_npy(read_bundle_file(path, BundleFormat::npy), path.string());
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  write_file_atomically(path, npy_bytes(tensor));
}

NpyName split_npy_name(std::string_view stem, DType stored) {
  for (const DType dtype : kPatternTypes) {
    const std::string ending = fmt::format("_{}", name(dtype));
    const DType pattern = bits(dtype) == 16 ? DType::u16 : DType::u8;
    if (stored == pattern && stem.ends_with(ending) && stem.size() > ending.size()) {
      return {std::string(stem.substr(0, stem.size() - ending.size())), dtype};
    }
  }
  return {std::string(stem), std::nullopt};
}

std::string join_npy_name(std::string_view tensor_name, DType dtype) {
  if (std::find(kPatternTypes.begin(), kPatternTypes.end(), dtype) != kPatternTypes.end()) {
    return fmt::format("{}_{}", tensor_name, name(dtype));
  }
  const NpyName back = split_npy_name(tensor_name, dtype);
  if (back.dtype) {
    throw InputError(fmt::format("tensor '{}'", tensor_name), "",
                     fmt::format("a {} array of this name would be read back as {} '{}': rename it", name(dtype),
                                 name(*back.dtype), back.name));
  }
  return std::string(tensor_name);
}

}  // namespace kvscope::golden
