// Reads pictures, numbers and texts into samples for a bundle.
#include "tare/cli/predict_inputs.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/cli/predict_arrays.h"
#include "tare/cli/predict_queue.h"
#include "tare/cli/predict_tensors.h"
#include "tare/data/class_folders.h"
#include "tare/data/table_head.h"
#include "tare/inference/padded_inputs.h"
#include "tare/inference/rows.h"
#include "tare/transform/image.h"
#include "tare/transform/image_limits.h"
#include "tare/transform/picture.h"
#include "tare/transform/piped_table.h"
#include "tare/transform/row_coding.h"
#include "tare/transform/table_text.h"
#include "tare/transform/unknown_texts.h"

namespace tare::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStandardInput = "/dev/stdin";
constexpr size_t kMostNames = 20;  // of columns in a message
constexpr const char* kLinesOfText = "; --text takes each line as a text";
constexpr int64_t kMaxRowsBytes = int64_t{1} << 30;

constexpr std::string_view kArrayMagic("\x93NUMPY", 6);
constexpr std::string_view kArchiveMagic("PK\x03\x04", 4);

constexpr std::array<std::string_view, 1> kTextExtensions{".txt"};
constexpr std::array<std::string_view, 2> kTextOrArrayExtensions{".txt", ".npy"};
constexpr std::array<std::string_view, 1> kTensorExtensions{".safetensors"};
constexpr std::array<std::string_view, 1> kArrayExtensions{".npy"};
constexpr std::array<std::string_view, 1> kArchiveExtensions{".npz"};
constexpr std::array<std::string_view, 5> kListExtensions{".csv", ".tsv", ".jsonl", ".ndjson",
                                                          ".json"};
constexpr std::array<std::string_view, 3> kJsonExtensions{".jsonl", ".ndjson", ".json"};
constexpr auto kPictureOrArrayExtensions = [] {
  std::array<std::string_view, kImageExtensions.size() + 1> all{};
  std::ranges::copy(kImageExtensions, all.begin());
  all.back() = kArrayExtensions.front();
  return all;
}();
constexpr FileKind kPicturesOrArrays{"predict", kPictureOrArrayExtensions,
                                     "PNG, JPEG, WebP or .npy", "samples"};
constexpr FileKind kTexts{"predict", kTextExtensions, "text", "texts"};
constexpr FileKind kTextsOrArrays{"predict", kTextOrArrayExtensions, "text or .npy", "samples"};
constexpr FileKind kTensors{"predict", kTensorExtensions, "safetensors", "samples"};
constexpr FileKind kArrays{"predict", kArrayExtensions, ".npy", "samples"};
constexpr FileKind kArchives{"predict", kArchiveExtensions, ".npz", "arrays"};
constexpr FileKind kLists{"predict", kListExtensions, "CSV or JSON", "paths"};
constexpr FileKind kJson{"predict", kJsonExtensions, "JSON", "rows"};

/// Whether a second picture follows the first. Only a thumbnail inside a JPEG begins without the
/// end of another one in front of it.
bool holds_several(std::string_view bytes, std::string_view format) {
  if (format == "WebP") {
    constexpr size_t kSizeAt = 4, kBehindSize = 8;
    size_t size = kBehindSize;
    for (size_t i = 0; i < 4; ++i)
      size += static_cast<size_t>(static_cast<unsigned char>(bytes[kSizeAt + i])) << (8 * i);
    return bytes.size() > size + size % 2;
  }
  const std::string_view next = format == "PNG" ? "\x89PNG\r\n\x1a\n" : "\xff\xd9\xff\xd8\xff";
  return bytes.find(next, 1) != std::string_view::npos;
}

class Samples {
 public:
  explicit Samples(const PredictInputs& inputs) : inputs_(inputs), queue_(inputs) {}

  void flush() { queue_.flush(); }
  void read(const std::string& input) {
    guarded({input}, [&] {
      if (input != "-" && is_named(input, kTensors))
        inputs_.truths ? Truths::refuse(input) : tensors(input);
      else if (!fits_one_tensor(manifest()))
        refuse_several();
      else if (input == "-")
        piped();
      else
        fs::is_directory(input) ? folder(input) : file(input);
    });
  }

 private:
  using Known = std::optional<Truth>;

  /// Throws ConfigError for an input of which nothing is known, but has to be. One that is not
  /// there is refused when it is read.
  void check_known(const Known& known, const std::string& path) const {
    if (inputs_.truths && !known && (path == "-" || fs::exists(path))) Truths::refuse(path);
  }

  template <class Action>
  void guarded(const SamplePlace& place, Action action) {
    try {
      action();
    } catch (...) {
      queue_.flush();  // they come first
      inputs_.on_failure(place);
    }
  }

  [[nodiscard]] const BundleManifest& manifest() const { return inputs_.predictor.manifest(); }

  [[noreturn]] void refuse_several() const {
    throw ConfigError("predict", "the model takes " +
                                     std::to_string(1 + manifest().more_inputs.size()) +
                                     " inputs: give a safetensors file with a tensor [samples, "
                                     "...] for each, which `tare inspect` lists");
  }

  void predict(const SamplePlace& place, const at::Tensor& sample) {
    queue_.add(place, batch_of_one(manifest(), sample));
  }
  void predict_picture(const SamplePlace& place, const at::Tensor& pixels) {
    queue_.add(place, Batch(inputs_.predictor.picture_input(pixels)));
  }

  void tensors(const fs::path& path) {
    const Batch all = tensors_in(path, manifest());
    for (int64_t i = 0; i < all.size(); ++i)
      guarded({path.string(), i + 1}, [&] {
        Batch one;
        for (const auto& [name, tensor] : all.inputs)
          one.inputs.push_back({name, tensor.narrow(0, i, 1)});
        check_lengths(path, one);
        queue_.add({path.string(), i + 1}, std::move(one));
      });
  }

  [[nodiscard]] bool takes_pictures() const {
    return inputs_.predictor.sample_kind() == SampleKind::image && !inputs_.text;
  }

  void file(const std::string& path) {
    if (takes_pictures() && is_named(path, kLists)) return list(path);
    sample_file(path);
  }

  /// Predicts a file that is neither a folder nor a list of other files.
  void sample_file(const std::string& path, const Known& known = {}) {
    if (is_named(path, kArchives)) refuse_archive(path);
    if (is_named(path, kArrays)) return array(path, known);
    if (is_text_list(path)) return texts(path);
    takes_pictures() ? picture(path, known) : rows(path);
  }

  void array(const std::string& path, const Known& known) {
    if (inputs_.text)
      throw ConfigError("predict", "--text is for lines of text, and '" + printable(path) +
                                       "' is an array: omit it");
    array(path, read_array(path, manifest()), known);
  }

  /// Predicts an array whose bytes were on standard input.
  void array_in(std::string_view bytes) {
    if (inputs_.text)
      throw ConfigError("predict",
                        "--text is for lines of text, and standard input is an array: omit it");
    array("-", array_from(bytes, "-", manifest()), {});
  }

  /// `known`: what each of the samples is known to be; unset: an array of targets has it.
  void array(const std::string& path, const ArraySamples& all, const Known& known) {
    if (all.samples.numel() == 0) refuse_empty(path, "the array has no element");
    std::vector<Truth> truths;
    if (inputs_.truths && !known) truths = inputs_.truths->of_array(path, all.samples.size(0));
    for (int64_t i = 0; i < all.samples.size(0); ++i) {
      const SamplePlace place{path, all.is_one ? 0 : i + 1,
                              truths.empty() ? known : truths[static_cast<size_t>(i)]};
      guarded(place, [&] {
        const at::Tensor sample = all.samples.narrow(0, i, 1);
        check_finite(sample, path, i + 1);
        all.pictures ? predict_picture(place, sample[0]) : predict(place, sample);
      });
    }
  }

  /// Throws FormatError for a length that is not one of the tokens of its sample.
  void check_lengths(const fs::path& path, const Batch& one) const {
    if (!takes_lengths(manifest())) return;
    const at::Tensor &tokens = one.inputs[0].tensor, &lengths = one.inputs[1].tensor;
    if (tokens.dim() != 2 || lengths.dim() != 1 || lengths.scalar_type() != c10::kLong) return;
    const int64_t length = lengths.item<int64_t>();
    if (length >= 1 && length <= tokens.size(1)) return;
    throw FormatError("predict", path.string(), "lengths",
                      "is " + std::to_string(length) + ", and a sample has " +
                          std::to_string(tokens.size(1)) + " tokens: give from 1 to " +
                          std::to_string(tokens.size(1)));
  }

  void picture(const std::string& path, const Known& known) {
    check_known(known, path);
    const int64_t channels = inputs_.predictor.sample_shape()[0];
    predict_picture({path, 0, known}, read_image(path, channels));
  }

  /// Predicts the files of a folder and of those below it, each as if it were given alone; a text
  /// file is one sample, as in a data set of text files.
  void folder(const fs::path& path) {
    const bool tokens = inputs_.predictor.sample_kind() == SampleKind::tokens;
    if (!takes_pictures() && !tokens && (is_table() || !holds_files(path, kArrays)))
      throw ConfigError("predict", "'" + printable(path.string()) +
                                       "' is a folder, but the model takes no pictures: give a "
                                       "file with one sample a line" +
                                       (is_table() ? "" : ", or a folder of .npy files"));
    const FileKind& kind = takes_pictures() ? kPicturesOrArrays
                           : !tokens        ? kArrays
                           : inputs_.text   ? kTexts
                                            : kTextsOrArrays;
    if (inputs_.truths) inputs_.truths->check_folder(path);
    for (const auto& file : list_files_below(path, kind))
      guarded({file.string()}, [&] {
        Known known;
        if (inputs_.truths) known = inputs_.truths->of_file(path, file);
        is_named(file, kTexts) ? text_file(file, known) : sample_file(file.string(), known);
      });
  }

  void text_file(const fs::path& file, const Known& known) {
    const std::string text = io::read_text(file, kMaxRowsBytes);
    if (text.empty()) refuse_empty(file.string(), "the file is empty");
    predict({file.string(), 0, known}, parse_text(text, manifest(), {file.string()}));
  }

  /// Returns the columns of a table with what its rows are known to be; none where that is not
  /// asked for.
  [[nodiscard]] std::vector<size_t> known_columns(const TableText& table) const {
    return inputs_.truths ? inputs_.truths->columns(table) : std::vector<size_t>();
  }
  [[nodiscard]] Known known_of(const TableText& table, int64_t row,
                               const std::vector<size_t>& columns) const {
    if (!inputs_.truths) return std::nullopt;
    return inputs_.truths->of_row(table, row, columns);
  }

  static void warn_of_train(const TableText& list) {
    const auto column = std::ranges::find(list.names(), "split");
    if (column == list.names().end()) return;
    const auto place = static_cast<size_t>(column - list.names().begin());
    int64_t rows = 0;
    for (int64_t row = 0; row < list.rows(); ++row) rows += list.field(row, place) == "train";
    if (rows > 0)
      log::warning_once(printable(list.path()) + ": --score counts all rows, also the " +
                        format_count(rows) +
                        " of the split train: give a list of the rows that the training has not "
                        "seen");
  }

  /// Predicts the pictures that a table names, as those of the data set image_list.
  void list(const std::string& path) {
    const TableText all = table_of(path, {});
    const auto column = std::ranges::find(all.names(), "path");
    if (column == all.names().end())
      throw FormatError("predict", path, "head",
                        "has no column `path`: the model takes pictures, and a list of them has "
                        "their paths there, relative to the folder of the list; there are " +
                            printable(listed(all.names(), kMostNames), 1000));
    const auto place = static_cast<size_t>(column - all.names().begin());
    const std::vector<size_t> known = known_columns(all);
    if (inputs_.truths) warn_of_train(all);
    for (int64_t row = 0; row < all.rows(); ++row) {
      const std::string name(all.field(row, place));
      const fs::path picture = fs::path(path).parent_path() / name;
      const auto refuse = [&](const std::string& problem) {
        throw FormatError("predict", path, "line " + std::to_string(all.line(row)), problem);
      };
      guarded({name.empty() ? path : picture.string(), name.empty() ? all.line(row) : 0}, [&] {
        if (name.empty()) refuse("has no path");
        std::error_code ignored;  // what cannot be looked at is reported as missing
        if (!fs::is_regular_file(picture, ignored))
          refuse("names " + printable(picture.string(), 1000) +
                 ", which is not there; paths are relative to the folder of the list");
        sample_file(picture.string(), known_of(all, row, known));
      });
    }
  }

  /// Returns the column of a table that has the texts for a model of texts, as the data set
  /// text_list names its input.
  [[nodiscard]] std::string text_column() const { return manifest().input_name; }

  /// Whether the model takes tokens, so that a table may have its texts in a column.
  [[nodiscard]] bool takes_text_lists() const {
    return inputs_.predictor.sample_kind() == SampleKind::tokens && !is_table() &&
           !text_column().empty();
  }

  /// Whether a line without a number is the head of a table that lacks the column of the texts. A
  /// line may be a text itself with --text, or where the input has the name of all inputs.
  [[nodiscard]] bool is_other_head(const std::string& line) const {
    return takes_text_lists() && text_column() != "input" && !inputs_.text && is_header(line);
  }

  /// Whether a file is a table of texts, and not lines of texts or of bytes as numbers.
  [[nodiscard]] bool is_text_list(const fs::path& path) const {
    if (!takes_text_lists() || !is_named(path, kLists)) return false;
    if (is_named(path, kJson) || head_names(path, text_column())) return true;
    return is_other_head(first_line(path));
  }

  static bool begins_json(const std::string& line) {
    const size_t start = line.find_first_not_of(" \t\r");
    return start != std::string::npos && (line[start] == '{' || line[start] == '[');
  }

  /// Whether standard input is a table of texts by its first line: JSON, or CSV whose head names
  /// the column.
  [[nodiscard]] bool is_text_list_line(const std::string& first) const {
    const bool is_json = begins_json(first) &&
                         (!inputs_.text || first.find('"' + text_column() + '"') != first.npos);
    return takes_text_lists() && (is_json || names_column(first, text_column()));
  }

  /// Predicts the texts of a table, as those of the data set text_list.
  void texts(const std::string& path) {
    TableFindings findings;
    const TableText all = read_table(path, {}, &findings);
    texts(path, all, findings, is_named(path, kJson));
  }
  void texts(const std::string& path, const TableText& all, const TableFindings& findings,
             bool is_json) {
    const auto column = std::ranges::find(all.names(), text_column());
    if (column == all.names().end())
      throw FormatError("predict", path, "names",
                        "have no '" + printable(text_column()) +
                            "', which has the texts in the training; there are " +
                            printable(listed(all.names(), kMostNames), 1000) +
                            ": give the column of the texts that name" +
                            (is_json ? "" : kLinesOfText));
    report(findings, path);
    const std::vector<size_t> known = known_columns(all);
    for (int64_t row = 0; row < all.rows(); ++row) {
      const LinePlace place{path, all.line(row)};
      guarded({path, place.number}, [&] {
        const auto text = all.field(row, static_cast<size_t>(column - all.names().begin()));
        predict({path, place.number, known_of(all, row, known)},
                parse_text(text, manifest(), place));
      });
    }
  }

  void piped() {
    if (takes_pictures()) return piped_pictures();
    if (is_table()) return table("-");
    if (std::cin.peek() == static_cast<unsigned char>(kArrayMagic.front())) {
      check_known({}, "-");
      return array_in(rest_of(std::cin));
    }
    std::string first;
    const bool any = static_cast<bool>(std::getline(std::cin, first));
    if (is_text_list_line(first)) return piped_texts(std::move(first));
    if (is_other_head(first))
      throw FormatError("predict", "-", "line 1",
                        "has no number, and does not name the column '" + printable(text_column()) +
                            "', which has the texts in the training: it is '" +
                            printable(first, 200) + "'" + kLinesOfText);
    check_known({}, "-");
    rows_of(std::cin, "-", any ? &first : nullptr);
  }

  /// Predicts the texts of a table on standard input, whose first line has been read.
  void piped_texts(std::string text) {
    if (inputs_.text)
      throw ConfigError("predict",
                        "standard input is a table, and --text takes each line as a text: omit "
                        "--text, so that the column '" +
                            printable(text_column()) + "' is taken");
    const bool is_json = begins_json(text);
    text += '\n' + rest_of(std::cin);
    TableFindings findings;
    const TableText all = table_in(text, "-", {}, &findings);
    texts("-", all, findings, is_json);
  }

  static std::string rest_of(std::istream& stream) {
    std::ostringstream bytes;
    if (stream.peek() != std::char_traits<char>::eof()) bytes << stream.rdbuf();
    return std::move(bytes).str();
  }

  // Standard input is one picture, an array, or a list of paths: one a line, or with a zero byte
  // behind each.
  void piped_pictures() {
    if (inputs_.truths) Truths::refuse("-");
    const std::string text = io::read_text(kStandardInput, kMaxRowsBytes);
    const std::string_view format = format_of(std::as_bytes(std::span(text)));
    if (!format.empty()) {
      if (holds_several(text, format))
        throw ConfigError("predict", "standard input holds more than one " + std::string(format) +
                                         ": give a list of paths");
      const int64_t channels = inputs_.predictor.sample_shape()[0];
      const at::Tensor pixels = decode_image(std::as_bytes(std::span(text)), "-", channels);
      predict_picture({"-"}, pixels);
      return;
    }
    if (text.starts_with(kArrayMagic)) return array_in(text);
    if (text.starts_with(kArchiveMagic)) refuse_archive("-");
    const std::vector<std::string> paths = paths_in(text);
    if (paths.empty()) refuse_empty("-", "give a picture, or a list of paths");
    for (const auto& path : paths)
      guarded({path}, [&] { fs::is_directory(path) ? folder(path) : sample_file(path); });
  }

  static std::vector<std::string> paths_in(const std::string& text) {
    const char separator = text.find('\0') == std::string::npos ? '\n' : '\0';
    std::vector<std::string> paths;
    std::istringstream list(text);
    for (std::string path; std::getline(list, path, separator);) {
      if (separator == '\n' && path.ends_with('\r')) path.pop_back();
      if (!path.empty()) paths.push_back(path);
    }
    return paths;
  }

  static std::string name_of(const std::string& path) {
    return path == "-" ? "standard input" : "'" + printable(path, 1000) + "'";
  }
  [[noreturn]] static void refuse_empty(const std::string& path, const std::string& more) {
    throw ConfigError("predict", name_of(path) + " holds no sample: " + more);
  }
  [[noreturn]] void refuse_archive(const std::string& path) const {
    throw ConfigError(
        "predict", name_of(path) + " is an archive, such as a .npz file of several arrays: " +
                       (is_table() ? "the model takes rows of a table; give a CSV file or JSON "
                                     "lines"
                                   : "save the array of the samples alone, by numpy.save('x.npy', "
                                     "numpy.load('x.npz')['NAME']), and give x.npy"));
  }

  void rows(const std::string& path) {
    if (is_table()) return table(path);
    check_known({}, path);
    std::istringstream lines(io::read_text(path, kMaxRowsBytes));
    rows_of(lines, path);
  }

  [[nodiscard]] bool is_table() const { return manifest().rows && !inputs_.text; }

  /// Reads a table, whose lines that cannot be read fail alone.
  [[nodiscard]] TableText table_of(const std::string& path, const TableFormat& format) {
    TableFindings findings;
    TableText all = read_table(path, format, &findings);
    report(findings, path);
    return all;
  }

  /// Reports the lines of a table that cannot be read.
  void report(const TableFindings& findings, const std::string& path) {
    for (const TableFinding& finding : findings.list)
      guarded({path, finding.line}, [&] {
        throw FormatError("predict", path, "line " + std::to_string(finding.line), finding.problem);
      });
  }

  void table(const std::string& path) {
    const RowCoding& coding = *manifest().rows;
    const TableText all = table_of(path, coding.format());
    const RowEncoder rows(coding, all);
    if (!rows.unused().empty())
      log::warning_once(printable(path) + ": the model does not take " +
                        listed(rows.unused(), kMostNames) + ", which it ignores");
    for (const UnknownTexts& unknown : unknown_texts(coding, all))
      log::warning(printable(path) + ": the column '" + printable(unknown.column) + "' has " +
                   format_count(unknown.fields) + (unknown.fields == 1 ? " field" : " fields") +
                   " with a text that the training did not have, such as '" +
                   printable(unknown.first, 50) + "': the model takes each as unknown");
    const std::vector<size_t> known = known_columns(all);
    for (int64_t row = 0; row < all.rows(); ++row)
      guarded({path, all.line(row)}, [&] {
        predict({path, all.line(row), known_of(all, row, known)}, rows.sample(row));
      });
  }

  /// Predicts lines as they come. `first`: the line that has been read already; null: none has.
  void rows_of(std::istream& lines, const std::string& path, const std::string* first = nullptr) {
    LinePlace place{path, 1};
    bool any = false;
    const auto next = [&](std::string& line) {
      if (!first) return static_cast<bool>(std::getline(lines, line));
      line = *std::exchange(first, nullptr);
      return true;
    };
    for (std::string line; next(line); ++place.number) {
      if (line.ends_with('\r')) line.pop_back();
      if (line.empty()) continue;
      if (place.number == 1 && line.starts_with(kArchiveMagic)) refuse_archive(path);
      const bool names_columns = place.number == 1 && !inputs_.text && is_header(line) &&
                                 inputs_.predictor.sample_kind() != SampleKind::tokens;
      if (!names_columns) guarded({place.path, place.number}, [&] { row(line, place); });
      if (path == "-") queue_.flush();
      any |= !names_columns;
    }
    if (!any)
      refuse_empty(path, inputs_.text
                             ? "write a text on each line"
                             : "write the numbers of a sample on each line" +
                                   std::string(inputs_.predictor.sample_kind() == SampleKind::tokens
                                                   ? ", or texts for --text"
                                                   : ""));
  }

  void row(const std::string& line, const LinePlace& place) {
    predict({place.path, place.number}, inputs_.text ? parse_text(line, manifest(), place)
                                                     : parse_numbers(line, manifest(), place));
  }

  const PredictInputs& inputs_;
  PredictQueue queue_;
};

}  // namespace

void predict_inputs(const PredictInputs& inputs, const std::vector<std::string>& paths) {
  Samples samples(inputs);
  for (const std::string& path : paths) samples.read(path);
  samples.flush();
}

}  // namespace tare::cli
