// Lists the families of models that are built in.
#include "models/convnet.h"
#include "models/gpt.h"
#include "models/lstm.h"
#include "models/mlp.h"
#include "models/resnet.h"
#include "models/resnet9.h"

namespace tare::models {

std::vector<Family> built_in_families() {
  return {mlp_family(),      convnet_family(),  resnet9_family(), resnet18_family(),
          resnet34_family(), resnet50_family(), gpt_family(),    lstm_family()};
}

}  // namespace tare::models
