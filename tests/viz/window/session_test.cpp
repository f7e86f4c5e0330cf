// The session from one start to the next: it is read as written, offered after a crash, and not changed by a second
// window.
#include "viz/window/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include <QtCore/QFile>
#include <QtCore/QSettings>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QListWidget>
#include <QtWidgets/QMenu>

#include "tests/viz/window/window_support.h"
#include "viz/window/recent_files.h"

namespace kvscope::viz::session_test {
namespace {

using testing_support::made_up;
using testing_support::path_of;
using testing_support::wait_until;

SessionLook some_look() {
  SessionLook look;
  look.theme = ThemeSetting::light;
  look.font_scale = 1.21;
  look.speed = 64;
  look.geometry = QByteArray("\0\1\2=;,", 6);
  look.docks = QByteArray("docks");
  return look;
}

SessionPlace some_place() {
  SessionPlace place;
  place.path = QStringLiteral("/a, b/ü;=.json");
  place.position = Position{1'234'567'890'123};
  place.view = View::pool;
  place.pinned = of_token(SeqIdx{3}, TokIdx{70});
  place.tile = parse_tile_request("seq 3 token 70 v layer 1 head 1 dim 64 lds");
  place.recorded_tile = 2;
  place.tile_event = 271;
  place.flow = parse_flow_request("seq 2 query 70 head 1 layer 1 tile 16");
  place.flow_tiles = 3;
  place.candidate = QStringLiteral("/a, b/mine;=ü.npz");
  place.compared = QStringLiteral("/a, b/other;=ü.kvt");
  place.changes = {{QStringLiteral("/a, b/ü;=.json"), QStringLiteral("{\n \"a\": [1, \"\\n;,=ü\"]}\n")},
                   {QStringLiteral("/b.json"), QStringLiteral("{}")}};
  place.breakpoints = {parse_breakpoint("block_allocated block=7 seq!=2"),
                       parse_breakpoint("off step_ended free_blocks<4")};
  return place;
}

TEST(Session, ReadsBackWhatItKept) {
  const QTemporaryDir folder;
  {
    Session session(folder.path());
    session.keep(some_look(), some_place());
    session.end();
  }
  const Session again(folder.path());
  EXPECT_EQ(again.look(), some_look());
  EXPECT_EQ(again.place(), some_place());
  EXPECT_FALSE(again.ended_badly());
}

TEST(Session, ReadsBackEveryKindOfSelection) {
  for (const Selection& pinned :
       {Selection{}, of_sequence(SeqIdx{4}), of_page(SeqIdx{1}, PageIdx{2}), of_token(SeqIdx{0}, TokIdx{0}),
        of_block(BlockIdx{9}), of_step(StepIdx{12}), of_tile_row(6), of_tile_chunk({6, 24}), of_tile_lane(1, 26),
        of_tile_register({1, 26, 3, 2}), of_flow_tile(SeqIdx{3}, 2, TokIdx{32}, TokIdx{48}, 16),
        of_error_cell(SeqIdx{2}, HeadIdx{1}, TokIdx{70}, DimIdx{17}, PageIdx{4}),
        of_error_cell(SeqIdx{2}, HeadIdx{1}, TokIdx{-1}, DimIdx{-1}, PageIdx{-1})}) {
    const QTemporaryDir folder;
    {
      Session session(folder.path());
      SessionPlace place = some_place();
      place.pinned = pinned;
      session.keep({}, place);
    }
    EXPECT_EQ(Session(folder.path()).place().pinned, pinned);
  }
}

// The selection of a file: a number for the kind, then those of its indices.
Selection read_pinned(const QStringList& numbers) {
  const QTemporaryDir folder;
  {
    QSettings file(folder.filePath(QStringLiteral("viewer.ini")), QSettings::IniFormat);
    file.setValue(QStringLiteral("place/pinned"), numbers);
  }
  return Session(folder.path()).place().pinned;
}

// The numbers 100, 101, ... behind a kind; a wrong index then reads a number of another one.
QStringList pinned_numbers(int kind, int size) {
  QStringList numbers{QString::number(kind)};
  for (int i = 1; i < size; ++i) numbers.push_back(QString::number(99 + i));
  return numbers;
}

// Older versions wrote 6 numbers, before tiles could be selected, and then 12.
TEST(Session, ReadsSelectionsOfOlderVersions) {
  using Kind = Selection::Kind;
  const auto read = [](Kind kind, int size) { return read_pinned(pinned_numbers(static_cast<int>(kind), size)); };
  for (const int size : {6, 12, 17}) {
    EXPECT_EQ(read(Kind::sequence, size), of_sequence(SeqIdx{100})) << size;
    EXPECT_EQ(read(Kind::page, size), of_page(SeqIdx{100}, PageIdx{101})) << size;
    EXPECT_EQ(read(Kind::token, size), of_token(SeqIdx{100}, TokIdx{102})) << size;
    EXPECT_EQ(read(Kind::block, size), of_block(BlockIdx{103})) << size;
    EXPECT_EQ(read(Kind::step, size), of_step(StepIdx{104})) << size;
    const bool tiles = size >= 12;
    EXPECT_EQ(read(Kind::tile_row, size), tiles ? of_tile_row(105) : Selection{}) << size;
    EXPECT_EQ(read(Kind::tile_chunk, size), tiles ? of_tile_chunk({105, 106}) : Selection{}) << size;
    EXPECT_EQ(read(Kind::tile_lane, size), tiles ? of_tile_lane(107, 108) : Selection{}) << size;
    EXPECT_EQ(read(Kind::tile_register, size), tiles ? of_tile_register({107, 108, 109, 110}) : Selection{}) << size;
    EXPECT_EQ(read(Kind::flow_tile, size).none(), size < 17) << size;
    EXPECT_EQ(
        read(Kind::error_cell, size),
        size < 17 ? Selection{} : of_error_cell(SeqIdx{100}, HeadIdx{113}, TokIdx{102}, DimIdx{114}, PageIdx{101}))
        << size;
  }
  for (const int size : {1, 5, 7, 11, 13, 16, 18}) EXPECT_TRUE(read(Kind::sequence, size).none()) << size;
}

// 257 is not kind 1 in 8 bits; kinds that are never pinned, and those of a newer version, are no selection.
TEST(Session, AKindThatDoesNotExistIsNoSelection) {
  for (const int kind : {-1, 0, static_cast<int>(Selection::Kind::tile_path), 18, 255, 256, 257, 1 << 20}) {
    EXPECT_TRUE(read_pinned(pinned_numbers(kind, 17)).none()) << kind;
  }
}

TEST(Session, NumbersOutsideTheirRangeAreTheUsualOnes) {
  for (const char* text : {"0.01", "1e9", "inf", "-1", "x"}) {
    const QTemporaryDir folder;
    {
      QSettings file(folder.filePath(QStringLiteral("viewer.ini")), QSettings::IniFormat);
      file.setValue(QStringLiteral("look/font_scale"), QString::fromLatin1(text));
      file.setValue(QStringLiteral("look/speed"), QString::fromLatin1(text));
      file.setValue(QStringLiteral("place/flow"), QStringLiteral("seq x"));
    }
    const Session session(folder.path());
    EXPECT_EQ(session.look(), SessionLook{}) << text;
    EXPECT_EQ(session.place().flow, std::nullopt);
  }
}

TEST(Session, DetectsThatTheLastOneDidNotEnd) {
  const QTemporaryDir folder;
  {
    Session session(folder.path());
    session.keep({}, some_place());
  }
  EXPECT_TRUE(Session(folder.path()).ended_badly());
}

// After a crash on the start page there is nothing to restore, so no offer is made.
TEST(Session, DoesNotCountACrashWithNothingOpen) {
  const QTemporaryDir folder;
  {
    Session session(folder.path());
    session.keep({}, {});
  }
  EXPECT_FALSE(Session(folder.path()).ended_badly());
}

TEST(Session, ASecondOneAtTheSameTimeReadsAndLeavesTheFileAlone) {
  const QTemporaryDir folder;
  Session first(folder.path());
  first.keep(some_look(), some_place());
  Session second(folder.path());
  EXPECT_TRUE(first.ours());
  EXPECT_FALSE(second.ours());
  EXPECT_FALSE(second.ended_badly());
  EXPECT_EQ(second.look(), some_look());
  second.keep({}, {});
  second.end();
  QSettings file(first.settings_file(), QSettings::IniFormat);
  EXPECT_FALSE(file.value(QStringLiteral("session/clean")).toBool());
  EXPECT_EQ(file.value(QStringLiteral("place/path")).toString(), some_place().path);
}

// A file edited by hand, partially written, or of another version: unreadable values are ignored.
TEST(Session, TakesWhatItCanReadOfADamagedFile) {
  const QTemporaryDir folder;
  {
    QSettings file(folder.filePath(QStringLiteral("viewer.ini")), QSettings::IniFormat);
    file.setValue(QStringLiteral("look/theme"), QStringLiteral("purple"));
    file.setValue(QStringLiteral("look/font_scale"), QStringLiteral("nan"));
    file.setValue(QStringLiteral("look/speed"), -4);
    file.setValue(QStringLiteral("place/view"), QStringLiteral("sideways"));
    file.setValue(QStringLiteral("place/pinned"), QStringLiteral("a block"));
    file.setValue(QStringLiteral("place/position"), QStringLiteral("far"));
    file.setValue(QStringLiteral("place/tile"), QStringLiteral("sequence three"));
    file.setValue(QStringLiteral("place/tile_event"), -4);
    file.setValue(QStringLiteral("place/breakpoints"),
                  QStringList{QStringLiteral("block_evictd"), QStringLiteral("block_evicted")});
  }
  const Session session(folder.path());
  EXPECT_EQ(session.look(), SessionLook{});
  EXPECT_EQ(session.place().view, View::overview);
  EXPECT_TRUE(session.place().pinned.none());
  EXPECT_EQ(session.place().position, Position{0});
  EXPECT_EQ(session.place().tile, std::nullopt);
  EXPECT_EQ(session.place().tile_event, std::nullopt);
  ASSERT_EQ(session.place().breakpoints.size(), 1U);
  EXPECT_EQ(session.place().breakpoints[0], parse_breakpoint("block_evicted"));
}

// Any bytes as the file: the session reads the valid parts and never throws. The font size stays readable.
TEST(Session, OpensWhateverTheBytesOfItsFileAre) {
  const QTemporaryDir folder;
  const QString path = folder.filePath(QStringLiteral("viewer.ini"));
  {
    Session session(folder.path());
    session.keep(some_look(), some_place());
    session.end();
  }
  QFile file(path);
  ASSERT_TRUE(file.open(QIODevice::ReadOnly));
  const QByteArray good = file.readAll();
  file.close();
  ASSERT_GT(good.size(), 100);
  const std::vector<QByteArray> odd{QByteArray("\0", 1), "4294967296",  "-1",  "1e309", "nan",
                                    "@Variant(\\0\\0)",  "@ByteArray(", "\n[", "=",     QByteArray(5000, '(')};
  std::mt19937 random(17);
  for (int i = 0; i < 400; ++i) {
    QByteArray bytes = good;
    for (std::uint32_t changes = 1 + random() % 4; changes > 0; --changes) {
      const auto at = static_cast<qsizetype>(random() % static_cast<std::uint32_t>(bytes.size()));
      switch (random() % 5) {
        case 0:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
          break;
        case 1:
          bytes.remove(at, 1 + random() % 20);
          break;
        case 2:
          bytes.insert(at, odd[random() % odd.size()]);
          break;
        case 3:
          bytes.insert(at, bytes.mid(random() % static_cast<std::uint32_t>(bytes.size()), 40));
          break;
        default:
          bytes.truncate(at);
          break;
      }
      if (bytes.isEmpty()) bytes = "x";
    }
    ASSERT_TRUE(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
    file.write(bytes);
    file.close();
    const Session session(folder.path());
    EXPECT_TRUE(session.look().font_scale >= 0.5 && session.look().font_scale <= 4)
        << i << ' ' << session.look().font_scale;
    EXPECT_TRUE(session.look().speed > 0 && session.look().speed <= 1e6) << i << ' ' << session.look().speed;
    EXPECT_GE(session.place().position.value, 0) << i;
    EXPECT_GE(session.place().tile_event.value_or(0), 0) << i;
  }
}

// --- recent files ----------------------------------------------------------------------------------------------------

struct Recent {
  QTemporaryDir folder;
  QString settings = folder.filePath(QStringLiteral("viewer.ini"));
  [[nodiscard]] QString file(const QString& name, bool there = true) const {
    const QString path = folder.filePath(name);
    if (there) {
      QFile f(path);
      EXPECT_TRUE(f.open(QIODevice::WriteOnly));
    }
    return path;
  }
};

TEST(RecentFiles, ListTheNewestFirstEachOnceAndTenAtMost) {
  const Recent r;
  RecentFiles files(r.settings);
  for (int i = 0; i < 12; ++i) files.add(r.file(QStringLiteral("%1.json").arg(i), false));
  files.add(r.folder.filePath(QStringLiteral("./5.json")));  // the same file, written in another way
  ASSERT_EQ(files.paths().size(), RecentFiles::kMost);
  EXPECT_EQ(files.paths()[0], r.folder.filePath(QStringLiteral("5.json")));
  EXPECT_EQ(files.paths()[1], r.folder.filePath(QStringLiteral("11.json")));
  EXPECT_EQ(files.paths().count(r.folder.filePath(QStringLiteral("5.json"))), 1);
  EXPECT_EQ(RecentFiles(r.settings).paths(), files.paths());
}

// The digits 1 to 9, then 0: the tenth is not "&10", whose mnemonic is 1 again.
TEST(RecentFiles, GiveTheTenthTheDigit0) {
  const Recent r;
  RecentFiles files(r.settings);
  for (int i = 10; i > 0; --i) files.add(r.file(QStringLiteral("%1.json").arg(i), false));
  QMenu menu;
  files.fill(menu);
  ASSERT_EQ(menu.actions().size(), 12);
  EXPECT_EQ(menu.actions()[8]->text(), QStringLiteral("&9  9.json"));
  EXPECT_EQ(menu.actions()[9]->text(), QStringLiteral("1&0  10.json"));
}

TEST(RecentFiles, GrayTheMissingAndOpenTheOthersByDigit) {
  const Recent r;
  RecentFiles files(r.settings);
  files.add(r.file(QStringLiteral("gone.json"), false));
  files.add(r.file(QStringLiteral("here & there.json")));
  QMenu menu;
  files.fill(menu);
  ASSERT_EQ(menu.actions().size(), 4);  // two files, a line, "Clear the list"
  EXPECT_EQ(menu.actions()[0]->text(), QStringLiteral("&1  here && there.json"));
  EXPECT_TRUE(menu.actions()[0]->isEnabled());
  EXPECT_FALSE(menu.actions()[1]->isEnabled());
  EXPECT_TRUE(menu.actions()[1]->toolTip().endsWith(QLatin1String("gone.json does not exist")));
  QString chosen;
  QObject::connect(&files, &RecentFiles::chosen, &files, [&](const QString& path) { chosen = path; });
  menu.actions()[0]->trigger();
  EXPECT_EQ(chosen, r.folder.filePath(QStringLiteral("here & there.json")));
  menu.actions()[3]->trigger();
  EXPECT_TRUE(files.paths().isEmpty());
  EXPECT_TRUE(RecentFiles(r.settings).paths().isEmpty());
}

// --- the window ------------------------------------------------------------------------------------------------------

class SessionWindowTest : public testing_support::WindowTest {
 protected:
  // The current content of the settings file.
  [[nodiscard]] QVariant kept(const char* key) const {
    return QSettings(folder.filePath(QStringLiteral("viewer.ini")), QSettings::IniFormat)
        .value(QString::fromLatin1(key));
  }
  // The state after a crash: the file without the mark "clean", and no lock. The window that "crashed" is destroyed.
  void crash() {
    const QString file = folder.filePath(QStringLiteral("viewer.ini"));
    const QString copy = folder.filePath(QStringLiteral("copy.ini"));
    ASSERT_TRUE(QFile::copy(file, copy));
    window.reset();
    ASSERT_TRUE(QFile::remove(file) && QFile::rename(copy, file));
    start();
  }
  [[nodiscard]] MessageBar& messages() const { return window->messages(); }
};

TEST_F(SessionWindowTest, KeepsEachChangeWithinASecond) {
  ASSERT_TRUE(open(path_of("preemption")));
  document().seek_step(StepIdx{9});
  document().pin(of_block(BlockIdx{5}));
  window->set_view(View::pool);
  window->set_theme(ThemeSetting::light);
  QTest::qWait(1000);
  EXPECT_EQ(kept("place/path").toString(), path_of("preemption"));
  EXPECT_EQ(kept("place/position").toLongLong(), document().cursor().position().value);
  EXPECT_EQ(kept("place/view").toString(), QStringLiteral("pool"));
  EXPECT_EQ(kept("look/theme").toString(), QStringLiteral("light"));
  EXPECT_FALSE(kept("session/clean").toBool());
}

TEST_F(SessionWindowTest, AfterACrashOffersToRestoreAndDoes) {
  ASSERT_TRUE(open(path_of("preemption")));
  document().seek_step(StepIdx{9});
  document().previous_event();
  document().pin(of_page(SeqIdx{2}, PageIdx{1}));
  document().set_breakpoints({parse_breakpoint("block_allocated block=3")});
  window->set_view(View::sequences);
  window->set_font_scale(1.21);
  const Position position = document().cursor().position();
  ASSERT_TRUE(wait_until(
      [&] { return kept("place/position").toLongLong() == position.value && kept("look/font_scale") == 1.21; }));
  crash();
  ASSERT_TRUE(messages().showing(QStringLiteral("session")));
  EXPECT_EQ(messages().findChild<QFrame*>()->accessibleName(),
            QStringLiteral("kvscope-viewer did not exit normally last time. %1 was open.").arg(path_of("preemption")));
  EXPECT_EQ(window->document(), nullptr);
  click(button(messages(), QStringLiteral("Restore")));
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr; }));
  EXPECT_EQ(document().cursor().position(), position);
  EXPECT_EQ(document().pinned(), of_page(SeqIdx{2}, PageIdx{1}));
  ASSERT_EQ(document().breakpoints().size(), 1U);
  EXPECT_EQ(to_text(document().breakpoints()[0]), "block_allocated block=3");
  EXPECT_EQ(window->view(), View::sequences);
  EXPECT_DOUBLE_EQ(window->canvas().sceneNow().font_scale, 1.21);
  EXPECT_FALSE(messages().isVisible());
}

// The attention view: which query's flow, how much of it, and the candidate.
TEST_F(SessionWindowTest, AfterACrashRestoresTheFlowAndTheCandidate) {
  ASSERT_TRUE(open(path_of("first_light")));
  document().seek_step(StepIdx{6});
  window->set_view(View::attention);
  const auto shown = [&] { return document().attention().flow() != nullptr; };
  ASSERT_TRUE(wait_until(shown));
  document().attention().choose(parse_flow_request("seq 3 query 1 head 2 layer 1 tile 8"));
  document().attention().set_candidate(QStringLiteral("/mine.npz"));
  const auto head_shown = [&] { return shown() && document().attention().flow()->request.head == HeadIdx{2}; };
  ASSERT_TRUE(wait_until(head_shown));
  document().attention().seek(1);
  ASSERT_TRUE(wait_until([&] { return kept("place/flow_tiles").toString() == QStringLiteral("1"); }));
  crash();
  click(button(messages(), QStringLiteral("Restore")));
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr && head_shown(); }));
  const AttentionModel& attention = document().attention();
  EXPECT_EQ(window->view(), View::attention);
  EXPECT_EQ(attention.flow()->request.layer, LayerIdx{1});
  EXPECT_EQ(attention.request().tile_keys, 8);
  EXPECT_EQ(attention.flow()->request.query, TokIdx{1});
  EXPECT_EQ(attention.tiles_done(), 1);
  EXPECT_EQ(attention.candidate(), QStringLiteral("/mine.npz"));
  EXPECT_EQ(document().pinned().kind, Selection::Kind::flow_tile);
}

// The tile view: which tile, which of its events, and what is selected in it.
TEST_F(SessionWindowTest, AfterACrashRestoresTheComparedRun) {
  OpenWish wish;
  wish.compared = path_of("first_light");
  window->open(path_of("preemption"), wish);
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr && document().beside(); }));
  ASSERT_TRUE(wait_until([&] { return kept("place/compared").toString() == path_of("first_light"); }));
  crash();
  click(button(messages(), QStringLiteral("Restore")));
  EXPECT_TRUE(wait_until([&] { return window->document() != nullptr && document().beside(); }));
  EXPECT_EQ(document().path(), path_of("preemption"));
  EXPECT_EQ(document().compared_run()->facts().name, "First light");
}

TEST_F(SessionWindowTest, AfterACrashRestoresTheTile) {
  ASSERT_TRUE(open(path_of("first_light")));
  document().seek_step(StepIdx{6});
  window->set_view(View::tile);
  TileRequest request = parse_tile_request("seq 3 token 64 v layer 1 head 1 tma");
  document().choose_tile(request);
  const auto tile_shown = [&] {
    const Tile* tile = document().tile();
    return tile != nullptr && tile->opened.value && tile->opened.seq == SeqIdx{3} && tile->opened.layer == LayerIdx{1};
  };
  ASSERT_TRUE(wait_until(tile_shown));
  document().seek_tile(100);
  document().pin(of_tile_register({0, 5, 2, 0}));
  ASSERT_TRUE(wait_until([&] { return kept("place/tile_event").toLongLong() == 100; }));
  crash();
  click(button(messages(), QStringLiteral("Restore")));
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr && tile_shown(); }));
  EXPECT_EQ(window->view(), View::tile);
  EXPECT_EQ(document().tile()->opened.step, StepIdx{6});
  EXPECT_EQ(document().tile_now().event, 100);
  EXPECT_EQ(document().pinned(), of_tile_register({0, 5, 2, 0}));
  request.step = StepIdx{6};
  EXPECT_EQ(document().tile_request(), request);
}

// Two crashes in a row, the second one while the offer is open: the third start must make the offer again.
TEST_F(SessionWindowTest, AnOfferOutlivesTheNextCrash) {
  ASSERT_TRUE(open(path_of("first_light")));
  ASSERT_TRUE(wait_until([&] { return !kept("place/path").toString().isEmpty(); }));
  crash();
  window->set_theme(ThemeSetting::light);
  ASSERT_TRUE(wait_until([&] { return kept("look/theme").toString() == QLatin1String("light"); }));
  crash();
  EXPECT_TRUE(messages().showing(QStringLiteral("session")));
}

TEST_F(SessionWindowTest, ADismissedOfferDoesNotComeBack) {
  ASSERT_TRUE(open(path_of("first_light")));
  ASSERT_TRUE(wait_until([&] { return !kept("place/path").toString().isEmpty(); }));
  crash();
  click(button(messages(), QStringLiteral("Dismiss")));
  ASSERT_TRUE(wait_until([&] { return kept("place/path").toString().isEmpty(); }));
  crash();
  EXPECT_FALSE(messages().isVisible());
}

TEST_F(SessionWindowTest, AfterACleanEndOffersNothingButLooksAsBefore) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->set_theme(ThemeSetting::light);
  window->findChild<QDockWidget*>(QStringLiteral("why"))->close();
  document().set_breakpoints({parse_breakpoint("block_copied")});
  window->resize(1111, 777);
  EXPECT_TRUE(window->close());
  EXPECT_TRUE(kept("session/clean").toBool());
  window = std::make_unique<MainWindow>(backend, folder.path());
  window->show();
  EXPECT_FALSE(messages().isVisible());
  EXPECT_EQ(window->document(), nullptr);
  EXPECT_EQ(window->theme_now(), ThemeKind::light);
  EXPECT_EQ(window->size(), QSize(1111, 777));
  ASSERT_TRUE(open(path_of("preemption")));
  EXPECT_TRUE(window->findChild<QDockWidget*>(QStringLiteral("why"))->isHidden());
  EXPECT_EQ(document().breakpoints().size(), 1U);  // breakpoints stay until they are removed
}

// The window is closed on the start page, which hides all docks: this must not count as closing the docks.
TEST_F(SessionWindowTest, KeepsTheDocksOfTheRunWhenItEndsOnTheStartPage) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->close_document();
  EXPECT_TRUE(window->close());
  window.reset();
  start();
  ASSERT_TRUE(open(path_of("first_light")));
  EXPECT_FALSE(window->findChild<QDockWidget*>(QStringLiteral("why"))->isHidden());
}

TEST_F(SessionWindowTest, AMissingFileIsReportedWhenItIsRestored) {
  ASSERT_TRUE(open(path_of("first_light")));
  ASSERT_TRUE(wait_until([&] { return !kept("place/path").toString().isEmpty(); }));
  {
    QSettings file(folder.filePath(QStringLiteral("viewer.ini")), QSettings::IniFormat);
    file.setValue(QStringLiteral("place/path"), QStringLiteral("/nowhere/runtime_error.json"));
  }
  crash();
  click(button(messages(), QStringLiteral("Restore")));
  ASSERT_TRUE(wait_until([&] { return messages().showing(QStringLiteral("open")); }));
  EXPECT_EQ(messages().lines(QStringLiteral("open")), QStringList{QStringLiteral("the disk is on fire")});
}

TEST_F(SessionWindowTest, ListsWhatWasOpenedAndNotWhatFailed) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->open(made_up("faulty"));
  ASSERT_TRUE(wait_until([&] { return messages().isVisible(); }));
  ASSERT_TRUE(open(path_of("preemption")));
  window->close_document();
  auto* recent = window->findChild<QListWidget*>(QStringLiteral("recent"));
  ASSERT_EQ(recent->count(), 2);
  EXPECT_THAT(recent->item(0)->text().toStdString(), testing::StartsWith("preemption.json\n"));
  QTest::mouseClick(recent->viewport(), Qt::LeftButton, Qt::NoModifier,
                    recent->visualItemRect(recent->item(1)).center());
  ASSERT_TRUE(wait_until([&] { return window->document() != nullptr; }));
  EXPECT_EQ(window->document()->path(), path_of("first_light"));
}

}  // namespace
}  // namespace kvscope::viz::session_test
