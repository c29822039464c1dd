// Parses a command line by the description of its command, and prints the help.
#include "tare/cli/arguments.h"

#include <algorithm>
#include <charconv>
// Without it cxxopts cuts every argument at its commas, as in key=[1,2].
#define CXXOPTS_VECTOR_DELIMITER '\0'
#include <cxxopts.hpp>

#include "tare/base/error.h"
#include "tare/base/parts.h"
#include "tare/base/table.h"
#include "tare/cli/placeholder.h"
#include "tare/config/override.h"

namespace tare::cli {

std::string Arguments::get(const std::string& option, const std::string& otherwise) const {
  const auto found = options_.find(option);
  return found == options_.end() ? otherwise : found->second;
}

int64_t Arguments::number(const std::string& option, int64_t otherwise, int64_t least,
                          int64_t most) const {
  if (!has(option)) return otherwise;
  const std::string text = get(option);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most)
    return value;
  const std::string range = most == INT64_MAX
                                ? ">= " + std::to_string(least)
                                : "from " + std::to_string(least) + " to " + std::to_string(most);
  throw ConfigError("tare", "--" + option + " must be a whole number " + range + ", got '" +
                                printable(text) + "'");
}

std::vector<OptionSpec> all_options(const Command& command) {
  auto options = command.options;
  options.push_back({"help", "", "this text"});
  return options;
}

std::string usage(const OptionSpec& o) {
  if (o.value.empty()) return "--" + o.name + (o.letter ? std::string(", -") + o.letter : "");
  return "--" + o.name + (o.implicit.empty() ? " " + o.value : "[=" + o.value + "]");
}

std::string usage(const Command& command, const std::string& called) {
  return called + (command.options.empty() ? "" : " [OPTIONS]") +
         (command.arguments.empty() ? "" : " " + command.arguments);
}

namespace {

// The example with the command as it was called, "tare-predict" in place of "tare predict".
std::string example_as(const std::string& called, const Command& command,
                       const std::string& example) {
  return replaced(example, "tare " + command.name, called);
}

}  // namespace

std::string help(const Command& command, size_t width, std::string called) {
  if (called.empty()) called = "tare " + command.name;
  const auto fit = [width](const std::string& line) {
    return width == kAnyWidth ? line : wrapped(line, width, 0, 2);
  };
  std::vector<ListEntry> options;
  for (const auto& option : all_options(command)) options.push_back({usage(option), option.help});
  std::string text =
      fit("Usage: " + usage(command, called)) + "\n\n" + fit(command.summary + '.') + "\n\n";
  if (!command.actions.empty()) text += text_list(command.actions, 2, width) + '\n';
  text += text_list(options, 2, width);
  text += "\nExample:\n";
  for (const auto& example : command.examples)
    text += "  " + example_as(called, command, example) + '\n';
  return text;
}

namespace {

std::string see_help(const Command& command) { return "; see tare " + command.name + " --help"; }

// `--name WORD` as `--name=WORD` where the option may stand bare and the word is one that it takes:
// the parser would take it for an argument.
std::vector<std::string> join_implicit(const Command& command, int argc, const char* const* argv) {
  std::vector<std::string> words;
  for (int i = 0; i < argc; ++i) {
    const auto joins = [&](const OptionSpec& o) {
      if (o.implicit.empty() || words.back() != "--" + o.name) return false;
      const auto taken = parse_placeholder(o.value, {}).words;
      return std::ranges::find(taken, argv[i]) != taken.end();
    };
    if (i > 0 && std::ranges::any_of(command.options, joins))
      words.back() += "=" + std::string(argv[i]);
    else
      words.emplace_back(argv[i]);
  }
  return words;
}

// Also refuses what cxxopts takes, its own name of the positional arguments, and names the nearest.
void refuse_unknown(const Command& command, const std::vector<std::string>& words) {
  std::vector<std::string> known;
  for (const auto& o : all_options(command)) known.push_back("--" + o.name);
  for (const auto& word : words) {
    if (word == "--") return;
    const std::string name = word.substr(0, word.find('='));
    if (name.starts_with("--") && std::ranges::find(known, name) == known.end()) {
      throw ConfigError("tare " + command.name, "'" + printable(name) + "' is not an option" +
                                                    did_you_mean(name, known) + see_help(command));
    }
  }
}

// The parser would take the last value and ignore the others without a word.
void refuse_repeated(const Command& command, const OptionSpec& option, size_t count) {
  if (option.value.empty() || count < 2) return;
  throw ConfigError("tare " + command.name,
                    "--" + option.name + " is given " +
                        (count == 2 ? std::string("twice") : std::to_string(count) + " times") +
                        "; it takes one " + option.value + ", so give it once" + see_help(command));
}

// A word too many would be ignored without a word.
void refuse_surplus(const Command& command, const std::vector<std::string>& positional) {
  const auto taken = parse_placeholders(command.arguments, {});
  const auto repeats = [](const Placeholder& p) { return p.repeats; };
  if (positional.size() <= taken.size() || std::ranges::any_of(taken, repeats)) return;
  throw ConfigError("tare " + command.name,
                    "'" + printable(positional[taken.size()]) + "' is one argument too many; it " +
                        (taken.empty() ? "takes no argument" : "takes " + command.arguments) +
                        see_help(command));
}

cxxopts::Options declare(const Command& command) {
  cxxopts::Options options("tare " + command.name);
  auto add = options.add_options();
  for (const auto& o : command.options) {
    const auto value = cxxopts::value<std::string>();
    if (o.value.empty())
      add((o.letter ? std::string{o.letter, ','} : "") + o.name, o.help);
    else
      add(o.name, o.help, o.implicit.empty() ? value : value->implicit_value(o.implicit));
  }
  add("h,help", "");
  add("positional", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"positional"});
  return options;
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
  const auto words = join_implicit(command, argc, argv);
  refuse_unknown(command, words);
  std::vector<const char*> pointers;
  pointers.reserve(words.size());
  for (const auto& word : words) pointers.push_back(word.c_str());
  try {
    const auto result = declare(command).parse(static_cast<int>(pointers.size()), pointers.data());
    std::map<std::string, std::string> values;
    for (const auto& o : all_options(command)) {
      if (!result.count(o.name)) continue;
      refuse_repeated(command, o, result.count(o.name));
      values[o.name] = o.value.empty() ? "" : result[o.name].as<std::string>();
      if (!o.value.empty() && values[o.name].empty())
        throw ConfigError("tare " + command.name,
                          "--" + o.name + " needs " + o.value + ", got ''" + see_help(command));
    }
    std::vector<std::string> positional;
    if (result.count("positional"))
      positional = result["positional"].as<std::vector<std::string>>();
    if (positional.size() < command.least && !values.contains("help")) {
      throw ConfigError("tare " + command.name, "needs " + command.arguments + see_help(command));
    }
    if (!values.contains("help")) refuse_surplus(command, positional);
    return {positional, values};
  } catch (const cxxopts::exceptions::exception& error) {
    throw ConfigError("tare " + command.name, printable(error.what()) + see_help(command));
  }
}

}  // namespace tare::cli
