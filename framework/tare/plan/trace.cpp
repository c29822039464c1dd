#include "tare/plan/trace.h"

#include "tare/plan/dispatch.h"
#include "tare/plan/gradient_sum.h"
#include "tare/plan/recording.h"

namespace tare::plan {

CannotTell::CannotTell(std::string op, std::string_view reason, std::string_view advice)
    : Error("[plan] cannot tell: " + printable(op) + " " + printable(reason) + "; " +
            printable(advice)),
      op_(std::move(op)) {}

// The comma: the fallback must be there before the key is included.
MetaScope::MetaScope() : include_((register_fallback(), kKey)), nodes_(watch_nodes()) {}
MetaScope::~MetaScope() { stop_watching_nodes(nodes_); }

Trace trace(const std::function<void()>& body, Machine machine) {
  Recording recording(machine);
  {
    const MetaScope meta;
    body();
  }
  return recording.finish();
}

}  // namespace tare::plan
