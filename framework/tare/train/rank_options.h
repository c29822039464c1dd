// Finds options that several ranks cannot have together. Internal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tare/train/options.h"

namespace tare {

/// Describes an option that is refused beside another one, or where several ranks train.
struct RefusedOption {
  std::string field{};    ///< of LearnerOptions
  std::string problem{};  ///< what it does, as a message has it
  std::string allowed{};  ///< values that are not refused
  std::string got{};      ///< its value
};

/// Returns the first option that several ranks refuse; unset: there is none.
[[nodiscard]] std::optional<RefusedOption> refused_by_ranks(const LearnerOptions& options);
/// Throws ConfigError, naming `call`, for a callback that needs gradients or parameters of which
/// each rank keeps a part alone.
void check_shared_callbacks(const std::vector<CallbackPtr>& callbacks,
                            const LearnerOptions& options, const std::string& call);

}  // namespace tare
