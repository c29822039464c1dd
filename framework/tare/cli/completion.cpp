// Writes the completion scripts of bash, zsh and fish.
#include "tare/cli/completion.h"

#include <algorithm>
#include <cctype>

#include "tare/base/error.h"
#include "tare/base/parts.h"
#include "tare/cli/placeholder.h"

namespace tare::cli {
namespace {

using Names = std::vector<std::string>;

Names names_of(const std::vector<Command>& commands) {
  Names names;
  for (const auto& command : commands) names.push_back(command.name);
  return names;
}

std::string join(const Names& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// Returns `text` with `before` in front of each of `characters`.
std::string escaped(const std::string& text, const std::string& characters,
                    const std::string& before) {
  std::string result;
  for (const char c : text) {
    if (characters.find(c) != std::string::npos) result += before;
    result += c;
  }
  return result;
}

/// Puts text in single quotes, for bash and zsh.
std::string quoted(const std::string& text) { return "'" + escaped(text, "'", "'\\'") + "'"; }

// ---- bash

std::string bash_what(const Placeholder& place) {
  switch (place.completes) {
    case Completes::files:
      return "FILE";
    case Completes::folders:
      return "DIR";
    case Completes::words:
      return join(place.words);
    case Completes::keys:
      return "KEYS";
    case Completes::settings:
      return "SETTINGS";
    case Completes::nothing:
      break;
  }
  return "NONE";
}

// Its words are cut at '=': --json=FILE is three of them.
constexpr const char* kBashDriver = R"sh(
_tare() {
  local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
  local what= place=1 i
  if [[ $word == = ]]; then
    word= last+==
  elif [[ $last == = ]]; then
    last=${COMP_WORDS[COMP_CWORD - 2]}=
  fi
  what=$(_tare_value "$command $last")
  if ((COMP_CWORD == 1)); then
    what=$(_tare_options)
  elif [[ -z $what && $word == -* ]]; then
    what=$(_tare_options "$command")
  elif [[ -z $what ]]; then
    for ((i = 2; i < COMP_CWORD; ++i)); do
      [[ ${COMP_WORDS[i]} == -* ]] || ((++place))
      if [[ ${COMP_WORDS[i + 1]} == = ]]; then
        ((i += 2))
      elif [[ -n $(_tare_value "$command ${COMP_WORDS[i]}") ]]; then
        ((++i))
      fi
    done
    what=$(_tare_value "$command @$place")
  fi
  case $what in
    FILE) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    DIR) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    KEYS) mapfile -t COMPREPLY < <(compgen -W "$(_tare_explained "$word")" -- "$word") ;;
    SETTINGS)
      if [[ $last == *= ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_tare_settings "${last%=}")" -- "$word")
      else
        compopt -o nospace 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -S = -W "$(_tare_keys "$word")" -- "$word")
      fi ;;
    NONE) COMPREPLY=() ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$what" -- "$word") ;;
  esac
}
complete -F _tare tare
)sh";

std::string keys_of(const std::vector<Setting>& settings) {
  Names keys;
  for (const auto& setting : settings) keys.push_back(setting.key);
  return join(keys);
}

/// Returns the keys with the number that stands in $1, and the values of the key $1.
std::string bash_settings(const std::vector<Setting>& settings, const Names& options) {
  std::string values;
  for (const auto& setting : settings)
    if (!setting.values.empty())
      values += "    " + setting.key + ") echo " + quoted(join(setting.values)) + " ;;\n";
  return "\n_tare_keys() {\n  local number=0 keys='" + keys_of(settings) +
         "'\n  [[ $1 =~ ^phases\\.([0-9]+)\\. ]] && number=${BASH_REMATCH[1]}\n"
         "  echo \"${keys//.N./.$number.}\"\n}\n\n_tare_explained() {\n  _tare_keys \"$1\"\n  echo "
         "'" +
         join(options) +
         "'\n}\n\n_tare_settings() {\n  local key=$1\n"
         "  [[ $key =~ ^phases\\.[0-9]+\\.(.*)$ ]] && key=phases.N.${BASH_REMATCH[1]}\n"
         "  case $key in\n" +
         values + "  esac\n}\n";
}

std::string bash(const std::vector<Command>& commands, const std::vector<Setting>& settings,
                 const Names& options_of_entries) {
  const Names names = names_of(commands);
  std::string options = "    '') echo '" + join(names) + " --help --version' ;;\n";
  std::string values;
  const auto value = [&values](const std::string& pattern, const Placeholder& place) {
    values += "    " + pattern + ") echo " + quoted(bash_what(place)) + " ;;\n";
  };
  for (const auto& command : commands) {
    Names flags;
    for (const auto& option : all_options(command)) {
      flags.push_back("--" + option.name);
      if (option.letter) flags.push_back(std::string("-") + option.letter);
      if (option.value.empty()) continue;
      const std::string key = "'" + command.name + " --" + option.name;
      const std::string alone = option.implicit.empty() ? key + "' | " : "";
      value(alone + key + "='", parse_placeholder(option.value, names));
    }
    options += "    " + command.name + ") echo '" + join(flags) + "' ;;\n";
    size_t position = 0;
    for (const auto& place : parse_placeholders(command.arguments, names)) {
      const std::string key = "'" + command.name + " @";
      value(key + std::to_string(++position) + "'", place);
      if (place.repeats) value(key + "'*", place);
    }
  }
  return "# bash completion for tare, made by: tare completion bash\n_tare_options() {\n  case $1 "
         "in\n" +
         options + "  esac\n}\n\n_tare_value() {\n  case $1 in\n" + values + "  esac\n}\n" +
         bash_settings(settings, options_of_entries) + kBashDriver;
}

// ---- zsh

std::string zsh_text(const std::string& text) { return escaped(text, "[]:\\", "\\"); }

/// Returns ":message:action" for _arguments.
std::string zsh_what(const Placeholder& place) {
  const std::string message = ":" + zsh_text(place.name) + ":";
  switch (place.completes) {
    case Completes::files:
      return message + "_files";
    case Completes::folders:
      return message + "_files -/";
    case Completes::words:
      return message + "(" + join(place.words) + ")";
    case Completes::keys:
      return message + "_tare_explained";
    case Completes::settings:
      return message + "_tare_settings";
    case Completes::nothing:
      break;
  }
  return message + " ";
}

std::string zsh_option(const OptionSpec& option, const Names& commands) {
  const std::string help = "[" + zsh_text(option.help) + "]";
  if (option.value.empty()) return "--" + option.name + help;
  // "=-": the value stands behind '=' only.
  return "--" + option.name + (option.implicit.empty() ? "=" : "=-") + help +
         (option.implicit.empty() ? "" : ":") + zsh_what(parse_placeholder(option.value, commands));
}

std::string zsh_settings(const std::vector<Setting>& settings, const Names& options) {
  std::string values;
  for (const auto& setting : settings) {
    if (setting.values.empty()) continue;
    values += "    " + setting.key + ") compadd --";
    for (const auto& value : setting.values) values += ' ' + quoted(value);
    values += " ;;\n";
  }
  return "_tare_keys() {\n  local number=0\n  local -a match keys=(" + keys_of(settings) +
         R"sh()
  [[ $PREFIX =~ '^phases\.([0-9]+)\.' ]] && number=$match[1]
  compadd "$@" -- ${keys//.N./.$number.}
}
_tare_explained() {
  _tare_keys
  compadd -- )sh" +
         join(options) +
         R"sh(
}
_tare_settings() {
  if [[ $PREFIX != *=* ]]; then
    _tare_keys -q -S =
    return
  fi
  local key=${PREFIX%%=*}
  local -a match
  [[ $key =~ '^phases\.[0-9]+\.(.*)$' ]] && key=phases.N.$match[1]
  compset -P '*='
  case $key in
)sh" + values +
         "  esac\n}\n";
}

std::string zsh(const std::vector<Command>& commands, const std::vector<Setting>& settings,
                const Names& options_of_entries) {
  const Names names = names_of(commands);
  std::string described, cases;
  for (const auto& command : commands) {
    described += "    " + quoted(zsh_text(command.name) + ":" + command.summary) + "\n";
    cases += "        " + command.name + ")\n          _arguments";
    for (const auto& option : all_options(command)) {
      cases += " \\\n            " + quoted(zsh_option(option, names));
      if (option.letter)
        cases += " \\\n            " +
                 quoted(std::string("-") + option.letter + "[" + zsh_text(option.help) + "]");
    }
    size_t position = 0;
    for (const auto& place : parse_placeholders(command.arguments, names)) {
      const std::string at = place.repeats ? "*" : std::to_string(++position);
      cases += " \\\n            " + quoted(at + zsh_what(place));
    }
    cases += "\n          ;;\n";
  }
  return R"(#compdef tare
# zsh completion for tare, made by: tare completion zsh
)" + zsh_settings(settings, options_of_entries) +
         R"(_tare() {
  local curcontext=$curcontext state line
  local -a commands=(
)" + described +
         R"(  )
  _arguments -C '--help[the commands]' '--version[the version]' \
    '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe command commands ;;
    argument)
      case $line[1] in
)" + cases +
         R"(      esac
      ;;
  esac
}
if [[ $funcstack[1] == _tare ]]; then _tare "$@"; else compdef _tare tare; fi
)";
}

// ---- fish

std::string fish_quoted(const std::string& text) { return "'" + escaped(text, "'\\", "\\") + "'"; }

/// Arguments of `complete` for a value: required, with nothing else than these.
std::string fish_what(const Placeholder& place) {
  switch (place.completes) {
    case Completes::files:
      return " -F";
    case Completes::folders:
      return " -a '(__fish_complete_directories)'";
    case Completes::words:
      return " -a " + fish_quoted(join(place.words));
    case Completes::keys:
      return " -a '(__tare_explained)'";
    case Completes::settings:
      return " -a '(__tare_settings)'";
    case Completes::nothing:
      break;
  }
  return "";
}

/// Keys with the number of the word that is typed, and each with '=' and its values.
std::string fish_settings(const std::vector<Setting>& settings, const Names& options) {
  std::string keys, pairs;
  for (const auto& setting : settings) {
    keys += ' ' + setting.key;
    pairs += ' ' + fish_quoted(setting.key + '=');
    for (const auto& value : setting.values) pairs += ' ' + fish_quoted(setting.key + '=' + value);
  }
  const std::string number =
      "  set -l number (string match -rg '^phases\\.([0-9]+)\\.' -- (commandline -ct))\n"
      "  test -n \"$number\"; or set number 0\n  string replace .N. .$number. --";
  return "function __tare_keys\n" + number + keys +
         "\nend\nfunction __tare_explained\n  __tare_keys\n  string join \\n -- " + join(options) +
         "\nend\nfunction __tare_settings\n" + number + pairs + "\nend\n";
}

std::string fish(const std::vector<Command>& commands, const std::vector<Setting>& settings,
                 const Names& options_of_entries) {
  const Names names = names_of(commands);
  std::string text = "# fish completion for tare, made by: tare completion fish\n" +
                     fish_settings(settings, options_of_entries) +
                     "complete -c tare -f\n"
                     "complete -c tare -n __fish_use_subcommand -l help -d 'the commands'\n"
                     "complete -c tare -n __fish_use_subcommand -l version -d 'the version'\n";
  for (const auto& command : commands) {
    const std::string within =
        "complete -c tare -n '__fish_seen_subcommand_from " + command.name + "'";
    text += "complete -c tare -n __fish_use_subcommand -a " + command.name + " -d " +
            fish_quoted(command.summary) + "\n";
    for (const auto& option : all_options(command)) {
      const bool takes = !option.value.empty();
      text += within + " -l " + option.name +
              (option.letter ? std::string(" -s ") + option.letter : "") +
              (takes && option.implicit.empty() ? " -r" : "") +
              (takes ? fish_what(parse_placeholder(option.value, names)) : "") + " -d " +
              fish_quoted(option.help) + "\n";
    }
    for (const auto& place : parse_placeholders(command.arguments, names)) {
      if (place.completes != Completes::nothing) text += within + fish_what(place) + "\n";
    }
  }
  return text;
}

/// Returns the script for a program of another name, whose functions are not those of tare.
std::string for_program(std::string script, const std::string& program) {
  if (program == "tare") return script;
  std::string id = program;
  std::ranges::replace_if(
      id, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  for (const char* place : {"complete -F _tare ", "complete -c ", "#compdef ", "compdef _tare ",
                            "completion for ", "made by: "})
    script = replaced(std::move(script), std::string(place) + "tare", place + program);
  return replaced(std::move(script), "_tare", "_" + id);
}

}  // namespace

std::string completion(const std::string& shell, const std::vector<Command>& commands,
                       const std::vector<Setting>& settings,
                       const std::vector<std::string>& options_of_entries,
                       const std::string& program) {
  using Script = decltype(&bash);
  const Script script = shell == "bash"   ? &bash
                        : shell == "zsh"  ? &zsh
                        : shell == "fish" ? &fish
                                          : nullptr;
  if (script == nullptr)
    throw ConfigError("tare completion",
                      "no completion for '" + printable(shell) + "'; allowed: bash, zsh, fish");
  return for_program(script(commands, settings, options_of_entries), program);
}

}  // namespace tare::cli
