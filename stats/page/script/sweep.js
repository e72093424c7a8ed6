// All points of a sweep: a chart over one key of the grid, and their rows.

const SWEEP_ROWS = 200; // of the table at once
const MARKS = ["circle", "square", "triangle", "diamond", "cross"];

class SweepPanel {
  constructor(root, sweep) {
    Object.assign(this, { root, sweep, count: sweep.scheme.index.length });
    this.quantity = this.select(Object.keys(sweep.values).filter((name) => sweep.values[name].some((v) => v !== null)), (name) => name.replaceAll("_", " "));
    this.key = this.select(sweep.keys.map((_, number) => number), (number) => sweep.keys[number]);
    this.filters = sweep.keys.map((key, number) => this.select(["", ...sweep.grid[number].values.keys()], (at) => (at === "" ? "all" : sweep.grid[number].values[at])));
    const controls = element("div", { class: "controls" }, label("show", this.quantity), label("over", this.key));
    const many = sweep.grid.map((column) => column.values.length > 1);
    sweep.keys.forEach((key, number) => {
      if (many[number] && sweep.keys.length > 1) controls.append(label(key, this.filters[number]));
    });
    const most = many.indexOf(true);
    this.key.value = most < 0 ? 0 : most;
    if (sweep.values.speedup?.some((v) => v !== null)) this.quantity.value = "speedup";
    this.canvas = element("canvas", { class: "chart", role: "img", tabindex: "0" });
    this.legend = element("ul", { class: "legend" });
    this.rows = element("div");
    const missing = sweep.missing ? ` ${sweep.missing.toLocaleString("en-US")} have no result.` : "";
    const failed = this.indices().length;
    root.append(
      element("p", {}, `${this.count.toLocaleString("en-US")} runs of ${sweep.points.toLocaleString("en-US")} points, ${failed.toLocaleString("en-US")} with a time.${missing}`),
      controls, this.legend, this.canvas, this.rows,
    );
    new ResizeObserver(() => this.draw()).observe(root);
    this.update();
  }

  select(values, text) {
    const made = element("select", { onchange: () => this.update() });
    for (const value of values) made.append(element("option", { value }, String(text(value))));
    return made;
  }

  /** Return the numbers of the runs that pass the filters and have a time. */
  indices() {
    const made = [];
    const { sweep } = this;
    const ok = sweep.status.values.indexOf("ok");
    for (let i = 0; i < this.count; i += 1) {
      if (sweep.status.index[i] !== ok) continue;
      if (this.filters.every((filter, key) => filter.value === "" || Number(filter.value) === sweep.grid[key].index[i])) made.push(i);
    }
    return made;
  }

  update() {
    this.shown = this.indices();
    this.draw();
    this.fillTable();
    this.legend.replaceChildren(...this.sweep.scheme.values.map((name, number) => legendItem(paletteColour(number), `${name} (${MARKS[number % MARKS.length]})`)));
  }

  isNumeric(column) {
    return column.values.length > 1 && column.values.every((value) => typeof value === "number");
  }

  /** Return whether the values of a key are spread so wide that each doubling takes as much room. */
  isLogarithmic(column) {
    if (!this.isNumeric(column)) return false;
    const least = Math.min(...column.values);
    return least > 0 && Math.max(...column.values) / least > 8;
  }

  /** Return positions of the values of a key: numbers at their places, texts evenly. */
  places(column) {
    if (!this.isNumeric(column)) return column.values.map((_, number) => number);
    const logarithmic = this.isLogarithmic(column);
    return column.values.map((value) => (logarithmic ? Math.log2(value) : value));
  }

  draw() {
    const width = this.root.clientWidth;
    const { sweep, canvas } = this;
    if (!width || !this.shown) return;
    const [ratio, height, left, foot] = [Math.min(2, window.devicePixelRatio || 1), 300, 70, 38];
    Object.assign(canvas, { width: width * ratio, height: height * ratio });
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const name = this.quantity.value;
    const values = sweep.values[name] ?? [];
    const points = this.shown.filter((i) => values[i] !== null);
    if (!points.length) {
      context.fillText(`no run has ${name}`, left, height / 2);
      return;
    }
    const most = Math.max(...points.map((i) => values[i]), 0);
    const least = Math.min(...points.map((i) => values[i]), 0);
    const column = sweep.grid[Number(this.key.value)] ?? { values: [""], index: new Array(this.count).fill(0) };
    const places = this.places(column);
    const [low, high] = [Math.min(...places), Math.max(...places)];
    const room = width - left - 30;
    const x = (i) => left + 14 + (high > low ? ((places[column.index[i]] - low) / (high - low)) * room : room / 2);
    const y = (value) => 8 + ((most - value) / Math.max(most - least, 1e-12)) * (height - foot - 12);
    for (const tick of roundTicks(least, most, 5)) {
      context.fillStyle = "#e3e3e3";
      context.fillRect(left, y(tick), width - left - 6, 1);
      context.fillStyle = "#444";
      context.textAlign = "right";
      context.fillText(formatNumber(tick), left - 6, y(tick));
    }
    this.labelValues(context, column, (at) => left + 14 + (high > low ? ((places[at] - low) / (high - low)) * room : room / 2), height - foot + 10);
    context.fillStyle = "#444";
    context.textAlign = "left";
    const unit = sweep.units[name] && !["ratio", "share"].includes(sweep.units[name]) ? ` (${sweep.units[name]})` : "";
    const scale = this.isLogarithmic(column) ? " (logarithmic)" : "";
    context.fillText(`${name.replaceAll("_", " ")}${unit} over ${sweep.keys[Number(this.key.value)] ?? "nothing"}${scale}`, left, height - 8);
    for (const line of this.lines(points)) {
      context.strokeStyle = paletteColour(sweep.scheme.index[line[0]]);
      context.lineWidth = 1;
      context.globalAlpha = 0.5;
      context.beginPath();
      polygon(context, line.map((i) => [x(i), y(values[i])]).sort((p, q) => p[0] - q[0]));
      context.stroke();
      context.globalAlpha = 1;
    }
    for (const i of points) mark(context, sweep.scheme.index[i], x(i), y(values[i]));
    canvas.setAttribute("aria-label", `${name} of ${points.length} runs over ${sweep.keys[Number(this.key.value)]}; the table below has the numbers.`);
  }

  /** Return the runs that differ only in the key on the axis, as lists. */
  lines(points) {
    const axis = Number(this.key.value);
    const made = new Map();
    for (const i of points) {
      const group = [this.sweep.scheme.index[i], ...this.sweep.grid.map((column, key) => (key === axis ? "" : column.index[i]))].join();
      if (!made.has(group)) made.set(group, []);
      made.get(group).push(i);
    }
    return typeof this.sweep.grid[axis]?.values[0] === "number" ? [...made.values()] : [];
  }

  /** Label the values of a key, as many as have room. */
  labelValues(context, column, x, y) {
    context.textAlign = "center";
    context.fillStyle = "#444";
    let free = -Infinity;
    const order = [...column.values.keys()].sort((a, b) => x(a) - x(b));
    for (const at of order) {
      const whole = String(column.values[at]);
      const text = whole.length > 16 ? `${whole.slice(0, 15)}…` : whole;
      const half = context.measureText(text).width / 2;
      if (x(at) - half < free) continue;
      context.fillText(text, x(at), y);
      free = x(at) + half + 6;
    }
  }

  fillTable() {
    const { sweep } = this;
    const names = Object.keys(sweep.values);
    const rows = this.shown.slice(0, SWEEP_ROWS).map((i) => [
      ...sweep.grid.map((column) => String(column.values[column.index[i]])),
      sweep.scheme.values[sweep.scheme.index[i]],
      ...names.map((name) => (sweep.values[name][i] === null ? "–" : formatNumber(sweep.values[name][i]))),
    ]);
    const heads = names.map((name) => {
      const unit = sweep.units[name];
      return `${name.replace(/_(us|bytes|j)$/, "").replaceAll("_", " ")}${unit && !["ratio", "share"].includes(unit) ? ` (${unit})` : ""}`;
    });
    const more = this.shown.length > rows.length ? `The first ${rows.length} of ${this.shown.length.toLocaleString("en-US")} runs; the lists above choose.` : "";
    const details = element("details", {}, element("summary", {}, `Table of ${this.shown.length.toLocaleString("en-US")} runs`), element("p", { class: "quiet" }, more), table([...sweep.keys, "scheme", ...heads], rows));
    details.open = this.rows.firstChild?.open ?? this.shown.length <= 40;
    this.rows.replaceChildren(details);
  }
}

/** Draw the mark of a scheme: colour and shape. */
function mark(context, scheme, x, y) {
  context.fillStyle = paletteColour(scheme);
  context.strokeStyle = context.fillStyle;
  context.lineWidth = 2;
  context.beginPath();
  const shape = MARKS[scheme % MARKS.length];
  if (shape === "circle") context.arc(x, y, 4, 0, 2 * Math.PI);
  if (shape === "square") context.rect(x - 3.5, y - 3.5, 7, 7);
  if (shape === "triangle") polygon(context, [[x, y - 5], [x + 5, y + 4], [x - 5, y + 4]]);
  if (shape === "diamond") polygon(context, [[x, y - 5], [x + 5, y], [x, y + 5], [x - 5, y]]);
  if (shape === "cross") {
    polygon(context, [[x - 4, y - 4], [x + 4, y + 4]]);
    polygon(context, [[x - 4, y + 4], [x + 4, y - 4]]);
    context.stroke();
  } else context.fill();
}

function polygon(context, points) {
  points.forEach(([x, y], number) => (number ? context.lineTo(x, y) : context.moveTo(x, y)));
}
