// Captures streams of the stand-in, and launches what was kept of them.
#include "graphs.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cards.h"
#include "exported.h"
#include "memory.h"
#include "streams.h"

namespace stand_in {
namespace {

using Works = std::vector<std::function<cudaError_t()>>;

struct Capture {
  uint64_t number = 0;
  std::shared_ptr<Works> works = std::make_shared<Works>();
  bool valid = true;
};

std::mutex mutex;
uint64_t begun = 0;
std::atomic<unsigned> launched{0};
/// Never destroyed: streams are used until the last destructor of the process.
auto& captures = *new std::map<cudaStream_t, Capture>;

struct Graph {
  std::shared_ptr<Works> works;
};
Graph& of(cudaGraph_t graph) { return *reinterpret_cast<Graph*>(graph); }
Graph& of(cudaGraphExec_t graph) { return *reinterpret_cast<Graph*>(graph); }

cudaError_t instantiate(cudaGraphExec_t* made, cudaGraph_t graph) {
  *made = reinterpret_cast<cudaGraphExec_t>(new Graph(of(graph)));
  return cudaSuccess;
}

}  // namespace

uint64_t capture_of(cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  const auto found = captures.find(stream);
  return found == captures.end() ? 0 : found->second.number;
}

bool keep(cudaStream_t stream, const std::function<cudaError_t()>& work) {
  const std::lock_guard lock(mutex);
  const auto found = captures.find(stream);
  if (found == captures.end()) return false;
  found->second.works->push_back(work);
  return true;
}

bool breaks_capture(cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  bool any = false;
  for (auto& [captured, capture] : captures)
    if (!stream || captured == stream) {
      capture.valid = false;
      any = true;
    }
  return any;
}

}  // namespace stand_in

using namespace stand_in;

/// Whether a stream of the process is captured, and keeps work of operators beside that of kernels.
EXPORTED bool stand_in_captures() {
  const std::lock_guard lock(mutex);
  return !captures.empty();
}
EXPORTED void stand_in_keep(const std::function<void()>& work) {
  const std::lock_guard lock(mutex);
  for (auto& [stream, capture] : captures)
    capture.works->push_back([work] {
      work();
      return cudaSuccess;
    });
}

EXPORTED cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return cudaStreamGetCaptureInfo(stream, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}
EXPORTED cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                              unsigned long long* id, cudaGraph_t*,
                                              const cudaGraphNode_t**, const cudaGraphEdgeData**,
                                              size_t*) {
  const std::lock_guard lock(mutex);
  const auto found = captures.find(stream);
  const bool active = found != captures.end();
  *status = !active               ? cudaStreamCaptureStatusNone
            : found->second.valid ? cudaStreamCaptureStatusActive
                                  : cudaStreamCaptureStatusInvalidated;
  if (id) *id = active ? found->second.number : 0;
  return cudaSuccess;
}
EXPORTED cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (reinterpret_cast<uintptr_t>(stream) <= 2) return fail(cudaErrorStreamCaptureUnsupported);
  const std::lock_guard lock(mutex);
  if (captures.contains(stream)) return fail(cudaErrorIllegalState);
  captures[stream] = {.number = ++begun};
  return cudaSuccess;
}
EXPORTED cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(mutex);
  *graph = nullptr;
  const auto found = captures.find(stream);
  if (found == captures.end()) return fail(cudaErrorIllegalState);
  const Capture capture = std::move(found->second);
  captures.erase(found);
  if (!capture.valid) return fail(cudaErrorStreamCaptureInvalidated);
  *graph = reinterpret_cast<cudaGraph_t>(new Graph{capture.works});
  return cudaSuccess;
}
EXPORTED cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, size_t* count) {
  *count = of(graph).works->size();
  return cudaSuccess;
}
EXPORTED cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph,
                                          unsigned long long) {
  return instantiate(made, graph);
}
EXPORTED cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph,
                                                   unsigned long long) {
  return instantiate(made, graph);
}
/// How many graphs this process has queued.
EXPORTED unsigned stand_in_graphs() { return launched; }
EXPORTED cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  ++launched;
  for (const auto& work : *of(graph).works)
    if (const cudaError_t error = queue(stream, work)) return error;
  return cudaSuccess;
}
EXPORTED cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete &of(graph);
  return cudaSuccess;
}
EXPORTED cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete &of(graph);
  return cudaSuccess;
}
