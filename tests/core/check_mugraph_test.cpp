#include <gtest/gtest.h>

#include <functional>

#include "core/check_kernel.h"
#include "core/check_statements.h"
#include "core/mugraph.h"
#include "tests/core/examples.h"

namespace sundog {
namespace {

using namespace examples;

struct Breach {
  const char* message;
  std::function<void(MuGraph&)> change;
};

// Each breach changes one of these three, which are well formed.
void expect_refused(const Program& p, const MuGraph& g, const std::vector<Breach>& breaches) {
  ASSERT_TRUE(check(g, p).ok()) << check(g, p).error().message;
  for (const Breach& breach : breaches) {
    MuGraph bad = g;
    breach.change(bad);
    const Status status = check(bad, p);
    ASSERT_FALSE(status.ok()) << breach.message;
    const std::string& text = status.error().message;
    EXPECT_NE(text.find(breach.message), std::string::npos) << breach.message << "\n" << text;
  }
}

Kernel& k0(MuGraph& g) { return g.kernels[0]; }
Loop& loop(MuGraph& g) { return std::get<Loop>(k0(g).body[0].node); }

// Factors of fused_rms_norm: n, h.o, h.i, d.o, d.i; computations xs, ws, ss, acc, o.
TEST(CheckMuGraphTest, AxesTensorsAndOrder) {
  const Program p = rms_norm(3, 8, 6);
  expect_refused(
      p, split_rms_norm(p, 2, 2, 3),
      {{"axis 'z' (extent 8) is not axis 'h'", [](MuGraph& g) { g.axes[1].name = "z"; }},
       {"lacks axes of program", [](MuGraph& g) { g.axes.resize(2); }},
       {"axis 'h.s' stems from no grid factor", [](MuGraph& g) { g.axes[3].kernel = 7; }},
       {"which is not in its grid", [](MuGraph& g) { g.axes[3].factor = 0; }},
       {"another extent than the factor 'h.s'", [](MuGraph& g) { g.axes[3].extent = 3; }},
       {"axis 'h' is declared twice", [](MuGraph& g) { g.axes[3].name = "h"; }},
       {"lacks tensors of program", [](MuGraph& g) { g.tensors.resize(1); }},
       {"tensor 'X' is declared otherwise",
        [](MuGraph& g) { g.tensors[0].decl.dtype = DType::kF16; }},
       {"tensor 'O' is out of place",
        [](MuGraph& g) { g.tensors[2].role = TensorRole::kIntermediate; }},
       {"two tensors are called 'part_ss'", [](MuGraph& g) { g.tensors[4].decl.name = "part_ss"; }},
       {"has a stride that is not positive",
        [](MuGraph& g) {
          g.tensors[3].decl.strides = {0, 1};
        }},
       {"the µGraph has no kernel",
        [](MuGraph& g) {
          g.kernels.clear();
          g.tensors.resize(3);
          g.axes.pop_back();
        }},
       {"two kernels are called 'part'", [](MuGraph& g) { g.kernels[1].name = "part"; }},
       {"reads tensor 'part_ss' before any kernel stored it",
        [](MuGraph& g) {
          std::swap(g.kernels[0], g.kernels[1]);
          g.axes[3].kernel = 1;
        }},
       {"no kernel stores tensor 'O'", [](MuGraph& g) { g.kernels[1].body.pop_back(); }},
       {"which the same kernel stores", [](MuGraph& g) {
          Kernel& k = k0(g);
          k.computations[0].value = sum(k, {2, 3}, k.terms.input(3, {at(1), at(0)}));
        }}});
}

TEST(CheckMuGraphTest, FactorsAndTerms) {
  const Program p = rms_norm(3, 8, 6);
  expect_refused(
      p, fused_rms_norm(p, 4, 3),
      {{"a block has 1 to 32 warps, not 0", [](MuGraph& g) { k0(g).warps = 0; }},
       {"factor 'h.o' is declared twice", [](MuGraph& g) { k0(g).factors[2].name = "h.o"; }},
       {"factor 'n' is of an unknown axis", [](MuGraph& g) { k0(g).factors[0].axis = 9; }},
       {"factor 'n' has extent 0", [](MuGraph& g) { k0(g).factors[0].extent = 0; }},
       {"factor 'h.o' has stride 5, but the factors inside it make 4",
        [](MuGraph& g) { k0(g).factors[1].stride = 5; }},
       {"cover 4 of its 8 indices", [](MuGraph& g) { k0(g).factors[1].extent = 1; }},
       {"the grid has an unknown factor", [](MuGraph& g) { k0(g).grid = {12}; }},
       {"factor 'd.o' stands in the grid twice",
        [](MuGraph& g) {
          k0(g).grid = {3, 3};
        }},
       {"an unknown tensor is read", [](MuGraph& g) { k0(g).terms.input(9, {}); }},
       {"tensor 'X' has 2 dimensions and is read with 1",
        [](MuGraph& g) { k0(g).terms.input(0, {at(0)}); }},
       {"tensor 'X' is read at an unknown factor",
        [](MuGraph& g) {
          k0(g).terms.input(0, {at(0), at(20)});
        }},
       {"an unknown computation is read", [](MuGraph& g) { k0(g).terms.local(9, {}); }},
       {"the size of an unknown axis", [](MuGraph& g) { k0(g).terms.size(20); }},
       {"an index uses an unknown factor", [](MuGraph& g) { k0(g).terms.push(IndexTerm{at(20)}); }},
       {"operator exp has 2 operands instead of 1",
        [](MuGraph& g) {
          k0(g).terms.apply(op::Exp{}, {0, 0});
        }},
       {"a reduction runs over no factor",
        [](MuGraph& g) { k0(g).terms.reduce(ReduceKind::kSum, {}, 0); }},
       {"a reduction runs over an unknown factor",
        [](MuGraph& g) { k0(g).terms.reduce(ReduceKind::kSum, AxisSet::of(20), 0); }},
       {"a reduction stands inside a term",
        [](MuGraph& g) { k0(g).terms.apply(op::Exp{}, {k0(g).computations[2].value}); }},
       {"a select uses an unknown factor",
        [](MuGraph& g) {
          k0(g).terms.push(SelectTerm{{at(20), Relation::kLess}, 0, 0});
        }},
       {"two computations are called 'xs'", [](MuGraph& g) { k0(g).computations[1].name = "xs"; }},
       {"computation 'xs' has no value",
        [](MuGraph& g) { k0(g).computations[0].value = kNoTerm; }}});
}

TEST(CheckMuGraphTest, PlacesAndVisibility) {
  const Program p = rms_norm(3, 8, 6);
  const auto value = [](Kernel& k, uint32_t c, TermId v) { k.computations[c].value = v; };
  expect_refused(
      p, fused_rms_norm(p, 4, 3),
      {{"a loop over an unknown factor", [](MuGraph& g) { loop(g).factor = 20; }},
       {"factor 'd.o' is both in the grid and a loop",
        [](MuGraph& g) {
          loop(g).body.push_back({Loop{3, 1, {}, {}}});
        }},
       {"the loop over factor 'h.o' is inside itself",
        [](MuGraph& g) {
          loop(g).body.push_back({Loop{1, 1, {}, {}}});
        }},
       {"has 0 stages", [](MuGraph& g) { loop(g).stages = 0; }},
       {"is trimmed by what is neither",
        [](MuGraph& g) {
          loop(g).trim = {{at(0), Relation::kLess}};
        }},
       {"a loop is trimmed by an unknown factor",
        [](MuGraph& g) {
          loop(g).trim = {{at(20), Relation::kLess}};
        }},
       {"a trim uses the size of an unknown axis",
        [](MuGraph& g) {
          loop(g).trim = {{IndexExpr{0, {}, {{9, 1}}}, Relation::kLess}};
        }},
       {"an unknown computation is computed", [](MuGraph& g) { k0(g).body.push_back(compute(9)); }},
       {"computation 'o': it is computed twice",
        [](MuGraph& g) { k0(g).body.push_back(compute(4)); }},
       {"computation 'ws': no statement computes it",
        [](MuGraph& g) {
          loop(g).body = {compute(0), compute(2)};
          k0(g).body = {k0(g).body[0]};
        }},
       {"it has an unknown factor",
        [](MuGraph& g) {
          k0(g).computations[0].axes = {0, 20};
        }},
       {"factor 'n' is listed twice",
        [](MuGraph& g) {
          k0(g).computations[0].axes = {0, 2, 0};
        }},
       {"factor 'h.o' is in the grid or a loop",
        [](MuGraph& g) {
          k0(g).computations[0].axes = {0, 1, 2};
        }},
       {"factor 'h.i' of its value is missing from its axes",
        [](MuGraph& g) { k0(g).computations[0].axes = {0}; }},
       {"uses factor 'h.o' outside the loop over it",
        [](MuGraph& g) {
          loop(g).body.erase(loop(g).body.begin());
          k0(g).body.insert(k0(g).body.begin(), compute(0));
        }},
       {"it reduces the grid factor 'd.o'",
        [=](MuGraph& g) {
          value(k0(g), 2, sum(k0(g), {1, 2, 3}, local(k0(g), 0)));
        }},
       {"factor 'n' is reduced and an axis of the result",
        [=](MuGraph& g) {
          value(k0(g), 2, sum(k0(g), {0, 1, 2}, local(k0(g), 0)));
        }},
       {"it reduces factor 'h.o' outside the loop over it",
        [=](MuGraph& g) { value(k0(g), 4, sum(k0(g), {1}, local(k0(g), 3))); }},
       {"an accumulator is f32, not f16",
        [](MuGraph& g) { k0(g).computations[3].dtype = DType::kF16; }},
       {"but not over factor 'd.o' inside it",
        [](MuGraph& g) {
          k0(g).grid = {};
          loop(g).body = {{Loop{3, 1, {}, loop(g).body}}};
        }},
       {"reads computation 'ws' before it is computed",
        [](MuGraph& g) { std::swap(loop(g).body[1], loop(g).body[3]); }},
       {"after the loop over factor 'h.o', over which it does not accumulate",
        [=](MuGraph& g) {
          value(k0(g), 4,
                sum(k0(g), {2}, k0(g).terms.apply(op::Mul{}, {local(k0(g), 0), local(k0(g), 1)})));
        }},
       {"computation 'more': reads computation 'xs' after the loop over factor 'h.o'",
        [](MuGraph& g) {  // in a second loop over the same factor
          add(k0(g), "more", {0, 2}, local(k0(g), 0));
          k0(g).body.push_back({Loop{1, 1, {}, {compute(5)}}});
        }},
       {"reads computation 'ss' with axes that it does not have",
        [=](MuGraph& g) { value(k0(g), 4, k0(g).terms.local(2, AxisSet::of(4))); }}});
}

TEST(CheckMuGraphTest, ThreadsAndStores) {
  const Program p = rms_norm(3, 8, 6);
  const auto store = [](MuGraph& g) -> Store& { return std::get<Store>(k0(g).body.back().node); };
  expect_refused(
      p, fused_rms_norm(p, 4, 3),
      {{"an mma atom computes sums of products only",
        [](MuGraph& g) { k0(g).computations[4].mma = MmaAtom::kM16N8K16; }},
       {"swap without an mma atom", [](MuGraph& g) { k0(g).computations[3].mma_swap = true; }},
       {"its warps are split along a factor or count",
        [](MuGraph& g) {
          k0(g).computations[3].warps = {{1, 0}};
        }},
       {"it uses more warps than the 4 of the block",
        [](MuGraph& g) {
          k0(g).computations[3].warps = {{0, 2}, {4, 4}};
        }},
       {"an unknown computation is stored", [=](MuGraph& g) { store(g).computation = 9; }},
       {"it is stored to an unknown tensor", [=](MuGraph& g) { store(g).tensor = 9; }},
       {"the store to tensor 'X' writes an input", [=](MuGraph& g) { store(g).tensor = 0; }},
       {"has 1 indices for 2 dimensions", [=](MuGraph& g) { store(g).index.pop_back(); }},
       {"is indexed by what is no factor of it", [=](MuGraph& g) { store(g).index[0] = at(2); }},
       {"writes elements again for each index of factor 'd.o'",
        [=](MuGraph& g) { store(g).index[1] = at(4); }},
       {"writes elements again for each index of factor 'n'",
        [=](MuGraph& g) { store(g).index[0] = IndexExpr(); }}});
}

// Computations of online_attention: s, m, e, l, o, y; factors q.o, q.i, k.o, k.i, f.
TEST(CheckMuGraphTest, Accumulators) {
  const Program p = attention(4, 6, 3);
  const auto into = [](MuGraph& g, uint32_t from, uint32_t to) {
    k0(g).computations[from].accumulate_into = to;
  };
  expect_refused(
      p, online_attention(p, 2, 3),
      {{"it rescales by what is not computed before it",
        [](MuGraph& g) { k0(g).computations[3].rescale = 4; }},
       {"'s' is no running maximum", [](MuGraph& g) { k0(g).computations[3].rescale = 0; }},
       {"it is no sum over the loops of the maximum 'm'",
        [](MuGraph& g) { k0(g).computations[2].rescale = 1; }},
       {"the maximum 'm' has an axis that it lacks",
        [](MuGraph& g) {
          k0(g).computations[3].axes = {};
          k0(g).computations[3].value = sum(k0(g), {1, 2, 3}, local(k0(g), 2));
        }},
       {"it accumulates into an unknown computation", [=](MuGraph& g) { into(g, 3, 9); }},
       {"are not reductions of one kind", [=](MuGraph& g) { into(g, 3, 1); }},
       {"it and 'l' have different axes", [=](MuGraph& g) { into(g, 4, 3); }},
       {"a rescaled accumulator cannot be shared",
        [=](MuGraph& g) {
          Kernel& k = k0(g);
          add(k, "more", {1}, k.computations[3].value);
          into(g, 6, 3);
          loop(g).body.push_back(compute(6));
        }},
       {"which was added into another accumulator",
        [=](MuGraph& g) {
          Kernel& k = k0(g);
          k.computations[3].rescale = kNone;
          add(k, "more", {1}, k.computations[3].value);
          into(g, 6, 3);
          loop(g).body.push_back(compute(6));
          k.computations[5].value = k.terms.apply(op::Div{}, {local(k, 4), local(k, 6)});
        }},
       {"the loop over factor 'k.o' would add it again and again", [=](MuGraph& g) {
          Kernel& k = k0(g);
          k.computations[3].rescale = kNone;
          add(k, "more", {1}, sum(k, {3}, local(k, 2)));
          into(g, 6, 3);
          k.computations[6].value = sum(k, {4}, k.terms.constant(Number(1)));
          k.body.insert(k.body.begin() + 1, {Loop{2, 1, {}, {compute(6)}}});
        }}});
}

}  // namespace
}  // namespace sundog
