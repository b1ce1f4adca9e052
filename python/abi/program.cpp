#include <filesystem>
#include <optional>

#include "cli/files.h"
#include "codegen/kernel_check.h"
#include "core/evaluate.h"
#include "core/proto.h"
#include "core/text.h"
#include "frontend/graph.h"
#include "frontend/onnx.h"
#include "python/abi/handles.h"
#include "search/bound.h"
#include "search/machine.h"

using namespace sundog;

namespace {

constexpr int64_t kLargestModel = int64_t{2} << 30;  // no message is larger

Status from_onnx(std::string_view bytes, const std::optional<std::string>& folder,
                 const char* const* names, const int64_t* values, size_t count,
                 sundog_program** program) {
  if (program == nullptr) return abi::null_argument("program");
  if (count > 0 && (names == nullptr || values == nullptr)) return abi::null_argument("names");
  std::map<std::string, int64_t> defines;
  for (size_t i = 0; i < count; ++i) defines[names[i]] = values[i];
  const Result<frontend::Graph> graph = frontend::graph_of_onnx(bytes, defines, folder);
  if (!graph.ok()) return graph.error();
  return abi::give(frontend::program_of(*graph), program);
}

}  // namespace

extern "C" {

sundog_code sundog_program_parse(const char* text, size_t size, const char* file_name,
                                 const char* const* names, const int64_t* values, size_t count,
                                 sundog_program** program, sundog_error** error) {
  return abi::guarded(error, [&]() -> Status {
    if (text == nullptr) return abi::null_argument("text");
    if (program == nullptr) return abi::null_argument("program");
    if (count > 0 && (names == nullptr || values == nullptr)) return abi::null_argument("names");
    std::map<std::string, int64_t> defines;
    for (size_t i = 0; i < count; ++i) defines[names[i]] = values[i];
    const std::string file = file_name == nullptr ? "program" : file_name;
    return abi::give(parse_program({text, size}, file, defines), program);
  });
}

sundog_code sundog_program_from_message(const void* data, size_t size, sundog_program** program,
                                        sundog_error** error) {
  return abi::guarded(error, [&]() -> Status {
    if (data == nullptr && size > 0) return abi::null_argument("data");
    if (program == nullptr) return abi::null_argument("program");
    return abi::give(parse_program_proto({static_cast<const char*>(data), size}), program);
  });
}

sundog_code sundog_program_from_graph(const void* data, size_t size, sundog_program** program,
                                      sundog_error** error) {
  return abi::guarded(error, [&]() -> Status {
    if (data == nullptr && size > 0) return abi::null_argument("data");
    if (program == nullptr) return abi::null_argument("program");
    const Result<frontend::Graph> graph =
        frontend::parse_graph({static_cast<const char*>(data), size});
    if (!graph.ok()) return graph.error();
    return abi::give(frontend::program_of(*graph), program);
  });
}

sundog_code sundog_program_from_onnx(const void* data, size_t size, const char* const* names,
                                     const int64_t* values, size_t count, sundog_program** program,
                                     sundog_error** error) {
  return abi::guarded(error, [&]() -> Status {
    if (data == nullptr && size > 0) return abi::null_argument("data");
    return from_onnx({static_cast<const char*>(data), size}, std::nullopt, names, values, count,
                     program);
  });
}

sundog_code sundog_program_load_onnx(const char* path, const char* const* names,
                                     const int64_t* values, size_t count, sundog_program** program,
                                     sundog_error** error) {
  return abi::guarded(error, [&]() -> Status {
    if (path == nullptr) return abi::null_argument("path");
    const Result<std::string> bytes = cli::read_file(path, kLargestModel);
    if (!bytes.ok()) return bytes.error();
    return from_onnx(*bytes, std::filesystem::path(path).parent_path().string(), names, values,
                     count, program);
  });
}

sundog_code sundog_program_message(const sundog_program* program, sundog_bytes** message,
                                   sundog_error** error) {
  return abi::guarded(error, [&]() -> Status {
    if (program == nullptr || message == nullptr) return abi::null_argument("program or message");
    *message = new sundog_bytes{serialize(program->program)};
    return {};
  });
}

sundog_code sundog_program_text(const sundog_program* program, sundog_bytes** text,
                                sundog_error** error) {
  return abi::guarded(error, [&]() -> Status {
    if (program == nullptr || text == nullptr) return abi::null_argument("program or text");
    *text = new sundog_bytes{print(program->program)};
    return {};
  });
}

double sundog_program_work(const sundog_program* program) {
  return codegen::program_work(program->program);
}

sundog_code sundog_program_bound(const sundog_program* program, const char* target, double* us,
                                 sundog_error** error) {
  return abi::guarded(error, [&]() -> Status {
    if (program == nullptr || target == nullptr || us == nullptr) {
      return abi::null_argument("program, target or us");
    }
    const Result<Device> device = find_device(target);
    if (!device.ok()) return device.error();
    *us = search::program_bound(program->program, search::machine_of(*device));
    return {};
  });
}

sundog_code sundog_program_evaluate(const sundog_program* program, const double* const* inputs,
                                    double* const* outputs, int eager_rounding,
                                    sundog_error** error) {
  return abi::guarded(error, [&]() -> Status {
    if (program == nullptr) return abi::null_argument("program");
    const Program& source = program->program;
    if ((inputs == nullptr && !source.inputs.empty()) || outputs == nullptr) {
      return abi::null_argument("inputs or outputs");
    }
    std::vector<FloatTensor> tensors;
    for (size_t i = 0; i < source.inputs.size(); ++i) {
      FloatTensor& tensor = tensors.emplace_back();
      tensor.extents = source.inputs[i].extents;
      tensor.f64.assign(inputs[i], inputs[i] + element_count(source.inputs[i]));
    }
    Evaluation evaluation;
    evaluation.rounding = eager_rounding != 0 ? Rounding::kEager : Rounding::kWide;
    const auto values = evaluate(source, tensors, evaluation);
    if (!values.ok()) return values.error();
    for (size_t i = 0; i < values->size(); ++i) {
      std::copy((*values)[i].begin(), (*values)[i].end(), outputs[i]);
    }
    return {};
  });
}

void sundog_program_free(sundog_program* program) { delete program; }

}  // extern "C"
