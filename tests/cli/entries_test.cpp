// `tare ls` and `tare explain` name every entry of every registry with all of its options.
#include "tare/cli/entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support/program.h"
#include "support/settings.h"
#include "tare/base/familiar_names.h"
#include "tare/callback/registry.h"
#include "tare/data/collate.h"
#include "tare/data/datasets.h"
#include "tare/launch/executors.h"
#include "tare/metric/loss.h"
#include "tare/metric/metric.h"
#include "tare/model/registry.h"
#include "tare/optim/optimizer.h"
#include "tare/optim/schedule.h"
#include "tare/recipe/recipe.h"
#include "tare/recipe/recipe_keys.h"
#include "tare/search/pruners.h"
#include "tare/search/samplers.h"
#include "tare/transform/transform.h"

namespace tare::testing {
namespace {

using cli::EntryKind;
using cli::NamedEntry;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

/// Holds the words of `tare ls` with what their registries hold.
std::map<std::string, std::vector<config::EntryInfo>> registries() {
  return {{"callbacks", callbacks::registry().infos()},
          {"collates", collates::registry().infos()},
          {"datasets", datasets::registry().infos()},
          {"executors", launch::executors::registry().infos()},
          {"losses", losses::registry().infos()},
          {"metrics", metrics::registry().infos()},
          {"models", models::registry().infos()},
          {"optimizers", optimizers::registry().infos()},
          {"pruners", search::pruners::registry().infos()},
          {"samplers", search::samplers::registry().infos()},
          {"schedules", schedules::registry().infos()},
          {"transforms", transforms::registry().infos()}};
}

std::vector<std::string> options_of(const NamedEntry& entry) {
  std::vector<std::string> names;
  for (const auto& option : entry.options) names.push_back(cli::option_name(option));
  return names;
}

const NamedEntry& entry_of(const std::vector<EntryKind>& kinds, const std::string& list,
                           const std::string& name) {
  const auto kind = std::ranges::find(kinds, list, &EntryKind::list);
  return *std::ranges::find(kind->entries, name, &NamedEntry::name);
}

TEST(Entries, AreThoseOfTheRegistriesWithTheirOptions) {
  const auto kinds = cli::entry_kinds();
  const auto all = registries();
  ASSERT_EQ(kinds.size(), all.size());
  for (const auto& kind : kinds) {
    const auto& infos = all.at(kind.list);
    ASSERT_EQ(kind.entries.size(), infos.size()) << kind.list;
    for (size_t i = 0; i < infos.size(); ++i) {
      EXPECT_EQ(kind.entries[i].name, infos[i].name);
      for (const auto& option : infos[i].defaults.entries)
        EXPECT_THAT(options_of(kind.entries[i]), Contains(option.key)) << infos[i].name;
    }
  }
}

TEST(Entries, HaveTheOptionsThatTheirChecksTake) {
  const auto kinds = cli::entry_kinds();
  const auto of = [&](const char* list, const char* name) {
    return options_of(entry_of(kinds, list, name));
  };
  for (const auto& name : datasets::names())
    EXPECT_THAT(of("datasets", name.c_str()), IsSupersetOf(datasets::registry().make(name).fields));
  for (const auto& name : models::names()) {
    EXPECT_THAT(of("models", name.c_str()), IsSupersetOf(models::family(name).options));
    EXPECT_THAT(of("models", name.c_str()), Not(Contains("options"))) << "which Tare's lack";
  }
  EXPECT_THAT(of("optimizers", "sgd"),
              ElementsAre("lr", "weight_decay", "momentum", "nesterov", "decay_norm_and_bias"));
  EXPECT_THAT(of("optimizers", "adagrad"),
              ElementsAre("lr", "weight_decay", "eps", "decay_norm_and_bias"));
  EXPECT_THAT(of("schedules", "constant"), ElementsAre("warmup"));
  EXPECT_THAT(of("schedules", "exponential"), ElementsAre("warmup", "final_factor"));
  EXPECT_THAT(of("schedules", "one_cycle"), Contains("pct_start"));
}

TEST(Entries, SayWhatEachOptionMeansAndTakes) {
  for (const auto& kind : cli::entry_kinds())
    for (const auto& entry : kind.entries)
      for (const auto& option : entry.options) {
        EXPECT_EQ(option.path, kind.key + '.' + entry.name + '.' + cli::option_name(option));
        EXPECT_NE(option.meaning, "") << option.path;
        EXPECT_NE(option.type, "") << option.path;
      }
}

// One form for all: what the entry does, in the third person.
TEST(Entries, BeginTheirTextsWithAVerb) {
  const std::set<std::string> verbs{
      "adds",     "applies",  "averages", "changes", "classifies", "computes",  "cuts",
      "divides",  "does",     "draws",    "ends",    "erases",     "follows",   "keeps",
      "lets",     "lowers",   "mirrors",  "moves",   "multiplies", "pads",      "pauses",
      "predicts", "puts",     "raises",   "reads",   "resizes",    "rotates",   "saves",
      "scales",   "segments", "stacks",   "starts",  "steps",      "subtracts", "takes",
      "tries",    "warns",    "writes"};
  for (const auto& kind : cli::entry_kinds())
    for (const auto& entry : kind.entries) {
      EXPECT_THAT(verbs, Contains(entry.summary.substr(0, entry.summary.find(' '))))
          << kind.list << ' ' << entry.name;
      EXPECT_FALSE(entry.summary.ends_with('.')) << entry.name;
    }
}

TEST(Entries, TheirExamplesAreTakenAndGiveAnotherValueThanTheDefault) {
  const auto recipe =
      config::parse_text("model: {name: resnet9}\nphases: [{name: a}, {name: b}]\n", "recipe");
  const auto dump = [&](const std::string& example) {
    const auto root = with_settings(recipe, example);
    return config::to_yaml(config::to_node(config::read<RecipeOptions>(root)));
  };
  int examples = 0;
  for (const auto& kind : cli::entry_kinds())
    for (const auto& entry : kind.entries)
      for (const auto& option : entry.options) {
        if (option.example.empty()) continue;
        ++examples;
        const std::string set = cli::option_name(option) + ": ", own = '{' + entry.name + ": {";
        std::string without = option.example;
        if (const size_t at = without.find(own); at != std::string::npos)
          without.replace(at + own.size(), without.find('}', at) - at - own.size(), "");
        if (without == option.example) without = "seed=42";  // the key of a recipe
        EXPECT_NE(dump(option.example), dump(without)) << option.path;
        EXPECT_FALSE(option.example.ends_with('=' + option.default_value)) << option.path;
        EXPECT_THAT(option.example, Not(HasSubstr(set + option.default_value + '}')))
            << option.path;
      }
  EXPECT_GT(examples, 200);
}

TEST(Entries, OptionsThatTurnSomethingOnAreOnInTheirExamples) {
  const auto text = [](const char* path) { return *cli::entry_explanation(path, 200); };
  EXPECT_THAT(text("callbacks.throughput.flops"), HasSubstr("{throughput: {flops: true}}"));
  EXPECT_THAT(text("schedule.linear.warmup"), HasSubstr("{kind: linear, warmup: 0.1}"));
}

TEST(RecipeKeys, SayWhatTheyTakeBesideWords) {
  EXPECT_EQ(allowed_text(recipe_key("device")), "auto, cpu, cuda, or cuda:N");
  EXPECT_EQ(allowed_text(recipe_key("micro_batch")), "auto, or a number >= 1");
  EXPECT_EQ(allowed_text(recipe_key("recompute")), "none, all, auto, or a list of blocks");
  EXPECT_EQ(allowed_text(recipe_key("phases.lr")), "find, or a number > 0");
  EXPECT_EQ(allowed_text(recipe_key("batch")), "must be >= 1");
}

TEST(Entries, AreAllListed) {
  for (const auto& kind : cli::entry_kinds()) {
    const auto list = run_program("tare", {"ls", kind.list});
    ASSERT_EQ(list.status, 0) << list.err;
    for (const auto& entry : kind.entries) {
      EXPECT_THAT('\n' + list.out, HasSubstr('\n' + entry.name + ' ')) << kind.list;
      EXPECT_THAT(list.out, HasSubstr(entry.summary));
      for (const auto& option : entry.options) {
        EXPECT_THAT(list.out, HasSubstr("\n  " + cli::option_name(option))) << option.path;
        EXPECT_THAT(list.out, HasSubstr(option.meaning)) << option.path;
      }
    }
  }
}

TEST(Entries, AreAllExplained) {
  std::vector<std::string> words{"explain"};
  for (const auto& kind : cli::entry_kinds())
    for (const auto& entry : kind.entries) {
      words.push_back(kind.key + '.' + entry.name);
      for (const auto& option : entry.options) words.push_back(option.path);
    }
  const auto explained = run_program("tare", words);
  ASSERT_EQ(explained.status, 0) << explained.err;
  for (size_t i = 1; i < words.size(); ++i)
    EXPECT_THAT('\n' + explained.out, HasSubstr('\n' + words[i] + '\n'));
}

TEST(Entries, AreExplainedWithTypeDefaultAndAllowedValues) {
  const auto text = [](const char* path) { return *cli::entry_explanation(path, 80); };
  EXPECT_EQ(text("loss.cross_entropy.label_smoothing"),
            "loss.cross_entropy.label_smoothing\n"
            "  meaning  share of each target that is spread evenly over all classes\n"
            "  type     a number\n"
            "  default  0\n"
            "  allowed  must be from 0 to 1\n"
            "  example  tare run RECIPE 'loss={cross_entropy: {label_smoothing: 0.1}}'\n");
  EXPECT_THAT(text("loss.cross_entropy.class_weights"),
              HasSubstr("type     balanced or a list of numbers\n"));
  EXPECT_THAT(text("callbacks.early_stopping.patience"), HasSubstr("must be >= 0"));
  EXPECT_THAT(text("model.resnet9.width"), HasSubstr("channels of the first stage"));
  EXPECT_THAT(text("model.resnet9.classes"), HasSubstr("default  auto"));
  EXPECT_THAT(text("optimizer.adadelta.beta2"), HasSubstr("default  0.9\n"));
  EXPECT_THAT(text("transforms.resize.height"), Not(HasSubstr("default"))) << "it must be given";
  EXPECT_THAT(text("transforms.shift.padding"), HasSubstr("allowed  zero, edge\n"));
  EXPECT_THAT(text("pruner.hyperband.reduction_factor"), HasSubstr("default  3\n"));
}

TEST(Entries, AreFoundByTheirPathInARecipeAndByTheWordOfTheList) {
  const auto text = [](const char* path) { return cli::entry_explanation(path, 80); };
  EXPECT_EQ(text("models.resnet9.width"), text("model.resnet9.width"));
  EXPECT_EQ(text("data.transforms.flip.probability"), text("transforms.flip.probability"));
  EXPECT_EQ(text("phases.0.schedule.cosine.warmup"), text("schedule.cosine.warmup"));
  EXPECT_EQ(text("phases.0.data.collate.pad.with"), text("collate.pad.with"));
  EXPECT_THAT(*text("samplers.tpe"), HasSubstr("method.tpe.candidates\n"));
  EXPECT_FALSE(text("batch").has_value());
  EXPECT_FALSE(text("model.widht").has_value());
}

TEST(Entries, AreExplainedByTheirNameAlone) {
  const auto text = [](const char* path) { return cli::entry_explanation(path, 80); };
  EXPECT_EQ(text("lstm"), text("model.lstm"));
  EXPECT_EQ(text("asha"), text("pruner.asha"));
  EXPECT_EQ(text("cosine"), text("schedule.cosine"));
  EXPECT_FALSE(text("batchh").has_value()) << "a key is nearer";
}

TEST(RecipeKeys, TypesNameAMappingWhereANumberIsNotAll) {
  EXPECT_EQ(recipe_key("phases.lr").type, "a number, or a mapping of from, to, find");
  EXPECT_EQ(recipe_key("phases.lr.from").type, "a number");
}

TEST(Entries, KeysOfASweepAreExplainedToo) {
  EXPECT_THAT(*cli::entry_explanation("trials", 80),
              StartsWith("trials (of a sweep)\n  meaning  runs at most"));
  EXPECT_THAT(*cli::entry_explanation("pruner.min_resource", 200), HasSubstr("default  auto\n"));
  EXPECT_THROW((void)cli::entry_explanation("trails", 80), ConfigError) << "trials is nearer";
  EXPECT_THAT(*cli::entry_explanation("on_failure", 80),
              AllOf(HasSubstr("on_failure.max_retries (of a sweep)"), HasSubstr("max_failed")));
  EXPECT_THAT(*cli::entry_explanation("pruner", 80), HasSubstr("pruner.type (of a sweep)"));
  EXPECT_THAT(*cli::entry_explanation("method", 80), HasSubstr("method (of a sweep)"));
  EXPECT_THAT(*cli::entry_explanation("metric.goal", 80), HasSubstr("goal: minimize"));
  EXPECT_THAT(*cli::sweep_key_explanation("seed", 80), HasSubstr("seed of the draws"));
}

TEST(Entries, OfTextsTakeNoOptionsOfImages) {
  const auto kinds = cli::entry_kinds();
  const auto of = [&](const char* name) { return options_of(entry_of(kinds, "datasets", name)); };
  for (const char* option : {"size", "fit", "transforms"}) {
    EXPECT_THAT(of("text_folder"), Not(Contains(option)));
    EXPECT_THAT(of("generated_texts"), Not(Contains(option)));
    EXPECT_THAT(of("image_folder"), Contains(option));
    EXPECT_THAT(of("tfrecord"), Contains(option));
  }
}

// A text such as "gpt: number of blocks; lstm: number of layers; 0: the family's" is for both.
TEST(Entries, AreExplainedByTheirOwnPartOfAText) {
  const auto text = [](const char* path) { return *cli::entry_explanation(path, 200); };
  EXPECT_THAT(text("model.gpt.layers"), HasSubstr("meaning  number of blocks; 0: the family's\n"));
  EXPECT_THAT(text("model.lstm.layers"), HasSubstr("meaning  number of layers; 0: the family's\n"));
  EXPECT_THAT(text("data.image_folder.folder"), HasSubstr("meaning  the folder, with one"));
  EXPECT_THAT(text("optimizer.adamw.weight_decay"), HasSubstr("meaning  decoupled, times lr\n"));
  EXPECT_THAT(text("optimizer.sgd.weight_decay"), HasSubstr("meaning  added to the gradient\n"));
  EXPECT_THAT(text("optimizer.adam.momentum"), HasSubstr("meaning  beta1\n"));
  EXPECT_THAT(text("pruner.asha.min_resource"), HasSubstr("auto or a number of epochs"));
}

TEST(Entries, TheirTextsStandAlone) {
  std::vector<RecipeKey> all = recipe_keys();
  for (const auto& kind : cli::entry_kinds())
    for (const auto& entry : kind.entries)
      all.insert(all.end(), entry.options.begin(), entry.options.end());
  for (const auto& key : all)
    for (const char* place : {"see below", "stand below", "see above", "stand above"})
      EXPECT_THAT(key.meaning, Not(HasSubstr(place))) << key.path;
}

struct LengthOptions {
  int64_t length = 3;
};
void visit_fields(auto& visit, LengthOptions& o) { visit("length", o.length); }

// A recipe sets the fields of DataOptions only.
TEST(Entries, DataOfAProgramHaveEachOptionOnceAndNoTextOfOthers) {
  datasets::registry().add<LengthOptions>("series", "draws series", [](const LengthOptions&) {
    return datasets::Kind{.fields = {"length", "folder", "collate"}, .images = false};
  });
  EXPECT_THAT(options_of(entry_of(cli::entry_kinds(), "datasets", "series")),
              ElementsAre("length", "folder", "collate", "count", "seed", "train", "valid", "test",
                          "folds", "fold", "stratify"));
  const std::string text = *cli::entry_explanation("data.series", 80);
  EXPECT_THAT(text, Not(HasSubstr("text_folder: ")));
  EXPECT_THAT(text, Not(HasSubstr("image_folder")));
  EXPECT_THAT(text, HasSubstr("data.series.folder\n  type     text\n"));
}

struct DepthOptions {
  int64_t depth = 3;
};
void visit_fields(auto& visit, DepthOptions& o) { visit("depth", o.depth, config::between(1, 9)); }

// The last test, because an entry stays in its registry.
TEST(Entries, OfAProgramAreExplainedWithOptionsOfTheirOwn) {
  models::registry().add<DepthOptions>("unet", "segments images", [](const DepthOptions&) {
    return models::Family{.name = "unet", .options = {"width"}};
  });
  EXPECT_THAT(options_of(entry_of(cli::entry_kinds(), "models", "unet")),
              ElementsAre("classes", "sample_shape", "weights", "rename", "width", "depth"));
  EXPECT_EQ(*cli::entry_explanation("model.unet.depth", 80),
            "model.unet.depth\n"
            "  type     a whole number\n"
            "  default  3\n"
            "  allowed  must be from 1 to 9\n");
  EXPECT_EQ(cli::entry_explanation("model.options.depth", 80),
            cli::entry_explanation("model.unet.depth", 80));
  EXPECT_THROW((void)cli::entry_explanation("model.options.dept", 80), ConfigError);
}

TEST(Explain, AnOptionByItsNameAlone) {
  const auto explained = run_program("tare", {"explain", "patience"});
  ASSERT_EQ(explained.status, 0) << explained.err;
  for (const char* path :
       {"callbacks.early_stopping.patience\n", "callbacks.reduce_on_plateau.patience\n"})
    EXPECT_THAT(explained.out, HasSubstr(path));
}

TEST(Familiar, NamesOfOtherLibrariesLeadToKeysThatThereAre) {
  std::vector<std::string> keys;
  for (const auto& key : recipe_keys()) keys.push_back(key.path);
  for (const auto& [name, here] : std::vector<std::pair<const char*, const char*>>{
           {"batch_size", "batch"},
           {"bs", "batch"},
           {"learning_rate", "phases.N.lr"},
           {"max_epochs", "phases.N.epochs"},
           {"max_steps", "phases.N.duration.steps"},
           {"num_workers", "workers"},
           {"accumulate_grad_batches", "micro_batch"},
           {"gradient_clip_val", "clip.norm"},
           {"limit_val_batches", "limit.valid_batches"},
           {"val_check_interval", "valid_every"},
           {"validation_split", "data.valid"},
           {"lr_scheduler", "phases.N.schedule"},
           {"warmup-steps", "phases.N.schedule.warmup"},
           {"restore_best_weights", "phases.N.best"},
           {"wd", "optimizer.weight_decay"},
           {"beta_1", "optimizer.momentum"},
           {"num_classes", "model.classes"},
           {"batch_tfms", "data.transforms"},
           {"loss_fn", "loss"},
           {"random_state", "seed"},
           {"weight_decay", "optimizer.weight_decay"},
           {"dropout", "model.dropout"},
           {"clip_grad_norm", "clip.norm"},
           {"test_size", "data.test"},
           {"sep", "data.separator"}})
    EXPECT_EQ(familiar(name, keys), here) << name;
  EXPECT_EQ(familiar("batch", keys), "") << "the name that Tare has, too";
  EXPECT_EQ(familiar("anything", keys), "");
}

TEST(Familiar, NamesOfOtherLibrariesLeadToOptionsOfEntries) {
  for (const auto& [name, here] : std::vector<std::pair<const char*, const char*>>{
           {"class_weights", "loss.cross_entropy.class_weights"},
           {"label_smoothing", "loss.cross_entropy.label_smoothing"},
           {"pos_weight", "loss.bce_with_logits.positive_weight"},
           {"patience", "callbacks.early_stopping.patience"},
           {"ema", "callbacks.ema"},
           {"mixup", "callbacks.mixup"},
           {"tensorboard", "callbacks.tensorboard"},
           {"swa", "callbacks.swa"}}) {
    EXPECT_EQ(familiar_key(name), here);
    EXPECT_TRUE(cli::entry_explanation(here, 80)) << here;
  }
}

TEST(Familiar, NotesSayWhatANameCountsHere) {
  EXPECT_THAT(familiar_note("gradient-accumulation-steps"),
              HasSubstr("batches of 8 that are accumulated 4 times are batch: 32 with micro_batch: "
                        "8"));
  EXPECT_EQ(familiar_note("batch"), "");
}

}  // namespace
}  // namespace tare::testing
