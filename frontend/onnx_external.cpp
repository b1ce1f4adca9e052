#include "frontend/onnx_external.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "frontend/onnx.pb.h"

namespace sundog::frontend {
namespace {

namespace fs = std::filesystem;

Result<int64_t> number_of(const std::string& key, const std::string& text) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [at, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc() || at != end || number < 0) {
    return bad_input("its " + key + " in another file is '" + text + "'");
  }
  return number;
}

// A model may name files below its folder; anything else is none of its business.
bool stays_inside(const fs::path& path) {
  if (path.empty() || path.is_absolute()) return false;
  for (const fs::path& part : path) {
    if (part == "..") return false;
  }
  return true;
}

}  // namespace

Result<ExternalData> find_external(const onnx::Tensor& tensor, int64_t bytes,
                                   const std::optional<std::string>& folder) {
  ExternalData data;
  data.length = bytes;
  std::string location;
  for (const onnx::Tensor::Entry& entry : tensor.external()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() != "offset" && entry.key() != "length") continue;
    const Result<int64_t> number = number_of(entry.key(), entry.value());
    if (!number.ok()) return number.error();
    (entry.key() == "offset" ? data.offset : data.length) = *number;
  }
  if (location.empty()) return bad_input("it lies in another file that is not named");
  if (data.length != bytes) {
    return bad_input("it takes " + std::to_string(bytes) + " bytes and has " +
                     std::to_string(data.length) + " in " + location);
  }
  if (!folder) {
    return bad_input("it lies in the file " + location,
                     "read the model by its path, so that the files beside it are found");
  }
  if (!stays_inside(location)) {
    return bad_input("it lies in " + location + ", which is not below the folder of the model");
  }
  data.file = (fs::path(*folder) / location).string();
  std::error_code code;
  const std::uintmax_t size = fs::file_size(data.file, code);
  if (code) return Error{ErrorCode::kIo, "its file " + data.file + ": " + code.message(), {}, {}};
  const auto wanted = static_cast<std::uintmax_t>(data.offset) + static_cast<std::uintmax_t>(bytes);
  if (size >= wanted) return data;
  return Error{ErrorCode::kIo,
               "its file " + data.file + " ends after " + std::to_string(size) +
                   " bytes, it needs " + std::to_string(bytes) + " from " +
                   std::to_string(data.offset) + " on",
               "the file may have been copied in part",
               {}};
}

Result<std::string> read_external(const ExternalData& data) {
  std::ifstream file(data.file, std::ios::binary);
  std::string bytes(static_cast<size_t>(data.length), '\0');
  file.seekg(data.offset);
  file.read(bytes.data(), data.length);
  if (file.gcount() != data.length) {
    return Error{ErrorCode::kIo, "its file " + data.file + " cannot be read", {}, {}};
  }
  return bytes;
}

}  // namespace sundog::frontend
