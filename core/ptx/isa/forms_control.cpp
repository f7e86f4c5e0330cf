// Where a thread goes on. PTX ISA, "Control Flow Instructions", "Miscellaneous Instructions".
#include "core/ptx/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kForms[] = {
    {Opcode::bra, "bra", "uni?", "L"},
    {Opcode::brx, "brx.idx", "uni?", "u32 L"},
    {Opcode::call, "call", "uni?", "..."},
    {Opcode::ret, "ret", "uni?", ""},
    {Opcode::exit, "exit", "", ""},
    {Opcode::trap, "trap", "", ""},
    {Opcode::brkpt, "brkpt", "", ""},
    {Opcode::nanosleep, "nanosleep", "u32", "T"},
    {Opcode::griddepcontrol, "griddepcontrol", "wait|launch_dependents", ""},
    {Opcode::pmevent, "pmevent", "", "#u32"},
    {Opcode::setmaxnreg, "setmaxnreg", "inc|dec sync aligned u32", "#u32", kOnly90a},
};

}  // namespace

std::span<const Form> control_forms() {
  return kForms;
}

}  // namespace kvscope::ptx
