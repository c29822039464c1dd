// Decodes picture files into batches.
#include "tare/data/image_files.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/accumulate.h>

#include <iterator>
#include <span>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/data/gather.h"
#include "tare/transform/picture.h"
#include "tare/transform/planes.h"

namespace tare {
namespace {

const char* kind_of_picture(int64_t channels) { return channels == 1 ? "grey" : "RGB"; }

}  // namespace

int64_t decode_sample(const ImageFiles& files, int64_t sample, uint8_t* out) {
  const std::filesystem::path& path = files.files[static_cast<size_t>(sample)];
  const int64_t height = files.shape[1], width = files.shape[2];
  const Picture picture = read_picture(path, files.shape[0]);
  if (!files.resizes && (picture.height != height || picture.width != width))
    throw FormatError("data.image_folder", path.string(), "size",
                      std::to_string(picture.width) + " x " + std::to_string(picture.height) +
                          " pixels are not the " + std::to_string(width) + " x " +
                          std::to_string(height) +
                          " of the first file: give a size to resize to (data.size in a recipe)");
  write_resized(picture, height, width, files.fit, out);
  return picture.stored_channels;
}

// The user who gave the channels expects pictures to be converted.
void warn_of_converted(const ImageFiles& files, int64_t count) {
  const std::string whole = std::to_string(files.files.size());
  log::warning_once((count > 0 ? std::to_string(count) + " of " + whole : "some of the " + whole) +
                    " pictures" +
                    (files.folder.empty() ? "" : " of " + printable(files.folder.string())) +
                    " are " + kind_of_picture(4 - files.shape[0]) + " and are converted to " +
                    kind_of_picture(files.shape[0]) +
                    ", because the first picture is: channels (data.channels in a recipe) chooses "
                    "1 for grey or 3 for RGB");
}

StreamedImages::Source::Source(ImageFiles given, int64_t cache_bytes)
    : files(std::move(given)),
      sample_bytes(c10::multiply_integers(files.shape)),
      cache(cache_bytes, static_cast<int64_t>(files.files.size()), sample_bytes) {}

StreamedImages::StreamedImages(ImageFiles files, int64_t cache_bytes, at::Tensor targets,
                               std::vector<std::string> labels, Transforms read_with,
                               SampleNames names)
    : Transformable(files.shape, std::move(labels), std::move(read_with), std::move(names)),
      source_(std::make_shared<Source>(std::move(files), cache_bytes)),
      targets_(std::move(targets)) {}

int64_t StreamedImages::size() const { return static_cast<int64_t>(source_->files.files.size()); }

void StreamedImages::fill(const BatchRequest& request, uint8_t* out) const {
  each_sample(std::ssize(request.indices), [&](int64_t n) {
    const int64_t index = request.indices[static_cast<size_t>(n)];
    uint8_t* const sample = out + n * source_->sample_bytes;
    if (source_->cache.read(index, sample)) return;
    const int64_t stored = decode_sample(source_->files, index, sample);
    source_->cache.offer(index, sample);
    if (stored != source_->files.shape[0] && source_->files.warns_of_channels &&
        !source_->warned.exchange(true))
      warn_of_converted(source_->files, 0);
  });
}

Batch StreamedImages::get(const BatchRequest& request) const {
  check_indices(request.indices, size());
  std::vector<int64_t> shape = raw_shape();
  shape.insert(shape.begin(), static_cast<int64_t>(request.indices.size()));
  at::Tensor input;
  if (const Transforms* transforms = applied()) {
    // The pixels are in plain memory, so that the transformed batch is the first tensor, as it is
    // where the pictures are in memory.
    const auto pixels = std::make_unique_for_overwrite<uint8_t[]>(
        static_cast<size_t>(c10::multiply_integers(shape)));
    fill(request, pixels.get());
    const bool random = request.training && transforms->random();
    const auto seeds = random ? sample_seeds(request) : std::vector<uint64_t>();
    input = transforms->apply(at::from_blob(pixels.get(), shape, at::kByte), seeds, random);
  } else {
    input = at::empty(shape, at::kByte);
    fill(request, input.mutable_data_ptr<uint8_t>());
  }
  return {input, targets_.defined() ? gather_rows(targets_, request.indices) : at::Tensor()};
}

void StreamedImages::account(Ledger& ledger) const {
  source_->cache.account(ledger);
  if (targets_.defined()) ledger.add(Category::other, "dataset.target", targets_);
}

DatasetPtr StreamedImages::with(const Transforms& more) const {
  auto result = std::make_shared<StreamedImages>(*this);
  result->add(more);
  return result;
}

}  // namespace tare
