// Keeps what the callbacks of a run note across a resume.
#include "tare/recipe/run_callbacks.h"

#include <nlohmann/json.hpp>

#include "tare/base/error.h"

namespace tare {

std::string SmallestMicroBatch::state() const {
  if (samples_ == 0) return {};
  return nlohmann::json{{"micro_batches", most_}, {"samples", samples_}}.dump();
}

void SmallestMicroBatch::load_state(const std::string& json) {
  const auto value = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto count = [&](const char* field) {
    if (!value.is_object() || !value.contains(field) || !value[field].is_number_unsigned())
      throw FormatError("run.load_state", name(), field, "is not a count");
    return value[field].get<int64_t>();
  };
  most_ = count("micro_batches");
  samples_ = count("samples");
}

}  // namespace tare
