// A model of a picture and a row of numbers: which digit is it, from a picture under heavy noise
// and two measurements that narrow it down? Transforms change the picture and leave the row alone.
//
// Run: build/bin/image_and_table [BUDGET]     Expect: about 90 % accuracy.
#include <torch/nn.h>

#include "planned_fit.h"

namespace {

using namespace tare;

struct PictureAndRowImpl : torch::nn::Module {
  PictureAndRowImpl() {
    picture = register_module(
        "picture", torch::nn::Sequential(
                       torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 16, 3).stride(2).padding(1)),
                       torch::nn::ReLU(), torch::nn::Flatten(), torch::nn::Linear(16 * 8 * 8, 48),
                       torch::nn::ReLU()));
    row =
        register_module("row", torch::nn::Sequential(torch::nn::Linear(2, 16), torch::nn::ReLU()));
    head = register_module("head", torch::nn::Linear(48 + 16, 10));
  }
  torch::Tensor forward(const Batch& batch) {
    return head(torch::cat(
        {picture->forward(batch.input("picture")), row->forward(batch.input("row"))}, 1));
  }
  torch::nn::Sequential picture{nullptr}, row{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(PictureAndRow);

DatasetPtr measured_digits(int64_t count) {
  const Batch all = get_all(*generated_digits({.count = count, .size = 16, .style = "written"}));
  const at::Tensor pictures =
      all.input().to(torch::kFloat) / 255 + 0.4 * torch::randn(all.input().sizes());
  const at::Tensor label = all.target().to(torch::kFloat);
  const at::Tensor row = torch::stack(
      {label / 9 + 0.1 * torch::randn({count}), label.fmod(2) + 0.2 * torch::randn({count})}, 1);
  return transformed(
      tensor_dataset({{"picture", pictures}, {"row", row}}, {{"digit", all.target()}}),
      {Normalise{.mean = {0.13}, .std = {0.5}}});
}

}  // namespace

int main(int argc, char** argv) try {
  init();
  models::add("picture_and_row", [](int64_t) { return Model(PictureAndRow()); });
  torch::manual_seed(1);
  Learner learner(models::make("picture_and_row"), split(measured_digits(4000)),
                  options_for("image_and_table"));
  planned_fit(learner, 8, 3e-3, argc, argv);
} catch (...) {
  return report_error(std::current_exception());
}
