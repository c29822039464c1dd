// Holds that an entry of a registry is a file, and its name in the list of that folder's
// CMakeLists.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "architecture/include_lines.h"
#include "tare/base/io.h"

namespace tare {
namespace {

namespace fs = std::filesystem;
using architecture::source_folder;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

/// A line of a CMakeLists.txt: tare_entries(TARGET HEADER NAMESPACE NAME ...).
struct List {
  std::string registry{};
  std::vector<fs::path> files{};
};

std::vector<List> lists_of(const fs::path& cmake_lists) {
  std::vector<List> found;
  std::istringstream lines(io::read_text(cmake_lists));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("tare_entries(")) continue;
    std::istringstream words(line.substr(0, line.find(')')));
    std::string word;
    List list;
    words >> word >> word >> list.registry;
    while (words >> word) list.files.push_back(cmake_lists.parent_path() / (word + ".cpp"));
    found.push_back(list);
  }
  return found;
}

/// The sources of the framework and of the models that have this word in them.
std::vector<fs::path> sources_with(const std::string& text) {
  std::vector<fs::path> found;
  for (const fs::path& folder : {source_folder(), source_folder() / "../../models"})
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file() && io::read_text(entry.path()).find(text) != std::string::npos)
        found.push_back(entry.path());
  return found;
}

TEST(Entries, AreAFileAndANameInOneList) {
  ASSERT_FALSE(source_folder().empty()) << "TARE_SOURCE_DIR is not set: run by ctest";
  std::vector<fs::path> all{source_folder() / "../../models/CMakeLists.txt"};
  for (const auto& library : fs::directory_iterator(source_folder()))
    if (library.is_directory()) all.push_back(library.path() / "CMakeLists.txt");
  std::set<std::string> registries;
  for (const auto& cmake_lists : all)
    for (const List& list : lists_of(cmake_lists)) {
      registries.insert(list.registry);
      for (const auto& file : list.files)
        EXPECT_THAT(sources_with("add_" + file.stem().string() + "("), ElementsAre(file))
            << "the file defines add_" << file.stem().string() << ", and nothing else names it";
    }
  EXPECT_THAT(registries,
              UnorderedElementsAre("tare::callbacks", "tare::datasets", "tare::launch::executors",
                                   "tare::models", "tare::optimizers", "tare::search::pruners",
                                   "tare::search::samplers", "tare::transforms"));
}

}  // namespace
}  // namespace tare
