// The order of kernels: launches that overlap, and kernels that blocks of another one run.
//
// Overlap (programmatic dependent launch).  A dependent kernel starts when every block of the one
// before has called grid_launch_dependents: at its first line, since starting early costs nothing
// but room on the SMs.  What follows may then run beside it.  grid_wait lasts until all kernels
// before are done (each waited for those before it), so it stands in front of the first read of
// what one of them writes, and of the first store.  Loads of the program's inputs come before it.
// The first kernel of a plan is launched in order.  Letting it start early, to wait for whatever
// stands in front of it, was tried: on an H200 it made gated_mlp 19.6 us instead of 17.3 and
// rms_norm 16.5 instead of 15.0, at b = 8.
//
// Last blocks.  Each block counts itself in at the counter of its group; the one that finds all
// others there runs the joined kernel's block, behind a fence on either side, so that it sees what
// they stored.  The counter is back at 0 then, for the next launch.  As in the sample
// threadFenceReduction of the CUDA toolkit.
//
// Clusters.  Each block keeps its part in its own shared memory; behind a barrier of the cluster
// each runs its share of the joined kernel and reads the parts of all, and behind another one it
// ends, since its memory has to be there until all have read it.  The first barrier also says that
// every block of the cluster has started, which distributed shared memory needs.
//
// On an H200 that beats a second kernel only where few blocks run anyway: safe attention of 32
// blocks in clusters of 4 takes 15.0 us, with a second kernel 16.1, in the last block 15.9; of 256
// blocks 22.5 instead of 20.0, and products whose blocks fill a multiprocessor up to 1.45 times as
// long, since a cluster has to fit one group of them (benchmarks/results/h200.md).
//
// A pointer to what is written while the launch runs carries no __restrict__: the compiler could
// move reads through it, which it would take for reads of memory that nobody changes, in front of
// the wait or the fence.
#include <algorithm>

#include "codegen/emit_kernel.h"
#include "core/schedule/memory_plan.h"

namespace sundog::codegen {
namespace {

std::set<uint32_t> read_tensors(const Kernel& kernel) {
  std::set<uint32_t> read;
  for (const Computation& c : kernel.computations) {
    const TermId roots[] = {c.value};
    for (TermId t : reachable(kernel.terms, roots)) {
      if (const auto* input = std::get_if<InputTerm>(&kernel.terms[t])) read.insert(input->tensor);
    }
  }
  return read;
}

}  // namespace

int64_t cluster_blocks(const MuGraph& graph, const Launch& launch) {
  if (launch.joined == kNone || graph.kernels[launch.joined].via != Via::kCluster) return 1;
  const Result<Arrival> arrival = arrival_of(graph, launch.joined);
  return arrival.ok() ? arrival->count : 1;
}

std::set<uint32_t> stored_tensors(const Kernel& kernel) {
  std::set<uint32_t> stored;
  for (const Store* store : stores_of(kernel)) stored.insert(store->tensor);
  return stored;
}

std::set<uint32_t> stored_tensors(const MuGraph& graph, const Launch& launch) {
  std::set<uint32_t> stored = stored_tensors(graph.kernels[launch.kernel]);
  if (launch.joined != kNone) stored.merge(stored_tensors(graph.kernels[launch.joined]));
  return stored;
}

std::vector<Launch> launches_of(const MuGraph& graph) {
  std::vector<Launch> launches;
  for (uint32_t k = 0; k < graph.kernels.size(); ++k) {
    if (graph.kernels[k].via != Via::kKernel || block_count(graph.kernels[k]) == 0) continue;
    const bool joins = k + 1 < graph.kernels.size() && graph.kernels[k + 1].via != Via::kKernel;
    launches.push_back({k, joins ? k + 1 : kNone});
  }
  return launches;
}

std::vector<uint32_t> launch_parameters(const MuGraph& graph, const Launch& launch) {
  std::set<uint32_t> used = stored_tensors(graph, launch);
  used.merge(read_tensors(graph.kernels[launch.kernel]));
  if (launch.joined != kNone) used.merge(read_tensors(graph.kernels[launch.joined]));
  std::vector<uint32_t> result;
  for (TensorRole role : {TensorRole::kInput, TensorRole::kOutput, TensorRole::kIntermediate}) {
    for (uint32_t t = 0; t < graph.tensors.size(); ++t) {
      if (graph.tensors[t].role == role && used.contains(t)) result.push_back(t);
    }
  }
  return result;
}

std::string emit_kernel(const MuGraph& graph, const Launch& launch,
                        const std::vector<KernelPlan>& plans, const std::string& name,
                        CudaTextOptions options, LaunchPlace place) {
  if (place.dependent) place.changing.insert(place.before.begin(), place.before.end());
  LaunchArena arena;
  if (launch.joined != kNone) {
    const std::vector<uint32_t> handed = handed_over(graph, launch.joined);
    place.changing.insert(handed.begin(), handed.end());
    std::vector<ClusterTensor> kept = cluster_tensors(graph, launch.joined);
    arena = arena_of(plans, kept);
    for (const ClusterTensor& tensor : kept) place.kept[tensor.tensor] = tensor;
    if (!kept.empty()) place.group = group_of_parts(graph, launch.joined);
  }
  KernelEmitter emitter(graph, graph.kernels[launch.kernel], plans[0], options, place);
  std::vector<std::string> parameters =
      emitter.pointer_parameters(launch_parameters(graph, launch), stored_tensors(graph, launch));
  std::optional<Joined> join;
  if (launch.joined != kNone) {
    const Kernel& own = graph.kernels[launch.joined];
    if (own.via == Via::kLastBlock) parameters.push_back("uint32_t* __restrict__ arrivals");
    LaunchPlace inside = place;
    inside.dependent = false;  // the kernel has waited
    if (!place.kept.empty()) inside.group = group_of_joined(graph, launch.joined);
    KernelEmitter joined(graph, own, plans[1], options, inside);
    const Result<Arrival> arrival = arrival_of(graph, launch.joined);
    join = {own.via,
            emitter.index_text(arrival->group),
            emitter.index_text(arrival->arriving),
            arrival->count,
            arrival->shares,
            own.name,
            {}};
    std::string block = join->group;
    if (arrival->shares > 1) {
      block = (block == "0" ? "" : "(" + block + ") * " + std::to_string(arrival->shares) + " + ") +
              join->rank;
    }
    join->body = joined.run_joined(block, arena.joined_offset);
  }
  for (std::string& map : emitter.map_parameters()) parameters.push_back(std::move(map));
  return emitter.run(name, parameters, join);
}

std::vector<std::string> KernelEmitter::pointer_parameters(const std::vector<uint32_t>& tensors,
                                                           const std::set<uint32_t>& stored) const {
  std::vector<std::string> parameters;
  for (uint32_t t : tensors) {
    parameters.push_back(std::string(stored.contains(t) ? "" : "const ") +
                         std::string(cuda_type(graph_.tensors[t].decl.dtype)) +
                         (place_.changing.contains(t) ? "* " : "* __restrict__ ") + tensors_[t]);
  }
  return parameters;
}

// Whether a computation reads what an earlier kernel writes.
bool KernelEmitter::reads_before(uint32_t id) const {
  const TermId roots[] = {computation(id).value};
  const std::vector<TermId> terms = reachable(kernel_.terms, roots);
  return std::any_of(terms.begin(), terms.end(), [&](TermId t) {
    const auto* input = std::get_if<InputTerm>(&kernel_.terms[t]);
    return input != nullptr && place_.before.contains(input->tensor);
  });
}

bool KernelEmitter::touches_before(const std::vector<Statement>& body) const {
  return std::any_of(body.begin(), body.end(), [&](const Statement& s) {
    if (const auto* loop = std::get_if<Loop>(&s.node)) return touches_before(loop->body);
    if (const auto* c = std::get_if<Compute>(&s.node)) return reads_before(c->computation);
    return true;
  });
}

void KernelEmitter::await_loads(const std::vector<uint32_t>& ids) {
  if (std::any_of(ids.begin(), ids.end(), [&](uint32_t id) { return reads_before(id); })) {
    await_kernels();
  }
}

// Once: the places where it is called from outside of all loops come first.
void KernelEmitter::await_kernels() {
  if (!place_.dependent || waited_) return;
  waited_ = true;
  out_.line("sd::grid_wait();");
}

std::string KernelEmitter::index_text(const std::vector<AxisId>& factors) const {
  std::string text = "0";
  for (AxisId f : factors) {
    const std::string own = factors_[f];
    text = text == "0" ? own : "(" + text + ") * " + std::to_string(extent(f)) + " + " + own;
  }
  return text;
}

void KernelEmitter::write_lines(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    line.empty() ? out_.blank() : out_.line(line);
    at = end + 1;
  }
}

// The barrier in front orders what the threads stored before the first one's fence, and the tiles
// of both kernels, which share their memory.
void KernelEmitter::run_last(const Joined& joined) {
  const std::string most = std::to_string(joined.count - 1);
  out_.blank();
  out_.line("// of the blocks of a group, " + std::to_string(joined.count) +
            ", the last to come runs kernel " + joined.name);
  barrier(std::max(hazards_.before_loop(), Hazards::Need::kBarrier));
  out_.line("bool last = false;");
  out_.open("if (tid == 0)");
  out_.line("sd::fence_device();");
  out_.line("last = sd::atomic_increment(arrivals + " + joined.group + ", " + most +
            ") == " + most + ";");
  out_.line("sd::fence_device();");
  out_.close();
  out_.open("if (sd::sync_threads_any(last))");
  write_lines(joined.body);
  out_.close();
}

// The barrier of the cluster is one of its blocks, too.
void KernelEmitter::run_shares(const Joined& joined) {
  const std::string shares = std::to_string(joined.shares);
  const bool all = joined.shares == joined.count;
  out_.blank();
  out_.line("// the blocks of a cluster, " + std::to_string(joined.count) + ", have stored; " +
            (all                  ? "each"
             : joined.shares == 1 ? "the first"
                                  : "each of the first " + shares) +
            " runs its share of kernel " + joined.name);
  settle_products();
  if (hazards_.before_loop() == Hazards::Need::kWaitAndBarrier) {
    out_.line("sd::cp_async_wait<0>();");
  }
  if (warpgroups_) out_.line("sd::fence_async_proxy();");
  out_.line("sd::cluster_sync();");
  out_.open(all ? "" : "if (" + joined.rank + " < " + shares + ")");
  write_lines(joined.body);
  out_.close();
  out_.line("// the memory of a block stays for those who read it");
  out_.line("sd::cluster_sync();");
}

}  // namespace sundog::codegen
