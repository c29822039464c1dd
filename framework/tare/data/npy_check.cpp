// Finds the numbers of an array that are not finite.
#include "tare/data/npy_check.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>

#include "tare/base/bytes.h"
#include "tare/config/scalar.h"
#include "tare/data/npy.h"
#include "tare/data/npy_labels.h"
#include "tare/data/npy_pictures.h"

namespace tare {
namespace {

std::vector<int64_t> index_of(int64_t element, at::IntArrayRef shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 0; element /= shape[i]) index[i] = element % shape[i];
  return index;
}

std::string text_of(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "infinite" : "minus infinite";
  return config::number_text(value) + ", which float32 does not hold";
}

/// Returns "array[13, 1] is NaN: ...".
std::string problem_of(const NpyCheck& check, double first, int64_t elements) {
  std::string index;
  for (const int64_t i : check.first_not_finite)
    index += (index.empty() ? "" : ", ") + std::to_string(i);
  std::string text = "array[" + index + "] is " + text_of(first);
  if (check.not_finite > 1)
    text += ", and " + format_count(check.not_finite - 1) + " more of the " +
            format_count(elements) + " elements are not finite in float32";
  return text + ": remove the sample, or put a number in its place";
}

}  // namespace

NpyCheck check_npy(const std::filesystem::path& file, bool are_inputs) {
  constexpr int64_t kPart = 1 << 20;  // elements, so that the copy is small
  const at::Tensor array = read_npy(file);
  NpyCheck check{.file = file, .dtype = numpy_dtype(array), .shape = array.sizes().vec()};
  if (array.dim() == 0 || array.numel() == 0) {
    check.problem = "has no samples: save an array [samples, ...]";
    return check;
  }
  const at::Tensor flat = array.view({-1});
  double first = 0;
  int64_t count = 0;
  for (int64_t start = 0; start < flat.numel(); start += kPart) {
    const at::Tensor part =
        flat.narrow(0, start, std::min(kPart, flat.numel() - start)).to(c10::kDouble);
    const double* value = part.const_data_ptr<double>();
    for (int64_t i = 0; i < part.numel(); ++i) {
      if (!std::isfinite(static_cast<float>(value[i]))) {
        if (check.not_finite++ == 0) {
          first = value[i];
          check.first_not_finite = index_of(start + i, array.sizes());
        }
        continue;
      }
      check.least = count == 0 ? value[i] : std::min(check.least, value[i]);
      check.most = count == 0 ? value[i] : std::max(check.most, value[i]);
      check.mean += (value[i] - check.mean) / static_cast<double>(++count);
    }
  }
  if (are_inputs) {
    check.problem = picture_problem(array);
    check.warning = picture_warning(array);
  } else if (!array.is_floating_point()) {
    check.warning = label_warning(whole_targets(array));
  }
  if (check.not_finite > 0) check.problem = problem_of(check, first, array.numel());
  return check;
}

}  // namespace tare
