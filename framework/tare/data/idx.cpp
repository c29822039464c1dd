// Reads and writes IDX files, and makes data sets of them.
#include "tare/data/idx.h"

#include <ATen/ops/empty.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/data/byte_source.h"
#include "tare/data/datasets.h"
#include "tare/data/number_names.h"

namespace tare {
namespace {

constexpr uint8_t kUnsignedBytes = 0x08;

std::vector<int64_t> read_shape(ByteSource& source) {
  std::array<uint8_t, 4> magic{};
  source.read(magic.data(), magic.size(), "magic number");
  if (magic[0] != 0 || magic[1] != 0) source.refuse("magic number", "is not that of an IDX file");
  if (magic[2] != kUnsignedBytes)
    source.refuse("magic number",
                  "type " + std::to_string(magic[2]) + " is not read, only 8 (unsigned bytes)");
  if (magic[3] < 1 || magic[3] > 4)
    source.refuse("magic number", std::to_string(magic[3]) + " dimensions, allowed are 1 to 4");
  std::vector<int64_t> shape;
  for (int d = 0; d < magic[3]; ++d) {
    std::array<uint8_t, 4> b{};
    source.read(b.data(), b.size(), "dimensions");
    shape.push_back(int64_t{b[0]} << 24 | int64_t{b[1]} << 16 | int64_t{b[2]} << 8 | b[3]);
  }
  return shape;
}

// Bytes of values, once the header is believed.
int64_t checked_bytes(const ByteSource& source, const std::vector<int64_t>& shape, int64_t limit) {
  int64_t bytes = 1;
  for (const int64_t dimension : shape) {
    if (dimension == 0) source.refuse("dimensions", "a dimension is 0");
    if (__builtin_mul_overflow(bytes, dimension, &bytes) || bytes > limit)
      source.refuse("dimensions",
                    "claim more than " + std::to_string(limit) + " bytes, which is the limit");
  }
  const int64_t header = 4 + 4 * static_cast<int64_t>(shape.size()), stored = source.file_size();
  if (!source.gzip() && stored != header + bytes)
    source.refuse("size", "the header claims " + std::to_string(header + bytes) +
                              " bytes, the file has " + std::to_string(stored));
  if (source.gzip() && header + bytes > stored * kMaxDeflateRatio)
    source.refuse("size", "the header claims more than the compressed file can hold");
  return bytes;
}

std::string header_of(const at::Tensor& values) {
  std::string header{0, 0, static_cast<char>(kUnsignedBytes), static_cast<char>(values.dim())};
  for (const int64_t dimension : values.sizes())
    for (int shift = 24; shift >= 0; shift -= 8) header += static_cast<char>(dimension >> shift);
  return header;
}

// A gzip stream (no name, no time) written piece by piece.
class GzipWriter {
 public:
  explicit GzipWriter(io::File& file) : file_(file) {
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
      throw std::bad_alloc();
  }
  ~GzipWriter() { deflateEnd(&stream_); }
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  void write(const void* data, size_t size, bool last) {
    stream_.next_in = static_cast<Bytef*>(const_cast<void*>(data));
    stream_.avail_in = static_cast<uInt>(size);
    do {
      stream_.next_out = buffer_.data();
      stream_.avail_out = static_cast<uInt>(buffer_.size());
      deflate(&stream_, last ? Z_FINISH : Z_NO_FLUSH);
      file_.write(buffer_.data(), buffer_.size() - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }

 private:
  io::File& file_;
  std::array<Bytef, 1 << 16> buffer_{};
  z_stream stream_{};
};

void write_compressed(io::File& file, const std::string& header,
                      std::span<const std::byte> values) {
  constexpr size_t kPiece = size_t{1} << 30;
  GzipWriter writer(file);
  writer.write(header.data(), header.size(), false);
  for (; values.size() > kPiece; values = values.subspan(kPiece))
    writer.write(values.data(), kPiece, false);
  writer.write(values.data(), values.size(), true);
}

}  // namespace

at::Tensor read_idx(const std::filesystem::path& path, int64_t limit_bytes) {
  ByteSource source(path, "data.read_idx");
  const std::vector<int64_t> shape = read_shape(source);
  const int64_t bytes = checked_bytes(source, shape, limit_bytes);
  at::Tensor values = at::empty(shape, at::kByte);
  source.read(values.mutable_data_ptr(), static_cast<size_t>(bytes), "values");
  source.expect_end();
  return values;
}

void write_idx(const std::filesystem::path& path, const at::Tensor& values) {
  if (!values.defined() || values.scalar_type() != at::kByte || values.dim() < 1 ||
      values.dim() > 4 || !values.device().is_cpu() || values.numel() == 0 ||
      std::ranges::any_of(values.sizes(), [](int64_t d) { return d > UINT32_MAX; }))
    throw ShapeError("data.write_idx", "uint8 with 1 to 4 dimensions on the host",
                     values.defined() ? values.toString() + " " + c10::str(values.sizes())
                                      : "an undefined tensor");
  const at::Tensor kept = values.contiguous();
  const std::span bytes(static_cast<const std::byte*>(kept.const_data_ptr()), kept.nbytes());
  const std::string header = header_of(kept);
  io::write_atomically(path, [&](io::File& file) {
    if (path.extension() == ".gz") return write_compressed(file, header, bytes);
    file.write(header);
    file.write(bytes.data(), bytes.size());
  });
}

DatasetPtr idx_dataset(const std::filesystem::path& images, const std::filesystem::path& labels) {
  const at::Tensor pixels = read_idx(images), classes = read_idx(labels);
  if (pixels.dim() != 3)
    throw FormatError(
        "data.idx", images.string(), "dimensions",
        "images need 3 (samples, height, width), got " + std::to_string(pixels.dim()));
  if (classes.dim() != 1 || classes.size(0) != pixels.size(0))
    throw FormatError("data.idx", labels.string(), "dimensions",
                      "one label for each of the " + std::to_string(pixels.size(0)) +
                          " images is needed, got shape " + c10::str(classes.sizes()));
  const at::Tensor target = classes.to(at::kLong);
  const bool has_stray = highest_class(target) > target.numel();  // which is refused elsewhere
  if (const std::string warning = lacks_class_0(lowest_class(target));
      !has_stray && !warning.empty())
    log::warning_once(printable(labels.string()) + ' ' + warning);
  return tensor_dataset(pixels.unsqueeze(1), target, number_names(highest_class(target)));
}

}  // namespace tare

namespace tare::datasets {
namespace {

Found idx(const DataOptions& o, bool) {
  if (o.images.empty() || o.labels.empty())
    throw ConfigError("data.make", "images", "and labels are needed by the data set idx",
                      "two IDX files", o.images);
  const DatasetPtr data = idx_dataset(o.images, o.labels);
  return {.description = format_count(data->size()) + " images of " + printable(o.images),
          .data = data};
}

}  // namespace

void add_idx(Registry& all) {
  all.add("idx", "reads images and labels from two IDX files, plain or gzip", [] {
    return Kind{{"images", "labels"}, idx};
  });
}

}  // namespace tare::datasets
