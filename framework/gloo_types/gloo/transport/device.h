// Names Gloo's classes that LibTorch's header only points to. Internal.
#pragma once

namespace gloo::transport {

class Device;
class UnboundBuffer;

}  // namespace gloo::transport
