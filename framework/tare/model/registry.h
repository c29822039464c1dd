// Models by name. The families of models/ are in it from the start; a program adds its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tare/config/field.h"
#include "tare/model/model.h"

namespace tare {

/// How to build a registered model. A family takes `classes`, `sample_shape`, `weights` and the
/// fields it names; another one set to something else than its default is a ConfigError.
struct ModelOptions {
  int64_t classes = 10;                 ///< outputs, >= 1
  std::vector<int64_t> sample_shape{};  ///< shape of one sample, [channels, height, width] or
                                        ///< [features]; empty: the family's
  std::string
      weights{};      ///< safetensors file to start from; a head of another class count stays fresh
  int64_t width = 0;  ///< channels of the first stage; 0: the family's
  std::vector<int64_t> hidden{};  ///< sizes of the hidden layers (mlp); empty: the family's
  double dropout = 0;             ///< probability in [0, 1), before the head

  bool operator==(const ModelOptions&) const = default;
};
void visit_fields(auto& visit, ModelOptions& o) {
  visit("classes", o.classes, config::at_least(1));
  visit("sample_shape", o.sample_shape);
  visit("weights", o.weights);
  visit("width", o.width, config::at_least(0));
  visit("hidden", o.hidden);
  visit("dropout", o.dropout, config::between(0, 0.999));
}

namespace models {

struct Family {
  std::string name{};                   ///< e.g. "resnet18"
  std::string summary{};                ///< one line for `tare ls models`
  std::vector<int64_t> sample_shape{};  ///< the default
  std::vector<std::string> options{};   ///< fields taken beside classes, sample_shape, weights
  std::string head{};                   ///< module whose tensors depend on `classes`, e.g. "fc"
  std::function<Model(const ModelOptions&)> make{};  ///< gets options with sample_shape filled in
};

/// Registers a family; one of the same name is replaced. Not thread-safe: at program start.
void add(Family family);
/// A factory that takes no options but `classes`.
void add(const std::string& name, std::function<Model(int64_t classes)> factory);

/// Throws the ConfigError that make() would throw for the name and the options, without building.
void check(const std::string& name, const ModelOptions& options);

/// Builds a model, loads `options.weights` where given, and notes its spec. Throws ConfigError for
/// an unknown name (naming the nearest), an option that the family does not take, FormatError for
/// weights that do not fit.
[[nodiscard]] Model make(const std::string& name, const ModelOptions& options = {});
/// From what a bundle or checkpoint noted.
[[nodiscard]] Model make(const ModelSpec& spec);
/// Initialises the head of a registry model anew, as make() would; nothing else changes. Throws
/// StateError for a model that is not of the registry, or whose family names no head.
void reset_head(Model& model);

[[nodiscard]] const Family& family(const std::string& name);
[[nodiscard]] std::vector<std::string> names();  ///< sorted

/// The families of models/, defined there; called once by the registry.
[[nodiscard]] std::vector<Family> built_in_families();

}  // namespace models
}  // namespace tare
