#include "core/trace/detail/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/errors.h"

namespace kvscope::trace {
namespace {

// "file:" and the path, with every byte that is special in a URI written as %xx.
std::string immutable_uri(const std::filesystem::path& path) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(path).string()) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' ||
                       c == '.' || c == '-' || c == '_';
    uri += plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return uri + "?immutable=1";
}

// The errno behind an SQLite error; 0 if the database itself is the fault, or ends too early. A read that fails with
// EIO is reported by SQLite as damage.
int system_error_of(sqlite3* db, int kind) {
  if (kind == SQLITE_FULL) return ENOSPC;
  if (kind == SQLITE_CANTOPEN) return sqlite3_system_errno(db);
  int error = 0;
  if (kind == SQLITE_IOERR || kind == SQLITE_CORRUPT) sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &error);
  return kind == SQLITE_IOERR && error == 0 ? EIO : error;  // the journal's errno is not kept
}

int stop(void*) {
  return 1;
}

}  // namespace

Database Database::create(const std::filesystem::path& path, std::string shown) {
  Database db(std::move(shown), true);
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
  int code = sqlite3_open_v2(path.c_str(), &db.db_, kFlags, nullptr);
  // If opening for writing fails, SQLite opens for reading only, without an error.
  if (code == SQLITE_OK && sqlite3_db_readonly(db.db_, "main") != 0) {
    const int error = ::access(path.c_str(), W_OK) != 0 ? errno : 0;
    if (error != 0) throw InputError(db.shown_, "", "cannot be written: " + system_message(error));
    sqlite3_close_v2(std::exchange(db.db_, nullptr));  // it was a failure of the moment, such as EMFILE
    code = sqlite3_open_v2(path.c_str(), &db.db_, kFlags, nullptr);
  }
  if (code != SQLITE_OK) db.fail(code);
  // secure_delete zeroes the unused bytes of a page, so that two runs give identical files.
  for (const char* pragma :
       {"PRAGMA page_size = 1024", "PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF",
        "PRAGMA locking_mode = EXCLUSIVE", "PRAGMA cache_size = -16384", "PRAGMA secure_delete = ON"}) {
    db.run(pragma);
  }
  return db;
}

Database Database::open_untrusted(const std::filesystem::path& path, std::string shown, std::int64_t max_value) {
  Database db(std::move(shown), false);
  const int code = sqlite3_open_v2(immutable_uri(path).c_str(), &db.db_,
                                   SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) db.fail(code);
  sqlite3_db_config(db.db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db.db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(db.db_, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(db.db_, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_limit(db.db_, SQLITE_LIMIT_LENGTH, static_cast<int>(std::min<std::int64_t>(max_value, INT_MAX)));
  sqlite3_limit(db.db_, SQLITE_LIMIT_COLUMN, 64);
  sqlite3_limit(db.db_, SQLITE_LIMIT_ATTACHED, 0);
  for (const char* pragma : {"PRAGMA cell_size_check = ON", "PRAGMA mmap_size = 0", "PRAGMA query_only = ON",
                             "PRAGMA cache_size = -8192", "PRAGMA temp_store = MEMORY"}) {
    db.run(pragma);
  }
  return db;
}

Database::Database(Database&& other) noexcept
    : db_(std::exchange(other.db_, nullptr)), shown_(std::move(other.shown_)), writing_(other.writing_) {}

Database::~Database() {
  sqlite3_close_v2(db_);
}

void Database::run(const std::string& sql) {
  const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

Statement Database::prepare(std::string_view sql) {
  sqlite3_stmt* handle = nullptr;
  const int code =
      sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &handle, nullptr);
  if (code != SQLITE_OK) fail(code);
  return {*this, handle};
}

void Database::close() {
  const int code = sqlite3_close(db_);
  if (code != SQLITE_OK) fail(code);
  db_ = nullptr;
}

void Database::limit_work(std::int64_t instructions) {
  constexpr std::int64_t kMost = 2'000'000'000;
  sqlite3_progress_handler(db_, static_cast<int>(instructions < kMost ? instructions : kMost),
                           instructions > 0 ? stop : nullptr, nullptr);
}

bool Database::has_column(std::string_view table, std::string_view column) const {
  return sqlite3_table_column_metadata(db_, "main", std::string(table).c_str(), std::string(column).c_str(), nullptr,
                                       nullptr, nullptr, nullptr, nullptr) == SQLITE_OK;
}

void Database::fail(int code) const {
  if (code == SQLITE_INTERRUPT) throw InputError(shown_, "", "is damaged: it takes too long to read");
  const int kind = code & 0xff;
  if (kind == SQLITE_TOOBIG) {
    throw InputError(shown_, "",
                     fmt::format("holds a text of more than {} bytes: a larger limit: --max-text of kvscope trace",
                                 sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, -1)));
  }
  if (db_ == nullptr) throw std::bad_alloc();  // SQLite makes no handle without memory
  if (kind == SQLITE_NOMEM) {
    // SQLite says this too of a row that claims 2 GiB or more, without a call of malloc, which would set errno.
    if (writing_ || errno == ENOMEM) throw std::bad_alloc();
    throw InputError(shown_, "", "is damaged: a row claims more bytes than SQLite allocates");
  }
  if (const int error = system_error_of(db_, kind); error != 0) {
    throw InputError(shown_, "", fmt::format("cannot be {}: {}", writing_ ? "written" : "read", system_message(error)));
  }
  throw InputError(shown_, "",
                   fmt::format("{}: {}", writing_ ? "cannot be written" : "is damaged", sqlite3_errmsg(db_)));
}

Statement::Statement(Statement&& other) noexcept : db_(other.db_), handle_(std::exchange(other.handle_, nullptr)) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(db_, other.db_);
  std::swap(handle_, other.handle_);
  return *this;
}

Statement::~Statement() {
  sqlite3_finalize(handle_);
}

void Statement::bind(int parameter, std::int64_t value) {
  const int code = sqlite3_bind_int64(handle_, parameter, value);
  if (code != SQLITE_OK) db_->fail(code);
}

void Statement::bind(int parameter, std::string_view text) {
  const int code = sqlite3_bind_text64(handle_, parameter, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  if (code != SQLITE_OK) db_->fail(code);
}

bool Statement::step() {
  errno = 0;  // for fail()
  const int code = sqlite3_step(handle_);
  if (code != SQLITE_ROW && code != SQLITE_DONE) db_->fail(code);
  return code == SQLITE_ROW;
}

void Statement::reset() {
  sqlite3_reset(handle_);
}

std::optional<std::int64_t> Statement::integer(int column) const {
  if (sqlite3_column_type(handle_, column) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(handle_, column);
}

std::optional<std::string_view> Statement::text(int column) const {
  if (sqlite3_column_type(handle_, column) != SQLITE_TEXT) return std::nullopt;
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
  if (bytes == nullptr) return std::nullopt;
  return std::string_view(bytes, static_cast<std::size_t>(sqlite3_column_bytes(handle_, column)));
}

std::string_view Statement::type(int column) const {
  switch (sqlite3_column_type(handle_, column)) {
    case SQLITE_INTEGER:
      return "integer";
    case SQLITE_FLOAT:
      return "real";
    case SQLITE_TEXT:
      return "text";
    case SQLITE_BLOB:
      return "blob";
    default:
      return "null";
  }
}

int Statement::columns() const {
  return sqlite3_column_count(handle_);
}

}  // namespace kvscope::trace
