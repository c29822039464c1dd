// Wall time on a card, each against the same by hand, which a good user of LibTorch would write: a
// step that only launches kernels (MLP 64-128-10, batch 32), tokens of a GPT in bfloat16, and the
// release of memory.
//
// Run: build/bin/bench_card [rounds [steps of the GPT]]
//      build/bin/bench_card --learner [steps of the GPT]
// The second prints the milliseconds of the Learner alone, which bench_card.py compares with
// Python's.
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <tare/model/precision.h>
#include <tare/tare.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "bench/paired.h"

namespace {

using namespace tare;

const c10::Device kCard(c10::kCUDA, 0);
constexpr int64_t kVocabulary = 512, kContext = 256, kGptBatch = 16;

/// Holds a model and the data that it is trained on.
struct Subject {
  std::function<Model()> model;
  DatasetPtr data;
  int64_t batch = 0;
  bool in_bfloat16 = false, adamw = false;
};

Subject small_mlp(int64_t steps) {
  constexpr int64_t kBatch = 32;
  return {.model = [] { return models::make("mlp", {.sample_shape = {64}, .hidden = {128}}); },
          .data = tensor_dataset(torch::rand({steps * kBatch, 64}),
                                 torch::randint(10, {steps * kBatch})),
          .batch = kBatch};
}

Subject gpt(int64_t steps) {
  const auto tokens = torch::randint(kVocabulary, {steps * kGptBatch, kContext});
  return {.model =
              [] {
                return models::make("gpt", {.classes = kVocabulary,
                                            .sample_shape = {kContext},
                                            .width = 256,
                                            .layers = 4,
                                            .heads = 8});
              },
          .data = tensor_dataset(tokens, tokens.roll(-1, 1)),
          .batch = kGptBatch,
          .in_bfloat16 = true,
          .adamw = true};
}

/// Trains one epoch by hand: batches from pinned memory, fused steps, and one wait at the end.
double by_hand(const Subject& subject) {
  Model model = subject.model();
  model.to(kCard);
  std::vector<at::Tensor> parameters, first, second, steps, gradients;
  for (const auto& p : model.parameters()) {
    parameters.push_back(p.tensor);
    first.push_back(torch::zeros_like(p.tensor));
    second.push_back(torch::zeros_like(p.tensor));
    steps.push_back(torch::zeros({}, kCard));
  }
  Loader loader(subject.data,
                {.batch = subject.batch, .shuffle = true, .workers = 1, .pinned = true});
  loader.start(0);
  return bench::seconds([&] {
    at::Tensor sum = torch::zeros({}, kCard);
    bool is_first = true;
    for (Batch batch; loader.next(batch);) {
      const auto inputs = batch.input().to(kCard, true), targets = batch.target().to(kCard, true);
      at::Tensor loss;
      {
        const AutocastScope autocast(
            autocast_for(subject.in_bfloat16 ? Precision::bf16 : Precision::fp32, c10::kCUDA));
        loss = torch::cross_entropy_loss(model.forward(inputs).to(torch::kFloat), targets);
      }
      loss.backward();
      gradients.clear();
      for (const auto& p : parameters) gradients.push_back(p.grad());
      if (subject.adamw) {
        torch::_foreach_add_(steps, 1);
        at::_fused_adamw_(parameters, gradients, first, second, {}, steps, 1e-3, 0.9, 0.999, 0.01,
                          1e-8, false, false);
      } else {
        at::_fused_sgd_(parameters, gradients, first, 0.0, 0.9, 0.05, 0.0, false, false, is_first);
      }
      is_first = false;
      for (const auto& p : parameters) p.mutable_grad().reset();
      sum.add_(loss.detach());
    }
    if (!std::isfinite(sum.item<double>())) std::puts("the loss is not finite");
  });
}

LearnerOptions options_of(const Subject& subject) {
  LearnerOptions o;
  o.device = kCard.str();
  o.batch = subject.batch;
  o.progress = false;
  o.stop_on_nan = false;
  if (subject.in_bfloat16) o.precision = "bf16";
  o.optimizer = {.kind = "sgd", .lr = 0.05, .weight_decay = 0, .momentum = 0.9};
  if (subject.adamw) o.optimizer = {.kind = "adamw", .lr = 1e-3};
  return o;
}

double by_learner(const Subject& subject, bool graph = false) {
  LearnerOptions options = options_of(subject);
  options.graph = graph;
  Learner learner(subject.model(), {.train = subject.data}, options);
  return bench::seconds([&] { learner.fit(1); });
}

/// Frees by hand what a fit with AdamW leaves: weights, gradients and two states.
double release_by_hand(const Subject& subject) {
  auto model = std::make_unique<Model>(subject.model());
  model->to(kCard);
  std::vector<at::Tensor> state;
  for (const auto& p : model->parameters()) {
    p.tensor.mutable_grad() = torch::ones_like(p.tensor);
    for (int i = 0; i < 2; ++i) state.push_back(torch::ones_like(p.tensor));
  }
  return bench::seconds([&] {
    state.clear();
    model.reset();
    memory::backend(kCard).reclaim();
  });
}

double release_by_learner(const Subject& subject) {
  Learner learner(subject.model(), {.train = subject.data}, options_of(subject));
  learner.fit(1);
  return bench::seconds([&] { learner.destroy(); });
}

void compare(int rounds, const char* what, const Subject& subject) {
  const std::string control = std::string(what) + ", by hand against by hand (control)";
  by_hand(subject);
  by_learner(subject);
  const auto hand = [&] { return by_hand(subject); };
  bench::print(control.c_str(), bench::paired(rounds, hand, hand));
  bench::print((std::string(what) + ", Learner against by hand").c_str(),
               bench::paired(rounds, hand, [&] { return by_learner(subject); }));
  bench::print((std::string(what) + ", Learner with graph: true").c_str(),
               bench::paired(rounds, hand, [&] { return by_learner(subject, /*graph=*/true); }));
}

}  // namespace

int main(int argc, char** argv) {
  const bool learner_alone = argc > 1 && std::string_view(argv[1]) == "--learner";
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
  const int64_t gpt_steps = argc > 2 ? std::atoi(argv[2]) : 20;
  constexpr int64_t kMlpSteps = 500;
  try {
    init({.cuda = CudaMode::on});
    const Subject mlp = small_mlp(kMlpSteps), language = gpt(gpt_steps), one = gpt(1);
    if (learner_alone) {
      for (const auto& [name, subject] : {std::pair("mlp", &mlp), std::pair("gpt", &language)}) {
        by_learner(*subject);
        std::printf("%s %.6g\n", name, 1e3 * by_learner(*subject));
        std::printf("%s_graph %.6g\n", name, 1e3 * by_learner(*subject, /*graph=*/true));
      }
      return 0;
    }
    std::printf("%s; median of ratios, [quartiles]\n", memory::backend(kCard).name().c_str());
    compare(rounds, "500 steps of an MLP", mlp);
    compare(rounds, (std::to_string(gpt_steps) + " steps of a GPT in bf16").c_str(), language);
    const bench::Ratios alone = bench::paired(
        rounds, [&] { return by_learner(language); }, [&] { return by_learner(language); });
    std::printf("%-44s %.0f\n", "tokens/s of the GPT by the Learner",
                static_cast<double>(gpt_steps * kGptBatch * kContext) / alone.first_s);
    bench::print(
        "destroy against release by hand",
        bench::paired(
            rounds, [&] { return release_by_hand(one); }, [&] { return release_by_learner(one); }));
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "%s\n", error.what_without_backtrace());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
