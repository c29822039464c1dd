// `tare data check`: what is wrong with a folder of pictures, texts, the file of a table, or
// arrays.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tare/data/npy_check.h"
#include "tare/data/picture_check.h"
#include "tare/data/table_check.h"
#include "tare/data/text_check.h"

namespace tare::cli {

/// Returns the findings, one a line, and then tables of the classes and of the sizes, within
/// `width` columns.
[[nodiscard]] std::string text_of(const PictureCheck& check, size_t width);
/// Returns {folder, pictures, classes[] {split, name, pictures}, formats {}, channels {}, height
/// {min, median, max}, width {}, targets[] {name, min, mean, max}, skipped[] {extension, files,
/// first[]}, problems[] {path, problem}, warnings[] {path, problem}}.
[[nodiscard]] std::string json_of(const PictureCheck& check, const std::string& folder);

/// Returns the findings, one a line, and then a table of the columns, within `width` columns.
[[nodiscard]] std::string text_of(const TableCheck& check, size_t width);
/// Returns {file, rows, columns[] {name, kind, target, missing, different, min, mean, max},
/// classes[], problems[] {file, line, column, problem}, problem_count, warnings[]}. Of categories
/// and classes the figures are null; the file is null for a finding about all files, the line for
/// one about a whole column, the column for one about a line.
[[nodiscard]] std::string json_of(const TableCheck& check, const std::string& file);

/// Returns the findings, one a line, and then the number of texts with that of each class.
/// `name`: the data set; `description`: of its data; empty: it has not been read.
[[nodiscard]] std::string text_of(const TextCheck& check, const std::string& name,
                                  const std::string& description);
/// Returns {data, texts, classes[] {name, texts}, problems[] {file, line, column, problem},
/// problem_count, warnings[]}. The description is null where it is empty.
[[nodiscard]] std::string json_of(const TextCheck& check, const std::string& description);

/// Returns the findings, one a line, and then a table of the arrays, within `width` columns.
/// `description`: of their data set; empty: it has not been read.
[[nodiscard]] std::string text_of(const std::vector<NpyCheck>& arrays,
                                  const std::string& description, size_t width);
/// Returns {data, arrays[] {file, dtype, shape, not_finite, first_not_finite, min, mean, max},
/// problems[] {file, problem}, problem_count, warnings[] {file, problem}}. The figures are null
/// where no element is finite, and the description is null where it is empty.
[[nodiscard]] std::string json_of(const std::vector<NpyCheck>& arrays,
                                  const std::string& description);

/// Returns {data, problem_count} of a data set that was read without a problem; `description` is
/// that of the data set.
[[nodiscard]] std::string json_of(const std::string& description);

}  // namespace tare::cli
