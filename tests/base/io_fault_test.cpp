// Every file call of the atomic writes fails once in every way, and the process ends once before
// each: what a reader finds is always the old or the new content, whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "support/fault_file_system.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"

namespace tare::io {
namespace {

namespace fs = std::filesystem;
using testing::Fault;
using testing::FaultFileSystem;
using testing::TempDir;

constexpr int kErrors[] = {ENOSPC, EIO, EROFS, EDQUOT, EACCES};
const std::string kOld(3000, 'o'), kNew(5000, 'n');

/// Folders in memory where the system has them: thousands of small writes need no disk.
class FastDir : public TempDir {
 public:
  FastDir() : TempDir(fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path()) {}
};

class IoFault : public ::testing::Test {
 protected:
  // Clean-up that fails is logged on purpose; not here.
  void SetUp() override { level_ = log::set_level(log::Level::off); }
  void TearDown() override { log::set_level(level_); }
  log::Level level_{};
  FaultFileSystem quick_;
};

void fill_directory(const fs::path& folder, const std::string& text) {
  make_directories(folder / "inner");
  for (const char* name : {"a", "inner/b"}) {
    File file(folder / name, Mode::create);
    file.allocate(static_cast<int64_t>(text.size()));
    file.write(text);
    file.flush();
    file.close();
  }
}

/// One thing that is written atomically: a file, or a directory of two files.
struct Subject {
  bool directory = false;
  bool exchange = true;

  void write(const fs::path& path, const std::string& text) const {
    if (!directory) return write_atomically(path, text);
    write_directory_atomically(path, [&](const fs::path& folder) { fill_directory(folder, text); });
  }
  /// The whole content as a reader finds it; "" where it is missing or mixed.
  [[nodiscard]] std::string read(const fs::path& path) const {
    if (!directory) return fs::exists(path) ? read_text(path) : "";
    const fs::path current = current_directory(path);
    if (!fs::exists(current / "a") || !fs::exists(current / "inner/b")) return "";
    const std::string a = read_text(current / "a"), b = read_text(current / "inner/b");
    return a == b ? a : "";
  }
  [[nodiscard]] int64_t calls(const fs::path& path) const {
    FaultFileSystem counting;
    counting.without_exchange = !exchange;
    write(path, kNew);
    return counting.count();
  }
};

int64_t entries(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

struct Outcome {
  bool threw = false;
  std::string failed_call, message;
};

Outcome write_with(const Subject& subject, const fs::path& path, const Fault& fault) {
  FaultFileSystem faulty(fault);
  faulty.without_exchange = !subject.exchange;
  Outcome outcome;
  try {
    subject.write(path, kNew);
  } catch (const IoError& error) {
    outcome.threw = true;
    outcome.message = error.what();
    EXPECT_TRUE(fault.error_number == error.error_number() ||
                outcome.message.find("in place") != std::string::npos)
        << error.what();
  }
  if (fault.at <= faulty.count())
    outcome.failed_call = faulty.calls()[static_cast<size_t>(fault.at - 1)];
  return outcome;
}

void expect_old_or_new(const Subject& subject, const fs::path& path, const Outcome& outcome,
                       const std::string& old) {
  const std::string found = subject.read(path);
  const bool committed = outcome.message.find("in place") != std::string::npos;
  EXPECT_EQ(found == kNew, !outcome.threw || committed) << outcome.message;
  EXPECT_TRUE(found == kNew || found == old) << "found " << found.size() << " bytes";
}

void fail_every_call(const Subject& subject, const std::string& old) {
  for (const int error : kErrors) {
    int64_t calls = 1;
    for (int64_t k = 1; k <= calls; ++k) {
      FastDir dir;
      if (!old.empty()) subject.write(dir / "x", old);
      if (k == 1) {
        calls = subject.calls(dir / "x");
        fs::remove_all(dir / "x");
        if (!old.empty()) subject.write(dir / "x", old);
      }
      const Outcome outcome = write_with(subject, dir / "x", {.at = k, .error_number = error});
      SCOPED_TRACE("call " + std::to_string(k) + " (" + outcome.failed_call + "), errno " +
                   std::to_string(error));
      expect_old_or_new(subject, dir / "x", outcome, old);
      if (outcome.failed_call != "remove" && outcome.failed_call != "rename") {
        EXPECT_EQ(entries(dir.path()), subject.read(dir / "x").empty() ? 0 : 1);
      }
      subject.write(dir / "x", kNew);  // and the next write works and tidies up
      EXPECT_EQ(subject.read(dir / "x"), kNew);
      EXPECT_EQ(entries(dir.path()), 1);
    }
  }
}

const Subject kFile{}, kDirectory{.directory = true},
    kDirectoryByRenames{.directory = true, .exchange = false};

TEST_F(IoFault, EveryCallOfAFileWrite) {
  fail_every_call(kFile, kOld);
  fail_every_call(kFile, "");
}
TEST_F(IoFault, EveryCallOfADirectoryWrite) {
  fail_every_call(kDirectory, kOld);
  fail_every_call(kDirectory, "");
}
TEST_F(IoFault, EveryCallOfADirectoryWriteWithoutExchange) {
  fail_every_call(kDirectoryByRenames, kOld);
}

/// From call k on nothing works any more, as on a disk that is full or gone.
void fail_from_every_call(const Subject& subject) {
  FastDir count_dir;
  subject.write(count_dir / "x", kOld);
  const int64_t calls = subject.calls(count_dir / "x");
  for (int64_t k = 1; k <= calls; ++k) {
    FastDir dir;
    subject.write(dir / "x", kOld);
    const Outcome outcome =
        write_with(subject, dir / "x", {.at = k, .error_number = EIO, .sticky = true});
    SCOPED_TRACE("from call " + std::to_string(k) + " (" + outcome.failed_call + ") on");
    expect_old_or_new(subject, dir / "x", outcome, kOld);
    subject.write(dir / "x", kNew);
    EXPECT_EQ(subject.read(dir / "x"), kNew);
    EXPECT_EQ(entries(dir.path()), 1);
  }
}

TEST_F(IoFault, ADiskThatStaysBroken) {
  for (const Subject& subject : {kFile, kDirectory, kDirectoryByRenames})
    fail_from_every_call(subject);
}

TEST_F(IoFault, InterruptedAndShortCallsAreCompleted) {
  for (const Subject& subject : {kFile, kDirectory, kDirectoryByRenames}) {
    FastDir dir;
    const int64_t calls = subject.calls(dir / "x");
    for (int64_t k = 1; k <= calls + 3; ++k) {
      for (const Fault& fault : {Fault{.at = k, .error_number = EINTR},
                                 Fault{.at = k, .kind = Fault::Kind::short_write}}) {
        subject.write(dir / "x", kOld);
        EXPECT_FALSE(write_with(subject, dir / "x", fault).threw) << k;
        EXPECT_EQ(subject.read(dir / "x"), kNew) << k;
        EXPECT_EQ(entries(dir.path()), 1) << k;
      }
    }
  }
}

/// The exit code of a child that writes and is stopped before call k.
int write_in_child(const Subject& subject, const fs::path& path, int64_t k) {
  const pid_t child = ::fork();
  if (child == 0) {
    FaultFileSystem faulty({.at = k, .kind = Fault::Kind::exit});
    faulty.without_exchange = !subject.exchange;
    subject.write(path, kNew);
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void stop_before_every_call(const Subject& subject, const std::string& old) {
  bool seen_old = false, seen_new = false;
  for (int64_t k = 1, code = FaultFileSystem::kExitCode; code != 0; ++k) {
    SCOPED_TRACE("stopped before call " + std::to_string(k));
    FastDir dir;
    if (!old.empty()) subject.write(dir / "x", old);
    code = write_in_child(subject, dir / "x", k);
    ASSERT_TRUE(code == 0 || code == FaultFileSystem::kExitCode) << code;
    const std::string found = subject.read(dir / "x");
    EXPECT_TRUE(found == old || found == kNew) << found.size();
    seen_old = seen_old || found == old;
    seen_new = seen_new || found == kNew;
    if (subject.directory) {
      recover_directory(dir / "x");
      EXPECT_EQ(subject.read(dir / "x"), found);
      EXPECT_EQ(entries(dir.path()), found.empty() ? 0 : 1);
    }
    subject.write(dir / "x", kNew);
    EXPECT_EQ(entries(dir.path()), 1);
  }
  EXPECT_TRUE(seen_old && seen_new);
}

TEST_F(IoFault, AProcessThatEndsBeforeAnyCall) {
  for (const Subject& subject : {kFile, kDirectory, kDirectoryByRenames}) {
    stop_before_every_call(subject, kOld);
    stop_before_every_call(subject, "");
  }
}

/// A recovery that is itself stopped, at each call, can be repeated.
TEST_F(IoFault, ARecoveryThatEndsBeforeAnyCall) {
  for (int64_t k = 1, code = FaultFileSystem::kExitCode; code != 0; ++k) {
    FastDir dir;
    fill_directory(dir / "x.old", kOld);
    fill_directory(dir / "x.partial", kNew);
    const pid_t child = ::fork();
    if (child == 0) {
      FaultFileSystem faulty({.at = k, .kind = Fault::Kind::exit});
      recover_directory(dir / "x");
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    code = WEXITSTATUS(status);
    EXPECT_EQ(kDirectory.read(dir / "x"), kOld) << k;
    recover_directory(dir / "x");
    EXPECT_EQ(kDirectory.read(dir / "x"), kOld) << k;
    EXPECT_EQ(entries(dir.path()), 1) << k;
  }
}

/// A removal that is stopped at any call leaves the whole directory, or none and a leftover.
TEST_F(IoFault, ARemovalThatEndsBeforeAnyCall) {
  for (int64_t k = 1, code = FaultFileSystem::kExitCode; code != 0; ++k) {
    FastDir dir;
    kDirectory.write(dir / "x", kOld);
    const pid_t child = ::fork();
    if (child == 0) {
      FaultFileSystem faulty({.at = k, .kind = Fault::Kind::exit});
      remove_directory_atomically(dir / "x");
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    code = WEXITSTATUS(status);
    const bool whole = fs::exists(dir / "x");
    EXPECT_EQ(kDirectory.read(dir / "x"), whole ? kOld : "") << k;
    recover_directory(dir / "x");
    EXPECT_EQ(entries(dir.path()), whole ? 1 : 0) << k;
    remove_directory_atomically(dir / "x");
    EXPECT_EQ(entries(dir.path()), 0) << k;
  }
}

TEST(Flush, NoDoesNotWaitForTheDisk) {
  const TempDir dir;
  const FaultFileSystem counting;
  write_atomically(dir / "x", "new", Flush::no);
  EXPECT_EQ(read_text(dir / "x"), "new");
  EXPECT_FALSE(fs::exists(dir / "x.partial"));
  for (const std::string& call : counting.calls()) EXPECT_EQ(call.find("flush"), call.npos);
}

TEST_F(IoFault, ReadsAreTypedErrorsAtEveryCall) {
  FastDir dir;
  write_atomically(dir / "x", kOld);
  for (int64_t k = 1; k <= 3; ++k) {  // read_text: open, read twice; Mapping: open, map
    SCOPED_TRACE(k);
    {
      FaultFileSystem faulty({.at = k, .error_number = EIO});
      EXPECT_THROW((void)read_text(dir / "x"), IoError);
    }
    if (k < 3) {
      FaultFileSystem faulty({.at = k, .error_number = EIO});
      EXPECT_THROW(Mapping(dir / "x"), IoError);
    }
    FaultFileSystem interrupted({.at = k, .error_number = EINTR});
    EXPECT_EQ(read_text(dir / "x"), kOld);
  }
}

}  // namespace
}  // namespace tare::io
