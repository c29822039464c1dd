// An Accountable with what purge frees and what it keeps, for the tests of this library.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <string>
#include <utility>
#include <vector>

#include "tare/base/error.h"
#include "tare/memory/accountable.h"

namespace tare::testing {

inline at::Tensor bytes_of(int64_t bytes) { return at::empty({bytes}, at::kByte); }

class Holder final : public Accountable {
 public:
  explicit Holder(std::string name, int64_t weight_bytes = 1000)
      : weight(bytes_of(weight_bytes)), name_(std::move(name)) {}

  [[nodiscard]] std::string account_name() const override { return name_; }
  [[nodiscard]] Ledger ledger() const override {
    Ledger ledger;
    ledger.add(Category::parameters, "weight", weight);
    ledger.add(Category::gradients, "gradient", gradient);
    return ledger;
  }
  PurgeReport purge_account(const PurgeOptions&) override {
    ++purges;
    if (busy) throw StateError("holder.purge", "running", "wait for it");
    PurgeReport report;
    report.freed[Category::gradients] =
        gradient.defined() ? static_cast<int64_t>(gradient.nbytes()) : 0;
    gradient.reset();
    return report;
  }

  at::Tensor weight, gradient;
  int purges = 0;
  bool busy = false;

 private:
  std::string name_;
};

}  // namespace tare::testing
