// Reads just enough of a generated .cu to build it for the emulator.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sundog::codegen {

// The names of the `__global__` functions in a source, in the order of the text.  Comments and
// strings are skipped; templates are not counted, since they cannot be launched by name.
std::vector<std::string> find_kernels(std::string_view source);

enum class PrimitivesText {
  kIncluded,  // none pasted
  kOurs,      // what is pasted is ours, or lines of ours in their order
  kForeign,   // pasted and different: edited, or of another version
};
PrimitivesText compare_primitives(std::string_view source, std::string_view ours);

// The source with every `extern "C"` made `extern "C++"`, so that it may stand in a namespace.
// Lines keep their numbers.
std::string without_c_linkage(std::string_view source);

// The translation unit that joins the sources (files unit_0.cu, ...) and lists their kernels for
// the runtime.  With foreign primitives the only source brings its own and stands in no namespace.
std::string module_text(const std::vector<std::vector<std::string>>& kernels,
                        bool foreign_primitives);

}  // namespace sundog::codegen
