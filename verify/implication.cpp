// Variables are integers in their domains; the negation of the goal must contradict them and the
// conditions.
#include "verify/implication.h"

#include <algorithm>
#include <set>

#include "verify/smt.h"

namespace sundog::verify {
namespace {

class Writer {
 public:
  Writer(const Forms& forms, const FactorExtents& extents) : forms_(forms), extents_(extents) {}

  std::string condition(IndexRelation relation, IndexId e) {
    return std::string(relation == IndexRelation::kZero ? "(= " : "(<= ") + index(e) + " 0)";
  }
  void require(const std::string& assertion) { assertions_ += "(assert " + assertion + ")\n"; }
  std::string text() const { return declarations_ + assertions_; }
  bool failed() const { return failed_; }
  static std::string number(int64_t value) {
    if (value >= 0) return std::to_string(value);
    return "(- " + std::to_string(value).substr(1) + ")";
  }

 private:
  std::string declared(const std::string& name, const std::string& least) {
    if (known_.insert(name).second) {
      declarations_ += "(declare-const " + name + " Int)\n";
      require("(<= " + least + " " + name + ")");
    }
    return name;
  }

  std::string size(DomainId d) {
    if (const auto extent = forms_.indices.extent_of(d)) return number(*extent);
    return declared("size" + std::to_string(d), "1");
  }

  std::string variable(VarId v) {
    const std::string name = "v" + std::to_string(v);
    if (known_.contains(name)) return name;
    declared(name, "0");
    const DomainId d = forms_.indices.domain_of(v);
    require("(< " + name + " " + size(d) + ")");
    return name;
  }

  // The outermost factor's size is not needed, that of each inner one is a number.
  std::string position(const IndexAtom& atom) {
    const std::vector<DomainId>& factors = forms_.indices.factors_of(atom.what);
    std::string sum = "(+ 0";
    int64_t stride = 1;
    for (size_t i = factors.size(); i-- > 0;) {
      sum += " (* " + number(stride) + " " + index(atom.parts[i]) + ")";
      if (i == 0) break;
      const auto extent = extents_.find(factors[i]);
      if (extent == extents_.end()) {
        failed_ = true;
        return "0";
      }
      require("(= " + size(factors[i]) + " " + number(extent->second) + ")");
      stride *= extent->second;
    }
    return sum + ")";
  }

  std::string index(IndexId id) {
    const Indices::Index& e = forms_.indices[id];
    std::string sum = "(+ " + number(e.constant);
    for (const auto& [a, coefficient] : e.items) {
      const IndexAtom& atom = forms_.indices.atom(a);
      const std::string value = atom.kind == IndexAtom::kVariable   ? variable(atom.what)
                                : atom.kind == IndexAtom::kPosition ? position(atom)
                                                                    : size(atom.what);
      sum += " (* " + number(coefficient) + " " + value + ")";
    }
    return sum + " 0)";
  }

  const Forms& forms_;
  const FactorExtents& extents_;
  std::set<std::string> known_;
  std::string declarations_, assertions_;
  bool failed_ = false;
};

}  // namespace

std::optional<std::string> implication_text(const Forms& forms, const Implication& question,
                                            const FactorExtents& extents) {
  Writer writer(forms, extents);
  const auto condition = [&](AtomId id) {
    const Atom& atom = forms.atom(id);
    return writer.condition(static_cast<IndexRelation>(atom.data[0]), atom.data[1]);
  };
  if (question.terms.size() == 1) {
    for (const AtomId id : question.terms[0].conditions) writer.require(condition(id));
  } else {
    std::string sum = "(+ 0";
    for (const ConditionedWeight& term : question.terms) {
      std::string all = "(and true";
      for (const AtomId id : term.conditions) all += " " + condition(id);
      sum += " (ite " + all + ") " + writer.number(term.weight) + " 0)";
    }
    writer.require("(not (= 0 " + sum + ")))");
  }
  writer.require("(not " + writer.condition(question.relation, question.goal) + ")");
  if (writer.failed()) return {};
  return writer.text();
}

bool Implications::hold(const Forms& forms, const Implication& question) {
  const std::optional<std::string> text = implication_text(forms, question, extents);
  if (!text) return false;
  const auto [at, is_new] = known_.try_emplace(*text, false);
  if (is_new) at->second = ask({*text})[0].kind == SmtAnswer::kShown;
  return at->second;
}

bool Implications::follows(const Forms& forms, FormId product, FormId given) {
  const std::optional<std::vector<AtomId>> wanted = forms.as_conditions(product);
  if (!wanted) return false;
  ConditionedWeight weight;
  if (forms[given].terms.size() == 1)
    weight.conditions = forms.conditions_of(forms[given].terms[0]);
  return std::all_of(wanted->begin(), wanted->end(), [&](AtomId id) {
    const Atom& condition = forms.atom(id);
    return hold(forms,
                {{weight}, static_cast<IndexRelation>(condition.data[0]), condition.data[1]});
  });
}

}  // namespace sundog::verify
