// A model of two inputs: do two pictures show the same digit? Both go through one body; the random
// shift of each picture is its own. The module is a plain torch::nn module with forward(left,
// right), which the Learner calls with the inputs of the batch in their order.
//
// Run: build/bin/siamese_digits [BUDGET]     Expect: 95 to 96 % accuracy.
#include <torch/nn.h>

#include "planned_fit.h"

namespace {

using namespace tare;

struct SiameseImpl : torch::nn::Module {
  SiameseImpl() {
    body = register_module(
        "body", torch::nn::Sequential(
                    torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 16, 3).stride(2).padding(1)),
                    torch::nn::ReLU(),
                    torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 32, 3).stride(2).padding(1)),
                    torch::nn::ReLU(), torch::nn::Flatten(), torch::nn::Linear(32 * 7 * 7, 64)));
    head = register_module("head", torch::nn::Linear(64, 2));
  }
  torch::Tensor forward(const torch::Tensor& left, const torch::Tensor& right) {
    return head((body->forward(left) - body->forward(right)).abs());
  }
  torch::nn::Sequential body{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Siamese);

/// Every picture with one of the same digit or, every second time, of another.
DatasetPtr pairs(int64_t count) {
  const Batch all = get_all(*generated_digits({.count = count, .style = "written"}));
  const at::Tensor order = torch::randperm(count), labels = all.target();
  std::vector<int64_t> partner(static_cast<size_t>(count)), same(partner.size());
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t own = labels[i].item<int64_t>();
    same[at] = i / 10 % 2;  // the digits take turns
    for (int64_t j = i;; ++j) {
      partner[at] = order[j % count].item<int64_t>();
      if ((labels[partner[at]].item<int64_t>() == own) == (same[at] == 1)) break;
    }
  }
  const at::Tensor right = all.input().index_select(0, torch::tensor(partner));
  return transformed(tensor_dataset({{"left", all.input()}, {"right", right}},
                                    {{"same", torch::tensor(same)}}, {"different", "same"}),
                     {Normalise{.mean = {0.13}, .std = {0.31}}, Shift{.pixels = 1}});
}

}  // namespace

int main(int argc, char** argv) try {
  init();
  models::add("siamese", [](int64_t) { return Model(Siamese()); });
  torch::manual_seed(1);
  Learner learner(models::make("siamese"), split(pairs(2000)), options_for("siamese_digits"));
  planned_fit(learner, 8, 3e-3, argc, argv);
  learner.export_to("runs/siamese_digits/siamese.tare");
} catch (...) {
  return report_error(std::current_exception());
}
