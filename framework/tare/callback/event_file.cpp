// Encodes events, and counts histograms.
#include "tare/callback/event_file.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "tare/base/error.h"
#include "tare/data/protobuf.h"
#include "tare/data/tfrecord.h"
#include "tare/metric/check.h"
#include "tare/transform/image.h"

namespace tare {
namespace {

// Numbers of fields. Event:
constexpr uint64_t kTime = 1, kStep = 2, kVersion = 3, kSummary = 5;
// Summary, and Value in it:
constexpr uint64_t kValue = 1, kTag = 1, kScalar = 2, kImage = 4, kHistogram = 5, kTensor = 8,
                   kMetadata = 9;
// HistogramProto:
constexpr uint64_t kMin = 1, kMax = 2, kNum = 3, kSum = 4, kSquares = 5, kLimits = 6, kCounts = 7;
// Image:
constexpr uint64_t kHeight = 1, kWidth = 2, kChannels = 3, kEncoded = 4;
// TensorProto, TensorShapeProto, Dim; SummaryMetadata, PluginData:
constexpr uint64_t kType = 1, kShape = 2, kDim = 1, kSize = 1, kStrings = 8, kPlugin = 1, kName = 1;
constexpr int64_t kString = 7;  // DT_STRING

std::string summary_record(double time, int64_t step, const ProtobufWriter& summary) {
  ProtobufWriter event;
  event.real(kTime, time).integer(kStep, step).bytes(kSummary, summary.text());
  return framed_record(event.text());
}

/// Returns the elements in some order. A tensor without gaps and of float32 on the host is not
/// copied.
at::Tensor elements_of(const at::Tensor& values) {
  const at::Tensor on_host = values.detach().to(c10::kCPU, c10::kFloat);
  return on_host.is_non_overlapping_and_dense() ? on_host : on_host.contiguous();
}

}  // namespace

std::string event_head(double time) {
  ProtobufWriter event;
  event.real(kTime, time).bytes(kVersion, "brain.Event:2");
  return framed_record(event.text());
}

std::string event_record(double time, int64_t step, const std::vector<EventScalar>& scalars) {
  ProtobufWriter summary;
  for (const EventScalar& scalar : scalars) {
    ProtobufWriter value;
    value.bytes(kTag, scalar.tag).real(kScalar, static_cast<float>(scalar.value));
    summary.bytes(kValue, value.text());
  }
  return summary_record(time, step, summary);
}

std::string event_record(double time, int64_t step, const std::string& tag,
                         const EventHistogram& histogram) {
  double count = 0;
  for (const double one : histogram.counts) count += one;
  ProtobufWriter counted, value, summary;
  counted.real(kMin, histogram.min).real(kMax, histogram.max).real(kNum, count);
  counted.real(kSum, histogram.sum).real(kSquares, histogram.squares);
  counted.reals(kLimits, histogram.limits).reals(kCounts, histogram.counts);
  value.bytes(kTag, tag).bytes(kHistogram, counted.text());
  summary.bytes(kValue, value.text());
  return summary_record(time, step, summary);
}

std::string event_record(double time, int64_t step, const std::string& tag,
                         const EventImage& image) {
  ProtobufWriter picture, value, summary;
  picture.integer(kHeight, image.height).integer(kWidth, image.width);
  picture.integer(kChannels, image.channels).bytes(kEncoded, image.png);
  value.bytes(kTag, tag).bytes(kImage, picture.text());
  summary.bytes(kValue, value.text());
  return summary_record(time, step, summary);
}

std::string event_record(double time, int64_t step, const std::string& tag,
                         const std::string& text) {
  ProtobufWriter size, shape, tensor, plugin, metadata, value, summary;
  size.integer(kSize, 1);
  shape.bytes(kDim, size.text());
  tensor.integer(kType, kString).bytes(kShape, shape.text()).bytes(kStrings, text);
  plugin.bytes(kName, "text");
  metadata.bytes(kPlugin, plugin.text());
  value.bytes(kTag, tag).bytes(kTensor, tensor.text()).bytes(kMetadata, metadata.text());
  summary.bytes(kValue, value.text());
  return summary_record(time, step, summary);
}

EventImage image_of(const at::Tensor& images) {
  const auto type = images.scalar_type();
  if (images.dim() != 4 || images.size(0) == 0 || (images.size(1) != 1 && images.size(1) != 3) ||
      (type != c10::kByte && !c10::isFloatingType(type)))
    throw ShapeError("tensorboard.image_of", "images [images, 1 or 3, height, width]",
                     describe(images));
  constexpr int64_t kRow = 8, kGap = 2;
  const at::Tensor on_host = images.detach().to(c10::kCPU, c10::kFloat).contiguous();
  const std::span values(on_host.const_data_ptr<float>(), static_cast<size_t>(on_host.numel()));
  float low = 0, high = type == c10::kByte ? 255 : 1;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const int64_t count = images.size(0), channels = images.size(1), height = images.size(2),
                width = images.size(3), across = std::min(count, kRow),
                down = (count + across - 1) / across;
  at::Tensor grid = at::zeros(
      {channels, down * (height + kGap) - kGap, across * (width + kGap) - kGap}, c10::kByte);
  uint8_t* pixels = grid.mutable_data_ptr<uint8_t>();
  const int64_t grid_width = grid.size(2), plane = grid.size(1) * grid_width;
  for (size_t i = 0; i < values.size(); ++i) {
    auto at = static_cast<int64_t>(i);
    const int64_t x = at % width, y = (at /= width) % height, channel = (at /= height) % channels,
                  image = at / channels;
    const int64_t row = image / across * (height + kGap) + y,
                  column = image % across * (width + kGap) + x;
    const float shade = std::isfinite(values[i]) ? (values[i] - low) / (high - low) : 0;
    pixels[channel * plane + row * grid_width + column] =
        static_cast<uint8_t>(std::lround(255 * shade));
  }
  return {
      .height = grid.size(1), .width = grid_width, .channels = channels, .png = encode_png(grid)};
}

EventHistogram histogram_of(const at::Tensor& values, int64_t buckets) {
  const at::Tensor elements = elements_of(values);
  const std::span all(elements.const_data_ptr<float>(), static_cast<size_t>(elements.numel()));
  EventHistogram found{.min = std::numeric_limits<double>::infinity(),
                       .max = -std::numeric_limits<double>::infinity()};
  for (const float one : all) {
    if (!std::isfinite(one)) continue;
    const double value = one;
    found.min = std::min(found.min, value);
    found.max = std::max(found.max, value);
    found.sum += value;
    found.squares += value * value;
  }
  if (found.min > found.max) return {};
  const auto count = static_cast<size_t>(found.min == found.max ? 1 : buckets);
  const double width = (found.max - found.min) / static_cast<double>(count);
  for (size_t i = 1; i < count; ++i)
    found.limits.push_back(found.min + width * static_cast<double>(i));
  found.limits.push_back(found.max);
  found.counts.resize(count);
  for (const float one : all) {
    if (!std::isfinite(one)) continue;
    const double place = count == 1 ? 0 : (static_cast<double>(one) - found.min) / width;
    found.counts[std::min(count - 1, static_cast<size_t>(place))] += 1;
  }
  return found;
}

}  // namespace tare
