// IDX files. Input: 'r' and a file, plain or gzip, or 'z' and a plain one, which is compressed
// first: a mutated gzip stream seldom keeps its checksum.
#include "tare/data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "fuzz/support.h"
#include "tare/base/error.h"

namespace tare::fuzz {

constexpr int64_t kLimitBytes = 1 << 16;

std::string gzip(std::string_view plain) {
  z_stream stream{};
  const bool ready = deflateInit2(&stream, 1, Z_DEFLATED, 9 + 16, 1, Z_DEFAULT_STRATEGY) == Z_OK;
  require(ready, "zlib has memory");
  std::string out(deflateBound(&stream, plain.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  require(deflate(&stream, Z_FINISH) == Z_STREAM_END, "deflate keeps within its bound");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

void run(char kind, std::string_view plain) {
  static MemoryFile memory;
  memory.set(kind == 'z' ? gzip(plain) : std::string(plain));
  const at::Tensor values = read_idx(memory.path(), kLimitBytes);
  require(values.numel() > 0 && values.numel() <= kLimitBytes, "values keep within the limit");
  const size_t count = values.nbytes(), header = 4 + 4 * static_cast<size_t>(values.dim());
  if (kind != 'z' && plain.starts_with("\x1f\x8b")) return;
  require(plain.size() == header + count &&
              std::memcmp(plain.data() + header, values.const_data_ptr(), count) == 0,
          "values are those of the file");
}

}  // namespace tare::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tare::fuzz::run_kind<tare::FormatError>(data, size, tare::fuzz::run);
  return 0;
}
