#include "viz/window/fault_words.h"

#include <exception>

#include <QtCore/QCoreApplication>

#include "core/base/errors.h"

namespace kvscope::viz {

QStringList current_fault_lines() {
  QStringList lines;
  try {
    throw;
  } catch (const std::exception& error) {
    for (const std::string& line : fault_lines(error)) lines.push_back(QString::fromStdString(line));
  } catch (...) {
    lines.push_back(QCoreApplication::translate("kvscope::viz::Job", "an error without a message: please report it"));
  }
  return lines;
}

}  // namespace kvscope::viz
