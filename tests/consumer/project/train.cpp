// Trains a little, exports a bundle, and prints the tracked bytes that remain.
#include <tare/tare.h>

#include <iostream>

int64_t tracked_bytes() { return tare::memory::backend(c10::kCPU).usage().allocated_bytes; }

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
}
