// The data sets that have a name.
#include "tare/data/datasets.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/base/sha256.h"
#include "tare/config/changed.h"
#include "tare/config/scalar.h"
#include "tare/data/collate.h"
#include "tare/data/level_source.h"
#include "tare/data/tensor_dataset.h"

namespace tare::datasets {

void add_entries(Registry& all);  // CMake makes it from the list in CMakeLists.txt

namespace {

Kind kind_of(const std::string& name) {
  if (registry().contains(name)) return registry().make(name);
  if (name == "png_folder")
    throw ConfigError("data.make", "name",
                      "is not a data set: image_folder reads PNG files, as well as JPEG and WebP",
                      "image_folder", name);
  throw ConfigError("data.make", "name", "is not a data set" + did_you_mean(name, names()),
                    config::listed_entries(names()), name);
}

/// Returns what the kind takes; lists of options and their check have it from here.
std::vector<std::string> taken_by(const Kind& kind) {
  std::vector<std::string> taken = kind.fields;
  if (kind.images) taken.insert(taken.end(), {"size", "fit"});
  for (const char* of_all :
       {"count", "seed", "train", "valid", "test", "folds", "fold", "stratify"})
    taken.emplace_back(of_all);
  if (kind.images) taken.emplace_back("transforms");
  return taken;
}

std::string value_text(const DataOptions& options, const std::string& field) {
  const config::Node all = config::to_node(options);
  const config::Node* value = all.find(field);
  if (!value) return {};
  // A name without options, as `collate: pad`.
  if (value->entries.size() == 1 && config::flow_text(value->entries.front().value) == "{}")
    return value->entries.front().key;
  return value->kind == config::Kind::scalar ? value->text
                                             : printable(config::flow_text(*value), 200);
}

bool takes(const Kind& kind, const std::string& field) {
  return std::ranges::count(taken_by(kind), field) > 0;
}

// Returns the data sets that take the field, behind what a message says before them.
std::string takers_of(const std::string& field) {
  std::string takers;
  for (const auto& name : registry().names())
    if (takes(registry().make(name), field))
      takers += (takers.empty() ? ", or in data.name one of " : ", ") + name;
  return takers;
}

// Returns where a data set has what the field names in another one; empty: that is not known.
std::string place_of(const std::string& name, const std::string& field) {
  const bool of_targets = field == "target" || field == "label" || field == "labels";
  if (name == "image_list" && of_targets)
    return ", whose classes stand in the column `label` of the list: give the column that name in "
           "the first row, or name columns of numbers in targets";
  if (name == "image_list" && field == "columns")
    return ", whose paths stand in the column `path` of the list, and the classes in `label`";
  if (name == "npy" && of_targets) return ", whose targets are the array of the file labels";
  if ((name == "csv" || name == "jsonl" || name == "text_list") && of_targets)
    return ", whose target names the column of the classes";
  if ((name == "image_folder" || name == "text_folder") && of_targets)
    return ", whose classes are the subfolders of folder";
  return {};
}

// A field that belongs to another data set would be ignored without a word.
void check_fields(const Kind& kind, const DataOptions& given) {
  for (const auto& field : config::changed_fields(given)) {
    if (field == "name" || takes(kind, field)) continue;
    throw ConfigError("data.make", field,
                      "is not taken by the data set " + given.name + place_of(given.name, field),
                      "omit it" + takers_of(field), value_text(given, field));
  }
}

void check_fit(const DataOptions& given) {
  if (given.size == 0 && given.fit != DataOptions{}.fit)
    throw ConfigError("data.make", "fit", "needs the size to which images are brought",
                      "omit it, or give a size, such as 224", given.fit);
}

void check_folds(const DataOptions& given) {
  const auto refuse = [](const char* field, const std::string& problem, const std::string& allowed,
                         const std::string& got) {
    throw ConfigError("data.make", field, problem, allowed, got);
  };
  if (given.folds == 1)
    refuse("folds", "leaves no samples to train on", "0 for none, or >= 2", "1");
  if (given.fold > 0 && given.fold >= given.folds)
    refuse("fold", given.folds == 0 ? "needs folds" : "is not one of the folds",
           given.folds == 0 ? "folds: 2 or more" : "0 to " + std::to_string(given.folds - 1),
           std::to_string(given.fold));
  if (given.folds == 0) return;
  const DataOptions standard;
  const std::pair<const char*, std::pair<double, double>> sizes[] = {
      {"train", {given.train, standard.train}},
      {"valid", {given.valid, standard.valid}},
      {"test", {given.test, standard.test}}};
  for (const auto& [field, values] : sizes)
    if (values.first != values.second)
      refuse(field, "has no effect, because folds say what is trained on", "omit it",
             config::number_text(values.first));
}

// Stratified, so that a folder of pictures, class behind class, keeps its classes.
DatasetPtr first(const DatasetPtr& data, int64_t count, bool stratify) {
  if (count > data->size())
    throw ConfigError("data.make", "count", "is more than the data set has",
                      "0 for all, or at most " + std::to_string(data->size()) + " samples",
                      std::to_string(count));
  if (count == 0 || count == data->size()) return data;
  if (stratify && has_class_labels(data)) return subset(data, first_of_each_class(data, count));
  std::vector<int64_t> indices(static_cast<size_t>(count));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  return subset(data, std::move(indices));
}

// Whether the reader has resized the images by `fit`, so that a bundle has it.
bool has_fitted(const Dataset& data, const std::string& fit) {
  const Transforms* transforms = data.transforms();
  return transforms && std::ranges::any_of(transforms->steps(), [&](const Transform& step) {
           const auto* resize = std::get_if<Resize>(&step);
           return resize && resize->fit == fit;
         });
}

// Transforms of the options, behind a change of size where the images have another one. A `fit` is
// a step even where they have the size, so that a prediction brings other images to it likewise.
DatasetPtr finished(const DatasetPtr& data, const DataOptions& o) {
  const std::vector<int64_t> shape = data->sample_shape();
  std::vector<Transform> steps;
  const auto refuse = [&](const char* field, const std::string& allowed, size_t got) {
    throw ConfigError(
        "data.make", field,
        "can change images only, and the shape of a sample is " + c10::str(at::IntArrayRef(shape)),
        allowed, std::to_string(got));
  };
  if (o.size > 0 && shape.size() != 3) refuse("size", "0", static_cast<size_t>(o.size));
  const bool other_size = o.size > 0 && (shape.at(1) != o.size || shape.at(2) != o.size);
  if (other_size || (o.fit != DataOptions{}.fit && !has_fitted(*data, o.fit)))
    steps.emplace_back(Resize{.height = o.size, .width = o.size, .fit = o.fit});
  steps.insert(steps.end(), o.transforms.steps().begin(), o.transforms.steps().end());
  if (shape.size() != 3 && !steps.empty()) refuse("transforms", "an empty list", steps.size());
  if (const std::optional<Levels> levels = levels_of(*data))
    if (const std::string unusual = normalise_warning(*levels, o.transforms); !unusual.empty())
      log::warning_once("data.transforms: normalise " + unusual);
  if (shape.size() != 3) return data;  // rows of numbers
  return transformed(data, Transforms(std::move(steps)));
}

// Without random transforms, as a part that is not trained on.
DatasetPtr whole(const DatasetPtr& data) {
  std::vector<int64_t> all(static_cast<size_t>(data->size()));
  std::iota(all.begin(), all.end(), int64_t{0});
  return subset(data, std::move(all), false);
}

std::string part(const char* name, const DatasetPtr& data) {
  return std::string(name) + " " + (data ? format_count(data->size()) : "none");
}

std::vector<DatasetPtr> parts_of(const Found& found) {
  std::vector<DatasetPtr> parts{found.data, found.valid, found.test};
  std::erase(parts, nullptr);
  return parts;
}

// The hash of all parts; empty where one has none. The first targets are in the digest.
std::string content_of(const Found& found) {
  std::string content;
  for (const DatasetPtr& data : parts_of(found)) {
    const std::string own = data->content();
    if (own.empty()) return {};
    content += own;
  }
  return content;
}

// Texts are separated by a zero byte, which is in none of them.
Identity identity_of(const Found& found) {
  Identity identity;
  Sha256 hash;
  const auto add = [&](const std::string& text) { hash.add({text.c_str(), text.size() + 1}); };
  for (const DatasetPtr& data : parts_of(found)) {
    identity.samples += data->size();
    for (const std::string& label : data->labels()) add(label);
    for (const int64_t side : data->sample_shape()) add(std::to_string(side));
    const at::Tensor targets = data->targets();
    if (!targets.defined()) continue;
    const at::Tensor flat = targets.contiguous();
    hash.add({static_cast<const char*>(flat.const_data_ptr()), flat.nbytes()});
  }
  for (const auto& file : found.files) add(file.generic_string());
  identity.digest = hash.hex();
  identity.content = content_of(found);
  return identity;
}

// The nearest name in the folder where `path` should be.
std::string neighbour(const std::filesystem::path& path) {
  const auto parent = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  std::vector<std::string> names;
  std::error_code ignored;  // a folder that cannot be read has no nearest name
  for (std::filesystem::directory_iterator it(parent, ignored), end; !ignored && it != end;
       it.increment(ignored))
    names.push_back(it->path().filename().string());
  return did_you_mean(path.filename().string(), names);
}

void require(const std::string& field, const std::filesystem::path& given, bool folder) {
  const std::filesystem::path path =
      given.has_filename() ? given : given.parent_path();  // "images/"
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  // Opening a pipe would wait for its writer.
  if (folder ? std::filesystem::is_directory(status) : std::filesystem::is_regular_file(status))
    return;
  const std::string kind = folder ? "folder" : "file";
  if (std::filesystem::exists(status))
    throw ConfigError("data.make", field, "is no " + kind, "a " + kind, given.string());
  // A relative path is looked for from where the program was started.
  const std::string where =
      path.is_relative()
          ? " (looked for " +
                printable(std::filesystem::absolute(path).lexically_normal().string()) + ")"
          : "";
  throw ConfigError("data.make", field, "is not there" + neighbour(path), "a " + kind + where,
                    given.string());
}

Splits splits_of(const Found& found, const DatasetPtr& data, const DataOptions& options) {
  if (found.are_splits)
    return {data, found.valid ? finished(found.valid, options) : nullptr,
            found.test ? finished(found.test, options) : nullptr};
  const auto seed = static_cast<uint64_t>(options.seed);
  const SplitOptions how{.stratify = options.stratify && has_class_labels(data)};
  if (options.folds > 0) {
    if (found.valid)
      throw ConfigError("data.make", "folds",
                        "are parts of all data, and these have a validation split of their own",
                        "omit it", std::to_string(options.folds));
    Splits splits = fold(data, options.folds, options.fold, seed, how);
    if (found.test) splits.test = whole(finished(found.test, options));
    return splits;
  }
  SplitSizes sizes{options.train, options.valid, options.test};
  // All that the other splits leave trains, unless `train` says less.
  const bool all = options.train == DataOptions{}.train;
  if (found.valid) sizes = {all ? options.train + options.valid : options.train, 0, options.test};
  Splits splits = split(data, sizes, seed, how);
  if (found.valid) splits.valid = whole(finished(found.valid, options));
  if (found.test && !splits.test) splits.test = whole(finished(found.test, options));
  return splits;
}

/// Returns how many samples of the `all` that are divided are in no split.
int64_t unused_of(const Splits& splits, const Found& found, int64_t all) {
  if (found.are_splits) return 0;
  int64_t used = splits.train ? splits.train->size() : 0;
  if (!found.valid && splits.valid) used += splits.valid->size();
  if (!found.test && splits.test) used += splits.test->size();
  return all - used;
}

}  // namespace

Registry& registry() {
  static Registry all("data set", add_entries);
  return all;
}

std::vector<std::string> names() { return registry().names(); }

std::vector<std::string> fields_of(const std::string& name) { return taken_by(kind_of(name)); }

void check(const DataOptions& options) {
  config::validate(options, "data.make");
  check_fields(kind_of(options.name), options);
  check_fit(options);
  check_folds(options);
  try {
    if (options.collate) (void)collates::registry().make(*options.collate);
  } catch (const ConfigError& error) {
    throw error.within("collate", error.source());
  }
}

std::vector<DataPath> paths_of(const DataOptions& options) {
  std::vector<DataPath> paths;
  const auto add = [&](const std::string& field, const std::string& path) {
    if (!path.empty()) paths.push_back({field, path});
  };
  const auto each = [&](const std::string& field, const std::vector<std::string>& list) {
    for (size_t i = 0; i < list.size(); ++i) add(field + '.' + std::to_string(i), list[i]);
  };
  add("folder", options.folder);
  add("file", options.file);
  add("images", options.images);
  add("labels", options.labels);
  each("files", options.files);
  each("valid_files", options.valid_files);
  each("test_files", options.test_files);
  return paths;
}

void check_files(const DataOptions& options) {
  for (const auto& [field, path] : paths_of(options)) {
    const bool is_in_list = field.find('.') != std::string::npos;
    if (!is_in_list || !std::filesystem::is_directory(path))
      require(field, path, field == "folder");
  }
}

Named make(const DataOptions& options, Network network) {
  check(options);
  Found found = kind_of(options.name).make(options, network == Network::allowed);
  if (!found.data)
    throw StateError("data.make", "without data",
                     "the data set " + options.name + " must return some");
  if (found.valid && !found.are_splits && options.valid != DataOptions{}.valid)
    throw ConfigError(
        "data.make", "valid",
        options.valid_files.empty()
            ? "has no part in data that have a validation split of their own"
            : "has no part in data whose validation split has files",
        options.valid_files.empty() ? "omit it" : "omit it, or the files of that split",
        config::number_text(options.valid));
  Named named{.identity = identity_of(found), .generated = found.generated};
  const DatasetPtr data = first(finished(found.data, options), options.count, options.stratify);
  named.splits = splits_of(found, data, options);
  const int64_t unused = unused_of(named.splits, found, data->size());
  constexpr double kRounding = 1e-9;
  if (unused > 0 && named.splits.train && options.folds == 0 &&
      options.train + options.valid + options.test < 1 - kRounding)
    log::warning_once(format_count(unused) + " of the " + format_count(data->size()) +
                      " samples are in no split, because the shares train, valid and test add up "
                      "to less than 1: raise one of them to use all");
  if (found.finish) named.splits = found.finish(named.splits);
  const bool some = options.count > 0 && options.count < found.data->size();
  const std::string count = some ? format_count(options.count) : "";
  named.description = (some && !found.are_splits ? count + " of " : "") + found.description +
                      (some && found.are_splits ? ", of which " + count + " windows train" : "") +
                      "; " + part("train", named.splits.train) + ", " +
                      part("valid", named.splits.valid) + ", " + part("test", named.splits.test) +
                      (unused > 0 ? ", unused " + format_count(unused) : "");
  return named;
}

}  // namespace tare::datasets

namespace tare {

void from_node(const config::Node& node, CacheBytes& value) {
  value.bytes.reset();
  if (node.kind == config::Kind::null) return;
  if (node.kind == config::Kind::scalar) value.bytes = parse_bytes(node.text);
  if (!value.bytes)
    throw ConfigError(node.source, "", "must be a number of bytes", "such as 2GiB; 0: none",
                      config::describe(node));
}

config::Node to_node(const CacheBytes& value) {
  return value.bytes ? config::to_node(*value.bytes) : config::Node();
}

}  // namespace tare
