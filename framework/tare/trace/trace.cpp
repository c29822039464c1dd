// Traces work on the meta device.
#include "tare/trace/trace.h"

#include <utility>

#include "tare/trace/autocast.h"
#include "tare/trace/dispatch.h"
#include "tare/trace/dispatch_key.h"
#include "tare/trace/gradient_sum.h"
#include "tare/trace/host_trace.h"
#include "tare/trace/recording.h"

namespace tare::plan {

void mark(std::string name) {
  if (!host_mark(name)) meta_mark(std::move(name));
}

void note(const Ledger& ledger) {
  if (!host_note(ledger)) meta_note(ledger);
}

// The comma: the fallbacks must be there before the keys are included.
MetaScope::MetaScope()
    : include_(
          (register_fallback(), register_autocast(), c10::DispatchKeySet({kKey, kAutocastKey}))),
      nodes_(watch_nodes()) {}
MetaScope::~MetaScope() { stop_watching_nodes(nodes_); }

OffCard::OffCard() { pause_recording(for_card()); }
OffCard::~OffCard() { pause_recording(false); }

Trace trace(const std::function<void()>& body, Machine machine) {
  Recording recording(machine);
  {
    const MetaScope meta;
    body();
  }
  return recording.finish();
}

}  // namespace tare::plan
