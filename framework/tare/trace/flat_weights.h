// The weights of recurrent layers on a card, which lie in one block. Internal.
#pragma once

namespace torch::nn {
class Module;
}

namespace tare::plan {

/// Lays the weights of the module, if it is a recurrent layer of torch::nn, in one block, as
/// Module::to() does on a card after it has moved them. For a recording of a card; the tensors are
/// on the meta device.
void flatten_weights(torch::nn::Module& module);

}  // namespace tare::plan
