// A Learner as callbacks see it, without one.
#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>
#include <vector>

#include "tare/base/error.h"
#include "tare/callback/callback.h"

namespace tare::testing {

class FakeLearner final : public LearnerView {
 public:
  Model& model() override { throw std::logic_error("no model"); }
  Optimizer& optimizer() override { throw std::logic_error("no optimizer"); }
  [[nodiscard]] c10::Device device() const override { return c10::kCPU; }
  [[nodiscard]] const std::filesystem::path& folder() const override { return place; }
  void save(const std::string& name) override {
    if (full) throw IoError("io.write", "somewhere", ENOSPC);
    saved.push_back(name);
  }
  void restore_weights(const std::string& name) override { restored.push_back(name); }

  std::filesystem::path place = ".";
  std::vector<std::string> saved, restored;
  bool full = false;  // the disk
};

}  // namespace tare::testing
