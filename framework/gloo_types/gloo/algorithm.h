// Internal. Stands in for a header of Gloo, of which LibTorch's header needs nothing.
#pragma once
