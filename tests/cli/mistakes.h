// The table of bad input to the program: what a row holds, and how rows are made.
#pragma once

#include <filesystem>
#include <functional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/damage.h"

namespace tare::testing {

namespace fs = std::filesystem;

inline constexpr int kFailed = 1, kBadInput = 2, kOutOfMemory = 3, kIo = 4;  // exit codes

inline constexpr const char* kRecipe = R"(name: tiny
batch: 32
device: cpu
data: {name: generated_digits, count: 60, size: 16}
model: {name: mlp, hidden: [8]}
phases:
  - {name: only, epochs: 1, lr: 1.0e-2}
export: tiny.tare
)";

/// Holds files that the program itself made, for rows that need a good file to spoil.
struct Made {
  std::string bundle, images, labels;  // contents; the IDX files are gzip
};

struct Mistake {
  std::string name{};  ///< of the test
  std::vector<std::string> arguments{};
  int code = kBadInput;
  std::vector<std::string> pieces{};  ///< of the message
  std::function<void(const fs::path& folder, const Made& made)> prepare{};
  bool trains = false;  ///< fails at work: the run's folder stays, without results
};

inline void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

inline void write(const fs::path& path, const std::string& content) { overwrite(path, content); }

/// The recipe with `from` replaced.
inline std::string changed(const std::string& from, const std::string& to) {
  std::string text = kRecipe;
  const size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("the recipe has no " + from);
  return text.replace(at, from.size(), to);
}

/// `tare run bad.yaml` on that text.
inline Mistake recipe(std::string name, std::string text, std::vector<std::string> pieces) {
  return {.name = std::move(name),
          .arguments = {"run", "bad.yaml"},
          .pieces = std::move(pieces),
          .prepare = [text = std::move(text)](const fs::path& folder, const Made&) {
            write(folder / "bad.yaml", text);
          }};
}

/// `tare run tiny.yaml` with an override.
inline Mistake override_with(std::string name, std::string argument,
                             std::vector<std::string> pieces) {
  return {.name = std::move(name),
          .arguments = {"run", "tiny.yaml", std::move(argument)},
          .pieces = std::move(pieces)};
}

// The parts of the table.
std::vector<Mistake> mistakes_in_the_file();
std::vector<Mistake> mistakes_in_names();
std::vector<Mistake> mistakes_on_the_command_line();
std::vector<Mistake> mistakes_in_data();
std::vector<Mistake> mistakes_with_files();

}  // namespace tare::testing
