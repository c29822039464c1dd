// Parses the device of a plan, and finds what memory it has.
#include "tare/trace/target.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/memory/backend.h"
#include "tare/memory/compute_capability.h"
#include "tare/memory/context.h"
#include "tare/memory/libtorch.h"
#include "tare/memory/native_types.h"
#include "tare/runtime/device_name.h"

namespace tare::plan {
namespace {

using namespace literals;

struct Card {
  const char* name;
  int64_t bytes;                     // in all, as NVIDIA's driver reports it
  int64_t capability;                // 10 x major + minor
  int64_t multiprocessors, threads;  // as NVIDIA's data sheets have them
};

constexpr const char* kTypeOfCards = "cuda";
constexpr std::array kCards{
    Card{"A10", 23028_MiB, 86, 72, 1536},        Card{"A100-40GB", 40960_MiB, 80, 108, 2048},
    Card{"A100-80GB", 81920_MiB, 80, 108, 2048}, Card{"B200", 183359_MiB, 100, 148, 2048},
    Card{"H100", 81559_MiB, 90, 132, 2048},      Card{"H200", 143771_MiB, 90, 132, 2048},
    Card{"L4", 23034_MiB, 89, 58, 1536},         Card{"L40S", 46068_MiB, 89, 142, 1536},
    Card{"RTX3090", 24576_MiB, 86, 82, 1536},    Card{"RTX4090", 24564_MiB, 89, 128, 1536},
    Card{"T4", 15360_MiB, 75, 40, 1024},         Card{"V100-16GB", 16384_MiB, 70, 80, 2048},
    Card{"V100-32GB", 32768_MiB, 70, 80, 2048},
};

constexpr int64_t kLinearWorkspace = 1_MiB;  // CUBLASLT_WORKSPACE_SIZE

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
}

[[noreturn]] void refuse(const std::string& text) {
  const auto colon = text.find(':');
  const std::string near =
      colon == std::string::npos ? "" : did_you_mean(text.substr(colon + 1), card_names());
  std::string cards;
  for (const auto& name : card_names()) cards += (cards.empty() ? "" : ", ") + name;
  throw ConfigError("plan.device",
                    "'" + printable(text) + "' is no device to plan for" + near +
                        "; give host, host:8GiB, cuda:24GiB, cuda:0 or cuda:NAME with "
                        "a name of " +
                        cards);
}

/// Whether a device that no table of cards knows has a backend of this type.
bool is_there(const std::string& type) {
  return type != kTypeOfCards && std::ranges::any_of(memory::devices(), [&](c10::Device device) {
           const auto traits = memory::backend(device).traits();
           return !traits.is_host && traits.type == type;
         });
}

/// Asks a device what its tensors, those that are there included, can take.
int64_t capacity_of(const memory::DeviceBackend& backend) {
  const int64_t held = backend.usage().allocated_bytes;  // what is cached counts as available
  const int64_t capacity = held + backend.memory_info().available_bytes;
  return std::min(capacity, backend.budget().value_or(capacity));
}

/// Returns Target::total_bytes of a device with this capacity.
std::optional<int64_t> total_of(const memory::DeviceBackend& backend, int64_t capacity) {
  const int64_t total = backend.memory_info().total_bytes;
  if (backend.traits().is_host || capacity >= total || capacity == backend.budget())
    return std::nullopt;
  return total;
}

Target existing(const std::string& text, std::optional<int64_t> capacity) {
  // A capacity that is given stands for the card, which then needs no context here.
  const c10::Device device = capacity ? runtime::parse_device(text) : runtime::open_device(text);
  const auto& backend = memory::backend(device);
  const memory::DeviceTraits traits = backend.traits();
  if (!traits.planner)
    throw ConfigError("plan.device", "'" + printable(text) +
                                         "' cannot be planned for: the backend of " + device.str() +
                                         " says no planner target");
  const int64_t bytes = capacity ? *capacity : capacity_of(backend);
  return {.name = text == "auto" ? (traits.is_host ? "host" : device.str()) : text,
          .caches = traits.planner->caches,
          .capacity_bytes = bytes,
          .total_bytes = capacity ? std::nullopt : total_of(backend, bytes),
          .cache = traits.planner->cache,
          .workspace_bytes = traits.planner->workspace_bytes,
          .linear_workspace_bytes = traits.planner->linear_workspace_bytes,
          .prefers_cublaslt = traits.planner->prefers_cublaslt,
          .keeps_workspaces = traits.planner->keeps_workspaces,
          .multiprocessors = traits.planner->multiprocessors,
          .capability = traits.planner->capability,
          .computes_bfloat16 = traits.planner->computes_bfloat16,
          .card = traits.planner->caches && !capacity ? std::optional(device) : std::nullopt};
}

}  // namespace

std::string capacity_text(int64_t capacity_bytes, std::optional<int64_t> total_bytes) {
  return format_bytes(capacity_bytes) +
         (total_bytes ? " free of " + format_bytes(*total_bytes) : "");
}

std::vector<std::string> card_names() {
  std::vector<std::string> names;
  names.reserve(std::size(kCards));
  for (const Card& card : kCards) names.emplace_back(card.name);
  return names;
}

Target parse_target(const std::string& text, std::optional<int64_t> capacity) {
  const auto colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  if (kind == "host" && colon == std::string::npos) {
    Target host = existing("cpu", capacity);
    host.name = text;
    return host;
  }
  if (kind == "auto" || kind == "cpu" || (kind == kTypeOfCards && colon == std::string::npos))
    return existing(text, capacity);
  if (is_there(kind)) return existing(text, capacity);
  if (kind != "host" && kind != kTypeOfCards) refuse(text);
  const std::string what = text.substr(colon + 1);
  if (kind == kTypeOfCards && is_number(what)) return existing(text, capacity);
  Target target{.name = text, .caches = kind == kTypeOfCards};
  if (target.caches) {
    target.capability = memory::kAmpere;
    target.linear_workspace_bytes = kLinearWorkspace;
    target.keeps_workspaces = libtorch::kKeepsWorkspaces;
  } else {
    target.computes_bfloat16 = memory::processor_computes(c10::kBFloat16);
  }
  const auto card =
      std::ranges::find(kCards, what, [](const Card& c) { return std::string(c.name); });
  if (target.caches && card != kCards.end()) {
    target.capacity_bytes = card->bytes - memory::kContextBytes;
    target.multiprocessors = {.count = card->multiprocessors, .threads = card->threads};
    target.capability = card->capability;
    target.computes_bfloat16 = card->capability >= memory::kAmpere;
    target.workspace_bytes = memory::default_workspace_bytes(target.capability);
    return target;
  }
  if (target.caches) target.workspace_bytes = memory::default_workspace_bytes(target.capability);
  const auto bytes = parse_bytes(what);
  if (!bytes || *bytes <= 0) refuse(text);
  target.capacity_bytes = *bytes;
  return target;
}

}  // namespace tare::plan
