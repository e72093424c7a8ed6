// The timeline of a run: SM x time, a rectangle a TB.

const GUTTER = 52; // left of the picture: numbers of SMs
const HEAD = 22; // above it: the time axis
const SM_PIXELS = 5;
const SM_PIXELS_OF_MANY = 3.5; // where several timelines are shown
const NEAR = 3; // pixels beside a TB that still point to it

/** The timeline of one run. `shared`: what all timelines of the page share (class Shared). */
class Timeline {
  constructor(root, run, shared) {
    Object.assign(this, { run, shared, axis: shared.axis, scratch: {}, hovered: -1 });
    this.shift = 0; // ns that the run is moved to the left, to align it with others
    this.top = 0;
    this.bottom = Math.max(1, run.sms.length);
    this.base = element("canvas", { class: "base" });
    this.over = element("canvas", {
      class: "over", tabindex: "0", role: "img",
      "aria-label": `Timeline of ${run.label}: ${formatCount(run.count, "TB")} on ${formatCount(run.sms.length, "SM")}. `
        + "Arrow keys move, plus and minus zoom, 0 shows all, brackets step through the TBs of a slot.",
    });
    this.stack = element("div", { class: "stack" }, this.base, this.over);
    root.append(this.stack);
    this.fit(1);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.stack);
    listen(this);
    this.resize();
  }

  /** Choose the height: `shown` timelines share a screen. */
  fit(shown) {
    const pixels = this.run.sms.length * (shown > 1 ? SM_PIXELS_OF_MANY : SM_PIXELS);
    this.stack.style.height = `${HEAD + Math.min(640, Math.max(150, Math.round(pixels)))}px`;
  }

  remove() {
    this.observer.disconnect();
    this.stack.remove();
  }

  resize() {
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    const [width, height] = [this.stack.clientWidth, this.stack.clientHeight];
    if (!width || (width === this.width && height === this.height && ratio === this.ratio)) return;
    Object.assign(this, { ratio, width, height, plotWidth: width - GUTTER, plotHeight: height - HEAD });
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const pixelWidth = Math.max(1, Math.round(this.plotWidth * ratio));
    this.image = new ImageData(pixelWidth, Math.max(1, Math.round(this.plotHeight * ratio)));
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.draw();
  }

  /** Draw all; returns how long that took in ms. */
  draw() {
    if (!this.width) return 0;
    const began = performance.now();
    const context = this.base.getContext("2d", { alpha: false });
    const { run, axis, ratio } = this;
    const { shift } = this;
    const view = { low: axis.low + shift, high: axis.high + shift, top: this.top, bottom: this.bottom, ...this.shared.paint(run) };
    rasterise(run, view, this.pixels, this.image.width, this.image.height, this.scratch);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = "#fff";
    context.fillRect(0, 0, this.base.width, this.base.height);
    context.putImageData(this.image, Math.round(GUTTER * ratio), Math.round(HEAD * ratio));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawAxes(context);
    this.drawOver();
    return performance.now() - began;
  }

  drawAxes(context) {
    const { plotWidth, width, height } = this;
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = "#444";
    context.strokeStyle = "#0002";
    context.textBaseline = "middle";
    for (const mark of this.axis.ticks(plotWidth, this.shift).marks) context.fillRect(this.toX(mark), HEAD - 4, 1, 4);
    for (const { text, left } of tickLabels(context, this.axis, plotWidth, width, this.shift)) context.fillText(text, left, 9);
    context.textAlign = "right";
    const lane = this.plotHeight / (this.bottom - this.top);
    const every = [1, 2, 4, 8, 16, 32, 64].find((n) => n * lane >= 16) ?? 128;
    for (let sm = Math.max(0, Math.ceil(this.top)); sm < this.bottom && sm < this.run.sms.length; sm += 1) {
      const y = HEAD + (sm + 0.5 - this.top) * lane;
      if (sm % every === 0 && y > HEAD && y < height - 4) context.fillText(`SM ${this.run.sms[sm]}`, GUTTER - 6, Math.max(y, HEAD + 5));
    }
    context.textAlign = "left";
    context.strokeRect(GUTTER - 0.5, HEAD - 0.5, plotWidth, this.plotHeight);
  }

  /** Return the pixel of a moment of the run. */
  toX(ns) {
    return GUTTER + this.axis.toPixel(ns - this.shift, this.plotWidth);
  }

  /** Return the moment of the run at a pixel. */
  toTime(x) {
    return this.axis.toTime(x - GUTTER, this.plotWidth) + this.shift;
  }

  /** Return the rectangle [x, y, width, height] of a TB by its place. */
  box(index) {
    const { run } = this;
    const row = run.rowOf(index);
    const lane = this.plotHeight / (this.bottom - this.top);
    const gap = lane >= GAP_FROM ? 1 : 0;
    const start = run.tbs.start[index] * run.tick;
    const x = this.toX(start);
    const end = this.toX(start + run.tbs.length[index] * run.tick);
    const y = HEAD + (Math.floor(row / run.slots) - this.top) * lane;
    const bands = bandsOf(run, lane - gap);
    const high = (lane - gap) / bands;
    return [x, y + (bands > 1 ? row % run.slots : 0) * high, end - x, high];
  }

  /** Return the place of the TB at a point of the picture, or that of one a few pixels beside it, or -1. */
  indexAt(x, y) {
    if (!this.run.count || x < GUTTER || y < HEAD) return -1;
    for (const by of [0, -NEAR, NEAR]) {
      const found = this.indexInRow(x, y + by, by === 0 ? 0 : NEAR);
      if (found >= 0) return found;
    }
    return this.indexInRow(x, y, NEAR);
  }

  /** Return the place of the TB at a point, at most `near` pixels to the left or right of it, or -1. */
  indexInRow(x, y, near) {
    const { run, axis } = this;
    const lane = this.plotHeight / (this.bottom - this.top);
    const place = this.top + (y - HEAD) / lane;
    const sm = Math.floor(place);
    if (sm < 0 || sm >= run.sms.length) return -1;
    const time = this.toTime(x);
    const slack = (near * (axis.high - axis.low)) / this.plotWidth;
    const slot = Math.min(run.slots - 1, Math.floor((place - sm) * run.slots));
    const exact = run.at(sm * run.slots + slot, time, slack);
    if (exact >= 0 || bandsOf(run, lane - 1) > 1) return exact;
    for (let other = 0; other < run.slots; other += 1) { // slots too thin to point at: any of the SM
      const found = run.at(sm * run.slots + other, time, slack);
      if (found >= 0) return found;
    }
    return -1;
  }

  /** Draw what lies over the TBs: the one under the pointer, the chosen one, their arrows. */
  drawOver() {
    const context = this.over.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.save();
    context.beginPath();
    context.rect(GUTTER, HEAD, this.plotWidth, this.plotHeight);
    context.clip();
    this.shared.drawMarks(this, context);
    const chosen = this.shared.placeOfChosen(this.run);
    for (const index of new Set([this.hovered, chosen])) {
      if (index < 0) continue;
      const shows = this.hovered < 0 || index === this.hovered;
      if (shows) drawArrows(context, this, index, this.shared.graphs.get(this.run.about.file) ?? null);
      outline(context, this.box(index), index === chosen ? 2 : 1);
    }
    context.restore();
  }

  /** Show SMs from `top` to `bottom`; fractions are allowed. */
  showSms(top, bottom) {
    const count = Math.max(1, this.run.sms.length);
    const shown = Math.min(count, Math.max(1, bottom - top));
    this.top = Math.min(Math.max(0, top), count - shown);
    this.bottom = this.top + shown;
    this.draw();
  }

  /** Show fewer or more SMs, keeping one where it is. */
  zoomSms(factor, around = (this.top + this.bottom) / 2) {
    this.showSms(around - (around - this.top) / factor, around + (this.bottom - around) / factor);
  }

  /** Bring a TB into sight. */
  reveal(index) {
    const start = this.run.tbs.start[index] * this.run.tick - this.shift;
    this.axis.reveal(start, start + this.run.tbs.length[index] * this.run.tick);
    const sm = Math.floor(this.run.rowOf(index) / this.run.slots);
    if (sm < this.top || sm + 1 > this.bottom) {
      const shown = this.bottom - this.top;
      this.showSms(sm + 0.5 - shown / 2, sm + 0.5 + shown / 2);
    }
  }
}

/** Draw a border that shows on any colour. */
function outline(context, [x, y, width, height], weight) {
  const [w, h] = [Math.max(width, 2), Math.max(height, 2)];
  context.lineWidth = weight + 2;
  context.strokeStyle = "#fff";
  context.strokeRect(x - 0.5, y - 0.5, w + 1, h + 1);
  context.lineWidth = weight;
  context.strokeStyle = "#000";
  context.strokeRect(x - 0.5, y - 0.5, w + 1, h + 1);
}
