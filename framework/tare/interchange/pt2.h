// Writes a graph as a `.pt2` file, which torch.export.load() of Python opens.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tare/interchange/graph.h"

namespace tare::interchange {

/// Says what else the file holds.
struct Pt2Options {
  /// Files of the user's, by their names below `extra/`; readers ignore them.
  std::map<std::string, std::string> extra{};
};

/// Writes a graph atomically: on any error the old file stays. The weights are stored as they are,
/// each in an entry of its own; the number of samples may be any from 1 on, and the length of a
/// sample any from 1 to Graph::longest. Equal graphs give equal bytes. The file has the schema 8.17
/// of PyTorch 2.11, which later versions read. Throws ConfigError for an argument that the format
/// cannot hold, IoError.
///
/// Format: torch/csrc/export/pt2_archive_constants.h and generated_serialization_types.h of
/// LibTorch.
void write_pt2(const std::filesystem::path& path, const Graph& graph,
               const Pt2Options& options = {});
/// Throws ConfigError for an argument that the format cannot hold, as write_pt2().
void check_pt2(const Graph& graph);

}  // namespace tare::interchange
