// Reading the files that a user names: what they are, with a limit on their size and a clear
// message for everything that can be wrong with one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"

namespace sundog::cli {

// What a file holds, told by its first bytes; the name's ending decides only where they do not.
enum class FileKind {
  kProgram,  // program text
  kMuGraph,  // µGraph text
  kBinary,   // anything that is no text: a protobuf message, perhaps
  kText,     // some other text
};

// The whole of a regular file, pipe or character device.  Errors (kIo, kLimit): it does not exist,
// is a folder, may not be read, is longer than max_bytes.
Result<std::string> read_file(const std::string& path, int64_t max_bytes);

FileKind kind_of(std::string_view bytes, std::string_view path);

bool is_folder(const std::string& path);
bool is_regular(const std::string& path);  // a file, or a link to one
bool exists(const std::string& path);

// "dir/b" for a file "dir/a" and a name "b".
std::string beside(const std::string& file, const std::string& name);
std::string file_name(const std::string& path);

}  // namespace sundog::cli
