#include <unistd.h>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/json.h"
#include "cli/result.h"
#include "codegen/compile.h"
#include "codegen/driver.h"
#include "codegen/nvrtc.h"

namespace sundog::cli {
namespace {

// The first NVRTC file that is there; names without a folder are left to the loader.
std::string nvrtc_file() {
  for (const std::string& name : codegen::nvrtc_candidates()) {
    if (name.find('/') != std::string::npos && access(name.c_str(), R_OK) == 0) return name;
  }
  return {};
}

}  // namespace

int version(const Invocation& invocation) {
  const Result<codegen::GpuInfo> gpu = codegen::probe_gpu(0);
  const std::string nvcc = codegen::find_nvcc(), nvrtc = nvrtc_file();
  std::string text;
  if (invocation.flag("json")) {
    JsonWriter json;
    const auto maybe = [&](const char* key, const std::string& value) {
      json.key(key);
      value.empty() ? json.null() : json.value(value);
    };
    json.begin_object().key("version").value(kToolVersion);
    maybe("nvrtc", nvrtc);
    maybe("nvcc", nvcc);
    maybe("gpu", gpu.ok() ? gpu->name : "");
    json.key("driver").value(gpu.ok() ? std::optional<int>(gpu->driver_version) : std::nullopt);
    json.end_object();
    text = json.text() + "\n";
  } else {
    text = "sundog " + std::string(kToolVersion) + "\n";
    text += "  nvrtc  " + (nvrtc.empty() ? "not found" : nvrtc) + "\n";
    text += "  nvcc   " + (nvcc.empty() ? "not found" : nvcc) + "\n";
    text += "  gpu    " + (gpu.ok() ? gpu->name : gpu.error().message) + "\n";
  }
  const Status status = write_output(text);
  return status.ok() ? 0 : fail(status.error());
}

}  // namespace sundog::cli
