// Reads pictures, numbers and texts into samples for a bundle.
#include "tare/cli/predict_inputs.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <span>
#include <sstream>
#include <string_view>
#include <vector>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/checkpoint/safetensors.h"
#include "tare/cli/predict_arrays.h"
#include "tare/data/class_folders.h"
#include "tare/data/picture_kind.h"
#include "tare/inference/rows.h"
#include "tare/transform/image.h"
#include "tare/transform/picture.h"
#include "tare/transform/row_coding.h"
#include "tare/transform/table_text.h"
#include "tare/transform/unknown_texts.h"

namespace tare::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStandardInput = "/dev/stdin";
constexpr size_t kMostNames = 20;  // of columns in a message
constexpr const char* kInput = "input";
constexpr int64_t kMaxRowsBytes = int64_t{1} << 30;

constexpr std::array<std::string_view, 1> kTextExtensions{".txt"};
constexpr std::array<std::string_view, 1> kTensorExtensions{".safetensors"};
constexpr std::array<std::string_view, 1> kArrayExtensions{".npy"};
constexpr FileKind kPictures = picture_files("predict");
constexpr FileKind kTexts{"predict", kTextExtensions, "text", "texts"};
constexpr FileKind kTensors{"predict", kTensorExtensions, "safetensors", "samples"};
constexpr FileKind kArrays{"predict", kArrayExtensions, "npy", "samples"};

/// Whether a second picture follows the first. Only a thumbnail inside a JPEG begins without the
/// end of another one in front of it.
bool holds_several(std::string_view bytes, std::string_view format) {
  if (format == "WebP") {
    constexpr size_t kSizeAt = 4, kBehindSize = 8;
    size_t size = kBehindSize;
    for (size_t i = 0; i < 4; ++i)
      size += static_cast<size_t>(static_cast<unsigned char>(bytes[kSizeAt + i])) << (8 * i);
    return bytes.size() > size + size % 2;
  }
  const std::string_view next = format == "PNG" ? "\x89PNG\r\n\x1a\n" : "\xff\xd9\xff\xd8\xff";
  return bytes.find(next, 1) != std::string_view::npos;
}

/// Returns the names under which a file of tensors has the model's first input: its own, and
/// `input`, the short form, unless another input is called so.
std::vector<std::string> first_names(const BundleManifest& manifest) {
  const std::string& own = manifest.input_name;
  if (own.empty() || own == kInput) return {kInput};
  const auto& more = manifest.more_inputs;
  if (std::ranges::find(more, kInput, &BundleInput::name) != more.end()) return {own};
  return {own, kInput};
}

/// Returns the inputs of a file of tensors, in the order of the model's.
Batch tensors_in(const fs::path& path, const BundleManifest& manifest) {
  const auto file = checkpoint::SafeTensors::open(path);
  const std::vector<std::string> first = first_names(manifest);
  std::string allowed = first.front() + (first.size() > 1 ? " (or input)" : "");
  for (const BundleInput& input : manifest.more_inputs) allowed += ", " + input.name;
  const auto refuse = [&](const std::string& name, const std::string& problem) {
    throw FormatError("predict", path.string(), printable(name),
                      problem + "; the model's inputs are: " + printable(allowed, 2000));
  };
  NamedTensors all, named;
  for (const auto& [name, tensor] : file.all()) all.push_back({name, tensor});
  const auto take = [&](const std::vector<std::string>& names) {
    const auto found = std::ranges::find_first_of(all, names, {}, &NamedTensor::name);
    if (found == all.end()) refuse(names.front(), "is missing");
    named.push_back(*found);
    all.erase(found);
  };
  take(first);
  for (const BundleInput& input : manifest.more_inputs) take({input.name});
  if (!all.empty()) refuse(all.front().name, "is not an input of the model");
  for (const auto& [name, tensor] : named)
    if (tensor.dim() < 1 || tensor.size(0) != named.front().tensor.size(0))
      throw FormatError("predict", path.string(), printable(name),
                        "must be [samples, ...], with as many samples as every other input");
  return Batch(std::move(named), {});
}

class Samples {
 public:
  explicit Samples(const PredictInputs& inputs) : inputs_(inputs) {}

  void read(const std::string& input) const {
    const bool pictures = inputs_.predictor.sample_kind() == SampleKind::image && !inputs_.text;
    guarded({input}, [&] {
      if (input != "-" && is_named(input, kTensors))
        tensors(input);
      else if (!fits_one_tensor())
        refuse_several();
      else if (input != "-" && is_named(input, kArrays))
        array(input);
      else if (input == "-")
        pictures ? piped_pictures() : is_table() ? table("-") : rows_of(std::cin, "-");
      else if (pictures)
        fs::is_directory(input) ? folder(input) : picture(input);
      else
        rows(input);
    });
  }

 private:
  template <class Action>
  void guarded(const SamplePlace& place, Action action) const {
    try {
      action();
    } catch (...) {
      inputs_.on_failure(place);
    }
  }

  [[nodiscard]] const BundleManifest& manifest() const { return inputs_.predictor.manifest(); }

  /// Whether there is a second input of this name, as the collate function `pad` adds it to
  /// sequences.
  [[nodiscard]] bool is_padded(const char* name) const {
    const auto& more = manifest().more_inputs;
    const bool varies =
        inputs_.predictor.sample_kind() == SampleKind::tokens || any_size(manifest()).size() == 1;
    return more.size() == 1 && varies && more.front().name == name;
  }
  /// Whether the second input is the length of the first, as the data set's collate adds it.
  [[nodiscard]] bool takes_lengths() const {
    if (!is_padded("lengths")) return false;
    const BundleInput& second = manifest().more_inputs.front();
    return second.dtype == "int64" && second.sample_shape.empty();
  }
  /// Whether the second input says which elements of the first there are, likewise.
  [[nodiscard]] bool takes_mask() const {
    if (!is_padded("mask")) return false;
    const BundleInput& second = manifest().more_inputs.front();
    return second.dtype == "bool" && second.sample_shape.size() == 1;
  }
  [[nodiscard]] int64_t length_of(const at::Tensor& sample) const {
    const auto open = any_size(manifest());
    return sample.size(open.empty() ? -1 : 1 + open.front());
  }
  [[nodiscard]] bool fits_one_tensor() const {
    return manifest().more_inputs.empty() || takes_lengths() || takes_mask();
  }
  [[noreturn]] void refuse_several() const {
    throw ConfigError("predict", "the model takes " +
                                     std::to_string(1 + manifest().more_inputs.size()) +
                                     " inputs: give a safetensors file with a tensor [samples, "
                                     "...] for each, which `tare inspect` lists");
  }

  void predict(const SamplePlace& place, const at::Tensor& sample) const {
    Batch batch(sample);
    if (takes_lengths())
      batch.inputs.push_back(
          {manifest().more_inputs.front().name, at::full({1}, length_of(sample), at::kLong)});
    if (takes_mask())
      batch.inputs.push_back(
          {manifest().more_inputs.front().name, at::ones({1, length_of(sample)}, at::kBool)});
    inputs_.on_prediction(place, inputs_.predictor.predict(batch));
  }

  void tensors(const fs::path& path) const {
    const Batch all = tensors_in(path, manifest());
    for (int64_t i = 0; i < all.size(); ++i)
      guarded({path.string(), i + 1}, [&] {
        Batch one;
        for (const auto& [name, tensor] : all.inputs)
          one.inputs.push_back({name, tensor.narrow(0, i, 1)});
        check_lengths(path, one);
        inputs_.on_prediction({path.string(), i + 1}, inputs_.predictor.predict(one));
      });
  }

  void array(const std::string& path) const {
    if (inputs_.text)
      throw ConfigError("predict", "--text is for lines of text, and '" + printable(path) +
                                       "' is an array: omit it");
    const ArraySamples all = read_array(path, manifest());
    if (all.samples.numel() == 0) refuse_empty(path);
    for (int64_t i = 0; i < all.samples.size(0); ++i) {
      const SamplePlace place{path, all.is_one ? 0 : i + 1};
      guarded(place, [&] {
        const at::Tensor sample = all.samples.narrow(0, i, 1);
        check_finite(sample, path, i + 1);
        if (all.pictures)
          inputs_.on_prediction(place, {inputs_.predictor.predict_picture(sample[0])});
        else
          predict(place, sample);
      });
    }
  }

  /// Throws FormatError for a length that is not one of the tokens of its sample.
  void check_lengths(const fs::path& path, const Batch& one) const {
    if (!takes_lengths()) return;
    const at::Tensor &tokens = one.inputs[0].tensor, &lengths = one.inputs[1].tensor;
    if (tokens.dim() != 2 || lengths.dim() != 1 || lengths.scalar_type() != c10::kLong) return;
    const int64_t length = lengths.item<int64_t>();
    if (length >= 1 && length <= tokens.size(1)) return;
    throw FormatError("predict", path.string(), "lengths",
                      "is " + std::to_string(length) + ", and a sample has " +
                          std::to_string(tokens.size(1)) + " tokens: give from 1 to " +
                          std::to_string(tokens.size(1)));
  }

  void picture(const std::string& path) const {
    const int64_t channels = inputs_.predictor.sample_shape()[0];
    inputs_.on_prediction({path}, {inputs_.predictor.predict_picture(read_image(path, channels))});
  }

  void folder(const fs::path& path) const {
    for (const auto& file : list_files_below(path, kPictures))
      guarded({file.string()}, [&] { picture(file.string()); });
  }

  // A file is one sample, as in a data set of text files.
  void folder_of_texts(const fs::path& path) const {
    for (const auto& file : list_files_below(path, kTexts))
      guarded({file.string()}, [&] {
        const std::string text = io::read_text(file, kMaxRowsBytes);
        predict({file.string()}, parse_text(text, manifest(), {file.string()}));
      });
  }

  // Standard input is one picture, or a list of paths: one a line, or with a zero byte behind each.
  void piped_pictures() const {
    const std::string text = io::read_text(kStandardInput, kMaxImageFileBytes);
    const std::string_view format = format_of(std::as_bytes(std::span(text)));
    if (!format.empty()) {
      if (holds_several(text, format))
        throw ConfigError("predict", "standard input holds more than one " + std::string(format) +
                                         ": give a list of paths");
      const int64_t channels = inputs_.predictor.sample_shape()[0];
      const at::Tensor pixels = decode_image(std::as_bytes(std::span(text)), "-", channels);
      inputs_.on_prediction({"-"}, {inputs_.predictor.predict_picture(pixels)});
      return;
    }
    const std::vector<std::string> paths = paths_in(text);
    if (paths.empty()) refuse_empty("-");
    for (const auto& path : paths)
      guarded({path}, [&] { fs::is_directory(path) ? folder(path) : picture(path); });
  }

  static std::vector<std::string> paths_in(const std::string& text) {
    const char separator = text.find('\0') == std::string::npos ? '\n' : '\0';
    std::vector<std::string> paths;
    std::istringstream list(text);
    for (std::string path; std::getline(list, path, separator);) {
      if (separator == '\n' && path.ends_with('\r')) path.pop_back();
      if (!path.empty()) paths.push_back(path);
    }
    return paths;
  }

  [[noreturn]] static void refuse_empty(const std::string& path) {
    throw ConfigError("predict", (path == "-" ? "standard input" : "'" + printable(path) + "'") +
                                     " holds no sample");
  }

  void rows(const std::string& path) const {
    if (fs::is_directory(path) && inputs_.predictor.sample_kind() == SampleKind::tokens)
      return folder_of_texts(path);
    if (fs::is_directory(path))
      throw ConfigError("predict", "'" + printable(path) +
                                       "' is a folder, but the model takes no pictures: give a "
                                       "file with one sample a line");
    if (is_table()) return table(path);
    std::istringstream lines(io::read_text(path, kMaxRowsBytes));
    rows_of(lines, path);
  }

  [[nodiscard]] bool is_table() const { return manifest().rows && !inputs_.text; }

  void table(const std::string& path) const {
    const RowCoding& coding = *manifest().rows;
    TableFindings findings;
    const TableText all = read_table(path, coding.format(), &findings);
    for (const TableFinding& finding : findings.list)
      guarded({path, finding.line}, [&] {
        throw FormatError("predict", path, "line " + std::to_string(finding.line), finding.problem);
      });
    const RowEncoder rows(coding, all);
    if (!rows.unused().empty())
      log::warning_once(printable(path) + ": the model does not take " +
                        listed(rows.unused(), kMostNames) + ", which it ignores");
    for (const UnknownTexts& unknown : unknown_texts(coding, all))
      log::warning(printable(path) + ": the column '" + printable(unknown.column) + "' has " +
                   format_count(unknown.fields) + (unknown.fields == 1 ? " field" : " fields") +
                   " with a text that the training did not have, such as '" +
                   printable(unknown.first, 50) + "': the model takes each as unknown");
    for (int64_t row = 0; row < all.rows(); ++row)
      guarded({path, all.line(row)}, [&] { predict({path, all.line(row)}, rows.sample(row)); });
  }

  void rows_of(std::istream& lines, const std::string& path) const {
    LinePlace place{path, 1};
    bool any = false;
    for (std::string line; std::getline(lines, line); ++place.number) {
      if (line.ends_with('\r')) line.pop_back();
      if (line.empty()) continue;
      const bool names_columns = place.number == 1 && !inputs_.text && is_header(line) &&
                                 inputs_.predictor.sample_kind() != SampleKind::tokens;
      if (!names_columns) guarded({place.path, place.number}, [&] { row(line, place); });
      any |= !names_columns;
    }
    if (!any) refuse_empty(path);
  }

  void row(const std::string& line, const LinePlace& place) const {
    predict({place.path, place.number}, inputs_.text ? parse_text(line, manifest(), place)
                                                     : parse_numbers(line, manifest(), place));
  }

  const PredictInputs& inputs_;
};

}  // namespace

void predict_input(const PredictInputs& inputs, const std::string& input) {
  Samples(inputs).read(input);
}

}  // namespace tare::cli
