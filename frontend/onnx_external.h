// Weights of an ONNX model that lie in files beside it: which bytes of which file, and whether they
// are there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/status.h"

namespace sundog::onnx {
class Tensor;
}  // namespace sundog::onnx

namespace sundog::frontend {

struct ExternalData {
  std::string file;  // with its folder
  int64_t offset = 0, length = 0;
};

// Where the data of a tensor lie that says they are in another file; `bytes` is what the tensor
// takes. `folder` is that of the model; nothing if the model came as bytes.  Errors: kBadInput if
// the model says it wrongly (no file, a file outside of the folder, another length than the
// tensor's); kIo if the file is missing or too short.
Result<ExternalData> find_external(const onnx::Tensor& tensor, int64_t bytes,
                                   const std::optional<std::string>& folder);

Result<std::string> read_external(const ExternalData& data);

}  // namespace sundog::frontend
