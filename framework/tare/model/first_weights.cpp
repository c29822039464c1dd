// Loads the file of weights that a model starts from.
#include "tare/model/first_weights.h"

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/checkpoint/match.h"
#include "tare/checkpoint/safetensors.h"
#include "tare/checkpoint/torch_file.h"
#include "tare/model/coded_weight.h"

namespace tare::models {
namespace {

constexpr const char* kMake = "models.make";
constexpr size_t kShownNames = 6;
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

using Renames = std::map<std::string, std::string>;

/// Returns the rule with the longest beginning of the name; nullptr: none begins it.
const Renames::value_type* rule_of(const Renames& rename, const std::string& name) {
  const Renames::value_type* longest = nullptr;
  for (const auto& rule : rename)  // sorted, so that a longer beginning comes after a shorter one
    if (name.starts_with(rule.first)) longest = &rule;
  return longest;
}

/// Returns the name that ends with this one behind a dot, else the nearest one; empty: none.
std::string near_name(const std::string& name, const std::vector<std::string>& known) {
  const auto inner = std::ranges::find_if(
      known, [&](const std::string& each) { return each.ends_with('.' + name); });
  return inner == known.end() ? nearest(name, known) : *inner;
}

/// Throws ConfigError for a rule that changes no name.
void check_used(const Renames& rename, const std::vector<NamedTensor>& stored) {
  std::set<std::string> used, first, beginnings;
  for (const auto& [name, tensor] : stored) {
    if (const auto* rule = rule_of(rename, name)) used.insert(rule->first);
    const size_t end = name.find('.');
    first.insert(end == std::string::npos ? name : name.substr(0, end + 1));
    for (size_t dot = end; dot != std::string::npos; dot = name.find('.', dot + 1))
      beginnings.insert(name.substr(0, dot + 1));
    beginnings.insert(name);
  }
  for (const auto& [beginning, other] : rename) {
    if (used.contains(beginning)) continue;
    const bool longer = std::ranges::any_of(
        stored, [&](const NamedTensor& each) { return each.name.starts_with(beginning); });
    const std::string near = near_name(beginning, {beginnings.begin(), beginnings.end()});
    throw ConfigError(
        kMake, "rename",
        "has '" + printable(beginning) + "', " +
            (longer ? "but longer beginnings stand for all its names"
                    : "with which no name in the file of weights begins" +
                          (near.empty() ? "" : "; near is '" + printable(near) + "'")),
        listed({first.begin(), first.end()}, kShownNames) + " or longer beginnings", {});
  }
}

/// Returns the tensors with the names that the rules give them.
std::vector<NamedTensor> renamed(std::vector<NamedTensor> stored, const Renames& rename) {
  if (rename.empty()) return stored;
  check_used(rename, stored);
  std::map<std::string, std::string> former;  // names in the file, by those that they become
  for (auto& [name, tensor] : stored) {
    const auto* rule = rule_of(rename, name);
    const std::string now = rule ? rule->second + name.substr(rule->first.size()) : name;
    const auto [place, is_new] = former.emplace(now, name);
    if (!is_new)
      throw ConfigError(kMake, "rename",
                        "gives '" + printable(place->second) + "' and '" + printable(name) +
                            "' of the file of weights one name",
                        "a name of its own for each", now);
    name = now;
  }
  return stored;
}

template <class T>
int64_t count_not_finite(const at::Tensor& tensor) {
  const at::Tensor all = tensor.contiguous();
  const T* value = all.const_data_ptr<T>();
  return std::count_if(value, value + all.numel(),
                       [](T one) { return !std::isfinite(static_cast<float>(one)); });
}

/// Counts the values that are NaN or infinite, on the host.
int64_t not_finite(const at::Tensor& tensor) {
  if (!tensor.is_cpu()) return 0;
  switch (tensor.scalar_type()) {
    case c10::kFloat:
      return count_not_finite<float>(tensor);
    case c10::kBFloat16:
      return count_not_finite<c10::BFloat16>(tensor);
    case c10::kHalf:
      return count_not_finite<c10::Half>(tensor);
    default:
      return 0;
  }
}

/// Warns of values that make every loss NaN.
void warn_of_not_finite(const std::vector<NamedTensor>& loaded, const std::string& path) {
  std::string first;
  int64_t values = 0, tensors = 0;
  for (const auto& [name, tensor] : loaded) {
    const int64_t count = not_finite(tensor);
    if (count == 0) continue;
    if (++tensors == 1) first = name;
    values += count;
  }
  if (tensors == 0) return;
  log::warning("weights of " + printable(path, 1000) + ": '" + printable(first) + "'" +
               (tensors == 1 ? " has "
                             : " and " + format_count(tensors - 1) + " more of the " +
                                   format_count(std::ssize(loaded)) + " tensors have ") +
               format_count(values) + (values == 1 ? " value that is" : " values that are") +
               " NaN or infinite, which makes the loss NaN: take other weights");
}

class WeightsFile {
 public:
  /// Reads a file of weights for these targets, renamed, and without a prefix that only the file
  /// has.
  WeightsFile(const std::string& path, const std::vector<NamedTensor>& targets,
              const Renames& rename)
      : path_(path) {
    auto stored = renamed(tensors_in(path), rename);
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
    const std::string absent = absent_head(head) + '.';
    for (const NamedTensor& target : targets) {
      const auto found = outlines_.find(target.name);
      // Files of another program may lack the counts, which only an average of all batches reads.
      if (found == outlines_.end() && target.name.ends_with(".num_batches_tracked")) continue;
      if (found == outlines_.end() && target.name.starts_with(absent) && !has_others(targets)) {
        fresh += (fresh.empty() ? "" : ", ") + target.name;
        continue;
      }
      if (found == outlines_.end())
        throw FormatError(kMake, path_, target.name,
                          "is missing in the weights file" + advice_for(target.name));
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
  /// Returns the module that is new where the file lacks the head: the head, or the module around
  /// it, such as a classifier of several layers, of which the file has nothing.
  [[nodiscard]] std::string absent_head(const std::string& head) const {
    const size_t dot = head.rfind('.');
    if (dot == std::string::npos) return head;
    const std::string around = head.substr(0, dot + 1);
    const bool has_part = std::ranges::any_of(
        outlines_, [&](const auto& stored) { return stored.first.starts_with(around); });
    return has_part ? head : head.substr(0, dot);
  }
  /// Whether the file has a tensor that is no target, which may be the head under another name.
  [[nodiscard]] bool has_others(const std::vector<NamedTensor>& targets) const {
    return std::ranges::any_of(outlines_, [&](const auto& stored) {
      return std::ranges::find(targets, stored.first, &NamedTensor::name) == targets.end();
    });
  }
  /// Returns what to do about a name that is missing.
  [[nodiscard]] std::string advice_for(const std::string& name) const {
    std::vector<std::string> known;
    for (const auto& [each, tensor] : outlines_) known.push_back(each);
    std::ranges::sort(known);
    const std::string near = near_name(name, known);
    return (near.empty() ? "" : " (near is '" + printable(near) + "')") +
           "; rename gives the tensors of a file other names";
  }

  std::string path_;
  std::string prefix_;
  std::unordered_map<std::string, at::Tensor> tensors_;   // as the file has them
  std::map<std::string, at::Tensor> scales_;              // by the weight's name
  std::unordered_map<std::string, at::Tensor> outlines_;  // as the model computes with them
};

}  // namespace

void check_weights(const std::vector<NamedTensor>& targets, const std::string& head,
                   const std::string& path, const Renames& rename) {
  std::string fresh;
  static_cast<void>(WeightsFile(path, targets, rename).matched(targets, head, fresh));
}

void load_weights(const std::vector<NamedTensor>& targets, const std::string& head,
                  const std::string& path, const Renames& rename) {
  const WeightsFile file(path, targets, rename);
  std::string fresh;
  const auto taken = file.matched(targets, head, fresh);
  const c10::AutoGradMode no_grad(false);
  for (const NamedTensor& target : taken) file.copy_into(target);
  warn_of_not_finite(taken, path);
  if (!file.prefix().empty())
    log::info("weights of " + path + " have '" + printable(file.prefix()) +
              "' in front of each name, which was dropped");
  if (!fresh.empty())
    log::info("weights of " + path +
              " have another class count, or no head; freshly initialised: " + fresh);
}

}  // namespace tare::models
