// The pictures of CIFAR-10 and CIFAR-100 in their binary form.
//
// Krizhevsky 2009, Learning Multiple Layers of Features from Tiny Images;
// https://www.cs.toronto.edu/~kriz/cifar.html describes the files.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tare/data/splits.h"

namespace tare {

/// Reads the folder `cifar-10-batches-bin` (data_batch_1.bin to data_batch_5.bin, test_batch.bin,
/// batches.meta.txt) or `cifar-100-binary` (train.bin, test.bin, fine_label_names.txt; the coarse
/// labels are skipped), by the names of the files in it. `train` has the pictures for training, and
/// `test` the others: uint8 [3, 32, 32] with the names of their classes; `valid` is null. Throws
/// ConfigError for a folder that holds neither; IoError for a missing file; FormatError, naming the
/// file, for one of another size, and for a label without a name.
[[nodiscard]] Splits cifar(const std::filesystem::path& folder);

/// Returns what is wrong with each of these files, by their names, which cifar() would throw; a
/// label without a name is the first of its file. Throws ConfigError for a folder that holds
/// neither, and what is wrong with the names of the classes.
[[nodiscard]] std::map<std::string, std::string> cifar_problems(
    const std::filesystem::path& folder);

/// Whether a folder has the names of the classes of CIFAR-10 or CIFAR-100, so that cifar() reads
/// it.
[[nodiscard]] bool is_cifar(const std::filesystem::path& folder);

}  // namespace tare
