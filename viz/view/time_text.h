// Numbers and times of a run as text, for axes and for the values beside the cursor.
#pragma once

#include <cstdint>

#include <QtCore/QString>

namespace kvscope::viz {

// "850 µs", "12.5 ms", "1.25 s", "4 min 07 s", "1 h 02 min". Negative times (a trace may have any clock) keep their
// sign.
[[nodiscard]] QString time_text(std::int64_t time_us);

// Digits in groups of three, as in reports and notes (core/base/grouped.h): "999", "4,096", "1,000,000".
[[nodiscard]] QString number_text(std::int64_t number);

}  // namespace kvscope::viz
