// The graph of kernels: which launches wait for which, in the order of launching.

const LANE_HEIGHT = 46; // a stream
const ARC_ROOM = 110; // above the first stream
const PRODUCER_COLOUR = "#0072B2";
const CONSUMER_COLOUR = "#D55E00";

/** Kernels and those that they wait for; `level`: kernels of the longest chain that ends with each. */
class KernelGraph {
  constructor({ kernel, producer }, count) {
    this.producers = Array.from({ length: count }, () => []);
    this.consumers = Array.from({ length: count }, () => []);
    kernel.forEach((to, i) => {
      this.producers[to].push(producer[i]);
      this.consumers[producer[i]].push(to);
    });
    this.level = new Uint32Array(count);
    for (let k = 0; k < count; k += 1) this.level[k] = 1 + Math.max(0, ...this.producers[k].filter((p) => p < k).map((p) => this.level[p]));
  }

  /** Return the length of the longest chain, and how many kernels the fullest level has. */
  facts() {
    const levels = new Map();
    for (const level of this.level) levels.set(level, (levels.get(level) ?? 0) + 1);
    return { chain: Math.max(0, ...levels.keys()), wide: Math.max(0, ...levels.values()) };
  }
}

const kernelGraphs = new Map();

/** Return the columns of the graph of a run's kernels, read once; null if the page has none. */
function kernelGraphOf(run) {
  const name = run.about.kernel_graph;
  if (!name) return null;
  if (!kernelGraphs.has(name)) kernelGraphs.set(name, readBlob(name));
  return kernelGraphs.get(name);
}

class KernelGraphView {
  constructor(root, run, columns, report) {
    Object.assign(this, { run, report, focus: -1 });
    this.all = run.kernels.count;
    this.graph = new KernelGraph(columns, this.all);
    this.lanes = [...new Set(run.kernels.stream)].sort((a, b) => a - b);
    this.controls = new WindowControls([8, 16, 32, 64], (first, count) => this.move(first, count));
    this.hint = element("p", { class: "hint", role: "status" });
    const frame = element("div");
    const { chain, wide } = this.graph.facts();
    const streams = this.lanes.length > 1 ? ` in ${this.lanes.length} streams, a row each` : "";
    const beside = wide > 1 ? `up to ${wide.toLocaleString("en-US")} are equally deep and could run side by side` : "no two could run side by side";
    root.append(this.controls.root, element("p", {}, `${formatCount(this.all, "kernel")}${streams}: the longest chain of kernels that wait for each other `
      + `has ${formatCount(chain, "kernel")}; ${beside}.`), frame, this.hint);
    this.plot = new Plot(frame, {
      height: ARC_ROOM + this.lanes.length * LANE_HEIGHT,
      label: "Graph of kernels in the order of launching. Arrow keys go from kernel to kernel, Page Up and Page Down to others, Enter shows the kernel.",
      draw: (context, width) => this.draw(context, width),
      drawOver: (context, width) => this.drawOver(context, width),
    });
    this.listen(this.plot.canvas);
    this.move(0, 16);
  }

  move(first, count = this.count) {
    [this.first, this.count] = this.controls.set(first, count, this.all);
    this.focus = -1;
    this.explain();
    this.plot.redraw();
  }

  goTo(kernel) {
    this.move(kernel - (this.count >> 1));
    this.setFocus(kernel);
  }

  point(kernel, width) {
    const lane = this.lanes.indexOf(this.run.kernels.stream[kernel]);
    return [((kernel - this.first + 0.5) * width) / this.count, ARC_ROOM + lane * LANE_HEIGHT];
  }

  shown(kernel) {
    return kernel >= this.first && kernel < this.first + this.count;
  }

  draw(context, width) {
    if (this.count === undefined) return;
    const last = this.first + this.count;
    context.strokeStyle = "#7778";
    context.lineWidth = 1.2;
    for (let k = this.first; k < last; k += 1) for (const from of this.graph.producers[k]) this.arc(context, from, k, width);
    const room = width / this.count;
    context.textAlign = "center";
    for (let k = this.first; k < last; k += 1) {
      const [x, y] = this.point(k, width);
      context.fillStyle = this.run.colourOf(k);
      context.beginPath();
      context.arc(x, y, Math.max(3, Math.min(8, room / 2 - 2)), 0, 7);
      context.fill();
      context.fillStyle = "#333";
      if (room >= 26 || k % Math.ceil(26 / room) === 0) context.fillText(`${k}`, x, y + 17);
      if (room >= 60) context.fillText(fitted(context, this.run.nameOf(k), room - 4), x, y + 30);
    }
  }

  /** Draw an edge: above the kernels, the higher the further apart they are. */
  arc(context, from, to, width) {
    const [x0, y0] = this.point(from, width);
    const [x1, y1] = this.point(to, width);
    const rise = Math.min(ARC_ROOM * 2 - 30, (12 + 9 * Math.max(0, to - from - 1)) * 2);
    context.beginPath();
    context.moveTo(x0, y0);
    context.quadraticCurveTo((x0 + x1) / 2, Math.min(y0, y1) - (to - from > 1 || y0 !== y1 ? rise : 0), x1, y1);
    context.stroke();
  }

  drawOver(context, width) {
    if (this.focus < 0) return;
    context.lineWidth = 2.5;
    context.strokeStyle = PRODUCER_COLOUR;
    for (const from of this.graph.producers[this.focus]) this.arc(context, from, this.focus, width);
    context.strokeStyle = CONSUMER_COLOUR;
    context.setLineDash([6, 3]);
    for (const to of this.graph.consumers[this.focus]) this.arc(context, this.focus, to, width);
    context.setLineDash([]);
    context.strokeStyle = "#000";
    context.beginPath();
    context.arc(...this.point(this.focus, width), 11, 0, 7);
    context.stroke();
  }

  explain() {
    const k = this.focus;
    const list = (kernels) => (kernels.length > 8 ? `${kernels.slice(0, 8).join(", ")} and ${kernels.length - 8} more` : kernels.join(", ") || "none");
    this.hint.textContent = k < 0 ? "Point to a kernel to see which kernels it waits for (blue) and which wait for it (dashed)."
      : `Kernel ${k} (${this.run.nameOf(k)}, ${formatCount(this.run.kernels.tbs[k], "TB")}) waits for kernels: ${list(this.graph.producers[k])}. `
        + `Kernels that wait for it: ${list(this.graph.consumers[k])}.`;
  }

  setFocus(kernel) {
    if (kernel === this.focus) return;
    this.focus = kernel;
    this.plot.paintOver();
    this.explain();
  }

  listen(canvas) {
    const at = (event) => this.first + Math.floor((event.offsetX / canvas.clientWidth) * this.count);
    canvas.addEventListener("pointermove", (event) => this.setFocus(this.shown(at(event)) ? at(event) : -1));
    canvas.addEventListener("pointerleave", () => this.setFocus(-1));
    canvas.addEventListener("click", () => this.focus >= 0 && this.report(this.focus, -1));
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const step = (by) => this.setFocus(Math.min(this.first + this.count - 1, Math.max(this.first, this.focus < 0 ? this.first : this.focus + by)));
      const keys = {
        ArrowLeft: () => step(-1), ArrowRight: () => step(1),
        PageUp: () => this.move(this.first - this.count), PageDown: () => this.move(this.first + this.count),
        Enter: () => this.focus >= 0 && this.report(this.focus, -1), Escape: () => this.setFocus(-1),
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
  }
}
