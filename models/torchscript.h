// Takes the program of a TorchScript file as a model.
#pragma once

#include <string>

#include "tare/model/registry.h"

namespace tare::models {

/// Configures what only this family has.
struct TorchscriptOptions {
  std::string file{};  ///< what torch.jit.save, or Module::save in C++, has written
  /// Says that the file's author may run a program here: that is what the file holds.
  bool trust = false;
  /// The XXH3 of the file, as checkpoints and bundles note it; another file is refused. Empty: any.
  std::string content{};
};
void visit_fields(auto& visit, TorchscriptOptions& o) {
  visit("file", o.file);
  visit("trust", o.trust);
  visit("content", o.content, config::text_or_null());
}

/// Loads the program of a TorchScript file as a model on the CPU. Its parameters and buffers are
/// the model's, with the names that they have in Python, and train as those of any model; the
/// children of the program are the layer groups. The interpreter runs the program operator by
/// operator, without fusing any, as eager PyTorch does. A forward takes one to four tensors and
/// returns a tensor, or a tuple or a list of tensors. The program runs in this process and can do
/// what operators of LibTorch can, such as reading files: load none that you do not trust. Throws
/// IoError if the file cannot be read, FormatError if it holds no program of TorchScript or one
/// without parameters, such as one that torch.jit.freeze has made.
[[nodiscard]] Model torchscript(const std::string& file);

}  // namespace tare::models
