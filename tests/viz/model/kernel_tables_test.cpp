// The tables of a kernel's state over random states: every cell and every mark is computed again by separate code.
#include "viz/model/kernel_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include <QtTest/QAbstractItemModelTester>
#include <QtTest/QSignalSpy>

#include "tests/property.h"

namespace kvscope::viz::kernel_tables_test {
namespace {

using Tester = QAbstractItemModelTester;
constexpr auto kFatal = Tester::FailureReportingMode::Fatal;

QString cell(const QAbstractItemModel& model, int row, int column, int role = Qt::DisplayRole) {
  return model.index(row, column).data(role).toString();
}

KernelCode some_code() {
  KernelCode code;
  code.sources = {{.path = "/a/b/scale.cu", .lines = {"x", "y"}, .lines_with_code = {1, 2}},
                  {.path = "out/scale.ptx", .lines = {"p", "q"}, .lines_with_code = {1}}};
  code.instructions = {{.text = "mov.u32 %r1, 0", .source = 0, .line = 2, .ptx_line = 18},
                       {.text = "@%p1 bra L", .source = -1, .line = 0, .ptx_line = 19},
                       {.text = "ret", .source = 0, .line = 1, .ptx_line = 20}};
  return code;
}

KernelGroup group_of(std::int32_t cta, std::int32_t warp, std::int32_t instruction = 0) {
  return {.cta = cta,
          .warp = warp,
          .cta_name = "(" + std::to_string(cta) + ",0,0)",
          .lanes = "all lanes",
          .state = KernelGroup::State::ready,
          .instruction = instruction,
          .waits_for = ""};
}

// Few names, values and warps, so that equal ones are frequent. A lane without a value is not in the group.
KernelState random_state() {
  KernelState state;
  state.step = prop::in_range<std::uint64_t>(0, 50);
  const int groups = prop::in_range(0, 4);
  for (int n = 0; n < groups; ++n) {
    KernelGroup group = group_of(prop::in_range(0, 2), prop::in_range(0, 2), prop::in_range(0, 3));
    group.state = prop::one_of(KernelGroup::State::next, KernelGroup::State::ready, KernelGroup::State::waits);
    group.waits_for = "barrier " + std::to_string(n);
    state.groups.push_back(group);
  }
  if (groups > 0) state.shown = prop::in_range(0, groups);
  if (groups > 0) state.next = prop::in_range(-1, groups);
  if (state.shown >= 0) {
    const std::uint64_t lanes = prop::uniform<std::uint64_t>(0, std::uint64_t{1} << 32);
    for (const char* name : {"%r1", "%r2", "%p1", "%f7"}) {
      if (!prop::any<bool>()) continue;
      KernelRegister reg{.name = name, .type = "u32", .values = {}, .bits = {}};
      for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
        if ((lanes >> lane & 1) == 0) continue;
        const int value = prop::in_range(0, 3);
        reg.values[lane] = std::to_string(value);
        reg.bits[lane] = "0000000" + std::to_string(value);
      }
      state.registers.push_back(reg);
    }
  }
  const int reports = prop::in_range(0, 4);
  for (int n = 0; n < reports; ++n) {
    state.reports.push_back({.step = prop::in_range<std::uint64_t>(0, 50),
                             .title = "KIND" + std::to_string(n),
                             .message = "message " + std::to_string(n),
                             .text = "text " + std::to_string(n),
                             .severity = prop::one_of("error", "warning", "note"),
                             .instruction = prop::in_range(-1, 3)});
  }
  return state;
}

// --- places ----------------------------------------------------------------------------------------------------------

TEST(KernelPlace, IsTheSourceLineOrThatOfThePtx) {
  const KernelCode code = some_code();
  EXPECT_EQ(place_of(code, 0), QStringLiteral("scale.cu:2"));
  EXPECT_EQ(place_of(code, 1), QStringLiteral("scale.ptx:19"));  // no line information
  EXPECT_EQ(place_of(code, -1), QString());
  EXPECT_EQ(place_of(code, 3), QString());
  EXPECT_EQ(place_of({}, 0), QString());
}

// --- lane groups -----------------------------------------------------------------------------------------------------

TEST(KernelGroupTable, ShowsTheGroupsOfAnyState) {
  const KernelCode code = some_code();
  EXPECT_TRUE(prop::check([&] {
    KernelGroupModel model;
    const Tester tester(&model, kFatal);
    for (int n = 0; n < 3; ++n) {
      const KernelState state = random_state();
      model.set_state(code, state);
      RC_ASSERT(model.rowCount() == static_cast<int>(state.groups.size()));
      for (int row = 0; row < model.rowCount(); ++row) {
        const KernelGroup& group = state.groups[static_cast<std::size_t>(row)];
        RC_ASSERT(cell(model, row, KernelGroupModel::kCta).toStdString() == group.cta_name);
        RC_ASSERT(cell(model, row, KernelGroupModel::kWarp).toInt() == group.warp);
        RC_ASSERT(cell(model, row, KernelGroupModel::kLanes).toStdString() == group.lanes);
        const std::string says = cell(model, row, KernelGroupModel::kGroupState).toStdString();
        RC_ASSERT(says == (group.state == KernelGroup::State::next    ? "next"
                           : group.state == KernelGroup::State::ready ? "ready"
                                                                      : "waits for " + group.waits_for));
        RC_ASSERT(cell(model, row, KernelGroupModel::kPlace) == place_of(code, group.instruction));
        RC_ASSERT(cell(model, row, KernelGroupModel::kInstruction).toStdString() ==
                  code.instructions[static_cast<std::size_t>(group.instruction)].text);
        RC_ASSERT(model.index(row, 0).data(KernelGroupModel::kNextRole).toBool() == (row == state.next));
        RC_ASSERT(model.group(row).cta == group.cta);
      }
    }
    model.clear();
    RC_ASSERT(model.rowCount() == 0);
  }));
}

// --- registers -------------------------------------------------------------------------------------------------------

// Which (register, lane) have another value than before, by maps instead of rows.
using Values = std::map<std::pair<std::string, int>, std::string>;
Values values_of(const KernelState& state) {
  Values out;
  for (const KernelRegister& reg : state.registers) {
    for (int lane = 0; lane < kWarpLanes; ++lane) {
      const std::string& bits = reg.bits[static_cast<std::size_t>(lane)];
      if (!bits.empty()) out[{reg.name, lane}] = bits;
    }
  }
  return out;
}
std::pair<int, int> warp_of(const KernelState& state) {
  if (state.shown < 0) return {-1, -1};
  const KernelGroup& group = state.groups[static_cast<std::size_t>(state.shown)];
  return {group.cta, group.warp};
}

TEST(KernelRegisterTable, MarksExactlyTheValuesThatTheStateBeforeOfTheSameWarpDidNotHave) {
  std::size_t marked = 0, same = 0, other_warp = 0;
  EXPECT_TRUE(prop::check([&] {
    KernelRegisterModel model;
    const Tester tester(&model, kFatal);
    KernelState before;
    for (int n = 0; n < 4; ++n) {
      const KernelState now = random_state();
      model.set_state(now);
      const Values old = values_of(before), values = values_of(now);
      const bool comparable = now.shown >= 0 && warp_of(now) == warp_of(before);
      RC_ASSERT(model.rowCount() == static_cast<int>(now.registers.size()));
      for (int row = 0; row < model.rowCount(); ++row) {
        const std::string name = cell(model, row, KernelRegisterModel::kName).toStdString();
        RC_ASSERT(name == now.registers[static_cast<std::size_t>(row)].name);
        RC_ASSERT(cell(model, row, KernelRegisterModel::kType) == QStringLiteral("u32"));
        RC_ASSERT(!model.index(row, 0).data(KernelRegisterModel::kChangedRole).toBool());
        for (int lane = 0; lane < kWarpLanes; ++lane) {
          const QModelIndex index = model.index(row, KernelRegisterModel::kFirstLane + lane);
          const auto value = values.find({name, lane});
          const auto was = old.find({name, lane});
          const bool changed =
              comparable && value != values.end() && (was == old.end() || was->second != value->second);
          RC_ASSERT(index.data(KernelRegisterModel::kChangedRole).toBool() == changed);
          const std::string text = value == values.end() ? "" : value->second.substr(7);
          RC_ASSERT(index.data().toString().toStdString() == text);
          RC_ASSERT(index.data(Qt::ToolTipRole).toString().isEmpty() == text.empty());
          marked += changed ? 1 : 0;
          same += comparable && !changed ? 1 : 0;
          other_warp += comparable ? 0 : 1;
        }
      }
      before = now;
    }
    model.clear();
    RC_ASSERT(model.rowCount() == 0);
    model.set_state(before);  // nothing is before it
    for (int row = 0; row < model.rowCount(); ++row) {
      for (int column = 0; column < model.columnCount(); ++column) {
        RC_ASSERT(!model.index(row, column).data(KernelRegisterModel::kChangedRole).toBool());
      }
    }
  }));
  // The random states have all three cases.
  EXPECT_GT(marked, 100U);
  EXPECT_GT(same, 100U);
  EXPECT_GT(other_warp, 100U);
}

TEST(KernelRegisterTable, ShowsBitsInPlaceOfValues) {
  KernelRegisterModel model;
  const Tester tester(&model, kFatal);
  model.set_bits(false);  // without rows
  KernelState state;
  state.groups = {group_of(0, 0)};
  state.shown = 0;
  KernelRegister reg{.name = "%f1", .type = "f32", .values = {}, .bits = {}};
  reg.values[3] = "2.5";
  reg.bits[3] = "40200000";
  state.registers = {reg};
  model.set_state(state);
  const QModelIndex index = model.index(0, KernelRegisterModel::kFirstLane + 3);
  EXPECT_EQ(index.data().toString(), QStringLiteral("2.5"));
  const QSignalSpy changes(&model, &QAbstractItemModel::dataChanged);
  model.set_bits(true);
  ASSERT_EQ(changes.size(), 1);
  EXPECT_EQ(changes[0][1].toModelIndex().column(), KernelRegisterModel::kFirstLane + kWarpLanes - 1);
  EXPECT_EQ(index.data().toString(), QStringLiteral("40200000"));
  EXPECT_EQ(index.data(Qt::ToolTipRole).toString(), QStringLiteral("%f1 of lane 3: 2.5, bits 40200000"));
  EXPECT_EQ(model.index(0, KernelRegisterModel::kFirstLane).data().toString(), QString());
  EXPECT_EQ(model.headerData(KernelRegisterModel::kFirstLane + 31, Qt::Horizontal, Qt::DisplayRole).toString(),
            QStringLiteral("31"));
  EXPECT_EQ(model.headerData(0, Qt::Horizontal, Qt::DisplayRole).toString(), QStringLiteral("Register"));
}

// --- reports ---------------------------------------------------------------------------------------------------------

TEST(KernelReportTable, ShowsWhichReportsAreBehindThePosition) {
  const KernelCode code = some_code();
  EXPECT_TRUE(prop::check([&] {
    KernelReportModel model;
    const Tester tester(&model, kFatal);
    for (int n = 0; n < 3; ++n) {
      const KernelState state = random_state();
      model.set_state(code, state);
      RC_ASSERT(model.rowCount() == static_cast<int>(state.reports.size()));
      for (int row = 0; row < model.rowCount(); ++row) {
        const KernelReport& report = state.reports[static_cast<std::size_t>(row)];
        RC_ASSERT(cell(model, row, KernelReportModel::kStep).toULongLong() == report.step);
        RC_ASSERT(cell(model, row, KernelReportModel::kKind).toStdString() == report.severity + " " + report.title);
        RC_ASSERT(cell(model, row, KernelReportModel::kWhere) == place_of(code, report.instruction));
        RC_ASSERT(cell(model, row, KernelReportModel::kWhat).toStdString() == report.message);
        RC_ASSERT(cell(model, row, KernelReportModel::kWhat, Qt::ToolTipRole).toStdString() == report.text);
        RC_ASSERT(model.report(row).title == report.title);
        RC_ASSERT(model.index(row, 0).data(KernelReportModel::kHappenedRole).toBool() == (report.step <= state.step));
      }
    }
    model.clear();
    RC_ASSERT(model.rowCount() == 0);
  }));
}

}  // namespace
}  // namespace kvscope::viz::kernel_tables_test
