"""Time whole layers in CUDA graphs as the GPU alone runs them: ``sequences.py DIR`` writes DIR/sequences.csv.

A graph of one iteration is replayed behind a filled queue, so that no host time is in it, and alone, between
two events on an idle GPU, as a profile has it. The SM clock is that of the replays behind the queue.
"""

import csv
import itertools
import statistics
import sys
from pathlib import Path

import torch
import torch.nn.functional as nnf
from timing import Clock
from torch import nn

REPLAYS, ALONE = 12, 20


class Layer(nn.Module):
    """A Transformer layer: LayerNorms before (``pre``) or behind attention and feed-forward."""

    def __init__(self, d, heads, ffn, *, pre, causal, drop, fused):
        super().__init__()
        self.heads, self.pre, self.causal, self.drop, self.fused = heads, pre, causal, drop, fused
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.wide, self.back = nn.Linear(d, ffn), nn.Linear(ffn, d)
        self.first, self.second = nn.LayerNorm(d), nn.LayerNorm(d)
        self.mask = None

    def attention(self, x):
        batch, seq, d = x.shape
        each = d // self.heads
        q, k, v = self.qkv(x).view(batch, seq, 3, self.heads, each).permute(2, 0, 3, 1, 4)
        if self.fused:
            share = self.drop if self.training else 0.0
            y = nnf.scaled_dot_product_attention(q, k, v, dropout_p=share, is_causal=self.causal)
        else:
            scores = torch.matmul(q, k.transpose(-1, -2)) * each**-0.5
            if self.causal:
                scores = scores + self.mask
            y = torch.matmul(nnf.dropout(nnf.softmax(scores, dim=-1), self.drop, self.training), v)
        return nnf.dropout(self.out(y.transpose(1, 2).reshape(batch, seq, d)), self.drop, self.training)

    def feed_forward(self, x):
        wide = nnf.gelu(self.wide(x), approximate="tanh" if self.pre else "none")
        return nnf.dropout(self.back(wide), self.drop, self.training)

    def forward(self, x):
        if self.pre:
            x = x + self.attention(self.first(x))
            return x + self.feed_forward(self.second(x))
        x = self.first(x + self.attention(x))
        return self.second(x + self.feed_forward(x))


def transformer(d, heads, ffn, batch, seq, *, gpt=False, train=True, fused=False):
    """Return an iteration of a layer in fp16."""
    drop = 0.1 if train else 0.0
    layer = Layer(d, heads, ffn, pre=gpt, causal=gpt, drop=drop, fused=fused).cuda().half().train(train)
    if gpt:
        layer.mask = torch.full((seq, seq), float("-inf"), device="cuda", dtype=torch.half).triu(1)
    x = torch.randn(batch, seq, d, device="cuda", dtype=torch.half, requires_grad=train)
    gradient = torch.randn(batch, seq, d, device="cuda", dtype=torch.half)

    def step():
        if not train:
            with torch.no_grad():
                return layer(x)
        layer.zero_grad(set_to_none=True)
        x.grad = None
        return layer(x).backward(gradient)

    return step


def recurrent(kind, hidden, batch, steps):
    """Return an iteration of a recurrent layer in fp32, forward and backward."""
    module = {"gru": nn.GRU, "lstm": nn.LSTM, "vanilla": nn.RNN}[kind](hidden, hidden).cuda()
    x, gradient = (torch.randn(steps, batch, hidden, device="cuda") for _ in range(2))

    def step():
        module.zero_grad(set_to_none=True)
        module(x)[0].backward(gradient)

    return step


WORKLOADS = {
    "bert_large_layer_b8_s128_fp16_fwdbwd": lambda: transformer(1024, 16, 4096, 8, 128),
    "bert_large_layer_b8_s512_fp16_fwdbwd": lambda: transformer(1024, 16, 4096, 8, 512),
    "bert_large_layer_b8_s512_fp16_fwdbwd_sdpa": lambda: transformer(1024, 16, 4096, 8, 512, fused=True),
    "bert_large_layer_b32_s128_fp16_fwdbwd": lambda: transformer(1024, 16, 4096, 32, 128),
    "bert_large_layer_b8_s128_fp16_fwd": lambda: transformer(1024, 16, 4096, 8, 128, train=False),
    "bert_base_layer_b16_s128_fp16_fwdbwd": lambda: transformer(768, 12, 3072, 16, 128),
    "gpt2xl_layer_b4_s1024_fp16_fwdbwd_sdpa": lambda: transformer(
        1600, 25, 6400, 4, 1024, gpt=True, fused=True
    ),
    "gpt3_13b_layer_b1_s2048_fp16_fwd": lambda: transformer(5120, 40, 20480, 1, 2048, gpt=True, train=False),
    "gpt3_13b_layer_b1_s2048_fp16_fwd_sdpa": lambda: transformer(
        5120, 40, 20480, 1, 2048, gpt=True, train=False, fused=True
    ),
    "gru_h512_b32_t25_fp32_fwdbwd": lambda: recurrent("gru", 512, 32, 25),
    "gru_h1536_b32_t50_fp32_fwdbwd": lambda: recurrent("gru", 1536, 32, 50),
    "lstm_h512_b16_t25_fp32_fwdbwd": lambda: recurrent("lstm", 512, 16, 25),
    "lstm_h2048_b128_t25_fp32_fwdbwd": lambda: recurrent("lstm", 2048, 128, 25),
    "vanilla_h2560_b64_t50_fp32_fwdbwd": lambda: recurrent("vanilla", 2560, 64, 50),
}


def captured(step):
    """Return a CUDA graph of one iteration."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(3):
        graph.replay()
    return graph


def between(go):
    """Return the us of a call between two events."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    go()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3


def behind_queue(graph, clock):
    """Return us of a replay, median of several in a row behind a spinning kernel, and the SM clock in MHz."""
    torch.cuda.synchronize()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(REPLAYS + 1)]
    torch.cuda._sleep(4_000_000)  # 2 ms: all replays are queued meanwhile
    clock.mark(0)
    for event in events[:-1]:
        event.record()
        graph.replay()
    events[-1].record()
    clock.mark(1)
    torch.cuda.synchronize()
    spans = [a.elapsed_time(b) * 1e3 for a, b in itertools.pairwise(events)]
    return statistics.median(spans[1:]), clock.mhz([(0, 1)])[0]


def main():
    """Time all workloads."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    clock = Clock()
    with (Path(sys.argv[1]) / "sequences.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["workload", "queued_us", "sm_clock_mhz", "alone_us"])
        for name, make in WORKLOADS.items():
            graph = captured(make())
            alone = []
            for _ in range(ALONE):
                torch.cuda.synchronize()
                alone.append(between(graph.replay))
            found = [behind_queue(graph, clock) for _ in range(5)]
            queued, mhz = (statistics.median(column) for column in zip(*found, strict=True))
            writer.writerow([name, f"{queued:.2f}", f"{mhz:.0f}", f"{statistics.median(alone):.2f}"])
            file.flush()


if __name__ == "__main__":
    main()
