// my_project: the commands of `tare`, with a model of this project that a recipe names `my_model`.
//   ./build/my_project run recipe.yaml
#include <tare/cli/program.h>
#include <tare/tare.h>
#include <torch/nn.h>

/// Classifies pictures [batch, channels, height, width] of any size. Each stage of the body halves
/// height and width, and doubles the channels.
struct MyModelImpl : torch::nn::Module {
  MyModelImpl(int64_t channels, int64_t width, int64_t depth, int64_t classes) {
    for (int64_t stage = 0; stage < depth; ++stage) {
      const int64_t in = stage == 0 ? channels : width << (stage - 1), out = width << stage;
      body->push_back(
          torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).stride(2).padding(1).bias(false)));
      body->push_back(torch::nn::BatchNorm2d(out));
      body->push_back(torch::nn::ReLU());
    }
    register_module("body", body);
    head = register_module("head", torch::nn::Linear(width << (depth - 1), classes));
  }
  torch::Tensor forward(const torch::Tensor& pictures) {
    return head(body->forward(pictures).mean({2, 3}));
  }
  torch::nn::Sequential body;
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(MyModel);

/// The options that a recipe gives as `model: {name: my_model, width: 16, options: {depth: 3}}`.
struct MyModelOptions {
  int64_t depth = 3;  ///< stages of the body
};
void visit_fields(auto& visit, MyModelOptions& o) {
  visit("depth", o.depth, tare::config::between(1, 6));
}

void add_my_model() {
  tare::models::registry().add<MyModelOptions>(
      "my_model", "classifies pictures by strided convolutions", [](const MyModelOptions& own) {
        const auto make = [own](const tare::ModelOptions& o) {
          return MyModel(o.sample_shape.at(0), o.width > 0 ? o.width : 16, own.depth, o.classes);
        };
        return tare::models::Family{
            .sample_shape = {1, 28, 28}, .options = {"width"}, .head = "head", .make = make};
      });
}

int main(int argc, char** argv) {
  add_my_model();  // before a recipe is read that names it
  return tare::run_program(argc, argv);
}
