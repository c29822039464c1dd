// GELU for processors with AVX2.
#define TARE_LANES 8
#define TARE_GELU_FUNCTION avx2_gelu
#include "tare/memory/gelu_body.h"
