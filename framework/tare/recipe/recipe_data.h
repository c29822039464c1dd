// RecipeData: the data sets of a recipe, of which one is open at a time. Internal.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tare/data/datasets.h"
#include "tare/data/limit.h"
#include "tare/plan/fit_trace.h"
#include "tare/train/bundle_data.h"

namespace tare {

/// Holds the classes in the splits of a data set.
struct LabelCount {
  int64_t classes = 0;  ///< that the labels name or number; 0: there are no labels
  int64_t seen = 0;     ///< of them, those that have a sample or a name
};

/// Describes the data of a recipe: a value, which stays when the data are closed.
struct DataFacts {
  int64_t training_samples = 0;         ///< 0: there is no training split
  int64_t all_training_samples = 0;     ///< before a limit of the recipe
  bool has_valid = false;               ///< there is a validation split
  std::vector<int64_t> sample_shape{};  ///< of the training split; empty: there is none
  Batch sample{};  ///< one of the training split, on the meta device; empty: there is none
  LabelCount labels{};
  /// Counts the samples of each class in the training split, before a limit of the recipe; empty:
  /// its targets are no class labels.
  std::map<int64_t, int64_t> class_counts{};
  /// Names the classes that only samples of the other splits have.
  std::vector<std::string> untrained_classes{};
  std::optional<BundleData> bundle{};  ///< the data's description for a bundle; unset: none
};
/// Reads all targets and one sample.
[[nodiscard]] DataFacts facts_of(const Splits& data);

/// Holds what a recipe leaves of its data for a quick try; nothing by default.
struct DataCut {
  LimitOptions limit{};
  int64_t overfit = 0;
  std::optional<int64_t> batch{};  ///< unset: that of all data; set in an OpenData with a cut
  bool operator==(const DataCut&) const = default;
  /// Whether it leaves less than all.
  explicit operator bool() const { return limit || overfit > 0; }
};

/// Holds an open data set, with what reading it took.
struct OpenData {
  DataOptions options{};
  DataCut cut{};
  datasets::Named named{};
  DataFacts facts{};
  int64_t bytes = 0;       ///< of the host's tensors that it holds
  int64_t peak_bytes = 0;  ///< of the host's tensors while it was read, above what was there before
  /// Predicts the allocations of batches, made by the first plan that asks; `valid` may stay null.
  std::shared_ptr<const BatchAllocations> train{}, valid{};
};

/// Reads a data set when it is first asked for, and keeps it open until another one is asked for or
/// it is closed. Not thread-safe. Neither copied nor moved.
class RecipeData {
 public:
  explicit RecipeData(datasets::Network network = datasets::Network::allowed) : network_(network) {}
  RecipeData(const RecipeData&) = delete;
  RecipeData& operator=(const RecipeData&) = delete;

  /// Returns the data set of these options, valid until the next call of open() or close(). Throws
  /// what datasets::make() throws.
  [[nodiscard]] OpenData& open(const DataOptions& options, const DataCut& cut = {});
  /// Whether open() would read nothing.
  [[nodiscard]] bool is_open(const DataOptions& options, const DataCut& cut = {}) const;
  [[nodiscard]] int64_t bytes() const { return open_ ? open_->bytes : 0; }  ///< of what is open
  void close() { open_.reset(); }

 private:
  datasets::Network network_;
  std::optional<OpenData> open_;
};

}  // namespace tare
