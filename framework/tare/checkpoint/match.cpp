// Compares two lists of named tensors, and copies one into the other.
#include "tare/checkpoint/match.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tare/base/error.h"
#include "tare/checkpoint/safetensors.h"

namespace tare::checkpoint {
namespace {

constexpr size_t kListed = 8;

using Index = std::unordered_map<std::string, const at::Tensor*>;

Index index_of(const std::vector<NamedTensor>& tensors) {
  Index index;
  for (const auto& t : tensors) index.emplace(t.name, &t.tensor);
  return index;
}

// Not those of eight bits, whose values mean nothing without their scales.
bool is_short(c10::ScalarType type) {
  return type == c10::kFloat || type == c10::kBFloat16 || type == c10::kHalf;
}

bool fits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && converts(b.scalar_type(), a.scalar_type());
}

std::string kind_of(const at::Tensor& t) { return describe(t.scalar_type(), t.sizes()); }

// "kind: a, b, ... and 3 more", each item as `text` gives it.
template <class Items, class Text>
void add_list(std::string& out, const char* kind, const Items& items, const Text& text) {
  if (items.empty()) return;
  if (!out.empty()) out += "; ";
  out += std::string(kind) + ": ";
  for (size_t i = 0; i < std::min(items.size(), kListed); ++i)
    out += (i ? ", " : "") + text(items[i]);
  if (items.size() > kListed) out += " and " + std::to_string(items.size() - kListed) + " more";
}

// The longest one that ends with a dot.
std::string common_prefix(const std::vector<NamedTensor>& tensors) {
  if (tensors.empty()) return "";
  std::string_view prefix = tensors.front().name;
  for (const auto& t : tensors) {
    const auto [end, ignored] = std::ranges::mismatch(prefix, t.name);
    prefix = prefix.substr(0, static_cast<size_t>(end - prefix.begin()));
  }
  return std::string(prefix.substr(0, prefix.rfind('.') + 1));  // npos + 1 is 0
}

const std::string& first_name(const Match& match) {
  if (!match.different.empty()) return match.different.front().name;
  return match.missing.empty() ? match.unexpected.front() : match.missing.front();
}

}  // namespace

std::string Match::str() const {
  if (complete()) return "all tensors fit";
  std::string out;
  add_list(out, "missing", missing, [this](const std::string& name) {
    const std::string near = nearest(name, unexpected);
    return printable(name) + (near.empty() ? "" : " (nearest: " + printable(near) + ")");
  });
  add_list(out, "unexpected", unexpected, [](const std::string& name) { return printable(name); });
  add_list(out, "different", different, [](const Difference& d) {
    return printable(d.name) + " needs " + d.expected + ", got " + d.got;
  });
  return out;
}

bool converts(c10::ScalarType from, c10::ScalarType to) {
  return from == to || (is_short(from) && is_short(to));
}

Match compare(const std::vector<NamedTensor>& targets, const std::vector<NamedTensor>& source) {
  const Index given = index_of(source);
  std::unordered_set<std::string> wanted;
  Match match;
  for (const auto& t : targets) {
    wanted.insert(t.name);
    const auto found = given.find(t.name);
    if (found == given.end()) {
      match.missing.push_back(t.name);
    } else if (!fits(t.tensor, *found->second)) {
      match.different.push_back({t.name, kind_of(t.tensor), kind_of(*found->second)});
    }
  }
  for (const auto& s : source) {
    if (!wanted.contains(s.name)) match.unexpected.push_back(s.name);
  }
  return match;
}

std::string surplus_prefix(const std::vector<NamedTensor>& targets,
                           const std::vector<NamedTensor>& source) {
  const std::string wanted = common_prefix(targets), given = common_prefix(source);
  if (!given.ends_with(wanted)) return "";
  const std::string surplus = given.substr(0, given.size() - wanted.size());
  // A module of the model itself, whose tensors alone are in the file, is no surplus.
  const bool is_of_model = std::ranges::any_of(source, [&](const NamedTensor& given_one) {
    return std::ranges::find(targets, given_one.name, &NamedTensor::name) != targets.end();
  });
  return !is_of_model && surplus.ends_with('.') ? surplus : "";
}

CopyReport copy_into(const std::vector<NamedTensor>& targets,
                     const std::vector<NamedTensor>& source, bool strict,
                     std::string_view operation, const std::filesystem::path& path,
                     const CopyTensor& copy) {
  Match match = compare(targets, source);
  if (strict && !match.complete()) {
    throw FormatError(operation, path.string(), printable(first_name(match)),
                      "does not fit; " + match.str());
  }
  CopyReport report{std::move(match.missing), std::move(match.unexpected)};
  for (const auto& d : match.different) {
    report.fresh.push_back(d.name);
    report.ignored.push_back(d.name);
  }
  const Index given = index_of(source);
  const c10::AutoGradMode no_grad(false);
  for (const auto& t : targets) {
    const auto found = given.find(t.name);
    if (found == given.end() || !fits(t.tensor, *found->second)) continue;
    if (copy) {
      copy(t, *found->second);
    } else {
      t.tensor.copy_(*found->second);
    }
  }
  return report;
}

}  // namespace tare::checkpoint
