#include "viz/model/scenario_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include <QtTest/QAbstractItemModelTester>
#include <QtTest/QSignalSpy>

#include "core/scenario/scenario_json.h"

namespace kvscope::viz::scenario_model_test {
namespace {

using testing::HasSubstr;

Scenario scenario_of(const std::string& members) {
  return parse_scenario(R"({"kvscope_scenario": 1, )" + members + R"("requests": {"list": [{"prompt_tokens": 9}]}})",
                        "test");
}

struct Fixture {
  explicit Fixture(const std::string& members = "") { model.set_scenario(scenario_of(members)); }
  [[nodiscard]] QModelIndex at(const char* path, int column = ScenarioModel::kValue) const {
    return model.index_of(QString::fromLatin1(path), column);
  }
  [[nodiscard]] std::string text(const char* path, int role = Qt::DisplayRole) const {
    return at(path).data(role).toString().toStdString();
  }
  ScenarioModel model;
  QAbstractItemModelTester tester{&model, QAbstractItemModelTester::FailureReportingMode::Fatal};
};

TEST(ScenarioModel, IsATreeOfAllFields) {
  Fixture f;
  int rows = 0;
  const std::function<void(const QModelIndex&, const DraftField&)> compare = [&](const QModelIndex& parent,
                                                                                 const DraftField& field) {
    ASSERT_EQ(f.model.rowCount(parent), std::ssize(field.fields));
    for (int row = 0; row < f.model.rowCount(parent); ++row) {
      const DraftField& inner = field.fields[static_cast<std::size_t>(row)];
      const QModelIndex index = f.model.index(row, ScenarioModel::kField, parent);
      EXPECT_EQ(index.data().toString().toStdString(), inner.name);
      EXPECT_EQ(index.data(ScenarioModel::kPathRole).toString().toStdString(), inner.path);
      EXPECT_EQ(f.model.index_of(QString::fromStdString(inner.path)), index);
      EXPECT_EQ(f.model.field(index), &inner);
      ++rows;
      compare(index, inner);
    }
  };
  compare({}, f.model.draft()->root());
  EXPECT_GT(rows, 60);
}

TEST(ScenarioModel, ShowsValuesAndDefaults) {
  const Fixture f(R"("cache": {"page_size": 32}, )");
  EXPECT_EQ(f.text("$.cache.page_size"), "32");
  EXPECT_TRUE(f.at("$.cache.page_size").data(ScenarioModel::kGivenRole).toBool());
  EXPECT_EQ(f.text("$.cache.blocks"), "64");
  EXPECT_FALSE(f.at("$.cache.blocks").data(ScenarioModel::kGivenRole).toBool());
  EXPECT_EQ(f.text("$.cache.blocks", Qt::AccessibleTextRole), "64, the default");
  EXPECT_THAT(f.text("$.cache.blocks", Qt::ToolTipRole),
              AllOf(HasSubstr("Blocks of the pool"), HasSubstr("Legal: [1, 2147483646]"), HasSubstr("the default")));
  EXPECT_THAT(f.text("$.cache.kind", Qt::ToolTipRole), HasSubstr("Legal: paged, continuous"));
  EXPECT_THAT(f.text("$.attention.scale", Qt::ToolTipRole), HasSubstr("Legal: (0, 1000000], none"));
  EXPECT_EQ(f.text("$.cache.quantization"), "none");
  EXPECT_EQ(f.text("$.requests.list"), "1");
  EXPECT_EQ(f.text("$.requests.list[0]"), "prompt_tokens 9");
  EXPECT_EQ(f.at("$.cache.kind").data(ScenarioModel::kWordsRole).toStringList(),
            (QStringList{QStringLiteral("paged"), QStringLiteral("continuous")}));
  EXPECT_EQ(f.at("$.cache.blocks").data(ScenarioModel::kWordsRole).toStringList(), QStringList());
  EXPECT_EQ(f.at("$.no.such.field"), QModelIndex());
}

TEST(ScenarioModel, OnlyValuesAreEditable) {
  Fixture f;
  EXPECT_TRUE(f.model.flags(f.at("$.cache.blocks")) & Qt::ItemIsEditable);
  EXPECT_FALSE(f.model.flags(f.at("$.cache.blocks", ScenarioModel::kField)) & Qt::ItemIsEditable);
  EXPECT_FALSE(f.model.flags(f.at("$.cache")) & Qt::ItemIsEditable);
  EXPECT_FALSE(f.model.setData(f.at("$.cache"), QStringLiteral("1")));
  EXPECT_FALSE(f.model.setData(f.at("$.cache.blocks"), QStringLiteral("1"), Qt::DisplayRole));
  EXPECT_TRUE(f.model.setData(f.at("$.cache.blocks"), QStringLiteral(" 8 ")));
  EXPECT_EQ(f.text("$.cache.blocks"), "8");
  f.model.setData(f.at("$.description"), QStringLiteral(" two\nlines "));
  EXPECT_EQ(f.model.draft()->scenario().description, " two\nlines ") << "text is kept as it is typed";
}

// A view keeps its place when values change; new fields reset the model.
TEST(ScenarioModel, SaysWhatChanged) {
  Fixture f;
  QSignalSpy reset(&f.model, &QAbstractItemModel::modelReset), changed(&f.model, &QAbstractItemModel::dataChanged),
      edited(&f.model, &ScenarioModel::edited);
  const QPersistentModelIndex kept(f.at("$.tile.BN"));
  f.model.setData(f.at("$.cache.page_size"), QStringLiteral("48"));
  EXPECT_EQ(reset.count(), 0);
  EXPECT_GT(changed.count(), 0);
  EXPECT_EQ(edited.count(), 1);
  EXPECT_EQ(kept.data().toString(), QStringLiteral("48")) << "it follows the page size";
  const QModelIndex added = f.model.add(f.at("$.requests.list"));
  EXPECT_EQ(reset.count(), 1);
  EXPECT_EQ(added.data(ScenarioModel::kPathRole).toString(), QStringLiteral("$.requests.list[1]"));
  EXPECT_EQ(f.model.add(f.at("$.cache")), QModelIndex());
  EXPECT_TRUE(f.model.can_remove(added));
  f.model.remove(added);
  EXPECT_EQ(f.text("$.requests.list"), "1");
  EXPECT_FALSE(f.model.can_remove(f.at("$.requests.list[0].prompt_tokens"))) << "it is required";
  f.model.undo();
  f.model.undo();
  f.model.undo();
  EXPECT_EQ(f.text("$.cache.page_size"), "16");
  f.model.redo();
  EXPECT_EQ(f.text("$.cache.page_size"), "48");
}

TEST(ScenarioModel, FaultsMarkTheirFieldAndWhatIsAroundIt) {
  Fixture f;
  f.model.setData(f.at("$.requests.list[0].prompt_tokens"), QStringLiteral("x"));
  for (const char* path : {"$.requests", "$.requests.list", "$.requests.list[0]", "$.requests.list[0].prompt_tokens"}) {
    EXPECT_TRUE(f.at(path).data(ScenarioModel::kFaultInsideRole).toBool()) << path;
  }
  for (const char* path : {"$.cache", "$.requests.list[0].samples", "$.requests.file"}) {
    EXPECT_FALSE(f.at(path).data(ScenarioModel::kFaultInsideRole).toBool()) << path;
  }
  EXPECT_EQ(f.text("$.requests.list[0].prompt_tokens", ScenarioModel::kFaultRole),
            "the string \"x\" instead of an integer in [1, 2147483647]");
  EXPECT_EQ(f.text("$.requests.list", ScenarioModel::kFaultRole), "");
}

TEST(ScenarioModel, WithoutAScenarioThereIsNoRow) {
  Fixture f;
  f.model.set_scenario(std::nullopt);
  EXPECT_EQ(f.model.rowCount(), 0);
  EXPECT_EQ(f.model.draft(), nullptr);
  f.model.undo();
  f.model.redo();
  EXPECT_FALSE(f.model.can_add({}));
  EXPECT_FALSE(f.model.can_remove({}));
}

}  // namespace
}  // namespace kvscope::viz::scenario_model_test
