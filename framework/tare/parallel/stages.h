// Stages: the division of a model over several devices, by its layer groups.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tare/model/model.h"

namespace tare::parallel {

/// Names the device of a stage and the layer group with which the stage begins, as a recipe has
/// them in one text: "cuda:1" or "cuda:1@layer3".
struct StageName {
  std::string device{};  ///< a name of a device, "cuda:1"
  std::string from{};    ///< the name of a layer group; empty: the division by bytes decides
};
/// Returns the two names in a text.
[[nodiscard]] StageName stage_name(const std::string& text);
/// Returns the names of the devices in LearnerOptions::stages.
[[nodiscard]] std::vector<std::string> device_names(const std::vector<std::string>& stages);

/// Describes a stage of a model.
struct Stage {
  c10::Device device = c10::kCPU;  ///< where the stage lives
  size_t first = 0;                ///< index of its first layer group
  size_t end = 0;                  ///< index behind its last layer group
  int64_t bytes = 0;               ///< of its parameters and buffers
};

/// Returns the layer groups at which a model can be cut, as indices from 1 on, in increasing order:
/// those whose first parameter, in order of registration, is the first of a block (model/block.h),
/// because a block copies its inputs to its device, and before which no block is divided.
[[nodiscard]] std::vector<size_t> cuts_of(const Model& model);

/// Describes the division of a model, from input to output, into consecutive stages that each begin
/// at a cut. A value; holds no tensor.
class Stages {
 public:
  /// Makes the division of a model that one device holds.
  Stages() = default;
  /// Divides `model`. `stages` has the texts of the stages in their order, which may be "auto"
  /// alone, and `devices` the device of each stage: all of one type and, but for the host, each
  /// once. Of "auto" as many of them are taken as the model can have stages. Stages without a layer
  /// group in their text are divided so that the largest share of its device's capacity that the
  /// parameters and buffers of a stage take is as small as it can be, and among such divisions the
  /// most even one is taken. `capacities`: of each device, in bytes, > 0; empty: they are equal.
  /// Throws ConfigError, naming `where`, for what cannot be.
  Stages(const Model& model, const std::vector<std::string>& stages,
         std::vector<c10::Device> devices, const std::vector<int64_t>& capacities,
         const std::string& where);

  /// Whether the model is not divided.
  [[nodiscard]] bool empty() const { return all_.empty(); }
  /// Returns how many stages there are.
  [[nodiscard]] size_t size() const { return all_.size(); }
  /// Returns the stages, from input to output.
  [[nodiscard]] const std::vector<Stage>& all() const { return all_; }
  /// Returns the texts of the stages with the layer group at which each after the first begins:
  /// "cuda:0", "cuda:1@layer3". They make this division again.
  [[nodiscard]] std::vector<std::string> names(const Model& model) const;
  /// Returns the names of the first and the last layer group of a stage: "stem to layer3".
  [[nodiscard]] std::string groups_text(const Model& model, size_t stage) const;
  /// Returns what each stage is, in one line: "cuda:0: stem to layer3, 2.7 MiB; cuda:1: ...".
  [[nodiscard]] std::string str(const Model& model) const;
  /// Returns their devices, each once, in order.
  [[nodiscard]] std::vector<c10::Device> devices() const;
  /// Returns the number of the stage that has a parameter or buffer of the model; unset: the model
  /// has none of that name. A buffer that lies in no layer group and no block is in the first
  /// stage.
  [[nodiscard]] std::optional<size_t> stage_of(const std::string& tensor) const;
  /// Whether all parameters and buffers of the model are on their devices.
  [[nodiscard]] bool holds(const Model& model) const;
  /// Moves the parameters and buffers of the model to their devices, in place, and has its blocks
  /// copy their inputs there. Gradients become undefined. Throws DeviceError for a tensor that is
  /// on meta and has no values to move, and OutOfMemory; what is moved then stays so.
  void place(Model& model) const;

 private:
  std::vector<Stage> all_;
  std::unordered_map<std::string, size_t> stage_by_name_;  // of parameters and buffers, by name
};

/// Moves a whole model to one device, as Model::to(), and has its blocks leave inputs as they are.
void place(Model& model, c10::Device device);

/// Divides consecutive groups into as many stages as there are `firsts`. `loads`: of the groups,
/// >= 0. `firsts`: the first group of each stage where it is given, else nothing; the first stage
/// begins at group 0. `cuts`: the groups at which other stages may begin. `capacities`: of the
/// stages, > 0. Returns the first group of each stage in the division whose largest load over
/// capacity is the smallest and, among such, whose sum of squares is; empty: there is no division.
[[nodiscard]] std::vector<size_t> divided(const std::vector<double>& loads,
                                          const std::vector<std::optional<size_t>>& firsts,
                                          const std::vector<size_t>& cuts,
                                          const std::vector<double>& capacities);

}  // namespace tare::parallel
