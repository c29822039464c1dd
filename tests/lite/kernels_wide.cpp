// The kernels with vectors and tiles as for AVX-512, compiled for the processor that the tests are
// compiled for.
#define TARE_LANES 16
#define TARE_LITE_ROWS 12
#define TARE_LITE_NAME "wide"
#define TARE_LITE_FUNCTION wide_kernels
#include "tare/lite/kernels_body.h"
