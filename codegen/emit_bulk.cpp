// Loops whose loads are bulk tensor copies (TMA).
//
// One thread starts the copies some stages ahead: it waits until all warps have read what the stage
// held (the barrier "empty"), says how many bytes will come and starts the copies, which count them
// in (the barrier "full").  Every warp waits for "full", reads, and counts itself in at "empty"; no
// barrier of the block holds the warps together, so they drift apart and their copies, products and
// arithmetic overlap.  Where there are three stages or more, the stage that is filled is not the
// one that was read last but the one before, which is free by then.  A warp of its own for this was
// tried: registers are given out for four warps at a time, which costs a block on the SM.
#include <algorithm>

#include "codegen/emit_kernel.h"

namespace sundog::codegen {
namespace {

int stages_ahead(const BulkLoop& bulk) { return bulk.stages >= 3 ? bulk.stages - 2 : 1; }

}  // namespace

std::vector<uint32_t> bulk_loads(const KernelPlan& plan) {
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < plan.computations.size(); ++id) {
    if (plan.computations[id].bulk) ids.push_back(id);
  }
  return ids;
}

std::string tensor_map_type(const MuGraph& graph, const ComputationPlan& plan) {
  const SharedTile& tile = *plan.shared;
  const TensorDecl& decl = graph.tensors[plan.bulk->tensor].decl;
  const int64_t swizzle = tile.swizzle_mask == 0 ? 0 : (tile.swizzle_mask + 1) * 16;
  std::string text = "sd::TensorMap<" + std::string(cuda_type(decl.dtype)) + ", " +
                     std::to_string(decl.offset) + ", " + std::to_string(swizzle);
  for (const BulkDim& dim : plan.bulk->dims) {
    text += ", sd::Dim<" + std::to_string(dim.extent) + ", " + std::to_string(dim.stride) + ", " +
            std::to_string(dim.box) + ">";
  }
  return text + ">";
}

std::string KernelEmitter::map_name(uint32_t id) const { return names_[id] + "_map"; }

std::vector<std::string> KernelEmitter::map_parameters() const {
  std::vector<std::string> parameters;
  for (uint32_t id : bulk_loads(plan_)) {
    parameters.push_back("const __grid_constant__ " + tensor_map_type(graph_, plan(id)) + " " +
                         map_name(id));
  }
  return parameters;
}

const BulkLoop* KernelEmitter::bulk_loop(const Loop& loop) const {
  const std::vector<uint32_t> loads = ring_of(loop);
  for (const BulkLoop& bulk : plan_.bulk_loops) {
    if (!loads.empty() && bulk.loads == loads) return &bulk;
  }
  return nullptr;
}

// What the names of its barriers begin with.  Loops in sequence over one factor have their own.
std::string KernelEmitter::ring_name(const BulkLoop& bulk) const {
  int before = 1;
  for (const BulkLoop& other : plan_.bulk_loops) {
    if (&other == &bulk) break;
    before += other.factor == bulk.factor;
  }
  const std::string& f = factors_[bulk.factor];
  if (before == 1) return f;
  std::string name = f + "_" + std::to_string(before);
  while (std::find(factors_.begin(), factors_.end(), name) != factors_.end()) name += "_";
  return name;
}

// Barriers, and the first copies of each loop.
void KernelEmitter::start_copies() {
  if (plan_.bulk_loops.empty()) return;
  await_loads(bulk_loads(plan_));
  for (const BulkLoop& bulk : plan_.bulk_loops) {
    const std::string f = ring_name(bulk);
    out_.line("uint64_t* const " + f + "_full = reinterpret_cast<uint64_t*>(arena + " +
              std::to_string(bulk.offset) + ");  // " + std::to_string(bulk.stages) +
              " barriers: bytes have come");
    out_.line("uint64_t* const " + f + "_empty = " + f + "_full + " + std::to_string(bulk.stages) +
              ";  // and have been read");
  }
  out_.open("if (tid == 0)");
  for (const BulkLoop& bulk : plan_.bulk_loops) {
    const std::string f = ring_name(bulk), stages = std::to_string(bulk.stages);
    out_.open("for (int i = 0; i < " + stages + "; ++i)");
    out_.line("sd::mbarrier_init(" + f + "_full + i, 1);");
    out_.line("sd::mbarrier_init(" + f + "_empty + i, " + std::to_string(kernel_.warps) + ");");
    out_.close();
  }
  out_.line("sd::mbarrier_init_fence();");
  for (const Statement& statement : kernel_.body) {
    const auto* loop = std::get_if<Loop>(&statement.node);
    const BulkLoop* bulk = loop == nullptr ? nullptr : bulk_loop(*loop);
    if (bulk == nullptr) continue;
    const std::string f = factors_[loop->factor];
    out_.open("");
    std::string begin, end;
    loop_range(*loop, begin, end);
    out_.line("#pragma unroll");
    out_.open("for (int ahead = 0; ahead < " + std::to_string(stages_ahead(*bulk)) + "; ++ahead)");
    const std::string at = begin == "0" ? "ahead" : begin + " + ahead";
    out_.open("if (" + at + " < " + end + ")");
    out_.line("const int " + f + " = " + at + ";");
    stage_of_[loop->factor] = "ahead";
    copy_stage(*loop, *bulk, "ahead");
    stage_of_.erase(loop->factor);
    out_.close();
    out_.close();
    out_.close();
  }
  out_.close();
  out_.line("sd::sync_threads();");
  out_.blank();
}

// The copies of one iteration, by one thread.
void KernelEmitter::copy_stage(const Loop& loop, const BulkLoop& bulk, const std::string& stage) {
  const std::string full = ring_name(bulk) + "_full + " + stage;
  out_.line("sd::mbarrier_expect(" + full + ", " + std::to_string(bulk.stage_bytes) + ");");
  for (uint32_t id : ring_of(loop)) {
    out_.line("// " + describe(id));
    bulk_copies(id, full);
  }
}

void KernelEmitter::bulk_copies(uint32_t id, const std::string& full) {
  const SharedTile& tile = *plan(id).shared;
  const BulkPlan& bulk = *plan(id).bulk;
  Linear to;
  to.add(stage_of_.at(plan(id).ring), tile.elements());
  std::vector<Linear> at;
  for (const BulkDim& dim : bulk.dims) at.push_back(to_linear({}, dim.index));
  int open = 0;
  const auto each = [&](size_t d, int64_t count, int64_t elements, int64_t apart) {
    if (count <= 1) return;
    const std::string var = open == 0 ? "i" : "i" + std::to_string(open);
    out_.line("#pragma unroll");
    out_.open("for (int " + var + " = 0; " + var + " < " + std::to_string(count) + "; ++" + var +
              ")");
    at[d].add(var, elements);
    to.add(var, apart);
    ++open;
  };
  each(0, bulk.panels, tile.panel, tile.rows() * tile.panel);
  for (size_t d = 1; d < tile.axes.size(); ++d) {
    const BulkDim& dim = bulk.dims[d];
    each(d, dim.pieces, dim.box, dim.box * tile.stride(tile.axes[tile.axes.size() - 1 - d].axis));
  }
  std::vector<std::string> coordinates;
  for (const Linear& e : at) coordinates.push_back(e.text());
  out_.line("sd::bulk_copy(" + tile_base(id) + " + " + to.text() + ", " + map_name(id) + ", " +
            full + ", " + join(coordinates, ", ") + ");");
  for (; open > 0; --open) out_.close();
}

void KernelEmitter::start_stages(const BulkLoop& bulk) {
  const std::string f = ring_name(bulk);
  const int ahead = stages_ahead(bulk);
  out_.line("int " + f + "_stage = 0, " + f + "_phase = 0;");
  out_.line("int " + f + "_next = " + std::to_string(ahead) + ", " + f + "_next_phase = 1;");
  stage_of_[bulk.factor] = f + "_stage";
}

// Starts the copies some stages ahead, and waits for those of this iteration.
void KernelEmitter::await_stage(const Loop& loop, const BulkLoop& bulk, const std::string& begin,
                                const std::string& end) {
  (void)begin;
  const std::string f = ring_name(bulk), index = factors_[loop.factor];
  const std::string ahead = std::to_string(stages_ahead(bulk));
  out_.open("if (tid == 0 && " + index + " + " + ahead + " < " + end + ")");
  out_.line("sd::mbarrier_wait(" + f + "_empty + " + f + "_next, " + f + "_next_phase);");
  const std::string before = out_.fresh(index + "_");
  out_.line("const int " + before + " = " + index + " + " + ahead + ";");
  out_.open("");
  out_.line("const int " + index + " = " + before + ";");
  stage_of_[loop.factor] = f + "_next";
  copy_stage(loop, bulk, f + "_next");
  stage_of_[loop.factor] = f + "_stage";
  out_.close();
  out_.close();
  out_.line("sd::sync_warp();");
  out_.open("if (++" + f + "_next == " + std::to_string(bulk.stages) + ")");
  out_.line(f + "_next = 0;");
  out_.line(f + "_next_phase ^= 1;");
  out_.close();
  out_.line("sd::mbarrier_wait(" + f + "_full + " + f + "_stage, " + f + "_phase);");
}

void KernelEmitter::release_stage(const BulkLoop& bulk) {
  const std::string f = ring_name(bulk);
  out_.line("sd::sync_warp();");
  out_.line("if (lane == 0) sd::mbarrier_arrive(" + f + "_empty + " + f + "_stage);");
  out_.open("if (++" + f + "_stage == " + std::to_string(bulk.stages) + ")");
  out_.line(f + "_stage = 0;");
  out_.line(f + "_phase ^= 1;");
  out_.close();
}

}  // namespace sundog::codegen
