// Takes and restores the generators of host and device.
#include "tare/model/generators.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <mutex>
#include <new>
#include <type_traits>

#include "tare/memory/backend.h"

namespace tare {
namespace {

/// A plan's tensors are on the meta device, which gives no numbers.
bool has_backend_of_its_own(c10::Device device) { return !device.is_cpu() && !device.is_meta(); }

}  // namespace

void GeneratorSnapshot::take(c10::Device device) {
  device_ = device;
  take_host();
  if (has_backend_of_its_own(device_)) on_device_ = memory::backend(device_).generator_state();
  more_.clear();
}

void GeneratorSnapshot::take(const std::vector<c10::Device>& devices) {
  take(devices.front());
  for (size_t i = 1; i < devices.size(); ++i)
    if (has_backend_of_its_own(devices[i]))
      more_.emplace_back(devices[i], memory::backend(devices[i]).generator_state());
}

void GeneratorSnapshot::restore() const {
  restore_host();
  if (has_backend_of_its_own(device_) && on_device_)
    memory::backend(device_).set_generator_state(*on_device_);
  for (const auto& [device, state] : more_)
    if (state) memory::backend(device).set_generator_state(*state);
}

void GeneratorSnapshot::take_host() {
  at::Generator generator = at::globalContext().defaultGenerator(c10::kCPU);
  auto* host = at::check_generator<at::CPUGeneratorImpl>(generator);
  const std::lock_guard<std::mutex> lock(host->mutex_);
  static_assert(std::is_trivially_destructible_v<at::mt19937>);
  ::new (&host_.engine) at::mt19937(host->engine());  // built in its place: 2.5 KB, once a step
  host_.next_float = host->next_float_normal_sample();
  host_.next_double = host->next_double_normal_sample();
}

void GeneratorSnapshot::restore_host() const {
  at::Generator generator = at::globalContext().defaultGenerator(c10::kCPU);
  auto* host = at::check_generator<at::CPUGeneratorImpl>(generator);
  const std::lock_guard<std::mutex> lock(host->mutex_);
  host->set_engine(host_.engine);
  host->set_next_float_normal_sample(host_.next_float);
  host->set_next_double_normal_sample(host_.next_double);
}

}  // namespace tare
