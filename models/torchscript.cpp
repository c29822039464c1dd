// Loads programs of TorchScript, and mirrors their modules, so that they train as any model.
#include "models/torchscript.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/nn.h>

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "tare/base/error.h"

namespace tare::models {
namespace {

constexpr const char* kMake = "models.torchscript";
constexpr const char* kAllowed = "a file of torch.jit.save, whose forward takes and gives tensors";

/// Loads with real values, also for a model of meta tensors.
torch::jit::Module loaded(const std::string& file) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) throw IoError("io.open", file, ENOENT);
  if (!std::filesystem::is_regular_file(status))
    throw ConfigError(kMake, "file", "is no regular file", kAllowed, file);
  const c10::impl::ExcludeDispatchKeyGuard real{c10::DispatchKey::Fake};
  try {
    return torch::jit::load(file, c10::Device(c10::kCPU));
  } catch (const c10::Error& cause) {
    throw FormatError(kMake, file, "the program",
                      "is not one of TorchScript that this LibTorch reads; give a file of "
                      "torch.jit.save (weights alone belong into model.weights): " +
                          printable(cause.what_without_backtrace()));
  }
}

/// Returns the tensor itself, or one of the same shape where factory calls make meta tensors.
torch::Tensor placed(const torch::Tensor& tensor) {
  torch::Tensor meta = torch::empty_like(tensor);
  if (!meta.is_meta()) return tensor;
  return meta.requires_grad_(tensor.requires_grad());
}

/// Shares the parameters and buffers of one module of the program, and its mode of training.
class Mirror : public torch::nn::Module {
 public:
  explicit Mirror(torch::jit::Module script) : script_(std::move(script)) {
    for (const auto& [name, tensor] : script_.named_parameters(/*recurse=*/false))
      register_parameter(name, shared(name, tensor), tensor.requires_grad());
    for (const auto& [name, tensor] : script_.named_buffers(/*recurse=*/false))
      register_buffer(name, shared(name, tensor));
    for (const auto& [name, child] : script_.named_children())
      register_module(name, std::make_shared<Mirror>(child));
  }

  void train(bool on) override {
    if (script_.hasattr("training")) script_.setattr("training", on);
    torch::nn::Module::train(on);
  }

 protected:
  [[nodiscard]] torch::jit::Module& script() { return script_; }

 private:
  torch::Tensor shared(const std::string& name, const torch::Tensor& tensor) {
    const torch::Tensor own = placed(tensor);
    if (!own.is_same(tensor)) script_.setattr(name, own);
    return own;
  }

  torch::jit::Module script_;
};

/// Returns the tensors that a forward gives; throws ShapeError for anything else.
Outputs outputs_of(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor();
  if (value.isTensorList()) return value.toTensorVector();
  std::vector<torch::Tensor> tensors;
  if (value.isTuple()) {
    for (const auto& element : value.toTupleRef().elements())
      if (element.isTensor()) tensors.push_back(element.toTensor());
    if (tensors.size() == value.toTupleRef().elements().size()) return tensors;
  }
  throw ShapeError(kMake, "a tensor, or a tuple or list of tensors, as result of forward",
                   "a " + value.tagKind());
}

/// Runs the program.
struct TorchscriptImpl final : Mirror {
  explicit TorchscriptImpl(const std::string& file) : Mirror(loaded(file)) {
    if (!script().find_method("forward"))
      throw FormatError(kMake, file, "forward", "is not among the methods of the program");
    if (parameters().empty())
      throw FormatError(kMake, file, "parameters",
                        "are not in the program, so that nothing can be trained: save it before "
                        "torch.jit.freeze");
    train(true);  // as every model begins, whatever the mode that was saved
  }

  Outputs forward(const Batch& batch) {
    std::vector<c10::IValue> inputs;
    for (const auto& input : batch.inputs) inputs.emplace_back(input.tensor);
    const torch::jit::GraphOptimizerEnabledGuard eager(false);
    return outputs_of(script().forward(std::move(inputs)));
  }
};
TORCH_MODULE(Torchscript);

/// Throws ConfigError unless the options name a program, and say that it is trusted.
void check(const TorchscriptOptions& options) {
  if (options.file.empty())
    throw ConfigError(kMake, "options.file", "is missing", kAllowed, "nothing");
  std::error_code error;
  if (!std::filesystem::exists(options.file, error))
    throw ConfigError(kMake, "options.file", "is not there", kAllowed, options.file);
  if (!options.trust)
    throw ConfigError(
        kMake, "options.trust",
        "must be true, because " + printable(options.file) + " is a program that runs here",
        "true, if you know where the file comes from", "false");
  if (options.content.empty()) return;
  const std::string content = program_content(options.file);
  if (content != options.content)
    throw ConfigError(kMake, "options.file",
                      "is another program than the one that the model was trained with, whose hash "
                      "is " +
                          printable(options.content),
                      "that file", options.file + " with the hash " + content);
}

}  // namespace

Model torchscript(const std::string& file) { return Model(Torchscript(file)); }

void add_torchscript(Registry& all) {
  all.add<TorchscriptOptions>(
      "torchscript", "computes what the program of a TorchScript file does",
      [](const TorchscriptOptions& own) {
        Family family{.sample_shape = {},
                      .make = [file = own.file](const ModelOptions&) { return torchscript(file); }};
        family.check = [own] { check(own); };
        family.program = own.file;
        return family;
      });
}

}  // namespace tare::models
