// Adds what was asked for to what is allocated.
#include "tare/memory/request_text.h"

#include "tare/base/bytes.h"

namespace tare::memory {

std::string request_text(int64_t asked_bytes, int64_t allocated_bytes,
                         std::optional<int64_t> budget_bytes) {
  std::string text = "asked for " + format_bytes(asked_bytes) + " beside the " +
                     format_bytes(allocated_bytes) + " allocated";
  if (budget_bytes)
    text += ", which makes " + format_bytes(asked_bytes + allocated_bytes) + " of a budget of " +
            format_bytes(*budget_bytes);
  return text;
}

}  // namespace tare::memory
