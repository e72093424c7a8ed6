// Two runs beside each other, kernel by kernel.

const COMPARED_ROWS = 15;
const ORDERS = {
  change: ["largest change of duration", (x, y) => Math.abs(y.length) - Math.abs(x.length)],
  slower: ["slower in the second", (x, y) => y.length - x.length],
  faster: ["faster in the second", (x, y) => x.length - y.length],
  launch: ["order of launch", (x, y) => x.ka - y.ka],
};

class ComparisonPanel {
  /** `onPick(run, kernel)`: called when a row is chosen. */
  constructor(root, runs, onPick) {
    Object.assign(this, { root, runs, onPick, order: "change" });
    if (runs.length < 2) {
      root.append(element("p", { class: "quiet" }, "The report has one run: pysim report A.h5 B.h5 compares files."));
      return;
    }
    const [a, b] = chosenPair(runs);
    this.first = this.picker("first", a);
    this.second = this.picker("second", b);
    const swap = element("button", { type: "button", onclick: () => this.swap() }, "swap");
    this.verdict = element("p");
    this.canvas = element("canvas", { class: "chart", role: "img", tabindex: "0" });
    this.tables = element("div", { class: "columns" });
    root.append(
      element("div", { class: "controls" }, label("first", this.first), label("second", this.second), swap),
      this.verdict, this.canvas, this.tables,
    );
    new ResizeObserver(() => this.drawChart()).observe(root);
    this.update();
  }

  picker(name, chosen) {
    const select = element("select", { onchange: () => this.update() });
    this.runs.forEach((run, number) => {
      select.append(element("option", { value: number, selected: number === chosen }, run.label));
    });
    return select;
  }

  swap() {
    [this.first.value, this.second.value] = [this.second.value, this.first.value];
    this.update();
  }

  async update() {
    const pair = [this.first, this.second].map((select) => this.runs[Number(select.value)]);
    await Promise.all(pair.map((run) => run.load()));
    [this.a, this.b] = pair;
    this.compared = compareKernels(...pair);
    this.say();
    this.drawChart();
    this.fillTables();
  }

  say() {
    const [one, other] = [this.a, this.b].map((run) => run.about.row.time_us * 1e3);
    const { rows, onlyA, onlyB } = this.compared;
    const words = other === one ? "takes exactly as long as"
      : `takes ${formatTime(Math.abs(other - one))} ${other < one ? "less" : "more"} (${(one / other).toFixed(2)}x as fast) than`;
    const texts = [`${this.b.label} ${words} ${this.a.label}: ${formatTime(other)} against ${formatTime(one)}.`];
    if (rows.length) {
      const slower = rows.filter((row) => row.length > 0).length;
      const faster = rows.filter((row) => row.length < 0).length;
      texts.push(`Of ${formatCount(rows.length, "kernel")} in both, ${faster} take less time in the second and ${slower} more.`);
    }
    if (!rows.length) texts.push(whyNoKernels([this.a, this.b]));
    else if (onlyA || onlyB) texts.push(`${formatCount(onlyA, "kernel is", "kernels are")} only in the first, ${onlyB} only in the second.`);
    this.verdict.textContent = texts.join(" ");
    this.canvas.setAttribute("aria-label", `How much earlier or later each kernel ends in ${this.b.label} than in ${this.a.label}. ${texts.join(" ")}`);
  }

  /** Draw, over the end of each kernel in the first run, how much later it ends in the second. */
  drawChart() {
    const rows = this.compared?.rows ?? [];
    const width = this.root.clientWidth;
    this.canvas.hidden = rows.length < 2;
    if (rows.length < 2 || !width) return;
    const [ratio, height, left, low, top] = [Math.min(2, window.devicePixelRatio || 1), 200, 76, 40, 20];
    Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "11px system-ui, sans-serif";
    const end = Math.max(...rows.map((row) => row.one.end));
    const [least, most] = differenceRange(rows.map((row) => row.end), this.a.about.row.time_us * 1e3);
    const x = (ns) => left + (ns / end) * (width - left - 8);
    const y = (ns) => top + ((most - ns) / (most - least)) * (height - low - top);
    context.fillStyle = "#444";
    context.textBaseline = "middle";
    const ticks = roundTicks(least, most, 4);
    for (const tick of ticks) {
      context.fillStyle = tick === 0 ? "#444" : "#e3e3e3";
      context.fillRect(left, y(tick), width - left - 8, 1);
      context.fillStyle = "#444";
      context.textAlign = "right";
      context.fillText(formatDifference(tick), left - 6, y(tick));
    }
    context.textAlign = "center";
    for (const tick of roundTicks(0, end, width / 140)) {
      const text = formatTime(tick);
      const half = context.measureText(text).width / 2;
      context.fillText(text, Math.min(Math.max(x(tick), left + half), width - half), height - low + 10);
    }
    for (const row of rows) {
      context.fillStyle = this.a.colourOf(row.ka);
      context.fillRect(x(row.one.end) - 1.5, y(row.end) - 1.5, 3, 3);
    }
    context.textAlign = "left";
    context.fillStyle = "#444";
    context.fillText("end in the second: + later, − earlier", left, 8);
    context.fillText(fitted(context, `over the end of each kernel in the first (${this.a.label})`, width - left), left, height - 8);
  }

  fillTables() {
    const { rows } = this.compared;
    if (!rows.length) {
      this.tables.replaceChildren();
      return;
    }
    const choice = element("select", { onchange: () => { this.order = choice.value; this.fillTables(); } });
    for (const [key, [text]] of Object.entries(ORDERS)) choice.append(element("option", { value: key, selected: key === this.order }, text));
    const shown = [...rows].sort(ORDERS[this.order][1]).slice(0, COMPARED_ROWS);
    const body = shown.map((row) => [
      element("button", { type: "button", class: "link", onclick: () => this.onPick(this.a, row.ka) }, `${row.name} (${row.ka})`),
      formatTime(row.one.length), formatTime(row.other.length), formatDifference(row.length), formatDifference(row.end),
    ]);
    const more = rows.length > shown.length ? `${shown.length} of ${rows.length.toLocaleString("en-US")} kernels, by ` : "All kernels, by ";
    const heads = ["kernel", "launches", "mean, first", "mean, second", "change of the sum"];
    this.tables.replaceChildren(
      element("div", {}, element("h3", {}, "By name"), table(heads, this.byName())),
      element("div", {},
        element("h3", {}, "By launch"),
        element("p", { class: "controls" }, more, choice),
        table(["kernel", "first", "second", "change", "ends"], body)),
    );
  }

  /** Return a row a kernel name: launches, mean durations, change of the sum. */
  byName() {
    const sums = new Map();
    for (const row of this.compared.rows) {
      const sum = sums.get(row.name) ?? { count: 0, one: 0, other: 0 };
      sum.count += 1;
      sum.one += row.one.length;
      sum.other += row.other.length;
      sums.set(row.name, sum);
    }
    return [...sums].sort((x, y) => Math.abs(y[1].other - y[1].one) - Math.abs(x[1].other - x[1].one)).slice(0, COMPARED_ROWS)
      .map(([name, { count, one, other }]) => [
        name, count.toLocaleString("en-US"), formatTime(one / count), formatTime(other / count), formatDifference(other - one),
      ]);
  }
}

/**
 * Return the numbers of the two runs that are shown first: of two files the fastest scheme that both have, of one
 * stream order and the fastest real scheme.
 */
function chosenPair(runs) {
  const files = [...new Set(runs.map((run) => run.about.file))];
  if (files.length > 1) {
    const of = (file) => runs.filter((run) => run.about.file === file && !run.scheme.startsWith("tb_ideal"));
    const other = of(files[1]);
    const both = of(files[0]).filter((run) => other.some((each) => each.scheme === run.scheme));
    both.sort((x, y) => x.about.row.time_us - y.about.row.time_us);
    if (both.length) return [both[0], other.find((each) => each.scheme === both[0].scheme)].map((run) => runs.indexOf(run));
  }
  const times = runs.map((run) => run.about.row.time_us);
  const stream = Math.max(0, runs.findIndex((run) => run.scheme === "stream"));
  let best = -1;
  runs.forEach((run, number) => {
    if (number === stream || run.scheme.startsWith("tb_ideal") || !sameJob(run, runs[stream])) return;
    if (best < 0 || times[number] < times[best]) best = number;
  });
  return [stream, best < 0 ? (stream === 0 ? 1 : 0) : best];
}

/**
 * Return the range of an axis of differences of ns, zero and some room included; where all are next to nothing, a
 * per cent of `whole` to both sides.
 */
function differenceRange(differences, whole) {
  const [least, most] = [Math.min(0, ...differences), Math.max(0, ...differences)];
  if (most - least < 1) return [-Math.max(1, whole / 100), Math.max(1, whole / 100)];
  const room = (most - least) * 0.08;
  return [least - room, most + room];
}

/** Say why no kernel of two runs is compared. */
function whyNoKernels(pair) {
  const without = [...new Set(pair.filter((run) => !run.kernels.count).map((run) => run.label))];
  if (without.length) return `No file has the table kernels of ${without.join(" or ")}: run again with --tables all to compare kernels.`;
  const [first, second] = pair.map((run) => formatCount(run.kernels.count, "kernel"));
  return `No kernel is in both: the first has ${first}, the second ${second} of other names.`;
}

function sameJob(a, b) {
  return ["workload", "arguments", "gpu"].every((name) => a.about.row[name] === b.about.row[name]);
}

function label(text, control) {
  return element("label", {}, `${text} `, control);
}

/** Return a table; cells are text or elements, all but the first to the right. */
function table(heads, rows) {
  const made = element("table", {},
    element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, cell))))),
  );
  return element("div", { class: "scroll" }, made);
}
