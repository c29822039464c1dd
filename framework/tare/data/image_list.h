// A table that lists pictures with their classes, as a data set.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tare/data/image_folder.h"
#include "tare/data/splits.h"

namespace tare {

/// Reads a list of PNG, JPEG and WebP files: CSV or JSON as read_table() reads it, whose head names
/// the columns. `path` is the file, relative to the folder of the list or absolute. `label` is the
/// name of its class; without the column the pictures have no labels. `split` is train, valid (or
/// val) or test; without the column all rows are one data set, which is `train` of the result, and
/// a split that no row names is null. Other columns are skipped. labels() are the names of all
/// classes of `train`, in bytewise order. The pictures are read as by image_folder(), with its
/// options. With `targets`, the names of columns of numbers, these are the targets in place of
/// `label`, float32 [samples, columns]; where all numbers are 0 or 1, each column is a label that
/// a picture has or lacks, and labels() are the names of the columns; else labels() is empty.
/// Throws IoError; FormatError, naming the file and the line, for a row that is no CSV,
/// has another number of columns, an empty or repeated path, another split, a class that `train`
/// does not have, a picture that is not there, a column that is not there, or a field of it that is
/// no number; ConfigError for a negative option, a target given twice, numbers whose differences
/// float32 does not hold, and a column of numbers with one value only.
[[nodiscard]] Splits image_list(const std::filesystem::path& file,
                                const ImageFolderOptions& options = {},
                                const std::vector<std::string>& targets = {});

/// Whether the first line of a CSV file, as far as it lies in the first 64 KiB, names a column
/// `path`, as that of a list does. Throws IoError.
[[nodiscard]] bool is_picture_list(const std::filesystem::path& file);

}  // namespace tare
