// The instruction roofline: how near kernels and runs are to the limits of their machine.

const ROOF_HEIGHT = 420;
const ROOF_MOST = 4; // runs
const ROOF_EDGE = { left: 58, right: 16, top: 10, bottom: 40 };
const ROOF_SHAPES = ["circle", "square", "triangle", "diamond"]; // a run each
const ROOF_NEAR = 0.6; // used share from which a limit is called near
const ROOF_SECTOR = 32; // bytes
const ROOF_MACHINE = ["issue", "l2", "ports", "dram"]; // ceilings that do not depend on what runs
const ROOF_OPEN = "whole run, DRAM sectors";

/** The marks of a run: its kernels, and the run as a whole against L2 and against DRAM. */
function roofMarks(run, place) {
  const { kernels, run: whole } = run.about.roofline;
  const nameOf = (each) => run.about.names[each.name] ?? `kernel name ${each.name}`;
  const made = kernels.map((each) => ({
    run, place, each, name: nameOf(each), colour: nameColour(nameOf(each)), size: 5, of: "l2",
    x: each.instructions / each.sectors, y: each.instructions / each.time, bytes: (each.sectors * ROOF_SECTOR) / each.time,
  }));
  if (whole.time > 0 && whole.instructions > 0) {
    for (const of of ["l2", "dram"]) {
      const sectors = whole[`${of}_sectors`];
      if (of === "dram" && !sectors) continue;
      made.push({
        run, place, name: of === "l2" ? "whole run" : ROOF_OPEN, colour: "#000000", size: 8, open: of === "dram", of, whole,
        x: whole.instructions / sectors, y: whole.instructions / whole.time, bytes: (sectors * ROOF_SECTOR) / whole.time,
      });
    }
  }
  return made;
}

/** Say what the numbers of a mark are. */
function roofText(mark) {
  const where = mark.of === "dram" ? "DRAM" : "L2";
  const rate = `${mark.run.label}, ${mark.name}: ${formatNumber(mark.y)} billion warp instructions/s`;
  const traffic = Number.isFinite(mark.x) ? `${formatNumber(mark.x)} a sector of ${where}, ${formatNumber(mark.bytes)}${NBSP}GB/s` : `no ${where} traffic`;
  const used = roofShares(mark).map(({ label, share }) => `${formatShare(share)} of ${label}`).join(", ");
  const { each } = mark;
  if (!each) return `${rate}, ${traffic}. ${used}.`;
  const beside = each.beside > 0.005 ? ` ${formatShare(each.beside)} of that time other kernels run beside it.` : "";
  return `${rate}, ${traffic}. ${used}. ${formatCount(each.launches, "launch", "launches")}, ${formatTime(each.time)} in all.${beside}`;
}

/** Return what share of issue slots and bandwidths a mark reaches, the largest first; the file has no pipes by kernel. */
function roofShares(mark) {
  return drawnCeilings(mark.run)
    .filter(({ key, of }) => key === "issue" || of === mark.of)
    .map(({ label, of, value }) => ({ label, share: (of === "rate" ? mark.y : mark.bytes) / value }))
    .sort((a, b) => b.share - a.share);
}

/** Return the ceilings of a run that are drawn: ports of SMs only where they, and not L2, may be the limit. */
function drawnCeilings(run) {
  const { ceilings, merging } = run.about.roofline;
  const slices = ceilings.find(({ key }) => key === "l2")?.value ?? Infinity;
  return ceilings.filter(({ key, value }) => key !== "ports" || merging || value < slices);
}

/** Say in a line which limit a run is nearest to. */
function roofLimits(run) {
  const { limits, idle } = run.about.roofline;
  if (!limits.length) return `${run.label}: the file does not say what the run used.`;
  const [first, second] = limits;
  const near = first.share >= ROOF_NEAR;
  const without = idle === null ? "" : ` SMs have no TB for ${formatShare(idle)} of the time.`;
  const next = second ? `, then ${second.label} (${formatShare(second.share)})` : "";
  return `${run.label}: ${near ? "the nearest limit is" : "no limit is near; most used are"} ${first.label}, `
    + `${formatShare(first.share)} used${next}.${near && idle < 0.1 ? "" : without}`;
}

class RooflinePanel {
  constructor(root, runs) {
    this.runs = runs.filter((run) => run.about.roofline);
    if (!this.runs.length) {
      root.append(element("p", { class: "quiet" }, "No file has the table kernels, from which the roofline is drawn: run again with --tables all."));
      return;
    }
    this.chooser = runChooser(this.runs, ROOF_MOST, (chosen) => this.show(chosen));
    this.lines = element("ul", { class: "facts" });
    this.legend = element("ul", { class: "legend", "aria-label": "Kernels and runs" });
    this.says = element("p", { class: "hint", role: "status" });
    this.notes = element("p", { class: "quiet" });
    this.table = element("div");
    const frame = element("div");
    this.picture = element("div", {}, this.lines, this.legend, frame, this.says, this.notes,
      element("details", {}, element("summary", {}, "As a table"), this.table));
    this.none = element("p", { class: "quiet" }, "No run is chosen.");
    root.append(this.chooser.root, this.picture, this.none);
    this.marked = -1;
    this.marks = [];
    this.shown = [];
    this.plot = new Plot(frame, {
      height: ROOF_HEIGHT,
      label: "Instruction roofline: billions of warp instructions a second against warp instructions a sector, both logarithmic. "
        + "Left and right arrow keys go from mark to mark.",
      draw: (context, width, height) => this.draw(context, width, height),
      drawOver: (context) => this.drawOver(context),
    });
    this.listen(this.plot.canvas);
    this.show(this.chooser.chosen());
  }

  get canvases() {
    return this.plot ? [this.plot.canvas] : [];
  }

  /** Show these runs, at most four. */
  show(runs) {
    this.shown = runs.filter((run) => this.runs.includes(run)).slice(0, ROOF_MOST);
    this.marks = this.shown.flatMap((run, place) => roofMarks(run, place)).sort((a, b) => a.place - b.place || a.x - b.x);
    this.marked = -1;
    this.picture.hidden = !this.shown.length;
    this.none.hidden = this.shown.length > 0;
    this.lines.replaceChildren(...this.shown.map((run) => element("li", {}, roofLimits(run))));
    this.fillLegend();
    this.notes.textContent = this.note();
    this.table.replaceChildren(this.makeTable());
    this.mark(-1);
    this.plot.redraw();
  }

  fillLegend() {
    const names = new Map(this.marks.filter(({ each }) => each).map((mark) => [mark.name, mark.colour]));
    const chips = [...names].map(([name, colour]) => {
      const chip = element("span", { class: "chip" });
      chip.style.background = colour;
      return element("li", {}, chip, ` ${name}`);
    });
    const shapes = this.shown.map((run, place) => element("li", {}, shapeSample(place), ` ${run.label}`));
    this.legend.replaceChildren(...chips, ...shapes);
  }

  note() {
    const facts = this.shown.map((run) => run.about.roofline);
    const texts = [
      "A mark is all launches of a name; its time is that in which at least one of them runs, from first dispatch to completion; "
        + "waits for other TBs inside a program count. "
        + "Where other kernels run beside it, it shares the machine with them and its rate is lower than alone. "
        + "Black marks are whole runs, launch gaps included: filled against L2 sectors, open against DRAM sectors (only those compare with the DRAM line).",
    ];
    if (facts.some(({ merging }) => merging)) {
      texts.push("Loads of several SMs merge on their way to L2 but count for each SM, so kernels may lie above the line of the L2 slices.");
    }
    if (facts.some(({ ceilings }) => ceilings.some(({ key, of }) => of === "rate" && key !== "issue"))) {
      texts.push("The line of a pipe is the rate of a kernel all of whose instructions use it.");
    }
    const empty = Math.max(0, ...facts.map((each) => each.empty));
    const more = Math.max(0, ...facts.map((each) => each.more));
    if (empty) texts.push(`Left out: ${formatCount(empty, "kernel name")} with next to no instructions and traffic.`);
    if (more) texts.push(`Left out: ${formatCount(more, "kernel name")} with little time.`);
    return texts.join(" ");
  }

  makeTable() {
    const rows = this.marks.filter(({ open }) => !open).map((mark) => [
      mark.name, mark.run.label, mark.each ? mark.each.launches.toLocaleString("en-US") : "", formatTime((mark.each ?? mark.whole).time),
      formatNumber(mark.y), formatNumber(mark.x), formatNumber(mark.bytes), mark.each ? formatShare(mark.each.beside) : "",
    ]);
    return textTable(["kernel", "run", "launches", "time", "10⁹ warp instr./s", "warp instr. a sector", "L2 GB/s", "beside others"], rows, 2);
  }

  listen(canvas) {
    canvas.addEventListener("pointermove", (event) => this.mark(this.nearest(event.offsetX, event.offsetY)));
    canvas.addEventListener("pointerleave", () => this.mark(-1));
    canvas.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") this.mark(-1);
      if (!by || !this.marks.length) return;
      event.preventDefault();
      this.mark((this.marked + by + this.marks.length + (this.marked < 0 && by < 0 ? 1 : 0)) % this.marks.length);
    });
  }

  nearest(x, y) {
    let [found, least] = [-1, 14];
    this.marks.forEach((mark, number) => {
      const distance = Math.hypot(mark.at[0] - x, mark.at[1] - y);
      if (distance < least) [found, least] = [number, distance];
    });
    return found;
  }

  mark(number) {
    this.marked = number;
    this.says.textContent = number < 0 ? "Point to a mark for its numbers." : roofText(this.marks[number]);
    this.plot.paintOver();
  }

  /** Return the ceilings of all machines that are shown, equal ones once, and those at the same height together. */
  ceilings() {
    const made = new Map();
    const machineOf = (run) => JSON.stringify(run.about.roofline.ceilings.filter(({ key }) => ROOF_MACHINE.includes(key)));
    const machines = new Set(this.shown.map(machineOf));
    const gpus = new Set(this.shown.map((run) => run.about.row.gpu));
    for (const run of this.shown) {
      const machine = gpus.size === machines.size ? run.about.row.gpu : PAGE.files[run.about.file].label;
      for (const { label, of, value } of drawnCeilings(run)) {
        const key = `${of} ${value.toPrecision(3)}`;
        const known = made.get(key) ?? { of, value, labels: new Set(), machines: new Set() };
        known.labels.add(label);
        known.machines.add(machine);
        made.set(key, known);
      }
    }
    return [...made.values()].map(({ of, value, labels, machines: whose }) => ({
      of, value,
      text: `${[...labels].join(", ")} ${formatNumber(value)}${of === "rate" ? "" : " GB/s"}${machines.size > 1 ? ` (${[...whose].join(", ")})` : ""}`,
    }));
  }

  /** Choose the ranges of both axes, in powers of ten, so that marks and ridges are in sight. */
  ranges(ceilings) {
    const rates = ceilings.filter(({ of }) => of === "rate").map(({ value }) => value);
    const peak = Math.max(0, ...rates);
    const ridges = peak ? ceilings.filter(({ of }) => of !== "rate").map(({ value }) => (peak * ROOF_SECTOR) / value) : [];
    const xs = [...this.marks.map(({ x }) => x).filter((x) => x > 0 && Number.isFinite(x)), ...ridges];
    const ys = [...this.marks.map(({ y }) => y).filter((y) => y > 0), ...rates];
    const range = (values) => (values.length ? [Math.log10(Math.min(...values) / 2), Math.log10(Math.max(...values) * 2)] : [-1, 1]);
    return { x: range(xs), y: range(ys) };
  }

  draw(context, width, height) {
    const ceilings = this.ceilings();
    const range = this.ranges(ceilings);
    const box = { left: ROOF_EDGE.left, top: ROOF_EDGE.top, right: width - ROOF_EDGE.right, bottom: height - ROOF_EDGE.bottom };
    const toX = (x) => box.left + ((Math.log10(x) - range.x[0]) / (range.x[1] - range.x[0])) * (box.right - box.left);
    const toY = (y) => box.bottom - ((Math.log10(y) - range.y[0]) / (range.y[1] - range.y[0])) * (box.bottom - box.top);
    roofAxes(context, box, range, toX, toY);
    context.save();
    context.beginPath();
    context.rect(box.left, box.top, box.right - box.left, box.bottom - box.top);
    context.clip();
    roofCeilings(context, ceilings, box, range, toX, toY);
    context.restore();
    for (const mark of this.marks) mark.at = [Number.isFinite(mark.x) ? toX(mark.x) : box.right, toY(mark.y)];
    context.strokeStyle = "#0006";
    for (const open of this.marks.filter((mark) => mark.open)) {
      const filled = this.marks.find((mark) => mark.whole && !mark.open && mark.run === open.run);
      context.beginPath();
      context.moveTo(...filled.at);
      context.lineTo(...open.at);
      context.stroke();
    }
    for (const mark of [...this.marks].sort((a, b) => b.size - a.size)) {
      drawShape(context, ROOF_SHAPES[mark.place], mark.at, mark.size, mark.colour, mark.open);
    }
  }

  drawOver(context) {
    const mark = this.marks[this.marked];
    if (!mark?.at) return;
    context.lineWidth = 2;
    context.strokeStyle = "#000";
    context.beginPath();
    context.arc(...mark.at, mark.size + 5, 0, 7);
    context.stroke();
  }
}
