// Statements of a kernel in order: signature, grid indices, loops with their pipelines, and where
// accumulators start and end.
//
// A loop with stages runs S - 1 copies ahead: they are started before it, and each iteration waits
// for its own tile, passes a barrier (so that all threads see the tile, and nobody still reads the
// one that comes next) and starts the copy S - 1 further on.  Every iteration closes a group of
// copies, empty or not, so that the number of groups to wait for is the same in the tail.
#include "codegen/emit_kernel.h"

#include <algorithm>
#include <limits>
#include <set>

#include "codegen/source_words.h"
#include "core/check.h"

namespace sundog::codegen {
namespace {

// A text for floor(x / d) of integers of any sign.
std::string floor_div(const std::string& x, int64_t d) {
  if (d == 1) return x;
  const std::string by = std::to_string(d), less = std::to_string(d - 1);
  return "(" + x + " >= 0 ? " + x + " / " + by + " : -((" + less + " - " + x + ") / " + by + "))";
}

bool mentions(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !is_word_character(text[at - 1])) &&
        (end == text.size() || !is_word_character(text[end]))) {
      return true;
    }
  }
  return false;
}

// What of `text` is as far in as `indent`, up to the first line that is not.
std::string_view block_of(std::string_view text, size_t indent) {
  for (size_t i = 0; i < text.size(); i = std::min(text.find('\n', i), text.size() - 1) + 1) {
    const size_t first = text.find_first_not_of(' ', i);
    if (first == std::string_view::npos) break;
    if (text[first] != '\n' && text[first] != '#' && first - i < indent) return text.substr(0, i);
  }
  return text;
}

// Drops declarations "const int NAME = ...;" of names that nothing else in their block mentions:
// coordinates that a layout offers and the code around it turned out not to need.
std::string without_unused(const std::string& text) {
  const std::string_view view(text);
  std::string result;
  bool dropped = false;
  for (size_t i = 0; i < view.size();) {
    const size_t end = std::min(view.find('\n', i), view.size() - 1) + 1;
    const std::string_view line = view.substr(i, end - i);
    constexpr std::string_view kHead = "const int ";
    const size_t indent = line.find_first_not_of(' ');
    bool unused = false;
    if (indent != std::string_view::npos && line.substr(indent).starts_with(kHead)) {
      const size_t begin = indent + kHead.size();
      size_t stop = begin;
      while (stop < line.size() && is_word_character(line[stop])) ++stop;
      unused = line.find(", ", stop) == std::string_view::npos &&
               !mentions(block_of(view.substr(end), indent), line.substr(begin, stop - begin));
    }
    if (!unused) result += line;
    dropped |= unused;
    i = end;
  }
  return dropped ? without_unused(result) : result;
}

}  // namespace

KernelEmitter::KernelEmitter(const MuGraph& graph, const Kernel& kernel, const KernelPlan& plan,
                             CudaTextOptions options, const LaunchPlace& place)
    : graph_(graph),
      kernel_(kernel),
      plan_(plan),
      place_(place),
      scan_(scan(kernel)),
      dependences_(dependences(kernel)),
      text_(out_, options) {
  for (AxisId f : kernel.grid) grid_.insert(f);
  for (const LoopSite& site : scan_.loops) looped_.insert(site.loop->factor);
  for (const ComputationPlan& p : plan.computations) warpgroups_ |= p.mma && p.mma->warpgroup;
  declare_names();
}

void KernelEmitter::declare_names() {
  std::set<std::string> taken = {"arrivals", "last"};
  const auto unique = [&](const std::string& wanted) {
    std::string name = identifier(wanted);
    while (!taken.insert(name).second) name += "_";
    return name;
  };
  for (const DeviceTensor& tensor : graph_.tensors) tensors_.push_back(unique(tensor.decl.name));
  for (const Factor& f : kernel_.factors) factors_.push_back(unique(f.name));
  for (const Computation& c : kernel_.computations) {
    std::string name = unique(c.name);
    names_.push_back(name);
    for (const char* suffix : {"_part", "_shared", "_last", "_scale", "_scratch"})
      taken.insert(name + suffix);
  }
  out_.reserve(std::move(taken));
}

std::string KernelEmitter::run(const std::string& name, const std::vector<std::string>& parameters,
                               const std::optional<Joined>& joined) {
  const bool cluster = joined && joined->via == Via::kCluster;
  signature(name, parameters, cluster ? joined->count : 0);
  out_.line("const int tid = static_cast<int>(threadIdx.x);");
  out_.line("[[maybe_unused]] const int lane = tid % 32, warp = tid / 32;");
  if (!kernel_.grid.empty()) out_.line("const int block = static_cast<int>(blockIdx.x);");
  grid_indices(!cluster);
  declare_arena(cluster);
  if (place_.followed) out_.line("sd::grid_launch_dependents();");
  start_copies();
  start_first_windows();
  statements(kernel_.body);
  settle_products();
  if (joined) cluster ? run_shares(*joined) : run_last(*joined);
  out_.close();
  return without_unused(out_.text());
}

std::string KernelEmitter::run_joined(const std::string& block, int64_t arena) {
  arena_ = arena;
  if (!kernel_.grid.empty()) out_.line("const int block = " + block + ";");
  grid_indices(false);
  declare_arena(false);
  start_first_windows();
  statements(kernel_.body);
  settle_products();
  return out_.text();
}

void KernelEmitter::signature(const std::string& name, const std::vector<std::string>& parameters,
                              int64_t cluster) {
  out_.line("extern \"C\" __global__ void " +
            (cluster > 0 ? "__cluster_dims__(" + std::to_string(cluster) + ", 1, 1) " : "") +
            "__launch_bounds__(" + std::to_string(kernel_.warps * kLanes) + blocks_wanted() + ")");
  out_.open(name + "(" + join(parameters, ", ") + ")");
}

// Two blocks on a multiprocessor, if the accumulators of warp groups and little else fit its
// registers twice: the compiler would otherwise take a few more and halve them.
std::string KernelEmitter::blocks_wanted() const {
  constexpr int64_t kRegisters = 65536, kOthers = 28;
  int64_t held = kOthers;
  for (const ComputationPlan& p : plan_.computations) {
    if (p.mma && p.mma->warpgroup) held += slots(p.partial);
  }
  const bool fit = 2 * held * kernel_.warps * kLanes <= kRegisters;
  return warpgroups_ && fit && 2 * plan_.shared_bytes <= 224 * 1024 ? ", 2" : "";
}

// Whether masks leave blocks more iterations the later they are along grid factor `f`.
bool KernelEmitter::blocks_grow_along(AxisId f) const {
  bool grow = false, shrink = false;
  for (const LoopSite& site : scan_.loops) {
    for (const IndexCondition& condition : site.loop->trim) {
      if (condition.relation != Relation::kLess && condition.relation != Relation::kLessEqual) {
        continue;
      }
      const Affine e = affine(graph_, kernel_, condition.expr);
      if (e.coefficients[site.loop->factor] == 0) continue;
      grow |= e.coefficients[f] < 0;
      shrink |= e.coefficients[f] > 0;
    }
  }
  return grow && !shrink;
}

// `reversed`: a factor along which blocks grow starts with its last value, so that long blocks come
// first and short ones fill the end.
void KernelEmitter::grid_indices(bool reversed) {
  int64_t inner = block_count(kernel_);
  for (size_t i = 0; i < kernel_.grid.size(); ++i) {
    const AxisId f = kernel_.grid[i];
    const int64_t size = extent(f);
    inner = size == 0 ? 0 : inner / size;
    std::string text = "block";
    if (inner > 1) text += " / " + std::to_string(inner);
    if (i > 0) text += " % " + std::to_string(std::max<int64_t>(size, 1));
    if (reversed && blocks_grow_along(f)) text = std::to_string(size - 1) + " - " + text;
    out_.line("[[maybe_unused]] const int " + factors_[f] + " = " + text + ";");
  }
}

void KernelEmitter::declare_arena(bool kept) {
  bool any = false;
  const auto begin = [&] {
    if (!any) out_.line("unsigned char* const arena = sd::shared_arena();");
    any = true;
  };
  const auto pointer = [&](const SharedTile& tile, const std::string& name) {
    begin();
    const std::string type(cuda_type(tile.dtype));
    std::vector<std::string> shape;
    for (const TileAxis& a : tile.axes) {
      shape.push_back(kernel_.factors[a.axis].name + "(" + std::to_string(a.extent) + ")");
    }
    out_.line(type + "* const " + name + " = reinterpret_cast<" + type + "*>(arena + " +
              std::to_string(arena_ + tile.offset) + ");  // [" + join(shape, ", ") + "]" +
              (tile.axes.size() > 1 ? ", rows of " + std::to_string(tile.pitch) : "") +
              (tile.copies > 1 ? ", " + std::to_string(tile.copies) + " of them" : ""));
  };
  for (uint32_t id = 0; id < kernel_.computations.size(); ++id) {
    if (plan(id).shared) pointer(*plan(id).shared, tile_base(id));
    if (plan(id).combine.scratch) pointer(*plan(id).combine.scratch, names_[id] + "_scratch");
  }
  if (!kept) return;
  for (const auto& [t, placed] : place_.kept) {
    begin();
    std::vector<std::string> shape;
    for (size_t d = 0; d < placed.extents.size(); ++d) {
      if (placed.ranks[d] > 0) continue;
      shape.push_back(graph_.tensors[t].decl.dim_names[d] + "(" +
                      std::to_string(placed.extents[d]) + ")");
    }
    out_.line("float* const " + tensors_[t] + " = reinterpret_cast<float*>(arena + " +
              std::to_string(placed.offset) + ");  // [" + join(shape, ", ") +
              "], for the blocks of the cluster");
  }
}

void KernelEmitter::statements(const std::vector<Statement>& body) {
  for (const Statement& statement : body) {
    position_ += kPositionStep;
    finish_before(position_);
    if (!std::holds_alternative<Loop>(statement.node) && touches_before({statement})) {
      await_kernels();
    }
    if (const auto* c = std::get_if<Compute>(&statement.node)) {
      if (open_.empty() && !is_register_load(c->computation)) end_loads();
      compute(c->computation);
    } else if (const auto* s = std::get_if<Store>(&statement.node)) {
      store(*s, plan_.stores[next_store_++]);
    } else {
      loop(std::get<Loop>(statement.node));
    }
  }
}

void KernelEmitter::finish_before(int position) {
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < kernel_.computations.size(); ++id) {
    if (plan(id).deferred && plan(id).finish_before == position) ids.push_back(id);
  }
  if (ids.empty()) return;
  settle_products();
  finish(ids, /*add=*/false);
}

void KernelEmitter::compute(uint32_t id) {
  const ComputationPlan& p = plan(id);
  if (p.ring != kNone || started_.erase(id) > 0) return;  // by the loop
  settle_products_for(id);
  out_.blank();
  out_.line("// " + describe(id));
  switch (p.kind) {
    case Realisation::kAsyncCopy:
      async_load(id);
      return;
    case Realisation::kElementwise:
      if (open_.empty() && is_register_load(id)) {
        const Mode run = vector_mode(p.iteration);
        loads_ += slots(p.iteration) / run.extent;
      }
      if (p.window > 0 && !p.ahead) {
        declare_windows(id);
        fetch_windows(id);
      }
      elementwise(id);
      if (p.ahead) fetch_next_windows(id);
      return;
    case Realisation::kReduce:
    case Realisation::kMma:
      reduction(id);
      return;
  }
}

bool KernelEmitter::is_register_load(uint32_t id) const {
  const ComputationPlan& p = plan(id);
  return std::holds_alternative<InputTerm>(kernel_.terms[computation(id).value]) &&
         p.kind == Realisation::kElementwise && p.in_registers && !p.shared;
}

// Behind loads to registers that stand together: all are asked for before one is used.
void KernelEmitter::end_loads() {
  if (loads_ > 1) out_.line("sd::loads_issued();");
  loads_ = 0;
}

// --- loops

// Loads to registers, before the iteration waits for its copies: the two come side by side.
void KernelEmitter::start_loads(const Loop& loop) {
  for (const Statement& statement : loop.body) {
    const auto* c = std::get_if<Compute>(&statement.node);
    if (c == nullptr) continue;
    if (!is_register_load(c->computation)) continue;
    compute(c->computation);
    started_.insert(c->computation);
  }
}

std::vector<uint32_t> KernelEmitter::ring_of(const Loop& loop) const {
  std::vector<uint32_t> ids;
  for (const Statement& statement : loop.body) {
    const auto* c = std::get_if<Compute>(&statement.node);
    if (c != nullptr && plan(c->computation).ring != kNone) ids.push_back(c->computation);
  }
  return ids;
}

bool KernelEmitter::never_empty(const Loop& loop) const {
  return loop.trim.empty() && extent(loop.factor) > 0;
}

// Sets the first and the last but one index; true if an iteration can still be skipped inside.
bool KernelEmitter::loop_range(const Loop& loop, std::string& begin, std::string& end) {
  begin = "0";
  end = std::to_string(extent(loop.factor));
  bool skips = false;
  const std::string f = factors_[loop.factor];
  const auto less = [&](const Affine& e) {  // e < 0
    const int64_t own = e.coefficients[loop.factor];
    Affine rest = e;
    rest.coefficients[loop.factor] = 0;
    const std::string bound = out_.fresh("bound_");
    if (own == 0) {
      out_.line("const int " + bound + " = " + to_linear({}, rest).text() + " < 0 ? " + end +
                " : 0;");
      end = bound;
      return;
    }
    // own > 0: index <= floor((-rest - 1) / own).  own < 0: index >= floor(rest / -own) + 1.
    Linear value;
    value.add(to_linear({}, rest), own > 0 ? -1 : 1);
    if (own > 0) value.constant -= 1;
    const std::string raw = out_.fresh("bound_");
    out_.line("const int " + raw + " = " + value.text() + ";");
    out_.line("const int " + bound + " = " + floor_div(raw, std::abs(own)) + " + 1;");
    std::string& limit = own > 0 ? end : begin;
    const std::string merged = out_.fresh("bound_");
    out_.line("const int " + merged + " = " + bound + (own > 0 ? " < " : " > ") + limit + " ? " +
              bound + " : " + limit + ";");
    limit = merged;
  };
  for (const IndexCondition& condition : loop.trim) {
    Affine e = affine(graph_, kernel_, condition.expr);
    Affine minus = e;
    minus.constant = -e.constant - 1;
    for (int64_t& c : minus.coefficients) c = -c;
    switch (condition.relation) {
      case Relation::kLess:
        less(e);
        break;
      case Relation::kLessEqual:
        e.constant -= 1;
        less(e);
        break;
      case Relation::kEqual:
        e.constant -= 1;
        less(e);
        less(minus);
        break;
      case Relation::kNotEqual:
        skips = true;
        break;
    }
  }
  return skips;
}

void KernelEmitter::start_accumulators(const Loop& loop) {
  for (uint32_t id = 0; id < kernel_.computations.size(); ++id) {
    const ComputationPlan& p = plan(id);
    if (p.loops.empty() || computation(id).accumulate_into != kNone) continue;
    const Loop* outermost = nullptr;
    for (int index : scan_.computations[id].around) {
      const Loop* around = scan_.loops[static_cast<size_t>(index)].loop;
      if (outermost == nullptr && p.loops.has(around->factor)) outermost = around;
    }
    if (outermost != &loop) continue;
    const double unit =
        reduce_of(id)->kind == ReduceKind::kSum ? 0 : -std::numeric_limits<double>::infinity();
    const RegisterArray array = p.deferred ? part_array(id) : result_array(id);
    out_.line(array.declaration());
    fill(array, unit);
    if (computation(id).rescale != kNone && rescaled_first(id) == id) {
      const RegisterArray last = row_array(id, "_last");
      out_.line(last.declaration());
      fill(last, -std::numeric_limits<double>::infinity());
    }
    if (!p.deferred && p.shared) write_tile(id, p.layout);
  }
}

void KernelEmitter::loop(const Loop& loop) {
  settle_products();
  start_accumulators(loop);
  const BulkLoop* bulk = bulk_loop(loop);
  const std::vector<uint32_t> copied = ring_of(loop);
  const std::vector<uint32_t> ring = bulk != nullptr ? std::vector<uint32_t>() : copied;
  if (bulk != nullptr) barrier(hazards_.before_loop());
  out_.blank();
  out_.open("");
  std::string begin, end;
  const bool skips = loop_range(loop, begin, end);
  loop_end_[loop.factor] = end;
  const Hazards before_prologue = hazards_;
  await_loads(ring);
  if (!ring.empty()) ring_prologue(loop, ring, begin, end);
  if (bulk != nullptr) start_stages(*bulk);
  if (touches_before(loop.body)) await_kernels();
  const std::string f = factors_[loop.factor];
  const Hazards before = hazards_;
  Hazards entry = ring.empty() ? before : Hazards();
  const auto mark = out_.mark();
  const int position = position_;
  const size_t stores = next_store_;
  while (true) {  // until what an iteration leaves behind is what it was written for
    out_.rewind(mark);
    position_ = position;
    next_store_ = stores;
    hazards_ = entry;
    out_.line("#pragma unroll 1");
    out_.open("for (int " + f + " = " + begin + "; " + f + " < " + end + "; ++" + f + ")");
    if (skips) {
      for (const IndexCondition& condition : loop.trim) {
        if (condition.relation != Relation::kNotEqual) continue;
        const Linear e = to_linear({}, affine(graph_, kernel_, condition.expr));
        out_.line("if (" + e.text() + " == 0) continue;");
      }
    }
    if (bulk != nullptr || !ring.empty()) start_loads(loop);
    if (!ring.empty()) {
      const std::string ahead = std::to_string(loop.stages - 1);
      out_.line("sd::cp_async_wait<" + std::to_string(loop.stages - 2) + ">();");
      sync_threads();
      out_.line("if (" + f + " + " + ahead + " < " + end + ") load_" + f + "(" + f + " + " + ahead +
                ", (" + f + (begin == "0" ? "" : " - " + begin) + " + " + ahead + ") % " +
                std::to_string(loop.stages) + ");");
      out_.line("sd::cp_async_commit();");
      stage_of_[loop.factor] = f + "_stage";
      out_.line("const int " + f +
                "_stage = " + (begin == "0" ? f : "(" + f + " - " + begin + ")") + " % " +
                std::to_string(loop.stages) + ";");
    }
    if (bulk != nullptr) await_stage(loop, *bulk, begin, end);
    open_.push_back(&loop);
    statements(loop.body);
    settle_products();
    open_.pop_back();
    if (bulk != nullptr) release_stage(*bulk);
    out_.close();
    if (!ring.empty() || entry.covers(hazards_)) break;
    entry.merge(hazards_);
  }
  stage_of_.erase(loop.factor);
  // The copies have landed and were waited for; what is left is what the iterations read.
  for (uint32_t id : copied) hazards_.read(region(*plan(id).shared));
  if (!never_empty(loop)) hazards_.merge(ring.empty() ? before : before_prologue);
  position_ += kPositionStep;
  out_.close();
}

void KernelEmitter::ring_prologue(const Loop& loop, const std::vector<uint32_t>& ring,
                                  const std::string& begin, const std::string& end) {
  const std::string f = factors_[loop.factor];
  for (uint32_t id : ring) {
    const Hazards::Need need = hazards_.before_write(region(*plan(id).shared));
    if (need == Hazards::Need::kNothing) continue;
    if (need == Hazards::Need::kWaitAndBarrier) out_.line("sd::cp_async_wait<0>();");
    sync_threads();
    hazards_.barrier(need == Hazards::Need::kWaitAndBarrier);
  }
  stage_of_[loop.factor] = f + "_stage";
  open_.push_back(&loop);
  out_.open("const auto load_" + f + " = [&](int " + f + ", int " + f + "_stage)");
  for (uint32_t id : ring) {
    out_.line("// " + describe(id));
    copy_async(id, tile_base(id));
  }
  out_.close(";");
  open_.pop_back();
  const std::string count = std::to_string(loop.stages - 1);
  out_.line("#pragma unroll");
  out_.open("for (int ahead = 0; ahead < " + count + "; ++ahead)");
  const std::string at = begin == "0" ? "ahead" : begin + " + ahead";
  out_.line("if (" + at + " < " + end + ") load_" + f + "(" + at + ", ahead);");
  out_.line("sd::cp_async_commit();");
  out_.close();
}

}  // namespace sundog::codegen
