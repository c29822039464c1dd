// The data of a recipe's phases, as run and plan use them, and what is refused of them. Internal.
#pragma once

#include <functional>

#include "tare/recipe/phase_values.h"
#include "tare/recipe/recipe.h"
#include "tare/recipe/recipe_data.h"

namespace tare {

/// Whether open_data() of the phase would read nothing.
[[nodiscard]] bool is_open(const RecipeOptions& recipe, size_t phase, const RecipeData& data);
/// Returns the recipe's data set. Throws what RecipeData::open() throws, a ConfigError with the
/// place of the value.
[[nodiscard]] OpenData& open_data(const RecipeOptions& recipe, RecipeData& data);
/// Returns the data set of phase number `phase`, in the size that the phase shows. Throws as above.
[[nodiscard]] OpenData& open_data(const RecipeOptions& recipe, size_t phase, RecipeData& data);

/// Throws ConfigError for data that phase number `phase` cannot be trained on: without a training
/// split, smaller than a batch, with more classes than the model, with targets that the loss or a
/// metric does not take, or, in the last phase of a recipe that exports, with something that no
/// bundle can describe. Warns, once, of data of the phase's own with fewer classes than the model.
void check_data(const RecipeOptions& recipe, size_t phase, const OpenData& data);

/// Throws ConfigError for a `sample_shape` of the recipe that is not the shape of the first phase's
/// samples: a model of images would take any height and width, so that it would change nothing. The
/// context of a model of tokens may differ from the samples.
void check_sample_shape(const RecipeOptions& recipe, const DataFacts& first);

/// Throws ConfigError, with line and nearest name, for a file or folder of the recipe that is not
/// there.
void check_files(const RecipeOptions& recipe);

/// Calls `make`, which makes the recipe's model for samples of these data. What the model refuses
/// of them is thrown as a ConfigError with the place of the model.
void make_for(const RecipeOptions& recipe, const DataFacts& data,
              const std::function<void()>& make);

/// Throws ConfigError for a model that takes another number of inputs than the data give, and for a
/// phase that names a block or a layer group which the model does not have. Leaves every block
/// keeping its activations.
void check_model(const RecipeOptions& recipe, const DataFacts& data, Model& model);

/// Throws ConfigError for a model on the meta device that does not take the batches of phase number
/// `phase`, and for a loss or metric that does not take its output with their target.
void check_forward(const RecipeOptions& recipe, size_t phase, const DataFacts& data, Model& model);

/// Throws ConfigError where a batch norm of one of `ranks` would get a single sample in phase
/// number `phase`, because of its batch or because `drop_last: false` keeps the epoch's last one.
/// Asks only then whether the model `refuses` it.
void check_batches(const RecipeOptions& recipe, size_t phase, const DataFacts& data, int64_t ranks,
                   const std::function<bool()>& refuses);

/// Whether a batch norm of the model, on any device, refuses to train on one sample of the data.
[[nodiscard]] bool refuses_one_of(const DataFacts& data, Model& model);

/// Returns the model's options, with the classes and the sample shape of the recipe's data where it
/// gives none. Throws ConfigError if the data has no class labels to count.
[[nodiscard]] ModelOptions model_options(const RecipeOptions& recipe, const DataFacts& data);

/// Throws ConfigError for one of RecipeOptions::export_formats that cannot hold the model; `data`:
/// of the last phase. Makes the model anew on the host, and computes nothing.
void check_formats(const RecipeOptions& recipe, const DataFacts& data, const ModelSpec& model);

/// Returns the number of classes that the recipe gives or, where it gives none, that the labels of
/// the data have. Throws ConfigError if the data has no class labels.
[[nodiscard]] int64_t classes_of(const RecipeOptions& recipe, const DataFacts& data);

}  // namespace tare
