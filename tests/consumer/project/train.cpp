// Trains a little, exports a bundle, and prints the tracked bytes that remain. Then it runs a
// recipe that names a loss and a callback of this program.
#include <tare/tare.h>

#include <fstream>
#include <iostream>

int64_t tracked_bytes() { return tare::memory::backend(c10::kCPU).usage().allocated_bytes; }

/// Prints a line for each epoch.
struct Announce final : tare::Callback {
  explicit Announce(std::string word) : word_(std::move(word)) {}
  std::string name() const override { return "announce"; }
  tare::Action after_epoch(tare::FitContext& context) override {
    std::cout << word_ << ' ' << context.row.epoch << '\n';
    return tare::Action::proceed;
  }

 private:
  std::string word_;
};

struct AnnounceOptions {
  std::string word = "epoch";
};
void visit_fields(auto& visit, AnnounceOptions& o) { visit("word", o.word); }

void run_own_recipe() {
  tare::callbacks::registry().add<AnnounceOptions>(
      "announce", "print a line for each epoch",
      [](const AnnounceOptions& o) { return std::make_shared<Announce>(o.word); });
  tare::losses::registry().add("halved", "half of the cross-entropy", [] {
    const auto whole = tare::resolve("cross_entropy").mean;
    return tare::Loss([whole](auto& output, auto& target) { return whole(output, target).div(2); },
                      "softmax");
  });
  std::ofstream("own.yaml") << "device: cpu\ndata: {name: generated_digits, size: 8, count: 96}\n"
                               "model: {name: mlp, hidden: [16]}\nloss: halved\n"
                               "callbacks: [{announce: {word: passed}}]\n"
                               "phases: [{epochs: 2}]\n";
  const auto report = tare::run_recipe(tare::read_recipe("own.yaml"));
  std::cout << "recipe: " << report.residual_bytes << " B left\n";
}

int main() {
  tare::init();
  auto splits = tare::datasets::make({.name = "generated_digits", .size = 8, .count = 96}).splits;
  auto model = tare::models::make("mlp", {.sample_shape = {1, 8, 8}, .hidden = {16}});
  tare::Learner learner(std::move(model), splits, {.device = "cpu"});
  splits = {};
  learner.fit(2);
  learner.purge();
  std::cout << "trained: " << tracked_bytes() << " B tracked\n";
  learner.export_to("digits.tare", {.destroy = true});
  std::cout << "destroyed: " << tracked_bytes() << " B tracked\n";
  run_own_recipe();
}
