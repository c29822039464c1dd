// The output of a command: what happens when it is closed or full, and which files it may replace.
#pragma once

#include <filesystem>
#include <string_view>

namespace tare::cli {

/// Lets a command whose result is in files continue without a place to print to.
/// Other commands end by SIGPIPE, as usual for a program that feeds a pipe.
void continue_without_output();

/// Throws IoError if something that the command printed did not arrive, unless
/// continue_without_output() was called.
void check_output(std::string_view command);

/// Lists the kinds of files that a command replaces without a question.
enum class FileKind { json, html, bundle };

/// Throws ConfigError for a file in a folder that does not exist, before the work for it.
void check_folder_of(const std::filesystem::path& file, std::string_view option);

/// Throws as check_folder_of(), and ConfigError for a file that is there and is not of the kind
/// that the command writes, or that the command reads (`input`), so that `option` never destroys
/// what a user needs.
void check_output_file(const std::filesystem::path& file, FileKind kind, std::string_view option,
                       const std::filesystem::path& input = {});

}  // namespace tare::cli
