// Takes and restores the states of the random generators.
#include "tare/train/rng.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>

#include <mutex>

#include "tare/base/error.h"

namespace tare {
namespace {

std::vector<c10::Device> generators_of(const std::vector<c10::Device>& devices) {
  std::vector<c10::Device> all{c10::kCPU};
  for (const c10::Device device : devices)
    if (device != c10::Device(c10::kCPU)) all.push_back(device);
  return all;
}

}  // namespace

std::vector<NamedTensor> rng_state(c10::Device device) { return rng_state(std::vector{device}); }

std::vector<NamedTensor> rng_state(const std::vector<c10::Device>& devices) {
  std::vector<NamedTensor> state;
  for (const auto d : generators_of(devices)) {
    at::Generator generator = at::globalContext().defaultGenerator(d);
    const std::lock_guard<std::mutex> lock(generator.mutex());
    state.push_back({"rng/" + d.str(), generator.get_state()});
  }
  return state;
}

void check_rng_state(const std::vector<c10::Device>& devices, const std::vector<NamedTensor>& state,
                     std::string_view operation, const std::filesystem::path& path) {
  for (const auto d : generators_of(devices)) {
    for (const auto& [name, tensor] : state) {
      if (name != "rng/" + d.str()) continue;
      at::Generator generator = at::globalContext().defaultGenerator(d);
      const std::lock_guard<std::mutex> lock(generator.mutex());
      at::Generator trial = generator.clone();
      try {
        trial.set_state(tensor);
      } catch (const c10::OutOfMemoryError&) {
        throw;
      } catch (const c10::Error& error) {
        throw FormatError(operation, path.string(), name,
                          "is not a state of this random generator: " +
                              printable(error.what_without_backtrace()));
      }
    }
  }
}

void set_rng_state(const std::vector<c10::Device>& devices, const std::vector<NamedTensor>& state) {
  for (const auto d : generators_of(devices)) {
    for (const auto& [name, tensor] : state) {
      if (name != "rng/" + d.str()) continue;
      at::Generator generator = at::globalContext().defaultGenerator(d);
      const std::lock_guard<std::mutex> lock(generator.mutex());
      generator.set_state(tensor);
    }
  }
}

}  // namespace tare
