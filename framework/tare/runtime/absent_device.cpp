// Keeps what init() has found out about devices that are not there.
#include "tare/runtime/absent_device.h"

#include <map>
#include <mutex>
#include <utility>

#include "tare/base/immortal.h"
#include "tare/base/log.h"

namespace tare::runtime {
namespace {

struct Absent {
  std::mutex mutex;
  std::map<std::string, AbsentDevice> by_name;
  std::string lost;  // a sentence
  bool warned_of_lost = false;
};

Absent& absent() {
  static Immortal<Absent> all;
  return *all;
}

}  // namespace

std::string AbsentDevice::str() const {
  return name + (is_there ? " cannot be opened: " : " is not there: ") + why;
}

void note_absent(AbsentDevice device) {
  const std::lock_guard lock(absent().mutex);
  absent().by_name.insert_or_assign(device.name, device);
}

std::vector<AbsentDevice> absent_devices() {
  const std::lock_guard lock(absent().mutex);
  std::vector<AbsentDevice> all;
  for (const auto& [name, device] : absent().by_name) all.push_back(device);
  return all;
}

std::string why_absent(const std::string& name) {
  const std::lock_guard lock(absent().mutex);
  const auto& all = absent().by_name;
  auto found = all.find(name);
  if (found == all.end()) found = all.find(name.substr(0, name.find(':')));
  if (found != all.end()) return found->second.why;
  found = all.lower_bound(name + ':');  // the first of this type
  if (found == all.end() || !found->first.starts_with(name + ':')) return {};
  return found->first + ": " + found->second.why;
}

std::string why_host() {
  const auto all = absent_devices();
  return all.empty() ? std::string() : all.front().str();
}

void warn_of_absent(const std::string& used,
                    const std::function<bool(const AbsentDevice&)>& concerns) {
  const std::lock_guard lock(absent().mutex);
  for (auto& [name, device] : absent().by_name)
    if (concerns(device) && std::exchange(device.worth_a_warning, false))
      log::warning("[device] " + used + " is used, because " + device.str());
}

void note_lost_cards(std::string sentence) {
  const std::lock_guard lock(absent().mutex);
  absent().lost = std::move(sentence);
}

std::string lost_cards() {
  const std::lock_guard lock(absent().mutex);
  return absent().lost;
}

void warn_of_lost_cards(const std::string& used) {
  const std::lock_guard lock(absent().mutex);
  if (absent().lost.empty() || std::exchange(absent().warned_of_lost, true)) return;
  log::warning("[device] " + used + " is used; " + absent().lost);
}

}  // namespace tare::runtime
