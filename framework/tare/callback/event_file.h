// The records of TensorBoard's event files: scalars, histograms, pictures and texts as Protocol
// Buffers. Internal.
//
// An event file is a TFRecord file (data/tfrecord.h) of messages Event, whose fields are those of
// tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto and histogram.proto.
// The values have the form that PyTorch's SummaryWriter gives them, which every TensorBoard reads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tare {

/// Holds a scalar under its tag; a value is stored as float32.
struct EventScalar {
  std::string tag{};  ///< such as "train/loss"
  double value = 0;   ///< may be NaN
};

/// Counts the finite values of a tensor in buckets of equal width.
struct EventHistogram {
  double min = 0, max = 0;       ///< of the finite values
  double sum = 0, squares = 0;   ///< of the values, and of their squares
  std::vector<double> limits{};  ///< upper ends of the buckets, rising; the last is `max`
  std::vector<double> counts{};  ///< values in each bucket; together those that are finite
};

/// Returns the first record of an event file, which names its version.
[[nodiscard]] std::string event_head(double time);
/// Returns the record of some scalars. `time`: seconds since 1970.
[[nodiscard]] std::string event_record(double time, int64_t step,
                                       const std::vector<EventScalar>& scalars);
/// Returns the record of a histogram. `time`: seconds since 1970.
[[nodiscard]] std::string event_record(double time, int64_t step, const std::string& tag,
                                       const EventHistogram& histogram);

/// Holds a picture.
struct EventImage {
  int64_t height = 0, width = 0;  ///< in pixels
  int64_t channels = 1;           ///< 1: grey, 3: RGB
  std::string png{};              ///< the content of a PNG file
};
/// Returns the record of a picture. `time`: seconds since 1970.
[[nodiscard]] std::string event_record(double time, int64_t step, const std::string& tag,
                                       const EventImage& image);
/// Returns the record of a text, which TensorBoard takes for Markdown. `time`: seconds since 1970.
[[nodiscard]] std::string event_record(double time, int64_t step, const std::string& tag,
                                       const std::string& text);
/// Joins images, uint8 or of a floating-point type, [images, 1 or 3, height, width], to one picture
/// with eight in a row and two black pixels between them, as torchvision's make_grid does. Values
/// that do not lie between 0 and 1 are scaled, the lowest of all to black and the highest to white.
/// A tensor on a device is copied to the host. Throws ShapeError for other tensors.
[[nodiscard]] EventImage image_of(const at::Tensor& images);

/// Counts the values of a tensor of a floating-point type in `buckets` buckets; of equal values in
/// one. Without a finite value there is no bucket. A tensor on a device is copied to the host.
[[nodiscard]] EventHistogram histogram_of(const at::Tensor& values, int64_t buckets);

}  // namespace tare
