#include "apps/launch/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <type_traits>
#include <utility>

#include "apps/common/cli.h"
#include "apps/common/help_page.h"
#include "apps/launch/policy.h"
#include "core/base/errors.h"
#include "core/base/numbers.h"
#include "gpu/virtual/machine/cta_sample.h"

namespace kvscope::apps {

void add_kernel_limit_options(CLI::App& command, ptx::LaunchLimits& limits, std::int64_t& memory) {
  const auto limit = [&](const char* name, std::int64_t& value, const char* help, const char* type = "N") {
    add_limit_option(command, name, value, help, type);
  };
  limit("--max-instructions", limits.instructions, "Stop after N warp instructions");
  limit("--max-memory", memory, "Device memory: arrays, variables and malloc blocks together", "BYTES");
  limit("--max-local", limits.local_bytes, "Local memory of all threads that have started", "BYTES");
  limit("--max-printed", limits.printed_bytes, "Output of printf", "BYTES");
  limit("--max-heap", limits.heap_bytes, "Malloc blocks of a kernel; past it malloc returns 0", "BYTES");
  limit("--max-mallocs", limits.heap_blocks, "Calls of malloc that return a block");
  limit("--max-copies", limits.copies, "Asynchronous copies and their groups in flight, per CTA");
}

void add_launch_file(CLI::App& command, LaunchRequest& request) {
  command.add_option("FILE", request.path, kPtxFileHelp)->required();
}

void add_launch_options(CLI::App& command, LaunchRequest& request) {
  command
      .add_option("--entry", request.entry,
                  "Kernel to run, by its name in PTX or C++, such as ns::decode<64>, or the beginning of one "
                  "[default: the only kernel of the file]")
      ->type_name("NAME");
  const auto extents = [&](const char* name, std::vector<std::int64_t>& value, const char* help, NumbersRange range) {
    add_numbers<std::int64_t>(command, name, value, help, range)->type_name("X[,Y[,Z]]");
  };
  extents("--grid", request.grid, "CTAs of the grid, such as 4 or 4,2 [default: 1]", {.most = 3});
  extents("--block", request.block, "Threads of a CTA, such as 64 or 32,4 [default: 1]", {.most = 3});
  extents("--cluster", request.cluster, "CTAs of a cluster [default: no clusters]", {.most = 3, .least = 1});
  command.add_option("--smem", request.shared, "Dynamic shared memory of a CTA")
      ->type_name("BYTES")
      ->capture_default_str();
  command
      .add_option("--arg", request.args,
                  "Value of the next kernel parameter, or of a named one or a field: NAME=VALUE, NAME.FIELD=VALUE; see "
                  "below")
      ->type_name("VALUE")
      ->allow_extra_args(false);
  command
      .add_option(
          "--struct", request.structs,
          "Definition of a struct that the kernel takes by value, for its fields: a C header or a .json layout, "
          "such as 0=params.h:Params; may be repeated [default: from debug information, nvcc -G]")
      ->type_name("NAME=FILE[:TYPE]")
      ->allow_extra_args(false);
  command.add_option("--policy", request.policy, kPolicyHelp)->type_name("POLICY")->capture_default_str();
  command.add_option("--target", request.target, kTargetHelp)->check(at_least(1))->type_name("N");
  add_sum_option(command, request.sum);
  command.add_option("--ctas", request.ctas, std::string(ptx::kCtasHelp))->type_name("LIST");
  command.add_flag("--cooperative", request.cooperative, "Start all CTAs together, as a cooperative launch does");
  command.add_flag("--contract", request.contract,
                   "Fuse a product and a sum into one fma where the assembler does, so that the last bit is as on "
                   "hardware");
  command.add_flag("--strict", request.strict,
                   "Reject a file with unsupported instructions, even if the kernel does not execute them");
  add_kernel_limit_options(command, request.limits, request.max_memory);
  add_limit_option(command, "--max-ctas", request.limits.cooperative_ctas, "CTAs of a cooperative launch", "N");
}

void add_argument_help(CLI::App& command) {
  add_help_section(
      command, "Values of --arg",
      {"42, -1, 0x10, 1.5           a number that fits the type of the parameter",
       "x.npy                       a pointer to a copy of the file's array",
       "w.npz:NAME                  a pointer to a copy of one tensor of the file; also w.safetensors:NAME",
       "f32[64], u8[4,16]           a pointer to a new array whose elements are not initialized",
       "@2, @2+64, @p.q+0x40        a pointer into an array given before, plus bytes",
       "null                        the pointer 0",
       "map:k.json@2                a tensor map (see kvscope tma check) over the array of parameter 2, from 0",
       "map:k.json@x.npy            a tensor map over a new array, which only the map points to; also @f32[64,64]",
       "map:k.json                  a tensor map whose base is a device address",
       "@params.json                a struct: {\"fields\": {\"n\": 64}, \"at\": {\"16\": \"@0+32\"}, \"hex\": "
       "\"00ff...\"}"});
  add_help_section(command, "Names of --arg",
                   {"2=VALUE                     parameter 2, from 0",
                    "n=VALUE                     the parameter n of the source, if the file has debug information",
                    "p.in[1].page=VALUE          a field of the struct p; fields that are not set are 0"});
}

void add_limit_option(CLI::App& command, const char* name, std::int64_t& value, const char* help, const char* type,
                      LimitRange range) {
  command.add_option(name, value, help)
      ->type_name(type)
      ->capture_default_str()
      ->check(CLI::Validator(
          [range](const std::string& text) {
            const auto number = whole_number<std::int64_t>(text);
            if (number && *number >= range.least && *number <= range.most) return std::string();
            const bool open = range.most == std::numeric_limits<std::int64_t>::max();
            return fmt::format("'{}' is not a whole number from {} to {}", text, range.least,
                               open ? "2^63 - 1" : std::to_string(range.most));
          },
          ""))
      ->group("Limits");
}

void add_sum_option(CLI::App& command, std::string& sum) {
  command
      .add_option(
          "--sum", sum,
          "How matrix instructions add products. seq: one after the other, each sum rounded; exact: all, rounded "
          "once; hopper: aligned and truncated, with the bits of an H100 where it was measured")
      ->check(CLI::IsMember(std::vector<std::string>(ptx::kSumNames.begin(), ptx::kSumNames.end())))
      ->capture_default_str();
}

// --- as words --------------------------------------------------------------------------------------------------------

namespace {

class Words {
 public:
  template <class Value>
  void add(const char* option, const Value& value, const Value& otherwise) {
    if (value == otherwise) return;
    words_.emplace_back(option);
    if constexpr (std::is_same_v<Value, std::string>) {
      words_.push_back(value);
    } else if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) {
      words_.push_back(fmt::format("{}", fmt::join(value, ",")));
    } else if constexpr (!std::is_same_v<Value, bool>) {
      words_.push_back(fmt::format("{}", value));
    }
  }
  // `option=value`: a value that begins with a dash, such as -1, is no option.
  void add_each(const char* option, const std::vector<std::string>& values) {
    for (const std::string& value : values) {
      if (value.starts_with('-')) {
        words_.push_back(fmt::format("{}={}", option, value));
      } else {
        words_.emplace_back(option);
        words_.push_back(value);
      }
    }
  }
  [[nodiscard]] std::vector<std::string> take() { return std::move(words_); }

 private:
  std::vector<std::string> words_;
};

}  // namespace

std::vector<std::string> to_words(const LaunchRequest& request) {
  const LaunchRequest defaults;
  Words words;
  const auto option = [&](const char* name, auto LaunchRequest::*value) {
    words.add(name, request.*value, defaults.*value);
  };
  const auto limit = [&](const char* name, std::int64_t ptx::LaunchLimits::*value) {
    words.add(name, request.limits.*value, defaults.limits.*value);
  };
  option("--entry", &LaunchRequest::entry);
  option("--grid", &LaunchRequest::grid);
  option("--block", &LaunchRequest::block);
  option("--cluster", &LaunchRequest::cluster);
  option("--smem", &LaunchRequest::shared);
  words.add_each("--arg", request.args);
  words.add_each("--struct", request.structs);
  option("--policy", &LaunchRequest::policy);
  if (request.target) words.add("--target", *request.target, -1);
  option("--sum", &LaunchRequest::sum);
  option("--ctas", &LaunchRequest::ctas);
  option("--cooperative", &LaunchRequest::cooperative);
  option("--contract", &LaunchRequest::contract);
  option("--strict", &LaunchRequest::strict);
  limit("--max-instructions", &ptx::LaunchLimits::instructions);
  option("--max-memory", &LaunchRequest::max_memory);
  limit("--max-local", &ptx::LaunchLimits::local_bytes);
  limit("--max-printed", &ptx::LaunchLimits::printed_bytes);
  limit("--max-heap", &ptx::LaunchLimits::heap_bytes);
  limit("--max-mallocs", &ptx::LaunchLimits::heap_blocks);
  limit("--max-copies", &ptx::LaunchLimits::copies);
  limit("--max-ctas", &ptx::LaunchLimits::cooperative_ctas);
  return words.take();
}

LaunchRequest read_launch(const std::string& path, const std::vector<std::string>& words) {
  LaunchRequest request;
  CLI::App app;
  app.set_help_flag();
  add_launch_options(app, request);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    throw InputError("launch", "", error.what());
  }
  request.path = path;
  return request;
}

}  // namespace kvscope::apps
