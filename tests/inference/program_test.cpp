// The program tare-predict, from outside: what it prints, its exit codes, what it links.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "inference/support.h"
#include "support/npy_file.h"
#include "support/temp_dir.h"
#include "tare/checkpoint/safetensors.h"
#include "tare/cli/predict_inputs.h"
#include "tare/inference/predictor.h"
#include "tare/transform/image.h"

namespace tare {
namespace {

using tare::testing::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Outcome {
  int code = -1;
  std::string output;  ///< standard output and error
};

Outcome run(const std::string& command) {
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  Outcome outcome;
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  for (size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    outcome.output.append(buffer, n);
  const int status = ::pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

std::string program() {
  const char* folder = std::getenv("TARE_BIN_DIR");
  return std::string(folder ? folder : ".") + "/tare-predict";
}

class PredictProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    const Model model = small_model();
    write_bundle(dir_ / "m.tare", small_manifest(model), model.state());
    write_png(dir_ / "a.png", at::full({1, 4, 4}, 100, at::kByte));
    write_png(dir_ / "b.png", at::full({1, 4, 4}, 250, at::kByte));
  }
  Outcome predict(const std::string& arguments) const {
    return run("cd '" + dir_.path().string() + "' && '" + program() + "' " + arguments);
  }
  TempDir dir_;
};

TEST_F(PredictProgram, PrintsPathClassAndProbability) {
  const Outcome outcome = predict("m.tare a.png b.png");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, ::testing::MatchesRegex(
                                  "a.png: [a-z]+ [01]\\.[0-9]+\nb.png: [a-z]+ [01]\\.[0-9]+\n"));
}

TEST_F(PredictProgram, PrintsTheMostProbableClassesAsJson) {
  const Outcome outcome = predict("m.tare --json --top=2 a.png b.png");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const auto json = nlohmann::json::parse(outcome.output);
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[1]["path"], "b.png");
  ASSERT_EQ(json[1]["predictions"].size(), 2U);
  EXPECT_GE(json[1]["predictions"][0]["probability"], json[1]["predictions"][1]["probability"]);
}

TEST_F(PredictProgram, BadInputIsOneLineAndExitCode2) {
  overwrite(dir_ / "broken.tare", "no bundle at all, but long enough");
  overwrite(dir_ / "broken.png", "no image");
  for (const char* arguments :
       {"", "m.tare", "m.tare a.png --top 0", "m.tare a.png --top", "m.tare a.png --tpo 3",
        "m.tare a.png --device tpu", "broken.tare a.png", "m.tare broken.png"}) {
    const Outcome outcome = predict(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << ": " << outcome.output;
    EXPECT_EQ(std::ranges::count(outcome.output, '\n'), 1) << arguments << ": " << outcome.output;
  }
  EXPECT_THAT(predict("m.tare broken.png").output,
              HasSubstr("header: is not that of a PNG, JPEG or WebP file"));
  EXPECT_EQ(predict("m.tare a.png --top " + std::string(5000, '1')).code, 2);
}

TEST_F(PredictProgram, FilesThatAreNotThereAreExitCode2) {
  EXPECT_EQ(predict("none.tare a.png").code, 2);
  EXPECT_EQ(predict("m.tare none.png").code, 2);
}

TEST_F(PredictProgram, GoesOnBehindAnImageThatFails) {
  const Outcome outcome = predict("m.tare none.png b.png");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output, HasSubstr("b.png: "));
}

TEST_F(PredictProgram, TakesFoldersListsAndAPictureOnStandardInput) {
  io::make_directories(dir_ / "more/below");
  write_png(dir_ / "more/d.png", at::full({1, 4, 4}, 100, at::kByte));
  write_png(dir_ / "more/below/c.PNG", at::full({3, 9, 4}, 100, at::kByte));
  overwrite(dir_ / "more/notes.txt", "no image");
  io::make_directories(dir_ / "elsewhere");
  write_png(dir_ / "elsewhere/f.png", at::full({1, 4, 4}, 100, at::kByte));
  std::filesystem::create_directory_symlink(dir_ / "elsewhere", dir_ / "more/linked");
  const std::string in_order =
      "more/below/c.PNG: [^\n]*\nmore/d.png: [^\n]*\nmore/linked/f.png: [^\n]*\n";
  EXPECT_THAT(
      predict("m.tare more").output,
      ::testing::MatchesRegex("[^\n]*1 file of more is skipped, because only .png, .jpg, .jpeg, "
                              ".webp and .npy files are read: notes.txt\n" +
                              in_order));
  const auto piped = [&](const std::string& source, const std::string& arguments) {
    return run("cd '" + dir_.path().string() + "' && " + source + " | '" + program() + "' " +
               arguments);
  };
  EXPECT_THAT(piped("find -L more -name '*.[pP]*' | sort", "m.tare -").output,
              ::testing::MatchesRegex(in_order));
  const Outcome one = piped("cat a.png", "m.tare -");
  EXPECT_EQ(one.output.substr(2), predict("m.tare a.png").output.substr(6));
  EXPECT_THAT(one.output, ::testing::StartsWith("-: "));
  io::make_directories(dir_ / "none");
  const Outcome none = predict("m.tare none");
  EXPECT_EQ(none.code, 2) << none.output;
  EXPECT_THAT(none.output, HasSubstr("there is no PNG, JPEG, WebP or .npy file in the folder"));
}

TEST_F(PredictProgram, TakesAListOfPicturesInItsOrder) {
  io::make_directories(dir_ / "data/p");
  for (const char* name : {"one", "two", "three"})
    write_png(dir_ / "data/p" / (std::string(name) + ".png"), at::full({1, 4, 4}, 100, at::kByte));
  const std::string in_order =
      "data/p/two.png: [^\n]*\ndata/p/one.png: [^\n]*\ndata/p/three.png: [^\n]*\n";
  overwrite(dir_ / "data/list.csv",
            "label,path,split\ncat,p/two.png,train\ncat,p/one.png,\ncat,p/three.png,\n");
  overwrite(dir_ / "data/list.tsv", "path\tlabel\np/two.png\tx\np/one.png\tx\np/three.png\tx\n");
  overwrite(dir_ / "data/list.jsonl",
            "{\"path\": \"p/two.png\"}\n{\"path\": \"p/one.png\"}\n{\"path\": \"p/three.png\"}\n");
  for (const char* list : {"data/list.csv", "data/list.tsv", "data/list.jsonl"}) {
    const Outcome outcome = predict(std::string("m.tare ") + list);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_THAT(outcome.output, ::testing::MatchesRegex(in_order)) << list;
  }
  overwrite(dir_ / "bad.csv", "path,label\na.png,x\n,x\nc.png,x\nb.png,x\n");
  const Outcome bad = predict("m.tare bad.csv");
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.output, AllOf(HasSubstr("a.png: "), HasSubstr("b.png: "),
                                HasSubstr("bad.csv: line 3: has no path"),
                                HasSubstr("bad.csv: line 4: names c.png, which is not there; paths "
                                          "are relative to the folder of the list")));
  overwrite(dir_ / "none.csv", "picture,label\na.png,x\n");
  EXPECT_THAT(predict("m.tare none.csv").output,
              HasSubstr("none.csv: head: has no column `path`: the model takes pictures, and a "
                        "list of them has their paths there, relative to the folder of the list; "
                        "there are picture, label"));
}

TEST_F(PredictProgram, TakesArraysInFoldersInListsAndOnStandardInput) {
  io::make_directories(dir_ / "mixed");
  write_png(dir_ / "mixed/a.png", at::full({1, 4, 4}, 100, at::kByte));
  testing::write_npy(dir_ / "mixed/b.npy", at::full({2, 1, 4, 4}, 100, at::kByte));
  testing::write_npy(dir_ / "mixed/c.npy", at::full({1, 4, 4}, 100, at::kByte));
  const std::string lines =
      "mixed/a.png: [^\n]*\nmixed/b.npy:1: [^\n]*\nmixed/b.npy:2: [^\n]*\nmixed/c.npy: [^\n]*\n";
  overwrite(dir_ / "list.csv", "path\nmixed/a.png\nmixed/b.npy\nmixed/c.npy\n");
  for (const char* input : {"mixed", "list.csv"})
    EXPECT_THAT(predict(std::string("m.tare ") + input).output, ::testing::MatchesRegex(lines));
  const auto piped = [&](const std::string& source, const std::string& arguments) {
    return run("cd '" + dir_.path().string() + "' && " + source + " | '" + program() + "' " +
               arguments);
  };
  EXPECT_THAT(predict("m.tare - < mixed/b.npy").output,
              ::testing::MatchesRegex("-:1: [^\n]*\n-:2: [^\n]*\n"));
  EXPECT_THAT(piped("cat mixed/c.npy", "m.tare -").output, ::testing::MatchesRegex("-: [^\n]*\n"));
  EXPECT_THAT(piped("head -c 90 mixed/c.npy", "m.tare -").output, HasSubstr("-: data: "));
  // A model of numbers
  const Model model =
      models::make("mlp", {.classes = 2, .sample_shape = {3}, .weights = "", .hidden = {4}});
  write_bundle(dir_ / "v.tare", {.model = *model.spec(), .sample_shape = {3}}, model.state());
  io::make_directories(dir_ / "rows");
  testing::write_npy(dir_ / "rows/x.npy", at::ones({2, 3}));
  const Outcome rows = predict("v.tare rows");
  EXPECT_THAT(rows.output, AllOf(HasSubstr("rows/x.npy:1: "), HasSubstr("rows/x.npy:2: ")));
  std::string without_folder = rows.output;
  for (const std::string path = "rows/x.npy"; without_folder.find(path) != std::string::npos;)
    without_folder.replace(without_folder.find(path), path.size(), "-");
  EXPECT_EQ(piped("cat rows/x.npy", "v.tare -").output, without_folder);
  EXPECT_THAT(piped("echo 1 2 3", "v.tare -").output, ::testing::StartsWith("-:1: "));
  io::make_directories(dir_ / "empty");
  EXPECT_THAT(predict("v.tare empty").output,
              HasSubstr("give a file with one sample a line, or a folder of .npy files"));
}

TEST_F(PredictProgram, RefusesArchivesWithWhatToSave) {
  overwrite(dir_ / "x.npz", std::string("PK\x03\x04 and so on"));
  for (const char* input : {"x.npz", "- < x.npz"}) {
    const Outcome outcome = predict(std::string("m.tare ") + input);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.output,
                HasSubstr("save the array of the samples alone, by numpy.save('x.npy', "
                          "numpy.load('x.npz')['NAME']), and give x.npy"))
        << input;
  }
}

TEST_F(PredictProgram, SaysThatATextIsEmpty) {
  const Model model = models::make("lstm", {.classes = 2});
  write_bundle(dir_ / "texts.tare",
               {.model = *model.spec(),
                .sample_shape = {8},
                .input = "int64",
                .input_name = "text",
                .more_inputs = {{.name = "lengths", .dtype = "int64"}},
                .labels = {"ham", "spam"},
                .activation = "softmax"},
               model.state());
  io::make_directories(dir_ / "mail");
  overwrite(dir_ / "mail/a.txt", "");
  EXPECT_THAT(predict("texts.tare mail").output,
              HasSubstr("'mail/a.txt' holds no sample: the file is empty"));
  EXPECT_THAT(predict("texts.tare --text mail/a.txt").output,
              HasSubstr("'mail/a.txt' holds no sample: write a text on each line"));
  EXPECT_THAT(predict("texts.tare mail/a.txt").output,
              HasSubstr("'mail/a.txt' holds no sample: write the numbers of a sample on each line, "
                        "or texts for --text"));
  EXPECT_THAT(predict("texts.tare --text - < mail/a.txt").output,
              HasSubstr("standard input holds no sample: write a text on each line"));
}

TEST_F(PredictProgram, NamesTheCommandForARecipe) {
  overwrite(dir_ / "own.yaml", "name: own\n");
  const Outcome outcome = predict("own.yaml a.png");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output,
              HasSubstr("'own.yaml' is a recipe and no bundle: `tare run own.yaml "
                        "export=NAME.tare` trains its model and writes the bundle"));
}

TEST_F(PredictProgram, TakesTextsOfAClassifierOfTexts) {
  Model model = models::make("lstm", {.classes = 2});
  const BundleManifest manifest{.model = *model.spec(),
                                .sample_shape = {8},
                                .input = "int64",
                                .input_name = "text",
                                .more_inputs = {{.name = "lengths", .dtype = "int64"}},
                                .labels = {"ham", "spam"},
                                .activation = "softmax"};
  write_bundle(dir_ / "texts.tare", manifest, model.state());
  BundleManifest aged = manifest;
  aged.more_inputs.front().name = "age";
  write_bundle(dir_ / "aged.tare", aged, model.state());
  io::make_directories(dir_ / "mail/old");
  overwrite(dir_ / "mail/a.txt", "win a prize");
  overwrite(dir_ / "mail/old/b.TXT", "lunch at noon?\nsee you");
  overwrite(dir_ / "lines", "win a prize\nlunch at noon?\n");
  const Outcome folder = predict("texts.tare mail"), lines = predict("texts.tare --text lines");
  EXPECT_EQ(folder.code, 0) << folder.output;
  EXPECT_THAT(folder.output, ::testing::MatchesRegex("mail/a.txt: (ham|spam) 0\\.[0-9]+\n"
                                                     "mail/old/b.TXT: (ham|spam) 0\\.[0-9]+\n"));
  EXPECT_EQ(lines.code, 0) << lines.output;
  const auto answer = [](const std::string& output) {
    return output.substr(output.find(": "), output.find('\n') - output.find(": "));
  };
  EXPECT_EQ(answer(lines.output), answer(folder.output)) << "of one text";
  EXPECT_THAT(predict("aged.tare --text lines").output, HasSubstr("the model takes 2 inputs"))
      << "an age is not the length of the text";
  overwrite(dir_ / "ids", "300\n");
  const Outcome no_byte = predict("texts.tare ids");
  EXPECT_EQ(no_byte.code, 2);
  EXPECT_THAT(no_byte.output,
              HasSubstr("tokens must be in [0, 256), the model's vocabulary, got 300"));
  const at::Tensor tokens = at::tensor({int64_t{'h'}, int64_t{'i'}}).view({1, 2});
  (void)checkpoint::write(dir_ / "both.safetensors",
                          {{"text", tokens}, {"lengths", at::tensor({int64_t{2}})}});
  (void)checkpoint::write(dir_ / "one.safetensors", {{"text", tokens}});
  const Outcome both = predict("texts.tare --json both.safetensors");
  ASSERT_EQ(both.code, 0) << both.output;
  EXPECT_EQ(nlohmann::json::parse(both.output).at(0).at("line"), 1);
  overwrite(dir_ / "hi", "hi\n");
  EXPECT_EQ(answer(predict("texts.tare both.safetensors").output),
            answer(predict("texts.tare --text hi").output));
  EXPECT_THAT(predict("texts.tare one.safetensors").output,
              HasSubstr("lengths: is missing; the model's inputs are: text (or input), lengths"));
  const at::Tensor lengths = at::tensor({int64_t{2}});
  (void)checkpoint::write(dir_ / "short.safetensors", {{"input", tokens}, {"lengths", lengths}});
  EXPECT_EQ(answer(predict("texts.tare short.safetensors").output),
            answer(predict("texts.tare both.safetensors").output));
  for (const int64_t length : {int64_t{0}, tokens.size(1) + 1}) {
    (void)checkpoint::write(dir_ / "long.safetensors",
                            {{"text", tokens}, {"lengths", at::tensor({length})}});
    const Outcome refused = predict("texts.tare long.safetensors");
    EXPECT_EQ(refused.code, 2) << refused.output;
    EXPECT_THAT(refused.output,
                HasSubstr("lengths: is " + std::to_string(length) + ", and a sample has " +
                          std::to_string(tokens.size(1)) + " tokens: give from 1 to"));
  }
  (void)checkpoint::write(dir_ / "other.safetensors", {{"txet", tokens}, {"lengths", lengths}});
  EXPECT_THAT(predict("texts.tare other.safetensors").output,
              HasSubstr("text: is missing; the model's inputs are: text (or input), lengths"));
  (void)checkpoint::write(dir_ / "more.safetensors",
                          {{"text", tokens}, {"input", tokens}, {"lengths", lengths}});
  EXPECT_THAT(predict("texts.tare more.safetensors").output,
              HasSubstr("input: is not an input of the model"));
}

TEST_F(PredictProgram, TakesRowsOfAnyLengthWhereTheBundleLeavesItOpen) {
  Model model =
      models::make("convnet", {.classes = 2, .sample_shape = {2, 8, 8}, .weights = "", .width = 2});
  BundleManifest manifest{.model = *model.spec(), .sample_shape = {2, 8, 8}, .any_size = {2}};
  write_bundle(dir_ / "open.tare", manifest, model.state());
  const auto row = [](int64_t numbers) {
    std::string text;
    for (int64_t i = 0; i < numbers; ++i) text += std::to_string(i % 7) + " ";
    return text + "\n";
  };
  overwrite(dir_ / "rows", row(128) + row(2 * 8 * 12) + row(130));
  const Outcome outcome = predict("open.tare rows");
  EXPECT_THAT(outcome.output, HasSubstr("rows:1: "));
  EXPECT_THAT(outcome.output, HasSubstr("rows:2: "));
  EXPECT_THAT(outcome.output, HasSubstr("line 3: has 130 numbers, which is no multiple of 16"));
  manifest.any_size = {1, 2};
  write_bundle(dir_ / "wide.tare", manifest, model.state());
  EXPECT_THAT(predict("wide.tare rows").output,
              HasSubstr("line 1: cannot say which shape it has, because 2 sizes of a sample may "
                        "vary; give a safetensors file"));
}

TEST(PredictInput, AddsTheLengthsOrTheMaskOfASequence) {
  const TempDir dir;
  const Model model = small_model();
  BundleManifest manifest{.model = *model.spec(), .sample_shape = {5, 2}, .any_size = {0}};
  overwrite(dir / "rows", "1 2 3 4 5 6\n");
  const auto read = [&](const BundleInput& second) {
    manifest.more_inputs = {second};
    write_bundle(dir / "m.tare", manifest, model.state());
    Batch seen;
    Predictor predictor(dir / "m.tare", {.forward = [&](Model&, const Batch& batch) {
                          seen = batch;
                          return Outputs(batch.input());
                        }});
    cli::predict_inputs({.predictor = predictor,
                         .on_prediction = [](const auto&, const Outputs&) {},
                         .on_failure = [](const auto&) { throw; }},
                        {(dir / "rows").string()});
    return seen;
  };
  const Batch lengths = read({.name = "lengths", .dtype = "int64"});
  EXPECT_EQ(lengths.input().sizes(), at::IntArrayRef({1, 3, 2}));
  EXPECT_TRUE(at::equal(lengths.input("lengths"), at::tensor({int64_t{3}})));
  const Batch mask = read({.name = "mask", .dtype = "bool", .sample_shape = {5}, .any_size = {0}});
  EXPECT_TRUE(at::equal(mask.input("mask"), at::ones({1, 3}, at::kBool)));
  EXPECT_THROW(read({.name = "age", .dtype = "int64"}), ConfigError) << "it is not known";
}

TEST_F(PredictProgram, CountsFailuresBehindTheFirstThree) {
  const Outcome outcome = predict("m.tare n1.png n2.png n3.png n4.png n5.png b.png");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("n3.png: No such file"), HasSubstr("b.png: "),
                                    HasSubstr("2 more samples have failed; --json lists each"),
                                    Not(HasSubstr("n4.png"))));
  const Outcome listed = predict("m.tare --json n1.png n2.png n3.png n4.png");
  EXPECT_THAT(listed.output, HasSubstr("n4.png"));
}

TEST_F(PredictProgram, TakesRowsOfFeatures) {
  Model model =
      models::make("mlp", {.classes = 2, .sample_shape = {3}, .weights = "", .hidden = {4}});
  BundleManifest manifest{.model = *model.spec(), .sample_shape = {3}, .transforms = {}};
  write_bundle(dir_ / "values.tare", manifest, model.state());
  manifest.activation = "softmax";
  manifest.labels = {"no", "yes"};
  write_bundle(dir_ / "classes.tare", manifest, model.state());
  overwrite(dir_ / "rows.csv", "width,height,depth\n1,2,3\n\n0.5, 1, 1e3\n");
  const Outcome classes = predict("classes.tare rows.csv");
  EXPECT_EQ(classes.code, 0) << classes.output;
  EXPECT_THAT(classes.output,
              ::testing::MatchesRegex(
                  "rows.csv:2: (no|yes) [01]\\.[0-9]+\nrows.csv:4: (no|yes) [01]\\.[0-9]+\n"));
  const Outcome values = predict("values.tare --json rows.csv");
  ASSERT_EQ(values.code, 0) << values.output;
  const auto json = nlohmann::json::parse(values.output);
  EXPECT_EQ(json.at(1).at("line"), 4);
  const at::Tensor row = at::tensor({1.F, 2.F, 3.F}).view({1, 3});
  EXPECT_NEAR(json.at(0).at("values").at(1).get<float>(), model.forward(row)[0][1].item<float>(),
              1e-5);
  EXPECT_THAT(predict("values.tare rows.csv").output, HasSubstr("rows.csv:2: "));
  overwrite(dir_ / "wrong.csv", "1 2 3\n1 2\n1 2 x\n1 2 3\n1 2 nan\n1 2 1e39\n");
  const Outcome wrong = predict("classes.tare --json wrong.csv");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.output, HasSubstr("line 2: has 2 numbers, the model takes 3"));
  EXPECT_THAT(wrong.output, HasSubstr("line 3: has 'x' where a number is needed"));
  EXPECT_THAT(wrong.output, HasSubstr("line 5: has 'nan', which is no finite float32 number"));
  EXPECT_THAT(wrong.output, HasSubstr("line 6: has '1e39', which is no finite float32 number"));
  EXPECT_THAT(predict("classes.tare wrong.csv").output, HasSubstr("wrong.csv:4: "));
  EXPECT_EQ(predict("classes.tare .").code, 2);
}

TEST_F(PredictProgram, TakesTokensAndText) {
  Model model = models::make("gpt", {.classes = 4,
                                     .sample_shape = {6},
                                     .weights = "",
                                     .width = 8,
                                     .layers = 1,
                                     .heads = 2,
                                     .hidden = {}});
  write_bundle(dir_ / "gpt.tare",
               {.model = *model.spec(),
                .sample_shape = {6},
                .input = "int64",
                .transforms = {},
                .labels = {"a", "b", "c", " "},
                .activation = "softmax"},
               model.state());
  overwrite(dir_ / "ids", "0 1 2\n3\n");
  overwrite(dir_ / "text", "abc\n \nabd\n");
  const auto probabilities = [](const std::string& text) { return text.substr(text.find(": ")); };
  const Outcome ids = predict("gpt.tare ids --top 4"),
                text = predict("gpt.tare --text text --top 4");
  EXPECT_EQ(ids.code, 0) << ids.output;
  EXPECT_EQ(std::ranges::count(ids.output, '\n'), 8);
  const std::string first = probabilities(ids.output.substr(0, ids.output.find('\n')));
  EXPECT_THAT(text.output, HasSubstr("text:1" + first + "\n"));
  EXPECT_EQ(text.code, 2);
  EXPECT_THAT(text.output, HasSubstr("line 3: has 'd', which is not a label of the bundle"));
  overwrite(dir_ / "ids", "0 4\n0 0 0 0 0 0 0\n");
  const Outcome wrong = predict("gpt.tare ids");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.output, HasSubstr("tokens must be in [0, 4), the model's vocabulary, got 4"));
  EXPECT_THAT(wrong.output, HasSubstr("a time of 1 to 6"));
  EXPECT_THAT(wrong.output, HasSubstr("error: ids:2: [models.gpt] "));
  std::filesystem::create_directory(dir_ / "texts");
  overwrite(dir_ / "texts/long.txt", "abc abc");
  EXPECT_THAT(predict("gpt.tare --text texts").output,
              HasSubstr("error: texts/long.txt: [models.gpt] "));
  EXPECT_EQ(predict("m.tare --text text").code, 2);
}

TEST_F(PredictProgram, HelpsWithAnExample) {
  const Outcome outcome = predict("--help");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("Example:\n  tare-predict "));
}

TEST(PredictProgramLinks, NeitherCudaNorTraining) {
  const Outcome needed = run("readelf -d '" + program() + "' | grep NEEDED");
  ASSERT_EQ(needed.code, 0) << needed.output;
  EXPECT_THAT(needed.output, HasSubstr("libtorch_cpu.so"));
  EXPECT_THAT(needed.output, ::testing::Not(HasSubstr("cuda")));
  const Outcome symbols = run("nm -C '" + program() + "'");
  ASSERT_EQ(symbols.code, 0);
  EXPECT_THAT(symbols.output, HasSubstr("tare::Predictor::"));
  for (const char* name : {"tare::Learner", "tare::Optimizer", "tare::make_optimizer",
                           "tare::Dataset", "tare::Loader", "tare::Callback"}) {
    EXPECT_EQ(symbols.output.find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace tare
