// Opens the data sets of a recipe, one at a time, and counts their labels.
#include "tare/recipe/recipe_data.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "tare/base/error.h"
#include "tare/memory/backend.h"
#include "tare/memory/oom.h"
#include "tare/recipe/recipe.h"

namespace tare {
namespace {

// Names that are the classes' numbers, as a reader makes them up, do not show which classes there
// are.
bool has_names(const std::vector<std::string>& labels) {
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] != std::to_string(i)) return true;
  return false;
}

LabelCount labels_of(const Splits& data) {
  LabelCount count;
  std::set<int64_t> seen;
  for (const DatasetPtr& part : {data.train, data.valid, data.test}) {
    if (!part) continue;
    const auto names = static_cast<int64_t>(part->labels().size());
    count.classes = std::max(count.classes, names);
    const bool named = has_names(part->labels());
    if (named) count.seen = std::max(count.seen, names);
    if (named || !has_class_labels(part)) continue;
    const at::Tensor targets = part->targets().contiguous();
    const int64_t* labels = targets.const_data_ptr<int64_t>();
    seen.insert(labels, labels + targets.numel());
  }
  seen.erase(seen.begin(), seen.lower_bound(0));  // what a loss ignores
  if (seen.empty()) return count;
  return {.classes = std::max(count.classes, *seen.rbegin() + 1),
          .seen = std::max(count.seen, static_cast<int64_t>(seen.size()))};
}

std::map<int64_t, int64_t> counts_of(const DatasetPtr& data) {
  std::map<int64_t, int64_t> counts;
  if (!has_class_labels(data)) return counts;
  const at::Tensor targets = data->targets().contiguous();
  const int64_t* labels = targets.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < targets.numel(); ++i)
    if (labels[i] >= 0) ++counts[labels[i]];  // losses ignore the others
  return counts;
}

/// Returns the names of the classes of `data` that are not in `counts`.
std::set<std::string> classes_beyond(const std::map<int64_t, int64_t>& counts,
                                     const DatasetPtr& data) {
  std::set<std::string> names;
  if (!data || counts.empty()) return names;
  const auto labels = data->labels();
  for (const auto& [index, samples] : counts_of(data))
    if (!counts.contains(index))
      names.insert(std::cmp_less(index, labels.size()) ? labels[static_cast<size_t>(index)]
                                                       : std::to_string(index));
  return names;
}

}  // namespace

DataFacts facts_of(const Splits& data) {
  DataFacts facts{
      .has_valid = data.valid != nullptr, .labels = labels_of(data), .bundle = bundle_data(data)};
  if (facts.bundle) add_inputs(*facts.bundle, data);
  if (!data.train) return facts;
  facts.training_samples = facts.all_training_samples = data.train->size();
  facts.class_counts = counts_of(data.train);
  std::set<std::string> beyond = classes_beyond(facts.class_counts, data.valid);
  beyond.merge(classes_beyond(facts.class_counts, data.test));
  facts.untrained_classes.assign(beyond.begin(), beyond.end());
  facts.sample_shape = data.train->sample_shape();
  facts.sample = on_meta(data.train->first_sample());
  return facts;
}

namespace {

/// Returns the cut with the batch that the data decide where none is given.
DataCut completed(DataCut cut, const DataFacts& facts) {
  if (cut && !cut.batch) cut.batch = default_batch(facts.all_training_samples);
  return cut;
}

/// Leaves of the data what the cut says. What the labels and a bundle need is of all data.
void apply(const DataCut& cut, OpenData& data) {
  Splits& splits = data.named.splits;
  if (!cut || !splits.train) return;
  const int64_t batch = *cut.batch;
  splits =
      cut.overfit > 0 ? overfitted(splits, cut.overfit, batch) : limited(splits, cut.limit, batch);
  data.facts.training_samples = splits.train->size();
  data.facts.has_valid = splits.valid != nullptr;
  data.named.description += "; limited to train " + std::to_string(splits.train->size()) +
                            (cut.overfit > 0 ? ", valid the same"
                             : splits.valid  ? ", valid " + std::to_string(splits.valid->size())
                                             : "");
}

}  // namespace

bool RecipeData::is_open(const DataOptions& options, const DataCut& cut) const {
  return open_ && open_->options == options && open_->cut == completed(cut, open_->facts);
}

OpenData& RecipeData::open(const DataOptions& options, const DataCut& cut) {
  if (is_open(options, cut)) return *open_;
  close();  // before the next one is read
  OpenData data{.options = options};
  const memory::PeakScope peak(c10::kCPU);
  try {
    data.named = datasets::make(options, network_);
  } catch (const OutOfMemory& error) {
    if (!error.advice().empty()) throw;  // it says what to do
    throw error.with_advice("the data set " + printable(options.name) +
                            " does not fit in memory: raise the budget, or choose smaller data");
  }
  data.peak_bytes = peak.peak_above_start_bytes();
  data.facts = facts_of(data.named.splits);
  data.cut = completed(cut, data.facts);
  apply(data.cut, data);  // which may free a split
  data.bytes = memory::backend(c10::kCPU).usage().allocated_bytes - peak.start_bytes();
  return open_.emplace(std::move(data));
}

}  // namespace tare
