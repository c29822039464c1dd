// GELU for processors with AVX-512.
#define TARE_LANES 16
#define TARE_GELU_FUNCTION avx512_gelu
#include "tare/memory/gelu_body.h"
