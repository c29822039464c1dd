// Files and folders on a real disk: atomic writing, recovery, limits.
#include "tare/base/io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "support/temp_dir.h"
#include "tare/base/error.h"

namespace tare::io {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;

template <class Call>
int error_of(Call call) {
  try {
    call();
  } catch (const IoError& error) {
    return error.error_number();
  }
  return -1;
}

TEST(File, WritesReadsAndKnowsItsSize) {
  TempDir dir;
  File out(dir / "a", Mode::create);
  out.allocate(1 << 20);
  out.write("hello ");
  out.write("world");
  out.flush();
  EXPECT_EQ(out.size(), 11);
  out.close();
  out.close();
  File in(dir / "a", Mode::read);
  char buffer[32] = {};
  EXPECT_EQ(in.read(buffer, 6), 6u);
  EXPECT_EQ(in.read(buffer, sizeof buffer), 5u);
  EXPECT_EQ(in.read(buffer, sizeof buffer), 0u);
  EXPECT_EQ(std::string(buffer), "world ");
}

TEST(File, CreateTruncatesAndAppendDoesNot) {
  TempDir dir;
  for (const char* text : {"one", "two"}) File(dir / "a", Mode::append).write(text);
  EXPECT_EQ(read_text(dir / "a"), "onetwo");
  File(dir / "a", Mode::create).write("three");
  EXPECT_EQ(read_text(dir / "a"), "three");
}

TEST(File, NamesThePathOfAMissingFile) {
  TempDir dir;
  try {
    File file(dir / "missing", Mode::read);
    FAIL();
  } catch (const IoError& error) {
    EXPECT_EQ(error.error_number(), ENOENT);
    EXPECT_EQ(error.path(), (dir / "missing").string());
  }
}

TEST(Mapping, IsPrivate) {
  TempDir dir;
  write_atomically(dir / "a", "abc");
  Mapping first(dir / "a"), second(dir / "a");
  first.bytes()[0] = std::byte{'X'};
  EXPECT_EQ(second.bytes()[0], std::byte{'a'});
  EXPECT_EQ(read_text(dir / "a"), "abc");
}

TEST(Mapping, OutlivesTheReplacementOfItsFile) {
  TempDir dir;
  write_atomically(dir / "a", "old");
  Mapping mapping(dir / "a");
  write_atomically(dir / "a", "");
  EXPECT_EQ(std::memcmp(mapping.bytes().data(), "old", 3), 0);
  EXPECT_TRUE(Mapping(dir / "a").bytes().empty());
}

TEST(Mapping, RefusesAFolder) {
  TempDir dir;
  EXPECT_EQ(error_of([&] { Mapping mapping(dir.path()); }), EISDIR);
}

TEST(Mapping, RefusesAPipeAndADeviceWithoutOpeningThem) {
  const TempDir folder;
  const auto pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto refusal = [](const std::filesystem::path& path) -> std::string {
    try {
      const Mapping mapped(path);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(pipe), "[io.map] " + pipe.string() +
                               " is a pipe, whose bytes cannot be mapped: copy them to a file, and "
                               "give that");
  EXPECT_THAT(refusal("/dev/zero"), HasSubstr("/dev/zero is a device"));
}

TEST(ReadText, RefusesMoreThanTheLimit) {
  TempDir dir;
  write_atomically(dir / "a", std::string(1000, 'x'));
  EXPECT_EQ(read_text(dir / "a", 1000).size(), 1000u);
  EXPECT_EQ(error_of([&] { (void)read_text(dir / "a", 999); }), 0);
}

TEST(ReadText, ReadsFilesThatReportNoSize) {
  EXPECT_THAT(read_text("/proc/self/status"), HasSubstr("VmRSS"));
  EXPECT_THROW((void)read_text("/dev/zero", 10'000), IoError);
}

TEST(ReadText, RefusesAFolder) {
  TempDir dir;
  EXPECT_EQ(error_of([&] { (void)read_text(dir.path()); }), EISDIR);
}

TEST(WriteAtomically, ReplacesAndLeavesNothingBeside) {
  TempDir dir;
  write_atomically(dir / "a", "old");
  write_atomically(dir / "a", "new");
  EXPECT_EQ(read_text(dir / "a"), "new");
  EXPECT_FALSE(fs::exists(dir / "a.partial"));
}

TEST(WriteAtomically, ThrowsWhereAnotherOneWritesTheFileMeanwhile) {
  const TempDir dir;
  write_atomically(dir / "a", "old");
  const auto first = [&](File& file) {
    file.write("first");
    write_atomically(dir / "a", [&](File& second) {
      second.write("sec");
      file.write(" whole");
      second.write("ond");
    });
  };
  try {
    write_atomically(dir / "a", first);
    ADD_FAILURE() << "the file would have parts of both";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("another process writes it at this moment"));
  }
  EXPECT_EQ(read_text(dir / "a"), "second");
  EXPECT_FALSE(fs::exists(dir / "a.partial"));
}

TEST(WriteAtomically, RefusesTheNamesThatItUsesItself) {
  TempDir dir;
  for (const char* name : {"a.partial", "a.old"}) {
    EXPECT_THROW(write_atomically(dir / name, "x"), ConfigError);
    EXPECT_THROW(write_directory_atomically(dir / name, [](const fs::path&) {}), ConfigError);
    EXPECT_FALSE(fs::exists(dir / name));
  }
}

TEST(WriteAtomically, KeepsTheOldFileWhenFillThrows) {
  TempDir dir;
  write_atomically(dir / "a", "old");
  const auto fill = [](File& file) {
    file.write("half");
    throw StateError("test", "stopped");
  };
  EXPECT_THROW(write_atomically(dir / "a", fill), StateError);
  EXPECT_EQ(read_text(dir / "a"), "old");
  EXPECT_FALSE(fs::exists(dir / "a.partial"));
}

TEST(WriteAtomically, NeedsTheFolder) {
  TempDir dir;
  EXPECT_EQ(error_of([&] { write_atomically(dir / "no/a", "x"); }), ENOENT);
}

TEST(WriteAtomically, RefusesAFolderInThePlace) {
  TempDir dir;
  make_directories(dir / "a");
  EXPECT_THROW(write_atomically(dir / "a", "x"), IoError);
  EXPECT_TRUE(fs::is_directory(dir / "a"));
  EXPECT_FALSE(fs::exists(dir / "a.partial"));
}

TEST(WriteAtomically, KeepsLinksAndDevices) {
  TempDir dir;
  write_atomically(dir / "real", "old");
  fs::create_symlink("real", dir / "link");
  write_atomically(dir / "link", "new");
  EXPECT_TRUE(fs::is_symlink(dir / "link"));
  EXPECT_EQ(read_text(dir / "real"), "new");
  write_atomically("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_FALSE(fs::exists("/dev/null.partial"));
}

TEST(WriteAtomically, ReportsARealFullDevice) {
  EXPECT_EQ(error_of([] { write_atomically("/dev/full", "x"); }), ENOSPC);
}

void fill_with(const fs::path& folder, const std::string& text) {
  make_directories(folder / "inner");
  write_atomically(folder / "inner" / "file", text);
}

TEST(WriteDirectoryAtomically, MakesAndReplaces) {
  TempDir dir;
  for (const char* text : {"one", "two"}) {
    write_directory_atomically(dir / "d", [&](const fs::path& folder) { fill_with(folder, text); });
    EXPECT_EQ(read_text(dir / "d/inner/file"), text);
  }
  EXPECT_THAT(std::distance(fs::directory_iterator(dir.path()), {}), 1);
}

TEST(WriteDirectoryAtomically, KeepsTheOldOneWhenFillThrows) {
  TempDir dir;
  fill_with(dir / "d", "old");
  const auto fill = [](const fs::path& folder) {
    fill_with(folder, "half");
    throw StateError("test", "stopped");
  };
  EXPECT_THROW(write_directory_atomically(dir / "d", fill), StateError);
  EXPECT_EQ(read_text(dir / "d/inner/file"), "old");
  EXPECT_FALSE(fs::exists(dir / "d.partial"));
}

TEST(RecoverDirectory, RestoresTheOldAndRemovesThePartial) {
  TempDir dir;
  fill_with(dir / "d.old", "old");
  fill_with(dir / "d.partial", "half");
  EXPECT_EQ(current_directory(dir / "d"), dir / "d.old");
  EXPECT_THAT(recover_directory(dir / "d"), ElementsAre("restored d.old", "removed d.partial"));
  EXPECT_EQ(current_directory(dir / "d"), dir / "d");
  EXPECT_EQ(read_text(dir / "d/inner/file"), "old");
  EXPECT_THAT(recover_directory(dir / "d"), ElementsAre());
}

TEST(RecoverDirectory, PrefersTheNewOne) {
  TempDir dir;
  fill_with(dir / "d", "new");
  fill_with(dir / "d.old", "old");
  EXPECT_THAT(recover_directory(dir / "d"), ElementsAre("removed d.old"));
  EXPECT_EQ(read_text(dir / "d/inner/file"), "new");
}

TEST(MakeDirectories, MakesParentsAndAcceptsWhatIsThere) {
  TempDir dir;
  make_directories(dir / "a/b/c/");
  make_directories(dir / "a/b/c");
  EXPECT_TRUE(fs::is_directory(dir / "a/b/c"));
  write_atomically(dir / "file", "x");
  EXPECT_EQ(error_of([&] { make_directories(dir / "file"); }), ENOTDIR);
  EXPECT_EQ(error_of([&] { make_directories(dir / "file/below"); }), ENOTDIR);
  fs::create_symlink("nowhere", dir / "link");
  EXPECT_EQ(error_of([&] { make_directories(dir / "link"); }), ENOENT);
}

TEST(Io, ChecksWhereAFileWillGoWithoutWriting) {
  const TempDir dir;
  write_atomically(dir / "file", "x");
  make_directories(dir / "folder");
  check_writable(dir / "new");
  check_writable(dir / "file");
  check_writable("/dev/null");
  EXPECT_EQ(error_of([&] { check_writable(dir / "absent/new"); }), ENOENT);
  EXPECT_EQ(error_of([&] { check_writable(dir / "file/new"); }), ENOTDIR);
  EXPECT_EQ(error_of([&] { check_writable(dir / "folder"); }), EISDIR);
  EXPECT_EQ(error_of([&] { check_writable(dir.path().string() + "/folder/"); }), EISDIR);
  EXPECT_FALSE(fs::exists(dir / "new"));
  if (::geteuid() == 0) return;  // the mode of a folder does not bind root
  fs::permissions(dir / "folder", fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(error_of([&] { check_writable(dir / "folder/new"); }), EACCES);
}

TEST(RemoveAll, NeverFollowsLinks) {
  TempDir dir, other;
  fill_with(other.path(), "kept");
  fill_with(dir / "d", "gone");
  fs::create_directory_symlink(other.path(), dir / "d/link");
  io::remove_all(dir / "d");
  EXPECT_FALSE(fs::exists(dir / "d"));
  EXPECT_EQ(read_text(other / "inner/file"), "kept");
  io::remove_all(dir / "d");
}

TEST(CheckedName, TakesOnePlainComponent) {
  for (const std::string& name :
       {std::string("a"), std::string("step-12"), std::string("v1.2_x"), std::string(128, 'a')})
    EXPECT_EQ(checked_name(name, "name"), name);
  for (const char* name : {"", ".", "..", ".hidden", "a/b", "a b", "a\n", "é", "*"})
    EXPECT_THROW(checked_name(name, "name"), ConfigError) << name;
  EXPECT_THROW(checked_name(std::string(129, 'a'), "name"), ConfigError);
  EXPECT_THROW(checked_name(std::string("a\0b", 3), "name"), ConfigError);
}

}  // namespace
}  // namespace tare::io
