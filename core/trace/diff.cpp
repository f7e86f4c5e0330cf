#include "core/trace/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <numeric>

#include "core/base/errors.h"

namespace kvscope::trace {
namespace {

constexpr std::size_t kTileKind = Event(TileOpened{}).index();
constexpr std::size_t kGeometryKind = Event(TileMemory{}).index();     // and all kinds after it
constexpr std::size_t kRegisterKind = Event(TileFragments{}).index();  // what registers hold: likewise, except banks
constexpr std::size_t kBankKind = Event(BankPhase{}).index();
constexpr std::string_view kKernelKey = "kernel";  // in the meta of a trace of ptx run

// A kernel's trace has those kinds of a tile's geometry that its instructions determine, and numbers registers through
// the tile, the model through a k-step. Of two tiles, a kind of geometry is compared if both traces have it; what
// registers hold only if both traces are of kernels or neither is. options.kinds overrides this.
std::vector<std::size_t> compared_kinds(const TraceReader& left, const TraceReader& right, const DiffOptions& options) {
  if (!options.left_tile || !options.kinds.empty()) return options.kinds;
  const bool alike = left.meta().contains(kKernelKey) == right.meta().contains(kKernelKey);
  std::vector<std::size_t> kinds(kGeometryKind);
  std::iota(kinds.begin(), kinds.end(), std::size_t{0});
  for (std::size_t kind = kGeometryKind; kind < std::variant_size_v<Event>; ++kind) {
    if (kind >= kRegisterKind && kind != kBankKind && !alike) continue;
    if (left.events_of_kind(kind) > 0 && right.events_of_kind(kind) > 0) kinds.push_back(kind);
  }
  return kinds;
}

// Iterates over events of memory or of a file. next() is null at the end; number() is that of the last event returned.
class SpanSource {
 public:
  explicit SpanSource(std::span<const Event> events) : events_(events) {}
  const Event* next() { return at_ < events_.size() ? &events_[at_++] : nullptr; }
  [[nodiscard]] std::int64_t number() const { return static_cast<std::int64_t>(at_) - 1; }

 private:
  std::span<const Event> events_;
  std::size_t at_ = 0;
};

class FileSource {
 public:
  FileSource(TraceReader& trace, const std::vector<std::size_t>& kinds, std::optional<std::int64_t> tile)
      : trace_(&trace), kinds_(&kinds), tile_(tile) {}
  // Valid until the next call. Skips events that are not compared.
  const Event* next() {
    while (const Event* event = read()) {
      if (tile_) {
        if (event->index() < kTileKind) continue;
        if (event->index() == kTileKind) ++tiles_;
        if (tiles_ <= *tile_) continue;
        if (tiles_ > *tile_ + 1) return nullptr;
      }
      const bool wanted = kinds_->empty() || std::find(kinds_->begin(), kinds_->end(), event->index()) != kinds_->end();
      if (wanted) return event;
    }
    return nullptr;
  }
  [[nodiscard]] std::int64_t number() const { return number_; }

 private:
  const Event* read() {
    while (at_ == events_.size()) {
      if (row_ == trace_->rows()) return nullptr;
      events_ = trace_->events_of_row(row_++);
      at_ = 0;
    }
    ++number_;
    return &events_[at_++];
  }

  TraceReader* trace_;
  const std::vector<std::size_t>* kinds_;
  std::optional<std::int64_t> tile_;
  std::vector<Event> events_;
  std::size_t at_ = 0;
  std::int64_t row_ = 0;
  std::int64_t number_ = -1;
  std::int64_t tiles_ = 0;  // opened so far
};

void require_tile(const TraceReader& trace, std::optional<std::int64_t> tile) {
  if (!tile) return;
  const std::int64_t tiles = trace.events_of_kind(kTileKind);
  if (*tile >= 0 && *tile < tiles) return;
  throw InputError(trace.path(), "",
                   tiles == 0
                       ? fmt::format("has no tile: record one, with focus.staging or ptx run --trace")
                       : fmt::format("tile {} is outside [0, {}): its tiles are numbered in order", *tile, tiles));
}

std::vector<FieldDifference> differing_fields(const Event& left, const Event& right) {
  std::vector<FieldDifference> fields;
  if (left.index() != right.index()) return fields;
  const auto a = named_fields(left);
  const auto b = named_fields(right);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].value != b[i].value) fields.push_back({a[i].name, a[i].value, b[i].value});
  }
  return fields;
}

template <class Source>
std::vector<Event> from_here(const Event* event, Source& source, std::int64_t context,
                             std::vector<std::int64_t>& numbers) {
  std::vector<Event> events;
  for (; event != nullptr; event = source.next()) {
    events.push_back(*event);
    numbers.push_back(source.number());
    if (static_cast<std::int64_t>(events.size()) > context) break;
  }
  return events;
}

// Both sides begin the same step at different times: the difference belongs to that step, not to the one before.
StepIdx step_of(const Event* left, const Event* right, StepIdx current) {
  const auto* a = left != nullptr ? std::get_if<StepBegan>(left) : nullptr;
  const auto* b = right != nullptr ? std::get_if<StepBegan>(right) : nullptr;
  return a != nullptr && b != nullptr && a->step == b->step ? a->step : current;
}

// `equal` becomes the number of equal events from the start.
template <class Source>
std::optional<Divergence> diverge(Source left, Source right, std::int64_t context, std::int64_t& equal) {
  KVSCOPE_ASSERT(context >= 0);
  std::deque<Event> before;
  std::deque<std::int64_t> before_numbers;
  StepIdx step{-1};
  for (equal = 0;; ++equal) {
    const Event* a = left.next();
    const Event* b = right.next();
    if (a == nullptr && b == nullptr) return std::nullopt;
    if (a == nullptr || b == nullptr || !same_event(*a, *b)) {
      Divergence found;
      found.event = equal;
      found.step = step_of(a, b, step);
      found.before.assign(before.begin(), before.end());
      found.before_numbers.assign(before_numbers.begin(), before_numbers.end());
      if (a != nullptr && b != nullptr) found.fields = differing_fields(*a, *b);
      found.left = from_here(a, left, context, found.left_numbers);
      found.right = from_here(b, right, context, found.right_numbers);
      return found;
    }
    if (const auto* began = std::get_if<StepBegan>(a)) step = began->step;
    before.push_back(*a);
    before_numbers.push_back(left.number());
    if (static_cast<std::int64_t>(before.size()) > context) before.pop_front(), before_numbers.pop_front();
  }
}

std::optional<std::string> value_of(const Meta& meta, const std::string& key) {
  const auto found = meta.find(key);
  return found == meta.end() ? std::nullopt : std::optional(found->second);
}

std::vector<MetaDifference> differing_meta(const Meta& left, const Meta& right) {
  std::vector<MetaDifference> differences;
  Meta keys = left;
  keys.insert(right.begin(), right.end());
  for (const auto& [key, unused] : keys) {
    if (is_reserved_meta_key(key) && key != "detail") continue;
    MetaDifference difference{key, value_of(left, key), value_of(right, key)};
    if (difference.left != difference.right) differences.push_back(std::move(difference));
  }
  return differences;
}

std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return line;
}

std::string meta_text(const MetaDifference& difference, std::string_view left_name, std::string_view right_name) {
  constexpr std::size_t kShort = 40;  // [bytes]
  const std::string head = fmt::format("meta '{}': ", difference.key);
  if (!difference.right) return head + fmt::format("only in {}\n", left_name);
  if (!difference.left) return head + fmt::format("only in {}\n", right_name);
  const std::string& a = *difference.left;
  const std::string& b = *difference.right;
  if (a.size() <= kShort && b.size() <= kShort) return head + fmt::format("{} | {}\n", one_line(a), one_line(b));
  const auto at = static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  const std::size_t from = at - std::min<std::size_t>(at, kShort / 2);
  const auto excerpt = [&](const std::string& text) {
    return fmt::format("{}{}{}", from > 0 ? "..." : "", one_line(std::string_view(text).substr(from, kShort)),
                       from + kShort < text.size() ? "..." : "");
  };
  return head + fmt::format("differs from character {} on: {} | {}\n", at, excerpt(a), excerpt(b));
}

std::string listing(std::string_view title, const std::vector<Event>& events,
                    const std::vector<std::int64_t>& numbers) {
  std::string text = events.empty() ? "" : fmt::format("{}:\n", title);
  for (std::size_t i = 0; i < events.size(); ++i) text += fmt::format("  {}  {}\n", numbers[i], to_text(events[i]));
  return text;
}

// The place: one event number when both traces are compared whole, otherwise the number in each trace.
std::string place_of(const Divergence& first, bool partial) {
  if (!partial) {
    return first.step.value < 0 ? fmt::format("{}, before the first step", first.event)
                                : fmt::format("{}, step {}", first.event, first.step.value);
  }
  const auto number = [](const std::vector<std::int64_t>& numbers) {
    return numbers.empty() ? std::string("the end") : std::to_string(numbers.front());
  };
  return number(first.left_numbers) + " | " + number(first.right_numbers);
}

std::string what_happened(const Divergence& first, std::string_view left_name, std::string_view right_name) {
  if (first.left.empty()) return fmt::format("{} ends, {} continues", left_name, right_name);
  if (first.right.empty()) return fmt::format("{} ends, {} continues", right_name, left_name);
  const std::string_view a = kind_name(first.left.front().index());
  const std::string_view b = kind_name(first.right.front().index());
  return a == b ? std::string(a) : fmt::format("{} | {}", a, b);
}

}  // namespace

std::optional<Divergence> first_divergence(std::span<const Event> left, std::span<const Event> right,
                                           std::int64_t context) {
  std::int64_t equal = 0;
  return diverge(SpanSource(left), SpanSource(right), context, equal);
}

TraceDiff diff_traces(TraceReader& left, TraceReader& right, const DiffOptions& options) {
  require_tile(left, options.left_tile);
  require_tile(right, options.right_tile);
  TraceDiff diff;
  diff.partial = options.leaves_out();
  if (!diff.partial) diff.meta = differing_meta(left.meta(), right.meta());
  const std::vector<std::size_t> kinds = compared_kinds(left, right, options);
  diff.first = diverge(FileSource(left, kinds, options.left_tile), FileSource(right, kinds, options.right_tile),
                       options.context, diff.equal_events);
  return diff;
}

std::string to_text(const TraceDiff& diff, std::string_view left_name, std::string_view right_name) {
  std::string text;
  for (const MetaDifference& difference : diff.meta) text += meta_text(difference, left_name, right_name);
  if (!diff.first) {
    return text + fmt::format("the {} events{} are the same\n", diff.equal_events, diff.partial ? " compared" : "");
  }
  const Divergence& first = *diff.first;
  text += fmt::format("first divergence at event {}: {}\n", place_of(first, diff.partial),
                      what_happened(first, left_name, right_name));
  for (const FieldDifference& field : first.fields) {
    text += fmt::format("  {}: {} | {}\n", field.field, field.left, field.right);
  }
  text += listing("both, before", first.before, first.before_numbers);
  text += listing(left_name, first.left, first.left_numbers);
  text += listing(right_name, first.right, first.right_numbers);
  return text;
}

}  // namespace kvscope::trace
