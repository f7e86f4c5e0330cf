// The item models: QAbstractItemModelTester checks every signal during moves through a run, and the rows are compared
// with the state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include <QtCore/QPersistentModelIndex>
#include <QtCore/QSortFilterProxyModel>
#include <QtTest/QAbstractItemModelTester>
#include <QtTest/QSignalSpy>

#include "core/trace/event_text.h"
#include "tests/viz/model/support.h"
#include "tests/viz/playback/memory_source.h"
#include "viz/model/breakpoint_model.h"
#include "viz/model/event_model.h"
#include "viz/model/gallery_model.h"
#include "viz/model/sequence_model.h"

namespace kvscope::viz::models_test {
namespace {

using testing_support::preemption_run;
using Tester = QAbstractItemModelTester;
constexpr auto kFatal = Tester::FailureReportingMode::Fatal;

QString cell(const QAbstractItemModel& model, int row, int column, int role = Qt::DisplayRole) {
  return model.index(row, column).data(role).toString();
}

// --- sequences -------------------------------------------------------------------------------------------------------

// Every cell is computed from the state by separate code.
void expect_rows_of_state(const SequenceModel& model, const State& state) {
  ASSERT_EQ(model.rowCount(), static_cast<int>(state.live.size()));
  for (int r = 0; r < model.rowCount(); ++r) {
    const SeqIdx seq = state.live[static_cast<std::size_t>(r)];
    const SequenceState& s = state.sequences[seq.value];
    EXPECT_EQ(cell(model, r, 0), QString::number(seq.value));
    EXPECT_EQ(cell(model, r, 1), s.phase == Phase::waiting     ? QStringLiteral("waiting")
                                 : s.phase == Phase::preempted ? QStringLiteral("preempted")
                                                               : QStringLiteral("running"));
    EXPECT_EQ(cell(model, r, 2), QString::number(s.tokens));
    EXPECT_EQ(cell(model, r, 3), QString::number(s.prompt_tokens));
    EXPECT_EQ(cell(model, r, 4), QStringLiteral("%1 of %2")
                                     .arg(s.tokens > s.prompt_tokens ? s.tokens - s.prompt_tokens : 0)
                                     .arg(s.generate_tokens));
    EXPECT_EQ(cell(model, r, 5), QString::number(s.hit_tokens));
    EXPECT_EQ(cell(model, r, 6), QString::number((s.tokens + 3) / 4));  // no sharing, pages of 4 tokens
    EXPECT_EQ(cell(model, r, 7), QString::number(s.preemptions));
    EXPECT_EQ(model.row_of(seq), r);
  }
}

TEST(SequenceModel, ShowsTheLiveSequencesOfEveryStep) {
  Document document(preemption_run(), {});
  SequenceModel model;
  const Tester tester(&model, kFatal);
  model.set_document(&document);
  for (document.to_start(); !document.cursor().at_end(); document.step())
    expect_rows_of_state(model, document.cursor().state());
  document.to_start();
  EXPECT_EQ(model.rowCount(), 0);
  EXPECT_EQ(model.row_of(SeqIdx{0}), -1);
}

// Rows are inserted and removed in the middle: simpler moves would not find a model that inserts at a wrong row.
RC_GTEST_PROP(SequenceModelProperty, JumpsKeepEveryRowTrueAndTheTesterContent, ()) {
  Document document(preemption_run(), {});
  SequenceModel model;
  const Tester tester(&model, kFatal);
  model.set_document(&document);
  for (int i = 0; i < 8; ++i) {
    document.seek_step(StepIdx(*rc::gen::inRange(-1, 48)));
    expect_rows_of_state(model, document.cursor().state());
  }
}

TEST(SequenceModel, KeepsASelectedRowWhileOthersComeAndGo) {
  Document document(preemption_run(), {});
  SequenceModel model;
  model.set_document(&document);
  document.seek_step(StepIdx{20});
  const QPersistentModelIndex second(model.index(model.row_of(SeqIdx{1}), 2));
  document.seek_step(StepIdx{2});
  EXPECT_TRUE(second.isValid());
  EXPECT_EQ(model.sequence(second.row()), SeqIdx{1});
}

// Sorting "10 of 22" and "9 of 22" as text puts 10 first.
TEST(SequenceModel, SortsByNumbersThroughAProxy) {
  Document document(preemption_run(), {});
  SequenceModel model;
  model.set_document(&document);
  document.seek_step(StepIdx{12});
  QSortFilterProxyModel sorted;
  sorted.setSourceModel(&model);
  sorted.setSortRole(SequenceModel::kSortRole);
  for (int column = 0; column < model.columnCount(); ++column) {
    sorted.sort(column);
    for (int r = 1; r < sorted.rowCount(); ++r) {
      EXPECT_LE(sorted.index(r - 1, column).data(SequenceModel::kSortRole).toLongLong(),
                sorted.index(r, column).data(SequenceModel::kSortRole).toLongLong());
    }
  }
}

TEST(SequenceModel, CatchesUpWhenItIsWatchedAgain) {
  Document document(preemption_run(), {});
  SequenceModel model;
  model.set_document(&document);
  model.set_watched(false);
  QSignalSpy told(&model, &QAbstractItemModel::dataChanged);
  document.seek_step(StepIdx{20});
  EXPECT_EQ(told.count(), 0);
  model.set_watched(true);
  expect_rows_of_state(model, document.cursor().state());
}

TEST(SequenceModel, EmptiesWhenItsDocumentGoes) {
  SequenceModel model;
  const Tester tester(&model, kFatal);
  {
    Document document(preemption_run(), {});
    model.set_document(&document);
    document.seek_step(StepIdx{3});
    ASSERT_GT(model.rowCount(), 0);
  }
  EXPECT_EQ(model.rowCount(), 0);
}

TEST(SequenceModel, AccessibleTextHasColumnAndValue) {
  Document document(preemption_run(), {});
  SequenceModel model;
  model.set_document(&document);
  EXPECT_EQ(cell(model, 0, SequenceModel::kTokens, Qt::AccessibleTextRole), QStringLiteral("Tokens 14"));
  EXPECT_EQ(model.headerData(SequenceModel::kHits, Qt::Horizontal).toString(), QStringLiteral("Prefix hits"));
}

// --- events ----------------------------------------------------------------------------------------------------------

TEST(EventModel, ShowsTheStepsEventsWithTheLastOneMarkedAndTheRestToCome) {
  Document document(preemption_run(), {});
  EventModel model;
  const Tester tester(&model, kFatal);
  model.set_document(&document);
  for (document.seek_step(StepIdx{2}); document.cursor().state().step.value < 7; document.next_event()) {
    const std::int64_t row = document.cursor().row(), first = preemption_run()->span(row).first_event;
    const auto events = preemption_run()->events_of_row(row);
    ASSERT_EQ(model.rowCount(), static_cast<int>(events->size()));
    int marked = 0;
    for (int r = 0; r < model.rowCount(); ++r) {
      const std::string line = trace::to_text((*events)[static_cast<std::size_t>(r)]);
      EXPECT_EQ(cell(model, r, 0), QString::number(first + r));
      EXPECT_EQ(cell(model, r, 1).toStdString() + " " + cell(model, r, 2).toStdString(), line);
      EXPECT_EQ(cell(model, r, 0, EventModel::kTextRole).toStdString(), line);
      EXPECT_EQ(model.index(r, 0).data(EventModel::kHappenedRole).toBool(),
                first + r < document.cursor().position().value);
      marked += model.index(r, 0).data(EventModel::kLastRole).toBool() ? 1 : 0;
    }
    EXPECT_EQ(marked, 1);
    EXPECT_EQ(model.after(model.last_row()), document.cursor().position());
  }
}

TEST(EventModel, ChangesOnlyTheMarksInsideAStep) {
  Document document(preemption_run(), {});
  EventModel model;
  model.set_document(&document);
  document.seek_step(StepIdx{3});
  QSignalSpy reset(&model, &QAbstractItemModel::modelReset), changed(&model, &QAbstractItemModel::dataChanged);
  document.previous_event();
  EXPECT_EQ(reset.count(), 0);
  ASSERT_EQ(changed.count(), 1);
  EXPECT_EQ(changed[0][0].toModelIndex().row(), model.rowCount() - 2);
  EXPECT_EQ(changed[0][1].toModelIndex().row(), model.rowCount() - 1);
}

TEST(EventModel, NamesWhatAnEventIsAbout) {
  const std::shared_ptr<const viz::Run> run = viz::Run::open(
      from_memory({trace::StepBegan{StepIdx{0}, 0}, trace::RequestArrived{SeqIdx{2}, 5, 1},
                   trace::RequestAdmitted{SeqIdx{2}, 0}, trace::BlockAllocated{BlockIdx{4}, SeqIdx{2}, PageIdx{0}}},
                  {}, trace::Detail::full),
      "four");
  Document document(run, {});
  EventModel model;
  model.set_document(&document);
  EXPECT_EQ(model.object(0), of_step(StepIdx{0}));
  EXPECT_EQ(model.object(1), of_sequence(SeqIdx{2}));
  EXPECT_EQ(model.object(3), of_block(BlockIdx{4}));
  EXPECT_EQ(cell(model, 3, 0, Qt::AccessibleTextRole),
            QStringLiteral("event 3, happened last: block_allocated block=4 seq=2 page=0"));
  document.previous_event();
  EXPECT_EQ(cell(model, 3, 0, Qt::AccessibleTextRole),
            QStringLiteral("event 3, still to come: block_allocated block=4 seq=2 page=0"));
}

// --- breakpoints -----------------------------------------------------------------------------------------------------

struct Breakpoints {
  Document document{preemption_run(), {}};
  BreakpointModel model;
  Tester tester{&model, kFatal};
  QSignalSpy rejected{&model, &BreakpointModel::rejected};
  Breakpoints() { model.set_document(&document); }
};

TEST(BreakpointModel, AddsValidTextAndReportsInvalidText) {
  Breakpoints b;
  EXPECT_TRUE(b.model.add(QStringLiteral("  block_evicted  block=3 ")));
  EXPECT_EQ(cell(b.model, 0, 0), QStringLiteral("block_evicted block=3"));
  EXPECT_EQ(b.rejected.count(), 0);
  EXPECT_FALSE(b.model.add(QStringLiteral("block_evictd")));
  ASSERT_EQ(b.rejected.count(), 1);
  const QStringList faults = b.rejected[0][0].toStringList();
  ASSERT_EQ(faults.size(), 1);
  EXPECT_THAT(faults[0].toStdString(),
              testing::AllOf(testing::StartsWith("breakpoint: "), testing::HasSubstr("block_evicted")));
  EXPECT_EQ(b.document.breakpoints().size(), 1U);
}

TEST(BreakpointModel, DoesNotAddTwiceButSwitchesOnAgain) {
  Breakpoints b;
  b.model.add(QStringLiteral("block_evicted"));
  EXPECT_TRUE(b.model.setData(b.model.index(0), Qt::Unchecked, Qt::CheckStateRole));
  EXPECT_FALSE(b.document.breakpoints()[0].enabled);
  EXPECT_TRUE(b.model.add(QStringLiteral("block_evicted")));
  ASSERT_EQ(b.model.rowCount(), 1);
  EXPECT_TRUE(b.document.breakpoints()[0].enabled);
}

TEST(BreakpointModel, EditsInPlaceAndKeepsWhatItWasWhenTheTextIsNone) {
  Breakpoints b;
  b.model.add(QStringLiteral("block_evicted"));
  b.model.setData(b.model.index(0), Qt::Unchecked, Qt::CheckStateRole);
  EXPECT_TRUE(b.model.setData(b.model.index(0), QStringLiteral("step_ended free_blocks<4")));
  EXPECT_EQ(cell(b.model, 0, 0), QStringLiteral("step_ended free_blocks<4"));
  EXPECT_FALSE(b.document.breakpoints()[0].enabled);
  EXPECT_FALSE(b.model.setData(b.model.index(0), QStringLiteral("step_ended free_blocks")));
  EXPECT_EQ(b.rejected.count(), 1);
  EXPECT_EQ(cell(b.model, 0, 0), QStringLiteral("step_ended free_blocks<4"));
}

TEST(BreakpointModel, RemovesTheRowThatIsMeant) {
  Breakpoints b;
  for (const char* text : {"block_evicted", "block_copied", "request_refused"}) b.model.add(QString::fromLatin1(text));
  EXPECT_TRUE(b.model.removeRow(1));
  ASSERT_EQ(b.model.rowCount(), 2);
  EXPECT_EQ(cell(b.model, 1, 0), QStringLiteral("request_refused"));
  EXPECT_FALSE(b.model.removeRow(2));
  EXPECT_FALSE(b.model.removeRows(1, 2));
}

TEST(BreakpointModel, WithoutADocumentReportsThatNoFileIsOpen) {
  BreakpointModel model;
  QSignalSpy rejected(&model, &BreakpointModel::rejected);
  EXPECT_FALSE(model.add(QStringLiteral("block_evicted")));
  EXPECT_EQ(rejected.takeFirst()[0].toStringList(), QStringList{QStringLiteral("no file is open")});
}

TEST(BreakpointModel, AccessibleTextHasTheState) {
  Breakpoints b;
  b.model.add(QStringLiteral("block_evicted"));
  EXPECT_EQ(cell(b.model, 0, 0, Qt::AccessibleTextRole), QStringLiteral("breakpoint 1: block_evicted, enabled"));
}

// --- gallery ---------------------------------------------------------------------------------------------------------

TEST(GalleryModel, ShowsNameParagraphAndPath) {
  GalleryModel model(Gallery{{{"/a/first.json", "First", "Look at step 3."}, {"/a/second.json", "Second", ""}}, {}});
  const Tester tester(&model, kFatal);
  ASSERT_EQ(model.rowCount(), 2);
  EXPECT_EQ(cell(model, 0, 0), QStringLiteral("First"));
  EXPECT_EQ(cell(model, 0, 0, GalleryModel::kDescriptionRole), QStringLiteral("Look at step 3."));
  EXPECT_EQ(cell(model, 1, 0, GalleryModel::kPathRole), QStringLiteral("/a/second.json"));
  EXPECT_EQ(model.path(1), QStringLiteral("/a/second.json"));
  EXPECT_EQ(cell(model, 0, 0, Qt::AccessibleTextRole), QStringLiteral("First. Look at step 3."));
}

}  // namespace
}  // namespace kvscope::viz::models_test
