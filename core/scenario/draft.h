// A scenario that a person changes field by field, as in a form: its fields with their values, its faults, and undo.
//
//   ScenarioDraft draft(scenario);              page_size 16, and tile.BN follows it: 64
//   draft.set("$.cache.page_size", "48");       tile.BN is 48 now
//   draft.set("$.tile.BN", "64");               a fault at $.tile.BN: 64 tokens are not whole pages of 48
//   draft.undo();                               no fault, tile.BN is 48 again
//
// Only fields that are set are written; the others have their default, which may follow other fields.
// A value of the wrong kind or out of range is kept and is a fault, as in a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "core/base/json.h"
#include "core/scenario/scenario.h"
#include "core/scenario/scenario_json.h"

namespace kvscope {

struct DraftField {
  enum class Kind : std::uint8_t {
    section,   // has fields
    optional,  // a section that may be absent: cache.quantization
    list,      // has items
    item,      // of a list; has fields
    number,
    flag,  // "true" or "false"
    word,  // one of `words`
    text,
  };
  Kind kind = Kind::section;
  std::string path;                // "$.requests.list[0].prompt_tokens"
  std::string name;                // "prompt_tokens"; "[0]" of an item
  std::string meaning;             // a sentence; empty of an item
  std::string range;               // "[1, 65536]" of a number
  std::vector<std::string> words;  // legal values; of a number "none", if it can have no value
  std::string value;               // of a list the number of its items; of a section or an item empty
  bool given = false;              // it is set; an optional section: it is there
  bool required = false;           // it has no default
  std::vector<DraftField> fields;

  [[nodiscard]] bool is_value() const {
    return kind == Kind::number || kind == Kind::flag || kind == Kind::word || kind == Kind::text;
  }
  friend bool operator==(const DraftField&, const DraftField&) = default;
};

class ScenarioDraft {
 public:
  static constexpr std::size_t kMostItems = 5000;  // requests and spans of a scenario that is changed field by field
  static constexpr std::size_t kMostChanges = 50;  // that can be undone
  [[nodiscard]] static bool fits(const Scenario& scenario);

  explicit ScenarioDraft(const Scenario& scenario);  // one that passes check_scenario() and fits

  [[nodiscard]] const DraftField& root() const { return root_; }
  // Null: no field has this path.
  [[nodiscard]] const DraftField* find(std::string_view path) const;
  [[nodiscard]] const std::vector<Fault>& faults() const { return reading_.faults; }
  // What the fields describe; a field with a fault has its default.
  [[nodiscard]] const Scenario& scenario() const { return reading_.scenario; }
  [[nodiscard]] const Scenario& start() const { return start_; }  // of the constructor or the last mark_start()
  [[nodiscard]] bool changed() const;                             // it is not start()

  // Each is one change, or none if the draft already is so. IndexError: no field of a fitting kind has this path.
  void set(std::string_view path, std::string_view text);  // a number, flag, word or text; blank: its default
  void remove(std::string_view path);  // a value, which is the default again; an optional section; an item
  void add(std::string_view path);     // an optional section, or an item at the end of a list: its smallest values
  // Another scenario that fits, in place of this one: one change, with these words.
  void replace(const Scenario& scenario, std::string words);
  void mark_start();  // from now on changed() compares with this scenario, such as when it is saved

  // The change that would be undone or redone, as "cache.page_size: 16 -> 48"; nullopt: there is none.
  [[nodiscard]] std::optional<std::string> undo_words() const;
  [[nodiscard]] std::optional<std::string> redo_words() const;
  void undo();
  void redo();

 private:
  struct State {
    json::Value document;
    std::string words;  // the change that led here; empty for the first one
  };
  [[nodiscard]] const DraftField& field_at(std::string_view path) const;
  [[nodiscard]] const json::Value& document() const { return states_[now_].document; }
  void change(std::string words, json::Value after);
  void read();

  Scenario start_;
  std::vector<State> states_;
  std::size_t now_ = 0;  // later states can be redone
  DocumentReading reading_;
  DraftField root_;
};

}  // namespace kvscope
