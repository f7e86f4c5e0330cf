// Faults in the file of a layout: each names the JSON path, what is there, and what the file needs.
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "core/golden/layouts/layout_description.h"
#include "tests/core/golden/support.h"

namespace kvscope::golden::layout_file_test {
namespace {

using testing::ElementsAre;

constexpr std::string_view kPaged = R"({"about": "K and V apart", "forms": [{"tensors": [
  {"name": "k", "also": ["kk"], "holds": "k", "axes": "[block, slot, head, dim]"},
  {"name": "v", "holds": "v", "axes": "[block, slot, head, dim]"}]}],
  "table": {"form": "blocks", "tensors": {"table": ["t"], "lengths": ["n"]}}})";

// Rows of 8 e4m3 elements in groups of 4, with their two scales behind them: 16 bytes.
constexpr std::string_view kPacked = R"({"about": "rows", "forms": [{"values": "leading", "tensors": [
  {"name": "k", "holds": "k", "axes": "[block, slot, row]", "row": {"bytes": 16, "fields": [
    {"elements": 8, "dtype": "e4m3", "at": 0, "scales": {"dtype": "f32", "at": 8, "each": 4}}]}}]}],
  "table": {"form": "blocks", "tensors": {"table": ["t"], "lengths": ["n"]}}})";

// One tensor of flat storage: 2 blocks of 3 slots of 4 elements, the slots of a block 2 elements apart.
constexpr std::string_view kFlat = R"({"about": "flat", "forms": [{"values": "leading", "tensors": [
  {"name": "k", "holds": "k", "axes": "[block, slot, dim]", "strides": [18, 6, 1], "sizes": [2, 3, 4], "offset": 5}]}],
  "table": {"form": "blocks", "tensors": {"table": ["t"], "lengths": ["n"]}}})";

LayoutDescription read(std::string_view text) {
  return parse_layout(json::parse(text, "mine.json"), "mine", "mine.json");
}

struct Change {
  std::string_view from, to;          // the first occurrence
  std::vector<std::string> expected;  // all faults, in order
};

std::string changed(std::string_view text, const Change& change) {
  std::string result(text);
  const std::size_t at = result.find(change.from);
  EXPECT_NE(at, std::string::npos) << change.from;
  return result.replace(at, change.from.size(), change.to);
}

std::string rejection(const std::vector<std::string>& faults) {
  if (faults.size() == 1) return "mine.json rejected: " + faults[0];
  std::string text = "mine.json rejected, " + std::to_string(faults.size()) + " faults:";
  for (const std::string& fault : faults) text += "\n  " + fault;
  return text;
}

void check(std::string_view text, const std::vector<Change>& changes) {
  EXPECT_NO_THROW(static_cast<void>(read(text)));
  for (const Change& change : changes) {
    EXPECT_EQ(message_of([&] { static_cast<void>(read(changed(text, change))); }), rejection(change.expected))
        << change.from << " -> " << change.to;
  }
}

const std::string kElements =
    "exactly one axis of a head's elements is needed: dim, dim/x with x, latent, rope, row, head*dim, dim+vdim or, for "
    "scales, group";
const std::string kPlaces = "exactly one of the axes block, token, seq and block*kv is needed";

TEST(LayoutFile, MembersOfAnotherKindOrNameAreFaultsAtTheirPath) {
  EXPECT_EQ(message_of([] { static_cast<void>(read("[1]")); }), rejection({"$: is array; an object is needed"}));
  EXPECT_EQ(message_of([] { static_cast<void>(read("{}")); }),
            rejection({"$.forms: a list of at least one form is needed", "$.table: is missing"}));
  check(kPaged,
        {{"\"K and V apart\"", "7", {"$.about: is integer; a string is needed"}},
         {"\"about\"", "\"abuot\"", {"$.abuot: is unknown: did you mean \"about\"?"}},
         {"\"name\": \"v\", ", "", {"$.forms[0].tensors[1].name: is missing; a string is needed"}},
         {"\"name\": \"v\"", "\"name\": null", {"$.forms[0].tensors[1].name: is null; a string is needed"}},
         {"[\"kk\"]", "\"kk\"", {"$.forms[0].tensors[0].also: a list of strings is needed"}},
         {"[\"kk\"]", "[\"kk\", 2]", {"$.forms[0].tensors[0].also: a list of strings is needed"}},
         {"\"axes\": ",
          "\"axis\": ",
          {"$.forms[0].tensors[0].axis: is unknown: did you mean \"axes\"?",
           "$.forms[0].tensors[0].axes: is missing; a string is needed"}},
         {"\"holds\": \"v\", ",
          "",
          {"$.forms[0].tensors[1].holds: is missing; a string is needed",
           "$.forms[0]: no tensor holds v; or add \"values\": \"leading\""}},
         {"\"holds\": \"v\"",
          "\"holds\": \"vv\"",
          {"$.forms[0].tensors[1].holds: 'vv': choose one of k, v, kv, k_scales, v_scales, kv_scales",
           "$.forms[0]: no tensor holds v; or add \"values\": \"leading\""}},
         {"\"about\"", "\"v_may_differ\": 1, \"about\"", {"$.v_may_differ: is true or false"}},
         {"\"also\": [\"kk\"]",
          "\"offset\": -1, \"optional\": \"no\"",
          {"$.forms[0].tensors[0].offset: an integer in [0, 1099511627776] is needed",
           "$.forms[0].tensors[0].optional: is true or false"}},
         {"\"also\": [\"kk\"]",
          "\"offset\": 1099511627777",
          {"$.forms[0].tensors[0].offset: an integer in [0, 1099511627776] is needed"}},
         {"\"about\"", "\"page_multiple\": 4, \"about\"", {"$.page_multiple: is integer; an object is needed"}},
         {"\"about\"",
          "\"run\": {\"bytes\": 1.5}, \"about\"",
          {"$.run.bytes: an integer in [0, 1099511627776] is needed", "$.run.engine: is missing; a string is needed"}},
         {"\"about\"",
          "\"q_axes\": \"[seq, query, head, dim]\", \"about\"",
          {"$.q_axes: only [seq, head, query, dim] is supported besides the default"}}});
}

TEST(LayoutFile, FormsNeedTensorsThatHoldKAndV) {
  check(kPaged, {{"\"forms\": [", "\"forms\": [7, ", {"$.forms[0]: is integer; an object is needed"}},
                 {"\"tensors\": [",
                  "\"values\": \"own\", \"tensor\": [",
                  {"$.forms[0].tensor: is unknown: did you mean \"tensors\"?",
                   "$.forms[0].tensors: a list of tensors is needed"}},
                 {"\"tensors\": [",
                  "\"values\": \"first\", \"tensors\": [",
                  {"$.forms[0].values: 'first': choose one of own, leading"}},
                 {"{\"name\": \"v\", \"holds\": \"v\", \"axes\": \"[block, slot, head, dim]\"}",
                  "7",
                  // What is no tensor counts as one that holds K: a second fault would only repeat the first.
                  {"$.forms[0].tensors[1]: is integer; an object is needed",
                   "$.forms[0]: no tensor holds v; or add \"values\": \"leading\""}},
                 {"\"holds\": \"k\"", "\"holds\": \"v\"", {"$.forms[0]: no tensor holds k"}}});
  const std::string scales = R"({"name": "s", "holds": "k_scales", "axes": "[block, slot, head, group]"}, )";
  const std::string more = R"({"name": "t", "holds": "HOLDS", "axes": "[AXES]"}, )";
  const auto scales_and = [&](const std::string& holds, const std::string& axes) {
    std::string both = "\"tensors\": [" + scales + more;
    both.replace(both.find("HOLDS"), 5, holds);
    both.replace(both.find("AXES"), 4, axes);
    return both;
  };
  const std::string packed =
      R"("tensors": [{"name": "s", "holds": "k_scales", "axes": "[block, slot, head, group]"}, {"name": "r", "holds": "k", )"
      R"("axes": "[block, slot, head, row]", "row": {"bytes": 8, "fields": [{"elements": 4, "dtype": "e4m3", "at": 0, )"
      R"("scales": {"dtype": "f32", "at": 4, "each": 4}}]}}, )";
  check(kPaged, {{"\"tensors\": [",
                  scales_and("k_scales", "block, slot, head, group"),
                  {"$.forms[0].tensors[1].holds: 's' has the scales of k already: a form has them once"}},
                 {"\"tensors\": [",
                  scales_and("kv_scales", "block, slot, kv, head, group"),
                  {"$.forms[0].tensors[1].holds: 's' has the scales of k already: a form has them once"}},
                 {"\"tensors\": [",
                  packed,
                  {"$.forms[0].tensors[1].holds: 's' has the scales of k already: a form has them once"}}});
  const std::string of_both = scales_and("v_scales", "block, slot, head, group");
  EXPECT_NO_THROW(static_cast<void>(read(changed(kPaged, {"\"tensors\": [", of_both, {}}))));
  EXPECT_EQ(message_of([] { static_cast<void>(read(R"({"forms": [{"tensors": 3}], "table": {"form": "chunk"}})")); }),
            rejection({"$.forms[0].tensors: a list of tensors is needed"}));
  EXPECT_EQ(message_of([] { static_cast<void>(read(R"({"forms": 3, "table": {"form": "chunk"}})")); }),
            rejection({"$.forms: a list of at least one form is needed"}));
  EXPECT_EQ(message_of([] { static_cast<void>(read(R"({"forms": [], "table": {"form": "chunk"}})")); }),
            rejection({"$.forms: a list of at least one form is needed"}));
}

TEST(LayoutFile, AxesReachEachElementOnce) {
  const std::string k = "$.forms[0].tensors[0].axes: ";
  const auto axes = [&](std::string_view to, std::vector<std::string> expected) {
    for (std::string& fault : expected) fault = k + fault;
    return Change{"[block, slot, head, dim]", to, std::move(expected)};
  };
  check(kPaged, {axes("[block, slot, slot, dim]", {"axis 'slot' occurs twice"}),
                 axes("[block, token, head, dim]", {kPlaces}), axes("[slot, head, dim]", {kPlaces}),
                 axes("[block, slot, head]", {kElements}), axes("[block, slot, dim, latent]", {kElements}),
                 axes("[block, slot, head, dim/x]", {"the axes dim/x and x belong together"}),
                 axes("[block, slot, head, dim, x]", {"the axes dim/x and x belong together"}),
                 axes("[block, kv, slot, head, dim]", {"a tensor that holds k has no axis for K and V"}),
                 axes("[block, slots, haed, dim]", {"'slots' is not an axis: did you mean \"slot\"?",
                                                    "'haed' is not an axis: did you mean \"head\"?"}),
                 axes("block, slot", {"'block, slot' is not a list of axes such as [block, slot, head, dim]"}),
                 axes("[", {"'[' is not a list of axes such as [block, slot, head, dim]"}),
                 axes("[block", {"'[block' is not a list of axes such as [block, slot, head, dim]"}),
                 axes("", {"'' is not a list of axes such as [block, slot, head, dim]"})});
}

TEST(LayoutFile, TablesNeedTheTensorsOfTheirForm) {
  const std::string forms = "blocks, indptr, tokens, requests, offsets, dense, ragged, chunk, sparse";
  check(kPaged,
        {{"\"table\": {",
          "\"table\": 5, \"tabel\": {",
          {"$.tabel: is unknown: did you mean \"table\"?", "$.table: is integer; an object is needed"}},
         {"\"blocks\"", "\"block\"", {"$.table.form: 'block': choose one of " + forms}},
         {"\"form\": \"blocks\"",
          "\"from\": \"blocks\"",
          {"$.table.from: is unknown: did you mean \"form\"?", "$.table.form: is missing; a string is needed"}},
         {"\"form\": \"blocks\"",
          "\"form\": \"blocks\", \"counts\": \"new\"",
          {"$.table.counts: 'new': choose one of all, cached"}},
         {"\"table\": [\"t\"]",
          "\"tabel\": [\"t\"]",
          {"$.table.tensors.tabel: form blocks has table, lengths", "$.table.tensors.table: is missing"}},
         {"\"table\": [\"t\"]",
          "\"table\": []",
          {"$.table.tensors.table: at least one name is needed", "$.table.tensors.table: is missing"}},
         {"{\"table\": [\"t\"], \"lengths\": [\"n\"]}",
          "7",
          {"$.table.tensors.table: is missing", "$.table.tensors.lengths: is missing"}},
         {"\"blocks\"",
          "\"chunk\"",
          {"$.table.tensors.table: form chunk has no tensors", "$.table.tensors.lengths: form chunk has no tensors"}},
         {"\"blocks\", \"tensors\": {\"table\": [\"t\"]",
          "\"indptr\", \"tensors\": {\"indptr\": [\"p\"], \"indices\": [\"i\"], \"last_page_len\": [\"l\"]",
          {"$.table.tensors: form indptr needs either last_page_len or lengths"}},
         {"\"blocks\", \"tensors\": {\"table\": [\"t\"], \"lengths\": [\"n\"]",
          "\"indptr\", \"tensors\": {\"indptr\": [\"p\"]",
          {"$.table.tensors.indices: is missing",
           "$.table.tensors: form indptr needs either last_page_len or lengths"}}});
}

// Every form needs the tensors that have no default: without any, each is named.
TEST(LayoutFile, ATableWithoutTensorsNamesThoseThatAreNeeded) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> needed{
      {"blocks", {"table", "lengths"}},
      {"tokens", {"indptr", "indices"}},
      {"requests", {"table", "requests", "lengths"}},
      {"offsets", {"table", "lengths"}},
      {"ragged", {"indptr"}},
      {"sparse", {"indices"}},
      {"dense", {}},
      {"chunk", {}}};
  for (const auto& [form, roles] : needed) {
    const std::string text = changed(
        kPaged, {"\"blocks\", \"tensors\": {\"table\": [\"t\"], \"lengths\": [\"n\"]}", "\"" + form + "\"", {}});
    if (roles.empty()) {
      EXPECT_NO_THROW(static_cast<void>(read(text))) << form;
      continue;
    }
    std::vector<std::string> faults;
    for (const std::string& role : roles) faults.push_back("$.table.tensors." + role + ": is missing");
    EXPECT_EQ(message_of([&] { static_cast<void>(read(text)); }), rejection(faults)) << form;
  }
}

TEST(LayoutFile, FieldsOfAPackedRowStayWithinIt) {
  const std::string row = "$.forms[0].tensors[0].row", field = row + ".fields[0]";
  check(
      kPacked,
      {{"[block, slot, row]", "[block, slot, dim]", {row + ": needs the axis row"}},
       {"{\"bytes\": 16, \"fields\"",
        "{\"bytes\": 15, \"fields\"",
        {field + ": ends at byte 16, past the 15 bytes of the row"}},
       {"{\"bytes\": 16, \"fields\"", "{\"fields\"", {row + ".bytes: an integer in [1, 1099511627776] is needed"}},
       {"\"elements\": 8", "\"elements\": 0", {field + ".elements: an integer in [1, 1099511627776] is needed"}},
       {"\"dtype\": \"e4m3\", ", "", {field + ".dtype: is missing; a string is needed"}},
       {"\"fields\": [", "\"fields\": [3, ", {field + ": is integer; an object is needed"}},
       {"\"fields\"",
        "\"field\"",
        {row + ".field: is unknown: did you mean \"fields\"?", row + ".fields: a list of fields is needed"}},
       {"\"at\": 0", "\"at\": 12", {field + ": ends at byte 20, past the 16 bytes of the row"}},
       {"\"each\": 4", "\"each\": 3", {field + ".scales.each: 3 does not divide the 8 elements"}},
       {"\"each\": 4", "\"each\": 0", {field + ".scales.each: an integer in [1, 1099511627776] is needed"}},
       {"\"e4m3\"", "\"e5m3\"", {field + ".dtype: 'e5m3' is not a float of at least 8 bits"}},
       {"\"e4m3\"", "\"i8\"", {field + ".dtype: 'i8' is not a float of at least 8 bits"}},
       {"\"e4m3\"", "\"e2m1\"", {field + ".dtype: 'e2m1' is not a float of at least 8 bits"}},
       {"\"f32\"", "\"u8\"", {field + ".scales.dtype: 'u8' is not a float of at least 8 bits"}},
       {"{\"dtype\": \"f32\", \"at\": 8, \"each\": 4}", "true", {field + ".scales: is boolean; an object is needed"}}});
  EXPECT_EQ(message_of([] {
              static_cast<void>(read(R"({"forms": [{"values": "leading", "tensors": [
                {"name": "k", "holds": "k", "axes": "[block, slot, row]"}]}], "table": {"form": "chunk"}})"));
            }),
            rejection({row + ": is missing; axis row needs its bytes and fields"}));
  for (const std::string_view fields : {"[]", "8"}) {
    const std::string text = R"({"forms": [{"values": "leading", "tensors": [{"name": "k", "holds": "k",
      "axes": "[token, row]", "row": {"bytes": 8, "fields": )" +
                             std::string(fields) + R"(}}]}], "table": {"form": "chunk"}})";
    EXPECT_EQ(message_of([&] { static_cast<void>(read(text)); }),
              rejection({row + ".fields: a list of fields is needed"}));
  }
  EXPECT_EQ(message_of([] {
              static_cast<void>(read(R"({"forms": [{"values": "leading", "tensors": [{"name": "k", "holds": "k",
                "axes": "[token, row]", "row": 8}]}], "table": {"form": "chunk"}})"));
            }),
            rejection({row + ": is integer; an object is needed"}));
}

TEST(LayoutFile, FlatStorageNeedsAStrideAndASizeOfEachAxis) {
  const std::string tensor = "$.forms[0].tensors[0]",
                    both = tensor + ".strides: flat storage needs 3 strides and 3 sizes, one for each axis";
  const std::string strides = tensor + ".strides: a list of integers in [0, 1099511627776] is needed",
                    sizes = tensor + ".sizes: a list of integers in [1, 1099511627776] is needed";
  check(kFlat, {{"[18, 6, 1]", "[18, 6]", {both}},
                {"[2, 3, 4]", "[2, 3]", {both}},
                {"\"strides\": [18, 6, 1], \"sizes\": [2, 3, 4]", "\"strides\": [6, 1], \"sizes\": [3, 4]", {both}},
                {"[18, 6, 1]", "[18, -6, 1]", {strides, both}},
                {"[18, 6, 1]", "[18, 6.5, 1]", {strides, both}},
                {"[18, 6, 1]", "18", {strides, both}},
                {"[2, 3, 4]", "[2, 3, 0]", {sizes, both}},
                {"[2, 3, 4]", "[2, 3, 1099511627777]", {sizes, both}}});
  const CacheTensor flat = read(kFlat).forms[0].tensors[0];
  EXPECT_THAT(flat.strides, ElementsAre(18, 6, 1));
  EXPECT_THAT(flat.sizes, ElementsAre(2, 3, 4));
  EXPECT_EQ(flat.offset, 5);
}

// The content of a file is kept, and is written again so that a second reading gives the same.
TEST(LayoutFile, IsReadAsWritten) {
  for (const std::string_view text : {kPaged, kPacked, kFlat}) {
    const LayoutDescription layout = read(text);
    EXPECT_EQ(to_json(read(json::dump(to_json(layout)))), to_json(layout)) << text;
  }
  const LayoutDescription packed = read(kPacked);
  ASSERT_EQ(packed.forms[0].tensors[0].row.size(), 1U);
  const RowField& field = packed.forms[0].tensors[0].row[0];
  EXPECT_EQ(field.elements, 8);
  EXPECT_EQ(field.scales_at, 8);
  EXPECT_EQ(field.scale_each, 4);
  EXPECT_TRUE(packed.forms[0].values_in_keys);
  const LayoutDescription own = read(changed(kPaged, {"\"tensors\": [", "\"values\": \"own\", \"tensors\": [", {}}));
  EXPECT_FALSE(own.forms[0].values_in_keys);
  const LayoutDescription cached = read(changed(kPaged, {"\"blocks\",", "\"blocks\", \"counts\": \"cached\",", {}}));
  EXPECT_TRUE(cached.table.lengths_without_new);
  EXPECT_FALSE(
      read(changed(kPaged, {"\"blocks\",", "\"blocks\", \"counts\": \"all\",", {}})).table.lengths_without_new);
}

TEST(LayoutFile, IsNamedAfterTheFile) {
  const TempFolder folder;
  spit(folder / "my_cache.json", std::string(kPaged));
  EXPECT_EQ(read_layout_file((folder / "my_cache.json").string()).name, "my_cache");
  spit(folder / "huge.json", std::string((1 << 20) + 1, ' '));
  EXPECT_NE(message_of([&] { static_cast<void>(read_layout_file((folder / "huge.json").string())); }).find("1048576"),
            std::string::npos);
}

// --axes: a tensor for each text, with the table that its places need.
TEST(AxesOption, ChoosesNamesAndTableByTheAxes) {
  const auto names = [](const CacheTensor& tensor) {
    std::vector<std::string> all{tensor.name};
    all.insert(all.end(), tensor.also.begin(), tensor.also.end());
    return all;
  };
  const LayoutDescription pages = layout_of_axes({"kv=[block, kv, head, slot, dim]"});
  EXPECT_EQ(pages.table.form, TableForm::blocks);
  EXPECT_THAT(names(pages.forms[0].tensors[0]), ElementsAre("kv_cache", "kv", "kv_pool", "pages"));
  EXPECT_EQ(pages.table.name("table"), "block_table");
  EXPECT_FALSE(pages.forms[0].values_in_keys);

  const LayoutDescription tokens = layout_of_axes({"k=[token, head, dim]", "v=[token, head, dim]"});
  EXPECT_EQ(tokens.table.form, TableForm::tokens);
  EXPECT_THAT(names(tokens.forms[0].tensors[0]), ElementsAre("k_cache", "k", "key_cache", "k_buffer", "keys"));
  EXPECT_THAT(names(tokens.forms[0].tensors[1]), ElementsAre("v_cache", "v", "value_cache", "v_buffer", "values"));
  EXPECT_EQ(tokens.table.name("indptr"), "kv_indptr");
  EXPECT_FALSE(tokens.table.has("lengths"));

  const LayoutDescription rows = layout_of_axes({"mine:k=[seq, position, dim]"});
  EXPECT_EQ(rows.table.form, TableForm::dense);
  EXPECT_THAT(names(rows.forms[0].tensors[0]), ElementsAre("mine"));
  EXPECT_TRUE(rows.forms[0].values_in_keys);
  EXPECT_EQ(rows.table.name("lengths"), "seq_lens");
  EXPECT_FALSE(rows.table.has("table"));

  EXPECT_EQ(message_of([] {
              static_cast<void>(layout_of_axes({"[block, dim]", "kv [block]"}));
            }),
            "command line rejected, 2 faults:\n"
            "  --axes: '[block, dim]' has no '=': write kv=[block, kv, head, slot, dim]\n"
            "  --axes: 'kv [block]' has no '=': write kv=[block, kv, head, slot, dim]");
}

}  // namespace
}  // namespace kvscope::golden::layout_file_test
