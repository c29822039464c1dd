// Texts of different length with every command that takes a recipe or a bundle of them.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "support/damage.h"
#include "support/tare_folder.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class TextCommand : public ::testing::Test, protected TareFolder {
 protected:
  TextCommand() {
    const fs::path recipe =
        fs::path(std::getenv("TARE_SOURCE_DIR")) / "recipes/configs/text/reviews.yaml";
    std::ifstream in(recipe);
    std::ofstream(folder_ / "reviews.yaml") << in.rdbuf();
  }
  /// Runs a command with a recipe that is made small.
  [[nodiscard]] ProgramResult small(std::vector<std::string> words) const {
    for (const char* setting :
         {"device=cpu", "data.count=120", "model.width=8", "phases=[{name: only, epochs: 1}]"})
      words.emplace_back(setting);
    return tare(words);
  }
};

TEST_F(TextCommand, ARecipeIsCheckedPlannedRunAndPredictsTexts) {
  EXPECT_EQ(small({"validate", "reviews.yaml"}).status, 0);
  const auto check = small({"data", "check", "reviews.yaml"});
  EXPECT_THAT(check.out, HasSubstr("120 generated texts, seed 0")) << check.err;
  const auto plan = small({"plan", "reviews.yaml"});
  EXPECT_THAT(plan.out, HasSubstr("planned for a batch as long as its longest sample")) << plan.err;
  const auto run = small({"run", "reviews.yaml"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("of the batches is padding"));
  write("new.txt", "the soup was good.\nthe bed was not good. it was awful.\n");
  const auto predicted = tare({"predict", "runs/reviews", "--text", "new.txt"});
  EXPECT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_EQ(std::ranges::count(predicted.out, '\n'), 2) << predicted.out;
  EXPECT_EQ(small({"run", "reviews.yaml", "--resume"}).status, 2) << "it has ended";
  const auto refused = tare({"validate", "reviews.yaml", "shuffle=false"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("group_by_length chooses the order of the samples"));
}

TEST_F(TextCommand, AFileOfTextIsCheckedAsTheDataSetThatReadsIt) {
  std::string text = "Once upon a time, there was a king.\n";
  for (int i = 0; i < 60; ++i) text += "He said \"no\", and went on.\nThen he slept;\n\n";
  write("story.txt", text);
  const auto check = tare({"data", "check", "story.txt"});
  EXPECT_EQ(check.status, 0) << check.err;
  EXPECT_THAT(check.out, HasSubstr("story.txt is no table, and is checked as the data set text, as "
                                   "in `data: {name: text, file: story.txt}`"));
  EXPECT_THAT(check.out, HasSubstr("0 errors, 0 warnings"));
  const auto named = tare({"data", "check", "story.txt", "name=text", "context=16"});
  EXPECT_EQ(named.status, 0) << named.err;
  EXPECT_THAT(named.out, HasSubstr("2,616 characters of story.txt"));
  EXPECT_EQ(tare({"data", "check", "story.txt", "--json"}).out.front(), '{');
  write("table.txt", "a\tb\n1\t2\n3\n4\t5\n");
  const auto table = tare({"data", "check", "table.txt"});
  EXPECT_EQ(table.status, 2) << table.out;
  EXPECT_THAT(table.out, HasSubstr("error: line 3 has 1 field, and the head has 2"));
  write("story.md", "Once\nupon\n");
  EXPECT_THAT(tare({"data", "check", "story.md"}).out,
              HasSubstr("a text for a language model is the data set text"));
}

TEST_F(TextCommand, BatchesOfSimilarLengthAreSwept) {
  std::ofstream(folder_ / "small.yaml")
      << "name: small\nbatch: 8\ndevice: cpu\nmodel: {name: lstm, width: 8}\n"
         "data: {name: generated_texts, count: 60, length: 40}\nphases: [{epochs: 1}]\n";
  std::ofstream(folder_ / "sweep.yaml")
      << "name: s\nrecipe: small.yaml\nmetric: {name: valid_loss, goal: minimize}\n"
         "parameters: {group_by_length: [true, false]}\nresources: {jobs: 1}\n";
  EXPECT_EQ(tare({"sweep", "plan", "sweep.yaml"}).status, 0);
  const auto run = tare({"sweep", "run", "sweep.yaml"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("2 complete, 0 failed"));
}

TEST_F(TextCommand, GeneratedTextsAreFilesOfAFolder) {
  const auto made = tare({"data", "make", "generated_texts", "--count", "30", "--out", "texts"});
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(std::ranges::count(made.out, '\n'), 30);
  EXPECT_TRUE(fs::exists(folder_ / "texts/mixed/29.txt"));
  const auto check = tare({"data", "check", "texts"});
  EXPECT_EQ(check.status, 0) << check.err;
  EXPECT_EQ(check.out,
            "text_folder: 30 texts of texts; train 24, valid 6, test none\n"
            "3 classes: 10 bad, 10 good, 10 mixed\n0 errors, 0 warnings\n");
  overwrite(folder_ / "texts/good/empty.txt", "");
  const auto empty = tare({"data", "check", "texts"});
  EXPECT_EQ(empty.status, 2) << empty.out;
  EXPECT_THAT(empty.out, HasSubstr("good/empty.txt"));
  fs::remove(folder_ / "texts/good/empty.txt");
  const auto run =
      tare({"run", "reviews.yaml", "device=cpu", "model.width=8", "batch=4",
            "data={name: text_folder, folder: texts}", "phases=[{name: only, epochs: 1}]"});
  EXPECT_EQ(run.status, 0) << run.err;
  const auto predicted = tare({"predict", "runs/reviews", "texts/good"});
  EXPECT_EQ(std::ranges::count(predicted.out, '\n'), 10) << predicted.err;
  for (const char* option : {"--png", "--style=written"}) {
    const auto refused = tare({"data", "make", "generated_texts", option});
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.err, AllOf(HasSubstr(" is for generated_digits"), HasSubstr("omit it")));
  }
}

TEST_F(TextCommand, TextsOfATableAreTrainedAndPredicted) {
  std::string rows = "review,kind\n";
  for (int i = 0; i < 40; ++i)
    rows += (i % 2 == 0 ? "\"a good, fine one " : "\"a bad, poor one ") + std::to_string(i) +
            (i % 2 == 0 ? "\",yes\n" : "\",no\n");
  overwrite(folder_ / "reviews.csv", rows);
  const auto check =
      tare({"data", "check", "reviews.csv", "name=text_list", "columns=[review]", "target=kind"});
  EXPECT_EQ(check.status, 0) << check.err;
  EXPECT_THAT(check.out, HasSubstr("40 texts of reviews.csv; train 32, valid 8"));
  const auto run =
      tare({"run", "reviews.yaml", "device=cpu", "model.width=8", "batch=4",
            "data={name: text_list, file: reviews.csv, columns: [review], target: kind}",
            "phases=[{name: only, epochs: 1}]"});
  EXPECT_EQ(run.status, 0) << run.err;
  const auto predicted = tare({"predict", "runs/reviews", "reviews.csv"});
  EXPECT_EQ(std::ranges::count(predicted.out, '\n'), 40) << predicted.err;
  EXPECT_THAT(predicted.out, HasSubstr("reviews.csv:2: "));
  overwrite(folder_ / "new.jsonl", "{\"review\": \"a good, fine one 0\"}\n{\"review\": \"\"}\n");
  const auto lines = tare({"predict", "runs/reviews", "new.jsonl"});
  EXPECT_EQ(lines.status, 2);
  EXPECT_THAT(lines.err, HasSubstr("new.jsonl: line 2: is empty"));
  EXPECT_EQ(lines.out.substr(lines.out.find(": ")),
            predicted.out.substr(predicted.out.find(": "), lines.out.size() - lines.out.find(": ")))
      << "which is the first text of the table";
  overwrite(folder_ / "other.jsonl", "{\"text\": \"a\"}\n");
  EXPECT_THAT(tare({"predict", "runs/reviews", "other.jsonl"}).err,
              HasSubstr("have no 'review', which has the texts in the training; there are text"));
}

}  // namespace
}  // namespace tare::testing
