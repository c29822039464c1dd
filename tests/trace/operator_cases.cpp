// Collects the cases of all families of operators.
#include "trace/operator_cases.h"

namespace tare::plan {

const std::vector<Case>& all_cases() {
  static const Cases all = [] {
    Cases each;
    for (const auto add : {&add_elementwise, &add_products, &add_layers, &add_recurrent,
                           &add_resizing, &add_shapes, &add_losses})
      add(each);
    return each;
  }();
  return all.all();
}

}  // namespace tare::plan
