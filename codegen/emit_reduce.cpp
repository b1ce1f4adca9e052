// Reductions: partial sums of a thread, their combination over lanes and warps, accumulators over
// loops.
//
// Combination over warps goes through scratch memory: each warp writes its part, and after a
// barrier the parts are added up by whoever is to hold the result.  Several accumulators that end
// together share the barrier.
#include <algorithm>
#include <bit>
#include <limits>

#include "codegen/emit_kernel.h"
#include "core/schedule/banks.h"

namespace sundog::codegen {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

double unit(ReduceKind kind) { return kind == ReduceKind::kSum ? 0 : kMinusInfinity; }

// The statement that adds `x` to `to`.
std::string merge(ReduceKind kind, const std::string& to, const std::string& x) {
  if (kind == ReduceKind::kSum) return to + " += " + x + ";";
  return to + " = sd::max(" + to + ", " + x + ");";
}

// The function that combines lanes: "sd::lane_sum<3>".
std::string across_lanes(ReduceKind kind, uint32_t lanes) {
  return std::string(kind == ReduceKind::kSum ? "sd::lane_sum<" : "sd::lane_max<") +
         std::to_string(lanes) + ">";
}

}  // namespace

void KernelEmitter::for_all(const RegisterArray& array, const std::string& statement) {
  if (array.count == 1) {
    out_.line(statement);
    return;
  }
  out_.line("#pragma unroll");
  out_.line("for (int i = 0; i < " + std::to_string(array.count) + "; ++i) " + statement);
}

void KernelEmitter::fill(const RegisterArray& array, double value) {
  std::string text = literal(value);
  if (array.dtype != DType::kF32) {
    text = "sd::from_float<" + std::string(cuda_type(array.dtype)) + ">(" + text + ")";
  }
  for_all(array, array.any() + " = " + text + ";");
}

// The threads that add what another reduction leaves to a target's partial sums: one for each lane
// and warp over which the target is still to be combined.
std::string KernelEmitter::target_extra_test(uint32_t id) const {
  const ComputationPlan& p = plan(id);
  const ComputationPlan& t = plan(computation(id).accumulate_into);
  std::vector<std::string> tests;
  const uint32_t lanes = t.combine.lanes & ~p.combine.lanes;
  if (lanes != 0) tests.push_back("(lane & " + std::to_string(lanes) + ") == 0");
  if (p.combine.warps.empty()) {
    for (const Mode& m : t.combine.warps) {
      Mode digit = m;
      tests.push_back(digit_text(digit, kernel_.warps) + " == 0");
    }
  }
  return join(tests, " && ");
}

void KernelEmitter::reduction(uint32_t id) {
  const ComputationPlan& p = plan(id);
  const Computation& c = computation(id);
  const ReduceKind kind = reduce_of(id)->kind;
  std::vector<uint32_t> operands = scan_.locals[id];
  if (c.rescale != kNone) operands.push_back(c.rescale);
  read_barrier(operands);
  const bool fresh = fresh_each_time(id), warpgroup = p.mma && p.mma->warpgroup;
  const std::optional<MaxOfMultiples> multiples =
      fresh && !p.into_partial && p.kind == Realisation::kReduce ? max_of_multiples(id)
                                                                 : std::nullopt;
  const auto loops = [&](const RegisterArray& into, const std::string& only) {
    if (warpgroup) {
      warpgroup_product(id, into, fresh);
    } else if (p.kind == Realisation::kMma) {
      mma_loops(id, into, only);
    } else if (p.row_sum) {
      row_sum(id, into);
    } else {
      reduce_loops(id, into, only, multiples);
    }
  };
  if (p.into_partial) {
    out_.open("");
    loops(part_array(c.accumulate_into), target_extra_test(id));
    out_.close();
    return;
  }
  const bool accumulator = !p.loops.empty() && c.accumulate_into == kNone;
  if (!accumulator) out_.line(result_array(id).declaration());
  if (c.rescale != kNone) declare_scale(id);
  out_.open("");
  const RegisterArray part = part_array(id);
  if (fresh) {
    if (separate_part(id)) out_.line(part.declaration());
    if (!warpgroup) fill(part, unit(kind));
  }
  if (c.rescale != kNone) rescale(id, fresh ? result_array(id) : part);
  loops(part, "");
  if (multiples) {
    for_all(part,
            part.any() + " = sd::multiple_of_max(" + part.any() + ", " + multiples->factor + ");");
  }
  const bool kept = !p.combine.needed() && !separate_part(id) && !p.shared;
  if (!p.deferred) {
    if (!kept) settle_products_for(id);
    finish({id}, accumulator && fresh);
  }
  if (c.accumulate_into != kNone) add_into(id);
  out_.close();
}

void KernelEmitter::reduce_loops(uint32_t id, const RegisterArray& into, const std::string& only,
                                 const std::optional<MaxOfMultiples>& multiples) {
  const ComputationPlan& p = plan(id);
  const ReduceTerm& reduce = *reduce_of(id);
  const Slots slots(out_, kernel_, p.iteration);
  const std::string present = presence(slots, id, true, tile_axes(id) | p.reduced);
  if (!only.empty()) out_.open("if (" + only + ")");
  // Loops over reduced axes stay loops where no register is indexed by them.
  AxisSet rolled = p.reduced;
  for (uint32_t operand : scan_.locals[id]) {
    const ComputationPlan& o = plan(operand);
    if (o.in_registers && agrees(o.layout, p.iteration, tile_axes(operand))) {
      rolled = rolled - tile_axes(operand);
    }
  }
  const auto loops = [&](const std::map<TermId, TermId>& instead) {
    Scope scope{id, &slots, {}};
    scope.instead = instead;
    if (multiples) scope.instead[multiples->product] = multiples->rest;
    slots.for_each(
        out_, rolled,
        [&] {
          scope.vectors.clear();
          prepare_vectors(scope, reduce.operand);
        },
        [&] {
          scope.values.clear();
          std::string text = value(scope, reduce.operand, "").text;
          if (!present.empty())
            text = "(" + present + ") ? " + text + " : " + literal(unit(reduce.kind));
          const std::string element = into.element(slots.index_in(p.partial));
          if (multiples) {
            out_.line(element + " = sd::max_of_multiples(" + element + ", " + text + ", " +
                      multiples->factor + ");");
          } else {
            out_.line(merge(reduce.kind, element, present.empty() ? text : "(" + text + ")"));
          }
        });
  };
  with_settled_masks(id, reduce.operand, tile_axes(id) | p.reduced, loops);
  if (!only.empty()) out_.close();
}

// --- combination

void KernelEmitter::combine_lanes(uint32_t id) {
  const uint32_t lanes = plan(id).combine.lanes;
  if (lanes == 0) return;
  const RegisterArray part = part_array(id);
  for_all(part,
          part.any() + " = " + across_lanes(reduce_of(id)->kind, lanes) + "(" + part.any() + ");");
}

// Each warp writes its part of each element, once.
void KernelEmitter::scatter_parts(uint32_t id) {
  const ComputationPlan& p = plan(id);
  const SharedTile& scratch = *p.combine.scratch;
  barrier(hazards_.before_write(region(scratch)));
  out_.open("");
  const Slots slots(out_, kernel_, write_order(p.partial, scratch));
  std::vector<Mode> holders = p.partial.modes;
  std::erase_if(holders, [](const Mode& m) { return m.holder == Holder::kReg; });
  int64_t step = scratch.elements();
  Linear part;
  for (const Mode& m : p.combine.warps) {
    holders.push_back(m);
    const std::string digit = digit_text(m, kernel_.warps);
    part.add(digit == "warp" ? digit : "(" + digit + ")", step);
    step *= m.extent;
  }
  const std::string primary = join(primary_tests(holders, kernel_.warps), " && ");
  if (!primary.empty()) out_.open("if (" + primary + ")");
  const std::string base = names_[id] + "_scratch";
  TileWriter writer;
  writer.width = tile_vector(scratch, slots);
  writer.pieces = slots.vector() / writer.width;
  const auto put = [&](const Coordinates& at, const std::vector<std::string>& tests,
                       const std::string& before, const std::string& after) {
    Linear index = tile_index(scratch, at);
    index.add(part, 1);
    out_.line((tests.empty() ? "" : "if (" + join(tests, " && ") + ") ") + before + index.text() +
              after);
  };
  const auto edge = [&](AxisId f) { return extent(f); };
  slots.for_each(
      out_, {},
      [&] {
        if (writer.width > 1) out_.line(writer.declaration(DType::kF32));
      },
      [&] {
        const std::string element = part_array(id).element(slots.index_in(p.partial));
        if (writer.width > 1) {
          out_.line(writer.element() + " = " + element + ";");
        } else {
          put(slots.coordinates(), slots.edge_tests(edge, tile_axes(id)), base + "[",
              "] = " + element + ";");
        }
      },
      [&] {
        if (writer.width <= 1) return;
        const std::vector<Coordinates> pieces = run_pieces(slots, writer.width);
        for (size_t i = 0; i < pieces.size(); ++i) {
          put(pieces[i], edge_tests(id, slots, pieces[i]), "sd::store_shared(" + base + " + ",
              ", vec[" + std::to_string(i) + "]);");
        }
      });
  if (!primary.empty()) out_.close();
  out_.close();
  hazards_.write(region(scratch));
}

// Tests that a piece of a thread's run lies within the tile.
std::vector<std::string> KernelEmitter::edge_tests(uint32_t id, const Slots& slots,
                                                   const Coordinates& at) const {
  std::vector<std::string> tests;
  for (AxisId f : tile_axes(id)) {
    if (covered(slots.layout(), f) <= extent(f)) continue;
    const auto found = at.find(f);
    tests.push_back(found == at.end() ? "false"
                                      : found->second.text() + " < " + std::to_string(extent(f)));
  }
  return tests;
}

// The sum of all warps' parts of a single value, a power of two of words: each lane adds up the
// parts in one word, and lanes add theirs.  A word that all lanes read comes to them in four turns,
// so that warps that each read all parts would wait for one another: n_trans at b = 8 takes 2.11 us
// so and 2.07 this way (H200, 2026-11-30).
std::string KernelEmitter::gather_by_lanes(uint32_t id, int width, int words) {
  const ReduceKind kind = reduce_of(id)->kind;
  const std::string name = out_.fresh("t"), word = out_.fresh("in_"), w = std::to_string(width);
  const auto part = [&](int i) { return word + "[" + std::to_string(i) + "]"; };
  out_.line("sd::Vec<float, " + w + "> " + word + ";");
  out_.line("sd::load_shared(" + word + ", " + names_[id] + "_scratch" +
            (words == 1 ? "" : " + lane % " + std::to_string(words) + " * " + w) + ");");
  for (int half = width / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) out_.line(merge(kind, part(i), part(i + half)));
  }
  const auto lanes = static_cast<uint32_t>(words - 1);
  out_.line("const float " + name + "[1] = {" +
            (lanes == 0 ? part(0) : across_lanes(kind, lanes) + "(" + part(0) + ")") + "};");
  return name;
}

// The sums of all warps' parts of a run of neighbours, read in words: the name of their array;
// empty where each is read by itself.  A single value's parts are such a run themselves.
std::string KernelEmitter::gather_run(uint32_t id, const Slots& slots) {
  const SharedTile& scratch = *plan(id).combine.scratch;
  const ReduceKind kind = reduce_of(id)->kind;
  const bool single = scratch.elements() == 1;
  int width = single ? 4 : tile_vector(scratch, slots);
  while (single && scratch.copies % width != 0) width /= 2;
  if (width <= 1) return "";
  const int words = scratch.copies / width;
  if (single && std::has_single_bit(static_cast<uint32_t>(words)) &&
      edge_tests(id, slots, slots.coordinates()).empty()) {
    return gather_by_lanes(id, width, words);
  }
  const int count = single ? width : slots.vector();
  const std::string name = out_.fresh("t"), word = out_.fresh("in_"), w = std::to_string(width);
  const std::string base = names_[id] + "_scratch", pieces = std::to_string(count / width);
  out_.line("float " + name + "[" + std::to_string(count) + "];");
  const std::string all = "for (int v = 0; v < " + std::to_string(count) + "; ++v) ";
  out_.line("#pragma unroll");
  out_.line(all + name + "[v] = " + literal(unit(kind)) + ";");
  out_.line("#pragma unroll");
  out_.open("for (int i = 0; i < " +
            std::to_string(single ? scratch.copies / width : scratch.copies) + "; ++i)");
  out_.line("sd::Vec<float, " + w + "> " + word + "[" + pieces + "];");
  const std::vector<Coordinates> runs =
      single ? std::vector<Coordinates>(1, slots.coordinates()) : run_pieces(slots, width);
  for (size_t r = 0; r < runs.size(); ++r) {
    Linear index = tile_index(scratch, runs[r]);
    index.add("i", single ? width : scratch.elements());
    const std::string element = word + "[" + std::to_string(r) + "]";
    guarded_load(element, "sd::load_shared(" + element + ", " + base + " + " + index.text() + ");",
                 edge_tests(id, slots, runs[r]));
  }
  out_.line("#pragma unroll");
  const std::string part = word + (count == width ? "[0][v]" : "[v / " + w + "][v % " + w + "]");
  out_.line(all + merge(kind, name + "[v]", part));
  out_.close();
  if (single) {
    for (int half = width / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) {
        out_.line(merge(kind, name + "[" + std::to_string(i) + "]",
                        name + "[" + std::to_string(i + half) + "]"));
      }
    }
  }
  return name;
}

// The sum of all warps' parts of the current element.
Text KernelEmitter::gathered(uint32_t id, const Slots& slots) {
  const SharedTile& scratch = *plan(id).combine.scratch;
  const std::string base = names_[id] + "_scratch";
  const ReduceKind kind = reduce_of(id)->kind;
  const std::string name = out_.fresh("t");
  const Linear at = tile_index(scratch, slots.coordinates());
  const std::string index = at.is_zero() ? "" : at.text() + " + ";
  const std::vector<std::string> tests =
      slots.edge_tests([&](AxisId f) { return extent(f); }, tile_axes(id));
  out_.line("float " + name + " = " + literal(unit(kind)) + ";");
  if (!tests.empty()) out_.open("if (" + join(tests, " && ") + ")");
  out_.line("#pragma unroll");
  out_.open("for (int i = 0; i < " + std::to_string(scratch.copies) + "; ++i)");
  out_.line(
      merge(kind, name, base + "[" + index + "i * " + std::to_string(scratch.elements()) + "]"));
  out_.close();
  if (!tests.empty()) out_.close();
  return {name, 0, {}, {}, {}, {}};
}

void KernelEmitter::finish(const std::vector<uint32_t>& ids, bool add) {
  Hazards::Need need = Hazards::Need::kNothing;
  for (uint32_t id : ids) combine_lanes(id);
  for (uint32_t id : ids) {
    if (plan(id).combine.scratch) {
      need = std::max(need, hazards_.before_write(region(*plan(id).combine.scratch)));
    }
  }
  barrier(need);
  for (uint32_t id : ids) {
    if (plan(id).combine.scratch) scatter_parts(id);
  }
  need = Hazards::Need::kNothing;
  for (uint32_t id : ids) {
    if (!plan(id).combine.scratch) continue;
    need = std::max(need, hazards_.before_read(region(*plan(id).combine.scratch)));
  }
  barrier(need);
  for (uint32_t id : ids) finish_values(id, add);
  for (uint32_t id : ids) {
    if (plan(id).shared) write_tile(id, plan(id).layout);
  }
}

void KernelEmitter::finish_values(uint32_t id, bool add) {
  const ComputationPlan& p = plan(id);
  const bool separate = separate_part(id);
  const RegisterArray result = result_array(id);
  if (p.deferred && separate) out_.line(result.declaration());
  if (!separate && !p.combine.scratch) return;  // already in place
  out_.open("");
  const Slots slots(out_, kernel_, p.layout);
  if (p.combine.scratch) hazards_.read(region(*p.combine.scratch));
  std::string run;
  const auto gather = [&] {
    if (p.combine.scratch) run = gather_run(id, slots);
  };
  slots.for_each(out_, {}, gather, [&] {
    const auto held = [&]() -> Text {
      if (!p.combine.scratch) {
        return {part_array(id).element(slots.index_in(p.partial)), 0, {}, {}, {}, {}};
      }
      if (run.empty()) return gathered(id, slots);
      return {run + (slots.vector() > 1 ? "[v]" : "[0]"), 0, {}, {}, {}, {}};
    };
    const Text x = held();
    const std::string element = result.element(slots.index_in(p.layout));
    if (add) {
      out_.line(merge(reduce_of(id)->kind, element, x.text));
    } else if (result.dtype != DType::kF32) {
      out_.line(element + " = sd::from_float<" + std::string(cuda_type(result.dtype)) + ">(" +
                x.text + ");");
    } else {
      out_.line(element + " = " + x.text + ";");
    }
  });
  out_.close();
}

// The finished value of `id`, added to the finished value of its target.
void KernelEmitter::add_into(uint32_t id) {
  const uint32_t to = computation(id).accumulate_into;
  const ComputationPlan& t = plan(to);
  const bool direct = plan(id).in_registers && agrees(plan(id).layout, t.layout, tile_axes(id));
  if (!direct) read_barrier({id});
  out_.open("");
  const Slots slots(out_, kernel_, t.layout);
  Scope scope{id, &slots, {}};
  slots.for_each(out_, {}, nullptr, [&] {
    const Text x = read_local(scope, kNoTerm, LocalTerm{id, tile_axes(id)}, "");
    out_.line(
        merge(reduce_of(to)->kind, result_array(to).element(slots.index_in(t.layout)), x.text));
  });
  out_.close();
  if (t.shared) write_tile(to, t.layout);
}

}  // namespace sundog::codegen
