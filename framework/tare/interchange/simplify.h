// Removes from a graph what inference does not need.
#pragma once

#include "tare/interchange/graph.h"

namespace tare::interchange {

/// Simplifies a graph; what it computes stays the same, to the bit where LibTorch computes it:
/// - dropout, copies and detached views, which do nothing here, are removed;
/// - a product with a transposed weight, and the bias added to it, become one aten::linear;
/// - aten::view becomes aten::reshape, which does not depend on how a reader lays out memory;
/// - operators whose results are not used are removed.
/// Weights stay, also those that nothing reads, such as the counts of batch norms.
void simplify(Graph& graph);

}  // namespace tare::interchange
