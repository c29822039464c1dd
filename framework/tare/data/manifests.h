// The download manifests of data/, built into the program; not for users.
#pragma once

namespace tare {

extern const char* const kMnistManifest;  ///< data/mnist.yaml

}  // namespace tare
