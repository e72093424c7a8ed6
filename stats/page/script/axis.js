// The time range that several pictures share.

/** A visible range [low, high] of ns inside [0, end]; `onChange` is called after each change. */
class TimeAxis {
  constructor(end) {
    this.end = Math.max(end, 1e-3);
    this.low = 0;
    this.high = this.end;
    this.listeners = [];
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  /** Show a range, as much of it as there is; at the least a nanosecond or so. */
  show(low, high) {
    const width = Math.min(this.end, Math.max(high - low, 1));
    const start = Math.min(Math.max(0, low), this.end - width);
    if (start === this.low && start + width === this.high) return;
    this.low = start;
    this.high = start + width;
    for (const listener of this.listeners) listener();
  }

  /** Show 1 / factor of the range, keeping a moment where it is. */
  zoom(factor, around = (this.low + this.high) / 2) {
    this.show(around - (around - this.low) / factor, around + (this.high - around) / factor);
  }

  /** Move by a share of the visible range. */
  pan(share) {
    const by = share * (this.high - this.low);
    this.show(this.low + by, this.high + by);
  }

  reset() {
    this.show(0, this.end);
  }

  /** Bring a range into sight with room around it, zooming no further out than needed. */
  reveal(low, high) {
    const width = this.high - this.low;
    if (low >= this.low && high <= this.high && high - low > width / 50) return;
    const wanted = Math.max(high - low, Math.min(width, (high - low) * 30));
    const middle = (low + high) / 2;
    this.show(middle - wanted / 2, middle + wanted / 2);
  }

  /** Return the pixel of a moment on a picture `width` pixels wide. */
  toPixel(ns, width) {
    return ((ns - this.low) / (this.high - this.low)) * width;
  }

  /** Return the moment of a pixel. */
  toTime(pixel, width) {
    return this.low + (pixel / width) * (this.high - this.low);
  }

  /** Return round moments for ticks on a picture `width` pixels wide that is moved by `shift` ns; their distance. */
  ticks(width, shift = 0) {
    const marks = roundTicks(this.low + shift, this.high + shift, Math.max(2, width / 130));
    return { marks, step: marks.length > 1 ? marks[1] - marks[0] : this.high - this.low };
  }
}

/** Return the labels of ticks of a picture `width` pixels wide, GUTTER of them left of the axis: text, left and wide in pixels. */
function tickLabels(context, axis, plotWidth, width, shift = 0) {
  const { marks, step } = axis.ticks(plotWidth, shift);
  return marks.map((mark) => {
    const text = formatTick(mark, step);
    const wide = context.measureText(text).width;
    const x = GUTTER + axis.toPixel(mark - shift, plotWidth);
    return { text, wide, left: Math.min(x - wide / 2, width - wide) };
  }).filter(({ left }) => left > GUTTER - 8);
}
