// Stacks and pads samples, and keeps lists of them.
#include "tare/data/collate.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <span>
#include <utility>

#include "tare/base/content_hash.h"
#include "tare/base/error.h"
#include "tare/data/gather.h"
#include "tare/data/padding_source.h"

namespace tare {
namespace {

constexpr const char* kCollate = "data.collate";
constexpr double kIgnored = -100;  // the class index that losses ignore

int64_t length_of(const at::Tensor& tensor) { return tensor.dim() == 0 ? 0 : tensor.size(0); }

/// Returns the tensors of one name, by sample.
std::vector<at::Tensor> column(const std::vector<Batch>& samples, NamedTensors Batch::*list,
                               size_t index) {
  std::vector<at::Tensor> tensors;
  for (const Batch& sample : samples) tensors.push_back((sample.*list)[index].tensor);
  return tensors;
}

bool same_sizes(const std::vector<at::Tensor>& tensors) {
  return std::ranges::all_of(
      tensors, [&](const at::Tensor& one) { return one.sizes() == tensors.front().sizes(); });
}

[[noreturn]] void refuse_shapes(const std::string& name, const std::vector<at::Tensor>& tensors) {
  const auto other = std::ranges::find_if(
      tensors, [&](const at::Tensor& one) { return one.sizes() != tensors.front().sizes(); });
  throw ShapeError(kCollate,
                   printable(name) + " of one shape, " + c10::str(tensors.front().sizes()) +
                       ", or a collate function such as pad",
                   c10::str(other->sizes()));
}

at::Tensor stacked(const std::string& name, const std::vector<at::Tensor>& tensors) {
  if (!same_sizes(tensors)) refuse_shapes(name, tensors);
  return at::stack(tensors);
}

/// Returns [samples, longest, ...], filled with `value` behind each sample's end.
at::Tensor padded(const std::string& name, const std::vector<at::Tensor>& tensors, double value,
                  int64_t multiple) {
  int64_t longest = 0;
  for (const at::Tensor& one : tensors) {
    if (one.dim() == 0 || one.sizes().slice(1) != tensors.front().sizes().slice(1))
      refuse_shapes(name, tensors);
    longest = std::max(longest, one.size(0));
  }
  longest = (longest + multiple - 1) / multiple * multiple;
  std::vector<int64_t> shape = tensors.front().sizes().vec();
  shape.front() = longest;
  shape.insert(shape.begin(), static_cast<int64_t>(tensors.size()));
  at::Tensor batch = at::full(shape, value, tensors.front().options());
  for (size_t i = 0; i < tensors.size(); ++i)
    batch[static_cast<int64_t>(i)].narrow(0, 0, tensors[i].size(0)).copy_(tensors[i]);
  return batch;
}

Batch pad_all(const std::vector<Batch>& samples, const PadOptions& options) {
  Batch batch;
  const Batch& first = samples.front();
  if (std::ranges::any_of(first.inputs, [&](const auto& i) { return i.name == options.with; }))
    throw ConfigError(kCollate, "pad would add a second input named '" + options.with +
                                    "'; give the samples' own another name, or PadOptions::with");
  const auto join = [&](NamedTensors Batch::*list, size_t i, bool grows) {
    const std::string& name = (first.*list)[i].name;
    const auto tensors = column(samples, list, i);
    const bool labels = list == &Batch::targets && tensors.front().scalar_type() == at::kLong;
    if (!grows && same_sizes(tensors)) return at::stack(tensors);
    return padded(name, tensors, labels ? kIgnored : options.value, options.multiple);
  };
  for (size_t i = 0; i < first.inputs.size(); ++i)
    batch.inputs.push_back({first.inputs[i].name, join(&Batch::inputs, i, i == 0)});
  for (size_t i = 0; i < first.targets.size(); ++i)
    batch.targets.push_back({first.targets[i].name, join(&Batch::targets, i, false)});
  if (options.with == "none") return batch;
  std::vector<int64_t> lengths;
  for (const Batch& sample : samples) lengths.push_back(length_of(sample.input()));
  at::Tensor all = at::tensor(lengths, at::kLong);
  if (options.with == "mask") all = at::arange(batch.input().size(1)).lt(all.unsqueeze(1));
  batch.inputs.push_back({options.with, std::move(all)});
  return batch;
}

/// Is the collate `pad`, which a data set asks for its options.
struct Padder {
  PadOptions options{};
  Batch operator()(const std::vector<Batch>& samples) const { return pad_all(samples, options); }
};

bool same_kind(const Batch& one, const Batch& other) {
  const auto same = [](const NamedTensor& a, const NamedTensor& b) {
    return a.name == b.name && a.tensor.dim() == b.tensor.dim() &&
           a.tensor.scalar_type() == b.tensor.scalar_type();
  };
  return std::ranges::equal(one.inputs, other.inputs, same) &&
         std::ranges::equal(one.targets, other.targets, same);
}

class SampleDataset final : public Dataset, public PaddingSource {
 public:
  SampleDataset(std::vector<Batch> samples, Collate collate, std::vector<std::string> labels,
                std::vector<std::string> names, int64_t text_length)
      : samples_(std::move(samples)),
        collate_(std::move(collate)),
        labels_(std::move(labels)),
        names_(std::move(names)),
        text_length_(text_length) {
    if (!names_.empty() && names_.size() != samples_.size())
      throw ConfigError(kCollate, "there must be a name for each of " +
                                      std::to_string(samples_.size()) + " samples, got " +
                                      std::to_string(names_.size()));
    if (!collate_) throw ConfigError(kCollate, "the function is empty, give one");
    if (samples_.empty()) throw ConfigError(kCollate, "the list of samples is empty, give one");
    for (size_t i = 0; i < samples_.size(); ++i) {
      if (samples_[i].inputs.empty())
        throw ConfigError(kCollate, "sample " + std::to_string(i) + " has no input");
      if (!same_kind(samples_[i], samples_.front()))
        throw ShapeError(kCollate, "samples of the same names, dtypes and numbers of dimensions",
                         "others in sample " + std::to_string(i));
      if (sample_size(static_cast<int64_t>(i)) > sample_size(longest_))
        longest_ = static_cast<int64_t>(i);
    }
  }
  [[nodiscard]] int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  [[nodiscard]] Batch get(const BatchRequest& request) const override {
    check_indices(request.indices, size());
    std::vector<Batch> chosen;
    for (const int64_t index : request.indices)
      chosen.push_back(samples_[static_cast<size_t>(index)]);
    return collate_(chosen);
  }
  [[nodiscard]] std::vector<int64_t> sample_shape() const override {
    return samples_[static_cast<size_t>(longest_)].input().sizes().vec();
  }
  [[nodiscard]] int64_t sample_size(int64_t index) const override {
    return length_of(samples_[static_cast<size_t>(index)].input());
  }
  [[nodiscard]] std::vector<int64_t> sample_sizes(int64_t index) const override {
    std::vector<int64_t> sizes;
    for (const at::Tensor& tensor : samples_[static_cast<size_t>(index)].tensors())
      sizes.push_back(length_of(tensor));
    return sizes;
  }
  [[nodiscard]] std::string sample_name(int64_t index) const override {
    check_indices({&index, 1}, size());
    return names_.empty() ? std::string() : names_[static_cast<size_t>(index)];
  }
  [[nodiscard]] std::vector<std::string> labels() const override { return labels_; }
  [[nodiscard]] at::Tensor targets() const override {
    if (samples_.front().targets.empty()) return {};
    const auto all = column(samples_, &Batch::targets, 0);
    return same_sizes(all) ? at::stack(all) : Dataset::targets();
  }
  [[nodiscard]] int64_t text_length() const override { return text_length_; }
  [[nodiscard]] bool in_memory() const override { return true; }
  [[nodiscard]] int64_t padded_to() const override {
    const auto* padder = collate_.target<Padder>();
    return padder ? padder->options.multiple : 1;
  }
  [[nodiscard]] std::string content() const override {
    std::string each;
    for (const Batch& sample : samples_) each += hash_of(sample);
    return content_hash(std::as_bytes(std::span(each)));
  }
  void account(Ledger& ledger) const override {
    for (const Batch& sample : samples_)
      for (const auto* list : {&sample.inputs, &sample.targets})
        for (const auto& [name, tensor] : *list)
          ledger.add(Category::other, "dataset." + name, tensor);
  }

 private:
  std::vector<Batch> samples_;
  Collate collate_;
  std::vector<std::string> labels_, names_;
  int64_t longest_ = 0, text_length_ = 0;
};

}  // namespace

Batch stack(const std::vector<Batch>& samples) {
  Batch batch;
  const Batch& first = samples.front();
  for (size_t i = 0; i < first.inputs.size(); ++i) {
    const std::string& name = first.inputs[i].name;
    batch.inputs.push_back({name, stacked(name, column(samples, &Batch::inputs, i))});
  }
  for (size_t i = 0; i < first.targets.size(); ++i) {
    const std::string& name = first.targets[i].name;
    batch.targets.push_back({name, stacked(name, column(samples, &Batch::targets, i))});
  }
  return batch;
}

Collate pad(const PadOptions& options) { return Padder{options}; }

collates::Registry& collates::registry() {
  static Registry all("collate function", [](Registry& entries) {
    entries.add("stack", "stacks samples of one shape", [] { return Collate(stack); });
    entries.add<PadOptions>("pad",
                            "pads sequences to the longest of the batch, with lengths or a mask",
                            [](const PadOptions& options) { return pad(options); });
  });
  return all;
}

DatasetPtr sample_dataset(std::vector<Batch> samples, Collate collate,
                          std::vector<std::string> labels, std::vector<std::string> names,
                          int64_t text_length) {
  return std::make_shared<SampleDataset>(std::move(samples), std::move(collate), std::move(labels),
                                         std::move(names), text_length);
}

}  // namespace tare
