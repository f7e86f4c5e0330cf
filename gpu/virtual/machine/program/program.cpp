#include "gpu/virtual/machine/program/program.h"

#include <fmt/format.h>

#include <limits>

#include "core/base/errors.h"
#include "gpu/virtual/isa/survey.h"
#include "gpu/virtual/machine/program/detail/lower.h"
#include "gpu/virtual/machine/program/source_place.h"

namespace kvscope::ptx {
namespace {

std::string place_of(const Module& module, const Frame& frame) {
  std::string_view path = module.file_of(frame);
  path.remove_prefix(path.find_last_of('/') + 1);  // npos + 1 is 0
  return fmt::format("{}:{}", path, frame.line);
}

InputError errors_of(const Module& module, const std::vector<TextError>& errors) {
  std::vector<Fault> faults;
  for (const TextError& error : errors) {
    const auto line = static_cast<std::size_t>(error.at.line);
    const std::string_view shown = line > 0 && line <= module.lines.size() ? module.lines[line - 1] : "";
    // The part of "file:8:2: error: message\n line\n caret" after the place.
    const std::string whole = to_text(module.file, shown, error);
    const std::string head = fmt::format("{}:{}:{}: error: ", module.file, error.at.line, error.at.column);
    faults.push_back({fmt::format("{}:{}", error.at.line, error.at.column),
                      whole.starts_with(head) ? whole.substr(head.size()) : error.message});
  }
  return {module.file, std::move(faults)};
}

}  // namespace

const Statement& Program::statement(std::int32_t pc) const {
  static const Statement closing = [] {
    Statement s;
    s.opcode = "ret";
    return s;
  }();
  const OpSource& source = sources[static_cast<std::size_t>(pc)];
  const Function& f = module->functions[static_cast<std::size_t>(source.function)];
  const auto number = static_cast<std::size_t>(source.statement);
  return number < f.body.size() ? f.body[number] : closing;
}

std::string_view Program::text(std::int32_t pc) const {
  const std::string_view opcode = statement(pc).opcode;
  if (module->text == nullptr) return opcode;
  const char* const begin = module->text->data();
  const char* const end = begin + module->text->size();
  if (opcode.data() < begin || opcode.data() >= end) return opcode;
  const std::string_view rest(opcode.data(), static_cast<std::size_t>(end - opcode.data()));
  return rest.substr(0, rest.find(';'));
}

std::string Program::source_text(std::int32_t pc) const {
  const std::int32_t shown = shown_frame(*this, pc);
  if (shown < 0) return fmt::format("{}:{}", module->file, placed_statement(*this, pc).at.line);
  const auto frame_at = [this](std::int32_t i) -> const Frame& { return module->frames[static_cast<std::size_t>(i)]; };
  std::string out = place_of(*module, frame_at(shown));
  for (std::int32_t outer = frame_at(shown).outer; outer >= 0; outer = frame_at(outer).outer) {
    out += "  <- " + place_of(*module, frame_at(outer));
  }
  return out;
}

int target_for(const Module& module) {
  return std::max(ProgramOptions{}.target, module.target);
}

std::shared_ptr<const Program> make_program(Module module, const ProgramOptions& options) {
  auto program = std::make_shared<Program>();
  program->options = options;
  program->decoded = decode(module, options.target);
  if (!program->decoded.errors.empty()) throw errors_of(module, program->decoded.errors);
  if (program->decoded.instrs.size() >= std::numeric_limits<std::uint16_t>::max()) {
    throw InputError(module.file, "",
                     fmt::format("{} different instruction words: at most {}", program->decoded.instrs.size(),
                                 std::numeric_limits<std::uint16_t>::max() - 1));
  }
  program->closing_ret = static_cast<std::uint16_t>(program->decoded.instrs.size());
  program->decoded.instrs.push_back(understand("ret"));
  program->module = std::make_shared<const Module>(std::move(module));
  if (options.contract) {
    for (const ContractionPair& pair : contraction_pairs(*program->module, program->decoded)) {
      program->fused.try_emplace({pair.function, pair.sum}, pair.product);
    }
  }
  program->functions.resize(program->module->functions.size());
  place_activation_variables(*program->module, *program);
  for (std::size_t f = 0; f < program->functions.size(); ++f) {
    if (program->module->functions[f].defined) lower_function(static_cast<std::int32_t>(f), options, *program);
  }
  lay_out_kernels(*program->module, *program);
  return program;
}

}  // namespace kvscope::ptx
