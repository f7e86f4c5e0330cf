// The launch as a form: fields and back, the kernels of a file; and the launches that are kept.
#include "viz/window/kernel_launch_panel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <QtCore/QFile>
#include <QtCore/QTemporaryDir>
#include <QtGui/QClipboard>
#include <QtGui/QGuiApplication>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QFormLayout>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QPushButton>

#include "core/base/errors.h"
#include "tests/property.h"
#include "tests/viz/window/fake_kernel.h"
#include "viz/window/kernel_launches.h"

namespace kvscope::viz::kernel_launch_panel_test {
namespace {

using testing::ElementsAre;
using testing_support::FakeKernels;

// Words with everything that means something to a shell or a settings file.
std::string word() {
  std::string out;
  for (const char c : prop::text_of(" \t\n'\"\\ab,;=@%#$(){}-/~")) out += c == '~' ? "\xc3\xa4" : std::string(1, c);
  return out;
}
std::vector<std::string> words() {
  std::vector<std::string> out(prop::in_range<std::size_t>(0, 6));
  for (std::string& w : out) w = word();
  return out;
}

// --- the form --------------------------------------------------------------------------------------------------------

class KernelLaunchPanelTest : public testing::Test {
 protected:
  KernelLaunchPanelTest() { panel.show(); }

  void set(const char* file, KernelLaunch launch = {}) {
    launch.path = file;
    panel.set_file(FakeKernels::file(file), launch);
  }
  [[nodiscard]] QLineEdit* find(const char* name) const {
    for (QLineEdit* f : panel.findChildren<QLineEdit*>()) {
      if (f->accessibleName() == QLatin1String(name)) return f;
    }
    return nullptr;
  }
  QLineEdit& field(const char* name) const {
    QLineEdit* const f = find(name);
    return f != nullptr ? *f : throw std::runtime_error(name);
  }
  [[nodiscard]] QComboBox& kernel() const { return *panel.findChild<QComboBox*>(); }
  [[nodiscard]] std::string command() const { return panel.findChild<QPlainTextEdit*>()->toPlainText().toStdString(); }

  KernelLaunchPanel panel{[](const KernelLaunch& launch) { return FakeKernels::command(launch); }};
};

constexpr const char* kOne = "/made/up/scale.ptx";
constexpr const char* kTwo = "/made/up/two.ptx";

TEST_F(KernelLaunchPanelTest, AnyLaunchIsReadBackAsItWasSet) {
  EXPECT_TRUE(prop::check([&] {
    const auto text = [] { return prop::text_of("0123456789,ab@='\"\\"); };  // without blanks at its ends
    KernelLaunch launch;
    launch.path = kTwo;
    const bool copies = prop::any<bool>();
    launch.entry = copies ? "_Z4copy6Params" : "_Z5scalePff";
    launch.grid = "1" + text();
    launch.block = "2" + text();
    launch.cluster = text();
    launch.shared = "3" + text();
    launch.arguments.resize(copies ? 1 : 2);
    for (std::string& argument : launch.arguments) argument = text();
    launch.others = words();
    // A field is one line.
    for (std::string& w : launch.others) std::erase(w, '\n');
    panel.set_file(FakeKernels::file(kTwo), launch);
    RC_ASSERT(panel.launch() == launch);
  }));
}

TEST_F(KernelLaunchPanelTest, EmptyFieldsAreTheDefaults) {
  set(kOne);
  KernelLaunch expected;
  expected.path = kOne;
  expected.arguments = {"", ""};
  EXPECT_EQ(panel.launch(), expected) << "the only kernel needs no name";
  for (const char* name : {"Grid", "Block", "Cluster", "Shared memory"}) field(name).setText(QStringLiteral("  "));
  EXPECT_EQ(panel.launch(), expected);
}

TEST_F(KernelLaunchPanelTest, AnotherKernelHasItsOwnParametersAndItsBlock) {
  set(kTwo);
  EXPECT_EQ(kernel().currentText(), QStringLiteral("scale"));
  EXPECT_EQ(panel.launch().block, "1");
  field("data").setText(QStringLiteral("f32[4]"));
  kernel().setCurrentIndex(1);
  EXPECT_EQ(panel.launch().entry, "_Z4copy6Params");
  EXPECT_EQ(panel.launch().block, "128") << "the kernel was compiled for it";
  EXPECT_THAT(panel.launch().arguments, ElementsAre(""));
  EXPECT_EQ(find("data"), nullptr);
  EXPECT_TRUE(field("params").placeholderText().contains(QStringLiteral("@params.json")));
  EXPECT_THAT(command(), testing::HasSubstr("entry _Z4copy6Params grid 1 block 128"));
  kernel().setCurrentIndex(0);
  EXPECT_THAT(panel.launch().arguments, ElementsAre("", ""));
}

TEST_F(KernelLaunchPanelTest, TheRequiredBlockIsThatOfALaunchWithoutOne) {
  KernelLaunch launch;
  launch.entry = "copy";  // the short name
  set(kTwo, launch);
  EXPECT_EQ(panel.launch().entry, "_Z4copy6Params");
  EXPECT_EQ(panel.launch().block, "128");
  launch.block = "64";
  set(kTwo, launch);
  EXPECT_EQ(panel.launch().block, "64");
}

// Regression: the first kernel of the file was launched instead.
TEST_F(KernelLaunchPanelTest, AKernelThatTheFileDoesNotHaveIsNotAnother) {
  KernelLaunch launch;
  launch.entry = "sclae";
  launch.arguments = {"1", "2"};
  set(kTwo, launch);
  EXPECT_EQ(panel.launch().entry, "sclae");
  EXPECT_EQ(kernel().currentIndex(), -1);
  EXPECT_THAT(command(), testing::HasSubstr("entry sclae"));
  kernel().setCurrentIndex(0);
  EXPECT_EQ(panel.launch().entry, "_Z5scalePff");
  set(kOne, launch);
  EXPECT_EQ(panel.launch().entry, "sclae") << "nor is it the only one";
}

TEST_F(KernelLaunchPanelTest, TheCommandFollowsTheFieldsAndShowsTheirFaults) {
  set(kOne);
  EXPECT_EQ(command(), "debug /made/up/scale.ptx entry  grid 1 block 1 smem 0 [] []");
  field("factor").setText(QStringLiteral("2.5"));
  field("Shared memory").setText(QStringLiteral("1024"));
  field("More options").setText(QStringLiteral("--policy 'seed 7'"));
  EXPECT_EQ(command(), "debug /made/up/scale.ptx entry  grid 1 block 1 smem 1024 [] [2.5] {--policy} {seed 7}");
  field("Grid").setText(QStringLiteral("bad"));
  EXPECT_THAT(command(), testing::HasSubstr("'bad' is no number"));
  field("Grid").setText(QStringLiteral("4"));
  field("More options").setText(QStringLiteral("'"));
  EXPECT_THAT(command(), testing::HasSubstr("does not end"));
  field("More options").clear();
  for (QPushButton* button : panel.findChildren<QPushButton*>()) {
    if (button->accessibleName() == QStringLiteral("Copy the command")) button->click();
  }
  EXPECT_EQ(QGuiApplication::clipboard()->text().toStdString(),
            "debug /made/up/scale.ptx entry  grid 4 block 1 smem 1024 [] [2.5]");
}

TEST_F(KernelLaunchPanelTest, ReturnInAnyFieldStarts) {
  set(kOne);
  const QSignalSpy wanted(&panel, &KernelLaunchPanel::start_wanted);
  int fields = 0;
  for (QLineEdit* f : panel.findChildren<QLineEdit*>()) {
    QTest::keyClick(f, Qt::Key_Return);
    EXPECT_EQ(wanted.size(), ++fields) << f->accessibleName().toStdString();
  }
  EXPECT_EQ(fields, 7);
  for (QPushButton* button : panel.findChildren<QPushButton*>()) {
    if (button->text() == QStringLiteral("Start")) button->click();
  }
  EXPECT_EQ(wanted.size(), fields + 1);
}

TEST_F(KernelLaunchPanelTest, TabGoesThroughTheFieldsFromTopToBottom) {
  for (const char* file : {kOne, kTwo, kOne}) set(file);
  panel.resize(300, 700);
  panel.activateWindow();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&panel));
  kernel().setFocus();
  std::vector<std::string> names;
  for (int n = 0; n < 7; ++n) {
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
    names.push_back(QApplication::focusWidget()->accessibleName().toStdString());
  }
  EXPECT_THAT(names, ElementsAre("Grid", "Block", "Cluster", "Shared memory", "data", "factor", "More options"));
}

// --- launches that are kept ------------------------------------------------------------------------------------------

KernelLaunch launch_of(const std::string& path) {
  KernelLaunch launch;
  launch.path = path;
  return launch;
}

TEST(KernelLaunchesTest, AnyLaunchIsFoundAgain) {
  const QTemporaryDir folder;
  EXPECT_TRUE(prop::check([&] {
    KernelLaunch launch;
    launch.path = kOne;
    launch.entry = word();
    launch.grid = word();
    launch.block = word();
    launch.cluster = word();
    launch.shared = word();
    launch.arguments = words();
    launch.others = words();
    KernelLaunches(folder.path()).keep(launch);
    RC_ASSERT(KernelLaunches(folder.path()).find(QString::fromUtf8(kOne)) == launch);
  }));
}

TEST(KernelLaunchesTest, KeepsTheNewestLaunchesOneAFile) {
  const QTemporaryDir folder;
  KernelLaunches launches(folder.filePath(QStringLiteral("not/there/yet")));
  const auto path = [](int n) { return "/a/" + std::to_string(n) + ".ptx"; };
  const auto is_kept = [&](int n) { return launches.find(QString::fromStdString(path(n))).has_value(); };
  for (int n = 0; n < KernelLaunches::kMost; ++n) launches.keep(launch_of(path(n)));
  EXPECT_TRUE(is_kept(0));
  KernelLaunch again = launch_of(path(0));
  again.grid = "7";
  launches.keep(again);  // is the newest now, and no other leaves
  for (int n = 0; n < KernelLaunches::kMost; ++n) EXPECT_TRUE(is_kept(n)) << n;
  EXPECT_EQ(launches.find(QString::fromStdString(path(0)))->grid, "7");
  launches.keep(launch_of(path(99)));
  EXPECT_TRUE(is_kept(99));
  EXPECT_FALSE(is_kept(1)) << "the oldest";
  EXPECT_TRUE(is_kept(0) && is_kept(2));
}

TEST(KernelLaunchesTest, AFileIsTheSameByAnyPath) {
  const QTemporaryDir folder;
  KernelLaunches launches(folder.path());
  launches.keep(launch_of("/a/b/scale.ptx"));
  const auto found = launches.find(QStringLiteral("/a/./c/../b/scale.ptx"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, "/a/./c/../b/scale.ptx") << "as the caller names it";
  EXPECT_FALSE(launches.find(QStringLiteral("/a/scale.ptx")));
}

TEST(KernelLaunchesTest, WithoutAFolderNothingIsKept) {
  KernelLaunches launches({});
  launches.keep(launch_of(kOne));
  EXPECT_EQ(launches.find(QString::fromUtf8(kOne)), std::nullopt);
}

TEST(KernelLaunchesTest, ADamagedFileIsAsGoodAsNone) {
  for (const char* text : {"", "[launch", "[launch]\nsize=-3\n", "[launch]\nsize=999999999\n1\\path=/x.ptx\n",
                           "[launch]\nsize=two\n1\\path=@Variant(\\0\\0)\n", "\xff\xfe\x00garbage",
                           "[launch]\n1\\path=@ByteArray(x)\nsize=3\n2\\arguments=@Invalid()\n"}) {
    const QTemporaryDir folder;
    {
      QFile file(folder.filePath(QStringLiteral("kernels.ini")));
      ASSERT_TRUE(file.open(QIODevice::WriteOnly));
      file.write(text);
    }
    KernelLaunches launches(folder.path());
    EXPECT_EQ(launches.find(QString::fromUtf8(kOne)), std::nullopt) << text;
    launches.keep(launch_of(kOne));
    EXPECT_TRUE(launches.find(QString::fromUtf8(kOne))) << text;
  }
}

}  // namespace
}  // namespace kvscope::viz::kernel_launch_panel_test
