// What a stored result says of proofs against what is found now: of the µGraph, and of its kernels.
//
//   const ProofClaim claimed = split_proof(evidence.proof);
//   const Finding finding = compare_proofs(claimed.mugraph, found);
//   if (!finding.failure.empty()) ...   // the result says more than holds
//
// Proofs have limits on time, so a result may well say less than is found with more of it or by a
// later version.  That is no fault of the result, and is said.
#pragma once

#include <string>
#include <string_view>

namespace sundog::cli {

// The two parts of Evidence::proof; `kernels` is empty if none is claimed.
struct ProofClaim {
  std::string mugraph, kernels;
};
ProofClaim split_proof(std::string_view proof);

struct Finding {
  std::string text;     // what was found; and what was claimed where that is less
  std::string failure;  // empty if all that is claimed was found
};

// `claimed`, `found`: texts of verify::to_string(Proof).  A proof that has fewer assumptions says
// more, so does one for all sizes than one at the declared ones; of what is unknown the reasons are
// not compared.
Finding compare_proofs(std::string_view claimed, std::string_view found);
// The same for texts of verify::to_string(Safety).
Finding compare_safety(std::string_view claimed, std::string_view found);

}  // namespace sundog::cli
