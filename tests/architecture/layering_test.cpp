// Reads the #include lines below framework/tare and holds the table of libraries: who may include
// whom, and which headers of other libraries stay behind which files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
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
using architecture::included;
using architecture::source_folder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A library and the libraries it may include beside base and memory; theirs are open to it as
/// well.
const std::map<std::string, std::set<std::string>>& libraries() {
  static const std::map<std::string, std::set<std::string>> table{
      {"base", {}},
      {"memory", {}},
      {"runtime", {}},
      {"cuda", {"runtime"}},
      {"trace", {"runtime"}},
      {"adapt", {}},
      {"experiment", {}},
      {"config", {}},
      {"transform", {"config"}},
      {"lite", {"config", "checkpoint", "transform"}},
      {"data", {"transform"}},
      {"metric", {"config", "data"}},
      {"model", {"config", "checkpoint", "data"}},
      {"optim", {"model"}},
      {"checkpoint", {}},
      {"inference", {"runtime", "transform", "model", "checkpoint"}},
      {"c", {"inference", "lite"}},
      {"serve", {"inference"}},
      {"interchange", {"inference", "trace"}},
      {"report", {"config"}},
      {"callback", {"data", "metric", "optim", "checkpoint", "experiment", "report"}},
      {"parallel", {"optim"}},
      {"train", {"callback", "adapt", "inference", "parallel"}},
      {"plan", {"train", "trace"}},
      {"learner", {"runtime", "plan", "interchange"}},
      {"recipe", {"runtime", "learner", "cuda", "interchange"}},
      {"bench", {"recipe"}},
      {"search", {"config"}},
      {"launch", {"runtime"}},
      {"sweep", {"search", "launch", "report", "cuda"}},
      {"furcate", {"recipe", "sweep"}},
      {"cli", {"runtime", "recipe", "search", "launch", "sweep", "furcate", "cuda", "serve", "lite", "bench"}},
  };
  return table;
}

void add_with_theirs(const std::string& library, std::set<std::string>& open) {
  if (!open.insert(library).second) return;
  for (const std::string& below : libraries().at(library)) add_with_theirs(below, open);
}

std::set<std::string> open_to(const std::string& library) {
  std::set<std::string> open;
  add_with_theirs(library, open);
  if (library != "base") open.insert("base");
  if (library != "base" && library != "config") open.insert("memory");
  return open;
}

/// Doc comments of `text` that begin elliptically: their first words name no subject.
std::vector<std::string> elliptic_comments(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  bool continues = false;  // the line before is of the same paragraph
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, line.find_first_not_of(' '));
    const bool is_comment = line.starts_with("/// ");
    if (is_comment && !continues)
      for (const char* start : {"Of ", "The same ", "That of ", "Those ", "As ", "By ", "Also ",
                                "For the ", "In which "})
        if (line.substr(4).starts_with(start)) found.push_back(line);
    continues = is_comment;
  }
  return found;
}

/// Whether the code after a doc comment declares a type, a constant or a function, where '(' comes
/// before '=', ';' and '{'.
bool needs_verb(const std::string& code) {
  for (const char* start : {"class ", "struct ", "enum ", "using ", "inline constexpr "})
    if (code.starts_with(start)) return true;
  const size_t end = code.find_first_of("(=;{");
  return end != std::string::npos && code[end] == '(' &&
         code.substr(0, end).find("std::function<") == std::string::npos;
}

/// Whether a doc comment begins with a verb in the third person ("Returns") or with "Whether",
/// "Is" or "Called". Plural nouns that old comments began with are no verbs; other nouns rarely end
/// in s.
bool begins_with_verb(const std::string& comment) {
  static const std::set<std::string> plurals{
      "Axes",        "Blocks",    "Bytes",      "Channels",   "Choices", "Classes",
      "Columns",     "Counts of", "Hashes of",  "Labels",     "Lines",   "Names of",
      "Nanoseconds", "Numbers",   "Parameters", "Processors", "Rates",   "Samples",
      "Scalars",     "States",    "Tensors",    "Texts",      "Threads", "Tasks",
      "This",        "Those",     "These",      "Its",        "Values",  "Weights"};
  const size_t end =
      std::min(comment.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
               comment.size());
  const std::string word = comment.substr(0, end);
  if (word == "Whether" || word == "Called" || word == "Is") return true;
  const bool is_of = comment.substr(end).starts_with(" of ");
  return word.size() > 2 && std::isupper(static_cast<unsigned char>(word[0])) &&
         word.ends_with('s') && !plurals.contains(word) &&
         !(is_of && plurals.contains(word + " of"));
}

/// Doc comments of functions, types and constants in the header `text` that begin with neither a
/// verb nor "Whether".
std::vector<std::string> verbless_comments(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  std::string first, code;  // of the comment, and what follows it so far
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, line.find_first_not_of(' '));
    if (line.starts_with("///") && !line.starts_with("///<")) {
      if (first.empty() || !code.empty()) first = line.substr(std::min<size_t>(4, line.size()));
      code.clear();
    } else if (!first.empty() && !line.starts_with("//") && !line.starts_with("template <")) {
      code += line + ' ';
      if (code.find_first_of("(=;{") == std::string::npos) continue;
      if (needs_verb(code) && !begins_with_verb(first)) found.push_back(first);
      first.clear();
      code.clear();
    }
  }
  return found;
}

/// Headers that only the named files (or the files of a library, "config/") may include.
struct Guarded {
  std::string header;
  std::vector<std::string> allowed;
};
const std::vector<Guarded>& guarded() {
  static const std::vector<Guarded> table{
      {"torch/torch.h", {}},         {"torch/nn.h", {}},
      {"ATen/ATen.h", {}},           {"fstream", {}},  // all file I/O goes through base/io.h
      {"spdlog/", {"base/log.cpp"}}, {"yaml-cpp/", {"config/"}},
  };
  return table;
}

std::string library_of(const std::string& path) { return path.substr(0, path.find('/')); }

/// Why `file` (relative to framework/tare) may not include `header`; "" where it may.
std::string problem_with(const std::string& file, const std::string& header) {
  for (const auto& [prefix, allowed] : guarded()) {
    if (!header.starts_with(prefix)) continue;
    const bool open = std::any_of(allowed.begin(), allowed.end(), [&file](const std::string& name) {
      return file.starts_with(name);
    });
    if (!open) return "is closed to framework/tare/" + file;
  }
  // The umbrella header stands above all libraries.
  if (!header.starts_with("tare/") || file.find('/') == std::string::npos) return "";
  const std::string target = header.substr(5), library = library_of(file);
  if (target.find('/') == std::string::npos) return "is the umbrella, for users only";
  if (!libraries().contains(library_of(target))) return "is in no library of the table";
  if (target == "config/field.h" || target == "config/registry.h")
    return library == "base" || library == "memory" || library == "runtime" ? "is above it" : "";
  return open_to(library).contains(library_of(target)) ? ""
                                                       : "is not open to the library " + library;
}

/// One line for each forbidden include in the text of `file`.
std::vector<std::string> violations(const std::string& file, const std::string& text) {
  if (file.find('/') != std::string::npos && !libraries().contains(library_of(file)))
    return {"framework/tare/" + file + ": its library is not in the table"};
  std::vector<std::string> found;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::string header = included(line);
    const std::string problem = header.empty() ? "" : problem_with(file, header);
    if (!problem.empty())
      found.push_back("framework/tare/" + file + ":" + std::to_string(number) + ": " + header +
                      " " + problem);
  }
  return found;
}

TEST(Layering, HoldsInTheWholeFramework) {
  const fs::path root = source_folder();
  ASSERT_FALSE(root.empty()) << "TARE_SOURCE_DIR is not set: run by ctest";
  std::vector<std::string> found;
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp") continue;
    ++files;
    for (std::string& line :
         violations(fs::relative(entry.path(), root).generic_string(), io::read_text(entry.path())))
      found.push_back(std::move(line));
  }
  EXPECT_THAT(found, IsEmpty());
  EXPECT_GT(files, 20);
}

TEST(Layering, LibrariesAreNeverNested) {
  const fs::path root = source_folder();
  ASSERT_FALSE(root.empty()) << "TARE_SOURCE_DIR is not set: run by ctest";
  for (const auto& library : fs::directory_iterator(root)) {
    if (!library.is_directory()) continue;
    for (const auto& entry : fs::directory_iterator(library))
      EXPECT_FALSE(entry.is_directory()) << entry.path();
  }
}

TEST(Layering, EverySourceSaysWhatItIsForInItsFirstLine) {
  const fs::path root = source_folder();
  ASSERT_FALSE(root.empty()) << "TARE_SOURCE_DIR is not set: run by ctest";
  int files = 0;
  for (const char* folder : {"framework", "models", "recipes", "tests"})
    for (const auto& entry : fs::recursive_directory_iterator(root / "../.." / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp") continue;
      ++files;
      EXPECT_TRUE(io::read_text(entry.path()).starts_with("// ")) << entry.path();
    }
  EXPECT_GT(files, 500);
}

/// The words of a private dialect that stand in a text, with the pieces of a literal joined.
std::vector<std::string> retired_words_in(const std::string& text) {
  std::string words = " ";
  for (const char c : text) {
    if (std::isalpha(static_cast<unsigned char>(c)))
      words += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (words.back() != ' ')
      words += ' ';
  }
  std::vector<std::string> found;
  for (const char* word : {"room", "rooms", "noter", "leave it out", "leave out", "leaves out",
                           "leave one out", "leave one of them out", "leave them out"})
    if (words.find(' ' + std::string(word) + ' ') != std::string::npos) found.emplace_back(word);
  return found;
}

TEST(Words, OfAPrivateDialectStandInNoSource) {
  const fs::path root = source_folder();
  ASSERT_FALSE(root.empty()) << "TARE_SOURCE_DIR is not set: run by ctest";
  for (const fs::path& folder : {root, root / "../../models", root / "../../recipes"})
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp") continue;
      EXPECT_THAT(retired_words_in(io::read_text(entry.path())), IsEmpty()) << entry.path();
    }
}

TEST(Words, AreFoundAcrossThePiecesOfALiteral) {
  EXPECT_THAT(retired_words_in("\"leave it \"\n  \"out\""), ElementsAre("leave it out"));
  EXPECT_THAT(retired_words_in("Makes room."), ElementsAre("room"));
  EXPECT_THAT(retired_words_in("int64_t room_bytes;"), ElementsAre("room"));
  EXPECT_THAT(retired_words_in("a mushroom, headroom"), IsEmpty());
}

TEST(DocComments, BeginWithTheirSubjectOrVerb) {
  const fs::path root = source_folder();
  ASSERT_FALSE(root.empty()) << "TARE_SOURCE_DIR is not set: run by ctest";
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension().string();
    const std::string name = fs::relative(entry.path(), root).generic_string();
    if (extension != ".h" && extension != ".cpp") continue;
    ++files;
    EXPECT_THAT(elliptic_comments(io::read_text(entry.path())), IsEmpty()) << name;
  }
  EXPECT_GT(files, 20);
}

TEST(DocComments, EllipticStartsAreFoundInFirstLinesOnly) {
  EXPECT_THAT(elliptic_comments("int a;\n  /// Of the model.\n"), ElementsAre("/// Of the model."));
  EXPECT_THAT(elliptic_comments("/// Saves.\n///\n/// As usual.\n"), ElementsAre("/// As usual."));
  EXPECT_THAT(elliptic_comments("/// Returns the name\n/// Of all.\n"), IsEmpty());
  EXPECT_THAT(elliptic_comments("int a = 0;  ///< Of the model.\n/// Office hours.\n"), IsEmpty());
}

TEST(DocComments, BeginWithAVerb) {
  const fs::path root = source_folder();
  ASSERT_FALSE(root.empty()) << "TARE_SOURCE_DIR is not set: run by ctest";
  int files = 0;
  for (const fs::path& folder : {root, root / "../../models"})
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".h") continue;
      ++files;
      EXPECT_THAT(verbless_comments(io::read_text(entry.path())), IsEmpty()) << entry.path();
    }
  EXPECT_GT(files, 20);
}

TEST(DocComments, WithoutAVerbAreFound) {
  EXPECT_THAT(verbless_comments("/// The inputs, then the targets.\n[[nodiscard]] int a();\n"),
              ElementsAre("The inputs, then the targets."));
  EXPECT_THAT(verbless_comments("/// Bytes of it,\n/// all.\ntemplate <class T>\nint a(T);\n"),
              ElementsAre("Bytes of it,"));
  EXPECT_THAT(verbless_comments("/// `root` replaces /.\nint a();\n/// What it is.\nint b();\n"),
              ElementsAre("`root` replaces /.", "What it is."));
  EXPECT_THAT(verbless_comments("/// Returns it.\nint a();\n/// Whether it fits.\nbool b();\n"),
              IsEmpty());
  EXPECT_THAT(verbless_comments("/// Adds.\n///\n/// The rest.\nint a();\nint b();  ///< the b\n"),
              IsEmpty());
  EXPECT_THAT(verbless_comments("/// A thing.\nstruct A {\n/// Holds it.\nclass B {\n"
                                "/// The most.\ninline constexpr int kMost = 3;\n"),
              ElementsAre("A thing.", "The most."));
  EXPECT_THAT(
      verbless_comments("/// The size.\nint a = b();\n/// The work.\nstd::function<void()> c{};\n"),
      IsEmpty());
}

TEST(Layering, TheTableHasNoCycle) {
  for (const auto& [library, below] : libraries())
    for (const std::string& name : below)
      EXPECT_FALSE(open_to(name).contains(library)) << library << " and " << name;
}

TEST(Layering, NamesFileLineAndInclude) {
  EXPECT_THAT(violations("metric/loss.cpp", "// x\n#include \"tare/optim/optimizer.h\"\n"),
              ElementsAre("framework/tare/metric/loss.cpp:2: tare/optim/optimizer.h is not open to "
                          "the library metric"));
}

TEST(Layering, KnowsOfFurcateInItsOwnLibraryAndAboveItAlone) {
  for (const auto& entry : fs::recursive_directory_iterator(source_folder())) {
    const std::string path = fs::relative(entry.path(), source_folder()).generic_string();
    if (!entry.is_regular_file() || path == "tare.h" || library_of(path) == "furcate" ||
        library_of(path) == "cli")
      continue;
    std::string text = io::read_text(entry.path());
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    EXPECT_EQ(text.find("furcate"), std::string::npos) << path;
  }
}

TEST(Layering, NamesNoLibraryThatIsNotThere) {
  for (const auto& [library, below] : libraries())
    EXPECT_TRUE(fs::is_directory(source_folder() / library)) << library;
}

TEST(Layering, RefusesWhatIsAbove) {
  const auto refused = [](const std::string& file, const std::string& header) {
    return !problem_with(file, header).empty();
  };
  EXPECT_TRUE(refused("base/io.cpp", "tare/memory/oom.h"));
  EXPECT_TRUE(refused("memory/oom.cpp", "tare/config/field.h"));
  EXPECT_TRUE(refused("memory/machine.cpp", "tare/runtime/process.h"));
  EXPECT_TRUE(refused("runtime/init.cpp", "tare/config/field.h"));
  EXPECT_TRUE(refused("data/prefetch.cpp", "tare/runtime/threads.h"));
  EXPECT_TRUE(refused("inference/predictor.cpp", "tare/optim/fused.h"));
  EXPECT_TRUE(refused("inference/predictor.cpp", "tare/callback/callback.h"));
  EXPECT_TRUE(refused("checkpoint/manifest.cpp", "tare/config/node.h"));
  EXPECT_TRUE(refused("train/fit_loop.cpp", "tare/trace/trace.h"));
  EXPECT_TRUE(refused("train/fit_loop.cpp", "tare/plan/plan.h"));
  EXPECT_TRUE(refused("plan/plan_fit.cpp", "tare/learner/learner.h"));
  EXPECT_TRUE(refused("learner/learner.cpp", "tare/recipe/run.h"));
  EXPECT_TRUE(refused("recipe/run.cpp", "tare/sweep/store.h"));
  EXPECT_TRUE(refused("learner/learner.cpp", "tare/tare.h"));
  EXPECT_TRUE(refused("learner/learner.cpp", "tare/nowhere/a.h"));
  EXPECT_TRUE(refused("learner/learner.cpp", "torch/torch.h"));
  EXPECT_TRUE(refused("data/idx.cpp", "fstream"));
  EXPECT_TRUE(refused("base/error.cpp", "spdlog/spdlog.h"));
  EXPECT_TRUE(refused("recipe/run.cpp", "yaml-cpp/yaml.h"));
}

TEST(Layering, AllowsWhatTheTableNames) {
  EXPECT_EQ(problem_with("base/log.cpp", "spdlog/spdlog.h"), "");
  EXPECT_EQ(problem_with("config/parse.cpp", "yaml-cpp/parser.h"), "");
  EXPECT_EQ(problem_with("experiment/experiment.h", "tare/config/field.h"), "");
  EXPECT_EQ(problem_with("checkpoint/manifest.cpp", "tare/memory/phase.h"), "");
  EXPECT_EQ(problem_with("learner/fit.cpp", "tare/transform/image.h"), "");
  EXPECT_EQ(problem_with("tare.h", "tare/learner/learner.h"), "");
  EXPECT_EQ(problem_with("model/model.cpp", "torch/nn/module.h"), "");
}

}  // namespace
}  // namespace tare
