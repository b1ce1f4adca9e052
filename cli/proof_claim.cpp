#include "cli/proof_claim.h"

#include <algorithm>
#include <vector>

#include "cli/schedule_check.h"

namespace sundog::cli {
namespace {

constexpr std::string_view kGiven = "; given: ";
constexpr std::string_view kSeparator = "; ";

// How much a text says: the greater, the more.  What says something of its own is compared as text.
enum class Strength { kRefuted, kNothing, kAtDeclaredSizes, kForAllSizes };

Strength strength_of_proof(std::string_view text) {
  if (text.starts_with("proved for all sizes")) return Strength::kForAllSizes;
  if (text.starts_with("proved")) return Strength::kAtDeclaredSizes;
  return text.starts_with("refuted") ? Strength::kRefuted : Strength::kNothing;
}

Strength strength_of_safety(std::string_view text) {
  if (text.starts_with("a fault")) return Strength::kRefuted;
  return text.ends_with(" shown") ? Strength::kForAllSizes : Strength::kNothing;
}

Finding as_claimed(std::string_view found) { return {std::string(found), ""}; }

Finding more_than_claimed(std::string_view claimed, std::string_view found) {
  return {std::string(found) + " (the result says less: " + std::string(claimed) + ")", ""};
}

Finding less_than_claimed(std::string_view claimed, std::string_view found) {
  return {std::string(found), "the result claims more: " + std::string(claimed)};
}

Finding other_than_claimed(std::string_view claimed, std::string_view found) {
  return {std::string(found), "the result claims another: " + std::string(claimed)};
}

// In order of their names.
std::vector<std::string_view> assumptions(std::string_view proof) {
  const size_t at = proof.find(kGiven);
  std::vector<std::string_view> all;
  if (at == std::string_view::npos) return all;
  for (std::string_view rest = proof.substr(at + kGiven.size());;) {
    const size_t end = rest.find(kSeparator);
    all.push_back(rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + kSeparator.size());
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

ProofClaim split_proof(std::string_view proof) {
  const size_t at = proof.find(kOfEmittedKernels);
  if (at == std::string_view::npos) return {std::string(proof), ""};
  return {std::string(proof.substr(0, at)),
          std::string(proof.substr(at + kOfEmittedKernels.size()))};
}

Finding compare_proofs(std::string_view claimed, std::string_view found) {
  const Strength was = strength_of_proof(claimed), is = strength_of_proof(found);
  if (was < is) return more_than_claimed(claimed, found);
  if (is < was) return less_than_claimed(claimed, found);
  if (is <= Strength::kNothing || claimed == found) return as_claimed(found);
  if (claimed.substr(0, claimed.find(kGiven)) != found.substr(0, found.find(kGiven))) {
    return other_than_claimed(claimed, found);
  }
  const auto before = assumptions(claimed), now = assumptions(found);
  if (before == now) return as_claimed(found);
  if (std::includes(before.begin(), before.end(), now.begin(), now.end())) {
    return more_than_claimed(claimed, found);
  }
  return less_than_claimed(claimed, found);
}

Finding compare_safety(std::string_view claimed, std::string_view found) {
  const Strength was = strength_of_safety(claimed), is = strength_of_safety(found);
  if (was < is) return more_than_claimed(claimed, found);
  if (is < was) return less_than_claimed(claimed, found);
  if (is <= Strength::kNothing || claimed == found) return as_claimed(found);
  return other_than_claimed(claimed, found);
}

}  // namespace sundog::cli
