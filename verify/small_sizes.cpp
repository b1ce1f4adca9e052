// Choosing sizes for two programs at once.
//
// The axes of two programs are matched through the tensors that they share: where both index a
// dimension by one axis, these are one class; where one of them splits the dimension, the other's
// axis takes whatever extent the factors give.  Sizes come in sets that differ in every class,
// since a slip may hide at one of them: at extent 2, x + x is x * 2 and a tile of 2 is half of 4.
#include "verify/small_sizes.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/resize.h"

namespace sundog::verify {
namespace {

constexpr int kSizeSets = 2;
// What an exact test may cost: index values of the largest term of a program.  Where the original
// sizes add nothing that smaller ones lack, only what costs next to nothing: a denominator of a few
// hundred terms takes seconds.
constexpr double kExactWork = 4096;
constexpr double kCheapWork = 128;
// An axis that is compared with a literal that moves needs values on either side of it.
constexpr int64_t kRoomForLiterals = 5;
// Where a literal keeps axes large, the smallest sizes may still be too many for an exact test.
constexpr double kMostExactWork = 1 << 15;
const std::string kTooLarge = "literals keep it too large for an exact test, at ";

struct TensorPair {
  const TensorDecl* first;
  const TensorDecl* second;
};

std::vector<TensorPair> shared_tensors(const Program& a, const Program& b) {
  std::vector<TensorPair> pairs;
  for (const TensorDecl& x : a.inputs) {
    for (const TensorDecl& y : b.inputs) {
      if (x.name == y.name) pairs.push_back({&x, &y});
    }
  }
  for (const Output& x : a.outputs) {
    for (const Output& y : b.outputs) {
      if (x.tensor.name == y.tensor.name) pairs.push_back({&x.tensor, &y.tensor});
    }
  }
  return pairs;
}

// Classes of the axes of both programs, those of the second after those of the first.
class JointClasses {
 public:
  JointClasses(const Program& a, const Program& b, LiteralPolicy literals)
      : offset_(a.axes.size()) {
    parent_.resize(a.axes.size() + b.axes.size());
    std::iota(parent_.begin(), parent_.end(), size_t{0});
    pinned_.resize(parent_.size(), 0);
    compared_.resize(parent_.size(), 0);
    add(a, literals, 0);
    add(b, literals, offset_);
    for (const TensorPair& pair : shared_tensors(a, b)) {
      const size_t rank = std::min(pair.first->dims.size(), pair.second->dims.size());
      for (size_t d = 0; d < rank; ++d) unite(pair.first->dims[d], pair.second->dims[d]);
    }
  }

  size_t of_first(AxisId axis) { return find(axis); }
  size_t of_second(AxisId axis) { return find(axis + offset_); }
  bool pinned(size_t root) const { return any(pinned_, root); }
  // With a literal that moves.
  bool compared(size_t root) const { return any(compared_, root); }

 private:
  bool any(const std::vector<uint8_t>& marks, size_t root) const {
    for (size_t i = 0; i < parent_.size(); ++i) {
      if (marks[i] && find(i) == root) return true;
    }
    return false;
  }
  void add(const Program& program, LiteralPolicy literals, size_t offset) {
    const AxisClasses classes = axis_classes(program, literals);
    if (literals == LiteralPolicy::kScale) {
      for (const AxisId axis : axes_of_literals(program)) compared_[axis + offset] = 1;
    }
    for (size_t i = 0; i < classes.class_of.size(); ++i) {
      parent_[find(i + offset)] = find(classes.class_of[i] + offset);
      pinned_[i + offset] = classes.pinned[i];
    }
  }
  void unite(const IndexExpr& x, const IndexExpr& y) {
    if (x.axes.size() != y.axes.size() || x.constant != y.constant) return;
    for (size_t i = 0; i < x.axes.size(); ++i) {
      if (x.axes[i].coefficient != y.axes[i].coefficient) return;
    }
    for (size_t i = 0; i < x.axes.size(); ++i) {
      parent_[find(x.axes[i].axis)] = find(y.axes[i].axis + offset_);
    }
  }
  size_t find(size_t i) const {
    while (parent_[i] != i) i = parent_[i];
    return i;
  }
  size_t offset_;
  std::vector<size_t> parent_;
  std::vector<uint8_t> pinned_, compared_;
};

// Extents of both programs: distinct primes from `least` on for the classes, never more than there
// are.
void assign(const Program& a, const Program& b, int64_t least, LiteralPolicy literals,
            std::vector<int64_t>* first, std::vector<int64_t>* second) {
  JointClasses classes(a, b, literals);
  std::map<size_t, int64_t> bound;
  for (AxisId i = 0; i < a.axes.size(); ++i) {
    const size_t root = classes.of_first(i);
    const auto [at, is_new] = bound.emplace(root, a.axes[i].extent);
    if (!is_new) at->second = std::min(at->second, a.axes[i].extent);
  }
  for (AxisId i = 0; i < b.axes.size(); ++i) {
    const size_t root = classes.of_second(i);
    const auto [at, is_new] = bound.emplace(root, b.axes[i].extent);
    if (!is_new) at->second = std::min(at->second, b.axes[i].extent);
  }
  const auto is_prime = [](int64_t n) {
    for (int64_t d = 2; d * d <= n; ++d) {
      if (n % d == 0) return false;
    }
    return n >= 2;
  };
  std::map<size_t, int64_t> chosen;
  int64_t next = least, next_compared = least + kRoomForLiterals;
  for (const auto& [root, extent] : bound) {
    if (classes.pinned(root) || extent < least) {
      chosen[root] = extent;
      continue;
    }
    int64_t& from = classes.compared(root) ? next_compared : next;
    while (!is_prime(from)) ++from;
    chosen[root] = std::min(from++, extent);
  }
  for (AxisId i = 0; i < a.axes.size(); ++i) {
    first->push_back(std::min(chosen[classes.of_first(i)], a.axes[i].extent));
  }
  for (AxisId i = 0; i < b.axes.size(); ++i) {
    second->push_back(std::min(chosen[classes.of_second(i)], b.axes[i].extent));
  }
}

// Where one side has a plain axis and the other factors, the axis follows the factors.
bool reconcile(const Program& a, const Program& b, std::vector<int64_t>* first,
               std::vector<int64_t>* second, Program* small_a, Program* small_b) {
  for (int trial = 0; trial < 4; ++trial) {
    *small_a = with_extents(a, *first);
    *small_b = with_extents(b, *second);
    bool changed = false, agree = true;
    for (const TensorPair& pair : shared_tensors(*small_a, *small_b)) {
      for (size_t d = 0; d < pair.first->extents.size(); ++d) {
        const int64_t x = pair.first->extents[d], y = pair.second->extents[d];
        if (x == y) continue;
        agree = false;
        AxisId axis;
        if (pair.first->dims[d].is_axis(&axis)) {
          changed |= (*first)[axis] != y;
          (*first)[axis] = y;
        } else if (pair.second->dims[d].is_axis(&axis)) {
          changed |= (*second)[axis] != x;
          (*second)[axis] = x;
        }
      }
    }
    if (agree) return true;
    if (!changed) return false;
  }
  return false;
}

bool respects_classes(const Program& p, const std::vector<int64_t>& extents,
                      LiteralPolicy literals) {
  const AxisClasses classes = axis_classes(p, literals);
  for (AxisId i = 0; i < p.axes.size(); ++i) {
    if (classes.pinned[i] && extents[i] != p.axes[i].extent) return false;
    if (extents[i] != extents[classes.class_of[i]]) return false;
  }
  return true;
}

// Whether a literal pins an axis; an axis without a choice of extents is pinned too, and no matter.
bool has_literals(const Program& program) {
  const AxisClasses classes = axis_classes(program);
  for (AxisId axis = 0; axis < program.axes.size(); ++axis) {
    if (classes.pinned[axis] && program.axes[axis].extent > 1) return true;
  }
  return false;
}

bool is_small(const Program& program) { return work(program) <= kExactWork; }

std::string tensor_mismatch(const TensorDecl& a, const TensorDecl& b, const char* kind) {
  const std::string name = std::string(kind) + " '" + a.name + "'";
  if (a.dtype != b.dtype) {
    return name + " is " + std::string(sundog::name(b.dtype)) + " instead of " +
           std::string(sundog::name(a.dtype));
  }
  if (a.extents != b.extents) return name + " has another shape";
  return {};
}

// One more step of the outermost factor of each axis, in every kernel.
Result<MuGraph> enlarged(const MuGraph& graph, const Program& program, LiteralPolicy policy,
                         std::vector<int64_t>* new_extents) {
  MuSizes sizes = sizes_of(graph);
  const AxisClasses classes = axis_classes(program, policy);
  *new_extents = extents(program);
  std::map<uint32_t, int64_t> step;  // of each class: by how much it grows
  for (AxisId axis = 0; axis < program.axes.size(); ++axis) {
    int64_t stride = 1;
    for (const Kernel& kernel : graph.kernels) {
      const std::vector<AxisId> factors = factors_of(kernel, axis);
      if (!factors.empty()) stride = std::lcm(stride, kernel.factors[factors[0]].stride);
    }
    const auto [at, is_new] = step.emplace(classes.class_of[axis], stride);
    if (!is_new) at->second = std::lcm(at->second, stride);
  }
  for (AxisId axis = 0; axis < program.axes.size(); ++axis) {
    if (classes.pinned[axis]) continue;
    const int64_t by = step[classes.class_of[axis]];
    (*new_extents)[axis] += by;
    sizes.axes[axis] += by;
    for (size_t k = 0; k < graph.kernels.size(); ++k) {
      const std::vector<AxisId> factors = factors_of(graph.kernels[k], axis);
      if (factors.empty()) continue;
      sizes.factors[k][factors[0]] += by / graph.kernels[k].factors[factors[0]].stride;
    }
  }
  std::vector<std::pair<int64_t, int64_t>> same;  // literals that have moved already
  if (policy == LiteralPolicy::kScale) {
    for (const int64_t literal : scalable_literals(program)) same.emplace_back(literal, literal);
  }
  return with_sizes(graph, sizes, Literals(std::move(same)));
}

std::string sizes_and_literals(const Program& program, const Literals& literals) {
  const std::string moved = literals.text();
  return sizes_text(program) + (moved.empty() ? "" : " (" + moved + ")");
}

// The cases of two programs under one policy; too large ones leave `too_large` behind.
std::vector<SmallCase> cases_of(const Program& program, const Program& candidate,
                                LiteralPolicy policy, std::string* too_large) {
  std::vector<SmallCase> cases;
  for (int set = 0; set < kSizeSets; ++set) {
    std::vector<int64_t> first, second;
    assign(program, candidate, 2 + set, policy, &first, &second);
    const auto respected = [&] {
      return respects_classes(program, first, policy) &&
             respects_classes(candidate, second, policy);
    };
    if (!respected()) continue;
    Program a, b;
    if (!reconcile(program, candidate, &first, &second, &a, &b) || !respected()) continue;
    std::optional<Literals> literals = Literals();
    if (policy == LiteralPolicy::kScale) {
      const ResizedProgram resized[] = {{program, first}, {candidate, second}};
      literals = fit_literals(resized);
      if (!literals) continue;
      a = with_extents(program, first, *literals);
      b = with_extents(candidate, second, *literals);
    }
    std::string sizes = sizes_and_literals(a, *literals);
    if (!cases.empty() && cases.back().sizes == sizes) continue;
    if (work(a) > kMostExactWork || work(b) > kMostExactWork) {
      *too_large = sizes;
      return {};
    }
    cases.push_back({std::move(a), std::move(b), std::move(sizes), !literals->empty()});
  }
  return cases;
}

// The cases of a µGraph under one policy.
Status add_cases(const Program& program, const MuGraph& candidate, LiteralPolicy policy,
                 std::vector<SmallCase>* cases, std::string* too_large) {
  Result<Shrunk> shrunk = shrink(candidate, program, ShrinkPolicy::kFewElements, policy);
  if (!shrunk.ok()) return shrunk.error();
  const auto add = [&](Program p, MuGraph g) {
    if (!check(g, p).ok()) return;  // sizes that this structure cannot have
    std::string sizes = sizes_and_literals(p, shrunk->literals);
    if (work(p) > kMostExactWork) {
      *too_large = std::move(sizes);
      return;
    }
    cases->push_back({std::move(p), std::move(g), std::move(sizes), !shrunk->literals.empty()});
  };
  std::vector<int64_t> larger;
  Result<MuGraph> graph = enlarged(shrunk->graph, shrunk->program, policy, &larger);
  add(shrunk->program, shrunk->graph);
  if (graph.ok()) add(with_extents(shrunk->program, larger), *std::move(graph));
  return {};
}

}  // namespace

double work(const Program& program) {
  double most = 0;
  const auto size = [&](AxisSet axes) {
    double n = 1;
    for (const AxisId axis : axes) n *= static_cast<double>(program.axes[axis].extent);
    return n;
  };
  for (TermId id = 0; id < program.terms.size(); ++id) {
    most = std::max(most, size(program.terms.axes(id)));
    if (const auto* reduce = std::get_if<ReduceTerm>(&program.terms[id])) {
      most = std::max(most, size(program.terms.axes(reduce->operand) | reduce->axes));
    }
  }
  return most;
}

std::string sizes_text(const Program& program) {
  std::string text;
  for (const Axis& axis : program.axes) {
    text += (text.empty() ? "" : " ") + axis.name + "=" + std::to_string(axis.extent);
  }
  return text;
}

std::string interface_mismatch(const Program& program, const Program& candidate) {
  for (const TensorDecl& input : candidate.inputs) {
    const auto at = find_input(program, input.name);
    if (!at) return "the program has no input '" + input.name + "'";
    std::string reason = tensor_mismatch(program.inputs[*at], input, "input");
    if (!reason.empty()) return reason;
  }
  const auto find_output = [](const Program& p, const std::string& wanted) {
    return std::find_if(p.outputs.begin(), p.outputs.end(),
                        [&](const Output& o) { return o.tensor.name == wanted; });
  };
  for (const Output& output : candidate.outputs) {
    if (find_output(program, output.tensor.name) == program.outputs.end()) {
      return "the program has no output '" + output.tensor.name + "'";
    }
  }
  for (const Output& output : program.outputs) {
    const auto at = find_output(candidate, output.tensor.name);
    if (at == candidate.outputs.end()) return "output '" + output.tensor.name + "' is missing";
    std::string reason = tensor_mismatch(output.tensor, at->tensor, "output");
    if (!reason.empty()) return reason;
  }
  return {};
}

namespace {

// "f16[n=16, h=4096]"; a dimension that is no single axis by its extent alone.
std::string shape_text(const Program& program, const TensorDecl& tensor) {
  std::string text;
  for (size_t d = 0; d < tensor.extents.size(); ++d) {
    AxisId axis;
    text += d == 0 ? "" : ", ";
    if (d < tensor.dims.size() && tensor.dims[d].is_axis(&axis)) {
      text += program.axes[axis].name + "=";
    }
    text += std::to_string(tensor.extents[d]);
  }
  return "[" + text + "]";
}

// "-D n=16 -D h=64": the program's sizes of the axes by which the shapes differ, if all of these
// are axes of both programs under one name.
std::string sizes_for_both(const std::vector<TensorPair>& pairs, const Program& a,
                           const Program& b) {
  std::string text;
  std::vector<std::string> named;
  for (const TensorPair& pair : pairs) {
    const TensorDecl &x = *pair.first, &y = *pair.second;
    if (x.extents.size() != y.extents.size()) return {};
    for (size_t d = 0; d < x.extents.size(); ++d) {
      if (x.extents[d] == y.extents[d]) continue;
      AxisId left, right;
      if (!x.dims[d].is_axis(&left) || !y.dims[d].is_axis(&right)) return {};
      const std::string& name = a.axes[left].name;
      if (name != b.axes[right].name) return {};
      if (std::find(named.begin(), named.end(), name) != named.end()) continue;
      named.push_back(name);
      text += " -D " + name + "=" + std::to_string(x.extents[d]);
    }
  }
  return text;
}

}  // namespace

Status check_shapes(const Program& program, const Program& candidate) {
  const std::vector<TensorPair> pairs = shared_tensors(program, candidate);
  for (const TensorPair& pair : pairs) {
    const TensorDecl &x = *pair.first, &y = *pair.second;
    if (x.extents == y.extents) continue;
    const bool is_input = find_input(program, x.name).has_value();
    const std::string sizes = sizes_for_both(pairs, program, candidate);
    return bad_input(std::string(is_input ? "input" : "output") + " '" + x.name + "' is " +
                         shape_text(program, x) + " in the program and " +
                         shape_text(candidate, y) + " in the candidate",
                     sizes.empty()
                         ? "two programs are compared for tensors of the same shapes"
                         : "the axes agree, their sizes do not: give both the same, as by" + sizes);
  }
  return {};
}

Result<std::vector<SmallCase>> small_cases(const Program& program, const Program& candidate) {
  std::string too_large, ignored;
  std::vector<SmallCase> cases = cases_of(program, candidate, LiteralPolicy::kPin, &too_large);
  if (!too_large.empty()) {
    cases = cases_of(program, candidate, LiteralPolicy::kScale, &ignored);
  }
  if (cases.empty() && is_small(program) && is_small(candidate)) {
    cases.push_back({program, candidate, sizes_text(program)});
  }
  if (!cases.empty()) return cases;
  if (!too_large.empty()) return unsupported(kTooLarge + too_large);
  return unsupported("no small sizes suit both programs",
                     "their shared tensors are split along different axes");
}

Result<std::vector<SmallCase>> small_cases(const Program& program, const MuGraph& candidate) {
  std::vector<SmallCase> cases;
  std::string too_large, ignored;
  const Status shrunk = add_cases(program, candidate, LiteralPolicy::kPin, &cases, &too_large);
  // A literal in a condition means what it says at the sizes that it was written for alone.
  const double most = cases.empty() || has_literals(program) ? kExactWork : kCheapWork;
  if (work(program) <= most && (cases.empty() || sizes_text(program) != cases[0].sizes)) {
    cases.push_back({program, candidate, sizes_text(program)});
  }
  if (cases.empty() && !too_large.empty()) {
    const Status moved = add_cases(program, candidate, LiteralPolicy::kScale, &cases, &ignored);
    if (!moved.ok()) too_large += "; " + moved.error().message;
  }
  if (!cases.empty()) return cases;
  if (!too_large.empty()) return unsupported(kTooLarge + too_large);
  if (!shrunk.ok()) return shrunk.error();
  return unsupported("no small sizes suit the structure of this µGraph");
}

std::optional<SmallCase> declared_case(const Program& program, const Candidate& candidate) {
  const auto* other = std::get_if<Program>(&candidate);
  if (!is_small(program) || (other != nullptr && !is_small(*other))) return std::nullopt;
  return SmallCase{program, candidate, sizes_text(program)};
}

std::optional<SmallCase> tile_case(const Program& program, const MuGraph& candidate,
                                   double most_work) {
  if (work(program) <= most_work) return SmallCase{program, candidate, sizes_text(program)};
  for (const LiteralPolicy policy : {LiteralPolicy::kPin, LiteralPolicy::kScale}) {
    Result<Shrunk> shrunk = shrink(candidate, program, ShrinkPolicy::kKeepTiles, policy);
    if (!shrunk.ok() || work(shrunk->program) > most_work) continue;
    if (!check(shrunk->graph, shrunk->program).ok()) continue;
    std::string sizes = sizes_and_literals(shrunk->program, shrunk->literals);
    return SmallCase{std::move(shrunk->program), std::move(shrunk->graph), std::move(sizes),
                     !shrunk->literals.empty()};
  }
  return std::nullopt;
}

}  // namespace sundog::verify
