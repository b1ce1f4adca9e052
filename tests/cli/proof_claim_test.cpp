#include "cli/proof_claim.h"

#include <gtest/gtest.h>

#include "cli/schedule_check.h"
#include "verify/prove.h"
#include "verify/smt_safety.h"

namespace sundog::cli {
namespace {

constexpr const char* kAll = "proved for all sizes of n, h";
constexpr const char* kAt = "proved at n=4 h=8";
constexpr const char* kUnknown = "unknown: the time limit was reached";

// The texts are those that the verifier makes.
std::string proof_text(const std::string& statement, const std::vector<std::string>& given) {
  verify::Proof proof;
  proof.outcome = verify::Proof::kProved;
  proof.statement = statement;
  proof.assumptions = given;
  return to_string(proof);
}

TEST(ProofClaim, IsSplitIntoItsParts) {
  const ProofClaim both = split_proof(std::string(kAll) + std::string(kOfEmittedKernels) + "x");
  EXPECT_EQ(both.mugraph, kAll);
  EXPECT_EQ(both.kernels, "x");
  EXPECT_EQ(split_proof(kAt).mugraph, kAt);
  EXPECT_EQ(split_proof(kAt).kernels, "");
}

TEST(ProofClaim, MoreThanIsFoundFails) {
  for (const auto& [claimed, found] : std::vector<std::pair<std::string, std::string>>{
           {kAll, kAt},
           {kAll, kUnknown},
           {kAt, kUnknown},
           {kUnknown, "refuted: output 'y' differs"},
           {proof_text("for all sizes of n", {}), proof_text("for all sizes of n", {"a"})},
           {proof_text("for all sizes of n", {"a"}), proof_text("for all sizes of n", {"b"})},
           {proof_text("for all sizes of n", {"a", "b"}),
            proof_text("for all sizes of n", {"a", "c"})}}) {
    const Finding finding = compare_proofs(claimed, found);
    EXPECT_EQ(finding.failure, "the result claims more: " + claimed) << found;
    EXPECT_EQ(finding.text, found);
  }
  EXPECT_EQ(compare_proofs(kAll, "proved for all sizes of n").failure,
            "the result claims another: " + std::string(kAll));
  EXPECT_EQ(compare_proofs("proved at n=4 h=9", kAt).failure,
            "the result claims another: proved at n=4 h=9");
}

TEST(ProofClaim, LessThanIsFoundHoldsAndIsSaid) {
  for (const auto& [claimed, found] : std::vector<std::pair<std::string, std::string>>{
           {kAt, kAll},
           {kUnknown, kAt},
           {kUnknown, kAll},
           {proof_text("for all sizes of n", {"b", "a"}), proof_text("for all sizes of n", {"b"})},
           {proof_text("for all sizes of n", {"a"}), proof_text("for all sizes of n", {})}}) {
    const Finding finding = compare_proofs(claimed, found);
    EXPECT_EQ(finding.failure, "") << claimed;
    EXPECT_EQ(finding.text, found + " (the result says less: " + claimed + ")");
  }
}

TEST(ProofClaim, TheSameHolds) {
  for (const std::string& text :
       {std::string(kAll), std::string(kAt), proof_text("for all sizes of n", {"a", "b"})}) {
    EXPECT_EQ(compare_proofs(text, text).failure, "");
    EXPECT_EQ(compare_proofs(text, text).text, text);
  }
  const Finding order = compare_proofs(proof_text("at n=4", {"a", "b"}),  //
                                       proof_text("at n=4", {"b", "a"}));
  EXPECT_EQ(order.failure, "");
  const Finding reason = compare_proofs(kUnknown, "unknown: it contains NaN");
  EXPECT_EQ(reason.failure, "") << "neither claims anything";
  EXPECT_EQ(reason.text, "unknown: it contains NaN");
}

TEST(ProofClaim, OfKernelsComparesLikewise) {
  verify::Safety safe, other, open, faulty;
  safe.bounds = other.bounds = 3;
  safe.races = 2;
  other.races = 1;
  open.undecided = {"k0: race (timeout)"};
  faulty.undecided = {"k0: race (timeout)"};
  faulty.faults = {"k1: store (i = 3)"};
  const std::string shown = to_string(safe), less = to_string(open), fault = to_string(faulty);
  EXPECT_EQ(compare_safety(shown, shown).failure, "");
  EXPECT_EQ(compare_safety(shown, shown).text, shown);
  EXPECT_EQ(compare_safety(less, shown).failure, "");
  EXPECT_EQ(compare_safety(less, shown).text, shown + " (the result says less: " + less + ")");
  EXPECT_EQ(compare_safety(less, "undecided: k0: bound (timeout)").failure, "");
  EXPECT_EQ(compare_safety(shown, less).failure, "the result claims more: " + shown);
  EXPECT_EQ(compare_safety(shown, fault).failure, "the result claims more: " + shown);
  EXPECT_EQ(compare_safety(less, fault).failure, "the result claims more: " + less);
  EXPECT_EQ(compare_safety(to_string(other), shown).failure,
            "the result claims another: " + to_string(other));
}

}  // namespace
}  // namespace sundog::cli
