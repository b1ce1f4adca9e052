// Measures the GPU present and writes its row, for core/devices; what the shipped row says stands
// beside it.
#include "codegen/calibrate.h"

#include <cstdio>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/json.h"
#include "cli/result_folder.h"
#include "codegen/compile.h"

namespace sundog::cli {
namespace {

struct Figure {
  std::string name, unit;
  double measured = 0;
  std::optional<double> shipped;
};

// The measured figures of a row, in the order of the row.
std::vector<Figure> figures_of(const codegen::Calibration& found, const Device* shipped) {
  std::vector<Figure> figures;
  const Device& d = found.device;
  for (const auto& [bytes, rate] : d.hbm) {
    figures.push_back(
        {"hbm with " + std::to_string(static_cast<int64_t>(bytes)) + " bytes in flight an SM",
         "GB/s", rate,
         shipped ? std::optional<double>(hbm_gb_per_s(*shipped, bytes)) : std::nullopt});
  }
  const auto add = [&](const char* name, const char* unit, double Device::*field) {
    figures.push_back(
        {name, unit, d.*field, shipped ? std::optional<double>(shipped->*field) : std::nullopt});
  };
  add("l2", "GB/s", &Device::l2_gb_per_s);
  add("shared memory", "bytes a clock an SM", &Device::shared_bytes_per_clock_per_sm);
  for (const auto& [dtype, rate] : d.tensor_tflop_per_s) {
    figures.push_back(
        {"tensor " + std::string(name(dtype)), "TFLOP/s", rate,
         shipped ? std::optional<double>(tensor_tflop_per_s(*shipped, dtype)) : std::nullopt});
  }
  add("fma", "a clock an SM", &Device::fma_per_clock_per_sm);
  add("alu", "a clock an SM", &Device::alu_per_clock_per_sm);
  add("sfu", "a clock an SM", &Device::sfu_per_clock_per_sm);
  add("launch", "us", &Device::launch_us);
  add("graph node", "us", &Device::graph_node_us);
  add("dependent node", "us", &Device::dependent_node_us);
  add("fill", "us", &Device::fill_us);
  add("block sync", "us", &Device::block_sync_us);
  add("grid sync", "us", &Device::grid_sync_us);
  for (const codegen::Measurement& each : found.beside) {
    figures.push_back({each.name, each.unit, each.value, std::nullopt});
  }
  return figures;
}

std::string table_of(const std::vector<Figure>& figures, const std::string& shipped_name) {
  char line[200];
  std::snprintf(line, sizeof line, "%-44s %10s %10s\n", "", "measured", shipped_name.c_str());
  std::string text = line;
  for (const Figure& figure : figures) {
    char shipped[24] = "-";
    if (figure.shipped) std::snprintf(shipped, sizeof shipped, "%.4g", *figure.shipped);
    std::snprintf(line, sizeof line, "%-44s %10.4g %10s  %s\n", figure.name.c_str(),
                  figure.measured, shipped, figure.unit.c_str());
    text += line;
  }
  return text;
}

std::string json_of(const codegen::Calibration& found, const std::vector<Figure>& figures,
                    const std::string& shipped_name) {
  JsonWriter json;
  json.begin_object().key("gpu").value(found.device.full_name).key("shipped").value(shipped_name);
  json.key("row").value(print_device(found.device)).key("figures").begin_array();
  for (const Figure& figure : figures) {
    json.begin_object().key("name").value(figure.name).key("unit").value(figure.unit);
    json.key("measured").value(figure.measured).key("shipped").value(figure.shipped).end_object();
  }
  json.end_array().end_object();
  return json.text() + "\n";
}

}  // namespace

int calibrate(const Invocation& invocation) {
  const auto ordinal = static_cast<int>(invocation.integer("gpu"));
  const Result<codegen::GpuInfo> gpu = codegen::probe_gpu(ordinal);
  if (!gpu.ok()) return fail(gpu.error());
  const std::string arch = codegen::arch_of(*gpu);
  codegen::CompileOptions compile;
  compile.limits = {.seconds = invocation.seconds("compile-time")};
  const Result<codegen::CompiledModule> module =
      codegen::compile(codegen::calibration_source(arch), arch, compile);
  if (!module.ok()) return fail(module.error());
  const Result<codegen::Calibration> found = codegen::calibrate_in_child(
      ordinal, module->cubin, {.seconds = invocation.seconds("gpu-time")});
  if (!found.ok()) return fail(found.error());

  const Result<Device> shipped = find_device_of_driver(gpu->name, gpu->major, gpu->minor);
  const std::vector<Figure> figures = figures_of(*found, shipped.ok() ? &*shipped : nullptr);
  const std::string shipped_name = shipped.ok() ? shipped->name : "-";
  const std::string out = invocation.text("output"), row = print_device(found->device);
  if (!out.empty()) {
    if (const Status status = write_file(out, row); !status.ok()) return fail(status.error());
  }
  const std::string table = table_of(figures, shipped_name);
  const Status status =
      write_output(invocation.flag("json") ? json_of(*found, figures, shipped_name)
                   : out.empty()           ? row
                                           : table);
  if (out.empty()) note(table);
  return status.ok() ? 0 : fail(status.error());
}

}  // namespace sundog::cli
