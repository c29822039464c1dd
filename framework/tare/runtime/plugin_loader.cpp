// Opens the CUDA plug-in and gives it what it needs of the program.
#include "tare/runtime/plugin_loader.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/immortal.h"
#include "tare/base/log.h"
#include "tare/base/parts.h"
#include "tare/memory/backend.h"
#include "tare/memory/call_stack.h"
#include "tare/memory/oom_report.h"
#include "tare/memory/phase.h"
#include "tare/runtime/absent_device.h"
#include "tare/runtime/plugin.h"

namespace tare::runtime {
namespace {

constexpr const char* kPluginFile = "libtare_cuda.so";

/// Whether the user has hidden all cards, which needs no word.
bool hides_all(std::string_view visible) { return visible.empty() || visible == "-1"; }

/// Returns how many cards a setting of CUDA_VISIBLE_DEVICES names in front of "-1", which ends it.
int64_t named_cards(const std::string& visible) {
  const auto names = parts_of(visible, ',');
  return std::ranges::find(names, "-1") - names.begin();
}

/// Whether a lost card may be one that the user expects here: CUDA would see it, or knows fewer
/// cards than CUDA_VISIBLE_DEVICES names.
bool may_be_missed() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!visible) return true;
  return !hides_all(visible) && named_cards(visible) > at::detail::getCUDAHooks().getNumGPUs();
}

/// Describes lost cards, and what to do.
std::string sentence_of(const std::vector<size_t>& numbers,
                        const std::vector<std::string>& others) {
  std::string lost, left;
  for (const size_t number : numbers) lost += (lost.empty() ? "" : ", ") + std::to_string(number);
  for (const auto& uuid : others) left += (left.empty() ? "" : ", ") + uuid;
  const bool one = numbers.size() == 1;
  const std::string text = (one ? "card " : "cards ") + lost + " of this machine " +
                           (one ? "is" : "are") + " lost; look at `nvidia-smi` and `dmesg`";
  if (left.empty()) return text + ", and start the machine again; no other card is there";
  if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES"))
    return text + "; CUDA_VISIBLE_DEVICES is '" + printable(visible) + "', and may name " + left;
  return text + "; CUDA counts the others from 0: " + left;
}

class Services final : public HostServices {
 public:
  void add_backend(std::unique_ptr<memory::DeviceBackend> backend) override {
    memory::add_backend(std::move(backend));
  }
  void add_collectives(std::unique_ptr<memory::Collectives> collectives) override {
    memory::add_collectives(std::move(collectives));
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
  void note_absent(c10::Device device, std::string_view why) override {
    runtime::note_absent({device.str(), std::string(why), /*worth_a_warning=*/true});
  }
  void note_lost_cards(const std::vector<size_t>& numbers,
                       const std::vector<std::string>& others) override {
    if (may_be_missed()) runtime::note_lost_cards(sentence_of(numbers, others));
  }
  void warn(std::string_view text) override { log::warning(text); }
  void reject(std::string_view where, std::string_view problem) override {
    throw ConfigError(where, problem);
  }
};

/// Keeps what LibTorch would print, as it says there why it finds no card.
class Listener final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    if (text_.empty()) text_ = warning.msg();
  }
  /// Returns the first sentence, without its beginning "CUDA initialization: ".
  [[nodiscard]] std::string problem() const {
    constexpr std::string_view kBegin = "CUDA initialization: ";
    const std::string_view text = std::string_view(text_).substr(0, text_.find(". "));
    return std::string(text.starts_with(kBegin) ? text.substr(kBegin.size()) : text);
  }

 private:
  std::string text_;
};

std::string why_no_card(const Listener& listener) {
  if (const std::string lost = lost_cards(); !lost.empty()) return lost;
  if (const std::string problem = listener.problem(); !problem.empty())
    return problem +
           "; look whether `nvidia-smi` shows the card, and install a newer driver where "
           "that is too old";
  if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    const std::string setting = "CUDA_VISIBLE_DEVICES is '" + printable(visible) + "'";
    if (hides_all(visible)) return setting + ", which hides every card; unset it";
    return setting +
           ", and CUDA knows no such card; unset it, or give numbers from 0 or UUIDs as "
           "`nvidia-smi -L` prints them";
  }
  return "the driver shows no card that can be used; look at `nvidia-smi` and `dmesg`";
}

/// Whether LibTorch has a card; `listener` hears why it has none.
bool finds_card(Listener& listener) {
  const c10::WarningUtils::WarningHandlerGuard guard(&listener);
  return at::detail::getCUDAHooks().hasCUDA();
}

void note_no_card(const Listener& listener) {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  note_absent({"cuda", why_no_card(listener), !visible || !hides_all(visible)});
}

/// CUDA ignores what it does not know in a list, and all behind it, without a word.
void warn_of_ignored_cards() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const int64_t known = at::detail::getCUDAHooks().getNumGPUs();
  if (!visible || named_cards(visible) <= known) return;
  log::warning("CUDA_VISIBLE_DEVICES is '" + printable(visible) + "', of which CUDA takes " +
               std::to_string(known) +
               " only: it knows no such card as the next one, and ignores all behind it; give "
               "numbers from 0 or UUIDs as `nvidia-smi -L` prints them");
}

void* open_plugin_file() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const auto& folder : {program / ".." / "lib", program})
    if (std::filesystem::exists(folder / kPluginFile, ignored))
      return dlopen((folder / kPluginFile).c_str(), RTLD_NOW | RTLD_LOCAL);
  return dlopen(kPluginFile, RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

bool load_cuda_plugin() {
  const auto refuse = [](std::string why) {
    note_absent({"cuda", std::move(why), /*worth_a_warning=*/true});
    return false;
  };
  void* const plugin = open_plugin_file();
  if (!plugin)
    return refuse(std::string("the CUDA plug-in was not loaded: ") + printable(dlerror()) +
                  "; TARE_CUDA=1 bash recipes/quickstart.sh fetches the libraries and builds with "
                  "them");
  const auto open = reinterpret_cast<OpenPlugin>(dlsym(plugin, kOpenPluginName));
  if (!open) return refuse(kPluginFile + std::string(" is not a plug-in; build again"));
  Listener listener;
  const bool found = finds_card(listener);
  static Immortal<Services> services;
  if (open(kPluginVersion, *services) != kPluginVersion)
    return refuse(kPluginFile + std::string(" is of another version of Tare; build again"));
  if (found)
    warn_of_ignored_cards();
  else
    note_no_card(listener);
  return found;
}

}  // namespace tare::runtime
