// Writes, checks and opens bundles, and rebuilds their models.
#include "tare/inference/bundle.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/checkpoint/manifest.h"
#include "tare/model/coded_weight.h"
#include "tare/model/registry.h"
#include "tare/model/stored.h"

namespace tare {
namespace {

using nlohmann::json;

constexpr const char* kWrite = "bundle.write";
constexpr const char* kOpen = "bundle.open";
constexpr const char* kKey = "tare";  // of the metadata entry
constexpr const char* kFormat = "tare.bundle";
// The second where weights are rounded, the third where there are several inputs, the fourth where
// texts are cut, the fifth where samples are rows of a table.
constexpr int64_t kVersion = 1, kVersionRounded = 2, kVersionInputs = 3, kVersionTexts = 4,
                  kVersionRows = 5;
constexpr const char* kAsIs = "as_is";
constexpr size_t kMaxLabels = 1'000'000;
constexpr size_t kMaxLabelBytes = 4096;
constexpr size_t kMaxShape = 8;
constexpr size_t kMaxInputs = 64;
constexpr std::array kActivations = {"softmax", "exp", "sigmoid", "none"};

// The first field that is out of range, and why; shared by writer and reader.
struct Problem {
  const char* field = nullptr;
  std::string text;
};

struct Input {
  const char* name;
  c10::ScalarType dtype;
};
constexpr std::array kInputs = {Input{"float32", c10::kFloat}, Input{"float64", c10::kDouble},
                                Input{"uint8", c10::kByte},    Input{"int64", c10::kLong},
                                Input{"int32", c10::kInt},     Input{"bool", c10::kBool}};

bool is_shape(const std::vector<int64_t>& sizes) {
  return sizes.size() <= kMaxShape && std::ranges::all_of(sizes, [](int64_t n) { return n >= 1; });
}

bool are_dimensions(const std::vector<int64_t>& any_size, const std::vector<int64_t>& shape) {
  const auto is_dimension = [&](int64_t i) { return i >= 0 && std::cmp_less(i, shape.size()); };
  return std::ranges::all_of(any_size, is_dimension) &&
         std::ranges::adjacent_find(any_size, std::greater_equal<>()) == any_size.end();
}

bool is_input(const std::string& dtype) {
  return std::ranges::find(kInputs, dtype, &Input::name) != kInputs.end();
}

Problem find_problem(const BundleManifest& m) {
  const auto too_long = [](const std::string& label) { return label.size() > kMaxLabelBytes; };
  if (std::ranges::find(kActivations, m.activation) == kActivations.end()) {
    return {"activation",
            "must be softmax, exp, sigmoid or none, got '" + printable(m.activation) + "'"};
  }
  if (!is_input(m.input)) {
    return {"input", "must be float32, float64, uint8, int64, int32 or bool, got '" +
                         printable(m.input) + "'"};
  }
  if (!is_shape(m.sample_shape)) return {"sample_shape", "must be at most 8 sizes >= 1"};
  if (!are_dimensions(m.any_size, m.sample_shape)) {
    return {"any_size", "must be ascending dimensions of sample_shape"};
  }
  if (too_long(m.input_name)) return {"input_name", "must be at most 4,096 bytes"};
  const auto is_finite = [](double level) { return std::isfinite(level); };
  if (!m.levels.empty() && (m.levels.size() != 2 || m.levels[0] > m.levels[1] ||
                            !std::ranges::all_of(m.levels, is_finite))) {
    return {"levels", "must be the least and the most number of the first input"};
  }
  const auto is_wrong = [&](const BundleInput& input) {
    return input.name.empty() || too_long(input.name) || !is_input(input.dtype) ||
           !is_shape(input.sample_shape) || !are_dimensions(input.any_size, input.sample_shape);
  };
  if (m.more_inputs.size() > kMaxInputs || std::ranges::any_of(m.more_inputs, is_wrong)) {
    return {
        "more_inputs",
        "must be at most 64, each with a name of at most 4,096 bytes, a dtype (float32, "
        "float64, uint8, int64, int32 or bool) and at most 8 sizes >= 1, of which any_size lists "
        "dimensions"};
  }
  if (m.labels.size() > kMaxLabels || std::ranges::any_of(m.labels, too_long)) {
    return {"labels", "must be at most 1,000,000 of at most 4,096 bytes"};
  }
  if (m.targets.size() > kMaxLabels || std::ranges::any_of(m.targets, too_long)) {
    return {"targets", "must be at most 1,000,000 of at most 4,096 bytes"};
  }
  if (m.text_length < 0) {
    return {"text_length", "must be >= 0"};
  }
  const auto columns = [](const RowCoding& rows) {
    return std::vector<int64_t>{static_cast<int64_t>(rows.columns.size())};
  };
  if (m.rows && (m.input != "float32" || m.sample_shape != columns(*m.rows)))
    return {"rows", "must have a column for each number of a sample, which is float32"};
  return {};
}

json to_json(const std::vector<BundleMetric>& figures) {
  json metrics = json::array();
  for (const auto& metric : figures) {
    metrics.push_back({{"name", metric.name}, {"value", metric.value}});
    if (!metric.metric.empty()) metrics.back()["metric"] = metric.metric;
  }
  return metrics;
}

json to_json(const BundleManifest& m, const checkpoint::Digest& digest) {
  return {{"format", kFormat},
          {"version", m.weights == kAsIs ? kVersion : kVersionRounded},
          {"tare", checkpoint::tare_version()},
          {"libtorch", checkpoint::libtorch_version()},
          {"model", {{"name", m.model.name}, {"options", m.model.options}}},
          {"sample_shape", m.sample_shape},
          {"input", m.input},
          {"transforms", config::to_yaml(config::to_node(m.transforms.deterministic()))},
          {"labels", m.labels},
          {"metrics", to_json(m.metrics)},
          {"activation", m.activation},
          {"loss", m.loss},
          {"digest", checkpoint::to_json(digest)}};
}

// Bundles of earlier versions have no such fields, so that they hold only what their readers know.
void add_later_fields(json& manifest, const BundleManifest& m) {
  if (!m.input_name.empty()) manifest["input_name"] = m.input_name;
  if (!m.any_size.empty()) manifest["any_size"] = m.any_size;
  if (!m.levels.empty()) manifest["levels"] = m.levels;
  if (!m.targets.empty()) manifest["targets"] = m.targets;
  if (!m.trained_metrics.empty()) manifest["trained_metrics"] = to_json(m.trained_metrics);
  if (m.antialias && sample_kind(m) == SampleKind::image) manifest["antialias"] = true;
  const bool cuts = m.text_length > 0 || m.rows;
  if (m.weights != kAsIs || !m.more_inputs.empty() || cuts) manifest["weights"] = m.weights;
  if (m.more_inputs.empty() && !cuts) return;
  manifest["version"] = m.rows ? kVersionRows : cuts ? kVersionTexts : kVersionInputs;
  if (cuts) manifest["text_length"] = m.text_length;
  if (m.rows) manifest["rows"] = text_of(*m.rows);
  json& inputs = manifest["more_inputs"] = json::array();
  for (const BundleInput& input : m.more_inputs) {
    inputs.push_back(
        {{"name", input.name}, {"dtype", input.dtype}, {"sample_shape", input.sample_shape}});
    if (!input.any_size.empty()) inputs.back()["any_size"] = input.any_size;
  }
}

/// Returns BundleManifest::weights of these tensors, which are coded, or of 16 bits as `said`.
std::string storage_of(const std::vector<NamedTensor>& tensors, const std::string& said) {
  const std::string coding = coding_of(tensors);
  if (!coding.empty()) return coding;
  const auto has = [&](c10::ScalarType type) {
    return std::ranges::any_of(tensors, [&](const NamedTensor& t) {
      return t.tensor.defined() && t.tensor.scalar_type() == type;
    });
  };
  const bool rounded =
      (said == "bf16" && has(c10::kBFloat16)) || (said == "fp16" && has(c10::kHalf));
  return rounded ? said : kAsIs;
}

// Stands for a transform that another program added.
class UnknownTransform final : public ImageTransform {
 public:
  explicit UnknownTransform(std::string name) : name_(std::move(name)) {}
  [[nodiscard]] at::Tensor apply(at::Tensor, std::span<const uint64_t>) const override {
    throw StateError("transform." + name_, "in a program that does not have it",
                     "add it to transforms::registry()");
  }

 private:
  std::string name_;
};

// The choice of a transform that the program lacks; unset: it has it, or the item is none.
std::optional<config::Choice> unknown_choice(const config::Node& item) {
  const bool named = item.kind == config::Kind::scalar ||
                     (item.kind == config::Kind::map && item.entries.size() == 1);
  if (!named) return std::nullopt;
  auto choice = config::read<config::Choice>(item);
  if (transforms::registry().contains(choice.name)) return std::nullopt;
  return choice;
}

Transforms read_transforms(const config::Node& list, std::vector<std::string>& unknown) {
  std::vector<Transform> steps;
  config::Node known = list;
  known.items.clear();
  const auto take_known = [&] {
    const auto read = config::read<Transforms>(with_stored_defaults(known));
    steps.insert(steps.end(), read.steps().begin(), read.steps().end());
    known.items.clear();
  };
  for (const config::Node& item : list.items) {
    const auto choice = unknown_choice(item);
    if (!choice) {
      known.items.push_back(item);
      continue;
    }
    take_known();
    unknown.push_back(choice->name);
    steps.push_back(Added{std::make_shared<UnknownTransform>(choice->name), *choice});
  }
  take_known();
  return Transforms(std::move(steps));
}

// Reads the fields of a manifest, each with its type checked.
class Reader {
 public:
  Reader(const json& manifest, const std::filesystem::path& path) : json_(manifest), path_(path) {}

  [[noreturn]] void fail(const std::string& field, const std::string& problem) const {
    throw FormatError(kOpen, path_.string(), field, problem);
  }
  [[nodiscard]] const json& field(const char* name, json::value_t type, const json& from) const {
    if (!from.contains(name)) fail(name, "is missing");
    const json& value = from.at(name);
    const bool number = type == json::value_t::number_unsigned;
    if (number ? !value.is_number_unsigned() : value.type() != type)
      fail(name, "is not of the right type");
    return value;
  }
  [[nodiscard]] std::string text(const char* name) const { return text(name, json_); }
  [[nodiscard]] std::string text(const char* name, const json& from) const {
    return field(name, json::value_t::string, from).get<std::string>();
  }
  [[nodiscard]] const json& list(const char* name) const {
    return field(name, json::value_t::array, json_);
  }
  [[nodiscard]] const json& object(const char* name) const {
    return field(name, json::value_t::object, json_);
  }
  [[nodiscard]] uint64_t number(const char* name) const {
    return field(name, json::value_t::number_unsigned, json_).get<uint64_t>();
  }

  [[nodiscard]] std::vector<int64_t> shape() const { return shape(json_); }
  [[nodiscard]] std::vector<int64_t> shape(const json& from) const {
    return whole_numbers("sample_shape", from);
  }
  // Bundles of earlier versions have no such list.
  [[nodiscard]] std::vector<int64_t> any_size() const { return any_size(json_); }
  [[nodiscard]] std::vector<int64_t> any_size(const json& from) const {
    return from.contains("any_size") ? whole_numbers("any_size", from) : std::vector<int64_t>();
  }
  // Bundles of earlier versions do not name it.
  [[nodiscard]] std::string input(const ModelSpec& spec) const {
    if (json_.contains("input")) return text("input");
    return takes_tokens(spec) ? "int64" : "float32";
  }
  [[nodiscard]] std::vector<std::string> labels() const { return texts("labels"); }
  // Bundles of earlier versions have no such list.
  [[nodiscard]] std::vector<std::string> targets() const {
    return json_.contains("targets") ? texts("targets") : std::vector<std::string>();
  }
  [[nodiscard]] std::vector<BundleMetric> metrics(const char* name = "metrics") const {
    std::vector<BundleMetric> result;
    for (const json& metric : list(name)) {
      if (!metric.is_object() || !metric.contains("value")) fail(name, "has one without a value");
      const json& value = metric["value"];  // null: it was not finite
      if (!value.is_number() && !value.is_null()) fail(name, "has one whose value is not a number");
      const double none = std::numeric_limits<double>::quiet_NaN();
      result.push_back({text("name", metric), value.is_null() ? none : value.get<double>(),
                        metric.contains("metric") ? text("metric", metric) : ""});
    }
    return result;
  }
  [[nodiscard]] std::string input_name() const {
    return json_.contains("input_name") ? text("input_name") : "";
  }
  // Bundles of earlier versions do not have them.
  [[nodiscard]] std::vector<double> levels() const {
    std::vector<double> numbers;
    if (!json_.contains("levels")) return numbers;
    for (const json& number : list("levels")) {
      if (!number.is_number()) fail("levels", "has one that is not a number");
      numbers.push_back(number.get<double>());
    }
    return numbers;
  }
  [[nodiscard]] std::vector<BundleInput> more_inputs() const {
    std::vector<BundleInput> result;
    for (const json& input : list("more_inputs")) {
      if (!input.is_object()) fail("more_inputs", "has one that is not an object");
      result.push_back({text("name", input), text("dtype", input), shape(input), any_size(input)});
    }
    return result;
  }
  [[nodiscard]] bool antialias() const {
    return json_.contains("antialias") &&
           field("antialias", json::value_t::boolean, json_).get<bool>();
  }
  [[nodiscard]] RowCoding rows() const {
    try {
      return row_coding_from(text("rows"));
    } catch (const ConfigError& error) {
      fail("rows", error.what());
    }
  }
  /// Appends the names of transforms that the program lacks.
  [[nodiscard]] Transforms transforms(std::vector<std::string>& unknown) const {
    try {
      return read_transforms(config::parse_text(text("transforms"), "transforms"), unknown);
    } catch (const ConfigError& error) {
      fail("transforms", error.what());
    }
  }

 private:
  [[nodiscard]] std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> result;
    for (const json& text : list(name)) {
      if (!text.is_string()) fail(name, "has one that is not a text");
      result.push_back(text.get<std::string>());
    }
    return result;
  }
  [[nodiscard]] std::vector<int64_t> whole_numbers(const char* name, const json& from) const {
    std::vector<int64_t> numbers;
    for (const json& number : field(name, json::value_t::array, from)) {
      if (!number.is_number_unsigned() || number.get<uint64_t>() > INT32_MAX)
        fail(name, "has no valid size");
      numbers.push_back(number.get<int64_t>());
    }
    return numbers;
  }

  const json& json_;
  const std::filesystem::path& path_;
};

BundleManifest read_manifest(const json& manifest, const std::filesystem::path& path) {
  const Reader reader(manifest, path);
  if (reader.text("format") != kFormat) reader.fail("format", "is not " + std::string(kFormat));
  const auto version = reader.number("version");
  if (version < kVersion || version > kVersionRows)
    reader.fail("version", "is " + std::to_string(version) + "; this Tare reads 1 to 5");
  const std::string weights = version == kVersion ? kAsIs : reader.text("weights");
  if (version == kVersionRounded && weights == kAsIs)
    reader.fail("weights", "is as_is, and those of version 2 are rounded");
  const auto known = weight_storages();
  if (weights == "fp32" || std::ranges::find(known, weights) == known.end())
    reader.fail("weights", "is no storage that this Tare knows");
  const json& model = reader.object("model");
  const ModelSpec spec{reader.text("name", model), reader.text("options", model)};
  std::vector<std::string> unknown;
  Transforms transforms = reader.transforms(unknown);
  BundleManifest result{
      .model = spec,
      .sample_shape = reader.shape(),
      .any_size = reader.any_size(),
      .input = reader.input(spec),
      .input_name = reader.input_name(),
      .levels = reader.levels(),
      .more_inputs = version >= kVersionInputs ? reader.more_inputs() : std::vector<BundleInput>(),
      .text_length =
          version >= kVersionTexts ? static_cast<int64_t>(reader.number("text_length")) : 0,
      .rows = version >= kVersionRows ? std::optional(reader.rows()) : std::nullopt,
      .targets = reader.targets(),
      .transforms = std::move(transforms),
      .unknown_transforms = std::move(unknown),
      .antialias = reader.antialias(),
      .labels = reader.labels(),
      .metrics = reader.metrics(),
      .trained_metrics = manifest.contains("trained_metrics") ? reader.metrics("trained_metrics")
                                                              : std::vector<BundleMetric>(),
      .activation = reader.text("activation"),
      .loss = reader.text("loss"),
      .weights = weights,
      .tare_version = reader.text("tare"),
      .libtorch_version = reader.text("libtorch")};
  if (const Problem problem = find_problem(result); problem.field)
    reader.fail(problem.field, problem.text);
  return result;
}

void check(const BundleManifest& manifest) {
  if (const Problem problem = find_problem(manifest); problem.field)
    throw ConfigError(kWrite, std::string(problem.field) + " " + problem.text);
}

// The metadata entry of a bundle.
std::string sealed(const BundleManifest& manifest, const checkpoint::Digest& digest) {
  std::string text;
  try {
    json fields = to_json(manifest, digest);
    add_later_fields(fields, manifest);
    text = checkpoint::seal(fields);
  } catch (const json::exception&) {
    throw ConfigError(kWrite, "a label, a metric's name or the model's options are not UTF-8");
  }
  if (static_cast<int64_t>(text.size()) > checkpoint::kMaxManifestBytes) {
    throw ConfigError(kWrite,
                      "the manifest would be larger than 16 MiB; use fewer or shorter labels");
  }
  return text;
}

}  // namespace

void check_bundle(const BundleManifest& manifest) {
  check(manifest);
  (void)sealed(manifest, {});
}

void write_bundle(const std::filesystem::path& path, const BundleManifest& manifest,
                  const std::vector<NamedTensor>& tensors) {
  check(manifest);
  if (!path.has_filename())  // before its folders are made
    throw ConfigError(kWrite, "'" + printable(path.string(), 1000) +
                                  "' names a folder: give the name of a file, such as " +
                                  printable((path / "model.tare").string(), 1000));
  // On the host, because they are hashed before they are written: the manifest precedes the data.
  std::vector<NamedTensor> host;
  host.reserve(tensors.size());
  for (const auto& t : tensors)
    host.push_back({t.name, t.tensor.defined() ? t.tensor.detach().cpu() : t.tensor});
  (void)scales_in(host, kWrite, path);
  BundleManifest written = manifest;
  written.weights = storage_of(host, manifest.weights);
  const std::string text = sealed(written, checkpoint::digest(host));
  if (path.has_parent_path()) io::make_directories(path.parent_path());
  checkpoint::write(path, host, {{kKey, text}});
}

Bundle open_bundle(const std::filesystem::path& path) {
  Bundle bundle = open_to_describe(path);
  const auto& unknown = bundle.manifest().unknown_transforms;
  if (unknown.empty()) return bundle;
  throw FormatError(kOpen, path.string(), "transforms",
                    "this program has no transform '" + printable(unknown.front()) +
                        "': call the program that wrote the bundle in place of tare, or add it to "
                        "transforms::registry() as that program does");
}

Bundle open_to_describe(const std::filesystem::path& path) {
  auto file = checkpoint::SafeTensors::open(path);
  const auto entry = file.metadata().find(kKey);
  if (entry == file.metadata().end()) {
    throw FormatError(kOpen, path.string(), kKey,
                      "is missing: this is a safetensors file, but no bundle");
  }
  const json manifest = checkpoint::unseal(entry->second, kOpen, path, "manifest");
  BundleManifest read = read_manifest(manifest, path);
  const json& digest = manifest.contains("digest") ? manifest["digest"] : json();
  checkpoint::verify(file, checkpoint::digest_from_json(digest, kOpen, path, "digest"), kOpen);
  const auto tensors = file.all();
  if (storage_of(tensors, read.weights) != read.weights)
    throw FormatError(kOpen, path.string(), "weights",
                      "are " + read.weights + " in the manifest, and others in the data");
  auto scales = scales_in(tensors, kOpen, path);
  return Bundle(std::move(file), std::move(read), std::move(scales));
}

int64_t Bundle::elements() const {
  int64_t all = 0;
  for (const auto& t : outlined(tensors(), scales_)) all += t.tensor.numel();
  return all;
}

std::string bundle_input(c10::ScalarType dtype) {
  if (dtype == c10::kBFloat16 || dtype == c10::kHalf) dtype = c10::kFloat;
  const auto found = std::ranges::find(kInputs, dtype, &Input::dtype);
  if (found != kInputs.end()) return found->name;
  throw ConfigError("bundle", "an input of dtype " + std::string(c10::toString(dtype)) +
                                  " cannot be described; give the model float32, float64, uint8, "
                                  "int64, int32 or bool");
}

c10::ScalarType bundle_dtype(const std::string& input) {
  const auto found = std::ranges::find(kInputs, input, &Input::name);
  if (found != kInputs.end()) return found->dtype;
  std::vector<std::string> known;
  for (const Input& one : kInputs) known.emplace_back(one.name);
  throw unknown_name("bundle", "input", input, known);
}

bool takes_tokens(const ModelSpec& model) {
  const auto known = models::names();
  return std::ranges::find(known, model.name) != known.end() && models::family(model.name).tokens;
}

SampleKind sample_kind(const BundleManifest& manifest) {
  if (manifest.input == "int64" || manifest.input == "int32") return SampleKind::tokens;
  const auto& shape = manifest.sample_shape;
  const bool is_image = shape.size() == 3 && (shape[0] == 1 || shape[0] == 3);
  return is_image && manifest.input != "float64" ? SampleKind::image : SampleKind::features;
}

std::vector<int64_t> any_size(const BundleManifest& manifest) {
  if (!manifest.any_size.empty() || manifest.sample_shape.empty()) return manifest.any_size;
  if (sample_kind(manifest) != SampleKind::tokens) return {};
  return {static_cast<int64_t>(manifest.sample_shape.size()) - 1};
}

std::optional<int64_t> class_count(const BundleManifest& manifest) {
  const auto known = models::names();
  if (std::ranges::find(known, manifest.model.name) != known.end()) {
    try {
      const auto options = config::parse_text(manifest.model.options, "model options");
      return config::read<ModelOptions>(options).classes;
    } catch (const ConfigError& error) {  // options of another version: make_model() reports them
      log::debug("the model's options cannot be read: " + std::string(error.what()));
    }
  }
  if (manifest.labels.empty()) return std::nullopt;
  return static_cast<int64_t>(manifest.labels.size());
}

bool gives_classes(const BundleManifest& manifest) {
  return manifest.activation != "none" || !manifest.labels.empty();
}

std::vector<std::string> target_names(const BundleManifest& manifest) {
  if (gives_classes(manifest)) return {};
  if (!manifest.rows) return manifest.targets;
  if (!manifest.rows->targets.empty()) return manifest.rows->targets;
  return manifest.rows->target.empty() ? std::vector<std::string>()
                                       : std::vector{manifest.rows->target};
}

BundleManifest manifest_from_json(std::string_view text, const std::filesystem::path& path) {
  return read_manifest(checkpoint::parse_object(text, "read_file", path, "manifest"), path);
}

std::string manifest_json(const BundleManifest& manifest, const checkpoint::Digest& digest) {
  json text = to_json(manifest, digest);
  add_later_fields(text, manifest);
  return text.dump();
}

Model make_model(const Bundle& bundle) {
  if (bundle.manifest().model.name.empty()) {
    throw ConfigError("bundle.make_model",
                      "'" + printable(bundle.file().path().string()) +
                          "' holds a model that is not in the registry; give its module too");
  }
  Model model = models::make(bundle.manifest().model);
  load_weights(model, bundle);
  model.train(false);
  return model;
}

void load_weights(Model& model, const Bundle& bundle) {
  load_stored(model, bundle.tensors(), /*strict=*/true, "bundle.load_weights",
              bundle.file().path());
}

}  // namespace tare
