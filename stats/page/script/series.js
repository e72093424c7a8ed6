// Utilisation and traffic over time: a chart a quantity, a line a run, on the time axis of the timelines.

const SERIES_HEIGHT = 58;
const SERIES_AXIS = 20; // above the first chart: the time axis
const SERIES_MOST = 4; // runs
const SERIES_FIRST = ["busy_sms", "resident_tbs", "alu", "tensor", "l2_bandwidth", "dram_share"];
const SERIES_NEEDS = [ // key that is there if the file has it; what it takes otherwise
  ["busy_sms", "SMs with a TB: needs the table tbs (--tables all)"],
  ["alu", "warps and pipes: needs the table samples (--tables all)"],
  ["l2_bandwidth", "traffic of L2 and DRAM: run with a sampling interval, such as --sample-us 2"],
];

/**
 * Charts under the timelines. `axis`: their TimeAxis; `show(runs)` says which runs.
 *
 * `canvases` are those that may zoom and pan the axis; their pictures begin GUTTER pixels from the left. `onHover(ns)`
 * is called with the moment at the pointer, or null; `mark(ns)` shows a moment from elsewhere.
 */
class SeriesPanel {
  constructor(root, axis, runs) {
    Object.assign(this, { root, axis, runs, shown: [], charts: [], moment: null, onHover: null, shiftOf: () => 0 });
    this.wanted = null; // keys that the reader has chosen
    this.choices = element("div", { class: "controls", role: "group", "aria-label": "Quantities to show" });
    this.count = element("summary");
    this.legend = element("ul", { class: "legend", "aria-label": "Runs" });
    this.body = element("div", { class: "series" });
    this.note = element("p", { class: "quiet" });
    root.append(element("details", {}, this.count, this.choices), this.legend, this.body, this.note);
    axis.onChange(() => this.redraw());
  }

  /** Return the time axis as a run sees it; `shiftOf(run)`: ns by which it is moved to the left. */
  axisOf(run) {
    const by = this.shiftOf(run);
    if (!by) return this.axis;
    const moved = Object.create(this.axis);
    moved.low += by;
    moved.high += by;
    return moved;
  }

  get canvases() {
    return this.charts.map((chart) => chart.plot.canvas);
  }

  /** Show these runs, at most four. */
  async show(runs) {
    const asked = runs.slice(0, SERIES_MOST);
    this.asked = asked;
    const read = await Promise.all(asked.map(seriesOf));
    if (this.asked !== asked) return; // others were asked for meanwhile
    this.shown = asked.map((run, place) => ({ run, place, series: read[place] }));
    this.build();
  }

  /** Make the choices and charts of the runs that are shown. */
  build() {
    const known = new Map();
    for (const { series } of this.shown) for (const each of series.values()) if (!known.has(each.key)) known.set(each.key, each);
    this.wanted ??= new Set(SERIES_FIRST);
    if (this.wanted.has("dram_share") && !known.has("l2_bandwidth") && this.wanted.size === SERIES_FIRST.length) this.wanted.add("l2_requests");
    this.choices.replaceChildren(...[...known.values()].map((each) => {
      const box = element("input", {
        type: "checkbox",
        onchange: () => {
          this.wanted[box.checked ? "add" : "delete"](each.key);
          this.makeCharts(known);
        },
      });
      box.checked = this.wanted.has(each.key);
      return element("label", { class: "choice" }, box, ` ${each.label}`);
    }));
    this.legend.replaceChildren(...this.shown.map(({ run, place }) => element("li", {}, runSwatch(place), ` ${run.label}`)));
    this.note.textContent = this.missing();
    this.makeCharts(known);
  }

  /** Say what the files do not have, and how it is recorded. */
  missing() {
    if (!this.shown.length) return "No run is shown.";
    const texts = [];
    for (const [key, text] of SERIES_NEEDS) {
      const without = this.shown.filter(({ series }) => !series.has(key));
      if (!without.length) continue;
      const whose = without.length === this.shown.length ? "" : ` (not in the file of ${without.map(({ run }) => run.label).join(", ")})`;
      texts.push(`${text}${whose}`);
    }
    return texts.length ? `Not recorded – ${texts.join("; ")}.` : "";
  }

  makeCharts(known) {
    for (const chart of this.charts) chart.remove();
    const keys = [...known.keys()].filter((key) => this.wanted.has(key));
    this.count.textContent = `Quantities: ${keys.length} of ${known.size}`;
    this.charts = keys.map((key, number) => new SeriesChart(this, known.get(key), number === 0));
    for (const chart of this.charts) this.listen(chart.plot.canvas);
  }

  listen(canvas) {
    controlAxis(canvas, this.axis);
    canvas.addEventListener("pointermove", (event) => this.point(event.offsetX, canvas.clientWidth));
    canvas.addEventListener("pointerleave", () => this.point(-1, 0));
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const { axis } = this;
      const middle = (axis.low + axis.high) / 2;
      const step = (axis.high - axis.low) / 50;
      const along = (by) => this.setMoment(Math.min(axis.high, Math.max(axis.low, (this.moment ?? middle) + by)));
      const keys = {
        ArrowLeft: () => (event.shiftKey ? along(-step) : axis.pan(-0.2)),
        ArrowRight: () => (event.shiftKey ? along(step) : axis.pan(0.2)),
        "+": () => axis.zoom(1.5),
        "=": () => axis.zoom(1.5),
        "-": () => axis.zoom(1 / 1.5),
        0: () => axis.reset(),
        Escape: () => this.setMoment(null),
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
  }

  point(x, width) {
    const inside = x >= GUTTER && x <= width;
    this.setMoment(inside ? this.axis.toTime(x - GUTTER, width - GUTTER) : null);
  }

  setMoment(ns) {
    this.mark(ns);
    this.onHover?.(ns);
  }

  /** Show a moment of ns in all charts; null: none. */
  mark(ns) {
    if (ns === this.moment) return;
    this.moment = ns;
    for (const chart of this.charts) chart.point();
  }

  redraw() {
    for (const chart of this.charts) chart.plot.redraw();
  }

  /** How long the last drawing of all charts took, in ms. */
  get lastDraw() {
    return this.charts.reduce((sum, chart) => sum + (chart.plot.lastDraw ?? 0), 0);
  }
}

/** One quantity of all runs that are shown. */
class SeriesChart {
  constructor(panel, about, first) {
    this.panel = panel;
    this.lines = panel.shown.filter(({ series }) => series.has(about.key)).map(({ place, run, series }) => ({ place, run, series: series.get(about.key) }));
    this.unit = about.unit;
    this.head = first ? SERIES_AXIS : 0;
    const top = Math.max(...this.lines.map(({ series }) => series.top));
    const most = Math.max(...this.lines.map(({ series }) => series.max ?? 0));
    this.most = most;
    this.top = most ? Math.min(most, roundAbove(top)) : roundAbove(top);
    const limit = most && this.unit !== "share" ? ` (at most ${seriesText(most, this.unit)})` : "";
    this.values = this.lines.map(() => element("span", { class: "value" }));
    this.title = element("div", { class: "series-head" }, element("b", {}, `${about.label}${limit}`),
      ...this.lines.map(({ place }, i) => element("span", { class: "of-run" }, runSwatch(place), this.values[i])));
    panel.body.append(this.title);
    this.plot = new Plot(panel.body, {
      height: SERIES_HEIGHT + this.head,
      label: `${about.label} over time, ${this.lines.map(({ run }) => run.label).join(", ")}. Arrow keys move, plus and minus zoom, `
        + "0 shows all, Shift and arrow keys read values.",
      draw: (context, width, height) => this.draw(context, width, height),
      drawOver: (context, width, height) => this.drawOver(context, width, height),
    });
    this.plot.canvas.addEventListener("focus", () => this.say());
  }

  remove() {
    this.title.remove();
    this.plot.remove();
  }

  point() {
    this.plot.paintOver();
    this.say();
  }

  /** Write the values at the pointer, or means of what is in sight. */
  say() {
    const { axis, moment } = this.panel;
    this.lines.forEach(({ run, series, fine }, i) => {
      const { low, high } = this.panel.axisOf(run);
      const value = moment === null ? series.mean(low, high) : (fine ?? series).at(moment + low - axis.low);
      this.values[i].textContent = `${moment === null ? "mean " : ""}${seriesText(value, this.unit)}`;
    });
  }

  toY(value, height) {
    return height - 1 - (value / this.top) * (height - 4 - this.head);
  }

  draw(context, width, height) {
    const { axis } = this.panel;
    const plotWidth = width - GUTTER;
    context.fillStyle = CHART_INK;
    context.strokeStyle = CHART_GRID;
    context.textAlign = "right";
    for (const [value, y] of [[this.top, this.head + 8], [0, height - 7]]) {
      const text = this.unit === "share" ? `${formatNumber(100 * value)}${NBSP}%` : formatNumber(value);
      context.fillText(text, GUTTER - 5, y);
    }
    context.beginPath();
    const { marks } = axis.ticks(plotWidth);
    context.textAlign = "left";
    for (const mark of marks) {
      const x = Math.round(GUTTER + axis.toPixel(mark, plotWidth)) + 0.5;
      context.moveTo(x, this.head);
      context.lineTo(x, height);
    }
    this.ticks = this.head ? tickLabels(context, axis, plotWidth, width) : [];
    for (const { text, left } of this.ticks) context.fillText(text, left, 8);
    for (const share of [0, 0.5, 1]) {
      const y = Math.round(this.toY(share * this.top, height)) + 0.5;
      context.moveTo(GUTTER, y);
      context.lineTo(width, y);
    }
    context.stroke();
    context.beginPath();
    context.rect(GUTTER, this.head, plotWidth, height - this.head);
    context.clip();
    for (const line of this.lines) {
      const view = this.panel.axisOf(line.run);
      line.fine = this.finer(line, view, plotWidth);
      drawSteps(context, line.fine ?? line.series, view, [GUTTER, plotWidth], (value) => this.toY(value, height), runStyle(line.place));
    }
    this.say();
  }

  /** Return a series of what is in sight, finer than the stored one where that is too coarse; null: it is not. */
  finer({ run, series }, { low, high }, plotWidth) {
    if (series.edges[0] === undefined || !["busy_sms", "resident_tbs"].includes(series.key)) return null;
    const bins = Math.floor(plotWidth / ZOOM_STEP);
    const end = series.edges[series.values.length];
    if (low >= end || series.edges[1] - series.edges[0] <= (2 * (high - low)) / bins) return null;
    return zoomedSeries(run, series, Math.max(0, low), Math.min(high, end), bins);
  }

  drawOver(context, width, height) {
    const { axis, moment } = this.panel;
    if (moment === null || moment < axis.low || moment > axis.high) return;
    const x = GUTTER + axis.toPixel(moment, width - GUTTER);
    context.strokeStyle = "#000a";
    context.beginPath();
    context.moveTo(x, this.head);
    context.lineTo(x, height);
    context.stroke();
    if (this.head) {
      const text = formatMoment(moment);
      const wide = context.measureText(text).width;
      const left = Math.min(x - wide / 2, width - wide - 4);
      context.fillStyle = "#fff";
      context.fillRect(left - 6, 0, wide + 12, 16);
      for (const tick of this.ticks) { // a label that it would cut is hidden as a whole
        if (tick.left < left + wide + 6 && tick.left + tick.wide > left - 6) context.fillRect(tick.left - 2, 0, tick.wide + 4, 16);
      }
      context.fillStyle = "#000";
      context.fillText(text, left, 8);
    }
    for (const { run, series, fine, place } of this.lines) {
      const value = (fine ?? series).at(moment + this.panel.axisOf(run).low - axis.low);
      if (Number.isNaN(value)) continue;
      context.fillStyle = runStyle(place).colour;
      context.beginPath();
      context.arc(x, this.toY(value, height), 3, 0, 7);
      context.fill();
    }
  }
}
