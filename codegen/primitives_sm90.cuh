// Primitives of sm_90a, behind primitives.cuh: products of warp groups.  Under a plain C++ compiler
// they come from the emulator.
#if !defined(SUNDOG_PRIMITIVES_SM90_CUH) && !defined(SUNDOG_EMULATOR)
#define SUNDOG_PRIMITIVES_SM90_CUH

namespace sd {

// What threads wrote to shared memory (cp_async included, behind its wait) is seen, after a barrier
// behind this, by the units that read it without threads: products of warp groups, bulk copies.
SD_INLINE void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// --- products of a warp group: four neighbouring warps, the first a multiple of four ---

// How an operand lies in the arena, for the instruction: rows of kRow bytes (32, 64 or 128), in
// groups of eight, 16-byte word w of row r at w ^ (r * kRow / 128 % (kRow / 16)); `first` is a word
// of such a tile, whose rows start at a multiple of 8 kRow bytes.  Along K in the rows: `across`
// does not matter.  Across K (rows are steps of K): `across` is the distance in bytes of the next
// kRow bytes of a row.
template <int kRow>
SD_INLINE uint64_t matrix_tile(const void* first, int across) {
  static_assert(kRow == 32 || kRow == 64 || kRow == 128, "rows of 32, 64 or 128 bytes");
  const uint64_t mode = kRow == 128 ? 1 : kRow == 64 ? 2 : 3;
  return (mode << 62) | (static_cast<uint64_t>(8 * kRow / 16) << 32) |
         (static_cast<uint64_t>(across / 16 & 0x3fff) << 16) |
         ((shared_address(first) & 0x3ffff) >> 4);
}
// The same so many bytes further on.
SD_INLINE uint64_t matrix_tile_at(uint64_t tile, int bytes) {
  return tile + static_cast<uint64_t>(bytes / 16);
}

// Before the first product that reads registers written otherwise, accumulators included.
SD_INLINE void warpgroup_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// Closes a group of products.
SD_INLINE void warpgroup_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until all products are done; `d` are accumulators of some of them.
template <int kCount>
SD_INLINE void warpgroup_wait(float (&d)[kCount][4]) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    asm volatile("" : "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])::"memory");
  }
}

namespace detail {

template <class T>
constexpr bool kIsBf16 = false;
template <>
constexpr bool kIsBf16<bf16> = true;

// One instruction of 64 x kN x 16: its registers, then the numbers of the operands behind them and
// the constraints of the registers.
template <int kN>
struct Product;
#define SD_SHARED(type, n, registers, a0, b0, use, ta, tb, ...)                      \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " use                               \
               ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type \
               " {" registers "}, " a0 ", " b0 ", p, 1, 1, " ta ", " tb ";\n}"       \
               : __VA_ARGS__                                                         \
               : "l"(a), "l"(b), "r"(add), "n"(kAcrossA), "n"(kAcrossB))
#define SD_MIXED(type, n, registers, a0, a1, a2, a3, b0, use, tb, ...)                           \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " use                                           \
               ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type             \
               " {" registers "}, {" a0 ", " a1 ", " a2 ", " a3 "}, " b0 ", p, 1, 1, " tb ";\n}" \
               : __VA_ARGS__                                                                     \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(kAcrossB))
#define SD_WIDTH(n, registers, i0, i1, i2, i3, i4, i5, i6, ...)                             \
  template <>                                                                               \
  struct Product<n> {                                                                       \
    template <class T, int kAcrossA, int kAcrossB>                                          \
    static SD_INLINE void run(float (*d)[4], uint64_t a, uint64_t b, int add) {             \
      if constexpr (kIsBf16<T>) {                                                           \
        SD_SHARED("bf16", n, registers, i0, i1, i2, i3, i4, __VA_ARGS__);                   \
      } else {                                                                              \
        SD_SHARED("f16", n, registers, i0, i1, i2, i3, i4, __VA_ARGS__);                    \
      }                                                                                     \
    }                                                                                       \
    template <class T, int kAcrossB>                                                        \
    static SD_INLINE void run(float (*d)[4], const uint32_t (&a)[4], uint64_t b, int add) { \
      if constexpr (kIsBf16<T>) {                                                           \
        SD_MIXED("bf16", n, registers, i0, i1, i2, i3, i4, i5, i6, __VA_ARGS__);            \
      } else {                                                                              \
        SD_MIXED("f16", n, registers, i0, i1, i2, i3, i4, i5, i6, __VA_ARGS__);             \
      }                                                                                     \
    }                                                                                       \
  };
#define SD_D(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define SD_D4(j) SD_D(j), SD_D(j + 1), SD_D(j + 2), SD_D(j + 3)
#define SD_R16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define SD_R32 \
  SD_R16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SD_R64                                                                            \
  SD_R32                                                                                  \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48" \
  ", %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

SD_WIDTH(8, "%0, %1, %2, %3", "%4", "%5", "%6", "%7", "%8", "%9", "%10", SD_D(0))
SD_WIDTH(16, "%0, %1, %2, %3, %4, %5, %6, %7", "%8", "%9", "%10", "%11", "%12", "%13", "%14",
         SD_D(0), SD_D(1))
SD_WIDTH(32, SD_R16, "%16", "%17", "%18", "%19", "%20", "%21", "%22", SD_D4(0))
SD_WIDTH(64, SD_R32, "%32", "%33", "%34", "%35", "%36", "%37", "%38", SD_D4(0), SD_D4(4))
SD_WIDTH(128, SD_R64, "%64", "%65", "%66", "%67", "%68", "%69", "%70", SD_D4(0), SD_D4(4), SD_D4(8),
         SD_D4(12))

#undef SD_SHARED
#undef SD_MIXED
#undef SD_WIDTH
#undef SD_D
#undef SD_D4
#undef SD_R16
#undef SD_R32
#undef SD_R64

}  // namespace detail

// d[64, kN] (+)= a[64, 16] * b[16, kN] in f32, adding to d unless `add` is false; kN is 8, 16, 32,
// 64 or 128.  The warps hold 16 rows of d each, as mma_m16n8k16 would give them: d[j] are columns
// 8 j and on.  `kAcross`: the tile's rows are steps of K.  Starts the product; operands and d are
// not to be touched before warpgroup_wait.
template <class T, int kN, bool kAcrossA, bool kAcrossB>
SD_INLINE void warpgroup_mma(float (*d)[4], uint64_t a, uint64_t b, bool add) {
  detail::Product<kN>::template run<T, kAcrossA, kAcrossB>(d, a, b, add);
}
// The same with a in registers, as mma_m16n8k16 has it.
template <class T, int kN, bool kAcrossB>
SD_INLINE void warpgroup_mma(float (*d)[4], const uint32_t (&a)[4], uint64_t b, bool add) {
  detail::Product<kN>::template run<T, kAcrossB>(d, a, b, add);
}

}  // namespace sd

#endif  // SUNDOG_PRIMITIVES_SM90_CUH
