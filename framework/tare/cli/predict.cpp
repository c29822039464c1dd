// Predicts by a bundle, for pictures, rows of numbers, tokens and text.
#include "tare/cli/predict.h"

#include <c10/util/Exception.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <exception>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tare/base/csv.h"
#include "tare/base/error.h"
#include "tare/base/signals.h"
#include "tare/cli/arguments.h"
#include "tare/cli/predict_inputs.h"
#include "tare/cli/predict_masks.h"
#include "tare/cli/predict_score.h"
#include "tare/cli/trust.h"
#include "tare/inference/bundle_folder.h"
#include "tare/inference/json_predict.h"
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
  enum class Form { text, json, json_lines, csv } form = Form::text;
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

Request::Form form_of(const Arguments& arguments) {
  const std::array<std::pair<const char*, Request::Form>, 3> forms{
      {{"json", Request::Form::json},
       {"json-lines", Request::Form::json_lines},
       {"csv", Request::Form::csv}}};
  const char* given = nullptr;
  Request::Form form = Request::Form::text;
  for (const auto& [name, of_name] : forms) {
    if (!arguments.has(name)) continue;
    if (given)
      throw ConfigError("tare predict",
                        std::string("--") + given + " and --" + name + " exclude each other");
    given = name;
    form = of_name;
  }
  return form;
}

Request read(const Arguments& arguments) {
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
          .form = form_of(arguments),
          .masks = arguments.get("masks"),
          .text = arguments.has("text"),
          .score = arguments.has("score") ? std::optional(arguments.get("score")) : std::nullopt};
}

// Prints a line for each class, or one with the values of a model that gives no classes; as CSV,
// with a header; as JSON, a list at the end.
class Printer {
 public:
  explicit Printer(const Request& request) : request_(request), masks_(request.masks) {}

  void add(const SamplePlace& place, const Predictor& predictor, const Outputs& outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Place output{.sample = place, .number = outputs.size() > 1 ? i + 1 : 0};
      if (masks_)
        add_mask(output, outputs[i]);
      else if (is_json())
        put(to_json(output, prediction_json(predictor, outputs, i, request_.top)));
      else
        add(output, predictor, outputs[i]);
    }
  }

  /// Adds a failure, called inside its handler; only JSON lists it, as messages are on standard
  /// error.
  void add_failure(const SamplePlace& place) {
    if (!is_json()) return;
    nlohmann::json sample = begin({.sample = place});
    try {
      throw;
    } catch (const c10::Error& error) {
      sample["error"] = printable(error.what_without_backtrace(), 1000);
    } catch (const std::exception& error) {
      sample["error"] = printable(error.what(), 1000);
    }
    put(std::move(sample));
  }

  /// Ends the output; `lists`: what was added is printed.
  void finish(bool lists) const {
    if (lists && request_.form == Form::json) std::puts(text_of(all_, 2).c_str());
    if (std::fflush(stdout) != 0) throw IoError("tare predict", "standard output", errno);
  }

 private:
  using Form = Request::Form;
  struct Place {
    const SamplePlace& sample;
    size_t number = 0;  // of the output, from 1; 0: the model has one
  };

  /// Holds the numbers of one output, and their names where they are known.
  struct Values {
    at::Tensor numbers{};
    std::vector<std::string> names{};
  };

  [[nodiscard]] bool is_json() const {
    return request_.form == Form::json || request_.form == Form::json_lines;
  }
  static std::string text_of(const nlohmann::json& value, int indent) {
    return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  /// Prints an entry as a line, or keeps it for the array at the end.
  void put(nlohmann::json entry) {
    if (request_.form == Form::json_lines)
      std::puts(text_of(entry, -1).c_str());
    else
      all_.push_back(std::move(entry));
  }

  void add_mask(const Place& place, const at::Tensor& output) {
    const std::string path = masks_.write(place.sample, output).string();
    if (is_json())
      put(to_json(place, {{"mask", path}}));
    else if (request_.form == Form::csv)
      print_row(place, 0, "", csv_text(path));
    else
      std::printf("%s: %s\n", text_of(place).c_str(), printable(path, 1000).c_str());
  }

  void add(const Place& place, const Predictor& predictor, const at::Tensor& prediction) {
    if (!predictor.has_classes(prediction)) {
      std::vector<std::string> names = target_names(predictor.manifest());
      const bool fits = place.number == 0 && std::cmp_equal(names.size(), prediction.numel());
      return show(place, Values{prediction, fits ? names : std::vector<std::string>()});
    }
    const int64_t all = has_several_labels(predictor.manifest()) ? prediction.size(1) : 1;
    show(place, predictor.classes(prediction, request_.top.value_or(all)));
  }

  /// `predictions`: those of classes, or Values.
  template <class Predictions>
  void show(const Place& place, const Predictions& predictions) {
    if (request_.form == Form::csv)
      print_rows(place, predictions);
    else
      print(place, predictions);
  }

  // One table for all outputs: a row for each class, and one for each value, whose label is the
  // name of its target.
  void print_rows(const Place& place, const std::vector<Prediction>& predictions) {
    for (const auto& p : predictions)
      print_row(place, p.index, csv_text(p.label), text_of(static_cast<float>(p.probability)));
  }
  void print_rows(const Place& place, const Values& prediction) {
    const std::vector<float> values = values_of(prediction.numbers);
    for (size_t i = 0; i < values.size(); ++i)
      print_row(place, static_cast<int64_t>(i),
                prediction.names.empty() ? "" : csv_text(prediction.names[i]), text_of(values[i]));
  }
  void print_row(const Place& place, int64_t index, const std::string& label,
                 const std::string& value) {
    if (!std::exchange(has_header_, true)) std::puts("path,line,output,index,label,value");
    const std::string line = place.sample.line > 0 ? std::to_string(place.sample.line) : "",
                      output = place.number > 0 ? std::to_string(place.number) : "";
    std::printf("%s,%s,%s,%lld,%s,%s\n", csv_text(place.sample.path).c_str(), line.c_str(),
                output.c_str(), static_cast<long long>(index), label.c_str(), value.c_str());
  }

  // The fewest digits that give the number back.
  static std::string text_of(float value) {
    char number[64];
    return {number, std::to_chars(number, std::end(number), value).ptr};
  }

  static std::string text_of(const Place& place) {
    std::string text = printable(place.sample.path, 1000);
    if (place.sample.line > 0) text += ":" + std::to_string(place.sample.line);
    if (place.number > 0) text += " output " + std::to_string(place.number);
    return text;
  }

  static void print(const Place& place, const std::vector<Prediction>& predictions) {
    for (const auto& p : predictions) {
      std::printf("%s: %s %.4f\n", text_of(place).c_str(), printable(p.label).c_str(),
                  p.probability);
    }
  }

  static std::vector<float> values_of(const at::Tensor& prediction) {
    const at::Tensor row = prediction.contiguous();
    const float* data = row.const_data_ptr<float>();
    return {data, data + row.numel()};
  }

  // The shape stands in front of more than a list.
  static void print(const Place& place, const Values& prediction) {
    const at::Tensor& numbers = prediction.numbers;
    std::string line = text_of(place) + ":";
    if (numbers.dim() > 2) line += " " + c10::str(numbers.sizes().slice(1));
    for (const float value : values_of(numbers)) line += ' ' + text_of(value);
    std::puts(line.c_str());
  }

  static nlohmann::json begin(const Place& place) {
    nlohmann::json sample{{"path", place.sample.path}};
    if (place.sample.line > 0) sample["line"] = place.sample.line;
    if (place.number > 0) sample["output"] = place.number;
    return sample;
  }

  static nlohmann::json to_json(const Place& place, const nlohmann::json& prediction) {
    nlohmann::json sample = begin(place);
    sample.update(prediction);
    return sample;
  }

  const Request& request_;
  MaskFolder masks_;
  nlohmann::json all_ = nlohmann::json::array();
  bool has_header_ = false;
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
        request.form == Request::Form::json || score ? "" : "; --json lists each with its error");
  if (score)
    std::puts((request.form == Request::Form::json ? score->json(failures) : score->str()).c_str());
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
    init({.threads = 0, .cuda = cuda_for(request.predictor.device)});
    return predict(request);
  } catch (...) {
    return report_error(std::current_exception());
  }
}

}  // namespace tare::cli
