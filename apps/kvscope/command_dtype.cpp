// kvscope dtype IN.npy OUT.npy --from bf16 --to e4m3: rounds each element once and prints how many values changed.
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "apps/common/cli.h"
#include "apps/common/help_page.h"
#include "apps/kvscope/commands.h"
#include "core/base/convert.h"
#include "core/base/errors.h"
#include "core/golden/bundle/npy.h"

namespace kvscope::apps {
namespace {

struct DTypeOptions {
  std::string in;
  std::string out;
  std::string from;
  std::string to;
  bool no_saturate = false;
  bool keep_nan_sign = false;
};

// Without e2m1, which packs two elements into a byte: a .npy array cannot represent that.
std::string convertible_names() {
  std::string names;
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    if (dtype != DType::e2m1) names += (names.empty() ? "" : " ") + std::string(name(dtype));
  }
  return names;
}

std::optional<DType> dtype_of_option(const std::string& option, const std::string& text, std::vector<Fault>& faults) {
  const std::optional<DType> dtype = dtype_from_name(text);
  if (!dtype || *dtype == DType::e2m1) {
    faults.push_back(
        {option, fmt::format("'{}' is not a type that can be converted: use one of {}", text, convertible_names())});
  }
  return dtype;
}

// The element type of the stored array: its own, or the bit patterns of `from` where NumPy only has an integer of that
// size.
DType meaning_of(const golden::Tensor& tensor, DType from, const std::string& source) {
  const bool patterns = (tensor.dtype == DType::u8 || tensor.dtype == DType::u16) && bits(tensor.dtype) == bits(from);
  if (tensor.dtype == from || (patterns && is_float(from))) return from;
  const std::string_view next_step =
      tensor.dtype == DType::u8    ? "--from e4m3, e5m2 or e8m0 for bit patterns, u8 for numbers"
      : tensor.dtype == DType::u16 ? "--from f16 or bf16 for bit patterns, u16 for numbers"
                                   : "--from with that name";
  throw InputError(source, "--from",
                   fmt::format("the array holds {}, not {}: use {}", name(tensor.dtype), name(from), next_step));
}

struct Changes {
  std::int64_t rounded = 0;    // another finite value
  std::int64_t overflown = 0;  // finite before, infinite or NaN after
  std::int64_t nans = 0;       // NaN before and after
};

Changes changes(const golden::Tensor& before, const golden::Tensor& after) {
  const auto count = static_cast<std::int64_t>(before.bytes.size()) / size_of(before.dtype);
  Changes changes;
  for (std::int64_t i = 0; i < count; ++i) {
    const double a = load_as_double(before.dtype, before.bytes.data() + i * size_of(before.dtype));
    const double b = load_as_double(after.dtype, after.bytes.data() + i * size_of(after.dtype));
    if (std::isnan(a) && std::isnan(b)) {
      ++changes.nans;
    } else if (std::isfinite(a) && !std::isfinite(b)) {
      ++changes.overflown;
    } else if (a != b) {
      ++changes.rounded;
    }
  }
  return changes;
}

int convert_file(const DTypeOptions& options) {
  std::vector<Fault> faults;
  const std::optional<DType> from = dtype_of_option("--from", options.from, faults);
  const std::optional<DType> to = dtype_of_option("--to", options.to, faults);
  if (!faults.empty()) throw InputError("command line", std::move(faults));

  golden::Tensor in = golden::read_npy(options.in);
  in.dtype = meaning_of(in, *from, options.in);
  const auto count = static_cast<std::int64_t>(in.bytes.size()) / size_of(in.dtype);
  golden::Tensor out{*to, in.shape, std::vector<std::byte>(static_cast<std::size_t>(count * size_of(*to)))};
  convert(*from, in.bytes.data(), *to, out.bytes.data(), count,
          options.no_saturate ? Overflow::non_saturating : Overflow::saturate,
          options.keep_nan_sign ? NanSign::kept : NanSign::dropped);
  golden::write_npy(options.out, out);

  const Changes c = changes(in, out);
  std::cout << fmt::format(
      "{}: {} elements, {} -> {}, {}{}: {} changed value, {} overflowed to infinity or NaN, {} were NaN\n", options.out,
      count, name(*from), name(*to), options.no_saturate ? "not saturating" : "saturating",
      options.keep_nan_sign ? ", sign of NaN kept" : "", c.rounded, c.overflown, c.nans);
  return 0;
}

}  // namespace

void add_dtype(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<DTypeOptions>();
  CLI::App* command =
      app.add_subcommand("dtype", "Convert a .npy array to another element type, rounding each element once");
  command
      ->add_option(
          "IN", options->in,
          "Array to read (.npy). f16, bf16 and the 8-bit floats are read from uint16 and uint8 as bit patterns")
      ->required();
  command->add_option("OUT", options->out, "Array to write (.npy)")->required()->check(writes_file());
  command->add_option("--from", options->from, "Element type of IN, one of: " + convertible_names())
      ->required()
      ->type_name("TYPE");
  command->add_option("--to", options->to, "Element type of OUT, one of the same list")->required()->type_name("TYPE");
  command->add_flag(
      "--no-saturate", options->no_saturate,
      "Convert a value above the largest finite one to infinity or NaN instead of the largest finite one");
  command->add_flag("--keep-nan-sign", options->keep_nan_sign,
                    "Convert a negative NaN to a negative NaN (e4m3, e5m2: 0xff). Default: every NaN becomes the "
                    "positive one (0x7f)");
  add_examples(*command,
               {"python3 -c 'import numpy; numpy.save(\"x.npy\", numpy.linspace(-500, 500, 9, dtype=\"f4\"))'",
                "kvscope dtype x.npy x_e4m3.npy --from f32 --to e4m3"});
  command->callback([options, &chosen] { chosen = [options] { return convert_file(*options); }; });
}

}  // namespace kvscope::apps
