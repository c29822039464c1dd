// Picture files as samples that are decoded when they are asked for. Internal: use image_folder().
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tare/data/sample_cache.h"
#include "tare/data/tensor_dataset.h"

namespace tare {

/// Describes files, and how each becomes a sample.
struct ImageFiles {
  std::filesystem::path folder{};              ///< for messages
  std::vector<std::filesystem::path> files{};  ///< in the order of the samples
  std::vector<int64_t> shape{};                ///< of a sample: [channels, height, width]
  bool resizes = false;            ///< files of another size are resized, else they are refused
  std::string fit = "stretch";     ///< how they are resized, see Resize
  bool warns_of_channels = false;  ///< a file with other channels than the first is a warning
};

/// Decodes a file to the shape of the samples, at `out`, where one sample fits. Returns the
/// channels of the file, 1 or 3. Throws IoError; FormatError, naming the file.
int64_t decode_sample(const ImageFiles& files, int64_t sample, uint8_t* out);

/// Logs, once, that `count` pictures (0: some) have other channels than the samples.
void warn_of_converted(const ImageFiles& files, int64_t count);

/// Gives pictures that are decoded by the thread that asks for them, and some of them from a cache.
/// The cache does not change which tensors get() allocates.
class StreamedImages final : public Transformable {
 public:
  /// Keeps decoded samples of at most `cache_bytes`; 0: none. `targets`: [files, ...] or
  /// undefined. `read_with`: what decode_sample() does to a picture.
  StreamedImages(ImageFiles files, int64_t cache_bytes, at::Tensor targets,
                 std::vector<std::string> labels, Transforms read_with, SampleNames names);
  [[nodiscard]] int64_t size() const override;
  [[nodiscard]] Batch get(const BatchRequest& request) const override;
  [[nodiscard]] at::Tensor targets() const override { return targets_; }
  /// Returns 0 to 1, to which transforms scale the levels of pictures of 8 bits.
  [[nodiscard]] std::optional<Levels> levels() const override { return Levels{0, 1}; }
  void account(Ledger& ledger) const override;
  void clear_cache() const override { source_->cache.clear(); }
  [[nodiscard]] DatasetPtr with(const Transforms& more) const override;

 private:
  // Data sets of the same files with other transforms share one.
  struct Source {
    ImageFiles files;
    int64_t sample_bytes;
    SampleCache cache;
    std::atomic<bool> warned{false};
    Source(ImageFiles given, int64_t cache_bytes);
  };
  void fill(const BatchRequest& request, uint8_t* out) const;

  std::shared_ptr<Source> source_;
  at::Tensor targets_;
};

}  // namespace tare
