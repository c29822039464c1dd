// Writes zip archives and reads them.
#include "tare/checkpoint/zip_writer.h"

#include <gtest/gtest.h>

#include "support/files.h"
#include "support/temp_dir.h"
#include "tare/checkpoint/zip_archive.h"

namespace tare::checkpoint {
namespace {

using testing::content_of;
using testing::TempDir;

std::string archive_of(const TempDir& folder,
                       const std::vector<std::pair<std::string, std::string>>& entries) {
  io::File file(folder / "a.zip", io::Mode::create);
  ZipWriter zip(file);
  for (const auto& [name, text] : entries) zip.add(name, text);
  zip.finish();
  file.close();
  return content_of(folder / "a.zip");
}

TEST(ZipWriter, WritesWhatTheReaderFinds) {
  const TempDir folder;
  const std::string large(100'000, 'x');
  std::string bytes =
      archive_of(folder, {{"a", ""}, {"b/c.json", "{}"}, {"d", large}, {"e", "end"}});
  const ZipEntries entries = read_zip(std::as_writable_bytes(std::span(bytes)), "a.zip");
  ASSERT_EQ(entries.size(), 4U);
  const auto text = [&](const std::string& name) {
    const auto data = entries.at(name);
    EXPECT_EQ((reinterpret_cast<const char*>(data.data()) - bytes.data()) % 64, 0) << name;
    return std::string(reinterpret_cast<const char*>(data.data()), data.size());
  };
  EXPECT_EQ(text("a"), "");
  EXPECT_EQ(text("b/c.json"), "{}");
  EXPECT_EQ(text("d"), large);
  EXPECT_EQ(text("e"), "end");
}

// More entries than the end record of a plain archive can count.
TEST(ZipWriter, CountsManyEntriesInTheWiderRecord) {
  const TempDir folder;
  std::vector<std::pair<std::string, std::string>> entries;
  for (int i = 0; i < 66'000; ++i) entries.emplace_back(std::to_string(i), "");
  std::string bytes = archive_of(folder, entries);
  EXPECT_EQ(read_zip(std::as_writable_bytes(std::span(bytes)), "a.zip").size(), 66'000U);
}

}  // namespace
}  // namespace tare::checkpoint
