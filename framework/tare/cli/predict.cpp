// Predicts by a bundle, for pictures, rows of numbers, tokens and text.
#include "tare/cli/predict.h"

#include <c10/util/Exception.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/base/signals.h"
#include "tare/cli/arguments.h"
#include "tare/cli/predict_inputs.h"
#include "tare/cli/predict_masks.h"
#include "tare/cli/predict_output.h"
#include "tare/cli/predict_score.h"
#include "tare/cli/trust.h"
#include "tare/inference/bundle_folder.h"
#include "tare/inference/one_score.h"
#include "tare/inference/predictor.h"
#include "tare/inference/rows.h"
#include "tare/memory/oom.h"
#include "tare/runtime/device_name.h"
#include "tare/runtime/exit_code.h"
#include "tare/runtime/init.h"

namespace tare::cli {
namespace {

struct Request {
  std::string bundle;
  std::vector<std::string> inputs;
  PredictorOptions predictor{};
  std::optional<int64_t> top{};    // unset: one
  std::optional<int64_t> batch{};  // unset: as many as fit
  PredictForm form = PredictForm::text;
  std::string masks{};  // the folder of --masks
  bool text = false;
  std::optional<std::string> score{};  // the value of --score
};

/// Returns the number of an option; unset where it is not given or `auto`.
std::optional<int64_t> number_of(const Arguments& arguments, const std::string& option) {
  if (!arguments.has(option) || arguments.get(option) == "auto") return std::nullopt;
  return arguments.number(option, 0, 1);
}

CudaMode cuda_for(const std::string& device) {
  runtime::check_device_name(device);
  // A device that is not there is refused by the predictor, which knows those that are.
  return device == "cpu" ? CudaMode::off : CudaMode::automatic;
}

/// Throws ConfigError for an engine that this program is not.
void check_engine(const std::string& engine) {
  if (engine == "auto" || engine == "libtorch") return;
  if (engine == "lite")
    throw ConfigError("tare predict",
                      "this program computes with LibTorch: call `tare predict`, "
                      "which has the engine lite, or omit --engine");
  throw unknown_name("tare predict", "engine", engine, {"auto", "lite", "libtorch"});
}

Request read(const Arguments& arguments) {
  check_engine(arguments.get("engine", "auto"));
  for (const char* other : {"top", "csv", "json-lines", "masks"})
    if (arguments.has("score") && arguments.has(other))
      throw ConfigError("tare predict", "--score prints figures in place of predictions: omit --" +
                                            std::string(other));
  const auto& words = arguments.positional();
  return {.bundle = bundle_at(words.front()).string(),
          .inputs = {words.begin() + 1, words.end()},
          .predictor = {.device = arguments.get("device", "cpu")},
          .top = arguments.has("top") ? std::optional(arguments.number("top", 0, 1)) : std::nullopt,
          .batch = number_of(arguments, "batch"),
          .form = predict_form(arguments),
          .masks = arguments.get("masks"),
          .text = arguments.has("text"),
          .score = arguments.has("score") ? std::optional(arguments.get("score")) : std::nullopt};
}

/// Describes the outputs of a model for its printer.
class Printer {
 public:
  explicit Printer(const Request& request)
      : request_(request), printer_(request.form), masks_(request.masks) {}

  void add(const SamplePlace& place, const Predictor& predictor, const Outputs& outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const OutputPlace output{place.path, place.line, outputs.size() > 1 ? i + 1 : 0};
      if (masks_)
        printer_.add_mask(output, masks_.write(place, outputs[i]).string());
      else if (predictor.has_classes(outputs[i]))
        printer_.add(output, classes_of(predictor, outputs[i]));
      else
        printer_.add(output, values_of(predictor, outputs[i], outputs.size() == 1));
    }
  }

  /// Adds a failure, called inside its handler.
  void add_failure(const SamplePlace& place) {
    const OutputPlace sample{place.path, place.line};
    try {
      throw;
    } catch (const c10::Error& error) {
      printer_.add_failure(sample, error.what_without_backtrace());
    } catch (const std::exception& error) {
      printer_.add_failure(sample, error.what());
    }
  }

  /// Ends the output; `lists`: what was added is printed.
  void finish(bool lists) const { printer_.finish(lists); }

 private:
  [[nodiscard]] std::vector<Prediction> classes_of(const Predictor& predictor,
                                                   const at::Tensor& output) const {
    const int64_t all = has_several_labels(predictor.manifest()) ? output.size(1) : 1;
    return predictor.classes(output, request_.top.value_or(all));
  }
  static OutputValues values_of(const Predictor& predictor, const at::Tensor& output, bool alone) {
    const at::Tensor row = output.contiguous();
    const float* data = row.const_data_ptr<float>();
    const std::vector<std::string> names = target_names(predictor.manifest());
    const bool fits = alone && std::cmp_equal(names.size(), row.numel());
    return {.shape = row.sizes().slice(1).vec(),
            .values = {data, data + row.numel()},
            .names = fits ? names : std::vector<std::string>()};
  }

  const Request& request_;
  PredictPrinter printer_;
  MaskFolder masks_;
};

/// Throws the error that is being handled again if it is that of a card that has failed: every
/// other sample would fail likewise.
void rethrow_error_of_card() {
  try {
    throw;
  } catch (const c10::AcceleratorError&) {
    if (!memory::classify(std::current_exception())) throw;
  } catch (...) {  // an error of the sample, which is reported
  }
}

constexpr int64_t kShownFailures = 3;  // in full; more are counted

// Continues behind a sample that fails; returns the first failure's code.
int predict(const Request& request) {
  Predictor predictor(request.bundle, request.predictor);
  if (request.text) check_takes_text(predictor.manifest());
  if (request.top && !gives_classes(predictor.manifest()))
    throw ConfigError("tare predict",
                      "--top is for a model of classes, and the outputs of this one are values: "
                      "omit it");
  Printer printer(request);
  std::optional<Truths> truths;
  std::optional<Score> score;
  if (request.score) {
    truths.emplace(predictor.manifest(), *request.score);
    score.emplace(predictor.manifest());
  }
  int code = kSuccess;
  int64_t failures = 0;
  const PredictInputs inputs{.predictor = predictor,
                             .text = request.text,
                             .batch = request.batch,
                             .truths = truths ? &*truths : nullptr,
                             .on_prediction =
                                 [&](const SamplePlace& place, const Outputs& predictions) {
                                   if (score)
                                     score->add(predictions, place.truth.value());
                                   else
                                     printer.add(place, predictor, predictions);
                                 },
                             .on_failure =
                                 [&](const SamplePlace& place) {
                                   rethrow_error_of_card();
                                   printer.add_failure(place);
                                   if (++failures > kShownFailures) return;
                                   const int failed =
                                       report_error(std::current_exception(),
                                                    printable(place.path, 1000), place.line);
                                   if (code == kSuccess) code = failed;
                                 }};
  predict_inputs(inputs, request.inputs);
  if (failures > kShownFailures)
    std::fprintf(
        stderr, "[tare] error: %lld more samples have failed%s\n",
        static_cast<long long>(failures - kShownFailures),
        request.form == PredictForm::json || score ? "" : "; --json lists each with its error");
  if (score)
    std::puts((request.form == PredictForm::json ? score->json(failures) : score->str()).c_str());
  printer.finish(!score);
  return code;
}

}  // namespace

int predict_program(int argc, char** argv, const std::string& called) {
  ignore_file_limit_signal();
  try {  // not bound_spinning(): executing anew would double the start of so short a program
    const Arguments arguments = parse(predict_command(), argc, argv);
    if (arguments.has("help")) {
      return std::fputs(help(predict_command(), width_for(std::cout), called).c_str(), stdout) < 0
                 ? kIo
                 : kSuccess;
    }
    trust_given(arguments, "tare predict");
    const Request request = read(arguments);
    if (arguments.has("verbose"))
      log::info("predicts with LibTorch on " + request.predictor.device);
    init({.threads = 0, .cuda = cuda_for(request.predictor.device)});
    return predict(request);
  } catch (...) {
    return report_error(std::current_exception());
  }
}

}  // namespace tare::cli
