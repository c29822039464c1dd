// The API site of the public headers: it is written without a warning, and a public name without a
// comment is found, with file and line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "docs/pages.h"
#include "support/program.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kNotInstalled = 77;  // exit status of make.sh without Doxygen

/// Writes the site of `root` into `out`; `environment` as NAME=value.
ProgramResult make_site(const fs::path& out, const fs::path& root,
                        const std::vector<std::string>& environment = {}) {
  std::vector<std::string> arguments = environment;
  for (const fs::path& word :
       {fs::path("/bin/bash"), source_folder() / "docs/api/make.sh", out, root})
    arguments.push_back(word.string());
  return run_program("/usr/bin/env", arguments);
}

/// A source folder with one public header, which `text` follows after the line 5.
struct Sources {
  explicit Sources(const std::string& text, const std::string& first = "// A header.") {
    fs::create_directories(folder / "framework/tare/base");
    fs::create_directories(folder / "docs/api");
    fs::create_directories(folder / "docs/pictures");
    io::write_atomically(folder / "framework/tare/base/other.h", "// Another header.\n");
    io::write_atomically(
        folder / "framework/tare/base/some.h",
        first + "\n#pragma once\n\nnamespace tare {\n\n" + text + "\n}  // namespace tare\n");
    io::write_atomically(folder / "docs/api/namespaces.dox", "/**\n\\namespace tare\nAll.\n*/\n");
    io::write_atomically(folder / "docs/index.md", "# Pages\n\nThere is none.\n");
  }
  [[nodiscard]] ProgramResult site() const { return make_site(folder / "site", folder.path()); }

  TempDir folder;
};

TEST(Api, EveryPublicNameHasAComment) {
  const TempDir out;
  const auto made = make_site(out.path(), source_folder());
  if (made.status == kNotInstalled) GTEST_SKIP() << made.out;
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.err, IsEmpty());
  EXPECT_TRUE(fs::exists(out / "html/index.html"));
  EXPECT_TRUE(fs::exists(out / "html/classtare_1_1Learner.html"));
  EXPECT_TRUE(fs::exists(out / "html/structtare_1_1models_1_1ConvNetImpl.html"));
  EXPECT_FALSE(fs::exists(out / "html/state__index_8h.html"))
      << "an internal header is on the site";
  for (const auto& entry : fs::directory_iterator(out / "html")) {
    if (!entry.path().filename().string().starts_with("md_")) continue;
    const std::string page = io::read_text(entry.path());
    EXPECT_FALSE(std::regex_search(page, std::regex("href=\"[^\"/]*\\.md[#\"]")))
        << entry.path() << " has a link to a page that is not on the site";
  }
}

TEST(Api, ANameWithoutACommentIsFoundWithFileAndLine) {
  const Sources sources(
      "struct Plain {};\n"
      "/// A thing.\n"
      "struct Thing {\n"
      "  int size = 0;\n"
      "  int width = 0, height = 0;  ///< in pixels\n"
      "  void run();\n"
      "};\n"
      "int total(int number);\n"
      "enum class Kind { one };\n"
      "template <class T>\n"
      "class Outer {\n"
      " public:\n"
      "  struct Inner {\n"
      "    int size = 0;\n"
      "  };\n"
      "\n"
      " private:\n"
      "  struct Hidden {};\n"
      "};\n"
      "class Elsewhere;\n");
  const auto made = sources.site();
  if (made.status == kNotInstalled) GTEST_SKIP() << made.out;
  EXPECT_EQ(made.status, 1);
  EXPECT_THAT(made.err, ContainsRegex("some.h:6: error: struct Plain has no comment"));
  EXPECT_THAT(made.err, ContainsRegex("some.h:9: .*size .*is not documented"));
  EXPECT_THAT(made.err, ContainsRegex("some.h:11: .*run.*is not documented"));
  EXPECT_THAT(made.err, ContainsRegex("some.h:13: .*total.*is not documented"));
  EXPECT_THAT(made.err, ContainsRegex("some.h:14: .*Kind.*is not documented"));
  EXPECT_THAT(made.err, HasSubstr("some.h:16: error: class Outer has no comment"));
  EXPECT_THAT(made.err, HasSubstr("some.h:18: error: struct Inner has no comment"));
  EXPECT_THAT(made.err, Not(HasSubstr("Hidden")));
  EXPECT_THAT(made.err, Not(HasSubstr("Elsewhere")));
  EXPECT_THAT(made.err, Not(HasSubstr("width")));
  EXPECT_THAT(made.err, Not(HasSubstr("height")));
}

TEST(Api, AHeaderOfTheModelsIsPublic) {
  const Sources sources("");
  fs::create_directories(sources.folder / "models");
  io::write_atomically(sources.folder / "models/net.h",
                       "// A model.\n"
                       "namespace tare {\n"
                       "/// A network.\n"
                       "struct NetImpl {\n"
                       "  void forward();\n"
                       "};\n"
                       "TORCH_MODULE(Net);\n"
                       "}  // namespace tare\n");
  const auto made = sources.site();
  if (made.status == kNotInstalled) GTEST_SKIP() << made.out;
  EXPECT_EQ(made.status, 1);
  EXPECT_THAT(made.err, ContainsRegex("models/net.h:5: .*forward.*is not documented"));
  EXPECT_THAT(made.err, Not(HasSubstr("TORCH_MODULE")));
  const std::string page = io::read_text(sources.folder / "site/html/classtare_1_1Net.html");
  EXPECT_THAT(page, HasSubstr("by a shared pointer, which copies of the holder share"));
  EXPECT_THAT(page, HasSubstr(">models/net.h</a>&gt;"));
}

TEST(Api, AnInternalHeaderNeedsNone) {
  const Sources sources("struct Plain {};\n", "// A header that\n// nobody includes. Internal.");
  const auto made = sources.site();
  if (made.status == kNotInstalled) GTEST_SKIP() << made.out;
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.err, IsEmpty());
}

TEST(Api, ANamespaceWithoutATextIsFoundWithFileAndLine) {
  const Sources sources(
      "inline int open() { return '{' == 0; }\n"
      "namespace detail {\nint hidden();\n}\n"
      "namespace inner {\nint lost();\n}\n");
  const auto made = sources.site();
  if (made.status == kNotInstalled) GTEST_SKIP() << made.out;
  EXPECT_EQ(made.status, 1);
  EXPECT_THAT(made.err, HasSubstr("some.h:10: error: namespace tare::inner has no text"));
  EXPECT_THAT(made.err, Not(HasSubstr("hidden")));
}

TEST(Api, WhatACommentSaysIsText) {
  const Sources sources(
      "/// Reads folder/<class>/<file>.png, escapes \\t, includes #include <a.h>, and @home:\n"
      "///   add<Options>(\"name\", ::run);\n"
      "/// - one\n"
      "///   line\n"
      "struct Thing {\n"
      "  bool operator==(const Thing&) const = default;\n"
      "};\n"
      "void visit_fields(auto& visit, Thing& o);\n"
      "/// Two numbers.\n"
      "inline constexpr int kFirst = 1, kSecond = 2;\n");
  const auto made = sources.site();
  if (made.status == kNotInstalled) GTEST_SKIP() << made.out;
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.err, IsEmpty());
  const std::string page = io::read_text(sources.folder / "site/html/structtare_1_1Thing.html");
  EXPECT_THAT(page, HasSubstr("folder/&lt;class&gt;/&lt;file&gt;.png, escapes \\t"));
  EXPECT_THAT(page, HasSubstr("Whether all members are equal."));
  EXPECT_THAT(page, HasSubstr("<li>one line </li>"));
}

TEST(Api, WithoutDoxygenTheReasonIsPrinted) {
  const TempDir out;
  const auto made = make_site(out.path(), source_folder(), {"PATH=/nonexistent"});
  EXPECT_EQ(made.status, kNotInstalled);
  EXPECT_THAT(made.out, HasSubstr("doxygen is not installed"));
}

}  // namespace
}  // namespace tare::testing
