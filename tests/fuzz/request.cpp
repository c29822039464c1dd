// Requests for predictions. Input: 'p' (a model of pictures), 'r' (of rows) or 't' (of tokens), and
// a JSON text.
#include <memory>

#include "fuzz/support.h"
#include "tare/base/error.h"
#include "tare/inference/json_predict.h"
#include "tare/model/registry.h"

namespace tare::fuzz {

struct Subject {
  Subject(const char* name, const ModelOptions& options, BundleManifest manifest)
      : model(std::make_shared<Model>(models::make(name, options))),
        predictor(std::move(manifest), model, c10::kCPU) {}
  std::shared_ptr<Model> model;
  Predictor predictor;
};

Predictor& predictor_for(char kind) {
  static Subject pictures("mlp", {.classes = 2, .sample_shape = {1, 4, 4}, .hidden = {2}},
                          {.sample_shape = {1, 4, 4}, .labels = {"a", "b"}});
  static Subject rows(
      "mlp", {.classes = 1, .sample_shape = {2}, .hidden = {2}},
      {.sample_shape = {2},
       .rows = RowCoding{
           .columns = {{.name = "sex", .kind = "category", .texts = {"f", "m"}}, {.name = "age"}},
           .target = "price"}});
  static Subject tokens(
      "gpt", {.classes = 3, .sample_shape = {8}, .width = 8, .layers = 1, .heads = 2},
      {.sample_shape = {8}, .input = "int64", .labels = {"a", "b", "ab"}, .activation = "softmax"});
  return kind == 'p' ? pictures.predictor : kind == 'r' ? rows.predictor : tokens.predictor;
}

void run(char kind, std::string_view text) {
  constexpr int64_t kMost = 50;
  const JsonRequest request = read_request(text, predictor_for(kind), kMost);
  require(!request.samples.empty() && std::ssize(request.samples) <= kMost, "samples are counted");
  for (const Batch& sample : request.samples)
    require(sample.size() == 1 && sample.input().numel() * 2 <= std::ssize(text) + 100,
            "a sample is paid for by the text");
}

}  // namespace tare::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tare::fuzz::run_kind<tare::Error>(data, size, tare::fuzz::run);
  return 0;
}
