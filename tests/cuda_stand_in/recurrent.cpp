// Plays cuDNN's recurrent layers as far as LibTorch asks for sizes: where each weight is in the one
// buffer of all weights, and what a call takes beside its results. cuDNN's header is not in every
// toolkit: numbers are as there.
#include <cstddef>
#include <cstdint>

#include "cards.h"
#include "exported.h"

namespace {

constexpr int kDouble = 1, kHalf = 2, kBFloat16 = 9;  // data types
constexpr int kBadParameter = 3;                      // a status

/// Holds what cudnnSetRNNDescriptor_v8 sets.
struct Recurrent {
  int mode = 0;  ///< RELU, TANH, LSTM, GRU
  int type = 0;
  size_t directions = 1, inputs = 0, hidden = 0, projected = 0, layers = 0;

  [[nodiscard]] size_t element() const {
    return type == kDouble ? 8 : type == kHalf || type == kBFloat16 ? 2 : 4;
  }
  /// The gates of a cell: half of cuDNN's linear layers, which are of the input, then of the state.
  [[nodiscard]] int gates() const {
    constexpr int kGates[] = {1, 1, 4, 3};
    return kGates[mode];
  }
  [[nodiscard]] bool projects() const { return projected < hidden; }
  [[nodiscard]] size_t inputs_of(size_t layer) const {
    return layer < directions ? inputs : projected * directions;
  }
  [[nodiscard]] size_t matrices_of(size_t layer) const {
    return static_cast<size_t>(gates()) * hidden * (inputs_of(layer) + projected) +
           (projects() ? projected * hidden : 0);
  }
  [[nodiscard]] size_t matrices_before(size_t layer) const {
    size_t sum = 0;
    for (size_t i = 0; i < layer; ++i) sum += matrices_of(i);
    return sum;
  }
  [[nodiscard]] size_t biases() const { return 2 * static_cast<size_t>(gates()) * hidden; }
  [[nodiscard]] size_t all_layers() const { return layers * directions; }
};
struct Sequences {
  size_t steps = 0, samples = 0;
};
struct Matrix {
  int type = 0, rows = 0, columns = 0;
};

/// Sets a matrix of elements from `offset` on.
int place(const Recurrent& of, char* weights, size_t offset, size_t rows, size_t columns,
          Matrix* matrix, void** address) {
  *matrix = {of.type, static_cast<int>(rows), static_cast<int>(columns)};
  *address = weights + offset * of.element();
  return 0;
}

}  // namespace

EXPORTED int cudnnCreateRNNDescriptor(Recurrent** result) {
  *result = new Recurrent;
  return 0;
}
EXPORTED int cudnnDestroyRNNDescriptor(Recurrent* descriptor) {
  delete descriptor;
  return 0;
}
EXPORTED int cudnnSetRNNDescriptor_v8(Recurrent* descriptor, int, int mode, int, int bidirectional,
                                      int, int type, int, int, int inputs, int hidden,
                                      int projected, int layers, void*, unsigned) {
  *descriptor = {.mode = mode,
                 .type = type,
                 .directions = bidirectional ? size_t{2} : size_t{1},
                 .inputs = static_cast<size_t>(inputs),
                 .hidden = static_cast<size_t>(hidden),
                 .projected = static_cast<size_t>(projected),
                 .layers = static_cast<size_t>(layers)};
  return 0;
}
EXPORTED int cudnnCreateRNNDataDescriptor(Sequences** result) {
  *result = new Sequences;
  return 0;
}
EXPORTED int cudnnDestroyRNNDataDescriptor(Sequences* descriptor) {
  delete descriptor;
  return 0;
}
EXPORTED int cudnnSetRNNDataDescriptor(Sequences* descriptor, int, int, int steps, int samples, int,
                                       const int*, void*) {
  *descriptor = {static_cast<size_t>(steps), static_cast<size_t>(samples)};
  return 0;
}
EXPORTED int cudnnCreateTensorDescriptor(Matrix** result) {
  *result = new Matrix;
  return 0;
}
EXPORTED int cudnnDestroyTensorDescriptor(Matrix* descriptor) {
  delete descriptor;
  return 0;
}
EXPORTED int cudnnGetTensorNdDescriptor(const Matrix* descriptor, int, int* type, int* dims,
                                        int* sizes, int* strides) {
  *type = descriptor->type;
  *dims = 3;
  sizes[0] = 1, sizes[1] = descriptor->rows, sizes[2] = descriptor->columns;
  strides[0] = descriptor->rows * descriptor->columns, strides[1] = descriptor->columns;
  strides[2] = 1;
  return 0;
}

EXPORTED int cudnnGetRNNWeightSpaceSize(void*, const Recurrent* of, size_t* bytes) {
  *bytes =
      (of->matrices_before(of->all_layers()) + of->all_layers() * of->biases()) * of->element();
  return 0;
}
/// The matrices of all layers come first, then all biases.
EXPORTED int cudnnGetRNNWeightParams(void*, const Recurrent* of, int pseudo_layer, size_t,
                                     char* weights, int linear, Matrix* matrix, void** address,
                                     Matrix* bias, void** bias_address) {
  const auto layer = static_cast<size_t>(pseudo_layer), id = static_cast<size_t>(linear);
  const auto gates = static_cast<size_t>(of->gates());
  if (layer >= of->all_layers() || id > 2 * gates || (id == 2 * gates && !of->projects()))
    return kBadParameter;
  if (matrix) {
    const size_t inputs = of->inputs_of(layer), of_input = gates * of->hidden * inputs,
                 begin = of->matrices_before(layer);
    if (id == 2 * gates)
      return place(*of, weights, begin + of->matrices_of(layer) - of->projected * of->hidden,
                   of->projected, of->hidden, matrix, address);
    const bool is_of_input = id < gates;
    const size_t columns = is_of_input ? inputs : of->projected;
    const size_t first = begin + (is_of_input ? 0 : of_input);
    return place(*of, weights, first + (is_of_input ? id : id - gates) * of->hidden * columns,
                 of->hidden, columns, matrix, address);
  }
  const size_t begin = of->matrices_before(of->all_layers()) + layer * of->biases();
  return place(*of, weights, begin + id * of->hidden, of->hidden, 1, bias, bias_address);
}
/// A training call keeps the gates, the cell and the output of each step.
EXPORTED int cudnnGetRNNTempSpaceSizes(void*, const Recurrent* of, int training,
                                       const Sequences* sequences, size_t* workspace,
                                       size_t* reserve) {
  *workspace = stand_in::setting("STAND_IN_CUDNN_BYTES", 0);
  const size_t of_step = (static_cast<size_t>(of->gates()) + 2) * of->hidden * of->element();
  if (reserve)
    *reserve =
        training ? of_step * sequences->steps * sequences->samples * of->all_layers() : size_t{0};
  return 0;
}
EXPORTED int cudnnDropoutGetStatesSize(void*, size_t* bytes) {
  *bytes = size_t{2} << 20;
  return 0;
}
