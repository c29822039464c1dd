// Reading tables of texts.
#include "tare/data/text_list.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/outcome.h"
#include "support/temp_dir.h"
#include "tare/base/io.h"
#include "tare/data/datasets.h"
#include "tare/data/text_check.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TextList : public ::testing::Test {
 protected:
  [[nodiscard]] fs::path write(const std::string& name, const std::string& text) const {
    io::write_atomically(folder_ / name, text);
    return folder_ / name;
  }
  [[nodiscard]] static Batch get(const DatasetPtr& data, const std::vector<int64_t>& indices) {
    return data->get({.indices = indices});
  }
  [[nodiscard]] std::string refusal(const std::string& rows, TextListOptions options = {}) const {
    return outcome_of([&] { (void)text_list(write("a.csv", rows), std::move(options)); });
  }
  TempDir folder_;
};

TEST_F(TextList, GivesBytesWithLengthsAndClasses) {
  const Splits data =
      text_list(write("a.csv", "id,label,text\n7,pos,\"fine, yes\"\n8,neg,no\n"),
                {.valid_files = {write("v.jsonl", "{\"text\": \"a\\nb\", \"label\": \"pos\"}\n")}});
  EXPECT_THAT(data.train->labels(), ElementsAre("neg", "pos"));
  EXPECT_TRUE(at::equal(data.train->targets(), at::tensor({1, 0}, at::kLong)));
  EXPECT_EQ(data.train->sample_name(1), "a.csv:3");
  const Batch both = get(data.train, {0, 1});
  ASSERT_EQ(both.inputs.size(), 2U) << "texts and lengths";
  EXPECT_TRUE(at::equal(both.inputs[1].tensor, at::tensor({9, 2}, at::kLong)));
  EXPECT_EQ(both.inputs[0].tensor[1][0].item<int64_t>(), 'n');
  EXPECT_TRUE(at::equal(get(data.valid, {0}).inputs[0].tensor,
                        at::tensor({int64_t{'a'}, int64_t{'\n'}, int64_t{'b'}}).view({1, 3})));
  EXPECT_FALSE(data.test);
}

TEST_F(TextList, TakesOtherColumnsAndNoLabels) {
  const fs::path file = write("a.tsv", "review\tkind\ngood film\t1\nbad\t0\n");
  const Splits data = text_list(file, {.text = "review", .label = "kind", .length = 4});
  EXPECT_THAT(data.train->labels(), ElementsAre("0", "1"));
  EXPECT_EQ(get(data.train, {0}).inputs[0].name, "review") << "which a bundle keeps";
  EXPECT_EQ(get(data.train, {0}).inputs[0].tensor.size(1), 4);
  EXPECT_EQ(data.train->text_length(), 4);
  const Splits plain = text_list(file, {.text = "review"});
  EXPECT_THAT(plain.train->labels(), IsEmpty());
  EXPECT_THAT(get(plain.train, {0}).targets, IsEmpty());
}

TEST_F(TextList, IsADataSetOfARecipe) {
  const fs::path file = write("a.csv", "review,kind\na,x\nb,y\nc,x\nd,y\n");
  const auto named = datasets::make({.name = "text_list",
                                     .file = file.string(),
                                     .target = "kind",
                                     .columns = {"review"},
                                     .train = 0.5,
                                     .valid = 0.5});
  EXPECT_EQ(named.splits.train->size(), 2);
  EXPECT_THAT(named.description, HasSubstr("4 texts of "));
  EXPECT_THAT(outcome_of([&] {
                (void)datasets::make(
                    {.name = "text_list", .file = file.string(), .columns = {"review", "kind"}});
              }),
              HasSubstr("data.make] columns has several columns"));
  EXPECT_THAT(outcome_of([&] {
                (void)datasets::make({.name = "text_list",
                                      .file = file.string(),
                                      .columns = {"review"},
                                      .valid_files = {file.string()}});
              }),
              HasSubstr("is there twice"));
}

TEST_F(TextList, ACheckNamesEveryLineThatIsWrongAndCountsClasses) {
  const fs::path file = write("a.csv", "text,label\na,x\n,y\nb,\nc,y\nd\ne,x\n");
  const DataOptions options{.name = "text_list",
                            .file = file.string(),
                            .valid_files = {write("v.csv", "text,label\nf,z\ng,x\n").string()}};
  const TextCheck check = check_text_list(options);
  std::vector<std::string> problems;
  for (const TableFinding& finding : check.problems.list)
    problems.push_back(fs::path(finding.path).filename().string() + ": " + text_of(finding));
  EXPECT_THAT(problems,
              ElementsAre("a.csv: line 6 has 1 field, and the head has 2",
                          "a.csv: line 3 has no text: remove the row",
                          "a.csv: line 4 has no label; give every text one, or remove the row",
                          HasSubstr("v.csv: line 2 has the class 'z', which no text")));
  EXPECT_EQ(check.texts, 4);
  ASSERT_EQ(check.classes.size(), 2U);
  EXPECT_EQ(check.classes[0].name, "x");
  EXPECT_EQ(check.classes[0].texts, 3);
  EXPECT_EQ(check.classes[1].texts, 1);
  EXPECT_THAT(
      outcome_of([&] { (void)datasets::make(options); }),
      AllOf(HasSubstr("a.csv: line 6: has 1 field"),
            HasSubstr("; 3 more problems: `tare data check "), HasSubstr("name=text_list")));
}

TEST_F(TextList, SaysWhatIsWrong) {
  EXPECT_THAT(refusal("txt,label\na,b\n"),
              AllOf(HasSubstr("columns must name the column of the texts, because "),
                    HasSubstr("a.csv has no column 'text' (did you mean \"txt\"?); allowed: txt")));
  EXPECT_THAT(refusal("text,kind\na,b\n", {.label = "kin"}),
              AllOf(HasSubstr("target is no column of"), HasSubstr("did you mean \"kind\"")));
  EXPECT_THAT(refusal("text,label\na,b\n", {.label = "text"}),
              HasSubstr("target is the column of the texts too"));
  EXPECT_THAT(refusal("text,label\na,x\n,y\n"), HasSubstr("line 3: has no text: remove the row"));
  EXPECT_THAT(refusal("text,label\na,x\nb,\n"), HasSubstr("line 3: has no label"));
  EXPECT_THAT(refusal("text,label\na,x\n", {.valid_files = {write("v.csv", "text,label\nb,z\n")}}),
              AllOf(HasSubstr("v.csv: line 2"),
                    HasSubstr("the class 'z', which no text of the training has")));
  EXPECT_THAT(refusal("text,label\na,x\n", {.valid_files = {write("v.csv", "text,n\nb,z\n")}}),
              HasSubstr("is a column that not every file has"));
  EXPECT_THAT(refusal("text\na\n", {.test_files = {write("v.csv", "text,label\nb,z\n")}}),
              HasSubstr("is a column that not every file has"));
}

}  // namespace
}  // namespace tare::testing
