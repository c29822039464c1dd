#include "tare/data/datasets.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/data/idx.h"
#include "tare/data/png_folder.h"
#include "tare/transform/random.h"

namespace tare::datasets {
namespace {

// What a maker finds; a test part of its own is apart from the parts that are cut from `data`.
struct Found {
  std::string description{};
  DatasetPtr data{}, test{};
};

struct Maker {
  Info info;
  std::vector<std::string> fields;  // of DataOptions, beyond those that all take
  std::function<Found(const DataOptions&)> make;
};

GeneratedDigits generator(const DataOptions& o) {
  return {.count = o.count > 0 ? o.count : GeneratedDigits{}.count,
          .size = o.size > 0 ? o.size : GeneratedDigits{}.size,
          .style = o.style.empty() ? GeneratedDigits{}.style : o.style,
          .seed = o.seed};
}

Found drawn(const DataOptions& o) {
  const GeneratedDigits g = generator(o);
  return {format_count(g.count) + " generated digits, " + g.style + " style, " +
              std::to_string(g.size) + " pixels, seed " + std::to_string(g.seed),
          generated_digits(g), nullptr};
}

Found digits(const DataOptions& o) {
  FindDigitsOptions find{.download = o.download, .seed = o.seed};
  if (o.count > 0) find.count = o.count;
  DigitsSource source = find_digits(find);
  return {std::move(source.description), std::move(source.data), nullptr};
}

Found mnist10k(const DataOptions& o) {
  DigitsSource source = find_digits({.download = o.download, .count = 10});
  if (!source.real)
    throw IoError("data.make", "mnist10k",
                  "not found: run `tare data fetch mnist10k`, or set TARE_DATA_DIR to the folder "
                  "of its files");
  return {std::move(source.description), std::move(source.data), nullptr};
}

Found mnist(const DataOptions& o) {
  const auto folder = o.download ? fetch("mnist") : cache_folder() / "mnist";
  return {"MNIST in " + folder.string(),
          idx_dataset(folder / "train-images-idx3-ubyte.gz", folder / "train-labels-idx1-ubyte.gz"),
          idx_dataset(folder / "t10k-images-idx3-ubyte.gz", folder / "t10k-labels-idx1-ubyte.gz")};
}

Found idx(const DataOptions& o) {
  if (o.images.empty() || o.labels.empty())
    throw ConfigError("data.make", "images", "and labels are needed by the data set idx",
                      "two IDX files", o.images);
  const DatasetPtr data = idx_dataset(o.images, o.labels);
  return {format_count(data->size()) + " images of " + printable(o.images), data, nullptr};
}

Found folder(const DataOptions& o) {
  if (o.folder.empty())
    throw ConfigError("data.make", "folder", "is needed by the data set png_folder",
                      "a folder of PNG images, one subfolder a class", "");
  const DatasetPtr data =
      png_folder(o.folder, {.channels = o.channels, .height = o.size, .width = o.size});
  return {format_count(data->size()) + " images of " + printable(o.folder), data, nullptr};
}

const std::vector<Maker>& makers() {
  static const std::vector<Maker> all{
      {{"digits", "handwritten digits: MNIST's test set, found or downloaded, else generated ones"},
       {"download"},
       digits},
      {{"generated_digits", "digits drawn from strokes, in a printed or a written style, any size"},
       {"style"},
       drawn},
      {{"idx", "images and labels from two IDX files, plain or gzip"}, {"images", "labels"}, idx},
      {{"mnist", "MNIST: 60,000 images for train and valid, its 10,000 test images for test"},
       {"download"},
       mnist},
      {{"mnist10k", "MNIST's 10,000 test images as a small data set of their own"},
       {"download"},
       mnist10k},
      {{"png_folder",
        "a folder of PNG images, one subfolder a class; without subfolders: no labels"},
       {"folder", "channels"},
       folder},
  };
  return all;
}

const Maker& maker(const std::string& name) {
  const auto found = std::ranges::find(makers(), name, [](const Maker& m) { return m.info.name; });
  if (found != makers().end()) return *found;
  const std::string near = nearest(name, names());
  throw ConfigError("data.make", "name",
                    "is no data set" + (near.empty() ? "" : ", did you mean " + near + "?"),
                    "one of `tare ls datasets`", name);
}

// A field that belongs to another data set would be ignored without a word.
void check_fields(const Maker& maker, const DataOptions& given) {
  const DataOptions defaults;
  const auto check = [&](const char* field, bool unchanged) {
    if (unchanged || std::ranges::find(maker.fields, field) != maker.fields.end()) return;
    throw ConfigError("data.make", field, "is not taken by the data set " + maker.info.name,
                      "leave it out", "a value");
  };
  check("style", given.style == defaults.style);
  check("images", given.images == defaults.images);
  check("labels", given.labels == defaults.labels);
  check("folder", given.folder == defaults.folder);
  check("channels", given.channels == defaults.channels);
  check("download", given.download == defaults.download || maker.info.name == "generated_digits");
}

DatasetPtr first(const DatasetPtr& data, int64_t count) {
  if (count == 0 || count >= data->size()) return data;
  std::vector<int64_t> indices(static_cast<size_t>(count));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  return subset(data, std::move(indices));
}

// Transforms of the options, behind a change of size where the images have another one.
DatasetPtr finished(const DatasetPtr& data, const DataOptions& o) {
  const std::vector<int64_t> shape = data->sample_shape();
  std::vector<Transform> steps;
  if (o.size > 0 && (shape.at(1) != o.size || shape.at(2) != o.size))
    steps.emplace_back(Resize{o.size, o.size});
  steps.insert(steps.end(), o.transforms.steps().begin(), o.transforms.steps().end());
  return transformed(data, Transforms(std::move(steps)));
}

std::string part(const char* name, const DatasetPtr& data) {
  return std::string(name) + " " + (data ? format_count(data->size()) : "none");
}

}  // namespace

const std::vector<Info>& list() {
  static const std::vector<Info> infos = [] {
    std::vector<Info> result;
    for (const Maker& m : makers()) result.push_back(m.info);
    return result;
  }();
  return infos;
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const Maker& m : makers()) result.push_back(m.info.name);
  return result;
}

void check(const DataOptions& options) {
  config::validate(options, "data.make");
  check_fields(maker(options.name), options);
}

Named make(const DataOptions& options) {
  check(options);
  Found found = maker(options.name).make(options);
  Named named;
  const DatasetPtr data = first(finished(found.data, options), options.count);
  named.splits = split(data, {options.train, options.valid, options.test},
                       static_cast<uint64_t>(options.seed));
  if (found.test && !named.splits.test) {
    const DatasetPtr test = finished(found.test, options);
    std::vector<int64_t> all(static_cast<size_t>(test->size()));
    std::iota(all.begin(), all.end(), int64_t{0});
    named.splits.test = subset(test, std::move(all), false);
  }
  named.description = found.description + "; " + part("train", named.splits.train) + ", " +
                      part("valid", named.splits.valid);
  if (named.splits.test) {
    named.description += ", " + part("test", named.splits.test);
  } else if (named.splits.valid) {
    named.splits.test = named.splits.valid;
    named.description += ", test = valid (there is no test part of its own)";
  }
  return named;
}

std::vector<std::filesystem::path> make_files(const std::string& name,
                                              const std::filesystem::path& folder,
                                              const GeneratedDigits& options) {
  if (name != "generated_digits")
    throw ConfigError("data.make_files", "name", "is not a generated data set", "generated_digits",
                      name);
  const DigitImages digits = generate_digits(options);
  io::make_directories(folder);
  std::vector<std::filesystem::path> paths{folder / "images-idx3-ubyte.gz",
                                           folder / "labels-idx1-ubyte.gz"};
  write_idx(paths[0], digits.images.squeeze(1));
  write_idx(paths[1], digits.labels.to(at::kByte));
  return paths;
}

}  // namespace tare::datasets
