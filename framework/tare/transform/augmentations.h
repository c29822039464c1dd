// The augmentations, each in a file of its own. Internal.
#pragma once

#include "tare/transform/transform.h"

namespace tare::transforms {

void add_crops(Registry& all);         ///< adds crop, centre_crop and random_resized_crop
void add_colours(Registry& all);       ///< adds colour and grey
void add_erasing(Registry& all);       ///< adds erasing
void add_rand_augment(Registry& all);  ///< adds rand_augment

}  // namespace tare::transforms
