// The launcher raises a kernel's limit of shared memory once for each device and process, launches
// all kernels on the stream and returns the first error of the CUDA runtime.
#include "codegen/emit_launcher.h"

#include <set>

#include "codegen/cuda_text.h"
#include "codegen/emit_library.h"

namespace sundog::codegen {
namespace {

constexpr int64_t kSharedWithoutAsking = 48 * 1024;

std::string pointer(const PlanArgument& a, const std::string& type) {
  const std::string cast = "static_cast<" + type + "*>(";
  switch (a.kind) {
    case PlanArgument::Kind::kInput:
      return cast + "inputs[" + std::to_string(a.index) + "])";
    case PlanArgument::Kind::kOutput:
      return cast + "outputs[" + std::to_string(a.index) + "])";
    case PlanArgument::Kind::kWorkspace:
      return "reinterpret_cast<" + type + "*>(static_cast<char*>(workspace) + " +
             std::to_string(a.offset) + ")";
  }
  return "";
}

// The element type behind an argument.
std::string argument_type(const PlanArgument& a, const LaunchPlan& plan, const MuGraph& graph) {
  switch (a.kind) {
    case PlanArgument::Kind::kInput:
      return "const " + std::string(cuda_type(plan.inputs[static_cast<size_t>(a.index)].dtype));
    case PlanArgument::Kind::kOutput:
      return std::string(cuda_type(plan.outputs[static_cast<size_t>(a.index)].dtype));
    case PlanArgument::Kind::kWorkspace:
      break;
  }
  // Behind the counters workspace tensors lie in the order of the µGraph, each at a multiple of 256
  // bytes.
  if (a.offset < plan.zeroed_bytes) return "uint32_t";
  int64_t offset = plan.zeroed_bytes;
  for (const DeviceTensor& tensor : graph.tensors) {
    if (tensor.role != TensorRole::kIntermediate) continue;
    const int64_t size = span_elements(tensor.decl) * bytes(tensor.decl.dtype);
    if (offset == a.offset && size > 0) return std::string(cuda_type(tensor.decl.dtype));
    offset += (size + 255) / 256 * 256;
  }
  return "float";
}

void raise_limits(Writer& out, const LaunchPlan& plan) {
  bool any = false;
  for (const PlanKernel& k : plan.kernels) any |= k.shared_bytes > kSharedWithoutAsking;
  if (!any) return;
  out.line("static bool ready[64] = {};  // by device: the limits of shared memory are raised");
  out.line("int device = 0;");
  out.line("if (cudaError_t error = cudaGetDevice(&device)) return error;");
  out.open("if (device >= 64 || !ready[device])");
  for (const PlanKernel& k : plan.kernels) {
    if (k.shared_bytes <= kSharedWithoutAsking) continue;
    out.open("if (cudaError_t error = cudaFuncSetAttribute(" + k.name +
             ", cudaFuncAttributeMaxDynamicSharedMemorySize, " + std::to_string(k.shared_bytes) +
             "))");
    out.line("return error;");
    out.close();
  }
  out.line("if (device < 64) ready[device] = true;");
  out.close();
}

// Leave to start early is an attribute of the launch.
void launch_dependent(Writer& out, const PlanKernel& k, std::vector<std::string> arguments) {
  out.open("");
  out.line("cudaLaunchAttribute early = {};");
  out.line("early.id = cudaLaunchAttributeProgrammaticStreamSerialization;");
  out.line("early.val.programmaticStreamSerializationAllowed = 1;");
  out.line("cudaLaunchConfig_t config = {};");
  out.line("config.gridDim = dim3(" + std::to_string(k.grid[0]) + ");");
  out.line("config.blockDim = dim3(" + std::to_string(k.block) + ");");
  out.line("config.dynamicSmemBytes = " + std::to_string(k.shared_bytes) + ";");
  out.line("config.stream = stream;");
  out.line("config.attrs = &early;");
  out.line("config.numAttrs = 1;");
  arguments.insert(arguments.begin(), {"&config", k.name});
  out.line("if (cudaError_t error = cudaLaunchKernelEx(" + join(arguments, ", ") +
           ")) return error;");
  out.close();
}

}  // namespace

std::string launcher_text(const LaunchPlan& plan, const std::vector<KernelStats>& stats,
                          const MuGraph& graph) {
  Writer out;
  out.line("#if !defined(__CUDACC_RTC__) && !defined(SUNDOG_EMULATOR)");
  const bool library = plan.library_bytes > 0;
  if (library) out.line("#include <cublas_v2.h>");
  out.line("#include <stddef.h>");
  if (library) out.line("#include <mutex>");
  out.blank();
  out.line("// Pointers in the order of the program's inputs and outputs; returns a cudaError_t.");
  out.line("extern \"C\" size_t " + plan.name + "_workspace_bytes() { return " +
           std::to_string(plan.workspace_bytes) + "; }");
  if (plan.zeroed_bytes > 0) {
    out.line("// The first bytes of the workspace, which have to be 0 before it is used the first");
    out.line("// time; every launch leaves them so.");
    out.line("extern \"C\" size_t " + plan.name + "_zeroed_bytes() { return " +
             std::to_string(plan.zeroed_bytes) + "; }");
  }
  out.blank();
  if (library) out.line(library_function(plan));
  out.open("extern \"C\" int " + plan.name +
           "([[maybe_unused]] void* const* inputs, [[maybe_unused]] void* const* outputs,\n"
           "    [[maybe_unused]] void* workspace, [[maybe_unused]] cudaStream_t stream)");
  raise_limits(out, plan);
  int maps = 0;
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    const PlanKernel& k = plan.kernels[i];
    std::vector<std::string> arguments;
    for (const PlanArgument& a : k.arguments) {
      std::string type = argument_type(a, plan, graph);
      if (a.map) {
        const std::string name = "map_" + std::to_string(maps++);
        out.line(a.map->type + " " + name + ";");
        out.line("if (cudaError_t error = sd::encode(" + name + ", " + pointer(a, type) +
                 ")) return error;");
        arguments.push_back(name);
        continue;
      }
      // A parameter that a kernel only reads is const; a pointer converts to that by itself.
      arguments.push_back(pointer(a, type));
    }
    if (k.gemm) {
      out.line(library_call(plan, k, arguments));
      continue;
    }
    if (k.dependent) {
      launch_dependent(out, k, arguments);
      continue;
    }
    out.line(k.name + "<<<" + std::to_string(stats[i].blocks) + ", " + std::to_string(k.block) +
             ", " + std::to_string(k.shared_bytes) + ", stream>>>(" + join(arguments, ", ") + ");");
    out.line("if (cudaError_t error = cudaGetLastError()) return error;");
  }
  out.line("return cudaSuccess;");
  out.close();
  out.line("#endif");
  return out.text();
}

}  // namespace sundog::codegen
