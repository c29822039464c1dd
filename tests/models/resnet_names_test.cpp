// ResNet-18, -34 and -50 hold exactly the tensors of torchvision's, so that its weights load by
// name.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <array>
#include <string>
#include <vector>

#include "models/parameter_count.h"
#include "models/resnet.h"
#include "tare/model/registry.h"
#include "tare/trace/trace.h"

namespace tare {
namespace {

using testing::parameter_count;

struct Entry {
  std::string name;
  std::vector<int64_t> shape;
  bool operator==(const Entry&) const = default;
};
void PrintTo(const Entry& e, std::ostream* out) {
  *out << e.name << " " << torch::IntArrayRef(e.shape);
}

void add_norm(std::vector<Entry>& all, const std::string& name, int64_t channels) {
  for (const char* part : {"weight", "bias", "running_mean", "running_var"})
    all.push_back({name + "." + part, {channels}});
  all.push_back({name + ".num_batches_tracked", {}});
}

// torchvision.models.resnet50, state_dict(), 1000 classes.
std::vector<Entry> torchvision50() {
  std::vector<Entry> all{{"conv1.weight", {64, 3, 7, 7}}};
  add_norm(all, "bn1", 64);
  int64_t in = 64;
  for (int64_t layer = 0; layer < 4; ++layer) {
    const int64_t inner = 64 << layer, out = 256 << layer;
    for (int64_t b = 0; b < std::array{3, 4, 6, 3}[static_cast<size_t>(layer)]; ++b) {
      const std::string name = "layer" + std::to_string(layer + 1) + "." + std::to_string(b) + ".";
      all.push_back({name + "conv1.weight", {inner, in, 1, 1}});
      add_norm(all, name + "bn1", inner);
      all.push_back({name + "conv2.weight", {inner, inner, 3, 3}});
      add_norm(all, name + "bn2", inner);
      all.push_back({name + "conv3.weight", {out, inner, 1, 1}});
      add_norm(all, name + "bn3", out);
      if (b == 0) {
        all.push_back({name + "downsample.0.weight", {out, in, 1, 1}});
        add_norm(all, name + "downsample.1", out);
      }
      in = out;
    }
  }
  all.push_back({"fc.weight", {1000, 2048}});
  all.push_back({"fc.bias", {1000}});
  return all;
}

// torchvision.models.resnet18 and resnet34, state_dict(), 1000 classes.
std::vector<Entry> torchvision(const std::vector<int64_t>& blocks) {
  std::vector<Entry> all{{"conv1.weight", {64, 3, 7, 7}}};
  add_norm(all, "bn1", 64);
  int64_t in = 64;
  for (size_t layer = 0; layer < blocks.size(); ++layer) {
    const int64_t out = 64 << layer;
    for (int64_t b = 0; b < blocks[layer]; ++b) {
      const std::string name = "layer" + std::to_string(layer + 1) + "." + std::to_string(b) + ".";
      all.push_back({name + "conv1.weight", {out, in, 3, 3}});
      add_norm(all, name + "bn1", out);
      all.push_back({name + "conv2.weight", {out, out, 3, 3}});
      add_norm(all, name + "bn2", out);
      if (in != out) {
        all.push_back({name + "downsample.0.weight", {out, in, 1, 1}});
        add_norm(all, name + "downsample.1", out);
      }
      in = out;
    }
  }
  all.push_back({"fc.weight", {1000, 512}});
  all.push_back({"fc.bias", {1000}});
  return all;
}

std::vector<Entry> entries(const Model& model) {
  std::vector<Entry> all;
  for (const auto& [name, tensor] : model.state()) all.push_back({name, tensor.sizes().vec()});
  return all;
}

TEST(ResNetNames, ResNet18IsTorchvisions) {
  const Model model = models::make("resnet18", {.classes = 1000});
  EXPECT_EQ(model.parameters().size(), 62u);
  EXPECT_EQ(model.state().size(), 122u);
  EXPECT_EQ(parameter_count(model), 11'689'512);
  EXPECT_THAT(entries(model), ::testing::UnorderedElementsAreArray(torchvision({2, 2, 2, 2})));
}

TEST(ResNetNames, ResNet34IsTorchvisions) {
  const Model model = models::make("resnet34", {.classes = 1000});
  EXPECT_EQ(parameter_count(model), 21'797'672);
  EXPECT_THAT(entries(model), ::testing::UnorderedElementsAreArray(torchvision({3, 4, 6, 3})));
}

TEST(ResNetNames, ResNet50IsTorchvisions) {
  const plan::MetaScope without_memory;
  const Model model = models::make("resnet50", {.classes = 1000});
  EXPECT_EQ(model.parameters().size(), 161u);
  EXPECT_EQ(model.state().size(), 320u);
  EXPECT_EQ(parameter_count(model), 25'557'032);
  EXPECT_THAT(entries(model), ::testing::UnorderedElementsAreArray(torchvision50()));
}

// In its second layer the 3x3 convolution halves the image, as in torchvision, not the first 1x1.
TEST(ResNetNames, ResNet50StridesIn3x3) {
  const Model model = models::make("resnet50", {.width = 4});
  const auto& net = model.as<models::ResNetImpl>();
  const auto& block = *net.layers[1]->ptr<models::BottleneckImpl>(0);
  EXPECT_EQ(block.conv1->options.stride()->at(0), 1);
  EXPECT_EQ(block.conv2->options.stride()->at(0), 2);
}

// A few names written out, so that the list above is not only checked against the same idea of it.
TEST(ResNetNames, HoldsWellKnownEntries) {
  const auto all = entries(models::make("resnet18", {.classes = 1000}));
  for (const Entry& known : std::vector<Entry>{{"layer1.0.conv1.weight", {64, 64, 3, 3}},
                                               {"layer2.0.downsample.0.weight", {128, 64, 1, 1}},
                                               {"layer2.0.downsample.1.running_var", {128}},
                                               {"layer4.1.bn2.num_batches_tracked", {}},
                                               {"fc.weight", {1000, 512}}}) {
    EXPECT_THAT(all, ::testing::Contains(known));
  }
}

TEST(ResNetNames, WeightsStartAsTorchvisions) {
  torch::manual_seed(0);
  const Model model = models::make("resnet18", {.classes = 10});
  for (const auto& p : model.parameters()) {
    if (p.name == "layer3.0.conv2.weight") {
      const double deviation = std::sqrt(2.0 / (256 * 9));  // Kaiming, fan out
      EXPECT_NEAR(p.tensor.std().item<double>(), deviation, 0.01 * deviation);
    }
    if (p.name == "layer3.0.bn2.weight") {
      EXPECT_TRUE(p.tensor.eq(1).all().item<bool>());
    }
    if (p.name == "layer3.0.bn2.bias") {
      EXPECT_TRUE(p.tensor.eq(0).all().item<bool>());
    }
  }
}

}  // namespace
}  // namespace tare
