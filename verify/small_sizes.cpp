// Choosing sizes for two programs at once.
//
// Two ways to choose are tried, and the first taken whose cases are small enough for an exact test
// and have a program that is defined: literals keep the axes that they are compared with, while
// windows run along shorter axes; or the literals move with the extents.
//
// The axes of two programs are matched through the tensors that they share: where both index a
// dimension by one axis, these are one class; where one of them splits the dimension, the other's
// axis takes whatever extent the factors give.  Sizes come in sets that differ in every class,
// since a slip may hide at one of them: at extent 2, x + x is x * 2 and a tile of 2 is half of 4.
#include "verify/small_sizes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/arithmetic.h"
#include "core/evaluate.h"
#include "core/resize.h"
#include "verify/float_inputs.h"

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
      : offset_(static_cast<uint32_t>(a.axes.size())),
        ties_(a.axes.size() + b.axes.size()),
        pinned_(a.axes.size() + b.axes.size(), 0),
        compared_(pinned_.size(), 0) {
    add(a, literals, 0);
    add(b, literals, offset_);
    for (const TensorPair& pair : shared_tensors(a, b)) {
      const size_t rank = std::min(pair.first->dims.size(), pair.second->dims.size());
      for (size_t d = 0; d < rank; ++d) unite(pair.first->dims[d], pair.second->dims[d]);
    }
  }

  uint32_t of_second(AxisId axis) const { return axis + offset_; }
  AxisTies::Form form(uint32_t axis) const { return ties_.of(axis); }
  bool pinned(uint32_t root) const { return any(pinned_, root); }
  // With a literal that moves.
  bool compared(uint32_t root) const { return any(compared_, root); }

 private:
  bool any(const std::vector<uint8_t>& marks, uint32_t root) const {
    for (uint32_t i = 0; i < marks.size(); ++i) {
      if (marks[i] != 0 && ties_.of(i).root == root) return true;
    }
    return false;
  }
  void tie(uint32_t a, uint32_t b, int64_t scale, int64_t offset) {
    if (!ties_.tie(a, b, scale, offset)) pinned_[a] = pinned_[b] = 1;
  }
  void add(const Program& program, LiteralPolicy literals, uint32_t offset) {
    const AxisClasses classes = axis_classes(program, literals);
    if (literals == LiteralPolicy::kScale) {
      for (const AxisId axis : axes_of_literals(program)) compared_[axis + offset] = 1;
    }
    for (uint32_t i = 0; i < classes.class_of.size(); ++i) {
      const AxisTies::Form& form = classes.forms[i];
      if (form.root != i) tie(i + offset, form.root + offset, form.scale, form.offset);
      pinned_[i + offset] |= classes.pinned[i];
    }
  }
  void unite(const IndexExpr& x, const IndexExpr& y) {
    if (x.axes.size() != y.axes.size() || x.constant != y.constant) return;
    for (size_t i = 0; i < x.axes.size(); ++i) {
      if (x.axes[i].coefficient != y.axes[i].coefficient) return;
    }
    for (size_t i = 0; i < x.axes.size(); ++i) {
      tie(x.axes[i].axis, y.axes[i].axis + offset_, 1, 0);
    }
  }

  uint32_t offset_;
  AxisTies ties_;
  std::vector<uint8_t> pinned_, compared_;
};

// What goes for all axes of a class: the extent of its root, and the least that leaves each axis
// `least` or what it has.
struct ClassBounds {
  int64_t extent = 0, least = 0, longest = 0;
};

std::map<uint32_t, ClassBounds> bounds_of(const JointClasses& classes, const Program& a,
                                          const Program& b, int64_t least) {
  std::map<uint32_t, ClassBounds> bounds;
  const auto add = [&](const Program& p, bool second) {
    for (AxisId i = 0; i < p.axes.size(); ++i) {
      const AxisTies::Form form = classes.form(second ? classes.of_second(i) : i);
      const int64_t extent = p.axes[i].extent;
      const int64_t of_root = (extent - form.offset) / form.scale;
      const int64_t wanted = std::min(least, extent) - form.offset;
      const auto [at, is_new] = bounds.emplace(form.root, ClassBounds{of_root, 1, extent});
      at->second.extent = std::min(at->second.extent, of_root);
      at->second.longest = std::max(at->second.longest, extent);
      at->second.least = std::max(at->second.least, (wanted + form.scale - 1) / form.scale);
    }
  };
  add(a, false);
  add(b, true);
  return bounds;
}

// Extents of both programs: distinct primes from `least` on for the classes, never more than there
// are.  Those that are compared with literals keep their order by length.
void assign(const Program& a, const Program& b, int64_t least, LiteralPolicy literals,
            std::vector<int64_t>* first, std::vector<int64_t>* second) {
  const JointClasses classes(a, b, literals);
  const auto bounds = bounds_of(classes, a, b, least);
  std::vector<uint32_t> roots;
  for (const auto& [root, bound] : bounds) roots.push_back(root);
  const auto length = [&](uint32_t root) {
    return classes.compared(root) ? bounds.at(root).longest : 0;
  };
  std::stable_sort(roots.begin(), roots.end(),
                   [&](uint32_t x, uint32_t y) { return length(x) < length(y); });
  const int64_t room = std::max(room_between_compared(a), room_between_compared(b));
  std::map<uint32_t, int64_t> chosen;
  int64_t next = least, next_compared = least + kRoomForLiterals;
  for (const uint32_t root : roots) {
    const ClassBounds& bound = bounds.at(root);
    const bool compared = classes.compared(root);
    if (classes.pinned(root) || bound.extent < least) {
      chosen[root] = bound.extent;
      continue;
    }
    int64_t from = std::max(compared ? next_compared : next, bound.least);
    while (!is_prime(static_cast<uint64_t>(from))) ++from;
    chosen[root] = std::min(from, bound.extent);
    (compared ? next_compared : next) = from + (compared ? room : 1);
  }
  const auto extent = [&](const Axis& axis, uint32_t joint) {
    const AxisTies::Form form = classes.form(joint);
    return std::min(form.at(chosen[form.root]), axis.extent);
  };
  for (AxisId i = 0; i < a.axes.size(); ++i) first->push_back(extent(a.axes[i], i));
  for (AxisId i = 0; i < b.axes.size(); ++i) {
    second->push_back(extent(b.axes[i], classes.of_second(i)));
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
    if (extents[i] != classes.forms[i].at(extents[classes.class_of[i]])) return false;
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
  std::map<uint32_t, int64_t> step;  // of each class: by how much its root grows
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
    const int64_t by = step[classes.class_of[axis]] * classes.forms[axis].scale;
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
    cases.push_back({std::move(a), std::move(b), std::move(sizes), literals->moves()});
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
    cases->push_back({std::move(p), std::move(g), std::move(sizes), shrunk->literals.moves()});
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

namespace {

// Ways to choose, in the order in which they are tried.
constexpr LiteralPolicy kPolicies[] = {LiteralPolicy::kFollow, LiteralPolicy::kScale};

// Cases at which the program has a value.  It may have none at any: what a logarithm is taken of
// may be negative on every draw.
void drop_undefined(std::vector<SmallCase>* cases) {
  const auto is_defined = [](const SmallCase& c) {
    std::vector<FloatTensor> inputs;
    for (TensorValues<double>& t : float_inputs(c.program, InputKind::kOrdinary, 1)) {
      inputs.push_back({t.extents, std::move(t.values), {}});
    }
    Evaluation evaluation;
    evaluation.threads = 1;
    const auto values = evaluate(c.program, inputs, evaluation);
    if (!values.ok()) return false;
    return std::all_of(values->begin(), values->end(), [](const std::vector<double>& output) {
      return std::none_of(output.begin(), output.end(), [](double x) { return std::isnan(x); });
    });
  };
  std::erase_if(*cases, [&](const SmallCase& c) { return !is_defined(c); });
}

// Whether an exact test of it is slow, or out of reach: every term of a sum of exponentials is one
// of the value.
bool is_heavy(const SmallCase& c) {
  const TermGraph& terms = c.program.terms;
  for (TermId id = 0; id < terms.size(); ++id) {
    const auto* apply = std::get_if<ApplyTerm>(&terms[id]);
    if (apply != nullptr && std::holds_alternative<op::Exp>(apply->op)) {
      return work(c.program) > kExactWork;
    }
  }
  return false;
}

// The cases of the first way to choose that has any which are defined and not heavy; else of the
// first that has any, defined or not.
template <class CasesOf>
std::vector<SmallCase> first_suitable(CasesOf cases_of_policy) {
  std::vector<SmallCase> fallback;
  for (const LiteralPolicy policy : kPolicies) {
    std::vector<SmallCase> all = cases_of_policy(policy), defined = all;
    drop_undefined(&defined);
    if (!defined.empty() && std::none_of(defined.begin(), defined.end(), is_heavy)) return defined;
    if (fallback.empty()) fallback = defined.empty() ? std::move(all) : std::move(defined);
  }
  return fallback;
}

}  // namespace

Result<std::vector<SmallCase>> small_cases(const Program& program, const Program& candidate) {
  std::string too_large;
  std::vector<SmallCase> cases = first_suitable([&](LiteralPolicy policy) {
    std::string ignored;
    return cases_of(program, candidate, policy, too_large.empty() ? &too_large : &ignored);
  });
  if (cases.empty() && is_small(program) && is_small(candidate)) {
    cases.push_back({program, candidate, sizes_text(program)});
  }
  if (!cases.empty()) return cases;
  if (!too_large.empty()) return unsupported(kTooLarge + too_large);
  return unsupported("no small sizes suit both programs",
                     "their shared tensors are split along different axes");
}

Result<std::vector<SmallCase>> small_cases(const Program& program, const MuGraph& candidate) {
  std::string too_large, failure;
  std::vector<SmallCase> found = first_suitable([&](LiteralPolicy policy) {
    std::vector<SmallCase> cases;
    std::string larger;
    const Status shrunk = add_cases(program, candidate, policy, &cases, &larger);
    if (!shrunk.ok() && failure.empty()) failure = shrunk.error().message;
    if (too_large.empty()) too_large = larger;
    // A literal in a condition means what it says at the sizes that it was written for alone.
    const double most = cases.empty() || has_literals(program) ? kExactWork : kCheapWork;
    if (policy == LiteralPolicy::kFollow && work(program) <= most &&
        (cases.empty() || sizes_text(program) != cases[0].sizes)) {
      cases.push_back({program, candidate, sizes_text(program)});
    }
    return cases;
  });
  if (!found.empty()) return found;
  if (!too_large.empty()) {
    return unsupported(kTooLarge + too_large + (failure.empty() ? "" : "; " + failure));
  }
  if (!failure.empty()) return unsupported(failure);
  return unsupported("no small sizes suit the structure of this µGraph");
}

std::vector<SmallCase> cases_with_declared_sizes(const Program& program,
                                                 const Candidate& candidate) {
  const LiteralPolicy policy = LiteralPolicy::kKeepSizes;
  std::vector<SmallCase> cases;
  std::string ignored;
  if (const auto* graph = std::get_if<MuGraph>(&candidate)) {
    if (!add_cases(program, *graph, policy, &cases, &ignored).ok()) return {};
  } else {
    cases = cases_of(program, std::get<Program>(candidate), policy, &ignored);
  }
  drop_undefined(&cases);
  return cases;
}

std::optional<SmallCase> declared_case(const Program& program, const Candidate& candidate) {
  const auto* other = std::get_if<Program>(&candidate);
  if (!is_small(program) || (other != nullptr && !is_small(*other))) return std::nullopt;
  return SmallCase{program, candidate, sizes_text(program)};
}

std::optional<SmallCase> tile_case(const Program& program, const MuGraph& candidate,
                                   double most_work) {
  if (work(program) <= most_work) return SmallCase{program, candidate, sizes_text(program)};
  for (const LiteralPolicy policy : kPolicies) {
    Result<Shrunk> shrunk = shrink(candidate, program, ShrinkPolicy::kKeepTiles, policy);
    if (!shrunk.ok() || work(shrunk->program) > most_work) continue;
    if (!check(shrunk->graph, shrunk->program).ok()) continue;
    std::string sizes = sizes_and_literals(shrunk->program, shrunk->literals);
    return SmallCase{std::move(shrunk->program), std::move(shrunk->graph), std::move(sizes),
                     shrunk->literals.moves()};
  }
  return std::nullopt;
}

}  // namespace sundog::verify
