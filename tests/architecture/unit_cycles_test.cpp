// Finds include cycles between the units of one library; a unit is x.h with x.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "architecture/include_lines.h"
#include "tare/base/io.h"

namespace tare {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

using Units = std::set<std::string>;
using Cycles = std::set<Units>;

/// "memory/oom" for "memory/oom.h" and "memory/oom.cpp".
std::string unit_of(const std::string& file) { return file.substr(0, file.rfind('.')); }

std::string owner_of(const std::string& unit) { return unit.substr(0, unit.find('/')); }

/// Which units of its own library each unit includes.
class UnitGraph {
 public:
  /// Adds the #include lines in the text of `file`, a path relative to framework/tare.
  void add(const std::string& file, const std::string& text) {
    const std::string unit = unit_of(file);
    Units& targets = targets_[unit];
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const std::string header = architecture::included(line);
      if (!header.starts_with("tare/")) continue;
      const std::string target = unit_of(header.substr(5));
      if (target != unit && owner_of(target) == owner_of(unit)) targets.insert(target);
    }
  }

  /// The sets of two or more units that include each other, directly or through others of the set.
  [[nodiscard]] Cycles cycles() const {
    std::map<std::string, Units> reached;
    for (const auto& [unit, targets] : targets_)
      for (const std::string& target : targets) reach(target, reached[unit]);
    Cycles found;
    for (const auto& [unit, targets] : reached) {
      if (!targets.contains(unit)) continue;
      Units cycle;
      for (const std::string& other : targets)
        if (reached.contains(other) && reached.at(other).contains(unit)) cycle.insert(other);
      found.insert(cycle);
    }
    return found;
  }

 private:
  void reach(const std::string& unit, Units& found) const {
    if (!found.insert(unit).second || !targets_.contains(unit)) return;
    for (const std::string& target : targets_.at(unit)) reach(target, found);
  }

  std::map<std::string, Units> targets_;
};

TEST(UnitCycles, AreNone) {
  const fs::path root = architecture::source_folder();
  ASSERT_FALSE(root.empty()) << "TARE_SOURCE_DIR is not set: run by ctest";
  UnitGraph graph;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".h" || extension == ".cpp")
      graph.add(fs::relative(entry.path(), root).generic_string(), io::read_text(entry.path()));
  }
  EXPECT_THAT(graph.cycles(), IsEmpty()) << "move what both units need into a unit of its own";
}

TEST(UnitCycles, AreFoundThroughHeadersAndSources) {
  UnitGraph graph;
  graph.add("model/a.h", "#include \"tare/model/b.h\"\n");
  graph.add("model/b.h", "#include <vector>\n");
  graph.add("model/b.cpp", "#include \"tare/model/b.h\"\n#include \"tare/model/c.h\"\n");
  graph.add("model/c.h", "#include \"tare/model/a.h\"\n");
  graph.add("model/d.cpp", "#include \"tare/model/a.h\"\n");
  EXPECT_THAT(graph.cycles(), UnorderedElementsAre(Units{"model/a", "model/b", "model/c"}));
}

TEST(UnitCycles, AreSeparateSets) {
  UnitGraph graph;
  graph.add("model/a.h", "#include \"tare/model/b.h\"\n");
  graph.add("model/b.cpp", "#include \"tare/model/a.h\"\n#include \"tare/model/c.h\"\n");
  graph.add("model/c.h", "#include \"tare/model/d.h\"\n");
  graph.add("model/d.cpp", "#include \"tare/model/c.h\"\n");
  EXPECT_THAT(graph.cycles(),
              UnorderedElementsAre(Units{"model/a", "model/b"}, Units{"model/c", "model/d"}));
}

TEST(UnitCycles, EndWithTheLibrary) {
  UnitGraph graph;
  graph.add("model/a.h", "#include \"tare/data/b.h\"\n");
  graph.add("data/b.cpp", "#include \"tare/model/a.h\"\n");
  EXPECT_THAT(graph.cycles(), IsEmpty());
}

TEST(IncludeLines, ReadEveryForm) {
  EXPECT_EQ(architecture::included("#include \"a/b.h\""), "a/b.h");
  EXPECT_EQ(architecture::included("  #  include <c.h>  // why"), "c.h");
  EXPECT_EQ(architecture::included("// #include \"a.h\""), "");
  EXPECT_EQ(architecture::included("#define X"), "");
}

}  // namespace
}  // namespace tare
