// Reads samples from JSON, and writes predictions as JSON.
#include "tare/inference/json_predict.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tare/base/base64.h"
#include "tare/base/error.h"
#include "tare/inference/one_score.h"
#include "tare/inference/padded_inputs.h"
#include "tare/inference/rows.h"
#include "tare/transform/image.h"
#include "tare/transform/piped_table.h"

namespace tare {
namespace {

using nlohmann::json;

constexpr const char* kRequest = "request";
constexpr size_t kMostDimensions = 8;  // of a sample, as in a bundle
constexpr int kDeepest = 16;           // arrays and objects in each other, of a request

/// Whether arrays and objects lie deeper in each other than any sample needs: parsing takes memory
/// for each.
bool is_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\')
      ++i;
    else if (c == '"')
      in_string = !in_string;
    else if (!in_string && (c == '[' || c == '{') && ++depth > kDeepest)
      return true;
    else if (!in_string && (c == ']' || c == '}'))
      --depth;
  }
  return false;
}

/// Reads the samples of one request.
class SampleReader {
 public:
  explicit SampleReader(const Predictor& predictor)
      : predictor_(predictor), manifest_(predictor.manifest()) {}

  std::vector<Batch> read(const json& samples) {
    if (manifest_.rows) return rows_of(samples);
    std::vector<Batch> read;
    for (at_ = 0; at_ < samples.size(); ++at_) read.push_back(sample_of(samples[at_]));
    return read;
  }

 private:
  [[noreturn]] void refuse(const std::string& problem) const {
    throw FormatError("predict", kRequest, "sample " + std::to_string(at_), problem);
  }

  Batch sample_of(const json& sample) const {
    if (!fits_one_tensor(manifest_)) return inputs_of(sample);
    const SampleKind kind = predictor_.sample_kind();
    if (kind == SampleKind::image)
      return sample.is_object() ? picture_of(sample) : Batch(numbers_of(sample, at::kByte));
    const bool is_text = kind == SampleKind::tokens && sample.is_string();
    return batch_of_one(manifest_, is_text ? tokens_of_text(sample.get_ref<const std::string&>())
                                           : numbers_of(sample, bundle_dtype(manifest_.input)));
  }

  at::Tensor tokens_of_text(const std::string& text) const {
    if (text.empty()) refuse("is an empty text");
    return parse_text(text, manifest_, {kRequest, static_cast<int64_t>(at_)});
  }

  Batch picture_of(const json& sample) const {
    const auto found = sample.find("b64");
    if (sample.size() != 1 || found == sample.end() || !found->is_string())
      refuse(R"(is an object other than {"b64": "..."}, the bytes of a picture in Base64)");
    const auto bytes = bytes_of_base64(found->get_ref<const std::string&>());
    if (!bytes) refuse("has a text that is not Base64");
    const at::Tensor pixels =
        decode_image(std::as_bytes(std::span(*bytes)), "sample " + std::to_string(at_),
                     predictor_.sample_shape().front());
    return predictor_.picture_input(pixels);
  }

  Batch inputs_of(const json& sample) const {
    Batch batch;
    const auto add = [&](const std::string& name, const std::string& dtype) {
      const auto found = sample.is_object() ? sample.find(name) : sample.end();
      if (!sample.is_object() || found == sample.end())
        refuse("lacks the input '" + printable(name) +
               "': it must be an object with an array for "
               "each of the " +
               std::to_string(1 + manifest_.more_inputs.size()) + " inputs");
      batch.inputs.push_back({name, numbers_of(*found, bundle_dtype(dtype))});
    };
    add(manifest_.input_name, manifest_.input);
    for (const BundleInput& input : manifest_.more_inputs) add(input.name, input.dtype);
    if (sample.size() != batch.inputs.size())
      refuse("has " + std::to_string(sample.size()) + " names, and the model takes " +
             std::to_string(batch.inputs.size()) + " inputs");
    return batch;
  }

  std::vector<Batch> rows_of(const json& samples) {
    for (at_ = 0; at_ < samples.size(); ++at_) check_row(samples[at_]);
    std::vector<Batch> read;
    try {
      const at::Tensor rows = encoded(samples);
      for (int64_t i = 0; i < rows.size(0); ++i) read.emplace_back(rows.narrow(0, i, 1));
      return read;
    } catch (const FormatError&) {  // the table names a line: look for the sample
      for (at_ = 0; at_ < samples.size(); ++at_) {
        try {
          (void)encoded(json::array({samples[at_]}));
        } catch (const FormatError& error) {
          refuse("cannot be read: " + std::string(error.what()));
        }
      }
      throw;
    }
  }

  /// Refuses what is no row: dump() would go as deep as the text, and a column that is missing in
  /// all rows is an error of the table, but in some a missing field.
  void check_row(const json& sample) const {
    if (!sample.is_object()) refuse("is no object with the columns of a row");
    if (std::ranges::any_of(sample, [](const json& field) { return field.is_structured(); }))
      refuse("has a list or an object where a field should be");
    for (const ColumnCoding& column : manifest_.rows->columns)
      if (!sample.contains(column.name))
        refuse("lacks the column '" + printable(column.name) + "'; null says that it is missing");
  }

  /// Returns float32 [rows, columns].
  [[nodiscard]] at::Tensor encoded(const json& samples) const {
    const TableText table = table_in(samples.dump(), kRequest, {.kind = "jsonl"}, nullptr);
    return RowEncoder(*manifest_.rows, table).samples();
  }

  at::Tensor numbers_of(const json& sample, at::ScalarType dtype) const {
    std::vector<int64_t> sizes{1};
    for (const json* part = &sample; part->is_array(); part = &part->front()) {
      if (part->empty()) refuse("has an array without numbers");
      if (sizes.size() > kMostDimensions) refuse("has arrays in too many arrays");
      sizes.push_back(static_cast<int64_t>(part->size()));
    }
    std::vector<double> numbers;
    if (sizes.size() == 1)
      refuse("is " + kind_of(sample) + ", and the model takes arrays of numbers");
    collect(sample, sizes, 1, numbers);
    check(numbers, dtype);
    const auto count = static_cast<int64_t>(numbers.size());
    at::Tensor all = at::empty({count}, at::kDouble);
    std::ranges::copy(numbers, all.mutable_data_ptr<double>());
    return all.to(dtype).view(sizes);
  }

  /// Adds the numbers of an array of arrays, all of which have `sizes` from `depth` on.
  void collect(const json& part, const std::vector<int64_t>& sizes, size_t depth,
               std::vector<double>& numbers) const {
    if (depth == sizes.size()) {
      if (part.is_boolean()) return numbers.push_back(part.get<bool>());
      if (!part.is_number()) refuse("has " + kind_of(part) + " where a number should be");
      return numbers.push_back(part.get<double>());
    }
    if (!part.is_array() || std::cmp_not_equal(part.size(), sizes[depth]))
      refuse("has arrays of different sizes");
    for (const json& inner : part) collect(inner, sizes, depth + 1, numbers);
  }

  /// Refuses numbers that the dtype does not hold.
  void check(const std::vector<double>& numbers, at::ScalarType dtype) const {
    constexpr double kWhole = 9007199254740992;  // 2^53: above it double skips whole numbers
    const auto all = [&](const auto& fits) { return std::ranges::all_of(numbers, fits); };
    const auto in = [](double least, double most) {
      return [=](double v) { return v >= least && v <= most && v == std::floor(v); };
    };
    if (dtype == at::kByte && !all(in(0, 255)))
      refuse("has a number that is no level: the model takes whole ones from 0 to 255");
    if (dtype == at::kBool && !all(in(0, 1))) refuse("has a number that is neither 0 nor 1");
    if (dtype == at::kInt && !all(in(INT32_MIN, INT32_MAX)))
      refuse("has a number that is no int32");
    if (dtype == at::kLong && !all(in(-kWhole, kWhole)))
      refuse("has a number that is no whole one below 2^53");
    if (dtype == at::kFloat && !all([](double v) { return std::isfinite(static_cast<float>(v)); }))
      refuse("has a number that is no finite float32 number");
  }

  static std::string kind_of(const json& value) {
    return value.is_null() ? "null"
                           : std::string(value.is_object() ? "an " : "a ") + value.type_name();
  }

  const Predictor& predictor_;
  const BundleManifest& manifest_;
  size_t at_ = 0;  // the sample that is read
};

/// Whether each output has the samples of a batch as its first dimension.
bool are_of_samples(const Outputs& outputs, size_t samples) {
  return std::ranges::all_of(outputs, [samples](const at::Tensor& output) {
    return output.dim() > 0 && std::cmp_equal(output.size(0), samples);
  });
}

}  // namespace

JsonRequest read_request(std::string_view text, const Predictor& predictor, int64_t most) {
  const auto refuse = [](const std::string& part, const std::string& problem) {
    throw FormatError("predict", kRequest, part, problem);
  };
  if (is_deep(text)) refuse("body", "has arrays and objects in too many others");
  const json all = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto samples = all.is_object() ? all.find("samples") : all.end();
  if (!all.is_object() || samples == all.end() || !samples->is_array())
    refuse("body", R"(is not JSON of the form {"samples": [...], "top": 3})");
  for (const auto& [key, value] : all.items())
    if (key != "samples" && key != "top")
      refuse("'" + printable(key, 40) + "'", "is not known; allowed: samples, top");
  if (samples->empty()) refuse("samples", "is an array without a sample");
  if (std::cmp_greater(samples->size(), most))
    refuse("samples", "has " + std::to_string(samples->size()) + " samples, more than the " +
                          std::to_string(most) + " of one request");
  JsonRequest request;
  if (const auto top = all.find("top"); top != all.end()) {
    if (!top->is_number_integer() || top->get<double>() < 1 || top->get<double>() > INT32_MAX)
      refuse("top", "must be a whole number >= 1");
    if (!gives_classes(predictor.manifest()))
      refuse("top", "is for a model of classes, and the outputs of this one are values");
    request.top = top->get<int64_t>();
  }
  request.samples = SampleReader(predictor).read(*samples);
  return request;
}

std::vector<Outputs> predict_samples(Predictor& predictor, std::span<const Batch> samples,
                                     int64_t batch) {
  std::vector<Outputs> outputs(samples.size());
  std::vector<bool> done(samples.size());
  for (size_t first = 0; first < samples.size(); ++first) {
    if (done[first]) continue;
    std::vector<size_t> places;
    std::vector<Batch> alike;
    for (size_t i = first; i < samples.size() && std::cmp_less(places.size(), batch); ++i)
      if (!done[i] && same_layout(samples[first], samples[i], 1)) {
        places.push_back(i);
        alike.push_back(samples[i]);
        done[i] = true;
      }
    const Outputs all =
        predictor.predict(joined(alike, [](const auto& parts) { return at::cat(parts); }));
    const bool splits = are_of_samples(all, places.size());
    for (size_t i = 0; i < places.size(); ++i) {
      std::vector<at::Tensor> own;
      for (const at::Tensor& output : all)
        if (splits) own.push_back(output.narrow(0, static_cast<int64_t>(i), 1));
      outputs[places[i]] = splits ? Outputs(own) : predictor.predict(alike[i]);
    }
  }
  return outputs;
}

json prediction_json(const Predictor& predictor, const Outputs& outputs, size_t number,
                     std::optional<int64_t> top) {
  const at::Tensor& output = outputs[number];
  if (predictor.has_classes(output)) {
    const int64_t all = has_several_labels(predictor.manifest()) ? output.size(1) : 1;
    json list = json::array();
    for (const Prediction& p : predictor.classes(output, top.value_or(all)))
      list.push_back({{"label", p.label}, {"index", p.index}, {"probability", p.probability}});
    return {{"predictions", list}};
  }
  const at::Tensor row = output.contiguous();
  const float* data = row.const_data_ptr<float>();
  json described{{"shape", row.sizes().slice(1).vec()},
                 {"values", std::vector<float>(data, data + row.numel())}};
  const std::vector<std::string> names = target_names(predictor.manifest());
  if (!names.empty() && outputs.size() == 1 && std::cmp_equal(names.size(), row.numel()))
    described["targets"] = names;
  return described;
}

std::string response_json(const Predictor& predictor, std::span<const Outputs> outputs,
                          std::optional<int64_t> top) {
  json samples = json::array();
  for (const Outputs& of_sample : outputs) {
    json all = json::array();
    for (size_t i = 0; i < of_sample.size(); ++i)
      all.push_back(prediction_json(predictor, of_sample, i, top));
    samples.push_back(all.size() == 1 ? all.front() : json{{"outputs", all}});
  }
  return json{{"samples", samples}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace tare
