// The reductions of a program in topological order are cut into runs; everything elementwise goes
// to where it is needed, or is stored where that is less to move: between an activation and the two
// sums that it is made of, the activation. So a partition is where to cut, and what crosses the
// cuts follows. Its estimate is launches and traffic alone. It prefers few cuts in narrow places,
// which is where a person would cut; how good the kernels between two cuts are is for the search to
// say, so that several partitions are worth a look.
#include "search/partition.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "search/passes.h"
#include "search/term_copy.h"

namespace sundog::search {
namespace {

constexpr size_t kMostReductions = 6;  // of one part
constexpr size_t kMostProducts = 3;
constexpr size_t kMostPlaces = 12;  // where a cut is considered

bool is_product(const Program& program, TermId t) {
  const auto* reduce = std::get_if<ReduceTerm>(&program.terms[t]);
  if (reduce == nullptr || reduce->kind != ReduceKind::kSum) return false;
  const auto* apply = std::get_if<ApplyTerm>(&program.terms[reduce->operand]);
  if (apply == nullptr || !std::holds_alternative<op::Mul>(apply->op)) return false;
  const AxisSet a = program.terms.axes(apply->operands[0]);
  const AxisSet b = program.terms.axes(apply->operands[1]);
  return !(a == b) && !(a & b & reduce->axes).empty();
}

std::vector<TermId> output_values(const Program& program) {
  std::vector<TermId> roots;
  for (const Output& o : program.outputs) roots.push_back(o.value);
  return roots;
}

// A program made of some terms of another, with what is stored before it as inputs.
class PartBuilder {
 public:
  // `tensor_of`: of terms that are stored between parts, of which this one reads `reads`.  All must
  // outlive the builder.
  PartBuilder(const Program& whole, const std::vector<TensorDecl>& intermediates,
              const std::map<TermId, uint32_t>& tensor_of, std::set<TermId> reads)
      : whole_(whole),
        first_(static_cast<uint32_t>(whole.inputs.size() + whole.outputs.size())),
        copier_(whole.terms, out_.program.terms) {
    Program& p = out_.program;
    p.axes = whole.axes;
    p.parameters = whole.parameters;
    p.splits = whole.splits;
    copier_.replace = [this, &intermediates, &tensor_of,
                       reads = std::move(reads)](TermId t) -> std::optional<TermId> {
      if (const auto* in = std::get_if<InputTerm>(&whole_.terms[t])) {
        return out_.program.terms.input(input(in->tensor, whole_.inputs[in->tensor]), in->index);
      }
      if (!reads.contains(t)) return {};
      const uint32_t tensor = tensor_of.at(t);
      const TensorDecl& decl = intermediates[tensor - first_];
      return out_.program.terms.input(input(tensor, decl), decl.dims);
    };
  }

  // Tensor number `tensor` of the whole.
  void store(uint32_t tensor, const TensorDecl& decl, TermId value) {
    out_.program.outputs.push_back({decl, copier_.copy(value)});
    stored_.push_back(tensor);
  }

  void output(size_t o) {
    store(static_cast<uint32_t>(whole_.inputs.size() + o), whole_.outputs[o].tensor,
          whole_.outputs[o].value);
  }

  ProgramPart done(std::string name) && {
    out_.program.name = std::move(name);
    out_.tensors.resize(out_.program.inputs.size());
    for (const auto& [tensor, in] : input_of_) out_.tensors[in] = tensor;
    out_.tensors.insert(out_.tensors.end(), stored_.begin(), stored_.end());
    return std::move(out_);
  }

 private:
  uint32_t input(uint32_t tensor, const TensorDecl& decl) {
    auto& inputs = out_.program.inputs;
    const auto [it, fresh] = input_of_.try_emplace(tensor, static_cast<uint32_t>(inputs.size()));
    if (fresh) inputs.push_back(decl);
    return it->second;
  }

  const Program& whole_;
  uint32_t first_;  // intermediate
  ProgramPart out_;
  std::vector<uint32_t> stored_;
  std::map<uint32_t, uint32_t> input_of_;  // tensor of the whole -> input of the part
  TermCopier copier_;
};

class Partitioner {
 public:
  Partitioner(const Program& program, const Machine& machine, bool narrow)
      : program_(program), machine_(machine), narrow_(narrow) {
    order_ = reachable(program.terms, output_values(program));
    list_reductions();
    for (TermId t : order_) {
      int& last = last_.try_emplace(t, -1).first->second;
      for (TermId o : operands(program.terms[t])) last = std::max(last, last_.at(o));
    }
    needs_cut_ = !outputs_share_a_grid({});
    for (const TensorDecl& in : program.inputs) {
      if (bytes(in.dtype) == 2 && narrow_type_ == DType::kF32) narrow_type_ = in.dtype;
    }
  }

  bool needs_cut() const { return needs_cut_; }

  std::vector<Partition> run(size_t most) {
    std::vector<Partition> out;
    // What is longer is left at once: to weigh each place takes as long as the program is.
    if (fits(largest_parts())) out = in_turn(most);
    if (needs_cut_) out.push_back(apart());
    std::stable_sort(out.begin(), out.end(), [](const Partition& a, const Partition& b) {
      return a.estimate_us < b.estimate_us;
    });
    return out;
  }

 private:
  // Parts that run one after the other, cut where it is cheapest.
  std::vector<Partition> in_turn(size_t most) const {
    std::vector<int> places;
    for (int p = 1; p < static_cast<int>(reductions_.size()); ++p) places.push_back(p);
    if (places.size() > kMostPlaces) keep_narrowest(places);
    std::vector<std::pair<double, std::vector<int>>> found;
    bool separated = false;
    for (uint64_t s = 1; s < uint64_t{1} << places.size(); ++s) {
      std::vector<int> cuts;
      for (size_t i = 0; i < places.size(); ++i) {
        if ((s >> i & 1) != 0) cuts.push_back(places[i]);
      }
      if (!fits(cuts)) continue;
      // Where some cuts let the outputs of each part share its blocks, others are no use.
      if (needs_cut_ && outputs_share_a_grid(cuts) != separated) {
        if (separated) continue;
        separated = true;
        found.clear();
      }
      found.push_back({estimate(cuts), cuts});
    }
    std::stable_sort(found.begin(), found.end());
    keep_cheapest(most, found);
    std::vector<Partition> out;
    for (const auto& [us, cuts] : found) {
      out.push_back(build(cuts));
      out.back().estimate_us = us;
    }
    return out;
  }

  // The `most` with the cheapest cuts, and the one that is cheapest with the passes of its parts,
  // where that saves a launch.
  void keep_cheapest(size_t most, std::vector<std::pair<double, std::vector<int>>>& found) const {
    if (found.size() <= most) return;
    size_t best = 0;
    double least = std::numeric_limits<double>::infinity(), kept = least;
    for (size_t i = 0; i < found.size(); ++i) {
      const double us = found[i].first + passes_us(found[i].second);
      if (i < most) kept = std::min(kept, us);
      if (us < least) best = i, least = us;
    }
    if (least + machine_.launch_us <= kept) std::swap(found[most++], found[best]);
    found.resize(most);
  }

  int part_of(TermId t, const std::vector<int>& cuts) const {
    const int last = last_.at(t);
    if (last < 0) return -1;
    return static_cast<int>(std::upper_bound(cuts.begin(), cuts.end(), last) - cuts.begin());
  }

  // Where an output is made: with the last reduction below it, or, where that runs along an axis of
  // the output, which would be one pass more over it, in the part behind, which may pass over it
  // anyway.
  int part_of_output(const Output& o, const std::vector<int>& cuts) const {
    const int part = std::max(0, part_of(o.value, cuts));
    if (needs_cut_ || part == static_cast<int>(cuts.size())) return part;
    const TermId roots[] = {o.value};
    for (TermId t : reachable(program_.terms, roots)) {
      const auto* reduce = std::get_if<ReduceTerm>(&program_.terms[t]);
      if (reduce == nullptr || part_of(t, cuts) != part) continue;
      if (!(reduce->axes & program_.terms.axes(o.value)).empty()) return part + 1;
    }
    return part;
  }

  // In topological order, those of outputs with the same axes together: gradients of a row beside
  // each other, then those of a column.
  void list_reductions() {
    std::vector<AxisSet> seen;
    for (const Output& first : program_.outputs) {
      const AxisSet axes = program_.terms.axes(first.value);
      if (std::find(seen.begin(), seen.end(), axes) != seen.end()) continue;
      seen.push_back(axes);
      std::vector<TermId> roots;
      for (const Output& o : program_.outputs) {
        if (program_.terms.axes(o.value) == axes) roots.push_back(o.value);
      }
      for (TermId t : reachable(program_.terms, roots)) {
        if (!std::holds_alternative<ReduceTerm>(program_.terms[t])) continue;
        if (!last_.try_emplace(t, static_cast<int>(reductions_.size())).second) continue;
        reductions_.push_back(t);
      }
    }
  }

  // Of each output, the axes over which no reduction of its part runs that it is made of.
  std::vector<AxisSet> free_axes(const std::vector<int>& cuts) const {
    std::map<TermId, AxisSet> reduced;  // below a term, in its part
    for (TermId t : order_) {
      AxisSet& axes = reduced[t];
      if (const auto* reduce = std::get_if<ReduceTerm>(&program_.terms[t])) axes |= reduce->axes;
      for (TermId o : operands(program_.terms[t])) {
        if (part_of(o, cuts) == part_of(t, cuts)) axes |= reduced.at(o);
      }
    }
    std::vector<AxisSet> free;
    for (const Output& o : program_.outputs) {
      free.push_back(program_.terms.axes(o.value) - reduced.at(o.value));
    }
    return free;
  }

  double count(AxisSet axes) const {
    double n = 1;
    for (AxisId a : axes) n *= static_cast<double>(program_.axes[a].extent);
    return n;
  }

  // Outputs that a kernel may make together: those free axes that all have are as many blocks as
  // one of them could have, or as the device has room for.
  class Grid {
   public:
    bool add(const Partitioner& all, AxisSet free) {
      const AxisSet shared = empty_ ? free : shared_ & free;
      const double least = empty_ ? all.count(free) : std::min(least_, all.count(free));
      if (shared.empty() && !(free.empty() && shared_.empty())) return false;
      if (all.count(shared) < std::min<double>(all.machine_.sms, least)) return false;
      shared_ = shared;
      least_ = least;
      empty_ = false;
      return true;
    }

   private:
    AxisSet shared_;
    double least_ = 0;  // blocks of an output alone
    bool empty_ = true;
  };

  bool outputs_share_a_grid(const std::vector<int>& cuts) const {
    const std::vector<AxisSet> free = free_axes(cuts);
    std::map<int, Grid> grids;
    for (size_t o = 0; o < free.size(); ++o) {
      const int part = std::max(0, part_of(program_.outputs[o].value, cuts));
      if (!grids[part].add(*this, free[o])) return false;
    }
    return true;
  }

  // Parts that share nothing: each makes all that its outputs need.
  Partition apart() const {
    const std::vector<AxisSet> free = free_axes({});
    std::vector<Grid> grids;
    std::vector<std::vector<size_t>> groups;
    for (size_t o = 0; o < free.size(); ++o) {
      size_t g = 0;
      while (g < grids.size() && !grids[g].add(*this, free[o])) ++g;
      if (g == grids.size()) {
        grids.emplace_back().add(*this, free[o]);
        groups.emplace_back();
      }
      groups[g].push_back(o);
    }
    Partition out;
    double read = 0;
    const std::map<TermId, uint32_t> nothing_stored;
    for (const auto& group : groups) {
      PartBuilder builder(program_, out.intermediates, nothing_stored, {});
      for (size_t o : group) builder.output(o);
      out.parts.push_back(std::move(builder).done(part_name(out.parts.size())));
      for (const TensorDecl& in : out.parts.back().program.inputs) read += size_of(in);
    }
    for (const TensorDecl& in : program_.inputs) read -= size_of(in);
    out.estimate_us =
        static_cast<double>(groups.size() - 1) * (machine_.launch_us + machine_.fill_us) +
        read / hbm_peak(machine_);
    return out;
  }

  static double size_of(const TensorDecl& tensor) {
    return static_cast<double>(bytes(tensor.dtype)) * static_cast<double>(element_count(tensor));
  }

  // Whether the reductions [begin, end) are not too many for a search.
  bool part_fits(size_t begin, size_t end) const {
    size_t products = 0;
    for (size_t r = begin; r < end; ++r) products += is_product(program_, reductions_[r]) ? 1 : 0;
    return end - begin <= kMostReductions && products <= kMostProducts;
  }

  bool fits(const std::vector<int>& cuts) const {
    size_t begin = 0;
    for (size_t i = 0; i <= cuts.size(); ++i) {
      const size_t end = i < cuts.size() ? static_cast<size_t>(cuts[i]) : reductions_.size();
      if (!part_fits(begin, end)) return false;
      begin = end;
    }
    return true;
  }

  // The narrowest places of all; if these lie so that some part stays too large, the narrowest of
  // each stretch of the program; and if those do, parts as large as they may be.
  void keep_narrowest(std::vector<int>& places) const {
    std::vector<std::pair<double, int>> by_cost;
    for (int p : places) by_cost.push_back({estimate({p}), p});
    std::vector<int> kept = narrowest(by_cost, kMostPlaces);
    if (!fits(kept)) {
      kept.clear();
      for (size_t i = 0; i < kMostPlaces; ++i) {
        const auto from = static_cast<std::ptrdiff_t>(i * places.size() / kMostPlaces);
        const auto to = static_cast<std::ptrdiff_t>((i + 1) * places.size() / kMostPlaces);
        kept.push_back(narrowest({by_cost.begin() + from, by_cost.begin() + to}, 1).front());
      }
    }
    if (!fits(kept)) kept = largest_parts();
    places = std::move(kept);
  }

  static std::vector<int> narrowest(std::vector<std::pair<double, int>> by_cost, size_t most) {
    std::stable_sort(by_cost.begin(), by_cost.end());
    by_cost.resize(most);
    std::vector<int> places;
    for (const auto& [us, p] : by_cost) places.push_back(p);
    std::sort(places.begin(), places.end());
    return places;
  }

  // Ends of parts, but the last.
  std::vector<int> largest_parts() const {
    std::vector<int> cuts;
    size_t begin = 0;
    for (size_t end = 1; end < reductions_.size() && cuts.size() < kMostPlaces; ++end) {
      if (part_fits(begin, end + 1)) continue;
      cuts.push_back(static_cast<int>(end));
      begin = end;
    }
    return cuts;
  }

  // Terms of earlier parts that part `at` reads, by the part that makes them.
  using Crossing = std::set<TermId>;

  double elements(TermId t) const { return count(program_.terms.axes(t)); }

  // What of a term is best read, being made before a part: itself, or what it is made of.
  struct Below {
    double elements = 0;
    Crossing terms;
  };

  // `done`: by term, for this part and these cuts; terms share what is below them.
  const Below& cut_below(TermId t, int at, const std::vector<int>& cuts,
                         std::map<TermId, Below>& done) const {
    const auto [it, fresh] = done.try_emplace(t);
    Below& out = it->second;
    const int part = part_of(t, cuts);
    if (!fresh || part < 0) return out;
    const Term& term = program_.terms[t];
    const bool reduces = std::holds_alternative<ReduceTerm>(term);
    if (part == at && reduces) return out;  // visited by itself
    if (!reduces) {
      for (TermId o : operands(term)) {
        const Below& below = cut_below(o, at, cuts, done);
        out.elements += below.elements;
        out.terms.insert(below.terms.begin(), below.terms.end());
      }
    }
    if (part != at && (reduces || out.elements >= elements(t))) out = {elements(t), {t}};
    return out;
  }

  Crossing read_by(int at, const std::vector<int>& cuts) const {
    std::map<TermId, Below> done;
    Crossing out;
    const auto add = [&](TermId t) {
      const Below& below = cut_below(t, at, cuts, done);
      out.insert(below.terms.begin(), below.terms.end());
    };
    for (TermId r : reductions_) {
      if (part_of(r, cuts) != at) continue;
      add(std::get<ReduceTerm>(program_.terms[r]).operand);
    }
    for (const Output& o : program_.outputs) {
      if (part_of_output(o, cuts) == at) add(o.value);
    }
    return out;
  }

  double estimate(const std::vector<int>& cuts) const {
    double moved = 0;
    Crossing stored;
    for (int at = 0; at <= static_cast<int>(cuts.size()); ++at) {
      for (TermId t : read_by(at, cuts)) {
        moved += elements(t);
        if (stored.insert(t).second) moved += elements(t);
      }
    }
    const double width = narrow_ && narrow_type_ != DType::kF32 ? 2 : 4;
    return static_cast<double>(cuts.size()) * (machine_.launch_us + machine_.fill_us) +
           moved * width / hbm_peak(machine_);
  }

  // What the passes of each part over its inputs take, launches included.
  double passes_us(const std::vector<int>& cuts) const {
    std::vector<int> made_in;
    for (const Output& o : program_.outputs) made_in.push_back(part_of_output(o, cuts));
    const std::vector<int> most = passes_of_parts(
        program_, order_, cuts.size() + 1, [&](TermId t) { return part_of(t, cuts); }, made_in);
    std::vector<std::set<uint32_t>> read(cuts.size() + 1);
    for (TermId r : reductions_) {
      note_inputs(r, read[static_cast<size_t>(std::max(0, part_of(r, cuts)))]);
    }
    for (const Output& o : program_.outputs) {
      note_inputs(o.value, read[static_cast<size_t>(part_of_output(o, cuts))]);
    }
    double us = 0;
    for (size_t p = 0; p < most.size(); ++p) {
      double bytes_read = 0;
      for (uint32_t in : read[p]) bytes_read += size_of(program_.inputs[in]);
      us += (most[p] - 1) * (machine_.launch_us + machine_.fill_us) +
            most[p] * bytes_read / hbm_peak(machine_);
    }
    return us;
  }

  // The inputs that are read for a term, down to reductions.
  void note_inputs(TermId t, std::set<uint32_t>& read) const {
    std::set<TermId> seen;
    std::vector<TermId> open = operands(program_.terms[t]);
    if (!std::holds_alternative<ReduceTerm>(program_.terms[t])) open = {t};
    while (!open.empty()) {
      const TermId next = open.back();
      open.pop_back();
      if (!seen.insert(next).second) continue;
      const Term& term = program_.terms[next];
      if (const auto* in = std::get_if<InputTerm>(&term)) read.insert(in->tensor);
      if (std::holds_alternative<ReduceTerm>(term)) continue;
      for (TermId o : operands(term)) open.push_back(o);
    }
  }

  // Whether a later sum runs over an axis of the term: then it may be an operand of a product.
  bool is_multiplied(TermId t) const {
    for (TermId r : reductions_) {
      const auto& reduce = std::get<ReduceTerm>(program_.terms[r]);
      if (!is_product(program_, r) || (reduce.axes & program_.terms.axes(t)).empty()) continue;
      const TermId roots[] = {reduce.operand};
      const auto below = reachable(program_.terms, roots);
      if (std::find(below.begin(), below.end(), t) != below.end()) return true;
    }
    return false;
  }

  std::string fresh_name(TermId t, const std::set<std::string>& taken) const {
    std::string name = "t" + std::to_string(t);
    for (const Definition& d : program_.definitions) {
      if (d.value == t) name = d.name;
    }
    name = "x_" + name;
    while (taken.contains(name)) name += "_";
    return name;
  }

  std::string part_name(size_t at) const { return program_.name + "_part" + std::to_string(at); }

  Partition build(const std::vector<int>& cuts) const {
    Partition out;
    std::map<TermId, uint32_t> tensor_of;
    std::set<std::string> names;
    for (const TensorDecl& t : program_.inputs) names.insert(t.name);
    for (const Output& o : program_.outputs) names.insert(o.tensor.name);
    const int parts = static_cast<int>(cuts.size()) + 1;
    std::vector<Crossing> reads;
    for (int at = 0; at < parts; ++at) {
      reads.push_back(read_by(at, cuts));
      for (TermId t : reads.back()) {
        if (tensor_of.contains(t)) continue;
        tensor_of[t] = static_cast<uint32_t>(program_.inputs.size() + program_.outputs.size() +
                                             out.intermediates.size());
        out.intermediates.push_back(declare(t, fresh_name(t, names)));
        names.insert(out.intermediates.back().name);
      }
    }
    for (int at = 0; at < parts; ++at) {
      out.parts.push_back(part(at, cuts, reads[static_cast<size_t>(at)], tensor_of, out));
    }
    return out;
  }

  TensorDecl declare(TermId t, std::string name) const {
    TensorDecl decl;
    decl.name = std::move(name);
    decl.dtype = narrow_ && is_multiplied(t) ? narrow_type_ : DType::kF32;
    for (AxisId a : program_.terms.axes(t)) {
      decl.dim_names.push_back(program_.axes[a].name);
      decl.dims.push_back(IndexExpr::of(a));
      decl.extents.push_back(program_.axes[a].extent);
    }
    return decl;
  }

  ProgramPart part(int at, const std::vector<int>& cuts, const Crossing& reads,
                   const std::map<TermId, uint32_t>& tensor_of, const Partition& whole) const {
    PartBuilder builder(program_, whole.intermediates, tensor_of, reads);
    const size_t first = program_.inputs.size() + program_.outputs.size();
    for (const auto& [t, tensor] : tensor_of) {
      if (part_of(t, cuts) == at) builder.store(tensor, whole.intermediates[tensor - first], t);
    }
    for (size_t o = 0; o < program_.outputs.size(); ++o) {
      if (part_of_output(program_.outputs[o], cuts) == at) builder.output(o);
    }
    return std::move(builder).done(part_name(static_cast<size_t>(at)));
  }

  const Program& program_;
  const Machine& machine_;
  bool narrow_;
  DType narrow_type_ = DType::kF32;
  std::vector<TermId> order_;
  std::vector<TermId> reductions_;  // operands before users
  std::map<TermId, int> last_;      // of each term the last reduction below, itself included
  bool needs_cut_ = false;          // outputs of the whole do not share a grid
};

}  // namespace

int count_products(const Program& program) {
  int count = 0;
  for (TermId t : reachable(program.terms, output_values(program))) {
    count += is_product(program, t) ? 1 : 0;
  }
  return count;
}

bool outputs_share_a_grid(const Program& program, const Machine& machine) {
  return !Partitioner(program, machine, false).needs_cut();
}

std::vector<Partition> partitions(const Program& program, const Machine& machine, bool narrow,
                                  size_t most) {
  return Partitioner(program, machine, narrow).run(most);
}

}  // namespace sundog::search
