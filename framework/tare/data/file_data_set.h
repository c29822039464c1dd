// Chooses the data set that reads a file, where nobody has named one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tare {

/// Returns the name of the data set that reads a file: npy, csv or jsonl, by its extension, or
/// image_list for a table with a column `path` where no option is given, or `targets`. `options`:
/// the names of the options that are given, such as "target". A .txt file is the data set text if
/// an option is one that csv does not take, such as "tokenizer". Without an option that only csv
/// takes it is so too, if it is no table. Throws IoError for a file that cannot be read.
[[nodiscard]] std::string data_set_of(const std::filesystem::path& file,
                                      const std::vector<std::string>& options = {});

}  // namespace tare
