// Puts the page together: reads the runs that are shown first, then all else.

const MOST_SHOWN = 4; // timelines at once

/** The section of timelines: which runs are shown, colours, search, legend. */
class TimelineSection {
  constructor(root, runs) {
    this.root = root;
    this.runs = runs.filter((run) => run.about.shown > 0);
    this.find = (name) => root.querySelector(`[data-part="${name}"]`);
    if (!this.runs.length) {
      for (const name of ["controls", "arrows", "detail"]) this.find(name).hidden = true;
      this.find("stacks").append(element("p", { class: "quiet" },
        "No file has the tables tbs and kernels, from which timelines are drawn: run again with --tables all."));
      this.showSeriesAlone(runs);
      return;
    }
    this.axis = new TimeAxis(1);
    this.detail = new Detail(this.find("detail"), document.getElementById("tip"), null);
    this.shared = new Shared(this.axis, this.detail, this.find("hint"));
    this.detail.shared = this.shared;
    this.shown = [];
    this.series = new SeriesPanel(this.find("series"), this.axis, this.runs);
    this.series.shiftOf = (run) => this.shared.timelines.find((timeline) => timeline.run === run)?.shift ?? 0;
    this.series.onHover = (ns) => this.shared.mark(ns);
    this.shared.onMoment = (ns) => this.series.mark(ns);
    this.shared.onAlign = () => this.series.redraw();
    this.connect();
  }

  /** Show charts over time of runs that have no timeline. */
  showSeriesAlone(runs) {
    const recorded = runs.filter((run) => run.about.series?.length).slice(0, MOST_SHOWN);
    if (!recorded.length) return;
    const axis = new TimeAxis(Math.max(...recorded.map((run) => run.end)));
    new SeriesPanel(this.find("series"), axis, recorded).show(recorded);
  }

  connect() {
    this.chips = this.runs.map((run) => {
      const box = element("input", { type: "checkbox", onchange: () => this.toggle(run, box) });
      this.find("runs").append(element("label", { class: "choice" }, box, ` ${run.label}`));
      return box;
    });
    this.find("mode").addEventListener("change", (event) => {
      this.shared.setMode(event.target.value);
      this.fillLegend();
    });
    this.find("align").addEventListener("change", (event) => {
      this.shared.hint(this.shared.align(event.target.checked), 4000);
    });
    const search = this.find("search");
    search.addEventListener("input", () => this.search(search.value));
    search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.next(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") {
        search.value = "";
        this.search("");
      }
    });
    for (const [name, action] of Object.entries({
      in: () => this.axis.zoom(ZOOM), out: () => this.axis.zoom(1 / ZOOM), all: () => this.shared.showAll(),
      left: () => this.axis.pan(-STEP), right: () => this.axis.pan(STEP),
    })) this.find(name).addEventListener("click", action);
    document.addEventListener("keydown", (event) => {
      const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement?.tagName);
      if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      search.focus();
    });
  }

  /** Show the runs with these numbers, as far as they have timelines. */
  async start(numbers) {
    for (const run of numbers.filter((each) => this.runs.includes(each))) {
      this.chips[this.runs.indexOf(run)].checked = true;
      await this.add(run); // one after another: the first picture is there as early as can be
    }
  }

  async add(run) {
    await run.load();
    if (this.shown.some((each) => each.run === run)) return;
    const frame = element("figure", { class: "run" }, element("figcaption", {}, `${run.label}, ${formatTime(run.about.row.time_us * 1e3)}`));
    const before = this.shown.find((each) => each.run.number > run.number);
    this.find("stacks").insertBefore(frame, before?.frame ?? null);
    this.lengthen([...this.shown.map((each) => each.run), run]);
    const timeline = new Timeline(frame, run, this.shared);
    this.shown.push({ run, frame, timeline });
    this.update();
  }

  toggle(run, box) {
    if (box.checked && this.shown.length >= MOST_SHOWN) {
      box.checked = false;
      this.shared.hint(`At most ${MOST_SHOWN} timelines at once.`, 2000);
    } else if (box.checked) {
      this.add(run);
    } else {
      const gone = this.shown.find((each) => each.run === run);
      if (!gone) return;
      gone.timeline.remove();
      gone.frame.remove();
      this.shown = this.shown.filter((each) => each !== gone);
      this.lengthen(this.shown.map((each) => each.run));
      this.update();
    }
  }

  /** Fit the time axis to the longest run. */
  lengthen(runs) {
    const whole = this.axis.low === 0 && this.axis.high === this.axis.end;
    this.axis.end = Math.max(1, ...runs.map((run) => run.end));
    if (whole) this.axis.show(0, this.axis.end);
  }

  update() {
    this.shown.sort((x, y) => x.run.number - y.run.number);
    this.shared.timelines = this.shown.map((each) => each.timeline);
    for (const timeline of this.shared.timelines) timeline.fit(this.shown.length);
    this.shared.redraw();
    this.fillLegend();
    this.series.show(this.shown.map((each) => each.run));
  }

  fillLegend() {
    const legend = this.find("legend");
    const items = [];
    if (this.shared.mode === "wait") {
      for (const name of WAIT_NAMES) items.push(legendItem(WAIT_COLOURS[name], `longest wait: ${WAIT_TEXTS[name]}`));
    } else if (this.shared.mode === "launch") {
      items.push(element("li", {}, "The next launch has the next colour."));
    } else {
      for (const name of new Set(this.shown.flatMap(({ run }) => run.about.names))) {
        const item = legendItem(nameColour(name), name);
        item.replaceChildren(element("button", { type: "button", class: "link", title: "find its launches", onclick: () => this.searchFor(name) }, ...item.childNodes));
        items.push(item);
      }
    }
    legend.replaceChildren(...items);
  }

  searchFor(text) {
    const search = this.find("search");
    search.value = search.value === text ? "" : text;
    this.search(search.value);
  }

  search(text) {
    const match = this.shared.search(text);
    this.at = -1;
    this.match = match;
    this.find("found").textContent = this.shown.length ? describeMatch(match, this.shown[0].run) : "";
  }

  /** Go to the next thing that the search found. */
  next(by) {
    const first = this.shared.timelines[0];
    if (!first || !this.match) return;
    const { run } = first;
    if (this.match.kind === "tb") {
      const index = run.find(this.match.kernel, this.match.tb);
      if (index >= 0) {
        this.shared.choose(run, index);
        first.reveal(index);
      }
    } else if (this.match.kind === "kernels" && this.match.list.length) {
      const count = this.match.list.length;
      this.at = (this.at + by + count) % count;
      this.showKernel(run, this.match.list[this.at]);
      this.find("found").textContent = `${this.at + 1} of ${describeMatch(this.match, run)}`;
    }
  }

  /** Choose a TB in the timelines. */
  showTb(run, kernel, tb) {
    const shown = this.shown.find((each) => each.run.about.file === run.about.file);
    const index = shown ? shown.run.find(kernel, tb) : -1;
    if (index < 0) return;
    this.shared.choose(shown.run, index);
    shown.timeline.reveal(index);
    this.root.scrollIntoView();
  }

  /** Show a launch of a run, with as much time before and after. */
  showKernel(run, kernel) {
    const [start, end] = [run.kernels.first_dispatch[kernel] * 1e3, run.kernels.complete[kernel] * 1e3];
    this.axis.show(start - (end - start), end + (end - start));
    const shown = this.shown.find((each) => each.run === run) ?? this.shown[0];
    shown?.frame.scrollIntoView({ block: "nearest" });
  }
}

/** Make the columns of a static table sort its rows at a click on the head. */
function makeSortable(head) {
  const places = [...head.parentElement.children];
  const body = head.closest("table").tBodies[0];
  const column = places.indexOf(head);
  const button = element("button", { type: "button", class: "link" }, ...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") !== "ascending";
    places.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "ascending" : "descending");
    const key = (row) => row.cells[column]?.dataset.value ?? row.cells[column]?.textContent ?? "";
    const rows = [...body.rows].sort((x, y) => {
      const [p, q] = [key(x), key(y)];
      const numbers = Number(p) - Number(q);
      return (down ? 1 : -1) * (Number.isNaN(numbers) || p === "" || q === "" ? p.localeCompare(q) : numbers);
    });
    body.append(...rows);
  });
}

async function start() {
  document.querySelectorAll("th[data-sort]").forEach(makeSortable);
  const runs = PAGE.runs.map((about, number) => new Run(about, number));
  const section = new TimelineSection(document.getElementById("timeline"), runs);
  if (section.runs.length) {
    const pair = section.runs.length > 1 ? chosenPair(section.runs).map((number) => section.runs[number]) : section.runs;
    await section.start(pair);
  }
  new ComparisonPanel(document.getElementById("compare-body"), runs, (run, kernel) => {
    section.showKernel?.(run, kernel);
    document.getElementById("timeline").scrollIntoView();
  });
  const graph = new GraphPanel(document.getElementById("graph-body"), runs);
  graph.onChoose = (run, kernel, tb) => (tb < 0 ? section.showKernel?.(run, kernel) : section.showTb?.(run, kernel, tb));
  new RooflinePanel(document.getElementById("roofline-body"), runs);
  if (PAGE.sweep) new SweepPanel(document.getElementById("sweep-body"), PAGE.sweep);
  return section;
}

// for tests and for people with a console open
window.pysimReport = { ready: start(), PAGE };
