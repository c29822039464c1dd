// Says which class the bundle of `train` gives an empty image.
#include <ATen/ops/zeros.h>
#include <tare/inference/predictor.h>
#include <tare/runtime/init.h>

#include <iostream>

int main() {
  tare::init({.cuda = tare::CudaMode::off});
  tare::Predictor predictor("digits.tare");
  const at::Tensor output = predictor.predict(at::zeros({1, 1, 8, 8}));
  std::cout << "classified: " << output.sum().item<float>() << " in " << output.size(1)
            << " classes\n";
}
