// Makes the names of a sweep's runs, and reads them.
#include "tare/sweep/run_name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <string_view>

#include "tare/base/error.h"
#include "tare/search/sampler.h"
#include "tare/search/value_text.h"

namespace tare::sweep {
namespace {

using config::Node;

constexpr size_t kMaxName = 128;  // as io::checked_name

/// Returns the initials of a key: "owd" for "optimizer.weight_decay".
std::string initials(std::string_view key) {
  std::string letters;
  bool begins = true;
  for (const char c : key) {
    const bool separates = c == '_' || c == '.';
    if (begins && !separates) letters += c;
    begins = separates;
  }
  return letters;
}

/// Returns the value as Python writes it; a number that was drawn with four digits, because the
/// run's own number makes its name the only one.
std::string value_in_name(const SweepOptions& sweep, const Node& value) {
  constexpr size_t kShort = 8;
  std::string text = search::python_text(value);
  if (text.size() <= kShort || !search::draws(sweep)) return text;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return text;
  std::array<char, 32> shorter{};
  std::snprintf(shorter.data(), shorter.size(), "%.4g", number);
  return shorter.data();
}

}  // namespace

std::string last_part(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

std::string run_name(const SweepOptions& sweep, int64_t id, const search::Cell& cell) {
  std::string text = sweep.name + std::to_string(id);
  const std::string& chosen = sweep.origin.word_parameter;
  const Node* given = chosen.empty() ? nullptr : cell.find(chosen);
  const std::string word = given ? last_part(given->text) : sweep.origin.run_word;
  if (!word.empty()) text += '_' + word;
  for (const auto& [key, value] : cell.values)
    if (&value != given) text += '_' + initials(key) + value_in_name(sweep, value);
  const auto keeps = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
  };
  for (size_t i = sweep.name.size(); i < text.size(); ++i)
    if (!keeps(text[i])) text[i] = '-';
  if (text.size() > kMaxName) text.resize(kMaxName);
  return text;
}

std::string name_legend(const SweepOptions& sweep) {
  constexpr size_t kMostShown = 10;
  std::vector<std::string> parts;
  for (const search::Parameter& parameter : sweep.parameters.parameters)
    if (parameter.name != sweep.origin.word_parameter)
      parts.push_back(initials(parameter.name) + " (" + parameter.name + ")");
  if (parts.empty()) return {};
  return "names of runs: " + sweep.name + " and a number, then " + listed(parts, kMostShown) +
         (parts.size() == 1 ? " with its value" : ", each with its value");
}

std::optional<int64_t> number_in(const std::string& run_name, const std::string& sweep_name) {
  if (!run_name.starts_with(sweep_name)) return std::nullopt;
  int64_t number = -1;
  const char* const last = run_name.data() + run_name.size();
  const auto [end, error] = std::from_chars(run_name.data() + sweep_name.size(), last, number);
  if (error != std::errc() || number < 0 || (end != last && *end != '_')) return std::nullopt;
  return number;
}

std::string log_stem(const SweepOptions& sweep, const std::string& run_name) {
  const auto number = number_in(run_name, sweep.name);
  return sweep.origin.numbered_logs && number ? sweep.name + std::to_string(*number) : run_name;
}

std::vector<std::filesystem::path> run_folders(const std::filesystem::path& log_dir,
                                               const std::string& sweep_name) {
  std::vector<std::filesystem::path> all;
  for (const auto& entry : std::filesystem::directory_iterator(log_dir))
    if (entry.is_directory() && number_in(entry.path().filename().string(), sweep_name))
      all.push_back(entry.path());
  std::ranges::sort(all, {}, [&](const std::filesystem::path& folder) {
    return *number_in(folder.filename().string(), sweep_name);
  });
  return all;
}

}  // namespace tare::sweep
