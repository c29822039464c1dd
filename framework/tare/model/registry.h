// The registry: models by name. It holds the families of models/ and those a program adds.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tare/config/registry.h"
#include "tare/model/model.h"

namespace tare {

/// Limits of ModelOptions, far above what any memory holds. Within them the number of bytes of a
/// layer is below 2^63, so that what is too large is refused by plan or memory, never by overflow.
inline constexpr int64_t kLargestSize = int64_t{1} << 24;
inline constexpr int64_t kLargestWidth = int64_t{1} << 20;  ///< of ModelOptions::width
inline constexpr int64_t kMostLayers = 10'000;              ///< of ModelOptions::layers

/// Configures a registered model. Every family uses `classes`, `sample_shape`, `weights` and
/// `rename`; setting another field that the family does not use is a ConfigError.
struct ModelOptions {
  int64_t classes = 10;  ///< outputs, >= 1; of a language model its vocabulary
  /// Shape of one sample, [channels, height, width], [features] or, of tokens, [context]; empty:
  /// the family's.
  std::vector<int64_t> sample_shape{};
  /// Safetensors file, bundle or state dict of PyTorch (.pt, .pth) to start from; a head for
  /// another number of classes keeps its initial weights.
  std::string weights{};
  /// Other names for the tensors of `weights`: a beginning of names in the file, and what takes its
  /// place. The longest beginning of a name counts.
  std::map<std::string, std::string> rename{};
  int64_t width = 0;   ///< channels of the first stage, or of a token; 0: the family's
  int64_t layers = 0;  ///< blocks, one after the other (gpt, vit); 0: the family's
  int64_t heads =
      0;  ///< attention heads of a block, a divisor of width (gpt, vit); 0: the family's
  std::vector<int64_t>
      hidden{};        ///< sizes of the hidden layers (mlp, tabular); empty: the family's
  double dropout = 0;  ///< probability in [0, 1), before the head, or where the family documents it
  config::OwnOptions options{};  ///< those that only this family has, such as the patch of vit

  bool operator==(const ModelOptions&) const = default;
};
/// Reads and writes ModelOptions::rename: a mapping of texts to texts.
struct RenameRules {
  std::map<std::string, std::string> rules{};  ///< in place of a beginning
};
/// Throws ConfigError for what is no mapping, or has a value that is no text.
void from_node(const config::Node& node, RenameRules& value);
[[nodiscard]] config::Node to_node(const RenameRules& value);
void visit_fields(auto& visit, ModelOptions& o) {
  visit("classes", o.classes, config::between(1, kLargestSize));
  visit("sample_shape", o.sample_shape, config::between(1, kLargestSize));
  visit("weights", o.weights);
  visit.template as<RenameRules>("rename", o.rename);
  visit("width", o.width, config::between(0, kLargestWidth));
  visit("layers", o.layers, config::between(0, kMostLayers));
  visit("heads", o.heads, config::between(0, kLargestWidth));
  visit("hidden", o.hidden, config::between(1, kLargestSize));
  visit("dropout", o.dropout, config::between(0, 0.999));
  visit("options", o.options);
}

namespace models {

/// Describes models that differ in their options only.
struct Family {
  std::string name{};                   ///< e.g. "resnet18"
  std::string summary{};                ///< one line for `tare ls models`
  std::vector<int64_t> sample_shape{};  ///< default of ModelOptions::sample_shape
  std::vector<std::string> options{};   ///< used fields that not every family uses
  std::string head{};                   ///< module whose tensors depend on `classes`, e.g. "fc"
  std::function<Model(const ModelOptions&)> make{};  ///< gets options with sample_shape filled in
  /// The outputs are logarithms of probabilities, which the loss nll wants; else they are logits.
  bool log_probabilities = false;
  /// The input is int64 tokens in [0, classes), of any length up to sample_shape; else float32.
  bool tokens = false;
  /// Bounds the int64 tokens of the input, [0, vocabulary), if they are not the classes; 0: not so.
  int64_t vocabulary = 0;
  /// Returns the head of a model with these options, where its name depends on them; empty: `head`.
  std::function<std::string(const ModelOptions&)> head_for{};
  /// Throws ConfigError where the options that only this family has do not do; empty: they all do.
  std::function<void()> check{};
  /// Names the file of a program that the model runs; empty: it runs none. A bundle of such a model
  /// is opened only where the program is trusted (trust_program).
  std::string program{};
};

/// Holds the families that have a name. All take their options from ModelOptions. A family may
/// have options of its own, which are in ModelOptions::options:
///   models::registry().add<UnetOptions>("unet", "segments images", [](const UnetOptions& o) {
///     return Family{...};
///   });
using Registry = config::Registry<Family()>;
[[nodiscard]] Registry& registry();  ///< returns the one registry of the process

/// Registers a family, replacing one of the same name. Not thread-safe: call it at program start.
void add(Family family);
/// Adds a family to this registry. The files of models/ call it, while registry() is being filled.
void add(Registry& all, Family family);
/// Registers a factory whose only option is `classes`; `summary` is its line in `tare ls models`,
/// a verb first and without a full stop.
void add(const std::string& name, std::string summary,
         std::function<Model(int64_t classes)> factory);
/// Registers it with a summary that says only that a program has added it.
void add(const std::string& name, std::function<Model(int64_t classes)> factory);

/// Returns the options without a file to start from, and without names for its tensors.
[[nodiscard]] ModelOptions without_weights(ModelOptions options);

/// Throws the ConfigError that make() would throw for the name and the options, without building or
/// reading weights.
void check(const std::string& name, const ModelOptions& options);

/// Builds a model on the CPU and loads `options.weights` if given. Initial weights come from
/// LibTorch's global generator. Throws ConfigError for an unknown name, naming the nearest, or an
/// option that the family does not use; IoError and FormatError for weights that cannot be read or
/// do not fit.
[[nodiscard]] Model make(const std::string& name, const ModelOptions& options = {});
/// Rebuilds a model from what a bundle stores. Throws as above, and ConfigError if the model runs a
/// program that this process does not trust.
[[nodiscard]] Model make(const ModelSpec& spec);
/// Returns the XXH3 of a program's file, 16 hexadecimal digits. Throws IoError.
[[nodiscard]] std::string program_content(const std::string& file);
/// Sets the option `content` of a model that runs a program to program_content(), so that another
/// program is refused where the options are used again. Options that have it stay as they are, and
/// so do those of other models. Throws IoError.
void note_program(const std::string& name, ModelOptions& options);
/// Trusts a program, by the name of its file, from now on in this process. So do check() and make()
/// of a name with options that trust a program. Thread-safe.
void trust_program(const std::string& file);
/// Initialises the head of a registry model again, as make() would; nothing else changes. Throws
/// StateError for a model that is not from the registry or whose family names no head.
void reset_head(Model& model);

/// Returns the head of a model, as Family::head and Family::head_for say. Throws ConfigError for an
/// unknown name.
[[nodiscard]] std::string head_of(const std::string& name, const ModelOptions& options);

/// Throws ConfigError for an unknown name, naming the nearest.
[[nodiscard]] Family family(const std::string& name);
[[nodiscard]] std::vector<std::string> names();  ///< returns the names, sorted
/// Returns the description of each family for lists, with the options that it takes; sorted by
/// name.
[[nodiscard]] std::vector<config::EntryInfo> infos();

}  // namespace models
}  // namespace tare
