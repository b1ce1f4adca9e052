// Primitives behind primitives.cuh, for rows that begin anywhere (codegen/emit_window.cpp).  Under
// a plain C++ compiler they come from the emulator.
#if !defined(SUNDOG_PRIMITIVES_WINDOW_CUH) && !defined(SUNDOG_EMULATOR)
#define SUNDOG_PRIMITIVES_WINDOW_CUH

namespace sd {

// --- runs that begin anywhere ---

// What kCount neighbours in global memory lie in, whose first may be any element: the word of 16
// bytes of the first, and the one behind it if they go on into that.
template <class T, int kCount>
struct Window {
  static constexpr int kWord = 16 / sizeof(T);
  static_assert(sizeof(T) <= 4 && kCount <= kWord, "a window has two words");
  uint4 low, high;
};
namespace detail {

// Not moved: a window is fetched well before it is needed.
SD_INLINE uint4 load_word(const void* src) {
  uint4 word;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
               : "l"(src));
  return word;
}

}  // namespace detail
// Fetches the run from tensor[index] on, of a tensor that begins at a multiple of 16 bytes, has
// `count` elements and is not written now.  What lies beyond it comes as zero.
template <class T, int kCount, class Index>
SD_INLINE void load_window(Window<T, kCount>& window, const T* tensor, Index index, int64_t count) {
  constexpr int kWord = Window<T, kCount>::kWord;
  const Index within = index & (kWord - 1), first = index - within;
  const bool both = within > kWord - kCount;
  const Index left = static_cast<Index>(count) - first;
  if ((both ? 2 : 1) * kWord <= left) {
    window.low = detail::load_word(tensor + first);
    window.high = {};
    if (both) window.high = detail::load_word(tensor + first + kWord);
  } else {
    T last[2 * kWord] = {};
#pragma unroll
    for (int i = 0; i < 2 * kWord; ++i) {
      if (i < left) last[i] = tensor[first + i];
    }
    memcpy(&window.low, last, 16);
    memcpy(&window.high, last + kWord, 16);
  }
}
// Takes the run, a Vec<T, kCount>, out of its window; `index` as there.
template <class V, class T, int kCount, class Index>
SD_INLINE void align_window(V& dst, const Window<T, kCount>& window, Index index) {
  static_assert(sizeof(V) == sizeof(T) * kCount, "a run of the window's length");
  constexpr int kWords = (sizeof(T) * kCount + 3) / 4;
  const int byte = static_cast<int>(index & (Window<T, kCount>::kWord - 1)) * sizeof(T);
  const uint32_t all[8] = {window.low.x,  window.low.y,  window.low.z,  window.low.w,
                           window.high.x, window.high.y, window.high.z, window.high.w};
  uint32_t pairs[kWords + 2], words[kWords + 1], run[kWords];
#pragma unroll
  for (int i = 0; i < kWords + 2; ++i) pairs[i] = byte & 8 ? all[i + 2] : all[i];
#pragma unroll
  for (int i = 0; i < kWords + 1; ++i) words[i] = byte & 4 ? pairs[i + 1] : pairs[i];
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    run[i] = __funnelshift_r(words[i], words[i + 1], byte % 4 * 8);
  }
  memcpy(&dst, run, sizeof(dst));
}

}  // namespace sd

#endif  // SUNDOG_PRIMITIVES_WINDOW_CUH
