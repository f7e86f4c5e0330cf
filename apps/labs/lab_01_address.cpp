// Lab 01: one element's address, worked out by hand from numbers of the student's own.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "apps/labs/block_draw.h"
#include "apps/labs/case_stream.h"
#include "apps/labs/graders.h"
#include "core/base/errors.h"
#include "core/base/json.h"
#include "core/base/report.h"
#include "core/cache/layer_view.h"

namespace kvscope::labs {
namespace {

constexpr std::string_view kAnswers = "answers.json";
constexpr std::string_view kTask = "task.json";
constexpr std::int64_t kTablePages = 6;

// V of one layer is asked for; every index is at least 1, so that a forgotten term changes the result.
struct AddressTask {
  std::int64_t blocks = 0;  // without the null page
  std::int64_t layers = 0, page_size = 0, heads = 0, head_size = 0, element_bytes = 0;
  std::vector<std::int64_t> table;  // block of each page
  std::int64_t layer = 0, token = 0, head = 0, dim = 0;

  [[nodiscard]] Shape<6> pool() const { return {blocks + 1, 2, layers, page_size, heads, head_size}; }
  [[nodiscard]] std::int64_t page() const { return token / page_size; }
  [[nodiscard]] std::int64_t slot() const { return token % page_size; }
  [[nodiscard]] std::int64_t block() const { return table[static_cast<std::size_t>(page())]; }
  [[nodiscard]] std::int64_t element(KOrV k_or_v, std::int64_t of_layer) const {
    const LayerViewLayout view = compute_kv_cache_dynamic_shape_strides(pool());
    return layer_view_offset(pool(), k_or_v, LayerIdx{of_layer}) + block() * view.strides[0] +
           slot() * view.strides[1] + head * view.strides[2] + dim * view.strides[3];
  }
  [[nodiscard]] std::int64_t rows_per_block() const {
    const LayerViewLayout view = compute_kv_cache_dynamic_shape_strides(pool());
    return view.strides[0] / view.strides[1];
  }
};

AddressTask make_task(std::string_view student) {
  const CounterRng random = task_seed(student, "01_address").random(0);
  std::uint64_t at = 0;
  const auto pick = [&](std::int64_t low, std::int64_t high) { return random.integer(at++, low, high); };
  AddressTask task;
  task.blocks = pick(12, 40);
  task.layers = pick(3, 6);
  task.page_size = std::int64_t{8} << pick(0, 2);
  task.heads = pick(2, 4);
  task.head_size = std::int64_t{8} << pick(0, 2);
  task.element_bytes = pick(0, 1) == 0 ? 2 : 4;
  std::set<std::int64_t> used;
  std::int64_t block = pick(2, task.blocks - 1);
  for (std::int64_t page = 0; page < kTablePages; ++page) {
    // Neither 0 nor the page's own number.
    task.table.push_back(draw_block(used, [&] {
      do block = (block + pick(1, task.blocks - 1)) % task.blocks;
      while (block == 0 || block == page);
      return block;
    }));
  }
  task.layer = pick(1, task.layers - 1);
  task.head = pick(1, task.heads - 1);
  task.dim = pick(1, task.head_size - 1);
  const std::int64_t page = pick(1, kTablePages - 2);
  std::int64_t slot = page;
  while (slot >= page - 1 && slot <= page + 1) slot = pick(1, task.page_size - 1);  // no error gives another's number
  task.token = page * task.page_size + slot;
  return task;
}

json::Array numbers(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

std::string task_text(const AddressTask& task) {
  json::Value value;
  value.set("blocks_without_the_null_page", task.blocks);
  value.set("layers", task.layers);
  value.set("page_size", task.page_size);
  value.set("kv_heads", task.heads);
  value.set("head_size", task.head_size);
  value.set("element_bytes", task.element_bytes);
  value.set("table_row", numbers(task.table));
  json::Value asked;
  asked.set("tensor", "V");
  asked.set("layer", task.layer);
  asked.set("token", task.token);
  asked.set("head", task.head);
  asked.set("dim", task.dim);
  value.set("address_of", asked);
  return json::dump(value) + "\n";
}

Words as_words(const Shape<6>& shape) {
  return {shape.begin(), shape.end()};
}

struct Mistake {
  std::string message;
  Words value;
};

struct Field {
  std::string name;  // of the test and of the member in answers.json
  Words expected;
  std::vector<Mistake> mistakes;
  int hint = 1;
};

std::vector<Field> fields_of(const AddressTask& task) {
  const Shape<6> pool = task.pool();
  Shape<6> without_null = pool, one_slot = pool;
  without_null[0] -= 1;
  one_slot[1] = 1;
  const Words strides = as_words(row_major<6>(pool));
  Words byte_strides = strides, reversed(strides.rbegin(), strides.rend());
  for (std::int64_t& stride : byte_strides) stride *= task.element_bytes;
  const std::int64_t element = task.element(KOrV::v, task.layer), k_element = task.element(KOrV::k, task.layer);
  const std::int64_t per_row = task.heads * task.head_size, rows = task.rows_per_block();
  const std::int64_t one_layer = task.page_size * per_row;  // elements of one layer's page
  const auto next = static_cast<std::size_t>(task.page() + 1);
  return {
      {"extents",
       as_words(pool),
       {{"the null page was not counted: the pool has one block more", as_words(without_null)},
        {"K and V have a slot each: the second extent is 2", as_words(one_slot)}},
       1},
      {"strides",
       strides,
       {{"these are bytes: strides are asked for in elements", byte_strides},
        {"the strides are in reverse order: the first one belongs to blocks", reversed}},
       1},
      {"page",
       {task.page()},
       {{"this is the slot: the page is token / page_size, rounded down", {task.slot()}},
        {"pages are counted from 0", {task.page() + 1}}},
       1},
      {"slot",
       {task.slot()},
       {{"this is the page: the slot is the remainder of token / page_size", {task.page()}},
        {"slots are counted from 0", {task.slot() + 1}},
        {"this is the token: a slot is its place in the page", {task.token}}},
       1},
      {"block",
       {task.block()},
       {{"this is the page: the table maps it to a block", {task.page()}},
        {"this is the entry of the next page: pages are counted from 0", {task.table[next]}},
        {"this is the entry of the page before: pages are counted from 0", {task.table[next - 2]}}},
       1},
      {"element",
       {element},
       {{"this is K's address, you were asked for V's", {k_element}},
        {"this is the address in layer 0", {task.element(KOrV::v, 0)}},
        {"these are bytes: the element is asked for here", {element * task.element_bytes}},
        {"the head was not counted", {element - task.head * task.head_size}},
        {"the dim was not counted", {element - task.dim}},
        {"the slot was not counted", {element - task.slot() * per_row}},
        {"the token was used in place of its slot", {element + (task.token - task.slot()) * per_row}},
        {"the page was used in place of its block", {element + (task.page() - task.block()) * rows * per_row}},
        {"the stride from block to block is of one layer: a block holds all layers, K and V",
         {element - task.block() * (rows * per_row - one_layer)}}},
       2},
      {"byte",
       {element * task.element_bytes},
       {{"this is the element: multiply by element_bytes", {element}},
        {"this is K's address, you were asked for V's", {k_element * task.element_bytes}},
        {"these are bits", {element * task.element_bytes * 8}}},
       2},
      {"rows_per_block",
       {rows},
       {{"these are the rows of one layer", {task.page_size}},
        {"K or V was not counted: a block holds both", {rows / 2}},
        {"the layers were not counted", {2 * task.page_size}}},
       3},
      {"row",
       {task.block() * rows + task.slot()},
       {{"the stride from block to block is of one layer: a block holds all layers, K and V",
         {task.block() * task.page_size + task.slot()}},
        {"the slot was not counted", {task.block() * rows}},
        {"this is the token: its page can be in any block", {task.token}},
        {"rows of V are counted from the first row of V of this layer: K and V of one token have the same row",
         {task.block() * rows + rows / 2 + task.slot()}}},
       3},
  };
}

// The numbers that the student wrote; empty if any part of the value is something else.
Words words_of(const json::Value& value) {
  if (value.as_i64() != nullptr) return {*value.as_i64()};
  if (value.as_array() == nullptr) return {};
  Words words;
  for (const json::Value& item : *value.as_array()) {
    if (item.as_i64() == nullptr) return {};
    words.push_back(*item.as_i64());
  }
  return words;
}

// "4.5", and the beginning of a long value.
std::string shown(const json::Value& value) {
  constexpr std::size_t kMost = 60;  // characters
  if (value.as_object() != nullptr) return "an object";
  std::string text = json::dump(value, 0);
  std::ranges::replace(text, '\n', ' ');
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

class AddressGrader final : public Grader {
 public:
  using Grader::Grader;

  [[nodiscard]] std::vector<TaskFile> task_files(std::string_view student) const override {
    return {{std::string(kTask), task_text(make_task(student))}};
  }

  // The student's task has one right answer, so nothing depends on the seed of the grading.
  [[nodiscard]] std::vector<TestResult> grade(const Submission& submission, const Seed& /*seed*/) const override {
    json::Value answers;
    try {
      answers = json::parse(submission.file(kAnswers), kAnswers);
    } catch (const InputError& error) {
      return all_failed(lab(), error.what());
    }
    std::vector<TestResult> results;
    for (const Field& field : fields_of(make_task(submission.student))) {
      results.push_back(grade_field(field, answers.find(field.name)));
    }
    return results;
  }

 private:
  [[nodiscard]] TestResult grade_field(const Field& field, const json::Value* answer) const {
    const std::size_t wanted = field.expected.size();
    const std::string_view kind = wanted == 1 ? "a whole number" : "six whole numbers";
    if (answer == nullptr || answer->is_null()) {
      return failed(lab(), field.name, fmt::format("no answer: write {} here", kind));
    }
    const Words given = words_of(*answer);
    if (given == field.expected) return passed(lab(), field.name);
    if (given.empty()) {
      return failed(lab(), field.name,
                    fmt::format("{} is not {}: write {}", shown(*answer), kind,
                                wanted == 1 ? "digits alone, such as 12" : "a list such as [6, 5, 4, 3, 2, 1]"));
    }
    if (given.size() != wanted) {
      return failed(lab(), field.name,
                    fmt::format("{} given: write {} here", counted(std::ssize(given), "number"), kind));
    }
    for (const Mistake& mistake : field.mistakes) {
      if (given == mistake.value) return failed(lab(), field.name, mistake.message, {}, field.hint);
    }
    // The right number is not shown: it would be the answer.
    return failed(lab(), field.name, fmt::format("{} is not right", fmt::join(given, " ")), {}, field.hint);
  }
};

}  // namespace

std::unique_ptr<Grader> address_grader(const Lab& lab, const GradeOptions& options) {
  return std::make_unique<AddressGrader>(lab, options);
}

}  // namespace kvscope::labs
