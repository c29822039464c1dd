// Graph: what a model computes, as a list of LibTorch's operators on named tensors. The files for
// other programs are written from it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tare::interchange {

/// Names the sizes that an input may have in any number: samples in the batch, and the length of a
/// sample, such as its tokens.
struct AnySizes {
  int64_t batch = 1;   ///< samples, >= 1
  int64_t length = 1;  ///< in the dimension of GraphInput::length, >= 1; unused without one
};

/// Is a whole number that may depend on the sizes of the inputs: constant + batch * samples +
/// length * (length of a sample) + product * samples * (length of a sample).
struct Size {
  int64_t constant = 0, batch = 0, length = 0, product = 0;  ///< the coefficients
  /// Whether it is the same number for all inputs.
  [[nodiscard]] bool fixed() const { return batch == 0 && length == 0 && product == 0; }
  /// Returns the number for inputs of these sizes.
  [[nodiscard]] int64_t at(const AnySizes& sizes) const {
    return constant + batch * sizes.batch + length * sizes.length +
           product * sizes.batch * sizes.length;
  }
  bool operator==(const Size&) const = default;
};

/// Describes a tensor of the graph.
struct Value {
  std::string name{};                             ///< unique in the graph: letters, digits and _
  c10::ScalarType type = c10::ScalarType::Float;  ///< dtype
  std::vector<Size> sizes{};                      ///< its shape
};

/// Names a tensor by its place in Graph::values.
struct Ref {
  size_t value = 0;  ///< place in Graph::values
  bool operator==(const Ref&) const = default;
};

/// Names tensors in their order; std::monostate: none is at this place.
using TensorList = std::vector<std::variant<std::monostate, Ref>>;

/// Is the value of one parameter of an operator; std::monostate: none. A list of tensors may hold
/// none at a place.
using Argument = std::variant<std::monostate, Ref, TensorList, Size, std::vector<Size>, double,
                              std::vector<double>, bool, std::vector<bool>, std::string,
                              c10::ScalarType, c10::Layout, c10::Device, c10::MemoryFormat>;

/// Is one call of an operator.
struct Node {
  std::string op{};                   ///< "aten::conv2d"
  std::string overload{};             ///< "Tensor" of aten::add.Tensor; empty: there is none
  std::vector<Argument> arguments{};  ///< all parameters, in the order of the operator's schema
  /// Places of the results in Graph::values. An operator that returns one list of tensors has as
  /// many results as the list has tensors.
  std::vector<size_t> results{};
  bool returns_list = false;  ///< whether the results are one list
  /// The module that computes it, as far as the tensors of the model show: that of the last
  /// parameter or buffer used so far; empty: none has been used.
  std::string layer{};

  /// Returns the operator as messages name it, "conv2d" or "add.Tensor".
  [[nodiscard]] std::string str() const;
};

/// Is a parameter, a buffer or a constant of the model.
struct Weight {
  /// Lists what a weight is in the model.
  enum class Kind {
    parameter,  ///< is trained
    buffer,     ///< is state of the model, such as a running mean
    constant    ///< is a tensor that the model holds otherwise
  };
  std::string name{};           ///< in the model, "layer1.0.conv1.weight"
  Kind kind = Kind::parameter;  ///< what it is there
  size_t value = 0;             ///< place in Graph::values
  at::Tensor tensor{};          ///< on the host; shares the storage of the model's
};

/// Describes an input of a model whose graph is wanted.
struct GraphInput {
  std::string name = "input";                     ///< as BundleManifest::input_name
  c10::ScalarType type = c10::ScalarType::Float;  ///< dtype
  std::vector<int64_t> sample_shape{};            ///< of one sample
  /// The dimension of the sample that may have any size; -1: none has.
  int64_t length = -1;
};

/// Is what a model computes in evaluation mode: `nodes` in an order in which every value is made
/// before it is used, from inputs and weights.
struct Graph {
  std::vector<Value> values{};    ///< all tensors
  std::vector<size_t> inputs{};   ///< places of the model's inputs in `values`
  std::vector<Weight> weights{};  ///< parameters, buffers, constants
  std::vector<Node> nodes{};      ///< calls of operators
  std::vector<size_t> outputs{};  ///< places of the model's outputs in `values`
  bool any_length = false;        ///< whether sizes may depend on the length of a sample
  /// The largest length that the model takes, such as the positions of a GPT; 0: no bound is known.
  int64_t longest = 0;

  /// Returns the weight of a value; null: the value is none.
  [[nodiscard]] const Weight* weight(size_t value) const;
};

/// Calls `use` with the place of every tensor among the arguments of a node.
void each_tensor(const Node& node, const auto& use) {
  for (const Argument& argument : node.arguments) {
    if (const auto* one = std::get_if<Ref>(&argument)) use(one->value);
    if (const auto* list = std::get_if<TensorList>(&argument))
      for (const auto& item : *list)
        if (const auto* ref = std::get_if<Ref>(&item)) use(ref->value);
  }
}

/// Returns a name of letters, digits and underscores, as Python has it, for any name.
[[nodiscard]] std::string plain_name(std::string wish);
/// Returns `wish`, or with a number behind it where the name is taken, and takes it.
[[nodiscard]] std::string take_name(std::set<std::string>& taken, const std::string& wish);

}  // namespace tare::interchange
