// Makes the messages of the exceptions, escapes foreign text and finds the nearest name.
#include "tare/base/error.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <system_error>
#include <utility>

#include "tare/base/familiar_names.h"
#include "tare/base/parts.h"
#include "tare/base/utf8.h"

namespace tare {

namespace {

constexpr size_t kTextLimit = 2000;

std::string message(std::string_view operation, std::string_view text) {
  return "[" + printable(operation) + "] " + printable(text, kTextLimit);
}

std::string cause(int error_number) { return std::generic_category().message(error_number); }

}  // namespace

std::string Source::str() const {
  std::string text = printable(file, kTextLimit);
  if (line > 0) text += ":" + std::to_string(line);
  if (line > 0 && column > 0) text += ":" + std::to_string(column);
  return text;
}

namespace {

std::string config_text(const Source& source, std::string_view field, std::string_view problem,
                        std::string_view allowed, std::string_view got) {
  std::string text = source.file.empty() ? "" : source.str() + ": ";
  if (!field.empty()) text += printable(field, 400) + " ";
  text += printable(problem, kTextLimit);
  if (!got.empty()) text += ", got " + printable(got);
  if (!allowed.empty()) text += "; allowed: " + printable(allowed, kTextLimit);
  return text;
}

}  // namespace

ConfigError::ConfigError(Parts parts)
    : ConfigError(
          "[" + printable(parts.where) + "] " +
              config_text(parts.source, parts.field, parts.problem, parts.allowed, parts.got),
          parts) {}

ConfigError::ConfigError(const std::string& message, Parts parts)
    : Error(message),
      where_(std::move(parts.where)),
      source_(std::move(parts.source)),
      field_(std::move(parts.field)),
      problem_(std::move(parts.problem)),
      allowed_(std::move(parts.allowed)),
      got_(std::move(parts.got)) {}

ConfigError::ConfigError(Source source, std::string field, std::string_view problem,
                         std::string allowed, std::string got)
    : ConfigError(Parts{"config", std::move(source), std::move(field), std::string(problem),
                        std::move(allowed), std::move(got)}) {}

ConfigError::ConfigError(std::string_view where, std::string_view problem)
    : ConfigError(Parts{std::string(where), {}, {}, std::string(problem), {}, {}}) {}

ConfigError::ConfigError(std::string_view where, std::string field, std::string_view problem,
                         std::string allowed, std::string got)
    : ConfigError(Parts{std::string(where),
                        {},
                        std::move(field),
                        std::string(problem),
                        std::move(allowed),
                        std::move(got)}) {}

ConfigError ConfigError::about(std::string field, std::string allowed, std::string got) const {
  return {what(),
          Parts{where_, source_, std::move(field), problem_, std::move(allowed), std::move(got)}};
}

ConfigError ConfigError::within(std::string_view parent, const Source& source) const {
  std::string field(parent);
  if (!field.empty() && !field_.empty()) field += ".";
  field += field_;
  return ConfigError(Parts{where_, source_.file.empty() ? source : source_, std::move(field),
                           problem_, allowed_, got_});
}

StateError::StateError(std::string call, std::string state, std::string_view advice)
    : Error(message(call,
                    "not possible: " + state + (advice.empty() ? "" : "; " + std::string(advice)))),
      call_(std::move(call)),
      state_(std::move(state)) {}

ShapeError::ShapeError(std::string_view where, std::string expected, std::string got)
    : Error(message(where, "expected " + expected + ", got " + got)),
      expected_(std::move(expected)),
      got_(std::move(got)) {}

DeviceError::DeviceError(std::string_view where, std::string_view problem)
    : Error(message(where, problem)) {}

DeviceError::DeviceError(std::string_view where, std::string_view first, std::string_view second)
    : Error(message(where, "operands are on two devices: " + std::string(first) + " and " +
                               std::string(second) + "; move one of them")) {}

DivergedError::DivergedError(std::string_view where, std::string_view figure, double value,
                             int64_t epoch, int64_t step, std::string_view advice)
    : Error(message(where, "the " + std::string(figure) + " is " +
                               (std::isnan(value) ? "nan" : std::to_string(value)) + " in epoch " +
                               std::to_string(epoch) + ", step " + std::to_string(step) + "; " +
                               std::string(advice))),
      value_(value),
      epoch_(epoch),
      step_(step) {}

IoError::IoError(std::string_view operation, std::string path, int error_number)
    : Error(message(operation, path + ": " + cause(error_number))),
      path_(std::move(path)),
      error_number_(error_number) {}

IoError::IoError(std::string_view operation, std::string path, std::string_view cause)
    : Error(message(operation, path + ": " + std::string(cause))), path_(std::move(path)) {}

FormatError::FormatError(std::string_view operation, std::string path, std::string part,
                         std::string_view problem)
    : Error(message(operation,
                    path + ": " + (part.empty() ? "" : part + ": ") + std::string(problem))),
      path_(std::move(path)),
      part_(std::move(part)) {}

namespace {

void append_escaped(std::string& out, unsigned char c) {
  constexpr char kHex[] = "0123456789abcdef";
  if (c == '\n') {
    out += "\\n";
  } else if (c == '\t') {
    out += "\\t";
  } else {
    out += {'\\', 'x', kHex[c >> 4], kHex[c & 15]};
  }
}

/// Returns the length of the UTF-8 character at the beginning of `text`, or 0 where there is none
/// that may be shown: C1 controls, which terminals obey, the line separators and bidirectional
/// controls, which reorder what is read, and malformed bytes.
size_t shown_length(std::string_view text) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7F ? 1 : 0;
  const size_t length = utf8_length(text);
  if (length == 0) return 0;
  if (lead == 0xC2 && byte(1) < 0xA0) return 0;
  if (lead == 0xE2 && byte(1) == 0x80 && byte(2) >= 0xA8 && byte(2) <= 0xAE) return 0;
  if (lead == 0xE2 && byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9) return 0;
  return length;
}

}  // namespace

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  size_t i = 0;
  while (i < text.size()) {
    const size_t length = shown_length(text.substr(i));
    if (i + std::max<size_t>(length, 1) > limit) return out + "...";
    if (length == 0) {
      append_escaped(out, static_cast<unsigned char>(text[i]));
    } else {
      out += text.substr(i, length);
    }
    i += std::max<size_t>(length, 1);
  }
  return out;
}

namespace {

/// Insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({last[j] + (a[i] == b[j] ? 0 : 1), row[j] + 1, last[j + 1] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
    before = std::exchange(last, row);
  }
  return last.back();
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  const size_t allowed = std::max<size_t>(2, name.size() / 3);
  size_t best = allowed + 1;
  std::string result;
  const std::string wanted = lower_case(std::string(name));
  for (const std::string& candidate : candidates) {
    const size_t shorter = std::min(name.size(), candidate.size());
    if (std::max(name.size(), candidate.size()) - shorter >= best) continue;
    const size_t distance = edit_distance(wanted, lower_case(candidate));
    // Any two short words are within two edits of each other, so more than half must stay.
    if (distance < best && 2 * distance < std::max(name.size(), candidate.size())) {
      best = distance;
      result = candidate;
    }
  }
  return result;
}

ConfigError unknown_name(std::string_view where, const std::string& kind, const std::string& name,
                         const std::vector<std::string>& known, const std::string& field) {
  const std::string allowed = listed(known);
  return ConfigError(
             where, "",
             "no " + kind + " is named '" + printable(name) + "'" + did_you_mean(name, known),
             allowed, "")
      .about(field.empty() ? kind : field, allowed, name);
}

std::string listed(const std::vector<std::string>& names, size_t most) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), most); ++i)
    text += (i > 0 ? ", " : "") + printable(names[i]);
  if (names.size() > most) text += " and " + std::to_string(names.size() - most) + " more";
  return text;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string known = familiar(name, candidates);
  const std::string near = known.empty() ? nearest(name, candidates) : known;
  return near.empty() ? "" : " (did you mean \"" + near + "\"?)";
}

}  // namespace tare
