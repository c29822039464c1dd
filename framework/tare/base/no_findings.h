// Holds back findings that stand for nothing.
#pragma once

namespace tare::log {

/// Keeps warning_once() on its thread, while it lives, from printing a text and from remembering
/// it: for a fit that is only planned, whose samples and losses are none of a run.
class NoFindings {
 public:
  NoFindings() noexcept;
  ~NoFindings();
  NoFindings(const NoFindings&) = delete;
  NoFindings& operator=(const NoFindings&) = delete;
};

}  // namespace tare::log
