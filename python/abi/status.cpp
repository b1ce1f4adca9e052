#include "codegen/compile.h"
#include "codegen/driver.h"
#include "codegen/nvrtc.h"
#include "python/abi/handles.h"

namespace sundog::abi {
namespace {

sundog_code code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kBadInput:
      return SUNDOG_BAD_INPUT;
    case ErrorCode::kUnsupported:
      return SUNDOG_UNSUPPORTED;
    case ErrorCode::kIo:
      return SUNDOG_IO;
    case ErrorCode::kLimit:
      return SUNDOG_LIMIT;
    case ErrorCode::kToolMissing:
      return SUNDOG_TOOL_MISSING;
    case ErrorCode::kFailed:
      return SUNDOG_FAILED;
  }
  return SUNDOG_INTERNAL;
}

}  // namespace

sundog_code report(const Error& error, sundog_error** out) {
  const sundog_code code = code_of(error.code);
  if (out != nullptr) {
    *out = new sundog_error{code, error.message, error.hint, {}, 0, 0};
    if (error.position) {
      (*out)->file = error.position->file;
      (*out)->line = error.position->line;
      (*out)->column = error.position->column;
    }
  }
  return code;
}

sundog_code report_exception(const std::exception& exception, sundog_error** out) {
  // Out of memory, most likely: what could be said may not fit either.
  try {
    if (out != nullptr) {
      *out = new sundog_error{SUNDOG_INTERNAL, exception.what(), {}, {}, 0, 0};
    }
  } catch (const std::exception&) {
    *out = nullptr;
  }
  return SUNDOG_INTERNAL;
}

}  // namespace sundog::abi

using namespace sundog;

extern "C" {

int sundog_abi_version(void) { return SUNDOG_ABI_VERSION; }
const char* sundog_version(void) { return cli::kToolVersion.data(); }

sundog_code sundog_error_code(const sundog_error* error) { return error->code; }
const char* sundog_error_message(const sundog_error* error) { return error->message.c_str(); }
const char* sundog_error_hint(const sundog_error* error) { return error->hint.c_str(); }
const char* sundog_error_file(const sundog_error* error) { return error->file.c_str(); }
int sundog_error_line(const sundog_error* error) { return error->line; }
int sundog_error_column(const sundog_error* error) { return error->column; }
void sundog_error_free(sundog_error* error) { delete error; }

const char* sundog_bytes_data(const sundog_bytes* bytes) { return bytes->text.data(); }
size_t sundog_bytes_size(const sundog_bytes* bytes) { return bytes->text.size(); }
void sundog_bytes_free(sundog_bytes* bytes) { delete bytes; }

sundog_stop* sundog_stop_new(void) { return new (std::nothrow) sundog_stop; }
void sundog_stop_set(sundog_stop* stop) { stop->set = true; }
void sundog_stop_free(sundog_stop* stop) { delete stop; }

sundog_code sundog_machine(sundog_bytes** text, sundog_error** error) {
  return abi::guarded(error, [&]() -> Status {
    if (text == nullptr) return abi::null_argument("text");
    const Result<codegen::GpuInfo> gpu = codegen::probe_gpu(0);
    const std::string nvcc = codegen::find_nvcc();
    std::string lines = "sundog: " + std::string(cli::kToolVersion) + "\n";
    lines += "nvcc: " + (nvcc.empty() ? "none" : nvcc) + "\n";
    lines += "gpu: " + (gpu.ok() ? gpu->name : "none, " + gpu.error().message) + "\n";
    if (gpu.ok()) {
      lines += "capability: " + std::to_string(gpu->major) + "." + std::to_string(gpu->minor) +
               "\ndriver: " + std::to_string(gpu->driver_version) + "\n";
    }
    *text = new sundog_bytes{lines};
    return {};
  });
}

}  // extern "C"
