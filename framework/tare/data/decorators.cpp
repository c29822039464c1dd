// Builds one data set from another: transforms, subsets, maps and a cache.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "tare/base/error.h"
#include "tare/data/gather.h"
#include "tare/data/level_source.h"
#include "tare/data/padding_source.h"
#include "tare/data/row_source.h"
#include "tare/data/tensor_dataset.h"
#include "tare/transform/random.h"
#include "tare/transform/row_coding.h"

namespace tare {
namespace {

const DatasetPtr& checked(const char* where, const DatasetPtr& base) {
  if (!base) throw ConfigError(where, "the data set is null, give one");
  return base;
}

// Passes on what a decorator does not change.
class Decorator : public Dataset, public RowSource, public LevelSource, public PaddingSource {
 public:
  Decorator(const char* where, DatasetPtr base) : base_(std::move(base)) {
    (void)checked(where, base_);
  }
  [[nodiscard]] int64_t size() const override { return base_->size(); }
  [[nodiscard]] std::vector<int64_t> sample_shape() const override { return base_->sample_shape(); }
  [[nodiscard]] std::string sample_name(int64_t index) const override {
    return base_->sample_name(index);
  }
  [[nodiscard]] int64_t sample_size(int64_t index) const override {
    return base_->sample_size(index);
  }
  [[nodiscard]] std::vector<int64_t> sample_sizes(int64_t index) const override {
    return base_->sample_sizes(index);
  }
  [[nodiscard]] std::vector<std::string> labels() const override { return base_->labels(); }
  [[nodiscard]] const Transforms* transforms() const override { return base_->transforms(); }
  [[nodiscard]] bool described() const override { return base_->described(); }
  [[nodiscard]] int64_t text_length() const override { return base_->text_length(); }
  [[nodiscard]] const RowCoding* row_coding() const override { return row_coding_of(*base_); }
  [[nodiscard]] std::optional<Levels> levels() const override { return levels_of(*base_); }
  [[nodiscard]] int64_t padded_to() const override { return padded_length(*base_, 1); }
  void account(Ledger& ledger) const override { base_->account(ledger); }
  void clear_cache() const override { base_->clear_cache(); }

 protected:
  DatasetPtr base_;
};

class Transformed : public Decorator {
 public:
  Transformed(DatasetPtr base, Transforms own)
      : Decorator("data.transformed", std::move(base)), own_(std::move(own)) {
    sample_shape_ = own_.output_shape(base_->sample_shape());
    if (base_->transforms()) depth_ = base_->transforms()->steps().size();
    all_ = joined(base_->transforms(), own_);
  }
  [[nodiscard]] Batch get(const BatchRequest& request) const override {
    Batch batch = base_->get(request);
    const bool random = request.training && own_.random();
    // Another seed than that of the base's own random steps, which are at the same places of their
    // list.
    const BatchRequest own{request.indices, derive_seed(request.seed, ~depth_), true};
    const std::vector<uint64_t> seeds = random ? sample_seeds(own) : std::vector<uint64_t>();
    const std::vector<int64_t> images = batch.input().sizes().vec();
    for (auto& [name, target] : batch.targets) {
      own_.check_targets_move(name, target.sizes(), images);
      if (Transforms::are_images(target.sizes(), images))
        target = own_.apply_to_targets(target.contiguous(), seeds, random);
    }
    for (size_t i = 0; i < batch.inputs.size(); ++i) {
      at::Tensor& input = batch.inputs[i].tensor;
      if (i == 0 || input.dim() == 4)
        input = own_.apply(input.contiguous(), random ? sample_seeds(own, i) : seeds, random);
    }
    return batch;
  }
  [[nodiscard]] std::vector<int64_t> sample_shape() const override { return sample_shape_; }
  [[nodiscard]] const Transforms* transforms() const override { return &all_; }
  [[nodiscard]] at::Tensor targets() const override {
    const at::Tensor all = base_->targets();
    const std::vector<int64_t> shape = base_->sample_shape();
    if (!all.defined() ||
        !Transforms::are_images(all.sizes(), {size(), shape[0], shape[1], shape[2]}))
      return all;
    return own_.apply_to_targets(all.contiguous(), {}, false);
  }

 private:
  Transforms own_, all_;
  uint64_t depth_ = 0;
  std::vector<int64_t> sample_shape_;
};

class Subset : public Decorator {
 public:
  Subset(DatasetPtr base, std::vector<int64_t> indices, bool random)
      : Decorator("data.subset", std::move(base)), indices_(std::move(indices)), random_(random) {
    if (indices_.empty())
      throw ConfigError("data.subset", "the list of samples is empty, give at least one");
    check_indices(indices_, base_->size());
  }
  [[nodiscard]] int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  [[nodiscard]] Batch get(const BatchRequest& request) const override {
    check_indices(request.indices, size());
    std::vector<int64_t> mapped;
    mapped.reserve(request.indices.size());
    for (const int64_t index : request.indices)
      mapped.push_back(indices_[static_cast<size_t>(index)]);
    return base_->get({mapped, request.seed, request.training && random_});
  }
  [[nodiscard]] std::string sample_name(int64_t index) const override {
    check_indices({&index, 1}, size());
    return base_->sample_name(indices_[static_cast<size_t>(index)]);
  }
  [[nodiscard]] int64_t sample_size(int64_t index) const override {
    check_indices({&index, 1}, size());
    return base_->sample_size(indices_[static_cast<size_t>(index)]);
  }
  [[nodiscard]] std::vector<int64_t> sample_sizes(int64_t index) const override {
    check_indices({&index, 1}, size());
    return base_->sample_sizes(indices_[static_cast<size_t>(index)]);
  }
  [[nodiscard]] bool in_memory() const override { return base_->in_memory(); }
  [[nodiscard]] at::Tensor targets() const override {
    const at::Tensor all = base_->targets();
    return all.defined() ? gather_rows(all.contiguous(), indices_) : all;
  }

 private:
  std::vector<int64_t> indices_;
  bool random_;
};

class Mapped : public Decorator {
 public:
  Mapped(DatasetPtr base, std::function<Batch(Batch)> function, std::vector<int64_t> sample_shape,
         const std::optional<Transforms>& as)
      : Decorator("data.map", std::move(base)),
        function_(std::move(function)),
        sample_shape_(std::move(sample_shape)),
        described_(as && base_->described()) {
    if (as) all_ = joined(base_->transforms(), *as);
    if (!function_) throw ConfigError("data.map", "the function is empty, give one");
    if (sample_shape_.empty()) sample_shape_ = base_->sample_shape();
  }
  [[nodiscard]] Batch get(const BatchRequest& request) const override {
    Batch batch = function_(base_->get(request));
    const auto expected = static_cast<int64_t>(request.indices.size());
    for (const at::Tensor& tensor : batch.tensors())
      if (tensor.size(0) != expected)
        throw ShapeError("data.map",
                         "a function that keeps the number of samples, " + std::to_string(expected),
                         std::to_string(tensor.size(0)));
    return batch;
  }
  [[nodiscard]] std::vector<int64_t> sample_shape() const override { return sample_shape_; }
  [[nodiscard]] const Transforms* transforms() const override {
    return all_.steps().empty() ? base_->transforms() : &all_;
  }
  [[nodiscard]] bool described() const override { return described_; }

 private:
  std::function<Batch(Batch)> function_;
  std::vector<int64_t> sample_shape_;
  Transforms all_;  // the base's, then those that do what the function does
  bool described_ = false;
};

SampleNames names_of(const Dataset& data) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < data.size(); ++i) names.push_back(data.sample_name(i));
  if (std::ranges::all_of(names, &std::string::empty)) return nullptr;
  return std::make_shared<const std::vector<std::string>>(std::move(names));
}

class Cached : public Decorator {
 public:
  explicit Cached(DatasetPtr base) : Decorator("data.cache", std::move(base)) {
    if (base_->transforms()) transforms_ = base_->transforms()->deterministic();
    described_ = base_->described();
    text_length_ = base_->text_length();
    if (const RowCoding* coding = row_coding_of(*base_)) row_coding_ = *coding;
    levels_ = levels_of(*base_);
    const Batch all = get_all(*base_);
    base_ = std::make_shared<TensorDataset>(all.inputs, all.targets, base_->labels(), Transforms{},
                                            names_of(*base_));
  }
  [[nodiscard]] Batch get(const BatchRequest& request) const override {
    return base_->get(request);
  }
  [[nodiscard]] const Transforms* transforms() const override {
    return transforms_ ? &*transforms_ : nullptr;
  }
  [[nodiscard]] bool described() const override { return described_; }
  [[nodiscard]] int64_t text_length() const override { return text_length_; }
  [[nodiscard]] const RowCoding* row_coding() const override {
    return row_coding_ ? &*row_coding_ : nullptr;
  }
  [[nodiscard]] std::optional<Levels> levels() const override { return levels_; }
  [[nodiscard]] bool in_memory() const override { return true; }
  [[nodiscard]] at::Tensor targets() const override { return base_->targets(); }

 private:
  std::optional<Transforms> transforms_;
  bool described_ = true;
  int64_t text_length_ = 0;
  std::optional<RowCoding> row_coding_;
  std::optional<Levels> levels_;
};

}  // namespace

DatasetPtr transformed(const DatasetPtr& base, const Transforms& transforms) {
  if (const auto* itself =
          dynamic_cast<const Transformable*>(checked("data.transformed", base).get()))
    return itself->with(transforms);
  return std::make_shared<Transformed>(base, transforms);
}

DatasetPtr subset(const DatasetPtr& base, std::vector<int64_t> indices, bool random) {
  return std::make_shared<Subset>(base, std::move(indices), random);
}

DatasetPtr map(const DatasetPtr& base, std::function<Batch(Batch)> function,
               std::vector<int64_t> sample_shape, std::optional<Transforms> as) {
  return std::make_shared<Mapped>(base, std::move(function), std::move(sample_shape), as);
}

DatasetPtr cache(const DatasetPtr& base) {
  return checked("data.cache", base)->in_memory() ? base : std::make_shared<Cached>(base);
}

}  // namespace tare
