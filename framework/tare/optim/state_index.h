// A saved optimizer state by buffer and parameter name.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tare/model/model.h"

namespace tare {

/// Borrows the entries. A value; lookups do not throw.
class StateIndex {
 public:
  /// Throws ConfigError for an entry whose buffer ("exp_avg" of "exp_avg/fc.weight") is not `known`
  /// to an optimizer of this kind.
  StateIndex(const std::vector<NamedTensor>& state, const std::string& kind,
             const std::function<bool(const std::string& buffer)>& known);

  /// nullptr where there is none.
  [[nodiscard]] const NamedTensor* find(const std::string& buffer,
                                        const std::string& parameter) const;

 private:
  std::unordered_map<std::string, const NamedTensor*> entries_;
};

/// The state of a parameter has some of its parts and lacks others. Throws ConfigError.
[[noreturn]] void throw_incomplete(const std::string& parameter);

/// Throws ShapeError unless the entry has this shape and, where `exact_type`, dtype.
void require_like(const NamedTensor& entry, const at::Tensor& wanted, bool exact_type);

}  // namespace tare
