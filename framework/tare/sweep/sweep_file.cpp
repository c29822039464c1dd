// Notices edits of a sweep's file, and reads it again.
#include "tare/sweep/sweep_file.h"

#include <sys/stat.h>

#include <utility>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"

namespace tare::sweep {

SweepFile::SweepFile(std::filesystem::path path, std::vector<std::string> overrides, Read read)
    : path_(std::move(path)),
      overrides_(std::move(overrides)),
      read_(read),
      mark_(mark()),
      options_(read_(path_, overrides_)) {
  text_ = io::read_text(path_);
}

SweepFile::Mark SweepFile::mark() const {
  struct stat now {};
  if (stat(path_.c_str(), &now) != 0) return {};
  return {now.st_mtim.tv_sec, now.st_mtim.tv_nsec, now.st_size, now.st_ino};
}

std::optional<SweepOptions> SweepFile::changed() {
  const Mark now = mark();
  if (now == mark_ || now.size < 0) return std::nullopt;  // gone: an editor replaces it
  mark_ = now;
  try {
    std::string text = io::read_text(path_);
    if (text == text_) return std::nullopt;
    text_ = std::move(text);
    return options_ = read_(path_, overrides_);
  } catch (const Error& error) {
    log::warning(std::string(error.what()) + "; the sweep continues as before");
    return std::nullopt;
  }
}

}  // namespace tare::sweep
