// A program in furcate's form: it runs itself once for each combination of the lists in its
// configuration, each run a process with a folder of its own, and runs nothing twice. Edit the
// configuration while it runs, or run it again: only what is new is run.
//
// Run: build/bin/fork_digits     Expect: four runs below runs/fork in 6 s on two cores, each with a
// validation loss of 0.03 to 0.7 and history.json, run_data.json, model.pt and the plots;
// run_data.csv and furcate.log beside them.
#include <tare/furcate/fork.h>
#include <tare/tare.h>

namespace {

using namespace tare;

class Digits : public Fork {
 public:
  using Fork::Fork;

 protected:
  // The data have a name, and no files.
  ForkFiles get_filepaths() override { return {}; }

  Splits get_datasets(const ForkFiles&) override {
    DataOptions options{.name = "generated_digits", .count = get<int64_t>("images")};
    options.train = 0.7;
    options.valid = 0.2;
    options.test = 0.1;
    options.stratify = false;
    return datasets::make(options).splits;
  }

  Model get_model() override { return models::make("convnet", {.width = get<int64_t>("width")}); }

  std::vector<Metric> get_metrics() override { return {"accuracy"}; }

  // Ink from 0 to 1 becomes numbers around 0.
  Batch preprocess(Batch batch) const override {
    batch.set_input((batch.input() - 0.13) / 0.31);
    return batch;
  }
  // The same for those who predict with the model's bundle.
  std::optional<Transforms> preprocess_transforms() const override {
    return Transforms{Normalise{.mean = {0.13}, .std = {0.31}}};
  }
};

}  // namespace

int main() { return Digits("recipes/configs/digits/fork.json").run(); }
