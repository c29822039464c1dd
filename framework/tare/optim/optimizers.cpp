// The registry of optimizers, and the options that each kind takes.
#include "tare/base/error.h"
#include "tare/optim/optimizer.h"

namespace tare {

namespace optimizers {
void add_entries(Registry& all);  // CMake makes it from the list in CMakeLists.txt
}

namespace {

/// An unknown kind has nothing; config::validate refuses it.
OptimizerKind kind_of(const OptimizerOptions& options) {
  const auto& all = optimizers::registry();
  return all.contains(options.kind) ? all.make(options.kind, options.options)
                                    : OptimizerKind{.weight_decay = true};
}

}  // namespace

optimizers::Registry& optimizers::registry() {
  static Registry all("optimizer", add_entries);
  return all;
}

std::vector<std::string> optimizer_kinds() { return optimizers::registry().names(); }

void check_optimizer(const OptimizerOptions& options) {
  const OptimizerKind has = kind_of(options);
  const auto check = [&](const char* name, const std::optional<double>& value,
                         const std::optional<double>& known) {
    if (value && !known)
      throw ConfigError("optimizer", name, "is not taken by " + options.kind, "omit it",
                        config::to_node(*value).text);
  };
  check("momentum", options.momentum, has.momentum);
  check("beta2", options.beta2, has.beta2);
  check("eps", options.eps, has.eps);
  const double decay = options.weight_decay;  // 0 is true of a kind without
  if (!has.weight_decay && decay != 0 && decay != OptimizerOptions().weight_decay)
    check("weight_decay", decay, std::nullopt);
  if (!has.weight_decay && options.decay_norm_and_bias)
    throw ConfigError("optimizer", "decay_norm_and_bias", "is not taken by " + options.kind,
                      "omit it", "true");
  if (options.nesterov && !has.nesterov)
    throw ConfigError("optimizer", "nesterov", "is not taken by " + options.kind, "false", "true");
  if (options.nesterov && momentum_of(options) <= 0)
    throw ConfigError("optimizer", "nesterov", "needs momentum > 0", "false", "true");
}

double momentum_of(const OptimizerOptions& options) {
  return options.momentum.value_or(kind_of(options).momentum.value_or(0));
}

double beta2_of(const OptimizerOptions& options) {
  return options.beta2.value_or(kind_of(options).beta2.value_or(0));
}

std::optional<double> group_beta2_of(const OptimizerOptions& options) {
  return kind_of(options).beta2 ? std::optional(beta2_of(options)) : std::nullopt;
}

double eps_of(const OptimizerOptions& options) {
  return options.eps.value_or(kind_of(options).eps.value_or(0));
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                          std::vector<ParameterGroup> groups, bool with_tensors) {
  config::validate(options, "optimizer");
  check_optimizer(options);
  return kind_of(options).make(options, std::move(groups), with_tensors);
}

}  // namespace tare
