// Reads the cards that a LibTorch was compiled for, from nvcc's flags in its configuration.
#include "tare/cuda/kernel_images.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <tuple>

namespace tare::cuda {
namespace {

/// Reads the capabilities behind each such word: "sm_" of "code=sm_90;".
std::vector<Capability> behind(std::string_view text, std::string_view word) {
  std::vector<Capability> all;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const char* const begin = text.data() + at + word.size();
    const char* const end = text.data() + text.size();
    int number = 0;
    const auto [rest, error] = std::from_chars(begin, end, number);
    const bool of_one_model = rest != end && *rest >= 'a' && *rest <= 'z';
    if (error == std::errc() && !of_one_model) all.push_back({number / 10, number % 10});
  }
  return all;
}

}  // namespace

std::string Capability::str() const { return std::to_string(major) + '.' + std::to_string(minor); }

KernelImages KernelImages::parse(const std::string& configuration) {
  return {behind(configuration, "code=sm_"), behind(configuration, "code=compute_")};
}

bool KernelImages::run_on(Capability card) const {
  if (compiled.empty() && sources.empty()) return true;
  return std::ranges::any_of(compiled,
                             [card](Capability image) {
                               return image.major == card.major && image.minor <= card.minor;
                             }) ||
         std::ranges::any_of(sources, [card](Capability image) {
           return std::tie(image.major, image.minor) <= std::tie(card.major, card.minor);
         });
}

std::string KernelImages::str() const {
  std::string text;
  for (const auto* const list : {&compiled, &sources})
    for (const Capability& image : *list) text += (text.empty() ? "" : ", ") + image.str();
  return text;
}

}  // namespace tare::cuda
