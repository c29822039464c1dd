// Tables in files: reading, types of columns, and the coding that is learnt on the training split.
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/outcome.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/data/datasets.h"
#include "tare/data/row_source.h"
#include "tare/data/table_check.h"
#include "tare/data/table_columns.h"
#include "tare/transform/number_hint.h"
#include "tare/transform/row_coding.h"
#include "tare/transform/table_text.h"
#include "tare/transform/unknown_texts.h"

namespace tare::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

namespace fs = std::filesystem;

/// Four training rows and two validation rows in files of their own.
class Tables : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) const {
    io::write_atomically(folder_ / name, text);
    return folder_ / name;
  }
  [[nodiscard]] std::vector<std::string> row(const TableText& table, int64_t number) const {
    std::vector<std::string> fields;
    for (size_t i = 0; i < table.names().size(); ++i) fields.emplace_back(table.field(number, i));
    return fields;
  }
  /// The message with which a table is refused.
  [[nodiscard]] std::string refusal(const std::string& text, DataOptions options = {}) const {
    options.name = "csv";
    options.file = write("t.csv", text).string();
    if (options.target.empty() && options.targets.empty()) options.target = "y";
    try {
      (void)datasets::make(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  /// Splits of a training file and a validation file.
  [[nodiscard]] Splits splits(const std::string& train, const std::string& valid,
                              DataOptions options = {}) const {
    options.name = "csv";
    options.file = write("train.csv", train).string();
    options.valid_files = {write("valid.csv", valid).string()};
    if (options.target.empty() && options.targets.empty()) options.target = "y";
    return datasets::make(options).splits;
  }
  /// All samples in the order of the file's lines; a split has an order of its own.
  static at::Tensor inputs(const DatasetPtr& data) {
    std::vector<int64_t> all(static_cast<size_t>(data->size()));
    std::iota(all.begin(), all.end(), int64_t{0});
    std::ranges::sort(all, {}, [&](int64_t index) { return data->sample_name(index); });
    return data->get({.indices = all}).input();
  }

  TempDir folder_;
};

TEST_F(Tables, ReadQuotesLineBreaksAndBlanks) {
  const auto path = write("a.csv",
                          "\xEF\xBB\xBFname, \"a \"\"b\"\"\" ,c\r\n"
                          "\"x, y\",\" kept \",  1.5 \r\n"
                          "\r\n"
                          "\"two\nlines\",,z");
  const TableText table = read_table(path);
  EXPECT_THAT(table.names(), ElementsAre("name", "a \"b\"", "c"));
  ASSERT_EQ(table.rows(), 2);
  EXPECT_THAT(row(table, 0), ElementsAre("x, y", " kept ", "1.5"));
  EXPECT_THAT(row(table, 1), ElementsAre("two\nlines", "", "z"));
  EXPECT_EQ(table.line(0), 2);
  EXPECT_EQ(table.line(1), 4);
}

TEST_F(Tables, FindTheSeparatorOfTheHead) {
  EXPECT_THAT(row(read_table(write("a.csv", "a;b,c;d\n1;2,5;3\n")), 0),
              ElementsAre("1", "2,5", "3"));
  EXPECT_THAT(row(read_table(write("a.tsv", "a\tb\n1,0\t\n")), 0), ElementsAre("1,0", ""));
  EXPECT_THAT(row(read_table(write("a.csv", "\"a;b\",c\n1,2\n")), 0), ElementsAre("1", "2"));
  EXPECT_THAT(row(read_table(write("a.csv", "a|b\n1|2\n"), {.separator = "|"}), 0),
              ElementsAre("1", "2"));
  const TableText bare = read_table(write("a.csv", "1,2\n3,4\n"), {.header = false});
  EXPECT_THAT(bare.names(), ElementsAre("column1", "column2"));
  EXPECT_EQ(bare.rows(), 2);
  EXPECT_THROW((void)read_table(write("a.csv", "a,b\n1,2\n"), {.separator = "||"}), ConfigError);
}

TEST_F(Tables, TakeTheTwoLettersOfATabAsTheSeparator) {
  EXPECT_THAT(row(read_table(write("a.csv", "a,b\tc\n1\t2\n"), {.separator = "\\t"}), 0),
              ElementsAre("1", "2"));
}

TEST_F(Tables, SayWhichFormatAFileHas) {
  const auto problem = [&](const std::string& name, const std::string& text,
                           const TableFormat& format = {}) {
    return outcome_of([&] { (void)read_table(write(name, text), format); });
  };
  for (const char* text : {"{\"a\": 1}\n", " [\n {\"a\": 1}]", "{}"})
    EXPECT_THAT(problem("a.csv", text, {.kind = "csv"}),
                HasSubstr("a.csv: the file: holds JSON and no CSV: the data set jsonl reads it"));
  EXPECT_THAT(problem("a.csv", "{\"a\": 1}\n"), HasSubstr("its name must end in .jsonl or .json"));
  EXPECT_EQ(row(read_table(write("a.csv", "{a},[b]\n1,2\n")), 0).size(), 2U) << "names of columns";
  EXPECT_THAT(
      problem("a.jsonl", "a,b\n1,2\n"),
      HasSubstr("begins with 'a,b', which is no JSON object: the data set csv reads a table "
                "with separators, and its name must end in .csv"));
  EXPECT_THAT(problem("a.jsonl", "no\n{\"a\": 1}\n"), HasSubstr("line 1: is no JSON object"));
}

TEST_F(Tables, SayThatJsonHasNoNaN) {
  const auto problem = [&](const std::string& name, const std::string& text) {
    return outcome_of([&] { (void)read_table(write(name, text)); });
  };
  EXPECT_THAT(
      problem("a.jsonl", "{\"a\": 1}\n{\"a\": NaN}\n"),
      HasSubstr("line 2: has NaN, which JSON does not have: write null for a missing value"));
  EXPECT_THAT(problem("a.jsonl", "{\"a\": -Infinity}\n"),
              HasSubstr("line 1: has -Infinity, which"));
  EXPECT_THAT(problem("a.jsonl", "{\"\\\"NaN\": oops}\n"), HasSubstr("line 1: is no JSON object"));
  EXPECT_THAT(problem("a.json", "[{\"a\": Infinity}]"),
              HasSubstr("begins as a JSON array, but is none: it has Infinity, which JSON"));
}

TEST_F(Tables, SayThatAnArchiveIsOfNumPy) {
  const std::string head = std::string("PK\3\4") + std::string(22, '\0');
  const auto problem = [&](const std::string& bytes) {
    return outcome_of([&] { (void)read_table(write("a.npz", bytes)); });
  };
  EXPECT_THAT(problem(head + std::string("\5\0\0\0x.npy", 9)),
              HasSubstr("is an archive of arrays of NumPy: save one of them alone"));
  EXPECT_THAT(problem(head + std::string("\6\0\0\0x.xml ", 10)), HasSubstr("a workbook of Excel"));
}

TEST_F(Tables, ReadJsonLines) {
  const auto path =
      write("a.jsonl", "{\"a\": 1.5, \"b\": \"x\"}\n\n{\"b\": null, \"c\": true, \"a\": -2}\n");
  const TableText table = read_table(path);
  EXPECT_THAT(table.names(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(row(table, 0), ElementsAre("1.5", "x", ""));
  EXPECT_THAT(row(table, 1), ElementsAre("-2", "", "true"));
  EXPECT_EQ(table.line(1), 3);
}

TEST_F(Tables, ReadAJsonArrayOfObjects) {
  const std::string text = "\n [{\"a\": 1.5, \"b\": \"x,\\n]\"},\n  {\"b\": null, \"a\": -2}\n]\n";
  for (const char* name : {"a.json", "a.jsonl"}) {
    const TableText table = read_table(write(name, text));
    EXPECT_THAT(table.names(), ElementsAre("a", "b"));
    EXPECT_THAT(row(table, 0), ElementsAre("1.5", "x,\n]"));
    EXPECT_THAT(row(table, 1), ElementsAre("-2", ""));
    EXPECT_EQ(table.line(1), 2) << "the number of the object";
  }
  const auto problem = [&](const std::string& wrong) {
    return outcome_of([&] { (void)read_table(write("a.json", wrong)); });
  };
  EXPECT_THAT(problem("[{\"a\": 1},"),
              HasSubstr("begins as a JSON array, but is none: write [{...}, {...}]"));
  EXPECT_THAT(problem("[{\"a\": 1}, 7]"), HasSubstr("line 2: is no JSON object"));
  EXPECT_THAT(problem("[]"), HasSubstr("names no column"));
}

TEST_F(Tables, NameTheLineThatCannotBeRead) {
  const auto message = [&](const std::string& name, const std::string& text) -> std::string {
    try {
      (void)read_table(write(name, text));
    } catch (const FormatError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(message("a.csv", "a,b\n1,2\n1,2,3\n"),
              HasSubstr("a.csv: line 3: has 3 fields, and the head has 2"));
  EXPECT_THAT(message("a.csv", "a,b\n1,\"2\n"),
              HasSubstr("line 2: has a quote that is not closed"));
  EXPECT_THAT(message("a.csv", "a,b\n\"1\"x,2\n"), HasSubstr("line 2: has text behind the quote"));
  EXPECT_THAT(message("a.csv", "a,b\n\xE9,2\n"), HasSubstr("line 2: is no UTF-8"));
  EXPECT_THAT(message("a.csv", "a,a\n1,2\n"), HasSubstr("head: has the name 'a' twice"));
  EXPECT_THAT(message("a.csv", "a,\n1,2\n"), HasSubstr("head: has no name for column 2"));
  EXPECT_THAT(message("a.csv", "a,b\n"), HasSubstr("rows: are missing"));
  EXPECT_THAT(message("a.csv", ""), HasSubstr("head: names no column"));
  EXPECT_THAT(message("a.jsonl", "{\"a\": 1}\n[1]\n"), HasSubstr("line 2: is no JSON object"));
  EXPECT_THAT(message("a.jsonl", "{\"a\": [1]}\n"), HasSubstr("line 1: has a list or an object"));
  EXPECT_THAT(message("a.jsonl", "{\"a\": 1, \"b\": 2, \"a\": 3}\n"),
              HasSubstr("line 1: has the key 'a' twice: remove one"));
  TableFindings none;
  EXPECT_THAT(outcome_of([&] {
                (void)read_table(write("a.jsonl", "{\"a\": [1]}\n[2]\n"), TableFormat{}, &none);
              }),
              HasSubstr("line 1: has a list or an object"))
      << "not that the file is empty";
  TableFindings findings;
  const TableText rest =
      read_table(write("a.csv", "a,b\n1\n1,2\n1,2,3\n"), TableFormat{}, &findings);
  EXPECT_EQ(rest.rows(), 1);
  EXPECT_EQ(findings.count, 2);
  EXPECT_EQ(text_of(findings.list[1]), "line 4 has 3 fields, and the head has 2");
}

TEST_F(Tables, OfDeepJsonAreRefused) {
  const std::string deep(100'000, '['), end(100'000, ']');
  EXPECT_THAT(
      outcome_of([&] { (void)read_table(write("a.jsonl", "{\"a\": " + deep + end + "}\n")); }),
      HasSubstr("line 1: has a list or an object as 'a'"));
  EXPECT_THAT(
      outcome_of([&] { (void)read_table(write("a.json", "[{\"a\": " + deep + end + "}]")); }),
      HasSubstr("line 1: has a list or an object as 'a'"));
}

TEST_F(Tables, OfOneColumnKeepAnEmptyTextInQuotes) {
  const TableText table = read_table(write("a.csv", "a\nx\n\"\"\n\n y\n"));
  ASSERT_EQ(table.rows(), 3);
  EXPECT_EQ(table.field(1, 0), "");
  EXPECT_EQ(table.line(2), 5);
}

TEST(Fields, AreNumbersOrMissing) {
  EXPECT_EQ(number_of("-1.5e3"), -1500);
  EXPECT_EQ(number_of("+2"), 2);
  EXPECT_EQ(number_of("3.4e38"), 3.4e38);
  EXPECT_EQ(number_of("1e39"), std::nullopt) << "which float32 does not hold";
  for (const char* text : {"", "1x", "0x10", "inf", "nan", "1e999", "1 2"})
    EXPECT_EQ(number_of(text), std::nullopt) << text;
  for (const char* text : {"", "NA", "n/a", "NaN", "NULL", "None", "?"})
    EXPECT_TRUE(is_missing(text, {})) << text;
  EXPECT_FALSE(is_missing("-", {}));
  EXPECT_TRUE(is_missing("-", {"-"}));
}

TEST_F(Tables, LearnOnTheTrainingSplitAlone) {
  const Splits data =
      splits("n,c,y\n1,b,no\n3,a,yes\n,b,no\n5,,yes\n", "c,y,n\na,no,100\nz,yes,NA\n");
  // The median 3 takes the place of the missing number; the mean is 3, the deviation sqrt(2).
  const auto one = static_cast<float>(std::sqrt(2.0));
  EXPECT_TRUE(at::allclose(inputs(data.train),
                           at::tensor({3.F, -one, 2.F, 0.F, 3.F, 0.F, 0.F, one}).view({4, 2})));
  EXPECT_TRUE(at::allclose(inputs(data.valid), at::tensor({2.F, 97 / one, 1.F, 0.F}).view({2, 2})));
  EXPECT_TRUE(at::equal(data.valid->targets(), at::tensor({0, 1}, at::kLong)));
  EXPECT_THAT(data.train->labels(), ElementsAre("no", "yes"));
  EXPECT_EQ(data.valid->sample_name(1), "valid.csv:3");
  const RowCoding* coding = row_coding_of(*data.valid);
  ASSERT_TRUE(coding);
  EXPECT_THAT(coding->categories(), ElementsAre(4));
  EXPECT_THAT(coding->columns[0].texts, ElementsAre("a", "b"));
  EXPECT_EQ(*coding, row_coding_from(text_of(*coding)));
  EXPECT_EQ(coding->target_deviation, 0) << "which is a class";
}

TEST_F(Tables, CountTheRowsWithACategoryThatTheTrainingLacks) {
  const std::string train = "a,c,y\n1,p,1.5\n2,q,2.5\n3,p,3.5\n4,q,4.5\n";
  const auto warned = [&](const std::string& valid) {
    ::testing::internal::CaptureStderr();
    (void)splits(train, valid);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warned("a,c,y\n5,r,1.5\n6,s,2\n7,q,2.5\n"),
              HasSubstr(": 2 of the 3 rows of the validation split have a category that no row of "
                        "the training split has, in c: the model takes each as unknown"));
  EXPECT_THAT(warned("a,c,y\n5,p,1.5\n6,,2\n"), ::testing::Not(HasSubstr("a category that")));
}

TEST_F(Tables, OfASubsetKeepTheirCoding) {
  const Splits data = splits("n,y\n1,a\n2,b\n3,a\n", "n,y\n1,b\n");
  const DatasetPtr some = subset(data.train, {0, 2});
  ASSERT_TRUE(row_coding_of(*some));
  EXPECT_EQ(*row_coding_of(*some), *row_coding_of(*data.train));
}

TEST_F(Tables, AreCodedForPredictionsAsForTheTraining) {
  const std::string text = "n,c,y\n1,b,0.5\n3,a,1\n,b,2\n5,,4\n";
  const Splits data = splits(text, text);
  const RowCoding& coding = *row_coding_of(*data.train);
  const TableText table = read_table(folder_ / "train.csv");
  const RowEncoder rows(coding, table);
  EXPECT_TRUE(at::equal(rows.samples(), inputs(data.train)));
  EXPECT_TRUE(at::equal(rows.sample(2), inputs(data.train).narrow(0, 2, 1)));
  EXPECT_THAT(rows.unused(), IsEmpty());
  EXPECT_NEAR(coding.target_mean, 1.875, 1e-12);
  EXPECT_NEAR(coding.target_deviation, 1.3404756618454510, 1e-12);
  EXPECT_EQ(data.train->targets().sizes(), at::IntArrayRef({4, 1}));
  const TableText other = read_table(write("o.csv", "id,c,n\n7,q,2\n8,a,x\n"));
  const RowEncoder unlike(coding, other);
  EXPECT_THAT(unlike.unused(), ElementsAre("id"));
  EXPECT_EQ(unlike.sample(0)[0][0].item<float>(), kUnknownCode);
  try {
    (void)unlike.samples();
    ADD_FAILURE() << "accepted";
  } catch (const FormatError& error) {
    EXPECT_THAT(error.what(), HasSubstr("o.csv: line 3: has 'x' in the column 'n'"));
  }
  const TableText less = read_table(write("l.csv", "id,c\n7,q\n"));
  try {
    const RowEncoder lacks(coding, less);
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("l.csv' lacks the column n of the model"));
  }
}

TEST_F(Tables, FollowTheOptions) {
  const std::string text = "id,n,zip,y\n7,1,10,1\n8,-,20,2\n9,4,10,1\n";
  const auto coding = [&](DataOptions options) {
    return *row_coding_of(*splits(text, text, std::move(options)).train);
  };
  const RowCoding own =
      coding({.omit = {"id"}, .categories = {"zip"}, .missing_values = {"-"}, .fill = "mean"});
  ASSERT_EQ(own.columns.size(), 2U);
  EXPECT_EQ(own.columns[0].name, "zip");
  EXPECT_THAT(own.columns[0].texts, ElementsAre("10", "20"));
  EXPECT_EQ(own.columns[1].missing, 2.5);
  EXPECT_EQ(own.target_deviation, 0) << "whole numbers are classes";
  const RowCoding number = coding({.columns = {"zip"}, .numbers = {"y"}});
  EXPECT_GT(number.target_deviation, 0);
  EXPECT_EQ(number.columns.size(), 1U);
}

TEST_F(Tables, MayHaveSeveralTargets) {
  const std::string text = "n,a,b\n1,0.5,7\n3,1,-8\n2,2,9\n5,4,7\n";
  const Splits data = splits(text, text, {.targets = {"b", "a"}});
  EXPECT_TRUE(data.train->labels().empty());
  EXPECT_EQ(data.train->sample_shape(), std::vector<int64_t>{1});
  EXPECT_EQ(data.train->targets().sizes(), at::IntArrayRef({4, 2}));
  const std::vector<int64_t> second{1};
  EXPECT_TRUE(at::equal(data.valid->get({second}).target(), at::tensor({-8.F, 1.F}).view({1, 2})));
  const RowCoding& coding = *row_coding_of(*data.train);
  EXPECT_EQ(coding.target, "");
  EXPECT_THAT(coding.targets, ElementsAre("b", "a"));
  EXPECT_EQ(coding.target_deviation, 0);
  EXPECT_THAT(coding.target_means, ElementsAre(3.75, 1.875));
  ASSERT_EQ(coding.target_deviations.size(), 2U);
  EXPECT_NEAR(coding.target_deviations[0], 6.8328251, 1e-6);
  EXPECT_NEAR(coding.target_deviations[1], 1.3404757, 1e-6);
  EXPECT_EQ(coding, row_coding_from(text_of(coding)));
  const TableText table = read_table(folder_ / "train.csv");
  EXPECT_THAT(RowEncoder(coding, table).unused(), IsEmpty()) << "the targets may be there";
  const Splits labels = splits("n,a,b\n1,0,1\n3,1,1\n", "n,a,b\n1,0,0\n", {.targets = {"a", "b"}});
  EXPECT_THAT(labels.train->labels(), ElementsAre("a", "b"));
  EXPECT_THAT(row_coding_of(*labels.train)->target_means, IsEmpty()) << "which are no numbers";
  EXPECT_TRUE(at::equal(labels.valid->targets(), at::tensor({0.F, 0.F}).view({1, 2})));
  const TableCheck check = check_table(
      DataOptions{.name = "csv", .file = write("t.csv", text).string(), .targets = {"a"}});
  EXPECT_TRUE(check.columns.back().target);
  EXPECT_EQ(check.columns.back().kind, "number");
  EXPECT_THAT(check.classes, IsEmpty());
}

TEST_F(Tables, WithWrongTargetsAreRefused) {
  const std::string text = "n,a,b\n1,0.5,7\n3,1,-8\n5,2,9\n";
  EXPECT_EQ(refusal(text, {.targets = {"a", "b"}}), "accepted");
  EXPECT_THAT(refusal(text, {.targets = {"aa"}}),
              HasSubstr("targets has a name that is no column"));
  EXPECT_THAT(refusal(text, {.target = "n", .targets = {"a"}}),
              HasSubstr("targets has no place beside target"));
  EXPECT_THAT(refusal(text, {.targets = {"a", "a"}}), HasSubstr("each once"));
  EXPECT_THAT(refusal(text, {.targets = {"a"}, .omit = {"a"}}), HasSubstr("omit has the target"));
  EXPECT_THAT(refusal(text, {.targets = {"a"}, .categories = {"a"}}),
              HasSubstr("which are no categories"));
  EXPECT_THAT(refusal(text, {.targets = {"n", "a", "b"}}), HasSubstr("targets leaves no column"));
  EXPECT_THAT(refusal(text + "4,x,1\n", {.targets = {"a", "b"}}),
              HasSubstr("line 5: column 'a' has 'x', which is no finite number"));
  EXPECT_THAT(refusal(text + "4,,1\n", {.targets = {"a", "b"}}),
              HasSubstr("line 5: column 'a' is missing, and it is the target"));
  EXPECT_THAT(refusal("n,a,b\n1,2,7\n3,2,-8\n", {.targets = {"a", "b"}}),
              HasSubstr("column 'a' has one value only, 2"));
}

TEST_F(Tables, WithMistakesAreRefused) {
  EXPECT_THAT(refusal("x,y\n1,a\n2,\n"),
              HasSubstr("line 3: column 'y' is missing, and it is the target: remove the row"));
  EXPECT_THAT(refusal("x,y\n1,a\n2,b\n", {.target = "z"}), HasSubstr("target is no column of"));
  EXPECT_THAT(refusal("district,y\n1,a\n2,b\n", {.omit = {"distrit"}}),
              HasSubstr("did you mean \"district\"?"));
  EXPECT_THAT(refusal("x,y\n1,a\n2,b\n", {.columns = {"x"}, .omit = {"x"}}),
              HasSubstr("omit has no effect"));
  EXPECT_THAT(refusal("x,y\n1,a\n2,b\n", {.columns = {"y"}}), HasSubstr("columns has the target"));
  EXPECT_THAT(refusal("x,y\n1,a\n2,b\n", {.omit = {"x"}}), HasSubstr("leaves no column"));
  EXPECT_THAT(refusal("x,y\n1,a\n2,b\n", {.categories = {"x"}, .numbers = {"x"}}),
              HasSubstr("numbers has a column that categories has too"));
  EXPECT_THAT(refusal("x,y\na,a\n2,b\n", {.numbers = {"x"}}),
              HasSubstr("line 2: column 'x' has 'a', which is no finite number"));
  EXPECT_THAT(refusal("x,z,y\n1,,a\n2,,b\n"), HasSubstr("column 'z' has no value: add it to omit"));
  std::string mixed = "x,y\n";
  for (int i = 0; i < 20; ++i) mixed += std::to_string(i) + ",a\n";
  EXPECT_THAT(
      refusal(mixed + "oops,b\nno,b\n"),
      HasSubstr("line 22: column 'x' has 'oops' in a column with 20 numbers: mend the field, "
                "add its text to missing_values, or the column to categories; 1 more "
                "problem"));
  EXPECT_THAT(
      refusal("x,y\n1\n2\n"),
      HasSubstr("line 2: has 1 field, and the head has 2; 1 more problem: `tare data check"));
}

TEST_F(Tables, NameTheCommandThatListsAllProblems) {
  const std::string rows = "it's;x;y\n1;a;1\n2;b\n3;c\n";
  EXPECT_THAT(refusal(rows, {.omit = {"it's", "x y"}}), HasSubstr("has a name that is no column"));
  EXPECT_THAT(refusal(rows, {.omit = {"it's"}, .separator = ";", .train = 0.5}),
              AllOf(HasSubstr("; 2 more problems: `tare data check "),
                    HasSubstr("t.csv name=csv 'target=\"y\"' 'omit=[it'\\''s]' 'separator=;'` "
                              "lists them")));
  EXPECT_THAT(refusal(rows, {.missing_values = std::vector(100, std::string(9, 'x'))}),
              HasSubstr("; 2 more problems: `tare data check RECIPE` lists them"));
}

TEST_F(Tables, AreChecked) {
  std::string text = "id,n,y\n";
  for (int i = 0; i < 30; ++i)
    text += "r" + std::to_string(i) + ",1," + (i % 2 == 0 ? "a" : "b") + "\n";
  const TableCheck good = check_table(write("t.csv", text), "y");
  EXPECT_THAT(good.problems.list, IsEmpty());
  ASSERT_EQ(good.warnings.count, 2);
  EXPECT_THAT(text_of(good.warnings.list[0]), HasSubstr("'id' has 30 different texts"));
  EXPECT_THAT(text_of(good.warnings.list[1]), HasSubstr("'n' has one value in all rows"));
  EXPECT_THAT(good.classes, ElementsAre("a", "b"));
  EXPECT_EQ(good.rows, 30);
  std::string reviews = "review,y\n";
  for (int i = 0; i < 30; ++i)
    reviews += "film " + std::to_string(i) + (i % 2 == 0 ? ",a\n" : ",b\n");
  EXPECT_THAT(text_of(check_table(write("t.csv", reviews), "y").warnings.list.at(0)),
              HasSubstr("or classify its texts by the data set text_list"));
  EXPECT_THAT(text_of(good.warnings.list[0]), Not(HasSubstr("text_list"))) << "one word each";
  const TableCheck bad = check_table(write("t.csv", text + "x\nr,2,\n"), "y");
  ASSERT_EQ(bad.problems.count, 2);
  EXPECT_EQ(bad.problems.list[0].line, 32);
  EXPECT_EQ(bad.problems.list[1].line, 33);
}

TEST_F(Tables, HaveAnotherIdentityWhereACategoryHasAnotherText) {
  const auto content = [&](const std::string& text) {
    return datasets::make({.name = "csv", .file = write("t.csv", text).string(), .target = "y"})
        .identity.content;
  };
  const std::string text = "c,y\na,1\nb,2\na,1\nb,2\na,1\nb,2\na,1\nb,2\na,1\nb,2\n";
  std::string other = text;
  std::ranges::replace(other, 'a', 'A');
  EXPECT_EQ(content(text), content(text));
  EXPECT_NE(content(text), content(other));
}

TEST_F(Tables, WhoseTargetLosesItsSpreadInFloat32AreRefused) {
  const auto table = [](const std::string& start, const std::string& end) {
    std::string text = "x,y\n";
    for (int i = 0; i < 30; ++i)
      text += std::to_string(i) + ',' + start + std::to_string(i % 10) + end + '\n';
    return text;
  };
  EXPECT_THAT(
      refusal(table("100000000", ".25")),
      HasSubstr("column 'y' has numbers from 1000000000.25 to 1000000009.25 with a deviation "
                "of 2.87228"));
  EXPECT_THAT(
      refusal(table("100000000", ".25")),
      HasSubstr("float32 holds such numbers in steps of 64 only: subtract a constant such as "
                "1000000000 from all of them"));
  EXPECT_EQ(refusal(table("1000", ".25")), "accepted");
  const TableCheck check = check_table(write("t.csv", table("100000000", ".25")), "y");
  EXPECT_EQ(check.problems.count, 1);
}

TEST_F(Tables, OfOneTargetAreRefused) {
  EXPECT_THAT(refusal("x,y\n1,1000000000.25\n2,1000000000.25\n"),
              HasSubstr("column 'y' has one value only, 1000000000.25, from which a model learns "
                        "nothing: add rows with another value, or choose another target"));
  EXPECT_THAT(
      refusal("x,y\n1,a\n2,a\n"),
      HasSubstr("column 'y' has one class only, 'a', from which a model learns nothing: add "
                "rows of another class, or choose another target"));
}

TEST_F(Tables, WithCommasOrDatesForNumbersSayWhatIsAllowed) {
  EXPECT_THAT(
      refusal("x;y\n1,5;a\n2;b\n3,25;b\n"),
      HasSubstr("line 2: column 'x' has '1,5' and 1 more field with a comma: write numbers "
                "with a decimal point and without commas, or add the column to categories"));
  EXPECT_EQ(refusal("x;y\n1,5;a\n2;b\n3,25;b\n", {.categories = {"x"}}), "accepted");
  EXPECT_THAT(refusal("x;y\n1,5;a\n2;b\n", {.numbers = {"x"}}),
              HasSubstr("'1,5', which is no finite number: a number has a decimal point and no "
                        "comma, such as 1234.5"));
  EXPECT_THAT(refusal("x,y\n2024-01-31,a\n2,b\n", {.numbers = {"x"}}),
              HasSubstr("'2024-01-31', which is no finite number: it looks like a date"));
  const TableCheck dates = check_table(write("t.csv", "x,y\n2024-01-31,a\n2024-02-29,b\n"), "y");
  ASSERT_EQ(dates.warnings.count, 1);
  EXPECT_THAT(
      text_of(dates.warnings.list[0]),
      HasSubstr("line 2, column 'x' has '2024-01-31' and 1 more field that look like dates"));
}

TEST(Fields, LookLikeDatesAndNumbersWithCommas) {
  for (const char* date : {"2024-01-31", "31.01.2024", "1/31/24", "2024-01-31 12:00:00",
                           "2024-01-31T12:00:00Z", "2024/1/3"})
    EXPECT_EQ(number_like(date), NumberLike::date) << date;
  for (const char* number : {"1,5", "-1.234,5", "0,001", "1,000"})
    EXPECT_EQ(number_like(number), NumberLike::comma) << number;
  for (const char* other : {"", "abc", "1,", ",5", "a,b", "1-2", "12:30", "1.2.3.4"})
    EXPECT_EQ(number_like(other), NumberLike::none) << other;
}

TEST_F(Tables, ThatAreNoneAreRefusedInOneLine) {
  const auto message = [&](const std::string& text) -> std::string {
    try {
      (void)read_table(write("t.csv", text));
    } catch (const FormatError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(message("\x89PNG\r\n\x1a\n"), HasSubstr("t.csv: the file: is a PNG picture: the data "
                                                      "sets image_folder and image_list read"));
  EXPECT_THAT(message("PK\x03\x04 and more"),
              HasSubstr("is a ZIP file, such as a workbook of Excel"));
  EXPECT_THAT(message(std::string("\xFF\xFE"
                                  "a\0,\0b\0",
                                  8)),
              HasSubstr("is UTF-16: save it as"));
  EXPECT_THAT(message(std::string("a\0,\0b\0\n\0", 8)), HasSubstr("holds a zero byte"));
  EXPECT_THAT(message("a,b\r1,2\r"), HasSubstr("ends its lines with \\r alone"));
  EXPECT_EQ(message("\xEF\xBB\xBF"
                    "a,b\r\n1,2\r\n"),
            "accepted");
  EXPECT_THAT(
      refusal("a|y\n1|x\n2|z\n"),
      HasSubstr("t.csv: the table: has one column only, 'a|y': a table has the target and at "
                "least one more column"));
  EXPECT_EQ(check_table(write("t.csv", "a\n1\n2\n"), "").warnings.count, 1);
}

TEST_F(Tables, AreCheckedByTheOptionsOfTheirDataSet) {
  std::string text = "id;n;y\n";
  for (int i = 0; i < 30; ++i)
    text += std::to_string(i) + ';' + (i % 10 == 3 ? "-" : std::to_string(i)) + ';' +
            std::to_string(i % 2) + '\n';
  const auto train = write("train.csv", text),
             valid = write("valid.csv", "id;n;y\n1;oops;0\n2;no;1\n");
  const TableCheck check = check_table(DataOptions{.name = "csv",
                                                   .file = train.string(),
                                                   .target = "y",
                                                   .omit = {"id"},
                                                   .missing_values = {"-"},
                                                   .valid_files = {valid.string()}});
  ASSERT_EQ(check.columns.size(), 1U) << "the column n cannot be read, and id is omitted";
  EXPECT_EQ(check.columns[0].name, "y");
  EXPECT_TRUE(check.columns[0].target);
  EXPECT_EQ(check.columns[0].kind, "class");
  ASSERT_EQ(check.problems.count, 2) << "each bad row of the column";
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(check.problems.list[i].path, valid.string());
    EXPECT_EQ(check.problems.list[i].line, static_cast<int64_t>(2 + i));
  }
  EXPECT_EQ(check.rows, 32);
}

TEST_F(Tables, CountTheTextsThatTheTrainingDidNotHave) {
  const std::string text = "n,c,y\n1,b,no\n3,a,yes\n5,b,yes\n";
  const RowCoding coding = *row_coding_of(*splits(text, text).train);
  const TableText table = read_table(write("new.csv", "n,c\n1,q\n2,\n3,a\n4,r\n"));
  const auto unknown = unknown_texts(coding, table);
  ASSERT_EQ(unknown.size(), 1U);
  EXPECT_EQ(unknown[0].column, "c");
  EXPECT_EQ(unknown[0].fields, 2);
  EXPECT_EQ(unknown[0].first, "q");
}

}  // namespace
}  // namespace tare::testing
