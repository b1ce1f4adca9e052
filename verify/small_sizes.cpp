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
#include <set>

#include "core/arithmetic.h"
#include "core/evaluate.h"
#include "core/resize.h"
#include "core/size_relations.h"
#include "verify/float_inputs.h"
#include "verify/interface.h"

namespace sundog::verify {
namespace {

constexpr int kSizeSets = 2;
// What an exact test may cost: index values of the largest term of a program.  Where the original
// sizes add nothing that smaller ones lack, only what costs next to nothing: a denominator of a few
// hundred terms takes seconds.
constexpr double kExactWork = 4096;
constexpr double kCheapWork = 128;
// Extents of axes that literals relate which are looked through.
constexpr int64_t kMostRelated = 256;
// Where a literal keeps axes large, the smallest sizes may still be too many for an exact test.
constexpr double kMostExactWork = 1 << 15;
const std::string kTooLarge = "literals keep it too large for an exact test, at ";

// Classes of the axes of both programs, those of the second after those of the first.
class JointClasses {
 public:
  JointClasses(const Program& a, const Program& b, LiteralPolicy literals)
      : offset_(static_cast<uint32_t>(a.axes.size())),
        ties_(a.axes.size() + b.axes.size()),
        pinned_(a.axes.size() + b.axes.size(), 0) {
    add(a, literals, 0);
    add(b, literals, offset_);
    for (const TensorPair& pair : shared_tensors(a, b)) {
      const size_t rank = std::min(pair.first->dims.size(), pair.second->dims.size());
      for (size_t d = 0; d < rank; ++d) unite(pair.first->dims[d], pair.second->dims[d]);
    }
  }

  uint32_t of_second(AxisId axis) const { return axis + offset_; }
  AxisTies::Form form(uint32_t axis) const { return ties_.of(axis); }
  bool pinned(uint32_t root) const {
    for (uint32_t i = 0; i < pinned_.size(); ++i) {
      if (pinned_[i] != 0 && ties_.of(i).root == root) return true;
    }
    return false;
  }
  // Of the axes of the first or of the second program.
  std::vector<AxisTies::Form> forms(bool second) const {
    std::vector<AxisTies::Form> result;
    const auto end = static_cast<uint32_t>(second ? pinned_.size() : offset_);
    for (uint32_t i = second ? offset_ : 0; i < end; ++i) result.push_back(ties_.of(i));
    return result;
  }

 private:
  void tie(uint32_t a, uint32_t b, int64_t scale, int64_t offset) {
    if (!ties_.tie(a, b, scale, offset)) pinned_[a] = pinned_[b] = 1;
  }
  void add(const Program& program, LiteralPolicy literals, uint32_t offset) {
    const AxisClasses classes = axis_classes(program, literals);
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
  std::vector<uint8_t> pinned_;
};

// What goes for all axes of a class: the extent of its root, and the least that leaves each axis
// `least` or what it has.
struct ClassBounds {
  int64_t extent = 0, least = 0;
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
      const auto [at, is_new] = bounds.emplace(form.root, ClassBounds{of_root, 1});
      at->second.extent = std::min(at->second.extent, of_root);
      at->second.least = std::max(at->second.least, (wanted + form.scale - 1) / form.scale);
    }
  };
  add(a, false);
  add(b, true);
  return bounds;
}

struct Sizes {
  std::vector<int64_t> first, second;  // of the axes of both programs
  Literals literals;
  std::map<uint32_t, int64_t> related;  // roots of classes that literals relate, and their extents
};

// What the sizes of both programs say about each other, over the roots of their classes.
SizeSystem system_of(const JointClasses& classes, const Program& a, const Program& b) {
  std::vector<int64_t> all = extents(a);
  for (const Axis& axis : b.axes) all.push_back(axis.extent);
  const RelatedProgram programs[] = {{a, size_forms(classes.forms(false))},
                                     {b, size_forms(classes.forms(true))}};
  return SizeSystem(all, programs);
}

// Extents of both programs: distinct primes from `least` on for the classes, never more than there
// are.  Those that literals relate are chosen with them, and larger than `before`; nothing if these
// can only stay.
std::optional<Sizes> assign(const Program& a, const Program& b, int64_t least,
                            LiteralPolicy literals, const Sizes& before) {
  const JointClasses classes(a, b, literals);
  std::optional<SizeSystem> system;
  if (literals == LiteralPolicy::kScale) system = system_of(classes, a, b);
  std::map<uint32_t, int64_t> chosen;
  std::vector<uint32_t> related;
  std::set<int64_t> used;
  int64_t next = least;
  for (const auto& [root, bound] : bounds_of(classes, a, b, least)) {
    chosen[root] = bound.extent;
    if (classes.pinned(root) || bound.extent < least) continue;
    if (system && system->concerns(root)) {
      const auto last = before.related.find(root);
      const int64_t first = last == before.related.end() ? bound.least : last->second + 1;
      std::vector<int64_t> values;
      for (int64_t v = first; v < std::min(bound.extent, kMostRelated); ++v) {
        values.push_back(v);
      }
      system->allow(root, std::move(values));
      related.push_back(root);
      continue;
    }
    int64_t from = std::max(next, bound.least);
    while (!is_prime(static_cast<uint64_t>(from))) ++from;
    chosen[root] = std::min(from, bound.extent);
    used.insert(chosen[root]);
    next = from + 1;
  }
  Sizes sizes;
  if (!related.empty()) {
    const auto choice = system->choose(used);
    if (!choice) return std::nullopt;
    for (const uint32_t root : related) {
      chosen[root] = sizes.related[root] = choice->extents[root];
    }
    sizes.literals = choice->literals;
  }
  const auto extent = [&](const Axis& axis, uint32_t joint) {
    const AxisTies::Form form = classes.form(joint);
    return std::min(form.at(chosen[form.root]), axis.extent);
  };
  for (AxisId i = 0; i < a.axes.size(); ++i) sizes.first.push_back(extent(a.axes[i], i));
  for (AxisId i = 0; i < b.axes.size(); ++i) {
    sizes.second.push_back(extent(b.axes[i], classes.of_second(i)));
  }
  return sizes;
}

// Where one side has a plain axis and the other factors, the axis follows the factors.
bool reconcile(const Program& a, const Program& b, Sizes* sizes, Program* small_a,
               Program* small_b) {
  for (int trial = 0; trial < 4; ++trial) {
    *small_a = with_extents(a, sizes->first, sizes->literals);
    *small_b = with_extents(b, sizes->second, sizes->literals);
    bool changed = false, agree = true;
    for (const TensorPair& pair : shared_tensors(*small_a, *small_b)) {
      for (size_t d = 0; d < pair.first->extents.size(); ++d) {
        const int64_t x = pair.first->extents[d], y = pair.second->extents[d];
        if (x == y) continue;
        agree = false;
        AxisId axis;
        if (pair.first->dims[d].is_axis(&axis)) {
          changed |= sizes->first[axis] != y;
          sizes->first[axis] = y;
        } else if (pair.second->dims[d].is_axis(&axis)) {
          changed |= sizes->second[axis] != x;
          sizes->second[axis] = x;
        }
      }
    }
    if (agree) return true;
    if (!changed) return false;
  }
  return false;
}

// Whether the sizes are as the classes of each program want them, and its relations.
bool respects(const Program& p, const std::vector<int64_t>& extents, const Literals& literals,
              LiteralPolicy policy) {
  const AxisClasses classes = axis_classes(p, policy);
  for (AxisId i = 0; i < p.axes.size(); ++i) {
    if (classes.pinned[i] && extents[i] != p.axes[i].extent) return false;
    if (extents[i] != classes.forms[i].at(extents[classes.class_of[i]])) return false;
  }
  if (policy != LiteralPolicy::kScale) return true;
  const RelatedProgram related[] = {{p, size_forms(classes.forms)}};
  return SizeSystem(sundog::extents(p), related).allows(extents, literals);
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
  return with_sizes(graph, sizes);
}

std::string sizes_and_literals(const Program& program, const Literals& literals) {
  const std::string moved = literals.text();
  return sizes_text(program) + (moved.empty() ? "" : " (" + moved + ")");
}

// The cases of two programs under one policy; too large ones leave `too_large` behind.
std::vector<SmallCase> cases_of(const Program& program, const Program& candidate,
                                LiteralPolicy policy, std::string* too_large) {
  std::vector<SmallCase> cases;
  Sizes before;
  for (int set = 0; set < kSizeSets; ++set) {
    std::optional<Sizes> chosen = assign(program, candidate, 2 + set, policy, before);
    if (!chosen) continue;
    before = *chosen;
    const auto respected = [&] {
      return respects(program, chosen->first, chosen->literals, policy) &&
             respects(candidate, chosen->second, chosen->literals, policy);
    };
    if (!respected()) continue;
    Program a, b;
    if (!reconcile(program, candidate, &*chosen, &a, &b) || !respected()) continue;
    std::string sizes = sizes_and_literals(a, chosen->literals);
    if (!cases.empty() && cases.back().sizes == sizes) continue;
    if (work(a) > kMostExactWork || work(b) > kMostExactWork) {
      *too_large = sizes;
      return {};
    }
    cases.push_back({std::move(a), std::move(b), std::move(sizes), chosen->literals.moves()});
  }
  return cases;
}

// The cases of a µGraph under one policy.
Status add_cases(const Program& program, const MuGraph& candidate, LiteralPolicy policy,
                 std::vector<SmallCase>* cases, std::string* too_large) {
  Result<Shrunk> shrunk = shrink(candidate, program, ShrinkPolicy::kFewElements, policy);
  if (!shrunk.ok()) return shrunk.error();
  const auto add = [&](Program p, MuGraph g, const Literals& literals) {
    if (!check(g, p).ok()) return;  // sizes that this structure cannot have
    std::string sizes = sizes_and_literals(p, literals);
    if (work(p) > kMostExactWork) {
      *too_large = std::move(sizes);
      return;
    }
    cases->push_back({std::move(p), std::move(g), std::move(sizes), literals.moves()});
  };
  add(shrunk->program, shrunk->graph, shrunk->literals);
  if (policy == LiteralPolicy::kScale) {
    const std::vector<int64_t> above = extents(shrunk->program);
    Result<Shrunk> larger = shrink(candidate, program, ShrinkPolicy::kFewElements, policy, above);
    if (larger.ok()) add(larger->program, larger->graph, larger->literals);
    return {};
  }
  std::vector<int64_t> larger;
  Result<MuGraph> graph = enlarged(shrunk->graph, shrunk->program, policy, &larger);
  if (graph.ok()) add(with_extents(shrunk->program, larger), *std::move(graph), Literals());
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
// of the value, and a quotient by it takes the square of as many steps.
bool is_heavy(const SmallCase& c) {
  const TermGraph& terms = c.program.terms;
  const auto extent_of = [&](AxisSet axes) {
    double n = 1;
    for (const AxisId axis : axes) n *= static_cast<double>(c.program.axes[axis].extent);
    return n;
  };
  double most = 0;
  std::vector<uint8_t> exponential(terms.size(), 0);
  for (TermId id = 0; id < terms.size(); ++id) {
    const auto* apply = std::get_if<ApplyTerm>(&terms[id]);
    exponential[id] = apply != nullptr && std::holds_alternative<op::Exp>(apply->op);
    for (const TermId operand : operands(terms[id])) exponential[id] |= exponential[operand];
    const auto* reduce = std::get_if<ReduceTerm>(&terms[id]);
    if (reduce == nullptr || reduce->kind != ReduceKind::kSum || !exponential[id]) continue;
    most = std::max(most, extent_of(reduce->axes));
  }
  return most > kCheapWork || (most > 0 && work(c.program) > kExactWork);
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
