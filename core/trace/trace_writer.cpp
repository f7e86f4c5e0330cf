#include "core/trace/trace_writer.h"

#include <array>
#include <optional>
#include <vector>

#include "core/base/errors.h"
#include "core/trace/detail/sqlite.h"
#include "core/trace/event_text.h"

namespace kvscope::trace {
namespace {

// Number of rows inserted with one statement, so that SQLite finds the end of the table once for all of them.
constexpr std::size_t kBatch = 32;

std::string insert(std::string_view table, std::size_t columns, std::size_t rows) {
  std::string row = "(?";
  for (std::size_t i = 1; i < columns; ++i) row += ",?";
  row += ')';
  std::string sql = "INSERT INTO " + std::string(table) + " VALUES " + row;
  for (std::size_t i = 1; i < rows; ++i) sql += ',' + row;
  return sql;
}

// Buffers rows of integers for one table, in ascending order of the first column.
class TableBuffer {
 public:
  TableBuffer(Database& db, std::string_view table, std::size_t columns)
      : columns_(columns),
        many_(db.prepare(insert(table, columns, kBatch))),
        one_(db.prepare(insert(table, columns, 1))) {
    numbers_.reserve(kBatch * columns);
  }

  void add(std::int64_t number) { numbers_.push_back(number); }
  void end_row() {
    ++rows_;
    if (numbers_.size() == kBatch * columns_) flush_batch();
  }
  void flush() {
    for (std::size_t at = 0; at < numbers_.size(); at += columns_) {
      for (std::size_t i = 0; i < columns_; ++i) one_.bind(static_cast<int>(i) + 1, numbers_[at + i]);
      one_.run();
    }
    numbers_.clear();
  }
  [[nodiscard]] std::int64_t rows() const { return rows_; }

 private:
  void flush_batch() {
    int parameter = 0;
    for (const std::int64_t number : numbers_) many_.bind(++parameter, number);
    many_.run();
    numbers_.clear();
  }

  std::size_t columns_;
  Statement many_;
  Statement one_;
  std::vector<std::int64_t> numbers_;  // [rows, columns], row after row
  std::int64_t rows_ = 0;
};

}  // namespace

class TraceWriter::File {
 public:
  explicit File(const OutputPath& path)
      : shown_(path.shown.string()), pending_(path), db_(Database::create(pending_.temporary(), shown_)) {
    db_->run("PRAGMA application_id = " + std::to_string(kApplicationId));
    db_->run("PRAGMA user_version = " + std::to_string(kFormatVersion));
    db_->run("BEGIN EXCLUSIVE");
    for (const std::string_view sql : {create_meta_table(), create_kind_list(), create_step_table()}) {
      db_->run(std::string(sql));
    }
    for (std::size_t kind = 0; kind < kKinds; ++kind) db_->run(create_kind_table(kind));
    steps_.emplace(*db_, "step", 5);
    kinds_.reserve(kKinds);
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      kinds_.emplace_back(*db_, kind_name(kind), 1 + field_names(kind).size());
    }
  }

  void write(const Event& event) {
    // Buffers keep their rows when an insert fails, and a database without a journal cannot roll
    // back: after one failure the writer is unusable.
    if (!failure_.empty()) throw InputError(shown_, failure_);
    try {
      if (const auto* began = std::get_if<StepBegan>(&event)) open_step(began->step);
      std::array<std::int64_t, kMaxFields> values;
      const std::size_t count = field_values(event, values);
      TableBuffer& table = kinds_[event.index()];
      crc_.add(events_);
      crc_.add(static_cast<std::int64_t>(event.index()));
      table.add(events_);
      for (std::size_t i = 0; i < count; ++i) {
        crc_.add(values[i]);
        table.add(values[i]);
      }
      ++events_;
      table.end_row();
    } catch (const InputError& error) {
      failure_ = error.faults();
      throw;
    }
  }

  void finish(Meta meta, Detail detail) {
    if (!failure_.empty()) throw InputError(shown_, failure_);
    close_step();
    steps_->flush();
    for (TableBuffer& table : kinds_) table.flush();

    write_kinds();
    meta["detail"] = detail_name(detail);
    meta["events"] = std::to_string(events_);
    meta["steps"] = std::to_string(steps_->rows());
    add_meta(index_crc_, meta);
    meta["checksum"] = std::to_string(index_crc_.value());
    write_meta(meta);

    db_->run("COMMIT");
    steps_.reset();
    kinds_.clear();
    db_->close();
    db_.reset();
    pending_.commit();
  }

  [[nodiscard]] std::int64_t events() const { return events_; }

 private:
  void open_step(StepIdx step) {
    close_step();
    row_ = StepSpan{step, events_, 0, 0};
  }

  void close_step() {
    row_.events = events_ - row_.first_event;
    row_.crc = crc_.value();
    crc_.reset();
    add_index_row(index_crc_, row_);
    for (const std::int64_t number :
         {steps_->rows(), row_.step.value, row_.first_event, row_.events, static_cast<std::int64_t>(row_.crc)}) {
      steps_->add(number);
    }
    steps_->end_row();
  }

  void write_kinds() {
    Statement row = db_->prepare(insert("kind", 3, 1));
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      const auto id = static_cast<std::int64_t>(kind);
      row.bind(1, id);
      row.bind(2, kind_name(kind));
      row.bind(3, kinds_[kind].rows());
      row.run();
      add_kind_row(index_crc_, id, kinds_[kind].rows(), kind_name(kind));
    }
  }

  void write_meta(const Meta& meta) {
    std::size_t bytes = 0;
    for (const auto& [key, value] : meta) bytes += key.size() + value.size();
    if (bytes > static_cast<std::size_t>(kMaxMetaBytes)) {
      throw InputError(shown_, "meta",
                       "takes " + std::to_string(bytes) + " bytes, at most " + std::to_string(kMaxMetaBytes) +
                           " fit: leave the requests in a separate file");
    }
    Statement row = db_->prepare(insert("meta", 2, 1));
    for (const auto& [key, value] : meta) {
      row.bind(1, key);
      row.bind(2, value);
      row.run();
    }
  }

  std::string shown_;
  PendingFile pending_;  // outlives the database: an open file is neither renamed nor removed
  std::optional<Database> db_;
  std::optional<TableBuffer> steps_;
  std::vector<TableBuffer> kinds_;      // [kinds]
  StepSpan row_{StepIdx{-1}, 0, 0, 0};  // being filled
  Checksum crc_;                        // of row_
  Checksum index_crc_;
  std::int64_t events_ = 0;
  std::vector<Fault> failure_;
};

TraceWriter::TraceWriter(const OutputPath& path, Detail detail, Meta meta) : Recorder(detail) {
  for (auto& [key, value] : meta) set_meta(key, std::move(value));
  if (detail != Detail::off) file_ = std::make_unique<File>(path);
}

TraceWriter::~TraceWriter() = default;

void TraceWriter::set_meta(std::string_view key, std::string value) {
  KVSCOPE_ASSERT(!is_reserved_meta_key(key));
  KVSCOPE_ASSERT(key.find('\0') == key.npos && value.find('\0') == value.npos);
  meta_.insert_or_assign(std::string(key), std::move(value));
}

void TraceWriter::finish() {
  if (detail() == Detail::off) return;
  KVSCOPE_ASSERT(file_ != nullptr);
  const std::unique_ptr<File> file = std::move(file_);
  finished_events_ = file->events();
  file->finish(std::move(meta_), detail());
}

std::int64_t TraceWriter::events() const {
  return file_ != nullptr ? file_->events() : finished_events_;
}

void TraceWriter::write(const Event& event) {
  KVSCOPE_ASSERT(file_ != nullptr);
  file_->write(event);
}

}  // namespace kvscope::trace
