// Parses samples from lines of text.
#include "tare/inference/rows.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>
#include <vector>

#include "tare/base/error.h"
#include "tare/model/vocabulary.h"

namespace tare {
namespace {

[[noreturn]] void refuse(const LinePlace& place, const std::string& problem) {
  throw FormatError("predict", place.path, "line " + std::to_string(place.number), problem);
}

std::vector<std::string_view> fields_of(std::string_view line) {
  constexpr std::string_view kSeparators = ",; \t\r";
  std::vector<std::string_view> fields;
  for (size_t begin = line.find_first_not_of(kSeparators); begin != std::string_view::npos;) {
    const size_t end = line.find_first_of(kSeparators, begin);
    fields.push_back(line.substr(begin, end - begin));
    begin = end == std::string_view::npos ? end : line.find_first_not_of(kSeparators, end);
  }
  return fields;
}

template <class T>
bool parse(std::string_view text, T& value) {
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  return error == std::errc() && end == last;
}

template <class T>
at::Tensor row_of(std::string_view line, at::ScalarType dtype, const LinePlace& place) {
  const auto fields = fields_of(line);
  if (fields.empty()) refuse(place, "is empty");
  at::Tensor row = at::empty({static_cast<int64_t>(fields.size())}, dtype);
  T* out = row.mutable_data_ptr<T>();
  for (const auto field : fields) {
    if (!parse(field, *out++))
      refuse(place, "has '" + printable(field, 40) + "' where a " +
                        (dtype == at::kLong ? "whole number is needed; --text reads a text"
                                            : "number is needed"));
    if constexpr (std::is_floating_point_v<T>)
      if (!std::isfinite(static_cast<float>(out[-1])))
        refuse(place, "has '" + printable(field, 40) + "', which is no finite float32 number");
  }
  return row;
}

int64_t product(c10::IntArrayRef sizes) {
  int64_t all = 1;
  for (const int64_t size : sizes) all *= size;
  return all;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

// The row as a batch of one sample. What the row has makes the one size that may be any.
at::Tensor shaped(const at::Tensor& row, const BundleManifest& manifest, const char* values,
                  const LinePlace& place) {
  std::vector<int64_t> shape = manifest.sample_shape;
  if (shape.empty()) shape = {row.numel()};
  const std::vector<int64_t> open = any_size(manifest);
  if (open.size() > 1)
    refuse(place, "cannot say which shape it has, because " + std::to_string(open.size()) +
                      " sizes of a sample may vary; give a safetensors file");
  if (!open.empty()) {
    int64_t& any = shape[static_cast<size_t>(open.front())];
    any = 1;
    const int64_t others = product(shape);
    if (row.numel() % others != 0)
      refuse(place, "has " + std::to_string(row.numel()) + " " + values +
                        ", which is no multiple of " + std::to_string(others));
    any = row.numel() / others;
  } else if (product(shape) != row.numel()) {
    refuse(place, "has " + std::to_string(row.numel()) + " numbers, the model takes " +
                      std::to_string(product(shape)) +
                      (shape.size() > 1 ? " (" + shape_text(shape) + ")" : ""));
  }
  shape.insert(shape.begin(), 1);
  return row.view(shape);
}

bool has_tokens(const BundleManifest& manifest) {
  return manifest.input == "int64" || manifest.input == "int32";
}

}  // namespace

at::Tensor parse_numbers(std::string_view line, const BundleManifest& manifest,
                         const LinePlace& place) {
  const c10::ScalarType dtype = bundle_dtype(manifest.input);
  if (has_tokens(manifest))
    return shaped(row_of<int64_t>(line, at::kLong, place), manifest, "tokens", place).to(dtype);
  const at::Tensor row = row_of<double>(line, at::kDouble, place);
  if (dtype == at::kByte) {
    const double* value = row.const_data_ptr<double>();
    const auto is_byte = [](double v) { return v >= 0 && v <= 255 && v == std::floor(v); };
    if (!std::all_of(value, value + row.numel(), is_byte))
      refuse(place, "has a number that is no whole one from 0 to 255");
  }
  return shaped(row, manifest, "numbers", place).to(dtype);
}

void check_takes_text(const BundleManifest& manifest) {
  if (manifest.rows) {
    constexpr size_t kMostNames = 20;
    std::vector<std::string> names;
    for (const ColumnCoding& column : manifest.rows->columns) names.push_back(column.name);
    throw ConfigError("predict",
                      "the model takes no lines of text, but rows of a table with the columns " +
                          listed(names, kMostNames) +
                          ": omit --text, and give a CSV file or JSON lines");
  }
  if (!has_tokens(manifest) || manifest.sample_shape.size() > 1)
    throw ConfigError("predict", "the model takes no text: its input is " + manifest.input +
                                     (manifest.sample_shape.empty()
                                          ? std::string()
                                          : " of " + shape_text(manifest.sample_shape)) +
                                     "; omit --text");
}

at::Tensor parse_text(std::string_view line, const BundleManifest& manifest,
                      const LinePlace& place) {
  check_takes_text(manifest);
  const bool sorts_texts = !manifest.model.name.empty() && !takes_tokens(manifest.model);
  std::vector<int64_t> tokens = tokens_of(
      line, sorts_texts ? std::vector<std::string>() : manifest.labels,
      [&](std::string_view character) {
        refuse(place, "has '" + printable(character) + "', which is not a label of the bundle");
      });
  if (tokens.empty()) refuse(place, "is empty");
  const auto longest = static_cast<size_t>(manifest.text_length);
  if (longest > 0 && tokens.size() > longest) tokens.resize(longest);
  at::Tensor row = at::empty({1, static_cast<int64_t>(tokens.size())}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), row.mutable_data_ptr<int64_t>());
  return row.to(bundle_dtype(manifest.input));
}

bool is_header(std::string_view line) {
  const auto fields = fields_of(line);
  return !fields.empty() && std::ranges::none_of(fields, [](std::string_view field) {
    double value = 0;
    return parse(field, value);
  });
}

}  // namespace tare
