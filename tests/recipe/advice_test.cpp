// Every advice of a plan is a command line that the recipe takes, and needs what the advice says.
#include <gmock/gmock.h>

#include <fstream>
#include <set>
#include <sstream>

#include "recipe/tiny.h"
#include "tare/optim/optimizer.h"
#include "tare/recipe/plan.h"

namespace tare::testing {
namespace {

using ::testing::UnorderedElementsAre;

/// An optimizer of a program, with an option of its own.
struct SlowOptions {
  double by = 1;
};
void visit_fields(auto& visit, SlowOptions& o) { visit("by", o.by, config::above(0)); }

void add_slow_adam() {
  if (optimizers::registry().contains("slow_adam")) return;
  optimizers::registry().add<SlowOptions>("slow_adam", "adam with a lower rate", [](const auto&) {
    return OptimizerKind{
        .momentum = 0.9,
        .beta2 = 0.999,
        .eps = 1e-8,
        .weight_decay = false,
        .make = [](const OptimizerOptions& o, std::vector<ParameterGroup> groups, bool tensors) {
          return make_optimizer({.kind = "adam", .lr = o.lr}, std::move(groups), tensors);
        }};
  });
}

struct AdvisedCase {
  const char* name;
  const char* optimizer;
  const char* phases;
  const char* more = "";
};
void PrintTo(const AdvisedCase& c, std::ostream* out) { *out << c.name; }

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

/// "recompute" of "phases.0.recompute=all".
std::string key_of(const std::string& change) {
  const std::string key = change.substr(0, change.find('='));
  return key.starts_with("phases.") ? key.substr(key.find('.', 7) + 1) : key;
}

class Advice : public ::testing::TestWithParam<AdvisedCase> {
 protected:
  Advice() {
    add_slow_adam();
    const AdvisedCase& c = GetParam();
    std::ofstream(file_) << "name: r\nfolder: " << folder_.path().string()
                         << "\ndevice: cpu\nworkers: 0\nbatch: 32\n"
                            "data: {name: generated_digits, size: 16, count: 200}\n"
                            "model: {name: resnet9, width: 2}\noptimizer: "
                         << c.optimizer << "\nphases: " << c.phases << '\n'
                         << c.more;
  }
  /// Takes each advice of the plan, and returns their keys.
  std::set<std::string> take_all(const std::string& device) const {
    std::set<std::string> keys;
    const RecipePlan plan = plan_recipe(read_recipe(file_), {.device = device});
    for (size_t i = 0; i < plan.phases.size(); ++i)
      for (const PlanSaving& saving : plan.phases[i].savings) {
        keys.insert(key_of(saving.change));
        expect_saving(device, i, saving);
      }
    return keys;
  }
  void expect_saving(const std::string& device, size_t phase, const PlanSaving& saving) const {
    try {
      const RecipeOptions changed = read_recipe(file_, words_of(saving.change));
      const MemoryPlan now =
          plan_recipe(changed, {.device = device, .advice = false}).phases.at(phase);
      if (saving.at_least) {
        EXPECT_GE(now.peak_bytes, saving.peak_bytes) << saving.change;
      } else {
        EXPECT_EQ(now.peak_bytes, saving.peak_bytes) << saving.change;
      }
    } catch (const Error& error) {
      ADD_FAILURE() << saving.change << ": " << error.what();
    }
  }

  TempDir folder_;
  std::filesystem::path file_ = folder_ / "r.yaml";
};

TEST_P(Advice, IsACommandLineThatNeedsWhatItSays) {
  const std::set<std::string> on_host = take_all("host"), on_card = take_all("cuda:H200");
  EXPECT_TRUE(on_host.contains("micro_batch") && on_host.contains("optimizer.kind"));
  EXPECT_THAT(on_card, UnorderedElementsAre("micro_batch", "optimizer.kind", "recompute", "offload",
                                            "precision"));
}

constexpr const char* kOne = "[{name: only}]";

INSTANTIATE_TEST_SUITE_P(
    Recipes, Advice,
    ::testing::Values(
        AdvisedCase{"Adamw", "adamw", kOne},
        AdvisedCase{"OptionsThatSgdLacks", "{kind: adam, beta2: 0.9, eps: 1.0e-6}", kOne},
        AdvisedCase{"WithoutMomentum", "{kind: adamw, momentum: 0}", kOne},
        AdvisedCase{"MomentumOfItsOwn", "{kind: adamw, momentum: 0.8}",
                    "[{name: only, schedule: constant}]"},
        AdvisedCase{"NoMomentumOption", "adagrad", kOne}, AdvisedCase{"Rmsprop", "rmsprop", kOne},
        AdvisedCase{"Nesterov", "{kind: sgd, nesterov: true}", kOne},
        AdvisedCase{"OptionsOfAProgram", "{kind: slow_adam, options: {by: 2}}", kOne},
        AdvisedCase{"MomentaOfASchedule", "adamw",
                    "[{name: only, schedule: {kind: one_cycle, one_cycle: {momentum_start: 0.9, "
                    "momentum_lowest: 0.8}}}]"},
        AdvisedCase{"SeveralPhases", "adamw", "[{name: a}, {name: b, batch: 4}]"},
        AdvisedCase{"PhasesOfTheirOwn", "adamw",
                    "[{name: a, micro_batch: 32, recompute: none, offload: none}]"}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tare::testing
