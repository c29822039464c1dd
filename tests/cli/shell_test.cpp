// Completion scripts and man pages: every command and option is in them, and the shells take them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/files.h"
#include "support/program.h"
#include "tare/cli/completion.h"
#include "tare/cli/man_page.h"

namespace tare::testing {
namespace {

using cli::Command;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

/// A table with everything that may occur in one.
const std::vector<Command>& sample_commands() {
  static const std::vector<Command> commands{
      {.name = "go",
       .summary = "don't [stop]: go",
       .arguments = "RECIPE [key=value ...]",
       .options = {{"mode", "fast|slow|at:N", "how it's done"},
                   {"into", "DIR", "where to"},
                   {"count", "N", "how many"},
                   {"resume", "new|old", "go on", "new"},
                   {"quiet", "", "say nothing"}},
       .examples = {".go \\ -x"}},
      {.name = "show", .summary = "look", .arguments = "bundle|run INPUT...", .examples = {"x"}},
      {.name = "explain", .summary = "help", .arguments = "[COMMAND]", .examples = {"x"}},
      {.name = "mean", .summary = "say", .arguments = "[KEY ...]", .examples = {"x"}}};
  return commands;
}

const std::vector<cli::Setting>& settings() {
  static const std::vector<cli::Setting> all{{"batch", {"128"}},
                                             {"phases.N.lr", {"1e-3"}},
                                             {"phases.N.schedule.kind", {"linear", "cosine"}}};
  return all;
}

const std::vector<std::string>& options_of_entries() {
  static const std::vector<std::string> all{"loss.l1", "model.gpt.heads"};
  return all;
}

std::string program_in_path(const std::string& name) {
  for (const char* folder : {"/usr/bin/", "/bin/", "/usr/local/bin/"})
    if (std::filesystem::exists(folder + name)) return folder + name;
  return {};
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

/// A shell with the completion of sample(), in a folder with a file, a folder and a name with a
/// space.
class Completion : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_ / "place");
    for (const char* name : {"place.yaml", "two words.yaml"}) std::ofstream(folder_ / name) << 1;
  }
  /// Runs `script` behind the completion script of `shell`.
  std::vector<std::string> run(const std::string& shell, const std::string& script) const {
    const std::string file = (folder_ / "script").string();
    std::ofstream(file) << cli::completion(shell, sample_commands(), settings(),
                                           options_of_entries())
                        << script;
    const auto result = run_program(program_in_path(shell), {file}, folder_.path());
    std::filesystem::remove(file);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return lines(result.out);
  }
  /// Returns bash's completions of the last word; its words are cut at '=', as readline does.
  std::vector<std::string> bash(const std::string& words) const {
    return run("bash", "COMP_WORDS=(" + words +
                           ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_tare\n"
                           "((${#COMPREPLY[@]})) && printf '%s\\n' \"${COMPREPLY[@]}\"\ntrue\n");
  }
  std::vector<std::string> fish(const std::string& line) const {
    auto offered = run("fish", "complete -C '" + line + "'\n");
    for (auto& word : offered) word = word.substr(0, word.find('\t'));
    return offered;
  }
  TempDir folder_;
};

TEST_F(Completion, BashOffersCommandsOptionsAndWords) {
  EXPECT_THAT(bash("tare ''"),
              UnorderedElementsAre("go", "show", "explain", "mean", "--help", "--version"));
  EXPECT_THAT(bash("tare s"), ElementsAre("show"));
  EXPECT_THAT(bash("tare go --"),
              UnorderedElementsAre("--mode", "--into", "--count", "--resume", "--quiet", "--help"));
  EXPECT_THAT(bash("tare go --mode ''"), UnorderedElementsAre("fast", "slow"));
  EXPECT_THAT(bash("tare go --mode = s"), ElementsAre("slow"));
  EXPECT_THAT(bash("tare go --mode ="), UnorderedElementsAre("fast", "slow"));
  EXPECT_THAT(bash("tare go --count ''"), IsEmpty());
  EXPECT_THAT(bash("tare explain ''"), UnorderedElementsAre("go", "show", "explain", "mean"));
  EXPECT_THAT(bash("tare nothing ''"), IsEmpty());
}

TEST_F(Completion, BashOffersFilesAndFolders) {
  EXPECT_THAT(bash("tare go p"), UnorderedElementsAre("place", "place.yaml"));
  EXPECT_THAT(bash("tare go tw"), ElementsAre("two words.yaml"));
  EXPECT_THAT(bash("tare go --into p"), ElementsAre("place"));
  EXPECT_THAT(bash("tare go --into = p"), ElementsAre("place"));
}

TEST_F(Completion, BashCountsPlacesWithoutTheOptions) {
  EXPECT_THAT(bash("tare show ''"), UnorderedElementsAre("bundle", "run"));
  EXPECT_THAT(bash("tare show run p"), UnorderedElementsAre("place", "place.yaml"));
  EXPECT_THAT(bash("tare show run a.png b.png p"), UnorderedElementsAre("place", "place.yaml"));
  EXPECT_THAT(bash("tare go --count 3 --quiet --into = place p"),
              UnorderedElementsAre("place", "place.yaml"));
  EXPECT_THAT(bash("tare go a.yaml batch = 3 x"), IsEmpty());
}

TEST_F(Completion, BashKnowsKeysOfARecipeAndTheirValues) {
  EXPECT_THAT(bash("tare go a.yaml ''"),
              UnorderedElementsAre("batch=", "phases.0.lr=", "phases.0.schedule.kind="));
  EXPECT_THAT(bash("tare go a.yaml batch = 3 phases.12.l"), ElementsAre("phases.12.lr="));
  EXPECT_THAT(bash("tare go a.yaml phases.1.lr ="), ElementsAre("1e-3"));
  EXPECT_THAT(bash("tare go a.yaml phases.1.schedule.kind = c"), ElementsAre("cosine"));
  EXPECT_THAT(bash("tare go a.yaml nothing ="), IsEmpty());
  EXPECT_THAT(bash("tare go a.yaml model"), IsEmpty()) << "an option is no setting";
}

TEST_F(Completion, BashKnowsWhatCanBeExplained) {
  EXPECT_THAT(bash("tare mean ''"),
              UnorderedElementsAre("batch", "phases.0.lr", "phases.0.schedule.kind", "loss.l1",
                                   "model.gpt.heads"));
  EXPECT_THAT(bash("tare mean batch model.g"), ElementsAre("model.gpt.heads"));
}

TEST_F(Completion, FishKnowsWhatCanBeExplained) {
  if (program_in_path("fish").empty()) GTEST_SKIP() << "no fish here";
  EXPECT_THAT(fish("tare mean l"), ElementsAre("loss.l1"));
}

TEST_F(Completion, FishKnowsKeysOfARecipeAndTheirValues) {
  if (program_in_path("fish").empty()) GTEST_SKIP() << "no fish here";
  EXPECT_THAT(fish("tare go a.yaml ba"), UnorderedElementsAre("batch=", "batch=128"));
  EXPECT_THAT(fish("tare go a.yaml phases.3.schedule.kind=c"),
              ElementsAre("phases.3.schedule.kind=cosine"));
}

TEST_F(Completion, ZshKnowsKeysOfARecipeAndTheirValues) {
  if (program_in_path("zsh").empty()) GTEST_SKIP() << "no zsh here";
  // compadd and compset work inside of the line editor only: here they print.
  std::ofstream(folder_ / "script")
      << "compdef() { : }\ncompadd() { print -r -- $@ }\ncompset() { : }\n"
      << cli::completion("zsh", sample_commands(), settings(), options_of_entries())
      << "PREFIX=phases.7.l _tare_settings\n"
         "PREFIX=phases.7.schedule.kind=c _tare_settings\n"
         "PREFIX=l _tare_explained\n";
  const auto result =
      run_program(program_in_path("zsh"), {"-f", (folder_ / "script").string()}, folder_.path());
  EXPECT_EQ(result.out,
            "-q -S = -- batch phases.7.lr phases.7.schedule.kind\n-- linear cosine\n"
            "-- batch phases.0.lr phases.0.schedule.kind\n-- loss.l1 "
            "model.gpt.heads\n")
      << result.err;
}

TEST_F(Completion, OfAProgramWithAnotherNameLeavesTareAlone) {
  const auto script = [](const char* shell) {
    return cli::completion(shell, sample_commands(), settings(), options_of_entries(), "my-own");
  };
  EXPECT_THAT(script("bash"), HasSubstr("complete -F _my_own my-own\n"));
  EXPECT_THAT(script("zsh"), HasSubstr("#compdef my-own\n"));
  EXPECT_THAT(script("zsh"), HasSubstr("compdef _my_own my-own;"));
  EXPECT_THAT(script("fish"), HasSubstr("complete -c my-own -f\n"));
  for (const char* shell : {"bash", "zsh", "fish"})
    EXPECT_THAT(script(shell), Not(HasSubstr("_tare"))) << "functions of its own";
}

TEST_F(Completion, BashTakesAnOptionalValueBehindTheEqualSignOnly) {
  EXPECT_THAT(bash("tare go --resume ="), UnorderedElementsAre("new", "old"));
  EXPECT_THAT(bash("tare go --resume p"), UnorderedElementsAre("place", "place.yaml"));
}

TEST_F(Completion, FishOffersCommandsOptionsAndWords) {
  if (program_in_path("fish").empty()) GTEST_SKIP() << "no fish here";
  EXPECT_THAT(fish("tare "), UnorderedElementsAre("go", "show", "explain", "mean"));
  EXPECT_THAT(fish("tare go --"),
              IsSupersetOf({"--mode", "--into", "--count", "--resume", "--quiet", "--help"}));
  EXPECT_THAT(fish("tare go --mode "), IsSupersetOf({"fast", "slow"}));
  EXPECT_THAT(fish("tare go pl"), UnorderedElementsAre("place/", "place.yaml"));
  EXPECT_THAT(fish("tare go --into p"), Contains("place/"));
  EXPECT_THAT(fish("tare explain "), UnorderedElementsAre("go", "show", "explain", "mean"));
}

TEST_F(Completion, ZshTakesTheScript) {
  if (program_in_path("zsh").empty()) GTEST_SKIP() << "no zsh here";
  std::ofstream(folder_ / "_tare")
      << cli::completion("zsh", sample_commands(), settings(), options_of_entries());
  // -f: no start files of the user. The file is loaded as compinit does it.
  const auto result = run_program(
      program_in_path("zsh"),
      {"-f", "-c",
       "fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -d dump; autoload +X _tare && "
       "print -r -- $_comps[tare]"},
      folder_.path());
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "_tare\n") << result.err;
  EXPECT_EQ(result.err, "");
}

TEST_F(Completion, ZshQuotesWhatItsOptionsMustNotHold) {
  const std::string script =
      cli::completion("zsh", sample_commands(), settings(), options_of_entries());
  EXPECT_THAT(script, HasSubstr("'--mode=[how it'\\''s done]:fast|slow|at\\:N:(fast slow)'"));
  EXPECT_THAT(script, HasSubstr("'--resume=-[go on]::new|old:(new old)'"));
  EXPECT_THAT(script, HasSubstr("'1:RECIPE:_files'"));
  EXPECT_THAT(script, HasSubstr("'*:INPUT:_files'"));
}

/// The words of every --help of the program: its commands, and each one's options.
std::vector<std::pair<std::string, std::vector<std::string>>> table_of_help() {
  std::vector<std::pair<std::string, std::vector<std::string>>> table;
  for (const auto& line : lines(run_program("tare", {"--help"}).out)) {
    if (!line.starts_with("  ")) continue;
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    std::vector<std::string> options;
    for (const auto& option : lines(run_program("tare", {name, "--help"}).out)) {
      if (option.starts_with("  --"))
        options.push_back(option.substr(4, option.find_first_of(" [,", 4) - 4));
    }
    table.emplace_back(name, options);
  }
  return table;
}

/// The part of `text` from `begin` to `end`.
std::string part(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin);
  return from == std::string::npos ? "" : text.substr(from, text.find(end, from) - from);
}

TEST(Shell, EveryCommandAndOptionIsInEachScriptAndPage) {
  const TempDir folder;
  ASSERT_EQ(run_program("tare", {"man", "--out", folder.path().string()}).status, 0);
  const auto bash = run_program("tare", {"completion", "bash"}).out;
  const auto zsh = run_program("tare", {"completion", "zsh"}).out;
  const auto fish = run_program("tare", {"completion", "fish"}).out;
  const auto overview = content_of(folder / "man1/tare.1");
  const auto table = table_of_help();
  ASSERT_GE(table.size(), 8U);
  for (const auto& [name, options] : table) {
    ASSERT_THAT(options, Contains("help")) << name;
    // A hyphen of a name is escaped in a man page.
    const std::string in_man = name == "lr-find" ? "lr\\-find" : name;
    EXPECT_THAT(overview, HasSubstr(".B " + in_man + "\n"));
    const auto page = content_of(folder / "man1" / ("tare-" + name + ".1"));
    const auto in_bash = part(bash, "    " + name + ") echo", ";;");
    const auto in_zsh = part(zsh, "        " + name + ")\n", ";;");
    for (const auto& option : options) {
      EXPECT_THAT(in_bash, HasSubstr("--" + option)) << name;
      EXPECT_THAT(in_zsh, HasSubstr("'--" + option)) << name;
      EXPECT_THAT(fish, HasSubstr("from " + name + "' -l " + option)) << name;
      std::string dashed = option;
      for (size_t i = 0; (i = dashed.find('-', i)) != std::string::npos; i += 2)
        dashed.insert(i, 1, '\\');
      EXPECT_THAT(page, HasSubstr(".B \\-\\-" + dashed)) << name;
    }
  }
  EXPECT_EQ(run_program("tare", {"man"}).out, overview);
  const auto recipe = run_program("tare", {"man", "recipe"}).out;
  EXPECT_EQ(recipe, content_of(folder / "man5/tare-recipe.5"));
  EXPECT_EQ(run_program("tare", {"man", "tare-recipe"}).out, recipe);
  EXPECT_EQ(run_program("tare", {"man", "tare-run"}).out, run_program("tare", {"man", "run"}).out);
  EXPECT_EQ(run_program("tare", {"man", "tare"}).out, overview);
  EXPECT_THAT(recipe, HasSubstr(".B phases.N.lr\npeak rate, "));
  EXPECT_THAT(bash, HasSubstr("phases.N.schedule.kind) echo 'constant cosine exponential linear"));
  EXPECT_EQ(run_program("tare", {"man", "run"}).out, content_of(folder / "man1/tare-run.1"));
}

TEST(Shell, ManPagesHaveNoWarnings) {
  const std::string groff = program_in_path("groff");
  if (groff.empty()) GTEST_SKIP() << "no groff here";
  const TempDir folder;
  ASSERT_EQ(run_program("tare", {"man", "--out", folder.path().string()}).status, 0);
  std::ofstream(folder / "sample.1") << cli::man_page(sample_commands()[0], "1");
  std::ofstream(folder / "all.1") << cli::man_overview(sample_commands(), "1");
  int pages = 0;
  for (const auto& page : std::filesystem::recursive_directory_iterator(folder.path())) {
    if (page.is_directory()) continue;
    const auto result = run_program(groff, {"-man", "-ww", "-Tascii", "-z", page.path().string()});
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(result.err, "") << page.path();
    ++pages;
  }
  EXPECT_GE(pages, 10);
}

TEST(Shell, AManPageShowsTextThatLooksLikeARequest) {
  const std::string page = cli::man_page(sample_commands()[0], "1");
  EXPECT_THAT(page, HasSubstr("\n\\&.go \\e \\-x\n"));
  EXPECT_THAT(page, HasSubstr(".B \\-\\-resume[=new|old]\ngo on; without a value: new."));
}

TEST(Shell, RefusesAnUnknownShellAndCommand) {
  EXPECT_EQ(run_program("tare", {"completion", "csh"}).status, 2);
  const auto result = run_program("tare", {"man", "rum"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("did you mean \"run\""));
  EXPECT_THAT(result.err, Not(HasSubstr("\n\n")));
}

}  // namespace
}  // namespace tare::testing
