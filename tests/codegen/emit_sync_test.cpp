#include "codegen/emit_sync.h"

#include <gtest/gtest.h>

namespace sundog::codegen {
namespace {

using Need = Hazards::Need;

TEST(EmitSync, ReadAfterWriteNeedsABarrier) {
  Hazards h;
  EXPECT_EQ(h.before_read({0, 64}), Need::kNothing);
  h.write({0, 64});
  EXPECT_EQ(h.before_read({32, 96}), Need::kBarrier);
  EXPECT_EQ(h.before_read({64, 96}), Need::kNothing);
  h.barrier(false);
  EXPECT_EQ(h.before_read({0, 64}), Need::kNothing);
}

TEST(EmitSync, WriteAfterReadNeedsABarrierAndReadAfterReadNone) {
  Hazards h;
  h.read({0, 64});
  EXPECT_EQ(h.before_read({0, 64}), Need::kNothing);
  EXPECT_EQ(h.before_write({0, 64}), Need::kBarrier);
}

TEST(EmitSync, CopiesMustBeWaitedFor) {
  Hazards h;
  h.copy({0, 64});
  h.write({128, 192});
  EXPECT_EQ(h.before_read({0, 64}), Need::kWaitAndBarrier);
  h.barrier(false);
  EXPECT_EQ(h.before_read({0, 64}), Need::kWaitAndBarrier);
  EXPECT_EQ(h.before_read({128, 192}), Need::kNothing);
  h.barrier(true);
  EXPECT_EQ(h.before_write({0, 64}), Need::kNothing);
}

TEST(EmitSync, MergeCoversWhatItTookOver) {
  Hazards a, b;
  a.read({0, 64});
  b.write({64, 128});
  EXPECT_FALSE(a.covers(b));
  a.merge(b);
  EXPECT_TRUE(a.covers(b));
  EXPECT_EQ(a.before_read({64, 65}), Need::kBarrier);
}

}  // namespace
}  // namespace sundog::codegen
