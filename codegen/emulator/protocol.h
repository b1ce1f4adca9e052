// The file through which the caller and the child process of the emulator talk.  The caller writes
// everything, the child answers in `Answer` and in the result area of each writable buffer; both
// map the file.  Plain data, read by one machine with one build of Sundog: no versions, no padding
// rules.
//
//   FileHeader | Answer | FileLaunch[] | FileBuffer[] | int arguments[] | buffer contents and
//   results
#ifndef SUNDOG_EMULATOR_PROTOCOL_H
#define SUNDOG_EMULATOR_PROTOCOL_H

#include <cstdint>

#include "residue.h"

namespace sd::emulator {

inline constexpr uint64_t kPage = 4096;
inline constexpr int kMaxProblems = 64;
// Space kept free before and after a buffer and the arena, so that a wild address finds nothing.
inline constexpr uint64_t kGuardBytes = 1 << 20;

struct FileBuffer {
  uint64_t bytes;
  uint64_t misalignment;  // of the first byte, from a multiple of 256
  uint64_t contents;      // file offset, a multiple of kPage plus misalignment
  uint64_t results;       // file offset, as contents; 0 for a read-only buffer
  int32_t writable;
};

struct FileLaunch {
  char kernel[256];
  int32_t unit;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t cluster;  // blocks, along x
  uint64_t shared_bytes;
  uint64_t first_argument;  // index into arguments
  int32_t argument_count;
  int32_t dependent;  // may start before the launch before it is done
  // The child's answer, of the first schedule (banks.h).
  uint64_t bank_turns, bank_conflicts;
};

struct FileProblem {
  char kind[32];
  char text[384];
  int32_t launch;    // -1: none
  int32_t schedule;  // the first one that showed it
  uint32_t block[3];
  int32_t thread;  // -1: the whole block
  uint64_t pc;     // offset in the program, 0 if unknown
  uint64_t count;  // how often it was seen
};

// Everything the child says.
struct Answer {
  int32_t finished;
  int32_t problem_count;
  uint64_t barriers;
  uint64_t collectives;
  uint64_t shared_accesses;
  uint64_t open_comparisons;  // of residues
  double seconds;
  int32_t launch;  // the one that runs now
  int32_t schedule;
  FileProblem problems[kMaxProblems];
};

struct FileHeader {
  uint64_t bytes;                         // of the whole file
  uint64_t launches, buffers, arguments;  // file offsets
  uint64_t launch_count, buffer_count;
  uint64_t seed;
  int32_t schedules;
  int32_t threads;
  ResidueField field;  // of kernels in residues
  Answer answer;
};

}  // namespace sd::emulator

#endif  // SUNDOG_EMULATOR_PROTOCOL_H
