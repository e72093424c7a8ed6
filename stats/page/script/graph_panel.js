// The graph of TBs: which TBs of a few kernels need which TBs before them.

const GRAPH_HEAD = 34; // above the dots: names of kernels
const GRAPH_MOST = 8; // kernels at once
const GRAPH_HEIGHT = [180, 520];

/**
 * The graph of the job of a file. `onChoose(run, kernel, tb)` is called when the reader clicks a TB, or a kernel
 * (tb: -1); `goTo(kernel, tb)` brings one into sight.
 */
class GraphPanel {
  constructor(root, runs) {
    const files = new Map(); // a run a file: its graph is that of the job
    for (const run of runs) if (run.about.kernels && !(files.get(run.about.file)?.about.graph)) files.set(run.about.file, run);
    this.choices = [...files.values()];
    Object.assign(this, { onChoose: null, view: null });
    if (!this.choices.length) {
      root.append(element("p", { class: "quiet" }, "No file has the table kernels: run again with --tables all."));
      return;
    }
    this.select = element("select", { onchange: () => this.choose(this.choices[this.select.selectedIndex]) },
      ...this.choices.map((run) => element("option", {}, PAGE.files[run.about.file].label)));
    this.mode = element("select", { onchange: () => this.show() }, element("option", { value: "tbs" }, "TBs"), element("option", { value: "kernels" }, "kernels"));
    this.modes = element("label", {}, "graph of ", this.mode);
    this.body = element("div");
    root.append(element("div", { class: "controls" }, this.choices.length > 1 ? element("label", {}, "file ", this.select) : null, this.modes), this.body);
    this.ready = this.choose(this.choices.find((run) => run.about.graph) ?? this.choices[0]);
  }

  get canvases() {
    return this.view ? [this.view.plot.canvas] : [];
  }

  /** Show the graph of a run's file. */
  async choose(run) {
    this.run = run;
    this.select.selectedIndex = this.choices.indexOf(run);
    const [graph, kernels] = await Promise.all([run.graph(), kernelGraphOf(run), run.load()]);
    if (this.run !== run) return;
    Object.assign(this, { graph, kernels });
    this.modes.hidden = !graph || !kernels;
    this.mode.value = graph ? "tbs" : "kernels";
    this.show();
  }

  show() {
    this.view?.plot.remove();
    this.view = null;
    const note = this.graph ? [] : [element("p", { class: "quiet" }, `The graph of TBs is not shown, as ${this.run.graphNote}.`)];
    const root = element("div");
    this.body.replaceChildren(...note, root);
    const report = (kernel, tb) => this.onChoose?.(this.run, kernel, tb);
    if (this.graph && this.mode.value === "tbs") this.view = new TbGraphView(root, this.run, this.graph, report);
    else if (this.kernels) this.view = new KernelGraphView(root, this.run, this.kernels, report);
  }

  /** Bring a kernel into sight as the last column, and point to one of its TBs. */
  goTo(kernel, tb = -1) {
    this.view?.goTo(kernel, tb);
  }
}

/** Choice of a window of kernels; `onMove(first, count)` is called at each change. */
class WindowControls {
  constructor(counts, onMove) {
    this.onMove = onMove;
    this.number = element("input", { type: "number", min: 0, step: 1, size: 6, onchange: () => this.move(Number(this.number.value)) });
    this.slider = element("input", { type: "range", min: 0, step: 1, "aria-label": "first kernel", oninput: () => this.move(Number(this.slider.value)) });
    this.counts = counts;
    this.many = element("select", { onchange: () => this.onMove(this.first, Number(this.many.value)) });
    const step = (by, text, label) => element("button", { type: "button", "aria-label": label, onclick: () => this.move(this.first + by * this.count) }, text);
    this.root = element("div", { class: "controls" },
      element("label", {}, "first kernel ", this.number), this.slider,
      element("span", { class: "group" }, step(-1, "◀", "earlier kernels"), step(1, "▶", "later kernels")),
      element("label", {}, "kernels ", this.many));
  }

  move(first) {
    this.onMove(Math.round(first) || 0, this.count);
  }

  /** Show a window of `all` kernels, as near to what is asked for as can be; return [first, count]. */
  set(first, count, all) {
    this.count = Math.min(count, all);
    const counts = [...this.counts.filter((each) => each < all), Math.min(all, this.counts.at(-1))];
    if (!counts.includes(this.count)) counts.push(this.count);
    this.many.replaceChildren(...counts.sort((a, b) => a - b).map((each) => element("option", { value: each }, `${each}`)));
    this.many.value = this.count;
    this.first = Math.min(Math.max(0, first), all - this.count);
    this.slider.max = this.number.max = all - this.count;
    this.slider.value = this.number.value = this.first;
    return [this.first, this.count];
  }
}

/** The graph of the TBs of a window of kernels. */
class TbGraphView {
  constructor(root, run, graph, report) {
    Object.assign(this, { run, graph, report, window: null, focus: null, hidden: new Set() });
    this.controls = new WindowControls(Array.from({ length: GRAPH_MOST - 1 }, (_, i) => i + 2), (first, count) => this.move(first, count));
    this.makeBody(root);
    this.move(0, 4);
  }

  makeBody(root) {
    this.says = element("p", {});
    this.hint = element("p", { class: "hint", role: "status" });
    const needs = NEED_NAMES.map((name, need) => {
      const chip = element("span", { class: "chip need" });
      chip.style.background = NEED_COLOURS[need];
      return element("li", {}, chip, ` ${name}`);
    });
    const kinds = KIND_STYLES.map((style, kind) => {
      const box = element("input", {
        type: "checkbox",
        onchange: () => {
          this.hidden[box.checked ? "delete" : "add"](kind);
          this.plot.redraw();
        },
      });
      box.checked = !this.hidden.has(kind);
      return element("li", {}, element("label", { class: "choice" }, box, " ", lineSample(style), ` ${style.name}`));
    });
    const frame = element("div");
    root.append(this.controls.root, this.says, element("ul", { class: "legend", "aria-label": "A TB needs" }, element("li", {}, "A TB needs"), ...needs),
      element("ul", { class: "legend", "aria-label": "Kinds of edges" }, ...kinds), frame, this.hint);
    this.plot = new Plot(frame, {
      height: GRAPH_HEIGHT[0],
      label: "Graph of TBs: a column a kernel, a dot a TB. Arrow keys go from TB to TB, Page Up and Page Down to other kernels, Enter shows the TB.",
      draw: (context, width, height) => this.draw(context, width, height),
      drawOver: (context) => this.drawOver(context),
    });
    this.listen(this.plot.canvas);
  }

  /** Show kernels from `first` on; out of range: as near as can be. */
  move(first, count = this.count) {
    [this.first, this.count] = this.controls.set(first, count, this.graph.offsets.length - 1);
    this.window = new GraphWindow(this.graph, this.run, this.first, this.count);
    this.focus = null;
    this.say();
    const tbs = Math.max(...this.window.needs.map((needs) => needs.length));
    const height = GRAPH_HEAD + Math.min(GRAPH_HEIGHT[1], Math.max(GRAPH_HEIGHT[0], tbs * GRAPH_PITCH));
    this.placed = null;
    this.plot.stack.style.height = `${height}px`;
    if (this.plot.stack.clientHeight === this.plot.height) this.plot.redraw();
    else this.plot.resize();
    this.explain();
  }

  goTo(kernel, tb) {
    this.move(kernel - this.count + 1);
    if (tb >= 0) this.setFocus([kernel - this.first, tb]);
  }

  /** Say how much of the kernel before the TBs of the window need. */
  say() {
    const [none, some, all, without] = this.window.counts();
    const asked = none + some + all;
    const share = (count) => (asked ? ` (${formatShare(count / asked)})` : "");
    const text = (count) => `${count.toLocaleString("en-US")}${share(count)}`;
    const range = `Kernels ${this.first} to ${this.first + this.count - 1}`;
    const rest = without ? ` ${formatCount(without, "TB has", "TBs have")} no kernel before ${without === 1 ? "its own" : "theirs"}.` : "";
    this.says.textContent = asked
      ? `${range}: of ${formatCount(asked, "TB")}, ${text(all)} need all TBs of the kernel before in their stream, ${text(some)} some of them, ${text(none)} none.${rest}`
      : `${range}:${rest}`;
  }

  draw(context, width, height) {
    const { window } = this;
    if (!window) return;
    if (this.placed !== `${width} ${height}`) window.place(width, GRAPH_HEAD, height);
    this.placed = `${width} ${height}`;
    window.columns.forEach((column) => this.drawHead(context, column, width / window.count));
    KIND_STYLES.forEach((style, kind) => {
      if (!this.hidden.has(kind)) drawLines(context, window.lines[kind], style);
    });
    context.fillStyle = "#555";
    for (const { slot, y, direct, kind } of window.hubs) {
      if (!direct && !this.hidden.has(kind)) context.fillRect(window.slotX(slot) - 1.5, y - 1.5, 3, 3);
    }
    window.columns.forEach((column, i) => drawColumn(context, column, window.needs[i]));
  }

  drawHead(context, { kernel, tbs, x }, room) {
    const { run } = this;
    context.textAlign = "center";
    context.fillStyle = run.colourOf(kernel);
    context.fillRect(x - room / 2 + 3, 1, room - 6, 3);
    context.fillStyle = "#222";
    context.fillText(fitted(context, `${kernel}: ${run.nameOf(kernel)}`, room - 6), x, 12);
    context.fillStyle = "#555";
    context.fillText(fitted(context, formatCount(tbs, "TB"), room - 6), x, 25);
  }

  drawOver(context) {
    const { window, focus, graph } = this;
    if (!focus || !window?.columns) return;
    const [column, tb] = focus;
    const kernel = window.first + column;
    const [x, y] = [window.columns[column].x, window.yOf(column, tb)];
    context.fillStyle = "#fffb";
    context.fillRect(0, GRAPH_HEAD, this.plot.width, this.plot.height);
    const lines = KIND_STYLES.map(() => []);
    const points = new Map();
    for (const [number, kinds] of graph.producersOf(kernel, tb)) {
      if (window.columnOf(number) < 0) continue;
      const point = window.pointOf(number);
      lines[kindOf(kinds)].push(...point, x, y);
      points.set(point.map(Math.round).join(), point);
    }
    const users = [];
    for (const number of graph.consumersOf(kernel, tb)) {
      if (window.columnOf(number) < 0) continue;
      const point = window.pointOf(number);
      users.push(x, y, ...point);
      points.set(point.map(Math.round).join(), point);
    }
    KIND_STYLES.forEach((style, kind) => drawLines(context, lines[kind], style, 0.8));
    drawLines(context, users, { colour: "#555", dash: [] }, 0.6);
    context.fillStyle = "#000";
    for (const [px, py] of points.values()) context.fillRect(px - 3, py - 2, 6, 4);
    context.lineWidth = 2;
    context.strokeStyle = "#000";
    context.strokeRect(x - 6, y - 5, 12, 10);
  }

  /** Say what the TB under the pointer needs, and who needs it. */
  explain() {
    if (!this.focus) {
      this.hint.textContent = "Point to a TB to see which TBs it needs and which need it.";
      return;
    }
    const { graph, run, window } = this;
    const [column, tb] = this.focus;
    const kernel = window.first + column;
    const kernels = new Map();
    for (const number of graph.producersOf(kernel, tb).keys()) {
      const [from] = graph.place(number);
      kernels.set(from, (kernels.get(from) ?? 0) + 1);
    }
    const needs = [...kernels].sort((a, b) => b[0] - a[0]).map(([from, count]) => {
      const all = graph.offsets[from + 1] - graph.offsets[from];
      return `${formatPart(count, all)} of kernel ${from}${from < window.first ? " (not shown)" : ""}`;
    });
    const more = needs.length > 5 ? ` and of ${needs.length - 5} more kernels` : "";
    const users = graph.consumersOf(kernel, tb).size;
    this.hint.textContent = `TB ${tb} of kernel ${kernel} (${run.nameOf(kernel)}) needs ${needs.slice(0, 5).join(", ") || "no other kernel"}${more}; `
      + `${formatCount(users, "TB needs", "TBs need")} it.`;
  }

  setFocus(focus) {
    if (focus?.join() === this.focus?.join()) return;
    this.focus = focus;
    this.plot.paintOver();
    this.explain();
  }

  listen(canvas) {
    canvas.addEventListener("pointermove", (event) => this.setFocus(this.window.at(event.offsetX, event.offsetY)));
    canvas.addEventListener("pointerleave", () => this.setFocus(null));
    canvas.addEventListener("click", () => this.tell());
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const keys = {
        ArrowUp: () => this.step(0, event.shiftKey ? -10 : -1), ArrowDown: () => this.step(0, event.shiftKey ? 10 : 1),
        ArrowLeft: () => this.step(-1, 0), ArrowRight: () => this.step(1, 0),
        PageUp: () => this.move(this.first - this.count), PageDown: () => this.move(this.first + this.count),
        Enter: () => this.tell(), Escape: () => this.setFocus(null),
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
  }

  tell() {
    if (this.focus) this.report(this.first + this.focus[0], this.focus[1]);
  }

  step(columns, tbs) {
    const [column, tb] = this.focus ?? [0, columns ? 0 : -1];
    const to = Math.min(this.count - 1, Math.max(0, this.focus ? column + columns : column));
    const last = this.window.needs[to].length - 1;
    this.setFocus([to, Math.min(last, Math.max(0, tb + tbs))]);
  }
}

/** Draw lines [x0, y0, x1, y1, ...]; the more there are, the paler. */
function drawLines(context, lines, style, alpha = Math.max(0.05, Math.min(0.7, 1200 / lines.length))) {
  if (!lines.length) return;
  strokeAs(context, style, 1);
  context.globalAlpha = alpha;
  context.beginPath();
  for (let i = 0; i < lines.length; i += 4) {
    context.moveTo(lines[i], lines[i + 1]);
    context.lineTo(lines[i + 2], lines[i + 3]);
  }
  context.stroke();
  context.globalAlpha = 1;
  context.setLineDash([]);
}

/** Draw the TBs of a kernel: dots, or marks of a few TBs each, where the greatest need shows. */
function drawColumn(context, { x, top, pitch, tbs }, needs) {
  const merged = Math.max(1, Math.ceil(DOT_PITCH / pitch));
  context.strokeStyle = "#333";
  context.lineWidth = 1;
  for (let tb = 0; tb < tbs; tb += merged) {
    let need = needs[tb];
    for (let i = tb + 1; i < Math.min(tbs, tb + merged); i += 1) need = Math.max(need, needs[i]);
    context.fillStyle = NEED_COLOURS[need];
    context.beginPath();
    if (pitch >= 6) context.arc(x, top + (tb + 0.5) * pitch, Math.min(4.5, pitch * 0.4), 0, 7);
    else context.rect(x - 4, top + tb * pitch, 8, Math.max(1, pitch * merged - 1));
    context.fill();
    if (pitch >= 6 || need === 0) context.stroke();
  }
}

/** Return text cut to a width. */
function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
  return `${text.slice(0, end)}…`;
}

/** Return a piece of a line, for legends. */
function lineSample(style) {
  const canvas = element("canvas", { class: "swatch", width: 52, height: 20, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  strokeAs(context, style, 2);
  context.beginPath();
  context.moveTo(0, 5);
  context.lineTo(26, 5);
  context.stroke();
  return canvas;
}
