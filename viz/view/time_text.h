// Numbers and times of a run as text, for axes and for the values beside the cursor.
#pragma once

#include <cstdint>

#include <QtCore/QString>

namespace kvscope::viz {

// "850 µs", "12.5 ms", "1.25 s", "4 min 07 s", "1 h 02 min". Negative times (a trace may have any clock) keep their
// sign.
[[nodiscard]] QString time_text(std::int64_t time_us);

// Numbers of five or more digits are grouped by three with narrow no-break spaces: "9999", "12 031", "1 000 000".
[[nodiscard]] QString number_text(std::int64_t number);

}  // namespace kvscope::viz
