// A module is a program; a run of it is a child process.  The two talk through one file in memory
// (emulator/protocol.h): this side lays out launches and buffers, the child answers in place.  A
// kernel may overwrite anything in its process, hang or fault; all that is believed of the answer
// afterwards is text and numbers.
#include "codegen/emulator.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "codegen/embedded.h"
#include "codegen/emulator/protocol.h"
#include "codegen/emulator_source.h"
#include "codegen/emulator_toolchain.h"
#include "core/process.h"
#include "core/temporary_folder.h"

namespace sundog::codegen {

namespace fs = std::filesystem;
namespace wire = sd::emulator;

// A temporary folder with the program in it.
struct EmulatorModule::Program {
  TemporaryFolder folder;
  bool checked = false, residues = false;
  double seconds_compile = 0;
  std::vector<std::vector<std::string>> kernels;  // by unit

  explicit Program(TemporaryFolder place) : folder(std::move(place)) {}
  fs::path executable() const { return folder.path() / "module"; }
};

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// --- compile ---

// Runs one step of the build; `what` was being built.
Status build_step(const std::vector<std::string>& command, double time_limit_s) {
  const ProcessLimits limits{.seconds = time_limit_s};
  Result<ProcessResult> result = run_process(command, limits);
  if (!result.ok()) return result.error();
  if (result->succeeded()) return {};
  if (result->end == ProcessResult::End::kTimedOut) {
    return limit_error("building the kernel for the emulator took more than " +
                       std::to_string(static_cast<int>(time_limit_s)) + " s");
  }
  if (const std::string what = lacked(*result); !what.empty()) {
    return limit_error("the compiler for the emulator lacked " + what);
  }
  if (names_a_limit(result->err)) {
    return limit_error("the compiler for the emulator met a limit: " + first_error(result->err));
  }
  return Error{ErrorCode::kFailed,
               "the kernel does not compile for the emulator: " + first_error(result->err),
               {},
               {}};
}

// --- run ---

uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

// The file shared with the child, mapped.
class SharedFile {
 public:
  SharedFile() = default;
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile() {
    if (base_) munmap(base_, bytes_);
    if (file_ >= 0) close(file_);
  }
  Status create(uint64_t bytes) {
    file_ = memfd_create("sundog-emulator", MFD_CLOEXEC);
    if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes)) != 0) return failure();
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (memory == MAP_FAILED) return failure();
    base_ = static_cast<unsigned char*>(memory);
    bytes_ = bytes;
    return {};
  }
  template <class T>
  T* at(uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }
  // Under which the child opens it.
  std::string path() const {
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_);
  }

 private:
  static Status failure() {
    return io_error("no memory to share with the emulator: " + std::string(std::strerror(errno)));
  }
  int file_ = -1;
  unsigned char* base_ = nullptr;
  uint64_t bytes_ = 0;
};

std::string describe_launch(const EmulatorLaunch& launch) {
  return "the launch of " + launch.kernel;
}

Status check_launch(const EmulatorLaunch& launch, std::span<const EmulatorBuffer> buffers) {
  const auto& [gx, gy, gz] = launch.grid;
  const auto& [bx, by, bz] = launch.block;
  if (gx == 0 || gy == 0 || gz == 0 || gx > 0x7fffffffu || gy > 65535 || gz > 65535) {
    return bad_input(describe_launch(launch) + " has a grid that no GPU takes");
  }
  const uint64_t threads = uint64_t{bx} * by * bz;
  if (threads == 0 || bx > 1024 || by > 1024 || bz > 64 || threads > 1024) {
    return bad_input(describe_launch(launch) + " has a block that no GPU takes");
  }
  if (uint64_t{gx} * gy * gz >= (uint64_t{1} << 25)) {
    return unsupported(describe_launch(launch) + " has more blocks than the emulator counts");
  }
  if (launch.cluster[0] < 1 || launch.cluster[0] > 8 ||
      launch.cluster[1] * launch.cluster[2] != 1) {
    return unsupported(describe_launch(launch) + " has clusters other than of 1 to 8 along x");
  }
  if (gx % launch.cluster[0] != 0) {
    return bad_input(describe_launch(launch) + " has a grid that is not made of its clusters");
  }
  if (launch.shared_bytes > 232448) {
    return bad_input(describe_launch(launch) + " asks for more than 227 KiB of shared memory");
  }
  for (const int argument : launch.args) {
    if (argument < 0 || static_cast<size_t>(argument) >= buffers.size()) {
      return bad_input(describe_launch(launch) + " names a buffer that is not there");
    }
  }
  return {};
}

struct Layout {
  uint64_t launches = 0, buffers = 0, arguments = 0, bytes = 0;
  std::vector<wire::FileBuffer> places;
};

Layout lay_out(std::span<const EmulatorLaunch> launches, std::span<const EmulatorBuffer> buffers) {
  Layout layout;
  size_t arguments = 0;
  for (const EmulatorLaunch& launch : launches) arguments += launch.args.size();
  layout.launches = round_up(sizeof(wire::FileHeader), 64);
  layout.buffers = layout.launches + round_up(launches.size() * sizeof(wire::FileLaunch), 64);
  layout.arguments = layout.buffers + round_up(buffers.size() * sizeof(wire::FileBuffer), 64);
  uint64_t end = round_up(layout.arguments + arguments * sizeof(int), wire::kPage);
  for (const EmulatorBuffer& buffer : buffers) {
    const uint64_t misalignment = buffer.misalignment % 256;
    const uint64_t pages = round_up(misalignment + buffer.bytes, wire::kPage);
    wire::FileBuffer place{buffer.bytes, misalignment, end + misalignment, 0, buffer.writable};
    end += pages;
    if (buffer.writable) {
      place.results = end + misalignment;
      end += pages;
    }
    layout.places.push_back(place);
  }
  layout.bytes = std::max(end, wire::kPage);
  return layout;
}

void write_request(const SharedFile& file, const Layout& layout,
                   std::span<const EmulatorLaunch> launches,
                   std::span<const EmulatorBuffer> buffers, const EmulatorOptions& options) {
  auto& header = *file.at<wire::FileHeader>(0);
  header.bytes = layout.bytes;
  header.launches = layout.launches;
  header.buffers = layout.buffers;
  header.arguments = layout.arguments;
  header.launch_count = launches.size();
  header.buffer_count = buffers.size();
  header.seed = options.seed;
  if (options.residues) header.field = *options.residues;
  header.schedules = std::max(1, options.schedules);
  header.threads = options.threads > 0
                       ? options.threads
                       : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  int* arguments = file.at<int>(layout.arguments);
  uint64_t next = 0;
  for (size_t i = 0; i < launches.size(); ++i) {
    const EmulatorLaunch& launch = launches[i];
    wire::FileLaunch& out = file.at<wire::FileLaunch>(layout.launches)[i];
    std::snprintf(out.kernel, sizeof out.kernel, "%s", launch.kernel.c_str());
    out.unit = launch.unit;
    std::copy_n(launch.grid, 3, out.grid);
    std::copy_n(launch.block, 3, out.block);
    out.cluster = launch.cluster[0];
    out.shared_bytes = launch.shared_bytes;
    out.first_argument = next;
    out.argument_count = static_cast<int>(launch.args.size());
    out.dependent = launch.dependent && i > 0;
    for (const int argument : launch.args) arguments[next++] = argument;
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const wire::FileBuffer& place = layout.places[i];
    file.at<wire::FileBuffer>(layout.buffers)[i] = place;
    if (place.bytes == 0) continue;
    // NaN around the contents, for what checks at page granularity let through.
    const uint64_t start = place.contents - place.misalignment;
    const uint64_t pages = round_up(place.misalignment + place.bytes, wire::kPage);
    auto* page = file.at<unsigned char>(start);
    std::memset(page, 0xff, place.misalignment);
    std::memcpy(page + place.misalignment, buffers[i].data, place.bytes);
    std::memset(page + place.misalignment + place.bytes, 0xff,
                pages - place.misalignment - place.bytes);
  }
}

// --- report ---

// The lines of the sources at which the problems stand, by pc; empty without addr2line.
std::vector<std::string> find_lines(const fs::path& program,
                                    std::span<const wire::FileProblem> problems) {
  std::vector<std::string> lines(problems.size());
  std::vector<std::string> command{"addr2line", "-a", "-i", "-e", program.string()};
  std::vector<size_t> which;
  for (size_t i = 0; i < problems.size(); ++i) {
    if (problems[i].pc == 0) continue;
    char text[32];  // the call before the return address
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(problems[i].pc - 1));
    command.push_back(text);
    which.push_back(i);
  }
  if (which.empty()) return lines;
  const Result<ProcessResult> result = run_process(command, {.seconds = 20});
  if (!result.ok() || !result->succeeded()) return lines;
  // An address, then the places of the innermost function and of those it was inlined into.
  size_t next = 0;
  std::string_view rest = result->out;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.starts_with("0x")) {
      ++next;
      continue;
    }
    const size_t unit = line.rfind("unit_"), colon = line.rfind(':');
    if (unit == std::string_view::npos || colon == std::string_view::npos || next == 0) continue;
    std::string& found = lines[which[std::min(next, which.size()) - 1]];
    if (!found.empty()) continue;
    const std::string_view number = line.substr(colon + 1);
    found = number.substr(0, number.find(' '));
  }
  return lines;
}

std::string describe(const wire::FileProblem& problem, std::span<const EmulatorLaunch> launches,
                     const std::string& line) {
  std::string text = problem.kind;
  text += ": ";
  if (problem.launch >= 0 && static_cast<size_t>(problem.launch) < launches.size()) {
    char where[96];
    std::snprintf(where, sizeof where, ", block (%u, %u, %u), ", problem.block[0], problem.block[1],
                  problem.block[2]);
    text += "kernel " + launches[static_cast<size_t>(problem.launch)].kernel + where;
    if (problem.thread >= 0) text += "thread " + std::to_string(problem.thread) + ", ";
    if (!line.empty()) text += "line " + line + ", ";
    text.replace(text.size() - 2, 2, ": ");
  }
  text += problem.text;
  if (problem.count > 1) text += " (seen " + std::to_string(problem.count) + " times)";
  return text;
}

// Makes text of the child's answer, in an order that does not depend on threads.
std::vector<std::string> describe_all(wire::Answer& answer,
                                      std::span<const EmulatorLaunch> launches,
                                      const fs::path& program) {
  const int count = std::clamp(answer.problem_count, 0, wire::kMaxProblems);
  const std::span<wire::FileProblem> problems(answer.problems, static_cast<size_t>(count));
  for (wire::FileProblem& problem : problems) {
    problem.kind[sizeof problem.kind - 1] = '\0';
    problem.text[sizeof problem.text - 1] = '\0';
  }
  std::sort(problems.begin(), problems.end(),
            [](const wire::FileProblem& a, const wire::FileProblem& b) {
              if (a.schedule != b.schedule) return a.schedule < b.schedule;
              if (a.launch != b.launch) return a.launch < b.launch;
              if (a.pc != b.pc) return a.pc < b.pc;
              return std::strcmp(a.kind, b.kind) < 0;
            });
  const std::vector<std::string> lines = find_lines(program, problems);
  std::vector<std::string> texts;
  for (size_t i = 0; i < problems.size(); ++i) {
    texts.push_back(describe(problems[i], launches, lines[i]));
  }
  return texts;
}

// What the child does not say itself: that it was killed.
void note_unfinished(const ProcessResult& result, const ProcessLimits& limits,
                     const wire::Answer& answer, std::span<const EmulatorLaunch> launches,
                     std::vector<std::string>& problems) {
  if (answer.finished) return;
  std::string kernel = "the emulator";
  if (answer.launch >= 0 && static_cast<size_t>(answer.launch) < launches.size()) {
    kernel = "kernel " + launches[static_cast<size_t>(answer.launch)].kernel;
  }
  if (result.end == ProcessResult::End::kTimedOut) {
    problems.push_back("timeout: " + kernel + ": " + describe_end(result, limits));
  } else if (problems.empty()) {
    problems.push_back("crash: " + kernel + ": the emulator " + describe_end(result, limits));
  }
}

}  // namespace

Result<EmulatorModule> EmulatorModule::compile(std::string_view cu_source,
                                               const EmulatorOptions& options) {
  const std::string source(cu_source);
  return compile(std::span<const std::string>(&source, 1), options);
}

Result<EmulatorModule> EmulatorModule::compile(std::span<const std::string> cu_sources,
                                               const EmulatorOptions& options) {
  const auto start = Clock::now();
  std::vector<std::vector<std::string>> kernels;
  bool foreign = false;
  for (const std::string& source : cu_sources) {
    kernels.push_back(find_kernels(source));
    if (kernels.back().empty()) return bad_input("the source has no kernel to emulate");
    foreign |= compare_primitives(source, kPrimitivesText) == PrimitivesText::kForeign;
  }
  if (foreign && cu_sources.size() > 1) {
    return bad_input("the primitives in one of the sources are not those of this build",
                     "emit it again, or compile it alone");
  }
  Result<EmulatorToolchain> tools = find_emulator_toolchain(std::max(options.time_limit_s, 60.0));
  if (!tools.ok()) return tools.error();
  Result<TemporaryFolder> made = TemporaryFolder::make("emulator");
  if (!made.ok()) return made.error();
  auto program = std::make_shared<Program>(std::move(*made));
  program->checked = options.race_check && !options.residues;
  program->residues = options.residues.has_value();
  program->kernels = std::move(kernels);
  const fs::path& folder = program->folder.path();
  for (size_t i = 0; i < cu_sources.size(); ++i) {
    SUNDOG_RETURN_IF_ERROR(write_file(folder / ("unit_" + std::to_string(i) + ".cu"),
                                      without_c_linkage(cu_sources[i])));
  }
  SUNDOG_RETURN_IF_ERROR(write_file(folder / "module.cpp", module_text(program->kernels, foreign)));
  const EmulatorBuild build = program->residues  ? EmulatorBuild::kResidues
                              : program->checked ? EmulatorBuild::kChecked
                                                 : EmulatorBuild::kFast;
  SUNDOG_RETURN_IF_ERROR(
      build_step(tools->compile_command(folder / "module.cpp", folder / "module.o", build,
                                        options.scalar_defs),
                 options.time_limit_s));
  SUNDOG_RETURN_IF_ERROR(build_step(tools->link_command(folder / "module.o", program->executable()),
                                    options.time_limit_s));
  program->seconds_compile = seconds_since(start);
  return EmulatorModule(std::move(program));
}

const std::vector<std::string>& EmulatorModule::kernels(int unit) const {
  SUNDOG_CHECK(unit >= 0 && static_cast<size_t>(unit) < program_->kernels.size());
  return program_->kernels[static_cast<size_t>(unit)];
}

Result<EmulatorReport> EmulatorModule::run(std::span<const EmulatorLaunch> launches,
                                           std::span<const EmulatorBuffer> buffers,
                                           const EmulatorOptions& options) const {
  if (options.residues.has_value() != program_->residues) {
    return bad_input("the module was compiled for other numbers than it is to run with");
  }
  if (options.race_check && !options.residues && !program_->checked) {
    return bad_input("the module was compiled without race_check, so a run cannot check races");
  }
  for (const EmulatorLaunch& launch : launches) {
    SUNDOG_RETURN_IF_ERROR(check_launch(launch, buffers));
    const auto unit = static_cast<size_t>(launch.unit);
    const bool known = launch.unit >= 0 && unit < program_->kernels.size() &&
                       std::find(program_->kernels[unit].begin(), program_->kernels[unit].end(),
                                 launch.kernel) != program_->kernels[unit].end();
    if (!known) return bad_input("the source has no kernel named " + launch.kernel);
  }
  const Layout layout = lay_out(launches, buffers);
  SharedFile file;
  SUNDOG_RETURN_IF_ERROR(file.create(layout.bytes));
  write_request(file, layout, launches, buffers, options);

  const auto start = Clock::now();
  ProcessLimits limits{.seconds = options.time_limit_s};
  if (options.memory_limit > 0) {
    // Beside the buffers: eight bytes of shadow a byte, and stacks and a heap for each worker.
    const int threads = file.at<wire::FileHeader>(0)->threads;
    limits.memory_bytes =
        static_cast<int64_t>(options.memory_limit + 12 * layout.bytes) + (int64_t{threads} << 28);
  }
  Result<ProcessResult> result =
      run_process({program_->executable().string(), file.path()}, limits);
  if (!result.ok()) return result.error();
  auto& answer = file.at<wire::FileHeader>(0)->answer;
  EmulatorReport report;
  report.seconds_compile = program_->seconds_compile;
  report.seconds_run = seconds_since(start);
  report.barriers = answer.barriers;
  report.collectives = answer.collectives;
  report.shared_accesses = answer.shared_accesses;
  const auto* answered = file.at<wire::FileLaunch>(file.at<wire::FileHeader>(0)->launches);
  for (size_t i = 0; program_->checked && i < launches.size(); ++i) {
    report.banks.push_back(
        {launches[i].kernel, answered[i].bank_turns, answered[i].bank_conflicts});
  }
  report.open_comparisons = answer.open_comparisons;
  report.problems = describe_all(answer, launches, program_->executable());
  note_unfinished(*result, limits, answer, launches, report.problems);
  for (size_t i = 0; answer.finished && i < buffers.size(); ++i) {
    if (!buffers[i].writable || buffers[i].bytes == 0) continue;
    std::memcpy(buffers[i].data, file.at<unsigned char>(layout.places[i].results),
                buffers[i].bytes);
  }
  return report;
}

}  // namespace sundog::codegen
