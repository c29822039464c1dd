// Finds the saved tensors of an optimizer by buffer and parameter.
#include "tare/optim/state_index.h"

#include <c10/util/StringUtil.h>

#include "tare/base/error.h"
#include "tare/checkpoint/match.h"

namespace tare {

StateIndex::StateIndex(const std::vector<NamedTensor>& state, const std::string& kind,
                       const std::function<bool(const std::string& buffer)>& known) {
  for (const auto& entry : state) {
    if (!known(entry.name.substr(0, entry.name.find('/')))) {
      throw ConfigError("optimizer.load_state",
                        "'" + printable(entry.name) + "' is not state of '" + kind +
                            "'; load without the optimizer, or use the kind that wrote it");
    }
    entries_[entry.name] = &entry;
  }
}

const NamedTensor* StateIndex::find(const std::string& buffer, const std::string& parameter) const {
  const auto found = entries_.find(buffer + "/" + parameter);
  return found == entries_.end() ? nullptr : found->second;
}

void throw_incomplete(const std::string& parameter) {
  throw ConfigError("optimizer.load_state",
                    "the state of '" + parameter + "' is incomplete; load without the optimizer");
}

void require_like(const NamedTensor& entry, const at::Tensor& wanted, bool exact_type) {
  const bool fits =
      !exact_type || checkpoint::converts(entry.tensor.scalar_type(), wanted.scalar_type());
  if (entry.tensor.sizes() == wanted.sizes() && fits) return;
  const auto text = [](const at::Tensor& t) {
    return std::string(c10::toString(t.scalar_type())) + " " + c10::str(t.sizes());
  };
  throw ShapeError("optimizer.load_state", "'" + entry.name + "' as " + text(wanted),
                   text(entry.tensor));
}

}  // namespace tare
