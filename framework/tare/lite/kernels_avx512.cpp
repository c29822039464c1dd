// The kernels for processors with AVX-512.
#define TARE_LANES 16
#define TARE_LITE_ROWS 12
#define TARE_LITE_NAME "avx512"
#define TARE_LITE_FUNCTION avx512_kernels
#include "tare/lite/kernels_body.h"
