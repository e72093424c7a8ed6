"""Times calls on a GPU: replays of a CUDA graph behind a filled queue, with the mean SM clock meanwhile.

``SWEEP_DEVICE=cpu`` runs the programs of this folder without a GPU, for a test: host times, no kernels.
"""

import os
import statistics
import time
import traceback

import torch

DEV = os.environ.get("SWEEP_DEVICE", "cuda")
GPU = DEV == "cuda"
FLUSH_FLOATS = 64 << 20 if GPU else 64  # 256 MiB, four times L2
LAUNCHES_US = 400.0  # one replay takes about as long
MOST_LAUNCHES = 50
RESERVED_BYTES = 32 << 30

GENERATOR = torch.Generator(device=DEV)  # not the default one, which takes part in graph captures
GENERATOR.manual_seed(1)

TIME_COLUMNS = [
    *("time_us_median", "time_us_min", "time_us_max", "launches_per_repeat", "repeats", "timing"),
    *("sm_clock_mhz_median", "sm_clock_mhz_min"),
    *("time_us_cold_median", "time_us_cold_min", "time_us_cold_max"),
]


def randn(*shape, dtype=torch.float32, requires_grad=False):
    """Return normal random numbers; types without a generator of their own are rounded from bfloat16."""
    made = torch.bfloat16 if dtype.itemsize == 1 else dtype
    values = torch.randn(*shape, device=DEV, dtype=made, generator=GENERATOR).to(dtype)
    return values.requires_grad_() if requires_grad else values


def sync():
    """Wait for the GPU; raises what a kernel before did wrong."""
    if GPU:
        torch.cuda.synchronize()


class Clock:
    """Mean SM clock between two marks: each SM notes its cycle counter and the global timer."""

    SOURCE = r"""
extern "C" __global__ void stamp_clock(unsigned long long* p, int slot, int sms) {
  unsigned s;
  unsigned long long c, t;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(s));
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(c));
  unsigned long long* q = p + ((unsigned long long)slot * sms + s) * 2;
  q[0] = c;
  q[1] = t;
}
"""
    SLOTS = 256

    def __init__(self):
        self.kernel = None
        if not GPU:
            return
        try:
            self.sms = torch.cuda.get_device_properties(0).multi_processor_count
            self.buffer = torch.zeros(self.SLOTS, self.sms, 2, dtype=torch.int64, device=DEV)
            self.kernel = torch.cuda._compile_kernel(self.SOURCE, "stamp_clock")
            self.mark(0)
            sync()
            time.sleep(0.01)
            self.mark(1)
            sync()
            print(f"SM clock at start: {self.mhz([(0, 1)])[0]:.0f} MHz", flush=True)
        except Exception:
            traceback.print_exc()
            self.kernel = None  # rows go without a clock

    def clear(self, slots):
        if self.kernel:
            self.buffer[:slots].zero_()

    def mark(self, slot):
        if self.kernel:
            self.kernel(grid=(self.sms, 1, 1), block=(32, 1, 1), args=[self.buffer, slot, self.sms])

    def mhz(self, pairs):
        """Return the median of the SMs' clocks between the marks of each pair of slots, in MHz."""
        if not self.kernel:
            return [float("nan")] * len(pairs)
        marks = self.buffer[: max(after for _, after in pairs) + 1].cpu().numpy()
        out = []
        for i, j in pairs:
            ok = (marks[i, :, 1] > 0) & (marks[j, :, 1] > marks[i, :, 1])
            rate = (marks[j, ok, 0] - marks[i, ok, 0]) / (marks[j, ok, 1] - marks[i, ok, 1]) * 1e3
            out.append(float(statistics.median(rate.tolist())) if len(rate) else float("nan"))
        return out


class Timer:
    """Time of one call, from replays of a CUDA graph that holds several calls."""

    def __init__(self, clock):
        self.clock = clock
        self.calls = 0
        self.failed = 0
        self.mhz = [float("nan")]
        self.flush = torch.empty(FLUSH_FLOATS, device=DEV)
        if GPU:
            self.events = [torch.cuda.Event(enable_timing=True) for _ in range(64)]

    def _spans(self, go, reps, sleep=120_000):
        """Return the us of `reps` calls, each queued while a kernel spins for `sleep` cycles (60 us)."""
        ev = self.events
        self.clock.clear(2 * reps)
        for i in range(reps):
            self.clock.mark(2 * i)
            torch.cuda._sleep(sleep)
            ev[2 * i].record()
            go()
            ev[2 * i + 1].record()
            self.clock.mark(2 * i + 1)
        sync()
        self.mhz = self.clock.mhz([(2 * i, 2 * i + 1) for i in range(reps)])
        return [ev[2 * i].elapsed_time(ev[2 * i + 1]) * 1e3 for i in range(reps)]

    def cold(self, call, estimate_us):
        """Return median, least and most us of single calls after 256 MiB were written, with two events."""
        reps, ev = 6 if estimate_us < 5000 else 3, self.events
        for i in range(reps):
            torch.cuda._sleep(400_000)  # the queue fills meanwhile
            self.flush.fill_(float(i))
            ev[2 * i].record()
            call()
            ev[2 * i + 1].record()
        sync()
        us = [ev[2 * i].elapsed_time(ev[2 * i + 1]) * 1e3 for i in range(reps)]
        return statistics.median(us), min(us), max(us)

    def _warm(self, call):
        """Return the us of each repeat, the calls in it, and how it was timed."""
        call()
        estimate = self._spans(call, 2)[1]
        reps = 12 if estimate < 3000 else 6 if estimate < 20000 else 4
        many = int(LAUNCHES_US / max(estimate, 1.0)) + 1 if estimate < 1000 else 1
        many = max(1, min(MOST_LAUNCHES, many))
        self.calls += 1
        # memory of earlier graphs, which cannot be given back while one is captured
        if self.calls % 40 == 0 or torch.cuda.memory_reserved() > RESERVED_BYTES:
            torch.cuda.empty_cache()
        if self.failed < 20:
            try:
                graph = torch.cuda.CUDAGraph()
                graph.capture_begin(capture_error_mode="thread_local")
                try:
                    for _ in range(many):
                        call()
                finally:
                    graph.capture_end()
                graph.replay()
                return [us / many for us in self._spans(graph.replay, reps)], many, "graph_queue_filled"
            except Exception:
                self.failed += 1
                if self.failed < 4:
                    traceback.print_exc()
                sync()

        def several():
            for _ in range(many):
                call()

        sleep = 80_000 * many if estimate < 1000 else 120_000  # 40 us a call for the host to queue it
        return [us / many for us in self._spans(several, reps, sleep)], many, "stream"

    def columns(self, call):
        """Return TIME_COLUMNS of a call."""
        if not GPU:
            return self._on_host(call)
        us, many, how = self._warm(call)
        mhz = self.mhz
        middle = statistics.median(us)
        cold = self.cold(call, middle)
        values = [f"{v:.3f}" for v in (middle, min(us), max(us))]
        clocks = [f"{v:.0f}" for v in (statistics.median(mhz), min(mhz))]
        values += [many, len(us), how, *clocks, *(f"{v:.3f}" for v in cold)]
        return dict(zip(TIME_COLUMNS, values, strict=True))

    def _on_host(self, call):
        t0 = time.perf_counter()
        call()
        us = f"{(time.perf_counter() - t0) * 1e6:.3f}"
        return dict(zip(TIME_COLUMNS, [us] * 3 + [1, 1, "host", "nan", "nan"] + [us] * 3, strict=True))
