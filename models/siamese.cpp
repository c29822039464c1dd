// Builds the network that compares two images.
#include "models/siamese.h"

#include "models/common.h"
#include "models/resnet.h"
#include "tare/base/error.h"

namespace tare::models {
namespace {

constexpr int64_t kSiameseWidth = 64, kSiameseHidden = 256, kSiameseStages = 4, kBlocks = 2;

Chain stage_of(int64_t in, int64_t out, int64_t stride) {
  Chain stage;
  for (int64_t block = 0; block < kBlocks; ++block)
    stage->push_back(BasicBlock(block == 0 ? in : out, out, block == 0 ? stride : 1));
  return stage;
}

}  // namespace

SiameseImpl::SiameseImpl(const ModelOptions& options)
    : channels(image_channels("siamese", options)), dropout(options.dropout) {
  using namespace torch::nn;
  const int64_t width = or_default(options.width, kSiameseWidth);
  resnet->push_back(conv(channels, width, 7, 2));
  resnet->push_back(BatchNorm2d(width));
  resnet->push_back(ReLU());
  resnet->push_back(MaxPool2d(MaxPool2dOptions(3).stride(2).padding(1)));
  int64_t in = width;
  for (int64_t stage = 0; stage < kSiameseStages; ++stage) {
    const int64_t out = width << stage;
    resnet->push_back(stage_of(in, out, stage == 0 ? 1 : 2));
    in = out;
  }
  resnet->push_back(AdaptiveAvgPool2d(1));
  register_module("resnet", resnet);
  fc->push_back(Linear(2 * in, kSiameseHidden));
  fc->push_back(ReLU());
  fc->push_back(Linear(kSiameseHidden, options.classes));
  register_module("fc", fc);
  init_weights(*this);
}

torch::Tensor SiameseImpl::forward(const torch::Tensor& left, const torch::Tensor& right) {
  require_images("models.siamese", left, channels);
  require_images("models.siamese", right, channels);
  if (left.size(0) != right.size(0))
    throw ShapeError("models.siamese",
                     "as many images on the right as on the left: " + std::to_string(left.size(0)),
                     std::to_string(right.size(0)));
  const auto one = resnet->forward(left).flatten(1), other = resnet->forward(right).flatten(1);
  return fc->forward(drop(torch::cat({one, other}, /*dim=*/1), dropout, is_training()));
}

void add_siamese(Registry& all) {
  Family family{.name = "siamese",
                .summary = "classifies pairs of images by one ResNet-18 for both",
                .sample_shape = {1, 28, 28},
                .options = {"width", "dropout"},
                .head = "fc.2",
                .make = {}};
  add(all, make_family<Siamese>(std::move(family), {{"stem", {"resnet.0", "resnet.1"}},
                                                    {"resnet.4", {"resnet.4"}},
                                                    {"resnet.5", {"resnet.5"}},
                                                    {"resnet.6", {"resnet.6"}},
                                                    {"resnet.7", {"resnet.7"}},
                                                    {"fc.0", {"fc.0"}},
                                                    {"fc.2", {"fc.2"}}}));
}

}  // namespace tare::models
