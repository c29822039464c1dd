// Holds what stands at the top of the repository, so that no output of a program gets into it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <set>
#include <string>

#include "architecture/include_lines.h"

namespace tare {
namespace {

/// The first parts of the paths that git tracks; empty without a repository or without git.
std::set<std::string> tracked_names() {
  const std::string top = (architecture::source_folder() / "../..").string();
  const std::string command = "git -c safe.directory='*' -C '" + top + "' ls-files -z 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  std::array<char, 4096> part{};
  while (pipe != nullptr) {
    const size_t count = std::fread(part.data(), 1, part.size(), pipe.get());
    if (count == 0) break;
    text.append(part.data(), count);
  }
  std::set<std::string> names;
  for (size_t start = 0; start < text.size(); start = text.find('\0', start) + 1)
    names.insert(text.substr(start, text.find_first_of(std::string_view("/\0", 2), start) - start));
  return names;
}

TEST(TopLevel, HoldsTheListedNamesAndDotfiles) {
  std::set<std::string> names = tracked_names();
  if (names.empty()) GTEST_SKIP() << "git knows no repository here";
  std::erase_if(names, [](const std::string& name) { return name.starts_with('.'); });
  EXPECT_THAT(names,
              ::testing::ElementsAre("CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md",
                                     "data", "docs", "framework", "models", "recipes", "tests"));
}

}  // namespace
}  // namespace tare
