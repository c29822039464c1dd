// Loads the file of weights that a model starts from.
#include "tare/model/first_weights.h"

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <filesystem>
#include <map>
#include <unordered_map>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/checkpoint/match.h"
#include "tare/checkpoint/safetensors.h"
#include "tare/checkpoint/torch_file.h"
#include "tare/model/fp8.h"

namespace tare::models {
namespace {

constexpr const char* kMake = "models.make";
constexpr const char* kAllowed =
    "a safetensors file, a bundle (.tare) or a state dict of PyTorch (.pt, .pth)";

std::string described(const at::Tensor& tensor) {
  return std::string(c10::toString(tensor.scalar_type())) + ' ' + c10::str(tensor.sizes());
}

// A checkpoint is a folder, and its weights are a file in it.
void check_is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status) || std::filesystem::is_regular_file(status)) return;
  if (!std::filesystem::is_directory(status))
    throw ConfigError(kMake, "weights", "is a pipe or a device, and no file", kAllowed,
                      path.string());
  const auto inside = path / "model.safetensors";
  const bool checkpoint = std::filesystem::is_regular_file(inside, ignored);
  throw ConfigError(kMake, "weights", "is a folder",
                    checkpoint ? "its file " + printable(inside.string()) : kAllowed,
                    path.string());
}

std::vector<NamedTensor> tensors_in(const std::string& path) {
  check_is_file(path);
  if (checkpoint::is_torch_file(path)) return checkpoint::TorchFile::open(path).tensors();
  return checkpoint::SafeTensors::open(path).all();
}

class WeightsFile {
 public:
  /// Reads a file of weights for these targets, without a prefix that only the file has.
  WeightsFile(const std::string& path, const std::vector<NamedTensor>& targets) : path_(path) {
    auto stored = tensors_in(path);
    prefix_ = checkpoint::surplus_prefix(targets, stored);
    for (auto& [name, tensor] : stored) name.erase(0, prefix_.size());
    scales_ = scales_in(stored, kMake, path);
    for (const auto& [name, tensor] : outlined(stored, scales_)) outlines_.emplace(name, tensor);
    for (auto& [name, tensor] : stored) tensors_.emplace(std::move(name), std::move(tensor));
  }

  /// Returns what was in front of each name in the file; mostly empty.
  [[nodiscard]] const std::string& prefix() const { return prefix_; }

  /// Returns the targets that the file has values for; adds the other ones to `fresh`.
  [[nodiscard]] std::vector<NamedTensor> matched(const std::vector<NamedTensor>& targets,
                                                 const std::string& head,
                                                 std::string& fresh) const {
    std::vector<NamedTensor> taken;
    for (const NamedTensor& target : targets) {
      const auto found = outlines_.find(target.name);
      if (found == outlines_.end())
        throw FormatError(kMake, path_, target.name, "is missing in the weights file");
      const at::Tensor &given = found->second, &wanted = target.tensor;
      if (given.sizes() == wanted.sizes() &&
          checkpoint::converts(given.scalar_type(), wanted.scalar_type())) {
        taken.push_back(target);
      } else if (target.name.starts_with(head + '.')) {
        fresh += (fresh.empty() ? "" : ", ") + target.name;
      } else {
        throw FormatError(kMake, path_, target.name,
                          "is " + described(given) + " in the file and " + described(wanted) +
                              " in the model: give the model the options that the file's model "
                              "had");
      }
    }
    return taken;
  }

  void copy_into(const NamedTensor& target) const {
    const at::Tensor source = tensors_.at(target.name), into = target.tensor;
    const auto scale = scales_.find(target.name);
    if (scale == scales_.end())
      into.copy_(source);
    else
      dequantise_into(into, {source, scale->second});
  }

 private:
  std::string path_;
  std::string prefix_;
  std::unordered_map<std::string, at::Tensor> tensors_;   // as the file has them
  std::map<std::string, at::Tensor> scales_;              // by the weight's name
  std::unordered_map<std::string, at::Tensor> outlines_;  // as the model computes with them
};

}  // namespace

void check_weights(const std::vector<NamedTensor>& targets, const std::string& head,
                   const std::string& path) {
  std::string fresh;
  static_cast<void>(WeightsFile(path, targets).matched(targets, head, fresh));
}

void load_weights(const std::vector<NamedTensor>& targets, const std::string& head,
                  const std::string& path) {
  const WeightsFile file(path, targets);
  std::string fresh;
  const auto taken = file.matched(targets, head, fresh);
  const c10::AutoGradMode no_grad(false);
  for (const NamedTensor& target : taken) file.copy_into(target);
  if (!file.prefix().empty())
    log::info("weights of " + path + " have '" + printable(file.prefix()) +
              "' in front of each name, which was dropped");
  if (!fresh.empty())
    log::info("weights of " + path + " have another class count; freshly initialised: " + fresh);
}

}  // namespace tare::models
