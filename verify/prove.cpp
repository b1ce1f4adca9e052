// First with sizes as symbols; if that fails, with the sizes of the program as numbers, since a
// literal in the text (a sum divided by 4096) may make the two equal at one size alone.
#include "verify/prove.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "core/check.h"
#include "core/join.h"
#include "core/resize.h"
#include "verify/implication.h"
#include "verify/interface.h"
#include "verify/small_sizes.h"
#include "verify/symbolic_mugraph.h"

namespace sundog::verify {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

using Needs = std::set<std::pair<Need::Kind, ElementId>>;

// Both sides in one arena.
class Attempt {
 public:
  Attempt(const Program& program, bool fixed_sizes, const ProveOptions& options)
      : program_(program),
        fixed_sizes_(fixed_sizes),
        forms_(kMostTerms, options.seconds),
        algebra_(forms_, options.rounding),
        symbols_(axis_symbols(forms_, program, fixed_sizes)) {
    for (uint32_t i = 0; i < program.inputs.size(); ++i) {
      tensors_.push_back(i);
      forms_.tensor_names.push_back(program.inputs[i].name);
      if (const std::optional<Number>& low = program.inputs[i].low) {
        if (low->is_infinite() || low->is_negative()) continue;
        forms_.set_sign(i, *low == Number(0) ? Sign::kNotNegative : Sign::kPositive);
      }
    }
    expected_ = symbolic_outputs(algebra_, program, symbols_, tensors_, false);
    for (const Need& need : algebra_.take_guarded()) guarded_.insert(closed(need));
    for (const Need& need : algebra_.take_needs()) expected_needs_.insert(closed(need));
  }

  Proof run(const MuGraph& graph) {
    Implications implications;
    SymbolicMuGraph result;
    if (!forms_.failure()) {
      result = symbolic_mugraph(algebra_, graph, program_, symbols_, implications);
    }
    assumptions_ = std::move(result.assumptions);
    return conclude(result.outputs, result.needs);
  }

  Proof run(const Program& other) {
    std::vector<uint32_t> tensors;
    for (const TensorDecl& input : other.inputs) {
      tensors.push_back(*find_input(program_, input.name));
    }
    const AxisSymbols theirs = axis_symbols(forms_, other, program_, symbols_, fixed_sizes_);
    const std::vector<Symbolic> found = symbolic_outputs(algebra_, other, theirs, tensors, true);
    Implications implications;
    Needs needs;
    for (const Need& need : algebra_.take_needs()) {
      const bool follows =
          need.kind == Need::kInside && implications.follows(forms_, need.form, need.given);
      if (!follows) needs.insert(closed(need));
    }
    std::vector<Symbolic> actual;
    for (const Output& output : program_.outputs) {
      const auto at =
          std::find_if(other.outputs.begin(), other.outputs.end(),
                       [&](const Output& o) { return o.tensor.name == output.tensor.name; });
      const auto i = static_cast<size_t>(at - other.outputs.begin());
      const std::optional<Forms::IndexMap> map = axes_of_output(output, *at, theirs);
      if (!map) forms_.fail("output '" + output.tensor.name + "' has other axes");
      if (forms_.failure()) break;
      actual.push_back(
          {forms_.substitute(found[i].form, *map), forms_.substitute(found[i].guard, *map)});
    }
    return conclude(actual, needs);
  }

 private:
  static constexpr size_t kMostTerms = 3000;

  std::pair<Need::Kind, ElementId> closed(const Need& need) {
    const std::vector<VarId> free = merged(forms_[need.form].free, forms_[need.given].free);
    return {need.kind, forms_.closed({free, need.given, need.form})};
  }

  // The other program's axes of an output, each as ours.
  std::optional<Forms::IndexMap> axes_of_output(const Output& ours, const Output& other,
                                                const AxisSymbols& theirs) {
    Forms::IndexMap map;
    for (size_t d = 0; d < ours.tensor.dims.size(); ++d) {
      const auto &a = ours.tensor.dims[d], &b = other.tensor.dims[d];
      const bool alike = a.axes.size() == b.axes.size() && a.constant == b.constant &&
                         a.sizes.empty() && b.sizes.empty();
      if (!alike) return {};
      std::map<int64_t, AxisId> by_coefficient;
      for (const auto& item : a.axes) by_coefficient[item.coefficient] = item.axis;
      for (const auto& item : b.axes) {
        const auto at = by_coefficient.find(item.coefficient);
        if (at == by_coefficient.end()) return {};
        map.emplace(forms_.indices.atom(IndexAtom::kVariable, theirs.variables[item.axis]),
                    forms_.indices.of_variable(symbols_.variables[at->second]));
      }
    }
    return map;
  }

  Proof conclude(const std::vector<Symbolic>& actual, const Needs& needs) {
    Proof proof;
    for (size_t i = 0; i < actual.size() && !forms_.failure(); ++i) {
      const bool same = forms_.equal(actual[i].form, expected_[i].form) &&
                        forms_.equal(actual[i].guard, expected_[i].guard);
      if (same) continue;
      proof.reason = "the canonical forms of output '" + program_.outputs[i].tensor.name +
                     "' differ: " + forms_.text(expected_[i].form) + " and " +
                     forms_.text(actual[i].form);
      break;
    }
    if (proof.reason.empty()) proof.reason = unmet(needs);
    if (forms_.failure()) proof.reason = *forms_.failure();
    if (forms_.indices.overflow()) proof.reason = "an index does not fit 64 bits";
    if (!proof.reason.empty()) return proof;
    proof.outcome = Proof::kProved;
    proof.all_sizes = !fixed_sizes_;
    proof.assumptions = assumptions_;
    proof.leaves_out_empty_maxima = !guarded_.empty();
    if (!guarded_.empty())
      proof.assumptions.push_back("no maximum is empty that the program guards");
    proof.statement = statement();
    return proof;
  }

  // A need of the candidate that is none of the program; empty if there is none.
  std::string unmet(const Needs& needs) {
    const auto is_own = [&](Need::Kind kind, ElementId element) {
      const bool weaker = kind == Need::kNonZero || kind == Need::kNotNegative;
      return expected_needs_.contains({kind, element}) || guarded_.contains({kind, element}) ||
             (weaker && expected_needs_.contains({Need::kPositive, element}));
    };
    for (const auto& [kind, element] : needs) {
      if (is_own(kind, element)) continue;
      Element always = forms_.opened(element);
      always.guard = forms_.one();
      if (is_own(kind, forms_.closed(std::move(always)))) continue;
      const std::string form = forms_.text(forms_.element(element).body);
      switch (kind) {
        case Need::kNonZero:
          return "not shown to be other than zero wherever the program is defined: " + form;
        case Need::kNotNegative:
          return "not shown to be at least zero wherever the program is defined: " + form;
        case Need::kPositive:
          return "not shown to be positive wherever the program is defined: " + form;
        case Need::kFinite:
          return "not shown to be finite wherever the program is defined: " + form;
        case Need::kInside:
          return "not shown to stay inside its tensor: " + form;
      }
    }
    return {};
  }

  std::string statement() const {
    if (fixed_sizes_) return program_.axes.empty() ? "" : "at " + sizes_text(program_);
    const AxisClasses classes = axis_classes(program_);
    std::vector<std::string> free, pinned;
    for (AxisId a = 0; a < program_.axes.size(); ++a) {
      const Axis& axis = program_.axes[a];
      if (classes.pinned[a] != 0) {
        pinned.push_back(axis.name + " = " + std::to_string(axis.extent));
      } else if (classes.class_of[a] == a) {
        free.push_back(axis.name);
      } else {
        pinned.push_back(axis.name + " = " + program_.axes[classes.class_of[a]].name);
      }
    }
    if (program_.axes.empty()) return {};
    std::string text = free.empty() ? "at" : "for all sizes of " + join(free, ", ");
    if (!pinned.empty()) text += (free.empty() ? " " : ", ") + join(pinned, ", ");
    return text;
  }

  const Program& program_;
  bool fixed_sizes_;
  Forms forms_;
  SymbolicAlgebra algebra_;
  AxisSymbols symbols_;
  std::vector<uint32_t> tensors_;
  std::vector<Symbolic> expected_;
  Needs expected_needs_, guarded_;
  std::vector<std::string> assumptions_;
};

template <class C>
Proof attempt(const Program& program, const C& candidate, const ProveOptions& options) {
  const double start = now();
  Proof proof = Attempt(program, false, options).run(candidate);
  const double left = options.seconds - (now() - start);
  if (proof.outcome == Proof::kUnknown && left > 0) {
    ProveOptions rest = options;
    rest.seconds = left;
    Proof fixed = Attempt(program, true, rest).run(candidate);
    if (fixed.outcome == Proof::kProved) proof = std::move(fixed);
  }
  std::sort(proof.assumptions.begin(), proof.assumptions.end());
  proof.assumptions.erase(std::unique(proof.assumptions.begin(), proof.assumptions.end()),
                          proof.assumptions.end());
  proof.seconds = now() - start;
  return proof;
}

Proof unknown(std::string reason) {
  Proof proof;
  proof.reason = std::move(reason);
  return proof;
}

bool has_empty_axis(const Program& program) {
  return std::any_of(program.axes.begin(), program.axes.end(),
                     [](const Axis& axis) { return axis.extent < 1; });
}

}  // namespace

Proof prove(const Program& program, const MuGraph& candidate, const ProveOptions& options) {
  if (Status status = check(candidate, program); !status.ok()) {
    return unknown(status.error().message);
  }
  if (has_empty_axis(program)) return unknown("an axis is empty");
  return attempt(program, candidate, options);
}

Proof prove(const Program& program, const Program& candidate, const ProveOptions& options) {
  std::string mismatch = interface_mismatch(program, candidate);
  if (!mismatch.empty()) return unknown(std::move(mismatch));
  if (has_empty_axis(program) || has_empty_axis(candidate)) return unknown("an axis is empty");
  return attempt(program, candidate, options);
}

std::string to_string(const Proof& proof) {
  if (proof.outcome == Proof::kUnknown) return "unknown: " + proof.reason;
  std::string text = proof.statement.empty() ? "proved" : "proved " + proof.statement;
  if (!proof.assumptions.empty()) text += "; given: " + join(proof.assumptions, "; ");
  return text;
}

}  // namespace sundog::verify
