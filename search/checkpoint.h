// A search between two rounds as bytes, so that it survives the end of its process.
//
// The bytes carry a checksum and the identity of the search.  Reading trusts nothing: what is
// damaged, or belongs to another search, is an Error and leaves everything as it was.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"
#include "core/program.h"
#include "core/status.h"
#include "search/rounds.h"
#include "search/search_parts.h"

namespace sundog::search {

// Of the search, not of the file: raised with each change after which the same decisions lead
// elsewhere.
inline constexpr uint64_t kSearchVersion = 3;

// What must agree for a checkpoint to be of use.
struct CheckpointIdentity {
  uint64_t version = kSearchVersion;
  uint64_t program = 0, device = 0, space = 0;
  uint64_t options = 0;  // seed, limit of memory
  uint64_t banks = 0;    // terms and nodes, by position: another build may number them differently
  bool operator==(const CheckpointIdentity&) const = default;
};
CheckpointIdentity checkpoint_identity(const Program& program, const Device& device,
                                       const SearchSpace& space, uint64_t seed,
                                       uint64_t memory_bytes,
                                       const std::vector<std::unique_ptr<BankRun>>& banks);

struct CheckpointTimes {
  double seconds = 0, to_best = 0;
};

// Between two rounds, or in the middle of the search of the parts of a large program.
struct Checkpoint {
  PartsState parts;
  bool begun = false;  // the search of the whole; what follows is of it
  RoundState rounds;
  CheckpointTimes times;
};

// Whether the bytes are a checkpoint at all, whole or not.
bool is_checkpoint(std::string_view bytes);

// Prices of the round under way, which is not in the state yet, are left out.
std::string write_checkpoint(const CheckpointIdentity& identity, const Checkpoint& checkpoint,
                             const std::vector<std::unique_ptr<BankRun>>& banks);

// Fills `checkpoint` and the tables of `banks`.  As many structures of a kind are kept as its
// incumbents keep.
Status read_checkpoint(std::string_view bytes, const CheckpointIdentity& identity,
                       const Machine& machine, Checkpoint* checkpoint,
                       std::vector<std::unique_ptr<BankRun>>& banks);

}  // namespace sundog::search
