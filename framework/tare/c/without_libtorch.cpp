// The C interface over lite::Model, without LibTorch: each function is one try block.
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tare/c/guard.h"
#include "tare/c/tare.h"
#include "tare/config/node_json.h"
#include "tare/lite/classes.h"
#include "tare/lite/lite.h"
#include "tare/runtime/wrong_path.h"
#include "tare/transform/picture.h"

namespace {

using namespace tare;
using c::check_given;
using c::copied;
using c::refuse;
using nlohmann::json;

constexpr int32_t kHost = 1;  // of DLPack
constexpr uint8_t kInt = 0, kUnsigned = 1, kFloat = 2;

ErrorText describe(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const IoError& e) {
    return {e.what(), is_wrong_path(e) ? kBadInput : kIo};
  } catch (const Error& e) {
    return {e.what(), kBadInput};
  } catch (const std::bad_alloc&) {
    return {"[tare] out of memory: give a smaller batch", kOutOfMemory};
  } catch (const std::exception& e) {
    return {e.what(), kFailed};
  }
}

template <class Body>
int guarded(const Body& body) noexcept {
  return c::guarded(describe, body);
}

/// Is a tensor that the caller owns until tare_release().
template <class T>
struct Owned {
  DLManagedTensorVersioned managed{};
  std::vector<int64_t> shape{}, strides{};
  std::vector<T> values{};
};

void release(DLManagedTensorVersioned* tensor) {
  if (tensor && tensor->deleter) tensor->deleter(tensor);
}
using ManagedTensor = std::unique_ptr<DLManagedTensorVersioned, decltype(&release)>;

template <class T>
ManagedTensor handed_out(std::vector<int64_t> shape, std::vector<T> values) {
  auto owned = std::make_unique<Owned<T>>();
  owned->shape = std::move(shape);
  owned->values = std::move(values);
  owned->strides.resize(owned->shape.size());
  int64_t stride = 1;
  for (size_t i = owned->shape.size(); i-- > 0; stride *= owned->shape[i])
    owned->strides[i] = stride;
  const bool is_float = std::is_same_v<T, float>;
  owned->managed = {
      .version = {1, 0},
      .manager_ctx = owned.get(),
      .deleter =
          [](DLManagedTensorVersioned* self) { delete static_cast<Owned<T>*>(self->manager_ctx); },
      .flags = 0,
      .dl_tensor = {.data = owned->values.data(),
                    .device = {kHost, 0},
                    .ndim = static_cast<int32_t>(owned->shape.size()),
                    .dtype = {is_float ? kFloat : kUnsigned, 8 * sizeof(T), 1},
                    .shape = owned->shape.data(),
                    .strides = owned->strides.data(),
                    .byte_offset = 0}};
  return {&owned.release()->managed, &release};
}

bool is(const DLDataType& type, uint8_t code, size_t bits) {
  return type.code == code && type.bits == bits && type.lanes == 1;
}

/// Holds the numbers of a tensor of the caller, copied where they are not contiguous.
template <class T>
class Numbers {
 public:
  Numbers(const DLTensor& given, const std::vector<int64_t>& shape) {
    int64_t count = 1;
    for (const int64_t size : shape)
      if (size < 0 || __builtin_mul_overflow(count, size, &count))
        refuse("tare_predict", "a tensor has a size out of range");
    if (count == 0) return;
    check_given(given.data, "tare_predict", "the data of a tensor");
    const auto* begin = static_cast<const std::byte*>(given.data) + given.byte_offset;
    data_ = reinterpret_cast<const T*>(begin);
    if (!given.strides || is_contiguous(given, shape)) return;
    for (size_t i = 0; i < shape.size(); ++i)
      if (int64_t reach = 0; given.strides[i] == std::numeric_limits<int64_t>::min() ||
                             __builtin_mul_overflow(shape[i] - 1, given.strides[i], &reach) ||
                             __builtin_mul_overflow(reach, int64_t{sizeof(T)}, &reach))
        refuse("tare_predict", "a tensor has a stride out of range");
    copy_.reserve(static_cast<size_t>(count));
    gather(given, shape, 0, data_);
    data_ = copy_.data();
  }
  [[nodiscard]] const T* get() const { return data_; }

 private:
  static bool is_contiguous(const DLTensor& given, const std::vector<int64_t>& shape) {
    int64_t stride = 1;
    for (size_t i = shape.size(); i-- > 0; stride *= shape[i])
      if (shape[i] != 1 && given.strides[i] != stride) return false;
    return true;
  }
  void gather(const DLTensor& given, const std::vector<int64_t>& shape, size_t at, const T* from) {
    if (at == shape.size()) return copy_.push_back(*from);
    for (int64_t i = 0; i < shape[at]; ++i)
      gather(given, shape, at + 1, from + i * given.strides[at]);
  }

  const T* data_ = nullptr;
  std::vector<T> copy_;
};

std::vector<int64_t> shape_of(const DLTensor& given, const char* call) {
  constexpr int kMostDimensions = 9;  // a batch of samples of eight
  if (given.device.device_type != kHost)
    refuse(call, "a tensor lies on a device: copy it to the host first");
  if (given.ndim < 0 || given.ndim > kMostDimensions)
    refuse(call, "a tensor has " + std::to_string(given.ndim) + " dimensions");
  if (given.ndim > 0) check_given(given.shape, call, "the shape of a tensor");
  return {given.shape, given.shape + given.ndim};
}

}  // namespace

struct tare_model {
  lite::Model model;
  std::mutex mutex{};
  std::string info{};
};

namespace {

/// Runs a body with the model to itself.
template <class Body>
int with(tare_model* model, const char* call, const Body& body) noexcept {
  return guarded([&] {
    check_given(model, call, "model");
    const std::lock_guard lock(model->mutex);
    body(*model);
  });
}

lite::Output predicted(lite::Model& model, const DLTensor& given) {
  const std::vector<int64_t> shape = shape_of(given, "tare_predict");
  if (is(given.dtype, kFloat, 32) && !model.takes_tokens()) {
    const Numbers<float> numbers(given, shape);
    return model.predict({.shape = shape, .numbers = numbers.get()});
  }
  if (is(given.dtype, kUnsigned, 8) && model.takes_pictures()) {
    const Numbers<uint8_t> bytes(given, shape);
    return model.predict({.shape = shape, .bytes = bytes.get()});
  }
  if (is(given.dtype, kInt, 64) && model.takes_tokens()) {
    const Numbers<int64_t> tokens(given, shape);
    return model.predict({.shape = shape, .tokens = tokens.get()});
  }
  refuse("tare_predict",
         "the model takes " + model.manifest().input + (model.takes_pictures() ? " or uint8" : "") +
             ", and a tensor has the DLPack type {" + std::to_string(given.dtype.code) + ", " +
             std::to_string(given.dtype.bits) + ", " + std::to_string(given.dtype.lanes) + "}");
}

json described(const lite::Model& model) {
  const lite::Manifest& m = model.manifest();
  const auto tree = [](const std::string& yaml) {
    return config::json_of(config::parse_text(yaml, "manifest"));
  };
  const char* kind = model.takes_pictures() ? "image"
                     : model.takes_tokens() ? "tokens"
                                            : "features";
  return {
      {"path", model.bundle().path().string()},
      {"kind", "bundle"},
      {"verified", true},
      {"model", {{"name", m.family}, {"options", tree(m.options)}}},
      {"input",
       {{"kind", kind}, {"dtype", m.input}, {"shape", m.sample_shape}, {"any_size", m.any_size}}},
      {"labels", m.labels},
      {"targets", m.targets},
      {"transforms", tree(m.transforms)},
      {"activation", m.activation},
      {"loss", m.loss},
      {"weights", m.weights}};
}

std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

ManagedTensor input_of(const lite::Model& model, const Picture& picture) {
  lite::BytePlanes planes = model.picture_input(picture);
  return handed_out(std::vector<int64_t>{1, planes.channels, planes.height, planes.width},
                    std::move(planes.bytes));
}

int64_t channels_of(const lite::Model& model) {
  return model.takes_pictures() ? model.manifest().sample_shape.front() : 0;
}

}  // namespace

extern "C" {

uint32_t tare_abi_version(void) { return TARE_ABI_VERSION; }

const char* tare_version(void) { return "tare " TARE_VERSION ", without LibTorch"; }

const char* tare_last_error(void) { return c::last_error.c_str(); }

int tare_open(const char* path, const tare_options* options, tare_model** model) {
  return guarded([&] {
    check_given(path, "tare_open", "path");
    check_given(model, "tare_open", "model");
    const tare_options all = c::complete(options);
    if (all.device && std::strcmp(all.device, "cpu") != 0)
      refuse("tare_open", "device must be cpu, got '" + printable(all.device) +
                              "': libtare_lite computes on the host, libtare on devices, too");
    *model = new tare_model{lite::Model(path, {.threads = std::max(all.threads, 1)})};
  });
}

void tare_close(tare_model* model) { delete model; }

int tare_info(tare_model* model, const char** json) {
  return with(model, "tare_info", [&](tare_model& open) {
    check_given(json, "tare_info", "json");
    if (open.info.empty()) open.info = text_of(described(open.model));
    *json = open.info.c_str();
  });
}

int tare_predict(tare_model* model, const DLTensor* const* inputs, size_t count,
                 DLManagedTensorVersioned** outputs, size_t capacity, size_t* made) {
  return with(model, "tare_predict", [&](tare_model& open) {
    check_given(inputs, "tare_predict", "inputs");
    check_given(outputs, "tare_predict", "outputs");
    check_given(made, "tare_predict", "made");
    if (count != 1) refuse("tare_predict", "the model takes 1 input, got " + std::to_string(count));
    if (capacity < 1) refuse("tare_predict", "the model has 1 output, and capacity is 0");
    check_given(inputs[0], "tare_predict", "an input");
    lite::Output output = predicted(open.model, *inputs[0]);
    outputs[0] = handed_out(std::move(output.shape), std::move(output.values)).release();
    *made = 1;
  });
}

int tare_read_picture(tare_model* model, const char* path, DLManagedTensorVersioned** picture) {
  return with(model, "tare_read_picture", [&](tare_model& open) {
    check_given(path, "tare_read_picture", "path");
    check_given(picture, "tare_read_picture", "picture");
    *picture = input_of(open.model, read_picture(path, channels_of(open.model))).release();
  });
}

int tare_decode_picture(tare_model* model, const void* bytes, size_t size,
                        DLManagedTensorVersioned** picture) {
  return with(model, "tare_decode_picture", [&](tare_model& open) {
    check_given(bytes, "tare_decode_picture", "bytes");
    check_given(picture, "tare_decode_picture", "picture");
    const std::span all(static_cast<const std::byte*>(bytes), size);
    *picture =
        input_of(open.model, decode_picture(all, "the picture", channels_of(open.model))).release();
  });
}

int tare_describe(tare_model* model, const DLTensor* output, int64_t top, char** json) {
  return with(model, "tare_describe", [&](tare_model& open) {
    check_given(output, "tare_describe", "output");
    check_given(json, "tare_describe", "json");
    if (top < 1) refuse("tare_describe", "top must be >= 1, got " + std::to_string(top));
    const std::vector<int64_t> shape = shape_of(*output, "tare_describe");
    if (shape.empty() || !is(output->dtype, kFloat, 32))
      refuse("tare_describe", "output is no float32 tensor [batch, ...]");
    const Numbers<float> numbers(*output, shape);
    int64_t each = 1;
    for (size_t i = 1; i < shape.size(); ++i) each *= shape[i];
    nlohmann::json all = nlohmann::json::array();
    for (int64_t n = 0; n < shape[0]; ++n)
      all.push_back(lite::described(open.model, {shape.begin() + 1, shape.end()},
                                    {numbers.get() + n * each, static_cast<size_t>(each)}, top));
    *json = copied(text_of(all));
  });
}

void tare_release(DLManagedTensorVersioned* tensor) { release(tensor); }

void tare_free(char* text) { std::free(text); }
}
