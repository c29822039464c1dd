// The commit that this library was built from. Internal.
#pragma once

namespace tare {

/// "43d405c", with "-dirty" behind it where files had been changed when CMake ran last; empty for
/// sources without a history.
extern const char* const kCommit;

}  // namespace tare
