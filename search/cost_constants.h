// The constants of the cost model, which search/cost.cpp alone reads: times in us, rates as shares
// of the device's.  docs/search.md says what they were set against.
#pragma once

namespace sundog::search {

inline constexpr double kStagesGain = 0.985;  // of the time with fewer: what more stages must gain
inline constexpr double kLeastInFlight = 0.17;  // of a stage, where there is but one
inline constexpr int kMostStages = 8;
inline constexpr double kOverlapLoss =
    0.054;  // share of the other resources' time that does not overlap
inline constexpr double kComputeLoss =
    0.2;  // likewise of loading and computing, whichever is shorter
inline constexpr double kStepShare = 0.71;   // of the dependent steps that add to the units' time
inline constexpr double kStepUs = 0.09;      // one dependent step of an iteration, latency bound
inline constexpr double kStepUsBulk = 0.12;  // without a barrier of the block in each iteration
inline constexpr double kComputeLossBulk = 0.006;
inline constexpr double kComputeLossThree = 0.22;  // with three stages
inline constexpr double kComputeLossTwo = 0.12;    // with two stages
inline constexpr double kIdleShareBulk = 0.98;
inline constexpr double kL2GainBulk = 1.5;  // whole lines, and no threads in between
inline constexpr double kJoinUs = 0.48;     // adding the parts of warps that share a reduced axis
inline constexpr double kJoinWarps = 6.8;   // up to that many; of more in proportion
inline constexpr double kLoadUs =
    0.26;  // until a load to registers in a loop is there: nothing runs ahead
inline constexpr double kJoinLoopUs =
    0.33;  // as kJoinUs, in each iteration: two barriers and the way there
inline constexpr double kLoadSlots = 6.9;  // instructions an element that a thread loads itself
inline constexpr double kStoreSlots =
    5.5;  // of one that it rounds, masks and puts into shared memory
inline constexpr double kConvertSlots = 0.035;
inline constexpr double kWidenSlots =
    1;  // instructions an element of 8 bits that becomes part of a word of a tensor core
inline constexpr double kNarrowSlots = 2;  // of one that a thread makes a float
inline constexpr double kPairTurns =
    2;  // of pairs of 8 bits: half words take as long as whole ones
inline constexpr double kWindowSlots = 29;  // of one in a row that begins anywhere
inline constexpr double kWindowUs =
    0.1;  // of an iteration: while windows are taken none are on their way
inline constexpr double kBurst = 64;       // bytes that memory gives at once
inline constexpr double kCopySlots = 6;    // instructions a copy by a thread
inline constexpr double kWord = 4;         // bytes: rows that begin at less are loaded in windows
inline constexpr double kCopyWord = 16;    // that a thread copies at most at once
inline constexpr double kOddTile = 1.3;    // times that, where indices are not just bits
inline constexpr double kReduceUs = 0.22;  // a reduction over the threads of a block, outside loops
inline constexpr double kReduceWarpUs = 0.0057;  // more, for each warp that comes to its barrier
inline constexpr double kSingleShot = 211e3;     // bytes a block asks for at once; the rest queues
inline constexpr double kBlockUs = 0.117;        // of an SM, to start a block
inline constexpr double kMostShareOfSm = 3.7;  // of an SM's even share of memory: 64 bytes a clock
inline constexpr double kReservedShared = 1024;  // bytes a block that the runtime keeps
inline constexpr double kRegistersKept = 48;     // a thread: addresses, indices, temporaries
inline constexpr double kRegistersKeptScalar = 16;
inline constexpr double kRegistersKeptGroups = 30;  // operands of warp groups are not among them
inline constexpr double kLoadedLate =
    0.5;  // of what is loaded to registers flat, that is not held at once
inline constexpr double kWindowRegisters =
    2;  // times what is fetched in windows: the words of a run
inline constexpr double kMostRegisters = 255;
inline constexpr double kMostRegistersScalar =
    112;  // without tensor cores more data a thread gains nothing
inline constexpr double kMeetsShare =
    0.54;  // of the units' time that threads which meet do not overlap
inline constexpr double kWarpsToOverlap = 16;  // on an SM, for its units to work side by side
inline constexpr double kWarpsToFill = 4.3;    // on an SM, for full instruction rate
inline constexpr double kShortRunLoss = 3.8;   // exponent of what shorter ones lose, of bulk copies
inline constexpr double kShortestRun = 64;     // bytes in a row that memory gives at its full rate
inline constexpr double kLine = 128;           // bytes of a line of the cache
inline constexpr double kPartOfLine =
    0.03;  // of the rate that is lost where a block reads half of each
inline constexpr double kIdleShare =
    0.4;  // of the memory rate that is left however few SMs ask for it
inline constexpr double kOwnCache = 32e3;    // bytes of an SM's first-level cache that last
inline constexpr double kMostL2Share = 0.7;  // of the L2 that data survives in between two passes
inline constexpr double kScalarConflict = 1.5;  // turns that words of neighbours' rows take
inline constexpr double kHitTime = 0.55;  // until data of the L2 is there, against that of memory
inline constexpr double kHeldBulk = 0.2;  // of a stage, that is not under way
inline constexpr double kReadBulk = 0.3;  // likewise, where reading takes all of the time
inline constexpr double kAtom = 16 * 8 * 16;  // multiply-adds of one instruction for a tensor core
inline constexpr double kAtomUs = 0.0178;     // of a warp, until its next one: 35 cycles
inline constexpr double kLanesOfRow = 4;      // that hold a row of a product's result
inline constexpr double kRowTurns = 13;  // of a partial sum over rows: shuffles, and to other warps
inline constexpr double kClusterSpread =
    0.07;                                  // of the time of memory: clusters lie unevenly on SMs
inline constexpr double kRemoteTurns = 2;  // of shared memory, for a word of another block
inline constexpr double kLongQueue =
    74e3;  // bytes an SM has asked for, beyond which more is a loss
inline constexpr double kQueueLoss = 0.09;  // of the rate, each time that again

}  // namespace sundog::search
