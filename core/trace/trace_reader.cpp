#include "core/trace/trace_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "core/base/errors.h"
#include "core/base/numbers.h"
#include "core/trace/detail/page_reader.h"
#include "core/trace/detail/sqlite.h"
#include "core/trace/detail/trace_schema.h"

namespace kvscope::trace {
namespace {

constexpr std::int64_t kTableBytes = 1 << 16;  // more than the statement that creates any table of a trace
constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

// One kind's table, read forwards.
struct Cursor {
  std::size_t kind = 0;     // in this program
  std::int64_t id = 0;      // in the file
  std::int64_t events = 0;  // rows, as declared by the file
  Statement rows;
  std::int64_t head = kNone;  // number of the event that is read and not yet consumed
};

}  // namespace

class TraceReader::File {
 public:
  File(const std::filesystem::path& path, const TraceLimits& limits)
      : shown(path.string()),
        limits_(limits),
        bytes_(check_header(path, shown)),
        db_(Database::open_untrusted(path, shown, std::max(limits.text_bytes, kTableBytes))),
        pages_(path) {
    // Far more than an honest file of this size needs: about 20 instructions a row.
    db_.limit_work(10'000'000 + 64 * bytes_);
    const std::vector<FileKind> kinds = check_schema(db_);
    read_meta();
    read_index();
    for (const FileKind& kind : kinds) open_cursor(kind);
    check_totals(kinds);
    add_pages();
    db_.limit_work(0);
  }

  // From the pages. If these are not as SQLite writes them, or contradict the index, then from here on with SQL, which
  // finds the fault.
  std::vector<Event> read_row(std::int64_t row) {
    if (by_pages_) {
      std::vector<Event> of_row;
      if (read_pages(row, of_row)) return of_row;
      by_pages_ = false;
    }
    return read_sql(row);
  }
  // After the last row of the index: no table may have events left.
  void check_nothing_left() {
    if (position_ != events) seek(events);
    for (const Cursor& cursor : cursors_) {
      if (cursor.head != kNone) reject_stray(cursor, cursor.head);
    }
  }

  std::string shown;
  Meta meta;
  Detail detail = Detail::off;
  std::int64_t events = 0;
  std::vector<StepSpan> index;
  std::array<std::int64_t, kKinds> of_kind{};

 private:
  void read_meta() {
    Statement rows = db_.prepare("SELECT key, value FROM meta ORDER BY key");
    std::int64_t bytes = 0;
    while (rows.step()) {
      const auto key = rows.text(0);
      const auto value = rows.text(1);
      if (!key || !value) throw InputError(shown, "table 'meta'", "holds a row that is not text");
      bytes += static_cast<std::int64_t>(key->size() + value->size());
      require_at_most("table 'meta'", bytes, limits_.text_bytes, "bytes of text", "--max-text");
      if (!meta.empty() && meta.rbegin()->first >= *key) {
        throw InputError(shown, "table 'meta'", fmt::format("key '{}' is out of order", *key));
      }
      meta.emplace(*key, *value);
    }
    if (const auto known = find_detail(meta_text("detail")); known && *known != Detail::off) {
      detail = *known;
    } else {
      throw InputError(shown, "meta 'detail'", fmt::format("'{}' is neither 'steps' nor 'full'", meta_text("detail")));
    }
    events = meta_number("events");
    require_at_most("meta 'events'", events, limits_.events, "events", "--max-events");
  }

  void require_at_most(const std::string& where, std::int64_t value, std::int64_t limit, std::string_view what,
                       std::string_view option) const {
    if (value <= limit) return;
    throw InputError(
        shown, where,
        fmt::format("{} {} are more than {}: a larger limit: {} of kvscope trace", value, what, limit, option));
  }

  const std::string& meta_text(std::string_view key) const {
    const auto found = meta.find(key);
    if (found == meta.end()) throw InputError(shown, fmt::format("meta '{}'", key), "is missing");
    return found->second;
  }

  std::int64_t meta_number(std::string_view key) const {
    const std::string& text = meta_text(key);
    const auto number = whole_number<std::int64_t>(text);
    if (!number || *number < 0) {
      throw InputError(shown, fmt::format("meta '{}'", key), fmt::format("'{}' is not a count", text));
    }
    return *number;
  }

  void read_index() {
    Statement rows = db_.prepare("SELECT row, step, first_event, events, crc FROM step ORDER BY row");
    while (rows.step()) {
      std::array<std::int64_t, 5> row{};
      for (int column = 0; column < 5; ++column) {
        const auto number = rows.integer(column);
        if (!number) {
          throw InputError(shown, fmt::format("table 'step', row {}", index.size()),
                           fmt::format("column {} holds {}, not an integer", column, rows.type(column)));
        }
        row[static_cast<std::size_t>(column)] = *number;
      }
      add_to_index(row);
    }
    const auto count = static_cast<std::int64_t>(index.size());
    if (count == 0) throw InputError(shown, "table 'step'", "is empty: it always has the prologue");
    if (meta_number("steps") != count) {
      throw InputError(shown, "table 'step'",
                       fmt::format("has {} rows, but meta says {}", count, meta_number("steps")));
    }
    if (index.back().end_event() != events) {
      throw InputError(shown, "table 'step'",
                       fmt::format("ends at event {}, but meta says {} events", index.back().end_event(), events));
    }
  }

  void add_to_index(const std::array<std::int64_t, 5>& row) {
    const auto [number, step, first, count, crc] = row;
    const auto expected = static_cast<std::int64_t>(index.size());
    const std::int64_t next = index.empty() ? 0 : index.back().end_event();
    const std::string where = fmt::format("table 'step', row {}", expected);
    require_at_most(where, expected, limits_.steps, "steps", "--max-steps");
    if (number != expected) throw InputError(shown, where, fmt::format("is missing: row {} follows", number));
    if (first != next) throw InputError(shown, where, fmt::format("begins at event {} instead of {}", first, next));
    if (count < (expected > 0 ? 1 : 0) || count > events - first) {
      throw InputError(shown, where,
                       fmt::format("claims {} events, but {} are left in the trace", count, events - first));
    }
    if (expected == 0 && step != -1) {
      throw InputError(shown, where, fmt::format("is step {}, but the prologue is step -1", step));
    }
    if (crc < 0 || crc > std::int64_t{0xFFFFFFFF}) {
      throw InputError(shown, where, fmt::format("crc {} is outside [0, 4294967296)", crc));
    }
    require_at_most(where, count, limits_.step_events, "events of one step", "--max-step-events");
    index.push_back({StepIdx{step}, first, count, static_cast<std::uint32_t>(crc)});
  }

  void open_cursor(const FileKind& kind) {
    of_kind[kind.kind] = kind.events;
    if (kind.events == 0) return check_empty(kind);
    const std::string_view table = kind_name(kind.kind);
    // SQLite finds both ends of the table in a few pages, without reading all of it.
    const std::string ends = fmt::format("SELECT event FROM {} ORDER BY event", table);
    Cursor cursor{kind.kind, kind.id, kind.events,
                  db_.prepare(fmt::format("SELECT * FROM {} WHERE event >= ?1 ORDER BY event", table)), kNone};
    for (const std::string& sql : {ends + " LIMIT 1", ends + " DESC LIMIT 1"}) {
      Statement end = db_.prepare(sql);
      if (!end.step()) {
        throw InputError(shown, fmt::format("table '{}'", table),
                         fmt::format("is empty, but table 'kind' says {} events", kind.events));
      }
      const std::int64_t number = end.integer(0).value_or(-1);
      if (number < 0 || number >= events) reject_stray(cursor, number);
    }
    cursors_.push_back(std::move(cursor));
  }

  void check_empty(const FileKind& kind) {
    Statement row = db_.prepare(fmt::format("SELECT event FROM {} LIMIT 1", kind_name(kind.kind)));
    if (row.step()) {
      throw InputError(shown, fmt::format("table '{}'", kind_name(kind.kind)), "holds events, but table 'kind' says 0");
    }
  }

  void check_totals(const std::vector<FileKind>& kinds) {
    std::int64_t left = events;
    for (const FileKind& kind : kinds) {
      if (kind.events < 0 || kind.events > left) {
        throw InputError(shown, fmt::format("table 'kind', row {}", kind.id),
                         fmt::format("claims {} events, but {} are left in the trace", kind.events, left));
      }
      left -= kind.events;
    }
    if (left != 0) {
      throw InputError(shown, "table 'kind'", fmt::format("counts {} events, but meta says {}", events - left, events));
    }
    Checksum checksum;
    for (const StepSpan& row : index) add_index_row(checksum, row);
    for (const FileKind& kind : kinds) add_kind_row(checksum, kind.id, kind.events, kind_name(kind.kind));
    add_meta(checksum, meta);
    if (meta_text("checksum") != std::to_string(checksum.value())) {
      throw InputError(shown, "index",
                       fmt::format("checksum is {} instead of {}: the file was changed or damaged", checksum.value(),
                                   meta_text("checksum")));
    }
  }

  void seek(std::int64_t number) {
    for (Cursor& cursor : cursors_) {
      cursor.rows.reset();
      cursor.rows.bind(1, number);
      cursor.head = kNone - 1;  // of no table: after an error in advance() no old head may remain
      advance(cursor);
    }
  }

  void advance(Cursor& cursor) {
    if (!cursor.rows.step()) {
      cursor.head = kNone;
      return;
    }
    cursor.head = cursor.rows.integer(0).value_or(-1);  // the primary key: always an integer
  }

  Event take(Cursor& cursor, Checksum& crc) {
    const auto names = field_names(cursor.kind);
    std::array<std::int64_t, kMaxFields> values{};
    crc.add(cursor.head);
    crc.add(cursor.id);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const int column = static_cast<int>(i) + 1;
      const auto number = cursor.rows.integer(column);
      if (!number) reject_value(cursor, names[i], fmt::format("holds {}, not an integer", cursor.rows.type(column)));
      values[i] = *number;
      crc.add(values[i]);
    }
    const auto event = event_from(cursor.kind, std::span(values).first(names.size()));
    if (!event) reject_unfit(cursor, std::span(values).first(names.size()));
    advance(cursor);
    return *event;
  }

  // Finds the value that does not fit: tries one at a time among values that fit every field.
  [[noreturn]] void reject_unfit(const Cursor& cursor, std::span<const std::int64_t> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::array<std::int64_t, kMaxFields> alone{};
      alone[i] = values[i];
      if (!event_from(cursor.kind, std::span(alone).first(values.size()))) {
        reject_value(cursor, field_names(cursor.kind)[i], fmt::format("holds {}, which does not fit", values[i]));
      }
    }
    reject_value(cursor, "event", "does not fit");
  }

  [[noreturn]] void reject_value(const Cursor& cursor, std::string_view column, const std::string& what) {
    throw InputError(shown, fmt::format("table '{}', event {}", kind_name(cursor.kind), cursor.head),
                     fmt::format("column '{}' {}", column, what));
  }

  [[noreturn]] void reject_stray(const Cursor& cursor, std::int64_t number) {
    throw InputError(shown, fmt::format("table '{}', event {}", kind_name(cursor.kind), number),
                     fmt::format("is outside the trace's [0, {})", events));
  }

  [[noreturn]] void reject_gap(std::int64_t number) {
    for (const Cursor& cursor : cursors_) {
      if (cursor.head < number) {
        throw InputError(shown, fmt::format("table '{}', event {}", kind_name(cursor.kind), cursor.head),
                         "occurs twice or is out of order");
      }
    }
    throw InputError(shown, fmt::format("event {}", number), "is in no table");
  }

  void add_pages() {
    Statement roots = db_.prepare("SELECT name, rootpage FROM sqlite_schema");
    while (roots.step()) {
      const std::string name(roots.text(0).value_or(""));
      const auto root = roots.integer(1).value_or(0);
      for (const Cursor& cursor : cursors_) {
        if (kind_name(cursor.kind) == name) pages_.add(cursor.kind, cursor.id, static_cast<std::uint32_t>(root));
      }
    }
  }

  bool read_pages(std::int64_t row, std::vector<Event>& of_row) {
    const StepSpan& span = index[static_cast<std::size_t>(row)];
    Checksum crc;
    return pages_.read(span.first_event, span.end_event(), crc, of_row) && crc.value() == span.crc &&
           !misplaced(row, of_row);
  }

  std::vector<Event> read_sql(std::int64_t row) {
    const StepSpan& span = index[static_cast<std::size_t>(row)];
    std::vector<Event> of_row;
    Checksum crc;
    read(span.first_event, span.end_event(), crc, of_row);
    if (crc.value() != span.crc) {
      throw InputError(
          shown, fmt::format("step {}", span.step.value),
          fmt::format("checksum is {} instead of {}: the file was changed or damaged", crc.value(), span.crc));
    }
    if (const auto at = misplaced(row, of_row)) {
      throw InputError(shown, fmt::format("step {}", span.step.value),
                       fmt::format("event {} is '{}', which the index contradicts",
                                   span.first_event + static_cast<std::int64_t>(*at), to_text(of_row[*at])));
    }
    return of_row;
  }

  // Appends events [first, end) to `out` and adds their bytes to `crc`.
  void read(std::int64_t first, std::int64_t end, Checksum& crc, std::vector<Event>& out) {
    if (position_ != first) seek(first);
    position_ = kNone;  // until the read has succeeded
    for (std::int64_t number = first; number < end; ++number) {
      const auto cursor =
          std::find_if(cursors_.begin(), cursors_.end(), [&](const Cursor& c) { return c.head == number; });
      if (cursor == cursors_.end()) reject_gap(number);
      out.push_back(take(*cursor, crc));
    }
    // A number that is in two tables remains as the head of the second.
    if (std::any_of(cursors_.begin(), cursors_.end(), [&](const Cursor& c) { return c.head < end; })) reject_gap(end);
    position_ = end;
  }

  // A step begins with its step_began and has no second one; the prologue has none. Returns the first event that
  // contradicts this.
  std::optional<std::size_t> misplaced(std::int64_t row, const std::vector<Event>& of_row) const {
    const StepSpan& span = index[static_cast<std::size_t>(row)];
    for (std::size_t i = 0; i < of_row.size(); ++i) {
      const auto* began = std::get_if<StepBegan>(&of_row[i]);
      const bool expected = row > 0 && i == 0;
      if ((began != nullptr) != expected || (began != nullptr && began->step != span.step)) return i;
    }
    return std::nullopt;
  }

  TraceLimits limits_;
  std::int64_t bytes_;  // of the file
  Database db_;
  PageReader pages_;
  bool by_pages_ = true;
  std::vector<Cursor> cursors_;    // of the kinds that have events
  std::int64_t position_ = kNone;  // the event at which all cursors are
};

TraceReader::TraceReader(const std::filesystem::path& path, const TraceLimits& limits)
    : file_(std::make_unique<File>(path, limits)) {}
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader::~TraceReader() = default;

const std::string& TraceReader::path() const {
  return file_->shown;
}
const Meta& TraceReader::meta() const {
  return file_->meta;
}
Detail TraceReader::detail() const {
  return file_->detail;
}
std::int64_t TraceReader::events() const {
  return file_->events;
}

std::int64_t TraceReader::events_of_kind(std::size_t kind) const {
  KVSCOPE_ASSERT(kind < kKinds);
  return file_->of_kind[kind];
}

std::int64_t TraceReader::rows() const {
  return static_cast<std::int64_t>(file_->index.size());
}

const StepSpan& TraceReader::span(std::int64_t row) const {
  check_index("row of the step index", row, rows());
  return file_->index[static_cast<std::size_t>(row)];
}

std::optional<std::int64_t> TraceReader::find_step(StepIdx step) const {
  const auto found =
      std::find_if(file_->index.begin(), file_->index.end(), [&](const StepSpan& span) { return span.step == step; });
  if (found == file_->index.end()) return std::nullopt;
  return found - file_->index.begin();
}

std::int64_t TraceReader::row_of_event(std::int64_t event) const {
  check_index("event", event, events());
  const auto after =
      std::upper_bound(file_->index.begin(), file_->index.end(), event,
                       [](std::int64_t number, const StepSpan& span) { return number < span.end_event(); });
  return after - file_->index.begin();
}

std::vector<Event> TraceReader::events_of_row(std::int64_t row) {
  check_index("row of the step index", row, rows());
  return file_->read_row(row);
}

std::vector<Event> TraceReader::events_in(std::int64_t first, std::int64_t end) {
  check_index("end of a range of events", end, events() + 1);
  check_index("first of a range of events", first, end + 1);
  std::vector<Event> events;
  if (first == end) return events;
  for (std::int64_t row = row_of_event(first); row < rows() && span(row).first_event < end; ++row) {
    const std::vector<Event> whole = file_->read_row(row);
    const std::int64_t base = span(row).first_event;
    events.insert(events.end(), whole.begin() + std::max<std::int64_t>(first - base, 0),
                  whole.begin() + std::min<std::int64_t>(end - base, static_cast<std::int64_t>(whole.size())));
  }
  return events;
}

void TraceReader::for_each(const std::function<void(std::int64_t number, const Event& event)>& visit) {
  for (std::int64_t row = 0; row < rows(); ++row) {
    std::int64_t number = span(row).first_event;
    for (const Event& event : file_->read_row(row)) visit(number++, event);
  }
}

void TraceReader::verify_all() {
  for_each([](std::int64_t, const Event&) {});
  file_->check_nothing_left();
}

}  // namespace kvscope::trace
