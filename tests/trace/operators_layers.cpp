// Normalisations, pools and convolutions.
#include "trace/operator_cases.h"

namespace tare::plan {
namespace {

/// Returns a layer whose convolutions have their weights laid out channels-last.
template <class Layer>
Layer channels_last(Layer layer) {
  for (Tensor& p : layer->parameters())
    if (p.dim() == 4) p.set_data(p.contiguous(torch::MemoryFormat::ChannelsLast));
  return layer;
}

/// One channel, or one pixel, has its channels last and first at once.
void add_channels_last(Cases& each) {
  const std::vector<std::pair<std::string, std::vector<int64_t>>> images{
      {"cl", {2, 8, 6, 6}},
      {"cl_of_one_channel", {2, 1, 6, 6}},
      {"cl_of_one_pixel", {2, 8, 1, 1}},
      {"cl_of_one_sample", {1, 8, 6, 6}},
      {"cl_of_one_channel_and_pixel", {2, 1, 1, 1}}};
  for (const auto& image : images) {
    const auto& suffix = image.first;
    const auto& sizes = image.second;
    const int64_t channels = sizes[1];
    const auto add = [&, suffix, sizes](const std::string& name, const Cases::Function& f) {
      each.function(name + '_' + suffix, sizes, [f](const Tensor& x) {
        return f(x.contiguous(torch::MemoryFormat::ChannelsLast));
      });
      // A leaf shows the layout of its gradient: another one than its own is copied.
      each.add(name + "_of_a_leaf_" + suffix, [=] {
        const auto last = at::TensorOptions().memory_format(torch::MemoryFormat::ChannelsLast);
        back(f(torch::empty(sizes, last).uniform_().requires_grad_()));
      });
    };
    add("conv2d", [=](const Tensor& x) {
      return channels_last(nn::Conv2d(nn::Conv2dOptions(channels, 6, 3).padding(1)))(x);
    });
    add("conv2d_strided", [=](const Tensor& x) {
      const auto options = nn::Conv2dOptions(channels, 6, 1).stride(2);
      return channels_last(nn::Conv2d(nn::Conv2dOptions(options).bias(false)))(x);
    });
    add("conv2d_to_one", [=](const Tensor& x) {
      return channels_last(nn::Conv2d(nn::Conv2dOptions(channels, 1, 3).padding(1)))(x);
    });
    // No bias in front of a batch norm: its gradient would be zero, and rounding alone.
    add("convs2d", [=](const Tensor& x) {
      auto first = channels_last(nn::Conv2d(nn::Conv2dOptions(channels, 8, 3).padding(1)));
      auto second = channels_last(nn::Conv2d(nn::Conv2dOptions(8, 8, 3).padding(1).bias(false)));
      return nn::BatchNorm2d(8)(second->forward(torch::relu(first->forward(x)))) + x;
    });
    add("convs2d_to_one", [=](const Tensor& x) {
      auto first =
          channels_last(nn::Conv2d(nn::Conv2dOptions(channels, 1, 3).padding(1).bias(false)));
      auto second = channels_last(nn::Conv2d(nn::Conv2dOptions(1, 8, 3).padding(1)));
      Tensor norm = nn::BatchNorm2d(nn::BatchNorm2dOptions(1))(first->forward(x));
      return torch::relu(second->forward(torch::relu_(norm)));
    });
    add("batch_norm2d_plain_eval", [=](const Tensor& x) {
      nn::BatchNorm2d b(nn::BatchNorm2dOptions(channels).affine(false));
      b->eval();
      return b(x);
    });
    add("max_pool2d", [](const Tensor& x) { return torch::max_pool2d(x, 3, 2, 1); });
    add("aavg2_1", [](const Tensor& x) {
      return torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1);
    });
    add("batch_norm2d_eval", [=](const Tensor& x) {
      nn::BatchNorm2d b(channels);
      b->eval();
      return b(x);
    });
    add("batch_norm2d_eval_weights", [=](const Tensor& x) {  // no gradient of the input
      nn::BatchNorm2d b(channels);
      b->eval();
      return b(x.detach());
    });
    if (channels > 1 || sizes[2] > 1) {
      add("batch_norm2d_plain", [=](const Tensor& x) {
        return nn::BatchNorm2d(nn::BatchNorm2dOptions(channels).affine(false))(x);
      });
      add("batch_norm2d", [=](const Tensor& x) { return nn::BatchNorm2d(channels)(x); });
    }
  }
}

}  // namespace

void add_layers(Cases& each) {
  add_channels_last(each);
  each.function("layer_norm", kRows,
                [](const Tensor& x) { return nn::LayerNorm(nn::LayerNormOptions({12}))(x); });
  each.function("layer_norm3", kSeries,
                [](const Tensor& x) { return nn::LayerNorm(nn::LayerNormOptions({12}))(x); });
  each.function("layer_norm2d", kSeries, [](const Tensor& x) {
    return nn::LayerNorm(nn::LayerNormOptions({5, 12}))(x);
  });
  each.function("layer_norm_plain", kRows, [](const Tensor& x) {
    return nn::LayerNorm(nn::LayerNormOptions({12}).elementwise_affine(false))(x);
  });
  each.function("layer_norm_t", {3, 12, 5}, [](const Tensor& x) {
    return nn::LayerNorm(nn::LayerNormOptions({12}))(x.transpose(1, 2));
  });
  each.function("group_norm", kImages, [](const Tensor& x) { return nn::GroupNorm(4, 8)(x); });
  each.function("group_norm_plain", kImages, [](const Tensor& x) {
    return nn::GroupNorm(nn::GroupNormOptions(4, 8).affine(false))(x);
  });
  each.function("group_norm1", {7, 12}, [](const Tensor& x) { return nn::GroupNorm(4, 12)(x); });
  each.function("instance_norm", kImages, [](const Tensor& x) { return nn::InstanceNorm2d(8)(x); });
  each.function("batch_norm1d", kRows, [](const Tensor& x) { return nn::BatchNorm1d(12)(x); });
  each.function("batch_norm1d_eval", kRows, [](const Tensor& x) {
    nn::BatchNorm1d b(12);
    b->eval();
    return b(x);
  });
  each.function("batch_norm2d_plain_eval", kImages, [](const Tensor& x) {
    nn::BatchNorm2d b(nn::BatchNorm2dOptions(8).affine(false));
    b->eval();
    return b(x);
  });
  each.function("batch_norm2d_eval_weights", kImages, [](const Tensor& x) {
    nn::BatchNorm2d b(8);
    b->eval();
    return b(x.detach());
  });
  each.function("batch_norm1d3", kSeries, [](const Tensor& x) { return nn::BatchNorm1d(5)(x); });
  each.function("batch_norm2d", kImages, [](const Tensor& x) { return nn::BatchNorm2d(8)(x); });
  each.function("batch_norm2d_eval", kImages, [](const Tensor& x) {
    nn::BatchNorm2d b(8);
    b->eval();
    return b(x);
  });
  each.function("batch_norm2d_plain", kImages, [](const Tensor& x) {
    return nn::BatchNorm2d(nn::BatchNorm2dOptions(8).affine(false))(x);
  });
  each.function("batch_norm2d_nostats", kImages, [](const Tensor& x) {
    return nn::BatchNorm2d(nn::BatchNorm2dOptions(8).track_running_stats(false))(x);
  });
  each.function("batch_norm3d", {2, 4, 3, 3, 3},
                [](const Tensor& x) { return nn::BatchNorm3d(4)(x); });
  each.function("lrn", kImages, [](const Tensor& x) { return nn::LocalResponseNorm(3)(x); });
  each.function("normalize", kRows, [](const Tensor& x) { return F::normalize(x); });
  each.function("rms_norm", kRows,
                [](const Tensor& x) { return torch::rms_norm(x, {12}, in({12})); });
  each.function("max_pool2d", kImages, [](const Tensor& x) { return torch::max_pool2d(x, 2); });
  each.function("max_pool2d_s", kImages,
                [](const Tensor& x) { return torch::max_pool2d(x, 3, 2, 1); });
  each.function("max_pool1d", kSeries, [](const Tensor& x) { return torch::max_pool1d(x, 2); });
  each.function("max_pool3d", kVolumes, [](const Tensor& x) { return torch::max_pool3d(x, 2); });
  each.function("avg_pool1d", kSeries, [](const Tensor& x) { return torch::avg_pool1d(x, 2); });
  each.function("avg_pool2d", kImages, [](const Tensor& x) { return torch::avg_pool2d(x, 2); });
  each.function("avg_pool3d", kVolumes, [](const Tensor& x) { return torch::avg_pool3d(x, 2); });
  each.function("aavg1", kSeries, [](const Tensor& x) { return torch::adaptive_avg_pool1d(x, 4); });
  each.function("aavg2", kImages, [](const Tensor& x) {
    return torch::adaptive_avg_pool2d(x, {2, 2});
  });
  each.function("aavg2_1", kImages, [](const Tensor& x) {
    return torch::adaptive_avg_pool2d(x, {1, 1});
  });
  each.function("aavg2_cl", kImages, [](const Tensor& x) {
    return torch::adaptive_avg_pool2d(x.contiguous(torch::MemoryFormat::ChannelsLast), {2, 2});
  });
  each.function("aavg3", kVolumes, [](const Tensor& x) {
    return torch::adaptive_avg_pool3d(x, {2, 2, 2});
  });
  each.function("amax1", kSeries,
                [](const Tensor& x) { return std::get<0>(torch::adaptive_max_pool1d(x, 4)); });
  each.function("amax2", kImages, [](const Tensor& x) {
    return std::get<0>(torch::adaptive_max_pool2d(x, {2, 2}));
  });
  each.function("amax3", kVolumes, [](const Tensor& x) {
    return std::get<0>(torch::adaptive_max_pool3d(x, {2, 2, 2}));
  });
  each.function("lp_pool2d", kImages, [](const Tensor& x) { return nn::LPPool2d(2, 2)(x); });
  each.function("frac_pool", kImages, [](const Tensor& x) {
    return nn::FractionalMaxPool2d(nn::FractionalMaxPool2dOptions(2).output_size(3))(x);
  });
  each.function("conv1d", kSeries, [](const Tensor& x) { return nn::Conv1d(5, 6, 3)(x); });
  each.function("conv2d", kImages, [](const Tensor& x) { return nn::Conv2d(8, 6, 3)(x); });
  each.function("conv2d_dw", kImages, [](const Tensor& x) {
    return nn::Conv2d(nn::Conv2dOptions(8, 8, 3).groups(8))(x);
  });
  each.function("conv2d_dil", kImages, [](const Tensor& x) {
    return nn::Conv2d(nn::Conv2dOptions(8, 8, 3).dilation(2))(x);
  });
  each.function("conv3d", kVolumes, [](const Tensor& x) { return nn::Conv3d(3, 4, 3)(x); });
  each.function("convt1d", kSeries,
                [](const Tensor& x) { return nn::ConvTranspose1d(5, 6, 3)(x); });
  each.function("convt2d", kImages, [](const Tensor& x) {
    return nn::ConvTranspose2d(nn::ConvTranspose2dOptions(8, 6, 2).stride(2))(x);
  });
  each.function("convt3d", kVolumes,
                [](const Tensor& x) { return nn::ConvTranspose3d(3, 4, 3)(x); });
}

}  // namespace tare::plan
