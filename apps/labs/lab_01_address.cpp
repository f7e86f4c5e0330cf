// Lab 01: one element's address, worked out by hand from numbers of the student's own.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <utility>

#include "apps/labs/block_draw.h"
#include "apps/labs/case_stream.h"
#include "apps/labs/graders.h"
#include "apps/labs/unknown_names.h"
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
};

constexpr std::array<std::string_view, 6> kAxes{"block", "k_or_v", "layer", "page_row", "head", "head_dim"};

template <class Array>
Array with_exchanged(Array values, std::size_t axis) {
  std::swap(values[axis], values[axis + 1]);
  return values;
}

std::string exchanged_axes(std::size_t axis) {
  return fmt::format("{} and {} are exchanged: the axes are {}", kAxes[axis], kAxes[axis + 1], fmt::join(kAxes, ", "));
}

std::vector<Mistake> extents_mistakes(const Shape<6>& pool) {
  Shape<6> without_null = pool, one_slot = pool;
  without_null[0] -= 1;
  one_slot[1] = 1;
  std::vector<Mistake> mistakes{{"the null page was not counted: the pool has one block more", as_words(without_null)},
                                {"K and V have a slot each: the second extent is 2", as_words(one_slot)}};
  for (std::size_t axis = 0; axis + 1 < kAxes.size(); ++axis) {
    mistakes.push_back({exchanged_axes(axis), as_words(with_exchanged(pool, axis))});
  }
  return mistakes;
}

std::vector<Mistake> strides_mistakes(const AddressTask& task) {
  const Shape<6> pool = task.pool();
  const Words strides = as_words(row_major<6>(pool));
  Words bytes = strides, from_own_extent = strides;
  for (std::size_t axis = 0; axis < strides.size(); ++axis) {
    bytes[axis] *= task.element_bytes;
    from_own_extent[axis] *= pool[axis];
  }
  std::vector<Mistake> mistakes{
      {"these are bytes: strides are asked for in elements", bytes},
      {"the strides are in reverse order: the first one belongs to blocks", {strides.rbegin(), strides.rend()}},
      {"each axis was multiplied by its own extent: a stride is the product of the extents after its axis",
       from_own_extent}};
  for (std::size_t axis = 0; axis + 1 < kAxes.size(); ++axis) {
    mistakes.push_back({exchanged_axes(axis), as_words(row_major<6>(with_exchanged(pool, axis)))});
  }
  return mistakes;
}

// Elements with a typical error. `byte` has the same ones in bytes.
std::vector<Mistake> element_mistakes(const AddressTask& task) {
  const std::int64_t element = task.element(KOrV::v, task.layer);
  const std::int64_t per_row = task.heads * task.head_size, rows = task.rows_per_block();
  const std::int64_t one_layer = task.page_size * per_row;  // elements of one layer's page
  std::vector<Mistake> mistakes{
      {"this is K's address, you were asked for V's", {task.element(KOrV::k, task.layer)}},
      {"this is the address in layer 0", {task.element(KOrV::v, 0)}},
      {"layers are counted from 0: this is the address in the layer before", {element - one_layer}},
      {"the head was not counted", {element - task.head * task.head_size}},
      {"the dim was not counted", {element - task.dim}},
      {"the slot was not counted", {element - task.slot() * per_row}},
      {"the token was used in place of its slot", {element + (task.token - task.slot()) * per_row}},
      {"the page was used in place of its block", {element + (task.page() - task.block()) * rows * per_row}},
      {"the stride from block to block is of one layer: a block holds all layers, K and V",
       {element - task.block() * (rows * per_row - one_layer)}}};
  const Shape<6> pool = task.pool(), index{task.block(), 1, task.layer, task.slot(), task.head, task.dim};
  const auto dot = [](const Shape<6>& a, const Shape<6>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), std::int64_t{0});
  };
  for (std::size_t axis = 0; axis + 1 < kAxes.size(); ++axis) {
    // The pool with exchanged axes; and the right strides, multiplied by exchanged indices.
    const Shape<6> exchanged = with_exchanged(index, axis);
    mistakes.push_back({exchanged_axes(axis), {dot(exchanged, row_major<6>(with_exchanged(pool, axis)))}});
    mistakes.push_back({exchanged_axes(axis), {dot(exchanged, row_major<6>(pool))}});
  }
  return mistakes;
}

std::vector<Mistake> byte_mistakes(const AddressTask& task) {
  const std::int64_t element = task.element(KOrV::v, task.layer);
  std::vector<Mistake> mistakes{{"this is the element: multiply by element_bytes", {element}},
                                {"these are bits", {element * task.element_bytes * 8}}};
  for (const std::int64_t bytes : {2, 4, 8}) {
    if (bytes == task.element_bytes) continue;
    mistakes.push_back(
        {fmt::format("the element was multiplied by {}: multiply it by the element_bytes of your task", bytes),
         {element * bytes}});
  }
  for (Mistake& mistake : element_mistakes(task)) {
    mistake.value[0] *= task.element_bytes;
    mistakes.push_back(std::move(mistake));
  }
  return mistakes;
}

std::vector<Mistake> row_mistakes(const AddressTask& task) {
  const std::int64_t rows = task.rows_per_block(), row = task.block() * rows + task.slot();
  const std::int64_t of_layer = task.layer * task.page_size;
  const std::string view = "rows are counted from the first row of K or V of this layer: ";
  return {{"the stride from block to block is of one layer: a block holds all layers, K and V",
           {task.block() * task.page_size + task.slot()}},
          {"the stride from block to block counts one of K and V: a block holds both",
           {task.block() * (rows / 2) + task.slot()}},
          {"the stride from block to block counts one layer: a block holds all layers",
           {task.block() * 2 * task.page_size + task.slot()}},
          {"the block number was added without a stride: one block is many rows", {task.block() + task.slot()}},
          {"the slot was not counted", {task.block() * rows}},
          {"this is the token: its page can be in any block", {task.token}},
          {"the token was used in place of its slot", {task.block() * rows + task.token}},
          {"the page was used in place of its block", {task.page() * rows + task.slot()}},
          {view + "K and V of one token have the same row", {row + rows / 2}},
          {view + "a token has the same row in every layer", {row + of_layer}},
          {view + "neither V nor the layer is part of the row", {row + rows / 2 + of_layer}}};
}

std::vector<Field> fields_of(const AddressTask& task) {
  const std::int64_t element = task.element(KOrV::v, task.layer), rows = task.rows_per_block();
  const std::int64_t block_elements = rows * task.heads * task.head_size;
  const auto next = static_cast<std::size_t>(task.page() + 1);
  return {
      {"extents", as_words(task.pool()), extents_mistakes(task.pool())},
      {"strides", as_words(row_major<6>(task.pool())), strides_mistakes(task)},
      {"page",
       {task.page()},
       {{"this is the slot: the page is token / page_size, rounded down", {task.slot()}},
        {"pages are counted from 0", {task.page() + 1}}}},
      {"slot",
       {task.slot()},
       {{"this is the page: the slot is the remainder of token / page_size", {task.page()}},
        {"slots are counted from 0", {task.slot() + 1}},
        {"this is the token: a slot is its place in the page", {task.token}}}},
      {"block",
       {task.block()},
       {{"this is the page: the table maps it to a block", {task.page()}},
        {"this is the entry of the next page: pages are counted from 0", {task.table[next]}},
        {"this is the entry of the page before: pages are counted from 0", {task.table[next - 2]}}}},
      {"element", {element}, element_mistakes(task)},
      {"byte", {element * task.element_bytes}, byte_mistakes(task)},
      {"rows_per_block",
       {rows},
       {{"these are the rows of one layer", {task.page_size}},
        {"K or V was not counted: a block holds both", {rows / 2}},
        {"the layers were not counted", {2 * task.page_size}},
        {"these are elements: a row has heads * head_size of them", {block_elements}},
        {"these are rows of one head: a row has all heads of a token", {rows * task.heads}}}},
      {"row", {task.block() * rows + task.slot()}, row_mistakes(task)},
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
      results.push_back(grade_field(field, answers));
    }
    return results;
  }

 private:
  [[nodiscard]] TestResult grade_field(const Field& field, const json::Value& answers) const {
    const std::size_t wanted = field.expected.size();
    const std::string_view kind = wanted == 1 ? "a whole number" : "six whole numbers";
    const json::Value* const answer = answers.find(field.name);
    if (answer == nullptr || answer->is_null()) {
      std::vector<std::string_view> names;
      for (const LabTest& test : lab().tests) names.push_back(test.name);
      return failed(lab(), field.name,
                    fmt::format("no answer: write {} here{}", kind, unknown_names(answers, field.name, names)));
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
    // Two errors may give one number: a token beyond its slot by one page is one layer too far.
    std::vector<std::string_view> causes;
    for (const Mistake& mistake : field.mistakes) {
      const bool known = std::ranges::find(causes, mistake.message) != causes.end();
      if (given == mistake.value && !known) causes.push_back(mistake.message);
    }
    if (!causes.empty()) return failed(lab(), field.name, fmt::format("{}", fmt::join(causes, "; or ")));
    // The right number is not shown: it would be the answer.
    return failed(lab(), field.name,
                  fmt::format("{} is not right, and no typical error gives it", fmt::join(given, " ")));
  }
};

}  // namespace

std::unique_ptr<Grader> address_grader(const Lab& lab, const GradeOptions& options) {
  return std::make_unique<AddressGrader>(lab, options);
}

}  // namespace kvscope::labs
