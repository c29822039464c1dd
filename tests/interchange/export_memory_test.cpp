// The memory that an export takes beside the model: its weights once, two tensors, and what the
// comparison with the model computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "interchange/exported.h"
#include "support/temp_dir.h"
#include "tare/memory/backend.h"

namespace tare::interchange {
namespace {

using testing::TempDir;

struct Sizes {
  int64_t all = 0, largest = 0;  // bytes
};

Sizes sizes_of(const std::vector<NamedTensor>& tensors) {
  Sizes sizes;
  for (const NamedTensor& one : tensors) {
    const auto bytes = static_cast<int64_t>(one.tensor.nbytes());
    sizes.all += bytes;
    sizes.largest = std::max(sizes.largest, bytes);
  }
  return sizes;
}

/// Returns the most bytes that a forward of the largest compared batch takes, and those of its
/// output.
int64_t forward_bytes(const Exported& net, const at::Tensor& sample) {
  const c10::AutoGradMode without_gradients(false);
  const at::Tensor batch = sample.repeat_interleave(5, 0);
  const memory::PeakScope scope(c10::kCPU);
  (void)net.model.forward(Batch(batch));
  return scope.peak_above_start_bytes() + static_cast<int64_t>(batch.nbytes());
}

TEST(ExportMemory, IsTheWeightsAndTwoTensorsBesideTheComparison) {
  const TempDir folder;
  const std::vector<int64_t> photo{3, 32, 32};
  const Exported mlp("mlp", {.classes = 10, .sample_shape = photo, .hidden = {500, 300}},
                     {.sample_shape = photo});
  const Exported resnet("resnet18", {.classes = 10, .sample_shape = photo, .width = 16},
                        {.sample_shape = photo});
  const Exported gpt("gpt",
                     {.classes = 90, .sample_shape = {32}, .width = 96, .layers = 3, .heads = 3},
                     {.sample_shape = {32}, .input = "int64"});
  for (const Exported* net : {&mlp, &resnet, &gpt})
    for (const FileFormat& format : file_formats()) {
      if (format.name == "gguf" && net != &gpt) continue;
      const Sizes weights = sizes_of(net->tensors);
      const at::Tensor sample =
          net == &gpt ? at::zeros({1, 32}, at::kLong) : at::zeros({1, 3, 32, 32});
      const int64_t compares = format.graph ? forward_bytes(*net, sample) : 0;
      const memory::PeakScope scope(c10::kCPU);
      export_file(folder / ("net" + format.extension), format.name, net->manifest, net->tensors);
      const int64_t peak = scope.peak_above_start_bytes();
      EXPECT_LE(peak, weights.all + 2 * weights.largest + compares)
          << net->manifest.model.name << " as " << format.name;
    }
}

}  // namespace
}  // namespace tare::interchange
