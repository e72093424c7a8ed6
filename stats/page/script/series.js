// Utilisation and traffic over time: a chart a quantity, a line a run, on the time axis of the timelines.

const SERIES_HEIGHT = 58;
const SERIES_AXIS = 20; // above the first chart: the time axis
const SERIES_MOST = 4; // runs
const STEP_PIXELS = 2; // that a step takes where there are more steps than pixels
const SERIES_FIRST = ["busy_sms", "resident_tbs", "alu", "tensor", "l2_bandwidth", "dram_share"];
const SERIES_NEEDS = [ // key that is there if the file has it; what it takes otherwise
  ["busy_sms", "SMs with a TB: needs the table tbs (--tables all)"],
  ["alu", "warps and pipes: needs the table samples (--tables all)"],
  ["l2_bandwidth", "traffic of L2 and DRAM: run with a sampling interval, such as --sample-us 2"],
];

/** A quantity of a run: `values[i]` is its mean from `edges[i]` to `edges[i + 1]` (ns); NaN: none. */
class Series {
  constructor(about, edges, values) {
    Object.assign(this, about, { edges, values });
    this.sums = new Float64Array(edges.length); // integral up to each edge
    this.spans = new Float64Array(edges.length); // how much of the time up to it has a value
    this.top = 0;
    for (let i = 0; i < values.length; i += 1) {
      const there = !Number.isNaN(values[i]);
      const width = there ? edges[i + 1] - edges[i] : 0;
      this.sums[i + 1] = this.sums[i] + (there ? values[i] * width : 0);
      this.spans[i + 1] = this.spans[i] + width;
      if (values[i] > this.top) this.top = values[i];
    }
  }

  /** Return the place of the interval that holds a moment. */
  placeOf(ns) {
    let [low, high] = [0, this.values.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.edges[middle] <= ns) low = middle;
      else high = middle;
    }
    return low;
  }

  /** Return the value at a moment; NaN where there is none. */
  at(ns) {
    if (!this.values.length || ns < this.edges[0] || ns > this.edges[this.values.length]) return NaN;
    return this.values[this.placeOf(ns)];
  }

  /** Return the mean from one moment to another. */
  mean(low, high) {
    const [sum, span] = [this.upTo(this.sums, high) - this.upTo(this.sums, low), this.upTo(this.spans, high) - this.upTo(this.spans, low)];
    return span > 0 ? sum / span : NaN;
  }

  upTo(sums, ns) {
    const last = this.values.length;
    if (ns <= this.edges[0] || !last) return 0;
    if (ns >= this.edges[last]) return sums[last];
    const i = this.placeOf(ns);
    return sums[i] + ((sums[i + 1] - sums[i]) * (ns - this.edges[i])) / (this.edges[i + 1] - this.edges[i]);
  }
}

/** Return the series of a run by key, read once. */
function seriesOf(run) {
  run.seriesRead ??= readBlob(`series${run.number}`).then((columns) => {
    const made = new Map();
    const edges = new Map();
    for (const about of columns ? run.about.series : []) {
      if (!edges.has(about.edges)) {
        edges.set(about.edges, Float64Array.from(columns[about.edges], (tick) => tick * run.about.series_tick_ns));
      }
      made.set(about.key, new Series(about, edges.get(about.edges), columns[about.key]));
    }
    return made;
  });
  return run.seriesRead;
}

/** Return a value of a series as text. */
function seriesText(value, unit) {
  if (unit === "share") return formatShare(value);
  return Number.isFinite(value) ? `${formatNumber(value)} ${unit}` : "–";
}

/**
 * Charts under the timelines. `axis`: their TimeAxis; `show(runs)` says which runs.
 *
 * `canvases` are those that may zoom and pan the axis; their pictures begin GUTTER pixels from the left. `onHover(ns)`
 * is called with the moment at the pointer, or null; `mark(ns)` shows a moment from elsewhere.
 */
class SeriesPanel {
  constructor(root, axis, runs) {
    Object.assign(this, { root, axis, runs, shown: [], charts: [], moment: null, onHover: null });
    this.wanted = null; // keys that the reader has chosen
    this.choices = element("div", { class: "controls", role: "group", "aria-label": "Quantities to show" });
    this.count = element("summary");
    this.legend = element("ul", { class: "legend", "aria-label": "Runs" });
    this.body = element("div", { class: "series" });
    this.note = element("p", { class: "quiet" });
    root.append(element("details", {}, this.count, this.choices), this.legend, this.body, this.note);
    axis.onChange(() => this.redraw());
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
    this.lines.forEach(({ series }, i) => {
      const value = moment === null ? series.mean(axis.low, axis.high) : series.at(moment);
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
      const text = this.unit === "share" ? `${Math.round(100 * value)} %` : formatNumber(value);
      context.fillText(text, GUTTER - 5, y);
    }
    context.beginPath();
    const { marks, step } = axis.ticks(plotWidth);
    context.textAlign = "left";
    for (const mark of marks) {
      const x = Math.round(GUTTER + axis.toPixel(mark, plotWidth)) + 0.5;
      context.moveTo(x, this.head);
      context.lineTo(x, height);
      const text = formatTick(mark, step);
      const half = context.measureText(text).width / 2;
      if (this.head && x - half > GUTTER - 8) context.fillText(text, Math.min(x - half, width - 2 * half), 8);
    }
    for (const share of [0, 0.5, 1]) {
      const y = Math.round(this.toY(share * this.top, height)) + 0.5;
      context.moveTo(GUTTER, y);
      context.lineTo(width, y);
    }
    context.stroke();
    context.beginPath();
    context.rect(GUTTER, this.head, plotWidth, height - this.head);
    context.clip();
    for (const { series, place } of this.lines) drawSteps(context, series, axis, [GUTTER, plotWidth], (value) => this.toY(value, height), runStyle(place));
    this.say();
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
      const left = Math.min(x - wide / 2, width - wide - 4); // over the labels of the axis
      context.fillStyle = "#fff";
      context.fillRect(left - 6, 0, wide + 12, 16);
      context.fillStyle = "#000";
      context.fillText(text, left, 8);
    }
    for (const { series, place } of this.lines) {
      const value = series.at(moment);
      if (Number.isNaN(value)) continue;
      context.fillStyle = runStyle(place).colour;
      context.beginPath();
      context.arc(x, this.toY(value, height), 3, 0, 7);
      context.fill();
    }
  }
}

/** Draw a series: a step an interval; where a pixel has several, their mean as the line and their range as a band. */
function drawSteps(context, series, axis, [left, width], toY, style) {
  const { edges, values } = series;
  if (!values.length || edges[values.length] <= axis.low) return;
  const first = series.placeOf(axis.low);
  const last = series.placeOf(axis.high);
  const steps = [];
  if (last - first <= width / STEP_PIXELS) {
    for (let i = first; i <= last; i += 1) {
      steps.push([axis.toPixel(edges[i], width), axis.toPixel(edges[i + 1], width), values[i], values[i], values[i]]);
    }
  } else {
    mergeSteps(series, axis, [first, last], width, steps);
  }
  context.fillStyle = `${style.colour}40`;
  for (const [begin, end, , low, high] of steps) {
    if (high > low) context.fillRect(left + begin, toY(high), end - begin, toY(low) - toY(high));
  }
  strokeAs(context, style, 1.4);
  context.beginPath();
  let drawn = false;
  for (const [begin, end, mean] of steps) {
    const there = !Number.isNaN(mean);
    if (there) {
      context[drawn ? "lineTo" : "moveTo"](left + begin, toY(mean));
      context.lineTo(left + end, toY(mean));
    }
    drawn = there;
  }
  context.stroke();
  context.setLineDash([]);
}

/** Add steps of a few pixels each: begin, end, mean, least and most. */
function mergeSteps({ edges, values }, axis, [first, last], width, steps) {
  let i = first;
  for (let x = 0; x < width && i <= last; x += STEP_PIXELS) {
    const end = axis.toTime(x + STEP_PIXELS, width);
    let [low, high, sum, span] = [Infinity, -Infinity, 0, 0];
    for (; i <= last && edges[i] < end; i += 1) {
      const value = values[i];
      if (Number.isNaN(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
      sum += value * (edges[i + 1] - edges[i]);
      span += edges[i + 1] - edges[i];
    }
    steps.push([x, x + STEP_PIXELS, span > 0 ? sum / span : NaN, low, high]);
  }
}
