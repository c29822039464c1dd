// Runs statements and transactions on SQLite.
#include "tare/sweep/database.h"

#include <sqlite3.h>

#include <chrono>
#include <thread>

#include "tare/base/error.h"

namespace tare::sweep {
namespace {

[[noreturn]] void fail(sqlite3* database) {
  const char* name = database ? sqlite3_db_filename(database, nullptr) : nullptr;
  const std::string file = name ? name : "";
  const int code = database ? sqlite3_errcode(database) & 0xff : SQLITE_OK;
  if (code != SQLITE_NOTADB && code != SQLITE_CORRUPT)
    throw IoError("sweep.store", file, sqlite3_errmsg(database));
  throw FormatError("sweep.store", file, "the file",
                    std::string("is not a store of a sweep (SQLite: ") + sqlite3_errmsg(database) +
                        "): give the sweep another name, or move the file away; `tare sweep "
                        "rebuild` makes a store anew from the folders of the runs");
}

}  // namespace

Statement::Statement(sqlite3* database, std::string_view sql)
    : database_(database), statement_(nullptr, sqlite3_finalize) {
  sqlite3_stmt* made = nullptr;
  check(sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &made, nullptr));
  statement_.reset(made);
}

void Statement::check(int code) const {
  if (code != SQLITE_OK) fail(database_);
}

Statement& Statement::bind(int place, int64_t value) {
  check(sqlite3_bind_int64(statement_.get(), place, value));
  return *this;
}

Statement& Statement::bind(int place, double value) {
  check(sqlite3_bind_double(statement_.get(), place, value));
  return *this;
}

Statement& Statement::bind(int place, std::string_view value) {
  check(sqlite3_bind_text64(statement_.get(), place, value.data(), value.size(), SQLITE_TRANSIENT,
                            SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind_null(int place) {
  check(sqlite3_bind_null(statement_.get(), place));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) fail(database_);
  return false;
}

void Statement::run() {
  while (step()) {
  }
  reset();
}

void Statement::reset() {
  check(sqlite3_reset(statement_.get()));
  check(sqlite3_clear_bindings(statement_.get()));
}

int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::number(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column) const {
  const auto* bytes = sqlite3_column_text(statement_.get(), column);
  const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
  return bytes ? std::string(reinterpret_cast<const char*>(bytes), size) : std::string();
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

namespace {

/// SQLite's own timeout sleeps longer each time, and so comes too late again and again where others
/// write all the time.
int wait_a_little(void*, int times) {
  constexpr auto kBetween = std::chrono::milliseconds(2),
                 kLongest = std::chrono::milliseconds(60'000);
  std::this_thread::sleep_for(kBetween);
  return times < kLongest / kBetween ? 1 : 0;
}

}  // namespace

Database::Database(const std::filesystem::path& path, Access access)
    : handle_(nullptr, sqlite3_close) {
  sqlite3* made = nullptr;
  const int flags =
      access == Access::write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  const int code = sqlite3_open_v2(path.c_str(), &made, flags, nullptr);
  handle_.reset(made);
  if (code != SQLITE_OK)
    throw IoError("sweep.store", path.string(), made ? sqlite3_errmsg(made) : "out of memory");
  sqlite3_busy_handler(made, wait_a_little, nullptr);
  if (access == Access::write) execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;");
}

void Database::execute(const char* script) const {
  if (sqlite3_exec(handle_.get(), script, nullptr, nullptr, nullptr) != SQLITE_OK)
    fail(handle_.get());
}

void Database::transaction(const std::function<void()>& work) const {
  execute("BEGIN IMMEDIATE");
  try {
    work();
    execute("COMMIT");
  } catch (...) {
    // After some errors SQLite has rolled back already.
    if (sqlite3_get_autocommit(handle_.get()) == 0)
      sqlite3_exec(handle_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
}

std::string Database::file() const {
  const char* name = sqlite3_db_filename(handle_.get(), nullptr);
  return name ? name : "";
}

void Database::check_still_there() const {
  int moved = 0;
  if (sqlite3_file_control(handle_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK)
    fail(handle_.get());
  if (moved != 0)
    throw IoError("sweep.store", file(), "the file was deleted or replaced while it was in use");
  const std::string log = file() + "-wal";
  if (!std::filesystem::exists(log))
    throw IoError("sweep.store", log, "the file was deleted while it was in use");
}

int64_t Database::last_id() const { return sqlite3_last_insert_rowid(handle_.get()); }

}  // namespace tare::sweep
