// A report of the virtual GPU in the words of a lab: the lines of the student's file, names of variables as they are
// declared, no registers, no options of other commands.
//
//   fault_of      RACE line 18 and line 26: no order between them; thread 1 has not synchronized since it began
//   report_case   RACE read-after-write  shared 0x04400 (full + 0)  kernel tile  cta (0,0,0)
//                   write  thread 0 (warp 0 lane 0)  ...
//   report_picture  the two accesses of a race, and the order that is missing between them
#pragma once

#include <string>
#include <string_view>

#include "apps/labs/kernel_run.h"
#include "apps/labs/picture.h"

namespace kvscope::labs {

// The report that is shown: the first error, or the first warning where there is none. Null: no reports.
[[nodiscard]] const ptx::Report* shown_report(const KernelRun& run);

// The shown report in one line; empty when the launch finished without reports. The whole report is `report_case`.
[[nodiscard]] std::string fault_of(const KernelRun& run);
[[nodiscard]] std::string report_case(const KernelRun& run);

// Variables as the student's file names them: "_ZZ4tileE4full + 0" -> "full + 0". Longer names than a compiler makes of
// a lab's variables stay.
[[nodiscard]] std::string with_declared_names(std::string_view text);

// The innermost line of the student's file in a chain of inlined places: the file of the last place is the student's.
// Examples: "copies.h:9 <- stream.cu:14" -> 14; "standard.py:287 <- decode.py:24" -> 24; -1: none is known.
[[nodiscard]] int student_line(std::string_view places);

// The lines of the student's file with the most sectors of global memory, the first ones of at most `most`:
// "line 12: 1592 sectors   const int block = table[...]".
[[nodiscard]] std::string sector_lines(const KernelRun& run, std::size_t most = 3);

// Time runs downward, one column for each of the two accesses, with the lines of the student's file. Empty where the
// shown report does not have two accesses.
[[nodiscard]] CasePicture report_picture(const KernelRun& run);

}  // namespace kvscope::labs
