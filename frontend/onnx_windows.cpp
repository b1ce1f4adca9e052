// Convolutions and pools of ONNX: each is a reduction over the elements of a window, which is moved
// over the spatial dimensions (the third and later ones).  What a window meets outside the tensor
// is a select, not a tensor with a margin: nothing larger than the input is ever in memory.
#include <algorithm>
#include <numeric>

#include "frontend/onnx.pb.h"
#include "frontend/onnx_importer.h"

namespace sundog::frontend {
namespace {

constexpr int64_t kLargestWindow = int64_t{1} << 30;  // of each number that describes one

}  // namespace

// The windows of a node over the spatial dimensions of a tensor, one a dimension.
Result<std::vector<Importer::Window>> Importer::windows(const onnx::Node& node, const Ref& x,
                                                        const Extents& kernel) const {
  const size_t spatial = kernel.size();
  if (x.extents.size() != spatial + 2) return bad_input("its window has another rank");
  const auto listed = [&](const char* name, size_t count, int64_t otherwise) {
    Extents values = integers(node, kNoOperand, name).value_or(Extents(count, otherwise));
    values.resize(count, -1);  // refused below
    return values;
  };
  const Extents strides = listed("strides", spatial, 1),
                dilations = listed("dilations", spatial, 1), pads = listed("pads", 2 * spatial, 0);
  const onnx::Attribute* found = attribute(node, "auto_pad");
  const std::string padding = found == nullptr ? "NOTSET" : found->text();
  const bool same = padding == "SAME_UPPER" || padding == "SAME_LOWER";
  if (!same && padding != "NOTSET" && padding != "VALID") return unsupported("auto_pad " + padding);
  std::vector<Window> result;
  for (size_t i = 0; i < spatial; ++i) {
    Window w{kernel[i], strides[i], dilations[i], pads[i], pads[spatial + i], 0};
    if (padding == "VALID") w.before = w.after = 0;
    for (const int64_t each : {w.extent, w.stride, w.spread, w.before + 1, w.after + 1}) {
      if (each < 1 || each > kLargestWindow) return bad_input("its window is none");
    }
    const int64_t extent = x.extents[i + 2], reach = (w.extent - 1) * w.spread;
    if (same) {
      const int64_t places = (extent + w.stride - 1) / w.stride;
      const int64_t margin = std::max<int64_t>(0, (places - 1) * w.stride + reach + 1 - extent);
      w.before = padding == "SAME_UPPER" ? margin / 2 : margin - margin / 2;
      w.after = margin - w.before;
    }
    const int64_t room = extent + w.before + w.after - reach - 1;
    if (room < 0) return bad_input("its window is larger than the tensor");
    const bool round_up = integer(node, "ceil_mode", 0) != 0;
    w.places = (round_up ? room + w.stride - 1 : room) / w.stride + 1;
    // A window that would begin behind the tensor is none.
    if ((w.places - 1) * w.stride >= extent + w.before) --w.places;
    result.push_back(w);
  }
  return result;
}

// The elements of each window as last dimensions, one a spatial dimension.
Ref Importer::windowed(Ref x, const std::vector<Window>& windows, size_t first_dim,
                       const std::string& outside) {
  for (size_t i = 0; i < windows.size(); ++i) {
    const Window& w = windows[i];
    Extents extents = x.extents;
    extents[first_dim + i] = w.places;
    extents.push_back(w.extent);
    x = builder_.emit(
        "window", {x}, extents,
        {static_cast<int64_t>(first_dim + i), -w.before, w.places, w.stride, w.extent, w.spread},
        {outside});
  }
  return x;
}

Made Importer::made_convolution(const onnx::Node& node) {
  Result<Ref> x = operand(node, 0), w = operand(node, 1);
  if (!x.ok()) return x.error();
  if (!w.ok()) return w.error();
  const size_t rank = w->extents.size();
  const int64_t groups = integer(node, "group", 1);
  if (rank < 3 || rank > 5 || x->extents.size() != rank) {
    return unsupported("a convolution of these ranks");
  }
  const int64_t out = w->extents[0], channels = w->extents[1];
  if (groups < 1 || out % groups != 0 || x->extents[1] % groups != 0 ||
      x->extents[1] / groups != channels) {
    return bad_input("its channels are others than those of the kernel");
  }
  const Extents kernel(w->extents.begin() + 2, w->extents.end());
  const Result<std::vector<Window>> over = windows(node, *x, kernel);
  if (!over.ok()) return over.error();

  // n: batch, g: groups, c and o: channels in and out, pqr: places, uvw: elements of the window.
  Extents grouped = x->extents, of_kernel = {groups, out / groups, channels};
  grouped[1] = groups;
  grouped.insert(grouped.begin() + 2, channels);
  of_kernel.insert(of_kernel.end(), kernel.begin(), kernel.end());
  const Ref elements = windowed(builder_.reshape(*x, grouped), *over, 3, "0");
  const std::string places = std::string("pqr").substr(0, kernel.size()),
                    within = std::string("uvw").substr(0, kernel.size());
  Ref result = builder_.contract("ngc" + places + within + ",goc" + within + "->ngo" + places,
                                 elements, builder_.reshape(*w, of_kernel));
  Extents extents = {x->extents[0], out};
  for (const Window& each : *over) extents.push_back(each.places);
  result = builder_.reshape(result, extents);
  if (node.inputs_size() > 2 && !node.inputs(2).empty()) {
    Result<Ref> bias = operand(node, 2);
    if (!bias.ok()) return bias.error();
    if (bias->extents != Extents{out} && !bias->extents.empty()) {
      return bad_input("its bias is not one number a channel");
    }
    Extents column(rank - 1, 1);
    column[0] = out;
    const Ref shaped = bias->extents.empty() ? *bias : builder_.reshape(*bias, column);
    result = builder_.elementwise("add", {result, shaped});
  }
  return std::vector<Ref>{result};
}

// How many elements of each window are counted in an average: all, where every window has as many.
Ref Importer::window_sizes(const Ref& x, const std::vector<Window>& windows, bool count_margin) {
  Ref sizes = builder_.constant(1);
  for (size_t i = 0; i < windows.size(); ++i) {
    Window w = windows[i];
    int64_t extent = x.extents[i + 2];
    if (count_margin) {
      extent += w.before + w.after;
      w.before = 0;
    }
    const int64_t end = (w.places - 1) * w.stride - w.before + (w.extent - 1) * w.spread;
    if (w.before == 0 && end < extent) {
      const Ref whole = builder_.constant(static_cast<double>(w.extent));
      sizes = builder_.elementwise("mul", {sizes, whole});
      continue;
    }
    const Ref ones = builder_.emit("expand", {builder_.constant(1)}, {extent}, {extent});
    Extents along(windows.size() - i, 1);
    along[0] = w.places;
    const Ref inside = builder_.reduce("sum", windowed(ones, {w}, 0, "0"), {1}, false);
    sizes = builder_.elementwise("mul", {sizes, builder_.reshape(inside, along)});
  }
  return sizes;
}

Made Importer::made_pool(const onnx::Node& node) {
  Result<Ref> x = operand(node, 0);
  if (!x.ok()) return x.error();
  if (node.outputs_size() > 1) return unsupported("the places of maxima");
  const auto kernel = integers(node, kNoOperand, "kernel_shape");
  if (!kernel || kernel->empty()) return bad_input("it lacks its kernel_shape");
  const Result<std::vector<Window>> over = windows(node, *x, *kernel);
  if (!over.ok()) return over.error();
  for (const Window& w : *over) {
    // A window in the margin alone would be the maximum, or the mean, of nothing.
    if (w.before > (w.extent - 1) * w.spread || w.after > (w.extent - 1) * w.spread) {
      return unsupported("a window in the margin alone");
    }
  }
  const bool largest = node.op() == "MaxPool";
  const size_t rank = x->extents.size();
  Extents within(kernel->size());
  std::iota(within.begin(), within.end(), static_cast<int64_t>(rank));
  const Ref elements = windowed(*x, *over, 2, largest ? "-inf" : "0");
  if (largest) return std::vector<Ref>{builder_.reduce("reduce_max", elements, within, false)};
  const bool count_margin = integer(node, "count_include_pad", 0) != 0;
  return std::vector<Ref>{builder_.elementwise(
      "div",
      {builder_.reduce("sum", elements, within, false), window_sizes(*x, *over, count_margin)})};
}

}  // namespace sundog::frontend
