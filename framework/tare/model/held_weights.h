// HeldWeights: parameters that are held as E4M3 and dequantised only while something computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tare/memory/accountable.h"
#include "tare/model/coded_weight.h"

namespace tare {

class Model;

/// Describes a parameter without a gradient whose data, but inside an OpenWeights, are E4M3. The
/// Tensor is the module's own.
struct HeldWeight {
  std::string name{};                  ///< in the model
  at::Tensor parameter{};              ///< outside an OpenWeights: CodedWeight::values
  at::Tensor scale{};                  ///< of its rows
  c10::ScalarType type = c10::kFloat;  ///< what it is dequantised to: float32 or a 16-bit type
  at::Tensor values{};                 ///< inside an OpenWeights; else undefined

  [[nodiscard]] CodedWeight coded() const;  ///< returns data and scale; shares their storage
};

/// Lists the held parameters of a block, or of a model outside its blocks. Not thread-safe.
class HeldWeights {
 public:
  /// Quantises a parameter; code outside an OpenWeights scope sees E4M3. Throws as quantise(), and
  /// the parameter is then unchanged.
  void hold(const std::string& name, const at::Tensor& parameter);
  /// Adds a parameter that has E4M3 data already.
  void add(HeldWeight weight) { weights_.push_back(std::move(weight)); }
  /// Dequantises the weights for which `chosen` returns true, and removes them.
  void release(const std::function<bool(const HeldWeight&)>& chosen);
  /// Returns the held weights in the order in which they were added.
  [[nodiscard]] const std::vector<HeldWeight>& all() const { return weights_; }
  [[nodiscard]] bool open() const { return open_; }  ///< whether an OpenWeights of them is in scope
  /// Moves the scales; Model::to() moves the parameters.
  void move_scales(c10::Device device);
  /// Adds values and scales as `category`, and what is dequantised now as workspace.
  void account(Ledger& ledger, Category category) const;

 private:
  friend class OpenWeights;
  std::vector<HeldWeight> weights_;
  bool open_ = false;
};

/// Whether Model::hold_frozen() would change nothing.
[[nodiscard]] bool holds_frozen(const Model& model, bool on);

/// Gives the parameters, while in scope, their dequantised values, of the type that HeldWeight says
/// or that autocast takes products in. At its end these are freed: what autograd saved of them
/// for a backward are the E4M3 values, which the backward dequantises again, one weight at a time.
/// A copy of a weight that an operator made and saved is kept as it is. Does nothing inside another
/// one of the same weights. The constructor throws what an allocation throws; then nothing has
/// changed.
class OpenWeights {
 public:
  /// Dequantises the weights.
  explicit OpenWeights(std::shared_ptr<HeldWeights> held);
  ~OpenWeights();
  OpenWeights(const OpenWeights&) = delete;
  OpenWeights& operator=(const OpenWeights&) = delete;

 private:
  class Maker;
  std::shared_ptr<HeldWeights> held_;  // null: somebody else has opened them
  std::unique_ptr<Maker> maker_;
};

}  // namespace tare
