"""Transformer blocks of three families, in plain PyTorch."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class RMSNorm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(width))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return wide.to(x.dtype) * self.weight


def rotated(x, cos, sin):
    """Rotary position embedding, halves apart as Llama has them."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def rotary_tables(positions, width, dtype, device="cpu"):
    frequencies = 10000.0 ** (-torch.arange(0, width, 2, device=device).float() / width)
    angles = positions.to(device).float()[:, None] * frequencies
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


class LlamaBlock(nn.Module):
    """RMSNorm, rotary embedding, grouped heads, SwiGLU. With a cache of keys and values it decodes."""

    def __init__(self, width=64, heads=4, kv_heads=2, hidden=128):
        super().__init__()
        self.heads, self.kv_heads, self.head = heads, kv_heads, width // heads
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, kv_heads * self.head, bias=False)
        self.v = nn.Linear(width, kv_heads * self.head, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def project(self, x, cos, sin):
        batch, length, _ = x.shape
        y = self.norm1(x)
        q = self.q(y).view(batch, length, self.heads, self.head).transpose(1, 2)
        k = self.k(y).view(batch, length, self.kv_heads, self.head).transpose(1, 2)
        v = self.v(y).view(batch, length, self.kv_heads, self.head).transpose(1, 2)
        return rotated(q, cos, sin), rotated(k, cos, sin), v

    def forward(self, x, cos, sin, past_k=None, past_v=None):
        batch, length, width = x.shape
        q, k, v = self.project(x, cos, sin)
        if past_k is not None:
            k, v = torch.cat((past_k, k), dim=2), torch.cat((past_v, v), dim=2)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=past_k is None, enable_gqa=True)
        x = x + self.o(a.transpose(1, 2).reshape(batch, length, width))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Gpt2Block(nn.Module):
    """LayerNorm, one projection for queries, keys and values, GELU, biases."""

    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads, self.head = heads, width // heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.o = nn.Linear(width, width)
        self.fc, self.proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, past_k=None, past_v=None):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).split(width, dim=-1)
        q, k, v = (p.view(batch, length, self.heads, self.head).transpose(1, 2) for p in parts)
        if past_k is not None:
            k, v = torch.cat((past_k, k), dim=2), torch.cat((past_v, v), dim=2)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=past_k is None)
        x = x + self.o(a.transpose(1, 2).reshape(batch, length, width))
        return x + self.proj(F.gelu(self.fc(self.norm2(x)), approximate="tanh"))


class QkNormLoraBlock(LlamaBlock):
    """Queries and keys normalised head by head, and low-rank corrections of the projections."""

    def __init__(self, width=64, heads=4, kv_heads=2, hidden=128, rank=8):
        super().__init__(width, heads, kv_heads, hidden)
        self.q_norm, self.k_norm = RMSNorm(self.head), RMSNorm(self.head)
        self.q_a, self.q_b = nn.Linear(width, rank, bias=False), nn.Linear(rank, width, bias=False)
        self.v_a = nn.Linear(width, rank, bias=False)
        self.v_b = nn.Linear(rank, kv_heads * self.head, bias=False)

    def project(self, x, cos, sin):
        batch, length, _ = x.shape
        y = self.norm1(x)
        q = self.q(y) + 0.5 * self.q_b(self.q_a(y))
        v = self.v(y) + 0.5 * self.v_b(self.v_a(y))
        q = self.q_norm(q.view(batch, length, self.heads, self.head)).transpose(1, 2)
        k = self.k_norm(self.k(y).view(batch, length, self.kv_heads, self.head)).transpose(1, 2)
        v = v.view(batch, length, self.kv_heads, self.head).transpose(1, 2)
        return rotated(q, cos, sin), rotated(k, cos, sin), v


FAMILIES = {"llama": LlamaBlock, "gpt2": Gpt2Block, "qk_norm_lora": QkNormLoraBlock}


def example(family, batch, length, past=0, dtype=torch.float32, device="cpu", seed=0, **sizes):
    """A block and its inputs; with `past` keys it decodes."""
    torch.manual_seed(seed)
    block = FAMILIES[family](**sizes).to(device=device, dtype=dtype).eval()
    width = block.norm1.weight.shape[0]
    x = torch.randn(batch, length, width, device=device, dtype=dtype)
    inputs = [x]
    kv_heads = getattr(block, "kv_heads", block.heads)
    if family != "gpt2":
        inputs += rotary_tables(torch.arange(past, past + length), block.head, dtype, device)
    if past:
        inputs += [torch.randn(batch, kv_heads, past, block.head, device=device, dtype=dtype) for _ in range(2)]
    return block, inputs
