// Compares the columns that a model takes with those of the data.
#include "tare/recipe/column_check.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "tare/base/error.h"
#include "tare/config/scalar.h"
#include "tare/model/registry.h"

namespace tare {
namespace {

constexpr const char* kCategoriesOption = "categories";
constexpr const char* kPath = "model.options.categories";
constexpr int64_t kRowsAtOnce = 4096;
constexpr size_t kMostNames = 10;

[[noreturn]] void refuse(const RecipeOptions& recipe, const std::string& path,
                         const std::string& problem, const std::string& allowed,
                         const std::string& got) {
  throw ConfigError("recipe.run", path, problem, allowed, got).within("", recipe.file.place(path));
}

/// Returns the options that only this model has, with their defaults.
config::Node own_options_of(const std::string& model) {
  for (auto& info : models::registry().infos())
    if (info.name == model) return std::move(info.defaults);
  return config::Node::map();
}

const RowCoding* rows_of(const DataFacts& data) {
  return data.bundle && data.bundle->rows ? &*data.bundle->rows : nullptr;
}

std::string text_of(const std::vector<int64_t>& sizes) { return c10::str(at::IntArrayRef(sizes)); }

std::vector<std::string> names_of(const RowCoding& rows) {
  std::vector<std::string> names;
  for (const ColumnCoding& column : rows.columns)
    if (column.kind == "category") names.push_back(column.name);
  return names;
}

std::optional<std::vector<int64_t>> given_categories(const RecipeOptions& recipe) {
  const config::Node* node = recipe.model.options.options.node.find(kCategoriesOption);
  return node ? std::optional(config::read<std::vector<int64_t>>(*node)) : std::nullopt;
}

void check_table(const RecipeOptions& recipe, const RowCoding& rows,
                 const std::optional<std::vector<int64_t>>& given) {
  const std::vector<int64_t> sizes = rows.categories();
  const bool takes = own_options_of(recipe.model.name).find(kCategoriesOption) != nullptr;
  if (!takes && !sizes.empty())
    refuse(
        recipe, "model.name",
        "takes numbers only, and the table has categories: " + listed(names_of(rows), kMostNames),
        "tabular, or data.columns without them; texts to classify are the data set text_list",
        recipe.model.name);
  if (given && *given != sizes)
    refuse(recipe, kPath,
           "are not those of the table, whose categories are " +
               (sizes.empty() ? "none" : listed(names_of(rows), kMostNames)),
           "omit it, or " + text_of(sizes), text_of(*given));
}

/// Checks the first columns of rows, float [rows, columns], of which the first is number `first`.
void check_codes(const RecipeOptions& recipe, const std::vector<int64_t>& categories,
                 const at::Tensor& rows, const std::string& split, int64_t first) {
  const at::Tensor values = rows.to(at::kDouble).contiguous();
  const auto row = values.accessor<double, 2>();
  for (int64_t i = 0; i < values.size(0); ++i)
    for (int64_t column = 0; column < std::ssize(categories); ++column) {
      const double value = row[i][column];
      const int64_t count = categories[static_cast<size_t>(column)];
      const bool whole = value == std::floor(value);
      if (whole && value >= 0 && value < static_cast<double>(count)) continue;
      refuse(recipe, kPath + ('.' + std::to_string(column)),
             std::string(whole ? "does not hold a code" : "is for codes, and a column of numbers") +
                 " of the data: column " + std::to_string(column) + " has " +
                 config::number_text(value) + " in sample " + std::to_string(first + i) +
                 " of the " + split + " split",
             whole ? "more categories, or codes from 0 to " + std::to_string(count - 1)
                   : "categories for the first columns alone, which hold whole numbers from 0 on",
             std::to_string(count));
    }
}

void check_codes(const RecipeOptions& recipe, const std::vector<int64_t>& categories,
                 const DatasetPtr& data, const std::string& split) {
  if (!data || std::ssize(data->sample_shape()) != 1 ||
      data->sample_shape().front() < std::ssize(categories))
    return;  // the model refuses the shape
  for (int64_t first = 0; first < data->size(); first += kRowsAtOnce) {
    std::vector<int64_t> indices(static_cast<size_t>(std::min(kRowsAtOnce, data->size() - first)));
    std::iota(indices.begin(), indices.end(), first);
    check_codes(recipe, categories, data->get({.indices = indices}).input(), split, first);
  }
}

}  // namespace

void add_columns(config::OwnOptions& options, const std::string& model, const DataFacts& data) {
  const RowCoding* rows = rows_of(data);
  if (!rows) return;
  const config::Node own = own_options_of(model);
  const auto add = [&](const char* name, config::Node value) {
    if (own.find(name) && !options.node.find(name)) options.node.set(name, std::move(value));
  };
  add(kCategoriesOption, config::to_node(rows->categories()));
  const bool scaled = options.node.find("output_mean") || options.node.find("output_deviation");
  if (scaled) return;
  if (rows->target_deviation > 0) {
    add("output_mean", config::to_node(rows->target_mean));
    add("output_deviation", config::to_node(rows->target_deviation));
  } else if (!rows->target_means.empty()) {
    add("output_mean", config::to_node(rows->target_means));
    add("output_deviation", config::to_node(rows->target_deviations));
  }
}

bool scales_outputs(const std::string& model) {
  return own_options_of(model).find("output_deviation") != nullptr;
}

std::vector<std::string> category_columns(const RecipeOptions& recipe, const DataFacts& data) {
  if (const RowCoding* rows = rows_of(data)) return names_of(*rows);
  std::vector<std::string> names;
  for (size_t i = 0; i < given_categories(recipe).value_or(std::vector<int64_t>()).size(); ++i)
    names.push_back("column " + std::to_string(i));
  return names;
}

void check_columns(const RecipeOptions& recipe, const OpenData& data) {
  const std::optional<std::vector<int64_t>> given = given_categories(recipe);
  if (const RowCoding* rows = rows_of(data.facts)) return check_table(recipe, *rows, given);
  if (!given || given->empty()) return;
  const Splits& splits = data.named.splits;
  check_codes(recipe, *given, splits.train, "training");
  check_codes(recipe, *given, splits.valid, "validation");
  check_codes(recipe, *given, splits.test, "test");
}

bool same_columns(const RowCoding& one, const RowCoding& other) {
  return std::ranges::equal(one.columns, other.columns,
                            [](const ColumnCoding& a, const ColumnCoding& b) {
                              return a.name == b.name && a.kind == b.kind && a.texts == b.texts;
                            });
}

void check_same_columns(const RecipeOptions& recipe, size_t phase, const DataFacts& first,
                        const DataFacts& own) {
  const RowCoding *wanted = rows_of(first), *have = rows_of(own);
  if (!wanted && !have) return;
  if (wanted && have && same_columns(*wanted, *have)) return;
  const std::string path = "phases." + std::to_string(phase) + ".data";
  refuse(recipe, path,
         "has other columns, or other categories, than the data of the recipe, for which the model "
         "is made",
         "tables with equal columns whose training splits have equal categories", "");
}

}  // namespace tare
