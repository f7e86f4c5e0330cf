#include "viz/view/time_text.h"

#include <cmath>

#include <QtCore/QCoreApplication>

#include "core/base/grouped.h"

namespace kvscope::viz {
namespace {

// Three significant digits without trailing zeros: 1.25, 12.5, 125, 3.
QString three_digits(double value) {
  return QString::number(value, 'g', value < 999.5 ? 3 : 4);
}

QString two_digits(std::int64_t value) {
  return QStringLiteral("%1").arg(value, 2, 10, QLatin1Char('0'));
}

}  // namespace

QString time_text(std::int64_t time_us) {
  if (time_us < 0) return QString::fromUtf8("−") + time_text(time_us == INT64_MIN ? INT64_MAX : -time_us);
  const auto us = static_cast<double>(time_us);
  if (time_us < 1000) return QCoreApplication::translate("Time", "%1 µs").arg(time_us);
  if (us < 999.5e3) return QCoreApplication::translate("Time", "%1 ms").arg(three_digits(us / 1e3));
  if (us < 99.95e6) return QCoreApplication::translate("Time", "%1 s").arg(three_digits(us / 1e6));
  const std::int64_t seconds = std::llround(us / 1e6);
  if (seconds < 3600)
    return QCoreApplication::translate("Time", "%1 min %2 s")
        .arg(QString::number(seconds / 60), two_digits(seconds % 60));
  return QCoreApplication::translate("Time", "%1 h %2 min")
      .arg(QString::number(seconds / 3600), two_digits(seconds / 60 % 60));
}

QString number_text(std::int64_t number) {
  return QString::fromStdString(grouped(number));
}

}  // namespace kvscope::viz
