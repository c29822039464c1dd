// Tests that measurements of single operators are kept, also for other processes.
#include "tare/trace/measurements.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/temp_dir.h"
#include "tare/base/folder_lock.h"
#include "tare/base/io.h"

namespace tare::plan {
namespace {

using tare::testing::TempDir;

const Measurements::Key kKey{1, 2, 3}, kOther{1, 2, 4};

AllocationTrace work(int64_t bytes) {
  return {
      .steps = {{.block = 0, .bytes = bytes}, {.block = 1, .bytes = 40, .result = 1}, {.block = 0}},
      .results = {Layout{}, Layout{.sizes = {2, 5}, .strides = {5, 1}, .type = at::kFloat}}};
}

/// The bytes of the first block: what is kept, or 7 if it must be measured.
int64_t known_to(Measurements& all, const Measurements::Key& key = kKey) {
  return all.of(key, [] { return work(7); }).steps.front().bytes;
}

/// Measures 4096 bytes and leaves them in the folder.
std::filesystem::path leave_in(const TempDir& folder, const Measurements::Key& key = kKey) {
  Measurements first;
  first.keep_in(folder.path());
  EXPECT_EQ(first.of(key, [] { return work(4096); }).steps.front().bytes, 4096);
  first.save();
  return folder / "measurements.txt";
}

TEST(Measurements, AreMadeOnceInAProcess) {
  Measurements all;
  int calls = 0;
  for (int i = 0; i < 3; ++i) static_cast<void>(all.of(kKey, [&] { return ++calls, work(64); }));
  EXPECT_EQ(calls, 2) << "the first of all is made twice, and then not again";
  static_cast<void>(all.of(kOther, [&] { return ++calls, work(64); }));
  EXPECT_EQ(calls, 3);
}

TEST(Measurements, AreThereInTheNextProcess) {
  const TempDir folder;
  leave_in(folder);
  Measurements next;
  next.keep_in(folder.path());
  bool asked = false;
  const AllocationTrace found = next.of(kKey, [&] { return asked = true, work(7); });
  EXPECT_FALSE(asked);
  EXPECT_TRUE(same_steps(found, work(4096)));
  EXPECT_EQ(found.results, work(4096).results);
  EXPECT_EQ(found.steps.front().bytes, 4096);
}

TEST(Measurements, OfTwoProcessesAtATimeAreBothKept) {
  const TempDir folder;
  Measurements slow;
  slow.keep_in(folder.path());
  EXPECT_EQ(known_to(slow, kOther), 7);
  leave_in(folder);
  slow.save();
  Measurements next;
  next.keep_in(folder.path());
  EXPECT_EQ(known_to(next), 4096);
  EXPECT_EQ(next.of(kOther, [] { return work(1); }).steps.front().bytes, 7);
}

TEST(Measurements, ThatAreDamagedOrOfAnotherMachineAreMadeAnew) {
  const TempDir folder;
  const auto file = leave_in(folder);
  const std::string whole = io::read_text(file);
  const auto line = [&](int n) {
    size_t at = 0;
    while (n-- > 0) at = whole.find('\n', at) + 1;
    return at;
  };
  // title, processor and libraries, checksum, first number
  for (const size_t at : {line(0), line(1), line(2), line(3)}) {
    std::string changed = whole;
    changed[at] = changed[at] == '9' ? '8' : '9';
    io::write_atomically(file, changed);
    Measurements next;
    next.keep_in(folder.path());
    EXPECT_EQ(known_to(next), 7) << "byte " << at;
    next.save();
    EXPECT_NE(io::read_text(file), changed) << "replaced by what was measured";
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    io::write_atomically(file, whole.substr(0, size));
    Measurements next;
    next.keep_in(folder.path());
    EXPECT_EQ(known_to(next), 7) << size << " bytes";
  }
}

TEST(Measurements, NeedNoFolderThatCanBeWritten) {
  const TempDir folder;
  std::ofstream(folder / "file").put('x');
  Measurements all;
  all.keep_in(folder / "file");
  EXPECT_EQ(known_to(all), 7);
  EXPECT_NO_THROW(all.save());
  all.keep_in({});
  EXPECT_EQ(known_to(all), 7);
  EXPECT_NO_THROW(all.save());

  const io::FolderLock another(folder.path());
  Measurements next;
  next.keep_in(folder.path());
  EXPECT_EQ(known_to(next), 7);
  next.save();
  EXPECT_FALSE(std::filesystem::exists(folder / "measurements.txt"));
}

}  // namespace
}  // namespace tare::plan
