// Keeps the measured contexts of GPUs in a file with a line for each name of a card.
#include "tare/memory/context.h"

#include <torch/version.h>

#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"

namespace tare::memory {
namespace {

/// The first line: what another version has measured is not taken.
constexpr std::string_view kHead = "context bytes\tcard\tLibTorch " TORCH_VERSION;

std::filesystem::path file() { return io::cache_home() / "plan" / "contexts.tsv"; }

std::optional<int64_t> number_in(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value <= 0) return std::nullopt;
  return value;
}

/// Returns the bytes by the names of cards. A line that cannot be read is no measurement.
std::map<std::string, int64_t> kept() {
  std::map<std::string, int64_t> all;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file(), ignored)) return all;
  std::istringstream lines(io::read_text(file()));
  std::string line;
  if (!std::getline(lines, line) || line != kHead) return all;
  while (std::getline(lines, line)) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) continue;
    if (const auto bytes = number_in(line.substr(0, tab))) all[line.substr(tab + 1)] = *bytes;
  }
  return all;
}

}  // namespace

int64_t context_bytes(const std::string& card) {
  try {
    const auto all = kept();
    const auto found = all.find(card);
    return found == all.end() ? kContextBytes : found->second;
  } catch (const IoError& error) {
    log::debug(std::string("measured contexts are not used: ") + error.what());
    return kContextBytes;
  }
}

void note_context(const std::string& card, int64_t bytes) {
  if (bytes <= 0 || card.find_first_of("\t\n") != std::string::npos) return;
  try {
    auto all = kept();
    int64_t& most = all[card];
    if (bytes <= most) return;
    most = bytes;
    std::string text = std::string(kHead) + '\n';
    for (const auto& [name, measured] : all) text += std::to_string(measured) + '\t' + name + '\n';
    io::make_directories(file().parent_path());
    io::write_atomically(file(), text);
  } catch (const IoError& error) {
    log::debug(std::string("the measured context is not kept: ") + error.what());
  }
}

}  // namespace tare::memory
