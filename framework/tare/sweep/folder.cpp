// Locks the folder of a sweep, and checks its store and its free space.
#include "tare/sweep/folder.h"

#include <chrono>
#include <thread>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/sweep/run_mark.h"
#include "tare/sweep/run_name.h"

namespace tare::sweep {
namespace {

namespace fs = std::filesystem;

constexpr int kTries = 50;
constexpr std::chrono::milliseconds kBetween{10};

/// Whether the table of runs is there and has a row, so that a new one would replace results.
bool has_rows(const fs::path& table) {
  if (!fs::exists(table)) return false;
  const std::string text = io::read_text(table);
  const size_t head = text.find('\n');
  return head != text.npos && text.find_first_not_of("\r\n", head) != text.npos;
}

}  // namespace

std::unique_ptr<io::FolderLock> lock_folder(const SweepOptions& sweep) {
  io::make_directories(sweep.log_dir);
  io::check_writable(sweep.log_dir / "run_data.csv");
  for (const auto& entry : fs::directory_iterator(sweep.log_dir)) {
    const fs::path& file = entry.path();
    if (file.extension() == ".sqlite" && file.stem() != sweep.name)
      throw ConfigError("sweep", "log_dir",
                        "holds the sweep '" + printable(file.stem().string()) + "'",
                        "a folder of its own", printable(sweep.log_dir.string()));
  }
  // Processes that a killed coordinator was about to start hold its lock until they notice.
  for (int left = kTries;; --left) {
    try {
      return std::make_unique<io::FolderLock>(sweep.log_dir);
    } catch (const StateError&) {
      if (left == 0) throw;
    }
    std::this_thread::sleep_for(kBetween);
  }
}

fs::path checked_store_file(const SweepOptions& sweep) {
  const fs::path file = sweep.log_dir / (sweep.name + ".sqlite");
  if (fs::exists(file)) return file;
  const auto refuse = [&](const std::string& problem, const char* allowed) {
    throw ConfigError("sweep", "log_dir", problem, allowed, printable(sweep.log_dir.string()));
  };
  if (!run_folders(sweep.log_dir, sweep.name).empty())
    refuse("holds runs of the sweep '" + printable(sweep.name) + "', but not its store",
           "tare sweep rebuild, which makes the store from them, or another log_dir");
  if (has_rows(sweep.log_dir / "run_data.csv"))
    refuse("holds rows of a run_data.csv, but not the store of the sweep '" +
               printable(sweep.name) + "'",
           "tare sweep rebuild if they are this sweep's, the file moved away, or another log_dir");
  return file;
}

void require_disk_space(const std::filesystem::path& folder) {
  constexpr int64_t kBytes = int64_t{1} << 20;  // what a small run writes
  const fs::path file = folder / "reserve.partial";
  int error = 0;
  try {
    io::File space(file, io::Mode::create);
    space.allocate(kBytes);
  } catch (const IoError& full) {
    error = full.error_number();
  }
  io::remove_all(file);
  if (error != 0) throw IoError("sweep.run", folder.string(), error);
}

}  // namespace tare::sweep
