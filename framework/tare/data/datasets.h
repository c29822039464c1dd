// Data sets by name, as recipes and `tare data` use them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tare/config/field.h"
#include "tare/config/registry.h"
#include "tare/data/dataset.h"
#include "tare/data/digits.h"
#include "tare/data/splits.h"

namespace tare {

/// Names a data set, and sets how it is read and split. Fields that the named data set does not use
/// must keep their defaults.
struct DataOptions {
  std::string name = "digits";  ///< see datasets::names()
  int64_t size = 0;             ///< resize to this height and width; 0: the data's own
  std::string fit = "stretch";  ///< how, with a `size`: stretch | crop | pad, see Resize
  /// Samples of generated_digits, 0: 10,000, and of generated_texts, 0: 4,000; others: the first,
  /// 0: all.
  int64_t count = 0;
  std::string style{};             ///< generated_digits: printed (default) | written
  int64_t seed = 0;                ///< of the generator and of the split
  std::string images{}, labels{};  ///< idx: the two files
  std::string folder{};  ///< image_folder, text_folder: one subfolder per class, or none; cifar
  /// image_folder, image_list: bytes of decoded pictures that are kept; unset: all, up to 8 GiB;
  /// 0: none.
  std::optional<int64_t> cache{};
  std::string file{};       ///< text, text_list, csv, jsonl, npy, image_list: the file
  int64_t context = 0;      ///< text: tokens of a sample; 0: 128
  std::string tokenizer{};  ///< text: characters (default) | bytes | bpe, see bpe_tokens()
  int64_t vocabulary = 0;   ///< text: the most tokens that bpe makes, >= 2; 0: 512
  /// text_folder, text_list, generated_texts: bytes of a text that are read; 0: all.
  int64_t length = 0;
  /// text_folder, text_list, generated_texts: joins texts, see collates::registry(); unset: `pad`.
  std::optional<config::Choice> collate{};
  /// image_folder, image_list, tfrecord: 1 grey, 3 RGB, 0: those of the first picture.
  int64_t channels = 0;
  /// csv, jsonl: the column to predict; text_list: the column of the classes, empty: `label`.
  std::string target{};
  /// csv, jsonl, image_list: columns of numbers to predict, in place of `target` or `label`.
  std::vector<std::string> targets{};
  /// csv, jsonl: the columns of the inputs; empty: all but the target and those of `omit`.
  /// text_list: the column of the texts; empty: `text`.
  std::vector<std::string> columns{}, omit{};
  /// csv, jsonl: columns, or the target, whose fields are categories, or numbers, however they
  /// look.
  std::vector<std::string> categories{}, numbers{};
  std::vector<std::string> missing_values{};  ///< csv, jsonl: more texts of a missing field
  std::string fill = "median";  ///< csv, jsonl: what takes the place of a missing number
  std::string separator{};      ///< csv: one character; empty: found in the head
  bool header = true;           ///< csv: the first line names the columns
  /// Files of tfrecord data, or folders of files; `valid_files` and `test_files` are for splits of
  /// their own, also of csv, jsonl and text_list.
  std::vector<std::string> files{}, valid_files{}, test_files{};
  std::string input = "image";   ///< tfrecord: the feature with the picture or the numbers
  std::string label = "label";   ///< tfrecord: the feature with the class or the number to predict
  std::vector<int64_t> shape{};  ///< tfrecord: of a sample; empty: that of the first one
  int64_t num_parallel_reads = 1;             ///< tfrecord: files that are read at a time
  double train = 0.8, valid = 0.2, test = 0;  ///< sizes of the splits, see SplitSizes
  /// Parts of a cross-validation, >= 2, in place of the sizes; 0: none. Every part has its share of
  /// each class where `stratify` says so.
  int64_t folds = 0;
  int64_t fold = 0;      ///< the part that is the validation split, in [0, folds); the others train
  bool stratify = true;  ///< every class has its share of each split
  Transforms transforms{};  ///< in order, after resizing to `size`
  bool download = true;     ///< digits, mnist10k, mnist: may use the network
  bool operator==(const DataOptions&) const = default;
};
/// Reads and writes DataOptions::cache: a number of bytes such as `2GiB`, or null.
struct CacheBytes {
  std::optional<int64_t> bytes{};  ///< unset: null
};
/// Throws ConfigError for what is no number of bytes.
void from_node(const config::Node& node, CacheBytes& value);
[[nodiscard]] config::Node to_node(const CacheBytes& value);
void visit_fields(auto& visit, DataOptions& o) {
  visit("name", o.name);
  visit("size", o.size, config::between(0, 16384));
  visit("fit", o.fit, config::one_of({"stretch", "crop", "pad"}));
  visit("count", o.count, config::at_least(0));
  visit("style", o.style);
  visit("seed", o.seed, config::at_least(0));
  visit("images", o.images);
  visit("labels", o.labels);
  visit("folder", o.folder);
  visit("file", o.file);
  visit("context", o.context, config::between(0, int64_t{1} << 24));
  visit("tokenizer", o.tokenizer);
  visit("vocabulary", o.vocabulary, config::between(0, 65536));
  visit.template as<CacheBytes>("cache", o.cache);
  visit("length", o.length, config::at_least(0));
  visit("collate", o.collate);
  visit("channels", o.channels, config::between(0, 3));
  visit("target", o.target);
  visit("targets", o.targets);
  visit("columns", o.columns);
  visit("omit", o.omit);
  visit("categories", o.categories);
  visit("numbers", o.numbers);
  visit("missing_values", o.missing_values);
  visit("fill", o.fill, config::one_of({"median", "mean"}));
  visit("separator", o.separator);
  visit("header", o.header);
  visit("files", o.files);
  visit("valid_files", o.valid_files);
  visit("test_files", o.test_files);
  visit("input", o.input);
  visit("label", o.label);
  visit("shape", o.shape, config::at_least(1));
  visit("num_parallel_reads", o.num_parallel_reads, config::between(1, 256));
  visit("train", o.train, config::at_least(0));
  visit("valid", o.valid, config::at_least(0));
  visit("test", o.test, config::at_least(0));
  visit("folds", o.folds, config::at_least(0));
  visit("fold", o.fold, config::at_least(0));
  visit("stratify", o.stratify);
  visit("transforms", o.transforms);
  visit("download", o.download);
}

/// Holds the data set that find_digits() found.
struct DigitsSource {
  std::string description{};  ///< one line: what, how many, from where
  DatasetPtr data{};          ///< uint8 [1, 28, 28] before transforms, labels "0" to "9"
  bool real = false;          ///< false: generated
};

/// Sets whether find_digits() may download, and which digits it generates otherwise.
struct FindDigitsOptions {
  bool download = true;   ///< may use the network
  int64_t count = 10000;  ///< of generated digits
  int64_t seed = 0;       ///< of generated digits
  bool warn = true;       ///< log a warning where generated digits stand in for real ones
};

/// Returns the 10,000 test images of MNIST from the first place that has them (docs/data.md lists
/// the places); without any, a download into cache_folder(), which is tried once per process, and
/// not at all where the environment variable datasets::kOffline is set to anything but 0;
/// failing that, generated digits in the written style, with one warning per process that gives the
/// reason. Throws FormatError for a place whose files are damaged.
[[nodiscard]] DigitsSource find_digits(const FindDigitsOptions& options = {});

namespace datasets {

/// Names the environment variable that keeps find_digits() from the network.
inline constexpr const char* kOffline = "TARE_OFFLINE";
/// Whether find_digits() has tried to download in this process, and got nothing. Thread-safe.
[[nodiscard]] bool download_has_failed();

/// Holds a data set as it was read, before `size`, `fit`, `count`, `transforms` and the split.
struct Found {
  std::string description{};   ///< one line: what, how many, from where
  DatasetPtr data{};           ///< the samples; splits are cut from them
  DatasetPtr valid{}, test{};  ///< splits of their own, not cut from `data`; or null
  std::vector<std::filesystem::path> files{};  ///< of single samples, relative to their folder
  bool generated = false;                      ///< drawn by a program
  bool are_splits = false;  ///< `data`, `valid` and `test` are the splits, and are cut no more
  /// Makes the samples of the splits, with what it learns from the training split, such as the
  /// mean of a column; empty: the samples are complete. It keeps the number of samples.
  std::function<Splits(const Splits& cut)> finish{};
};

/// Describes a kind of data set.
struct Kind {
  /// The names of the DataOptions that it takes, besides name, count, seed, train, valid, test,
  /// folds, fold and stratify, and those that `images` is for. Others are refused.
  std::vector<std::string> fields{};
  /// Reads or generates the data set; `network` is whether it may download. Throws ConfigError,
  /// IoError, FormatError.
  std::function<Found(const DataOptions& options, bool network)> make{};
  /// The samples may be images, which `size`, `fit` and `transforms` change; false: these are
  /// refused.
  bool images = true;
};

/// Holds the data sets by name. A program adds its own:
///   datasets::registry().add("sine", "draws a sine", [] { return datasets::Kind{{}, sine}; });
using Registry = config::Registry<Kind()>;
[[nodiscard]] Registry& registry();              ///< returns the one registry of the process
[[nodiscard]] std::vector<std::string> names();  ///< returns the names, sorted
/// Returns the names of the fields of DataOptions that a data set takes. Throws ConfigError for a
/// name that is not known.
[[nodiscard]] std::vector<std::string> fields_of(const std::string& name);

/// Identifies the samples of a data set, wherever its files are: two runs have equal data if their
/// identities are equal.
struct Identity {
  int64_t samples = 0;  ///< of all splits
  /// SHA-256 of the names of files and classes, the labels and the shape of the samples.
  std::string digest{};
  /// The hash of the samples' values as they were read, before the transforms; see content_hash().
  /// Empty: not known, because they are not in memory.
  std::string content{};
  bool operator==(const Identity&) const = default;
};

/// Holds the splits of a data set with their description, as make() returns them.
struct Named {
  Splits splits{};            ///< `test` is null unless the data or the options have a test split
  std::string description{};  ///< one line: what, from where, how it was split
  Identity identity{};        ///< of the data, before it was split
  bool generated = false;     ///< drawn by a program, by its name or in place of real digits
};

/// Whether make() may download; `forbidden` is stronger than DataOptions::download.
enum class Network { allowed, forbidden };

/// Is the path of a file or a folder in the options of a data set.
struct DataPath {
  std::string field{};  ///< "file", or "valid_files.0" in a list
  std::string path{};   ///< as it was given
};
/// Returns the paths that the options give, in the order of their fields.
[[nodiscard]] std::vector<DataPath> paths_of(const DataOptions& options);

/// Throws the ConfigError that make() would throw for the options, before it looks at any file.
void check(const DataOptions& options);
/// Throws ConfigError, naming the field and the nearest name, for a file or a folder of the options
/// that is not there. Reads no file.
void check_files(const DataOptions& options);
/// Reads or generates the data set and splits it. Throws ConfigError for an unknown name (naming
/// the nearest), an option out of range, or one that the data set does not take; IoError and
/// FormatError from the files.
[[nodiscard]] Named make(const DataOptions& options, Network network = Network::allowed);

/// Downloads "mnist10k" or "mnist" into the cache, or finds it there; returns the folder. Throws
/// ConfigError for a data set that is not downloaded.
std::filesystem::path fetch(const std::string& name);

/// Writes generated digits as images-idx3-ubyte.gz and labels-idx1-ubyte.gz into `folder`; returns
/// the two paths.
std::vector<std::filesystem::path> make_files(const std::string& name,
                                              const std::filesystem::path& folder,
                                              const GeneratedDigits& options = {});

/// Writes each generated digit as folder/<label>/<index>.png, which the data set image_folder reads
/// and a bundle can classify; returns the paths.
std::vector<std::filesystem::path> make_png_files(const std::string& name,
                                                  const std::filesystem::path& folder,
                                                  const GeneratedDigits& options = {});

/// Returns ${TARE_HOME:-~/.cache/tare}/data
[[nodiscard]] std::filesystem::path cache_folder();

}  // namespace datasets
}  // namespace tare
