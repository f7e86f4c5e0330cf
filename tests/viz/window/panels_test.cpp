// The docks and bars: their questions to the backend, their exact texts, and the effect of clicks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QtCore/QSettings>
#include <QtGui/QClipboard>
#include <QtGui/QImageReader>
#include <QtGui/QTextBlock>
#include <QtTest/QSignalSpy>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QDoubleSpinBox>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QListView>
#include <QtWidgets/QMenu>
#include <QtWidgets/QSlider>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QTableView>
#include <QtWidgets/QTextBrowser>
#include <QtWidgets/QToolButton>

#include "core/trace/event_text.h"
#include "core/trace/explanation.h"
#include "tests/viz/playback/memory_source.h"
#include "tests/viz/window/window_support.h"
#include "viz/playback/event_tape.h"
#include "viz/playback/find.h"
#include "viz/view/time_text.h"
#include "viz/window/breakpoints_panel.h"
#include "viz/window/events_panel.h"
#include "viz/window/export_bar.h"
#include "viz/window/find_bar.h"
#include "viz/window/notes_panel.h"
#include "viz/window/sequences_panel.h"
#include "viz/window/tile_bar.h"
#include "viz/window/transport_bar.h"
#include "viz/window/why_panel.h"

namespace kvscope::viz::panels_test {
namespace {

using testing_support::gallery_path;
using testing_support::made_up;
using testing_support::path_of;
using testing_support::settle;
using testing_support::wait_until;

class PanelsTest : public testing_support::WindowTest {
 protected:
  template <class Widget>
  [[nodiscard]] Widget& the() const {
    return *window->findChild<Widget*>();
  }
  void raise(const char* dock) const {
    window->findChild<QDockWidget*>(QString::fromLatin1(dock))->raise();
    settle();
  }
  [[nodiscard]] std::string why() const { return window->why().text().toStdString(); }
  [[nodiscard]] QTextBrowser& why_text() const { return *window->why().findChild<QTextBrowser*>(); }
};

// --- why -------------------------------------------------------------------------------------------------------------

std::string explained(const char* scenario, std::int64_t seq, std::int64_t token, std::int64_t step) {
  const Scenario s = load_scenario(gallery_path(scenario));
  trace::Question question;
  question.seq = SeqIdx(seq);
  question.token = TokIdx(token);
  question.step = StepIdx(step);
  return to_text(explain(s, make_requests(s, {}), question));
}

TEST_F(PanelsTest, WhyShowsTheCommandLinesTextToTheByte) {
  ASSERT_TRUE(open(path_of("first_light")));
  document().seek_step(StepIdx{6});
  document().pin(of_token(SeqIdx{3}, TokIdx{37}));
  ASSERT_TRUE(wait_until([&] { return why().starts_with("K of"); }));
  EXPECT_EQ(why(), explained("first_light", 3, 37, 6));
  window->actions()[Do::copy_explanation]->trigger();
  EXPECT_EQ(QGuiApplication::clipboard()->text().toStdString(), explained("first_light", 3, 37, 6));
  document().step();
  EXPECT_TRUE(wait_until([&] { return why() == explained("first_light", 3, 37, 7); }));
}

TEST_F(PanelsTest, WhyFollowsTheThemeWithoutChangingTheText) {
  ASSERT_TRUE(open(path_of("first_light")));
  document().pin(of_token(SeqIdx{0}, TokIdx{0}));
  ASSERT_TRUE(wait_until([&] { return why().starts_with("K of"); }));
  const std::string text = why();
  window->set_theme(ThemeSetting::light);
  window->set_font_scale(1.5);
  EXPECT_EQ(why(), text);
  // Names bold, results in the accent color.
  bool bold = false, accent = false;
  for (QTextBlock block = why_text().document()->begin(); block.isValid(); block = block.next()) {
    for (auto it = block.begin(); !it.atEnd(); ++it) {
      const QTextFragment part = it.fragment();
      bold = bold || (part.text() == QLatin1String("page") && part.charFormat().fontWeight() == QFont::Bold);
      accent = accent || (part.text() == QLatin1String("0") &&
                          part.charFormat().foreground().color() == theme(ThemeKind::light).text_accent);
    }
  }
  EXPECT_TRUE(bold);
  EXPECT_TRUE(accent);
}

TEST_F(PanelsTest, WhyAsksForTheLayerHeadDimAndHalfThatAreChosen) {
  ASSERT_TRUE(open(path_of("first_light")));
  document().pin(of_token(SeqIdx{0}, TokIdx{0}));
  const QList<QSpinBox*> boxes = window->why().findChildren<QSpinBox*>();
  ASSERT_EQ(boxes.size(), 3);
  EXPECT_EQ(boxes[0]->maximum(), 1);   // two layers
  EXPECT_EQ(boxes[1]->maximum(), 1);   // two KV heads
  EXPECT_EQ(boxes[2]->maximum(), 63);  // of 64
  boxes[0]->setValue(1);
  boxes[2]->setValue(5);
  window->why().findChild<QComboBox*>()->setCurrentIndex(1);
  EXPECT_TRUE(wait_until([&] {
    return why().starts_with("V of sequence 0, token 0, layer 1, KV head 0, dim 5, at step 0");
  })) << why();
}

TEST_F(PanelsTest, WhyShowsFaultsInPlaceAndContinuesAfterThem) {
  ASSERT_TRUE(open(path_of("first_light")));
  document().pin(of_token(SeqIdx{0}, TokIdx{101}));
  EXPECT_TRUE(wait_until([&] {
    return why() == "sequence 0: token 101 is outside [0, 48): step 0 has 0 cached and 48 new tokens of it";
  })) << why();
  backend.explain_throws = true;
  document().pin(of_token(SeqIdx{0}, TokIdx{1}));
  EXPECT_TRUE(wait_until([&] { return why() == "out of memory: ask for fewer tokens, layers or heads at a time"; }))
      << why();
  backend.explain_throws = false;
  document().pin(of_token(SeqIdx{0}, TokIdx{2}));
  EXPECT_TRUE(wait_until([&] { return why() == explained("first_light", 0, 2, 0); }));
}

// While the pointer crosses the pool, only a few objects are asked about, and the last one is answered.
TEST_F(PanelsTest, WhyDoesNotPileUpQuestions) {
  ASSERT_TRUE(open(path_of("first_light")));
  document().seek_step(StepIdx{6});
  backend.explain_ms = 20;
  for (std::int64_t token = 0; token < 60; ++token) {
    document().hover(of_token(SeqIdx{0}, TokIdx(token)));
    QTest::qWait(1);
  }
  EXPECT_TRUE(wait_until([&] { return why() == explained("first_light", 0, 59, 6); }));
  EXPECT_LT(backend.explains, 20);
}

TEST_F(PanelsTest, WhyOfATraceWithoutAScenarioShowsSoAndAsksNoQuestion) {
  ASSERT_TRUE(open(made_up("trace")));
  document().pin(of_sequence(SeqIdx{0}));
  EXPECT_TRUE(wait_until([&] { return why().starts_with("This file has no scenario: "); }));
  EXPECT_EQ(backend.explains, 0);
  window->close_document();
  EXPECT_EQ(why(), "Open a scenario or a trace.");
}

TEST_F(PanelsTest, ALinkInWhySelectsWhatItNames) {
  ASSERT_TRUE(open(path_of("first_light")));
  document().seek_step(StepIdx{6});
  document().pin(of_token(SeqIdx{3}, TokIdx{37}));
  ASSERT_TRUE(wait_until([&] { return why().starts_with("K of"); }));
  const auto follow = [&](const char* name) {
    for (QTextBlock block = why_text().document()->begin(); block.isValid(); block = block.next()) {
      for (auto it = block.begin(); !it.atEnd(); ++it) {
        if (it.fragment().text() == QLatin1String(name) && it.fragment().charFormat().isAnchor()) {
          Q_EMIT why_text().anchorClicked(QUrl(it.fragment().charFormat().anchorHref()));
          return true;
        }
      }
    }
    return false;
  };
  ASSERT_TRUE(follow("page"));
  EXPECT_EQ(document().pinned(), of_page(SeqIdx{3}, PageIdx{2}));
  ASSERT_TRUE(wait_until([&] { return why().starts_with("K of sequence 3, token 32,"); }));
  ASSERT_TRUE(follow("block"));
  EXPECT_EQ(document().pinned(), of_block(BlockIdx{2}));
}

// --- find ------------------------------------------------------------------------------------------------------------

TEST_F(PanelsTest, FindGoesWhereItIsToldByEnter) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->canvas().setFocus();
  press(Qt::Key_F, Qt::ControlModifier);
  const auto find = [&](const char* text) {
    qobject_cast<QLineEdit*>(QApplication::focusWidget())->clear();
    write(text);
    press(Qt::Key_Return);
  };
  find("step 6");
  EXPECT_EQ(step(), StepIdx{6});
  find("3:37");
  EXPECT_EQ(document().pinned(), of_token(SeqIdx{3}, TokIdx{37}));
  find("event 12");
  EXPECT_EQ(document().cursor().position(), Position{13});  // event 12 is the thirteenth
  find("finished");
  EXPECT_EQ(trace::kind_name(last_event(document().cursor())->index()), "request_finished");
  EXPECT_EQ(the<FindBar>().fault(), QString());
}

TEST_F(PanelsTest, FindShowsFaultsUnderTheField) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->actions()[Do::find]->trigger();
  write("99");
  press(Qt::Key_Return);
  EXPECT_EQ(the<FindBar>().fault(), QStringLiteral("find: '99': block 99 is outside [0, 33)"));
  press(Qt::Key_Backspace);
  EXPECT_EQ(the<FindBar>().fault(), QString());
  EXPECT_TRUE(document().pinned().none());
}

// Sequence 3 arrives in step 4; its page 4 is computed in that step.
TEST_F(PanelsTest, FindNamesTheFirstStepThatHasATokenWhichIsNotInTheCache) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->actions()[Do::find]->trigger();
  write("3:64");
  press(Qt::Key_Return);
  const auto words = [&] {
    QStringList all;
    for (const QLabel* label : the<FindBar>().findChildren<QLabel*>()) all << label->text();
    return all.join(QLatin1Char('\n')).toStdString();
  };
  const auto first = first_step_of(document().run(), SeqIdx{3}, TokIdx{64});
  ASSERT_TRUE(first);
  EXPECT_THAT(words(), testing::HasSubstr("Sequence 3, token 64: not in the cache\nIt is in the cache after step " +
                                          std::to_string(first->value) + " for the first time: find step " +
                                          std::to_string(first->value) + "."));
  document().seek_step(*first);
  EXPECT_TRUE(document().pinned_lit().token) << "the step has it";
  document().seek_step(StepIdx{first->value - 1});
  EXPECT_FALSE(document().pinned_lit().token) << "the step before has not";
}

// A link of the notes selects a lane before the tile is staged: the words follow when it arrives.
TEST_F(PanelsTest, WhyAndTheStatusFollowATileThatArrivesAfterTheSelection) {
  ASSERT_TRUE(open(path_of("first_light")));
  document().seek_step(StepIdx{6});
  window->set_view(View::tile);
  TileRequest request = document().tile_request();
  request.seq = SeqIdx{0};
  request.head = HeadIdx{1};
  document().choose_tile_at(request, std::nullopt);
  document().pin(of_tile_register({0, 26, 1, 0}));
  ASSERT_TRUE(wait_until([&] { return document().tile() != nullptr && document().tile()->opened.head == HeadIdx{1}; }));
  const auto named = why_part(document());
  ASSERT_TRUE(named);
  EXPECT_EQ(window->why().part(), *named);
  EXPECT_EQ(named->head, HeadIdx{1});
  const QString status = window->findChild<QLabel*>(QStringLiteral("selection"))->text();
  EXPECT_TRUE(status.startsWith(QLatin1String("Lane 26, register 1: token "))) << status.toStdString();
}

TEST_F(PanelsTest, TheTileBarAsksForATokenOnlyWhileNothingIsSelected) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->actions()[Do::view_tile]->trigger();
  const auto hint = [&] {
    for (const QLabel* label : the<TileBar>().findChildren<QLabel*>()) {
      if (label->text().contains(QLatin1String("Select a token"))) return true;
    }
    return false;
  };
  EXPECT_TRUE(hint());
  document().pin(of_token(SeqIdx{0}, TokIdx{3}));
  EXPECT_FALSE(hint());
  document().pin({});
  EXPECT_TRUE(hint());
}

TEST_F(PanelsTest, FindAsksTheBackendForAByteAndShowsItsElement) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->actions()[Do::find]->trigger();
  write("byte 0x40");
  press(Qt::Key_Return);
  ASSERT_TRUE(wait_until([&] { return document().pinned() == of_token(SeqIdx{0}, TokIdx{6}); }));
  EXPECT_EQ(window->why().part(), (WhyPart{LayerIdx{1}, HeadIdx{0}, DimIdx{0}, KOrV::v}));
  qobject_cast<QLineEdit*>(QApplication::focusWidget())->clear();
  write("byte 5000");
  press(Qt::Key_Return);
  EXPECT_TRUE(wait_until(
      [&] { return the<FindBar>().fault() == QLatin1String("byte 5000 is outside [0, 1000): the pool ends there"); }));
}

// --- breakpoints -----------------------------------------------------------------------------------------------------

TEST_F(PanelsTest, ABreakpointIsWrittenSwitchedOffAndRemovedWithKeys) {
  ASSERT_TRUE(open(path_of("preemption")));
  window->canvas().setFocus();
  press(Qt::Key_B, Qt::ControlModifier);
  write("request_preempted seq=5");
  press(Qt::Key_Return);
  ASSERT_EQ(document().breakpoints().size(), 1U);
  EXPECT_EQ(to_text(document().breakpoints()[0]), "request_preempted seq=5");
  auto* list = the<BreakpointsPanel>().findChild<QListView*>();
  list->setFocus();
  list->setCurrentIndex(list->model()->index(0, 0));
  press(Qt::Key_Space);
  EXPECT_FALSE(document().breakpoints()[0].enabled);
  EXPECT_FALSE(document().playing());
  press(Qt::Key_Delete);
  EXPECT_TRUE(document().breakpoints().empty());
}

TEST_F(PanelsTest, AnInvalidBreakpointShowsTheParsersMessage) {
  ASSERT_TRUE(open(path_of("preemption")));
  window->actions()[Do::add_breakpoint]->trigger();
  write("block_evictd");
  press(Qt::Key_Return);
  QStringList said;
  for (const QLabel* label : the<BreakpointsPanel>().findChildren<QLabel*>()) {
    if (label->isVisible() && label->property("fault").toBool()) said.push_back(label->text());
  }
  EXPECT_EQ(said, QStringList{QStringLiteral(
                      "breakpoint: 'block_evictd': is not a kind of event: did you mean \"block_evicted\"?")});
  EXPECT_TRUE(document().breakpoints().empty());
}

// The examples are part of the program's source: this test finds a misspelled one.
TEST_F(PanelsTest, EveryExampleOfABreakpointCanBeAdded) {
  ASSERT_TRUE(open(path_of("preemption")));
  raise("breakpoints");
  const auto* examples = the<BreakpointsPanel>().findChild<QMenu*>();
  ASSERT_GE(examples->actions().size(), 4);
  for (QAction* action : examples->actions()) action->trigger();
  EXPECT_EQ(document().breakpoints().size(), static_cast<std::size_t>(examples->actions().size()));
}

TEST_F(PanelsTest, BreakpointsGoFromRunToRun) {
  ASSERT_TRUE(open(path_of("preemption")));
  document().set_breakpoints({parse_breakpoint("block_copied")});
  ASSERT_TRUE(open(path_of("first_light")));
  ASSERT_EQ(document().breakpoints().size(), 1U);
}

// --- tables ----------------------------------------------------------------------------------------------------------

TEST_F(PanelsTest, AClickOnAnEventGoesRightAfterIt) {
  ASSERT_TRUE(open(path_of("preemption")));
  document().seek_step(StepIdx{3});
  raise("events");
  auto* table = the<EventsPanel>().findChild<QTableView*>();
  const QModelIndex third = table->model()->index(2, 1);
  table->scrollTo(third);
  QTest::mouseClick(table->viewport(), Qt::LeftButton, Qt::NoModifier, table->visualRect(third).center());
  EXPECT_EQ(document().cursor().position().value, document().run().span(4).first_event + 3);
  table->setFocus();
  table->setCurrentIndex(table->model()->index(4, 0));
  press(Qt::Key_Return);
  EXPECT_EQ(document().cursor().position().value, document().run().span(4).first_event + 5);
}

// The events panel and the find field must count events in the same way, from 0.
TEST_F(PanelsTest, ANumberOfTheEventsPanelTypedIntoFindLeadsToThatEvent) {
  ASSERT_TRUE(open(path_of("preemption")));
  document().seek_step(StepIdx{3});
  raise("events");
  auto* table = the<EventsPanel>().findChild<QTableView*>();
  const QString number = table->model()->index(2, 0).data().toString();
  EXPECT_EQ(number, QString::number(document().run().span(4).first_event + 2));
  document().to_start();
  window->actions()[Do::find]->trigger();
  write(("event " + number.toStdString()).c_str());
  press(Qt::Key_Return);
  EXPECT_EQ(table->model()->index(2, 0).data(EventModel::kLastRole), true);
  EXPECT_EQ(document().cursor().position().value, number.toLongLong() + 1);
}

TEST_F(PanelsTest, AClickOnASequencePinsItAndAPinnedOneIsSelected) {
  ASSERT_TRUE(open(path_of("preemption")));
  document().seek_step(StepIdx{3});
  raise("sequences");
  auto* table = the<SequencesPanel>().findChild<QTableView*>();
  table->sortByColumn(0, Qt::DescendingOrder);
  QTest::mouseClick(table->viewport(), Qt::LeftButton, Qt::NoModifier,
                    table->visualRect(table->model()->index(0, 1)).center());
  EXPECT_EQ(document().pinned(), of_sequence(SeqIdx{5}));
  document().pin(of_page(SeqIdx{4}, PageIdx{0}));
  EXPECT_EQ(table->currentIndex().row(), 1);
}

TEST_F(PanelsTest, ThePointerOverATableHighlightsUntilItLeaves) {
  ASSERT_TRUE(open(path_of("preemption")));
  document().seek_step(StepIdx{3});
  raise("sequences");
  auto* table = the<SequencesPanel>().findChild<QTableView*>();
  Q_EMIT table->entered(table->model()->index(2, 0));
  EXPECT_EQ(document().hovered(), of_sequence(SeqIdx{2}));
  QEvent leave(QEvent::Leave);
  QApplication::sendEvent(table->viewport(), &leave);
  EXPECT_TRUE(document().hovered().none());
}

// --- notes -----------------------------------------------------------------------------------------------------------

TEST(Notes, MakesEveryNumberOfAStepALink) {
  EXPECT_EQ(with_step_links(QStringLiteral("Step 3: a < b. It happens in steps 6, 10 and 19, to 4, 3 and 2.")),
            QStringLiteral("Step <a href=\"step:3\">3</a>: a &lt; b. It happens in steps <a href=\"step:6\">6</a>, "
                           "<a href=\"step:10\">10</a> and <a href=\"step:19\">19</a>, to 4, 3 and 2."));
  EXPECT_EQ(with_step_links(QStringLiteral("footstep 3, 51 and 69 steps instead of 47")),
            QStringLiteral("footstep 3, 51 and 69 steps instead of 47"));
}

TEST(Notes, LinksKeepTheirWordsAndTheRestItsSteps) {
  EXPECT_EQ(notes_html(parse_notes("Step 3: [a < b](step=4, view=pool), in steps 6 and 7.")),
            QStringLiteral("Step <a href=\"step:3\">3</a>: <a href=\"note:1\">a &lt; b</a>, in steps "
                           "<a href=\"step:6\">6</a> and <a href=\"step:7\">7</a>."));
}

// One link sets step, selection, view, tile and event; a second one, which no run supports, says why.
TEST_F(PanelsTest, ANoteLinkSetsEverythingThatItNames) {
  QFile source(path_of("first_light"));
  ASSERT_TRUE(source.open(QIODevice::ReadOnly));
  QByteArray text = source.readAll();
  const qsizetype at = text.indexOf("\"description\": \"") + 16;
  text.insert(at,
              "[Go](view=tile, step=6, tile=seq 3 token 64 k layer 1 head 1 tma, event=120, select=token 3:65) "
              "[V](tile=seq 3 token 64 v layer 1 head 1 tma) "
              "[No](step=999, view=sideways, tile=seq 77 k tma) ");
  const QString path = folder.filePath(QStringLiteral("linked.json"));
  QFile file(path);
  ASSERT_TRUE(file.open(QIODevice::WriteOnly) && file.write(text) == text.size());
  file.close();
  ASSERT_TRUE(open(path));
  const QStringList faults = window->messages().lines(QStringLiteral("notes"));
  ASSERT_EQ(faults.size(), 3);
  EXPECT_EQ(faults[0].toStdString(), "notes: link [No]: step 999 is outside [0, 25)");
  EXPECT_THAT(faults[1].toStdString(), testing::StartsWith("notes: link [No]: view: 'sideways': choose one of "));
  EXPECT_EQ(faults[2].toStdString(), "notes: link [No]: sequence 77 is outside [0, 5)");
  auto* browser = the<NotesPanel>().findChild<QTextBrowser*>();
  Q_EMIT browser->anchorClicked(QUrl(QStringLiteral("note:0")));
  EXPECT_EQ(window->view(), View::tile);
  EXPECT_EQ(step(), StepIdx{6});
  EXPECT_EQ(document().pinned(), of_token(SeqIdx{3}, TokIdx{65}));
  ASSERT_TRUE(
      wait_until([&] { return document().tile() != nullptr && document().tile()->opened.layer == LayerIdx{1}; }));
  EXPECT_EQ(document().tile()->opened.seq, SeqIdx{3});
  EXPECT_EQ(document().tile_now().event, 120);
  // Another tile of the same selection, and back to the first: a link can be undone.
  settle();
  Q_EMIT browser->anchorClicked(QUrl(QStringLiteral("note:2")));
  ASSERT_TRUE(wait_until([&] { return document().tile() != nullptr && document().tile()->opened.value; }));
  settle();
  window->actions()[Do::go_back]->trigger();
  EXPECT_TRUE(wait_until([&] { return document().tile() != nullptr && !document().tile()->opened.value; }));
  EXPECT_EQ(window->view(), View::tile);
}

TEST_F(PanelsTest, NotesHaveTheDescriptionWithLinksToSteps) {
  ASSERT_TRUE(open(path_of("preemption")));
  EXPECT_THAT(
      the<NotesPanel>().text().toStdString(),
      testing::AllOf(testing::StartsWith("Preemption\n"), testing::HasSubstr("24 blocks of 4 tokens"),
                     testing::HasSubstr("6 sequences, 47 steps, "), testing::HasSubstr("Step 22: the first two")));
  Q_EMIT the<NotesPanel>().findChild<QTextBrowser*>()->anchorClicked(QUrl(QStringLiteral("step:22")));
  EXPECT_EQ(step(), StepIdx{22});
}

// Regression: "5 sequences, 1 steps, 55 events", "1 layers".
TEST_F(PanelsTest, NotesWriteOneOfAThingInTheSingular) {
  ASSERT_TRUE(open(path_of("mla_rope")));
  EXPECT_THAT(the<NotesPanel>().text().toStdString(), testing::HasSubstr(": 1 layer, 1 KV head of "));
}

// --- transport -------------------------------------------------------------------------------------------------------

TEST_F(PanelsTest, TransportShowsThePosition) {
  ASSERT_TRUE(open(path_of("preemption")));
  QLabel* position = nullptr;
  for (QLabel* label : the<TransportBar>().findChildren<QLabel*>()) {
    if (label->objectName() == QLatin1String("position")) position = label;
  }
  ASSERT_NE(position, nullptr);
  EXPECT_EQ(position->text(), QStringLiteral("step 0 of 46"));
  document().to_start();
  EXPECT_EQ(position->text(), QStringLiteral("before step 0"));
  click(button(the<TransportBar>(), QStringLiteral("Step")));
  click(button(the<TransportBar>(), QStringLiteral("Step")));
  EXPECT_EQ(position->text(), QStringLiteral("step 1 of 46"));
}

// Regression: in the views of a tile and of the attention the buttons step through events and tiles, and the position
// beside them stayed "step 6 of 24".
TEST_F(PanelsTest, TransportShowsThePositionOfWhatItsButtonsMoveThrough) {
  ASSERT_TRUE(open(path_of("first_light")));
  const auto* const position = the<TransportBar>().findChild<QLabel*>(QStringLiteral("position"));
  const auto words = [&] { return position->text().toStdString(); };
  window->set_view(View::tile);
  ASSERT_TRUE(wait_until([&] { return document().tile() != nullptr; }));
  document().tile_to_start();
  const std::string all = " of " + number_text(document().tile()->events).toStdString();
  EXPECT_EQ(words(), "event 0" + all);
  click(button(the<TransportBar>(), QStringLiteral("Next event")));
  EXPECT_EQ(words(), "event 1" + all);
  EXPECT_TRUE(position->toolTip().endsWith(QStringLiteral("The run: step 0 of 24")));
  window->set_view(View::attention);
  ASSERT_TRUE(wait_until([&] { return document().attention().flow() != nullptr; }));
  EXPECT_EQ(words(), "2 of 2 tiles");
  click(button(the<TransportBar>(), QStringLiteral("Step back")));
  EXPECT_EQ(words(), "1 of 2 tiles");
  window->set_view(View::overview);
  EXPECT_EQ(words(), "step 0 of 24");
}

TEST_F(PanelsTest, SpeedSliderAndNumberGoTogether) {
  ASSERT_TRUE(open(path_of("preemption")));
  auto* slider = the<TransportBar>().findChild<QSlider*>();
  auto* number = the<TransportBar>().findChild<QDoubleSpinBox*>();
  EXPECT_EQ(number->value(), 4);
  slider->setValue(slider->maximum());
  EXPECT_EQ(number->value(), Player::kFastest);
  EXPECT_EQ(document().speed(), Player::kFastest);
  slider->setValue(0);
  EXPECT_EQ(document().speed(), Player::kSlowest);
  number->setValue(8);
  EXPECT_EQ(document().speed(), 8);
  EXPECT_EQ(slider->value(), 20);  // five doublings above a quarter, in quarters
  number->stepUp();
  EXPECT_EQ(document().speed(), 16);
}

// --- writing ---------------------------------------------------------------------------------------------------------

class WritingTest : public PanelsTest {
 protected:
  // Answers the file dialog that the action opens.
  void answer(const QString& path) const {
    auto* dialog = window->findChild<QFileDialog*>();
    ASSERT_NE(dialog, nullptr);
    dialog->selectFile(path);
    QMetaObject::invokeMethod(dialog, "accept");
  }
  [[nodiscard]] bool written() const {
    return wait_until([&] { return window->statusBar()->currentMessage().startsWith(QLatin1String("written: ")); });
  }
};

TEST_F(WritingTest, ASavedTraceIsTheSameRun) {
  ASSERT_TRUE(open(path_of("first_light")));
  const QString target = folder.filePath(QStringLiteral("saved.kvt"));
  window->actions()[Do::save_trace]->trigger();
  answer(target);
  ASSERT_TRUE(written());
  const std::unique_ptr<viz::Run> again = viz::Run::open(open_trace(target.toStdString()), "saved");
  ASSERT_EQ(again->facts().events, document().run().facts().events);
  EXPECT_EQ(again->facts().scenario, document().run().facts().scenario);
  EventTape::Reader a(again->tape(), 0), b(document().run().tape(), 0);
  while (a.position() < again->facts().events) ASSERT_TRUE(trace::same_event(a.next(), b.next())) << a.position();
}

TEST_F(WritingTest, AMissingFolderIsReportedAndNothingIsLost) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->actions()[Do::save_trace]->trigger();
  auto* dialog = window->findChild<QFileDialog*>();
  ASSERT_NE(dialog, nullptr);
  Q_EMIT dialog->fileSelected(QStringLiteral("/nowhere/at/all.kvt"));
  dialog->close();
  ASSERT_TRUE(wait_until([&] { return window->messages().showing(QStringLiteral("write")); }));
  ASSERT_EQ(window->messages().lines(QStringLiteral("write")).size(), 1);
  EXPECT_THAT(window->messages().lines(QStringLiteral("write"))[0].toStdString(),
              testing::StartsWith("/nowhere/at/all.kvt: cannot be written: "));
  EXPECT_EQ(window->document()->path(), path_of("first_light"));
}

TEST_F(WritingTest, ExportWritesThePictureOfTheCanvas) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->actions()[Do::export_picture]->trigger();
  ASSERT_TRUE(the<ExportBar>().isVisible());
  const QString target = folder.filePath(QStringLiteral("picture.png"));
  click(button(the<ExportBar>(), QStringLiteral("Save the picture")));
  answer(target);
  ASSERT_TRUE(written());
  EXPECT_EQ(QImageReader(target).size(),
            window->canvas().size() - QSize(0, window->canvas().height() - QImageReader(target).size().height()));
  EXPECT_FALSE(the<ExportBar>().isVisible());
}

TEST_F(WritingTest, AnExportThatFailsShowsWhyAndKeepsTheDocument) {
  ASSERT_TRUE(open(path_of("first_light")));
  document().seek_step(StepIdx{5});
  document().pin(of_block(BlockIdx{2}));
  const Document* before = window->document();
  for (const char* name :
       {"/nowhere/at/all.png", "/nowhere/at/all.svg", "/nowhere/at/all.pdf", "/nowhere/at/all.tikz",
        "/nowhere/at/all.gif"}) {
    window->actions()[Do::export_picture]->trigger();
    click(button(the<ExportBar>(), QStringLiteral("Save the picture")));
    auto* dialog = window->findChild<QFileDialog*>();
    ASSERT_NE(dialog, nullptr);
    Q_EMIT dialog->fileSelected(QString::fromLatin1(name));
    dialog->close();
    delete dialog;
    ASSERT_TRUE(wait_until([&] { return window->messages().showing(QStringLiteral("write")); })) << name;
    ASSERT_EQ(window->messages().lines(QStringLiteral("write")).size(), 1) << name;
    EXPECT_THAT(window->messages().lines(QStringLiteral("write"))[0].toStdString(), testing::StartsWith(name)) << name;
    EXPECT_EQ(window->document(), before) << name;
    EXPECT_EQ(step(), StepIdx{5}) << name;
    EXPECT_EQ(document().pinned(), of_block(BlockIdx{2})) << name;
    window->messages().dismiss(QStringLiteral("write"));
  }
}

TEST_F(WritingTest, TheBarShowsTheFieldsOfItsFormat) {
  ASSERT_TRUE(open(path_of("preemption")));
  document().seek_step(StepIdx{10});
  window->actions()[Do::export_picture]->trigger();
  auto* format = the<ExportBar>().findChild<QComboBox*>();
  const auto shown = [&](const char* name) {
    for (const QWidget* w : the<ExportBar>().findChildren<QWidget*>()) {
      if (w->accessibleName() == QLatin1String(name)) return w->isVisible();
    }
    return false;
  };
  EXPECT_EQ(the<ExportBar>().suffix(), QStringLiteral("png"));
  EXPECT_FALSE(shown("First step"));
  format->setCurrentIndex(format->findData(static_cast<int>(PictureFormat::gif)));
  EXPECT_EQ(the<ExportBar>().suffix(), QStringLiteral("gif"));
  EXPECT_TRUE(shown("First step"));
  EXPECT_TRUE(shown("Pixels of the file per pixel of the picture"));
  EXPECT_EQ(the<ExportBar>().first_row(), 11);
  Picture picture;
  the<ExportBar>().fill(picture);
  EXPECT_EQ(picture.last_row, 47);  // the run has fewer than 60 more steps
  format->setCurrentIndex(1);
  EXPECT_FALSE(shown("Pixels of the file per pixel of the picture"));
  the<ExportBar>().fill(picture);
  EXPECT_EQ(picture.last_row, std::nullopt);
}

}  // namespace
}  // namespace kvscope::viz::panels_test
