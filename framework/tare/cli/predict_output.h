// Prints the predictions of `tare predict` as text, CSV or JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tare/cli/arguments.h"
#include "tare/inference/prediction.h"

namespace tare::cli {

/// Names the forms of the output.
enum class PredictForm { text, json, json_lines, csv };

/// Returns the form that the options ask for. Throws ConfigError for two of them.
[[nodiscard]] PredictForm predict_form(const Arguments& arguments);

/// Locates one output of the model.
struct OutputPlace {
  std::string path{};  ///< "-": standard input
  int64_t line = 0;    ///< from 1; 0: the whole file
  size_t number = 0;   ///< of the output, from 1; 0: the model has one
};

/// Holds the numbers of one output.
struct OutputValues {
  std::vector<int64_t> shape{};      ///< of one sample, without the batch
  std::vector<float> values{};       ///< of that shape
  std::vector<std::string> names{};  ///< of the values; empty: unknown
};

/// Prints a line for each class, or one with the values of a model that gives no classes; as CSV,
/// with a header; as JSON, an array at the end, or a line for each output.
class PredictPrinter {
 public:
  /// Prints in this form.
  explicit PredictPrinter(PredictForm form) : form_(form) {}

  void add(const OutputPlace& place, const std::vector<Prediction>& classes);  ///< adds classes
  void add(const OutputPlace& place, const OutputValues& values);              ///< adds values
  /// Adds the path of a file that has what was predicted.
  void add_mask(const OutputPlace& place, const std::string& file);
  /// Adds why a sample has no prediction, in JSON; the other forms leave that to standard error.
  void add_failure(const OutputPlace& place, const std::string& error);
  /// Ends the output; `lists`: what was added is printed. Throws IoError.
  void finish(bool lists) const;

 private:
  [[nodiscard]] bool is_json() const {
    return form_ == PredictForm::json || form_ == PredictForm::json_lines;
  }
  void put(const OutputPlace& place, const nlohmann::json& described);
  void print_row(const OutputPlace& place, int64_t index, const std::string& label,
                 const std::string& value);

  PredictForm form_;
  nlohmann::json all_ = nlohmann::json::array();
  bool has_header_ = false;
};

}  // namespace tare::cli
