// Dumps of engines that cannot be read: each reason names the file or the argument, what is there, and what to do.
// tests/apps/import_test.py has dumps that can be read.
#include "core/golden/dumps/dump.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/golden/bundle/bundle.h"
#include "core/golden/dumps/detail/dump_tensors.h"
#include "tests/core/golden/support.h"

namespace kvscope::golden::dumps_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor ints(const std::vector<std::int32_t>& numbers) {
  return tensor_of<std::int32_t>({static_cast<std::int64_t>(numbers.size())}, numbers);
}

// --- steps that both readers share ------------------------------------------------------------------------------------

TEST(DumpTensors, TheLastLineThatIsNotEmptyCounts) {
  const TempFolder folder;
  spit(folder / "a.jsonl", "{\"n\": 1}\n{\"n\": 2}\n \r\n\n");
  EXPECT_EQ(*last_json_line(folder / "a.jsonl").find("n")->as_i64(), 2);
  spit(folder / "one.jsonl", "{\"n\": \"x\"}");
  EXPECT_EQ(json_text(last_json_line(folder / "one.jsonl"), "n"), "x");
  EXPECT_EQ(json_text(last_json_line(folder / "a.jsonl"), "n"), "");
  EXPECT_EQ(json_text(last_json_line(folder / "a.jsonl"), "m"), "");
  spit(folder / "none.jsonl", " \n\r\n");
  EXPECT_EQ(message_of([&] { static_cast<void>(last_json_line(folder / "none.jsonl")); }),
            (folder / "none.jsonl").string() + " rejected: is empty: it has one JSON object a line");
}

TEST(DumpTensors, AreJoinedIfTheyDifferInTheLastAxisOnly) {
  const Tensor a = tensor_of<float>({2, 2}, std::vector<float>{1, 2, 3, 4});
  const Tensor b = tensor_of<float>({2, 1}, std::vector<float>{5, 6});
  const Tensor both = joined(a, b, "a and b", "x");
  EXPECT_THAT(both.shape, ElementsAre(2, 3));
  EXPECT_THAT(values<float>(both), ElementsAre(1, 2, 5, 3, 4, 6));
  const auto rejection = [&](const Tensor& other) {
    return message_of([&] { static_cast<void>(joined(a, other, "a and b", "x")); });
  };
  const std::string alike = ": types and all axes but the last must be alike";
  EXPECT_EQ(rejection(make_tensor(DType::f16, {2, 1})), "x rejected: a and b: are f32 [2, 2] and f16 [2, 1]" + alike);
  EXPECT_EQ(rejection(make_tensor(DType::f32, {3, 1})), "x rejected: a and b: are f32 [2, 2] and f32 [3, 1]" + alike);
  EXPECT_EQ(rejection(make_tensor(DType::f32, {2})), "x rejected: a and b: are f32 [2, 2] and f32 [2]" + alike);
  const Tensor scalar = make_tensor(DType::f32, {});
  EXPECT_EQ(message_of([&] { static_cast<void>(joined(scalar, scalar, "a and b", "x")); }),
            "x rejected: a and b: are f32 [] and f32 []" + alike);
  const Tensor none = make_tensor(DType::f32, {2, 0});
  EXPECT_THAT(joined(none, none, "a and b", "x").shape, ElementsAre(2, 0));
}

TEST(DumpTensors, IndicesAreIntegersOf32Or64Bits) {
  Bundle bundle;
  EXPECT_EQ(message_of([&] { static_cast<void>(dump_integers(bundle, "i", "x")); }), "x rejected: i: is missing");
  bundle.tensors["i"] = ints({3, -1});
  EXPECT_THAT(dump_integers(bundle, "i", "x"), ElementsAre(3, -1));
  bundle.tensors["i"] = tensor_of<std::int64_t>({1}, std::vector<std::int64_t>{std::int64_t{1} << 40});
  EXPECT_THAT(dump_integers(bundle, "i", "x"), ElementsAre(std::int64_t{1} << 40));
  bundle.tensors["i"] = make_tensor(DType::u32, {2});
  EXPECT_EQ(message_of([&] { static_cast<void>(dump_integers(bundle, "i", "x")); }),
            "x rejected: i: is u32 [2]; an index tensor is i32 or i64");
}

// Pages 7; 2, 5; none of sequences with 3, 5 and 0 tokens.
Bundle indices() {
  Bundle bundle;
  bundle.tensors["kv_indptr"] = ints({0, 1, 3, 3});
  bundle.tensors["kv_indices"] = ints({7, 2, 5});
  bundle.tensors["kv_last_page_len"] = ints({3, 1, 0});
  return bundle;
}

TEST(DumpTensors, IndicesBecomeATable) {
  Bundle by_page = indices();
  indptr_to_table(by_page, {}, 4, "x");
  EXPECT_THAT(values<std::int32_t>(by_page.tensors.at("block_table")), ElementsAre(7, -1, 2, 5, -1, -1));
  EXPECT_THAT(values<std::int32_t>(by_page.tensors.at("cache_seqlens")), ElementsAre(3, 5, 0));
  EXPECT_EQ(by_page.tensors.size(), 2U);
  Bundle by_length = indices();
  indptr_to_table(by_length, {1, 2, 0}, 1, "x");
  EXPECT_THAT(values<std::int32_t>(by_length.tensors.at("cache_seqlens")), ElementsAre(1, 2, 0));
}

TEST(DumpTensors, IndicesThatMakeNoTableAreFaults) {
  const auto with = [](const std::string& name, Tensor tensor, std::vector<std::int64_t> lengths = {}) {
    Bundle bundle = indices();
    bundle.tensors[name] = std::move(tensor);
    return message_of([&] { indptr_to_table(bundle, std::move(lengths), 4, "x"); });
  };
  const std::string offsets = ": offsets rise from 0 to the 3 entries of kv_indices";
  EXPECT_EQ(with("kv_indptr", ints({0, 2, 1, 3})), "x rejected: kv_indptr[2]: is 1 after 2" + offsets);
  EXPECT_EQ(with("kv_indptr", ints({0, 1, 3, 4})), "x rejected: kv_indptr[3]: is 4 after 3" + offsets);
  EXPECT_EQ(with("kv_indptr", ints({-1, 1, 3, 3})), "x rejected: kv_indptr[1]: is 1 after -1" + offsets);
  EXPECT_EQ(with("kv_indptr", ints({})), "x rejected: kv_last_page_len: has 3 entries for 0 sequences");
  EXPECT_EQ(with("kv_last_page_len", ints({3, 1})), "x rejected: kv_last_page_len: has 2 entries for 3 sequences");
  EXPECT_EQ(with("kv_last_page_len", ints({3, 1, 0}), {1, 2}), "x rejected: kv_len_arr: has 2 entries for 3 sequences");
  EXPECT_EQ(with("kv_last_page_len", ints({5, 0, 0})),
            "x rejected, 2 faults:\n  kv_last_page_len[0]: is 5, outside [1, 4]\n  kv_last_page_len[1]: is 0, outside "
            "[1, 4]");
  // Numbers of 64 bits that 32 bits would turn into others.
  const std::int64_t wraps = (std::int64_t{1} << 32) + 2;
  EXPECT_EQ(with("kv_indices", tensor_of<std::int64_t>({3}, std::vector<std::int64_t>{7, wraps, 5})),
            "x rejected: kv_indices[1]: is 4294967298, outside [0, 2147483647]");
  EXPECT_EQ(with("kv_indices", ints({7, -2, 5})), "x rejected: kv_indices[1]: is -2, outside [0, 2147483647]");
  EXPECT_EQ(with("kv_last_page_len", ints({}), {1, wraps, 0}),
            "x rejected: kv_len_arr[1]: is 4294967298, outside [0, 2147483647]");
  EXPECT_EQ(with("kv_last_page_len", ints({}), {1, -2, 0}),
            "x rejected: kv_len_arr[1]: is -2, outside [0, 2147483647]");
}

// A table keeps one column, so that it is a tensor with two axes whatever the sequences hold.
TEST(DumpTensors, IndicesOfNoSequenceBecomeATableWithoutRows) {
  for (const std::vector<std::int32_t>& offsets : {std::vector<std::int32_t>{}, {0}}) {
    Bundle none;
    none.tensors["kv_indptr"] = ints(offsets);
    none.tensors["kv_indices"] = none.tensors["kv_last_page_len"] = ints({});
    indptr_to_table(none, {}, 4, "x");
    EXPECT_THAT(none.tensors.at("block_table").shape, ElementsAre(0, 1));
    EXPECT_THAT(none.tensors.at("cache_seqlens").shape, ElementsAre(0));
  }
}

TEST(DumpTensors, ATableIsNoLargerThan2To31Entries) {
  Bundle bundle;
  std::vector<std::int32_t> offsets(70000, 40000);
  offsets[0] = 0;
  bundle.tensors["kv_indptr"] = ints(offsets);
  bundle.tensors["kv_indices"] = ints(std::vector<std::int32_t>(40000, 1));
  EXPECT_EQ(message_of([&] { indptr_to_table(bundle, std::vector<std::int64_t>(69999, 0), 1, "x"); }),
            "x rejected: kv_indptr: makes a table of 69999 x 40000 entries");
}

// --- FlashInfer's log ---------------------------------------------------------------------------------------------------

constexpr const char* kWrapper = "BatchDecodeWithPagedKVCacheWrapper";

class FlashInferLog : public testing::Test {
 protected:
  TempFolder folder_;

  // A call with these tensors and other arguments.
  void call(const std::string& name, const std::string& function, const std::string& signature, const Bundle& tensors,
            const std::string& arguments = "", int object = 7) {
    fs::create_directories(folder_ / name);
    save_bundle(folder_ / name / "inputs.safetensors", tensors);
    const std::string line =
        fmt::format(R"({{"function_name": "{}", "process_id": 5, "self_id": {}, "function_signature": "{}", )",
                    function, object, signature) +
        fmt::format(R"("input_metadata": {{{}}}}})", arguments);
    spit(folder_ / name / "metadata.jsonl", "{}\n" + line + "\n");  // the last line counts
  }

  static constexpr const char* kPlan =
      "(self, indptr: Tensor, indices: Tensor, last_page_len: Tensor, num_kv_heads: int = 1, page_size: Dict[str, "
      "(int)] = {}, "
      "pos_encoding_mode: str = 'NO,NE', window_left: int = -1, sm_scale=None)";

  void plan(const std::string& arguments = "", const std::string& name = "1_plan", int object = 7) {
    Bundle tensors;
    tensors.tensors["arg_1"] = ints({0, 1, 3});
    tensors.tensors["arg_2"] = ints({2, 0, 1});
    tensors.tensors["kwarg_last_page_len"] = ints({3, 4});
    call(name, std::string(kWrapper) + ".plan", kPlan, tensors, arguments, object);
  }
  void run(std::vector<std::int64_t> cache = {3, 2, 4, 1, 8}, const std::string& arguments = "",
           const std::string& name = "2_run", const std::string& method = "run") {
    Bundle tensors;
    tensors.tensors["arg_1"] = make_tensor(DType::f32, {2, 2, 8});
    tensors.tensors["arg_2"] = make_tensor(DType::f32, std::move(cache));
    call(name, std::string(kWrapper) + "." + method, "(self, q, paged_kv_cache, q_scale=None)", tensors, arguments);
  }
  [[nodiscard]] std::string rejection(const FlashInferDumpOptions& options = {}, const std::string& name = "") const {
    std::string text = message_of([&] { static_cast<void>(read_flashinfer_dump(folder_ / name, options)); });
    const std::string root = (folder_ / "").parent_path().string();
    for (std::size_t at = text.find(root); at != std::string::npos; at = text.find(root))
      text.replace(at, root.size(), "D");
    return text;
  }
  static constexpr const char* kHeads = R"("kwarg_num_kv_heads": 1, "kwarg_page_size": 4)";
};

TEST_F(FlashInferLog, IsReadFromTheCallAndItsPlan) {
  plan(kHeads);
  for (const char* method : {"run", "forward", "run_return_lse", "forward_return_lse"}) {
    run({3, 2, 4, 1, 8}, "", "2_run", method);
    const ImportedDump dump = read_flashinfer_dump(folder_ / "");
    EXPECT_EQ(dump.options.layout, "flashinfer");
    EXPECT_EQ(dump.what, std::string(kWrapper) + "." + method);
    EXPECT_EQ(dump.options.attention.mask, MaskKind::causal);
    EXPECT_FALSE(dump.candidate.has_value());
    EXPECT_THAT(dump.notes,
                ElementsAre("the folder has no outputs.safetensors: the call did not return, or was dumped as .pt"));
  }
  run({3, 2, 1, 4, 8});
  EXPECT_EQ(read_flashinfer_dump(folder_ / "").options.layout, "flashinfer_hnd");
  Bundle outputs;
  outputs.tensors["other"] = make_tensor(DType::f32, {2});
  save_bundle(folder_ / "2_run" / "outputs.safetensors", outputs);
  EXPECT_FALSE(read_flashinfer_dump(folder_ / "").candidate.has_value());
  outputs.tensors["result"] = make_tensor(DType::f32, {2, 2, 8});
  save_bundle(folder_ / "2_run" / "outputs.safetensors", outputs);
  EXPECT_TRUE(read_flashinfer_dump(folder_ / "").candidate->tensors.contains("o"));
}

// The plan and the constructor are those of the same object, before the call.
TEST_F(FlashInferLog, TakesThePlanOfTheSameObject) {
  run();
  const std::string missing =
      "D/2_run rejected: plan(): of the same wrapper is not beside this call, and it has the index tensors: dump it "
      "too, with "
      "FLASHINFER_DUMP_INCLUDE='*Wrapper.plan,*Wrapper.run'";
  EXPECT_EQ(rejection(), missing);
  plan(kHeads, "1_plan", 8);
  EXPECT_EQ(rejection(), missing);
  plan(kHeads, "3_plan");
  EXPECT_EQ(rejection(), missing);
  plan(kHeads);
  EXPECT_EQ(rejection(), "(no InputError)");
}

TEST_F(FlashInferLog, TakesTheLayoutOfTheConstructorOrOfTheShape) {
  plan();
  run({3, 2, 4, 4, 8});
  EXPECT_EQ(rejection(),
            "D/2_run rejected: --kv-layout: is required: the wrapper's constructor was not dumped, and paged_kv_cache "
            "[3, 2, 4, 4, 8] fits NHD as well as HND");
  plan(R"("kwarg_num_kv_heads": 4, "kwarg_page_size": 4)");
  EXPECT_THAT(rejection(), HasSubstr("fits NHD as well as HND"));
  plan(R"("kwarg_num_kv_heads": "4", "kwarg_page_size": 4)");  // no number
  EXPECT_THAT(rejection(), HasSubstr("fits NHD as well as HND"));
  EXPECT_EQ(rejection({std::nullopt, "HND"}), "(no InputError)");
  Bundle none;
  call("0_init", std::string(kWrapper) + ".__init__", "(self, kv_layout='NHD')", none, R"("kwarg_kv_layout": "HND")");
  EXPECT_EQ(read_flashinfer_dump(folder_ / "").options.layout, "flashinfer_hnd");
  call("0_init", std::string(kWrapper) + ".__init__", "(self, kv_layout='NHD')", none);
  EXPECT_EQ(read_flashinfer_dump(folder_ / "").options.layout, "flashinfer");
  call("0_init", std::string(kWrapper) + ".__init__", "(self, kv_layout='NHD')", none, R"("kwarg_kv_layout": 7)");
  EXPECT_EQ(read_flashinfer_dump(folder_ / "").options.layout, "flashinfer");
}

// Neither order of slots and heads has the shape: asking for --kv-layout would lead the reader astray.
TEST_F(FlashInferLog, OfACacheThatFitsNoLayoutSaysSo) {
  plan(kHeads);
  const std::string neither = ", which fits neither NHD nor HND: plan() has page_size 4 and num_kv_heads 1";
  run({3, 2, 4, 2, 8});
  EXPECT_EQ(rejection(), "D/2_run rejected: paged_kv_cache: has shape [3, 2, 4, 2, 8]" + neither);
  run({3, 2, 1, 5, 8});
  EXPECT_EQ(rejection(), "D/2_run rejected: paged_kv_cache: has shape [3, 2, 1, 5, 8]" + neither);
  run({3, 4, 1, 8});
  EXPECT_EQ(
      rejection(),
      "D/2_run rejected: paged_kv_cache: has shape [3, 4, 1, 8], but one tensor of K and V has 5 axes: [pages, 2, "
      "page_size, heads, head_dim] or [pages, 2, heads, page_size, head_dim]");
}

// Logs of other versions lack members. Two calls that do not state their object are not of the same one.
TEST_F(FlashInferLog, NeedsTheObjectAndTheProcessOfBothCalls) {
  plan(kHeads);
  run();
  const std::string planned = slurp(folder_ / "1_plan" / "metadata.jsonl");
  const std::string ran = slurp(folder_ / "2_run" / "metadata.jsonl");
  EXPECT_EQ(rejection(), "(no InputError)");
  const auto without = [&](const std::string& file, std::string text, const std::string& member) {
    const std::size_t at = text.find(member);
    ASSERT_NE(at, std::string::npos) << member;
    spit(folder_ / file / "metadata.jsonl", text.erase(at, member.size()));
  };
  for (const char* member : {R"("self_id": 7, )", R"("process_id": 5, )"}) {
    without("1_plan", planned, member);
    EXPECT_THAT(rejection(), HasSubstr("plan(): of the same wrapper is not beside this call")) << member;
    spit(folder_ / "1_plan" / "metadata.jsonl", planned);
    without("2_run", ran, member);
    EXPECT_THAT(rejection(), HasSubstr("plan(): of the same wrapper is not beside this call")) << member;
    without("1_plan", planned, member);
    EXPECT_THAT(rejection(), HasSubstr("plan(): of the same wrapper is not beside this call")) << member;
    spit(folder_ / "1_plan" / "metadata.jsonl", planned);
    spit(folder_ / "2_run" / "metadata.jsonl", ran);
  }
  // The member with the other arguments: without it there are none.
  spit(folder_ / "2_run" / "metadata.jsonl", ran.substr(0, ran.find(R"(, "input_metadata")")) + "}");
  EXPECT_EQ(rejection(), "(no InputError)");
}

// Names of parameters end at a colon, an equals sign or a comma outside of quotes and brackets; an unfinished signature
// ends with its last name.
TEST_F(FlashInferLog, ReadsParameterNamesFromTheSignature) {
  plan(kHeads);
  Bundle tensors;
  tensors.tensors["arg_2"] = make_tensor(DType::f32, {2, 2, 8});
  tensors.tensors["arg_3"] = make_tensor(DType::f32, {3, 2, 4, 1, 8});
  for (const char* signature :
       {R"((self, what: str = \"a,)b\", q: Tuple[int, int] = (1, 2), paged_kv_cache={1: 2, 3: 4}) -> int, x)",
        "(self, what: Dict[str, List[int]] = [(1, 2), 3], q=None, paged_kv_cache",
        "(self, what, q, paged_kv_cache, "}) {
    call("2_run", std::string(kWrapper) + ".run", signature, tensors);
    const std::string text = rejection();
    EXPECT_EQ(text, "(no InputError)") << signature;
    if (text == "(no InputError)") {
      EXPECT_THAT(read_flashinfer_dump(folder_ / "").tensors.tensors.at("q").shape, ElementsAre(2, 2, 8)) << signature;
    }
  }
}

// The window of a mask that is not causal is open on the right; a cap of 0 is none.
TEST_F(FlashInferLog, TakesTheMaskOfAPrefill) {
  const std::string prefill = "BatchPrefillWithPagedKVCacheWrapper";
  Bundle planned;
  planned.tensors["arg_1"] = ints({0, 1, 2});
  planned.tensors["arg_2"] = ints({0, 1, 3});
  planned.tensors["arg_3"] = ints({2, 0, 1});
  planned.tensors["arg_4"] = ints({3, 4});
  run();
  fs::rename(folder_ / "2_run", folder_ / "3_run");
  std::string ran = slurp(folder_ / "3_run" / "metadata.jsonl");
  ran.replace(ran.find(kWrapper), std::string(kWrapper).size(), prefill);
  spit(folder_ / "3_run" / "metadata.jsonl", ran);
  const auto attention_of = [&](const std::string& arguments) {
    call("1_plan", prefill + ".plan", "(self, qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len)",
         planned, std::string(kHeads) + arguments);
    return read_flashinfer_dump(folder_ / "").options.attention;
  };
  EXPECT_EQ(attention_of("").mask, MaskKind::none);
  EXPECT_EQ(attention_of(R"(, "kwarg_causal": "yes")").mask, MaskKind::none);
  EXPECT_EQ(attention_of(R"(, "kwarg_causal": false)").mask, MaskKind::none);
  EXPECT_EQ(attention_of(R"(, "kwarg_causal": true)").mask, MaskKind::causal);
  const attention::Options open = attention_of(R"(, "kwarg_window_left": 5, "kwarg_logits_soft_cap": 0)");
  EXPECT_EQ(open.mask, MaskKind::sliding_window);
  EXPECT_EQ(open.window_left, 5);
  EXPECT_EQ(open.window_right, -1);
  EXPECT_FALSE(open.soft_cap.has_value());
  const attention::Options closed =
      attention_of(R"(, "kwarg_causal": true, "kwarg_window_left": 0, "kwarg_logits_soft_cap": 30)");
  EXPECT_EQ(closed.window_left, 0);
  EXPECT_EQ(closed.window_right, 0);
  EXPECT_EQ(closed.soft_cap, 30.0);
}

TEST_F(FlashInferLog, OfSeveralCallsNeedsOneOfThem) {
  EXPECT_EQ(rejection(), "D rejected: has no call of FlashInfer's log: a folder with metadata.jsonl");
  plan(kHeads);
  EXPECT_EQ(rejection(),
            "D rejected: has calls of BatchDecodeWithPagedKVCacheWrapper.plan, but no run() of "
            "BatchDecodeWithPagedKVCacheWrapper, BatchPrefillWithPagedKVCacheWrapper or BatchMLAPagedAttentionWrapper");
  for (int n = 2; n < 11; ++n) run({3, 2, 4, 1, 8}, "", fmt::format("{:02}_run", n));
  EXPECT_EQ(
      rejection(),
      "D rejected: --call: is required, because the folder has 9 calls of run(): pass one of 02_run, 03_run, 04_run, "
      "05_run, 06_run, 07_run, 08_run, 09_run, ...");
  EXPECT_EQ(rejection({"0_run", std::nullopt}), "D rejected: --call: '0_run' is no folder with metadata.jsonl");
  EXPECT_EQ(
      rejection({"1_plan", std::nullopt}),
      "D/1_plan rejected: function_name: is 'BatchDecodeWithPagedKVCacheWrapper.plan'; kvscope reads run() of "
      "BatchDecodeWithPagedKVCacheWrapper, BatchPrefillWithPagedKVCacheWrapper and BatchMLAPagedAttentionWrapper");
}

TEST_F(FlashInferLog, OfTensorsOfTorchSaveSaysHowToDumpThem) {
  plan(kHeads);
  run();
  fs::remove(folder_ / "2_run" / "inputs.safetensors");
  spit(folder_ / "2_run" / "inputs.pt", "PK");
  const std::string text = rejection();
  EXPECT_THAT(text, testing::StartsWith("D/2_run/inputs.pt rejected: is "));
  EXPECT_THAT(text, HasSubstr("or dump again with FLASHINFER_DUMP_SAFETENSORS=1 in the environment"));
  fs::remove(folder_ / "2_run" / "inputs.pt");
  EXPECT_THAT(rejection(), HasSubstr("inputs.safetensors"));
}

TEST_F(FlashInferLog, OfArgumentsThatCannotBeComputedNamesThem) {
  run();
  plan(std::string(kHeads) + R"(, "kwarg_pos_encoding_mode": "ROPE_LLAMA", "kwarg_window_left": 1e300)");
  EXPECT_EQ(rejection(),
            "D/2_run rejected, 2 faults:\n"
            "  pos_encoding_mode: is ROPE_LLAMA: the kernel changes q and k itself, which the dump does not show\n"
            "  window_left: is 1e+300, no number of keys");
  plan(std::string(kHeads) + R"(, "kwarg_window_left": 2.5)");
  EXPECT_EQ(rejection(), "D/2_run rejected: window_left: is 2.5, no number of keys");
  plan(std::string(kHeads) + R"(, "kwarg_pos_encoding_mode": "NONE", "kwarg_window_left": 3)");
  const ImportedDump dump = read_flashinfer_dump(folder_ / "");
  EXPECT_EQ(dump.options.attention.mask, MaskKind::sliding_window);
  EXPECT_EQ(dump.options.attention.window_left, 3);
  Bundle masked;
  masked.tensors["arg_1"] = ints({0, 1, 3});
  masked.tensors["arg_2"] = ints({2, 0, 1});
  masked.tensors["arg_3"] = ints({3, 4});
  masked.tensors["kwarg_custom_mask"] = make_tensor(DType::u8, {7});
  masked.tensors["kwarg_prefix_len_ptr"] = ints({1});
  masked.tensors["kwarg_token_pos_in_items_ptr"] = ints({1});
  call("1_plan", std::string(kWrapper) + ".plan", kPlan, masked, std::string(kHeads) + R"(, "kwarg_window_left": 3)");
  EXPECT_EQ(rejection(),
            "D/2_run rejected, 3 faults:\n"
            "  prefix_len_ptr: is set; kvscope computes causal masks, windows and custom masks\n"
            "  token_pos_in_items_ptr: is set; kvscope computes causal masks, windows and custom masks\n"
            "  window_left: is 3, and a custom mask is set: kvscope computes one of the two");
}

TEST_F(FlashInferLog, OfTensorsThatAreNotThereNamesThem) {
  plan(kHeads);
  Bundle q;
  q.tensors["arg_1"] = make_tensor(DType::f32, {2, 2, 8});
  const std::string tuple =
      "D/2_run rejected: paged_kv_cache: was passed as a tuple, whose tensors the log does not hold: pass one tensor "
      "[pages, 2, "
      "page_size, heads, head_dim], or save them yourself";
  const auto with = [&](const std::string& arguments) {
    call("2_run", std::string(kWrapper) + ".run", "(self, q, paged_kv_cache)", q, arguments);
    return rejection();
  };
  EXPECT_EQ(with(R"("arg_2": {"type": "tuple"})"), tuple);
  EXPECT_EQ(with(R"("arg_2": {"type": "list"})"), tuple);
  const std::string absent =
      "D/2_run rejected: paged_kv_cache: is not in the inputs of BatchDecodeWithPagedKVCacheWrapper.run";
  EXPECT_EQ(with(R"("arg_2": {"type": "object"})"), absent);
  EXPECT_EQ(with(R"("arg_2": null)"), absent);
  // Without a signature, the positions of arguments have no names.
  call("2_run", std::string(kWrapper) + ".run", "", q);
  EXPECT_THAT(rejection(), HasSubstr("q: is not in the inputs of"));
  call("2_run", std::string(kWrapper) + ".run", "self, q", q);
  EXPECT_THAT(rejection(), HasSubstr("q: is not in the inputs of"));
}

TEST_F(FlashInferLog, TakesTheScaleOfQ) {
  plan(kHeads);
  run({3, 2, 4, 1, 8}, R"("kwarg_q_scale": 0.5, "kwarg_k_scale": 2)");
  const ImportedDump dump = read_flashinfer_dump(folder_ / "");
  EXPECT_DOUBLE_EQ(*dump.options.scale, 0.5 / std::sqrt(8.0));
  EXPECT_THAT(values<double>(dump.tensors.tensors.at("k_scale")), ElementsAre(2));
  plan(std::string(kHeads) + R"(, "kwarg_sm_scale": 0.25)");
  EXPECT_DOUBLE_EQ(*read_flashinfer_dump(folder_ / "").options.scale, 0.125);
}

// The scale of q multiplies that of the head size, which is not known without q.
TEST_F(FlashInferLog, OfAScaleOfQWithoutQNamesQ) {
  plan(kHeads);
  Bundle cache;
  cache.tensors["arg_2"] = make_tensor(DType::f32, {3, 2, 4, 1, 8});
  call("2_run", std::string(kWrapper) + ".run", "(self, q, paged_kv_cache, q_scale=None)", cache,
       R"("kwarg_q_scale": 0.5)");
  EXPECT_EQ(rejection(), "D/2_run rejected: q: is not in the inputs of BatchDecodeWithPagedKVCacheWrapper.run");
}

TEST_F(FlashInferLog, OfMlaNeedsItsScaleAndItsTensors) {
  Bundle planned, ran;
  planned.tensors["arg_1"] = ints({0, 1});
  planned.tensors["arg_2"] = ints({0, 2});
  planned.tensors["arg_3"] = ints({1, 0});
  planned.tensors["arg_4"] = ints({2});
  const std::string mla = "BatchMLAPagedAttentionWrapper";
  call("1_plan", mla + ".plan", "(self, qo_indptr, kv_indptr, kv_indices, kv_len_arr)", planned);
  ran.tensors["arg_1"] = make_tensor(DType::f32, {1, 2, 4});
  ran.tensors["arg_2"] = make_tensor(DType::f32, {1, 2, 2});
  ran.tensors["arg_3"] = make_tensor(DType::f32, {3, 1, 4});
  call("2_run", mla + ".run", "(self, q_nope, q_pe, ckv_cache, kpe_cache)", ran);
  EXPECT_EQ(rejection(),
            "D/2_run rejected, 2 faults:\n"
            "  kpe_cache: is not in the inputs of BatchMLAPagedAttentionWrapper.run\n"
            "  sm_scale: is not in the arguments of plan()");
  ran.tensors["arg_4"] = make_tensor(DType::f32, {3, 1, 2});
  call("2_run", mla + ".run", "(self, q_nope, q_pe, ckv_cache, kpe_cache)", ran);
  EXPECT_EQ(rejection(), "D/2_run rejected: sm_scale: is not in the arguments of plan()");
}

// --- flashinfer-bench ---------------------------------------------------------------------------------------------------

class FlashInferBench : public testing::Test {
 protected:
  TempFolder folder_;
  std::string definition_ = R"({"name": "gqa", "op_type": "gqa_paged",
    "axes": {"pages": {"value": 3}, "page_size": {"value": 1}, "heads": {"value": 1}, "dim": {"value": 4}, "batch": {}},
    "inputs": {"q": {"shape": ["batch", "heads", "dim"], "dtype": "float32"},
               "k_cache": {"shape": ["pages", "page_size", "heads", "dim"], "dtype": "bfloat16"},
               "v_cache": {"shape": ["pages", "page_size", "heads", "dim"], "dtype": "bfloat16"},
               "kv_indptr": {"shape": ["offsets"], "dtype": "int32"},
               "kv_indices": {"shape": ["pages"], "dtype": "int32"},
               "sm_scale": {"shape": null, "dtype": "float32"}}})";
  std::string workload_ =
      R"({"definition": "gqa", "workload": {"uuid": "a", "axes": {"batch": 2, "offsets": 3}, "inputs": {
    "q": {"type": "random"}, "k_cache": {"type": "random"}, "v_cache": {"type": "random"},
    "kv_indptr": {"type": "safetensors", "path": "blobs/i.safetensors", "tensor_key": "indptr"},
    "kv_indices": {"type": "safetensors", "path": "blobs/i.safetensors", "tensor_key": "indices"},
    "sm_scale": {"type": "scalar", "value": 0.5}}}})";

  void SetUp() override {
    fs::create_directories(folder_ / "blobs");
    Bundle bundle;
    bundle.tensors["indptr"] = ints({0, 1, 3});
    bundle.tensors["indices"] = ints({2, 0, 1});
    save_bundle(folder_ / "blobs" / "i.safetensors", bundle);
  }
  // `change` in the definition or the workload: the first occurrence.
  [[nodiscard]] std::string with(const std::string& from = "", const std::string& to = "") {
    std::string definition = definition_, workload = workload_;
    if (const std::size_t at = workload.find(from); !from.empty() && at != std::string::npos) {
      workload.replace(at, from.size(), to);
    } else if (!from.empty()) {
      const std::size_t in = definition.find(from);
      EXPECT_NE(in, std::string::npos) << from;
      definition.replace(in, from.size(), to);
    }
    std::erase(workload, '\n');
    spit(folder_ / "d.json", definition);
    spit(folder_ / "w.jsonl", "\n" + workload + "\n \n");
    return rejection({folder_ / "d.json", std::nullopt, 1});
  }
  [[nodiscard]] std::string rejection(const FlashInferBenchOptions& options) const {
    std::string text = message_of([&] { static_cast<void>(read_flashinfer_bench(folder_ / "w.jsonl", options)); });
    const std::string root = (folder_ / "").parent_path().string();
    for (std::size_t at = text.find(root); at != std::string::npos; at = text.find(root))
      text.replace(at, root.size(), "D");
    return text;
  }
};

TEST_F(FlashInferBench, MakesTheInputsOfAWorkload) {
  EXPECT_EQ(with(), "(no InputError)");
  const ImportedDump dump = read_flashinfer_bench(folder_ / "w.jsonl", {folder_ / "d.json", std::nullopt, 1});
  EXPECT_EQ(dump.options.scale, 0.5);
  EXPECT_EQ(dump.options.layout, "flashinfer");
  EXPECT_THAT(dump.tensors.tensors.at("k_cache").shape, ElementsAre(3, 1, 1, 4));
  EXPECT_THAT(values<std::int32_t>(dump.tensors.tensors.at("kv_last_page_len")), ElementsAre(1, 1));
  EXPECT_THAT(dump.notes, ElementsAre("q, k_cache, v_cache are random in the workload: made from seed 1"));
}

TEST_F(FlashInferBench, InputsNeedASourceThatFitsTheDefinition) {
  const auto one = [](const std::string& fault) { return "D/w.jsonl rejected: " + fault; };
  EXPECT_EQ(with(R"("q": {"type": "random"}, )", ""),
            one("q: is an input of the definition, and the workload has no source for it"));
  EXPECT_EQ(with(R"("q": {"type": "random"})", R"("q": {"type": "noise"})"),
            one("q: is of type 'noise'; kvscope reads random, scalar and safetensors"));
  EXPECT_EQ(with(R"("value": 0.5)", R"("value": "x")"), one("sm_scale: is a scalar without a number as its value"));
  EXPECT_EQ(with(R"(, "value": 0.5)", ""), one("sm_scale: is a scalar without a number as its value"));
  EXPECT_EQ(with(R"("q": {"type": "random"})", R"("q": {"type": "scalar", "value": 1})"),
            one("q: is an unsupported scalar; sm_scale is the only supported one"));
  const std::string types = ": random values are made for float32, float16, bfloat16, float8_e4m3fn and float8_e5m2";
  EXPECT_EQ(with(R"("dtype": "float32"})", R"("dtype": "int32"})"), one("q: is random, of type 'int32'" + types));
  EXPECT_EQ(with(R"("dtype": "float32"})", R"("dtype": "float4"})"), one("q: is random, of type 'float4'" + types));
  EXPECT_EQ(with(R"(["batch", "heads", "dim"])", R"(["batch", "head", "dim"])"),
            one("q: has the axis \"head\", whose size neither the definition nor the workload states"));
  EXPECT_EQ(with(R"(["batch", "heads", "dim"])", R"(["batch", 4, "dim"])"),
            one("q: has the axis 4, whose size neither the definition nor the workload states"));
  EXPECT_EQ(with(R"("batch": 2)", R"("batch": -2)"),
            one("q: has the axis \"batch\", whose size neither the definition nor the workload states"));
  EXPECT_EQ(with(R"("batch": 2)", R"("batch": 8589934592)"),
            one("q: [8589934592, 1, 4] is larger than 16 GiB: choose a smaller workload"));
  EXPECT_EQ(with(R"("batch": 2)", R"("batch": 4611686018427387904)"),
            one("q: [4611686018427387904, 1, 4] is larger than 16 GiB: choose a smaller workload"));
}

TEST_F(FlashInferBench, TensorsOfFilesFitTheDefinition) {
  const auto one = [](const std::string& fault) { return "D/w.jsonl rejected: " + fault; };
  EXPECT_EQ(with("blobs/i.safetensors", "blobs/j.safetensors"),
            one("kv_indptr: is in 'blobs/j.safetensors', which is in none of the folders above the workload"));
  EXPECT_EQ(with("blobs/i.safetensors", "/nowhere/i.safetensors"),
            one("kv_indptr: is in '/nowhere/i.safetensors', which is in none of the folders above the workload"));
  EXPECT_EQ(with("blobs/i.safetensors", (folder_ / "blobs/i.safetensors").string()), "(no InputError)");
  EXPECT_EQ(with(R"("tensor_key": "indptr")", R"("tensor_key": "offsets")"),
            one("kv_indptr: is 'offsets' of D/blobs/i.safetensors, which has no such tensor"));
  EXPECT_EQ(with(R"(["offsets"], "dtype": "int32")", R"(["offsets"], "dtype": "int64")"),
            one("kv_indptr: is i32 [3], but the definition states int64"));
  EXPECT_EQ(with(R"("offsets": 3)", R"("offsets": 4)"),
            one("kv_indptr: is i32 [3], but the axes of the workload give [4]"));
}

TEST_F(FlashInferBench, DefinitionsAreThoseOfTheWorkload) {
  EXPECT_EQ(with(R"("name": "gqa")", R"("name": "mha")"),
            "D/d.json rejected: $.name: is 'mha', but the workload is of 'gqa': pass its definition");
  EXPECT_EQ(with(R"("op_type": "gqa_paged")", R"("op_type": "gemm")"),
            "D/d.json rejected: $.op_type: is 'gemm'; kvscope reads gqa_paged and mla_paged");
  EXPECT_EQ(
      with(R"("page_size": {"value": 1})", R"("page_size": {"value": 2})"),
      "D/d.json rejected: $.inputs.kv_last_page_len: is missing: with pages of 2 tokens the lengths are not known");
  EXPECT_EQ(with(R"("k_cache": {"shape": ["pages", "page_size", "heads", "dim"])", R"("k_cache": {"shape": ["pages"])"),
            "D/d.json rejected: $.inputs.k_cache: is not [num_pages, page_size, num_kv_heads, head_dim]");
  EXPECT_EQ(with(R"("inputs": {"q": {"shape")", R"("input": {"q": {"shape")"),
            "D/w.jsonl rejected: $.workload.inputs: is missing, in the workload or in the definition");
  EXPECT_EQ(with(R"("inputs": {)", R"("input": {)"),
            "D/w.jsonl rejected: $.workload.inputs: is missing, in the workload or in the definition");
  EXPECT_EQ(with(R"("workload": {)", R"("work": {)"),
            "D/w.jsonl rejected: $.workload.inputs: is missing, in the workload or in the definition");
  EXPECT_EQ(with(R"("op_type": "gqa_paged")", R"("op_type": "mla_paged")"),
            "D/d.json rejected: $.inputs.q_nope: is missing");
  EXPECT_EQ(with(R"("k_cache": {"shape": ["pages", "page_size", "heads", "dim"], "dtype": "bfloat16"},)", ""),
            "D/d.json rejected: $.inputs.k_cache: is not [num_pages, page_size, num_kv_heads, head_dim]");
  static_cast<void>(with());
  EXPECT_THAT(rejection({}), HasSubstr("--definition: is required: there is no definitions/"));
}

// Members of another type than the format's are as good as missing.
TEST_F(FlashInferBench, AxesAndInputsAreObjects) {
  const std::string own =
      R"("axes": {"pages": {"value": 3}, "page_size": {"value": 1}, "heads": {"value": 1}, "dim": {"value": 4}, "batch": {}})";
  const auto unstated = [](const std::string& name, const std::string& axis) {
    return name + ": has the axis \"" + axis + "\", whose size neither the definition nor the workload states";
  };
  const std::string constants = "D/w.jsonl rejected, 4 faults:\n  " + unstated("q", "heads") + "\n  " +
                                unstated("k_cache", "pages") + "\n  " + unstated("v_cache", "pages") + "\n  " +
                                unstated("kv_indices", "pages");
  EXPECT_EQ(with(own, R"("axes": [3, 1, 1, 4])"), constants);
  EXPECT_EQ(with(own, R"("axis": {})"), constants);
  const std::string variables =
      "D/w.jsonl rejected, 2 faults:\n  " + unstated("q", "batch") + "\n  " + unstated("kv_indptr", "offsets");
  EXPECT_EQ(with(R"("axes": {"batch": 2, "offsets": 3})", R"("axes": [2, 3])"), variables);
  EXPECT_EQ(with(R"("axes": {"batch": 2, "offsets": 3}, )", ""), variables);
  EXPECT_EQ(with(R"("batch": 2)", R"("batch": 2.5)"), "D/w.jsonl rejected: " + unstated("q", "batch"));
  const std::string missing = "D/w.jsonl rejected: $.workload.inputs: is missing, in the workload or in the definition";
  EXPECT_EQ(with(R"("inputs": {"q": {"shape")", R"("inputs": [], "rest": {"q": {"shape")"), missing);
  EXPECT_EQ(with(R"("inputs": {)", R"("inputs": [], "rest": {)"), missing);
}

// An input without a shape is a scalar: flashinfer-bench writes null.
TEST_F(FlashInferBench, AnInputWithoutAShapeIsAScalar) {
  for (const char* shape : {R"({"shape": null, "dtype": "float32"})", R"({"dtype": "float32"})"}) {
    EXPECT_EQ(with(R"({"shape": ["batch", "heads", "dim"], "dtype": "float32"})", shape), "(no InputError)");
    const ImportedDump dump = read_flashinfer_bench(folder_ / "w.jsonl", {folder_ / "d.json", std::nullopt, 1});
    EXPECT_TRUE(dump.tensors.tensors.at("q").shape.empty()) << shape;
    EXPECT_EQ(values<float>(dump.tensors.tensors.at("q")).size(), 1U) << shape;
  }
}

// A batch without an offset has no sequence, and so no last pages.
TEST_F(FlashInferBench, OfNoSequenceHasNoLastPages) {
  Bundle bundle;
  bundle.tensors["indptr"] = ints({});
  bundle.tensors["indices"] = ints({2, 0, 1});
  save_bundle(folder_ / "blobs" / "i.safetensors", bundle);
  EXPECT_EQ(with(R"("offsets": 3)", R"("offsets": 0)"), "(no InputError)");
  const ImportedDump dump = read_flashinfer_bench(folder_ / "w.jsonl", {folder_ / "d.json", std::nullopt, 1});
  EXPECT_THAT(dump.tensors.tensors.at("kv_last_page_len").shape, ElementsAre(0));
}

// flashinfer-bench stores MLA's latent rows as [pages, dim] or [pages, page_size, dim]; only the latter needs lengths.
TEST_F(FlashInferBench, OfMlaHasPagesOfOneTokenUnlessTheCacheHasThreeAxes) {
  definition_ = R"({"name": "gqa", "op_type": "mla_paged",
    "axes": {"pages": {"value": 3}, "page_size": {"value": 2}, "heads": {"value": 1}, "ckv": {"value": 4}, "kpe": {"value": 2}},
    "inputs": {"q_nope": {"shape": ["batch", "heads", "ckv"], "dtype": "float32"},
               "q_pe": {"shape": ["batch", "heads", "kpe"], "dtype": "float32"},
               "ckv_cache": {"shape": ["pages", "ckv"], "dtype": "float32"},
               "kpe_cache": {"shape": ["pages", "kpe"], "dtype": "float32"},
               "kv_indptr": {"shape": ["offsets"], "dtype": "int32"},
               "kv_indices": {"shape": ["pages"], "dtype": "int32"}}})";
  workload_.replace(
      workload_.find(R"("q": {)"), workload_.find(R"("kv_indptr")") - workload_.find(R"("q": {)"),
      R"("q_nope": {"type": "random"}, "q_pe": {"type": "random"}, "ckv_cache": {"type": "random"}, "kpe_cache": {"type": "random"}, )");
  EXPECT_EQ(with(), "(no InputError)");
  const ImportedDump dump = read_flashinfer_bench(folder_ / "w.jsonl", {folder_ / "d.json", std::nullopt, 1});
  EXPECT_EQ(dump.options.layout, "mla");
  EXPECT_THAT(dump.tensors.tensors.at("q").shape, ElementsAre(2, 1, 6));
  EXPECT_THAT(values<std::int32_t>(dump.tensors.tensors.at("block_table")), ElementsAre(2, -1, 0, 1));
  EXPECT_THAT(values<std::int32_t>(dump.tensors.tensors.at("cache_seqlens")), ElementsAre(1, 2));
  EXPECT_EQ(
      with(R"(["pages", "ckv"])", R"(["pages", "page_size", "ckv"])"),
      "D/d.json rejected: $.inputs.kv_last_page_len: is missing: with pages of 2 tokens the lengths are not known");
}

TEST_F(FlashInferBench, AWorkloadIsChosenByItsUuid) {
  static_cast<void>(with());
  EXPECT_EQ(rejection({folder_ / "d.json", "b", 1}), "D/w.jsonl rejected: --uuid: no workload has it; there are a");
  const std::string one = slurp(folder_ / "w.jsonl");
  std::string all;
  for (const char* id : {"a", "b", "c", "d", "e"}) {
    std::string line = one;
    line.replace(line.find("\"a\""), 3, fmt::format("\"{}\"", id));
    all += line;
  }
  spit(folder_ / "w.jsonl", all);
  EXPECT_EQ(rejection({folder_ / "d.json", "d", 1}), "(no InputError)");
  EXPECT_EQ(rejection({folder_ / "d.json", "x", 1}),
            "D/w.jsonl rejected: --uuid: no workload has it; there are a, b, c, d, ...");
  EXPECT_EQ(rejection({folder_ / "d.json", std::nullopt, 1}),
            "D/w.jsonl rejected: --uuid: is required, because the file has 5 workloads: pass one of a, b, c, d, ...");
  spit(folder_ / "w.jsonl", "\n \t\r\n");
  EXPECT_EQ(rejection({folder_ / "d.json", std::nullopt, 1}),
            "D/w.jsonl rejected: has no workload: one JSON object a line");
}

}  // namespace
}  // namespace kvscope::golden::dumps_test
