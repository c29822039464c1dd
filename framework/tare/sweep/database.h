// A thin layer over SQLite. Internal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace tare::sweep {

/// Holds one statement, prepared once and run many times. Parameters count from 1, columns from 0.
/// Every call throws IoError with SQLite's message.
class Statement {
 public:
  Statement(sqlite3* database, std::string_view sql);
  Statement& bind(int place, int64_t value);
  Statement& bind(int place, double value);
  Statement& bind(int place, std::string_view value);
  Statement& bind_null(int place);
  /// Moves to the next row; returns whether there is one.
  bool step();
  /// Executes a statement without rows; ready to be bound again.
  void run();
  void reset();
  [[nodiscard]] int64_t integer(int column) const;
  [[nodiscard]] double number(int column) const;
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] bool is_null(int column) const;

 private:
  void check(int code) const;
  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement_;
};

enum class Access {
  write,  ///< creates the file if it is not there
  read
};

/// Holds a file open in WAL mode. Waits up to a minute for other processes.
class Database {
 public:
  explicit Database(const std::filesystem::path& path, Access access = Access::write);
  [[nodiscard]] Statement prepare(std::string_view sql) const { return {handle_.get(), sql}; }
  void execute(const char* script) const;
  /// Does all of `work` or nothing; what it throws is rethrown.
  void transaction(const std::function<void()>& work) const;
  [[nodiscard]] int64_t last_id() const;
  [[nodiscard]] std::string file() const;  ///< its absolute path
  /// Throws IoError if the file, or the log of its latest changes, has been deleted, moved or
  /// replaced since it was opened: SQLite would continue to write into files that nobody finds any
  /// more.
  void check_still_there() const;

 private:
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> handle_;
};

}  // namespace tare::sweep
