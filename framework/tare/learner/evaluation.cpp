// Evaluates and predicts splits of a Learner.
#include "tare/learner/learner.h"
#include "tare/train/learner_state.h"

namespace tare {
namespace {

void check_first(int64_t samples, const LearnerState& state, const char* call) {
  check_first_micro_batch(samples, state.options.batch, call, "first_micro_batch");
}

}  // namespace

EvaluatedPredictions Learner::evaluate(Split split, const PredictOptions& options) {
  LearnerState& p = idle("learner.evaluate");
  const DatasetPtr& set = p.split(split, "learner.evaluate");
  p.check_predict(options, "learner.evaluate");
  check_first(options.first_micro_batch, p, "learner.evaluate");
  const RunningScope running(p, "learner.evaluate");
  EvaluatedPredictions result;
  result.figures = p.evaluate(
      set, p.validation_micro_batches(options.first_micro_batch),
      [&](MicroBatchChange change) { p.report(*this, std::move(change)); }, options,
      &result.predictions);
  return result;
}

Evaluation Learner::validate(Split split, int64_t first_micro_batch) {
  LearnerState& p = idle("learner.validate");
  const DatasetPtr& set = p.split(split, "learner.validate");
  check_first(first_micro_batch, p, "learner.validate");
  const RunningScope running(p, "learner.validate");
  return p.evaluate(set, p.validation_micro_batches(first_micro_batch),
                    [&](MicroBatchChange change) { p.report(*this, std::move(change)); });
}

Predictions Learner::get_preds(Split split, const PredictOptions& options) {
  LearnerState& p = idle("learner.get_preds");
  const DatasetPtr& set = p.split(split, "learner.get_preds");
  p.check_predict(options, "learner.get_preds");
  check_first(options.first_micro_batch, p, "learner.get_preds");
  const RunningScope running(p, "learner.get_preds");
  return p.get_preds(set, options,
                     [&](MicroBatchChange change) { p.report(*this, std::move(change)); });
}

}  // namespace tare
