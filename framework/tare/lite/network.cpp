// Chooses the family of a bundle's model.
#include "tare/lite/network.h"

namespace tare::lite {

std::unique_ptr<const Network> make_network(const Bundle& bundle) {
  const std::string& family = bundle.manifest().family;
  if (family == "mlp") return make_mlp(bundle);
  if (family == "resnet9") return make_resnet9(bundle);
  if (family == "resnet18") return make_resnet(bundle, {2, 2, 2, 2}, false);
  if (family == "resnet34") return make_resnet(bundle, {3, 4, 6, 3}, false);
  if (family == "resnet50") return make_resnet(bundle, {3, 4, 6, 3}, true);
  if (family == "gpt") return make_gpt(bundle);
  throw Unsupported(family.empty() ? "needs a model of the registry"
                                   : "has no model '" + printable(family) + "'");
}

}  // namespace tare::lite
