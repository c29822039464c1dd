// Keeps the temporaries of the host's operators out of the process's count of host memory: on a
// card they do not exist.
#pragma once

namespace stand_in {

/// While one lives, tensors that its thread allocates on the host come from the C library, past the
/// allocator of the process. They may be freed later and on another thread. Not copied.
class Uncounted {
 public:
  Uncounted();
  ~Uncounted();
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;
};

/// Puts an allocator of host tensors over the present one, to which it passes on all requests but
/// those within an Uncounted. Call it once.
void hide_temporaries();

}  // namespace stand_in
