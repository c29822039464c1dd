// kWhere: the word that begins every message about ranks. Internal.
#pragma once

namespace tare::parallel {

inline constexpr const char* kWhere = "ranks";  ///< the operation that errors name

}  // namespace tare::parallel
