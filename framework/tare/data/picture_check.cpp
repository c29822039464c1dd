// Checks a folder or a list of pictures, file by file.
#include "tare/data/picture_check.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "tare/base/content_hash.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/parts.h"
#include "tare/data/cifar.h"
#include "tare/data/class_splits.h"
#include "tare/data/exif.h"
#include "tare/data/image_files.h"
#include "tare/data/picture_kind.h"
#include "tare/data/picture_list.h"
#include "tare/transform/image_limits.h"
#include "tare/transform/picture.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

LengthRange range_of(std::vector<int64_t> lengths) {
  if (lengths.empty()) return {};
  std::ranges::sort(lengths);
  return {lengths.front(), lengths[(lengths.size() - 1) / 2], lengths.back()};
}

/// Returns the message of an error about a file without the operation and the path in front of it.
std::string reason(const std::string& message, const fs::path& file) {
  const std::string path = file.string() + ": ";
  const size_t at = message.find(path);
  return at == std::string::npos ? message : message.substr(at + path.size());
}

class Checker {
 public:
  explicit Checker(fs::path folder) : folder_(std::move(folder)) {}

  PictureCheck run() {
    const std::vector<std::string> splits = folder_splits(folder_);
    if (splits.empty()) check_split("", folder_);
    for (const std::string& split : splits) check_split(split, folder_ / split);
    for (const std::string& split : splits) compare_classes(splits.front(), split);
    if (result_.pictures == 0 && result_.problems.empty())
      problem(folder_, std::string("has no PNG, JPEG or WebP file") +
                           (result_.skipped.contains(".npy")
                                ? "; arrays of NumPy are the data set npy, and `tare data check "
                                  "FILE.npy` looks through one"
                                : ""));
    check_sizes_and_channels();
    return std::move(result_);
  }

  /// Checks the pictures of a list in this folder. `numbers`: they have columns of numbers in place
  /// of labels. `list`: its file.
  PictureCheck run(const std::vector<ListedPicture>& pictures, bool numbers, const fs::path& list) {
    constexpr const char* kNone = "is not there: paths are relative to the folder of the list";
    for (const char* split : {"", "train", "valid", "test"}) {
      std::map<std::string, std::vector<fs::path>> files;
      for (const ListedPicture& picture : pictures)
        if (picture.split == split) files[picture.label].push_back(picture.path);
      for (const auto& [label, of_label] : files) {
        result_.classes.push_back({split, label, 0});
        labels_[split].insert(label);
        for (const fs::path& file : of_label) check_file(split, label, file, kNone);
      }
    }
    if (labels_.contains("") && labels_[""].size() == 1 && !labels_[""].contains(""))
      warn(folder_, "has one class: a model that is trained on it always answers with that class");
    if (!numbers && !pictures.empty() && pictures.front().label.empty())
      warn(folder_,
           "has pictures without labels, because the list has no column `label` (" +
               columns_text(list) +
               "): give the column of the classes that name in the first row, or name columns of "
               "numbers in `targets`; without them there is nothing to learn");
    for (const char* split : {"valid", "test"})
      for (const std::string& label : labels_[split])
        if (!labels_["train"].contains(label))
          problem(folder_, "has the class '" + label + "' in " + split + ", but not in train");
    check_sizes_and_channels();
    return std::move(result_);
  }

 private:
  struct Seen {
    std::string path, split, label;
  };
  [[nodiscard]] std::string below(const fs::path& path) const {
    return path.lexically_relative(folder_).generic_string();
  }
  void problem(const fs::path& path, std::string text) {
    result_.problems.push_back({below(path), std::move(text)});
  }
  void warn(const fs::path& path, std::string text) {
    result_.warnings.push_back({below(path), std::move(text)});
  }

  void check_split(const std::string& split, const fs::path& root) {
    const std::vector<fs::path> subfolders = list_subfolders(root, kPictures);
    if (subfolders.empty()) {
      check_class(split, "", root);
      if (result_.classes.back().pictures > 0)
        warn(root,
             "has no subfolders: its pictures have no labels, and there are no classes to learn");
      return;
    }
    for (const fs::path& file : list_files(root, kPictures))
      warn(file, "is skipped: it lies beside the folders of the classes");
    for (const fs::path& file : list_files(root, kPictures, true)) check_other(file);
    for (const fs::path& subfolder : subfolders) {
      std::error_code ignored;  // what cannot be looked at is no folder
      if (!fs::is_directory(subfolder, ignored))
        problem(subfolder, "is a link to nothing");
      else
        check_class(split, subfolder.filename().string(), subfolder);
    }
    if (subfolders.size() == 1)
      warn(root, "has one class: a model that is trained on it always answers with that class");
  }

  void check_class(const std::string& split, const std::string& label, const fs::path& folder) {
    result_.classes.push_back({split, label, 0});
    labels_[split].insert(label);
    const std::vector<fs::path> files = list_files(folder, kPictures);
    if (files.empty() && !label.empty())
      problem(folder, "is a class without PNG, JPEG or WebP files");
    for (const fs::path& file : files) check_file(split, label, file);
    for (const fs::path& file : list_files(folder, kPictures, true)) check_other(file);
    if (label.empty()) return;
    for (const fs::path& deep : list_subfolders(folder, kPictures))
      warn(deep, "is skipped: only files directly in the folder of a class are read");
  }

  void check_file(const std::string& split, const std::string& label, const fs::path& file,
                  const char* missing = "is a link to nothing") {
    std::error_code ignored;
    if (!fs::exists(file, ignored)) return problem(file, missing);
    try {
      const std::string content = io::read_text(file, kMaxImageFileBytes);
      const auto bytes = std::as_bytes(std::span(content));
      const Picture picture = decode_picture(bytes, file.string(), 0);
      count(picture, std::string(format_of(bytes)), file);
      if (const int orientation = exif_orientation(bytes); orientation != 1 && turned_++ == 0)
        first_turned_ = {below(file), std::to_string(orientation)};
      compare_content(content_hash(bytes) + std::to_string(bytes.size()),
                      {below(file), split, label});
    } catch (const FormatError& error) {
      problem(file, reason(error.what(), file));
    } catch (const IoError& error) {
      problem(file, reason(error.what(), file));
    }
  }

  void count(const Picture& picture, const std::string& format, const fs::path& file) {
    ++result_.pictures;
    ++result_.classes.back().pictures;
    ++result_.formats[format];
    const std::string kind = picture.stored_channels == 1 ? "grey" : "RGB";
    if (result_.channels[kind]++ == 0) first_of_kind_.push_back({below(file), kind});
    if (heights_.empty() || picture.height != heights_.front() || picture.width != widths_.front())
      ++other_sizes_;
    heights_.push_back(picture.height);
    widths_.push_back(picture.width);
    if (format != format_named_by(file))
      warn(file, "is a " + format + " file, in spite of its extension");
  }

  // A file of another kind, which is skipped.
  void check_other(const fs::path& file) {
    constexpr size_t kHead = 16, kFirst = 3;
    SkippedFiles& kind = result_.skipped[lower_case(file.extension().string())];
    if (kind.files++ < static_cast<int64_t>(kFirst)) kind.first.push_back(below(file));
    std::string head(kHead, '\0');
    io::File open(file, io::Mode::read);
    head.resize(open.read(head.data(), head.size()));
    const std::string format(format_of(std::as_bytes(std::span(head))));
    if (!format.empty())
      warn(file, "is skipped: it is a " + format + " file without an extension of one");
  }

  void compare_content(const std::string& content, Seen file) {
    const auto [it, is_new] = seen_.try_emplace(content, file);
    if (is_new) return;
    const Seen& first = it->second;
    if (first.split != file.split)
      result_.warnings.push_back({file.path, "has the content of " + first.path});
    else if (first.label != file.label)
      result_.warnings.push_back(
          {file.path, "has the content of " + first.path + ", which is of another class"});
  }

  void compare_classes(const std::string& train, const std::string& split) {
    const auto lacks = [&](const std::string& one, const std::string& other) {
      for (const std::string& label : labels_[one])
        if (!labels_[other].contains(label))
          problem(folder_ / other, label.empty() ? "has classes, and " + one + " has none"
                                                 : "lacks the class '" + label + "' of " + one);
    };
    lacks(train, split);
    lacks(split, train);
  }

  void check_sizes_and_channels() {
    result_.height = range_of(heights_);
    result_.width = range_of(widths_);
    if (other_sizes_ > 1)
      warn(folder_,
           "has pictures of several sizes: the data set needs `size`, to which `fit` stretches, "
           "crops or pads them");
    if (turned_ > 0)
      result_.warnings.push_back(
          {first_turned_.path,
           "has the EXIF orientation " + first_turned_.problem +
               " (pictures with another one than 1: " + std::to_string(turned_) + " of " +
               std::to_string(result_.pictures) +
               "): Tare reads the pixels as they are stored; `mogrify -auto-orient *.jpg` or "
               "`exiftran -ai *.jpg` bakes the rotation in"});
    if (first_of_kind_.size() < 2) return;
    const auto& [path, kind] = first_of_kind_[1];
    result_.warnings.push_back(
        {path, "is " + kind + ", and the first picture is " + first_of_kind_[0].problem + ": " +
                   std::to_string(result_.channels[kind]) + " of " +
                   std::to_string(result_.pictures) +
                   " are converted unless `channels` says what all shall be"});
  }

  fs::path folder_;
  PictureCheck result_;
  std::vector<int64_t> heights_, widths_;
  int64_t other_sizes_ = 0;      // changes from the size of the first picture; it counts as one
  int64_t turned_ = 0;           // pictures with an EXIF orientation other than 1
  PictureFinding first_turned_;  // the first of them, with the orientation as `problem`
  std::vector<PictureFinding> first_of_kind_;            // grey or RGB, as `problem`
  std::map<std::string, std::set<std::string>> labels_;  // by split
  std::map<std::string, Seen> seen_;                     // by content
};

}  // namespace

PictureCheck check_pictures(const fs::path& folder) {
  return Checker(folder.has_filename() ? folder : folder.parent_path()).run();
}

PictureCheck check_listed_pictures(const fs::path& file, const std::vector<std::string>& targets) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  TableFindings findings;
  const std::vector<ListedPicture> pictures = list_pictures(file, targets, &findings);
  PictureCheck check = Checker(folder).run(pictures, !targets.empty(), file);
  std::vector<PictureFinding> rows;
  for (const TableFinding& finding : findings.list)
    rows.push_back({file.filename().string(), text_of(finding)});
  check.problems.insert(check.problems.begin(), rows.begin(), rows.end());
  for (size_t i = 0; i < targets.size() && !pictures.empty(); ++i) {
    const double first = pictures.front().numbers[i];
    TargetRange range{.name = targets[i], .least = first, .most = first};
    for (const ListedPicture& picture : pictures) {
      range.least = std::min(range.least, picture.numbers[i]);
      range.most = std::max(range.most, picture.numbers[i]);
      range.mean += picture.numbers[i] / static_cast<double>(pictures.size());
    }
    check.targets.push_back(std::move(range));
  }
  return check;
}

PictureCheck check_cifar(const fs::path& folder) {
  constexpr int64_t kSide = 32;
  PictureCheck check{.height = {kSide, kSide, kSide}, .width = {kSide, kSide, kSide}};
  for (const auto& [file, problem] : cifar_problems(folder))
    check.problems.push_back({file, problem});
  if (!check.problems.empty()) return check;
  const Splits splits = cifar(folder);
  for (const auto& [name, data] : {std::pair{"train", splits.train}, {"test", splits.test}}) {
    const at::Tensor targets = data->targets();
    const int64_t* const first = targets.const_data_ptr<int64_t>();
    const std::vector<std::string> labels = data->labels();
    for (size_t label = 0; label < labels.size(); ++label)
      check.classes.push_back(
          {name, labels[label],
           std::count(first, first + targets.numel(), static_cast<int64_t>(label))});
    check.pictures += data->size();
  }
  check.formats["CIFAR"] = check.channels["RGB"] = check.pictures;
  return check;
}

}  // namespace tare
