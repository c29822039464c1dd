// The gradients of strided 1x1 convolutions that lie channels innermost.
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <gtest/gtest.h>

#include <array>

namespace tare::testing {
namespace {

constexpr int64_t kSamples = 8, kSize = 16;

struct Strided {
  int64_t channels = 0, outputs = 0;
  bool transposed = false, innermost_weights = true;
};

std::array<at::Tensor, 3> gradients(const Strided& of, const at::Tensor& output,
                                    const at::Tensor& input, const at::Tensor& weight) {
  const std::array<int64_t, 2> stride{2, 2}, none{0, 0}, one{1, 1};
  auto [of_input, of_weight, of_bias] =
      at::convolution_backward(output, input, weight, at::IntArrayRef(of.outputs), stride, none,
                               one, of.transposed, none, 1, {true, true, true});
  return {of_input, of_weight, of_bias};
}

class StridedConvolution : public ::testing::TestWithParam<Strided> {};

TEST_P(StridedConvolution, HasTheGradientsOfItsProductsInFloat64) {
  const auto [channels, outputs, transposed, innermost_weights] = GetParam();
  const auto innermost = at::MemoryFormat::ChannelsLast;
  const at::Tensor input = at::randn({kSamples, channels, kSize, kSize}).contiguous(innermost);
  at::Tensor weight = at::randn(transposed ? at::IntArrayRef{channels, outputs, 1, 1}
                                           : at::IntArrayRef{outputs, channels, 1, 1});
  if (innermost_weights) weight = weight.contiguous(innermost);
  const at::Tensor output = at::randn_like(
      at::convolution(input, weight, {}, {2, 2}, {0, 0}, {1, 1}, transposed, {0, 0}, 1));
  const auto exact =
      gradients(GetParam(), output.to(at::kDouble), input.to(at::kDouble), weight.to(at::kDouble));
  const auto own = gradients(GetParam(), output, input, weight);
  for (size_t i = 0; i < own.size(); ++i)
    EXPECT_TRUE(at::allclose(own[i].to(at::kDouble), exact[i], 1e-4, 1e-3)) << "gradient " << i;
  EXPECT_TRUE(own[0].is_contiguous(innermost));
}

INSTANTIATE_TEST_SUITE_P(
    Channels, StridedConvolution,
    ::testing::Values(Strided{.channels = 3, .outputs = 8}, Strided{.channels = 4, .outputs = 16},
                      Strided{.channels = 4, .outputs = 16, .innermost_weights = false},
                      Strided{.channels = 7, .outputs = 5}, Strided{.channels = 8, .outputs = 8},
                      Strided{.channels = 20, .outputs = 8},
                      Strided{.channels = 8, .outputs = 3, .transposed = true}));

}  // namespace
}  // namespace tare::testing
