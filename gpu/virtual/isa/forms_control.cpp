// Control flow. PTX ISA, "Control Flow Instructions", "Miscellaneous Instructions".
#include "gpu/virtual/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kControlForms[] = {
    {"bra", "uni?", "L"},
    {"brx.idx", "uni?", "u32 L"},
    {"call", "uni?", "..."},
    {"ret", "uni?", ""},
    {"exit", "", ""},
    {"trap", "", ""},
    {"brkpt", "", ""},
    {"nanosleep", "u32", "T"},
    {"griddepcontrol", "wait|launch_dependents", ""},
    {"pmevent", "", "#u32"},
    {"setmaxnreg", "inc|dec sync aligned u32", "#u32", kOnly90a},
};

}  // namespace

std::span<const Form> control_forms() {
  return kControlForms;
}

}  // namespace kvscope::ptx
