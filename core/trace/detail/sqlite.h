// The SQLite calls that a trace file needs. Only sqlite.cpp includes <sqlite3.h>; every failure becomes an
// InputError that names the file as the user wrote it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace kvscope::trace {

class Statement;

class Database {
 public:
  // An empty database for one bulk write, in a file that exists and is empty: no journal and no waiting for the disk,
  // because the caller syncs and renames the file when it is complete and removes it otherwise. Messages name `shown`.
  // Throws InputError "<shown> rejected: cannot be written: ...".
  [[nodiscard]] static Database create(const std::filesystem::path& path, std::string shown);

  // An untrusted file: opened read-only, journals beside it ignored, no triggers, views, functions in the schema or
  // memory maps, cells checked before use, values of more than `max_value` bytes rejected.
  // Throws InputError "<shown> rejected: is damaged: ..." here or at the first statement, "cannot be read: ..." with
  // the system's words if the disk fails, and std::bad_alloc if memory runs out.
  [[nodiscard]] static Database open_untrusted(const std::filesystem::path& path, std::string shown,
                                               std::int64_t max_value);

  Database(Database&& other) noexcept;
  Database& operator=(Database&&) = delete;
  ~Database();

  void run(const std::string& sql);
  [[nodiscard]] Statement prepare(std::string_view sql);
  // Precondition: every statement is destroyed. Throws when closing fails.
  void close();

  // Throws InputError "... takes too long to read" after that many instructions of SQLite's virtual machine from now;
  // 0: no limit. Without it, a damaged page that is its own descendant many times over would take years to walk.
  void limit_work(std::int64_t instructions);

  [[nodiscard]] bool has_column(std::string_view table, std::string_view column) const;
  [[nodiscard]] const std::string& shown() const { return shown_; }
  [[noreturn]] void fail(int code) const;

 private:
  Database(std::string shown, bool writing) : shown_(std::move(shown)), writing_(writing) {}

  sqlite3* db_ = nullptr;
  std::string shown_;
  bool writing_;
};

// A compiled statement; parameters are numbered from 1, columns from 0, as in SQLite.
class Statement {
 public:
  Statement(Database& db, sqlite3_stmt* handle) : db_(&db), handle_(handle) {}
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;
  ~Statement();

  void bind(int parameter, std::int64_t value);
  void bind(int parameter, std::string_view text);  // copied
  // True: a row is available.
  [[nodiscard]] bool step();
  void run() { static_cast<void>(step()), reset(); }
  void reset();

  // Empty when the cell has another type.
  [[nodiscard]] std::optional<std::int64_t> integer(int column) const;
  [[nodiscard]] std::optional<std::string_view> text(int column) const;  // until the next step
  [[nodiscard]] std::string_view type(int column) const;                 // "integer", "real", "text", "blob", "null"
  [[nodiscard]] int columns() const;

 private:
  Database* db_;
  sqlite3_stmt* handle_;
};

}  // namespace kvscope::trace
