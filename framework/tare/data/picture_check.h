// Looks through a folder or a list of pictures for what its reader would refuse or silently change.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tare {

/// Says what is wrong with a file or a folder.
struct PictureFinding {
  std::string path{};     ///< below the folder that was checked; ".": the folder itself
  std::string problem{};  ///< continues the path: "is a class without pictures"
};

/// Counts the pictures of a class.
struct PictureClass {
  std::string split{};   ///< "train"; empty: the folder has no splits
  std::string name{};    ///< empty: pictures without labels
  int64_t pictures = 0;  ///< that can be decoded
};

/// Describes a column of numbers of a list, in its unit.
struct TargetRange {
  std::string name{};                    ///< of the column
  double least = 0, mean = 0, most = 0;  ///< of all pictures; the mean of a label is its share
};

/// Counts the files of one kind that are skipped, because they are no pictures.
struct SkippedFiles {
  int64_t files = 0;                 ///< of the kind
  std::vector<std::string> first{};  ///< at most three of them, below the folder
};

/// Describes some lengths, in pixels.
struct LengthRange {
  int64_t least = 0;   ///< the smallest
  int64_t median = 0;  ///< the one in the middle; of an even number the lower of the two there
  int64_t most = 0;    ///< the largest
};

/// Holds what check_pictures() has found.
struct PictureCheck {
  std::vector<PictureFinding> problems{};  ///< each would be an error of image_folder()
  std::vector<PictureFinding> warnings{};  ///< the pictures are read, or skipped, in spite of these
  std::vector<PictureClass> classes{};     ///< in the order of the data set
  int64_t pictures = 0;                    ///< that can be decoded
  std::map<std::string, int64_t> formats{};   ///< pictures by "PNG", "JPEG" and "WebP"
  std::map<std::string, int64_t> channels{};  ///< pictures by "grey" and "RGB"
  LengthRange height{}, width{};              ///< of the pictures that can be decoded
  std::vector<TargetRange> targets{};  ///< the columns of numbers of a list that were asked for
  /// Files of other kinds that are skipped, by their extension in lower case; none of a list.
  std::map<std::string, SkippedFiles> skipped{};
};

/// Reads and decodes every picture that image_folder() or image_folder_splits() would read.
/// Problems are files that cannot be decoded, links to nothing, classes without pictures, and
/// classes that are not in all splits. Warnings are pictures of several sizes or channels,
/// extensions that are not the content's, skipped pictures and folders, a single class, and equal
/// files in two splits or classes. Throws IoError for a folder that cannot be listed.
[[nodiscard]] PictureCheck check_pictures(const std::filesystem::path& folder);

/// Reads and decodes every picture of a list, see image_list(), as check_pictures() does those of a
/// folder. A class of another split that `train` does not have is a problem too. `targets`: columns
/// of numbers, which take the place of the classes. Throws as list_pictures().
[[nodiscard]] PictureCheck check_listed_pictures(const std::filesystem::path& file,
                                                 const std::vector<std::string>& targets = {});

/// Reads the files of cifar(), and counts the pictures of each class. What is wrong with a file is
/// a problem, and then there are no counts. Throws as cifar_problems().
[[nodiscard]] PictureCheck check_cifar(const std::filesystem::path& folder);

}  // namespace tare
