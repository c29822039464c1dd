// Measures predictions by the engine without LibTorch against those by the Predictor on one bundle,
// with the Predictor against itself as the A/A control: resnet18 of 224-pixel pictures, resnet9 of
// digits, an mlp and a gpt of 6 layers of 384 channels on 256 tokens, all with random weights, with
// one thread and with two. Prints the largest difference of the outputs, too.
//
// Run: build/bin/bench_lite [ROUNDS]; default: 11
#include <tare/tare.h>
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "bench/paired.h"
#include "support/temp_dir.h"
#include "tare/inference/predictor.h"
#include "tare/lite/lite.h"
#include "tare/model/registry.h"
#include "tare/model/stored.h"

namespace {

using namespace tare;

struct Subject {
  const char* name;
  const char* family;
  ModelOptions options;
  BundleManifest manifest;
  at::Tensor input;
  int calls;  // of a measured time
};

std::vector<Subject> subjects() {
  const std::vector<int64_t> photo{3, 224, 224}, digit{1, 28, 28};
  const ModelOptions gpt{
      .classes = 256, .sample_shape = {256}, .weights = "", .width = 384, .layers = 6, .heads = 6};
  return {{"resnet18, batch 1",
           "resnet18",
           {.classes = 1000, .sample_shape = photo, .weights = ""},
           {.sample_shape = photo},
           torch::rand({1, 3, 224, 224}),
           1},
          {"resnet9 of digits, batch 1",
           "resnet9",
           {.classes = 10, .sample_shape = digit, .weights = ""},
           {.sample_shape = digit},
           torch::rand({1, 1, 28, 28}),
           50},
          {"resnet9 of digits, batch 64",
           "resnet9",
           {.classes = 10, .sample_shape = digit, .weights = ""},
           {.sample_shape = digit},
           torch::rand({64, 1, 28, 28}),
           2},
          {"mlp of digits, batch 1",
           "mlp",
           {.classes = 10, .sample_shape = digit, .weights = ""},
           {.sample_shape = digit},
           torch::rand({1, 1, 28, 28}),
           200},
          {"mlp of digits, batch 64",
           "mlp",
           {.classes = 10, .sample_shape = digit, .weights = ""},
           {.sample_shape = digit},
           torch::rand({64, 1, 28, 28}),
           20},
          {"gpt, 256 tokens",
           "gpt",
           gpt,
           {.sample_shape = {256}, .input = "int64"},
           torch::randint(256, {1, 256}, torch::kLong),
           1},
          {"gpt, 16 tokens",
           "gpt",
           gpt,
           {.sample_shape = {256}, .input = "int64"},
           torch::randint(256, {1, 16}, torch::kLong),
           4}};
}

void measure(const Subject& subject, int threads, int rounds) {
  const testing::TempDir folder;
  const Model model = models::make(subject.family, subject.options);
  BundleManifest manifest = subject.manifest;
  manifest.model = *model.spec();
  manifest.activation = "softmax";
  write_bundle(folder / "one.tare", manifest, stored_state(model));
  torch::set_num_threads(threads);
  Predictor predictor(folder / "one.tare");
  lite::Model small(folder / "one.tare", {.threads = threads});
  lite::Input input{.shape = subject.input.sizes().vec()};
  if (subject.input.is_floating_point())
    input.numbers = subject.input.const_data_ptr<float>();
  else
    input.tokens = subject.input.const_data_ptr<int64_t>();
  const auto expected = predictor.predict(subject.input);
  const auto output = small.predict(input);
  const auto off =
      (torch::from_blob(const_cast<float*>(output.values.data()), expected.sizes()) - expected)
          .abs()
          .max();
  const auto by_libtorch = [&] {
    return bench::seconds([&] {
      for (int i = 0; i < subject.calls; ++i) (void)predictor.predict(subject.input);
    });
  };
  const auto by_lite = [&] {
    return bench::seconds([&] {
      for (int i = 0; i < subject.calls; ++i) (void)small.predict(input);
    });
  };
  const std::string name = std::string(subject.name) + ", threads " + std::to_string(threads);
  bench::print((name + ": lite").c_str(), bench::paired(rounds, by_libtorch, by_lite));
  bench::print((name + ": control").c_str(), bench::paired(rounds, by_libtorch, by_libtorch));
  std::printf("    largest difference %.2g of %.2g\n", off.item<double>(),
              expected.abs().max().item<double>());
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 11;
  torch::manual_seed(1);
  std::printf("time by the engine without LibTorch / time by LibTorch " TORCH_VERSION
              ", kernels %s\n",
              lite::best_kernels().name);
  for (const Subject& subject : subjects())
    for (const int threads : {1, 2}) measure(subject, threads, rounds);
}
