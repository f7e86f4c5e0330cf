// A window with a scenario that is changed in the panel: what the panel shows, and what a person does there.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include <QtCore/QFile>
#include <QtGui/QAction>
#include <QtWidgets/QApplication>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QTextBrowser>
#include <QtWidgets/QTreeView>

#include "tests/viz/window/window_support.h"
#include "viz/window/scenario_panel.h"

namespace kvscope::viz::testing_support {

class ScenarioTest : public testing_support::WindowTest {
 protected:
  [[nodiscard]] ScenarioPanel& panel() const { return *window->findChild<ScenarioPanel*>(); }
  [[nodiscard]] QTreeView& tree() const { return *panel().findChild<QTreeView*>(); }
  [[nodiscard]] ScenarioModel& model() const { return panel().model(); }
  [[nodiscard]] std::string words() const { return panel().findChild<QTextBrowser*>()->toPlainText().toStdString(); }
  [[nodiscard]] QAction& action(Do id) const { return *window->actions()[id]; }
  [[nodiscard]] QModelIndex field(const char* path) const {
    return model().index_of(QString::fromLatin1(path), ScenarioModel::kValue);
  }
  [[nodiscard]] std::string value(const char* path) const { return field(path).data().toString().toStdString(); }
  [[nodiscard]] std::int64_t page_size() const { return document().run().facts().page_size; }
  [[nodiscard]] Scenario shown() const { return *document().run().facts().scenario; }
  // All messages: titles and lines.
  [[nodiscard]] QString message() const {
    QStringList texts;
    for (const char* topic : {"open", "write"}) texts += window->messages().lines(QString::fromLatin1(topic));
    for (const QLabel* label : window->messages().findChildren<QLabel*>()) texts += label->text();
    texts.removeAll(QString());
    return texts.join(QLatin1Char('\n'));
  }

  void set(const char* path, const char* text) { model().setData(field(path), QString::fromLatin1(text)); }
  [[nodiscard]] bool ran() const {  // no run is awaited
    return wait_until([&] { return words().find("Running the changed scenario") == std::string::npos; });
  }
  void show_panel() {
    action(Do::show_scenario).trigger();
    ASSERT_TRUE(tree().isVisible());
    tree().expandAll();
  }
  // Opens the editor of a field and types into it.
  void type(const char* path, const char* text) {
    tree().setFocus();
    tree().setCurrentIndex(field(path));
    press(Qt::Key_F2);
    ASSERT_NE(qobject_cast<QLineEdit*>(QApplication::focusWidget()), nullptr);
    write(text);
  }
  [[nodiscard]] QFileDialog* save_dialog() {
    action(Do::save_scenario).trigger();
    const QList<QFileDialog*> dialogs = window->findChildren<QFileDialog*>();
    return dialogs.isEmpty() ? nullptr : dialogs.back();
  }
  void save_as(const QString& path) {
    QFileDialog* dialog = save_dialog();
    ASSERT_NE(dialog, nullptr);
    Q_EMIT dialog->fileSelected(path);
    dialog->close();
  }
  // A copy of a scenario of the gallery that can be written.
  [[nodiscard]] QString copy_of(const char* name) {
    const QString path = folder.filePath(QStringLiteral("copy.json"));
    EXPECT_TRUE(QFile::copy(path_of(name), path));
    EXPECT_TRUE(QFile::setPermissions(path, QFile::ReadOwner | QFile::WriteOwner));
    return path;
  }
  void start_again() {
    window->close();
    window.reset();
    start();
  }
};

}  // namespace kvscope::viz::testing_support
