// Appends to a log, and cuts off what a stopped run wrote beyond its checkpoint.
#include "tare/callback/growing_file.h"

#include <algorithm>
#include <system_error>

#include "tare/base/error.h"
#include "tare/base/log.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

/// Returns the size of the file; -1: there is none.
int64_t size_of(const fs::path& path) {
  std::error_code missing;
  const auto size = fs::file_size(path, missing);
  return missing ? -1 : static_cast<int64_t>(size);
}

void warn(const IoError& error) {
  log::warning(std::string("a log is not up to date: ") + error.what());
}

}  // namespace

void GrowingFile::open(const fs::path& path, std::string_view head) {
  path_ = path;
  const int64_t size = size_of(path);
  if (bytes_ > size)
    log::warning("'" + printable(path.string()) +
                 "' is not there as the checkpoint knows it: it begins anew");
  const bool continues = bytes_ >= 0 && bytes_ <= size;
  if (!continues) bytes_ = 0;
  try {
    io::make_directories(path.parent_path());
    cut();
  } catch (const IoError& error) {
    warn(error);
  }
  if (!continues) waiting_ = head;
}

/// Replaces the file by its first `bytes_` bytes.
void GrowingFile::cut() const {
  const int64_t size = std::max<int64_t>(0, size_of(path_));
  if (size == bytes_) return;
  if (size < bytes_) throw IoError("io.write", path_.string(), "another program has shortened it");
  std::string kept(static_cast<size_t>(bytes_), '\0');
  io::File file(path_, io::Mode::read);
  kept.resize(file.read(kept.data(), kept.size()));
  file.close();
  io::write_atomically(path_, kept);
}

void GrowingFile::write(io::Flush flush) {
  if (waiting_.empty()) return;
  try {
    cut();
    io::File file(path_, io::Mode::append);
    file.write(waiting_);
    if (flush == io::Flush::yes) file.flush();
    file.close();
  } catch (const IoError& error) {
    return warn(error);
  }
  bytes_ += static_cast<int64_t>(waiting_.size());
  waiting_.clear();
}

}  // namespace tare
