// Which tensors of a candidate are its output: wrong data under the right name would be compared without an error.
#include "core/golden/verdict/output_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/errors.h"
#include "core/golden/bundle/tensor.h"

namespace kvscope::golden::output_names_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Bundle with(std::initializer_list<const char*> names) {
  Bundle bundle;
  std::int64_t extent = 1;  // each tensor has another shape
  for (const char* name : names) bundle.tensors[name] = make_tensor(DType::f32, {extent++});
  return bundle;
}

std::vector<std::string> names_of(const Bundle& bundle) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : bundle.tensors) names.push_back(name);
  return names;
}

TEST(OutputNames, AnOutputOfAnotherNameBecomesO) {
  Bundle candidate = with({"output", "softmax_lse", "workspace"});
  EXPECT_THAT(use_output_names(with({"o", "lse"}), candidate, "c.npz"),
              ElementsAre("candidate 'output' is compared as 'o'", "candidate 'softmax_lse' is compared as 'lse'"));
  EXPECT_THAT(names_of(candidate), ElementsAre("lse", "o", "workspace"));
  EXPECT_EQ(candidate.tensors.at("o").shape, std::vector<std::int64_t>{1});
  EXPECT_EQ(candidate.tensors.at("lse").shape, std::vector<std::int64_t>{2});
}

TEST(OutputNames, TheNamesOfAGoldenStay) {
  Bundle candidate = with({"o", "lse"});
  EXPECT_THAT(use_output_names(with({"o", "lse"}), candidate, "c.npz"), IsEmpty());
  // A golden of moved bytes, whose tensor happens to be called out.
  Bundle moved = with({"out"});
  EXPECT_THAT(use_output_names(with({"out"}), moved, "c.npz"), IsEmpty());
  EXPECT_THAT(names_of(moved), ElementsAre("out"));
  Bundle both = with({"o", "out"});
  EXPECT_THAT(use_output_names(with({"o", "out"}), both, "c.npz"), IsEmpty());
  // Without lse in the golden, nothing is compared with softmax_lse.
  Bundle unused = with({"out", "softmax_lse"});
  EXPECT_THAT(use_output_names(with({"o"}), unused, "c.npz"), ElementsAre("candidate 'out' is compared as 'o'"));
  EXPECT_THAT(names_of(unused), ElementsAre("o", "softmax_lse"));
}

TEST(OutputNames, TwoNamesOfOneTensorAreRejected) {
  Bundle candidate = with({"out", "output", "lse", "softmax_lse"});
  try {
    static_cast<void>(use_output_names(with({"o", "lse"}), candidate, "c.npz"));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(fault_lines(error),
                ElementsAre("c.npz: candidate 'o': is stored under 2 names, out and output: keep one of these tensors",
                            "c.npz: candidate 'lse': is stored under 2 names, lse and softmax_lse: keep one of these "
                            "tensors"));
  }
}

// A .npy file has one tensor, which is called as the file is: any name is o's, unless the golden has a tensor of this name.
TEST(OutputNames, TheOnlyTensorOfAnNpyFileIsO) {
  Bundle alone = with({"kernel_result"});
  EXPECT_THAT(use_output_names(with({"o"}), alone, "dir/kernel_result.npy"),
              ElementsAre("candidate 'kernel_result' is compared as 'o'"));
  EXPECT_THAT(names_of(alone), ElementsAre("o"));
  Bundle of_golden = with({"blocks"});
  EXPECT_THAT(use_output_names(with({"o", "blocks"}), of_golden, "blocks.npy"), IsEmpty());
  EXPECT_THAT(names_of(of_golden), ElementsAre("blocks"));
  Bundle two = with({"kernel_result", "other"});
  EXPECT_THAT(use_output_names(with({"o"}), two, "two.npy"), IsEmpty());
  Bundle in_archive = with({"kernel_result"});
  EXPECT_THAT(use_output_names(with({"o"}), in_archive, "kernel_result.npz"), IsEmpty());
  EXPECT_THAT(names_of(in_archive), ElementsAre("kernel_result"));
}

// A cache or a table that is passed by mistake: a comparison of "candidate 'o'" would not tell which file is wrong.
TEST(OutputNames, AnNpyFileOfAnotherTensorIsRejectedByWhatItHolds) {
  Bundle golden;
  golden.tensors["o"] = make_tensor(DType::f64, {2, 3, 4});
  const auto message_of_file = [&](const char* name, DType dtype, std::vector<std::int64_t> shape) -> std::string {
    Bundle candidate;
    candidate.tensors[name] = make_tensor(dtype, std::move(shape));
    try {
      static_cast<void>(use_output_names(golden, candidate, std::string(name) + ".npy"));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  const std::string rest =
      ", but the golden's output o is f64 [2, 3, 4]: pass the kernel's output, as f64, f32, f16 or bf16";
  EXPECT_THAT(message_of_file("kv_cache", DType::f32, {5, 2, 4}), testing::HasSubstr("holds f32 [5, 2, 4]" + rest));
  EXPECT_THAT(message_of_file("table", DType::i32, {2, 3, 4}), testing::HasSubstr("holds i32 [2, 3, 4]" + rest));
  EXPECT_THAT(message_of_file("table", DType::u16, {2, 3}), testing::HasSubstr("holds u16 [2, 3]" + rest));
  EXPECT_THAT(message_of_file("q", DType::f32, {2, 3, 4}),
              testing::HasSubstr("is f32 [2, 3, 4] and has the name of the queries"));
  EXPECT_EQ(message_of_file("bits", DType::u16, {2, 3, 4}), "");   // the comparison has the better advice
  EXPECT_EQ(message_of_file("other", DType::f32, {3, 2, 4}), "");  // and for another order of axes
  EXPECT_EQ(message_of_file("o", DType::f32, {5, 2, 4}), "");      // the file states that it is the output
}

TEST(OutputNames, AreListedForMessages) {
  EXPECT_EQ(output_names("blocks"), "blocks");
  EXPECT_EQ(output_names("o"), "o, out or output");
  EXPECT_EQ(output_names("lse"), "lse, softmax_lse or logsumexp");
}

}  // namespace
}  // namespace kvscope::golden::output_names_test
