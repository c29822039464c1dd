// Padding, interpolation, dropout, cells and attention.
#include "trace/operator_cases.h"

namespace tare::plan {
void add_resizing(Cases& each) {
  each.function("pad_const", kImages, [](const Tensor& x) {
    return F::pad(x, F::PadFuncOptions({1, 1, 2, 0}));
  });
  each.function("pad_reflect", kImages, [](const Tensor& x) { return nn::ReflectionPad2d(1)(x); });
  each.function("pad_repl", kImages, [](const Tensor& x) { return nn::ReplicationPad2d(1)(x); });
  each.function("pad_reflect1", kSeries, [](const Tensor& x) { return nn::ReflectionPad1d(1)(x); });
  each.function("pad_repl1", kSeries, [](const Tensor& x) { return nn::ReplicationPad1d(1)(x); });
  each.function("pad_circ", kImages, [](const Tensor& x) {
    return F::pad(x, F::PadFuncOptions({1, 1, 1, 1}).mode(torch::kCircular));
  });
  auto up = [&](const std::string& n, std::vector<int64_t> s, F::InterpolateFuncOptions o) {
    each.function(n, s, [=](const Tensor& x) { return F::interpolate(x, o); });
  };
  up("up_nearest", kImages,
     F::InterpolateFuncOptions().scale_factor(std::vector<double>{2, 2}).mode(torch::kNearest));
  up("up_nearest1", {3, 5, 12},
     F::InterpolateFuncOptions().scale_factor(std::vector<double>{2}).mode(torch::kNearest));
  up("up_nearest_size", kImages,
     F::InterpolateFuncOptions().size(std::vector<int64_t>{9, 9}).mode(torch::kNearest));
  up("up_bilinear", kImages,
     F::InterpolateFuncOptions()
         .scale_factor(std::vector<double>{2, 2})
         .mode(torch::kBilinear)
         .align_corners(false));
  up("up_bilinear_ac", kImages,
     F::InterpolateFuncOptions()
         .size(std::vector<int64_t>{9, 9})
         .mode(torch::kBilinear)
         .align_corners(true));
  up("up_bicubic", kImages,
     F::InterpolateFuncOptions()
         .scale_factor(std::vector<double>{2, 2})
         .mode(torch::kBicubic)
         .align_corners(false));
  up("up_linear", {3, 5, 12},
     F::InterpolateFuncOptions()
         .scale_factor(std::vector<double>{2})
         .mode(torch::kLinear)
         .align_corners(false));
  up("up_trilinear", {2, 3, 4, 4, 4},
     F::InterpolateFuncOptions()
         .scale_factor(std::vector<double>{2, 2, 2})
         .mode(torch::kTrilinear)
         .align_corners(false));
  each.function("pixel_shuffle", kImages,
                [](const Tensor& x) { return torch::pixel_shuffle(x, 2); });
  each.function("dropout", kRows, [](const Tensor& x) { return torch::dropout(x, 0.5, true); });
  each.function("dropout_eval", kRows,
                [](const Tensor& x) { return torch::dropout(x, 0.5, false); });
  each.function("dropout_", kRows, [](const Tensor& x) {
    auto y = x * 2;
    return torch::dropout_(y, 0.5, true);
  });
  each.function("dropout2d", kImages, [](const Tensor& x) { return nn::Dropout2d(0.5)(x); });
  each.function("alpha_dropout", kRows, [](const Tensor& x) { return nn::AlphaDropout(0.5)(x); });
  each.function("lstm_cell", kRows,
                [](const Tensor& x) { return std::get<0>(nn::LSTMCell(12, 7)(x)); });
  each.function("gru_cell", kRows, [](const Tensor& x) { return nn::GRUCell(12, 7)(x); });
  each.function("rnn_cell", kRows, [](const Tensor& x) { return nn::RNNCell(12, 7)(x); });
  auto att = [&](const std::string& n, int64_t t, bool mask, bool causal, double p) {
    each.function(n, {2, 3, t, 8}, [=](const Tensor& x) {
      std::optional<Tensor> m;
      if (mask) m = torch::ones({t, t}, torch::kBool);
      return torch::scaled_dot_product_attention(x, in({2, 3, t, 8}), in({2, 3, t, 8}), m, p,
                                                 causal);
    });
  };
  att("sdpa", 6, false, false, 0);
  att("sdpa_causal", 6, false, true, 0);
  att("sdpa_mask", 6, true, false, 0);
  att("sdpa_drop", 6, false, false, 0.5);
  att("sdpa_causal_drop", 6, false, true, 0.5);
  att("sdpa_long", 600, false, true, 0);
  att("sdpa_long2", 1100, false, false, 0);
  each.function("sdpa_view", {2, 6, 24}, [](const Tensor& x) {
    auto p = x.split(8, 2);
    for (auto& t : p) t = t.view({2, 6, 2, 4}).transpose(1, 2);
    return torch::scaled_dot_product_attention(p[0], p[1], p[2], {}, 0, true)
        .transpose(1, 2)
        .reshape({2, 6, 8});
  });
  each.function("mha", {5, 3, 12}, [](const Tensor& x) {
    return std::get<0>(nn::MultiheadAttention(12, 3)(x, x, x));
  });
  each.function("encoder", {5, 3, 12}, [](const Tensor& x) {
    return nn::TransformerEncoderLayer(
        nn::TransformerEncoderLayerOptions(12, 3).dim_feedforward(20))(x);
  });
  each.function("encoder_gelu", {5, 3, 12}, [](const Tensor& x) {
    return nn::TransformerEncoderLayer(
        nn::TransformerEncoderLayerOptions(12, 3).dim_feedforward(20).activation(torch::kGELU))(x);
  });
  each.function("decoder", {5, 3, 12}, [](const Tensor& x) {
    return nn::TransformerDecoderLayer(
        nn::TransformerDecoderLayerOptions(12, 3).dim_feedforward(20))(x, in({4, 3, 12}));
  });
}

}  // namespace tare::plan
