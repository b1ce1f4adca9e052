// Canonical forms as text, for reasons and for people who look into a failed proof.
#include "core/check.h"
#include "verify/canonical_form.h"

namespace sundog::verify {
namespace {

constexpr size_t kLongest = 400;

std::string bracketed(const std::vector<std::string>& parts) {
  std::string text = "[";
  for (size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "" : ", ") + parts[i];
  return text + "]";
}

}  // namespace

std::string Forms::text_of_atom(AtomId id) const {
  const Atom& a = atoms_[id];
  std::vector<std::string> parts;
  const auto index_parts = [&](size_t from) {
    for (size_t i = from; i < a.data.size(); ++i) parts.push_back(indices.text(a.data[i]));
    return bracketed(parts);
  };
  const auto variables = [&](const std::vector<VarId>& binders) {
    std::vector<std::string> names;
    for (const VarId v : binders) names.push_back(indices.name_of_variable(v));
    return bracketed(names);
  };
  switch (a.kind) {
    case AtomKind::kRead:
      return (a.data[0] < tensor_names.size() ? tensor_names[a.data[0]] : "?") + index_parts(1);
    case AtomKind::kSize:
      return "|" + indices.name_of(a.data[0]) + "|";
    case AtomKind::kIndex:
      return "index";
    case AtomKind::kSum:
      return "sum" + variables({a.data.begin() + 1, a.data.end()}) + "(" + text(a.data[0]) + ")";
    case AtomKind::kMax:
      for (const ElementId e : a.data) {
        std::string part = variables(elements_[e].binders) + " ";
        if (elements_[e].guard != one_) part += text(elements_[e].guard) + ": ";
        parts.push_back(part + text(elements_[e].body));
      }
      return "max" + bracketed(parts);
    case AtomKind::kFraction:
      return "(" + text(a.data[0]) + ")";
    case AtomKind::kSqrt:
      return "sqrt(" + text(a.data[0]) + ")";
    case AtomKind::kLog:
      return "log(" + text(a.data[0]) + ")";
    case AtomKind::kCall:
    case AtomKind::kCast:
      return "f" + std::to_string(a.data[0]) + "(" + text(a.data[1]) + ")";
    case AtomKind::kCompare:
      return "(" + text(a.data[1]) + " ? 0)";
    case AtomKind::kCondition:
      return "(" + indices.text(a.data[1]) + (a.data[0] == 0 ? " <= 0)" : " = 0)");
    case AtomKind::kRunning:
      return "running" + std::to_string(a.data[0]) + index_parts(1);
  }
  SUNDOG_CHECK(false);
}

std::string Forms::text_of_monomial(const Monomial& m) const {
  std::string result;
  const bool plain = m.powers.empty() && m.exponent == 0;
  if (!m.coefficient.is_one() || plain) result = to_text(m.coefficient);
  for (const auto& [atom, power] : m.powers) {
    if (!result.empty()) result += " * ";
    result += text_of_atom(atom);
    if (power != 1) result += "^" + std::to_string(power);
  }
  if (m.exponent == 0) return result;
  return result + (result.empty() ? "exp(" : " * exp(") + text(m.exponent) + ")";
}

std::string Forms::text(FormId a) const {
  std::string result;
  for (const Monomial& m : forms_[a].terms) {
    result += (result.empty() ? "" : " + ") + text_of_monomial(m);
    if (result.size() > kLongest) return result.substr(0, kLongest) + "...";
  }
  return result.empty() ? "0" : result;
}

}  // namespace sundog::verify
