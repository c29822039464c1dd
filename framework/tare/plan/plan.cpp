// Describes the memory of a planned fit in one line.
#include "tare/plan/plan.h"

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/config/node.h"
#include "tare/trace/target.h"

namespace tare {

std::string MemoryPlan::str() const {
  if (!known()) return "cannot be predicted: " + reason;
  std::string text = "peak " + format_bytes(peak_bytes) + " (" + categories.str() + ")";
  if (!at.empty()) text += " in " + at;
  text += fits ? "; fits " : "; does not fit ";
  text += device + ", which has " + plan::capacity_text(capacity_bytes, total_bytes);
  return not_counted.empty() ? text : text + "; without " + listed(not_counted);
}

}  // namespace tare
