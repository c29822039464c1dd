// Reads the samples of TFRecord files.
#include "tare/data/tfrecord_samples.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/data/datasets.h"
#include "tare/data/number_names.h"
#include "tare/data/tensor_dataset.h"
#include "tare/data/tfrecord.h"
#include "tare/transform/image.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTfRecord = "data.tfrecord";
constexpr int64_t kMostClasses = 65536;

[[noreturn]] void refuse(const std::string& name, const std::string& problem) {
  throw ConfigError(kTfRecord, "feature '" + printable(name) + "'", problem, {}, {});
}

std::string text_of(at::IntArrayRef shape) { return c10::str(shape); }

int64_t elements(at::IntArrayRef shape) { return c10::multiply_integers(shape); }

bool is_png(std::string_view bytes) { return bytes.starts_with("\x89PNG\r\n"); }

/// Records whether any sample was a picture, and whether any was resized; set by several threads.
struct Seen {
  std::atomic<bool> picture = false, resized = false;
};

at::Tensor picture(const std::string& bytes, const TfSampleOptions& options, Seen& seen) {
  seen.picture = true;
  at::Tensor image = decode_png(std::as_bytes(std::span(bytes)), options.input, options.channels);
  if (!options.shape.empty() && image.sizes() != at::IntArrayRef(options.shape))
    refuse(options.input, "is a picture of the shape " + text_of(image.sizes()) +
                              ", and `shape` says " + text_of(options.shape) +
                              "; omit `shape`, and give `size` to resize");
  if (options.size == 0 || (image.size(1) == options.size && image.size(2) == options.size))
    return image;
  seen.resized = true;
  return resize_image(image, options.size, options.size, true, options.fit);
}

at::Tensor raw(const std::string& bytes, const TfSampleOptions& options) {
  const auto count = static_cast<int64_t>(bytes.size());
  if (options.shape.empty())
    refuse(options.input, "is no PNG file; uint8 values need `shape`, and their number is " +
                              std::to_string(count));
  if (options.shape.size() != 3)
    refuse(options.input,
           "is a text of uint8 values, which are pictures: `shape` must be "
           "[channels, height, width], got " +
               text_of(options.shape));
  if (elements(options.shape) != count)
    refuse(options.input, "has " + std::to_string(count) + " bytes, and the shape " +
                              text_of(options.shape) + " needs " +
                              std::to_string(elements(options.shape)));
  at::Tensor values = at::empty(options.shape, at::kByte);
  std::memcpy(values.mutable_data_ptr(), bytes.data(), bytes.size());
  return values;
}

at::Tensor numbers(const TfExample& example, const TfFeature& feature,
                   const TfSampleOptions& options) {
  const auto count = static_cast<int64_t>(std::max(feature.floats.size(), feature.ints.size()));
  if (count == 0) refuse(options.input, "is empty");
  const auto shape = options.shape.empty() ? std::vector<int64_t>{count} : options.shape;
  if (elements(shape) != count)
    refuse(options.input, "has " + std::to_string(count) + " numbers, and the shape " +
                              text_of(shape) + " needs " + std::to_string(elements(shape)));
  return example.tensor(options.input, shape);
}

at::Tensor input_of(const TfExample& example, const TfSampleOptions& options, Seen& seen) {
  const TfFeature& feature = example.feature(options.input);
  if (feature.bytes.empty()) return numbers(example, feature, options);
  const std::string& bytes = example.bytes(options.input);
  return is_png(bytes) ? picture(bytes, options, seen) : raw(bytes, options);
}

at::Tensor label_of(const TfExample& example, const std::string& name) {
  const TfFeature& feature = example.feature(name);
  // The label has the shape of an output for one value, so that the losses take it.
  if (feature.floats.size() == 1)
    return at::scalar_tensor(feature.floats.front(), at::kFloat).view({1});
  if (!feature.bytes.empty())
    refuse(name, "is a text; a label is an integer, the number of its class, or a float");
  const int64_t label = example.integer(name);
  if (label < 0 || label >= kMostClasses)
    refuse(name, "must be a class from 0 to " + std::to_string(kMostClasses - 1) + ", got " +
                     std::to_string(label));
  return at::scalar_tensor(label, at::kLong);
}

/// Returns the numbers of the classes of all parts.
std::vector<std::string> names_of(const std::vector<Batch>& parts) {
  int64_t highest = -1;
  for (const Batch& part : parts) {
    const at::Tensor& target = part.target();
    if (!target.defined() || target.scalar_type() != at::kLong) continue;
    highest = std::max(highest, highest_class(target));
  }
  return number_names(highest);
}

/// Reads the samples in the files.
Batch read(const std::vector<fs::path>& files, const TfSampleOptions& options, Seen& seen) {
  const auto sample = [&](const TfExample& example) {
    at::Tensor input = input_of(example, options, seen);  // first: its mistakes are named first
    return Batch(std::move(input), label_of(example, options.label));
  };
  return read_tfrecords(files, sample, {.parallel_reads = options.parallel_reads});
}

std::string kind_of(const Batch& part) {
  return "samples of shape " + text_of(part.input().sizes().slice(1)) + " with " +
         (part.target().is_floating_point() ? "a float" : "a class") + " as label";
}

/// Checks that the samples of all `parts` (files, valid_files and test_files) are of one kind.
void check_alike(const std::vector<Batch>& parts) {
  const std::string wanted = kind_of(parts.front());
  for (size_t i = 1; i < parts.size(); ++i)
    if (parts[i].input().defined() && kind_of(parts[i]) != wanted)
      throw ConfigError(kTfRecord, i == 1 ? "valid_files" : "test_files",
                        "must have samples like those of `files`", wanted, kind_of(parts[i]));
}

}  // namespace

std::vector<fs::path> tfrecord_files(const std::vector<std::string>& paths,
                                     const std::string& field) {
  std::vector<fs::path> files;
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string& path = paths[i];
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.emplace_back(path);
      continue;
    }
    const size_t before = files.size();
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
      if (it->path().filename().native().find(".tfrec") != std::string::npos)
        files.push_back(it->path());
    if (error) throw IoError(kTfRecord, path, error.value());
    if (files.size() == before)
      throw ConfigError(kTfRecord, field + '.' + std::to_string(i),
                        "is a folder without a file that has .tfrec in its name",
                        "TFRecord files, or folders of them", path);
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
  }
  return files;
}

std::vector<DatasetPtr> tfrecord_samples(const std::vector<std::vector<fs::path>>& parts,
                                         const TfSampleOptions& options) {
  Seen seen;
  std::vector<Batch> read_parts;
  for (const auto& files : parts)
    read_parts.push_back(files.empty() ? Batch{} : read(files, options, seen));
  if (options.channels != 0 && !seen.picture)
    throw ConfigError(
        kTfRecord, "channels",
        "is for PNG pictures, and the feature '" + printable(options.input) + "' has none",
        "omit it", std::to_string(options.channels));
  check_alike(read_parts);
  const auto names = names_of(read_parts);
  Transforms read_with;
  if (seen.resized)
    read_with = Transforms{
        Resize{.height = options.size, .width = options.size, .round = true, .fit = options.fit}};
  std::vector<DatasetPtr> sets;
  for (const Batch& part : read_parts)
    sets.push_back(part.input().defined() ? std::make_shared<TensorDataset>(
                                                part.inputs, part.targets, names, read_with)
                                          : nullptr);
  return sets;
}

}  // namespace tare

namespace tare::datasets {
namespace {

TfSampleOptions samples_of(const DataOptions& o) {
  return {.input = o.input,
          .label = o.label,
          .shape = o.shape,
          .channels = o.channels,
          .size = o.size,
          .fit = o.fit,
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
    parts.push_back(tfrecord_files(*given, field));
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

}  // namespace

void add_tfrecord_samples(Registry& all) {
  all.add("tfrecord",
          "reads pictures or numbers from TFRecord files of tf.train.Example, plain or gzip", [] {
            return Kind{{"files", "valid_files", "test_files", "input", "label", "shape",
                         "channels", "num_parallel_reads"},
                        tfrecord};
          });
}

}  // namespace tare::datasets
