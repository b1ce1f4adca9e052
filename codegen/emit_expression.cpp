// Terms at one element of a layout.
//
// A read of a device tensor is guarded: an absent element, or an index outside of the tensor, reads
// as 0 and is masked later, where it would matter.  Reads along the vector axis are fetched as
// vectors once for each run of neighbours, before the loop over them.
#include <algorithm>
#include <set>

#include "codegen/emit_kernel.h"
#include "core/check.h"

namespace sundog::codegen {
namespace {

std::string conjunction(const std::vector<std::string>& tests) { return join(tests, " && "); }

void add_unique(std::vector<std::string>& tests, std::string test) {
  if (test.empty()) return;
  if (std::find(tests.begin(), tests.end(), test) == tests.end()) tests.push_back(std::move(test));
}

// Selects within selects up to which reads are fetched as vectors; paths into them multiply.
constexpr size_t kMostBranches = 3;

Text plain(std::string text) { return {std::move(text), 0, {}, {}, {}, {}}; }

}  // namespace

Linear KernelEmitter::to_linear(const Coordinates& at, const Affine& e) const {
  Linear result = Linear::of_constant(e.constant);
  for (AxisId f = 0; f < kernel_.factors.size(); ++f) {
    const int64_t coefficient = e.coefficients[f];
    if (coefficient == 0) continue;
    if (grid_.has(f) || looped_.has(f)) {
      result.add(factors_[f], coefficient);
    } else if (const auto it = at.find(f); it != at.end()) {
      result.add(it->second, coefficient);
    }
  }
  return result;
}

std::vector<std::string> KernelEmitter::bound_tests(const Coordinates& at,
                                                    const std::vector<Bound>& bounds) const {
  std::vector<std::string> tests;
  for (const Bound& b : bounds) {
    const std::string value = to_linear(at, b.value).text();
    if (b.below) add_unique(tests, value + " >= 0");
    if (b.above) add_unique(tests, value + " < " + std::to_string(b.extent));
  }
  return tests;
}

// Whether an element (of the operand, or of the result) is there; empty if always.
std::string KernelEmitter::presence(const Slots& slots, uint32_t id, bool operand, AxisSet edges) {
  const Dependence& d = dependences_[id];
  AxisSet factors = bound(id);
  if (!operand) factors = factors - plan(id).reduced;
  std::vector<std::string> tests = bound_tests(
      slots.coordinates(),
      presence_bounds(graph_, kernel_, operand ? d.operand_absent_along : d.absent_along, factors));
  for (std::string& test : slots.edge_tests([&](AxisId f) { return extent(f); }, edges)) {
    add_unique(tests, std::move(test));
  }
  return conjunction(tests);
}

// From the tensor's pointer.
std::string KernelEmitter::element_index(uint32_t tensor, const std::vector<IndexExpr>& index,
                                         const Coordinates& at) {
  const Linear offset = to_linear(at, element_offset(graph_, kernel_, tensor, index));
  constexpr int64_t kMost32 = 0x7fffffff;
  const bool wide = span_elements(graph_.tensors[tensor].decl) > kMost32;
  return offset.is_zero() ? "0" : offset.text(wide);
}

std::string KernelEmitter::element_address(uint32_t tensor, const std::vector<IndexExpr>& index,
                                           const Coordinates& at) {
  const std::string offset = element_index(tensor, index, at);
  return offset == "0" ? tensors_[tensor] : tensors_[tensor] + " + " + offset;
}

std::array<std::string, 2> KernelEmitter::cluster_place(uint32_t tensor,
                                                        const std::vector<IndexExpr>& index,
                                                        const Coordinates& at) {
  const ClusterAddress address =
      cluster_address(graph_, kernel_, place_.kept.at(tensor), index, place_.group);
  const Linear offset = to_linear(at, address.offset);
  return {to_linear(at, address.rank).text(),
          tensors_[tensor] + (offset.is_zero() ? "" : " + " + offset.text())};
}

std::string KernelEmitter::condition_text(const Coordinates& at, const IndexCondition& condition,
                                          bool holds) const {
  const Linear e = to_linear(at, affine(graph_, kernel_, condition.expr));
  const std::string test = e.text() + " " + std::string(relation_text(condition.relation)) + " 0";
  return holds ? test : "!(" + test + ")";
}

// --- vectors

// What branches of a select read is fetched under its condition, where a run of neighbours stands
// in one branch, and element by element where it may not.  What is read unconditionally comes
// first: it serves the branches too.
void KernelEmitter::prepare_vectors(Scope& scope, TermId root) {
  if (scope.slots->vector() <= 1) return;
  struct Item {
    TermId term;
    std::vector<Branch> branches;
  };
  std::vector<std::vector<Item>> by_depth = {{{root, {}}}};
  std::set<std::pair<TermId, std::string>> seen;
  for (size_t depth = 0; depth < by_depth.size(); ++depth) {
    while (!by_depth[depth].empty()) {
      const Item item = std::move(by_depth[depth].back());
      by_depth[depth].pop_back();
      if (!seen.emplace(item.term, branch_key(item.branches)).second) continue;
      const Term& t = kernel_.terms[item.term];
      if (const auto* input = std::get_if<InputTerm>(&t)) {
        prepare_input(scope, item.term, *input, item.branches);
      } else if (const auto* local = std::get_if<LocalTerm>(&t)) {
        prepare_local(scope, item.term, *local);
      } else if (const auto* select = std::get_if<SelectTerm>(&t)) {
        if (depth == kMostBranches) continue;
        by_depth.resize(std::max(by_depth.size(), depth + 2));
        for (const bool taken : {true, false}) {
          Item branch{taken ? select->then : select->otherwise, item.branches};
          branch.branches.push_back({item.term, taken});
          by_depth[depth + 1].push_back(std::move(branch));
        }
      } else if (const auto* compare = std::get_if<CompareTerm>(&t)) {
        // What a comparison of values chooses is guarded one by one.
        by_depth[depth].push_back({compare->left, item.branches});
        by_depth[depth].push_back({compare->right, item.branches});
      } else {
        for (TermId operand : operands(t)) by_depth[depth].push_back({operand, item.branches});
      }
    }
  }
  scope.branches.clear();
}

std::string KernelEmitter::branch_key(const std::vector<Branch>& branches) {
  std::string key;
  for (const Branch& b : branches) key += b.key();
  return key;
}

// The vectors that hold the term in the current branches, or in fewer of them.
const std::pair<std::string, int>* KernelEmitter::Scope::vector_of(TermId term) const {
  for (std::string key = branches;; key.resize(key.find_last_of("+-", key.size() - 2) + 1)) {
    if (const auto at = vectors.find({term, key}); at != vectors.end()) return &at->second;
    if (key.empty()) return nullptr;
  }
}

void KernelEmitter::prepare_input(Scope& scope, TermId term, const InputTerm& input,
                                  const std::vector<Branch>& branches) {
  const Slots& slots = *scope.slots;
  scope.branches = branch_key(branches);
  if (scope.vector_of(term) != nullptr) return;
  const TensorDecl& decl = graph_.tensors[input.tensor].decl;
  const std::vector<Bound> bounds = read_bounds(scope.computation, input);
  if (plan(scope.computation).window > 0 && computation(scope.computation).value == term) {
    return take_windows(scope, term, input);
  }
  const int most = std::min(slots.vector(), std::max(1, 16 / bytes(decl.dtype)));
  const int width =
      vector_width(graph_, kernel_, input.tensor, input.index, bounds, slots.vector_axis(), most);
  if (width <= 1 || slots.vector() % width != 0) return;
  for (const Branch& b : branches) {
    const IndexCondition& condition = std::get<SelectTerm>(kernel_.terms[b.select]).condition;
    if (!same_along(graph_, kernel_, condition, slots.vector_axis(), width)) return;
  }
  const std::string name = out_.fresh("in_");
  const std::string type =
      "sd::Vec<" + std::string(cuda_type(decl.dtype)) + ", " + std::to_string(width) + ">";
  const int count = slots.vector() / width;
  const bool once = read_once(slots, term, input);
  out_.line(type + " " + name + "[" + std::to_string(count) + "];");
  for (int i = 0; i < count; ++i) {
    const Coordinates at = run_start(slots, i * width);
    std::vector<std::string> tests = run_tests(slots, term, at, bounds);
    for (const Branch& b : branches) {
      const IndexCondition& condition = std::get<SelectTerm>(kernel_.terms[b.select]).condition;
      add_unique(tests, condition_text(at, condition, b.taken));
    }
    const std::string element = name + "[" + std::to_string(i) + "]";
    if (kept(input.tensor)) {
      const auto [rank, address] = cluster_place(input.tensor, input.index, at);
      guarded_load(element, "sd::load_cluster(" + element + ", " + address + ", " + rank + ");",
                   tests);
      continue;
    }
    const std::string from = element + ", " + element_address(input.tensor, input.index, at);
    if (once) {
      const std::string test = tests.empty() ? "" : ", " + conjunction(tests);
      out_.line("sd::load_stream(" + from + test + ");");
    } else {
      guarded_load(element, "sd::load_global(" + from + ");", tests);
    }
  }
  scope.vectors[{term, scope.branches}] = {name, width};
}

// Where a run within the thread's vector begins, that many elements into it.
Coordinates KernelEmitter::run_start(const Slots& slots, int64_t element) const {
  Coordinates at = slots.coordinates();
  Linear& run = at[slots.vector_axis()];
  std::erase_if(run.items, [](const auto& item) { return item.first == "v"; });
  run.constant += element;
  return at;
}

// Tests that a run of `term` which begins there is there to be read.
std::vector<std::string> KernelEmitter::run_tests(const Slots& slots, TermId term,
                                                  const Coordinates& at,
                                                  const std::vector<Bound>& bounds) const {
  std::vector<std::string> tests = bound_tests(at, bounds);
  for (AxisId f : kernel_.terms.axes(term)) {
    if (grid_.has(f) || looped_.has(f) || covered(slots.layout(), f) <= extent(f)) continue;
    const auto place = at.find(f);  // of an empty axis the layout has no coordinate
    add_unique(tests, (place == at.end() ? "0" : place->second.text()) + " < " +
                          std::to_string(extent(f)));
  }
  return tests;
}

// Whether no thread reads an element of the tensor that another one does, or reads it twice: then a
// cache of the multiprocessor has no use for it, and what else lies there stays.
bool KernelEmitter::read_once(const Slots& slots, TermId term, const InputTerm& input) const {
  if (place_.changing.contains(input.tensor) || kept(input.tensor)) return false;
  const Affine offset = element_offset(graph_, kernel_, input.tensor, input.index);
  AxisSet around = grid_;
  for (const Loop* loop : open_) around.insert(loop->factor);
  for (AxisId f : around) {
    if (extent(f) > 1 && offset.coefficients[f] == 0) return false;
  }
  int reads = 0;
  for (const Computation& c : kernel_.computations) {
    const TermId roots[] = {c.value};
    for (TermId t : reachable(kernel_.terms, roots)) {
      const auto* other = std::get_if<InputTerm>(&kernel_.terms[t]);
      if (other != nullptr && other->tensor == input.tensor) ++reads;
    }
  }
  const Layout own = slice(slots.layout(), kernel_.terms.axes(term));
  return reads == 1 && sundog::slots(own) == sundog::slots(slots.layout()) &&
         primary_tests(own.modes, kernel_.warps).empty();
}

// A load that is skipped, and gives zeros, where a test fails.
void KernelEmitter::guarded_load(const std::string& element, const std::string& load,
                                 const std::vector<std::string>& tests) {
  if (tests.empty()) {
    out_.line(load);
  } else {
    out_.line(element + " = {};");
    out_.line("if (" + conjunction(tests) + ") " + load);
  }
}

void KernelEmitter::prepare_local(Scope& scope, TermId term, const LocalTerm& local) {
  if (scope.vectors.contains({term, ""})) return;
  const Slots& slots = *scope.slots;
  const ComputationPlan& p = plan(local.computation);
  if (p.in_registers && agrees(p.layout, slots.layout(), tile_axes(local.computation))) return;
  const SharedTile& tile = *p.shared;
  if (tile.axes.empty() || tile.axes.back().axis != slots.vector_axis()) return;
  int width = 1;
  const auto fits = [&](int64_t w) {
    if (w > slots.vector() || slots.vector() % w != 0 || w * bytes(tile.dtype) > 16) return false;
    return tile.axes.back().extent % w == 0 && (tile.axes.size() == 1 || tile.pitch % w == 0) &&
           (tile.copies == 1 || tile.elements() % w == 0);
  };
  while (fits(width * 2)) width *= 2;
  for (const Mode& m : slots.layout().modes) {
    const bool own = m.axis == slots.vector_axis() && !(m.holder == Holder::kReg && m.unit == 1);
    if (own && m.stride % width != 0) return;
  }
  if (width <= 1) return;
  const std::string name = out_.fresh("in_");
  out_.line("sd::Vec<" + std::string(cuda_type(tile.dtype)) + ", " + std::to_string(width) + "> " +
            name + "[" + std::to_string(slots.vector() / width) + "];");
  for (int i = 0; i < slots.vector() / width; ++i) {
    const Coordinates at = run_start(slots, i * width);
    std::vector<std::string> tests;
    for (const TileAxis& a : tile.axes) {
      if (covered(slots.layout(), a.axis) <= a.extent) continue;
      add_unique(tests, at.at(a.axis).text() + " < " + std::to_string(a.extent));
    }
    Linear index = tile_index(tile, at);
    if (p.ring != kNone) index.add(stage_of_.at(p.ring), tile.elements());
    const std::string element = name + "[" + std::to_string(i) + "]";
    const std::string load = "sd::load_shared(" + element + ", " + tile_base(local.computation) +
                             " + " + index.text() + ");";
    guarded_load(element, load, tests);
  }
  scope.vectors[{term, ""}] = {name, width};
}

// --- values

// Element `v` of the vectors, given by name and width, that hold a thread's run.
Text KernelEmitter::fetched_element(const Slots& slots,
                                    const std::pair<std::string, int>& vectors) {
  const auto& [name, width] = vectors;
  const std::string w = std::to_string(width);
  const bool single = slots.vector() == width;
  return plain("sd::to_float(" + name + "[" + (single ? "0" : "v / " + w) + "][" +
               (single ? "v" : "v % " + w) + "])");
}

Text KernelEmitter::read_input(Scope& scope, TermId term, const InputTerm& input,
                               const std::string& guard) {
  const Slots& slots = *scope.slots;
  if (const auto* vector = scope.vector_of(term)) return fetched_element(slots, *vector);
  std::vector<std::string> tests =
      bound_tests(slots.coordinates(), read_bounds(scope.computation, input));
  AxisSet tile;
  for (AxisId f : kernel_.terms.axes(term)) {
    if (!grid_.has(f) && !looped_.has(f)) tile.insert(f);
  }
  for (std::string& test : slots.edge_tests([&](AxisId f) { return extent(f); }, tile)) {
    add_unique(tests, std::move(test));
  }
  add_unique(tests, guard);
  std::string load;
  if (kept(input.tensor)) {
    const auto [rank, address] = cluster_place(input.tensor, input.index, slots.coordinates());
    load = "sd::read_cluster(" + address + ", " + rank + ")";
  } else {
    load =
        "sd::to_float(*(" + element_address(input.tensor, input.index, slots.coordinates()) + "))";
  }
  if (tests.empty()) return plain(load);
  const std::string name = out_.fresh("t");
  out_.line("const float " + name + " = " + conjunction(tests) + " ? " + load + " : 0.0f;");
  return plain(name);
}

Text KernelEmitter::read_local(Scope& scope, TermId term, const LocalTerm& local,
                               const std::string& guard) {
  (void)guard;  // a tile can be read anywhere
  const Slots& slots = *scope.slots;
  const ComputationPlan& p = plan(local.computation);
  if (p.in_registers && agrees(p.layout, slots.layout(), tile_axes(local.computation))) {
    const RegisterArray array = result_array(local.computation);
    const std::string element = array.element(slots.index_in(p.layout));
    return plain(array.dtype == DType::kF32 ? element : "sd::to_float(" + element + ")");
  }
  if (const auto* vector = scope.vector_of(term)) return fetched_element(slots, *vector);
  const SharedTile& tile = *p.shared;
  std::vector<std::string> tests;
  for (const TileAxis& a : tile.axes) {
    if (covered(slots.layout(), a.axis) <= a.extent) continue;
    add_unique(tests, slots.coordinates().at(a.axis).text() + " < " + std::to_string(a.extent));
  }
  Linear index = tile_index(tile, slots.coordinates());
  if (p.ring != kNone) index.add(stage_of_.at(p.ring), tile.elements());
  const std::string load =
      "sd::to_float(" + tile_base(local.computation) + "[" + index.text() + "])";
  if (tests.empty()) return plain(load);
  const std::string name = out_.fresh("t");
  out_.line("const float " + name + " = " + conjunction(tests) + " ? " + load + " : 0.0f;");
  return plain(name);
}

Text KernelEmitter::value(Scope& scope, TermId term, const std::string& guard) {
  if (guard.empty()) {
    if (const auto known = scope.values.find(term); known != scope.values.end())
      return known->second;
  }
  if (const auto other = scope.instead.find(term); other != scope.instead.end()) {
    return value(scope, other->second, guard);
  }
  const Term& t = kernel_.terms[term];
  Text result;
  if (const auto* input = std::get_if<InputTerm>(&t)) {
    result = read_input(scope, term, *input, guard);
  } else if (const auto* local = std::get_if<LocalTerm>(&t)) {
    result = read_local(scope, term, *local, guard);
  } else if (const auto* constant = std::get_if<ConstantTerm>(&t)) {
    result = text_.constant(constant->value);
  } else if (const auto* size = std::get_if<SizeTerm>(&t)) {
    result = text_.constant(Number(graph_.axes[size->axis].extent));
  } else if (const auto* index = std::get_if<IndexTerm>(&t)) {
    const Linear e = to_linear(scope.slots->coordinates(), affine(graph_, kernel_, index->index));
    result = plain("static_cast<float>(" + e.text() + ")");
  } else if (const auto* apply = std::get_if<ApplyTerm>(&t)) {
    std::vector<Text> in;
    for (TermId operand : apply->operands) {
      Text x = value(scope, operand, guard);
      // Used twice in the term: name it.
      if (std::count(apply->operands.begin(), apply->operands.end(), operand) > 1)
        x = text_.bind(x);
      in.push_back(std::move(x));
    }
    result = text_.apply(apply->op, std::move(in));
  } else if (const auto* select = std::get_if<SelectTerm>(&t)) {
    const std::string name = out_.fresh("when_");
    out_.line("const bool " + name + " = " +
              condition_text(scope.slots->coordinates(), select->condition) + ";");
    const auto in_branch = [&](TermId branch, bool taken) {
      const std::string test = (taken ? "" : "!") + name;
      const std::string outer = scope.branches;
      scope.branches += Branch{term, taken}.key();
      // Named, so that the choice is one between values: a conversion is not computed in advance of
      // a branch, and the loads behind it wait.
      const Text x = text_.bind(value(scope, branch, guard.empty() ? test : guard + " && " + test));
      scope.branches = outer;
      return x;
    };
    const Text then = in_branch(select->then, true);
    const Text otherwise = in_branch(select->otherwise, false);
    result = text_.bind(plain("(" + name + " ? " + then.text + " : " + otherwise.text + ")"));
  } else if (const auto* compare = std::get_if<CompareTerm>(&t)) {
    const Text left = value(scope, compare->left, guard),
               right = value(scope, compare->right, guard);
    const std::string name = out_.fresh("when_");
    out_.line("const bool " + name + " = " + left.atom() + " " +
              std::string(relation_text(compare->relation)) + " " + right.atom() + ";");
    const auto under = [&](const std::string& test) {
      return guard.empty() ? test : guard + " && " + test;
    };
    const Text then = value(scope, compare->then, under(name));
    const Text otherwise = value(scope, compare->otherwise, under("!" + name));
    result = text_.bind(plain("(" + name + " ? " + then.text + " : " + otherwise.text + ")"));
  } else {
    SUNDOG_CHECK(false);  // a reduction stands at the root only
  }
  if (guard.empty()) scope.values[term] = result;
  return result;
}

}  // namespace sundog::codegen
