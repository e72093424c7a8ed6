// All points of a sweep: a chart over one key of the grid, and their rows.

const SWEEP_ROWS = 200; // of the table at once
const SWEEP_HEIGHT = 300;
const SWEEP_EDGE = { left: 70, right: 30, top: 10, bottom: 38 };
const SWEEP_NEAR = 20; // pixels from a mark that still point to it
const MARKS = ["circle", "square", "triangle", "diamond", "cross"];
// lines of one scheme, which differ in keys that are not on the axis
const SWEEP_LINES = [1, 0.45].flatMap((alpha) => [[], [7, 3], [2, 2], [8, 3, 2, 3]].map((dash) => ({ dash, alpha })));

class SweepPanel {
  constructor(root, sweep) {
    Object.assign(this, { root, sweep, count: sweep.scheme.index.length, focus: -1 });
    this.names = Object.keys(sweep.values).filter((name) => sweep.values[name].some((v) => v !== null));
    this.quantity = this.select(this.names, sweepHead);
    this.key = this.select(sweep.keys.map((_, number) => number), (number) => sweep.keys[number]);
    this.filters = sweep.keys.map((key, number) => this.select(["", ...sweep.grid[number].values.keys()], (at) => (at === "" ? "all" : sweep.grid[number].values[at])));
    const controls = element("div", { class: "controls" }, label("show", this.quantity), label("over", this.key));
    this.many = sweep.grid.map((column) => column.values.length > 1);
    sweep.keys.forEach((key, number) => {
      if (this.many[number] && sweep.keys.length > 1) controls.append(label(key, this.filters[number]));
    });
    const most = this.many.indexOf(true);
    this.key.value = most < 0 ? 0 : most;
    if (this.names.includes("speedup")) this.quantity.value = "speedup";
    this.legend = element("ul", { class: "legend", "aria-label": "Schemes and lines" });
    this.says = element("p", { class: "hint", role: "status" });
    this.rows = element("div");
    const frame = element("div");
    const missing = sweep.missing ? ` ${sweep.missing.toLocaleString("en-US")} have no result.` : "";
    root.append(
      element("p", {}, `${formatCount(this.count, "run")} of ${formatCount(sweep.points, "point")}, ${this.indices().length.toLocaleString("en-US")} with a time.${missing}`),
      controls, this.legend, frame, this.says, this.rows,
    );
    this.update();
    this.plot = new Plot(frame, {
      height: SWEEP_HEIGHT,
      label: this.name,
      draw: (context, width, height) => this.draw(context, width, height),
      drawOver: (context) => this.drawOver(context),
    });
    this.listen(this.plot.canvas);
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
    const { sweep } = this;
    this.shown = this.indices();
    this.axisKey = Number(this.key.value);
    const values = sweep.values[this.quantity.value] ?? [];
    this.points = this.shown.filter((i) => typeof values[i] === "number");
    this.variants = new Map(); // text of the keys that are not on the axis: number of its kind of line
    this.variantOf = new Map(); // of each run
    for (const i of this.points) {
      const text = this.variant(i);
      if (!this.variants.has(text)) this.variants.set(text, this.variants.size);
      this.variantOf.set(i, this.variants.get(text));
    }
    this.name = `${sweepHead(this.quantity.value)} of ${formatCount(this.points.length, "run")} over ${sweep.keys[this.axisKey] ?? "nothing"}; `
      + "the table below has the numbers. Left and right arrow keys go from mark to mark.";
    this.plot?.canvas.setAttribute("aria-label", this.name);
    this.plot?.redraw();
    this.point(-1);
    this.fillLegend();
    this.fillTable();
  }

  /** Return the keys of a run that have several values and are not on the axis, as text. */
  variant(i) {
    const { keys, grid } = this.sweep;
    return keys.map((key, number) => (this.many[number] && number !== this.axisKey ? `${key}=${grid[number].values[grid[number].index[i]]}` : ""))
      .filter(Boolean).join(", ");
  }

  fillLegend() {
    const { scheme } = this.sweep;
    const there = new Set(this.points.map((i) => scheme.index[i]));
    const items = scheme.values.map((name, number) => (there.has(number) ? element("li", {}, markSample(number), ` ${name}`) : null));
    const variants = [...this.variants.keys()];
    if (variants.length > SWEEP_LINES.length) {
      items.push(element("li", {}, `${variants.length.toLocaleString("en-US")} lines a scheme: point to a mark for its values`));
    } else if (variants.length > 1 && this.isNumeric(this.sweep.grid[this.axisKey])) {
      items.push(...variants.map((text, number) => element("li", {}, variantSample(number), ` ${text}`)));
    }
    this.legend.replaceChildren(...items.filter(Boolean));
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

  draw(context, width, height) {
    const { sweep } = this;
    const { left, right, top, bottom } = SWEEP_EDGE;
    const name = this.quantity.value;
    const values = sweep.values[name] ?? [];
    this.at = new Map();
    if (!this.points.length) {
      context.fillText(this.names.length ? `no run has a value of ${sweepHead(name)}` : "no run has a value", left, height / 2);
      return;
    }
    const most = this.points.reduce((found, i) => Math.max(found, values[i]), 0);
    const least = this.points.reduce((found, i) => Math.min(found, values[i]), 0);
    const column = sweep.grid[this.axisKey] ?? { values: [""], index: new Array(this.count).fill(0) };
    const places = this.places(column);
    const [low, high] = [Math.min(...places), Math.max(...places)];
    const room = width - left - 14 - right;
    const toX = (at) => left + 14 + (high > low ? ((places[at] - low) / (high - low)) * room : room / 2);
    const toY = (value) => top + ((most - value) / Math.max(most - least, 1e-12)) * (height - bottom - top - 4);
    for (const tick of roundTicks(least, most, 5)) {
      context.fillStyle = "#e3e3e3";
      context.fillRect(left, toY(tick), width - left - 6, 1);
      context.fillStyle = CHART_INK;
      context.textAlign = "right";
      context.fillText(SWEEP_VALUES[name][2](tick), left - 6, toY(tick));
    }
    this.labelValues(context, column, toX, height - bottom + 10);
    context.fillStyle = CHART_INK;
    context.textAlign = "left";
    const scale = this.isLogarithmic(column) ? " (logarithmic)" : "";
    context.fillText(`${sweepHead(name)} over ${sweep.keys[this.axisKey] ?? "nothing"}${scale}`, left, height - 8);
    for (const i of this.points) this.at.set(i, [toX(column.index[i]), toY(values[i])]);
    for (const line of this.lines()) this.drawLine(context, line);
    for (const i of this.points) mark(context, sweep.scheme.index[i], ...this.at.get(i));
  }

  drawLine(context, line) {
    const { dash, alpha } = SWEEP_LINES[this.variantOf.get(line[0]) % SWEEP_LINES.length];
    strokeAs(context, { colour: paletteColour(this.sweep.scheme.index[line[0]]), dash }, 1.4);
    context.globalAlpha = alpha;
    context.beginPath();
    polygon(context, line.map((i) => this.at.get(i)).sort((p, q) => p[0] - q[0]));
    context.stroke();
    context.globalAlpha = 1;
    context.setLineDash([]);
  }

  /** Return the runs that differ only in the key on the axis, as lists. */
  lines() {
    const made = new Map();
    if (typeof this.sweep.grid[this.axisKey]?.values[0] !== "number") return [];
    for (const i of this.points) {
      const group = `${this.sweep.scheme.index[i]} ${this.variantOf.get(i)}`;
      if (!made.has(group)) made.set(group, []);
      made.get(group).push(i);
    }
    return [...made.values()];
  }

  /** Label the values of a key, as many as have room. */
  labelValues(context, column, x, y) {
    context.textAlign = "center";
    context.fillStyle = CHART_INK;
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

  drawOver(context) {
    const at = this.at?.get(this.focus);
    if (!at) return;
    context.lineWidth = 2;
    context.strokeStyle = "#000";
    context.beginPath();
    context.arc(...at, 9, 0, 7);
    context.stroke();
  }

  listen(canvas) {
    canvas.addEventListener("pointermove", (event) => this.point(this.nearest(event.offsetX, event.offsetY)));
    canvas.addEventListener("pointerleave", () => this.point(-1));
    canvas.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") this.point(-1);
      if (!by || !this.points.length) return;
      event.preventDefault();
      const order = [...this.at].sort(([, p], [, q]) => p[0] - q[0] || p[1] - q[1]).map(([i]) => i);
      const place = order.indexOf(this.focus);
      this.point(order[place < 0 ? (by > 0 ? 0 : order.length - 1) : (place + by + order.length) % order.length]);
    });
  }

  nearest(x, y) {
    let [found, least] = [-1, SWEEP_NEAR];
    for (const [i, at] of this.at ?? []) {
      const distance = Math.hypot(at[0] - x, at[1] - y);
      if (distance < least) [found, least] = [i, distance];
    }
    return found;
  }

  /** Mark a run and say its values; -1: none. */
  point(i) {
    const { sweep } = this;
    this.focus = i;
    if (i < 0) {
      this.says.textContent = "Point to a mark for its values.";
    } else {
      const keys = sweep.keys.map((key, number) => `${key}=${sweep.grid[number].values[sweep.grid[number].index[i]]}`);
      const values = this.names.map((name) => `${sweepHead(name)} ${sweepText(name, sweep.values[name][i])}`);
      this.says.textContent = `${[...keys, sweep.scheme.values[sweep.scheme.index[i]]].join(", ")}: ${values.join(", ")}.`;
    }
    this.plot?.paintOver();
  }

  fillTable() {
    const { sweep } = this;
    const rows = this.shown.slice(0, SWEEP_ROWS).map((i) => [
      ...sweep.grid.map((column) => String(column.values[column.index[i]])),
      sweep.scheme.values[sweep.scheme.index[i]],
      ...this.names.map((name) => sweepText(name, sweep.values[name][i])),
    ]);
    const more = this.shown.length > rows.length ? `The first ${rows.length} of ${formatCount(this.shown.length, "run")}; the lists above choose.` : "";
    const details = element("details", {}, element("summary", {}, `Table of ${formatCount(this.shown.length, "run")}`), element("p", { class: "quiet" }, more),
      textTable([...sweep.keys, "scheme", ...this.names.map(sweepHead)], rows, sweep.keys.length + 1));
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

/** Return the mark of a scheme, for legends. */
function markSample(scheme) {
  const canvas = element("canvas", { class: "shape", width: 32, height: 32, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  mark(context, scheme, 8, 8);
  return canvas;
}

/** Return a piece of the lines of a variant, for legends. */
function variantSample(number) {
  const { dash, alpha } = SWEEP_LINES[number];
  const canvas = lineSample({ colour: "#444444", dash });
  canvas.style.opacity = alpha;
  return canvas;
}

function polygon(context, points) {
  points.forEach(([x, y], number) => (number ? context.lineTo(x, y) : context.moveTo(x, y)));
}
