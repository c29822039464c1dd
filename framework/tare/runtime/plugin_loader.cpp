// Opens the CUDA plug-in and gives it what it needs of the program.
#include "tare/runtime/plugin_loader.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>

#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/immortal.h"
#include "tare/base/log.h"
#include "tare/memory/backend.h"
#include "tare/memory/call_stack.h"
#include "tare/memory/oom_report.h"
#include "tare/memory/phase.h"
#include "tare/runtime/plugin.h"

namespace tare::runtime {
namespace {

constexpr const char* kPluginFile = "libtare_cuda.so";

class Services final : public HostServices {
 public:
  void add_backend(std::unique_ptr<memory::DeviceBackend> backend) override {
    memory::add_backend(std::move(backend));
  }
  uint32_t current_phase() const noexcept override { return memory::current_phase(); }
  std::string phase_name(uint32_t id) const override { return memory::phase_name(id); }
  void observe_phases(const memory::PhaseObserver* observer) noexcept override {
    memory::observe_phases(observer);
  }
  uint32_t current_step() const noexcept override { return memory::current_step(); }
  uint32_t capture_stack() const noexcept override { return memory::capture_stack(); }
  void report_out_of_memory(c10::Device device, int64_t asked_bytes) noexcept override {
    static_cast<void>(memory::report_out_of_memory(device, asked_bytes));
  }
  void warn(std::string_view text) override { log::warning(text); }
  void reject(std::string_view where, std::string_view problem) override {
    throw ConfigError(where, problem);
  }
};

void* open_plugin_file() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const auto& folder : {program / ".." / "lib", program})
    if (std::filesystem::exists(folder / kPluginFile, ignored))
      return dlopen((folder / kPluginFile).c_str(), RTLD_NOW | RTLD_LOCAL);
  return dlopen(kPluginFile, RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

std::string load_cuda_plugin() {
  void* const plugin = open_plugin_file();
  if (!plugin) return std::string("the CUDA plug-in was not loaded: ") + dlerror();
  const auto open = reinterpret_cast<OpenPlugin>(dlsym(plugin, kOpenPluginName));
  if (!open) return kPluginFile + std::string(" is no plug-in");
  if (!at::detail::getCUDAHooks().hasCUDA()) return "LibTorch sees no CUDA device";
  static Immortal<Services> services;
  if (open(kPluginVersion, *services) != kPluginVersion)
    return kPluginFile + std::string(" is of another version of Tare");
  return {};
}

}  // namespace tare::runtime
