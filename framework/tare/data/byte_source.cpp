// Reads the bytes of a file, and inflates them where they are gzip.
#include "tare/data/byte_source.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "tare/base/error.h"

namespace tare {

ByteSource::ByteSource(const std::filesystem::path& path, std::string operation)
    : operation_(std::move(operation)), file_(path, io::Mode::read) {
  refill();
  gzip_ = have_ >= 2 && buffer_[0] == 0x1f && buffer_[1] == 0x8b;
  if (gzip_ && inflateInit2(&stream_, 15 + 16) != Z_OK) throw std::bad_alloc();
}

ByteSource::~ByteSource() {
  if (gzip_) inflateEnd(&stream_);
}

void ByteSource::refuse(std::string part, std::string_view problem) const {
  throw FormatError(operation_, file_.path().string(), std::move(part), problem);
}

void ByteSource::read(void* out, size_t size, const char* part) {
  if (take(static_cast<uint8_t*>(out), size) != size) refuse(part, "the file ends too early");
}

void ByteSource::expect_end() {
  uint8_t surplus = 0;
  if (take(&surplus, 1) != 0) refuse("values", "the file holds more than its header says");
  if (gzip_ && stream_.avail_in == 0) {
    refill();
    stream_.avail_in = static_cast<uInt>(have_);
  }
  if (gzip_ && stream_.avail_in != 0) refuse("gzip", "bytes follow the end of the stream");
}

void ByteSource::refill() { have_ = file_.read(buffer_.data(), buffer_.size()), used_ = 0; }

size_t ByteSource::take(uint8_t* out, size_t size) {
  if (gzip_) return inflate_into(out, size);
  size_t done = 0;
  while (done < size) {
    if (used_ == have_) refill();
    if (have_ == 0) break;
    const size_t part = std::min(size - done, have_ - used_);
    std::memcpy(out + done, buffer_.data() + used_, part);
    used_ += part;
    done += part;
  }
  return done;
}

size_t ByteSource::inflate_into(uint8_t* out, size_t size) {
  size_t done = 0;
  while (done < size && !ended_) {
    if (stream_.avail_in == 0) feed();
    const size_t step = std::min<size_t>(size - done, 1U << 30);
    stream_.next_out = out + done;
    stream_.avail_out = static_cast<uInt>(step);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    done += step - stream_.avail_out;
    ended_ = status == Z_STREAM_END;
    if (status != Z_OK && status != Z_STREAM_END)
      refuse("gzip", stream_.msg ? stream_.msg : "the stream is broken");
  }
  return done;
}

void ByteSource::feed() {
  if (used_ == have_ || stream_.next_in != nullptr) refill();
  if (have_ == 0) refuse("gzip", "the stream is truncated");
  stream_.next_in = buffer_.data();
  stream_.avail_in = static_cast<uInt>(have_);
}

}  // namespace tare
