// NOLINT(sundog-mirror): field test, canonical form and float64 against one another
//
// Random pairs of programs: one rewritten by laws of real numbers, or with a slip.  The three know
// nothing of one another; where they disagree, one of them is wrong.  SUNDOG_PAIRS=5000 for more.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>

#include "core/float_algebra.h"
#include "core/interpret.h"
#include "tests/verify/pairs.h"
#include "verify/float_inputs.h"
#include "verify/prove.h"
#include "verify/verdict.h"

namespace sundog::verify {
namespace {

struct Node;
using Tree = std::shared_ptr<const Node>;
struct Node {
  std::string op;  // of leaves: their text
  std::vector<Tree> in;
  bool along_k = false;  // varies along k
};

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  size_t below(size_t n) { return random_() % n; }
  bool chance(int percent) { return below(100) < static_cast<size_t>(percent); }

 private:
  std::mt19937_64 random_;
};

Tree leaf(std::string text, bool along_k = false) {
  return std::make_shared<Node>(Node{std::move(text), {}, along_k});
}

Tree node(const std::string& op, std::vector<Tree> in) {
  bool along_k = false;
  for (const Tree& t : in) along_k |= t->along_k;
  const bool reduces = op == "sum[k]" || op == "mean[k]" || op == "max[k]";
  return std::make_shared<Node>(Node{op, std::move(in), along_k && !reduces});
}

Tree random_tree(Draw& draw, int depth) {
  if (depth == 0 || draw.chance(15)) {
    switch (draw.below(5)) {
      case 0:
        return leaf("A", true);
      case 1:
        return leaf("B", true);
      case 2:
        return leaf("C");
      case 3:
        return leaf("0.5");
    }
    return leaf("3");
  }
  const auto sub = [&] { return random_tree(draw, depth - 1); };
  switch (draw.below(12)) {
    case 0:
    case 1:
      return node("+", {sub(), sub()});
    case 2:
      return node("-", {sub(), sub()});
    case 3:
    case 4:
    case 5:
      return node("*", {sub(), sub()});
    case 6: {
      const Tree x = sub();
      return node("/", {sub(), node("+", {leaf("2"), node("*", {x, x})})});
    }
    case 7:
      return node("exp", {node("tanh", {sub()})});
    case 8:
      return node("exp", {node("*", {leaf("0.25"), random_tree(draw, std::min(depth - 1, 1))})});
    case 9:
      return node("max", {sub(), sub()});
    case 10: {
      const Tree x = sub();
      return node("sqrt", {node("+", {leaf("1"), node("*", {x, x})})});
    }
  }
  const Tree x = sub();
  if (!x->along_k) return x;
  return node(draw.chance(60) ? "sum[k]" : draw.chance(50) ? "mean[k]" : "max[k]", {x});
}

std::string text_of(const Tree& t) {
  if (t->in.empty()) return t->op;
  if (t->op.size() == 1)
    return "(" + text_of(t->in[0]) + " " + t->op + " " + text_of(t->in[1]) + ")";
  std::string text = t->op + "(";
  for (size_t i = 0; i < t->in.size(); ++i) text += (i ? ", " : "") + text_of(t->in[i]);
  return text + ")";
}

// The same function, written otherwise.
Tree rewritten(const Tree& t, Draw& draw) {
  std::vector<Tree> in;
  for (const Tree& each : t->in) in.push_back(rewritten(each, draw));
  if (in.empty()) return t;
  if ((t->op == "+" || t->op == "*" || t->op == "max") && draw.chance(50)) {
    std::swap(in[0], in[1]);
  }
  if (t->op == "-" && draw.chance(50)) {
    return node("+", {in[0], node("*", {leaf("(-1)"), in[1]})});
  }
  if (t->op == "/" && draw.chance(50)) return node("*", {in[0], node("/", {leaf("1"), in[1]})});
  if (t->op == "*" && in[1]->op == "+" && draw.chance(60)) {
    return node("+", {node("*", {in[0], in[1]->in[0]}), node("*", {in[0], in[1]->in[1]})});
  }
  if (t->op == "sum[k]" && in[0]->op == "*" && draw.chance(70)) {
    for (const int i : {0, 1}) {
      const Tree &factor = in[0]->in[static_cast<size_t>(i)],
                 &rest = in[0]->in[static_cast<size_t>(1 - i)];
      if (!factor->along_k && rest->along_k) return node("*", {factor, node("sum[k]", {rest})});
    }
  }
  if (t->op == "sum[k]" && in[0]->op == "+" && in[0]->in[0]->along_k && in[0]->in[1]->along_k) {
    return node("+", {node("sum[k]", {in[0]->in[0]}), node("sum[k]", {in[0]->in[1]})});
  }
  if (t->op == "exp" && in[0]->op == "*" && in[0]->in[1]->op == "+") {
    const Tree c = in[0]->in[0];
    return node("*", {node("exp", {node("*", {c, in[0]->in[1]->in[0]})}),
                      node("exp", {node("*", {c, in[0]->in[1]->in[1]})})});
  }
  return node(t->op, std::move(in));
}

// One slip somewhere, if the draw finds a place.
Tree slipped(const Tree& t, Draw& draw, bool* done) {
  if (!*done && t->in.size() == 2 && draw.chance(30)) {
    *done = true;
    if (draw.chance(50)) return node(t->op, {t->in[0], t->in[0]});
    return node(t->op == "+" ? "*" : t->op == "*" ? "-" : "+", t->in);
  }
  if (!*done && t->in.empty() && draw.chance(20)) {
    *done = true;
    return t->along_k ? leaf(t->op == "A" ? "B" : "A", true) : leaf("C");
  }
  std::vector<Tree> in;
  for (const Tree& each : t->in) in.push_back(slipped(each, draw, done));
  if (in.empty()) return t;
  return node(t->op, std::move(in));
}

std::string program_text(const Tree& t) {
  return "program p(n = 3, k = 4) {\n input A: f32[n, k] in [-1, 1]\n input B: f32[k] in [-1, 1]\n"
         " input C: f32[n] in [-1, 1]\n output Y: f32[n, k] = " +
         text_of(t) + " + 0 * A\n}\n";
}

// Whether the two differ in float64; nothing if they cannot be run.
std::optional<bool> differ(const Program& p, const Program& q) {
  for (const uint64_t seed : {71, 72, 73}) {
    const auto inputs = float_inputs(p, InputKind::kOrdinary, seed);
    const std::span<const TensorValues<double>> in(inputs);
    Float64 algebra({.round_stores = false});
    const auto x = interpret(algebra, p, in), y = interpret(algebra, q, in);
    if (!x.ok() || !y.ok()) return std::nullopt;
    for (size_t i = 0; i < (*x)[0].values.size(); ++i) {
      const double a = (*x)[0].values[i], b = (*y)[0].values[i];
      if (!std::isfinite(a) || std::fabs(a) > 1e12) return std::nullopt;
      if (!(std::fabs(a - b) <= 1e-9 * (1 + std::fabs(a)))) return true;
    }
  }
  return false;
}

TEST(CrossCheck, ThreeOraclesAgree) {
  const char* asked = std::getenv("SUNDOG_PAIRS");
  const int wanted = asked != nullptr ? std::atoi(asked) : 60;
  int pairs = 0, equal = 0, known_equal = 0, different = 0, proved = 0, undecided = 0;
  for (uint64_t seed = 0; pairs < wanted; ++seed) {
    Draw draw(seed);
    const Tree tree = random_tree(draw, 4);
    bool slip = false;
    const bool same = draw.chance(50);
    const Tree other = same ? rewritten(tree, draw) : slipped(tree, draw, &slip);
    if (text_of(other) == text_of(tree)) continue;
    const auto p = parse_program(program_text(tree), "p.sd");
    const auto q = parse_program(program_text(other), "q.sd");
    if (!p.ok() || !q.ok()) continue;
    const std::optional<bool> oracle = differ(*p, *q);
    if (!oracle) continue;
    ++pairs;
    const std::string what =
        "seed " + std::to_string(seed) + "\n" + program_text(tree) + program_text(other);
    if (same) {
      EXPECT_FALSE(*oracle) << "the rewriting is wrong: " << what;
    }
    VerifyOptions options;
    options.numerics = false;
    const Verdict verdict = verify(*p, *q, options);
    const std::string proof = to_string(prove(*p, *q, {0.5, Rounding::kWide}));
    const bool is_proved = proof.starts_with("proved");
    if (*oracle) {
      EXPECT_NE(verdict.answer, Verdict::kEquivalent) << what;
      EXPECT_FALSE(is_proved) << proof << ", " << what;
    } else if (same) {  // a slip may show on other inputs than the oracle's
      EXPECT_NE(verdict.answer, Verdict::kDifferent) << verdict.reason << ", " << what;
    }
    if (is_proved) {
      EXPECT_NE(verdict.answer, Verdict::kDifferent) << what;
    }
    equal += verdict.answer == Verdict::kEquivalent;
    known_equal += same;
    different += verdict.answer == Verdict::kDifferent;
    undecided += verdict.answer == Verdict::kUnknown;
    proved += is_proved;
  }
  std::printf(
      "%d pairs, %d of them rewritten: %d equivalent, %d different, %d unknown; %d proved\n", pairs,
      known_equal, equal, different, undecided, proved);
  EXPECT_GE(equal * 10, known_equal * 6);
  EXPECT_GT(different, wanted / 5);
  EXPECT_GT(proved, wanted / 10);
}

}  // namespace
}  // namespace sundog::verify
