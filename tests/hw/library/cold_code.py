"""Time of kernels after others whose code drove theirs out of the instruction caches: ``cold_code.py > CSV``.

The period of an operation in a CUDA graph that launches it again and again (``again_us``), and the period of
a mix of other kernels with it less that without it (``after_us``), behind a filled queue; medians of 15
replays. After one small kernel a sum of columns takes 0.3 us more, after one GEMM 0.6, after two GEMMs 1.8,
after the mix 2.0, whether or not the others touch its data.
"""

import statistics

import torch
import torch.nn.functional as nnf

HALF, FLOAT = torch.float16, torch.float32
NODES, REPLAYS = 20, 15


def new(*shape, dtype=HALF):
    """Return random numbers."""
    return torch.randn(*shape, device="cuda", dtype=dtype)


def period(calls):
    """Return the period (us) of the calls, one after another, in a graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(NODES):
            for call in calls:
                call()
    found = []
    for _ in range(REPLAYS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(400000)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) * 1e3 / NODES)
    return statistics.median(found)


def operations():
    """Yield name, rows, columns, type and call."""
    for rows in (512, 1024, 4096):
        for cols in (768, 1024, 3072):
            x = new(rows, cols)
            yield "sum_columns", rows, cols, "fp16", lambda x=x: x.sum(0)
    f = new(512, 768, dtype=FLOAT)
    yield "sum_columns", 512, 768, "fp32", lambda: f.sum(0)
    x = new(4096, 1024)
    yield "sum_rows", 4096, 1024, "fp16", lambda: x.sum(1)
    yield "sum_all", 4096, 1024, "fp16", lambda: x.sum()
    for cols in (128, 512, 1024, 2048):
        s = new(2048, cols)
        yield "softmax", 2048, cols, "fp16", lambda s=s: torch.softmax(s, 1)
    back = torch._softmax_backward_data
    for cols in (128, 512, 1024):
        s = new(2048, cols)
        yield "softmax_backward", 2048, cols, "fp16", lambda s=s: back(s, s, 1, HALF)
    a, b, c, w, wide = new(1024, 1024), new(1024, 1024), new(1024, 1024), new(1024), new(1024, 4096)
    _, mean, deviation = torch.native_layer_norm(a, (1024,), w, w, 1e-5)
    norm, every = torch.ops.aten.native_layer_norm_backward, [True, True, True]
    yield "layer_norm_backward", 1024, 1024, "fp16", lambda: norm(a, b, [1024], mean, deviation, w, w, every)
    yield "gelu_backward", 1024, 4096, "fp16", lambda: torch.ops.aten.gelu_backward(wide, wide)
    yield "dropout", 1024, 1024, "fp16", lambda: torch.native_dropout(a, 0.1, True)
    yield "cat", 1024, 3072, "fp16", lambda: torch.cat([a, b, c])
    yield "transpose_copy", 1024, 1024, "fp16", lambda: a.t().contiguous()
    g = new(768, 768, dtype=FLOAT)
    yield "matmul", 512, 768, "fp32", lambda: f @ g
    yield "matmul", 1024, 1024, "fp16", lambda: a @ b


def main():
    """Print the table."""
    a, b, w = new(1024, 1024), new(1024, 1024), new(1024)
    mix = [
        lambda: nnf.gelu(a),
        lambda: nnf.layer_norm(a, (1024,), w, w),
        lambda: a @ b,
        lambda: nnf.dropout(a, 0.1),
        lambda: a.t() @ b,
        lambda: a + b,
    ]
    without = period(mix)
    print("operation,rows,cols,dtype,again_us,after_us,more_us")
    for name, rows, cols, dtype, call in operations():
        again, after = period([call]), period([*mix, call]) - without
        print(f"{name},{rows},{cols},{dtype},{again:.2f},{after:.2f},{after - again:.2f}", flush=True)


if __name__ == "__main__":
    main()
