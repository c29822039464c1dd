// YAML, then overrides, then an options struct read from it. Input: the file and the overrides,
// each behind a zero byte.
#include <optional>
#include <vector>

#include "fuzz/support.h"
#include "tare/config/field.h"
#include "tare/config/node.h"
#include "tare/config/override.h"

namespace tare::fuzz {

struct Phase {
  int64_t epochs = 1;
  double rate = 1e-3;
  std::optional<uint64_t> seed{};
};
void visit_fields(auto& visit, Phase& o) {
  visit("epochs", o.epochs, config::at_least(1))("rate", o.rate, config::above(0))("seed", o.seed);
}

struct Options {
  bool on = false;
  std::string name = "a";
  std::filesystem::path folder{};
  std::string mode = "fast";
  std::vector<int64_t> hidden{};
  std::vector<Phase> phases{};
  std::optional<Phase> last{};
};
void visit_fields(auto& visit, Options& o) {
  visit("on", o.on)("name", o.name)("folder", o.folder)(
      "mode", o.mode, config::one_of({"fast", "slow"}))("hidden", o.hidden)("phases", o.phases)(
      "last", o.last);
}

void check_dump(const config::Node& node) {
  const std::string dump = config::to_yaml(node);
  if (dump.size() > config::kMaxFileBytes) return;  // what aliases copied
  require(config::to_yaml(config::parse_text(dump, "dump")) == dump, "a dump reads as itself");
}

void run(std::string_view input) {
  size_t end = input.find('\0');
  config::Node root = config::parse_text(input.substr(0, end), "input.yaml");
  check_dump(root);
  while (end != std::string_view::npos) {
    input.remove_prefix(end + 1);
    end = input.find('\0');
    config::apply_override(root, input.substr(0, end));
  }
  const auto options = config::read<Options>(root);
  config::validate(options, "fuzz");
  const config::Node dump = config::to_node(options);
  require(config::to_yaml(config::to_node(config::read<Options>(dump))) == config::to_yaml(dump),
          "options read back from their dump are the same");
}

}  // namespace tare::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tare::fuzz::run(tare::fuzz::text_of(data, size));
  } catch (const tare::ConfigError&) {
  }
  return 0;
}
