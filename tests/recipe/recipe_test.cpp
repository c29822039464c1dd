// Reading recipes, and the message for every mistake.
#include "tare/recipe/read_recipe.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/outcome.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"

namespace tare::testing {
namespace {

struct File {
  explicit File(const std::string& text) { std::ofstream(folder / "r.yaml") << text; }
  [[nodiscard]] RecipeOptions read(const std::vector<std::string>& overrides = {}) const {
    return read_recipe(folder / "r.yaml", overrides);
  }
  TempDir folder;
};

constexpr const char* kGood = R"(name: test
batch: 32
model: {name: resnet9, width: 4}
metrics: [accuracy]
phases:
  - {name: a, epochs: 2, lr: 1.0e-2, save: first}
  - {name: b, load: first, freeze_to: -1, lr: {from: 1.0e-4, to: 1.0e-2}}
)";

// The error of a recipe: its message must name the place and what would have been right.
std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return config_error_of([&] { (void)File(text).read(overrides); });
}

TEST(Recipe, ReadsPhasesAndOverrides) {
  const RecipeOptions r = File(kGood).read({"batch=256", "phases.1.epochs=5", "model.width=8"});
  EXPECT_EQ(r.batch, 256);
  EXPECT_EQ(r.phases.at(1).epochs, 5);
  EXPECT_EQ(r.model.options.width, 8);
  EXPECT_EQ(std::get<LrRange>(*r.phases.at(1).lr).from, 1e-4);
  EXPECT_EQ(r.phases.at(0).schedule.kind, "one_cycle");
}

TEST(Recipe, DumpReadsBackAsTheSame) {
  const File file(kGood);
  const RecipeOptions r = file.read();
  const auto again =
      config::read<RecipeOptions>(config::parse_text(config::to_yaml(config::to_node(r)), "dump"));
  EXPECT_EQ(again, r);
}

TEST(Recipe, ReadsWhatRecomputesAsAWordOrAListAndDumpsItBack) {
  using Names = std::vector<std::string>;
  const auto read = [](const std::string& value) {
    const RecipeOptions r = File(kGood).read({"recompute=" + value});
    const auto again =
        config::read<RecipeOptions>(config::parse_text(config::to_yaml(config::to_node(r)), "d"));
    EXPECT_EQ(again, r) << value;
    return r.learner.recompute;
  };
  EXPECT_EQ(read("none"), Names{});
  EXPECT_EQ(read("all"), Names{"all"});
  EXPECT_EQ(read("auto"), Names{"auto"});
  EXPECT_EQ(read("[layer1, prep]"), (Names{"layer1", "prep"}));
  const std::string bad = refusal(kGood, {"recompute=some"});
  EXPECT_NE(bad.find("must be all, none or a list of names; for recompute also auto"),
            std::string::npos)
      << bad;
  const std::string both = refusal(kGood, {"step_in_backward=true", "precision=fp16"});
  EXPECT_NE(both.find("nothing to unscale"), std::string::npos) << both;
  const std::string parts = refusal(kGood, {"step_in_backward=true", "micro_batch=8"});
  EXPECT_NE(parts.find("works in micro-batches"), std::string::npos) << parts;
  for (const auto& [other, why] :
       {std::pair("precision=fp16", "fixes the factor of the loss"),
        std::pair("phases.0.recompute=all", "does it twice with equal random numbers, as phase 1"),
        std::pair("stages=[cpu, cpu]", "records the step of one card")}) {
    const std::string graph = refusal(kGood, {"graph=true", other});
    EXPECT_NE(graph.find(why), std::string::npos) << graph;
  }
  const std::string precision = refusal(kGood, {"precision=fp8"});
  EXPECT_NE(precision.find("bf16-true"), std::string::npos) << precision;
}

TEST(Recipe, NamesPlaceAndRemedyOfEveryMistake) {
  const std::string good = kGood;
  const auto with = [&](const std::string& line) { return good + line + '\n'; };
  EXPECT_NE(refusal(with("batchh: 3")).find("r.yaml:8:"), std::string::npos)
      << refusal(with("batchh: 3"));
  EXPECT_NE(refusal(with("batchh: 3")).find("batch"), std::string::npos);
  EXPECT_NE(refusal(with("loss: cross_entropi")).find("cross_entropy"), std::string::npos);
  EXPECT_NE(refusal(with("loss: cross_entropi")).find("r.yaml:8:"), std::string::npos);
  EXPECT_NE(refusal(good, {"model.name=resnet99"}).find("resnet9"), std::string::npos);
  EXPECT_NE(refusal(good, {"metrics.0=acuracy"}).find("accuracy"), std::string::npos);
  const std::string twice = refusal(good, {"metrics=[f1, {f1: {average: micro}}]"});
  EXPECT_NE(twice.find("metrics.1 stands twice in the list, got f1"), std::string::npos) << twice;
  EXPECT_EQ(refusal(good, {"metrics=[f1, {f1: {average: micro, as: f1_micro}}]"}), "accepted");
  const std::string taken = refusal(good, {"metrics=[f1, {f1: {as: accuracy}}]"});
  EXPECT_NE(taken.find("metrics.1.as is the name of another figure"), std::string::npos) << taken;
  EXPECT_NE(refusal(good, {"phases.1.load=none"}).find("first"), std::string::npos);
  EXPECT_NE(refusal(good, {"phases.1.name=a"}).find("two phases"), std::string::npos);
  EXPECT_NE(refusal(good, {"phases.0.epochs=0"}).find("phases.0.epochs"), std::string::npos);
  EXPECT_NE(refusal(good, {"name=../up"}).find("name"), std::string::npos);
  EXPECT_NE(refusal("name: x\n").find("phase"), std::string::npos);
  EXPECT_NE(refusal(good, {"phases.0.lr=-1"}), "accepted");
  EXPECT_NE(refusal(good, {"optimizer.kind=adamv"}).find("adamw"), std::string::npos);
  EXPECT_NE(refusal(good, {"data.name=mnits"}).find("mnist"), std::string::npos);
  EXPECT_THROW((void)read_recipe("no/such/file.yaml"), IoError);
}

TEST(Recipe, RefusesSchedulesThatBringAnAverageToOne) {
  const std::string raised = "={beta2: {kind: piecewise, options: {points: [[0, 1], [1, 1.01]]}}}";
  const std::string message = refusal(kGood, {"phases.0.schedules" + raised});
  EXPECT_NE(message.find("phases.0.schedules.beta2 brings the value from 0.999 to 1"),
            std::string::npos)
      << message;
  EXPECT_EQ(refusal(kGood, {"phases.0.schedules" + raised, "optimizer.beta2=0.9"}), "accepted");
}

TEST(Recipe, LoadsTheCheckpointOfSaveBest) {
  const std::string load = "phases.1.load=top", best = "callbacks=[{save_best: {checkpoint: top}}]";
  EXPECT_EQ(refusal(kGood, {load, best}), "accepted");
  EXPECT_EQ(refusal(kGood, {load, "phases.0." + best}), "accepted");
  EXPECT_NE(refusal(kGood, {load, "phases.1." + best}).find("is saved by no earlier phase"),
            std::string::npos);
}

TEST(Recipe, KeysWithoutAnEffectAreRefused) {
  EXPECT_NE(refusal(kGood, {"export=a.tare", "export_tolerance=0.1"})
                .find("export_tolerance has no effect, because the weights of the bundle are not"),
            std::string::npos);
  EXPECT_EQ(refusal(kGood, {"export=a.tare", "export_tolerance=0.1", "export_weights=int8"}),
            "accepted");
  EXPECT_NE(refusal(kGood, {"phases.0.lr=fast"}).find("find; or {from: 1e-5, to: 1e-3}"),
            std::string::npos);
  EXPECT_NE(refusal(kGood, {"frozen_weights=fp8", "phases.1.freeze_to=0"})
                .find("no phase freezes layers"),
            std::string::npos);
  EXPECT_EQ(refusal(kGood, {"frozen_weights=fp8", "phases.1.freeze_to=-1"}), "accepted");
  const std::string cycle = "phases.0.schedule={one_cycle: {momentum_lowest: 0.5}}";
  EXPECT_EQ(refusal(kGood, {cycle}), "accepted");
  EXPECT_NE(
      refusal(kGood, {cycle, "optimizer={kind: rmsprop}"})
          .find("momentum_lowest has no effect, because the optimizer rmsprop has no momentum"),
      std::string::npos);
  EXPECT_NE(refusal(kGood, {"phases.0.lr=0.1", "phases.1.lr=0.1", "optimizer.lr=0.5"})
                .find("optimizer.lr has no effect, because every phase has an lr of its own"),
            std::string::npos);
  EXPECT_EQ(refusal(kGood, {"phases.0.lr=0.1", "phases.1.lr=null", "optimizer.lr=0.5"}),
            "accepted");
  const std::string decay = "optimizer.decay_norm_and_bias=true";
  EXPECT_EQ(refusal(kGood, {decay}), "accepted");
  EXPECT_NE(refusal(kGood, {decay, "optimizer.weight_decay=0"})
                .find("decay_norm_and_bias has no effect, because weight_decay is 0"),
            std::string::npos);
  EXPECT_NE(refusal(kGood, {"export_weights=fp8", "export=null"})
                .find("export_weights has no effect, because the recipe exports no bundle"),
            std::string::npos);
}

TEST(Recipe, ANameStandsForAMapping) {
  const RecipeOptions r = File(R"(model: mlp
data: generated_digits
optimizer: sgd
phases: [{data: digits, schedule: cosine}]
)")
                              .read({"optimizer.momentum=0.5", "phases.0.data.count=7"});
  EXPECT_EQ(r.model.name, "mlp");
  EXPECT_EQ(r.data.name, "generated_digits");
  EXPECT_EQ(r.learner.optimizer.kind, "sgd");
  EXPECT_EQ(r.learner.optimizer.momentum, 0.5);
  EXPECT_EQ(r.phases[0].data->name, "digits");
  EXPECT_EQ(r.phases[0].data->count, 7);
  EXPECT_EQ(r.phases[0].schedule.kind, "cosine");
  EXPECT_EQ(File(kGood).read({"optimizer=adam"}).learner.optimizer.kind, "adam");
  EXPECT_NE(refusal(kGood, {"optimizer=adamm"}).find("optimizer.kind"), std::string::npos);
}

TEST(Recipe, NullSwitchesOff) {
  const std::string with_export = std::string(kGood) + "export: a.tare\n";
  EXPECT_EQ(File(with_export).read().export_to, "a.tare");
  EXPECT_FALSE(File(with_export).read({"export=null"}).export_to);
  EXPECT_FALSE(File(with_export).read({"batch=null"}).batch);
  EXPECT_FALSE(File(with_export).read({"phases.0.lr=null"}).phases[0].lr);
  EXPECT_EQ(File(with_export).read({"model.classes=null"}).model.options.classes, 0);
}

TEST(Recipe, SizesThatNoMemoryHoldsAreRefusedWithTheirPlace) {
  const auto mlp = [](const std::string& options) {
    return refusal("model: {name: mlp, " + options + "}\nphases: [{}]\n");
  };
  EXPECT_NE(mlp("hidden: [8, 9223372036854775807]").find("r.yaml:1:32: model.hidden.1 must be"),
            std::string::npos)
      << mlp("hidden: [8, 9223372036854775807]");
  EXPECT_NE(mlp("sample_shape: [1, 9000000, 9000000]").find("model.sample_shape is too large"),
            std::string::npos);
  EXPECT_NE(mlp("classes: 99999999999").find("r.yaml:1:29: model.classes"), std::string::npos);
  for (const char* key : {"model.width=100000000", "model.width=-1"})
    EXPECT_NE(refusal(kGood, {key}).find("model.width must be"), std::string::npos) << key;
}

TEST(Recipe, OfTheTreeAllRead) {
  const std::filesystem::path root =
      std::filesystem::path(std::getenv("TARE_SOURCE_DIR")) / "recipes/configs";
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".yaml") continue;
    if (config::parse_file(entry.path()).find("recipe")) continue;  // a sweep of one
    EXPECT_NO_THROW((void)read_recipe(entry.path())) << entry.path();
    ++count;
  }
  EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace tare::testing
