// Says which class the bundle of `train` gives an empty image, without LibTorch.
#include <tare/lite/lite.h>

#include <iostream>
#include <vector>

int main() {
  tare::lite::Model model("digits.tare");
  const std::vector<float> image(64);
  const tare::lite::Output output = model.predict({.shape = {1, 1, 8, 8}, .numbers = image.data()});
  float all = 0;
  for (const float probability : output.values) all += probability;
  std::cout << "small: " << all << " in " << output.shape[1] << " classes\n";
}
