// Presence: when a field stands in a JSON file of a run.
#pragma once

namespace tare {

/// Says when a file has a field of a list. Names and order of the keys never change; a field that
/// is new has `since_later`.
enum class Presence {
  always,       ///< every version writes it; a file without it is damaged
  since_later,  ///< always written now; an earlier version did not, which leaves its default
  where_set     ///< only written where it is not empty, 0, false or unset
};

}  // namespace tare
