// Axioms propose, values dispose: each rewrite builds a view, the bank evaluates it and files it
// under its own value.  If that is the class that was rewritten, the class has gained a view; if
// not, the proposal was wrong, which is counted and harms nothing.  So a rule needs no proof here,
// only a good chance, and verification has the last word anyway.
//
// The rules are few because views are flat: associativity, commutativity and the exchange of sums
// need none.  What is left is moving factors into and out of sums, and the exponential against a
// maximum: exp(a - M) = exp(a - c) * exp(c - M) only with c a partial maximum of a, so that both
// exponents stay
// <= 0 whatever the data.  A program without the maximum may be given one where it cancels, which
// is the one way for a term to be computed by a form of another, better range class.  An e-graph
// over binary operators was tried first and does not saturate on sums of products.
#include "search/rewrite.h"

#include <algorithm>
#include <set>

#include "search/nodes.h"

namespace sundog::search {
namespace {

constexpr size_t kMostFactorsOfProduct = 9;
constexpr size_t kMostAddends = 6;
constexpr size_t kMostDistributed = 3;

constexpr Axiom kAxioms[] = {
    {"flatten", "x * (y * z) = x * y * z", &SearchSpace::flatten},
    {"exchange", "sum[S](x * sum[T](y)) = sum[S, T](x * y), x without T", &SearchSpace::exchange},
    {"distribute", "sum[S](x * (a + b)) = sum[S](x * a) + sum[S](x * b)", &SearchSpace::distribute},
    {"factor", "sum[S](x * a) + sum[S](x * b) = sum[S](x * (a + b))", &SearchSpace::factor},
    {"split exp", "exp(a - M) = exp(a - c) * exp(c - M), M = max(c, ...), c = max[S](a)",
     &SearchSpace::split_exp},
    {"shift exp",
     "sum(exp(a) * x) / sum(exp(a)) = sum(exp(a - M) * x) / sum(exp(a - M)), M = max(a)",
     &SearchSpace::shift_exp},
    {"online sum", "sum[o](exp(m - max[o](m)) * t): rescaled as m grows", &SearchSpace::online},
};

class Rewriter {
 public:
  Rewriter(Bank& bank, const SearchSpace& space) : bank_(bank), space_(space) {}

  RewriteReport run(const std::function<bool()>& stop) {
    for (bool changed = true; changed;) {
      ++report_.rounds;
      const auto before = std::make_tuple(bank_.size(), bank_.view_count(), bank_.node_count());
      for (ClassId c = 0; c < bank_.size(); ++c) {
        if (stop() || bank_.failure() || bank_.size() >= bank_.options().most_classes) {
          report_.complete = false;
          return report_;
        }
        rewrite(c);
      }
      changed = before != std::make_tuple(bank_.size(), bank_.view_count(), bank_.node_count());
    }
    adopt_better_forms();
    return report_;
  }

 private:
  // The views of a class as they are now: rewriting adds to them.
  std::vector<View> views(ClassId c) const { return bank_[c].views; }

  void rewrite(ClassId c) {
    if (space_.split_exp) split_exponentials(c);
    for (size_t i = 0; i < bank_[c].views.size(); ++i) {
      const View v = bank_[c].views[i];
      switch (v.kind) {
        case ViewKind::kProduct:
          flatten(c, v);
          if (space_.distribute) distribute(c, v);
          if (space_.shift_exp) shift_exponentials(c, v);
          break;
        case ViewKind::kLinear:
          flatten_linear(c, v);
          if (space_.factor) factor(c, v);
          break;
        case ViewKind::kReciprocal:
          invert_product(c, v);
          break;
        case ViewKind::kMax:
          split_maximum(c, v);
          break;
        case ViewKind::kExp:
        case ViewKind::kOpaque:
          break;
      }
      add_nodes(bank_, c, v, space_);
    }
  }

  // A proposal for class c.
  void expect(ClassId c, ClassId made) {
    if (made == kNoClass || made == c) return;
    const TermClass& x = bank_[c];
    const TermClass& y = bank_[made];
    if (x.is_zero && y.is_zero) return;
    if (loses_axis(x, y)) return;
    if (!(x.axes == y.axes) || x.values != y.values) {
      ++report_.wrong;
    } else if (x.range != y.range && (x.range & y.range) == y.range) {
      better_.insert({c, made});
    }
  }

  // An axis that cancels (t - (t - mean[h](t)) does not depend on h): right, and another class.
  static bool loses_axis(const TermClass& x, const TermClass& y) {
    if (x.axes == y.axes || !x.axes.contains(y.axes)) return false;
    return std::all_of(x.values.begin(), x.values.end(), [&](const FieldImage::Value& v) {
      return std::find(y.values.begin(), y.values.end(), v) != y.values.end();
    });
  }

  // A term may be computed as an equal one of a better range class, not the other way round.
  void adopt_better_forms() {
    for (const auto& [c, better] : better_) {
      const std::vector<Node> nodes = bank_[better].nodes;
      for (const Node& n : nodes) bank_.add_node(c, n);
    }
  }

  RangeClass range(ClassId c) const { return bank_[c].range; }

  // Puts the factors of a factor in its place, with its sum if nothing else varies along that.
  void flatten(ClassId c, const View& v) {
    for (size_t i = 0; i < v.factors.size(); ++i) {
      AxisSet others = v.reduced;
      for (size_t j = 0; j < v.factors.size(); ++j) {
        if (j != i) others |= bank_[v.factors[j]].axes;
      }
      for (const View& w : views(v.factors[i])) {
        if (w.kind != ViewKind::kProduct || !(w.reduced & others).empty()) continue;
        if (w.reduced.empty() ? !space_.flatten : (!space_.exchange || v.reduced.empty())) continue;
        std::vector<ClassId> factors = v.factors;
        factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(i));
        factors.insert(factors.end(), w.factors.begin(), w.factors.end());
        if (factors.size() > kMostFactorsOfProduct) continue;
        const auto coefficient = multiply(v.coefficient, w.coefficient);
        if (!coefficient) continue;
        expect(c, bank_.product(*coefficient, v.reduced | w.reduced, factors, range(c)));
      }
    }
  }

  void distribute(ClassId c, const View& v) {
    if (v.reduced.empty() || v.factors.size() > 5) return;
    for (size_t i = 0; i < v.factors.size(); ++i) {
      for (const View& w : views(v.factors[i])) {
        if (w.kind != ViewKind::kLinear || w.factors.size() > kMostDistributed) continue;
        if (!loses_axis(v, v.factors[i], w)) continue;
        bool plus = false, minus = false;
        std::vector<std::pair<Coefficient, ClassId>> addends;
        for (size_t j = 0; j < w.factors.size(); ++j) {
          std::vector<ClassId> factors = v.factors;
          factors[i] = w.factors[j];
          const auto coefficient = multiply(v.coefficient, w.coefficients[j]);
          if (!coefficient) return;
          (w.coefficients[j].is_negative() ? minus : plus) = true;
          addends.push_back({*coefficient, bank_.product({}, v.reduced, factors)});
        }
        // Sums of what is about to be subtracted: each may be large where the difference is small.
        const RangeClass extra = plus && minus ? kCancelling : RangeClass{0};
        expect(c, bank_.linear(std::move(addends), range(c) | extra));
        break;
      }
    }
  }

  bool loses_axis(const View& v, ClassId factor, const View& w) const {
    const AxisSet summed = v.reduced & bank_[factor].axes;
    return std::any_of(w.factors.begin(), w.factors.end(),
                       [&](ClassId x) { return !bank_[x].axes.contains(summed); });
  }

  void flatten_linear(ClassId c, const View& v) {
    for (size_t i = 0; i < v.factors.size(); ++i) {
      for (const View& w : views(v.factors[i])) {
        if (w.kind != ViewKind::kLinear || v.factors.size() + w.factors.size() > kMostAddends)
          continue;
        std::vector<std::pair<Coefficient, ClassId>> addends;
        for (size_t j = 0; j < v.factors.size(); ++j) {
          if (j != i) addends.push_back({v.coefficients[j], v.factors[j]});
        }
        bool fits = true;
        for (size_t j = 0; j < w.factors.size(); ++j) {
          const auto coefficient = multiply(v.coefficients[i], w.coefficients[j]);
          fits = fits && coefficient.has_value();
          if (fits) addends.push_back({*coefficient, w.factors[j]});
        }
        if (fits) expect(c, bank_.linear(std::move(addends), range(c)));
      }
    }
  }

  // The products that an addend is, itself as a product of one included.
  std::vector<View> products(ClassId x) const {
    std::vector<View> out;
    if (x != bank_.one()) {
      View self;
      self.factors = {x};
      out.push_back(self);
    }
    for (const View& w : bank_[x].views) {
      if (w.kind == ViewKind::kProduct) out.push_back(w);
    }
    return out;
  }

  void factor(ClassId c, const View& v) {
    if (v.factors.size() != 2) return;
    for (const View& a : products(v.factors[0])) {
      for (const View& b : products(v.factors[1])) factor(c, v, a, b);
    }
  }

  void factor(ClassId c, const View& v, const View& a, const View& b) {
    std::vector<ClassId> common, left, right;
    std::set_intersection(a.factors.begin(), a.factors.end(), b.factors.begin(), b.factors.end(),
                          std::back_inserter(common));
    const AxisSet reduced = a.reduced & b.reduced;
    if (common.empty() && reduced.empty()) return;
    AxisSet axes;
    for (ClassId x : common) axes |= bank_[x].axes;
    if (!(((a.reduced | b.reduced) - reduced) & axes).empty()) {
      common.clear();
      if (reduced.empty()) return;
    }
    std::set_difference(a.factors.begin(), a.factors.end(), common.begin(), common.end(),
                        std::back_inserter(left));
    std::set_difference(b.factors.begin(), b.factors.end(), common.begin(), common.end(),
                        std::back_inserter(right));
    const ClassId x = bank_.product({}, a.reduced - reduced, left);
    const ClassId y = bank_.product({}, b.reduced - reduced, right);
    if (x == kNoClass || y == kNoClass || (x == bank_.one() && y == bank_.one())) return;
    const auto ca = multiply(v.coefficients[0], a.coefficient);
    const auto cb = multiply(v.coefficients[1], b.coefficient);
    if (!ca || !cb) return;
    const ClassId sum = bank_.linear({{*ca, x}, {*cb, y}});
    if (sum == c || sum == kNoClass) return;
    common.push_back(sum);
    expect(c, bank_.product({}, reduced, common, range(c)));
  }

  // E is exp(a) without a bound on a: gives a.
  ClassId unbounded_exponent(ClassId e) const {
    for (const View& v : bank_[e].views) {
      if (v.kind == ViewKind::kExp && !bank_.is_bounded_exponent(v.factors[0])) {
        return v.factors[0];
      }
    }
    return kNoClass;
  }

  // A quotient of two sums over the same exp: the maximum of its argument over what the divisor
  // sums leaves both and cancels, so the exponents may be made <= 0.  The divisor has to be a sum
  // of the exp alone, of which the largest addend is 1 then.  With a factor besides, as in the
  // sum[e](exp(q) * sum[k](exp(k))) of linear attention, that addend may be as small as the factor
  // is there, and all others vanish before it: 0 / 0 where the unshifted sum is an ordinary number.
  void shift_exponentials(ClassId c, const View& v) {
    if (!v.reduced.empty() || (range(c) & kUnboundedExp) == 0) return;
    for (ClassId quotient : v.factors) {
      for (const View& r : views(quotient)) {
        if (r.kind != ViewKind::kReciprocal) continue;
        for (const View& divisor : views(r.factors[0])) {
          if (divisor.kind != ViewKind::kProduct || divisor.factors.size() != 1) continue;
          shift_exponential(c, v, quotient, divisor);
        }
      }
    }
  }

  void shift_exponential(ClassId c, const View& v, ClassId quotient, const View& divisor) {
    const ClassId e = divisor.factors[0];
    const ClassId a = unbounded_exponent(e);
    if (a == kNoClass) return;
    const AxisSet over = divisor.reduced & bank_[a].axes;
    if (over.empty()) return;
    for (ClassId dividend : v.factors) {
      if (dividend == quotient) continue;
      for (const View& w : products(dividend)) {
        if (std::count(w.factors.begin(), w.factors.end(), e) != 1) continue;
        if (!over.contains(w.reduced & bank_[a].axes)) continue;
        const Coefficient minus = Coefficient::of(-1);
        const ClassId shifted =
            bank_.exponential(bank_.linear({{Coefficient{}, a}, {minus, bank_.maximum(over, a)}}));
        const auto replaced = [&](const View& x) {
          std::vector<ClassId> factors = x.factors;
          std::replace(factors.begin(), factors.end(), e, shifted);
          return bank_.product(x.coefficient, x.reduced, factors);
        };
        std::vector<ClassId> factors;
        for (ClassId f : v.factors) {
          if (f == quotient)
            factors.push_back(bank_.reciprocal(replaced(divisor)));
          else if (f == dividend)
            factors.push_back(replaced(w));
          else
            factors.push_back(f);
        }
        expect(c, bank_.product(v.coefficient, {}, factors));
      }
    }
  }

  void invert_product(ClassId c, const View& v) {
    for (const View& w : views(v.factors[0])) {
      if (w.kind != ViewKind::kProduct || !w.reduced.empty() || w.factors.size() < 2) continue;
      const auto coefficient = invert(w.coefficient);
      if (!coefficient) continue;
      std::vector<ClassId> factors;
      for (ClassId f : w.factors) factors.push_back(bank_.reciprocal(f));
      expect(c, bank_.product(*coefficient, {}, factors, range(c)));
    }
  }

  void split_maximum(ClassId c, const View& v) {
    for (AxisId a : outermost(bank_, v.reduced)) {
      AxisSet inner = v.reduced;
      inner.erase(a);
      if (inner.empty()) continue;
      expect(c, bank_.maximum(AxisSet::of(a), bank_.maximum(inner, v.factors[0])));
    }
  }

  void split_exponentials(ClassId c) {
    for (const View& v : views(c)) {
      if (v.kind != ViewKind::kExp) continue;
      for (const Bank::Shifted& s : bank_.shifted_by_maximum(v.factors[0])) {
        for (AxisId a : outermost(bank_, s.over)) {
          AxisSet inner = s.over;
          inner.erase(a);
          if (inner.empty()) continue;
          const ClassId partial = bank_.maximum(inner, s.from);
          // The maximum as a maximum of partial ones, so that the second exponent is known <= 0.
          expect(s.maximum, bank_.maximum(AxisSet::of(a), partial));
          const Coefficient minus = Coefficient::of(-1);
          const ClassId near = bank_.linear({{Coefficient{}, s.from}, {minus, partial}});
          const ClassId far = bank_.linear({{Coefficient{}, partial}, {minus, s.maximum}});
          const ClassId product =
              bank_.product({}, {}, {bank_.exponential(near), bank_.exponential(far)}, range(c));
          expect(c, product);
        }
      }
      split_below_larger(c, v.factors[0]);
    }
  }

  // The maximum may be one of several values that are not exceeded (the sink of an attention).
  void split_below_larger(ClassId c, ClassId exponent) {
    for (const Bank::ShiftedByLarger& s : bank_.shifted_by_larger(exponent)) {
      if (s.maximum == s.from) continue;
      const Coefficient minus = Coefficient::of(-1);
      const ClassId near = bank_.linear({{Coefficient{}, s.from}, {minus, s.maximum}});
      const ClassId far = bank_.linear({{Coefficient{}, s.maximum}, {minus, s.larger}});
      expect(c, bank_.product({}, {}, {bank_.exponential(near), bank_.exponential(far)}, range(c)));
    }
  }

  Bank& bank_;
  const SearchSpace& space_;
  std::set<std::pair<ClassId, ClassId>> better_;
  RewriteReport report_;
};

}  // namespace

std::span<const Axiom> axioms() { return kAxioms; }

RewriteReport saturate(Bank& bank, const SearchSpace& space, const std::function<bool()>& stop) {
  return Rewriter(bank, space).run(stop);
}

}  // namespace sundog::search
