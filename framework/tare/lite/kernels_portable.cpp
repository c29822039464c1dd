// The kernels for every processor.
#define TARE_LANES 4
#define TARE_LITE_ROWS 6
#define TARE_LITE_NAME "portable"
#define TARE_LITE_FUNCTION portable_kernels
#include "tare/lite/kernels_body.h"
