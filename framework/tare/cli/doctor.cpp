// `tare doctor`: prints what this machine has: devices, drivers, disk, data.
#include <dlfcn.h>
#include <torch/version.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/terminal.h"
#include "tare/cli/handlers.h"
#include "tare/cuda/nvml.h"
#include "tare/data/datasets.h"
#include "tare/memory/backend.h"
#include "tare/memory/host_gelu.h"
#include "tare/memory/host_products.h"
#include "tare/memory/machine.h"
#include "tare/memory/oom.h"
#include "tare/runtime/absent_device.h"
#include "tare/runtime/init.h"
#include "tare/runtime/threads.h"

namespace tare::cli {
namespace {

void line(const std::string& what, const std::string& value) {
  constexpr size_t kStart = 14;
  const size_t width = width_for(std::cout);
  std::cout << what << std::string(what.size() < kStart ? kStart - what.size() : 1, ' ')
            << (width == kAnyWidth ? value : wrapped(value, width, kStart, kStart)) << '\n';
}

bool has_driver() {
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY);
  if (library == nullptr) return false;
  ::dlclose(library);
  return true;
}

std::string driver() {
  if (!has_driver())
    return "none (no libcuda.so.1): training runs on the host; for a GPU install NVIDIA's driver";
  const std::string version = cuda::nvml_driver_version();
  return "NVIDIA driver " + (version.empty() ? "present" : printable(version, 80));
}

/// Returns what all processes hold of all cards; asking for it makes no context.
int64_t used_bytes_of_cards() {
  int64_t bytes = 0;
  for (const auto& card : cuda::NvmlDevice::all())
    if (const auto memory = card.memory()) bytes += memory->used_bytes;
  return bytes;
}

// Measures the memory of a device's context and libraries, which never counts as consumption.
std::string context_of(memory::DeviceBackend& backend) {
  const int64_t before = used_bytes_of_cards();
  backend.warm();
  const int64_t tensors = backend.usage().reserved_bytes;
  return format_bytes(std::max<int64_t>(0, used_bytes_of_cards() - before - tensors));
}

/// Holds what a device is and has, or why it cannot be used.
struct Description {
  std::string text;
  bool is_usable = true;
};

Description described(memory::DeviceBackend& backend) {
  const std::string name = backend.device().str() + "  " + printable(backend.name());
  try {
    const std::string context = backend.device().is_cpu() ? "" : ", context " + context_of(backend);
    const auto info = backend.memory_info();
    return {name + ", " + format_bytes(info.available_bytes) + " of " +
            format_bytes(info.total_bytes) + " available" + context};
  } catch (const c10::Error& error) {
    const auto oom = memory::classify(std::current_exception());
    const std::string text = oom ? oom->message : error.what_without_backtrace();
    return {name + " cannot be used: " + text.substr(0, text.find('\n')), /*is_usable=*/false};
  }
}

void devices() {
  int64_t index = 0;
  std::string automatic;
  for (const auto device : memory::devices()) {
    const Description description = described(memory::backend(device));
    line("device " + std::to_string(index++), description.text);
    if (automatic.empty() && description.is_usable && !device.is_cpu()) automatic = device.str();
  }
  line("device: auto", automatic.empty() ? "takes the host" : "takes " + automatic);
  const std::string lost = runtime::lost_cards();
  if (!lost.empty() && lost != runtime::why_absent("cuda")) line("lost", lost);
  if (!has_driver()) return;  // the line above says it
  for (const auto& absent : runtime::absent_devices()) line("no " + absent.name, absent.why);
}

std::string write_speed(const std::filesystem::path& folder) {
  constexpr int64_t kProbe = 64_MiB;
  const std::string block(1_MiB, 'x');
  io::make_directories(folder);
  const auto path = folder / "doctor.probe";
  const auto start = std::chrono::steady_clock::now();
  {
    io::File file(path, io::Mode::create);
    for (int64_t written = 0; written < kProbe; written += 1_MiB) file.write(block);
    file.flush();
    file.close();
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  io::remove_all(path);
  return format_bytes(static_cast<int64_t>(static_cast<double>(kProbe) / seconds)) + "/s durable";
}

void disk() {
  const auto folder = datasets::cache_folder();
  io::make_directories(folder);
  const auto space = std::filesystem::space(folder);
  std::string text = folder.string() + ": " + format_bytes(static_cast<int64_t>(space.available)) +
                     " free, " + write_speed(folder);
  if (space.available < static_cast<uintmax_t>(2_GiB))
    text += "; less than 2 GiB: clean up, or set TARE_HOME";
  line("disk", text);
}

std::string products() {
  switch (memory::default_products()) {
    case memory::ProductsBy::onednn:
      return "large ones of float32 matrices by oneDNN, which is faster here than MKL";
    case memory::ProductsBy::onednn_always:
      return "those of float32 matrices by oneDNN, as TARE_PRODUCTS says";
    case memory::ProductsBy::libtorch:
      break;
  }
  return "of matrices by LibTorch's choice";
}

}  // namespace

int doctor_command(const Arguments&) {
  line("tare", TARE_VERSION);
  line("LibTorch", TORCH_VERSION);
  line("driver", driver());
  init();
  devices();
  line("threads",
       std::to_string(runtime::usable_processors()) + " usable (affinity and cgroup quota)");
  line("products", products());
  line("GELU", memory::has_own_gelu() ? "by tanh, of float32, with vector instructions of Tare"
                                      : "by LibTorch, since Tare's own takes AVX2");
  line("process", format_bytes(memory::resident_bytes()) + " resident with LibTorch loaded");
  disk();
  const DigitsSource digits = find_digits({.download = false, .warn = false});
  line("digits", digits.description);
  if (!digits.real) line("", "for the real ones: tare data fetch mnist10k");
  return kSuccess;
}

}  // namespace tare::cli
