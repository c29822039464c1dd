// Classification of texts of different length: are the brackets balanced? Each batch is padded to
// its longest text, and the lengths are a second input of the model. The plan is that of the batch
// with the longest text of all.
//
// Run: build/bin/brackets [BUDGET]     Expect: all of the validation texts right.
#include <torch/nn.h>

#include <random>

#include "planned_fit.h"

namespace {

using namespace tare;

struct ReaderImpl : torch::nn::Module {
  ReaderImpl() {
    embedding = register_module("embedding", torch::nn::Embedding(256, 16));
    lstm =
        register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(16, 32).batch_first(true)));
    head = register_module("head", torch::nn::Linear(32, 2));
  }
  /// text: int64 [samples, longest], the bytes; lengths: int64 [samples].
  torch::Tensor forward(const torch::Tensor& text, const torch::Tensor& lengths) {
    const torch::Tensor states = std::get<0>(lstm(embedding(text)));
    const torch::Tensor ends = (lengths - 1).view({-1, 1, 1}).expand({-1, 1, states.size(2)});
    return head(states.gather(1, ends).squeeze(1));
  }
  torch::nn::Embedding embedding{nullptr};
  torch::nn::LSTM lstm{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Reader);

/// 2 to 24 brackets; of an unbalanced text one is turned round.
Batch sample(std::mt19937_64& random, bool balanced) {
  std::string text;
  int64_t open = 0, left = 1 + static_cast<int64_t>(random() % 12);
  while (open > 0 || left > 0) {
    const bool opens = left > 0 && (open == 0 || random() % 2 == 0);
    text += opens ? '(' : ')';
    open += opens ? 1 : -1;
    left -= opens ? 1 : 0;
  }
  char& one = text[random() % text.size()];
  if (!balanced) one = one == '(' ? ')' : '(';
  const at::Tensor bytes = torch::tensor(std::vector<int64_t>(text.begin(), text.end()));
  return {{{"text", bytes}}, {{"balanced", torch::tensor(static_cast<int64_t>(balanced))}}};
}

DatasetPtr texts(int64_t count) {
  std::mt19937_64 random(1);
  std::vector<Batch> samples;
  for (int64_t i = 0; i < count; ++i) samples.push_back(sample(random, i % 2 == 0));
  return sample_dataset(std::move(samples), pad(), {"unbalanced", "balanced"});
}

}  // namespace

int main(int argc, char** argv) try {
  init();
  models::add("reader", [](int64_t) { return Model(Reader()); });
  torch::manual_seed(1);
  Learner learner(models::make("reader"), split(texts(4000)), options_for("brackets"));
  planned_fit(learner, 12, 1e-2, argc, argv);
} catch (...) {
  return report_error(std::current_exception());
}
