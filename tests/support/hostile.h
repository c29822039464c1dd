// Hostile input: refused by the right error, soon, and without taking the memory that it claims.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <functional>
#include <string>

#include "support/outcome.h"
#include "support/sanitized.h"

namespace tare::testing {

#ifdef __OPTIMIZE__
inline constexpr bool kSlow = kSanitized;
#else
inline constexpr bool kSlow = true;
#endif
inline constexpr double kMaxRefusalSeconds = kSlow ? 2 : 0.1;  ///< CPU time
inline constexpr rlim_t kMaxRefusalBytes = rlim_t{64} << 20;   ///< of address space, used or not

/// A file that breaks one rule.
struct HostileFile {
  std::string name{};  ///< of the test: letters and digits
  std::string content{};
  std::string message{};  ///< the error's text holds it: the part that is named, what is wrong
};

inline void PrintTo(const HostileFile& file, std::ostream* out) { *out << file.name; }

inline std::string test_name(const ::testing::TestParamInfo<HostileFile>& info) {
  return info.param.name;
}

/// Holds the outcome of `read` in a child process that may take kMaxRefusalBytes more than it has.
struct Refusal {
  std::string outcome;
  double cpu_s = 0;
};

inline void limit_memory() {
  std::ifstream status("/proc/self/statm");
  rlim_t pages = 0;
  status >> pages;
  const rlim_t bytes = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + kMaxRefusalBytes;
  const rlimit limit{bytes, bytes};
  if (!kSanitized) ::setrlimit(RLIMIT_AS, &limit);
}

inline Refusal refusal_of(const std::function<void()>& read) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) return {"no pipe", 0};
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit minute{60, 60};
    ::setrlimit(RLIMIT_CPU, &minute);
    limit_memory();
    const std::string outcome = outcome_of(read);
    (void)!::write(pipe[1], outcome.data(), outcome.size());
    ::_exit(0);
  }
  ::close(pipe[1]);
  Refusal refusal;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = ::read(pipe[0], buffer.data(), buffer.size())) > 0;)
    refusal.outcome.append(buffer.data(), static_cast<size_t>(got));
  ::close(pipe[0]);
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  if (WIFSIGNALED(status)) refusal.outcome = "signal " + std::to_string(WTERMSIG(status));
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  refusal.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  return refusal;
}

/// `read` throws the error of this type with this text, within the limits above.
inline void expect_refused(const std::string& type, const std::string& message,
                           const std::function<void()>& read) {
  Refusal refusal = refusal_of(read);
  // Other load on the machine makes the time longer; it counts if it is too long three times.
  for (int again = 0; again < 2 && refusal.cpu_s >= kMaxRefusalSeconds; ++again)
    refusal = refusal_of(read);
  EXPECT_THAT(refusal.outcome, ::testing::StartsWith(type + ": "));
  EXPECT_THAT(refusal.outcome, ::testing::HasSubstr(message));
  EXPECT_LT(refusal.cpu_s, kMaxRefusalSeconds);
}

}  // namespace tare::testing
