// The last launch of each PTX file, in the settings file kernels.ini: the newest kMost of them.
#pragma once

#include <optional>

#include <QtCore/QString>

#include "viz/playback/kernel_run.h"

namespace kvscope::viz {

class KernelLaunches {
 public:
  static constexpr int kMost = 30;

  explicit KernelLaunches(const QString& folder);  // empty: nothing is kept
  [[nodiscard]] std::optional<KernelLaunch> find(const QString& path) const;
  void keep(const KernelLaunch& launch);

 private:
  QString file_;
};

}  // namespace kvscope::viz
