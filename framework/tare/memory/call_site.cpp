// Turns addresses into functions, files and lines.
#include "tare/memory/call_site.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "tare/base/immortal.h"
#include "tare/memory/call_stack.h"

// libbacktrace, which GCC ships without its header on the search path of other compilers; the
// interface is stable.
extern "C" {
struct backtrace_state;
using backtrace_error_callback = void (*)(void* data, const char* message, int error);
using backtrace_full_callback = int (*)(void* data, uintptr_t address, const char* file, int line,
                                        const char* function);
using backtrace_syminfo_callback = void (*)(void* data, uintptr_t address, const char* name,
                                            uintptr_t value, uintptr_t size);
backtrace_state* backtrace_create_state(const char* program, int threaded,
                                        backtrace_error_callback on_error, void* data);
int backtrace_pcinfo(backtrace_state* state, uintptr_t address, backtrace_full_callback on_frame,
                     backtrace_error_callback on_error, void* data);
int backtrace_syminfo(backtrace_state* state, uintptr_t address,
                      backtrace_syminfo_callback on_symbol, backtrace_error_callback on_error,
                      void* data);
}

namespace tare::memory {
namespace {

/// A frame, and whose code it is.
struct KnownFrame {
  Frame frame;
  bool of_program = false;  ///< in the executable, not in a shared library
  bool of_system = false;   ///< in a library of the system or of LibTorch
};
using KnownFrames = std::vector<KnownFrame>;

std::string demangled(const char* name) {
  if (!name) return {};
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

/// "at::Tensor f<int>(int)::{lambda()#1}::operator()() const" keeps what names the function: cut at
/// the last parameter list.
std::string without_parameters(const std::string& function) {
  const auto end = function.rfind(')');
  if (end == std::string::npos) return function;
  int depth = 0;
  for (size_t i = end + 1; i-- > 0;) {
    if (function[i] == ')') ++depth;
    if (function[i] == '(' && --depth == 0) return function.substr(0, i);
  }
  return function;
}

void ignore(void*, const char*, int) {}

int add_frame(void* data, uintptr_t, const char* file, int line, const char* function) {
  if (!file && !function) return 0;
  const std::string path = file ? std::filesystem::path(file).lexically_normal().string() : "";
  static_cast<KnownFrames*>(data)->push_back(
      {{demangled(function), path, path.empty() ? 0 : line}});
  return 0;
}

void name_frame(void* data, uintptr_t, const char* name, uintptr_t, uintptr_t) {
  *static_cast<std::string*>(data) = demangled(name);
}

/// Reads symbols once, and each address once. libbacktrace keeps what it has read.
class Symbols {
 public:
  const KnownFrames& at(void* address) {
    const auto [known, is_new] = frames_.try_emplace(address);
    if (is_new) known->second = read(static_cast<const char*>(address) - 1);
    return known->second;
  }
  std::mutex mutex;

 private:
  // `address` lies in the call, so that its line is that of the call.
  KnownFrames read(const void* code) {
    const auto address = reinterpret_cast<uintptr_t>(code);
    if (!state_) state_ = backtrace_create_state(nullptr, 1, &ignore, nullptr);
    KnownFrames frames;
    if (state_) backtrace_pcinfo(state_, address, &add_frame, &ignore, &frames);
    if (frames.empty()) frames.emplace_back();
    auto& outer = frames.back().frame;
    if (state_ && outer.function.empty())
      backtrace_syminfo(state_, address, &name_frame, &ignore, &outer.function);
    for (auto& frame : frames) {
      frame.of_program = in_program(code);
      frame.of_system = in_system(code);
    }
    return frames;
  }

  static bool in_program(const void* code) {
    static const void* const base = base_of(reinterpret_cast<const void*>(&add_frame));
    return base_of(code) == base;
  }
  static bool in_system(const void* code) {
    constexpr std::array<std::string_view, 6> kLibraries = {"libc.so",   "ld-linux", "libstdc++",
                                                            "libtorch_", "libc10",   "libgomp"};
    Dl_info info{};
    if (dladdr(code, &info) == 0 || !info.dli_fname) return false;
    const auto name = std::filesystem::path(info.dli_fname).filename().string();
    return std::ranges::any_of(kLibraries, [&](auto start) { return name.starts_with(start); });
  }
  static const void* base_of(const void* code) {
    Dl_info info{};
    return dladdr(code, &info) != 0 ? info.dli_fbase : nullptr;
  }

  backtrace_state* state_ = nullptr;
  std::unordered_map<void*, KnownFrames> frames_;
};

KnownFrames known_frames(uint32_t stack) {
  static Immortal<Symbols> symbols;
  KnownFrames all;
  const std::lock_guard lock(symbols->mutex);
  for (void* address : addresses_of(stack)) {
    const auto& frames = symbols->at(address);
    all.insert(all.end(), frames.begin(), frames.end());
  }
  return all;
}

bool has_any(std::string_view path, const auto& parts) {
  return std::ranges::any_of(parts, [=](auto part) { return path.find(part) != path.npos; });
}

bool of_library(const KnownFrame& known) {
  const Frame& frame = known.frame;
  constexpr std::array<std::string_view, 6> kFolders = {"/include/ATen/",  "/include/c10/",
                                                        "/include/torch/", "/include/c++/",
                                                        "/usr/include/",   "/usr/src/"};
  return known.of_system || frame.file.empty() || has_any(frame.file, kFolders);
}

bool of_framework(const Frame& frame) {
  constexpr std::array<std::string_view, 2> kFolders = {"framework/tare/", "/include/tare/"};
  return has_any(frame.file, kFolders);
}

/// Whether the user of a program without line tables wrote the function, judged by its name.
bool of_user(const KnownFrame& known) {
  constexpr std::array<std::string_view, 8> kOthers = {
      "tare::", "std::", "at::", "c10::", "torch::", "__gnu_", "testing::", "_"};
  const std::string& function = known.frame.function;
  return known.of_program && known.frame.file.empty() && !function.empty() && function != "main" &&
         std::ranges::none_of(kOthers, [&](auto start) { return function.starts_with(start); });
}

bool of_memory_library(const Frame& frame) {
  return has_any(frame.file, std::array<std::string_view, 2>{"/tare/memory/", "/tare/cuda/"});
}

CallSite as_site(const Frame& frame) {
  return {without_parameters(frame.function), frame.file, frame.line};
}

}  // namespace

std::vector<Frame> frames_of(uint32_t stack) {
  std::vector<Frame> frames;
  for (auto& known : known_frames(stack)) frames.push_back(std::move(known.frame));
  return frames;
}

std::string CallSite::str() const {
  if (file.empty()) return function.empty() ? "unknown" : function;
  const std::string place = file + ':' + std::to_string(line);
  return function.empty() ? place : place + " (" + function + ')';
}

namespace {

/// Returns the frame of site_of(); the end where there is none.
KnownFrames::const_iterator site_in(const KnownFrames& frames) {
  const auto first = [&](auto suits) { return std::ranges::find_if(frames, suits); };
  auto found = first(
      [](const KnownFrame& known) { return !of_library(known) && !of_framework(known.frame); });
  if (found == frames.end()) found = first(of_user);
  if (found == frames.end()) {
    found = first([](const KnownFrame& known) {
      return !of_library(known) && !of_memory_library(known.frame);
    });
  }
  if (found == frames.end()) {
    found = first([](const KnownFrame& known) {
      return known.of_program && known.frame.file.empty() && !known.frame.function.empty() &&
             !known.frame.function.starts_with("tare::memory::");
    });
  }
  return found;
}

}  // namespace

CallSite site_of(uint32_t stack) {
  const auto frames = known_frames(stack);
  const auto found = site_in(frames);
  return found == frames.end() ? CallSite{} : as_site(found->frame);
}

std::vector<Frame> frames_from_site(uint32_t stack) {
  const auto frames = known_frames(stack);
  const auto begin = site_in(frames);
  if (begin == frames.end()) return frames_of(stack);
  auto end = frames.end();
  const auto started_it = [](const KnownFrame& known) {
    return known.of_system || known.frame.function == "_start" || known.frame.function.empty();
  };
  while (end - begin > 1 && started_it(*std::prev(end))) --end;
  std::vector<Frame> outwards;
  for (auto known = begin; known != end; ++known) outwards.push_back(known->frame);
  return outwards;
}

}  // namespace tare::memory
