// Stands in for the driver, libcuda.so.1, and for a file that is not a plug-in: init() asks only
// whether it loads.
extern "C" __attribute__((visibility("default"))) int cuInit(unsigned) {
  return 100;  // CUDA_ERROR_NO_DEVICE
}
