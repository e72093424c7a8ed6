// What the page says about a TB: when it ran, why it waited, what its kernel's warps did.

const STALLS = Object.keys(PAGE.shares);
const MOST_KERNELS = 6; // of producers that are named

class Detail {
  constructor(root, tip, shared) {
    Object.assign(this, { root, tipBox: tip, shared });
    this.show(null, -1);
  }

  /** Show a small box at the pointer. */
  tip(timeline, index, x, y) {
    this.tipBox.hidden = index < 0;
    if (index < 0) return;
    const { run } = timeline;
    const facts = run.facts(index);
    this.tipBox.replaceChildren(
      element("b", {}, run.nameOf(facts.kernel)),
      ` kernel ${facts.kernel}, TB ${facts.tb}`,
      element("br"),
      `${formatTime(facts.end - facts.start)} on SM ${facts.sm}; waited ${describeLongest(facts.waits)}`,
    );
    const frame = timeline.stack.getBoundingClientRect();
    const left = Math.min(frame.left + x + 14, document.documentElement.clientWidth - this.tipBox.offsetWidth - 8);
    this.tipBox.style.left = `${Math.max(4, left) + window.scrollX}px`;
    this.tipBox.style.top = `${frame.top + y + 16 + window.scrollY}px`;
  }

  /** Show a TB in the panel; an index below 0: what the panel is for. */
  show(run, index) {
    this.root.classList.toggle("sticky", index >= 0);
    if (index < 0) {
      this.root.replaceChildren(element("p", { class: "quiet" },
        "Point to a TB to see why it waited; click to keep it. Keys: arrows move, + and − zoom, 0 shows all, "
        + "[ and ] step through a slot, P goes to the TB that it waited for, / searches."));
      return;
    }
    const facts = run.facts(index);
    const needs = element("p", { class: "needs" });
    this.needs(run, facts, needs);
    this.root.replaceChildren(
      element("div", { class: "head" }, this.title(run, facts), this.times(run, facts), this.closer(run)),
      element("div", { class: "columns" },
        element("div", {}, waitBar(facts), ...stallStack(run, facts.kernel)),
        element("div", {}, why(run, facts), needs)),
    );
  }

  title(run, facts) {
    const chip = element("span", { class: "chip" });
    chip.style.background = run.colourOf(facts.kernel);
    return element("h3", {}, chip, ` ${run.nameOf(facts.kernel)}: kernel ${facts.kernel}, TB ${facts.tb} of `
      + `${run.kernels.tbs[facts.kernel].toLocaleString("en-US")}, ${run.label}`);
  }

  closer(run) {
    return element("button", { type: "button", class: "closer", "aria-label": "close", onclick: () => this.shared.choose(run, -1) }, "×");
  }

  times(run, facts) {
    const rows = [
      ["ran", `${formatTime(facts.end - facts.start)} on SM ${facts.sm}, slot ${facts.slot}`],
      ["from", formatMoment(facts.start)],
      ["to", formatMoment(facts.end)],
    ];
    return element("dl", {}, ...rows.map(([term, text]) => element("div", {}, element("dt", {}, `${term} `), element("dd", {}, text))));
  }

  /** Say which TBs its data needs, once the graph is read. */
  async needs(run, facts, line) {
    const graph = await run.graph();
    if (graph) this.shared?.graphs.set(run.about.file, graph);
    if (!graph) {
      line.textContent = `All its producers: not shown, as ${run.graphNote}.`;
      return;
    }
    const kernels = new Map();
    for (const number of graph.producersOf(facts.kernel, facts.tb).keys()) {
      const [kernel] = graph.place(number);
      kernels.set(kernel, (kernels.get(kernel) ?? 0) + 1);
    }
    const texts = [...kernels].sort((a, b) => b[0] - a[0]).map(([kernel, count]) => {
      const all = run.kernels.tbs[kernel];
      return `${formatPart(count, all)} of kernel ${kernel} (${run.nameOf(kernel)})`;
    });
    const more = texts.length > MOST_KERNELS ? `, and of ${texts.length - MOST_KERNELS} more kernels` : "";
    const users = graph.consumersOf(facts.kernel, facts.tb).size;
    line.textContent = `Its data needs ${texts.slice(0, MOST_KERNELS).join(", ") || "no other kernel"}${more}. `
      + `${formatCount(users, "TB needs", "TBs need")} it.`;
    for (const timeline of this.shared?.timelines ?? []) timeline.drawOver();
  }
}

function describeLongest(waits) {
  const [name, time] = Object.entries(waits).sort((a, b) => b[1] - a[1])[0];
  return `longest for ${WAIT_TEXTS[name]}: ${formatTime(time)}`;
}

const WAIT_TEXTS = { launch: "its launch", dependence: "other TBs", slot: "a slot", dispatch: "its dispatch" };

/** Return the waits of a TB as a bar with a legend. */
function waitBar(facts) {
  const total = Math.max(1e-9, ...[Object.values(facts.waits).reduce((sum, wait) => sum + wait, 0)]);
  const parts = Object.entries(facts.waits);
  const bar = element("div", { class: "stackbar", role: "img", "aria-label": "waits of the TB" });
  const legend = element("ul", { class: "legend" });
  for (const [name, wait] of parts) {
    const part = element("span");
    part.style.cssText = `width:${(100 * wait) / total}%;background:${WAIT_COLOURS[name]}`;
    bar.append(part);
    legend.append(legendItem(WAIT_COLOURS[name], `${WAIT_TEXTS[name]} ${formatTime(wait)}`));
  }
  return element("div", {}, element("h4", {}, `Waited ${formatTime(total)} since the start of the run`), bar, legend);
}

function legendItem(colour, text) {
  const chip = element("span", { class: "chip" });
  chip.style.background = colour;
  return element("li", {}, chip, ` ${text}`);
}

/** Say in sentences why a TB started when it did. */
function why(run, facts) {
  const texts = [];
  if (facts.last) {
    const [kernel, tb] = facts.last;
    const place = run.find(kernel, tb);
    const whom = `TB ${tb} of kernel ${kernel} (${run.nameOf(kernel)})`;
    if (place >= 0) {
      const end = run.facts(place).end;
      texts.push(`${whom} made it ready: that TB ended at ${formatMoment(end)}, and ${formatTime(Math.max(0, facts.ready - end))} later it was ready.`);
    } else {
      texts.push(`${whom} made it ready.`);
    }
  } else {
    texts.push(`It waited for no TB: ready at ${formatMoment(facts.ready)}, when its launch had arrived.`);
  }
  const { slot } = facts.waits;
  texts.push(slot >= 1 ? `For ${formatTime(slot)} it then waited for a slot or its turn.` : "A slot was free at once.");
  return element("p", {}, texts.join(" "));
}

/** Return what the warps of a kernel did, as a bar with a legend; nothing where the file does not say. */
function stallStack(run, kernel) {
  if (!run.kernels[`stall_${STALLS[0]}`]) return [];
  const shares = STALLS.map((name) => run.kernels[`stall_${name}`][kernel]);
  const bar = element("div", { class: "stackbar", role: "img", "aria-label": "stall stack of the kernel" });
  const legend = element("ul", { class: "legend" });
  shares.forEach((share, number) => {
    const part = element("span");
    part.style.cssText = `width:${100 * share}%;background:${STALL_COLOURS[number]}`;
    bar.append(part);
    if (share >= 0.0005) legend.append(legendItem(STALL_COLOURS[number], `${PAGE.shares[STALLS[number]]} ${formatShare(share)}`));
  });
  return [element("h4", {}, `Warps of kernel ${kernel}: share of their time`), bar, legend];
}
