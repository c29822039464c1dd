#include "tare/memory/init.h"

#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "tare/base/error.h"
#include "tare/base/immortal.h"
#include "tare/base/log.h"
#include "tare/memory/backend.h"
#include "tare/memory/call_stack.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/oom_report.h"
#include "tare/memory/phase.h"
#include "tare/memory/process.h"
#include "tare/memory/room.h"
#include "tare/memory/saved_tensors.h"

namespace tare {
namespace {

constexpr const char* kRoomFile = "libtare_cuda.so";
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

class Services final : public memory::HostServices {
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

void set_threads(int threads) {
  if (threads == 0 && std::getenv("OMP_NUM_THREADS")) return;  // LibTorch has read it
  at::set_num_threads(threads > 0 ? threads : memory::usable_processors());
}

void* open_room_file() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const auto& folder : {program / ".." / "lib", program})
    if (std::filesystem::exists(folder / kRoomFile, ignored))
      return dlopen((folder / kRoomFile).c_str(), RTLD_NOW | RTLD_LOCAL);
  return dlopen(kRoomFile, RTLD_NOW | RTLD_LOCAL);
}

/// Empty when CUDA is ready, else why not.
std::string load_room() {
  void* const room = open_room_file();
  if (!room) return std::string("the CUDA room was not loaded: ") + dlerror();
  const auto open = reinterpret_cast<memory::OpenRoom>(dlsym(room, memory::kOpenRoomName));
  if (!open) return kRoomFile + std::string(" is no room");
  if (!at::detail::getCUDAHooks().hasCUDA()) return "LibTorch sees no CUDA device";
  static Immortal<Services> services;
  if (open(memory::kRoomVersion, *services) != memory::kRoomVersion)
    return kRoomFile + std::string(" is of another version of Tare");
  return {};
}

void start_cuda(CudaMode mode) {
  if (mode == CudaMode::off) return;
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);  // read at the first CUDA call
  const bool driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr;
  const std::string problem = driver ? load_room() : "no NVIDIA driver (libcuda.so.1)";
  if (problem.empty()) return memory::SavedTensors::install();
  if (mode == CudaMode::on)
    throw DeviceError("tare::init", problem + "; cuda = automatic runs without");
  if (driver) log::warning("[tare::init] no CUDA: " + problem);
}

}  // namespace

void init(const InitOptions& options) {
  if (done) return;
  if (options.threads < 0)
    throw ConfigError("tare::init", "threads must be >= 0, got " + std::to_string(options.threads));
  refuse_if_late();
  start_cuda(options.cuda);
  set_threads(options.threads);
  keep_large_blocks();
  done = true;
}

bool initialized() { return done; }

void bound_spinning(char** argv) {
  if (bound_spinning_of_children()) execv("/proc/self/exe", argv);
}

bool bound_spinning_of_children() {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return false;
  return setenv("GOMP_SPINCOUNT", kSpinCount, 0) == 0;
}

}  // namespace tare
