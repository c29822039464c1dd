// The data sets that have a name.
#include "tare/data/datasets.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/sha256.h"
#include "tare/config/changed.h"
#include "tare/config/scalar.h"
#include "tare/data/idx.h"
#include "tare/data/png_folder.h"
#include "tare/data/tensor_dataset.h"
#include "tare/data/text_folder.h"
#include "tare/data/tfrecord_samples.h"
#include "tare/transform/image.h"
#include "tare/transform/random.h"

namespace tare::datasets {
namespace {

GeneratedDigits generator(const DataOptions& o) {
  return {.count = o.count > 0 ? o.count : GeneratedDigits{}.count,
          .size = o.size > 0 ? o.size : GeneratedDigits{}.size,
          .style = o.style.empty() ? GeneratedDigits{}.style : o.style,
          .seed = o.seed};
}

Found drawn(const DataOptions& o, bool) {
  const GeneratedDigits g = generator(o);
  return {.description = format_count(g.count) + " generated digits, " + g.style + " style, " +
                         std::to_string(g.size) + " pixels, seed " + std::to_string(g.seed),
          .data = generated_digits(g),
          .generated = true};
}

Found digits(const DataOptions& o, bool network) {
  FindDigitsOptions find{.download = o.download && network, .seed = o.seed, .warn = network};
  if (o.count > 0) find.count = o.count;
  DigitsSource source = find_digits(find);
  return {.description = std::move(source.description),
          .data = std::move(source.data),
          .generated = !source.real};
}

Found mnist10k(const DataOptions& o, bool network) {
  DigitsSource source =
      find_digits({.download = o.download && network, .count = 10, .warn = false});
  if (!source.real)
    throw IoError("data.make", "mnist10k",
                  "not found: run `tare data fetch mnist10k`, or set TARE_DATA_DIR to the folder "
                  "of its files");
  return {.description = std::move(source.description), .data = std::move(source.data)};
}

Found mnist(const DataOptions& o, bool network) {
  const auto folder = o.download && network ? fetch("mnist") : cache_folder() / "mnist";
  if (!std::filesystem::exists(folder))
    throw IoError("data.make", "mnist", "not found: run `tare data fetch mnist`");
  return {.description = "MNIST in " + printable(folder.string()),
          .data = idx_dataset(folder / "train-images-idx3-ubyte.gz",
                              folder / "train-labels-idx1-ubyte.gz"),
          .test = idx_dataset(folder / "t10k-images-idx3-ubyte.gz",
                              folder / "t10k-labels-idx1-ubyte.gz")};
}

Found idx(const DataOptions& o, bool) {
  if (o.images.empty() || o.labels.empty())
    throw ConfigError("data.make", "images", "and labels are needed by the data set idx",
                      "two IDX files", o.images);
  const DatasetPtr data = idx_dataset(o.images, o.labels);
  return {.description = format_count(data->size()) + " images of " + printable(o.images),
          .data = data};
}

Found folder(const DataOptions& o, bool) {
  if (o.folder.empty())
    throw ConfigError("data.make", "folder", "is needed by the data set png_folder",
                      "a folder of PNG images, one subfolder a class", "");
  const DatasetPtr data =
      png_folder(o.folder, {.channels = o.channels, .height = o.size, .width = o.size});
  Found found{.description = format_count(data->size()) + " images of " + printable(o.folder),
              .data = data};
  for (const auto& file : png_files(o.folder))
    found.files.push_back(file.lexically_relative(o.folder));
  return found;
}

// Texts are padded with what a model of bytes takes.
void check_padding(const config::Choice& collate) {
  if (collate.name != "pad") return;
  const auto value = config::read<PadOptions>(collate.options).value;
  if (value >= 0 && value <= 255 && value == std::floor(value)) return;
  throw ConfigError("data.make", "collate.pad.value", "is no byte, which texts are padded with",
                    "a whole number from 0 to 255", config::number_text(value));
}

Found texts(const DataOptions& o, bool) {
  if (o.folder.empty())
    throw ConfigError("data.make", "folder", "is needed by the data set text_folder",
                      "a folder of .txt files, one subfolder a class", "");
  check_padding(o.collate);
  const DatasetPtr data =
      text_folder(o.folder, {.length = o.length, .collate = collates::registry().make(o.collate)});
  Found found{.description = format_count(data->size()) + " texts of " + printable(o.folder),
              .data = data};
  for (const auto& file : text_files(o.folder))
    found.files.push_back(file.lexically_relative(o.folder));
  return found;
}

TfSampleOptions samples_of(const DataOptions& o) {
  return {.input = o.input,
          .label = o.label,
          .shape = o.shape,
          .channels = o.channels,
          .size = o.size,
          .parallel_reads = o.num_parallel_reads};
}

Found tfrecord(const DataOptions& o, bool) {
  if (o.files.empty())
    throw ConfigError("data.make", "files", "are needed by the data set tfrecord",
                      "TFRecord files, or folders of them", "none");
  Found found;
  std::vector<std::vector<std::filesystem::path>> parts;
  std::set<std::filesystem::path> seen;
  for (const auto& [field, given] :
       {std::pair("files", &o.files), std::pair("valid_files", &o.valid_files),
        std::pair("test_files", &o.test_files)}) {
    parts.push_back(tfrecord_files(*given));
    for (const auto& file : parts.back()) {
      if (!seen.insert(std::filesystem::weakly_canonical(file)).second)
        throw ConfigError("data.make", field, "has a file that is there twice",
                          "each file once, in one split", file.string());
      found.files.push_back(file.filename());
    }
  }
  auto sets = tfrecord_samples(parts, samples_of(o));
  found.data = std::move(sets[0]);
  found.valid = std::move(sets[1]);
  found.test = std::move(sets[2]);
  const int64_t samples = found.data->size() + (found.valid ? found.valid->size() : 0) +
                          (found.test ? found.test->size() : 0);
  found.description = format_count(samples) + " examples of " + printable(o.files.front()) +
                      (found.files.size() > 1 ? ", ..." : "");
  return found;
}

void add_ours(Registry& all) {
  const auto add = [&](const char* name, const char* summary, std::vector<std::string> fields,
                       Found (*make)(const DataOptions&, bool)) {
    all.add(name, summary, [kind = Kind{std::move(fields), make}] { return kind; });
  };
  add("digits", "handwritten digits: MNIST's test set, found or downloaded, else generated ones",
      {"download"}, digits);
  add("generated_digits", "digits drawn from strokes, in a printed or a written style, any size",
      {"style"}, drawn);
  add("idx", "images and labels from two IDX files, plain or gzip", {"images", "labels"}, idx);
  add("mnist", "MNIST: 60,000 images for train and valid, its 10,000 test images for test",
      {"download"}, mnist);
  add("mnist10k", "MNIST's 10,000 test images as a small data set of their own", {"download"},
      mnist10k);
  add("png_folder", "a folder of PNG images, one subfolder a class; without subfolders: no labels",
      {"folder", "channels"}, folder);
  add("text_folder", "a folder of text files as bytes, one subfolder a class, or without labels",
      {"folder", "length", "collate"}, texts);
  add("tfrecord",
      "TFRecord files of tf.train.Example, plain or gzip: pictures or numbers with labels",
      {"files", "valid_files", "test_files", "input", "label", "shape", "channels",
       "num_parallel_reads"},
      tfrecord);
}

Kind kind_of(const std::string& name) {
  if (registry().contains(name)) return registry().make(name);
  const std::string near = nearest(name, names());
  throw ConfigError("data.make", "name",
                    "is no data set" + (near.empty() ? "" : ", did you mean " + near + "?"),
                    "one of `tare ls datasets`", name);
}

const std::vector<std::string>& fields_of_all() {
  static const std::vector<std::string> names{"size",  "count", "seed",     "train",
                                              "valid", "test",  "stratify", "transforms"};
  return names;
}

std::string value_text(const DataOptions& options, const std::string& field) {
  const config::Node all = config::to_node(options);
  const config::Node* value = all.find(field);
  return value && value->kind == config::Kind::scalar ? value->text : "a value";
}

// A field that belongs to another data set would be ignored without a word.
void check_fields(const Kind& kind, const DataOptions& given) {
  const auto& of_all = fields_of_all();
  const auto takes = [&](const std::string& field) {
    return field == "name" || std::ranges::find(of_all, field) != of_all.end() ||
           std::ranges::find(kind.fields, field) != kind.fields.end();
  };
  for (const auto& field : config::changed_fields(given))
    if (!takes(field))
      throw ConfigError("data.make", field, "is not taken by the data set " + given.name,
                        "leave it out", value_text(given, field));
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

// Transforms of the options, behind a change of size where the images have another one.
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
  if (o.size > 0 && (shape.at(1) != o.size || shape.at(2) != o.size))
    steps.emplace_back(Resize{o.size, o.size});
  steps.insert(steps.end(), o.transforms.steps().begin(), o.transforms.steps().end());
  if (shape.size() != 3 && !steps.empty()) refuse("transforms", "an empty list", steps.size());
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

void require(const char* field, const std::filesystem::path& given, bool folder) {
  const std::filesystem::path path =
      given.has_filename() ? given : given.parent_path();  // "images/"
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (folder ? std::filesystem::is_directory(status)
             : std::filesystem::exists(status) && !std::filesystem::is_directory(status))
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

}  // namespace

Registry& registry() {
  static Registry all("data set");
  static const bool filled = (add_ours(all), true);
  static_cast<void>(filled);
  return all;
}

std::vector<std::string> names() { return registry().names(); }

std::vector<std::string> fields_of(const std::string& name) {
  std::vector<std::string> fields = kind_of(name).fields;
  fields.insert(fields.end(), fields_of_all().begin(), fields_of_all().end());
  return fields;
}

void check(const DataOptions& options) {
  config::validate(options, "data.make");
  check_fields(kind_of(options.name), options);
  try {
    (void)collates::registry().make(options.collate);
  } catch (const ConfigError& error) {
    throw error.within("collate", error.source());
  }
}

void check_files(const DataOptions& options) {
  if (!options.folder.empty()) require("folder", options.folder, true);
  if (!options.images.empty()) require("images", options.images, false);
  if (!options.labels.empty()) require("labels", options.labels, false);
  const auto each = [](const char* field, const std::vector<std::string>& paths) {
    for (const auto& path : paths)
      if (!std::filesystem::is_directory(path)) require(field, path, false);
  };
  each("files", options.files);
  each("valid_files", options.valid_files);
  each("test_files", options.test_files);
}

Named make(const DataOptions& options, Network network) {
  check(options);
  Found found = kind_of(options.name).make(options, network == Network::allowed);
  if (!found.data)
    throw StateError("data.make", "without data",
                     "the data set " + options.name + " must return some");
  if (found.valid && options.valid != DataOptions{}.valid)
    throw ConfigError("data.make", "valid", "has no part in data whose validation split has files",
                      "leave it out, or valid_files", std::to_string(options.valid));
  Named named{.identity = identity_of(found), .generated = found.generated};
  const DatasetPtr data = first(finished(found.data, options), options.count, options.stratify);
  SplitSizes sizes{options.train, options.valid, options.test};
  if (found.valid) sizes = {options.train + options.valid, 0, options.test};
  named.splits = split(data, sizes, static_cast<uint64_t>(options.seed),
                       {.stratify = options.stratify && has_class_labels(data)});
  if (found.valid) named.splits.valid = whole(finished(found.valid, options));
  if (found.test && !named.splits.test) named.splits.test = whole(finished(found.test, options));
  const bool some = options.count > 0 && options.count < found.data->size();
  named.description = (some ? format_count(options.count) + " of " : "") + found.description +
                      "; " + part("train", named.splits.train) + ", " +
                      part("valid", named.splits.valid) + ", " + part("test", named.splits.test);
  return named;
}

namespace {

DigitImages make_named(const std::string& name, const GeneratedDigits& options) {
  if (name != "generated_digits")
    throw ConfigError("data.make_files", "name", "is not a generated data set", "generated_digits",
                      name);
  return generate_digits(options);
}

}  // namespace

std::vector<std::filesystem::path> make_png_files(const std::string& name,
                                                  const std::filesystem::path& folder,
                                                  const GeneratedDigits& options) {
  const DigitImages digits = make_named(name, options);
  std::vector<std::filesystem::path> paths;
  for (int64_t i = 0; i < digits.images.size(0); ++i) {
    const auto of_label = folder / std::to_string(digits.labels[i].item<int64_t>());
    io::make_directories(of_label);
    paths.push_back(of_label / (std::to_string(i) + ".png"));
    write_png(paths.back(), digits.images[i]);
  }
  return paths;
}

std::vector<std::filesystem::path> make_files(const std::string& name,
                                              const std::filesystem::path& folder,
                                              const GeneratedDigits& options) {
  const DigitImages digits = make_named(name, options);
  io::make_directories(folder);
  std::vector<std::filesystem::path> paths{folder / "images-idx3-ubyte.gz",
                                           folder / "labels-idx1-ubyte.gz"};
  write_idx(paths[0], digits.images.squeeze(1));
  write_idx(paths[1], digits.labels.to(at::kByte));
  return paths;
}

}  // namespace tare::datasets
