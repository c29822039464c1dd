#include "tare/cli/command.h"

#include <algorithm>
// Else every argument is cut at its commas: key=[1,2].
#define CXXOPTS_VECTOR_DELIMITER '\0'
#include <cxxopts.hpp>

#include "tare/base/error.h"
#include "tare/config/override.h"

namespace tare::cli {

std::string Arguments::get(const std::string& option, const std::string& otherwise) const {
  const auto found = options_.find(option);
  return found == options_.end() ? otherwise : found->second;
}

// `tare predict` is not here: it executes tare-predict, which has its own help (see main.cpp).
const std::vector<Command>& commands() {
  static const std::vector<Command> all{
      {"run",
       "run a recipe",
       "RECIPE [key=value ...]",
       1,
       {{"json", "FILE", "also write the report as JSON"},
        {"dry-run", "", "two steps per phase, nothing saved: prints the peaks"},
        {"resume", "auto", "go on with an unfinished run; auto: or start anew", "always"}},
       {"tare run recipes/configs/digits/staged.yaml batch=256 phases.2.epochs=2"},
       run_command},
      {"ls",
       "list models, recipes or data sets",
       "models|recipes|datasets",
       1,
       {},
       {"tare ls models"},
       list_command},
      {"data",
       "fetch a data set, or make a generated one",
       "fetch|make NAME",
       2,
       {{"out", "DIR", "make: where the files go (default: the data cache)"},
        {"count", "N", "make: images (default: 10000)"},
        {"style", "STYLE", "make: printed or written"}},
       {"tare data fetch mnist10k", "tare data make generated_digits --count 1000 --out digits"},
       data_command},
      {"inspect",
       "say what is in a bundle, checkpoint or safetensors file",
       "FILE",
       1,
       {},
       {"tare inspect runs/digits-staged/digits.tare"},
       inspect_command},
      {"doctor",
       "check this machine: LibTorch, driver, devices, memory, threads, disk",
       "",
       0,
       {},
       {"tare doctor"},
       doctor_command},
  };
  return all;
}

const Command& find_command(const std::string& name) {
  std::vector<std::string> names{"predict"};
  for (const auto& command : commands()) {
    if (command.name == name) return command;
    names.push_back(command.name);
  }
  const std::string near = nearest(name, names);
  throw ConfigError("tare", "no command is named '" + printable(name) + "'" +
                                (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                " See tare --help");
}

std::string overview() {
  std::string text =
      "Usage: tare COMMAND [ARGUMENTS]\n\nThe whole life of a training run, with every byte "
      "accounted for.\n\n";
  const auto line = [&text](const std::string& name, const std::string& summary) {
    text += "  " + name + std::string(10 - name.size(), ' ') + summary + '\n';
  };
  for (const auto& command : commands()) line(command.name, command.summary);
  line("predict", "classify images with a bundle");
  text +=
      "\ntare COMMAND --help shows its options and an example.\n"
      "Exit codes: 0 done, 1 the run failed, 2 bad input, 3 out of memory, 4 I/O, 130 and 143 "
      "stopped by a signal.\n";
  return text;
}

std::string help(const Command& command) {
  std::string text = "Usage: tare " + command.name + (command.options.empty() ? "" : " [OPTIONS]") +
                     (command.arguments.empty() ? "" : " " + command.arguments) + "\n\n" +
                     command.summary + ".\n\n";
  size_t width = 6;
  const auto label = [](const OptionSpec& o) {
    if (o.value.empty()) return "--" + o.name;
    return "--" + o.name + (o.implicit.empty() ? " " + o.value : "[=" + o.value + "]");
  };
  for (const auto& option : command.options) width = std::max(width, label(option).size());
  for (const auto& option : command.options) {
    text += "  " + label(option) + std::string(width + 2 - label(option).size(), ' ') +
            option.help + '\n';
  }
  text += "  --help" + std::string(width - 4, ' ') + "this text\n\nExample:\n";
  for (const auto& example : command.examples) text += "  " + example + '\n';
  return text;
}

namespace {

// `--name word` as `--name=word` where the option may stand bare and the word is one that it takes:
// the parser would take it for an argument.
std::vector<std::string> join_implicit(const Command& command, int argc, const char* const* argv) {
  std::vector<std::string> words;
  for (int i = 0; i < argc; ++i) {
    const auto joins = [&](const OptionSpec& o) {
      return !o.implicit.empty() && words.back() == "--" + o.name &&
             (argv[i] == o.value || argv[i] == o.implicit);
    };
    if (i > 0 && std::ranges::any_of(command.options, joins))
      words.back() += "=" + std::string(argv[i]);
    else
      words.emplace_back(argv[i]);
  }
  return words;
}

}  // namespace

Arguments parse(const Command& command, int argc, const char* const* argv) {
  for (int i = 0; i < argc; ++i) {
    // A long argument overflows the stack of the parser's regular expressions.
    if (std::string_view(argv[i]).size() > config::kMaxArgumentBytes) {
      throw ConfigError("tare " + command.name,
                        "an argument is longer than 4 KiB: '" + printable(argv[i], 40) + "'");
    }
  }
  cxxopts::Options options("tare " + command.name);
  auto add = options.add_options();
  for (const auto& o : command.options) {
    const auto value = cxxopts::value<std::string>();
    if (o.value.empty())
      add(o.name, o.help);
    else
      add(o.name, o.help, o.implicit.empty() ? value : value->implicit_value(o.implicit));
  }
  add("positional", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"positional"});
  try {
    const auto words = join_implicit(command, argc, argv);
    std::vector<const char*> pointers;
    for (const auto& word : words) pointers.push_back(word.c_str());
    const auto result = options.parse(static_cast<int>(pointers.size()), pointers.data());
    std::map<std::string, std::string> values;
    for (const auto& o : command.options) {
      if (result.count(o.name))
        values[o.name] = o.value.empty() ? "" : result[o.name].as<std::string>();
    }
    std::vector<std::string> positional;
    if (result.count("positional"))
      positional = result["positional"].as<std::vector<std::string>>();
    if (positional.size() < command.least) {
      throw ConfigError("tare " + command.name,
                        "needs " + command.arguments + ". See tare " + command.name + " --help");
    }
    return {positional, values};
  } catch (const cxxopts::exceptions::exception& error) {
    throw ConfigError("tare " + command.name,
                      printable(error.what()) + ". See tare " + command.name + " --help");
  }
}

}  // namespace tare::cli
