// What messages of ranks begin with. Internal.
#pragma once

namespace tare::parallel {

inline constexpr const char* kWhere = "ranks";  ///< the operation that errors name

}  // namespace tare::parallel
