// Furcate's configurations, with the values of its README.
#include "tare/furcate/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/outcome.h"
#include "sweep/support.h"
#include "tare/base/error.h"
#include "tare/config/node.h"
#include "tare/runtime/threads.h"
#include "tare/sweep/identity.h"
#include "tare/sweep/resources.h"
#include "tare/sweep/run_name.h"

namespace tare::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

class FurcateTest : public ::testing::Test {
 protected:
  [[nodiscard]] sweep::SweepOptions read(const std::string& more) const {
    io::write_atomically(
        folder_ / "config.json",
        R"({"data_name": "example", "data_dir": "foo/", "epochs": 50)" + more + "}");
    return furcate::read_sweep(folder_ / "config.json", {"recipe=r.yaml"});
  }
  [[nodiscard]] sweep::SweepOptions program(const std::string& keys) const {
    io::write_atomically(
        folder_ / "config.json",
        R"({"data_name": "example", "data_dir": "foo/", "epochs": 50, )" + keys + "}");
    return furcate::read_program_sweep(folder_ / "config.json");
  }
  [[nodiscard]] static std::vector<std::string> names(const sweep::SweepOptions& sweep) {
    std::vector<std::string> all;
    for (const auto& cell : search::grid(sweep))
      all.push_back(sweep::run_name(sweep, static_cast<int64_t>(all.size()), cell));
    return all;
  }
  void SetUp() override { io::write_atomically(folder_ / "r.yaml", "data: {name: digits}\n"); }
  TempDir folder_;
};

TEST_F(FurcateTest, ItsFoldersAreNamedAsInTheReadme) {
  const auto sweep = read(R"(, "batch_size": [32, 64])");
  EXPECT_THAT(names(sweep), ElementsAre("example0_foo_bs32", "example1_foo_bs64"));
  EXPECT_EQ(sweep.log_dir, "logs");
  EXPECT_TRUE(sweep.origin.needs_gpu);
  EXPECT_THAT(
      names(read(R"(, "batch_size": 32, "learning_rate": [1e-05, 0.0001, 1.0, null, true])")),
      ElementsAre("example0_foo_lr1e-05", "example1_foo_lr0-0001", "example2_foo_lr1-0",
                  "example3_foo_lrNone", "example4_foo_lrTrue"));
  EXPECT_THAT(names(read(R"(, "batch_size": [32])")), ElementsAre("example0_foo_bs32"))
      << "one value varies too";
}

TEST_F(FurcateTest, AFolderThatVariesIsNamedByItsLastPart) {
  io::write_atomically(
      folder_ / "config.json",
      R"({"data_name": "e", "data_dir": ["a/x", "b/y/"], "batch_size": [1], "epochs": 2})");
  const auto sweep = furcate::read_sweep(folder_ / "config.json", {"recipe=r.yaml"});
  EXPECT_THAT(names(sweep), ElementsAre("e0_x_bs1", "e1_y_bs1"));
}

TEST_F(FurcateTest, KeepsTheDefaultsThatAFileDoesNotChange) {
  const auto sweep = program(R"("batch_size": 8, "mine": 3, "meta": {"allow_cpu": true,
      "mem_trace": {"enabled": true}}, "test_prefix": "t")");
  EXPECT_FALSE(sweep.origin.needs_gpu);
  EXPECT_EQ(sweep.resources.jobs, 1);
  std::vector<std::string> keys;
  for (const auto& entry : sweep.origin.configuration.entries) keys.push_back(entry.key);
  EXPECT_THAT(keys, ElementsAre("log_dir", "learning_rate", "verbose", "cache", "seed", "prefetch",
                                "meta", "data_name", "data_dir", "epochs", "batch_size", "mine",
                                "test_prefix", "train_prefix", "valid_prefix"));
  const auto* trace = sweep.origin.configuration.find("meta")->find("mem_trace");
  EXPECT_EQ(trace->find("enabled")->text, "true");
  EXPECT_EQ(trace->find("delay")->text, "300");
  EXPECT_TRUE(furcate::monitor_of(sweep).enabled);
  EXPECT_FALSE(furcate::monitor_of(read(R"(, "batch_size": 8)")).enabled);
  EXPECT_FALSE(furcate::monitor_of({}).enabled);
  EXPECT_EQ(sweep.origin.configuration.find("train_prefix")->text, "example.train");
  EXPECT_EQ(sweep.origin.configuration.find("test_prefix")->text, "t");
}

TEST_F(FurcateTest, ExcludesWhatMatchesAllPairs) {
  const auto sweep = read(R"(, "batch_size": [32, 64], "learning_rate": [0.0001, 0.001, 0.00001],
      "optimizer_name": ["RMSProp", "SGD", "Adadelta"], "meta": {"exclude_configs": [
      {"optimizer_name": "Adadelta", "batch_size": 32},
      {"optimizer_name": "SGD", "learning_rate": 0.001}]})");
  EXPECT_EQ(search::grid(sweep).size(), 18U - 3 - 2);
}

TEST_F(FurcateTest, ItsKeysAreThoseOfARecipe) {
  const auto sweep = read(
      R"(, "batch_size": [32], "learning_rate": 0.01, "optimizer_name": ["SGD"], "model.width": 8)");
  EXPECT_THAT(sweep::settings_of(sweep, search::grid(sweep).at(0), "n"),
              IsSupersetOf({"batch=32", "phases.0.epochs=50", "phases.0.lr=0.01",
                            R"(optimizer.kind="sgd")", "model.width=8", R"(name="n")", "seed=42"}));
}

TEST_F(FurcateTest, WhatARecipeDoesNotHaveIsRefusedAndLoaderThreadsAreItsWorkers) {
  const auto settings = [&](const std::string& more) {
    const auto sweep = read(R"(, "batch_size": [32])" + more);
    return sweep::settings_of(sweep, search::grid(sweep).at(0), "n");
  };
  EXPECT_THAT(settings(""), Not(Contains(HasSubstr("workers="))));
  EXPECT_THAT(settings(R"(, "prefetch": 3)"), Contains("workers=3"));
  EXPECT_THAT(settings(R"(, "prefetch": 3, "num_parallel_calls": 5)"),
              AllOf(Contains("workers=5"), Not(Contains("workers=3"))));
  EXPECT_THAT(settings(R"(, "num_parallel_calls": "auto")"),
              Contains("workers=" + std::to_string(runtime::usable_processors())));
  EXPECT_THAT(settings(R"(, "cache": false, "verbose": 2, "framework": "tf")"),
              ElementsAreArray(settings("")))
      << "as furcate does without them";
  for (const char* key : {R"("cache": true)", R"("verbose": 0)", R"("train_prefix": "t")",
                          R"("shuffle_buffer_size": 9)", R"("num_parallel_reads": 2)",
                          R"("cache": [true, false])", R"("gpu_id": 0)"}) {
    try {
      (void)settings(std::string(", ") + key);
      ADD_FAILURE() << key;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.field(), std::string(key).substr(1, std::string(key).find('"', 1) - 1));
      EXPECT_EQ(error.source().file, (folder_ / "config.json").string());
      EXPECT_EQ(error.source().line, 1);
    }
  }
}

TEST_F(FurcateTest, AMistakeIsReportedWithItsOwnKeyAndLine) {
  const auto message = [&](const std::string& more) -> std::string {
    try {
      (void)read(",\n" + more);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string file = "[config] " + (folder_ / "config.json").string();
  EXPECT_THAT(message(R"("batch_size": [1], "meta": {"exclude_configs": [{"no": 1}]})"),
              HasSubstr(file + ":2:56: meta.exclude_configs.0.no is not a parameter"));
  EXPECT_THAT(message(R"("batch_size": [1], "meta": {"max_threads": -7})"),
              HasSubstr(file + ":2:44: meta.max_threads must be from -1 to 4096"));
  EXPECT_THAT(message(R"("batch_size": [1], "name": ["a", "b"])"),
              HasSubstr(file + ":2:28: name cannot vary"));
  EXPECT_THAT(message(R"("batch_size": 1, "log_dir": {"a": 1})"),
              HasSubstr(file + ":2:29: log_dir must be one text"));
  EXPECT_THAT(message(R"("batch_size": [])"), HasSubstr(file + ":2:15: batch_size has no values"));
}

TEST_F(FurcateTest, ItsFolderOfDataIsTheOneThatTheDataSetReads) {
  const auto settings = [&](const std::string& recipe, const std::string& more = "") {
    io::write_atomically(folder_ / "r.yaml", recipe);
    const auto sweep = read(R"(, "batch_size": [32])" + more);
    return sweep::settings_of(sweep, search::grid(sweep).at(0), "n");
  };
  const auto is_folder = Contains(R"(data.folder="foo/")");
  EXPECT_THAT(settings("data: {name: digits}\n"), Not(is_folder));
  EXPECT_THAT(settings("model: mlp\n"), Not(is_folder));
  EXPECT_THAT(settings("data: {name: image_folder}\n"), is_folder);
  EXPECT_THAT(settings("data: text_folder\n"), is_folder);
  EXPECT_THAT(settings("data: digits\n", R"(, "data.name": "text_folder")"), is_folder);
  EXPECT_THAT(settings("data: digits\n", R"(, "data": {"name": "image_folder"})"), is_folder);
}

TEST_F(FurcateTest, FilesOfTheRecipeLieInItsFolderOfData) {
  const auto message = [&](const std::string& recipe, const std::string& more = "") {
    io::write_atomically(folder_ / "r.yaml", recipe);
    return outcome_of([&] { (void)read(R"(, "batch_size": [32])" + more); });
  };
  EXPECT_EQ(message("data: {name: tfrecord, files: [foo]}\n"), "accepted");
  EXPECT_EQ(message("data: {name: tfrecord, files: [foo/a.tfrec], test_files: [foo/t]}\n"),
            "accepted");
  EXPECT_EQ(message("data: {name: idx, images: foo/i, labels: foo/l}\n"), "accepted");
  EXPECT_EQ(message("data: {name: tfrecord, files: [bar]}\n", R"(, "data.files": ["foo"])"),
            "accepted");
  EXPECT_THAT(message("data: {name: tfrecord, files: [foo, bar/b.tfrec]}\n"),
              HasSubstr("json:1:38: data_dir is not where data.files lies, which the recipe's data "
                        "set reads, got \"foo/\"; allowed: the folder of 'bar/b.tfrec'"));
  EXPECT_THAT(message("data: {name: idx, images: foo/i, labels: foox/l}\n"),
              HasSubstr("data_dir is not where data.labels lies"));
  EXPECT_EQ(message("data: {name: csv, file: foo/t.csv, target: y}\n"), "accepted");
  EXPECT_THAT(message("data: {name: csv, file: bar/t.csv, target: y}\n"),
              HasSubstr("data_dir is not where data.file lies"));
}

TEST_F(FurcateTest, TwoKeysForOneValueAreRefused) {
  const auto message = [&](const std::string& more) {
    return outcome_of([&] { (void)read(R"(, "batch_size": [32], )" + more); });
  };
  EXPECT_THAT(message(R"("phases.0.epochs": 3)"),
              HasSubstr("phases.0.epochs and epochs both set phases.0.epochs of the recipe"));
  EXPECT_THAT(message(R"("batch": 8)"), HasSubstr("batch and batch_size both set batch"));
  EXPECT_THAT(message(R"("optimizer.kind": "adam", "optimizer_name": ["SGD"])"),
              HasSubstr("optimizer_name and optimizer.kind both set optimizer.kind"));
  EXPECT_THAT(message(R"("optimizer_name": "sgd", "optimizer": {"momentum": 0.5})"),
              HasSubstr("optimizer and optimizer_name both set optimizer of the recipe"));
  EXPECT_THAT(message(R"("workers": 2, "prefetch": 1)"), HasSubstr("both set workers"));
  EXPECT_EQ(message(R"("optimizer.momentum": 0.5, "optimizer_name": "sgd")"), "accepted");
  io::write_atomically(folder_ / "r.yaml", "data: {name: image_folder}\n");
  EXPECT_THAT(message(R"("data.folder": "x")"), HasSubstr("data_dir and data.folder both set"));
  const auto sweep = read(R"(, "batch_size": [32], "phases.0.lr": 0.5)");
  EXPECT_THAT(sweep::settings_of(sweep, search::grid(sweep).at(0), "n"),
              AllOf(Contains("phases.0.lr=0.5"), Not(Contains("phases.0.lr=0.001"))));
  EXPECT_EQ(sweep.origin.configuration.find("learning_rate"), nullptr);
}

TEST_F(FurcateTest, AKeyThatIsNotThereIsReportedWithTheNearestOfFurcateOrTheRecipe) {
  const auto message = [&](const std::string& more) {
    return outcome_of([&] { (void)read(R"(, "batch_size": [32], )" + more); });
  };
  EXPECT_THAT(message(R"("learning_ratee": 1)"),
              AllOf(HasSubstr("learning_ratee is not a key of furcate or of a recipe (did you mean "
                              "\"learning_rate\"?)"),
                    HasSubstr("batch_size")));
  EXPECT_THAT(message(R"("optimiser.kind": "sgd")"), HasSubstr("did you mean \"optimizer\"?"));
  for (const char* key : {"name", "folder"})
    EXPECT_THAT(message('"' + std::string(key) + R"(": "x")"),
                HasSubstr(std::string(key) + " has no effect, because each run has a name"));
  io::write_atomically(
      folder_ / "config.json",
      "{\"data_name\": \"e\", \"data_dir\": \"d\", \"batch_size\": [1],\n \"epochss\": 2}");
  EXPECT_THAT(
      outcome_of([&] { (void)furcate::read_sweep(folder_ / "config.json", {}); }),
      HasSubstr("config.json:2:2: epochss is not a key of furcate (did you mean \"epochs\"?), "
                "and epochs is missing"));
  std::filesystem::remove(folder_ / "r.yaml");
  EXPECT_THAT(message(R"("seed": 1, "recipe": "r.yaml")"), HasSubstr("recipe is not there"));
}

TEST_F(FurcateTest, AProgramNeedsNoRecipeAndVariesInKeysOfItsOwn) {
  const auto sweep = program(R"("batch_size": [32], "framework": "tare", "name": ["a", "b"],
      "verbose": [1, 2], "mine": {"k": [1]}, "width": 3,
      "meta": {"allow_cpu": true, "exclude_configs": [{"name": "b", "width": 3.0}]})");
  EXPECT_TRUE(sweep.origin.is_program);
  EXPECT_FALSE(read(R"(, "batch_size": [32])").origin.is_program);
  EXPECT_EQ(sweep.metric.name, "val_loss");
  EXPECT_EQ(sweep.resources.jobs, 1);
  EXPECT_THAT(names(sweep), ElementsAre("example0_foo_v1_bs32_na", "example1_foo_v2_bs32_na"));
  EXPECT_THAT(sweep::settings_of(sweep, search::grid(sweep).at(1), "n"),
              IsSupersetOf({"batch_size=32", R"(name="a")", "verbose=2", "mine={k: [1]}", "width=3",
                            "learning_rate=0.001"}));
  EXPECT_THROW((void)program(R"("batch_size": [])"), ConfigError);
  EXPECT_THROW((void)program(R"("batch_size": 1, "log_dir": ["a", "b"])"), ConfigError);
  EXPECT_THROW((void)program(R"("batch_size": 1, "a=b": 1)"), ConfigError);
  EXPECT_THROW((void)program(R"("batch_size": 1, "meta": {"exclude_configs": [{"no": 1}]})"),
               ConfigError);
}

TEST_F(FurcateTest, ARunOfAProgramIsIdentifiedByItsConfiguration) {
  const auto identities = [&](const std::string& keys) {
    const auto sweep = program(keys);
    std::vector<std::string> all;
    for (const auto& cell : search::grid(sweep)) all.push_back(sweep::Identity(sweep).of(cell));
    return all;
  };
  const auto one = identities(R"("batch_size": 32)").at(0);
  for (const char* same :
       {R"("batch_size": [32.0])", R"("batch_size": 32, "log_dir": "other", "verbose": 0)",
        R"("batch_size": 32, "gpu_id": 1, "recipe": "r.yaml", "meta": {"allow_cpu": true})",
        R"("learning_rate": 1e-3, "batch_size": 32, "width": null)"})
    EXPECT_EQ(identities(same).at(0), one) << same;
  for (const char* other : {R"("batch_size": 33)", R"("batch_size": 32, "width": 1)",
                            R"("batch_size": "32")", R"("batch_size": 32, "seed": 1)"})
    EXPECT_NE(identities(other).at(0), one) << other;
  const auto two = identities(R"("batch_size": 32, "verbose": [1, 2])");
  EXPECT_NE(two.at(0), two.at(1)) << "what varies counts";
}

TEST_F(FurcateTest, RefusesWhatItCannotDo) {
  EXPECT_THROW((void)read(""), ConfigError) << "no batch_size";
  EXPECT_THROW((void)read(R"(, "batch_size": [])"), ConfigError);
  EXPECT_THROW((void)read(R"(, "batch_size": 1, "verbose": [1, 2])"), ConfigError);
  EXPECT_THROW((void)read(R"(, "batch_size": 1, "meta": {"alow_cpu": true})"), ConfigError);
  EXPECT_THROW((void)read(R"(, "batch_size": 1, "meta": {"mem_trace": {"delay": 0}})"),
               ConfigError);
  EXPECT_THROW((void)read(R"(, "batch_size": 1, "meta": {"exclude_configs": [{"no": 1}]})"),
               ConfigError);
  io::write_atomically(folder_ / "config.json",
                       R"({"data_name": "e", "data_dir": "x", "batch_size": [1], "epochs": 2})");
  EXPECT_THROW((void)furcate::read_sweep(folder_ / "config.json", {}), ConfigError) << "no recipe";
}

}  // namespace
}  // namespace tare::testing
