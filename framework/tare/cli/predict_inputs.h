// Reads files, folders and standard input as samples of a bundle's model, for `tare predict`.
#pragma once

#include <string>
#include <vector>

#include "tare/cli/predict_place.h"

namespace tare::cli {

/// Predicts every sample of the inputs, in their order. Lines of standard input are predicted as
/// they come. For a model of pictures: a PNG, JPEG or WebP file, a folder
/// (its pictures and those of its subfolders, in bytewise order), a table whose column `path` names
/// pictures relative to its own folder, "-" for a picture or a list of paths on standard input, one
/// a line or with a zero byte behind each. For other models: a file with one sample a line, "-" for
/// such lines on standard input; for a model of tokens also a folder, each of whose text files
/// (.txt) is a sample. For every model, and alone for one of several inputs, a safetensors file: a
/// tensor [samples, ...] for each input under its name, the first under any. For a model of one
/// input that is no row of a table also a .npy file, see read_array(), in a folder, in a list, or
/// on standard input.
void predict_inputs(const PredictInputs& inputs, const std::vector<std::string>& paths);

}  // namespace tare::cli
