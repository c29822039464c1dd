// Makes data sets of arrays that NumPy has saved.
#include <ATen/core/Tensor.h>

#include <cmath>
#include <string>
#include <vector>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/data/datasets.h"
#include "tare/data/float_spread.h"
#include "tare/data/npy.h"
#include "tare/data/npy_labels.h"
#include "tare/data/npy_pictures.h"
#include "tare/data/number_names.h"

namespace tare::datasets {
namespace {

constexpr const char* kArrays = "data.npy";

std::string shape_text(const at::Tensor& array) { return c10::str(array.sizes()); }

[[noreturn]] void refuse(const char* field, const std::string& problem, const std::string& allowed,
                         const std::string& got) {
  throw ConfigError("data.make", field, problem, allowed, got);
}

[[noreturn]] void refuse_sample(const std::string& path, int64_t sample,
                                const std::string& problem) {
  throw FormatError(kArrays, path, "sample " + std::to_string(sample) + " (from 0)", problem);
}

/// Throws FormatError for a number that is not finite in float32.
void check_finite(const at::Tensor& array, const std::string& path) {
  const float* value = array.const_data_ptr<float>();
  for (int64_t i = 0; i < array.numel(); ++i)
    if (!std::isfinite(value[i]))
      refuse_sample(path, i / (array.numel() / array.size(0)),
                    std::isnan(value[i])
                        ? "has NaN: remove the sample, or put a number in its place"
                        : "has a number that float32 does not hold: remove the sample, or put "
                          "another number in its place");
}

/// Throws FormatError for a label below 0 that no loss ignores.
void check_labels(const at::Tensor& labels, const std::string& path) {
  constexpr int64_t kIgnored = -100;
  const int64_t* label = labels.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < labels.numel(); ++i)
    if (label[i] < 0 && label[i] != kIgnored)
      refuse_sample(path, i / (labels.numel() / labels.size(0)),
                    "has the label " + std::to_string(label[i]) +
                        ": labels count the classes from 0, and -100 is the label that a loss "
                        "ignores");
}

/// Throws ConfigError for targets [samples, ...] whose differences float32 does not hold.
void check_spread(const at::Tensor& array, const std::string& path) {
  if (array.scalar_type() != at::kDouble || array.size(0) == 0) return;
  const int64_t columns = array.numel() / array.size(0);
  const double* value = array.const_data_ptr<double>();
  std::vector<double> column(static_cast<size_t>(array.size(0)));
  for (int64_t i = 0; i < columns; ++i) {
    for (size_t row = 0; row < column.size(); ++row)
      column[row] = value[static_cast<int64_t>(row) * columns + i];
    const std::string problem = spread_problem(column);
    if (!problem.empty())
      refuse("labels", (columns > 1 ? "column " + std::to_string(i) + ' ' : "") + problem,
             "targets whose differences float32 holds", path);
  }
}

/// Returns class labels as int64 [samples], and other values as float32 [samples, ...].
at::Tensor targets_of(const at::Tensor& array, const std::string& path) {
  if (array.dim() == 0) refuse("labels", "has no samples", "an array [samples]", path);
  if (!array.is_floating_point()) return whole_targets(array);
  return array.dim() == 1 ? array.to(at::kFloat).view({-1, 1}) : array.to(at::kFloat);
}

/// Returns the numbers of the classes of class labels [samples]; none for other targets.
std::vector<std::string> names_of(const at::Tensor& target) {
  return are_classes(target) ? number_names(highest_class(target)) : std::vector<std::string>();
}

Found arrays(const DataOptions& o, bool) {
  if (o.file.empty())
    refuse("file", "is needed by the data set npy", "a .npy file of inputs [samples, ...]", "");
  if (o.labels.empty())
    refuse("labels", "is needed by the data set npy", "a .npy file with a target for each sample",
           "");
  at::Tensor input = read_npy(o.file);
  if (input.dim() < 2 || input.numel() == 0)
    refuse("file", "has the shape " + shape_text(input),
           "an array [samples, ...] that is not empty", o.file);
  if (const std::string problem = picture_problem(input); !problem.empty())
    refuse("file", problem,
           "an array [samples, channels, height, width] of uint8 or of levels 0 "
           "to 1",
           o.file);
  if (const std::string warning = picture_warning(input); !warning.empty())
    log::warning_once(printable(o.file) + ' ' + warning);
  // Grey pictures as NumPy has them, such as those of MNIST, lack a dimension.
  if (are_grey_pictures(input)) input = input.unsqueeze(1);
  const bool pictures = input.scalar_type() == at::kByte && input.dim() == 4;
  if (!pictures) {
    input = input.to(at::kFloat);
    check_finite(input, o.file);
  }
  const at::Tensor array = read_npy(o.labels);
  const at::Tensor target = targets_of(array, o.labels);
  if (target.size(0) != input.size(0))
    refuse("labels",
           "has " + format_count(target.size(0)) + " targets for " + format_count(input.size(0)) +
               " samples",
           "a target for each sample", o.labels);
  if (target.is_floating_point()) {
    check_finite(target, o.labels);
    check_spread(array, o.labels);
  } else {
    check_labels(target, o.labels);
    if (const std::string warning = label_warning(target); !warning.empty())
      log::warning_once(printable(o.labels) + ' ' + warning);
  }
  return {.description = format_count(input.size(0)) + " samples " +
                         c10::str(input.sizes().slice(1)) + " of " + printable(o.file),
          .data = tensor_dataset(input, target, names_of(target))};
}

}  // namespace

void add_npy_arrays(Registry& all) {
  all.add("npy", "reads inputs and targets from two files of NumPy arrays", [] {
    return Kind{.fields = {"file", "labels"}, .make = arrays};
  });
}

}  // namespace tare::datasets
