// A recipe whose run takes half a second.
#pragma once

namespace tare::testing {

inline constexpr const char* kTinyRecipe = R"(name: tiny
batch: 32
workers: 0
save_every: 2
device: cpu
data: {name: generated_digits, count: 200, size: 12}
model: {name: resnet9, width: 4}
phases: [{name: all, epochs: 2, lr: 1.0e-2}]
)";

}  // namespace tare::testing
