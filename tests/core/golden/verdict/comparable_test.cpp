// Golden and candidate files that cannot be compared: each tensor missing, of another type and of another shape in turn, and
// goldens that do not tell where their elements are.
#include "core/golden/verdict/detail/comparable.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/golden/verdict/compare.h"
#include "core/golden/verdict/compare_report.h"
#include "tests/core/golden/support.h"

namespace kvscope::golden::comparable_test {
namespace {

using testing::HasSubstr;

Tensor filled(std::vector<std::int64_t> shape, double value) {
  Tensor tensor = make_tensor(DType::f64, std::move(shape));
  for (double& x : values<double>(tensor)) x = value;
  return tensor;
}

Tensor i64(const std::vector<std::int64_t>& numbers) {
  return tensor_of<std::int64_t>({static_cast<std::int64_t>(numbers.size())}, numbers);
}

// Two sequences of 1 and 2 queries, 2 heads, 4 dims; pages of 4 tokens, 5 and 9 keys.
Bundle golden() {
  Bundle bundle;
  for (const char* name : {"o", "a1", "a2"}) bundle.tensors[name] = filled({3, 2, 4}, 0.5);
  for (const char* name : {"smax", "lse"}) bundle.tensors[name] = filled({3, 2}, 3);
  bundle.tensors["query_offsets"] = i64({0, 1, 3});
  bundle.tensors["key_lengths"] = i64({5, 9});
  bundle.tensors["block_table"] = tensor_of<std::uint32_t>({2, 3}, std::vector<std::uint32_t>{7, 2, ~0U, 4, 9, 1});
  bundle.manifest.set("page_size", 4);
  return bundle;
}

Bundle candidate() {
  Bundle bundle;
  bundle.tensors["o"] = make_tensor(DType::f32, {3, 2, 4});
  for (float& x : values<float>(bundle.tensors["o"])) x = 0.5F;
  bundle.tensors["lse"] = make_tensor(DType::f32, {3, 2});
  for (float& x : values<float>(bundle.tensors["lse"])) x = 3;
  return bundle;
}

std::string rejection(const Bundle& g, const Bundle& c, const CompareOptions& options = {}) {
  return message_of([&] { static_cast<void>(compare(g, c, options)); });
}

std::string of_golden(const std::string& name, Tensor tensor) {
  Bundle changed = golden();
  changed.tensors[name] = std::move(tensor);
  return rejection(changed, candidate());
}

TEST(Comparable, TheUnchangedFilesAreCompared) {
  const CompareResult result = compare(golden(), candidate());
  EXPECT_TRUE(result.passed);
  EXPECT_EQ(rejection(golden(), candidate()), "(no InputError)");
}

TEST(Comparable, TermsOfTheBoundHaveTheirTypeAndShape) {
  const std::vector<std::pair<std::string, std::vector<std::int64_t>>> terms{
      {"a1", {3, 2, 4}},      {"a2", {3, 2, 4}},           {"smax", {3, 2}},
      {"lse", {3, 2}},        {"golden_error", {3, 2, 2}}, {"largest_value", {3, 2}},
      {"running", {3, 2, 4}}, {"key_counts", {3, 2}},      {"p2", {3, 2}},
      {"repeats", {3, 2}}};
  for (const auto& [name, shape] : terms) {
    EXPECT_EQ(of_golden(name, make_tensor(DType::f32, shape)),
              fmt::format("golden rejected: golden '{}': is f32 {}, but must be f64 {}", name, shape_text(shape),
                          shape_text(shape)));
    std::vector<std::int64_t> more = shape;
    ++more.back();
    EXPECT_THAT(of_golden(name, filled(more, 1)), HasSubstr(fmt::format("golden '{}': is f64 {}, but must be f64 {}",
                                                                        name, shape_text(more), shape_text(shape))));
  }
  for (const char* name : {"a1", "a2", "smax"}) {
    Bundle changed = golden();
    changed.tensors.erase(name);
    EXPECT_EQ(rejection(changed, candidate()),
              fmt::format("golden rejected: golden '{}': is missing; the bound is made of it: make the golden with "
                          "`kvscope golden`",
                          name));
  }
}

// A candidate of the right shape is not blamed for the golden's.
TEST(Comparable, AFaultyGoldenIsTheOnlyFault) {
  EXPECT_EQ(of_golden("lse", filled({3, 2, 1}, 1)),
            "golden rejected: golden 'lse': is f64 [3, 2, 1], but must be f64 [3, 2]");
}

TEST(Comparable, TheOutputHasThreeAxesOfF64) {
  EXPECT_THAT(of_golden("o", make_tensor(DType::f32, {3, 2, 4})),
              HasSubstr("golden 'o': is f32 [3, 2, 4], but a golden output is f64 [query, head, dim]"));
  EXPECT_THAT(of_golden("o", filled({3, 8}, 1)),
              HasSubstr("golden 'o': is f64 [3, 8], but a golden output is f64 [query, head, dim]"));
}

TEST(Comparable, PlacesAreRisingOffsetsAndLengths) {
  const auto offsets = [](const std::string& is) {
    return "golden rejected: golden 'query_offsets': is " + is +
           ", but must be i64 [batch + 1], rising from 0 to the rows of o";
  };
  EXPECT_EQ(of_golden("query_offsets", make_tensor(DType::i32, {3})), offsets("i32 [3]"));
  EXPECT_EQ(of_golden("query_offsets", make_tensor(DType::i64, {3, 1})), offsets("i64 [3, 1]"));
  EXPECT_EQ(of_golden("query_offsets", i64({})), offsets("i64 [0]"));
  EXPECT_EQ(of_golden("query_offsets", i64({1, 1, 3})), offsets("i64 [3]"));
  EXPECT_EQ(of_golden("query_offsets", i64({0, 1, 2})), offsets("i64 [3]"));
  EXPECT_EQ(of_golden("query_offsets", i64({0, 4, 3})), offsets("i64 [3]"));
  const auto lengths = [](const std::string& is) {
    return "golden rejected: golden 'key_lengths': is " + is + ", but must be i64 [batch] of lengths";
  };
  EXPECT_EQ(of_golden("key_lengths", make_tensor(DType::i32, {2})), lengths("i32 [2]"));
  EXPECT_EQ(of_golden("key_lengths", make_tensor(DType::i64, {2, 1})), lengths("i64 [2, 1]"));
  EXPECT_EQ(of_golden("key_lengths", i64({5, -1})), lengths("i64 [2]"));
  EXPECT_EQ(of_golden("key_lengths", i64({5, std::int64_t{1} << 48})), lengths("i64 [2]"));
}

// The worst element is named as far as the golden tells where it is: row 2 is query 1 of sequence 1, key 8 of page 2.
TEST(Comparable, PlacesAreNamedAsFarAsTheGoldenTells) {
  Bundle wrong = candidate();
  values<float>(wrong.tensors["o"])[2 * 8 + 4 + 3] = 9;  // query 2, head 1, dim 3
  const auto place = [&](const std::function<void(Bundle&)>& change) {
    Bundle changed = golden();
    change(changed);
    const CompareResult result = compare(changed, wrong);
    EXPECT_FALSE(result.passed);
    const Place p = result.tensors.front().worst->place;
    return fmt::format("{} {} {} {} | {} {} {} {}", p.sequence, p.query, p.head, p.dim, p.position, p.page, p.slot,
                       p.block);
  };
  const auto without = [](const char* name) { return [name](Bundle& bundle) { bundle.tensors.erase(name); }; };
  EXPECT_EQ(place([](Bundle&) {}), "1 1 1 3 | 8 2 0 1");
  EXPECT_EQ(place(without("query_offsets")), "-1 2 1 3 | -1 -1 -1 -1");
  EXPECT_EQ(place(without("key_lengths")), "1 1 1 3 | -1 -1 -1 -1");
  EXPECT_EQ(place([](Bundle& bundle) { bundle.tensors["key_lengths"] = i64({5, 9, 9}); }), "1 1 1 3 | -1 -1 -1 -1");
  EXPECT_EQ(place([](Bundle& bundle) { bundle.manifest.set("page_size", 0); }), "1 1 1 3 | 8 -1 -1 -1");
  EXPECT_EQ(place([](Bundle& bundle) { bundle.manifest.set("page_size", "4"); }), "1 1 1 3 | 8 -1 -1 -1");
  EXPECT_EQ(place(without("block_table")), "1 1 1 3 | 8 2 0 -1");
  for (Tensor table :
       {make_tensor(DType::i32, {2, 3}), make_tensor(DType::u32, {6}), make_tensor(DType::u32, {3, 2})}) {
    EXPECT_EQ(place([&](Bundle& bundle) { bundle.tensors["block_table"] = table; }), "1 1 1 3 | 8 2 0 -1");
  }
  EXPECT_EQ(place([](Bundle& bundle) { values<std::uint32_t>(bundle.tensors["block_table"])[5] = ~0U; }),
            "1 1 1 3 | 8 2 0 -1");
}

TEST(Comparable, CandidatesOfAnotherShapeAreToldHowToSaveThem) {
  const auto with = [](const char* name, std::vector<std::int64_t> shape, DType dtype = DType::f32) {
    Bundle changed = candidate();
    changed.tensors[name] = make_tensor(dtype, std::move(shape));
    return rejection(golden(), changed);
  };
  const std::string start = "candidate rejected: candidate 'o': has shape ";
  EXPECT_EQ(with("o", {2, 3, 4}), start + "[2, 3, 4], the golden [3, 2, 4]: transpose it to [query, head, dim]");
  EXPECT_EQ(with("o", {3, 2, 1, 4}),
            start + "[3, 2, 1, 4], the golden [3, 2, 4]: transpose it to [batch, query, head, dim]");
  EXPECT_EQ(with("o", {24}), start + "[24], the golden [3, 2, 4]: save it in the order and shape [query, head, dim]");
  EXPECT_EQ(with("o", {3, 2, 5}), start + "[3, 2, 5], the golden [3, 2, 4]");
  EXPECT_EQ(with("lse", {2, 3}),
            "candidate rejected: candidate 'lse': has shape [2, 3], the golden [3, 2]: transpose it to [query, head]");
  EXPECT_EQ(with("lse", {3, 3}), "candidate rejected: candidate 'lse': has shape [3, 3], the golden [3, 2]");
  EXPECT_EQ(with("o", {3, 2, 4}, DType::i32),
            "candidate rejected: candidate 'o': is i32; an output is f64, f32, f16 or bf16");
  Bundle many;
  for (int i = 0; i < 10; ++i) many.tensors[fmt::format("t{}", i)] = make_tensor(DType::f32, {1});
  EXPECT_THAT(rejection(golden(), many),
              HasSubstr("The candidate has t0, t1, t2, t3, t4, t5, t6, t7, 2 more: save the kernel's output as "));
  EXPECT_THAT(rejection(golden(), {}),
              HasSubstr("is missing; the golden has f64 [3, 2, 4]. The candidate has no tensor"));
}

TEST(Comparable, TensorsToCompareBitForBitAreInBoth) {
  CompareOptions options;
  options.exact = {"ids"};
  const auto with = [&](const std::optional<Tensor>& ours, const std::optional<Tensor>& theirs) {
    Bundle g = golden(), c = candidate();
    if (ours) g.tensors["ids"] = *ours;
    if (theirs) c.tensors["ids"] = *theirs;
    return rejection(g, c, options);
  };
  const Tensor ids = i64({1, 2});
  EXPECT_EQ(with(ids, ids), "(no InputError)");
  EXPECT_EQ(with(std::nullopt, ids),
            "candidate rejected: candidate 'ids': is to be compared bit for bit, but the golden does not have it");
  EXPECT_EQ(with(ids, std::nullopt), "candidate rejected: candidate 'ids': is missing; the golden has i64 [2]");
  EXPECT_EQ(with(ids, i64({1, 2, 3})), "candidate rejected: candidate 'ids': is i64 [3], the golden i64 [2]");
  EXPECT_EQ(with(ids, make_tensor(DType::i32, {2})),
            "candidate rejected: candidate 'ids': is i32 [2], the golden i64 [2]");
  // Names in the manifest count too; what is no name does not.
  Bundle g = golden(), c = candidate();
  g.tensors["ids"] = ids;
  for (const json::Value& wrong : {json::Value(json::Array{"ids", 7}), json::Value("ids")}) {
    g.manifest.set("exact", wrong);
    EXPECT_EQ(rejection(g, c),
              "golden rejected: manifest 'exact': is " + json::dump(wrong, -1) + ", not a list of names");
  }
  g.manifest.set("exact", json::Array{"ids"});
  EXPECT_EQ(rejection(g, c), "candidate rejected: candidate 'ids': is missing; the golden has i64 [2]");
  EXPECT_EQ(rejection({}, {}), "candidate rejected: golden: holds no tensor: nothing to compare");
}

TEST(Comparable, ConventionsAgree) {
  Bundle g = golden(), c = candidate();
  g.manifest.set("conventions", json::Object{{"lse_base", "two"}, {"splits", 4}});
  c.manifest.set("conventions", json::Object{{"lse_base", "natural"}, {"splits", 4}});
  EXPECT_EQ(rejection(g, c),
            "candidate rejected: candidate convention 'lse_base': is \"natural\", the golden's is \"two\": make both "
            "the same "
            "way");
  // Members that the bounds are made of. They read as missing: a base of e, no sinks, the size of V.
  for (const auto& [member, value, problem] :
       {std::tuple{"conventions", json::Value("two"), "conventions': is \"two\", not an object"},
        {"conventions", json::Object{{"lse_base", 2}}, "conventions.lse_base': is 2, not one of natural, two"},
        {"conventions", json::Object{{"sinks", "yes"}}, "conventions.sinks': is \"yes\", not true or false"},
        {"head_size", json::Value("64"), "head_size': is \"64\", not an integer of at least 1"},
        {"holds", json::Value(5), "holds': is 5, not one of inputs, output"}}) {
    Bundle of_golden = golden(), of_candidate = candidate();
    of_golden.manifest.set(member, value);
    EXPECT_EQ(rejection(of_golden, candidate()), std::string("golden rejected: manifest '") + problem);
    of_candidate.manifest.set(member, value);
    EXPECT_EQ(rejection(golden(), of_candidate), std::string("candidate rejected: manifest '") + problem);
  }
}

}  // namespace
}  // namespace kvscope::golden::comparable_test
