"""gqa_safe as a Triton kernel, for `sundog bench`: keys and values in parts, each with a running maximum, and a second
kernel that joins them. Tile sizes, parts and warps are the fastest of a few, tried on the inputs at the first call.
qk_norm_safe.triton.py takes it with queries and values normalised as they are read."""

import torch
import triton
import triton.language as tl


@triton.jit
def _rms(x, D: tl.constexpr):
    wide = x.to(tl.float32)
    return (wide * tl.rsqrt(tl.sum(wide * wide, 1) / D + 1e-12)[:, None]).to(x.dtype)  # of rows beyond the edge: 0


@triton.jit
def _part(
    Q, K, V, Partial, Sums, rows, keys, scale,
    D: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, PARTS: tl.constexpr, NORMS: tl.constexpr,
):  # fmt: skip
    head, row, part = tl.program_id(2), tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.program_id(1)
    d, step = tl.arange(0, D), tl.arange(0, KEYS)
    q = tl.load(Q + (head * rows + row[:, None]) * D + d, mask=row[:, None] < rows, other=0.0)
    if NORMS:
        q = _rms(q, D)
    most = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    sums = tl.zeros([ROWS, D], tl.float32)
    each = tl.cdiv(tl.cdiv(keys, PARTS), KEYS) * KEYS
    for start in range(part * each, min(keys, (part + 1) * each), KEYS):
        key = start + step
        inside = key < keys
        k = tl.load(K + (head * keys + key[None, :]) * D + d[:, None], mask=inside[None, :], other=0.0)
        s = tl.where(inside[None, :], tl.dot(q, k) * scale, -float("inf"))
        now = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - now[:, None])
        fade = tl.exp2(most - now)
        v = tl.load(V + (head * keys + key[:, None]) * D + d, mask=inside[:, None], other=0.0)
        if NORMS:
            v = _rms(v, D)
        total = total * fade + tl.sum(p, 1)
        sums = tl.dot(p.to(v.dtype), v, sums * fade[:, None])
        most = now
    at = (part * tl.num_programs(2) + head) * rows + row
    tl.store(Partial + at[:, None] * D + d, sums / total[:, None], mask=row[:, None] < rows)
    tl.store(Sums + at, most + tl.log2(total), mask=row < rows)


@triton.jit
def _join(Partial, Sums, O, rows, D: tl.constexpr, ROWS: tl.constexpr, PARTS: tl.constexpr):
    row, d = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, D)
    inside = row < rows
    most = tl.full([ROWS], -float("inf"), tl.float32)
    for part in tl.static_range(PARTS):
        most = tl.maximum(most, tl.load(Sums + part * rows + row, mask=inside, other=0.0))
    total = tl.zeros([ROWS], tl.float32)
    sums = tl.zeros([ROWS, D], tl.float32)
    for part in tl.static_range(PARTS):
        weight = tl.exp2(tl.load(Sums + part * rows + row, mask=inside, other=0.0) - most)
        values = tl.load(Partial + (part * rows + row[:, None]) * D + d, mask=inside[:, None], other=0.0)
        sums += values * weight[:, None]
        total += weight
    tl.store(O + row[:, None] * D + d, (sums / total[:, None]).to(O.dtype.element_ty), mask=inside[:, None])


def _run(Q, K, V, norms, parts, tile, step, warps, stages):
    heads, rows, width = Q.shape
    keys = K.shape[1]
    O = torch.empty_like(Q)
    partial = torch.empty((parts, heads, rows, width), device=Q.device, dtype=torch.float32)
    sums = torch.empty((parts, heads, rows), device=Q.device, dtype=torch.float32)
    scale = width**-0.5 * 1.4426950408889634  # exponentials to base 2
    _part[(triton.cdiv(rows, tile), parts, heads)](
        Q, K, V, partial, sums, rows, keys, scale, width, tile, step, parts, norms,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    _join[(triton.cdiv(heads * rows, 8),)](partial, sums, O, heads * rows, width, 8, parts, num_warps=4)
    return O


_fastest = {}


def compute(Q, K, V, norms=False):
    shape = (Q.shape, K.shape)
    if shape not in _fastest:
        choices = [
            (parts, tile, 64, warps, stages)
            for parts in (2, 4, 8, 16) for tile, warps in ((64, 4), (128, 4), (128, 8)) for stages in (2, 3)
            if parts * 64 <= K.shape[1]
        ]  # fmt: skip
        times = {c: triton.testing.do_bench(lambda c=c: _run(Q, K, V, norms, *c), warmup=2, rep=10) for c in choices}
        _fastest[shape] = min(times, key=times.get)
    return _run(Q, K, V, norms, *_fastest[shape])
