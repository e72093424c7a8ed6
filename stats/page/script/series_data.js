// Series over time: their values, and how they are drawn.

const STEP_PIXELS = 2; // that a step takes where there are more steps than pixels

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
  if (!Number.isFinite(value)) return "–";
  const text = formatNumber(value);
  return `${text}${NBSP}${text === "1" ? unit.replace(/^(TB|warp)s$/, "$1") : unit}`;
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
