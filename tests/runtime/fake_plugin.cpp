// A plug-in (see plugin.h) with one device that holds nothing: what init() does with a plug-in is
// seen without a GPU. TARE_FAKE_PLUGIN names what it does.
#include "tare/runtime/plugin.h"

#include <ATen/detail/CUDAHooksInterface.h>

#include <cstdlib>
#include <string>

#ifdef TARE_FAKE_PLUGIN_MARKS_PHASES
#include "tare/cuda/nvtx.h"
#endif
#include "support/empty_device.h"

namespace tare::runtime {
namespace {

std::string role() {
  const char* text = std::getenv("TARE_FAKE_PLUGIN");
  return text ? text : "";
}

class Hooks final : public at::CUDAHooksInterface {
 public:
  bool hasCUDA() const override { return role() != "no_device"; }
};

// In the place of those that LibTorch's CUDA library registers when it is loaded.
[[maybe_unused]] const bool registered = [] {
  at::CUDAHooksRegistry()->Register("CUDAHooks", [](at::CUDAHooksArgs) {
    return std::unique_ptr<at::CUDAHooksInterface>(std::make_unique<Hooks>());
  });
  return true;
}();

class Card final : public testing::EmptyDevice {
 public:
  Card() : EmptyDevice({c10::kCUDA, 0}, "no hardware") {}
};

}  // namespace
}  // namespace tare::runtime

extern "C" __attribute__((visibility("default"))) int tare_open_plugin(
    int version, tare::runtime::HostServices& services) {
  const std::string role = tare::runtime::role();
  if (role == "older") return version - 1;
  if (role == "no_device") return version;
  if (role == "rejects") services.reject("fake_plugin", "the device is too old");
  services.warn("in phase " + std::to_string(services.current_phase()) + ", step " +
                std::to_string(services.current_step()) + ", stack " +
                std::to_string(services.capture_stack()));
#ifdef TARE_FAKE_PLUGIN_MARKS_PHASES
  tare::cuda::mark_phases(services);
#endif
  services.add_backend(std::make_unique<tare::runtime::Card>());
  return version;
}
