// Marks the functions that LibTorch finds in the stand-in.
#pragma once

#define EXPORTED extern "C" __attribute__((visibility("default")))
