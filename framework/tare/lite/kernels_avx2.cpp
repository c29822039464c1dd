// The kernels for processors with AVX2.
#define TARE_LANES 8
#define TARE_LITE_ROWS 6
#define TARE_LITE_NAME "avx2"
#define TARE_LITE_FUNCTION avx2_kernels
#include "tare/lite/kernels_body.h"
