// What all timelines of the page share: time axis, colours, search, the chosen TB.

const DIM = 0.82; // how far towards white what a search does not find is moved

class Shared {
  constructor(axis, detail, hintLine) {
    Object.assign(this, { axis, detail, hintLine, timelines: [], graphs: new Map() });
    this.mode = "name";
    this.query = "";
    this.chosen = null; // [kernel, tb]
    this.band = null; // pixels of the range that is being chosen
    this.moment = null; // ns on the axis that the charts below point to
    this.paints = new Map();
    axis.onChange(() => this.redraw());
  }

  /** Draw all timelines with the next frame. */
  redraw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.lastDraw = 0;
      for (const timeline of this.timelines) this.lastDraw += timeline.draw();
    });
  }

  setMode(mode) {
    this.mode = mode;
    this.paints.clear();
    this.redraw();
  }

  /** Search; returns what was found in the first timeline. */
  search(query) {
    this.query = query;
    this.paints.clear();
    this.redraw();
    return this.timelines.length ? readQuery(query, this.timelines[0].run) : null;
  }

  /** Return the colours of a run for `rasterise`. */
  paint(run) {
    if (!this.paints.has(run)) this.paints.set(run, this.makePaint(run));
    return this.paints.get(run);
  }

  makePaint(run) {
    const match = readQuery(this.query, run);
    const byTb = this.mode === "wait";
    const colours = byTb ? waitColours(run) : kernelColours(run, this.mode);
    if (match?.kind === "kernels") {
      for (let i = 0; i < colours.length; i += 1) {
        if (!match.found.has(byTb ? run.tbs.kernel[i] : i)) colours[i] = paler(colours[i]);
      }
    }
    return { colours, byTb };
  }

  /** Mark an SM that is searched for, and the range that is being chosen. */
  drawMarks(timeline, context) {
    const match = readQuery(this.query, timeline.run);
    const lane = timeline.plotHeight / (timeline.bottom - timeline.top);
    if (match?.kind === "sm") {
      const at = timeline.run.sms.indexOf(match.sm);
      if (at >= 0) outline(context, [GUTTER, HEAD + (at - timeline.top) * lane, timeline.plotWidth, lane], 2);
    }
    if (match?.kind === "tb") {
      const index = timeline.run.find(match.kernel, match.tb);
      if (index >= 0) outline(context, timeline.box(index), 3);
    }
    if (this.moment !== null) {
      context.fillStyle = "#000a";
      context.fillRect(GUTTER + this.axis.toPixel(this.moment, timeline.plotWidth), HEAD, 1, timeline.plotHeight);
    }
    if (this.band) {
      context.fillStyle = "#0072B233";
      context.fillRect(this.band[0], HEAD, this.band[1] - this.band[0], timeline.plotHeight);
    }
  }

  /** Show what is under the pointer. */
  hover(timeline, index, x = 0, y = 0) {
    for (const other of this.timelines) {
      const found = other === timeline ? index : -1;
      if (other.hovered === found) continue;
      other.hovered = found;
      other.drawOver();
    }
    this.detail.tip(timeline, index, x, y);
    this.onMoment?.(x >= GUTTER ? this.axis.toTime(x - GUTTER, timeline.plotWidth) : null);
    if (index >= 0 && !this.chosen) this.detail.show(timeline.run, index);
  }

  /** Mark a moment of the axis in all timelines; null: none. */
  mark(ns) {
    this.moment = ns;
    for (const timeline of this.timelines) timeline.drawOver();
  }

  /** Choose a TB in all timelines; -1: none. */
  choose(run, index) {
    this.chosen = index < 0 ? null : [run.tbs.kernel[index], run.tbs.tb[index]];
    if (this.aligned) this.hint(this.align(true), 4000);
    for (const timeline of this.timelines) timeline.drawOver();
    this.detail.show(run, index);
  }

  /**
   * Move the other timelines so that the kernel of the chosen TB begins at the same place in all; false: all begin
   * at their start. Returns what was done, as text.
   */
  align(on) {
    this.aligned = on;
    const first = this.timelines[0];
    for (const timeline of this.timelines) timeline.shift = 0;
    let said = "";
    if (on && !this.chosen) said = "Click a TB: runs are aligned where its kernel begins.";
    if (on && this.chosen && first) {
      const begin = (run, kernel) => run.kernels.first_dispatch[kernel] * 1e3;
      const [kernel] = this.chosen;
      said = `Aligned where kernel ${kernel} begins.`;
      for (const timeline of this.timelines.slice(1)) {
        const pair = alignKernels(first.run, timeline.run).pairs.find(([k]) => k === kernel);
        if (pair) timeline.shift = begin(timeline.run, pair[1]) - begin(first.run, kernel);
        else said = `${timeline.run.label} has no kernel that corresponds to kernel ${kernel}.`;
      }
    }
    this.redraw();
    this.onAlign?.();
    return said;
  }

  placeOfChosen(run) {
    return this.chosen ? run.find(...this.chosen) : -1;
  }

  /** Choose the TB before or after on the same slot; without a chosen TB the first one in sight. */
  step(timeline, by) {
    const { run } = timeline;
    let index = this.placeOfChosen(run);
    if (index < 0) {
      const row = Math.max(0, Math.floor(timeline.top)) * run.slots;
      for (let r = row; r < run.tbs.first.length - 1 && index < 0; r += 1) {
        index = run.at(r, (timeline.axis.low + timeline.axis.high) / 2 + timeline.shift, Infinity);
      }
    } else {
      const row = run.rowOf(index);
      index = Math.min(run.tbs.first[row + 1] - 1, Math.max(run.tbs.first[row], index + by));
    }
    if (index < 0) return;
    this.choose(run, index);
    timeline.reveal(index);
  }

  /** Choose the TB that the chosen one waited for last. */
  chooseProducer(timeline) {
    const index = this.placeOfChosen(timeline.run);
    const last = index < 0 ? null : timeline.run.facts(index).last;
    const found = last ? timeline.run.find(...last) : -1;
    if (found < 0) return;
    this.choose(timeline.run, found);
    timeline.reveal(found);
  }

  focusChosen(timeline) {
    const index = this.placeOfChosen(timeline.run);
    if (index >= 0) zoomTo(timeline, index);
  }

  /** Show the whole time and all SMs. */
  showAll() {
    for (const timeline of this.timelines) {
      timeline.top = 0;
      timeline.bottom = Math.max(1, timeline.run.sms.length);
    }
    this.axis.reset();
    this.redraw();
  }

  /** Show a line for a moment. */
  hint(text, milliseconds) {
    this.hintLine.textContent = text;
    clearTimeout(this.hintTimer);
    this.hintTimer = setTimeout(() => { this.hintLine.textContent = ""; }, milliseconds);
  }
}

/** Return a colour for each TB by its longest wait. */
function waitColours(run) {
  const { tbs } = run;
  const packed = WAIT_NAMES.map((name) => {
    const [red, green, blue] = rgb(WAIT_COLOURS[name]);
    return red | (green << 8) | (blue << 16);
  });
  const made = new Uint32Array(run.count);
  for (let i = 0; i < run.count; i += 1) {
    const dependence = tbs.dependence_wait[i];
    const launch = tbs.start[i] - tbs.slot_wait[i] - dependence;
    let longest = 0;
    let most = launch;
    if (dependence > most) [longest, most] = [1, dependence];
    if (tbs.slot_wait[i] > most) [longest, most] = [2, tbs.slot_wait[i]];
    if (tbs.lag[i] > most) longest = 3;
    made[i] = packed[longest];
  }
  return made;
}

function paler(packed) {
  const parts = [packed & 255, (packed >> 8) & 255, (packed >> 16) & 255];
  const [red, green, blue] = parts.map((part) => Math.round(part + (255 - part) * DIM));
  return red | (green << 8) | (blue << 16);
}
