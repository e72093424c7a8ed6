// Canvases of charts: drawn at the resolution of the screen, and again when their size changes.

// runs are told apart by colour and by dashes
const RUN_STYLES = [
  { colour: PALETTE[0], dash: [] },
  { colour: PALETTE[3], dash: [7, 3] },
  { colour: PALETTE[2], dash: [2, 2] },
  { colour: PALETTE[6], dash: [8, 3, 2, 3] },
];
const CHART_FONT = "11px system-ui, sans-serif";
const CHART_INK = "#444";
const CHART_GRID = "#0000001c";

/** Return colour and dashes of the run that is shown at a place. */
function runStyle(place) {
  return RUN_STYLES[place % RUN_STYLES.length];
}

/** Return a piece of the line of a run, for legends. */
function runSwatch(place) {
  const canvas = element("canvas", { class: "swatch", width: 52, height: 20, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  strokeAs(context, runStyle(place), 2.5);
  context.beginPath();
  context.moveTo(0, 5);
  context.lineTo(26, 5);
  context.stroke();
  return canvas;
}

function strokeAs(context, style, width) {
  context.strokeStyle = style.colour;
  context.lineWidth = width;
  context.setLineDash(style.dash);
}

/**
 * A picture and a layer over it, as wide as the page lets them be.
 *
 * `draw(context, width, height)` and `drawOver(context, width, height)` work in CSS pixels. `canvas` is the upper
 * layer, which has the focus and gets the events.
 */
class Plot {
  constructor(root, { height, label, draw, drawOver = () => {} }) {
    Object.assign(this, { draw, drawOver, width: 0, height });
    this.base = element("canvas");
    this.canvas = element("canvas", { class: "over", tabindex: "0", role: "img", "aria-label": label });
    this.stack = element("div", { class: "stack" }, this.base, this.canvas);
    this.stack.style.height = `${height}px`;
    root.append(this.stack);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.stack);
    this.resize();
  }

  remove() {
    this.observer.disconnect();
    cancelAnimationFrame(this.waiting);
    this.stack.remove();
  }

  resize() {
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    const [width, height] = [this.stack.clientWidth, this.stack.clientHeight];
    if (!width || (width === this.width && height === this.height && ratio === this.ratio)) return;
    Object.assign(this, { ratio, width, height });
    for (const canvas of [this.base, this.canvas]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    this.paint();
  }

  /** Draw both layers with the next frame. */
  redraw() {
    this.waiting ||= requestAnimationFrame(() => this.paint());
  }

  paint() {
    cancelAnimationFrame(this.waiting);
    this.waiting = 0;
    if (!this.width) return;
    const began = performance.now();
    this.layer(this.base, this.draw);
    this.paintOver();
    this.lastDraw = performance.now() - began;
  }

  paintOver() {
    if (this.width) this.layer(this.canvas, this.drawOver);
  }

  layer(canvas, draw) {
    const context = canvas.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.font = CHART_FONT;
    context.textBaseline = "middle";
    context.save();
    draw(context, this.width, this.height);
    context.restore();
  }
}

/** Return the least round number that is not below a value. */
function roundAbove(value) {
  if (!(value > 0)) return 1;
  const base = 10 ** Math.floor(Math.log10(value));
  return base * [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((m) => m * base >= value * (1 - 1e-9));
}

/** Return boxes to choose up to `most` runs; `onChange(runs)` is called at each change. */
function runChooser(runs, most, onChange) {
  const boxes = runs.map((run, number) => {
    const box = element("input", { type: "checkbox", onchange: () => change(box) });
    box.checked = number < most;
    return box;
  });
  const chosen = () => runs.filter((run, number) => boxes[number].checked);
  const change = (box) => {
    if (chosen().length > most) box.checked = false;
    else onChange(chosen());
  };
  const root = element("div", { class: "controls", role: "group", "aria-label": `Runs to show, at most ${most}` }, element("span", {}, "runs"),
    ...runs.map((run, number) => element("label", { class: "choice" }, boxes[number], ` ${run.label}`)));
  root.hidden = runs.length < 2;
  return { root, chosen };
}

/** Return a table with a head and rows of texts; the first `texts` columns are no numbers. */
function textTable(head, rows, texts = 1) {
  const cell = (text, tag, column) => element(tag, { class: column < texts ? "text" : null }, text);
  const line = (cells, tag) => element("tr", {}, ...cells.map((text, column) => cell(text, tag, column)));
  return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, line(head, "th")),
    element("tbody", {}, ...rows.map((cells) => line(cells, "td")))));
}
