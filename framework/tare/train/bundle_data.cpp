// Describes a data set for a bundle, with the transforms that prediction repeats.
#include "tare/train/bundle_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

#include "tare/base/error.h"
#include "tare/config/field.h"
#include "tare/data/level_source.h"
#include "tare/data/row_source.h"

namespace tare {
namespace {

using nlohmann::json;

Transforms steps_of(const Dataset& set) {
  return set.transforms() ? set.transforms()->deterministic() : Transforms{};
}

// "resize {height: 8, width: 8}; normalise {mean: [0.5], std: [0.2]}"
std::string text_of(const Transforms& transforms) {
  std::string text;
  for (const Transform& step : transforms.steps()) {
    const config::Choice choice = choice_of(step);
    std::string fields;
    for (const char c : config::to_yaml(choice.options))
      fields += c == '\n' ? ", " : std::string(1, c);
    if (fields.ends_with(", ")) fields.resize(fields.size() - 2);
    text += (text.empty() ? "" : "; ") + choice.name + " {" + fields + "}";
  }
  return text.empty() ? "none" : text;
}

// Returns the steps of `all` after its first steps `done`; unset: it begins with other steps.
std::optional<Transforms> rest_of(const Transforms& all, const Transforms& done) {
  const auto &steps = all.steps(), &first = done.steps();
  if (first.size() > steps.size() || !std::equal(first.begin(), first.end(), steps.begin()))
    return std::nullopt;
  return Transforms(std::vector<Transform>(
      steps.begin() + static_cast<std::ptrdiff_t>(first.size()), steps.end()));
}

// A picture that the transforms do not bring to the model's size is resized in front of them, by a
// reader as by Predictor::classify().
Transforms resized_first(const BundleManifest& manifest) {
  const auto& shape = manifest.sample_shape;
  std::vector<Transform> steps{Resize{
      .height = shape[1], .width = shape[2], .round = true, .antialias = manifest.antialias}};
  const auto& own = manifest.transforms.steps();
  steps.insert(steps.end(), own.begin(), own.end());
  return Transforms(std::move(steps));
}

constexpr std::array kNamed = {c10::kFloat, c10::kDouble,   c10::kByte, c10::kLong,
                               c10::kInt,   c10::kBFloat16, c10::kHalf, c10::kBool};

/// Returns the bundle's name of a dtype, or else LibTorch's, which the export refuses.
std::string dtype_name(c10::ScalarType type) {
  return std::ranges::find(kNamed, type) != kNamed.end() ? bundle_input(type) : c10::toString(type);
}

// Whether the data set still gives the bytes of its images. The model takes float32, and each
// pipeline converts to it, even one without steps.
bool needs_conversion(const Dataset& data, const BundleManifest& manifest) {
  return manifest.input == bundle_input(c10::kFloat) && data.sample_shape().size() == 3 &&
         data.first_sample().input().scalar_type() == c10::kByte;
}

using Dimensions = std::vector<std::set<int64_t>>;

void add_different(Dimensions& to, size_t input, at::IntArrayRef one, at::IntArrayRef other) {
  if (to.size() <= input) to.resize(input + 1);
  for (size_t i = 0; i < std::min(one.size(), other.size()); ++i)
    if (one[i] != other[i]) to[input].insert(static_cast<int64_t>(i));
}

// Adds the dimensions in which samples of one data set differ, as get() gives each alone.
void add_different(Dimensions& to, const Dataset& data) {
  const std::vector<int64_t> largest = largest_samples(data);
  const std::vector<int64_t> sizes = data.sample_sizes(largest.front());
  if (std::ranges::all_of(sizes, [](int64_t size) { return size == 0; })) return;
  std::vector<int64_t> samples = smallest_samples(data);
  samples.insert(samples.end(), largest.begin(), largest.end());
  const Batch first = data.get({.indices = std::span(samples).first(1)});
  for (const int64_t sample : samples) {
    if (sample == samples.front()) continue;
    const Batch other = data.get({.indices = {&sample, 1}});
    for (size_t i = 0; i < std::min(first.inputs.size(), other.inputs.size()); ++i)
      add_different(to, i, first.inputs[i].tensor.sizes().slice(1),
                    other.inputs[i].tensor.sizes().slice(1));
  }
}

bool all_named(const Transforms& transforms) {
  return std::ranges::all_of(transforms.steps(),
                             [](const Transform& step) { return !choice_of(step).name.empty(); });
}

}  // namespace

std::string text_of(const BundleData& data) {
  json inputs = json::array();
  for (const auto& input : data.more_inputs)
    inputs.push_back({input.name, input.dtype, input.sample_shape, input.any_size});
  return json{{"sample_shape", data.sample_shape},
              {"any_size", data.any_size},
              {"transforms", config::to_yaml(config::to_node(data.transforms))},
              {"labels", data.labels},
              {"text_length", data.text_length},
              {"levels", data.levels},
              {"rows", data.rows ? text_of(*data.rows) : ""},
              {"described", data.described && all_named(data.transforms)},
              {"input", data.input ? c10::toString(*data.input) : ""},
              {"input_name", data.input_name},
              {"more_inputs", std::move(inputs)}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

BundleData bundle_data_from(const std::string& text) {
  try {
    const json stored = json::parse(text);
    BundleData data{.sample_shape = stored.at("sample_shape"),
                    .transforms = {},
                    .labels = stored.at("labels"),
                    .text_length = stored.at("text_length"),
                    .described = stored.at("described")};
    if (data.described)
      data.transforms = config::read<Transforms>(with_stored_defaults(
          config::parse_text(stored.at("transforms").get<std::string>(), "transforms")));
    const auto named =
        std::ranges::find(kNamed, stored.at("input").get<std::string>(),
                          [](c10::ScalarType type) { return std::string(c10::toString(type)); });
    if (named != kNamed.end()) data.input = *named;
    // Checkpoints of earlier versions have no names, no any_size and no rows.
    if (const std::string rows = stored.value("rows", ""); !rows.empty())
      data.rows = row_coding_from(rows);
    data.input_name = stored.value("input_name", "");
    data.any_size = stored.value("any_size", data.any_size);
    data.levels = stored.value("levels", data.levels);
    for (const json& input : stored.at("more_inputs")) {
      data.more_inputs.push_back(
          {.name = input.at(0), .dtype = input.at(1), .sample_shape = input.at(2)});
      if (input.size() > 3)
        data.more_inputs.back().any_size = input.at(3).get<std::vector<int64_t>>();
    }
    return data;
  } catch (const json::exception& error) {
    throw ConfigError("learner.load", std::string("the data are not described: ") + error.what());
  }
}

// Of data with several targets a metric has a column for each: "mae.age".
const Metric* find_metric(const std::string& column, const std::vector<Metric>& metrics) {
  const auto found = std::ranges::find_if(metrics, [&](const Metric& metric) {
    const std::string name = MetricState(metric).name();
    return column == name || column.starts_with(name + ".");
  });
  return found == metrics.end() ? nullptr : &*found;
}

std::vector<BundleMetric> bundle_metrics(const EpochRow* row, const std::vector<Metric>& metrics) {
  if (!row) return {};
  std::vector<BundleMetric> figures{{"valid_loss", row->valid_loss}};
  for (const auto& column : row->metrics) {
    const Metric* metric = find_metric(column.name, metrics);
    if (!metric) continue;
    const std::string text = metrics::text_of(*metric);
    figures.push_back({column.name, column.value, text.starts_with('{') ? text : ""});
  }
  std::erase_if(figures, [](const BundleMetric& m) { return std::isnan(m.value); });
  return figures;
}

std::optional<BundleData> bundle_data(const Splits& data) {
  const std::array splits{data.valid, data.train, data.test};
  const auto is_there = [](const DatasetPtr& set) { return set != nullptr; };
  auto chosen =
      std::ranges::find_if(splits, [](const DatasetPtr& set) { return set && set->described(); });
  if (chosen == splits.end()) chosen = std::ranges::find_if(splits, is_there);
  if (chosen == splits.end()) return std::nullopt;
  BundleData result{.sample_shape = (*chosen)->sample_shape(),
                    .transforms = steps_of(**chosen),
                    .labels = (*chosen)->labels(),
                    .text_length = (*chosen)->text_length(),
                    .described = (*chosen)->described()};
  if (const RowCoding* rows = row_coding_of(**chosen)) result.rows = *rows;
  for (const DatasetPtr& set : splits)
    if (set && result.labels.empty()) result.labels = set->labels();
  if (const auto levels = levels_of(data.train ? *data.train : **chosen))
    result.levels = {levels->least, levels->most};
  return result;
}

std::vector<BundleInput> more_inputs(const Batch& batch) {
  std::vector<BundleInput> more;
  for (size_t i = 1; i < batch.inputs.size(); ++i) {
    const auto& [name, tensor] = batch.inputs[i];
    more.push_back({.name = name,
                    .dtype = dtype_name(tensor.scalar_type()),
                    .sample_shape = tensor.sizes().slice(1).vec()});
  }
  return more;
}

VaryingDimensions varying_dimensions(const Splits& data) {
  Dimensions found;
  std::optional<std::vector<int64_t>> shape;
  for (const DatasetPtr& set : {data.valid, data.train, data.test}) {
    if (!set) continue;
    const std::vector<int64_t> own = set->sample_shape();
    if (!shape) shape = own;
    add_different(found, 0, *shape, own);
    add_different(found, *set);
  }
  VaryingDimensions result;
  for (const auto& dimensions : found) result.emplace_back(dimensions.begin(), dimensions.end());
  return result;
}

void add_varying(BundleData& to, const VaryingDimensions& dimensions) {
  if (!dimensions.empty()) to.any_size = dimensions.front();
  // A map() may add dimensions that the shape of the data set does not have.
  std::erase_if(to.any_size,
                [&](int64_t i) { return std::cmp_greater_equal(i, to.sample_shape.size()); });
  for (size_t i = 1; i < dimensions.size() && i <= to.more_inputs.size(); ++i)
    to.more_inputs[i - 1].any_size = dimensions[i];
}

void add_inputs(BundleData& to, const Splits& data) {
  const VaryingDimensions dimensions = varying_dimensions(data);
  for (const DatasetPtr& set : {data.valid, data.train, data.test}) {
    if (!set) continue;
    const Batch sample = set->first_sample();
    to.input = sample.input().scalar_type();
    to.input_name = sample.inputs.front().name;
    to.more_inputs = more_inputs(sample);
    add_varying(to, dimensions);
    return;
  }
}

void name_numbers(BundleManifest& manifest) {
  const bool numbers = manifest.activation == "none" && !manifest.loss.empty();
  if (!numbers || class_count(manifest) != std::ssize(manifest.labels)) return;
  if (!manifest.rows) manifest.targets = manifest.labels;
  manifest.labels.clear();
}

void describe(BundleManifest& manifest, const BundleData& data, const char* call) {
  if (!data.described) {
    throw StateError(call, "with data that went through map(), which no bundle can describe",
                     "give map() the transforms that do to an input what its function does, or "
                     "Transforms{} where it leaves the inputs as they are");
  }
  manifest.sample_shape = data.sample_shape;
  manifest.any_size = data.any_size;
  manifest.transforms = data.transforms;
  manifest.labels = data.labels;
  manifest.targets.clear();
  manifest.input_name = data.input_name;
  manifest.more_inputs = data.more_inputs;
  manifest.text_length = data.text_length;
  manifest.levels = data.levels;
  manifest.rows = data.rows;
  if (data.input) manifest.input = bundle_input(*data.input);
}

void check_describable(const BundleData& data, const char* call) {
  BundleManifest manifest;
  describe(manifest, data, call);
  check_bundle(manifest);
}

DatasetPtr as_trained(const DatasetPtr& data, const BundleManifest& manifest) {
  if (!data) return data;
  if (const RowCoding* rows = row_coding_of(*data);
      rows && manifest.rows && *rows != *manifest.rows)
    throw ConfigError("load_learner",
                      "the rows of the data set are coded by what was learnt on another training "
                      "split than that of the bundle; make samples of the file by "
                      "RowEncoder(*manifest.rows, read_table(file)).samples()");
  const Transforms have = steps_of(*data);
  auto rest = rest_of(manifest.transforms, have);
  if (!rest && manifest.sample_shape.size() == 3) rest = rest_of(resized_first(manifest), have);
  if (!rest) {
    throw ConfigError("load_learner",
                      "the data set has other transforms than the bundle was trained with: " +
                          text_of(have) + ", the bundle: " + text_of(manifest.transforms) +
                          "; give the data without transforms, the bundle's are applied");
  }
  const bool ready = rest->steps().empty() && !needs_conversion(*data, manifest);
  return ready ? data : transformed(data, *rest);
}

}  // namespace tare
