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
#include "tare/cli/command.h"
#include "tare/data/datasets.h"
#include "tare/memory/backend.h"
#include "tare/memory/machine.h"
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

std::string driver() {
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY);
  if (library == nullptr)
    return "none (no libcuda.so.1): training runs on the host; for a GPU install NVIDIA's driver";
  ::dlclose(library);
  return "NVIDIA driver present";
}

// Measures the memory of a device's context and libraries, which never counts as consumption.
std::string context_of(memory::DeviceBackend& backend) {
  const int64_t before = backend.memory_info().available_bytes;
  backend.warm();
  return format_bytes(std::max<int64_t>(0, before - backend.memory_info().available_bytes));
}

void devices() {
  int64_t index = 0;
  for (const auto device : memory::devices()) {
    auto& backend = memory::backend(device);
    const std::string context = device.is_cpu() ? "" : ", context " + context_of(backend);
    const auto info = backend.memory_info();
    line("device " + std::to_string(index++),
         device.str() + "  " + backend.name() + ", " + format_bytes(info.available_bytes) + " of " +
             format_bytes(info.total_bytes) + " available" + context);
  }
  if (memory::devices().size() == 1 && driver().starts_with("NVIDIA")) {
    line("",
         "a driver is there but no CUDA device is usable; build with TARE_CUDA=1 bash "
         "recipes/quickstart.sh");
  }
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

}  // namespace

int doctor_command(const Arguments&) {
  line("tare", TARE_VERSION);
  line("LibTorch", TORCH_VERSION);
  line("driver", driver());
  init();
  devices();
  line("threads",
       std::to_string(runtime::usable_processors()) + " usable (affinity and cgroup quota)");
  line("process", format_bytes(memory::resident_bytes()) + " resident with LibTorch loaded");
  disk();
  const DigitsSource digits = find_digits({.download = false, .warn = false});
  line("digits", digits.description);
  if (!digits.real) line("", "for the real ones: tare data fetch mnist10k");
  return kSuccess;
}

}  // namespace tare::cli
