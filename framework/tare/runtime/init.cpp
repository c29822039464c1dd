// Checks that nothing of LibTorch is settled yet, and then sets up the process.
#include "tare/runtime/init.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/AllocatorConfig.h>
#include <dlfcn.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tare/base/error.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/host_gelu.h"
#include "tare/memory/host_products.h"
#include "tare/memory/saved_tensors.h"
#include "tare/runtime/absent_device.h"
#include "tare/runtime/plugin_loader.h"
#include "tare/runtime/threads.h"

namespace tare {
namespace {

constexpr const char* kHooksName = "CUDAHooks";
bool done = false;

/// LibTorch asks its registry for CUDA once and keeps the answer. This entry of the lowest
/// priority, which a CUDA library loaded later replaces, notes that it was asked: from then on
/// loading CUDA would have no effect.
std::atomic<bool> hooks_asked{false};

bool watch_hooks() {
  auto* registry = at::CUDAHooksRegistry();
  if (registry->Has(kHooksName)) return false;  // linked into the program: there from the start
  registry->Register(
      kHooksName,
      [](at::CUDAHooksArgs) {
        hooks_asked = true;
        return std::unique_ptr<at::CUDAHooksInterface>();
      },
      c10::REGISTRY_FALLBACK);
  return true;
}
[[maybe_unused]] const bool watching_before_main = watch_hooks();

void refuse_if_late() {
  constexpr const char* kAdvice = "make tare::init() the first line of main";
  if (!memory::host_allocator::install())
    throw StateError("tare::init", "after another host allocator was installed", kAdvice);
  if (memory::host_allocator::counters().births > 0)
    throw StateError("tare::init", "after the first tensor", kAdvice);
  if (hooks_asked)
    throw StateError(
        "tare::init",
        "after a seed, a convolution or a question for CUDA settled LibTorch's devices", kAdvice);
}

/// A fresh block above glibc's mmap threshold (32 MiB at most) is new pages at every allocation,
/// each a fault. Raised, the pages stay with the process until a reclaim() trims them.
void keep_large_blocks() {
  for (const char* chosen_by_user :
       {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"})
    if (std::getenv(chosen_by_user)) return;
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

/// Returns why the environment lets LibTorch's allocator count nothing; empty: it counts.
std::string uncounted() {
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"})
    if (const char* text = std::getenv(name);
        text && std::string_view(text).find("cudaMallocAsync") != std::string_view::npos)
      return std::string(name) +
             " names the backend cudaMallocAsync, whose memory cannot be counted; take the backend "
             "out of it";
  if (std::getenv("PYTORCH_NO_CUDA_MEMORY_CACHING"))
    return "PYTORCH_NO_CUDA_MEMORY_CACHING is set, with which LibTorch counts no memory; unset it";
  return {};
}

/// Keeps the settings of LibTorch's allocator from LibTorch while its CUDA library is loaded, where
/// a wrong one would end the process. The variables stand in the order in which LibTorch takes
/// them.
class HeldSettings {
 public:
  HeldSettings() {
    for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"})
      if (const char* text = std::getenv(name)) held_.push_back({name, text});
    for (const Variable& one : held_) unsetenv(one.name);
  }
  ~HeldSettings() {
    for (const Variable& one : held_) setenv(one.name, one.text.c_str(), 1);
  }
  HeldSettings(const HeldSettings&) = delete;
  HeldSettings& operator=(const HeldSettings&) = delete;

  /// Gives them to LibTorch. Throws ConfigError for what it does not take.
  void apply() const {
    if (held_.empty()) return;
    const auto& [name, text] = held_.front();
    try {
      c10::CachingAllocator::setAllocatorSettings(text);
    } catch (const c10::Error& error) {
      refuse(error.what_without_backtrace());
    } catch (const std::logic_error&) {  // of a text where a number should be
      refuse("a number is missing");
    }
  }

 private:
  struct Variable {
    const char* name;
    std::string text;
  };

  [[noreturn]] void refuse(std::string why) const {
    const auto& [name, text] = held_.front();
    if (why.find("INTERNAL ASSERT") != std::string::npos) why = "it ends where more should follow";
    throw ConfigError("tare::init", name, "is not what LibTorch takes: " + printable(why, 300),
                      "settings as name:value with commas between them, or no such variable", text);
  }

  std::vector<Variable> held_;
};

/// Loads CUDA; returns false where there is none, and has noted why.
bool load_cuda() {
  if (!dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) {
    runtime::note_absent({"cuda", "there is no NVIDIA driver (libcuda.so.1); install it"});
    return false;
  }
  if (const std::string why = uncounted(); !why.empty()) {
    runtime::note_absent({"cuda", why, /*worth_a_warning=*/true});
    return false;
  }
  const HeldSettings settings;
  const bool loaded = runtime::load_cuda_plugin();
  settings.apply();
  return loaded;
}

void start_cuda(CudaMode mode) {
  if (mode == CudaMode::off) return;
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);  // read at the first CUDA call
  if (load_cuda()) return memory::SavedTensors::install();
  if (mode == CudaMode::on)
    throw DeviceError("tare::init", "there is no CUDA: " + runtime::why_absent("cuda") +
                                        "; cuda = automatic runs without");
}

}  // namespace

void init(const InitOptions& options) {
  if (done) return;
  if (options.threads < 0)
    throw ConfigError("tare::init", "threads must be >= 0, got " + std::to_string(options.threads));
  static_cast<void>(memory::default_products());  // refuses a wrong variable
  static_cast<void>(memory::has_own_gelu());      // so that the program has its kernels
  refuse_if_late();
  start_cuda(options.cuda);
  runtime::set_operator_threads(options.threads);
  keep_large_blocks();
  done = true;
}

bool initialized() { return done; }

}  // namespace tare
