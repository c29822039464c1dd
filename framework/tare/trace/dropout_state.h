// The state of cuDNN's dropout in a recording. Internal.
#pragma once

#include <c10/core/Allocator.h>

namespace tare::plan {

/// Returns the place of the state of cuDNN's dropout, which a card keeps from its first use on to
/// the end of the recording in progress; without a block in a new recording.
[[nodiscard]] c10::DataPtr& kept_dropout_state();

}  // namespace tare::plan
