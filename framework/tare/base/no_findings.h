// Holds back findings that stand for nothing.
#pragma once

namespace tare::log {

/// While one lives, warning_once() prints nothing on its thread, and does not remember the text: for
/// a fit that is only planned, whose samples and losses are none of a run. A value for one scope.
class NoFindings {
 public:
  NoFindings() noexcept;
  ~NoFindings();
  NoFindings(const NoFindings&) = delete;
  NoFindings& operator=(const NoFindings&) = delete;
};

}  // namespace tare::log
