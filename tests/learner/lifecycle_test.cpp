// Purge and destroy to the byte, in cycles and from callbacks.
#include <gtest/gtest.h>

#include "learner/fixture.h"
#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/callback/recorder.h"
#include "tare/data/image_folder.h"
#include "tare/model/registry.h"
#include "tare/optim/torch_optimizer.h"
#include "tare/transform/image.h"

namespace tare::testing {
namespace {

int64_t weight_bytes(Model& model) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : model.state()) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

TEST(Purge, LeavesExactlyParametersAndBuffers) {
  const TempDir folder;
  const Splits data = split_points();
  const int64_t before = tracked();
  Learner learner(make_net(), data, quiet(folder));
  learner.fit_one_cycle(2);
  learner.purge();
  EXPECT_EQ(tracked() - before, weight_bytes(learner.model()));
}

TEST(Purge, ReturnsExactlyTheOptimizersBytes) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  learner.fit(1);
  Ledger optimizer;
  learner.optimizer().account(optimizer);
  const int64_t expected = optimizer.bytes()[Category::optimizer];
  ASSERT_GT(expected, 0);
  const int64_t before = tracked();
  const PurgeReport report = learner.purge();
  EXPECT_EQ(report.freed[Category::optimizer], expected);
  EXPECT_EQ(report.total(), before - tracked());
  EXPECT_EQ(report.tracked_before - report.tracked_after, report.total());
}

TEST(Purge, MeansWhatItSays) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  learner.fit(1);
  EXPECT_EQ(learner.purge(false).freed[Category::optimizer], 0);
  EXPECT_FALSE(learner.optimizer().state().empty());
  EXPECT_EQ(learner.purge({.clear_opt = false}).freed[Category::optimizer], 0);
  EXPECT_GT(learner.purge(true).freed[Category::optimizer], 0);
  EXPECT_TRUE(learner.optimizer().state().empty());
  static_assert(!std::is_invocable_v<decltype([](auto& l, int i) -> decltype(l.purge(i)) {
                                       return l.purge(i);
                                     }),
                                     Learner&, int>);
}

/// Eight pictures of 6 x 6 pixels in two classes, some of which are kept once they are decoded.
DatasetPtr kept_pictures(const TempDir& folder) {
  for (int i = 0; i < 8; ++i) {
    const auto label = folder / (i % 2 ? "dark" : "bright");
    io::make_directories(label);
    write_png(label / (std::to_string(i) + ".png"),
              torch::randint(0, 256, {1, 6, 6}).to(torch::kUInt8));
  }
  return transformed(image_folder(folder.path(), {.cache_bytes = 5 * 36}), {Normalise{{0.5}, {1}}});
}

TEST(Purge, FreesTheSamplesThatADataSetKeeps) {
  const TempDir folder, pictures;
  const DatasetPtr data = kept_pictures(pictures);
  LearnerOptions options = quiet(folder);
  options.batch = 4;
  Learner learner(models::make("mlp", {.classes = 2, .sample_shape = {1, 6, 6}}), {.train = data},
                  options);
  const auto kept = [&] {
    Ledger ledger;
    data->account(ledger);
    return ledger.bytes(c10::kCPU)[Category::batch];
  };
  learner.fit(1);
  EXPECT_EQ(kept(), 5 * 36);
  EXPECT_EQ(learner.ledger().bytes(c10::kCPU)[Category::batch], 5 * 36);
  learner.purge({.clear_cache = false});
  EXPECT_EQ(kept(), 5 * 36);
  const int64_t before = tracked();
  learner.purge();
  EXPECT_EQ(kept(), 0);
  EXPECT_LE(tracked(), before - 5 * 36);
  learner.fit(1);
  EXPECT_EQ(kept(), 5 * 36) << "they are read again";
  learner.destroy();
  EXPECT_EQ(kept(), 0) << "though the caller still holds the data set";
}

TEST(Purge, WithoutClearingGoesOnAsIfNothingHadHappened) {
  const TempDir folder;
  Learner straight(make_net(), split_points(), quiet(folder));
  torch::manual_seed(3);
  straight.fit(1);
  straight.fit(1);
  Learner purged(make_net(), split_points(), quiet(folder));
  torch::manual_seed(3);
  purged.fit(1);
  purged.purge(false);
  purged.fit(1);
  EXPECT_TRUE(torch::equal(flat(straight.model()), flat(purged.model())));
}

TEST(Purge, CompactsOnRequestAndKeepsEveryWeight) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  learner.fit(1);
  const auto before = flat(learner.model());
  const PurgeReport report = learner.purge({.compact = true});
  EXPECT_TRUE(report.compacted);
  EXPECT_TRUE(torch::equal(before, flat(learner.model())));
  learner.fit(1);
}

TEST(Destroy, ReturnsToTheCountBeforeConstruction) {
  const TempDir folder;
  const int64_t bytes = tracked(), count = blocks();
  {
    Learner learner(make_net(), split_points(), quiet(folder));
    learner.fit(1);
    const PurgeReport report = learner.destroy();
    EXPECT_GT(report.freed[Category::parameters], 0);
    EXPECT_EQ(report.held.total(), 0);
    EXPECT_EQ(tracked(), bytes);
    EXPECT_EQ(blocks(), count);
    EXPECT_EQ(learner.destroy().total(), 0) << "a second call does nothing";
    EXPECT_TRUE(learner.destroyed());
    EXPECT_THROW(learner.fit(1), StateError);
    EXPECT_THROW((void)learner.model(), StateError);
    EXPECT_THROW(learner.purge(), StateError);
    EXPECT_THROW(learner.save("x"), StateError);
  }
  EXPECT_EQ(tracked(), bytes);
}

TEST(Destroy, NamesWhatTheCallerStillHolds) {
  const TempDir folder;
  Net net = make_net();
  Learner learner(net, split_points(), quiet(folder));
  learner.fit(1);
  const PurgeReport report = learner.destroy();
  EXPECT_GT(report.held[Category::parameters], 0);
  EXPECT_EQ(report.freed[Category::parameters], 0);
  EXPECT_EQ(report.freed[Category::optimizer] > 0, true);
}

/// Keeps what it makes of the last batch, and lists its weight.
struct WeightedLoss {
  explicit WeightedLoss(bool listed) : lists(listed) {}
  torch::Tensor operator()(const torch::Tensor& output, const torch::Tensor& target) {
    last = output.detach().clone();
    return torch::nn::functional::cross_entropy(output * weight, target);
  }
  void account(Ledger& all) const {
    if (lists) all.add(Category::other, "loss.weight", weight);
  }
  bool lists;
  torch::Tensor weight = torch::ones({1}), last;
};

TEST(Destroy, NamesWhatAFunctionStillHolds) {
  const TempDir folder;
  const auto function = std::make_shared<WeightedLoss>(true);
  LearnerOptions options = quiet(folder);
  options.loss = Loss(function);
  options.metrics = {Metric("kept", std::make_shared<WeightedLoss>(false))};
  Learner learner(make_net(), split_points(), options);
  options = {};
  learner.fit(1);
  EXPECT_TRUE(learner.ledger().contains(function->weight.storage().data()));
  const PurgeReport report = learner.destroy();
  EXPECT_EQ(report.held[Category::other], report.held.total()) << "nothing else is held";
  ASSERT_EQ(report.holders.size(), 2U) << report.str();
  const auto bytes = static_cast<int64_t>(function->last.nbytes());
  EXPECT_EQ(report.holders[0].bytes, bytes) << "what the metric kept went with it";
  EXPECT_EQ(report.held.total(), bytes + 4);
  EXPECT_EQ(report.holders[1].name, "loss.weight");
  EXPECT_NE(report.str().find("; still held: " + format_bytes(bytes) + " allocated in phase "),
            std::string::npos)
      << report.str();
}

/// A loss whose account() fails.
struct UncountableLoss {
  torch::Tensor operator()(const torch::Tensor& output, const torch::Tensor& target) const {
    return torch::nn::functional::cross_entropy(output, target);
  }
  void account(Ledger&) const { throw std::runtime_error("no account"); }
};

TEST(Destroy, ReleasesEverythingWhereAnAccountFails) {
  const TempDir folder;
  const int64_t bytes = tracked();
  LearnerOptions options = quiet(folder);
  options.loss = Loss(std::make_shared<UncountableLoss>());
  Learner learner(make_net(), split_points(), options);
  options = {};
  ::testing::internal::CaptureStderr();
  EXPECT_NO_THROW(learner.destroy());
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("no account"), std::string::npos);
  EXPECT_TRUE(learner.destroyed());
  EXPECT_EQ(tracked(), bytes);
}

TEST(Destroy, DoesNotNamePredictionsAsHeld) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  learner.fit(1);
  const Predictions mine = learner.get_preds(Split::valid);
  EXPECT_EQ(learner.destroy().held.total(), 0);
}

TEST(States, CallsFromACallbackAreRefused) {
  const TempDir folder;
  Learner learner(make_net(), split_points(), quiet(folder));
  struct Meddle final : Callback {
    explicit Meddle(Learner& l) : learner(l) {}
    [[nodiscard]] std::string name() const override { return "meddle"; }
    Action after_batch(FitContext&) override {
      EXPECT_THROW(learner.fit(1), StateError);
      EXPECT_THROW(learner.purge(), StateError);
      EXPECT_THROW(learner.load("x"), StateError);
      EXPECT_THROW(learner.destroy(), StateError);
      EXPECT_THROW(learner.validate(), StateError);
      ++calls;
      return Action::stop_fit;
    }
    Learner& learner;
    int calls = 0;
  };
  auto meddle = std::make_shared<Meddle>(learner);
  learner.fit(1, {.callbacks = {meddle}});
  EXPECT_EQ(meddle->calls, 1);
  learner.purge();
}

struct Cell {
  std::string model, optimizer;
};

class Cycles : public ::testing::TestWithParam<Cell> {};

// One life: fit, purge, freeze, fit, save, load, export, destroy.
void live(const Cell& cell, const TempDir& folder, const Splits& data) {
  LearnerOptions options = quiet(folder);
  options.optimizer.kind = cell.optimizer;
  options.optimizer.lr = 1e-3;
  options.batch = 8;
  torch::manual_seed(1);
  ModelOptions model{.sample_shape = {1, 16, 16}};
  if (cell.model.starts_with("resnet")) model.width = 16;  // so that a cycle writes few bytes
  Learner learner(models::make(cell.model, model), data, options);
  learner.fit(1);
  learner.purge();
  learner.freeze();
  learner.fit(1);
  learner.save("cycle");
  learner.load("cycle");
  learner.export_to(folder / "cycle.tare", {.destroy = true});
}

TEST_P(Cycles, EndAtTheSameBytesAndBlocksTwentyTimes) {
  const TempDir folder;
  const auto images = torch::randint(0, 255, {16, 1, 16, 16}, torch::kUInt8);
  const DatasetPtr base = transformed(tensor_dataset(images, torch::arange(16) % 10), {});
  const Splits data{.train = base, .valid = base};
  live(GetParam(), folder, data);  // library caches are filled once
  const int64_t bytes = tracked(), count = blocks();
  for (int i = 0; i < 20; ++i) {
    live(GetParam(), folder, data);
    ASSERT_EQ(tracked(), bytes) << "cycle " << i;
    ASSERT_EQ(blocks(), count) << "cycle " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryModelAndOptimizer, Cycles,
                         ::testing::Values(Cell{"mlp", "sgd"}, Cell{"mlp", "adam"},
                                           Cell{"mlp", "adamw"}, Cell{"convnet", "adamw"},
                                           Cell{"resnet9", "sgd"}, Cell{"resnet9", "adamw"},
                                           Cell{"resnet18", "sgd"}, Cell{"resnet34", "sgd"}),
                         [](const auto& cell) {
                           return cell.param.model + "_" + cell.param.optimizer;
                         });

}  // namespace
}  // namespace tare::testing
