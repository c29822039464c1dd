// A GAN: a generator makes digits from noise, and a critic learns to say which pictures are real.
// Each has an optimizer of its own, and a turn on every batch: first the critic, then the
// generator. A second Learner continues the fit from a checkpoint of its middle.
//
// Run: build/bin/gan_digits [BUDGET]     Expect: equal weights after the resumed fit,
// and after a purge that keeps the state of both optimizers.
#include <torch/nn.h>

#include "planned_fit.h"

namespace {

using namespace tare;

constexpr int64_t kNoise = 32, kHidden = 64, kPixels = 28 * 28, kEpochs = 4;

struct GanImpl : torch::nn::Module {
  GanImpl() {
    generator = register_module(
        "generator",
        torch::nn::Sequential(torch::nn::Linear(kNoise, kHidden), torch::nn::ReLU(),
                              torch::nn::Linear(kHidden, kPixels), torch::nn::Sigmoid()));
    critic = register_module(
        "critic", torch::nn::Sequential(torch::nn::Linear(kPixels, kHidden), torch::nn::ReLU(),
                                        torch::nn::Linear(kHidden, 1)));
  }
  /// High for pictures that look real.
  torch::Tensor forward(const torch::Tensor& pictures) {
    return critic->forward(pictures.flatten(1));
  }
  /// As many pictures as there are real ones, [n, 784].
  torch::Tensor made(const torch::Tensor& real) {
    return generator->forward(torch::randn({real.size(0), kNoise}, real.options()));
  }
  torch::nn::Sequential generator{nullptr}, critic{nullptr};
};
TORCH_MODULE(Gan);

GanImpl& gan(Model& model) { return dynamic_cast<GanImpl&>(*model.module()); }

StepResult critic_turn(Model& model, const Batch& batch) {
  GanImpl& both = gan(model);
  const torch::Tensor of_real = both.forward(batch.input()),
                      of_made = both.forward(both.made(batch.input()));
  return {torch::softplus(-of_real).mean() + torch::softplus(of_made).mean(), {}};
}

StepResult generator_turn(Model& model, const Batch& batch) {
  GanImpl& both = gan(model);
  return {torch::softplus(-both.forward(both.made(batch.input()))).mean(), {}};
}

/// Saves in the middle of the fit.
class SaveHalf final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "save_half"; }
  Action after_epoch(FitContext& context) override {
    if (context.epoch + 1 == kEpochs / 2) context.learner.save("half");
    return Action::proceed;
  }
};

LearnerOptions gan_options() {
  LearnerOptions options = options_for("gan_digits");
  options.metrics = {};
  options.batch = 512;
  options.optimizers = {{.name = "generator", .parameters = {"generator"}, .options = {.lr = 1e-3}},
                        {.name = "critic", .parameters = {"critic"}, .options = {.lr = 5e-4}}};
  options.task = {.step = critic_turn,
                  .turns = {{"critic", critic_turn}, {"generator", generator_turn}}};
  return options;
}

bool equal_weights(const Model& one, const Model& other) {
  for (size_t i = 0; i < one.parameters().size(); ++i)
    if (!torch::equal(one.parameters()[i].tensor, other.parameters()[i].tensor)) return false;
  return true;
}

}  // namespace

int main(int argc, char** argv) try {
  init();
  models::add("gan_digits", [](int64_t) { return Model(Gan()); });
  torch::manual_seed(1);
  const Splits data = split(transformed(generated_digits({.count = 4000, .style = "written"}),
                                        {Normalise{.mean = {0}, .std = {1}}}));
  LearnerOptions options = gan_options();
  options.callbacks = {std::make_shared<SaveHalf>()};
  Learner learner(models::make("gan_digits"), data, options);
  planned_fit(learner, kEpochs, 1e-3, argc, argv);
  if (argc > 1) return 0;  // the budget is for one Learner

  Learner other(models::make("gan_digits"), data, gan_options());
  other.load("half");
  other.resume();
  std::cout << "resumed to " << (equal_weights(learner.model(), other.model()) ? "equal" : "OTHER")
            << " weights\n";

  // A purge that keeps the state of both optimizers changes nothing of what follows.
  learner.purge({.clear_opt = false});
  for (Learner* one : {&learner, &other}) {
    torch::manual_seed(2);
    one->fit_one_cycle(1, {.max_lr = 1e-3});
  }
  std::cout << "purged in between, went on to "
            << (equal_weights(learner.model(), other.model()) ? "equal" : "OTHER") << " weights\n";
} catch (...) {
  return report_error(std::current_exception());
}
