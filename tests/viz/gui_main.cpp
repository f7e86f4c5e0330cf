// The application that tests of models, views and windows run in: no display, pinned fonts, no settings of the person
// who runs them.
#include <gmock/gmock.h>

#include <iostream>

#include <QtCore/QStandardPaths>
#include <QtWidgets/QApplication>

#include "viz/view/theme.h"

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QStandardPaths::setTestModeEnabled(true);
  QApplication application(argc, argv);
  QApplication::setApplicationName(QStringLiteral("kvscope-viewer-test"));
  if (!kvscope::viz::load_fonts()) {
    std::cerr << "the embedded fonts are missing: text would be boxes\n";
    return 1;
  }
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
