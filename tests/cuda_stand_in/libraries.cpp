// Implements the functions of cuBLAS and cuDNN that must answer more than "done".
#include <cublasLt.h>
#include <cublas_v2.h>

#include "cards.h"
#include "exported.h"

namespace {

char something[8];

/// A handle is any address that is not null.
template <class Handle>
void give(Handle* result) {
  *result = reinterpret_cast<Handle>(something);
}

}  // namespace

// ---- cuBLAS

/// Handles differ, as LibTorch has a workspace for each. They live as long as the process.
EXPORTED cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = reinterpret_cast<cublasHandle_t>(new char);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasGetMathMode(cublasHandle_t, cublasMath_t* mode) {
  *mode = CUBLAS_DEFAULT_MATH;
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t, cublasPointerMode_t* mode) {
  *mode = CUBLAS_POINTER_MODE_HOST;
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  give(handle);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description,
                                                 cublasComputeType_t, cudaDataType_t) {
  give(description);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType,
                                                   uint64_t, uint64_t, int64_t) {
  give(layout);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  give(preference);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
    cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
    cublasLtMatmulHeuristicResult_t* results, int* found) {
  results[0] = {};
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

// ---- cuDNN, whose header is not in every toolkit: numbers as there, handles as plain pointers

namespace {
constexpr int kInt64 = 3, kDescriptor = 15, kInt32 = 23;                     // attribute types
constexpr int kKnobChoices = 302, kEngineWorkspace = 303, kKnobInfo = 1302;  // attribute names
constexpr int kPlanWorkspace = 402, kEngineCount = 802;
constexpr int64_t kEngines = 1000;
}  // namespace

EXPORTED size_t cudnnGetVersion() { return STAND_IN_CUDNN_VERSION; }
EXPORTED const char* cudnnGetErrorString(int) { return "an error of the CUDA stand-in"; }
EXPORTED int cudnnCreate(void** handle) {
  give(handle);
  return 0;
}

// The graph interface: every question for engines finds one. Descriptors are the caller's own.
EXPORTED int cudnnBackendCreateDescriptor(int, void** result) {
  give(result);
  return 0;
}
EXPORTED int cudnnBackendGetAttribute(void*, int name, int type, int64_t size, int64_t* count,
                                      void* values) {
  const bool one = type == kInt64 || type == kInt32 ||
                   (type == kDescriptor && name != kKnobChoices && name != kKnobInfo);
  if (count) *count = one ? 1 : 0;
  if (size < 1 || !values) return 0;
  const bool workspace = name == kEngineWorkspace || name == kPlanWorkspace;
  const auto bytes = static_cast<int64_t>(stand_in::setting("STAND_IN_CUDNN_BYTES", 0));
  if (type == kInt64)
    *static_cast<int64_t*>(values) = workspace ? bytes : name == kEngineCount ? kEngines : 0;
  if (type == kInt32) *static_cast<int32_t*>(values) = 0;  // the shared memory that an engine takes
  return 0;
}

// Batch normalisation takes no memory of its own.
EXPORTED int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void*, int, int, void*, void*,
                                                                      void*, void*, void*,
                                                                      size_t* bytes) {
  *bytes = 0;
  return 0;
}
EXPORTED int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void*, int, int, void*, void*, void*,
                                                               void*, void*, void*, void*,
                                                               size_t* bytes) {
  *bytes = 0;
  return 0;
}
EXPORTED int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void*, int, int, void*, void*,
                                                                  size_t* bytes) {
  *bytes = 0;
  return 0;
}
