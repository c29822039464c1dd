// StateIndex: a saved optimizer state by buffer and parameter name. Internal.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tare/model/model.h"

namespace tare {

/// Points into the entries, which must outlive it. Lookups do not throw.
class StateIndex {
 public:
  /// Throws ConfigError for an entry whose buffer ("exp_avg" of "exp_avg/fc.weight") is not `known`
  /// to an optimizer of this kind.
  StateIndex(const std::vector<NamedTensor>& state, const std::string& kind,
             const std::function<bool(const std::string& buffer)>& known);

  /// Returns the entry, or nullptr if there is none.
  [[nodiscard]] const NamedTensor* find(const std::string& buffer,
                                        const std::string& parameter) const;

 private:
  std::unordered_map<std::string, const NamedTensor*> entries_;
};

/// Throws the ConfigError for a parameter whose state has some of its buffers and lacks others.
[[noreturn]] void throw_incomplete(const std::string& parameter);

/// Throws ShapeError unless the entry has this shape and, where `exact_type`, dtype.
void require_like(const NamedTensor& entry, const at::Tensor& wanted, bool exact_type);

}  // namespace tare
