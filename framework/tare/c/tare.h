// The C interface of Tare: predictions by a bundle from C, Python and every language that calls C.
//
// A function returns TARE_OK or another code of tare_code, whose reason tare_last_error() gives. No
// exception and no abort leaves a function. A function that fails changes nothing, and its results
// are not written. Texts are UTF-8 and end with a zero byte.
//
// Arrays come and go by DLPack 1: inputs are not copied unless the model's device or dtype asks for
// it, and are never written; outputs are memory that the caller owns until tare_release().
//
// A model may be used by several threads: a call waits for another one's on the same handle. Models
// on one file share its weights, which stay in the mapped file. The first model that is opened with
// a device other than "cpu" sets up CUDA for the life of the process.
//
// Two libraries have these functions. libtare.so predicts with every bundle. libtare_lite.so needs
// no LibTorch, so that it has 2 MB and predicts within milliseconds of its start. It opens bundles
// of mlp, resnet9, resnet18, resnet34, resnet50 and gpt with one input, on the host, and lacks
// tare_predict_json(). A program links one of the two.
#ifndef TARE_C_TARE_H
#define TARE_C_TARE_H

#include <stddef.h>
#include <stdint.h>

#ifndef DLPACK_DLPACK_H_
/// Says that the structures of DLPack 1 are declared, here or by its own header, which a program
/// that needs both includes before this one.
#define DLPACK_DLPACK_H_
/// Names a device.
typedef struct {
  int32_t device_type;  ///< 1: the host
  int32_t device_id;    ///< its number among those of the type
} DLDevice;
/// Describes the numbers of a tensor.
typedef struct {
  uint8_t code;    ///< 0: signed, 1: unsigned, 2: float, 6: bool
  uint8_t bits;    ///< of one number
  uint16_t lanes;  ///< numbers of a vector: 1
} DLDataType;
/// Describes a tensor in memory.
typedef struct {
  void* data;            ///< where it begins, less byte_offset
  DLDevice device;       ///< where it lies
  int32_t ndim;          ///< its dimensions
  DLDataType dtype;      ///< of its numbers
  int64_t* shape;        ///< ndim sizes
  int64_t* strides;      ///< ndim strides in numbers; null: the numbers are contiguous
  uint64_t byte_offset;  ///< from `data` to the first number
} DLTensor;
/// Holds the version of DLPack that a tensor is of.
typedef struct {
  uint32_t major, minor;  ///< a consumer of another major version calls the deleter alone
} DLPackVersion;
/// Holds a tensor with the function that frees it.
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;  ///< of this structure
  void* manager_ctx;      ///< of the library that has made the tensor
  /// Frees the tensor and this structure; null: there is nothing to free.
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;      ///< bit 0: the data must not be written
  DLTensor dl_tensor;  ///< the tensor itself
} DLManagedTensorVersioned;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// Is the version of the interface in this header.
#define TARE_ABI_VERSION 1u

#ifdef __GNUC__
/// Shows a function to those who link the library.
#define TARE_API __attribute__((visibility("default")))
#else
/// Shows nothing: another compiler than GCC and Clang.
#define TARE_API
#endif

/// Lists what a function returns: the exit codes of the programs.
typedef enum tare_code {
  TARE_OK = 0,             ///< the call has succeeded
  TARE_FAILED = 1,         ///< a failure with no code of its own
  TARE_BAD_INPUT = 2,      ///< an argument, a shape or a file is not as it must be, or is missing
  TARE_OUT_OF_MEMORY = 3,  ///< nothing is lost: the call may be made again with less
  TARE_IO = 4              ///< a file cannot be read
} tare_code;

/// Holds an open model; only handed to functions.
typedef struct tare_model tare_model;

/// Sets how a model is opened. `size` must be sizeof(tare_options); members that are zero have
/// their default, so that a program with an earlier header works with a later library.
typedef struct tare_options {
  uint32_t size;       ///< sizeof(tare_options)
  int32_t threads;     ///< of one operator on the host, 0 to 4096; 0: 1
  const char* device;  ///< "cpu", "cuda" or "cuda:N"; null: "cpu"
} tare_options;

/// Returns the version of the interface that the library has. Later libraries have all that earlier
/// ones have under the same number.
TARE_API uint32_t tare_abi_version(void);

/// Returns the versions of Tare and LibTorch, as "tare 0.1.0, LibTorch 2.15.0"; static.
TARE_API const char* tare_version(void);

/// Returns why the last function that this thread has called and that failed did so; valid until
/// the next failure in this thread. Empty: none has failed.
TARE_API const char* tare_last_error(void);

/// Opens a bundle and verifies all of it. `options`: null for the defaults. `*model` is for
/// tare_close(). A bundle of a module that is not in the registry is refused.
TARE_API int tare_open(const char* path, const tare_options* options, tare_model** model);

/// Closes a model, which no other thread may use any more; null: does nothing. Tensors that it has
/// returned stay.
TARE_API void tare_close(tare_model* model);

/// Describes the bundle as one JSON object: model, inputs with their dtypes and shapes, labels,
/// transforms, metrics and tensors, as `tare inspect --json` does. `*json` belongs to the model.
TARE_API int tare_info(tare_model* model, const char** json);

/// Predicts a batch: `inputs` are `count` host tensors [batch, ...], one for each input of the
/// model in its order, as tare::Predictor::predict() takes them: pictures in uint8 or float32 of 0
/// to 1, features and tokens in the dtype of the input. Writes at most `capacity` outputs, float32
/// [batch,
/// ...] on the host behind the activation, each for tare_release(), and their number into `*made`.
/// More outputs than `capacity` are TARE_BAD_INPUT.
TARE_API int tare_predict(tare_model* model, const DLTensor* const* inputs, size_t count,
                          DLManagedTensorVersioned** outputs, size_t capacity, size_t* made);

/// Predicts the samples of a JSON text, such as {"samples": [{"age": 3}], "top": 2}: rows of
/// tables, texts, pictures in Base64 and numbers, as docs/c-and-python.md describes them.
/// `*response` is a JSON text for tare_free().
TARE_API int tare_predict_json(tare_model* model, const char* request, char** response);

/// Reads a PNG, JPEG or WebP file as an input of a model of pictures: uint8 [1, channels, height,
/// width], for tare_release().
TARE_API int tare_read_picture(tare_model* model, const char* path,
                               DLManagedTensorVersioned** picture);

/// Decodes such a file whose `size` bytes are in memory.
TARE_API int tare_decode_picture(tare_model* model, const void* bytes, size_t size,
                                 DLManagedTensorVersioned** picture);

/// Names the predictions of an output of tare_predict(), [batch, ...], in JSON: for each sample the
/// `top` >= 1 most probable classes, or the values. `*json` is for tare_free().
TARE_API int tare_describe(tare_model* model, const DLTensor* output, int64_t top, char** json);

/// Frees a tensor that the library has returned; null: does nothing.
TARE_API void tare_release(DLManagedTensorVersioned* tensor);

/// Frees a text that the library has returned; null: does nothing.
TARE_API void tare_free(char* text);

#ifdef __cplusplus
}
#endif

#endif
