// Kernels on the virtual GPU: modules, signatures, launches.
//
// A launch copies each array to the device, runs, and keeps what it copied: the trace of its tiles is made by the same
// launch again, which gives the same bytes and steps.
#include <algorithm>
#include <cstring>
#include <tuple>

#include "apps/python/bindings/bindings.h"
#include "core/base/errors.h"
#include "core/tma/tensor_map_json.h"
#include "core/tma/tensor_map_record.h"
#include "core/tma/tensor_map_rules.h"
#include "core/trace/trace_writer.h"
#include "gpu/virtual/check/check_names.h"
#include "gpu/virtual/check/counters.h"
#include "gpu/virtual/debug/tile_trace.h"
#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/machine/launch_checks.h"
#include "gpu/virtual/machine/launch_parts.h"
#include "gpu/virtual/machine/schedule.h"
#include "gpu/virtual/machine/warp/scheduler.h"
#include "gpu/virtual/text/kernel_names.h"
#include "gpu/virtual/text/launch_notes.h"
#include "gpu/virtual/text/parameter_layout.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::python {
namespace {

constexpr std::uint64_t kSlice = 500;  // warp instructions between two interruption points: below a millisecond

struct Module {
  ptx::Module text;
  int target = 90;
};

// Bytes to write at an offset of a parameter: an address or a tensor map.
struct Patch {
  std::int64_t at = 0;      // [bytes] in the parameter
  std::size_t array = 0;    // number of the array
  std::int64_t offset = 0;  // [bytes] in the array
  std::string map;          // JSON of a tensor map; empty: the address
};
struct Argument {
  std::vector<std::byte> bytes;
  std::vector<Patch> patches;
};
struct Array {
  std::string name;
  std::vector<std::byte> before, after;
};

struct Launch {
  std::shared_ptr<const Module> module;
  ptx::LaunchConfig config;
  std::vector<Argument> arguments;
  std::vector<Array> arrays;
  ptx::CheckOptions checks;
  std::int64_t most_bytes = 0;
  ptx::SumMode sum = ptx::SumMode::seq;
  ptx::LaunchResult result;
  std::optional<ptx::OpCounts> total;
  std::vector<ptx::LineCounts> lines;
  std::array<std::int64_t, ptx::kInstructionClasses> classes{};
};

std::vector<std::byte> bytes_of(const py::handle& object) {
  const auto text = object.cast<std::string>();
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

void write_patch(const Patch& patch, const std::vector<std::uint64_t>& addresses, int target,
                 std::vector<std::byte>& bytes) {
  const std::uint64_t address = addresses.at(patch.array) + static_cast<std::uint64_t>(patch.offset);
  std::vector<std::byte> value(sizeof address);
  std::memcpy(value.data(), &address, sizeof address);
  if (!patch.map.empty()) {
    TensorMapFile file = parse_tensor_map(patch.map, "TensorMap");
    file.map.base += address;
    check_tensor_map(file.map, target >= 100 ? TmaTarget::sm_100 : TmaTarget::sm_90).throw_if_broken("TensorMap");
    value = map_bytes(file.map, target);
  }
  if (patch.at < 0 || patch.at + std::ssize(value) > std::ssize(bytes)) {
    throw GeometryError("an argument of " + std::to_string(value.size()) + " bytes does not fit a parameter of " +
                        std::to_string(bytes.size()) + " bytes");
  }
  std::copy(value.begin(), value.end(), bytes.begin() + patch.at);
}

// One launch on a fresh device; `watch` adds monitors to the checks, `finish` looks at the results. An interruption
// point is between two slices.
template <class Watch, class Finish>
void on_device(const Launch& launch, const Watch& watch, const Finish& finish) {
  ptx::Device device(ptx::ProgramOptions{.target = launch.module->target, .sum = launch.sum}, launch.most_bytes);
  const ptx::LoadedModule& module = device.load(launch.module->text);
  std::vector<std::uint64_t> addresses;
  for (const Array& array : launch.arrays) {
    const std::int64_t bytes = std::max<std::int64_t>(std::ssize(array.before), 1);
    addresses.push_back(device.memory().allocate(bytes, array.name));
    if (!array.before.empty()) device.memory().write(addresses.back(), array.before);
  }
  std::vector<ptx::ParamValue> values;
  for (Argument argument : launch.arguments) {
    for (const Patch& patch : argument.patches) write_patch(patch, addresses, launch.module->target, argument.bytes);
    values.emplace_back(std::move(argument.bytes));
  }
  ptx::LaunchConfig config = launch.config;
  config.params = ptx::pack_params(module, config.kernel, values);
  ptx::Checks checks(launch.checks);
  watch(checks, *module.program);
  ptx::Launch running = device.begin(module, config, checks.monitor());
  ptx::run_parts(running);
  while (running.status == ptx::LaunchStatus::running) {
    ptx::run(running, kSlice);
    interruption_point();
  }
  finish(running, device, addresses);
}

std::shared_ptr<Launch> launch(const std::shared_ptr<Module>& module, const std::string& kernel,
                               const py::dict& options, const py::list& arrays, const py::list& arguments) {
  auto out = std::make_shared<Launch>();
  out->module = module;
  out->config.kernel = kernel;
  out->config.grid = *option<std::array<std::int64_t, 3>>(options, "grid");
  out->config.block = *option<std::array<std::int64_t, 3>>(options, "block");
  if (const auto cluster = option<std::array<std::int64_t, 3>>(options, "cluster")) out->config.cluster = *cluster;
  out->config.dynamic_shared = option<std::int64_t>(options, "shared").value_or(0);
  out->config.options.cooperative = option<bool>(options, "cooperative").value_or(false);
  out->config.options.ctas = option<std::string>(options, "ctas").value_or("");
  out->config.options.jobs = option<std::int64_t>(options, "jobs").value_or(1);
  out->config.options.max_reports = limit<int>(options, "max_reports", 0).value_or(20);
  out->config.options.shared_opt_in = ptx::most_shared(module->target);
  if (const auto most = limit<std::int64_t>(options, "max_instructions", 1)) {
    out->config.options.limits.instructions = *most;
  }
  const std::string order = *option<std::string>(options, "schedule");
  const auto schedule = ptx::policy_from_name(order);
  if (!schedule) throw InputError("arguments", "schedule", ptx::policy_fault(order));
  out->config.options.policy = schedule->policy;
  out->config.options.seed = schedule->seed;
  out->sum = ptx::sum_from_name(*option<std::string>(options, "sum")).value();
  out->checks = ptx::checks_of(*option<std::vector<std::string>>(options, "checks"));
  out->most_bytes = limit<std::int64_t>(options, "max_memory", 1).value_or(std::int64_t{4} << 30);
  for (const py::handle& item : arrays) {
    const auto [name, buffer] = item.cast<std::pair<std::string, py::buffer>>();
    const py::buffer_info info = buffer.request();
    if (info.ndim != 1 || info.itemsize != 1) throw InputError("arguments", name, "is not a buffer of bytes");
    const auto* first = static_cast<const std::byte*>(info.ptr);
    out->arrays.push_back({name, {first, first + info.size}, {}});
  }
  for (const py::handle& item : arguments) {
    const auto [bytes, patches] = item.cast<std::pair<py::bytes, py::list>>();
    Argument argument{bytes_of(bytes), {}};
    for (const py::handle& one : patches) {
      auto [at, array, offset, map] = one.cast<std::tuple<std::int64_t, std::size_t, std::int64_t, std::string>>();
      argument.patches.push_back({at, array, offset, std::move(map)});
    }
    out->arguments.push_back(std::move(argument));
  }
  const bool counts = option<bool>(options, "counters").value_or(true);
  without_lock([&] {
    std::optional<ptx::Counters> counters;
    on_device(
        *out,
        [&](ptx::Checks& checks, const ptx::Program& program) {
          if (counts) checks.add(counters.emplace(program));
        },
        [&](ptx::Launch& ended, ptx::Device& device, const std::vector<std::uint64_t>& addresses) {
          out->result = ptx::result_of(ended);
          for (std::size_t i = 0; i < addresses.size(); ++i) {
            Array& array = out->arrays[i];
            if (!array.before.empty()) array.after = device.memory().read(addresses[i], std::ssize(array.before));
          }
          if (counters) {
            out->total = counters->total();
            out->lines = counters->by_line();
            out->classes = counters->by_class();
          }
        });
  });
  return out;
}

// The notes of a launch that is still to run. `arrays`: (number of the parameter, type of the elements, the parameter's
// name or "").
std::vector<std::string> notes(const Module& module, const std::string& kernel, bool block_given,
                               const std::vector<std::tuple<std::size_t, std::string, std::string>>& arrays) {
  std::vector<ptx::ArrayArgument> given;
  for (const auto& [parameter, dtype, name] : arrays)
    given.push_back({parameter, dtype_from_name(dtype).value(), name});
  const auto function = static_cast<std::size_t>(module.text.find_function(kernel));
  std::vector<std::string> out = ptx::element_notes(module.text, module.text.functions.at(function), given);
  if (block_given) return out;  // before the search through the module
  if (const std::optional<std::string> block = ptx::missing_block_note(module.text, "block")) {
    out.insert(out.begin(), *block);
  }
  return out;
}

py::dict counts_dict(const ptx::OpCounts& c) {
  py::dict out;
  out["runs"] = c.runs;
  out["lanes"] = c.lanes;
  out["divergent"] = c.divergent;
  out["splits"] = c.splits;
  out["waits"] = c.waits;
  out["wavefronts"] = c.wavefronts;
  out["ideal_wavefronts"] = c.ideal_wavefronts;
  out["sectors"] = c.sectors;
  out["ideal_sectors"] = c.ideal_sectors;
  out["copies"] = c.copies;
  out["copied_bytes"] = c.copied_bytes;
  return out;
}

py::dict results(const Launch& launch) {
  py::dict out;
  py::list reports, lines;
  for (const ptx::Report& report : launch.result.reports) {
    py::dict one;
    std::vector<std::string> sources;
    py::list parties;
    for (const ptx::ReportParty& party : report.parties) {
      sources.push_back(party.source);
      py::dict with;
      with["action"] = party.action;
      with["actor"] = party.actor;
      with["thread"] = party.thread;
      with["warp"] = party.warp;
      with["opcode"] = party.opcode;
      with["source"] = party.source;
      parties.append(with);
    }
    py::dict address;
    address["known"] = report.address.known;
    address["space"] = std::string(name(report.address.space));
    address["symbol"] = ptx::declared_name(report.address.symbol);
    address["offset"] = report.address.offset;
    address["bytes"] = report.address.bytes;
    one["kind"] = std::string(name(report.kind));
    one["severity"] = std::string(name(report.severity));
    one["cta"] = report.cta;
    one["step"] = report.step;
    one["message"] = report.message;
    one["hint"] = report.hint;
    one["sources"] = sources;
    one["parties"] = parties;
    one["address"] = address;
    one["repeated"] = report.repeated;
    one["text"] = to_text(report);
    reports.append(one);
  }
  for (const ptx::LineCounts& line : launch.lines) {
    py::dict one = counts_dict(line.counts);
    one["source"] = line.source;
    lines.append(one);
  }
  py::dict classes;
  for (int c = 0; c < ptx::kInstructionClasses; ++c) {
    classes[py::str(std::string(name(static_cast<ptx::InstructionClass>(c))))] =
        launch.classes[static_cast<std::size_t>(c)];
  }
  out["finished"] = launch.result.status == ptx::LaunchStatus::finished;
  out["clean"] = launch.result.clean();
  out["steps"] = launch.result.steps;
  out["ctas"] = launch.result.ctas;
  out["grid_ctas"] = launch.result.grid_ctas;
  out["sum"] = std::string(name(launch.sum));
  out["threads"] = launch.result.threads;
  out["one_thread"] = launch.result.one_thread;
  out["printed"] = py::bytes(launch.result.printed);
  out["repeated_reports"] = launch.result.repeated_reports;
  out["reports"] = reports;
  out["lines"] = lines;
  out["classes"] = classes;
  out["counters"] = launch.total ? py::object(counts_dict(*launch.total)) : py::none();
  return out;
}

// The bytes of array `number` that the kernel left; None where they are those before the launch.
py::object changed(const Launch& launch, std::size_t number) {
  const Array& array = launch.arrays.at(number);
  if (array.after == array.before) return py::none();
  return py::bytes(reinterpret_cast<const char*>(array.after.data()), array.after.size());
}

std::int64_t write_trace(const Launch& launch, const std::string& path, std::int32_t cta, bool lanes) {
  check_index("cta", cta, launch.config.grid[0] * launch.config.grid[1] * launch.config.grid[2], "CTAs of the grid");
  return without_lock([&] {
    trace::TraceWriter writer(path, trace::Detail::full,
                              {{"producer", "kvscope " KVSCOPE_VERSION}, {"kernel", launch.config.kernel}});
    ptx::TileTrace tiles(writer, {.cta = cta, .lanes = lanes});
    on_device(
        launch, [&](ptx::Checks& checks, const ptx::Program&) { checks.add(tiles); },
        [](const ptx::Launch&, const ptx::Device&, const std::vector<std::uint64_t>&) {});
    writer.finish();
    return tiles.tiles();
  });
}

py::list fields_of(const ptx::ParameterLayout& layout) {
  py::list fields;
  for (const ptx::ParameterField& field : layout.fields) {
    const bool whole = field.type != ptx::Type::none;
    fields.append(py::make_tuple(field.path, field.offset, field.bytes,
                                 whole ? std::string(ptx::name(field.type)) : std::string(), field.pointer,
                                 field.type_name));
  }
  return fields;
}

py::list kernels(const Module& module) {
  py::list out;
  for (std::size_t f = 0; f < module.text.functions.size(); ++f) {
    const ptx::Function& function = module.text.functions[f];
    if (!function.entry || !function.defined) continue;
    const std::vector<ptx::ParameterLayout> layouts = ptx::layouts_from_debug_info(module.text, function);
    py::list parameters;
    for (std::size_t p = 0; p < function.parameters.size(); ++p) {
      const ptx::Variable& variable = module.text.variables[static_cast<std::size_t>(function.parameters[p])];
      py::dict one;
      one["ptx_name"] = std::string(variable.name);
      one["bytes"] = variable.bytes;
      one["type"] = variable.extents.empty() ? std::string(ptx::name(variable.type)) : std::string();
      py::list fields;
      if (p < layouts.size()) {
        one["name"] = layouts[p].name;
        one["type_name"] = layouts[p].type_name;
        fields = fields_of(layouts[p]);
      }
      one["fields"] = fields;
      parameters.append(one);
    }
    py::dict kernel;
    kernel["name"] = std::string(function.name);
    kernel["short_name"] = ptx::short_name(module.text, static_cast<std::int32_t>(f));
    kernel["demangled"] = ptx::demangled(function.name);
    kernel["parameters"] = parameters;
    out.append(kernel);
  }
  return out;
}

}  // namespace

void bind_launch(py::module_& module) {
  py::class_<Module, std::shared_ptr<Module>>(module, "Module")
      .def(py::init([](std::string text, std::string name, std::optional<int> target) {
        const py::gil_scoped_release release;
        ptx::Module parsed = ptx::parse_module(std::move(text), std::move(name));
        const int of_file = ptx::target_for(parsed);
        return std::make_shared<Module>(Module{std::move(parsed), target.value_or(of_file)});
      }))
      .def("kernels", &kernels)
      .def("find", [](const Module& self, const std::string& asked) {
        std::vector<std::string> names;
        for (const std::int32_t f : ptx::find_kernels(self.text, asked)) {
          names.emplace_back(self.text.functions[static_cast<std::size_t>(f)].name);
        }
        return names;
      });
  py::class_<Launch, std::shared_ptr<Launch>>(module, "Launch")
      .def("results", &results)
      .def("changed", &changed)
      .def("trace", &write_trace);
  module.def("launch", &launch);
  module.def("launch_notes", &notes);
  module.def("struct_layout", [](const std::string& text, const std::string& type) {
    const ptx::ParameterLayout layout = ptx::layout_from_header(text, "header", type);
    return py::make_tuple(layout.type_name, layout.bytes, fields_of(layout));
  });
  module.def("check_names", &ptx::check_names);
  module.def("sum_names", [] { return std::vector<std::string>(ptx::kSumNames.begin(), ptx::kSumNames.end()); });
  module.def("most_shared", [](int target) { return ptx::most_shared(target); });
}

}  // namespace kvscope::python
