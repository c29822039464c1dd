// The C interface over Predictor: each function is one try block.
#include <ATen/DLConvertor.h>
#include <ATen/Parallel.h>
#include <ATen/dlpack.h>
#include <ATen/ops/from_blob.h>
#include <omp.h>
#include <sys/stat.h>
#include <torch/version.h>

#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tare/base/error.h"
#include "tare/c/guard.h"
#include "tare/c/tare.h"
#include "tare/inference/inspect.h"
#include "tare/inference/json_predict.h"
#include "tare/inference/predictor.h"
#include "tare/runtime/device_name.h"
#include "tare/runtime/exit_code.h"
#include "tare/runtime/init.h"
#include "tare/runtime/keep_generator.h"
#include "tare/transform/image.h"

namespace {

using namespace tare;
using c::check_given;
using c::copied;
using c::refuse;

constexpr int64_t kMostSamples = 1'000'000;  // of one JSON text
constexpr int64_t kBatch = 64;               // samples of a JSON text that are predicted together

/// Runs the body of a function; returns its code.
template <class Body>
int guarded(const Body& body) noexcept {
  return c::guarded(describe_error, body);
}

/// Identifies the content of a file, as far as the system says.
struct FileKey {
  dev_t device;
  ino_t number;
  off_t size;
  int64_t seconds, nanoseconds;
  auto operator<=>(const FileKey&) const = default;
};

/// Returns the open bundle of a file, one for all models on it.
std::shared_ptr<const Bundle> shared_bundle(const std::string& path) {
  static std::mutex mutex;
  static std::map<FileKey, std::weak_ptr<const Bundle>> open;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw IoError("tare_open", path, errno);
  const FileKey key{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                    status.st_mtim.tv_nsec};
  const std::lock_guard lock(mutex);
  std::erase_if(open, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const Bundle>& found = open[key];
  std::shared_ptr<const Bundle> bundle = found.lock();
  if (!bundle) found = bundle = std::make_shared<const Bundle>(open_bundle(path));
  return bundle;
}

/// Sets the threads of an operator in this thread while it lives: the host program has its own
/// number. LibTorch's own function would set it for threads that begin meanwhile, too.
class ThreadsScope {
 public:
  explicit ThreadsScope(int threads) : before_(at::get_num_threads()) {
    omp_set_num_threads(threads);
  }
  ~ThreadsScope() { omp_set_num_threads(before_); }
  ThreadsScope(const ThreadsScope&) = delete;
  ThreadsScope& operator=(const ThreadsScope&) = delete;

 private:
  int before_;
};

at::ScalarType type_of(const DLDataType& type) {
  const auto is = [&](int code, int bits) { return type.code == code && type.bits == bits; };
  if (type.lanes == 1) {
    if (is(kDLFloat, 32)) return at::kFloat;
    if (is(kDLFloat, 64)) return at::kDouble;
    if (is(kDLUInt, 8)) return at::kByte;
    if (is(kDLInt, 32)) return at::kInt;
    if (is(kDLInt, 64)) return at::kLong;
    if (is(kDLBool, 8)) return at::kBool;
  }
  refuse("tare_predict", "a tensor has the DLPack type {" + std::to_string(type.code) + ", " +
                             std::to_string(type.bits) + ", " + std::to_string(type.lanes) +
                             "}; allowed: float32, float64, uint8, int32, int64, bool");
}

/// Returns a view of a tensor of the caller, which is not written.
at::Tensor view_of(const DLTensor& given) {
  constexpr int kMostDimensions = 9;  // a batch of samples of eight
  if (given.device.device_type != kDLCPU && given.device.device_type != kDLCUDAHost)
    refuse("tare_predict", "a tensor lies on a device: copy it to the host first");
  if (given.ndim < 0 || given.ndim > kMostDimensions)
    refuse("tare_predict", "a tensor has " + std::to_string(given.ndim) + " dimensions");
  const at::ScalarType type = type_of(given.dtype);
  const auto rank = static_cast<size_t>(given.ndim);
  if (rank > 0) check_given(given.shape, "tare_predict", "the shape of a tensor");
  const at::IntArrayRef shape(given.shape, rank);
  int64_t count = 1;
  for (const int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(count, size, &count))
      refuse("tare_predict", "a tensor has a size out of range");
  if (count > 0) check_given(given.data, "tare_predict", "the data of a tensor");
  auto* data = static_cast<std::byte*>(given.data) + given.byte_offset;
  const auto options = at::TensorOptions().dtype(type);
  if (!given.strides || count == 0) return at::from_blob(data, shape, options);
  // LibTorch has no negative strides: the view begins at the lowest address, and is turned.
  std::vector<int64_t> strides(given.strides, given.strides + rank), turned;
  for (size_t i = 0; i < rank; ++i) {
    int64_t reach = 0;  // in bytes, from the first to the last number of the dimension
    if (strides[i] == std::numeric_limits<int64_t>::min() ||
        __builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
        __builtin_mul_overflow(reach, static_cast<int64_t>(c10::elementSize(type)), &reach))
      refuse("tare_predict", "a tensor has a stride out of range");
    if (reach < 0) {
      data += reach;
      turned.push_back(static_cast<int64_t>(i));
    }
    strides[i] = std::abs(strides[i]);
  }
  const at::Tensor view = at::from_blob(data, shape, strides, options);
  return turned.empty() ? view : view.flip(turned);
}

using ManagedTensor = std::unique_ptr<DLManagedTensorVersioned, decltype(&tare_release)>;

ManagedTensor handed_out(const at::Tensor& tensor) {
  return {at::toDLPackVersioned(tensor.contiguous()), &tare_release};
}

/// Returns the channels of the model's pictures; 0, those of the file, for a model that takes none,
/// which picture_input() refuses.
int64_t channels_of(const Predictor& predictor) {
  return predictor.sample_kind() == SampleKind::image ? predictor.sample_shape().front() : 0;
}

}  // namespace

struct tare_model {
  std::string path;
  std::shared_ptr<const Bundle> bundle;
  Predictor predictor;
  int threads;
  std::mutex mutex{};
  std::string info{};
};

namespace {

void set_up(const std::string& device) {
  static std::mutex mutex;
  runtime::check_device_name(device);
  const std::lock_guard lock(mutex);
  if (device != "cpu") init({.threads = at::get_num_threads(), .cuda = CudaMode::automatic});
}

tare_model* opened(const std::string& path, const tare_options& options) {
  const std::string device = options.device ? options.device : "cpu";
  set_up(device);
  const ThreadsScope threads(std::max(options.threads, 1));
  const runtime::KeepGenerator generator(c10::kCPU);  // a model draws its first weights
  const auto bundle = shared_bundle(path);
  return new tare_model{.path = path,
                        .bundle = bundle,
                        .predictor = Predictor(*bundle, {.device = device}),
                        .threads = std::max(options.threads, 1)};
}

/// Runs a body with the model to itself.
template <class Body>
int with(tare_model* model, const char* call, const Body& body) noexcept {
  return guarded([&] {
    check_given(model, call, "model");
    const std::lock_guard lock(model->mutex);
    const ThreadsScope threads(model->threads);
    body(*model);
  });
}

Batch batch_of(const tare_model& model, const DLTensor* const* inputs, size_t count) {
  const BundleManifest& manifest = model.predictor.manifest();
  Batch batch;
  for (size_t i = 0; i < count; ++i) {
    check_given(inputs[i], "tare_predict", "an input");
    const bool is_more = i > 0 && i <= manifest.more_inputs.size();
    batch.inputs.push_back(
        {is_more ? manifest.more_inputs[i - 1].name : manifest.input_name, view_of(*inputs[i])});
  }
  return batch;
}

}  // namespace

extern "C" {

uint32_t tare_abi_version(void) { return TARE_ABI_VERSION; }

const char* tare_version(void) { return "tare " TARE_VERSION ", LibTorch " TORCH_VERSION; }

const char* tare_last_error(void) { return c::last_error.c_str(); }

int tare_open(const char* path, const tare_options* options, tare_model** model) {
  return guarded([&] {
    check_given(path, "tare_open", "path");
    check_given(model, "tare_open", "model");
    *model = opened(path, c::complete(options));
  });
}

void tare_close(tare_model* model) { delete model; }

int tare_info(tare_model* model, const char** json) {
  return with(model, "tare_info", [&](tare_model& open) {
    check_given(json, "tare_info", "json");
    if (open.info.empty()) open.info = inspect_json(open.path).text;
    *json = open.info.c_str();
  });
}

int tare_predict(tare_model* model, const DLTensor* const* inputs, size_t count,
                 DLManagedTensorVersioned** outputs, size_t capacity, size_t* made) {
  return with(model, "tare_predict", [&](tare_model& open) {
    check_given(inputs, "tare_predict", "inputs");
    check_given(outputs, "tare_predict", "outputs");
    check_given(made, "tare_predict", "made");
    const Outputs predicted = open.predictor.predict(batch_of(open, inputs, count));
    if (predicted.size() > capacity)
      refuse("tare_predict", "the model has " + std::to_string(predicted.size()) +
                                 " outputs, and capacity is " + std::to_string(capacity));
    std::vector<ManagedTensor> done;
    for (const at::Tensor& output : predicted) done.push_back(handed_out(output));
    for (size_t i = 0; i < done.size(); ++i) outputs[i] = done[i].release();
    *made = done.size();
  });
}

int tare_predict_json(tare_model* model, const char* request, char** response) {
  return with(model, "tare_predict_json", [&](tare_model& open) {
    check_given(request, "tare_predict_json", "request");
    check_given(response, "tare_predict_json", "response");
    const JsonRequest asked = read_request(request, open.predictor, kMostSamples);
    const auto outputs = predict_samples(open.predictor, asked.samples, kBatch);
    *response = copied(response_json(open.predictor, outputs, asked.top));
  });
}

int tare_read_picture(tare_model* model, const char* path, DLManagedTensorVersioned** picture) {
  return with(model, "tare_read_picture", [&](tare_model& open) {
    check_given(path, "tare_read_picture", "path");
    check_given(picture, "tare_read_picture", "picture");
    const at::Tensor pixels = read_image(path, channels_of(open.predictor));
    *picture = handed_out(open.predictor.picture_input(pixels)).release();
  });
}

int tare_decode_picture(tare_model* model, const void* bytes, size_t size,
                        DLManagedTensorVersioned** picture) {
  return with(model, "tare_decode_picture", [&](tare_model& open) {
    check_given(bytes, "tare_decode_picture", "bytes");
    check_given(picture, "tare_decode_picture", "picture");
    const at::Tensor pixels = decode_image({static_cast<const std::byte*>(bytes), size},
                                           "the picture", channels_of(open.predictor));
    *picture = handed_out(open.predictor.picture_input(pixels)).release();
  });
}

int tare_describe(tare_model* model, const DLTensor* output, int64_t top, char** json) {
  return with(model, "tare_describe", [&](tare_model& open) {
    check_given(output, "tare_describe", "output");
    check_given(json, "tare_describe", "json");
    if (top < 1) refuse("tare_describe", "top must be >= 1, got " + std::to_string(top));
    const at::Tensor all = view_of(*output);
    if (all.dim() < 1 || all.scalar_type() != at::kFloat)
      refuse("tare_describe", "output is no float32 tensor [batch, ...]");
    nlohmann::json described = nlohmann::json::array();
    for (int64_t i = 0; i < all.size(0); ++i)
      described.push_back(prediction_json(open.predictor, Outputs(all.narrow(0, i, 1)), 0, top));
    *json = copied(described.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  });
}

void tare_release(DLManagedTensorVersioned* tensor) {
  if (tensor && tensor->deleter) tensor->deleter(tensor);
}

void tare_free(char* text) { std::free(text); }
}
