#include "core/trace/detail/trace_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <system_error>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/trace/event_text.h"
#include "core/trace/trace_file.h"

namespace kvscope::trace {
namespace {

constexpr std::size_t kHeaderBytes = 100;  // of an SQLite database, sqlite.org/fileformat.html section 1.3
constexpr std::size_t kMaxObjects = 1000;  // a valid trace has one table per kind and three more

std::uint32_t big_endian(const std::array<char, kHeaderBytes>& header, std::size_t at, std::size_t bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < bytes; ++i) number = number << 8 | static_cast<unsigned char>(header[at + i]);
  return number;
}

struct Object {
  std::string type;  // "table", "index", "view", "trigger"
  std::string sql;
};

std::map<std::string, Object> read_objects(Database& db) {
  Statement rows = db.prepare("SELECT type, name, sql FROM sqlite_schema");
  std::map<std::string, Object> objects;
  while (rows.step()) {
    const std::string name(rows.text(1).value_or("?"));
    const bool is_new =
        objects
            .emplace(name, Object{std::string(rows.text(0).value_or("object")), std::string(rows.text(2).value_or(""))})
            .second;
    if (!is_new || objects.size() > kMaxObjects) {
      throw InputError(db.shown(), "", "is damaged: its list of tables is not one of a trace");
    }
  }
  return objects;
}

// Adds a fault unless `table` exists with the statement `sql`. Removes it from `objects`.
void expect_table(const Database& db, std::map<std::string, Object>& objects, std::string_view table,
                  std::string_view sql, std::span<const std::string_view> columns, std::vector<Fault>& faults) {
  const std::string where = fmt::format("table '{}'", table);
  const auto found = objects.find(std::string(table));
  if (found == objects.end()) {
    faults.push_back({where, "is missing"});
    return;
  }
  const Object object = std::move(found->second);
  objects.erase(found);
  if (object.type == "table" && object.sql == sql) return;
  if (object.type != "table") {
    faults.push_back({where, fmt::format("is a {}", object.type)});
    return;
  }
  const std::size_t before = faults.size();
  for (const std::string_view column : columns) {
    if (!db.has_column(table, column)) faults.push_back({where, fmt::format("column '{}' is missing", column)});
  }
  if (faults.size() == before) faults.push_back({where, fmt::format("is not made by {}", sql)});
}

std::vector<FileKind> read_kinds(Database& db, std::vector<Fault>& faults) {
  Statement rows = db.prepare("SELECT kind, name, events FROM kind ORDER BY kind");
  std::vector<FileKind> kinds;
  std::set<std::size_t> seen;
  while (rows.step() && kinds.size() + faults.size() < kMaxObjects) {
    const std::int64_t id = rows.integer(0).value_or(-1);  // the primary key: always an integer
    const auto name = rows.text(1);
    const auto events = rows.integer(2);
    if (!name || !events) {
      throw InputError(db.shown(), "table 'kind'", "holds a row that is not integer, text, integer");
    }
    const auto kind = find_kind(*name);
    if (!kind) {
      faults.push_back({fmt::format("table 'kind', row {}", id), fmt::format("'{}' is not a kind of event", *name)});
    } else if (!seen.insert(*kind).second) {
      faults.push_back({fmt::format("table 'kind', row {}", id), fmt::format("'{}' occurs twice", *name)});
    } else {
      kinds.push_back({*kind, id, *events});
    }
  }
  return kinds;
}

}  // namespace

std::int64_t check_header(const std::filesystem::path& path, const std::string& shown) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw InputError(shown, "", "is a folder: name the trace file in it");
  const std::string start = read_file_start(path, kHeaderBytes);
  std::array<char, kHeaderBytes> header{};
  std::copy(start.begin(), start.end(), header.begin());
  if (start.size() != kHeaderBytes || std::memcmp(header.data(), "SQLite format 3", 16) != 0) {
    throw InputError(shown, "", "is not a trace: it does not begin as an SQLite database does");
  }
  const std::uint32_t application = big_endian(header, 68, 4);
  if (application != static_cast<std::uint32_t>(kApplicationId)) {
    throw InputError(shown, "",
                     fmt::format("is not a trace: its application id is {:#010x}, a trace has {:#010x}", application,
                                 kApplicationId));
  }
  const auto version = static_cast<std::int32_t>(big_endian(header, 60, 4));
  if (version > kFormatVersion) {
    throw InputError(
        shown, "",
        fmt::format("format version {} is newer than this program's {}: update kvscope", version, kFormatVersion));
  }
  if (version < 1)
    throw InputError(shown, "", fmt::format("format version {} does not exist: the first is 1", version));

  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  if (error) throw InputError(shown, "", fmt::format("cannot be read: {}", system_message(error.value())));
  const std::uint32_t page = big_endian(header, 16, 2);
  const std::int64_t claimed = std::int64_t{page == 1 ? 65536 : page} * std::int64_t{big_endian(header, 28, 4)};
  if (size < claimed) {
    throw InputError(shown, "", fmt::format("is cut short: {} of {} bytes are there", size, claimed));
  }
  if (size > claimed) {
    throw InputError(shown, "", fmt::format("is damaged: it has {} bytes, its header says {}", size, claimed));
  }
  return size;
}

std::vector<FileKind> check_schema(Database& db) {
  static constexpr std::array<std::string_view, 2> kMetaColumns{"key", "value"};
  static constexpr std::array<std::string_view, 3> kKindColumns{"kind", "name", "events"};
  static constexpr std::array<std::string_view, 5> kStepColumns{"row", "step", "first_event", "events", "crc"};
  std::map<std::string, Object> objects = read_objects(db);
  std::vector<Fault> faults;
  expect_table(db, objects, "meta", create_meta_table(), kMetaColumns, faults);
  expect_table(db, objects, "step", create_step_table(), kStepColumns, faults);
  expect_table(db, objects, "kind", create_kind_list(), kKindColumns, faults);
  if (!faults.empty()) throw InputError(db.shown(), std::move(faults));

  const std::vector<FileKind> kinds = read_kinds(db, faults);
  for (const FileKind& kind : kinds) {
    std::vector<std::string_view> columns{"event"};
    columns.insert(columns.end(), field_names(kind.kind).begin(), field_names(kind.kind).end());
    expect_table(db, objects, kind_name(kind.kind), create_kind_table(kind.kind), columns, faults);
  }
  for (const auto& [name, object] : objects) {
    faults.push_back({fmt::format("{} '{}'", object.type, name), "does not belong to a trace"});
  }
  if (!faults.empty()) throw InputError(db.shown(), std::move(faults));
  return kinds;
}

}  // namespace kvscope::trace
