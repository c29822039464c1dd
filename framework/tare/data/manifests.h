// The download manifests of data/, compiled in. Internal.
#pragma once

namespace tare {

extern const char* const kMnistManifest;  ///< data/mnist.yaml

}  // namespace tare
