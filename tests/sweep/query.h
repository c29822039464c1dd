// Queries a store by SQL.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tare::testing {

/// One column of each row of a query.
inline std::vector<std::string> rows(const std::filesystem::path& path, const std::string& query) {
  std::vector<std::string> all;
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  sqlite3_busy_timeout(database, 60'000);
  const auto take = [](void* to, int columns, char** values, char**) {
    std::string row;
    for (int i = 0; i < columns; ++i)
      row += (i ? " " : "") + std::string(values[i] ? values[i] : "-");
    static_cast<std::vector<std::string>*>(to)->push_back(row);
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(database, query.c_str(), take, &all, nullptr), SQLITE_OK) << query;
  sqlite3_close(database);
  return all;
}

}  // namespace tare::testing
