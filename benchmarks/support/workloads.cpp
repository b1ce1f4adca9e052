#include "benchmarks/support/workloads.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/check.h"
#include "core/text.h"

namespace sundog::benchmarks {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path);
  SUNDOG_CHECK(file.good());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

constexpr char kMlpBlock[] = R"(
program rms_norm_mlp_down(n = 16, h = 4096, f = 4096, d = 4096) {
  input X: f16[n, h]
  input G: f16[h]
  input W1: f16[h, f]
  input W2: f16[h, f]
  input W3: f16[f, d]
  r[n] = rsqrt(mean[h](X * X) + 1e-6)
  gate[n, f] = sum[h](X * r * G * W1)
  up[n, f] = sum[h](X * r * G * W2)
  O[n, d] = sum[f](silu(gate) * up * W3)
  output O: f16[n, d]
}
)";

constexpr char kAttentionBlock[] = R"(
program attention_projection(b = 1, g = 32, q = 16, e = 64, f = e, k = 4096, d = 4096) {
  input Q: f16[g, q, e]
  input K: f16[g, k, e]
  input V: f16[g, k, f]
  input W: f16[g, f, d]
  s[g, q, k] = sum[e](Q * K) * rsqrt(size(e))
  m[g, q] = max[k](s)
  p[g, q, k] = exp(s - m)
  a[g, q, f] = sum[k](p * V) / sum[k](p)
  O[q, d] = sum[g, f](a * W)
  output O: f16[q, d]
}
)";

// A line "Name:   1234 kB" of the kernel's account of this process, in MB.
double status_mb(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    double kb = 0;
    if (word == name && status >> kb) return kb / 1024;
  }
  return 0;
}

}  // namespace

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> list = [] {
    std::vector<Workload> result;
    const char* elsewhere = std::getenv("SUNDOG_PROGRAMS");
    const fs::path folder = elsewhere != nullptr
                                ? fs::path(elsewhere)
                                : fs::path(SUNDOG_SOURCE_DIR) / "benchmarks/programs";
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() != ".sd") continue;
      result.push_back({entry.path().stem().string(), read(entry.path())});
    }
    std::sort(result.begin(), result.end(),
              [](const Workload& a, const Workload& b) { return a.name < b.name; });
    return result;
  }();
  return list;
}

const std::vector<Workload>& blocks() {
  static const std::vector<Workload> list = {{"rms_norm_mlp_down", kMlpBlock},
                                             {"attention_projection", kAttentionBlock}};
  return list;
}

const Workload& workload(const std::string& name) {
  for (const auto* list : {&workloads(), &blocks()}) {
    for (const Workload& w : *list) {
      if (w.name == name) return w;
    }
  }
  SUNDOG_CHECK(false);
}

Program parse(const Workload& workload) {
  Result<Program> program = parse_program(workload.text, workload.name + ".sd");
  SUNDOG_CHECK(program.ok());
  return *std::move(program);
}

Pair read_pair(const std::string& file) {
  const fs::path path = fs::path(SUNDOG_SOURCE_DIR) / "tests/programs" / file;
  Pair pair;
  pair.text = read(path);
  const auto reference = program_reference(pair.text);
  SUNDOG_CHECK(reference.has_value());
  const fs::path program_path = path.parent_path() / reference->path;
  Result<Program> program =
      parse_program(read(program_path), program_path.filename().string(), reference->defines);
  SUNDOG_CHECK(program.ok());
  pair.program = *std::move(program);
  Result<MuGraph> graph = parse_mugraph(pair.text, file, pair.program);
  SUNDOG_CHECK(graph.ok());
  pair.graph = *std::move(graph);
  return pair;
}

const Device& h200() {
  static const Device device = [] {
    Result<Device> row = find_device("h200");
    SUNDOG_CHECK(row.ok());
    return *std::move(row);
  }();
  return device;
}

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

PeakMemory::PeakMemory() {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak is what is resident now
  start_mb_ = status_mb("VmRSS:");
}

double PeakMemory::peak_mb() const { return status_mb("VmHWM:"); }

}  // namespace sundog::benchmarks
