// Bounds the memory of an export by the weights, two tensors, and what checks them.
#include "tare/recipe/export_plan.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "tare/interchange/export_file.h"
#include "tare/model/registry.h"
#include "tare/model/stored.h"
#include "tare/recipe/phase_values.h"
#include "tare/trace/estimate.h"
#include "tare/trace/trace.h"

namespace tare {
namespace {

struct Need {
  int64_t weights = 0;   // bytes of all weights and buffers, in float32 where they are rounded
  int64_t largest = 0;   // of the largest
  int64_t compared = 0;  // of the largest batch that is compared, and the forward of it
};

/// Returns a batch of as many samples like the one given.
Batch repeated(const Batch& sample, int64_t samples) {
  std::vector<at::Tensor> tensors;
  for (const at::Tensor& one : sample.tensors())
    tensors.push_back(one.repeat_interleave(samples, 0));
  return sample.with(tensors);
}

/// Makes the model on the meta device. Throws plan::NotPlannable and c10::Error.
Need need_of(const ModelSpec& spec, const Batch& sample) {
  Need need;
  size_t begin = 0;
  const plan::Trace trace = plan::trace([&] {
    Model model = models::make(spec);
    for (const NamedTensor& one : model.state()) {
      const auto bytes = static_cast<int64_t>(one.tensor.nbytes());
      need.weights += bytes;
      need.largest = std::max(need.largest, bytes);
    }
    const c10::AutoGradMode without_gradients(false);
    const EvaluationScope evaluation(model);
    plan::mark("compare");
    const Batch batch = repeated(sample, interchange::kLargestCompared);
    (void)model.forward(batch);
  });
  for (const plan::Mark& mark : trace.marks)
    if (mark.name == "compare") begin = mark.event;
  need.compared = plan::estimate(trace, {begin, trace.events.size()}, plan::Target{}).peak_bytes;
  return need;
}

}  // namespace

std::optional<ExportPlan> plan_export(const RecipeOptions& recipe, const ModelSpec& spec,
                                      const DataFacts& data, const MemoryPlan& last) {
  if (export_name(recipe).empty()) return std::nullopt;
  ExportPlan plan{.files = {export_name(recipe)}};
  bool compares = false;
  for (const std::string& format : recipe.export_formats) {
    plan.files.push_back(export_name(recipe, format));
    compares = compares || interchange::file_format(format).graph;
  }
  if (!last.runs()) {
    plan.reason = "the last phase does not fit";
    return plan;
  }
  const bool measures = rounds_weights(recipe.export_weights) && data.has_valid;
  if (measures && !last.known()) {
    plan.reason = "the validation of the rounded weights cannot be predicted: " + last.reason;
    return plan;
  }
  try {
    const Need need = need_of(spec, data.sample);
    plan.at_most_bytes = need.weights + 2 * need.largest + (compares ? need.compared : 0);
    // The codes, a model that computes with the rounded weights, and its validation, which takes
    // less than the phase that has one too.
    if (measures)
      plan.at_most_bytes =
          std::max(plan.at_most_bytes, 2 * (need.weights + need.largest) + last.peak_bytes);
  } catch (const plan::NotPlannable& error) {
    plan.reason = error.what();
  } catch (const c10::Error& error) {
    plan.reason = error.what_without_backtrace();
  }
  return plan;
}

}  // namespace tare
